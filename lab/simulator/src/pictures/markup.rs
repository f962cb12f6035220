//! What all pictures are made of: a frame, axes, text that is escaped, keys.

use std::fmt::Write;

use super::{number, step};

pub(super) const WIDTH: f64 = 760.0;
pub(super) const LEFT: f64 = 100.0;
pub(super) const RIGHT: f64 = 20.0;
pub(super) const TOP: f64 = 48.0;
/// Room below for the axis and its name.
pub(super) const BOTTOM: f64 = 46.0;
const KEY_HEIGHT: f64 = 18.0;
const KEY_WIDTH: f64 = 160.0;
const KEYS_IN_LINE: usize = 4;
/// Grey that is readable on white and on black.
const GREY: &str = "#808080";

/// A picture under way.
pub(super) struct Picture {
    text: String,
}

/// Text as XML has it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no other control characters, escaped or not.
            '\t' | '\n' | '\r' => out.push(' '),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

impl Picture {
    /// A picture of a height with a title and its keys, a name and colour each; they stand below the plot.
    pub(super) fn new(title: &str, plot_height: f64, keys: &[(String, &str)]) -> Self {
        let lines = keys.len().div_ceil(KEYS_IN_LINE) as f64;
        let height = TOP + plot_height + BOTTOM + lines * KEY_HEIGHT;
        let mut text = String::new();
        let _ = write!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"{GREY}\">\n<title>{}</title>\n",
            escaped(title)
        );
        let mut picture = Self { text };
        picture.label(LEFT, 20.0, "start", title);
        for (index, (name, colour)) in keys.iter().enumerate() {
            let x = LEFT + (index % KEYS_IN_LINE) as f64 * KEY_WIDTH;
            let y = TOP + plot_height + BOTTOM + (index / KEYS_IN_LINE) as f64 * KEY_HEIGHT;
            picture.rect("key", (x, y - 6.0), (10.0, 10.0), colour, "");
            picture.label(x + 15.0, y + 3.0, "start", name);
        }
        picture
    }

    /// Text at a place; `anchor` is `start`, `middle` or `end`.
    pub(super) fn label(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    /// A rectangle with what it says when one points at it.
    pub(super) fn rect(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (w, h): (f64, f64),
        fill: &str,
        tip: &str,
    ) {
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\" fill=\"{fill}\""
        );
        match tip {
            "" => self.text.push_str("/>\n"),
            tip => {
                let _ = writeln!(self.text, "><title>{}</title></rect>", escaped(tip));
            }
        }
    }

    /// A line through points.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)], colour: &str) {
        let _ = writeln!(
            self.text,
            "<polyline class=\"{class}\" points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            joined(points)
        );
    }

    /// An area around points.
    pub(super) fn band(&mut self, points: &[(f64, f64)], colour: &str) {
        let _ = writeln!(
            self.text,
            "<polygon class=\"band\" points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.2\"/>",
            joined(points)
        );
    }

    /// A thin line of the grid.
    fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{GREY}\" stroke-opacity=\"0.3\"/>",
            joined(&[from, to])
        );
    }

    /// The axis below the plot, from one value to another.
    pub(super) fn axis_below(&mut self, axis: &Axis, plot_height: f64, name: &str) {
        for (value, text) in axis.ticks() {
            let x = LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT);
            self.grid((x, TOP), (x, TOP + plot_height));
            self.label(x, TOP + plot_height + 16.0, "middle", &text);
        }
        self.label((LEFT + WIDTH - RIGHT) / 2.0, TOP + plot_height + 32.0, "middle", name);
    }

    /// The axis beside the plot.
    pub(super) fn axis_beside(&mut self, axis: &Axis, plot_height: f64, name: &str) {
        for (value, text) in axis.ticks() {
            let y = TOP + (1.0 - axis.share(value)) * plot_height;
            self.grid((LEFT, y), (WIDTH - RIGHT, y));
            self.label(LEFT - 6.0, y + 4.0, "end", &text);
        }
        self.label(LEFT, TOP - 7.0, "start", name);
    }

    pub(super) fn close(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

fn joined(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect::<Vec<_>>().join(" ")
}

/// Values along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
}

impl Axis {
    pub(super) fn new(from: f64, to: f64) -> Self {
        // An axis has a length, whatever it shows.
        Self { from, to: if to > from { to } else { from + 1.0 } }
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let step = step(self.to - self.from, 6.0);
        let first = (self.from / step).ceil();
        let ticks = (0..20).map(|index| (first + f64::from(index)) * step);
        ticks
            .take_while(|value| *value <= self.to * 1.000_001)
            .map(|value| (value, number(value, step)))
            .collect()
    }
}
