//! Axes of numbers: the values at which lines are drawn, and their labels.

/// Approximate number of lines across an axis.
const LINES: f64 = 6.0;

/// A line across a chart, with its position on the axis and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Position on the axis, from 0 to 1.
    pub at: f64,
    /// Label of the line.
    pub label: String,
}

/// Values along an axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    from: f64,
    to: f64,
}

impl Axis {
    /// Makes an axis from one value to another. Its length is never 0.
    pub fn new(from: f64, to: f64) -> Self {
        Self { from, to: if to > from { to } else { from + 1.0 } }
    }

    /// Returns the position of a value as a fraction of the axis.
    pub fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    /// Returns the lines at round values.
    pub fn lines(&self) -> Vec<Line> {
        let step = step(self.to - self.from);
        let first = (self.from / step).ceil();
        let values = (0..20).map(|index| (first + f64::from(index)) * step);
        values
            .take_while(|value| *value <= self.to * 1.000_001)
            .map(|value| Line { at: self.share(value), label: number(value, step) })
            .collect()
    }
}

/// Returns the distance between lines: 1, 2 or 5 times a power of ten.
fn step(span: f64) -> f64 {
    let least = if span > 0.0 { span / LINES } else { 1.0 };
    let mut power = 1e-9;
    loop {
        let round = [1.0, 2.0, 5.0].map(|factor| factor * power);
        if let Some(step) = round.into_iter().find(|step| *step >= least) {
            return step;
        }
        power *= 10.0;
    }
}

/// Formats a number with as many digits as its step needs.
fn number(value: f64, step: f64) -> String {
    let (mut digits, mut unit) = (0, 1.0);
    while unit > step * 1.000_001 && digits < 9 {
        unit /= 10.0;
        digits += 1;
    }
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_values_with_the_digits_that_these_need() {
        let check = |from, to, expected: &[(f64, &str)]| {
            let found = Axis::new(from, to).lines();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (line, (at, label)) in found.iter().zip(expected) {
                assert!((line.at - at).abs() < 1e-9 && line.label == *label, "{found:?}");
            }
        };
        check(0.0, 4.0, &[(0.0, "0"), (0.25, "1"), (0.5, "2"), (0.75, "3"), (1.0, "4")]);
        check(0.5, 0.9, &[(0.0, "0.5"), (0.25, "0.6"), (0.5, "0.7"), (0.75, "0.8"), (1.0, "0.9")]);
        check(0.0, 100.0, &[(0.0, "0"), (0.2, "20"), (0.4, "40"), (0.6, "60"), (0.8, "80"), (1.0, "100")]);
        check(
            3.0,
            3.0,
            &[(0.0, "3.0"), (0.2, "3.2"), (0.4, "3.4"), (0.6, "3.6"), (0.8, "3.8"), (1.0, "4.0")],
        );
    }
}
