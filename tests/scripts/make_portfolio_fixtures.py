#!/usr/bin/env python3
"""Writes the fixtures that risk of portfolios and optimisation are compared with, computed without any of the project's code.

    python3 -m venv venv
    venv/bin/pip install -r tests/scripts/requirements.txt
    venv/bin/python tests/scripts/make_portfolio_fixtures.py

`--check` compares with the fixtures that are there, to 1e-11 of each number since the last digits are those of the processor's
linear algebra, and writes nothing. The tests that read them need no Python.
"""

import argparse
import gzip
import math
import random
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import QuantLib as ql
from scipy.optimize import minimize
from scipy.stats import norm

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ASSETS, POSITIONS, DAYS = 5, 30, 400
# Of each book: the whole, two books, three desks.
PARENTS = [-1, 0, 0, 1, 1, 2]
SPOT, FORWARD, CALL, PUT = range(4)
CONFIDENCES = [0.5, 0.9, 0.95, 0.975, 0.99, 0.997, 0.999]
LAMBDAS = [0.94, 0.97, 0.5]
NONE = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def unit(position, market, shock=NONE):
    """What a unit of a position is worth, and its delta."""
    _, _, _, instrument, strike, years = position
    spot, rate, dividend_yield, volatility = market
    factor, turn, vol, vol_slope, shift, shift_slope = shock
    spot *= factor + turn * years
    if instrument == SPOT:
        return spot, 1.0
    volatility += vol + vol_slope * years
    rate += shift + shift_slope * years
    carried, discount = math.exp(-dividend_yield * years), math.exp(-rate * years)
    if instrument == FORWARD:
        return spot * carried - strike * discount, carried
    kind = ql.Option.Call if instrument == CALL else ql.Option.Put
    forward = spot * carried / discount
    calculator = ql.BlackCalculator(ql.PlainVanillaPayoff(kind, strike), forward, volatility * math.sqrt(years), discount)
    return calculator.value(), calculator.delta(spot)


def shortfall(profits, confidence):
    """The least of Rockafellar and Uryasev's function (2000), which is piecewise linear: at one of the losses."""
    losses = -profits
    excess = np.maximum(losses[None, :] - losses[:, None], 0.0).mean(axis=1)
    return np.min(losses + excess / (1.0 - confidence))


def tail_weights(profits, confidence):
    """Of each scenario, its share of the worst, as slices of [0, 1 − confidence]."""
    order, n, p = np.argsort(profits, kind="stable"), len(profits), 1.0 - confidence
    weights = np.zeros(n)
    edges = np.minimum(np.arange(n + 1) / n, p)
    weights[order] = np.diff(edges) / p
    return weights


def within(book):
    """The book and those in it."""
    found = {book}
    for number, parent in enumerate(PARENTS):
        if parent in found:
            found.add(number)
    return found


def by_book(of_positions, positions):
    return np.stack(
        [sum(column for column, position in zip(of_positions, positions) if position[1] in within(book))
         for book in range(len(PARENTS))], axis=1)


def portfolio_rows():
    numbers = random.Random(8)
    markets = [(numbers.uniform(20, 400), numbers.uniform(-0.01, 0.06), numbers.uniform(0, 0.04), numbers.uniform(0.1, 0.6))
               for _ in range(ASSETS)]
    positions = []
    for number in range(POSITIONS):
        asset, book, instrument = numbers.randrange(ASSETS), numbers.randrange(len(PARENTS)), number % 4
        strike = 1.0 if instrument == SPOT else markets[asset][0] * numbers.uniform(0.7, 1.3)
        years = 0.0 if instrument == SPOT else numbers.uniform(0.02, 3.0)
        positions.append((asset, book, numbers.choice([-1, 1, 1]) * numbers.uniform(1, 500), instrument, strike, years))
    yield from (("asset", *market) for market in markets)
    yield from (("book", parent) for parent in PARENTS)
    yield from (("position", *position) for position in positions)

    generator = np.random.Generator(np.random.PCG64(9))
    mixing = generator.normal(size=(ASSETS, ASSETS)) * 0.4 + np.eye(ASSETS)
    returns = generator.standard_t(4, size=(DAYS, ASSETS)) @ mixing.T * 0.01 + 0.0003
    yield from (("returns", *row) for row in returns)

    def profits(shocks):
        """By position and scenario; `shocks` by scenario and asset."""
        now = [unit(position, markets[position[0]])[0] for position in positions]
        return [np.array([position[2] * (unit(position, markets[position[0]], shock[position[0]])[0] - base)
                          for shock in shocks]) for position, base in zip(positions, now)]

    history = profits([[(math.exp(value), *NONE[1:]) for value in row] for row in returns])
    books = by_book(history, positions)
    yield from (("profits", *row) for row in books)
    for book in range(len(PARENTS)):
        for confidence in CONFIDENCES:
            column = books[:, book]
            yield "measure", book, confidence, -np.quantile(column, 1.0 - confidence), shortfall(column, confidence)
    for confidence in CONFIDENCES:
        weights = tail_weights(books[:, 0], confidence)
        yield "components", confidence, *(-(weights @ column) for column in history)

    stresses = []
    for number in range(12):
        shock = (1 + numbers.uniform(-0.4, 0.4), 0.0, numbers.uniform(-0.05, 0.3), 0.0, numbers.uniform(-0.02, 0.03), 0.0)
        if number % 3 == 1:
            pivot, spot, volatility, rate = (numbers.uniform(0.5, 2), *(numbers.uniform(-0.02, 0.02) for _ in range(3)))
            shock = (1 - spot * pivot, spot, -volatility * pivot, volatility, -rate * pivot, rate)
        named = [shock if number % 3 < 2 or numbers.random() < 0.5 else NONE for _ in range(ASSETS)]
        stresses.append(named)
        yield "stress", *(value for shock in named for value in shock)
    yield from (("stress_profits", *row) for row in by_book(profits(stresses), positions))

    covariance = np.cov(returns, rowvar=False)
    yield "covariance", *covariance.flatten()
    yield "correlations", *np.corrcoef(returns, rowvar=False).flatten()
    for decay in LAMBDAS:
        weights = decay ** np.arange(DAYS - 1, -1, -1.0)
        yield "exponential", decay, *np.cov(returns, rowvar=False, aweights=weights, ddof=0).flatten(), *(
            np.average(returns, axis=0, weights=weights))
    yield "realised", *np.sqrt((returns**2).mean(axis=0) * 252)

    exposures = np.zeros((len(PARENTS), ASSETS))
    of_positions = [position[2] * unit(position, markets[position[0]])[1] * markets[position[0]][0] for position in positions]
    for book in range(len(PARENTS)):
        for position, exposure in zip(positions, of_positions):
            exposures[book, position[0]] += exposure if position[1] in within(book) else 0.0
        deviation = math.sqrt(exposures[book] @ covariance @ exposures[book])
        for confidence in CONFIDENCES:
            z = norm.ppf(confidence)
            yield "parametric", book, confidence, z * deviation, norm.expect(lambda x: x, lb=z) / (1 - confidence) * deviation
    # Components by the derivative itself: by 1 % more and less of each position.
    for position, exposure in zip(positions, of_positions):
        moved = []
        for share in (-0.01, 0.01):
            vector = exposures[0].copy()
            vector[position[0]] += share * exposure
            moved.append(norm.ppf(0.99) * math.sqrt(vector @ covariance @ vector))
        yield "parametric_component", (moved[1] - moved[0]) / 0.02


def optimum(gamma, covariance, means, lower, upper, budget, target):
    """By SLSQP, which names the bounds that hold; the rest is solved in 50 digits."""
    n = len(means)
    equal = [np.ones(n)] + ([] if target is None else [means])
    totals = [budget] + ([] if target is None else [target])
    linear = np.zeros(n) if target is not None else means
    found = minimize(
        lambda w: 0.5 * gamma * w @ covariance @ w - linear @ w,
        np.clip(np.full(n, budget / n), lower, upper),
        jac=lambda w: gamma * covariance @ w - linear,
        bounds=list(zip(lower, upper)),
        constraints=[{"type": "eq", "fun": lambda w, row=row, total=total: row @ w - total, "jac": lambda w, row=row: row}
                     for row, total in zip(equal, totals)],
        method="SLSQP", options={"ftol": 1e-16, "maxiter": 2000})
    w = found.x
    mp.mp.dps = 50
    held = {i: bound[i] for bound in (lower, upper) for i in range(n) if abs(w[i] - bound[i]) < 1e-6}
    free = [i for i in range(n) if i not in held]
    size = len(free) + len(equal)
    matrix, right = mp.zeros(size), mp.zeros(size, 1)
    for at, i in enumerate(free):
        for other, j in enumerate(free):
            matrix[at, other] = mp.mpf(gamma) * mp.mpf(covariance[i, j])
        right[at] = mp.mpf(linear[i]) - mp.mpf(gamma) * mp.fsum(mp.mpf(covariance[i, j]) * mp.mpf(x) for j, x in held.items())
        for row, coefficients in enumerate(equal):
            matrix[at, len(free) + row] = matrix[len(free) + row, at] = mp.mpf(coefficients[i])
    for row, (coefficients, total) in enumerate(zip(equal, totals)):
        right[len(free) + row] = mp.mpf(total) - mp.fsum(mp.mpf(coefficients[j]) * mp.mpf(x) for j, x in held.items())
    solution = mp.lu_solve(matrix, right)
    for at, i in enumerate(free):
        w[i] = float(solution[at])
        assert lower[i] < w[i] < upper[i]
    for i, x in held.items():
        w[i] = x
        slope = gamma * covariance[i] @ w - linear[i] + sum(float(solution[len(free) + r]) * c[i] for r, c in enumerate(equal))
        assert slope > 1e-9 if x == lower[i] else slope < -1e-9, "the bounds that hold are those"
    return w


def optimisation_rows():
    """n, gamma, budget, target or nan; means, lower and upper bounds, covariance; weights."""
    generator = np.random.Generator(np.random.PCG64(10))
    made = 0
    while made < 40:
        n = int(generator.integers(2, 13))
        mixing = generator.normal(size=(n, n))
        covariance = (mixing @ mixing.T / n + 0.2 * np.eye(n)) * 0.04
        covariance = (covariance + covariance.T) / 2
        means, gamma = generator.normal(size=n) * 0.08, float(10 ** generator.uniform(-0.5, 1.5))
        lower, upper = (np.zeros(n), np.ones(n)) if made % 2 else (-generator.uniform(0.1, 0.5, n), generator.uniform(0.3, 1.2, n))
        budget = 0.0 if made % 4 == 2 else 1.0
        if not lower.sum() < budget < upper.sum():
            continue
        try:
            w = optimum(gamma, covariance, means, lower, upper, budget, None)
            target = None
            if made % 3 == 2:
                target = float(means @ w) * 0.5
                w = optimum(1.0, covariance, means, lower, upper, budget, target)
        except (AssertionError, ZeroDivisionError):
            continue
        gamma = gamma if target is None else 1.0
        yield n, gamma, budget, math.nan if target is None else target, *means, *lower, *upper, *covariance.flatten(), *w
        made += 1


def text(rows):
    field = lambda value: value if isinstance(value, str) else repr(int(value) if isinstance(value, (int, np.integer)) else float(value))
    return "".join(",".join(map(field, row)) + "\n" for row in rows)


def agree(one, other):
    fields = [[field for line in text.splitlines() for field in line.split(",")] for text in (one, other)]
    number = lambda field: float(field) if not field.isidentifier() or field == "nan" else None
    near = lambda a, b: a == b or (None not in (number(a), number(b)) and math.isclose(number(a), number(b), rel_tol=1e-11, abs_tol=1e-14))
    return len(fields[0]) == len(fields[1]) and all(map(near, *fields))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    check = arguments.parse_args().check
    for name, rows in FILES.items():
        path, content = FIXTURES / f"{name}.csv.gz", text(rows())
        if not check:
            path.write_bytes(gzip.compress(content.encode(), 9, mtime=0))
        elif not agree(gzip.decompress(path.read_bytes()).decode(), content):
            sys.exit(f"{path} differs")


FILES = {"portfolio": portfolio_rows, "optimisation": optimisation_rows}

if __name__ == "__main__":
    main()
