//! Candles of a symbol. Each line of the screen covers two steps of price.
//!
//! A rising candle has a thin body and a falling one a thick body, so colours are not needed.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::model::Model;
use super::palette::Palette;
use super::table::Room;
use super::words::{shown, sparkline, time_of_day};
use crate::commands::fit::cut;
use crate::endpoint::live::snapshot::{Candle, Candles};

/// Least height at which a line of times appears below the candles.
const TIMES_MIN: usize = 7;
/// Least height at which a line of other signals appears.
const SIGNALS_MIN: usize = 9;
/// Least width at which prices appear beside the candles.
const PRICES_MIN: usize = 30;

/// Prices of a candle as numbers, used only for drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prices {
    open: f64,
    high: f64,
    low: f64,
    close: f64,
}

/// Part of a candle at a step of price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Wick,
    Body,
}

/// Returns the title: symbol, bar, last price, its change within the last candle, and its volume.
pub fn title(model: &Model, palette: Palette) -> Vec<Span<'static>> {
    let Some(wish) = &model.wish else { return vec![Span::raw("candles")] };
    let mut spans = vec![Span::raw(shown(&wish.symbol)), Span::raw(format!(" {}", shown(&wish.bar)))];
    if let Some(Ok(candles)) = &model.candles
        && let Some(last) = candles.candles.last()
    {
        let is_rising = prices(last).is_some_and(|prices| prices.close >= prices.open);
        let sign = if is_rising { '▲' } else { '▼' };
        spans.push(Span::styled(format!(" {sign} {}", shown(&last.close)), direction(is_rising, palette)));
        spans.push(Span::styled(format!(" vol {}", shown(&last.volume)), palette.faint()));
    }
    spans
}

/// Returns the candles as lines.
pub fn lines(model: &Model, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let words = |words: String| vec![Line::from(cut(&words, room.width))];
    match (&model.wish, &model.candles) {
        (None, _) => words("no symbol has candles yet".to_owned()),
        (Some(_), None) => words("asking for its candles".to_owned()),
        (Some(_), Some(Err(trouble))) => words(shown(&trouble.to_string())),
        (Some(_), Some(Ok(candles))) if candles.candles.is_empty() => words("no closed bar yet".to_owned()),
        (Some(_), Some(Ok(candles))) => drawn(candles, room, palette),
    }
}

fn drawn(candles: &Candles, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let last = candles.candles.last().map(|last| shown(&last.close)).unwrap_or_default();
    let axis = if room.width < PRICES_MIN { 0 } else { (last.width() + 1).clamp(8, 16) };
    let columns = room.width - axis;
    // A blank between two candles keeps their bodies apart.
    let fitting = (columns / 2).max(1);
    let drawn = &candles.candles[candles.candles.len().saturating_sub(fitting)..];
    let below = usize::from(room.height >= TIMES_MIN) + usize::from(room.height >= SIGNALS_MIN) + 1;
    let Some(scale) = Scale::of(drawn, room.height.saturating_sub(below)) else {
        return vec![Line::from(cut("prices that are no numbers", room.width))];
    };
    let mut lines: Vec<Line<'static>> =
        (0..scale.lines).map(|line| candle_line(drawn, &scale, line, (axis, &last), palette)).collect();
    if room.height >= SIGNALS_MIN {
        lines.push(Line::styled(signal_marks(candles, drawn), palette.warning()));
    }
    lines.push(Line::styled(volumes(drawn), palette.accent()));
    if room.height >= TIMES_MIN {
        lines.push(Line::styled(times(drawn, columns), palette.faint()));
    }
    lines.truncate(room.height);
    lines
}

/// Maps prices to lines.
struct Scale {
    low: f64,
    high: f64,
    lines: usize,
}

impl Scale {
    /// Returns the scale of these candles; `None` if none has prices.
    fn of(candles: &[Candle], lines: usize) -> Option<Self> {
        let all = || candles.iter().filter_map(prices);
        let low = all().map(|prices| prices.low).reduce(f64::min)?;
        let high = all().map(|prices| prices.high).reduce(f64::max)?;
        Some(Self { low, high, lines: lines.max(1) })
    }

    /// Returns the step of a price, from 0 at the bottom; a line has two steps.
    fn step(&self, price: f64) -> usize {
        let steps = self.lines * 2 - 1;
        let range = self.high - self.low;
        if range > 0.0 { ((price - self.low) / range * steps as f64).round() as usize } else { steps / 2 }
    }

    /// Returns the price in the middle of a line, counted from the top.
    fn price(&self, line: usize) -> f64 {
        let share = 1.0 - (line as f64 + 0.5) / self.lines as f64;
        self.low + (self.high - self.low) * share
    }
}

fn prices(candle: &Candle) -> Option<Prices> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|price| price.is_finite());
    Some(Prices {
        open: number(&candle.open)?,
        high: number(&candle.high)?,
        low: number(&candle.low)?,
        close: number(&candle.close)?,
    })
}

fn direction(is_rising: bool, palette: Palette) -> Style {
    if is_rising { palette.good() } else { palette.bad() }
}

/// Draws one line of all candles, and the line's price. Lines count from the top.
fn candle_line(
    candles: &[Candle],
    scale: &Scale,
    line: usize,
    (axis, last): (usize, &str),
    palette: Palette,
) -> Line<'static> {
    let upper = (scale.lines - line) * 2 - 1;
    let mut spans = Vec::with_capacity(candles.len() + 1);
    for candle in candles {
        let Some(prices) = prices(candle) else {
            spans.push(Span::raw("  "));
            continue;
        };
        let is_rising = prices.close >= prices.open;
        let sign = sign(part(prices, scale, upper), part(prices, scale, upper - 1), is_rising);
        spans.push(Span::styled(format!("{sign} "), direction(is_rising, palette)));
    }
    if axis > 0 {
        spans.push(price_label(candles, scale, line, (axis, last), palette));
    }
    Line::from(spans)
}

/// Returns the price label of a line. The line of the last price gets that price as the log has it; some others get a
/// rounded price.
fn price_label(
    candles: &[Candle],
    scale: &Scale,
    line: usize,
    (axis, last): (usize, &str),
    palette: Palette,
) -> Span<'static> {
    let close = candles.last().and_then(prices).map(|prices| scale.step(prices.close) / 2);
    let room = axis.saturating_sub(1);
    if close == Some(scale.lines - 1 - line) {
        return Span::styled(format!("◂{}", cut(last, room)), palette.accent());
    }
    let is_labelled = line == 0 || line + 1 == scale.lines || line.is_multiple_of(4);
    if !is_labelled {
        return Span::raw("");
    }
    let decimals = last.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(8));
    let price = format!("{:.decimals$}", scale.price(line));
    Span::styled(format!(" {}", cut(&price, room)), palette.faint())
}

fn part(prices: Prices, scale: &Scale, step: usize) -> Part {
    let (open, close) = (scale.step(prices.open), scale.step(prices.close));
    if (open.min(close)..=open.max(close)).contains(&step) {
        Part::Body
    } else if (scale.step(prices.low)..=scale.step(prices.high)).contains(&step) {
        Part::Wick
    } else {
        Part::Nothing
    }
}

fn sign(upper: Part, lower: Part, is_rising: bool) -> char {
    match (upper, lower, is_rising) {
        (Part::Nothing, Part::Nothing, _) => ' ',
        (Part::Nothing, Part::Wick, _) => '╷',
        (Part::Wick, Part::Nothing, _) => '╵',
        (Part::Wick, Part::Wick, _) => '│',
        (Part::Nothing, Part::Body, true) => '╻',
        (Part::Body, Part::Nothing, true) => '╹',
        (Part::Body, Part::Body, true) => '┃',
        (Part::Wick, Part::Body, true) => '╽',
        (Part::Body, Part::Wick, true) => '╿',
        (Part::Body, Part::Body, false) => '█',
        (_, Part::Body, false) => '▄',
        (Part::Body, _, false) => '▀',
    }
}

/// Marks the candles at whose end there is another signal.
fn signal_marks(candles: &Candles, drawn: &[Candle]) -> String {
    let has_signal = |candle: &Candle| candles.signals.iter().any(|signal| signal.end == candle.end);
    drawn.iter().map(|candle| if has_signal(candle) { "◆ " } else { "  " }).collect()
}

fn volumes(drawn: &[Candle]) -> String {
    let number = |candle: &Candle| candle.volume.parse::<f64>().ok().filter(|volume| volume.is_finite());
    let values: Vec<Option<f64>> = drawn.iter().map(number).collect();
    sparkline(&values, values.len()).chars().flat_map(|block| [block, ' ']).collect()
}

/// Returns the end times of the first and the last candle; only the last if both do not fit.
fn times(drawn: &[Candle], columns: usize) -> String {
    let end = |candle: Option<&Candle>| candle.map(|candle| time_of_day(&candle.end, 0)).unwrap_or_default();
    let (first, last) = (end(drawn.first()), end(drawn.last()));
    let taken = (drawn.len() * 2).saturating_sub(1).min(columns);
    match taken.checked_sub(first.width() + last.width() + 1) {
        Some(blanks) => format!("{first}{}{last}", " ".repeat(blanks + 1)),
        None => cut(&last, columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(open: &str, high: &str, low: &str, close: &str) -> Candle {
        let [open, high, low, close] = [open, high, low, close].map(str::to_owned);
        Candle { open, high, low, close, volume: "10".to_owned(), ..Candle::default() }
    }

    fn shapes(candles: &[Candle], lines: usize) -> Vec<String> {
        let scale = Scale::of(candles, lines).expect("prices");
        let palette = Palette { is_coloured: false };
        (0..lines).map(|line| candle_line(candles, &scale, line, (0, ""), palette).to_string()).collect()
    }

    #[test]
    fn candles_have_wicks_and_bodies_by_direction() {
        let rising = candle("2", "8", "1", "5");
        let falling = candle("5", "8", "1", "2");
        assert_eq!(shapes(&[rising, falling], 4), ["│ │ ", "╽ ▄ ", "┃ █ ", "╿ ▀ "]);
    }

    #[test]
    fn equal_prices_are_a_line_in_the_middle() {
        assert_eq!(shapes(&[candle("5", "5", "5", "5")], 3), ["  ", "╻ ", "  "]);
    }

    #[test]
    fn prices_that_are_no_numbers_are_left_out() {
        let candles = [candle("1", "2", "1", "2"), candle("x", "NaN", "inf", "")];
        assert!(shapes(&candles, 2).iter().all(|line| line.ends_with("   ")), "{:?}", shapes(&candles, 2));
        assert!(Scale::of(&candles[1..], 2).is_none());
    }
}
