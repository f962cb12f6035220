//! Stand-alone pictures: a frame, axes and keys around a plot. They need no script or special font, are readable on
//! light and dark backgrounds, and have the same bytes for the same figures.

use maud::{Markup, PreEscaped, Render as _, html};

use super::axis::Axis;
use super::paths::{place, polyline};
use super::text::shown;

/// Width of a picture.
pub const WIDTH: f64 = 760.0;
/// Room for the axis on the left of the plot.
pub const LEFT: f64 = 100.0;
/// Room on the right of the plot.
pub const RIGHT: f64 = 20.0;
/// Room for the title above the plot.
pub const TOP: f64 = 48.0;
/// Room for the axis and its name below the plot.
const BOTTOM: f64 = 46.0;
const KEY_HEIGHT: f64 = 18.0;
const KEY_WIDTH: f64 = 215.0;
const KEYS_IN_LINE: usize = 3;
/// Grey that is readable on white and on black.
const GREY: &str = "#808080";
/// Colours of series and kinds, in order. Each contrasts with white and with black.
const COLOURS: [&str; 8] =
    ["#3b82c4", "#d9730d", "#2f9e63", "#c2449b", "#8a6fd1", "#b08900", "#d64545", "#2a9aa8"];

/// Returns the colour of a series or kind, by its number.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// A picture in progress.
pub struct Picture {
    title: String,
    plot_height: f64,
    /// Number of lines that the keys take.
    lines: usize,
    drawn: String,
}

impl Picture {
    /// Makes a picture with a title. Below the plot are the keys' names, each in the colour of its number.
    pub fn new<'a>(title: &str, plot_height: f64, keys: impl Iterator<Item = &'a str>) -> Self {
        let mut picture = Self { title: title.to_owned(), plot_height, lines: 0, drawn: String::new() };
        picture.label((LEFT, 20.0), "start", title);
        for (index, name) in keys.enumerate() {
            let x = LEFT + (index % KEYS_IN_LINE) as f64 * KEY_WIDTH;
            let y = TOP + plot_height + BOTTOM + (index / KEYS_IN_LINE) as f64 * KEY_HEIGHT;
            picture.rect("key", (x, y - 6.0), (10.0, 10.0), colour(index), "");
            picture.label((x + 15.0, y + 3.0), "start", name);
            picture.lines = index / KEYS_IN_LINE + 1;
        }
        picture
    }

    fn draw(&mut self, drawn: Markup) {
        drawn.render_to(&mut self.drawn);
        self.drawn.push('\n');
    }

    /// Adds text at a place; `anchor` is `start`, `middle` or `end`.
    pub fn label(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        self.draw(html! { text x=(place(x)) y=(place(y)) text-anchor=(anchor) { (text) } });
    }

    /// Adds a rectangle with a tip that is shown on hovering.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64), fill: &str, tip: &str) {
        let [x, y, w, h] = [x, y, w, h].map(place);
        self.draw(html! {
            rect class=(class) x=(x) y=(y) width=(w) height=(h) fill=(fill) { @if !tip.is_empty() { title { (tip) } } }
        });
    }

    /// Adds a line through points.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)], colour: &str) {
        self.draw(
            html! { path class=(class) d=(polyline(points)) fill="none" stroke=(colour) stroke-width="2" {} },
        );
    }

    /// Adds an area around points.
    pub fn band(&mut self, points: &[(f64, f64)], colour: &str) {
        self.draw(
            html! { path class="band" d={ (polyline(points)) "Z" } fill=(colour) fill-opacity="0.2" {} },
        );
    }

    fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.draw(html! { path d=(polyline(&[from, to])) fill="none" stroke=(GREY) stroke-opacity="0.3" {} });
    }

    /// Adds the axis below the plot.
    pub fn axis_below(&mut self, axis: &Axis, name: &str) {
        let bottom = TOP + self.plot_height;
        for line in axis.lines() {
            let x = LEFT + line.at * (WIDTH - LEFT - RIGHT);
            self.grid((x, TOP), (x, bottom));
            self.label((x, bottom + 16.0), "middle", &line.label);
        }
        self.label(((LEFT + WIDTH - RIGHT) / 2.0, bottom + 32.0), "middle", name);
    }

    /// Adds the axis beside the plot.
    pub fn axis_beside(&mut self, axis: &Axis, name: &str) {
        for line in axis.lines() {
            let y = TOP + (1.0 - line.at) * self.plot_height;
            self.grid((LEFT, y), (WIDTH - RIGHT, y));
            self.label((LEFT - 6.0, y + 4.0), "end", &line.label);
        }
        self.label((LEFT, TOP - 7.0), "start", name);
    }

    /// Returns the picture as SVG.
    pub fn into_svg(self) -> String {
        let height = TOP + self.plot_height + BOTTOM + self.lines as f64 * KEY_HEIGHT;
        let size = format!("0 0 {WIDTH} {height}");
        shown(html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(size) width=(WIDTH) height=(height) font-family="sans-serif" font-size="12" fill=(GREY) {
                "\n" title { (self.title) } "\n" (PreEscaped(self.drawn))
            }
            "\n"
        })
    }
}
