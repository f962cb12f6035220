"""Checks of the page of a running pipeline."""

import contextlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import looks
from browser import Browser
from looks import equal, said, shown
from mocked import REFUSED, until_text

START_S = 60
# A tile's total, and the metric that is the same number.
TOTALS = {
    "#tile-ticks .sub": "warptape_ticks_total",
    "#tile-signals .sub": "warptape_signals_total",
    "#tile-commits .sub": 'warptape_transactions_total{outcome="committed"}',
    "#tile-decisions data": "warptape_decisions_total",
    "#tile-late data": "warptape_late_ticks_total",
    "#tile-dead data": "warptape_dead_letters_total",
    "#tile-risk data": "warptape_risk_requests_total",
    "#tile-symbols data": "warptape_symbols",
}


def metrics(url):
    """Sums of metrics over their labels, and each one by itself."""
    found = {}
    for line in urllib.request.urlopen(url + "metrics").read().decode().splitlines():
        parts = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line)
        if not parts or line.startswith("#"):
            continue
        name, labels, number = parts[1], parts[2] or "", float(parts[3])
        found[name] = found.get(name, 0) + number
        if labels:
            found[name + labels] = number
    return found


def figures(browser):
    return browser.run(
        "return Object.fromEntries(arguments[0].map((one) => [one, +document.querySelector(one).value]))", list(TOTALS)
    )


def equals_metrics(browser, url, exactly=False):
    """Every total of the page lies between two scrapes around it; in a pipeline that rests it is the same."""
    before = metrics(url)
    time.sleep(2)
    found = figures(browser)
    after = metrics(url)
    for tile, metric in TOTALS.items():
        assert metric in after, f"/metrics has no {metric}"
        low, high = before[metric], after[metric]
        assert low <= found[tile] <= high, f"{tile} is {found[tile]}, and {metric} went from {low} to {high}"
        assert not exactly or low == high, f"{metric} moves from {low} to {high}"
    assert after["warptape_ticks_total"] > 0, "there are no ticks"


def endpoint(browser, url, pictures=None):
    took = looks.loads_fast(browser, url)
    equals_metrics(browser, url)
    looks.why_by_keyboard(browser)
    looks.has_names(browser)
    equal(said(browser), [], "the console")
    looks.look(browser, url, pictures)
    return took


def of_url(url, pictures):
    with Browser() as browser:
        endpoint(browser, url.rstrip("/") + "/", pictures)


@contextlib.contextmanager
def running(arguments, output):
    """A process until the end of the block, which it leaves by itself."""
    with open(output, "w") as file:
        process = subprocess.Popen(arguments, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def url_in(output, process):
    """The endpoint's address, as the process says it."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        found = re.search(r"metrics and health: (http://\S+)", Path(output).read_text())
        if found:
            return found[1] + "/"
        assert process.poll() is None, Path(output).read_text()
        time.sleep(0.1)
    raise AssertionError(f"no endpoint: {Path(output).read_text()}")


def of_binary(binary, pictures):
    """`warptape demo`, then `warptape run` on its log at the same address, under one page."""
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        demo = [binary, "demo", "--data", folder, "--listen", "127.0.0.1:0", "--seconds", "300"]
        with running(demo, f"{folder}/demo.out") as process:
            url = url_in(f"{folder}/demo.out", process)
            took = endpoint(browser, url, pictures)
            print(f"        {took:.0f} ms until the first snapshot", flush=True)
            browser.size(1280)
            shown(browser, url)
            browser.run("document.getElementById('tile-ticks').isMine = true")
            said(browser)
        browser.until("return !document.getElementById('broken').hidden", "the trouble is said", 15)
        address = url.removeprefix("http://").rstrip("/")
        again = [binary, "run", "--log", f"sqlite:{folder}/demo.db", "--listen", address]
        with running(again, f"{folder}/run.out") as process:
            url_in(f"{folder}/run.out", process)
            browser.until("return document.getElementById('broken').hidden", "the next process is found", 30)
            until_text(browser, "#age", "totals began again at", 30)
            browser.until(
                "return document.querySelector('#state h2').textContent.includes('caught up')", "it is caught up", 60
            )
            equal(
                browser.run("return document.getElementById('tile-ticks').isMine"),
                True,
                "the page was not loaded again",
            )
            time.sleep(2)
            found = figures(browser)
            expected = metrics(url)
            for tile, metric in TOTALS.items():
                equal(found[tile], expected.get(metric, 0), f"{tile} and {metric}")
            equal(said(browser, REFUSED), [], "the console")
