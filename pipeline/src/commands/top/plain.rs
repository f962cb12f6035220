//! Prints lines instead of a screen if standard output is not a terminal.

use std::io::Write;
use std::time::{Duration, Instant};

use super::client::{Client, News, POLL};
use super::model::{Link, Model};
use super::palette::Palette;
use super::screen::state_words;
use super::words::{UNKNOWN, milliseconds, rate, seconds, whole};
use crate::cli::Interrupt;
use crate::clock::wall_clock_ns;
use crate::commands::columns::utc;
use crate::printable::{printable_line, stdout};

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Prints a line every 5 s, and at once if the level of the state changes, until a signal comes or the pipe is closed.
pub fn run(client: &Client, interrupt: &Interrupt) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut model = Model::new(client.url(), false);
    let (mut due, mut sign) = (started, "");
    while !interrupt.is_set() {
        let asked = Instant::now();
        let state = client.state();
        model.now = started.elapsed();
        model.take(News::State(Box::new(state)));
        let (now, _, _) = state_words(&model, Palette { is_coloured: false });
        if due <= Instant::now() || now != sign {
            (due, sign) = (Instant::now() + LINE_INTERVAL, now);
            let mut out = stdout();
            writeln!(out, "{} {}", utc(wall_clock_ns()), printable_line(&line(&model)))?;
            out.flush()?;
        }
        if interrupt.wait(POLL.saturating_sub(asked.elapsed())) {
            break;
        }
    }
    Ok(())
}

/// Returns the state, rates, lag and latency on one line.
pub fn line(model: &Model) -> String {
    let (_, words, _) = state_words(model, Palette { is_coloured: false });
    let state = match (model.link(), &model.snapshot) {
        (Link::Answers, Some(state)) => state,
        (Link::Silent(_), _) => {
            return match &model.trouble {
                Some(trouble) => format!("{words} ({trouble})"),
                None => words,
            };
        }
        _ => return words,
    };
    let per_second = |values: &[f64]| values.last().map_or(UNKNOWN.to_owned(), |last| rate(*last));
    let lag = state.lag.as_ref().map_or(UNKNOWN.to_owned(), |lag| {
        format!("{} ({} records)", seconds(lag.seconds), whole(lag.records))
    });
    let latency = state.latency.as_ref().map_or(UNKNOWN.to_owned(), |latency| {
        format!("p50 {} p99 {}", milliseconds(latency.p50_ms), milliseconds(latency.p99_ms))
    });
    format!(
        "{}, {words} · ticks/s {} · lag {lag} · latency {latency} · signals/s {}",
        state.state.level,
        per_second(&state.history.ticks_per_s),
        per_second(&state.history.signals_per_s),
    )
}
