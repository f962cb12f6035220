#!/usr/bin/env python3
"""Writes docs/accuracy.md: answers of the `warptape` command, those of independent programs, and the differences.

    venv/bin/pip install -r tests/scripts/requirements.txt
    cargo build --release
    venv/bin/python tests/scripts/make_accuracy.py target/release/warptape

Everything goes through the command line, on an embedded log in a folder of its own: requests as `warptape risk`, trades as
`warptape feed`, signals as `warptape tail`. Cases are random by fixed seeds, and nasty. The same build and the same versions of the
references write the same page. It takes some minutes.
"""

import json
import math
import random
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import mpmath as mp
import numpy
import QuantLib as ql
import talib

import make_risk_fixtures as risk
import make_talib_fixtures as indicators

PAGE = Path(__file__).resolve().parents[2] / "docs/accuracy.md"
# The page's last part, from here on, is kept as it is.
BY_HAND = "\n## Measured by tests\n"
GREEKS = ["price", "delta", "gamma", "vega", "theta", "rho", "vanna", "volga"]
SETTINGS = """
[log]
url = "sqlite:accuracy.db"
[engine]
devices = ["cpu:1"]
[stages]
bars = ["tick:4"]
"""
OPTIONS = 2_000
IMPLIED = 1_000
# Requests that are asked at once where each has one option.
SIDE_BY_SIDE = 8
TRADES = 4_000


class Pipeline:
    """The command, and a running pipeline, in a folder of their own."""

    def __init__(self, command, folder):
        self.command, self.folder = Path(command).resolve(), Path(folder)
        (self.folder / "accuracy.toml").write_text(SETTINGS)
        self.running = None

    def tell(self, *arguments, given=None):
        told = [self.command, *arguments, "-c", "accuracy.toml"]
        done = subprocess.run(told, cwd=self.folder, input=given, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(map(str, told))}: {done.stderr}")
        return done.stdout

    def run(self):
        with open(self.folder / "run.log", "w") as log:
            self.running = subprocess.Popen(
                [self.command, "run", "-c", "accuracy.toml"], cwd=self.folder, stdout=log, stderr=log
            )

    def end(self):
        self.running.send_signal(signal.SIGINT)
        self.running.wait(timeout=120)

    def ask(self, command, problem):
        """The outcome of a request."""
        text = json.dumps({"problem": problem})
        outcome = json.loads(self.tell("risk", command, "-", "-o", "json", "--timeout-s", "120", given=text))["outcome"]
        if outcome["type"] == "error":
            raise SystemExit(f"{outcome}: {problem}")
        return outcome


class Measured:
    """Differences by name, with what each is of."""

    def __init__(self):
        self.of = {}

    def add(self, name, ours, theirs, unit, case):
        off = abs(mp.mpf(ours) - mp.mpf(theirs)) / mp.mpf(unit) if unit else mp.mpf(0)
        self.of.setdefault(name, []).append((float(off), ours, float(theirs), case))

    def table(self, whose="Warptape"):
        yield f"| number | cases | {whose} | reference | largest difference | median | case |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
        for name, found in self.of.items():
            found.sort(key=lambda entry: entry[0])
            off, ours, theirs, case = found[-1]
            yield f"| {name} | {len(found):,} | {ours:.17g} | {theirs:.17g} | {off:.1e} | {found[len(found) // 2][0]:.1e} | {case} |"


def option_text(sign, spot, strike, rate, carry, volatility, years):
    kind = "call" if sign > 0 else "put"
    return f"{kind}, S {spot:.6g}, K {strike:.6g}, r {rate:.4g}, q {carry:.4g}, σ {volatility:.4g}, T {years:.4g}"


def asset_of(spot, rate, carry, volatility):
    return {"symbol": "given", "spot": spot, "volatility": volatility, "rate": rate, "dividend_yield": carry}


def kind_of(sign):
    return "call" if sign > 0 else "put"


# Closed form ---------------------------------------------------------------------------------------------------------


def european_cases():
    """Near the money and up to eight deviations away, an hour to thirty years before expiry, and σ√T up to 60."""
    numbers = random.Random(21)
    for number in range(OPTIONS):
        years = math.exp(numbers.uniform(math.log(1 / 8760), math.log(30)))
        deviation = numbers.uniform(4, 60) if number % 5 == 0 else numbers.uniform(0.05, 0.9) * years**0.5
        if deviation / years**0.5 > 99:
            years = 1.0
        volatility = deviation / years**0.5
        moneyness = numbers.uniform(-3, 3) if number % 5 == 0 else max(min(numbers.uniform(-8, 8) * deviation, 20.0), -20.0)
        rate, carry = numbers.uniform(-0.02, 0.1), numbers.uniform(0, 0.06)
        yield numbers.choice([1, -1]), 100.0, 100.0 * math.exp(moneyness), rate, carry, volatility, years


def sizes(exact, sign, spot, strike, rate, carry, volatility, years):
    """What each number is measured by: itself, or the size of its terms where they cancel."""
    w, S, K, r, q, v, T = map(mp.mpf, (sign, spot, strike, rate, carry, volatility, years))
    d1 = (mp.log(S / K) + (r - q + v * v / 2) * T) / (v * mp.sqrt(T))
    d2 = d1 - v * mp.sqrt(T)
    asset, cash = S * mp.exp(-q * T) * mp.ncdf(w * d1), K * mp.exp(-r * T) * mp.ncdf(w * d2)
    dense = S * mp.exp(-q * T) * mp.npdf(d1)
    theta = abs(q * asset) + abs(r * cash) + dense * v / (2 * mp.sqrt(T))
    vanna, volga = dense / S * (abs(d2) + 1) / v, dense * mp.sqrt(T) * (abs(d1 * d2) + 1) / v
    return [*map(abs, exact[:4]), theta, abs(exact[5]), vanna, volga]


def closed_form(pipeline):
    ours, quantlib = Measured(), Measured()
    cases = list(european_cases())
    for at in range(0, len(cases), 500):
        part = cases[at : at + 500]
        problem = {
            "type": "options",
            "assets": [asset_of(spot, rate, carry, volatility) for _, spot, _, rate, carry, volatility, _ in part],
            "options": [
                {"asset": number, "kind": kind_of(case[0]), "strike": case[2], "expiry_years": case[6]}
                for number, case in enumerate(part)
            ],
        }
        for case, found in zip(part, pipeline.ask("greeks", problem)["values"]):
            exact = risk.exact_greeks(*case)
            theirs = risk.calculated(*case)[7:13]
            for name, value, unit, other in zip(GREEKS, exact, sizes(exact, *case), [*theirs, None, None]):
                # What is nearly the smallest of all numbers has few digits.
                if unit < mp.mpf(10) ** -290:
                    continue
                ours.add(name, found[name], value, unit, option_text(*case))
                if other is not None and math.isfinite(float(other)):
                    quantlib.add(name, float(other), value, unit, option_text(*case))
    yield "## European options in closed form"
    yield ""
    yield f"The cases are {OPTIONS:,} options with expiries from an hour to thirty years. A fifth of them has σ√T from 4 to 60; the others lie up to eight"
    yield "standard deviations from the money. The reference is mpmath with 50 digits. Differences are relative to the number. For theta, vanna and"
    yield "volga, which pass through 0, they are relative to the size of their terms."
    yield ""
    yield from ours.table()
    yield ""
    yield "This table compares QuantLib's `BlackCalculator` with the same reference:"
    yield ""
    yield from quantlib.table("QuantLib")


def implied(pipeline):
    """Prices of 50 digits, rounded; the volatility that is found, as far as the price tells it."""
    numbers = random.Random(22)
    measured, cases = Measured(), []
    while len(cases) < IMPLIED:
        years, volatility = math.exp(numbers.uniform(math.log(1 / 365), math.log(10))), numbers.uniform(0.03, 1.5)
        strike = 100.0 * math.exp(numbers.uniform(-3, 3) * volatility * years**0.5)
        case = (numbers.choice([1, -1]), 100.0, strike, numbers.uniform(-0.02, 0.1), numbers.uniform(0, 0.06), volatility, years)
        exact = risk.exact_greeks(*case)
        price = float(exact[0])
        # By how much the volatility changes when the price changes by a unit in its last place.
        told = float(numpy.spacing(price) / exact[3])
        cases.append((case, price, told))
    problem = {
        "type": "implied-volatilities",
        "assets": [{**asset_of(*(case[i] for i in (1, 3, 4, 5)))} for case, _, _ in cases],
        "options": [
            {"asset": number, "kind": kind_of(case[0]), "strike": case[2], "expiry_years": case[6]}
            for number, (case, _, _) in enumerate(cases)
        ],
        "prices": [price for _, price, _ in cases],
    }
    for (case, _, told), found in zip(cases, pipeline.ask("implied-vol", problem)["volatilities"]):
        volatility = found["volatility"]
        if volatility is None:
            raise SystemExit(f"no volatility for {option_text(*case)}: {found['error']}")
        # A price that hardly depends on the volatility tells few of its digits.
        unit = case[5] * (1 + told / (case[5] * 1e-15))
        measured.add("volatility", volatility, case[5], unit, option_text(*case))
    yield "## Implied volatility"
    yield ""
    yield f"The cases are {IMPLIED:,} volatilities from 3 % to 150 %, with strikes up to three standard deviations from the money. Each price is computed to"
    yield "50 digits and rounded to a double; `warptape` finds its volatility. Differences are relative to the volatility σ, and divided by"
    yield "`1 + δ / (1e-15 · σ)`. Here δ is the change of σ when the price changes by one unit in its last place. So a price that hardly depends on the"
    yield "volatility counts less."
    yield ""
    yield from measured.table()


# American options ----------------------------------------------------------------------------------------------------


def has_two_boundaries(sign, spot, strike, rate, carry, volatility, days):
    earns, gives = (rate, carry) if sign == -1 else (carry, rate)
    return gives < earns < 0


def american_problem(sign, spot, strike, rate, carry, volatility, days):
    return {
        "type": "simulation",
        "assets": [asset_of(spot, rate, carry, volatility)],
        "contract": {"type": "american", "kind": kind_of(sign), "strike": strike},
        "expiry_years": days / 365,
    }


def american(pipeline):
    prices, greeks, left = Measured(), Measured(), risk.EARLY_EXERCISE_GREEKS
    cases = [(number, case) for number, case in enumerate(risk.early_exercise_given()) if not has_two_boundaries(*case)]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        answers = list(pool.map(lambda case: pipeline.ask("greeks", american_problem(*case[1])), cases))
    for (number, case), found in zip(cases, answers):
        sign, spot, strike, rate, carry, volatility, days = case
        earns = rate if sign == -1 else carry
        price, text = risk.most_exact_american(*case), option_text(*case[:6], days / 365)
        prices.add("price", found["price"], price, max(spot, strike) / 100, text)
        is_plain = number >= 2 * len(risk.NASTY_AMERICAN) and earns > 0.003 and price > sign * (spot - strike) + 1e-9
        if is_plain and left > 0:
            left -= 1
            theirs = risk.early_exercise_greeks(*case, price)
            for greek, value in zip(found["greeks"], theirs):
                if not math.isnan(value):
                    greeks.add(greek["name"], greek["value"], value, 1.0, text)
    yield "## American options"
    yield ""
    yield f"These options may be exercised at any time, and are priced without simulation. The cases are {risk.EARLY_EXERCISE_POINTS:,} random options and some extreme ones."
    yield "Extremes are expiries of a day and of thirty years, volatilities near 0 and of 250 %, and spots far from the strike. Rates are also zero, negative, equal"
    yield "or nearly equal. Options with two exercise boundaries are left out. The reference is QuantLib's `QdFpAmericanEngine` with 24 steps, 32 nodes"
    yield "and integrals to 1e-10. Differences of prices are in hundredths of the spot or the strike, whichever is greater. Differences of Greeks are"
    yield "absolute; the reference Greeks are finite differences of fourth order of QuantLib's prices."
    yield ""
    yield from prices.table()
    yield from list(greeks.table())[2:]


# Indicators ----------------------------------------------------------------------------------------------------------


def markets():
    """Prices by symbol, with nine decimals: a walk, one that often stands still, a tiny price, and leaps."""
    numbers = random.Random(23)
    walks = {
        "WALK": (Decimal(100), lambda: numbers.gauss(0, 1e-3)),
        "STILL": (Decimal(50), lambda: 0.0 if numbers.random() < 0.7 else numbers.gauss(0, 1e-4)),
        "TINY": (Decimal("0.00001234"), lambda: numbers.gauss(0, 2e-3)),
        "LEAPS": (Decimal(3000), lambda: numbers.gauss(0, 1e-3) + (numbers.random() < 0.01) * numbers.choice([-0.3, 0.4])),
    }
    for symbol, (price, step) in walks.items():
        prices = []
        for _ in range(TRADES):
            price = max(price * (1 + Decimal(step())), Decimal("1e-8")).quantize(Decimal("1e-9"))
            prices.append((price, Decimal(numbers.randint(1, 10**10)) / 10**9))
        yield symbol, prices


def bars_of(prices):
    for at in range(0, len(prices) - len(prices) % 4, 4):
        trades = prices[at : at + 4]
        values = [price for price, _ in trades]
        yield SimpleNamespace(
            open=values[0],
            high=max(values),
            low=min(values),
            close=values[-1],
            volume=sum(size for _, size in trades),
            turnover=sum(price * size for price, size in trades),
        )


def fed(pipeline):
    """Feeds the trades of all markets, symbol by symbol in turns."""
    given = dict(markets())
    lines = ["symbol,time,price,size"]
    for number in range(TRADES):
        for symbol, prices in given.items():
            price, size = prices[number]
            lines.append(f"TEST:{symbol},{1_700_000_000_000 + number},{price:f},{size:f}")
    (pipeline.folder / "trades.csv").write_text("\n".join(lines) + "\n")
    pipeline.tell("feed", "csv", "trades.csv", "--map", "symbol=symbol,time=time:ms,price=price,size=size")
    return given


def signals(pipeline, given):
    """Closed bars by symbol, once all of them are there."""
    expected = sum(len(prices) // 4 for prices in given.values())
    while True:
        found = {f"TEST:{symbol}": [] for symbol in given}
        for line in pipeline.tell("tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json").splitlines():
            record = json.loads(line)["record"]
            if record["kind"] == "BAR":
                found[record["symbol"]].append(record)
        if sum(map(len, found.values())) >= expected:
            return found


# What a difference is of: the price where values are differences of prices, 1 or 100 where they are ratios that pass through 0.
UNITS = {"rsi": 100.0, "roc": 100.0, "zscore": 1.0}
OF_PRICE = {"macd", "macd_signal", "macd_histogram", "momentum", "atr"}


def of_indicators(given, found):
    measured = Measured()
    for symbol, prices in given.items():
        bars = list(bars_of(prices))
        columns = indicators.indicators(bars)
        for name, values in columns.items():
            for number, (theirs, record) in enumerate(zip(values, found[f"TEST:{symbol}"])):
                ours = record[name]
                if theirs is None or theirs != theirs:
                    continue
                if ours is None:
                    raise SystemExit(f"{name} of {symbol} at bar {number}: none, {theirs} by the reference")
                unit = UNITS.get(name) or float(bars[number].close if name in OF_PRICE else abs(theirs) or 1)
                measured.add(name, ours, float(theirs), unit, f"{symbol}, bar {number}")
    yield "## Indicators"
    yield ""
    yield f"The bars have four trades each, in four made-up markets of {TRADES // 4:,} bars. One market is a random walk; one often stands still; one has a price"
    yield "of 0.00001234; one has leaps of 30 to 40 %. The reference is TA-Lib, and decimal arithmetic for VWAP, z-score and realised volatility, which"
    yield "TA-Lib lacks. Differences are relative to the value. Those of MACD, momentum and ATR are relative to the price, those of RSI and rate of"
    yield "change to 100, the z-score to 1."
    yield ""
    yield from measured.table()


def main():
    mp.mp.dps = 50
    ql.Settings.instance().evaluationDate = risk.TODAY
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline(sys.argv[1], folder)
        given = fed(pipeline)
        pipeline.run()
        try:
            parts = [
                list(closed_form(pipeline)),
                list(implied(pipeline)),
                list(american(pipeline)),
                list(of_indicators(given, signals(pipeline, given))),
            ]
        finally:
            pipeline.end()
    lines = [
        "# Accuracy",
        "",
        "This page compares answers of the `warptape` command with those of independent programs, over random and extreme cases. The references are",
        f"mpmath {mp.__version__}, QuantLib {ql.__version__} and TA-Lib {talib.__version__}. `tests/scripts/make_accuracy.py` writes all parts except the last one. Each row of a table shows",
        "the case with the largest difference.",
    ]
    for part in parts:
        lines += ["", *part]
    by_hand = "".join(PAGE.read_text().partition(BY_HAND)[1:])
    PAGE.write_text("\n".join(lines) + "\n" + by_hand)


if __name__ == "__main__":
    main()
