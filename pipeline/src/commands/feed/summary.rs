//! Text at the end of a feed.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::HumanCount;

use crate::publisher::Published;
use crate::usage_error::UsageError;
use warptape_sources::csv::CsvSource;
use warptape_sources::{PassedOver, Source, ZERO_TRADE};

/// Describes the published ticks and the rate.
pub fn published(published: Published, url: &str, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    format!(
        "published {} ticks in {} records to {url} in {seconds:.2} s ({} ticks/s)",
        HumanCount(published.ticks),
        HumanCount(published.records),
        HumanCount((published.ticks as f64 / seconds.max(1e-9)) as u64),
    )
}

/// Describes the input that yielded no ticks; empty if all of it did.
pub fn passed_over(passed_over: &PassedOver, place_word: &str) -> String {
    let mut text = String::new();
    for part in parts(passed_over, place_word) {
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}

/// Returns the counts of rows that are not trades, of messages without ticks by kind, and of bad lines or records
/// (`place_word`).
fn parts(passed_over: &PassedOver, place_word: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let zero_trades = passed_over.ignored.get(ZERO_TRADE).copied().unwrap_or(0);
    if zero_trades > 0 {
        let plural = if zero_trades == 1 { "" } else { "s" };
        parts.push(format!(
            "{} {}",
            HumanCount(zero_trades),
            ZERO_TRADE.replacen("trade", &format!("trade{plural}"), 1)
        ));
    }
    let kinds = passed_over.ignored.iter().filter(|(kind, _)| *kind != ZERO_TRADE);
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{}×{kind}", HumanCount(*count))).collect();
    if !kinds.is_empty() {
        parts.push(format!("ignored {}", kinds.join(", ")));
    }
    if passed_over.bad > 0 {
        parts.push(format!("skipped {} bad {place_word}s", HumanCount(passed_over.bad)));
    }
    parts
}

/// Writes further remarks on CSV files.
pub fn write_csv(out: &mut impl Write, csv: &CsvSource) -> io::Result<()> {
    if csv.has_hashed_ids() {
        writeln!(
            out,
            "trade ids that are not integers are stored as the lower 63 bits of their XXH3-64; repeated ones are not reported"
        )?;
    }
    for aside in csv.asides() {
        writeln!(out, "bad lines were written to {}", aside.path.display())?;
    }
    Ok(())
}

/// Refuses an input without any tick, because the user probably meant another one.
pub fn refuse_nothing(source: &Source) -> Result<(), UsageError> {
    let passed_over = source.passed_over();
    let mut parts = parts(&passed_over, source.place_word());
    if parts.is_empty() {
        parts.push("it has no rows".to_owned());
    }
    let mut found = format!("the input has no ticks: {}", parts.join(", "));
    if let Source::Csv(csv) = source {
        for aside in csv.asides() {
            let (path, line) = (aside.path.display(), aside.first_line);
            let _ = write!(
                found,
                "; {} of them in {path}, the first in line {line}: {}",
                aside.count, aside.problem
            );
        }
    }
    Err(UsageError(found + "; feed files with trades or quotes"))
}

/// Returns an error if the feed left ticks out.
pub fn refuse_unfit(passed_over: &PassedOver) -> Result<(), UsageError> {
    match passed_over.unfit() {
        0 => Ok(()),
        unfit => Err(UsageError(format!(
            "{} ticks were left out, because their numbers have too many digits. For CSV files, use --round \
             to round prices and sizes, or --skip-bad to leave such lines out",
            HumanCount(unfit)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_that_are_none_have_words_of_their_own() {
        let count = |zero: u64, depth: u64, bad| {
            let kinds = [(ZERO_TRADE, zero), ("depthUpdate", depth)].into_iter();
            let ignored = kinds.filter(|(_, count)| *count > 0).map(|(kind, count)| (kind.to_owned(), count));
            passed_over(&PassedOver { ignored: ignored.collect(), bad }, "line")
        };
        assert_eq!(count(0, 0, 0), "");
        assert_eq!(count(1, 0, 0), ", 1 trade of price or size 0");
        assert_eq!(
            count(2, 3, 4),
            ", 2 trades of price or size 0, ignored 3×depthUpdate, skipped 4 bad lines"
        );
    }
}
