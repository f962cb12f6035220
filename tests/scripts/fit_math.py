#!/usr/bin/env python3
"""Prints the coefficients of `kernels/src/math`, lowest degree first, each with the error of its formula before rounding.

    python3 -m venv venv
    venv/bin/pip install -r tests/scripts/requirements.txt
    venv/bin/python tests/scripts/fit_math.py

Polynomials are minimax, by Remez's algorithm; rational functions are fitted at 120 Chebyshev points by the iteration of
Sanathanan and Koerner with Lawson's weights, and are minimax nearly. All in 45 digits.
"""

from functools import lru_cache

import mpmath as mp

mp.mp.dps = 45
POINTS = 120


def value(coefficients, x):
    return mp.polyval(coefficients[::-1], x)


def between(a, b, cosine):
    return (a + b) / 2 - (b - a) / 2 * cosine


def polynomial(function, weight, a, b, degree):
    """Minimax for `weight · (polynomial − function)`."""
    a, b = mp.mpf(a), mp.mpf(b)
    unknowns = degree + 2
    points = [between(a, b, mp.cos(mp.pi * i / (unknowns - 1))) for i in range(unknowns)]
    grid = [between(a, b, mp.cos(mp.pi * i / (24 * unknowns))) for i in range(24 * unknowns + 1)]
    for _ in range(12):
        system, right = mp.matrix(unknowns, unknowns), mp.matrix(unknowns, 1)
        for row, x in enumerate(points):
            for power in range(degree + 1):
                system[row, power] = x**power
            system[row, unknowns - 1] = (-1) ** row / weight(x)
            right[row] = function(x)
        solution = list(mp.lu_solve(system, right))
        coefficients, levelled = solution[:-1], abs(solution[-1])
        errors = [weight(x) * (value(coefficients, x) - function(x)) for x in grid]
        extremes = extremes_of(errors, unknowns)
        if extremes is None or max(abs(error) for error in errors) < levelled * 1.01:
            break
        points = [grid[i] for i in extremes]
    return coefficients, max(abs(error) for error in errors)


def extremes_of(errors, wanted):
    """Where the error is greatest between changes of its sign."""
    extremes, first = [], 0
    while first < len(errors):
        last = first
        while last < len(errors) and (errors[last] > 0) == (errors[first] > 0):
            last += 1
        extremes.append(max(range(first, last), key=lambda i: abs(errors[i])))
        first = last
    while len(extremes) > wanted:
        extremes.pop(0 if abs(errors[extremes[0]]) < abs(errors[extremes[-1]]) else -1)
    return extremes if len(extremes) == wanted else None


def rational(function, a, b, above, below):
    """Nearly minimax for the relative error; the denominator begins with 1."""
    a, b = mp.mpf(a), mp.mpf(b)
    unknowns = above + below + 1
    grid = [between(a, b, mp.cos(mp.pi * (2 * i + 1) / (2 * POINTS))) for i in range(POINTS)]
    values = [function(x) for x in grid]
    denominators, weights = [mp.mpf(1)] * POINTS, [mp.mpf(1)] * POINTS
    best = None
    for iteration in range(14):
        system, right = mp.matrix(POINTS, unknowns), mp.matrix(POINTS, 1)
        for row, x in enumerate(grid):
            scale = weights[row] / (values[row] * denominators[row])
            for power in range(above + 1):
                system[row, power] = scale * x**power
            for power in range(1, below + 1):
                system[row, above + power] = -scale * values[row] * x**power
            right[row] = scale * values[row]
        solution = list(mp.qr_solve(system, right)[0])
        numerator, denominator = solution[: above + 1], [mp.mpf(1), *solution[above + 1 :]]
        denominators = [value(denominator, x) for x in grid]
        errors = [
            abs(value(numerator, x) / under / exact - 1) for x, under, exact in zip(grid, denominators, values)
        ]
        worst = max(errors)
        if best is None or worst < best[2]:
            best = numerator, denominator, worst
        if iteration >= 3:
            weights = [weight * mp.sqrt(error / worst) + mp.mpf("1e-6") for weight, error in zip(weights, errors)]
            weights = [weight / max(weights) for weight in weights]
    return best


@lru_cache(None)
def quantile(p):
    """The positive x with Φ(−x) = p ≤ ½."""
    if p == mp.mpf(1) / 2:
        return mp.mpf(0)
    x = mp.sqrt(-2 * mp.log(p)) if p < 1e-3 else mp.mpf(1)
    for _ in range(60):
        below = mp.ncdf(-x)
        step = (mp.log(below) - mp.log(p)) * below / mp.npdf(x)
        x += step
        if abs(step) < mp.mpf(10) ** -42:
            break
    return x


def exp_fraction(r):
    return (mp.expm1(r) - r) / r**2 if abs(r) > mp.mpf(10) ** -15 else mp.mpf(1) / 2 + r / 6


def mills(t):
    """(x + 3) · Φ(−x) · exp(x²/2) with t = (x − 3) / (x + 3)."""
    x = 3 * (1 + t) / (1 - t)
    if x < 60:
        return (x + 3) * mp.erfc(x / mp.sqrt(2)) / 2 * mp.exp(x * x / 2)
    fraction = mp.mpf(0)
    for k in range(200, 0, -1):
        fraction = k / (x + fraction)
    return (x + 3) / (x + fraction) / mp.sqrt(2 * mp.pi)


def of_distance(coefficients):
    """A polynomial in t as one in x, times (x + 3)^degree."""
    degree = len(coefficients) - 1
    found = [mp.mpf(0)] * len(coefficients)
    for power, coefficient in enumerate(coefficients):
        product = [coefficient]
        for root in [-3] * power + [3] * (degree - power):
            product = multiplied(product, root)
        found = [a + b for a, b in zip(found, product)]
    return found


def multiplied(coefficients, root):
    """Times (x + root)."""
    return [root * a + b for a, b in zip([*coefficients, 0], [0, *coefficients])]


def central(r):
    """Φ⁻¹(½ + q) / q with r = 0.425² − q²."""
    q = mp.sqrt(mp.mpf("0.180625") - r)
    return quantile(mp.mpf(1) / 2 - q) / q if q > mp.mpf(10) ** -12 else mp.sqrt(2 * mp.pi)


def tail(t):
    """−Φ⁻¹(p) with t = √(−2 ln p)."""
    return quantile(mp.exp(-t * t / 2))


def show(name, coefficients, error):
    print(f"{name}: {mp.nstr(error, 3)}")
    for coefficient in coefficients:
        print(f"    {float(coefficient)!r},")


def main():
    half = mp.log(2) / 2 * mp.mpf("1.001")
    tiny = mp.mpf(10) ** -30
    show("exp", *polynomial(exp_fraction, lambda r: r * r / mp.exp(r) + tiny, -half, half, 9))
    show("exp f32", *polynomial(exp_fraction, lambda r: r * r / mp.exp(r) + tiny, -half, half, 4))
    numerator, denominator, error = rational(mills, mp.mpf("-1.25"), mp.mpf("0.99999"), 10, 10)  # From x = −⅓ on.
    below = multiplied(of_distance(denominator), 3)
    show("mills above", [a / below[-1] for a in of_distance(numerator)], error)
    show("mills below", [b / below[-1] for b in below], error)
    edge = mp.mpf("0.425")  # As in Wichura's algorithm AS 241.
    first = mp.sqrt(-2 * mp.log(mp.mpf("0.5") - edge)) * mp.mpf("0.9999")
    for name, function, a, b, above, below in [
        ("central", central, mp.mpf("-1e-5"), edge**2, 7, 7),
        ("tail", tail, first, mp.mpf("8.62"), 8, 7),
        ("far", tail, mp.mpf("8.5"), mp.mpf("38.7"), 7, 6),
        ("central f32", central, mp.mpf("-1e-5"), edge**2, 3, 3),
        ("tail f32", tail, first, mp.mpf("6.8"), 3, 2),
    ]:
        numerator, denominator, error = rational(function, a, b, above, below)
        show(f"{name} above", numerator, error)
        show(f"{name} below", denominator, error)
    log_factor = lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / z - 2 / z if z > 1e-20 else mp.mpf(2) / 3
    widest = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
    widest_quotient = ((mp.mpf("1.5011535") - 1) / (mp.mpf("1.5011535") + 1)) ** 2
    show("ln of a quotient", *polynomial(log_factor, lambda z: z / 2, mp.mpf("1e-12"), widest_quotient, 6))
    show("ln f32", *polynomial(log_factor, lambda z: z, mp.mpf("1e-12"), widest, 2))


if __name__ == "__main__":
    main()
