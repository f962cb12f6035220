"""Recorded runs for tests, made by the command of the wheel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

COMMAND = Path(sysconfig.get_path("scripts")) / "warptape"


def command(*arguments: object, status: int = 0, cwd: Path | None = None) -> str:
    """Runs the `warptape` command of the wheel, and returns its standard output."""
    line = [str(COMMAND), *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == status, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def tail(topic: str, *arguments: object) -> dict[tuple[int, int, int], dict[str, Any]]:
    """Returns the lines of `tail -o json` by partition, offset and index."""
    lines = command("tail", topic, "--from-beginning", "--exit-at-end", "-o", "json", *arguments).splitlines()
    records = map(json.loads, lines)
    return {(line["partition"], line["offset"], line.get("index", 0)): line["record"] for line in records}


class Recorded(unittest.TestCase):
    """A log with a run that answered risk requests, and saw late and bad ticks."""

    folder: Path
    url: str

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.url = f"sqlite:{cls.folder / 'market.db'}"
        command("feed", "synth", "--symbols", 20, "--ticks", 20_000, "--log", cls.url)
        command("run", "--until-caught-up", "--close", "--log", cls.url)


class Running:
    """A pipeline that runs on a log."""

    def __init__(self, url: str, *arguments: str):
        self._line = [str(COMMAND), "run", "--log", url, *arguments]

    def __enter__(self) -> Running:
        self._process = subprocess.Popen(self._line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        wait_until_caught(self._process, signal.SIGTERM)
        self._process.terminate()
        assert self._process.wait(timeout=60) == 0, self._process.returncode


def wait_until_caught(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    """Waits until the process catches a signal, which would end it before."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.05)
    raise AssertionError(f"the process does not catch {number.name}")


def given(name: str) -> str:
    """Returns a variable of tests/services; skips the test without it."""
    value = os.environ.get(name)
    if not value:
        raise unittest.SkipTest(f"{name} is not set: run within tests/services run")
    return value
