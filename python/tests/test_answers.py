"""Verification, explanations, models, risk and records as objects."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from market import COMMAND, Recorded, Running, command, tail, wait_until_caught

import warptape

REQUESTS = Path(__file__).parents[2] / "examples" / "risk"


class Answers(Recorded):
    def setUp(self) -> None:
        self.log = warptape.Log(self.url)

    def test_a_run_is_verified(self) -> None:
        verified = self.log.verify()
        self.assertTrue(verified.identical)
        self.assertEqual(verified.outputs["signals"], len(self.log.signals().to_arrow()))
        self.assertIsNone(self.log.verify(outputs=False).outputs)

    def test_another_log_of_the_same_ticks_is_verified(self) -> None:
        other = warptape.Log(self.folder / "other.db")
        self.assertEqual(other.publish(self.log.ticks()).ticks, 20_000)
        command("run", "--until-caught-up", "--close", "--log", other.url)
        verified = other.verify()
        self.assertTrue(verified.identical)
        self.assertEqual(verified.outputs["ticks"], 20_000)
        with self.assertRaisesRegex(warptape.Error, "--outputs"):
            other.verify(outputs=False, group="x")

    def test_the_slowest_signal_is_explained(self) -> None:
        slowest = self.log.slowest(3)
        self.assertEqual(len(slowest), 3)
        self.assertEqual([why.total_ns for why in slowest], sorted((why.total_ns for why in slowest), reverse=True))
        for why in slowest:
            self.assertEqual(sum(wait.ns for wait in why.waits), why.total_ns)
            self.assertIn(why.longest, why.waits)
        facts = slowest[0].facts["signal"]
        again = self.log.why(f"signal:{facts['partition']}:{facts['offset']}")
        self.assertEqual(again.waits, slowest[0].waits)
        newest = self.log.why(facts["symbol"])
        self.assertEqual(newest.facts["signal"]["symbol"], facts["symbol"])
        first = self.log.why(facts["symbol"], at=1)
        self.assertLess(first.facts["signal"]["bar_end_ns"], newest.facts["signal"]["bar_end_ns"])
        decisions = self.log.table("decisions").to_polars()
        entry = self.log.why(decisions.filter(decisions["decision"] == "Dispatch")["sequence"][0])
        self.assertEqual((entry.total_ns, entry.waits), (None, ()))
        self.assertTrue(entry.facts["explanations"])
        with self.assertRaisesRegex(warptape.Error, "SYNTH:AAAZ"):
            self.log.why("SYNTH:AAAZ")

    def test_slower_lanes_are_modelled(self) -> None:
        lane = self.log.table("batches").to_polars()["device"][0]
        model = self.log.what_if(slow={lane: 20}, seeds=2)
        self.assertEqual((model.seeds, model.lives), (2, 1))
        self.assertEqual(len(model.faults), 1)
        compared = [figure for figure in model.figures.values() if figure.difference is not None]
        self.assertTrue(compared, model)
        self.assertTrue(all(isinstance(figure.difference, warptape.Mean) for figure in compared))
        with self.assertRaisesRegex(warptape.Error, "is no factor"):
            self.log.what_if(slow={lane: 0})

    def test_records_are_those_of_tail(self) -> None:
        for topic in ["signals", "ticks", "journal"]:
            expected = tail(topic, "--log", self.url)
            found = {(one.partition, one.offset, one.index or 0): one.value for one in self.log.records(topic)}
            self.assertEqual(found, expected)
        symbol = next(iter(self.log.records())).value["symbol"]
        self.assertEqual({one.value["symbol"] for one in self.log.records(symbol=symbol)}, {symbol})

    def test_ctrl_c_ends_what_waits_and_what_works(self) -> None:
        busy = "while True:\n        log.verify()"
        waiting = "for record in log.follow():\n        pass"
        for work in [busy, waiting]:
            script = f"import warptape\nlog = warptape.Log({self.url!r})\nprint('begun', flush=True)\ntry:\n    {work}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
            line = [sys.executable, "-c", script]
            with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "begun\n")
                time.sleep(0.5)
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                out, error = process.communicate(timeout=60)
                self.assertEqual((out, process.returncode), ("interrupted\n", 0), error)
                self.assertLess(time.monotonic() - sent, 20)

    def test_other_threads_run_meanwhile(self) -> None:
        ticks = []
        done = threading.Event()

        def count() -> None:
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        self.log.verify()
        done.set()
        thread.join()
        longest = max(later - earlier for earlier, later in zip(ticks, ticks[1:]))
        self.assertLess(longest, 0.5, "the interpreter was locked")


class Live(unittest.TestCase):
    def test_followers_get_what_comes_and_risk_is_answered(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = warptape.Log(Path(folder) / "live.db")
            start = time.time_ns()
            tick = {"symbol": "A:X", "price": 100, "size": 1}
            log.publish({**tick, "event_time_ns": start + i * 10**7} for i in range(100))
            with Running(log.url):
                ticks, signals = log.follow("ticks"), log.follow(symbol="A:X")
                log.publish({**tick, "event_time_ns": start + i * 10**9} for i in range(2, 30))
                self.assertEqual(next(ticks).value["event_time_ns"], start + 2 * 10**9)
                self.assertEqual(next(signals).value["symbol"], "A:X")
                self.risk(log)
            answered = log.risk_results().to_polars()
            self.assertEqual(set(answered["outcome"]), {"options", "error"})
            self.assertEqual(json.loads(answered["outcome_detail"][0])["type"], answered["outcome"][0])
            self.assertTrue(log.verify().identical)

    def risk(self, log: warptape.Log) -> None:
        result = log.risk(REQUESTS / "greeks.json")
        self.assertEqual(result.kind, "options")
        delta = result["values"]["delta"]
        self.assertEqual((type(delta), delta.dtype), (np.ndarray, np.dtype("float64")))
        raw = [row["delta"] for row in result.facts["outcome"]["values"]]
        self.assertEqual(delta.tolist(), raw)
        request = json.loads((REQUESTS / "greeks.json").read_text())
        request["problem"]["assets"][0]["volatility"] = -1.0
        with self.assertRaises(warptape.RiskError) as refused:
            log.risk(request)
        self.assertEqual(refused.exception.code, "BAD_PARAMETER")
        with self.assertRaisesRegex(warptape.Error, r"problem\.assets"):
            log.risk({"problem": {"type": "options", "assets": 5, "options": []}})


class Tampered(unittest.TestCase):
    def test_a_tick_that_was_changed_is_the_first_difference(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for name, price in [("honest", 100), ("forged", 200)]:
                log = warptape.Log(f"{folder}/{name}.db")
                log.publish(
                    {"symbol": "A:X", "event_time_ns": 10**18 + i * 10**9, "price": price + i % 7} for i in range(60)
                )
                if name == "honest":
                    command("run", "--until-caught-up", "--log", log.url)
                    self.assertTrue(log.verify().identical)
                copies.append(Path(folder) / f"{name}-copy.db")
                command("log", "backup", copies[-1], "--log", log.url)
            honest, forged = copies
            self.replace_ticks(honest, forged)
            log = warptape.Log(honest)
            verified = log.verify()
            self.assertFalse(verified.identical)
            found = verified.divergence["ticks"]
            self.assertEqual((found["topic"], found["first_offset"], found["next_offset"]), ("ticks", 0, 1))
            self.assertNotEqual(found["expected"], found["found"])
            # No decision depends on a price.
            self.assertTrue(log.verify(outputs=False).identical)

    def replace_ticks(self, log: Path, other: Path) -> None:
        """Puts the record of ticks of another log in the place of this one's. A checksum is of content and place, so it
        is right there."""
        with sqlite3.connect(other) as source, sqlite3.connect(log) as target:
            ((topic,),) = source.execute("SELECT topic_id FROM topics WHERE name = 'ticks'").fetchall()
            tables = [name for (name,) in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            changed = 0
            for table in [name for name in tables if name.startswith(f"records_{topic}_")]:
                for row in source.execute(f"SELECT checksum, block, offset, count FROM {table}"):
                    sql = f"UPDATE {table} SET checksum = ?, block = ? WHERE offset = ? AND count = ?"
                    changed += target.execute(sql, row).rowcount
            self.assertEqual(changed, 1)
        source.close()
        target.close()


class Command(unittest.TestCase):
    def test_it_is_the_command(self) -> None:
        version = command("--version")
        self.assertTrue(version.startswith("warptape "), version)
        self.assertIn("Usage: warptape", command("--help"))
        self.assertIn("unexpected argument", command("run", "--no-such-flag", status=2))
        module = subprocess.run([sys.executable, "-m", "warptape", "--version"], capture_output=True, text=True)
        self.assertEqual(module.stdout, version)

    def test_ctrl_c_ends_it_in_order(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:{folder}/market.db"
            command("feed", "synth", "--symbols", 5, "--ticks", 1000, "--log", url)
            with subprocess.Popen([COMMAND, "run", "--log", url], stderr=subprocess.PIPE, text=True) as process:
                wait_until_caught(process, signal.SIGTERM)
                os.kill(process.pid, signal.SIGINT)
                _, error = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0, error)
            self.assertTrue(warptape.Log(url).verify().identical)
