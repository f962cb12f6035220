"""The options of `tests/benches/peers/run`."""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def read_options() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(prog="tests/benches/peers/run", description="Holds Warptape against its peers on the same ticks.")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/warptape", help="Warptape's program (default: target/release/warptape)")
    parser.add_argument("--ticks", type=int, default=2_000_000, help="ticks of the market (default: 2000000)")
    parser.add_argument("--symbols", type=int, default=500, help="symbols of the market (default: 500)")
    parser.add_argument("--turns", type=int, default=3, help="runs of each side, of which the table has medians (default: 3)")
    parser.add_argument("--only", default="", help="rivals to run, such as polars,flink (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md as well")
    parser.add_argument("--rust", default="", help=argparse.SUPPRESS)
    parser.add_argument("--flink", default="", help=argparse.SUPPRESS)
    parser.add_argument("--flink-version", default="", help=argparse.SUPPRESS)
    parser.add_argument("--left-out", action="append", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    if not options.binary.is_file():
        parser.error(f"{options.binary} does not exist: run 'cargo build --release' first, or name it with --binary")
    if options.turns < 1 or options.ticks < 1 or options.symbols < 1:
        parser.error("--turns, --ticks and --symbols must be at least 1")
    return options


if __name__ == "__main__":
    read_options()
