"""Tables equal `tail` field by field, in every library."""

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import pandas
import polars as pl
import pyarrow as pa
from market import Recorded, tail

import warptape

E9 = Decimal(10) ** -9
INDICATORS = ["sma", "ema_fast", "ema_slow", "bollinger_upper", "rsi", "macd_histogram", "atr", "vwap", "zscore"]


def rows(table: warptape.Table) -> list[dict[str, Any]]:
    """Returns the rows with times as nanoseconds, which Python's own times do not hold."""
    read = table.to_arrow()
    for at, field in enumerate(read.schema):
        if pa.types.is_timestamp(field.type):
            read = read.set_column(at, field.name, read.column(at).cast(pa.int64()))
    return read.to_pylist()


def maybe_e9(value: Any) -> Any:
    return None if value is None else value * E9


class Tables(Recorded):
    def setUp(self) -> None:
        self.log = warptape.Log(self.url)

    def test_signals_are_those_of_tail(self) -> None:
        expected = tail("signals", "--log", self.url)
        found = rows(self.log.signals())
        self.assertEqual(len(found), len(expected))
        self.assertGreater(len(found), 100)
        bars = 0
        for row in found:
            record = expected[row["partition"], row["offset"], 0]
            for name in ["symbol", "kind", "bar_spec", "bar_start_ns", "bar_end_ns", "source_offset", "source_index"]:
                self.assertEqual(row[name], record[name], name)
            self.assertEqual((row["value"], row["threshold"]), (record["value"], record["threshold"]))
            bars += row["kind"] == "BAR"
            self.assertIsNone(record["exact"], "prices of the market have at most nine decimals")
            for name in ["open", "high", "low", "close", "volume"]:
                self.assertEqual(row[name], maybe_e9(record[f"{name}_e9"]), name)
            for name in ["trades", "partial", *INDICATORS]:
                self.assertEqual(row[name], record[name], name)
        self.assertGreater(bars, 100)

    def test_ticks_are_those_of_tail(self) -> None:
        # The end of each partition has a record of `run --close`, which is no tick.
        every = tail("ticks", "--log", self.url)
        expected = {place: record for place, record in every.items() if "symbol" in record}
        found = rows(self.log.ticks())
        self.assertEqual(len(found), len(expected))
        self.assertEqual(len(found), 20_000)
        for row in found:
            record = expected[row["partition"], row["offset"], row["index"]]
            for name in ["symbol", "kind", "event_time_ns", "side"]:
                self.assertEqual(row[name], record[name], name)
            self.assertEqual(row["receive_time_ns"] or 0, record["receive_time_ns"])
            self.assertEqual(row["trade_id"] or 0, record["trade_id"])
            # Texts of tail are null as well where a trade has no book, and a quote no price.
            for name in ["price", "size", "bid_price", "bid_size", "ask_price", "ask_size"]:
                text = record[name]
                self.assertEqual(row[name], None if text is None else Decimal(text), name)

    def test_entries_and_late_ticks_are_those_of_tail(self) -> None:
        entries = tail("journal", "--log", self.url)
        found = rows(self.log.journal())
        self.assertEqual(len(found), len(entries))
        for row in found:
            record = entries[row["journal_partition"], row["offset"], 0]
            for name in ["sequence", "at_ns", "state_hash", "hash"]:
                self.assertEqual(row[name], record[name], name)
            self.assertEqual(row["decisions"], len(record["decisions"]))
        late = tail("late", "--log", self.url)
        found = rows(self.log.table("late"))
        self.assertEqual(len(found), len(late))
        self.assertGreater(len(found), 0)
        for row in found:
            record = late[row["partition"], row["offset"], 0]
            for name in ["symbol", "event_time_ns", "watermark_ns", "lateness_ns"]:
                self.assertEqual(row[name], record[name], name)

    def test_types_are_times_decimals_and_words(self) -> None:
        schema = pa.schema(self.log.signals())
        self.assertEqual(schema, self.log.signals().to_arrow().schema)
        self.assertEqual(schema.field("bar_end_ns").type, pa.timestamp("ns", "UTC"))
        self.assertTrue(pa.types.is_decimal(schema.field("close").type))
        self.assertTrue(pa.types.is_dictionary(schema.field("symbol").type))
        self.assertEqual(list(self.log.signals().columns), schema.names)

    def test_every_library_has_the_same_rows(self) -> None:
        table = self.log.bars()
        arrow = table.to_arrow().select(["partition", "offset", "bar_end_ns", "close", "rsi"])
        frame = pl.DataFrame(table).select(arrow.column_names)
        self.assertTrue(frame.equals(pl.DataFrame(arrow)))
        self.assertIsInstance(frame["bar_end_ns"][0], dt.datetime)
        read = table.to_pandas()
        self.assertIsInstance(read, pandas.DataFrame)
        self.assertEqual(read["close"].tolist(), arrow["close"].to_pylist())
        bars = table.reader()  # noqa: F841
        found = duckdb.sql("SELECT count(*), sum(close) FROM bars").fetchall()[0]
        self.assertEqual(found[0], arrow.num_rows)
        self.assertEqual(Decimal(str(found[1])), sum(arrow["close"].to_pylist()))

    def test_rows_are_those_asked_for(self) -> None:
        every = self.log.signals().to_polars()
        symbol, kind = every["symbol"][0], "BAR"
        middle = every["bar_end_ns"].sort()[len(every) // 2]
        found = self.log.signals(symbol=symbol, kind=kind, since=middle.isoformat()).to_polars()
        expected = every.filter(
            (pl.col("symbol") == symbol) & (pl.col("kind") == kind) & (pl.col("bar_end_ns") >= middle)
        )
        self.assertTrue(found.equals(expected))
        self.assertTrue(0 < len(found) < len(every))
        before = self.log.signals(until=middle).to_polars()
        self.assertEqual(len(before), len(every.filter(pl.col("bar_end_ns") < middle)))
        self.assertEqual(len(self.log.ticks(symbol="NO:SUCH").to_polars()), 0)
        with self.assertRaisesRegex(warptape.Error, "no kind of signal \"BARS\"; the kinds are BAR, EMA_CROSS_UP"):
            self.log.signals(kind="BARS")
        with self.assertRaisesRegex(warptape.Error, "no table \"prices\"; the tables are signals, ticks"):
            self.log.table("prices")
        with self.assertRaisesRegex(ValueError, "has no time zone"):
            self.log.signals(since=dt.datetime(2026, 11, 24))

    def test_tables_of_the_journal_account_for_all_ticks(self) -> None:
        batches = self.log.table("batches").to_polars()
        late = len(self.log.table("late").to_polars())
        # Batches have rows of the engine besides those of ticks.
        self.assertGreaterEqual(batches["rows"].sum(), 20_000 - late)
        commits = self.log.table("commits").to_polars()
        self.assertEqual(commits["signals"].sum(), len(self.log.signals().to_polars()))
        self.assertGreater(len(self.log.table("decisions").to_polars()), len(batches))
        self.assertGreater(len(self.log.table("latencies").to_polars()), 0)

    def test_a_log_that_is_not_there_is_named(self) -> None:
        missing = warptape.Log(self.folder / "missing.db")
        with self.assertRaisesRegex(warptape.Error, "missing.db"):
            missing.signals().to_polars()
        with self.assertRaisesRegex(warptape.Error, "missing.db"):
            missing.follow()
