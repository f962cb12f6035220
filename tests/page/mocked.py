"""Checks of the page with a made-up endpoint."""

import json
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import looks
from looks import equal, said, shown
from mock import FILES, HOSTILE, YOUNG, Mock

WEIGHT_MAX = 150_000
REFUSED = (
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_CONNECTION_RESET",
    "net::ERR_INCOMPLETE_CHUNKED_ENCODING",
    "net::ERR_EMPTY_RESPONSE",
)
TEXT = "return document.querySelector(arguments[0]).textContent"


def text(browser, selector):
    return browser.run(TEXT, selector)


def until_text(browser, selector, words, timeout_s=8):
    script = f"return document.querySelector({json.dumps(selector)}).textContent.includes({json.dumps(words)})"
    browser.until(script, f"{selector} says {words!r}", timeout_s)


def weight(_browser, _mock):
    own = [
        path
        for path in Path(FILES).iterdir()
        if path.suffix in (".html", ".css", ".js") and not path.name.startswith("uplot")
    ]
    total = sum(path.stat().st_size for path in own)
    assert 10_000 < total < WEIGHT_MAX, f"the page has {total} bytes without its library"
    assert "Leon Sorokin" in (Path(FILES) / "UPLOT-LICENSE").read_text(), "the licence of the library"


def load(browser, mock):
    looks.loads_fast(browser, mock.url)
    time.sleep(3)
    equal(said(browser), [], "the console")
    equal(looks.foreign(browser, mock.url), [], "requests to others")


def look(browser, mock, pictures):
    looks.look(browser, mock.url, pictures)


def still(browser, mock):
    mock.market.decisions_stand = True
    looks.stands_still(browser, mock.url)


def names(browser, mock):
    shown(browser, mock.url)
    time.sleep(1)
    looks.has_names(browser)


def values(browser, mock):
    """Figures are those of the snapshot; a thin space groups them, and their raw values are in the document."""
    shown(browser, mock.url)
    # The same snapshot is shown and fetched if its time is the same.
    script = """
    const value = (id, part = 'data') => document.querySelector(`#tile-${id} ${part}`).value;
    return {
      late: value('late'), dead: value('dead'), symbols: value('symbols'), p50: value('p50'), ticks: value('ticks', '.sub'),
      signals: value('signals', '.sub'), text: document.querySelector('#tile-late data').textContent, about: document.querySelector('#about').textContent,
    }"""
    before = json.load(urllib.request.urlopen(mock.url + "live.json"))
    time.sleep(1.2)
    found = browser.run(script)
    after = json.load(urllib.request.urlopen(mock.url + "live.json"))
    expected = {
        "late": "1015",
        "dead": "3",
        "symbols": str(after["totals"]["symbols"]),
        "p50": "56.3",
        "text": "1\u202f015",
    }
    equal({key: found[key] for key in expected}, expected, "figures")
    for name in ["ticks", "signals"]:
        low, high = before["totals"][name], after["totals"][name]
        assert low <= int(found[name]) <= high, f"{name}: {found[name]} is not between {low} and {high}"
    assert "kafka:a:9092,b:9092" in found["about"] and "mock-<i>node</i>" in found["about"], found["about"]
    assert "sequence" in text(browser, "#verified h2"), text(browser, "#verified")
    equal(browser.run("return document.title"), "✓ ok – warptape", "the title")


def risk(browser, mock):
    """Requests are one line with their answers; long lists keep their length, and errors their words."""
    mock.market.started -= 30
    shown(browser, mock.url)
    rows = browser.run("return [...document.querySelectorAll('#risk tr')].map((row) => row.textContent)")
    for words in [
        "✓ SimulationResult31.4\u202fmsprice 10.4506 · standard error 0.0101",
        "✓ OptionResult31.4\u202fms20 values, the first: price 359.6128, delta 26.18",
        "✕ RiskError31.4\u202fmsINVALID: spot: spot is not above 0",
        "MonteCarlodesk <b>not yet answered",
    ]:
        assert any(words in row for row in rows), f"{words!r} is not among {rows}"
    equal(len(set(rows)), len(rows), "a row for each request")


def unknown(browser, mock):
    """What is not known is called unknown."""
    mock.market.lag_is_known = False
    mock.market.has_verifier = False
    shown(browser, mock.url)
    equal(text(browser, "#tile-lag data"), "unknown", "the lag")
    equal(browser.run("return document.querySelector('#tile-lag data').value"), "unknown", "the lag's value")
    assert "Not verified here" in text(browser, "#verified"), text(browser, "#verified")
    assert "unknown" in text(browser, "#partitions"), text(browser, "#partitions")


def faults(browser, mock):
    """A lost lane, a lost broker, a difference, and what was left out are said."""
    shown(browser, mock.url)
    mock.market.lost_lane = 1
    browser.until("return document.title === '▲ degraded – warptape'", "the title says degraded")
    until_text(browser, "#state", "lane 1 (cpu:1) is lost")
    until_text(browser, "#lanes li:nth-child(2)", "✕ lost")
    until_text(browser, "#spoken", "degraded")
    mock.market.broker_lost = True
    browser.until("return document.title === '✕ down – warptape'", "the title says down")
    until_text(browser, "#stores", "broker lost 12 s ago")
    assert "bad" in browser.run("return document.querySelector('#state').className"), "the state is not marked as bad"
    assert browser.run("return document.querySelector('#skipped').hidden"), "nothing was skipped yet"
    mock.market.skipped, mock.market.left_out, mock.market.difference = (
        1234,
        56,
        "output 7 of partition 1 is <b>other</b>",
    )
    until_text(browser, "#skipped", "1\u202f234 records")
    until_text(browser, "#choice-note", "56 symbols")
    until_text(browser, "#verified", "output 7 of partition 1 is <b>other</b>")
    equal(said(browser), [], "the console")


def hostile(browser, mock):
    """Names are text: they make no element, run nothing, and turn no other text."""
    mock.market.left_out = 3
    shown(browser, mock.url)
    count = "return document.querySelectorAll('main img, main script, main b b, main iframe, [onerror]').length"
    for name in HOSTILE:
        browser.run(
            "const field = document.getElementById('symbol'); field.value = arguments[0]; field.dispatchEvent(new Event('change'))",
            name,
        )
        browser.until(
            "return !document.querySelector('#readout').textContent.includes('No closed bar')",
            f"candles of {name[:30]!r}",
        )
        equal(browser.run(count), 0, f"elements by {name[:30]!r}")
        equal(browser.alert(), None, "an alert")
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    time.sleep(1)
    equal(browser.run(count), 0, "elements by names")
    found = text(browser, "#lanes") + text(browser, "#signals") + text(browser, "#decisions")
    for name in [
        "<img src=x onerror=alert(1)>",
        "<script>alert(2)</script>",
        "\"'&amp;&<b>",
        "\\u{202e}DNALSI",
        "\\u{0}\\u{7}",
    ]:
        assert name in found, f"{name!r} is not shown as it is"
    assert not any(
        mark in found for mark in "\u202e\u0007\u200b"
    ), "a mark of direction or a control character is in the page"
    browser.open(mock.url + "#why=request=" + quote(HOSTILE[0]))
    until_text(browser, "#why-text", "17.280 ms")
    equal(browser.run("return document.querySelectorAll('#why img').length"), 0, "elements in the explanation")
    until_text(browser, "#why-title", HOSTILE[0])
    equal(browser.alert(), None, "an alert")
    permitted = ("status of 429",)
    equal(said(browser, permitted), [], "the console")
    # An unknown name is answered in words.
    browser.press("Escape")
    browser.run(
        "const field = document.getElementById('symbol'); field.value = 'NONE:SUCH'; field.dispatchEvent(new Event('change'))"
    )
    until_text(browser, "#choice-note", "no candles of this symbol")


def why(browser, mock):
    """Explanations by keyboard, by the address, by a click, and their refusal."""
    shown(browser, mock.url)
    looks.why_by_keyboard(browser)
    browser.open("about:blank")
    browser.open(mock.url + "#why=entry=0:123")
    until_text(browser, "#why-text", "asked as entry 0:123")
    until_text(browser, "#why-text", "\\u{202e}")
    browser.press("Escape")
    browser.run("document.querySelector('#signals tr td:last-child').click()")
    until_text(browser, "#why-text", "asked as signal")
    browser.run("document.getElementById('why-close').click()")
    browser.until("return location.hash === ''", "the address forgets the explanation")
    browser.run("location.hash = '#why=entry=0:0'")
    until_text(browser, "#why-note", "the journal has no entry 0:0 yet")
    assert not browser.run("return document.getElementById('why-again').hidden"), "it cannot be asked again"
    browser.run("location.hash = '#why=%E0%A4%A'")
    browser.until("return !document.getElementById('why').open", "an address of another form opens nothing")


def restart(browser, mock):
    """The page says that nobody answers, keeps what it knows greyed, and goes on with the next process."""
    shown(browser, mock.url)
    browser.run("document.getElementById('tile-ticks').isMine = true")
    port = mock.server_port
    time.sleep(2)
    mock.stop()
    browser.until("return !document.getElementById('broken').hidden", "the trouble is said", 12)
    assert "No answer since" in text(browser, "#broken") and "trying again" in text(browser, "#broken"), text(
        browser, "#broken"
    )
    assert browser.run("return document.querySelector('main').classList.contains('stale')"), "old values are not greyed"
    equal(browser.run("return document.title"), "… no answer – warptape", "the title")
    first = int(text(browser, "#broken").split("since ")[1].split(" ")[0])
    time.sleep(2)
    assert int(text(browser, "#broken").split("since ")[1].split(" ")[0]) > first, "the age stands still"
    other = Mock(port)
    try:
        browser.until("return document.getElementById('broken').hidden", "the next process is found", 8)
        browser.until("return document.title === '✓ ok – warptape'", "the title")
        until_text(browser, "#age", "totals began again at")
        assert not browser.run(
            "return document.querySelector('main').classList.contains('stale')"
        ), "values are still greyed"
        assert browser.run("return document.getElementById('tile-ticks').isMine"), "the page was loaded again"
        equal(said(browser, REFUSED), [], "the console")
    finally:
        other.stop()


def streams(browser, mock):
    """The end of a stream is no trouble."""
    mock.stream_s = 2
    shown(browser, mock.url)
    browser.run("""
      window.troubles = 0;
      const seen = () => { if (!document.getElementById('broken').hidden || document.querySelector('main.stale')) window.troubles += 1; };
      new MutationObserver(seen).observe(document.body, {attributes: true, subtree: true});""")
    time.sleep(7)
    equal(browser.run("return window.troubles"), 0, "troubles said")
    opened = [one for one in looks.requests(browser) if one.endswith("/live")]
    assert 3 <= len(opened) <= 6, f"{len(opened)} streams in 7 s"


def token(browser, mock):
    """The page asks for the token, refuses a wrong one, and keeps it for the tab."""
    mock.market.token = "s3cret"
    browser.open(mock.url)
    browser.until("return document.getElementById('token').open", "the dialog")
    equal(browser.run("return document.activeElement.id"), "token-input", "the focus")
    browser.press("Escape")
    browser.press(*"wrong", "Enter")
    until_text(browser, "#token-note", "refused")
    browser.press(*"s3cret", "Enter")
    browser.until(looks.IS_SHOWN, "the first snapshot")
    assert not browser.run("return document.getElementById('token').open"), "the dialog is still open"
    browser.until("return document.querySelectorAll('#candles canvas').length", "candles")
    shown(browser, mock.url)
    equal(
        browser.run("return [localStorage.length, JSON.stringify(localStorage).includes('s3cret')]")[1],
        False,
        "the token in the local storage",
    )
    equal(said(browser, ("status of 401",)), [], "the console")


def lists(browser, mock):
    """Lists keep focus and selection, can be held, and are filtered."""
    browser.size(1600, 1000)
    shown(browser, mock.url)
    browser.until("return document.querySelectorAll('#decisions li.entry').length > 20", "decisions")
    first = "return document.querySelector('#decisions li.entry a').textContent"
    browser.point(2, 2)
    before = browser.run(first)
    time.sleep(1.2)
    assert browser.run(first) != before, "the list stands still"
    browser.run(
        "document.querySelector('#decisions li.entry:nth-child(3) a').focus(); window.focused = document.activeElement"
    )
    before = browser.run(first)
    time.sleep(1.5)
    equal(browser.run(first), before, "the list with the focus in it")
    assert browser.run(
        "return document.activeElement === window.focused && window.focused.isConnected"
    ), "the focus is lost"
    until_text(browser, "#decisions-note + .newer", "newer")
    browser.run("document.querySelector('#decisions-note + .newer').click()")
    assert browser.run(first) != before, "the newest entries are not shown"
    browser.run("document.getElementById('pause').click()")
    before = browser.run(first)
    time.sleep(1.2)
    equal(browser.run(first), before, "the paused list")
    browser.run("document.getElementById('pause').click()")
    browser.run(
        "const field = document.getElementById('filter'); field.value = 'CPU:3 place'; field.dispatchEvent(new Event('input'))"
    )
    fitting = browser.run("return [...document.querySelectorAll('#decisions li.entry')].map((one) => one.textContent)")
    assert fitting and all("cpu:3" in one and "Place" in one for one in fitting), f"{len(fitting)} entries fit"
    browser.run(
        "const field = document.getElementById('filter'); field.value = 'no such thing'; field.dispatchEvent(new Event('input'))"
    )
    until_text(browser, "section:has(> #decisions) > .none", "Nothing fits")
    browser.run("document.getElementById('alerts-only').click()")
    kinds = browser.run(
        "return [...document.querySelectorAll('#signals td:nth-child(4)')].map((one) => one.textContent)"
    )
    assert kinds and "BAR" not in kinds, f"kinds with alerts only: {set(kinds)}"


def young(browser, mock):
    """A chart without any indicator is drawn at once."""
    choose = "const field = document.getElementById('symbol'); field.value = arguments[0]; field.dispatchEvent(new Event('change'))"
    shown(browser, mock.url)
    browser.run(choose, YOUNG)
    browser.until("return document.querySelectorAll('#indicators label').length === 0", "no indicators")
    shown(browser, mock.url)
    equal(browser.run("return document.getElementById('symbol').value"), YOUNG, "the remembered symbol")
    browser.until("return document.querySelectorAll('#candles canvas').length === 1", "candles")
    browser.run(choose, "SYNTH:AAK")
    browser.until("return document.querySelectorAll('#indicators label').length > 0", "indicators")


def candles(browser, mock):
    """The chart is used by the keyboard; what is chosen is remembered."""
    shown(browser, mock.url)
    browser.until("return document.querySelectorAll('#candles canvas').length === 1", "candles")
    browser.run("document.getElementById('candles').focus()")
    newest = text(browser, "#readout")
    browser.press("Left", "Left", "Left")
    assert text(browser, "#readout") != newest, "the cursor does not move"
    assert "close" in text(browser, "#candle-spoken"), "nothing is said"
    for _ in range(30):
        if browser.run("return !document.querySelector('.tip').hidden"):
            break
        browser.press("Left")
    assert "_" in text(browser, ".tip"), "no alert is said at its candle"
    browser.run("document.activeElement.blur()")
    boxes = "return Object.fromEntries([...document.querySelectorAll('#indicators label')].map((one) => [one.textContent, one.firstChild.checked]))"
    found = browser.run(boxes)
    equal([found["EMA"], found["RSI"], found["<b>further</b>"]], [True, False, False], "indicators")
    browser.run(
        "[...document.querySelectorAll('#indicators label')].filter((one) => /RSI|further|EMA/.test(one.textContent)).forEach((one) => one.click())"
    )
    browser.until("return document.querySelectorAll('#candles canvas').length === 3", "two panes more")
    until_text(browser, "#readout", "rsi")
    browser.run(
        "const field = document.getElementById('symbol'); field.value = 'adm'; field.dispatchEvent(new Event('change'))"
    )
    equal(
        browser.run("return document.getElementById('symbol').value"), "SYNTH:ADM", "the symbol by a part of its name"
    )
    shown(browser, mock.url)
    browser.until("return document.querySelectorAll('#candles canvas').length === 3", "the same panes")
    equal(browser.run("return document.getElementById('symbol').value"), "SYNTH:ADM", "the remembered symbol")
    equal(browser.run(boxes)["EMA"], False, "the remembered indicators")
    browser.run("document.querySelector('#candle-table summary').click()")
    browser.until("return document.querySelectorAll('#candle-table tbody tr').length === 30", "the table")
    row = browser.run(
        "return [...document.querySelectorAll('#candle-table tbody tr:first-child td')].map((one) => one.textContent)"
    )
    asked = f"{mock.url}candles.json?symbol=SYNTH:ADM&bar={browser.run('return document.getElementById(`bar`).value')}"
    made = json.load(urllib.request.urlopen(asked))["candles"]
    assert row[4] in [one["close"] for one in made], f"the close {row[4]} is not among the candles"


def colours(browser, mock):
    """The reader's choice of colours wins over the system's, and stays."""
    browser.media(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    shown(browser, mock.url)
    paper = "return getComputedStyle(document.body).backgroundColor"
    dark = browser.run(paper)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(paper) != dark, "light was chosen"
    shown(browser, mock.url)
    assert browser.run(paper) != dark, "the choice is forgotten"
    equal(
        browser.run("return getComputedStyle(document.querySelector('main .verdicts')).transitionDuration"),
        "0s",
        "motion, although less is wanted",
    )


CHECKS = [
    weight,
    load,
    values,
    risk,
    unknown,
    faults,
    hostile,
    why,
    restart,
    streams,
    token,
    lists,
    young,
    candles,
    colours,
    names,
    still,
    look,
]
