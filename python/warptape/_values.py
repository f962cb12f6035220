"""Times and decimals of callers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Union

Time = Union[int, str, dt.datetime]
"""Nanoseconds since the epoch, ISO 8601 with a zone, or a datetime with a zone; numpy's and pandas' times as well."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def time_ns(time: Any) -> int:
    """Returns nanoseconds since the epoch."""
    if isinstance(time, int):
        return time
    if isinstance(time, str):
        return time_ns(dt.datetime.fromisoformat(time.replace("Z", "+00:00")))
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
