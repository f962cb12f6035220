#!/usr/bin/env python3
"""Writes the nodes and weights by which American options are priced, `kernels/src/pricing/early_exercise/nodes.bin`, as `nodes.rs` reads them.

    venv/bin/python tests/scripts/make_early_exercise_nodes.py
"""

import struct
from pathlib import Path

import mpmath as mp

FILE = Path(__file__).resolve().parents[2] / "kernels/src/pricing/early_exercise/nodes.bin"
NODES, LEVEL_POINTS, PREMIUM_POINTS = 32, 64, 256
# Distance of the points of the double exponential rule, in its own variable.
STEP = mp.mpf("0.026")


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


def main():
    mp.mp.dps = 50
    half = mp.pi / 2
    level = [(node * half, (1 - node) * half, weight * half) for node, weight in legendre(LEVEL_POINTS)]
    premium = [(node * half, rest * half, weight * half) for node, rest, weight in double_exponential(PREMIUM_POINTS)]
    columns = [[mp.cos(mp.pi * number / NODES) for number in range(NODES)]]
    for points in [level, premium]:
        columns.append([mp.sin(a) for a, _, _ in points])
        columns.append([mp.sin(rest) for _, rest, _ in points])
        columns.append([2 * mp.sin(a) * mp.sin(rest) * weight for a, rest, weight in points])
    numbers = [float(number) for column in columns for number in column]
    FILE.write_bytes(struct.pack(f"<{len(numbers)}d", *numbers))


if __name__ == "__main__":
    main()
