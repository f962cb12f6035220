//! Plots of figures: a line for each series, with the band of its interval.

use super::axis::Axis;
use super::picture::{LEFT, Picture, RIGHT, TOP, WIDTH, colour};

const HEIGHT: f64 = 320.0;

/// A measured figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Value on the horizontal axis, such as a load.
    pub at: f64,
    /// The figure.
    pub value: f64,
    /// Half the width of the figure's interval.
    pub half: f64,
}

/// All figures with the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name.
    pub name: String,
    /// The figures, by ascending `at`.
    pub points: Vec<Point>,
}

/// Texts of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// Title of the picture.
    pub title: &'a str,
    /// Name of the horizontal axis.
    pub below: &'a str,
    /// Name of the vertical axis.
    pub beside: &'a str,
    /// Text before a value of the horizontal axis, such as `load `.
    pub at: &'a str,
    /// Text after a figure, such as ` s`.
    pub unit: &'a str,
}

/// Draws series as an SVG picture.
pub fn curves(series: &[Series], words: Words<'_>) -> String {
    let points = || series.iter().flat_map(|one| &one.points);
    let most = |of: &dyn Fn(&Point) -> f64| points().map(of).fold(0.0, f64::max);
    let least = points().map(|point| point.at).fold(f64::INFINITY, f64::min);
    let below = Axis::new(if least.is_finite() { least } else { 0.0 }, most(&|point| point.at));
    let beside = Axis::new(0.0, most(&|point| point.value + point.half));
    let place = |at: f64, value: f64| {
        let x = LEFT + below.share(at) * (WIDTH - LEFT - RIGHT);
        (x, TOP + (1.0 - beside.share(value)) * HEIGHT)
    };
    let mut picture = Picture::new(words.title, HEIGHT, series.iter().map(|one| one.name.as_str()));
    picture.axis_below(&below, words.below);
    picture.axis_beside(&beside, words.beside);
    for (index, Series { name, points }) in series.iter().enumerate() {
        let edge = |sign: f64| {
            points.iter().map(move |point| place(point.at, (point.value + sign * point.half).max(0.0)))
        };
        picture.band(&edge(1.0).chain(edge(-1.0).rev()).collect::<Vec<_>>(), colour(index));
        let line: Vec<_> = points.iter().map(|point| place(point.at, point.value)).collect();
        picture.line("mean", &line, colour(index));
        for (Point { at, value, half }, (x, y)) in points.iter().zip(line) {
            let tip = format!("{name}: {}{at}, {value:.4} ± {half:.4}{}", words.at, words.unit);
            picture.rect("point", (x - 3.0, y - 3.0), (6.0, 6.0), colour(index), &tip);
        }
    }
    picture.into_svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words<'_> =
        Words { title: "Times", below: "load", beside: "time, s", at: "load ", unit: " s" };

    fn series() -> Vec<Series> {
        let point = |at, value, half| Point { at, value, half };
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
        let text = curves(&series(), WORDS);
        let document = roxmltree::Document::parse(&text).unwrap();
        let of = |class: &str| -> Vec<Vec<(f64, f64)>> {
            let nodes = document.descendants().filter(|node| node.attribute("class") == Some(class));
            let points = |path: &str| {
                let numbers: Vec<f64> =
                    path.trim_matches(['M', 'Z']).split(' ').map(|number| number.parse().unwrap()).collect();
                numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
            };
            nodes.map(|node| points(node.attribute("d").unwrap())).collect()
        };
        let (lines, bands) = (of("mean"), of("band"));
        assert_eq!((lines.len(), bands.len()), (2, 2));
        // The scales follow from the axes: loads from 0.5 to 0.9, times from 0 to 5.
        let value = |y: f64| (TOP + HEIGHT - y) / HEIGHT * 5.0;
        let load = |x: f64| 0.5 + (x - LEFT) / (WIDTH - LEFT - RIGHT) * 0.4;
        for ((line, band), one) in lines.iter().zip(&bands).zip(series()) {
            for (index, point) in one.points.iter().enumerate() {
                let (x, y) = line[index];
                assert!((load(x) - point.at).abs() < 1e-3, "{} {}", load(x), point.at);
                assert!((value(y) - point.value).abs() < 1e-3, "{} {point:?}", value(y));
                let upper = value(band[index].1) - point.value;
                assert!((upper - point.half).abs() < 1e-3, "{upper} {point:?}");
            }
        }
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"<b> & \"c\"\\u0001"), "{texts:?}");
        assert!(texts.contains(&"fair: load 0.5, 1.0000 ± 0.1000 s"), "{texts:?}");
        assert_eq!(text, curves(&series(), WORDS));
    }

    #[test]
    fn a_picture_of_one_point_or_of_nothing_is_a_picture() {
        let one: Vec<_> =
            series().into_iter().map(|one| Series { points: one.points[..1].to_vec(), ..one }).collect();
        for series in [one, Vec::new()] {
            let text = curves(&series, WORDS);
            assert!(roxmltree::Document::parse(&text).is_ok() && !text.contains("NaN"), "{text}");
        }
    }
}
