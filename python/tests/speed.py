"""Compares the time to read signals as Arrow with that of JSON from `warptape tail`.

    python python/tests/speed.py [SIGNALS]    default: 10,000,000; in an environment with a wheel of the release profile, polars and pyarrow
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from market import COMMAND, command

import warptape

CONFIGURATION = """\
[stages]
bars = ["tick:2"]
"""


def seconds(work) -> tuple[float, int]:
    """Returns the time of work, and the number of signals that it read."""
    begun = time.perf_counter()
    count = work()
    return time.perf_counter() - begun, count


def main() -> None:
    signals = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "warptape.toml"
        config.write_text(CONFIGURATION)
        # Some 28 % of the ticks are trades, and two trades are a bar.
        log = warptape.Log(Path(folder) / "market.db", config=config)
        command("feed", "synth", "--ticks", 8 * signals, "-c", config, "--log", log.url)
        command("run", "--until-caught-up", "-c", config, "--log", log.url)

        def arrow() -> int:
            return sum(batch.num_rows for batch in log.signals().reader())

        def polars() -> int:
            return len(log.signals().to_polars())

        def tail() -> int:
            line = [COMMAND, "tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json", "--log", log.url]
            with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
                return sum(1 for _ in map(json.loads, process.stdout))

        times = {name: seconds(work) for name, work in [("arrow", arrow), ("polars", polars), ("json", tail)]}
        for name, (taken, count) in times.items():
            print(f"{name:7} {count:12,} signals {taken:9.2f} s {taken / count * 1e6:8.3f} µs each")
        print(f"json / polars: {times['json'][0] / times['polars'][0]:.1f}")


if __name__ == "__main__":
    main()
