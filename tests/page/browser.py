"""Chromium, driven through chromedriver's HTTP interface (W3C WebDriver)."""

import base64
import json
import pathlib
import shutil
import subprocess
import time
import urllib.request

ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Left": "\ue012", "Right": "\ue014"}
START_S = 20


class Browser:
    """A browser with one window. `with` ends it."""

    def __init__(self):
        program = shutil.which("chromedriver")
        if program is None:
            raise SystemExit("chromedriver is missing: apt-get install chromium chromium-driver")
        self.driver = subprocess.Popen(
            [program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = next(
            line.rsplit(" ", 1)[1].rstrip(".\n") for line in self.driver.stdout if "successfully on port" in line
        )
        self.base = f"http://127.0.0.1:{port}"
        options = {"args": ARGUMENTS, "binary": shutil.which("chromium")}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs, "unhandledPromptBehavior": "ignore"}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}}, START_S)
        self.session = f"/session/{session['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()

    def call(self, method, path, body=None, timeout_s=60):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.load(response)["value"]

    def post(self, path, **body):
        return self.call("POST", self.session + path, body)

    def open(self, url):
        self.post("/url", url=url)

    def run(self, script, *arguments):
        return self.post("/execute/sync", script=script, args=list(arguments))

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def size(self, width, height=900):
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def media(self, **features):
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=wanted)

    def log(self, kind):
        return self.post("/se/log", type=kind)

    def press(self, *keys):
        actions = []
        for key in keys:
            for kind in ["keyDown", "keyUp"]:
                actions.append({"type": kind, "value": KEYS.get(key, key)})
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def point(self, x, y):
        moves = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def alert(self):
        """The text of an open alert, or None."""
        try:
            return self.call("GET", self.session + "/alert/text")
        except urllib.error.HTTPError:
            return None

    def until(self, script, about, timeout_s=10):
        """Waits until a script returns something true, and returns it."""
        end = time.monotonic() + timeout_s
        while True:
            found = self.run(script)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{about}: not within {timeout_s} s")
            time.sleep(0.05)

    def picture(self, path, width, height=None):
        height = height or self.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        pathlib.Path(path).write_bytes(base64.b64decode(taken["data"]))
