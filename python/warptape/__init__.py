"""Market data pipelines that replay bit for bit: logs as Arrow tables and objects.

    log = warptape.Log("sqlite:market.db")
    bars = log.bars(symbol="SYNTH:AAAA").to_polars()

The guide is docs/python.md.
"""

from ._answers import Changed, Figure, Mean, Published, Record, Verification, Wait, WhatIf, Why
from ._log import Log, Table
from ._native import Error
from .risk import RiskError, RiskResult

__all__ = [
    "Changed",
    "Error",
    "Figure",
    "Log",
    "Mean",
    "Published",
    "Record",
    "RiskError",
    "RiskResult",
    "Table",
    "Verification",
    "Wait",
    "WhatIf",
    "Why",
]
