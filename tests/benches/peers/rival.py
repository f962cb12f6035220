"""A rival in Python: its arguments, its clock and its file of bars.

Each module of `rivals` has `load(path)`, which reads the ticks, and `compute(ticks, task)`, which alone is measured and returns an object for
`rows(result, task)`. The latter returns the lines of the file of bars, as `compare.py` describes it.

    python rival.py MODULE SPECS EMAS CROSSINGS THREADS TICKS BARS
"""

import csv
import importlib
import json
import resource
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

SECOND_NS = 1_000_000_000
FAST, SLOW = 38, 100


class Task(NamedTuple):
    """Lengths of bars, whether averages and crossings are computed, and the number of threads."""

    lengths_s: tuple[int, ...]
    averages: bool
    crossings: bool
    threads: int


class Rival(Protocol):
    def load(self, path: Path) -> Any: ...
    def compute(self, ticks: Any, task: Task) -> Any: ...
    def rows(self, result: Any, task: Task) -> Iterable[tuple[Any, ...]]: ...


class Average:
    """An exponential average whose first value is the mean of its first window."""

    __slots__ = ("window", "values", "value")

    def __init__(self, window: int) -> None:
        self.window, self.values, self.value = window, 0, 0.0

    def push(self, value: float) -> float | None:
        """Takes a value; returns the average, `None` before the window is full."""
        if self.values >= self.window:
            self.value += (value - self.value) * (2 / (self.window + 1))
            return self.value
        self.values += 1
        self.value += value
        if self.values < self.window:
            return None
        self.value /= self.window
        return self.value


class Averages:
    """Both averages of a series, and their crossings."""

    __slots__ = ("fast", "slow", "before")

    def __init__(self) -> None:
        self.fast, self.slow, self.before = Average(FAST), Average(SLOW), None

    def push(self, close_e9: int) -> tuple[float | None, float | None, int]:
        """Takes a close; returns both averages and the crossing."""
        fast, slow = self.fast.push(close_e9 / 1e9), self.slow.push(close_e9 / 1e9)
        found = crossing(self.before, fast, slow)
        self.before = None if fast is None or slow is None else (fast, slow)
        return fast, slow, found


def crossing(before: tuple[float, float] | None, fast: float | None, slow: float | None) -> int:
    """Returns 1 if the fast average rose above the slow one, -1 if it fell below, else 0."""
    if before is None or fast is None or slow is None:
        return 0
    return int(fast > slow and before[0] <= before[1]) - int(fast < slow and before[0] >= before[1])


def processor_s() -> float:
    """Returns the processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(name: str, lengths: str, averages: str, crossings: str, threads: str, ticks: str, bars: str) -> None:
    """Computes a task, writes its bars, and prints the seconds of the computation alone."""
    rival: Rival = importlib.import_module(f"rivals.{name}")
    task = Task(tuple(int(length) for length in lengths.split(",")), averages == "1", crossings == "1", int(threads))
    loaded = rival.load(Path(ticks))
    used_s, start_s = processor_s(), time.perf_counter()
    result = rival.compute(loaded, task)
    times = {"wall_s": time.perf_counter() - start_s, "cpu_s": processor_s() - used_s}
    with Path(bars).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rival.rows(result, task))
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
