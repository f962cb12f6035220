#!/usr/bin/env python3
"""Writes the fixtures that bars and indicators are compared with, computed without any of the project's code.

Bars are folded from recorded Binance streams in decimal arithmetic; indicators are TA-Lib's on those bars, and where
TA-Lib has none (VWAP, z-score, realised volatility) decimal arithmetic again. The test that reads the fixtures needs
no Python. To make them anew, with the recordings in DIR:

    python3 -m venv venv
    venv/bin/pip install -r tests/scripts/requirements.txt
    venv/bin/python tests/scripts/make_talib_fixtures.py DIR

The same inputs give the same bytes. `--check` compares with the fixtures that are there and writes nothing.
"""

import argparse
import gzip
import heapq
import io
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, getcontext
from itertools import islice
from pathlib import Path

import numpy
import talib

getcontext().prec = 60

# In the order in which they are fed: it breaks ties between equal receive times.
RECORDINGS = [
    ("spot-btcusdt_20240808.jsonl.gz", "BINANCE"),
    ("spot-ethusdt_20240808.jsonl.gz", "BINANCE"),
    ("usdm-btcusdt_20240808.jsonl.gz", "BINANCE-USDM"),
    ("usdm-ethusdt_20240808.jsonl.gz", "BINANCE-USDM"),
]
PARTITIONS = 4
ALLOWED_LATENESS_NS = 2_000_000_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
WINDOW = 20
E9 = Decimal(1_000_000_000)


@dataclass
class Tick:
    symbol: str
    event_time_ns: int | None  # None: a quote before anything in its file carried a time.
    price: Decimal | None  # None: a quote.
    size: Decimal | None


@dataclass
class Bar:
    start_ns: int
    first: tuple  # (event time, arrival)
    last: tuple
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    turnover: Decimal
    trades: int


def partition_of(symbol, partitions):
    """Kafka's default partitioner: murmur2 of the key, sign bit cleared, modulo the number of partitions."""
    data, mask, m = symbol.encode(), 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if tail := data[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions


def ticks_of(path, venue):
    """Trades and book tickers of one recording as (receive time, tick). Spot book tickers carry no time: they take
    the greatest one seen so far in their file, depth updates included."""
    greatest_ms = None
    with gzip.open(path, "rt") as lines:
        for line in lines:
            receive_time_ns, message = line.split(" ", 1)
            message = json.loads(message)
            if "data" not in message:
                continue  # The answer to a request for the whole book.
            data = message["data"]
            times_ms = [data[key] for key in ("E", "T") if key in data]
            greatest_ms = max([*times_ms, greatest_ms or 0]) or None
            symbol = f"{venue}:{data['s']}"
            kind = data.get("e", "bookTicker")
            if kind == "trade":
                tick = Tick(symbol, data["T"] * MILLISECOND_NS, Decimal(data["p"]), Decimal(data["q"]))
            elif kind == "bookTicker":
                time_ms = data.get("T", greatest_ms)
                tick = Tick(symbol, time_ms and time_ms * MILLISECOND_NS, None, None)
            else:
                continue
            yield int(receive_time_ns), tick


def merged(folder):
    """All recordings as one feed, by receive time; ties by file."""
    feeds = [ticks_of(folder / name, venue) for name, venue in RECORDINGS]
    return [tick for _, tick in heapq.merge(*feeds, key=lambda pair: pair[0])]


def accepted_ticks(ticks, partitions):
    """Splits off late ticks: those older than their partition's watermark. Returns accepted ticks, numbers of late
    trades and quotes, and the final watermarks."""
    greatest_ns = defaultdict(int)
    accepted, late = [], {"trades": 0, "quotes": 0}
    for tick in ticks:
        if tick.event_time_ns is None:
            continue
        partition = partition_of(tick.symbol, partitions)
        if tick.event_time_ns < greatest_ns[partition] - ALLOWED_LATENESS_NS:
            late["quotes" if tick.price is None else "trades"] += 1
            continue
        greatest_ns[partition] = max(greatest_ns[partition], tick.event_time_ns)
        accepted.append(tick)
    return accepted, late, {p: ns - ALLOWED_LATENESS_NS for p, ns in greatest_ns.items()}


def closed_bars(ticks, watermarks, interval_ns):
    """Closed bars by symbol, oldest first, and the number of trades in bars that are still open."""
    bars = defaultdict(dict)
    for arrival, tick in enumerate(ticks):
        if tick.price is None:
            continue
        start_ns = tick.event_time_ns // interval_ns * interval_ns
        moment = (tick.event_time_ns, arrival)
        p, q = tick.price, tick.size
        bar = bars[tick.symbol].get(start_ns)
        if bar is None:
            bars[tick.symbol][start_ns] = Bar(start_ns, moment, moment, p, p, p, p, q, p * q, 1)
            continue
        if moment < bar.first:
            bar.first, bar.open = moment, p
        if moment > bar.last:
            bar.last, bar.close = moment, p
        bar.high, bar.low = max(bar.high, p), min(bar.low, p)
        bar.volume += q
        bar.turnover += p * q
        bar.trades += 1
    closed, open_trades = {}, 0
    for symbol in sorted(bars):
        watermark = watermarks[partition_of(symbol, PARTITIONS)]
        ordered = [bars[symbol][start_ns] for start_ns in sorted(bars[symbol])]
        closed[symbol] = [bar for bar in ordered if bar.start_ns + interval_ns <= watermark]
        open_trades += sum(bar.trades for bar in ordered[len(closed[symbol]) :])
    return closed, open_trades


def windows(values, size):
    """(index of the last, window) for each full window."""
    return ((end - 1, values[end - size : end]) for end in range(size, len(values) + 1))


def vwap(bars):
    """Sum of price x size over sum of size, over the trades of the last WINDOW bars."""
    values = [None] * len(bars)
    for at, window in windows(bars, WINDOW):
        values[at] = sum(bar.turnover for bar in window) / sum(bar.volume for bar in window)
    return values


def zscore(bars):
    """(close - mean) / population standard deviation of the last WINDOW closes; 0 where they are all equal."""
    values = [None] * len(bars)
    for at, window in windows([bar.close for bar in bars], WINDOW):
        mean = sum(window) / WINDOW
        deviation = (sum((close - mean) ** 2 for close in window) / WINDOW).sqrt()
        values[at] = (window[-1] - mean) / deviation if deviation else Decimal(0)
    return values


def realised_volatility(bars):
    """Square root of the sum of the last WINDOW squared logarithmic returns (so of WINDOW + 1 closes)."""
    values = [None] * len(bars)
    for at, window in windows([bar.close for bar in bars], WINDOW + 1):
        returns = [(b / a).ln() for a, b in zip(window, islice(window, 1, None))]
        values[at] = sum(r * r for r in returns).sqrt()
    return values


def indicators(bars):
    """Columns by name, one value per bar; None or NaN while an indicator has too few bars."""
    high, low, close = (
        numpy.array([float(getattr(bar, field)) for bar in bars]) for field in ("high", "low", "close")
    )
    upper, middle, lower = talib.BBANDS(close, timeperiod=20, nbdevup=2.0, nbdevdn=2.0)
    macd, macd_signal, macd_histogram = talib.MACD(close, fastperiod=12, slowperiod=26, signalperiod=9)
    return {
        "sma": talib.SMA(close, timeperiod=20),
        "ema_fast": talib.EMA(close, timeperiod=38),
        "ema_slow": talib.EMA(close, timeperiod=100),
        "bollinger_middle": middle,
        "bollinger_upper": upper,
        "bollinger_lower": lower,
        "rsi": talib.RSI(close, timeperiod=14),
        "macd": macd,
        "macd_signal": macd_signal,
        "macd_histogram": macd_histogram,
        "atr": talib.ATR(high, low, close, timeperiod=14),
        "vwap": vwap(bars),
        "momentum": talib.MOM(close, timeperiod=10),
        "roc": talib.ROC(close, timeperiod=10),
        "zscore": zscore(bars),
        "realised_volatility": realised_volatility(bars),
    }


def e9(value):
    scaled = value * E9
    assert scaled == int(scaled), f"{value} has more than nine decimals"
    return int(scaled)


def bars_table(bars_by_symbol):
    yield "symbol,start_ns,open_e9,high_e9,low_e9,close_e9,volume_e9,trades"
    for symbol, bars in bars_by_symbol.items():
        for bar in bars:
            amounts = (e9(v) for v in (bar.open, bar.high, bar.low, bar.close, bar.volume))
            yield ",".join(map(str, (symbol, bar.start_ns, *amounts, bar.trades)))


def indicators_table(bars_by_symbol):
    """Doubles in the shortest form that reads back as the same bits; empty where there is no value."""
    for number, (symbol, bars) in enumerate(bars_by_symbol.items()):
        columns = indicators(bars)
        if number == 0:
            yield ",".join(["symbol", "start_ns", *columns])
        for bar, *values in zip(bars, *columns.values()):
            texts = ["" if v is None or v != v else repr(float(v)) for v in values]
            yield ",".join([symbol, str(bar.start_ns), *texts])


def packed(lines):
    """Deterministic gzip: no name, no time."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=0, compresslevel=9) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return buffer.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", type=Path, metavar="DIR", help="folder of the four recordings")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()

    ticks = merged(arguments.recordings)
    trades = sum(tick.price is not None for tick in ticks)
    print(f"{trades} trades, {len(ticks) - trades} quotes, of which without a time:",
          sum(tick.event_time_ns is None for tick in ticks))
    for partitions in (1, PARTITIONS):
        print(f"late with {partitions} partition(s):", accepted_ticks(ticks, partitions)[1])
    accepted, _, watermarks = accepted_ticks(ticks, PARTITIONS)
    for symbol in sorted({tick.symbol for tick in ticks}):
        partition = partition_of(symbol, PARTITIONS)
        print(f"{symbol}: partition {partition}, final watermark {watermarks[partition]}")

    fixtures = {}
    for name, interval_ns in (("1s", SECOND_NS), ("1m", 60 * SECOND_NS)):
        bars, open_trades = closed_bars(accepted, watermarks, interval_ns)
        counts = {symbol: len(rows) for symbol, rows in bars.items()}
        print(f"{name}: {sum(counts.values())} closed bars {counts}, {open_trades} trades in bars still open")
        fixtures[f"bars_{name}.csv.gz"] = bars_table(bars)
        if name == "1s":
            fixtures["indicators_1s.csv.gz"] = indicators_table(bars)

    folder = Path(__file__).resolve().parent.parent / "fixtures"
    differ = False
    for name, lines in fixtures.items():
        content = packed(lines)
        if not arguments.check:
            (folder / name).write_bytes(content)
            print(f"{name}: {len(content)} bytes")
        elif gzip.decompress((folder / name).read_bytes()) != gzip.decompress(content):
            differ = True
            print(f"{name}: differs")
        else:
            print(f"{name}: the same")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
