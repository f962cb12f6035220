"""NautilusTrader: its backtest engine with a strategy that subscribes to internally aggregated bars of each symbol, on one thread.

A venue without orders takes the trades. Its bars close by timers, so one more trade of an unsubscribed symbol ends the last ones.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import DataEngineConfig, LoggingConfig
from nautilus_trader.indicators import ExponentialMovingAverage
from nautilus_trader.model.currencies import BTC, USD
from nautilus_trader.model.data import Bar, BarType, TradeTick
from nautilus_trader.model.enums import AccountType, AggressorSide, OmsType
from nautilus_trader.model.identifiers import InstrumentId, Symbol, TradeId, Venue
from nautilus_trader.model.instruments import CurrencyPair
from nautilus_trader.model.objects import FIXED_PRECISION, Money, Price, Quantity
from nautilus_trader.trading.strategy import Strategy

from rival import FAST, SECOND_NS, SLOW, Task, crossing

# "SYNTH" is reserved for synthetic instruments.
VENUE = "TAPE"
DIGITS = 9
SCALE = 10 ** (FIXED_PRECISION - DIGITS)
UNITS = {1: "1-SECOND", 60: "1-MINUTE", 300: "5-MINUTE"}


class Average:
    """The engine's exponential average, which begins at its first input: here at the mean of the first window."""

    def __init__(self, window: int) -> None:
        self.window, self.values, self.sum = window, 0, 0.0
        self.indicator = ExponentialMovingAverage(window)

    def push(self, close: float) -> float | None:
        """Takes a close; returns the average, `None` before the window is full."""
        self.values += 1
        if self.values <= self.window:
            self.sum += close
            if self.values < self.window:
                return None
            close = self.sum / self.window
        self.indicator.update_raw(close)
        return self.indicator.value


class Series:
    """Both averages of a symbol."""

    def __init__(self) -> None:
        self.fast, self.slow, self.before = Average(FAST), Average(SLOW), None

    def push(self, close: float) -> tuple[float | None, float | None, int]:
        """Takes a close; returns both averages and the crossing."""
        fast, slow = self.fast.push(close), self.slow.push(close)
        found = crossing(self.before, fast, slow)
        self.before = None if fast is None or slow is None else (fast, slow)
        return fast, slow, found


class Bars(Strategy):
    """Collects the bars of all symbols."""

    def __init__(self, symbols: list[str], task: Task) -> None:
        super().__init__()
        self.types = {BarType.from_str(f"{symbol}.{VENUE}-{UNITS[length_s]}-LAST-INTERNAL"): length_s for symbol in symbols for length_s in task.lengths_s}
        self.series: dict[BarType, Series] = {}
        self.averages = task.averages
        self.found: list[tuple[Bar, tuple[Any, ...]]] = []

    def on_start(self) -> None:
        for bar_type in self.types:
            self.series[bar_type] = Series()
            self.subscribe_bars(bar_type)

    def on_bar(self, bar: Bar) -> None:
        values = self.series[bar.bar_type].push(bar.close.as_double()) if self.averages else ()
        self.found.append((bar, values))


def instrument(symbol: str) -> CurrencyPair:
    """Returns an instrument with prices and sizes of nine digits."""
    return CurrencyPair(
        instrument_id=InstrumentId(Symbol(symbol), Venue(VENUE)),
        raw_symbol=Symbol(symbol),
        base_currency=BTC,
        quote_currency=USD,
        price_precision=DIGITS,
        size_precision=DIGITS,
        price_increment=Price.from_raw(SCALE, DIGITS),
        size_increment=Quantity.from_raw(SCALE, DIGITS),
        ts_event=0,
        ts_init=0,
    )


def load(path: Path) -> tuple[list[str], list[TradeTick]]:
    """Reads the trades into the engine's own objects."""
    trades = pl.read_parquet(path).filter("is_trade")
    symbols = [str(number) for number in range(trades["symbol"].max() + 2)]
    ids = [InstrumentId(Symbol(symbol), Venue(VENUE)) for symbol in symbols]
    last = (len(ids) - 1, trades["time_ns"][-1] + 300 * SECOND_NS, 1, 1)
    columns = [trades[name].to_list() + [value] for name, value in zip(("symbol", "time_ns", "price", "size"), last)]
    nobody, number = AggressorSide.NO_AGGRESSOR, TradeId("1")
    ticks = [
        TradeTick(ids[symbol], Price.from_raw(price * SCALE, DIGITS), Quantity.from_raw(size * SCALE, DIGITS), nobody, number, time_ns, time_ns)
        for symbol, time_ns, price, size in zip(*columns)
    ]
    return symbols, ticks


def compute(loaded: tuple[list[str], list[TradeTick]], task: Task) -> Bars:
    """Runs the engine; returns the strategy with its bars."""
    symbols, ticks = loaded
    # A bar has the time of its close: that of its open is wrong after an interval without trades.
    data = DataEngineConfig(time_bars_build_with_no_updates=False, time_bars_timestamp_on_close=True)
    engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True), data_engine=data, run_analysis=False))
    engine.add_venue(Venue(VENUE), OmsType.NETTING, AccountType.CASH, [Money(1_000_000, USD)])
    for symbol in symbols:
        engine.add_instrument(instrument(symbol))
    engine.add_data(ticks, sort=False)
    strategy = Bars(symbols[:-1], task)
    engine.add_strategy(strategy)
    engine.run()
    return strategy


def rows(strategy: Bars, task: Task) -> Iterable[tuple[Any, ...]]:
    """Returns the lines of all bars."""
    for bar, values in strategy.found:
        averages = values if task.crossings else values[:2]
        prices = (price.raw // SCALE for price in (bar.open, bar.high, bar.low, bar.close))
        symbol, length_s = bar.bar_type.instrument_id.symbol.value, strategy.types[bar.bar_type]
        yield symbol, length_s, bar.ts_event - length_s * SECOND_NS, *prices, bar.volume.raw // SCALE, None, *averages
