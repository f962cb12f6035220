//! Completion time against load: a line for each policy, with the band of its 95 % interval.

use super::colour;
use super::markup::{Axis, LEFT, Picture, RIGHT, TOP, WIDTH};
use crate::outcome::Interval;

const HEIGHT: f64 = 320.0;

/// A figure at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The load.
    pub load: f64,
    /// The figure.
    pub values: Interval,
}

/// What a policy comes to at several loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The policy.
    pub name: String,
    /// Its figures, by ascending load.
    pub points: Vec<Point>,
}

/// Words of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// What it shows.
    pub title: &'a str,
    /// What the axis below shows.
    pub below: &'a str,
    /// What the axis beside shows.
    pub beside: &'a str,
}

/// Mean completion times against load, in seconds.
pub fn completion_by_load(series: &[Series]) -> String {
    let words = Words {
        title: "Mean completion time against load, with 95 % intervals",
        below: "load: arriving work by what the fleet can do",
        beside: "mean completion time, s",
    };
    let tip = |load: f64, Interval { mean, half }: Interval| format!("load {load}, {mean:.4} ± {half:.4} s");
    chart(series, words, &tip)
}

/// Figures against anything, such as against how long a policy was trained.
pub fn curve(series: &[Series], words: Words<'_>) -> String {
    chart(series, words, &|at, Interval { mean, half }| format!("{at}, {mean:.4} ± {half:.4}"))
}

fn chart(series: &[Series], words: Words<'_>, tip: &dyn Fn(f64, Interval) -> String) -> String {
    let points = || series.iter().flat_map(|one| &one.points);
    let most = |of: &dyn Fn(&Point) -> f64| points().map(of).fold(0.0, f64::max);
    let least = points().map(|point| point.load).fold(f64::INFINITY, f64::min);
    let loads = Axis::new(if least.is_finite() { least } else { 0.0 }, most(&|point| point.load));
    let times = Axis::new(0.0, most(&|point| point.values.mean + point.values.half));
    let at = |load: f64, time: f64| {
        let x = LEFT + loads.share(load) * (WIDTH - LEFT - RIGHT);
        (x, TOP + (1.0 - times.share(time)) * HEIGHT)
    };
    let keys: Vec<_> =
        series.iter().enumerate().map(|(index, one)| (one.name.clone(), colour(index))).collect();
    let mut picture = Picture::new(words.title, HEIGHT, &keys);
    picture.axis_below(&loads, HEIGHT, words.below);
    picture.axis_beside(&times, HEIGHT, words.beside);
    for (index, one) in series.iter().enumerate() {
        let bound = |sign: f64| {
            let edge =
                |point: &Point| at(point.load, (point.values.mean + sign * point.values.half).max(0.0));
            one.points.iter().map(edge).collect::<Vec<_>>()
        };
        let band: Vec<_> = bound(1.0).into_iter().chain(bound(-1.0).into_iter().rev()).collect();
        picture.band(&band, colour(index));
        let line: Vec<_> = one.points.iter().map(|point| at(point.load, point.values.mean)).collect();
        picture.line("mean", &line, colour(index));
        for (point, (x, y)) in one.points.iter().zip(line) {
            let tip = format!("{}: {}", one.name, tip(point.load, point.values));
            picture.rect("point", (x - 3.0, y - 3.0), (6.0, 6.0), colour(index), &tip);
        }
    }
    picture.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Vec<Series> {
        let point = |load, mean, half| Point { load, values: Interval { mean, half } };
        vec![
            Series { name: "fair".to_owned(), points: vec![point(0.5, 1.0, 0.1), point(0.9, 4.0, 1.0)] },
            Series {
                name: "<b> & \"c\"\u{1}".to_owned(),
                points: vec![point(0.5, 0.5, 0.0), point(0.7, 2.0, 0.2)],
            },
        ]
    }

    #[test]
    fn points_stand_where_their_figures_are() {
        let text = completion_by_load(&series());
        let document = roxmltree::Document::parse(&text).unwrap();
        let of = |class: &str| -> Vec<Vec<(f64, f64)>> {
            let nodes = document.descendants().filter(|node| node.attribute("class") == Some(class));
            let pair = |text: &str| {
                let (x, y) = text.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            };
            nodes.map(|node| node.attribute("points").unwrap().split(' ').map(pair).collect()).collect()
        };
        let (lines, bands) = (of("mean"), of("band"));
        assert_eq!((lines.len(), bands.len()), (2, 2));
        // The scale follows from the axes: loads from 0.5 to 0.9, times from 0 to 5.
        let value = |y: f64| (TOP + HEIGHT - y) / HEIGHT * 5.0;
        let load = |x: f64| 0.5 + (x - LEFT) / (WIDTH - LEFT - RIGHT) * 0.4;
        for ((line, band), one) in lines.iter().zip(&bands).zip(series()) {
            for (index, point) in one.points.iter().enumerate() {
                let (x, y) = line[index];
                assert!((load(x) - point.load).abs() < 1e-3, "{} {}", load(x), point.load);
                assert!((value(y) - point.values.mean).abs() < 1e-3, "{} {:?}", value(y), point.values);
                let upper = value(band[index].1) - point.values.mean;
                assert!((upper - point.values.half).abs() < 1e-3, "{upper} {:?}", point.values);
            }
        }
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"<b> & \"c\"\u{fffd}"), "{texts:?}");
        assert_eq!(text, completion_by_load(&series()));
    }

    #[test]
    fn a_chart_of_one_load_or_of_nothing_is_a_chart() {
        let one: Vec<_> =
            series().into_iter().map(|one| Series { points: one.points[..1].to_vec(), ..one }).collect();
        for series in [one, Vec::new()] {
            let text = completion_by_load(&series);
            assert!(roxmltree::Document::parse(&text).is_ok() && !text.contains("NaN"), "{text}");
        }
    }
}
