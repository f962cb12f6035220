"""Answers as objects."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _time(ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ns // 1_000_000_000, dt.timezone.utc).replace(
        microsecond=ns % 1_000_000_000 // 1_000
    )


@dataclass(frozen=True)
class Published:
    """Committed ticks, and the records that hold them."""

    ticks: int
    records: int


@dataclass(frozen=True)
class Record:
    """A record of a topic, or a tick of it, as `warptape tail -o json` has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ns: int
    """Time of the record in the log, in nanoseconds since the epoch."""
    schema: str | None = None
    index: int | None = None
    """Row of the tick in its record; `None` for other records."""
    value: Mapping[str, Any] = field(default_factory=dict)
    """The fields; empty if the record cannot be decoded."""
    error: str | None = None
    """The reason why it cannot be decoded."""

    @property
    def time(self) -> dt.datetime:
        """Time of the record in the log, to the microsecond."""
        return _time(self.timestamp_ns)

    @classmethod
    def _of(cls, line: dict[str, Any]) -> Record:
        return cls(
            topic=line["topic"],
            partition=line["partition"],
            offset=line["offset"],
            timestamp_ns=line["timestamp_ns"],
            schema=line.get("schema"),
            index=line.get("index"),
            value=line.get("record") or {},
            error=line.get("error"),
        )


@dataclass(frozen=True)
class Verification:
    """The result of `Log.verify`."""

    entries: int
    """Entries of journals that were replayed and found identical."""
    decisions: int
    processes: int
    outputs: Mapping[str, int] | None
    """Counts of outputs found identical; `None` if outputs were not compared."""
    notes: tuple[str, ...]
    divergence: Mapping[str, Any] | None
    """The first difference; `None` if there is none."""

    @property
    def identical(self) -> bool:
        """True if everything that was compared is the same."""
        return self.divergence is None

    @classmethod
    def _of(cls, report: dict[str, Any]) -> Verification:
        return cls(**{**report, "notes": tuple(report["notes"])})


@dataclass(frozen=True)
class Wait:
    """A wait on the way of a signal, a request or a batch."""

    step: str
    """What it waited for, such as `read`, `lane` or `commit_interval`."""
    ns: int


@dataclass(frozen=True)
class Why:
    """The explanation of a signal, a risk result, a batch or an entry of the journal."""

    waits: tuple[Wait, ...]
    """The waits in order of time; empty for an entry."""
    total_ns: int | None
    """The sum of the waits; `None` for an entry."""
    unknown: tuple[str, ...]
    """Facts that are not known, in words."""
    facts: Mapping[str, Any]
    """Everything that is known, as `warptape replay why -o json` has it."""

    @property
    def longest(self) -> Wait | None:
        """The longest wait; `None` without waits."""
        return max(self.waits, key=lambda wait: wait.ns, default=None)

    def __str__(self) -> str:
        if self.total_ns is None:
            return f"{len(self.facts.get('explanations', []))} decisions"
        waits = ", ".join(f"{wait.step} {wait.ns / 1e6:.3f}" for wait in self.waits)
        return f"{self.total_ns / 1e6:.3f} ms: {waits}"

    @classmethod
    def _of(cls, facts: dict[str, Any]) -> Why:
        return cls(
            waits=tuple(Wait(**wait) for wait in facts.get("waits", ())),
            total_ns=facts.get("total_ns"),
            unknown=tuple(facts.get("unknown", ())),
            facts=facts,
        )


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, with half of its 95 % interval."""

    mean: float
    half_95: float


@dataclass(frozen=True)
class Changed:
    """A changed field of the configuration."""

    field: str
    recorded: Any
    modelled: Any


@dataclass(frozen=True)
class Figure:
    """A figure of `Log.what_if`. No difference smaller than its noise floor or its variation is claimed."""

    name: str
    measured: float | None
    recorded: Mean | None
    """Modelled as recorded."""
    changed: Mean | None
    """Modelled with the changes."""
    noise_floor: float | None
    varies_by: float | None
    difference: Mean | None
    claim: str
    """`higher`, `lower`, `same`, `within_the_noise_floor`, `not_repeated`, `not_shown` or `not_comparable`."""

    @classmethod
    def _of(cls, row: dict[str, Any]) -> Figure:
        means = ("recorded", "changed", "difference")
        return cls(**{name: Mean(**value) if name in means and value else value for name, value in row.items()})


@dataclass(frozen=True)
class WhatIf:
    """A recorded run beside its model, as recorded and with changes."""

    lives: int
    window_s: float
    seeds: int
    changed: tuple[Changed, ...]
    faults: tuple[str, ...]
    figures: Mapping[str, Figure]
    """Figures by name."""
    order: tuple[Mapping[str, Any], ...]
    """Evidence that each row passes through its group once and in order."""
    notes: tuple[str, ...]

    @classmethod
    def _of(cls, report: dict[str, Any]) -> WhatIf:
        return cls(
            lives=report["lives"],
            window_s=report["window_s"],
            seeds=report["seeds"],
            changed=tuple(Changed(**one) for one in report["changed"]),
            faults=tuple(report["faults"]),
            figures={row["name"]: Figure._of(row) for row in report["figures"]},
            order=tuple(report["order"]),
            notes=tuple(report["notes"]),
        )
