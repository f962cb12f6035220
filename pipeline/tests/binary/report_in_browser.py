"""Looks at a report in headless Chromium: at two widths, light and dark. Fails with a list of what is wrong.

usage: report_in_browser.py PAGE [FOLDER]    FOLDER gets a picture of each
"""

import base64
import json
import pathlib
import shutil
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

LOOK = """
const problems = [];
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) problems.push(`it is ${root.scrollWidth} wide in a window of ${root.clientWidth}`);
const channels = (text) => text.match(/[0-9.]+/g).map(Number);
const linear = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const paper = (element) => {
  for (; element; element = element.parentElement) {
    const found = channels(getComputedStyle(element).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
let texts = 0;
const sizes = new Set();
for (const element of document.body.querySelectorAll('*')) {
  const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!isText || element.closest('svg') || !element.checkVisibility()) continue;
  texts += 1;
  const style = getComputedStyle(element);
  const said = `${element.className || element.tagName} ${JSON.stringify(element.textContent.slice(0, 40))}`;
  if (parseFloat(style.fontSize) < 11) problems.push(`${said} has a size of ${style.fontSize}`);
  const [one, other] = [light(channels(style.color)), light(paper(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  if (contrast < 4.5) problems.push(`${said} has a contrast of ${contrast.toFixed(2)}: ${style.color} on ${paper(element)}`);
  const box = element.getBoundingClientRect();
  const scrolls = element.closest('.scroll');
  const clipped = getComputedStyle(element).overflow === 'hidden' || element.closest('.name');
  if (!scrolls && !clipped && (box.right > root.clientWidth + 1 || box.left < -1)) problems.push(`${said} is cut at ${box.left} to ${box.right}`);
}
let drawings = 0;
for (const drawing of document.querySelectorAll('svg.chart, svg.strip, svg.key, svg.shades')) {
  if (!drawing.checkVisibility()) continue;
  drawings += 1;
  const box = drawing.getBoundingClientRect();
  const plot = drawing.closest('.plot')?.getBoundingClientRect();
  if (plot && Math.abs(box.height - plot.height) > 1) problems.push(`${drawing.getAttribute('aria-label')} is ${box.height} high in a row of ${plot.height}`);
  if (box.width < 8 || box.height < 1) problems.push(`${drawing.getAttribute('aria-label')} is ${box.width} × ${box.height}`);
}
const tops = [...document.querySelectorAll('.row .plot')].filter((plot) => plot.checkVisibility()).map((plot) => plot.getBoundingClientRect());
for (const side of ['left', 'right']) {
  if (new Set(tops.map((box) => Math.round(box[side]))).size > 1) problems.push(`charts differ in their ${side} edge`);
}
return {problems: [...new Set(problems)], texts, drawings, height: root.scrollHeight, paper: getComputedStyle(document.body).backgroundColor};
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def requests(driver, page):
    """What the page asked for beside itself."""
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if url != page and not url.startswith("data:"):
                asked.append(url)
    return asked


def main(path, folder):
    page = pathlib.Path(path).resolve().as_uri()
    problems, seen = [], {}
    driver = browser()
    try:
        for width in [1280, 390]:
            for scheme in ["light", "dark"]:
                name = f"{width}-{scheme}"
                metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
                driver.get(page)
                found = driver.execute_script(LOOK)
                # What is folded is looked at as well.
                driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                unfolded = driver.execute_script(LOOK)
                driver.execute_script("document.querySelectorAll('details.slow').forEach((one, n) => { one.open = n === 0; })")
                asked = [f"it asks for {url}" for url in requests(driver, page)]
                said = [f"console: {entry['message']}" for entry in driver.get_log("browser")]
                problems += [f"{name}: {one}" for one in found["problems"] + unfolded["problems"] + asked + said]
                seen[name] = {key: unfolded[key] for key in ["texts", "drawings", "height", "paper"]}
                if folder:
                    height = driver.execute_script("return document.documentElement.scrollHeight")
                    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
                    shot = {"captureBeyondViewport": True, "clip": clip}
                    taken = driver.execute_cdp_cmd("Page.captureScreenshot", shot)
                    pathlib.Path(folder, f"report-{name}.png").write_bytes(base64.b64decode(taken["data"]))
    finally:
        driver.quit()
    if len({one["paper"] for one in seen.values()}) != 2:
        problems.append(f"light and dark are alike: {seen}")
    print("\n".join(problems) or json.dumps(seen))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
