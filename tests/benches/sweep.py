"""Sweeps of 250 trading rules over a million bars: warptape's kernel against numba, alternating, on one core each.

    pip install -r tests/scripts/requirements.txt
    cargo build --release -p warptape-kernels --example sweep_figures
    python tests/benches/sweep.py target/release/examples/sweep_figures

numba runs the same definitions, compiled without fast-math, rule by rule with the state in registers. Both must
come to the same figures: the numbers of trades equal, the sums to 1e-9.

Two more rivals, where they are there:

- the crate vector-ta, whose program is a second argument: it has indicators of many windows at once, and a loop
  over them trades. Its averages are a little different: numbers of trades must be the same to one in a thousand.
  `cargo build --release --manifest-path tests/benches/vector_ta/Cargo.toml`
- vectorbt 1.2.0 (`pip install vectorbt`), on averages that cross, once: it takes minutes. It seeds averages
  another way and trades a share at a time, so that numbers of trades alone are compared: to one in a thousand.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numba import njit

BARS, RULES, ROUNDS, COST = 1_000_000, 250, 5, 1e-4


@njit
def seeded(next_value, state, value, sample, length):
    if sample < 1.0:
        return 0.0
    if sample < length:
        return state + value
    if sample == length:
        return (state + value) / length
    return next_value


@njit
def account(closes, changes, rule, kind, out):
    first = second = position = profit = squares = peak = drawdown = trades = 0.0
    window = int(rule[0])
    alpha_fast, alpha_slow = 2.0 / (rule[0] + 1.0), 2.0 / (rule[1] + 1.0)
    inverse = 1.0 / rule[0]
    settled = max(rule[0], rule[1]) if kind == 0 else rule[0]
    for bar in range(closes.size):
        close, sample, target = closes[bar], bar + 1.0, position
        if kind == 0:
            if sample > settled:
                first += (close - first) * alpha_fast
                second += (close - second) * alpha_slow
            else:
                first = seeded(first + (close - first) * alpha_fast, first, close, sample, rule[0])
                second = seeded(second + (close - second) * alpha_slow, second, close, sample, rule[1])
            if sample < settled:
                target = 0.0
            elif first > second:
                target = 1.0
            elif first < second:
                target = -1.0
        elif kind == 1:
            change = close - closes[bar - 1] if bar else 0.0
            up = max(change, 0.0)
            if bar > settled:
                first = (first * (rule[0] - 1.0) + up) * inverse
                second = (second * (rule[0] - 1.0) + (up - change)) * inverse
            else:
                first = seeded((first * (rule[0] - 1.0) + up) * inverse, first, up, bar, rule[0])
                second = seeded((second * (rule[0] - 1.0) + (up - change)) * inverse, second, up - change, bar, rule[0])
            every = first + second
            if bar < rule[0]:
                target = 0.0
            elif 100.0 * first < rule[1] * every:
                target = 1.0
            elif 100.0 * first > rule[2] * every:
                target = -1.0
        else:
            value = close - closes[0]
            oldest = closes[bar - window] - closes[0] if bar >= window else 0.0
            first += value - oldest
            second += value * value - oldest * oldest
            mean = first * inverse
            variance = max(second * inverse - mean * mean, 0.0)
            distance = value - mean
            square = distance * distance
            if sample < rule[0]:
                target = 0.0
            elif square > rule[1] * rule[1] * variance:
                target = 1.0 if (distance > 0.0) == (kind == 3) else -1.0
            elif kind == 2 and square <= rule[2] * rule[2] * variance:
                target = 0.0
            elif kind == 3 and position * distance < 0.0:
                target = 0.0
        traded = abs(target - position)
        earned = position * changes[bar] - COST * traded
        profit += earned
        squares += earned * earned
        peak = max(peak, profit)
        drawdown = max(drawdown, peak - profit)
        if traded > 0.0 and target != 0.0:
            trades += 1.0
        position = target
    mean = profit / closes.size
    variance = squares / closes.size - mean * mean
    out[0], out[1], out[3] = profit, drawdown, trades
    out[2] = mean / np.sqrt(variance) if variance > 0.0 else 0.0


@njit
def sweep(closes, changes, rules, kind, out):
    for number in range(rules.shape[0]):
        account(closes, changes, rules[number], kind, out[number])


def rules_of(kind):
    """Parameters of the rules of a kind, padded to three."""
    numbers = range(RULES)
    if kind == "ema":
        return [(5 + n % 25, 40 + 6 * (n // 25), 0) for n in numbers]
    if kind == "rsi":
        return [(5 + n % 25, 20 + n // 25, 80 - n // 25) for n in numbers]
    if kind == "zscore":
        return [(10 + 4 * (n % 25), 1 + 0.25 * (n // 25), 0.5) for n in numbers]
    return [(10 + 4 * (n % 25), 1 + 0.25 * (n // 25), 0) for n in numbers]


def vectorbt_sweep(closes, rules):
    """Numbers of trades of rules of averages that cross, after all figures of a sweep were computed; 25 rules at a time."""
    import pandas
    import vectorbt

    price, trades = pandas.Series(closes), []
    for at in range(0, len(rules), 25):
        fast, slow = ([rule[side] for rule in rules[at : at + 25]] for side in (0, 1))
        fast, slow = (vectorbt.MA.run(price, windows, ewm=True).ma.to_numpy() for windows in (fast, slow))
        folio = vectorbt.Portfolio.from_signals(
            price, entries=fast > slow, short_entries=fast < slow, upon_opposite_entry="reverse",
            fees=COST, init_cash=1e6, size=1.0, freq="1s",
        )
        folio.total_profit(), folio.max_drawdown(), folio.sharpe_ratio()
        trades.extend(folio.orders.count())
    return np.array(trades)


def run_program(program, *arguments):
    """The time that a program tells, and its figures by rule."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    run = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, env=environment)
    first, *rest = run.stdout.splitlines()
    return float(first), np.array([[float(word) for word in line.split()] for line in rest])


def main(program, vector_ta=None):
    steps = np.random.default_rng(42).uniform(-1e-3, 1e-3, BARS)
    closes = 100.0 * np.cumprod(1.0 + steps)
    changes = np.zeros(BARS)
    changes[1:] = (closes[1:] - closes[:-1]) / closes[:-1]
    with tempfile.TemporaryDirectory() as folder:
        closes_file, rules_file = Path(folder, "closes"), Path(folder, "rules")
        closes.astype("<f8").tofile(closes_file)
        print(f"{BARS:,} bars, {RULES} rules; medians of {ROUNDS} runs in turns, seconds")
        for number, (kind, used) in enumerate({"ema": 2, "rsi": 3, "zscore": 3, "bands": 2}.items()):
            rules = rules_of(kind)
            lines = [" ".join([kind, *(repr(value) for value in rule[:used])]) for rule in rules]
            rules_file.write_text("\n".join(lines) + "\n")
            table, out = np.array(rules, dtype=float), np.zeros((RULES, 4))
            sweep(closes[:1000], changes[:1000], table, number, out)
            ours, theirs, crates = [], [], []
            for _ in range(ROUNDS):
                seconds, found = run_program(program, closes_file, rules_file, "1")
                ours.append(seconds)
                begun = time.perf_counter()
                sweep(closes, changes, table, number, out)
                theirs.append(time.perf_counter() - begun)
                if vector_ta and kind in ("ema", "rsi"):
                    seconds, others = run_program(vector_ta, closes_file, rules_file, "1")
                    crates.append(seconds)
            assert (found[:, 3] == out[:, 3]).all(), f"{kind}: numbers of trades differ"
            assert np.allclose(found, out, rtol=1e-9, atol=1e-9), f"{kind}: figures differ"
            mine = statistics.median(ours)
            rivals = {"numba": statistics.median(theirs)}
            if crates:
                rivals["vector-ta"] = statistics.median(crates)
                assert np.allclose(found[:, 3], others[:, 3], rtol=1e-3), f"{kind}: vector-ta trades otherwise"
                assert np.allclose(found[:, 0], others[:, 0], rtol=1e-2), f"{kind}: vector-ta earns otherwise"
            if kind == "ema" and importlib.util.find_spec("vectorbt"):
                vectorbt_sweep(closes[:1000], rules[:25])
                begun = time.perf_counter()
                trades = vectorbt_sweep(closes, rules)
                rivals["vectorbt"] = time.perf_counter() - begun
                assert np.allclose(found[:, 3], trades, rtol=1e-3), f"{kind}: vectorbt trades otherwise"
            against = "  ".join(f"{name} {other:.3f} ({other / mine:.1f} x)" for name, other in rivals.items())
            print(f"{kind:8} warptape {mine:.3f}  {against}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
