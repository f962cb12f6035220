"""Tests of the comparison: `python3 -m unittest discover -s tests/benches/peers -p '*_test.py'`."""

import tempfile
import unittest
from pathlib import Path

import compare

FIELDS = compare.fields_of(averages=True, crossings=True)
SYMBOLS = ["SYNTH:AAAA", "SYNTH:AAAB"]
BARS: compare.Bars = {
    (0, 1, 1_000_000_000): (100, 110, 90, 105, 7, 3, None, None, 0),
    (0, 1, 2_000_000_000): (105, 106, 104, 104, 2, 1, 104.5, 103.25, 1),
    (1, 1, 1_000_000_000): (-5, -5, -5, -5, 1, 1, -4.0, 0.0, 0),
}


def changed(key: compare.Key, field: str, value: compare.Value) -> compare.Bars:
    """Returns the bars with one other value."""
    values = list(BARS[key])
    values[FIELDS.index(field)] = value
    return {**BARS, key: tuple(values)}


class Comparison(unittest.TestCase):
    def found(self, theirs: compare.Bars) -> compare.Difference | None:
        return compare.difference(BARS, theirs, FIELDS, SYMBOLS)

    def test_equal_bars_have_no_difference(self) -> None:
        self.assertIsNone(self.found(dict(reversed(BARS.items()))))

    def test_a_planted_difference_is_named(self) -> None:
        key = (0, 1, 2_000_000_000)
        for field, value in (("open", 106), ("volume", 3), ("trades", 2), ("ema_fast", 104.500001), ("ema_slow", None), ("crossing", 0)):
            found = self.found(changed(key, field, value))
            self.assertEqual((found.symbol, found.bar, found.field), ("SYNTH:AAAA", "1s from 2000000000 ns", field))

    def test_averages_may_differ_by_rounding_alone(self) -> None:
        key = (0, 1, 2_000_000_000)
        self.assertIsNone(self.found(changed(key, "ema_fast", 104.5 * (1 + 5e-10))))
        self.assertIsNotNone(self.found(changed(key, "ema_fast", 104.5 * (1 + 5e-9))))

    def test_a_missing_and_an_additional_bar_are_differences(self) -> None:
        key = (1, 1, 1_000_000_000)
        without = {other: values for other, values in BARS.items() if other != key}
        self.assertEqual(self.found(without).theirs, "no such bar")
        self.assertEqual(compare.difference(without, BARS, FIELDS, SYMBOLS).ours, "no such bar")

    def test_each_plant_is_found(self) -> None:
        self.assertEqual(compare.missed_plants(BARS, FIELDS), [])

    def test_a_file_is_read_and_a_doubled_bar_refused(self) -> None:
        line = "0,1,2000000000,105,106,104,104,2,1,104.5,103.25,1\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bars.csv")
            path.write_text(line, encoding="utf-8")
            key = (0, 1, 2_000_000_000)
            self.assertEqual(compare.read_bars(path, FIELDS), {key: BARS[key]})
            path.write_text(line * 2, encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "twice"):
                compare.read_bars(path, FIELDS)
            path.write_text("0,1,2\n", encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "fields"):
                compare.read_bars(path, FIELDS)


if __name__ == "__main__":
    unittest.main()
