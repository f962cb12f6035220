"""Ticks are published from rows and tables, and read back as they were."""

import dataclasses
import datetime as dt
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars as pl
from market import command

import warptape


@dataclasses.dataclass
class Trade:
    symbol: str
    event_time: dt.datetime
    price: Decimal
    size: float


TIME = dt.datetime(2026, 11, 24, 9, 30, tzinfo=dt.timezone.utc)
TIME_NS = 1_795_512_600_000_000_000


def utc(times: Any) -> pl.Series:
    return pl.Series(times).dt.replace_time_zone("UTC")


class Publish(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.log = warptape.Log(self.folder / "new.db")

    def ticks(self, log: warptape.Log) -> list[dict[str, Any]]:
        names = ["symbol", "kind", "event_time_ns", "side", "trade_id", "price", "size", "bid_price", "bid_size"]
        frame = log.ticks().to_polars().select(names).with_columns(pl.col("event_time_ns").cast(pl.Int64))
        return sorted(frame.to_dicts(), key=lambda row: row["event_time_ns"])

    def test_rows_are_mappings_or_objects(self) -> None:
        ticks = [
            {"symbol": "A:X", "event_time_ns": TIME_NS, "price": "100.25", "size": 3, "side": "BUY", "trade_id": 7},
            Trade("A:X", TIME + dt.timedelta(seconds=1), Decimal("1E+2"), 1e-7),
            {"symbol": "B:Y", "event_time_ns": TIME_NS + 2_000_000_001, "bid_price": 0.1, "bid_size": 2.5},
        ]
        self.assertEqual(self.log.publish(iter(ticks)).ticks, 3)
        first, second, third = self.ticks(self.log)
        self.assertEqual((first["price"], first["size"], first["side"], first["trade_id"]), (Decimal("100.25"), 3, "BUY", 7))
        self.assertEqual((second["event_time_ns"], second["price"]), (TIME_NS + 1_000_000_000, 100))
        self.assertEqual(second["size"], Decimal("0.0000001"))
        self.assertEqual((third["kind"], third["bid_price"], third["price"]), ("QUOTE", Decimal("0.1"), None))
        self.assertEqual(third["event_time_ns"], TIME_NS + 2_000_000_001)
        # The publisher goes on.
        self.assertEqual(self.log.publish(ticks[:1]), warptape.Published(1, 1))
        self.assertEqual(len(self.ticks(self.log)), 4)

    def test_tables_of_any_library_are_taken(self) -> None:
        count = 70_000
        frame = pl.DataFrame(
            {
                "symbol": pl.Series(["A:X", "B:Y"] * (count // 2), dtype=pl.Categorical),
                "event_time": utc(np.datetime64(TIME_NS, "ns") + np.arange(count).astype("timedelta64[ms]")),
                "price": np.arange(1, count + 1) / 100,
                "size": np.arange(count, dtype="int32"),
            }
        )
        self.assertEqual(self.log.publish(frame).ticks, count)
        found = self.log.ticks().to_polars().sort("event_time_ns")
        self.assertEqual(found["price"].cast(pl.Float64).to_list(), frame["price"].to_list())
        self.assertEqual(found["symbol"].cast(pl.String).to_list(), frame["symbol"].cast(pl.String).to_list())
        # A log's own table, and pandas'.
        for name, table in [("copy.db", self.log.ticks()), ("pandas.db", self.log.ticks().to_pandas())]:
            copy = warptape.Log(self.folder / name)
            self.assertEqual(copy.publish(table).ticks, count)
            self.assertEqual(self.ticks(copy), self.ticks(self.log))
        self.assertIsInstance(table, pandas.DataFrame)

    def test_times_of_tables_have_a_zone(self) -> None:
        tick = {"symbol": ["A:X"], "price": [1.0]}
        civil = dt.datetime(2026, 11, 24, 4, 30)
        for column, unit in [("event_time", "ms"), ("event_time_ns", "ns"), ("receive_time", "us")]:
            times = pl.Series([civil]).cast(pl.Datetime(unit))
            frame = pl.DataFrame({**tick, "event_time_ns": utc([TIME.replace(tzinfo=None)]), column: times})
            with self.assertRaisesRegex(warptape.Error, f"column {column} has times without a zone; give it one"):
                self.log.publish(frame if column != "event_time" else frame.drop("event_time_ns"))
        with self.assertRaisesRegex(warptape.Error, "column event_time has times without a zone"):
            self.log.publish(pandas.DataFrame({**tick, "event_time": [civil]}))
        with self.assertRaisesRegex(ValueError, "has no time zone"):
            self.log.publish([{"symbol": "A:X", "price": 1, "event_time": civil}])
        # The same moment in another zone.
        new_york = pl.Series([civil]).dt.replace_time_zone("America/New_York")
        self.assertEqual(self.log.publish(pl.DataFrame({**tick, "event_time": new_york})).ticks, 1)
        self.assertEqual([row["event_time_ns"] for row in self.ticks(self.log)], [TIME_NS])

    def test_a_wrong_tick_is_named(self) -> None:
        good = {"symbol": "A:X", "event_time_ns": TIME_NS, "price": 1}
        for wrong, words in [
            ({**good, "price": "1,5"}, r'tick of "A:X" at \d+ ns: price is "1,5"; give'),
            ({**good, "price": float("nan")}, r'price is "NaN"'),
            ({**good, "side": "B"}, r'side is "B"; give BUY, SELL or NONE'),
            ({**good, "size": -1}, r'size is "-1"'),
            ({**good, "event_time_ns": -5}, r"stopped after 0 ticks were published: tick of A:X at -5 ns"),
        ]:
            with self.assertRaisesRegex(warptape.Error, words):
                self.log.publish([good, wrong])
        with self.assertRaisesRegex(ValueError, "needs symbol and event_time_ns"):
            self.log.publish([{"symbol": "A:X"}])
        with self.assertRaisesRegex(warptape.Error, "no column symbol"):
            self.log.publish(pl.DataFrame({"price": [1.0]}))
        with self.assertRaisesRegex(warptape.Error, "column price has the type Boolean; give text, numbers or decimals"):
            self.log.publish(pl.DataFrame({"symbol": ["A:X"], "event_time_ns": [1], "price": [True]}))
        # Nothing of these is in the log, and the next publisher works.
        self.assertEqual(self.log.publish([good]).ticks, 1)
        self.assertEqual(len(self.ticks(self.log)), 1)

    def test_what_is_published_is_processed(self) -> None:
        ticks = [{"symbol": "A:X", "event_time_ns": TIME_NS + i * 10**9, "price": 100 + i, "size": 1} for i in range(600)]
        self.log.publish(ticks)
        command("run", "--until-caught-up", "--close", "--log", self.log.url)
        bars = self.log.bars(symbol="A:X").to_polars().filter(pl.col("bar_spec") == "5m")
        self.assertEqual(bars["trades"].sum(), 600)
        self.assertTrue(self.log.verify().identical)
