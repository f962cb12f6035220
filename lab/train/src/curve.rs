//! The learning curve as a picture.

use warptape_simulator::Interval;
use warptape_simulator::pictures::{Point, Series, Words, curve};

use crate::train::Validation;

/// Mean completion time on the validation scenes by that of earliest completion, against episodes: below 1 is better. An SVG.
pub fn learning_curve(name: &str, validations: &[Validation]) -> String {
    let point = |one: &Validation| Point {
        load: one.episode as f64,
        values: Interval { mean: one.ratio, half: 0.0 },
    };
    let points: Vec<_> = validations.iter().map(point).collect();
    let even = points.iter().map(|point| Point { values: Interval { mean: 1.0, half: 0.0 }, ..*point });
    let series = [
        Series { name: "earliest-completion".to_owned(), points: even.collect() },
        Series { name: name.to_owned(), points },
    ];
    let words = Words {
        title: "Learning: mean completion time on validation scenes",
        below: "episodes",
        beside: "mean completion time by that of earliest-completion",
    };
    curve(&series, words)
}
