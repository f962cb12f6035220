"""polars: group_by over the trades in memory, and ewm_mean over each symbol's closes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from rival import FAST, SECOND_NS, SLOW, Task


def load(path: Path) -> pl.DataFrame:
    """Reads the ticks into memory."""
    return pl.read_parquet(path)


def bars(ticks: pl.DataFrame, length_s: int) -> pl.LazyFrame:
    """Returns the bars of one length."""
    length_ns = length_s * SECOND_NS
    start = (pl.col("time_ns") // length_ns * length_ns).alias("start_ns")
    price = pl.col("price")
    values = (
        price.first().alias("open"),
        price.max().alias("high"),
        price.min().alias("low"),
        price.last().alias("close"),
        pl.col("size").sum().alias("volume"),
        pl.len().alias("trades"),
    )
    grouped = ticks.lazy().filter("is_trade").group_by("symbol", start).agg(*values)
    return grouped.select("symbol", pl.lit(length_s).alias("length_s"), pl.exclude("symbol"))


def average(window: int) -> pl.Expr:
    """Returns the exponential average of a symbol's closes, whose first value is the mean of the first window."""
    close, number = pl.col("close") / 1e9, pl.int_range(pl.len())
    seed = pl.when(number == window - 1).then(close.slice(0, window).mean())
    seeded = seed.when(number >= window).then(close).otherwise(None)
    return seeded.ewm_mean(span=window, adjust=False, ignore_nulls=True).over("symbol")


def compute(ticks: pl.DataFrame, task: Task) -> list[pl.DataFrame]:
    """Returns a table of bars for each length."""
    frames = [bars(ticks, length_s) for length_s in task.lengths_s]
    if task.averages:
        frames = [frame.sort("symbol", "start_ns").with_columns(average(FAST).alias("fast"), average(SLOW).alias("slow")) for frame in frames]
    if task.crossings:
        fast, slow = pl.col("fast"), pl.col("slow")
        fast_before, slow_before = fast.shift(1).over("symbol"), slow.shift(1).over("symbol")
        up, down = (fast > slow) & (fast_before <= slow_before), (fast < slow) & (fast_before >= slow_before)
        crossing = (up.fill_null(False).cast(pl.Int8) - down.fill_null(False).cast(pl.Int8)).alias("crossing")
        frames = [frame.with_columns(crossing) for frame in frames]
    return pl.collect_all(frames)


def rows(result: list[pl.DataFrame], task: Task) -> Iterable[tuple[Any, ...]]:
    """Returns the lines of all tables."""
    return (row for frame in result for row in frame.iter_rows())
