"""Kafka, notebooks, and the types that the package declares."""

import ast
import inspect
import json
import os
import time
import unittest
from pathlib import Path

import matplotlib
from market import given

import warptape
from warptape import _native

matplotlib.use("agg")
NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


class Kafka(unittest.TestCase):
    def test_a_cluster_is_a_log_like_any_other(self) -> None:
        import tempfile

        from market import command

        url = f"kafka:{given('WARPTAPE_TEST_KAFKA')}"
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "warptape.toml"
            name = f"python-{os.getpid()}-{time.time_ns()}"
            config.write_text(
                f'[topics]\nprefix = "{name}."\npartitions = 2\n[engine]\ngroup = "{name}"\ndevices = ["cpu:1"]\n'
            )
            command("topics", "create", "-c", config, "--log", url)
            log = warptape.Log(url, config=config)
            ticks = [{"symbol": f"A:{i % 7}", "event_time_ns": 10**18 + i * 10**8, "price": 1 + i} for i in range(1000)]
            self.assertEqual(log.publish(ticks).ticks, 1000)
            command("run", "--until-caught-up", "--close", "-c", config, "--log", url)
            self.assertEqual(len(log.ticks().to_polars()), 1000)
            self.assertEqual(len(list(log.records())), len(log.signals().to_polars()))
            self.assertGreater(len(log.bars().to_polars()), 10)
            self.assertTrue(log.verify().identical)


class Notebooks(unittest.TestCase):
    def cells(self, name: str) -> dict[str, object]:
        """Runs the code cells of a notebook, one after the other."""
        names: dict[str, object] = {"__name__": "__main__"}
        for cell in json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), name, "exec"), names)
        return names

    def test_a_day_becomes_a_chart(self) -> None:
        names = self.cells("day_to_chart.ipynb")
        self.assertGreater((names["folder"] / "day.png").stat().st_size, 10_000)
        self.assertGreater(len(names["crosses"]), 0)

    def test_a_late_signal_has_its_cause(self) -> None:
        names = self.cells("late_signal.ipynb")
        self.assertEqual(len(names["slowest"]), 5)


class Types(unittest.TestCase):
    def test_the_stub_is_the_module(self) -> None:
        package = Path(warptape.__file__).parent
        self.assertTrue((package / "py.typed").exists())
        tree = ast.parse((package / "_native.pyi").read_text())
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name != "Error":
                declared = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                public = vars(getattr(_native, node.name))
                found = {name for name in public if not name.startswith("__") or name.startswith("__arrow")}
                self.assertEqual(declared - {"__new__"}, found, node.name)
            elif isinstance(node, ast.FunctionDef):
                self.assertTrue(callable(getattr(_native, node.name)))
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        built = {name for name, value in vars(_native).items() if inspect.isclass(value)}
        self.assertEqual(built - classes, {"NativeRecords"}, "an iterator")
