"""Prices of options by QuantLib, NumPy and SciPy, for `kernels/benches/pricing.rs`, in the same run, on one core.

    pip install -r tests/scripts/requirements.txt
    python tests/benches/pricing.py

Runs the benchmark with `--compare` in turns with the rivals, and says how many times faster it is, by medians. That both sides
compute the same is checked: prices agree within five standard errors of their difference, sums of Greeks to 1e-10.
"""

import json
import statistics
import subprocess
import time

import numpy
import QuantLib as ql
from scipy.special import ndtr
from scipy.stats import norm

TURNS = 7
PATHS = 1_000_000
ASIAN_PATHS = 20_000
FIXINGS = 252
OPTIONS = 100_000
CALL_OPTIONS = 10_000  # As many as a request may have.
REPEATS = 10  # Of the closed form in a turn.
SPOT, STRIKE, RATE, CARRY, VOLATILITY = 100.0, 100.0, 0.03, 0.01, 0.2
TODAY = ql.Date(1, ql.January, 2026)
# A fixing a day.
DAYS = ql.Actual365Fixed()
YEARS = FIXINGS / 365


def process():
    curve = lambda value: ql.YieldTermStructureHandle(ql.FlatForward(TODAY, value, DAYS))
    volatility = ql.BlackVolTermStructureHandle(ql.BlackConstantVol(TODAY, ql.NullCalendar(), VOLATILITY, DAYS))
    return ql.BlackScholesMertonProcess(
        ql.QuoteHandle(ql.SimpleQuote(SPOT)), curve(CARRY), curve(RATE), volatility
    )


def quantlib(option, engine):
    option.setPricingEngine(engine)
    return option.NPV(), option.errorEstimate()


def quantlib_european(seed):
    payoff = ql.PlainVanillaPayoff(ql.Option.Call, STRIKE)
    option = ql.VanillaOption(payoff, ql.EuropeanExercise(TODAY + FIXINGS))
    return quantlib(
        option, ql.MCEuropeanEngine(process(), "PseudoRandom", timeSteps=1, requiredSamples=PATHS, seed=seed)
    )


def quantlib_asian(seed):
    payoff = ql.PlainVanillaPayoff(ql.Option.Call, STRIKE)
    fixings = [TODAY + day for day in range(1, FIXINGS + 1)]
    option = ql.DiscreteAveragingAsianOption(
        ql.Average.Arithmetic, fixings, payoff, ql.EuropeanExercise(TODAY + FIXINGS)
    )
    engine = ql.MCDiscreteArithmeticAPEngine(
        process(), "PseudoRandom", controlVariate=True, requiredSamples=ASIAN_PATHS, seed=seed
    )
    return quantlib(option, engine)


def estimate(payoffs):
    discount = numpy.exp(-RATE * YEARS)
    return discount * payoffs.mean(), discount * payoffs.std() / len(payoffs) ** 0.5


def numpy_european(seed):
    z = numpy.random.default_rng(seed).standard_normal(PATHS)
    drift = (RATE - CARRY - VOLATILITY**2 / 2) * YEARS
    price = SPOT * numpy.exp(drift + VOLATILITY * YEARS**0.5 * z)
    return estimate(numpy.maximum(price - STRIKE, 0.0))


def numpy_asian(seed):
    z = numpy.random.default_rng(seed).standard_normal((ASIAN_PATHS, FIXINGS))
    step = YEARS / FIXINGS
    drift = (RATE - CARRY - VOLATILITY**2 / 2) * step
    logarithms = numpy.cumsum(drift + VOLATILITY * step**0.5 * z, axis=1)
    arithmetic = SPOT * numpy.exp(logarithms).mean(axis=1)
    payoffs = numpy.maximum(arithmetic - STRIKE, 0.0)
    control = numpy.maximum(SPOT * numpy.exp(logarithms.mean(axis=1)) - STRIKE, 0.0)
    mean = drift * (FIXINGS + 1) / 2
    deviation = VOLATILITY * step**0.5 * ((FIXINGS + 1) * (2 * FIXINGS + 1) / (6 * FIXINGS)) ** 0.5
    d2 = (numpy.log(SPOT / STRIKE) + mean) / deviation
    expected = SPOT * numpy.exp(mean + deviation**2 / 2) * norm.cdf(d2 + deviation) - STRIKE * norm.cdf(d2)
    slope = numpy.cov(payoffs, control)[0, 1] / control.var()
    return estimate(payoffs - slope * (control - expected))


PART = numpy.arange(OPTIONS) / OPTIONS
SIGNS = numpy.where(numpy.arange(OPTIONS) % 2 == 0, 1.0, -1.0)
OPTION_COLUMNS = SIGNS, 80 + 40 * PART, 0.1 + 0.4 * PART, 0.1 + 2 * PART


def scipy_greeks(_):
    for _ in range(REPEATS):
        calls = [scipy_greeks_once(*OPTION_COLUMNS)]
    return calls


def scipy_greeks_by_calls(_):
    for _ in range(REPEATS):
        firsts = range(0, OPTIONS, CALL_OPTIONS)
        calls = [scipy_greeks_once(*(column[at : at + CALL_OPTIONS] for column in OPTION_COLUMNS)) for at in firsts]
    return calls


def scipy_greeks_once(w, strike, volatility, years):
    root = numpy.sqrt(years)
    d1 = (numpy.log(SPOT / strike) + (RATE - CARRY + volatility**2 / 2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    spot_factor, cash_factor = numpy.exp(-CARRY * years), numpy.exp(-RATE * years)
    asset, cash = SPOT * spot_factor * ndtr(w * d1), strike * cash_factor * ndtr(w * d2)
    dense = spot_factor * (numpy.exp(-0.5 * d1 * d1) / numpy.sqrt(2 * numpy.pi))
    price, delta, gamma = w * (asset - cash), w * asset / SPOT, dense / (SPOT * volatility * root)
    vega, rho = SPOT * dense * root, w * years * cash
    theta = w * (CARRY * asset - RATE * cash) - SPOT * dense * volatility / (2 * root)
    return price, delta, gamma, vega, theta, rho


def timed(function, seed):
    started = time.perf_counter()
    result = function(seed)
    return time.perf_counter() - started, result


class Ours:
    """The program's figures, one line of JSON a request."""

    def __init__(self):
        command = ["cargo", "bench", "--quiet", "-p", "warptape-kernels", "--bench", "pricing", "--", "--compare"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, name, seed):
        self.process.stdin.write(f"{name} {seed}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["seconds"], answer["result"]


def main():
    ql.Settings.instance().evaluationDate = TODAY
    ours = Ours()
    rivals = {
        "european": [("european-f64", "european-mixed"), (quantlib_european, numpy_european)],
        "asian": [("asian-f64", "asian-mixed"), (quantlib_asian, numpy_asian)],
        "closed form": [("greeks",), (scipy_greeks,)],
        "closed form by calls": [("greeks-by-calls",), (scipy_greeks_by_calls,)],
    }
    for name, (subjects, others) in rivals.items():
        seconds = {}
        for turn in range(TURNS):
            results = []
            for subject in subjects:
                taken, result = ours.ask(subject, turn)
                seconds.setdefault(subject, []).append(taken)
                results.append(result)
            for other in others:
                taken, result = timed(other, turn + 1)
                if name.startswith("closed form"):
                    result = [float(sum(column.sum() for column in columns)) for columns in zip(*result)]
                seconds.setdefault(other.__name__, []).append(taken)
                results.append(result)
            compare(name, results)
        medians = {side: statistics.median(times) for side, times in seconds.items()}
        for side, times in seconds.items():
            print(f"{name}: {side} {medians[side] * 1e3:.2f} ms ({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f})")
        for subject in subjects:
            for other in others:
                print(f"{name}: {subject} is {medians[other.__name__] / medians[subject]:.1f} times {other.__name__}")


def compare(name, results):
    """All sides computed the same."""
    first = results[0]
    for other in results[1:]:
        if name.startswith("closed form"):
            assert all(abs(a / b - 1) < 1e-10 for a, b in zip(first, other)), (first, other)
        else:
            error = (first[1] ** 2 + other[1] ** 2) ** 0.5
            assert abs(first[0] - other[0]) < 5 * error, (name, first, other)


if __name__ == "__main__":
    main()
