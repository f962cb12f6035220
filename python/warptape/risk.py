"""Answers to risk requests, with their lists as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._native import Error

if TYPE_CHECKING:
    import numpy


class RiskError(Error):
    """A request that the pipeline answered with an error."""

    def __init__(self, result: dict[str, Any]):
        error = result["outcome"]
        self.request_id: str = result["request_id"]
        self.code: str = error["code"]
        """`BAD_PARAMETER`, `EXPIRED`, `OVERLOADED` and so on."""
        self.field: str = error.get("field", "")
        """The field of the request at fault; may be empty."""
        at = f" {self.field}" if self.field else ""
        super().__init__(f"{self.code}{at}: {error['message']}")


@dataclass(frozen=True)
class RiskResult:
    """The answer to a request. Lists of the outcome are arrays by name: `result["values"]["delta"]`."""

    request_id: str
    kind: str
    """`options`, `implied-volatilities`, `simulation`, `portfolio`, `stress`, `optimisation` or `sweep`."""
    outcome: Mapping[str, Any]
    """Numbers by name; a list is an array, and a list of objects a mapping of arrays."""
    facts: Mapping[str, Any]
    """The record of the result: times, devices, the market that was used, and the raw outcome."""

    def __getitem__(self, name: str) -> Any:
        return self.outcome[name]

    @classmethod
    def _of(cls, result: dict[str, Any]) -> RiskResult:
        outcome = dict(result["outcome"])
        kind = outcome.pop("type")
        if kind == "error":
            raise RiskError(result)
        return cls(result["request_id"], kind, {name: _arrays(value) for name, value in outcome.items()}, result)


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _arrays(inner) for name, inner in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(isinstance(row, dict) for row in value):
        names = dict.fromkeys(name for row in value for name in row)
        return {name: _arrays([row.get(name) for row in value]) for name in names}
    return _array(value)


def _array(values: list[Any]) -> numpy.ndarray[Any, Any]:
    try:
        import numpy
    except ImportError as error:
        raise Error("risk results are numpy arrays: pip install numpy") from error
    if any(isinstance(value, (str, dict, bool)) for value in values):
        return numpy.array(values)
    return numpy.array(values, dtype=None if all(isinstance(value, int) for value in values) and values else "float64")
