"""DuckDB: GROUP BY over a table in memory, and window functions over each symbol's closes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from rival import FAST, SECOND_NS, SLOW, Task

# The average is a closed sum over powers of its factor, which leave the range of doubles after so many bars of a symbol.
BARS_MAX = 13_000


def load(path: Path) -> duckdb.DuckDBPyConnection:
    """Reads the ticks into a table, with a number that has their order."""
    database = duckdb.connect()
    database.execute("CREATE TABLE ticks AS SELECT *, file_row_number AS number FROM read_parquet(?, file_row_number = true)", [str(path)])
    return database


def bars(length_s: int) -> str:
    """Returns the query for the bars of one length."""
    length_ns = length_s * SECOND_NS
    return f"""
        SELECT symbol, {length_s} AS length_s, time_ns // {length_ns} * {length_ns} AS start_ns, arg_min(price, number) AS open,
            max(price) AS high, min(price) AS low, arg_max(price, number) AS close, sum(size)::BIGINT AS volume, count(*) AS trades
        FROM ticks WHERE is_trade GROUP BY symbol, time_ns // {length_ns}"""


def average(window: int) -> str:
    """Returns the expression of an average. SQL has no recursion over rows, so the sum is written out with the powers of its factor."""
    factor = f"(1 - 2 / {window + 1}.0::DOUBLE)"
    seed = f"avg(close / 1e9) FILTER (n <= {window}) OVER until_here"
    added = f"sum(CASE WHEN n > {window} THEN (2 / {window + 1}.0::DOUBLE) * close / 1e9 * pow({factor}, {window} - n) ELSE 0 END) OVER until_here"
    return f"CASE WHEN n >= {window} THEN pow({factor}, n - {window}) * ({seed} + {added}) END"


def with_averages(table: str) -> str:
    """Returns the query for bars with both averages."""
    return f"""
        WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY symbol ORDER BY start_ns) AS n FROM ({table}))
        SELECT * EXCLUDE n, {average(FAST)} AS fast, {average(SLOW)} AS slow FROM numbered
        WINDOW until_here AS (PARTITION BY symbol ORDER BY start_ns ROWS UNBOUNDED PRECEDING)"""


def with_crossings(table: str) -> str:
    """Returns the query for bars with averages and crossings."""
    return f"""
        WITH averages AS ({table}), pairs AS (SELECT *, lag(fast) OVER by_time AS fast_before, lag(slow) OVER by_time AS slow_before
            FROM averages WINDOW by_time AS (PARTITION BY symbol ORDER BY start_ns))
        SELECT * EXCLUDE (fast_before, slow_before), CASE WHEN fast > slow AND fast_before <= slow_before THEN 1
            WHEN fast < slow AND fast_before >= slow_before THEN -1 ELSE 0 END AS crossing FROM pairs"""


def compute(database: duckdb.DuckDBPyConnection, task: Task) -> duckdb.DuckDBPyConnection:
    """Makes a table of bars for each length."""
    database.execute(f"SET threads = {task.threads}")
    for length_s in task.lengths_s:
        query = bars(length_s)
        query = with_averages(query) if task.averages else query
        query = with_crossings(query) if task.crossings else query
        database.execute(f"CREATE TABLE bars_{length_s} AS {query}")
    return database


def rows(database: duckdb.DuckDBPyConnection, task: Task) -> Iterable[tuple[Any, ...]]:
    """Returns the lines of all tables."""
    for length_s in task.lengths_s:
        longest = database.execute(f"SELECT max(n) FROM (SELECT count(*) AS n FROM bars_{length_s} GROUP BY symbol)").fetchone()[0]
        if task.averages and longest > BARS_MAX:
            raise ValueError(f"a symbol has {longest} bars, and the closed sum holds for {BARS_MAX}")
        yield from database.execute(f"FROM bars_{length_s}").fetchall()
