"""Times and decimals of callers."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any, Union

Time = Union[int, str, dt.datetime]
"""Nanoseconds since the epoch, ISO 8601 with a zone, or a datetime with a zone; numpy's and pandas' times as well."""

# Python's own times have six digits of a second, and drop the others without a word.
_FRACTION = re.compile(r"(?<=:\d\d)[.,](\d+)", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def time_ns(time: Any) -> int:
    """Returns nanoseconds since the epoch."""
    if isinstance(time, int):
        return time
    if isinstance(time, str):
        fraction = _FRACTION.search(time)
        digits = fraction[1].rstrip("0") if fraction else ""
        if len(digits) > 9:
            raise ValueError(f"{time} has parts of a nanosecond: give nine digits of a second at most")
        whole = dt.datetime.fromisoformat(_FRACTION.sub("", time, count=1).replace("Z", "+00:00"))
        return time_ns(whole) + int(digits.ljust(9, "0"))
    if hasattr(time, "to_datetime64"):  # pandas
        if time.tzinfo is None:
            raise ValueError(f"{time} has no time zone: give one, such as UTC")
        return int(time.to_datetime64().astype("datetime64[ns]").astype("int64"))
    if isinstance(time, dt.datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time} has no time zone: give one, such as datetime.timezone.utc")
        return (time - _EPOCH) // dt.timedelta(microseconds=1) * 1_000
    if hasattr(time, "astype"):  # numpy, which has UTC alone
        return int(time.astype("datetime64[ns]").astype("int64"))
    raise TypeError(f"{time!r} is no time: give nanoseconds since the epoch, ISO 8601 or a datetime")


def maybe_time_ns(time: Any) -> int | None:
    """Returns nanoseconds since the epoch; `None` for `None`."""
    return None if time is None else time_ns(time)


def decimal_text(number: Any) -> str:
    """Returns a number as digits without an exponent; a float as the shortest text that is the same float."""
    if number is None:
        return ""
    if isinstance(number, str):
        return number
    if hasattr(number, "item"):  # numpy
        number = number.item()
    if isinstance(number, float):
        number = Decimal(repr(number))
    return format(number, "f") if isinstance(number, Decimal) else str(number)
