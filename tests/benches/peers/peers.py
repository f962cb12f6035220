"""Warptape and its peers on the same ticks, in turns; `run` beside it makes the tools and calls this.

The table goes to standard output, progress to standard error. The exit status is 1 if a rival's bars differ from Warptape's.
"""

import argparse
import csv
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import compare
import market as markets
import table
from market import Market
from options import ROOT, read_options

HERE = Path(__file__).resolve().parent
SAMPLE_S = 0.05
POLL_S = 0.002
BUSY_SHARE = 0.05
# A rival whose first run takes longer has no further turns.
SLOW_S = 120.0
RUN_S_MAX = 1800.0
CROSSINGS = {"EMA_CROSS_UP": 1, "EMA_CROSS_DOWN": -1}
SIGNAL_COLUMNS = "kind,symbol,bar_spec,bar_start_ns,open_e9,high_e9,low_e9,close_e9,volume_e9,trades,ema_fast,ema_slow".split(",")
FILES = "start of the process, reading and writing of files"
JAVA_OPTIONS = ("-Xmx4g", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED")


@dataclass(frozen=True, eq=False)
class Task:
    """A row group of the table: the market, the lengths of bars by name, and what is computed besides."""

    name: str
    market: str
    specs: dict[str, int]
    averages: bool = False
    crossings: bool = False

    def arguments(self, threads: int) -> list[str]:
        """Returns what every rival's program takes before its files."""
        return [",".join(map(str, self.specs.values())), str(int(self.averages)), str(int(self.crossings)), str(threads)]

    def fields(self) -> tuple[str, ...]:
        """Returns the fields of its bars."""
        return compare.fields_of(self.averages, self.crossings)


TASKS = (
    Task("bars `1s`", "market", {"1s": 1}),
    Task("bars `1s`, `1m`, `5m`", "market", {"1s": 1, "1m": 60, "5m": 300}),
    Task("bars `1s`, EMA 38 and 100, crossings", "market", {"1s": 1}, averages=True, crossings=True),
    Task("DEBS 2022 query 1: EMA 38 and 100 over windows of 5 minutes", "stretched", {"5m": 300}, averages=True),
    Task("DEBS 2022 query 2: the same and their crossings", "stretched", {"5m": 300}, averages=True, crossings=True),
)


@dataclass
class Peer:
    """A rival: its program before the arguments of a task, the kind of its input, and the words of its row."""

    name: str
    command: list[str]
    reads: str
    computes: str
    details: str
    excludes: str
    threads: int
    unknown: tuple[str, ...] = ()


@dataclass
class Usage:
    """A run: seconds of the part that counts, and of the whole process; `busy` threads had a twentieth of its processor time."""

    wall_s: float
    cpu_s: float
    process_wall_s: float
    process_cpu_s: float
    busy: int


@dataclass
class Runs:
    """All runs of one side at one task."""

    runs: list[Usage] = field(default_factory=list)

    def median(self) -> Usage:
        """Returns the median of each figure."""
        columns = zip(*((run.wall_s, run.cpu_s, run.process_wall_s, run.process_cpu_s, run.busy) for run in self.runs))
        *times, busy = (statistics.median(column) for column in columns)
        return Usage(*times, round(busy))

    def spread_s(self) -> tuple[float, float]:
        """Returns the least and the greatest wall clock time."""
        return min(run.wall_s for run in self.runs), max(run.wall_s for run in self.runs)


class Refused(Exception):
    """A rival cannot do a task here; the text has the reason."""


def thread_times(pid: int) -> dict[str, int]:
    """Returns the processor time of each thread of a process, in the kernel's units."""
    times = {}
    try:
        for name in os.listdir(f"/proc/{pid}/task"):
            fields = Path(f"/proc/{pid}/task/{name}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
            times[name] = int(fields[11]) + int(fields[12])
    except (OSError, IndexError):
        pass  # It ended meanwhile.
    return times


def busy_threads(times: dict[str, int]) -> int:
    """Returns the number of threads with a share of the processor time; at least 1, because a short run is not sampled."""
    total = sum(times.values())
    return max(1, sum(value > BUSY_SHARE * total for value in times.values()))


def execute(command: list[str], output: Path, environment: dict[str, str] | None = None) -> Usage:
    """Runs a command with its output in the file; a failure raises `Refused` with the last line that it printed."""
    with output.open("wb") as file:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)
    times: dict[str, int] = {}
    sampled = 0.0
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        elapsed = time.perf_counter() - begun
        if pid:
            break
        if elapsed > RUN_S_MAX:
            process.kill()
        if elapsed - sampled >= SAMPLE_S:
            times.update(thread_times(process.pid))
            sampled = elapsed
        time.sleep(POLL_S)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no output"]
        raise Refused(f"exit status {process.returncode}: {lines[-1]}")
    cpu_s = used.ru_utime + used.ru_stime
    return Usage(elapsed, cpu_s, elapsed, cpu_s, busy_threads(times))


def run_rival(peer: Peer, task: Task, market: Market, bars: Path) -> Usage:
    """Runs a rival once; its times are those that it tells of itself."""
    ticks = market.parquet if peer.reads == "parquet" else market.flat
    output = bars.with_suffix(".out")
    usage = execute([*peer.command, *task.arguments(peer.threads), str(ticks), str(bars)], output)
    told = json.loads(output.read_text(encoding="utf-8").strip().splitlines()[-1])
    usage.wall_s, usage.cpu_s = told["wall_s"], told["cpu_s"]
    return usage


def run_warptape(binary: Path, task: Task, market: Market, folder: Path) -> tuple[Usage, Path]:
    """Runs the pipeline once over a copy of the log, with default settings but for the bars; returns the log as well."""
    log = markets.copy_of(market.log, folder / "run.db")
    config = folder / "run.toml"
    config.write_text(f"[stages]\nbars = {json.dumps(list(task.specs))}\n", encoding="utf-8")
    command = [str(binary), "run", "--until-caught-up", "--close", "-c", str(config), "--log", f"sqlite:{log}"]
    return execute(command, folder / "run.out", markets.environment()), log


def write_ours(binary: Path, task: Task, market: Market, log: Path, target: Path) -> None:
    """Writes the bars of a log's signals in the form of `compare.py`."""
    path = target.with_suffix(".signals")
    markets.tail(binary, log, path, "signals", tuple(SIGNAL_COLUMNS), "--kind", ",".join(("BAR", *CROSSINGS)))
    numbers = {name: str(number) for number, name in enumerate(market.symbols)}
    crossings: dict[tuple[str, str, str], int] = {}
    lines: list[list[str]] = []
    with path.open(encoding="utf-8", newline="") as file:
        for kind, symbol, spec, start_ns, *values in list(csv.reader(file))[1:]:
            if kind in CROSSINGS:
                crossings[symbol, spec, start_ns] = CROSSINGS[kind]
            else:
                lines.append([symbol, spec, start_ns, *values])
    averages = len(compare.AVERAGE_FIELDS)
    with target.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        for symbol, spec, start_ns, *values in lines:
            row = [numbers[symbol], task.specs[spec], start_ns, *(values if task.averages else values[:-averages])]
            out.writerow([*row, crossings.get((symbol, spec, start_ns), 0)] if task.crossings else row)
    path.unlink()


def check(peer: Peer, task: Task, market: Market, ours: compare.Bars, path: Path) -> None:
    """Compares a rival's bars with ours; ends the command at a difference."""
    theirs = compare.read_bars(path, task.fields())
    found = compare.difference(ours, theirs, task.fields(), market.symbols, peer.unknown)
    if found is not None:
        sys.exit(f"error: {task.name}: {peer.name}: {found}")


def check_comparison(task: Task, ours: compare.Bars) -> None:
    """Ends the command unless the comparison finds differences that are planted into these bars."""
    missed = compare.missed_plants(ours, task.fields())
    if missed:
        sys.exit(f"error: {task.name}: the comparison misses {', '.join(missed)}")


def measure(task: Task, peers: list[Peer], market: Market, options: argparse.Namespace, folder: Path, left_out: dict[str, str]) -> dict[str, Runs]:
    """Runs a task in turns; bars of the first turn are compared, and a rival that fails is left out."""
    runs: dict[str, Runs] = {}
    ours: compare.Bars = {}
    bars = folder / "bars.csv"
    for turn in range(options.turns):
        usage, log = run_warptape(options.binary, task, market, folder)
        runs.setdefault(table.OUR_NAME, Runs()).runs.append(usage)
        if turn == 0:
            write_ours(options.binary, task, market, log, bars)
            ours = compare.read_bars(bars, task.fields())
            check_comparison(task, ours)
            say(f"{task.name}: {len(ours):,} bars")
        say(f"  turn {turn + 1}, Warptape: {usage.wall_s:.3f} s")
        # Another rival follows Warptape in each turn.
        first = turn % max(1, len(peers))
        for peer in peers[first:] + peers[:first]:
            earlier = runs.setdefault(peer.name, Runs()).runs
            if turn > 0 and (not earlier or earlier[0].process_wall_s > SLOW_S):
                continue
            try:
                earlier.append(run_rival(peer, task, market, bars))
            except Refused as reason:
                left_out[f"{peer.name}, {task.name}"] = str(reason)
                continue
            if turn == 0:
                check(peer, task, market, ours, bars)
            say(f"  turn {turn + 1}, {peer.name}: {earlier[-1].wall_s:.3f} s")
    return {name: side for name, side in runs.items() if side.runs}


def say(text: str) -> None:
    """Prints progress."""
    print(text, file=sys.stderr, flush=True)


def version_of(package: str) -> str | None:
    """Returns the version of an installed Python package; `None` if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def locked(package: str) -> str:
    """Returns the version of a crate in Cargo.lock."""
    text = (HERE / "Cargo.lock").read_text(encoding="utf-8")
    return text.split(f'name = "{package}"\nversion = "')[1].split('"')[0]


def python_peers(cores: int, left_out: dict[str, str]) -> list[Peer]:
    """Returns the rivals in Python whose packages are installed."""
    rivals = (
        ("polars", "polars", "polars_bars", "the whole table at once", "group_by, and ewm_mean over closes", cores, ()),
        ("DuckDB", "duckdb", "duckdb_bars", "the whole table at once", "GROUP BY; averages as closed sums in windows", cores, ()),
        (
            "NautilusTrader",
            "nautilus_trader",
            "nautilus_bars",
            "a backtest of trades alone",
            "bars by timers, on trades of a venue without orders; its bars have no count of trades, which is not compared",
            1,
            ("trades",),
        ),
        ("Bytewax", "bytewax", "bytewax_bars", "a stream of trades alone", "windows by event time in µs, folded in Python, in one worker", 1, ()),
    )
    peers = []
    for name, package, module, computes, details, threads, unknown in rivals:
        version = version_of(package)
        if version is None:
            left_out[name] = left_out.pop(package, f"the package {package} is not installed")
            continue
        command = [sys.executable, str(HERE / "rival.py"), module]
        peers.append(Peer(f"{name} {version}", command, "parquet", computes, details, FILES, threads, unknown))
    return peers


def peers_of(options: argparse.Namespace, left_out: dict[str, str]) -> list[Peer]:
    """Returns all rivals that are here."""
    cores = len(os.sched_getaffinity(0))
    peers = []
    if options.rust:
        peers.append(Peer("plain loop in Rust", [options.rust, "loop"], "flat", "a loop over an array", "one slot for each symbol", FILES, 1))
        details = "windows by event time; it gets times floored to bars, because its windows begin at their first tick"
        peers.append(Peer(f"Renoir {locked('renoir')}", [options.rust, "renoir"], "flat", "a stream", details, FILES, cores))
    peers += python_peers(cores, left_out)
    if options.flink:
        command = ["java", *JAVA_OPTIONS, "-cp", options.flink, "Peer"]
        details = "embedded mini cluster, windows by event time in ms, state on the heap, no checkpoints"
        excludes = f"{FILES}, start of the cluster"
        peers.append(Peer(f"Flink {options.flink_version}", command, "flat", "a stream", details, excludes, cores))
    wanted = options.only.lower().split(",") if options.only else []
    return [peer for peer in peers if not wanted or any(word in peer.name.lower() for word in wanted)]


def main() -> None:
    """Makes the market, measures all tasks and prints the table."""
    options = read_options()
    left_out = dict(entry.split("=", 1) for entry in options.left_out)
    peers = peers_of(options, left_out)
    results = {}
    with tempfile.TemporaryDirectory(prefix="warptape-peers-") as name:
        folder = Path(name)
        say(f"making {options.ticks:,} ticks of {options.symbols} symbols")
        made = markets.make(options.binary, folder, options.ticks, options.symbols)
        for task in TASKS:
            results[task] = measure(task, peers, made[task.market], options, folder, left_out)
    text = table.markdown(results, made, peers, left_out, options)
    print(text)
    if options.write:
        table.write(ROOT / "docs/benchmarks.md", text)


if __name__ == "__main__":
    try:
        main()
    except (Refused, RuntimeError, ValueError) as problem:
        sys.exit(f"error: {problem}")
