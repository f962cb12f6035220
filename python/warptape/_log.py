"""A log and its tables."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._answers import Published, Record, Verification, WhatIf, Why
from ._values import Time, decimal_text, maybe_time_ns, time_ns
from .risk import RiskResult

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_ROWS = 4_096
"""Ticks that are handed over together."""


class Table:
    """Rows of a log as an Arrow stream: polars, pandas, DuckDB and pyarrow take it without a copy.

    Each use reads the log anew, up to its present end, in batches of bounded size.
    """

    def __init__(self, name: str, native: _native.NativeTable):
        self._name = name
        self._native = native

    @property
    def columns(self) -> dict[str, str]:
        """The columns in order, each with its meaning."""
        return dict(self._native.columns)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """Reads all rows."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """Reads all rows."""
        import pyarrow

        return pyarrow.table(self)

    def reader(self) -> pyarrow.RecordBatchReader:
        """Reads batch by batch. DuckDB takes it: `duckdb.from_arrow(log.bars().reader())`."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Reads all rows, in columns of Arrow's types: others would round decimals and times."""
        import pandas

        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def __repr__(self) -> str:
        return f"<warptape.Table {self._name}: {', '.join(self.columns)}>"


class Log:
    """A log by its URL: `sqlite:PATH`, the PATH of its file, or `kafka:HOST:PORT`.

    The configuration (a TOML file, and the environment's `WARPTAPE__SECTION__KEY`) has the names of topics, and how to
    reach a cluster. Without a URL its `log.url` is used.
    """

    def __init__(self, url: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None):
        self._native = _native.NativeLog(
            None if url is None else os.fspath(url), None if config is None else os.fspath(config)
        )
        self._publisher: str | None = None

    @property
    def url(self) -> str:
        """URL of the log."""
        return self._native.url

    def __repr__(self) -> str:
        return f"warptape.Log({self.url!r})"

    # Tables -----------------------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        *,
        symbol: str | None = None,
        kind: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Table:
        """Returns a table by its name: `signals`, `ticks`, `late`, `dead_letters`, `journal`, `risk_results`, or one of
        those that tell of the journal: `decisions`, `batches`, `tasks`, `commits` and `latencies`.

        Rows have this symbol and kind, and event times from `since` to before `until`: of a signal, the end of its bar.
        """
        native = self._native.table(name, symbol, kind, maybe_time_ns(since), maybe_time_ns(until))
        return Table(name, native)

    def ticks(self, *, symbol: str | None = None, since: Time | None = None, until: Time | None = None) -> Table:
        """Returns the valid ticks, late ones included."""
        return self.table("ticks", symbol=symbol, since=since, until=until)

    def signals(
        self,
        *,
        symbol: str | None = None,
        kind: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Table:
        """Returns the signals, bars among them."""
        return self.table("signals", symbol=symbol, kind=kind, since=since, until=until)

    def bars(self, *, symbol: str | None = None, since: Time | None = None, until: Time | None = None) -> Table:
        """Returns the bars with their indicators."""
        return self.signals(symbol=symbol, kind="BAR", since=since, until=until)

    def journal(self) -> Table:
        """Returns the entries of the journals."""
        return self.table("journal")

    def risk_results(self) -> Table:
        """Returns the answers to risk requests."""
        return self.table("risk_results")

    # Records ----------------------------------------------------------------------------------------------------------

    def records(self, topic: str = "signals", *, symbol: str | None = None) -> Iterator[Record]:
        """Iterates over the records of a topic, from its beginning to its present end."""
        return self._records(topic, symbol, True, True)

    def follow(
        self, topic: str = "signals", *, symbol: str | None = None, from_beginning: bool = False
    ) -> Iterator[Record]:
        """Iterates over the records of a topic as they come, without an end; Ctrl-C raises `KeyboardInterrupt`.

        Records after this call are told, or all of them.
        """
        return self._records(topic, symbol, from_beginning, False)

    def _records(self, topic: str, symbol: str | None, from_beginning: bool, exit_at_end: bool) -> Iterator[Record]:
        lines = self._native.records(topic, symbol, from_beginning, exit_at_end)
        return (Record._of(json.loads(line)) for line in lines)

    # Publishing -------------------------------------------------------------------------------------------------------

    def publish(self, ticks: Any, *, name: str | None = None) -> Published:
        """Publishes ticks, and returns once they are committed.

        `ticks` is a table of any library with Arrow's stream interface, or an iterable of mappings or objects. Fields
        are those of `ticks()`: `symbol` and `event_time_ns` (or `event_time`), and `price` and `size`, or `bid_price`,
        `bid_size`, `ask_price` and `ask_size`; besides `kind`, `side`, `trade_id` and `receive_time_ns`.

        A transaction has up to 65,536 ticks. After an error the message says how many are in the log. `name` is the
        transactional id; a publisher of the same name elsewhere is fenced.
        """
        if self._publisher is None or name not in (None, self._publisher):
            self._publisher = name or f"python-{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
        if hasattr(ticks, "__arrow_c_stream__"):
            return Published(*self._native.publish_table(self._publisher, ticks))
        total, records = 0, 0
        rows = map(_row, ticks)
        try:
            while chunk := list(islice(rows, _ROWS)):
                published = self._native.publish_rows(self._publisher, chunk)
                total, records = total + published[0], records + published[1]
        except Exception as error:
            if total == 0:
                raise
            raise _native.Error(f"{total} ticks were published before this: {error}") from error
        return Published(total, records)

    # Risk -------------------------------------------------------------------------------------------------------------

    def risk(
        self,
        request: Mapping[str, Any] | str | os.PathLike[str],
        *,
        timeout_s: float = 30.0,
        wait_for_ticks: bool = False,
    ) -> RiskResult:
        """Asks the pipeline that runs on the log for risk, and waits for the answer.

        `request` is a mapping as docs/risk.md has it, or the path of such a JSON file. With `wait_for_ticks` the answer
        is after the ticks that the pipeline found. Raises `RiskError` if the answer is an error, and `Error` without
        one; the request is cancelled then.
        """
        if not isinstance(request, Mapping):
            request = json.loads(Path(request).read_text(encoding="utf-8"))
        return RiskResult._of(json.loads(self._native.risk(json.dumps(request), timeout_s, wait_for_ticks)))

    # Replay -----------------------------------------------------------------------------------------------------------

    def _replay(self, command: str, *arguments: str) -> Any:
        return json.loads(self._native.replay([command, "--output=json", *arguments]))

    def verify(self, *, outputs: bool = True, group: str | None = None) -> Verification:
        """Takes every recorded decision again; with `outputs`, computes every signal and result again as well."""
        flags = ["--outputs"] if outputs else []
        return Verification._of(self._replay("verify", *flags, *_flag("group", group)))

    def why(self, subject: str | int, *, at: Time | None = None, partition: int = 0) -> Why:
        """Explains a subject.

        A symbol means its newest signal, or with `at` the first one whose bar ends then or later. Others are
        `signal:PARTITION:OFFSET`, `request:ID`, `batch:NUMBER`, and the sequence of an entry of the journal of
        `partition`.
        """
        what = str(subject) if at is None else f"{subject}@{_utc(time_ns(at))}"
        return Why._of(self._replay("why", f"--partition={partition}", "--", what))

    def slowest(self, count: int = 10, *, since: Time | None = None, until: Time | None = None) -> list[Why]:
        """Explains the signals that took longest from their tick to their commit, slowest first."""
        bounds = _flag("since", since and _utc(time_ns(since))) + _flag("until", until and _utc(time_ns(until)))
        return [Why._of(slow["chain"]) for slow in self._replay("slowest", *bounds, str(count))["signals"]]

    def what_if(
        self,
        *,
        policy: str | None = None,
        devices: Iterable[str] = (),
        set: Mapping[str, Any] = {},  # noqa: A002, B006
        weight: Mapping[str, int] = {},  # noqa: B006
        slow: Mapping[str, float] = {},  # noqa: B006
        lose: Mapping[str, str] = {},  # noqa: B006
        seeds: int = 5,
        partition: int = 0,
    ) -> WhatIf:
        """Models the recorded run under another policy, other devices, fields, or weights of lanes, or with lanes that
        are slower by a factor or lost at a time (`{"cpu:1": "+5"}`: after five seconds)."""
        arguments = _flag("policy", policy) + _flag("devices", ",".join(devices) or None)
        arguments += [f"--set={key}={value}" for key, value in set.items()]
        arguments += [f"--weight={lane}={number}" for lane, number in weight.items()]
        arguments += [f"--slow={lane}={decimal_text(factor)}x" for lane, factor in slow.items()]
        arguments += [f"--lose={lane}@{at}" for lane, at in lose.items()]
        arguments += [f"--seeds={seeds}", f"--partition={partition}"]
        return WhatIf._of(self._replay("what-if", *arguments))


def _flag(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"--{name}={value}"]


def _utc(ns: int) -> str:
    """Returns a time in the notation of arguments."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 1_000_000_000)) + f".{ns % 1_000_000_000:09}Z"


def _row(tick: Any) -> tuple[str, str, int, int, int, str, str, str, str, str, str, str]:
    get = tick.get if isinstance(tick, Mapping) else lambda name: getattr(tick, name, None)
    symbol = get("symbol")
    event_time = get("event_time_ns") if get("event_time_ns") is not None else get("event_time")
    if symbol is None or event_time is None:
        raise ValueError(f"{tick!r} needs symbol and event_time_ns")
    received = get("receive_time_ns") if get("receive_time_ns") is not None else get("receive_time")
    return (
        str(symbol),
        str(get("kind") or ""),
        time_ns(event_time),
        maybe_time_ns(received) or 0,
        int(get("trade_id") or 0),
        str(get("side") or ""),
        decimal_text(get("price")),
        decimal_text(get("size")),
        decimal_text(get("bid_price")),
        decimal_text(get("bid_size")),
        decimal_text(get("ask_price")),
        decimal_text(get("ask_size")),
    )
