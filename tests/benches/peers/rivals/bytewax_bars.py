"""Bytewax: fold_window by event time for each symbol, and a stateful map for the averages, in one worker."""

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import bytewax.operators as op
import polars as pl
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower, fold_window
from bytewax.testing import TestingSink, TestingSource, run_main

from rival import SECOND_NS, Averages, Task

BATCH = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
Tick = tuple[str, datetime, int, int]


def load(path: Path) -> list[Tick]:
    """Reads the trades into tuples. Its clock has microseconds, so a trade keeps those of its time."""
    trades = pl.read_parquet(path).filter("is_trade")
    times = (trades["time_ns"] // 1000).cast(pl.Datetime("us", "UTC"))
    return list(zip(trades["symbol"].cast(pl.String), times, trades["price"], trades["size"]))


def add(bar: list[int], tick: Tick) -> list[int]:
    """Adds a trade to open, high, low, close, volume and trades."""
    _, _, price, size = tick
    if not bar:
        return [price, price, price, price, size, 1]
    bar[1] = max(bar[1], price)
    bar[2] = min(bar[2], price)
    bar[3] = price
    bar[4] += size
    bar[5] += 1
    return bar


def merge(left: list[int], right: list[int]) -> list[int]:
    """Refuses, because tumbling windows do not merge."""
    raise NotImplementedError


def push(averages: Averages | None, window: tuple[int, list[int]]) -> tuple[Averages, tuple[int, list[Any]]]:
    """Adds both averages and the crossing to a bar."""
    averages = averages or Averages()
    number, bar = window
    return averages, (number, [*bar, *averages.push(bar[3])])


def compute(ticks: list[Tick], task: Task) -> dict[int, list[tuple[str, tuple[int, list[Any]]]]]:
    """Returns the windows of each length with the symbol and the number of the window."""
    flow = Dataflow("bars")
    source = op.input("ticks", flow, TestingSource(ticks, batch_size=BATCH))
    keyed = op.key_on("symbols", source, lambda tick: tick[0])
    # The clock stands still: ticks of the past come faster than their times.
    clock = EventClock(lambda tick: tick[1], timedelta(0), now_getter=lambda: EPOCH)
    results = {}
    for length_s in task.lengths_s:
        windower = TumblingWindower(length=timedelta(seconds=length_s), align_to=EPOCH)
        bars = fold_window(f"bars_{length_s}", keyed, clock, windower, list, add, merge).down
        if task.averages:
            bars = op.stateful_map(f"averages_{length_s}", bars, push)
        results[length_s] = []
        op.output(f"out_{length_s}", bars, TestingSink(results[length_s]))
    run_main(flow)
    return results


def rows(result: dict[int, list[tuple[str, tuple[int, list[Any]]]]], task: Task) -> Iterable[tuple[Any, ...]]:
    """Returns the lines of all windows."""
    for length_s, windows in result.items():
        for symbol, (number, values) in windows:
            values = values if task.crossings else values[:8]
            yield symbol, length_s, number * length_s * SECOND_NS, *values
