"""Bars of two sides, compared field by field: whole numbers exactly, averages to 1e-9 of their size.

A file of bars has a line for each bar, in any order: symbol, seconds of its length, start in ns, open, high, low, close, volume, trades, and
for tasks with averages both of them and the crossing. Prices and volumes are whole numbers in units of 1e-9.
"""

import csv
from pathlib import Path
from typing import NamedTuple

KEY_FIELDS = ("symbol", "length_s", "start_ns")
WHOLE_FIELDS = ("open", "high", "low", "close", "volume", "trades")
AVERAGE_FIELDS = ("ema_fast", "ema_slow")
CROSSING_FIELD = "crossing"
RELATIVE_MAX = 1e-9

Key = tuple[int, int, int]
Value = int | float | None
Bars = dict[Key, tuple[Value, ...]]


class Difference(NamedTuple):
    """The first field in which two sides differ; a side without the bar has `None` for both texts."""

    symbol: str
    bar: str
    field: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"symbol {self.symbol}, bar {self.bar}, field {self.field}: Warptape has {self.ours}, the rival {self.theirs}"


def fields_of(averages: bool, crossings: bool) -> tuple[str, ...]:
    """Returns the names of a bar's values in the order of a file."""
    return WHOLE_FIELDS + AVERAGE_FIELDS * averages + (CROSSING_FIELD,) * crossings


def value_of(field: str, text: str) -> Value:
    """Returns a field's number; `None` if it is empty."""
    if not text:
        return None
    return float(text) if field in AVERAGE_FIELDS else int(text)


def read_bars(path: Path, fields: tuple[str, ...]) -> Bars:
    """Reads a file of bars; a bar that occurs twice is an error."""
    bars: Bars = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file):
            if len(line) != len(KEY_FIELDS) + len(fields):
                raise ValueError(f"{path.name}: a line has {len(line)} fields instead of {len(KEY_FIELDS) + len(fields)}")
            key = (int(line[0]), int(line[1]), int(line[2]))
            if key in bars:
                raise ValueError(f"{path.name}: bar {key} occurs twice")
            bars[key] = tuple(value_of(field, text) for field, text in zip(fields, line[len(KEY_FIELDS) :]))
    return bars


def is_equal(field: str, ours: Value, theirs: Value) -> bool:
    """Returns whether two values of a field count as the same."""
    if field not in AVERAGE_FIELDS or ours is None or theirs is None:
        return ours == theirs
    return abs(ours - theirs) <= RELATIVE_MAX * max(abs(ours), abs(theirs))


def difference(ours: Bars, theirs: Bars, fields: tuple[str, ...], symbols: list[str], unknown: tuple[str, ...] = ()) -> Difference | None:
    """Returns the first difference by symbol and time; `None` if both sides have the same bars. The rival lacks the unknown fields."""
    for key in sorted(ours.keys() | theirs.keys()):
        symbol, length_s, start_ns = key
        place = (symbols[symbol] if symbol < len(symbols) else f"number {symbol}", f"{length_s}s from {start_ns} ns")
        mine, other = ours.get(key), theirs.get(key)
        if mine is None or other is None:
            texts = ("no such bar", "one") if mine is None else ("one", "no such bar")
            return Difference(*place, "all", *texts)
        for field, value, rival in zip(fields, mine, other):
            if field not in unknown and not is_equal(field, value, rival):
                return Difference(*place, field, str(value), str(rival))
    return None


def missed_plants(bars: Bars, fields: tuple[str, ...]) -> list[str]:
    """Plants a difference into each field, and removes and adds a bar; returns the plants that `difference` misses."""
    missed = []
    symbols = [str(number) for number in range(1 + max(key[0] for key in bars))]
    for index, field in enumerate(fields):
        filled = (key for key, values in bars.items() if values[index] not in (None, 0) or field == CROSSING_FIELD)
        key = next(filled, None)
        if key is None:
            continue
        values = list(bars[key])
        values[index] = values[index] * (1 + 1e-6) if field in AVERAGE_FIELDS else values[index] + 1
        found = difference(bars, {**bars, key: tuple(values)}, fields, symbols)
        if found is None or found.field != field or found.symbol != str(key[0]):
            missed.append(f"a wrong {field}")
    key = next(iter(bars))
    without = {other: values for other, values in bars.items() if other != key}
    if difference(bars, without, fields, symbols) is None:
        missed.append("a missing bar")
    if difference(without, bars, fields, symbols) is None:
        missed.append("an additional bar")
    return missed
