"""What any page must be: complete within a second, silent, whole at every width, and usable without a mouse."""

import json
import time
from urllib.parse import urlsplit

WIDTHS = [390, 900, 1600]
SCHEMES = ["light", "dark"]
IS_SHOWN = "return document.querySelector('main') && !document.querySelector('main.waiting') && performance.now()"
LOAD_MS_MAX = 1000
SHIFT_MAX = 0.05

LOOK = """
const problems = [];
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) problems.push(`it is ${root.scrollWidth} wide in a window of ${root.clientWidth}`);
const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const channels = (text) => {
  paint.clearRect(0, 0, 1, 1);
  paint.fillStyle = text;
  paint.fillRect(0, 0, 1, 1);
  return [...paint.getImageData(0, 0, 1, 1).data];
};
const linear = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const paper = (element) => {
  for (; element; element = element.parentElement) {
    const found = channels(getComputedStyle(element).backgroundColor);
    if (found[3] === 255) return found;
  }
  return [255, 255, 255];
};
let texts = 0;
for (const element of document.body.querySelectorAll('*')) {
  const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!isText || !element.checkVisibility() || element.closest('.unseen, .skip, option, datalist')) continue;
  texts += 1;
  const style = getComputedStyle(element);
  const said = `${element.id || element.className || element.tagName} ${JSON.stringify(element.textContent.slice(0, 40))}`;
  if (parseFloat(style.fontSize) < 11) problems.push(`${said} has a size of ${style.fontSize}`);
  const [one, other] = [light(channels(style.color)), light(paper(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  if (contrast < 4.5) problems.push(`${said} has a contrast of ${contrast.toFixed(2)}: ${style.color}`);
  const box = element.getBoundingClientRect();
  const clipped = element.closest('.scroll, .cut, summary, .readout, .about, .candles, .plot, [class=name]');
  if (!clipped && (box.right > root.clientWidth + 1 || box.left < -1)) problems.push(`${said} is cut at ${box.left} to ${box.right}`);
}
for (const canvas of document.querySelectorAll('canvas')) {
  if (canvas.checkVisibility() && (canvas.clientWidth < 20 || canvas.clientHeight < 8)) problems.push(`a canvas is ${canvas.clientWidth} × ${canvas.clientHeight}`);
}
return {problems: [...new Set(problems)], texts, canvases: document.querySelectorAll('canvas').length, paper: getComputedStyle(document.body).backgroundColor};
"""

SHIFTS = """
if (!window.shifts) {
  window.shifts = [];
  new PerformanceObserver((list) => list.getEntries().forEach((one) => {
    const names = one.sources.map(({node}) => node && (node.id || node.className || node.nodeName));
    window.shifts.push([one.value, one.startTime, names]);
  })).observe({type: 'layout-shift', buffered: true});
}
return window.shifts;
"""


def equal(found, expected, about):
    assert found == expected, f"{about}: {found!r}, not {expected!r}"


def shown(browser, url):
    """Opens the page, waits for its first snapshot, and returns the time of both in ms."""
    browser.open(url)
    return browser.until(IS_SHOWN, "the first snapshot", 20)


def said(browser, permitted=()):
    """What the console said, but what is permitted."""
    messages = [entry["message"] for entry in browser.log("browser")]
    return [one for one in messages if not any(word in one for word in permitted)]


def requests(browser):
    """Every address that the page asked for."""
    entries = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    return [one["params"]["request"]["url"] for one in entries if one["method"] == "Network.requestWillBeSent"]


def foreign(browser, url):
    own = urlsplit(url).netloc
    return [one for one in requests(browser) if not one.startswith("data:") and urlsplit(one).netloc != own]


def loads_fast(browser, url):
    """The better one of three loads counts: the machine may be busy with other things."""
    times = []
    for _ in range(3):
        times.append(shown(browser, url))
        if times[-1] < LOAD_MS_MAX:
            return times[-1]
    raise AssertionError(f"the page took {', '.join(f'{one:.0f}' for one in times)} ms until its first snapshot")


def look(browser, url, pictures=None):
    """The page at every width, light and dark, with everything unfolded. Returns the colours of its paper."""
    problems, papers = [], set()
    for width in WIDTHS:
        browser.size(width)
        for scheme in SCHEMES:
            browser.media(prefers_color_scheme=scheme)
            shown(browser, url)
            browser.until("return document.querySelectorAll('#candles canvas').length", "candles", 20)
            browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            time.sleep(1.2)
            found = browser.run(LOOK)
            papers.add(found["paper"])
            problems += [f"{width} {scheme}: {one}" for one in found["problems"]]
            if found["texts"] < 150 or found["canvases"] < 7:
                problems.append(f"{width} {scheme}: only {found['texts']} texts and {found['canvases']} drawings")
            problems += [f"{width} {scheme}: it asks for {one}" for one in foreign(browser, url)]
            problems += [f"{width} {scheme}: console: {one}" for one in said(browser)]
            if pictures:
                browser.run("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
                time.sleep(0.6)
                browser.picture(pictures / f"page-{width}-{scheme}.png", width)
    assert not problems, "\n  ".join(["", *problems])
    equal(len(papers), 2, "colours of paper, light and dark")


def stands_still(browser, url, seconds=6):
    """Nothing moves by itself once the page is there."""
    browser.size(1600, 2600)
    shown(browser, url)
    browser.until("return document.querySelectorAll('#candles canvas').length", "candles", 20)
    browser.run(SHIFTS)
    time.sleep(1)
    before = len(browser.run(SHIFTS))
    time.sleep(seconds)
    # Lists that fall move within themselves.
    moved = [
        one
        for one in browser.run(SHIFTS)[before:]
        if not all(name in ("entry", "open", "TR", "LI", None) for name in one[2])
    ]
    assert sum(one[0] for one in moved) < SHIFT_MAX, f"the page moves by itself: {moved}"


def has_names(browser):
    """Everything that takes the focus has a name, as screen readers say it."""
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    wanted = {
        "button",
        "link",
        "textbox",
        "searchbox",
        "combobox",
        "checkbox",
        "dialog",
        "region",
        "ComboBoxMenuButton",
    }
    bare = []
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node.get("ignored") or role not in wanted:
            continue
        if not node.get("name", {}).get("value", "").strip():
            bare.append(role)
    assert not bare, f"without a name: {bare}"
    levels = browser.run(
        "return [...document.querySelectorAll('h1, h2, h3')].filter((one) => one.checkVisibility()).map((one) => +one.tagName[1])"
    )
    equal(levels[0], 1, "the first heading")
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:])), f"levels of headings: {levels}"


def why_by_keyboard(browser):
    """The newest decision is explained by the keyboard alone, and the focus comes back."""
    browser.until("return document.querySelector('#decisions a')", "a decision", 20)
    browser.run("document.querySelector('#decisions a').focus()")
    href = browser.run("return document.activeElement.getAttribute('href')")
    browser.press("Enter")
    text = browser.until(
        "return document.querySelector('#why[open]') && document.getElementById('why-text').textContent",
        "an explanation",
        40,
    )
    assert len(text.splitlines()) > 3, f"the explanation is {text!r}"
    equal(browser.run("return location.hash"), href, "the address")
    assert browser.run(
        "return document.querySelector('#why').contains(document.activeElement)"
    ), "the focus is not in the dialog"
    browser.press("Escape")
    browser.until("return !document.querySelector('#why').open", "Escape closes the explanation")
    browser.until("return location.hash === ''", "the address forgets the explanation")
    equal(browser.run("return document.activeElement.getAttribute('href')"), href, "the focus after Escape")
