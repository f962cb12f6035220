"""A sweep as users ask for it: 250 trading rules over 100,000 bars, by `warptape risk sweep` with default settings, against numba.

    pip install -r tests/scripts/requirements.txt
    cargo build --release
    python tests/benches/sweep_request.py target/release/warptape

One lane on the processor and numba's loops (tests/benches/sweep.py) take turns on the same closes and rules. Two times are told of
ours: what the lane worked, as the journal has it (`Finish.service_ns`), and the whole command, from its start until the answer is
printed. Numbers of trades must be equal and sums within 1e-9.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sweep as rival

BARS, ROUNDS = 100_000, 5
TYPES = {
    "ema": lambda rule: {"type": "ema-cross", "fast": rule[0], "slow": rule[1]},
    "rsi": lambda rule: {"type": "rsi-reversion", "length": rule[0], "low": float(rule[1]), "high": float(rule[2])},
    "zscore": lambda rule: {"type": "z-score-reversion", "window": rule[0], "entry": float(rule[1]), "exit": rule[2]},
    "bands": lambda rule: {"type": "band-breakout", "window": rule[0], "width": float(rule[1])},
}


def request_of(closes, kind, rules):
    """The request, as a file holds it."""
    symbols = [{"symbol": "ACME", "closes": closes.tolist()}]
    rules = [TYPES[kind](rule) for rule in rules]
    return {"class": "batch", "problem": {"type": "sweep", "symbols": symbols, "cost": rival.COST, "rules": rules}}


def service_s(warptape, log):
    """Time that the lane worked on the last request of the log."""
    tail = [warptape, "tail", "journal", "--from-beginning", "--exit-at-end", "-o", "json", "--log", log]
    lines = subprocess.run(tail, check=True, capture_output=True, text=True).stdout.splitlines()
    decisions = (decision for line in lines for decision in json.loads(line)["record"]["decisions"])
    finished = [decision[name] for decision in decisions for name in decision if name.endswith("Finish")]
    return finished[-1]["service_ns"] / 1e9


def main(warptape):
    warptape = str(Path(warptape).resolve())
    steps = np.random.default_rng(42).uniform(-1e-3, 1e-3, BARS)
    closes = 100.0 * np.cumprod(1.0 + steps)
    changes = np.zeros(BARS)
    changes[1:] = (closes[1:] - closes[:-1]) / closes[:-1]
    with tempfile.TemporaryDirectory() as folder:
        log, asked = f"sqlite:{folder}/log.db", Path(folder, "request.json")
        feed = [warptape, "feed", "synth", "--ticks", "1000", "--log", log]
        subprocess.run(feed, check=True, capture_output=True)
        config = Path(folder, "one-lane.toml")
        config.write_text('[engine]\ndevices = ["cpu:1"]\n')
        run = subprocess.Popen([warptape, "run", "-c", str(config), "--log", log], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            print(f"{BARS:,} bars, {rival.RULES} rules; medians of {ROUNDS} runs in turns, seconds")
            for number, kind in enumerate(TYPES):
                rules = rival.rules_of(kind)
                asked.write_text(json.dumps(request_of(closes, kind, rules)))
                table, out = np.array(rules, dtype=float), np.zeros((rival.RULES, 4))
                rival.sweep(closes[:1000], changes[:1000], table, number, out)
                lane, whole, theirs = [], [], []
                for _ in range(ROUNDS):
                    begun = time.perf_counter()
                    ask = [warptape, "risk", "sweep", str(asked), "-o", "json", "--log", log]
                    said = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
                    whole.append(time.perf_counter() - begun)
                    lane.append(service_s(warptape, log))
                    begun = time.perf_counter()
                    rival.sweep(closes, changes, table, number, out)
                    theirs.append(time.perf_counter() - begun)
                found = figures(json.loads(said))
                assert (found[:, 3] == out[:, 3]).all(), f"{kind}: numbers of trades differ"
                assert np.allclose(found, out, rtol=1e-9, atol=1e-9), f"{kind}: figures differ"
                lane, whole, theirs = (statistics.median(times) for times in (lane, whole, theirs))
                print(
                    f"{kind:8} lane {lane:.4f} ({theirs / lane:.1f} x)  command {whole:.3f} ({theirs / whole:.1f} x)  numba {theirs:.4f}",
                    flush=True,
                )
        finally:
            run.terminate()
            run.wait()


def figures(result):
    """Profit, drawdown, Sharpe ratio and trades of each rule."""
    names = ("profit", "drawdown", "sharpe", "trades")
    return np.array([[cell[name] for name in names] for cell in result["outcome"]["cells"]], dtype=float)


if __name__ == "__main__":
    main(*sys.argv[1:])
