#!/usr/bin/env python3
"""Writes the fixtures that mathematics and pricing are compared with, computed without any of the project's code.

    python3 -m venv venv
    venv/bin/pip install -r tests/scripts/requirements.txt
    venv/bin/python tests/scripts/make_risk_fixtures.py

The same versions give the same bytes. `--check` compares with the fixtures that are there and writes nothing. The tests that
read them need no Python.
"""

import argparse
import functools
import gzip
import math
import random
import sys
from pathlib import Path

import mpmath as mp
import numpy
import QuantLib as ql
import scipy.stats
from scipy.interpolate import CubicSpline
from scipy.signal import fftconvolve
from scipy.special import ndtr

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
MATH_POINTS = 1500
BLACK_SCHOLES_POINTS = 600
HOUR_POINTS = 60
EXPIRY_POINTS = 600


def two_parts(x):
    """The nearest double, and the nearest to the rest."""
    high = float(x)
    return high, float(x - mp.mpf(high))


def quantile(p):
    """Φ⁻¹(p), for p as it is, in 50 digits."""
    below = min(p, 1 - p)
    x = mp.sqrt(-2 * mp.log(below)) if below < 1e-3 else mp.mpf(1)
    for _ in range(100):
        found = mp.ncdf(-x)
        step = (mp.log(found) - mp.log(below)) * found / mp.npdf(x)
        x += step
        if abs(step) < mp.mpf(10) ** -45:
            break
    return -x if p < 0.5 else x


def math_rows():
    """Function, argument, and its exact value in two parts."""
    mp.mp.dps = 50
    numbers = random.Random(6)
    yield "function", "x", "high", "low"
    for _ in range(MATH_POINTS):
        x = numbers.choice([numbers.uniform(-708, 709), numbers.uniform(-3, 3), numbers.uniform(-1, 1) ** 9])
        yield "exp", repr(x), *map(repr, two_parts(mp.exp(mp.mpf(x))))
    for _ in range(MATH_POINTS):
        x = numbers.choice([numbers.uniform(-37.5, 8.5), numbers.uniform(-3, 3), numbers.uniform(-1, 1) ** 9])
        yield "normal_cdf", repr(x), *map(repr, two_parts(mp.ncdf(mp.mpf(x))))
    for _ in range(MATH_POINTS):
        p = numbers.choice(
            [numbers.random(), 10 ** numbers.uniform(-307, -1), 10 ** numbers.uniform(-18, -1), 0.5 + numbers.uniform(-1, 1) ** 9 / 2]
        )
        if 0 < p < 1 and p != 0.5:
            yield "inverse_normal_cdf", repr(p), *map(repr, two_parts(quantile(mp.mpf(p))))


YEAR = ql.Actual365Fixed()
TODAY = ql.Date(1, ql.January, 2026)
QUANTLIB_GREEKS = ["NPV", "delta", "gamma", "vega", "theta", "rho"]


def process(spot, rate, dividend_yield, volatility):
    curve = lambda value: ql.YieldTermStructureHandle(ql.FlatForward(TODAY, value, YEAR))
    black = ql.BlackVolTermStructureHandle(ql.BlackConstantVol(TODAY, ql.NullCalendar(), volatility, YEAR))
    return ql.BlackScholesMertonProcess(
        ql.QuoteHandle(ql.SimpleQuote(spot)), curve(dividend_yield), curve(rate), black
    )


def exact_greeks(sign, spot, strike, rate, carry, volatility, years):
    """Price, delta, gamma, vega, theta, rho, vanna, volga in 50 digits, of the doubles as they are."""
    w, S, K, r, q, v, T = map(mp.mpf, (sign, spot, strike, rate, carry, volatility, years))
    root = mp.sqrt(T)
    d1 = (mp.log(S / K) + (r - q + v * v / 2) * T) / (v * root)
    d2 = d1 - v * root
    asset, cash = S * mp.exp(-q * T) * mp.ncdf(w * d1), K * mp.exp(-r * T) * mp.ncdf(w * d2)
    dense = mp.exp(-q * T) * mp.npdf(d1)
    vega = S * dense * root
    return [
        w * (asset - cash),
        w * asset / S,
        dense / (S * v * root),
        vega,
        w * (q * asset - r * cash) - S * dense * v / (2 * root),
        w * T * cash,
        -dense * d2 / v,
        vega * d1 * d2 / v,
    ]


def black_scholes_rows():
    """An option, QuantLib's price and five Greeks, and the exact price and seven Greeks."""
    mp.mp.dps = 50
    numbers = random.Random(7)
    ql.Settings.instance().evaluationDate = TODAY
    yield (
        *("sign", "spot", "strike", "rate", "dividend_yield", "volatility", "expiry_years"),
        *(f"quantlib_{name}" for name in QUANTLIB_GREEKS),
        *("price", "delta", "gamma", "vega", "theta", "rho", "vanna", "volga"),
    )
    for number in range(BLACK_SCHOLES_POINTS):
        days = numbers.choice([7, 30, 91, 182, 365, 730, 1825])
        spot, volatility = numbers.uniform(50, 200), numbers.uniform(0.05, 0.9)
        deviations = numbers.uniform(-3, 3) if number % 4 else numbers.uniform(-8, 8)
        strike = spot * float(mp.exp(mp.mpf(deviations * volatility * (days / 365) ** 0.5)))
        rate, carry = numbers.uniform(-0.02, 0.1), numbers.uniform(0, 0.06)
        sign = numbers.choice([1, -1])
        payoff = ql.PlainVanillaPayoff(ql.Option.Call if sign == 1 else ql.Option.Put, strike)
        option = ql.VanillaOption(payoff, ql.EuropeanExercise(TODAY + days))
        option.setPricingEngine(ql.AnalyticEuropeanEngine(process(spot, rate, carry, volatility)))
        years = YEAR.yearFraction(TODAY, TODAY + days)
        given = [sign, spot, strike, rate, carry, volatility, years]
        found = [getattr(option, name)() for name in QUANTLIB_GREEKS]
        exact = [float(value) for value in exact_greeks(*given)]
        yield tuple(map(repr, [*given, *found, *exact]))
    for _ in range(HOUR_POINTS):
        years = 1 / (365 * 24)
        spot, volatility = numbers.uniform(50, 200), numbers.uniform(0.05, 0.9)
        strike = spot * float(mp.exp(mp.mpf(numbers.uniform(-3, 3) * volatility * years**0.5)))
        rate, carry = numbers.uniform(-0.02, 0.1), numbers.uniform(0, 0.06)
        yield calculated(numbers.choice([1, -1]), spot, strike, rate, carry, volatility, years)
    for number in range(EXPIRY_POINTS):
        years = math.exp(numbers.uniform(math.log(1 / (365 * 24)), math.log(30)))
        spot, volatility = numbers.uniform(50, 200), numbers.uniform(0.05, 0.9)
        deviations = numbers.uniform(3, 4) * numbers.choice([1, -1]) if number % 3 else numbers.uniform(-0.5, 0.5)
        strike = spot * float(mp.exp(mp.mpf(deviations * volatility * years**0.5)))
        rate, carry = numbers.uniform(-0.02, 0.1), numbers.uniform(0, 0.06)
        yield calculated(numbers.choice([1, -1]), spot, strike, rate, carry, volatility, years)


def calculated(sign, spot, strike, rate, carry, volatility, years):
    """A row of an option that expires at any time of a day."""
    payoff = ql.PlainVanillaPayoff(ql.Option.Call if sign == 1 else ql.Option.Put, strike)
    forward, discount = spot * math.exp((rate - carry) * years), math.exp(-rate * years)
    option = ql.BlackCalculator(payoff, forward, volatility * years**0.5, discount)
    given = [sign, spot, strike, rate, carry, volatility, years]
    found = [option.value(), option.delta(spot), option.gamma(spot)]
    found += [option.vega(years), option.theta(spot, years), option.rho(years)]
    return tuple(map(repr, [*given, *found, *(float(value) for value in exact_greeks(*given))]))


@functools.cache
def asian_density(steps, rate, carry, volatility, years):
    """Grid and density of the logarithm of the sum of discrete prices over the spot, which is convolved step by step from the last
    one back (Carverhill and Clewlow 1990); QuantLib has no engine that is as exact."""
    step = years / steps
    mean, deviation = (rate - carry - volatility**2 / 2) * step, volatility * step**0.5
    h = deviation / 40
    grid = numpy.arange(-8 * volatility * years**0.5 - 2, numpy.log(steps) + 8 * volatility * years**0.5 + 1, h)
    reach = numpy.arange(-600, 601) * h
    normal = numpy.exp(-0.5 * (reach / deviation) ** 2) / (deviation * (2 * numpy.pi) ** 0.5)
    density = numpy.exp(-0.5 * ((grid - mean) / deviation) ** 2) / (deviation * (2 * numpy.pi) ** 0.5)
    for _ in range(steps - 1):
        # Of Z = ln(1 + exp Y), then of Z + R: the shift by the mean is one of the grid's argument.
        z = grid - mean
        y = numpy.log(numpy.expm1(numpy.where(z > 1e-9, z, 1.0)))
        inside = (z > 1e-9) & (y > grid[0]) & (y < grid[-1])
        shifted = numpy.where(inside, CubicSpline(grid, density)(y) / -numpy.expm1(-numpy.where(z > 1e-9, z, 1.0)), 0.0)
        density = fftconvolve(shifted, normal, mode="same") * h
    # A grid so fine that the kink of the payoff does not matter.
    fine = numpy.linspace(grid[0], grid[-1], 4_000_001)
    return fine, CubicSpline(grid, density)(fine)


def asian_price(sign, strike, steps, spot, rate, carry, volatility, years):
    """Of the arithmetic mean of discrete prices."""
    grid, density = asian_density(steps, rate, carry, volatility, years)
    payoff = numpy.maximum(sign * (spot * numpy.exp(grid) / steps - strike), 0.0)
    return float(numpy.exp(-rate * years) * numpy.trapezoid(payoff * density, grid))


def checked_asian_price(option, model, *given):
    """The price, and QuantLib's by simulation is near."""
    price = asian_price(*given)
    option.setPricingEngine(
        ql.MCDiscreteArithmeticAPEngine(model, "PseudoRandom", controlVariate=True, requiredSamples=50_000, seed=3)
    )
    assert abs(option.NPV() - price) < 3.5 * option.errorEstimate(), (option.NPV(), price)
    return price


def simulation_rows():
    """A contract on one asset and its price in closed form, or, of an Asian option, by convolution."""
    ql.Settings.instance().evaluationDate = TODAY
    yield "contract", "sign", "strike", "barrier", "steps", "spot", "rate", "dividend_yield", "volatility", "expiry_years", "price"
    spot, steps = 100.0, 24
    days = 15 * steps
    years = YEAR.yearFraction(TODAY, TODAY + days)
    exercise = ql.EuropeanExercise(TODAY + days)
    for rate, carry, volatility in [(0.05, 0.02, 0.25), (0.01, 0.03, 0.45)]:
        model = process(spot, rate, carry, volatility)
        for sign, kind in [(1, ql.Option.Call), (-1, ql.Option.Put)]:
            for strike in (90.0, 100.0, 115.0):
                payoff = ql.PlainVanillaPayoff(kind, strike)
                given = [rate, carry, volatility, years]

                def row(contract, option, engine, barrier=0.0, number=1):
                    option.setPricingEngine(engine)
                    return line(contract, barrier, number, option.NPV())

                def line(contract, barrier, number, price):
                    return tuple(map(repr, [contract, sign, strike, barrier, number, spot, *given, price]))

                yield row(0, ql.VanillaOption(payoff, exercise), ql.AnalyticEuropeanEngine(model))
                fixings = [TODAY + 15 * number for number in range(1, steps + 1)]
                asian = ql.DiscreteAveragingAsianOption(ql.Average.Arithmetic, fixings, payoff, exercise)
                terms = sign, strike, steps, spot, rate, carry, volatility, years
                yield line(1, 0.0, steps, checked_asian_price(asian, model, *terms))
                for contract, (barrier_kind, barrier) in enumerate(
                    [
                        (ql.Barrier.UpOut, 130.0),
                        (ql.Barrier.UpIn, 130.0),
                        (ql.Barrier.DownOut, 80.0),
                        (ql.Barrier.DownIn, 80.0),
                    ]
                ):
                    option = ql.BarrierOption(barrier_kind, barrier, 0.0, payoff, exercise)
                    yield row(2 + contract, option, ql.AnalyticBarrierEngine(model), barrier, 7)
                option = ql.ContinuousFixedLookbackOption(spot, payoff, exercise)
                yield row(6, option, ql.AnalyticContinuousFixedLookbackEngine(model), 0.0, 3)
            option = ql.ContinuousFloatingLookbackOption(spot, ql.FloatingTypePayoff(kind), exercise)
            yield row(7, option, ql.AnalyticContinuousFloatingLookbackEngine(model), 0.0, 3)


def priced(row):
    """The price of a row of `simulation_rows` as a function of spot, rate, dividend yield and volatility."""
    contract, sign, strike, barrier, steps, *_, years, _ = row
    exercise = ql.EuropeanExercise(TODAY + round(365 * years))
    kind = ql.Option.Call if sign == 1 else ql.Option.Put
    payoff = ql.PlainVanillaPayoff(kind, strike)
    barriers = [ql.Barrier.UpOut, ql.Barrier.UpIn, ql.Barrier.DownOut, ql.Barrier.DownIn]

    def price(spot, rate, carry, volatility):
        if contract == 1:
            return asian_price(sign, strike, int(steps), spot, rate, carry, volatility, years)
        if contract == 0:
            option, engine = ql.VanillaOption(payoff, exercise), ql.AnalyticEuropeanEngine
        elif contract < 6:
            option = ql.BarrierOption(barriers[int(contract) - 2], barrier, 0.0, payoff, exercise)
            engine = ql.AnalyticBarrierEngine
        elif contract == 6:
            option = ql.ContinuousFixedLookbackOption(spot, payoff, exercise)
            engine = ql.AnalyticContinuousFixedLookbackEngine
        else:
            option = ql.ContinuousFloatingLookbackOption(spot, ql.FloatingTypePayoff(kind), exercise)
            engine = ql.AnalyticContinuousFloatingLookbackEngine
        option.setPricingEngine(engine(process(spot, rate, carry, volatility)))
        return option.NPV()

    return price


def greek_rows():
    """The rows of `simulation_rows` with Greeks by differences of the fourth order. Prices depend on rate, dividend yield and
    variance by their products with time, so theta follows from the derivatives by these. A lookback option whose strike is the spot
    has no gamma: its delta has a kink there."""
    rows = simulation_rows()
    yield (*next(rows), "delta", "gamma", "vega", "theta", "rho")
    for text in rows:
        row = [float(number) for number in text]
        spot, rate, carry, volatility, years = given = row[5:10]
        if row[0] == 6 and row[2] == spot:
            continue
        price = priced(row)

        def moved(argument, by):
            arguments = list(given[:4])
            arguments[argument] += by
            return price(*arguments)

        def derivative(argument, h):
            one, two = (moved(argument, k * h) - moved(argument, -k * h) for k in (1, 2))
            return (8 * one - two) / (12 * h)

        h = 0.005 * spot
        one, two = (moved(0, k * h) + moved(0, -k * h) - 2 * row[10] for k in (1, 2))
        gamma = (16 * one - two) / (12 * h * h)
        by_rate, by_carry, vega = (derivative(argument, 0.002) for argument in (1, 2, 3))
        theta = -(rate * by_rate + carry * by_carry + 0.5 * volatility * vega) / years
        yield tuple(map(repr, [*row, derivative(0, h), gamma, vega, theta, by_rate]))


def basket_price(sign, strike, rate, years, assets, correlations):
    """Of three assets: given the normal numbers of two, the third is lognormal and the rest in closed form; over the two, the
    trapezoid rule, which for smooth functions of this kind errs less than any power of its step."""
    factors = numpy.linalg.cholesky(correlations)
    grid = numpy.linspace(-9, 9, 1201)
    density = numpy.exp(-0.5 * grid**2) / (2 * numpy.pi) ** 0.5 * (grid[1] - grid[0])
    first, second = numpy.meshgrid(grid, grid, indexing="ij")
    forwards, deviations = zip(
        *((spot * weight * numpy.exp((rate - carry) * years), volatility * years**0.5) for spot, carry, volatility, weight in assets)
    )

    def moved(asset):
        mean = deviations[asset] * (factors[asset, 0] * first + (factors[asset, 1] * second if asset else 0.0))
        return forwards[asset] * numpy.exp(mean - deviations[asset] ** 2 / 2)

    deviation = deviations[2] * factors[2, 2]
    forward = moved(2) * numpy.exp(deviation**2 / 2)
    # An asset that is sold: the other kind of option on its opposite.
    side = numpy.sign(assets[2][3])
    forward, left, w = side * forward, side * (strike - moved(0) - moved(1)), sign * side
    log = numpy.log(forward / numpy.where(left > 0, left, 1.0)) / deviation
    option = w * (forward * ndtr(w * (log + deviation / 2)) - left * ndtr(w * (log - deviation / 2)))
    paid = numpy.where(left > 0, option, numpy.maximum(w * (forward - left), 0.0))
    return float(numpy.exp(-rate * years) * (density @ paid @ density))


def quantlib_basket(sign, strike, rate, days, assets, correlations):
    """By simulation, and its standard error."""
    processes = [process(spot, rate, carry, volatility) for spot, carry, volatility, _ in assets]
    payoff = ql.PlainVanillaPayoff(ql.Option.Call if sign == 1 else ql.Option.Put, strike)
    weights = ql.Array([weight for *_, weight in assets])
    option = ql.BasketOption(ql.AverageBasketPayoff(payoff, weights), ql.EuropeanExercise(TODAY + days))
    matrix = ql.Matrix([list(map(float, row)) for row in correlations])
    array = ql.StochasticProcessArray(processes, matrix)
    option.setPricingEngine(ql.MCEuropeanBasketEngine(array, "PseudoRandom", timeSteps=1, requiredSamples=100_000, seed=5))
    return option.NPV(), option.errorEstimate()


def basket_greeks(sign, strike, rate, years, assets, correlations):
    """Price; deltas, gammas and vegas by asset; theta and rho: by differences of the fourth order. Theta follows from the derivatives by
    rate, yields and variances, as in `greek_rows`."""

    def price(asset=None, argument=0, by=0.0, by_rate=0.0):
        moved = [list(numbers) for numbers in assets]
        if asset is not None:
            moved[asset][argument] += by
        return basket_price(sign, strike, rate + by_rate, years, moved, correlations)

    def of(moved, h):
        """The first and the second derivative."""
        two_below, below, above, two_above = (moved(k * h) for k in (-2, -1, 1, 2))
        first = (two_below - 8 * below + 8 * above - two_above) / (12 * h)
        return first, (-two_below + 16 * below - 30 * middle + 16 * above - two_above) / (12 * h * h)

    middle = price()
    deltas, gammas = zip(*(of(lambda by: price(k, 0, by), 0.01 * spot) for k, (spot, *_) in enumerate(assets)))
    by_carry, vegas = ([of(lambda by: price(k, argument, by), 0.004)[0] for k in range(3)] for argument in (1, 2))
    rho = of(lambda by: price(by_rate=by), 0.004)[0]
    products = sum(
        carry * by + 0.5 * volatility * vega for (_, carry, volatility, _), by, vega in zip(assets, by_carry, vegas)
    )
    theta = -(rate * rho + products) / years
    return [middle, *deltas, *gammas, *vegas, theta, rho]


def checked_basket_greeks(sign, strike, rate, days, assets, correlations):
    """Years, price and Greeks: QuantLib's price by simulation is near, and so is the delta of its first asset."""
    years = YEAR.yearFraction(TODAY, TODAY + days)
    found = basket_greeks(sign, strike, rate, years, assets, correlations)
    price, error = quantlib_basket(sign, strike, rate, days, assets, correlations)
    assert abs(price - found[0]) < 3.5 * error, (price, found[0])
    (spot, *rest), h = assets[0], 0.01 * assets[0][0]
    # Of the same random numbers.
    moved = [
        quantlib_basket(sign, strike, rate, days, [(spot + by, *rest), *assets[1:]], correlations)[0] for by in (h, -h)
    ]
    assert abs((moved[0] - moved[1]) / (2 * h) - found[1]) < 0.01 * abs(assets[0][3]), (moved, found[1])
    return years, found


def basket_rows():
    """Sign, strike, rate, years, three assets, their three correlations, the price and the Greeks."""
    ql.Settings.instance().evaluationDate = TODAY
    names = ["spot", "dividend_yield", "volatility", "weight"]
    yield (
        *("sign", "strike", "rate", "expiry_years", *(f"{name}_{asset}" for asset in range(3) for name in names)),
        *("correlation_01", "correlation_02", "correlation_12", "price"),
        *(f"{name}_{asset}" for name in ("delta", "gamma", "vega") for asset in range(3)),
        *("theta", "rho"),
    )
    for days, rate, assets, (a, b, c), strikes in [
        (365, 0.04, [(100.0, 0.01, 0.2, 0.5), (80.0, 0.02, 0.3, 0.3), (120.0, 0.0, 0.25, 0.4)], (0.5, 0.3, -0.2), (100, 122, 140)),
        (180, 0.01, [(50.0, 0.0, 0.4, 1.0), (60.0, 0.03, 0.35, 0.0), (45.0, 0.02, 0.3, -1.0)], (0.1, 0.7, 0.2), (1, 5, 12)),
        (730, 0.03, [(10.0, 0.0, 0.5, 3.0), (20.0, 0.0, 0.6, 2.0), (30.0, 0.05, 0.1, -1.0)], (-0.6, 0.8, -0.5), (20, 40, 60)),
    ]:
        correlations = numpy.array([[1.0, a, b], [a, 1.0, c], [b, c, 1.0]])
        for sign in (1, -1):
            for strike in map(float, strikes):
                years, found = checked_basket_greeks(sign, strike, rate, days, assets, correlations)
                yield tuple(map(repr, [sign, strike, rate, years, *sum(assets, ()), a, b, c, *found]))


# Longstaff and Schwartz (2001), table 1: puts of strike 40 at a rate of 6 %, exercisable fifty times a year. Spot, volatility, years, the
# price by finite differences and by simulation, its standard error.
PUBLISHED_AMERICAN = [
    (36, 0.2, 1, 4.478, 4.472, 0.010), (36, 0.2, 2, 4.840, 4.821, 0.012),
    (36, 0.4, 1, 7.101, 7.091, 0.020), (36, 0.4, 2, 8.508, 8.488, 0.024),
    (38, 0.2, 1, 3.250, 3.244, 0.009), (38, 0.2, 2, 3.745, 3.735, 0.011),
    (38, 0.4, 1, 6.148, 6.139, 0.019), (38, 0.4, 2, 7.670, 7.669, 0.022),
    (40, 0.2, 1, 2.314, 2.313, 0.009), (40, 0.2, 2, 2.885, 2.879, 0.010),
    (40, 0.4, 1, 5.312, 5.308, 0.018), (40, 0.4, 2, 6.920, 6.921, 0.022),
    (42, 0.2, 1, 1.617, 1.617, 0.007), (42, 0.2, 2, 2.212, 2.206, 0.010),
    (42, 0.4, 1, 4.582, 4.588, 0.017), (42, 0.4, 2, 6.248, 6.243, 0.021),
    (44, 0.2, 1, 1.110, 1.118, 0.007), (44, 0.2, 2, 1.690, 1.675, 0.009),
    (44, 0.4, 1, 3.948, 3.957, 0.017), (44, 0.4, 2, 5.647, 5.622, 0.021),
]  # fmt: skip


def bermudan_values(sign, spot, strike, rate, carry, volatility, years, exercises):
    """Step of a grid of ln S, and what the option is worth around the spot: exercised now, and later. By convolution of values with the
    density from date to date; the trapezoid rule errs by the square of the grid where a value has a kink."""
    step = years / exercises
    mean, deviation = (rate - carry - volatility**2 / 2) * step, volatility * step**0.5
    h = deviation / 100
    reach = numpy.arange(-1000, 1001) * h
    normal = numpy.exp(-0.5 * ((reach + mean) / deviation) ** 2) / (deviation * (2 * numpy.pi) ** 0.5) * h
    half = int(numpy.ceil((8 * volatility * years**0.5 + abs(mean) * exercises) / h))
    grid = numpy.arange(-half, half + 1) * h
    pays = numpy.maximum(sign * (spot * numpy.exp(grid) - strike), 0.0)
    values = pays
    for _ in range(exercises):
        # Far out, where the convolution sees an end of the grid, nothing matters.
        later = numpy.exp(-rate * step) * fftconvolve(values, normal, mode="same")
        values = numpy.maximum(pays, later)
    # Far enough apart for derivatives, and near for a step's deviation.
    nodes = half + 20 * numpy.arange(-2, 3)
    return 20 * h, pays[nodes], later[nodes]


def bermudan_greeks(sign, spot, strike, rate, carry, volatility, years, exercises):
    """Price, delta, gamma, vega, theta and rho: by differences of the fourth order."""
    h, now, later = bermudan_values(sign, spot, strike, rate, carry, volatility, years, exercises)
    if now[2] >= later[2]:
        return [float(now[2]), sign, 0.0, 0.0, 0.0, 0.0]

    def later_of(argument, by):
        arguments = [rate, carry, volatility]
        arguments[argument] += by
        return bermudan_values(sign, spot, strike, *arguments, years, exercises)[2][2]

    def derivative(argument, h=0.002):
        one, two = (later_of(argument, k * h) - later_of(argument, -k * h) for k in (1, 2))
        return (8 * one - two) / (12 * h)

    first = (later[0] - 8 * later[1] + 8 * later[3] - later[4]) / (12 * h)
    second = (-later[0] + 16 * later[1] - 30 * later[2] + 16 * later[3] - later[4]) / (12 * h * h)
    by_rate, by_carry, vega = (derivative(argument) for argument in range(3))
    theta = -(rate * by_rate + carry * by_carry + 0.5 * volatility * vega) / years
    found = [later[2], first / spot, (second - first) / spot**2, vega, theta, by_rate]
    return [float(value) for value in found]


def quantlib_american(sign, spot, strike, rate, carry, volatility, years):
    payoff = ql.PlainVanillaPayoff(ql.Option.Call if sign == 1 else ql.Option.Put, strike)
    option = ql.VanillaOption(payoff, ql.AmericanExercise(TODAY, TODAY + round(365 * years)))
    option.setPricingEngine(ql.FdBlackScholesVanillaEngine(process(spot, rate, carry, volatility), 2000, 1000))
    return option.NPV(), option.delta(), option.gamma(), option.theta()


def american_rows():
    """An option, its price if it can be exercised on some dates and now, QuantLib's if it can be at any time, what Longstaff
    and Schwartz have (0 where they have nothing), and the Greeks of the price."""
    ql.Settings.instance().evaluationDate = TODAY
    yield (
        *("sign", "spot", "strike", "rate", "dividend_yield", "volatility", "expiry_years", "exercises"),
        *("price", "quantlib", "finite_differences", "simulation", "simulation_error"),
        *("delta", "gamma", "vega", "theta", "rho"),
    )
    puts = [
        ((-1, float(spot), 40.0, 0.06, 0.0, volatility, float(years), 50 * years), published)
        for spot, volatility, years, *published in PUBLISHED_AMERICAN
    ]
    calls = [
        ((1, spot, 100.0, 0.03, 0.08, 0.25, 1.0, exercises), [0.0] * 3)
        for spot in (90.0, 105.0, 120.0)
        for exercises in (4, 12)
    ]
    for given, published in puts + calls:
        price, delta, gamma, vega, theta, rho = bermudan_greeks(*given)
        quantlib, *greeks = quantlib_american(*given[:-1])
        # The right to exercise at any time is worth more; the published prices are those of fifty dates a year, to 0.15 %.
        assert price < quantlib + 2e-4, (given, price, quantlib)
        assert not published[0] or abs(price / published[0] - 1) < 1.5e-3, (given, price, published)
        if published[0]:
            assert abs(delta - greeks[0]) < 0.01 and abs(gamma / greeks[1] - 1) < 0.05, (given, delta, gamma, greeks)
            assert abs(theta - greeks[2]) < 0.05, (given, theta, greeks)
        yield tuple(map(repr, [*given, price, quantlib, *published, delta, gamma, vega, theta, rho]))


def most_exact_american(sign, spot, strike, rate, carry, volatility, days):
    """QuantLib's price by the boundary of Andersen, Lake and Offengenden, with far more nodes than its own schemes have: those are off
    by up to 1e-5 where the spot is near the boundary."""
    payoff = ql.PlainVanillaPayoff(ql.Option.Call if sign == 1 else ql.Option.Put, strike)
    option = ql.VanillaOption(payoff, ql.AmericanExercise(TODAY, TODAY + days))
    scheme = ql.QdFpTanhSinhIterationScheme(24, 32, 1e-10)
    option.setPricingEngine(ql.QdFpAmericanEngine(process(spot, rate, carry, volatility), scheme))
    return option.NPV()


# Expiries of a day and of thirty years, little and much volatility, rates of nothing, equal or nearly so, with and against each other,
# and spots far from the strike.
NASTY_AMERICAN = [
    (100.0, 1.0, 0.05, 0.02, 0.2, 1), (100.0, 1.0, 0.05, 0.02, 0.2, 10950), (100.0, 0.99, 0.03, 0.01, 0.02, 365),
    (100.0, 1.01, 0.06, 0.0, 0.02, 1825), (100.0, 1.0, 0.05, 0.02, 2.5, 365), (100.0, 1.1, 0.0, -0.03, 0.25, 730),
    (100.0, 1.1, 0.04, 0.0, 0.25, 730), (100.0, 0.9, 0.05, 0.05, 0.3, 365), (100.0, 1.0, 0.05, 0.0501, 0.3, 365),
    (100.0, 1.0, 0.0501, 0.05, 0.3, 365), (100.0, 1.0, 1e-5, 0.04, 0.3, 365), (100.0, 1.0, 0.04, 1e-5, 0.3, 365),
    (100.0, 1.0, -0.01, 0.02, 0.2, 365), (100.0, 1.0, 0.02, -0.01, 0.2, 365), (100.0, 1.0, -0.02, -0.01, 0.2, 365),
    (100.0, 0.3, 0.05, 0.02, 0.2, 365), (100.0, 3.0, 0.05, 0.02, 0.2, 365), (100.0, 0.5, 0.08, 0.03, 0.6, 3650),
    (100.0, 2.0, 0.03, 0.08, 0.6, 3650), (100.0, 1.0, 0.15, 0.01, 0.1, 1825), (100.0, 1.0, 0.01, 0.15, 0.1, 1825),
    (0.01, 1.0, 0.05, 0.02, 0.4, 90), (5e4, 1.0, 0.05, 0.02, 0.6, 90), (100.0, 1.0, 0.03, 0.0, 0.2, 365),
]  # fmt: skip
EARLY_EXERCISE_POINTS = 2000
EARLY_EXERCISE_GREEKS = 150


def early_exercise_given():
    """Sign, spot, strike, rate, dividend yield, volatility, days: nasty ones, then random ones. With two boundaries there are none."""
    numbers = random.Random(19)
    for spot, moneyness, rate, carry, volatility, days in NASTY_AMERICAN:
        for sign in (1, -1):
            yield sign, spot, spot * moneyness, rate, carry, volatility, days
    for _ in range(EARLY_EXERCISE_POINTS):
        days = numbers.choice([7, 30, 91, 182, 365, 730, 1825])
        volatility, spot = numbers.uniform(0.05, 0.9), 100.0
        # The same whatever the library of the machine rounds.
        strike = round(spot * math.exp(numbers.uniform(-2.5, 2.5) * volatility * (days / 365) ** 0.5), 6)
        rate, carry = round(numbers.uniform(-0.02, 0.1), 6), round(numbers.uniform(-0.02, 0.1), 6)
        yield numbers.choice([1, -1]), spot, strike, rate, carry, round(volatility, 6), days


def early_exercise_greeks(sign, spot, strike, rate, carry, volatility, days, price):
    """Delta, gamma, vega, theta and rho of QuantLib's price by differences of the fourth order, or nothing where one of the options that
    they take is one to exercise now, since there are kinks at the boundary."""
    years = days / 365
    steps = [0.002 * spot * min(1.0, volatility * years**0.5 * 5), None, 1e-4, 1e-4, 1e-3 * volatility]
    is_smooth = True

    def moved(argument):
        """Prices with an argument moved by -2, -1, 1 and 2 steps."""
        nonlocal is_smooth
        for k in (-2, -1, 1, 2):
            arguments = [spot, strike, rate, carry, volatility]
            arguments[argument] += k * steps[argument]
            value = most_exact_american(sign, *arguments, days)
            is_smooth = is_smooth and value > sign * (arguments[0] - strike) * (1 + 1e-12)
            yield value

    def derivatives(argument):
        h, (two_below, below, above, two_above) = steps[argument], moved(argument)
        first = (two_below - 8 * below + 8 * above - two_above) / (12 * h)
        return first, (-two_below + 16 * below - 30 * price + 16 * above - two_above) / (12 * h * h)

    (delta, gamma), (by_rate, _), (by_carry, _), (vega, _) = (derivatives(argument) for argument in (0, 2, 3, 4))
    theta = -(rate * by_rate + carry * by_carry + 0.5 * volatility * vega) / years
    return [delta, gamma, vega, theta, by_rate] if is_smooth else [math.nan] * 5


def early_exercise_rows():
    """An American option that may be exercised at any time and QuantLib's price; Greeks of some, no numbers for others."""
    ql.Settings.instance().evaluationDate = TODAY
    yield (
        *("sign", "spot", "strike", "rate", "dividend_yield", "volatility", "expiry_years", "price"),
        *("delta", "gamma", "vega", "theta", "rho"),
    )
    left = EARLY_EXERCISE_GREEKS
    for number, given in enumerate(early_exercise_given()):
        sign, spot, strike, rate, carry, volatility, days = given
        earns, gives = (rate, carry) if sign == -1 else (carry, rate)
        if gives < earns < 0:
            continue
        price = most_exact_american(*given)
        # Those that are never exercised early and those whose rates are too near to 0 to be moved have closed forms or no differences.
        is_plain = number >= 2 * len(NASTY_AMERICAN) and earns > 0.003 and price > sign * (spot - strike) + 1e-9
        greeks = [math.nan] * 5
        if is_plain and left > 0:
            greeks, left = early_exercise_greeks(*given, price), left - 1
        years = YEAR.yearFraction(TODAY, TODAY + days)
        yield tuple(map(repr, [sign, spot, strike, rate, carry, volatility, years, price, *greeks]))


def sobol_rows():
    """Number of a point, dimension, and its coordinate as 32 binary digits: SciPy's; QuantLib's are the same, up to 31 digits."""
    dimensions, first = 256, 64
    points = scipy.stats.qmc.Sobol(dimensions, scramble=False, bits=32)
    near = points.random(first)
    points.fast_forward(1_000_003 - first)
    far = points.random(5)
    quantlib = ql.SobolRsg(dimensions, 0, ql.SobolRsg.JoeKuoD6)
    # QuantLib leaves out the point at the origin.
    for point in near[1:]:
        assert max(abs(point - quantlib.nextSequence().value())) < 2**-31
    yield "point", "dimension", "digits"
    for number, point in [*enumerate(near), *enumerate(far, 1_000_003)]:
        for dimension in [0, 1, 2, 3, 7, 20, 100, 254, 255]:
            yield tuple(map(str, [number, dimension, int(point[dimension] * 2**32)]))


def written(rows):
    text = "".join(",".join(row) + "\n" for row in rows)
    return gzip.compress(text.encode(), 9, mtime=0)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments.add_argument("files", nargs="*", metavar="FILE", help="some of them: " + " ".join(FILES))
    given = arguments.parse_args()
    for name in given.files or FILES:
        path, content = FIXTURES / f"{name}.csv.gz", written(FILES[name]())
        if not given.check:
            path.write_bytes(content)
        elif gzip.decompress(path.read_bytes()) != gzip.decompress(content):
            sys.exit(f"{path} differs")


FILES = {
    "math": math_rows,
    "black_scholes": black_scholes_rows,
    "simulation": simulation_rows,
    "greeks": greek_rows,
    "basket": basket_rows,
    "american": american_rows,
    "early_exercise": early_exercise_rows,
    "sobol": sobol_rows,
}

if __name__ == "__main__":
    main()
