"""The table of the comparison as Markdown, and its place in the lab notes."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import market as markets
from market import Market

if TYPE_CHECKING:
    from peers import Peer, Runs, Task, Usage

BEGIN = "<!-- What follows is written by tests/benches/peers/run --write -->"
END = "<!-- End of the peers' table -->"
HEAD = "| | wall clock, s (least to greatest) | processor, s | ticks/s | time / Warptape's | whole process, s | threads set, busy | computes | persists |"
RULE = "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
OUR_NAME = "Warptape"
OUR_WORK = ("a stream, with all indicators, alerts and quotes", "everything, exactly once, with a journal")


def processor() -> str:
    """Returns the processor's name."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def conditions(made: dict[str, Market], options: argparse.Namespace) -> str:
    """Returns the paragraph that every table needs: date, machine, versions, ticks and turns."""
    root = Path(__file__).resolve().parents[3]
    version = subprocess.run([str(options.binary), "--version"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    market, stretched = made["market"], made["stretched"]
    cores = len(os.sched_getaffinity(0))
    turns = f"Medians of {options.turns} turns" if options.turns > 1 else "One turn"
    return "\n".join(
        [
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, {cores} cores of {processor()}, Linux {platform.release()}, load at the end {load}.",
            f"{version}, checkout {commit}; Python {platform.python_version()}. {turns}.",
            "",
            f"- **Ticks.** {market.ticks:,} of {len(market.symbols)} symbols, {market.trades:,} of them trades and the others quotes. "
            f"Warptape alone reads {market.late:,} late ones.",
            f"- **Stretched ticks** of the DEBS rows. They are the {stretched.trades:,} trades, with times {markets.STRETCH} times as far apart.",
        ]
    )


NOTES = """- **Persistence.** Warptape reads a log on the disk, and writes all signals, a journal and offsets in transactions, exactly once. Rivals persist nothing.
- **Times** of Warptape are those of the whole command `run --until-caught-up --close` on the embedded log, with default settings besides `stages.bars`.
  Times of rivals are those of the computation alone, on ticks in memory in the order of event time. "Whole process" has wall clock and processor time.
- **Computation.** Warptape computes all its indicators and alerts at each bar, and keeps the last quote. Rivals compute the task alone.
- **Ticks/s** counts all ticks, also for the rivals that get trades alone. Their work is less than the rate says.
- **Results.** All bars are equal: prices, volumes and counts exactly, averages to 1e-9. Averages begin with the mean of their first window,
  in DEBS 2022 with 0. Planted differences were found.
- **Threads** are busy with a twentieth of the process's time, sampled each 50 ms."""


def seconds(value: float) -> str:
    """Returns a time with three digits or more."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    """Returns a ratio with two digits or more."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def row(name: str, side: Runs, ours: Usage, ticks: int, threads: str, work: tuple[str, str]) -> str:
    """Returns a line of the table."""
    usage, (least_s, greatest_s) = side.median(), side.spread_s()
    wall = f"{seconds(usage.wall_s)} ({seconds(least_s)} to {seconds(greatest_s)})"
    process = f"{seconds(usage.process_wall_s)}, {seconds(usage.process_cpu_s)}"
    rate, times = f"{ticks / usage.wall_s:,.0f}", ratio(usage.wall_s / ours.wall_s)
    cells = (name, wall, seconds(usage.cpu_s), rate, times, process, f"{threads}, {usage.busy}", *work)
    return f"| {' | '.join(cells)} |"


def section(task: Task, runs: dict[str, Runs], peers: list[Peer], ticks: int) -> list[str]:
    """Returns the table of one task."""
    ours = runs[OUR_NAME].median()
    lines = [f"**{task.name[0].upper()}{task.name[1:]}**", "", HEAD, RULE, row(OUR_NAME, runs[OUR_NAME], ours, ticks, "2 lanes", OUR_WORK)]
    for peer in peers:
        if peer.name in runs:
            few = f" ({len(runs[peer.name].runs)} turn)" if len(runs[peer.name].runs) < len(runs[OUR_NAME].runs) else ""
            lines.append(row(peer.name + few, runs[peer.name], ours, ticks, str(peer.threads), (peer.computes, "nothing")))
    return [*lines, ""]


def details(peers: list[Peer]) -> list[str]:
    """Returns the table of how each rival computes, and what its times leave out."""
    lines = ["| rival | how | its times leave out |", "| --- | --- | --- |"]
    return [*lines, *(f"| {peer.name} | {peer.details} | {peer.excludes} |" for peer in peers), ""]


def markdown(results: dict[Task, dict[str, Runs]], made: dict[str, Market], peers: list[Peer], left_out: dict[str, str], options: argparse.Namespace) -> str:
    """Returns conditions, tables and what was left out."""
    lines = [conditions(made, options), NOTES, ""]
    for task, runs in results.items():
        lines += section(task, runs, peers, made[task.market].ticks)
    lines += details(peers)
    lines += [f"- **Left out:** {name}: {reason}" for name, reason in left_out.items()]
    return "\n".join(lines).rstrip() + "\n"


def write(page: Path, text: str) -> None:
    """Puts the text between the two marker lines of the page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"error: {page.name} lacks the lines '{BEGIN}' and '{END}'")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")
