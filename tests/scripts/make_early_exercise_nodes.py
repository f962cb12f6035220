#!/usr/bin/env python3
"""Writes the nodes and weights by which American options are priced, `kernels/src/pricing/early_exercise/nodes.rs`.

    venv/bin/python tests/scripts/make_early_exercise_nodes.py
"""

from pathlib import Path

import mpmath as mp

FILE = Path(__file__).resolve().parents[2] / "kernels/src/pricing/early_exercise/nodes.rs"
NODES, LEVEL_POINTS, PREMIUM_POINTS = 32, 64, 256
# Distance of the points of the double exponential rule, in its own variable.
STEP = mp.mpf("0.026")

HEAD = """\
//! Nodes and weights in 50 digits, rounded to the nearest double: written by `tests/scripts/make_early_exercise_nodes.py`.

#![expect(clippy::approx_constant, reason = "cosines")]

/// Nodes of a boundary, besides expiry.
pub const NODES: usize = %d;
/// Points of the integrals that a boundary is improved by.
pub const LEVEL_POINTS: usize = %d;
/// Points of the integral that is the premium.
pub const PREMIUM_POINTS: usize = %d;
"""


def legendre(count):
    """Nodes and weights of Gauss and Legendre from 0 to 1, in order."""
    for number in range(count, 0, -1):
        x = mp.cos(mp.pi * (number - mp.mpf(1) / 4) / (count + mp.mpf(1) / 2))
        for _ in range(20):
            low, high = mp.mpf(1), x
            for degree in range(2, count + 1):
                low, high = high, ((2 * degree - 1) * x * high - (degree - 1) * low) / degree
            slope = count * (x * high - low) / (x * x - 1)
            x -= high / slope
        yield (x + 1) / 2, 1 / ((1 - x * x) * slope * slope)


def double_exponential(count):
    """Nodes and weights of Takahasi and Mori from 0 to 1, in order, and how far each node is from 1."""
    for number in range(count):
        t = (number - mp.mpf(count - 1) / 2) * STEP
        reach = mp.pi * mp.sinh(t)
        node, rest = 1 / (1 + mp.exp(-reach)), 1 / (1 + mp.exp(reach))
        yield node, rest, STEP * mp.pi * mp.cosh(t) * node * rest


def column(name, doc, values):
    body = "".join(f"    {float(value)!r},\n" for value in values)
    return f"\n/// {doc}\n#[rustfmt::skip]\npub const {name}: [f64; {len(values)}] = [\n{body}];\n"


def main():
    mp.mp.dps = 50
    half = mp.pi / 2
    level = [(node * half, (1 - node) * half, weight * half) for node, weight in legendre(LEVEL_POINTS)]
    premium = [(node * half, rest * half, weight * half) for node, rest, weight in double_exponential(PREMIUM_POINTS)]
    text = HEAD % (NODES, LEVEL_POINTS, PREMIUM_POINTS)
    cosines = [mp.cos(mp.pi * number / NODES) for number in range(NODES)]
    text += column("CHEBYSHEV", "`cos(kπ/32)`; the last one, −1, is left out.", cosines)
    for name, points, of in [("LEVEL", level, "Gauss and Legendre"), ("PREMIUM", premium, "Takahasi and Mori")]:
        text += column(f"{name}_SINES", f"`sin θ` of the points from 0 to π/2, by {of}.", [mp.sin(a) for a, _, _ in points])
        text += column(f"{name}_COSINES", "`cos θ` of the same.", [mp.sin(rest) for _, rest, _ in points])
        weights = [2 * mp.sin(a) * mp.sin(rest) * weight for a, rest, weight in points]
        text += column(f"{name}_WEIGHTS", "Their weights, times `2 sin θ cos θ`.", weights)
    FILE.write_text(text)


if __name__ == "__main__":
    main()
