"""The ticks of the comparison: one synthetic market, made once, and the same for all sides.

`market` is the market as `warptape feed synth` makes it, less the late ticks. `stretched` has its trades with times further apart, so that the
windows of five minutes of DEBS 2022 are many. Rivals get the ticks in the order of event time, as Parquet and as a flat file.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import polars as pl

STRETCH = 200
SEED = 1
TICK_COLUMNS = ("partition", "offset", "index", "event_time_ns", "symbol", "kind", "price_e9", "size_e9")
MAP = "symbol=symbol,time=time:ns,price=price:e9,size=size:e9"


class Market(NamedTuple):
    """A log that holds the ticks and was never run on, the files of its ticks for rivals, and their counts."""

    log: Path
    parquet: Path
    flat: Path
    symbols: list[str]
    ticks: int
    trades: int
    late: int


def environment() -> dict[str, str]:
    """Returns the environment of Warptape's commands, without settings of their user."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WARPTAPE_")}


def warptape(binary: Path, *arguments: str) -> str:
    """Runs a command of Warptape; returns its output."""
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, env=environment())
    if done.returncode != 0:
        raise RuntimeError(f"warptape {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def copy_of(log: Path, target: Path) -> Path:
    """Copies a log that no process has open, over an earlier copy."""
    rest = log.with_name(log.name + "-wal")
    if rest.exists() and rest.stat().st_size:
        raise RuntimeError(f"{rest.name} still has records of {log.name}")
    segments, copied = (path.with_name(path.name + "-segments") for path in (log, target))
    shutil.rmtree(copied, ignore_errors=True)
    for path in (target, *target.parent.glob(target.name + "-*")):
        path.unlink(missing_ok=True)
    shutil.copyfile(log, target)
    if segments.exists():
        shutil.copytree(segments, copied)
    return target


def tail(binary: Path, log: Path, target: Path, topic: str, columns: tuple[str, ...], *options: str) -> Path:
    """Writes a topic's records as CSV to the target, and returns it."""
    command = [str(binary), "tail", topic, "--from-beginning", "--exit-at-end", "-o", "csv", "--columns", ",".join(columns), *options]
    with target.open("wb") as file:
        done = subprocess.run([*command, "--log", f"sqlite:{log}"], stdout=file, stderr=subprocess.PIPE, text=True, env=environment())
    if done.returncode != 0:
        raise RuntimeError(f"warptape tail {topic}: {done.stderr.strip()}")
    return target


def late_positions(binary: Path, log: Path, folder: Path) -> pl.DataFrame:
    """Runs on a copy of the log; returns the partition, offset and index of each late tick."""
    copy = copy_of(log, folder / "late.db")
    warptape(binary, "run", "--until-caught-up", "--log", f"sqlite:{copy}")
    dead = warptape(binary, "tail", "dead-letter", "--from-beginning", "--exit-at-end", "-o", "json", "--log", f"sqlite:{copy}")
    if dead.strip():
        raise RuntimeError(f"the market has dead letters: {json.loads(dead.splitlines()[0])}")
    path = tail(binary, copy, folder / "late.csv", "late", ("source",))
    rows = [line.split(":")[1:] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    numbers = [[int(row[column]) for row in rows] for column in range(3)] if rows else [[], [], []]
    return pl.DataFrame(dict(zip(TICK_COLUMNS[:3], numbers)), schema=dict.fromkeys(TICK_COLUMNS[:3], pl.Int64))


def read_ticks(binary: Path, log: Path, folder: Path) -> pl.DataFrame:
    """Returns the ticks of a log in the order of event time, those of the same time in the order of arrival."""
    path = tail(binary, log, folder / "ticks.csv", "ticks", TICK_COLUMNS)
    whole = ("partition", "offset", "index", "event_time_ns", "price_e9", "size_e9")
    ticks = pl.read_csv(path, schema_overrides=dict.fromkeys(whole, pl.Int64))
    path.unlink()
    return ticks.sort("event_time_ns", "partition", "offset", "index")


def write_files(ticks: pl.DataFrame, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes the columns symbol, time_ns, is_trade, price and size as Parquet, and as records of 32 bytes for programs without its reader."""
    parquet, flat = folder / f"{name}.parquet", folder / f"{name}.bin"
    ticks.write_parquet(parquet)
    records = ticks.select("time_ns", "symbol", pl.col("is_trade").cast(pl.UInt32), "price", "size")
    layout = [("time_ns", "<i8"), ("symbol", "<u4"), ("is_trade", "<u4"), ("price", "<i8"), ("size", "<i8")]
    records.to_numpy(structured=True).astype(layout).tofile(flat)
    return parquet, flat


def make(binary: Path, folder: Path, ticks: int, symbols: int) -> dict[str, Market]:
    """Makes both markets in the folder."""
    log = folder / "market.db"
    warptape(binary, "feed", "synth", "--ticks", str(ticks), "--symbols", str(symbols), "--seed", str(SEED), "--log", f"sqlite:{log}")
    late = late_positions(binary, log, folder)
    rows = read_ticks(binary, log, folder).join(late, on=list(TICK_COLUMNS[:3]), how="anti", maintain_order="left")
    names = rows["symbol"].unique().sort().to_list()
    numbers = pl.DataFrame({"symbol": names, "number": pl.Series(range(len(names)), dtype=pl.UInt32)})
    rows = rows.join(numbers, on="symbol", how="left", maintain_order="left").select(
        pl.col("number").alias("symbol"),
        pl.col("event_time_ns").alias("time_ns"),
        (pl.col("kind") == "TRADE").alias("is_trade"),
        pl.col("price_e9").alias("price"),
        pl.col("size_e9").alias("size"),
    )
    trades = int(rows["is_trade"].sum())
    market = Market(log, *write_files(rows, folder, "market"), names, ticks, trades, late.height)
    return {"market": market, "stretched": stretched(binary, folder, rows, market)}


def stretched(binary: Path, folder: Path, rows: pl.DataFrame, market: Market) -> Market:
    """Feeds the trades with times that many times as far from the first one."""
    first_ns = rows["time_ns"].min() // 86_400_000_000_000 * 86_400_000_000_000
    trades = rows.filter("is_trade").with_columns(first_ns + (pl.col("time_ns") - first_ns) * STRETCH)
    log, path = folder / "stretched.db", folder / "stretched.csv"
    named = trades.with_columns(pl.Series(market.symbols).gather(trades["symbol"]).alias("symbol"))
    named.select("symbol", pl.col("time_ns").alias("time"), "price", "size").write_csv(path)
    warptape(binary, "feed", "csv", str(path), "--map", MAP, "--log", f"sqlite:{log}")
    path.unlink()
    late = late_positions(binary, log, folder)
    if late.height:
        raise RuntimeError(f"the stretched market has {late.height} late ticks")
    return Market(log, *write_files(trades, folder, "stretched"), market.symbols, trades.height, trades.height, 0)
