//! Texts of a live feed: its reports, and the summary at its end.

use std::path::Path;

use indicatif::HumanCount;

use super::super::summary::passed_over;
use warptape_replay::utc;
use warptape_sources::live::{ClockSummary, Cut, LiveCounts, LiveVenue, TradeGap};

/// Remedy for clocks that are far apart.
pub const CLOCK_REMEDY: &str = "times of receipt and of the venue's events are far apart: check this machine's clock (NTP) and the network";

/// Describes the received messages.
pub fn counts(counts: &LiveCounts, connections: u64) -> String {
    let LiveCounts { messages, bad, repeated, earlier, recovered, unfit, .. } = counts;
    let mut text =
        format!("received {} messages over {}", HumanCount(*messages), number(connections, "connection"));
    text += &passed_over(&counts.passed_over, "message");
    for (count, what) in [
        (bad, "bad or of other symbols"),
        (repeated, "repeated"),
        (unfit, "with a number that a tick or the symbol's scale cannot hold"),
    ] {
        if *count > 0 {
            text += &format!(", {} {what} and left out", HumanCount(*count));
        }
    }
    if *earlier > 0 {
        text += &format!(", {} out of order", number(*earlier, "trade"));
    }
    if *recovered > 0 {
        text += &format!(", {} of them counted as missing before", HumanCount(*recovered));
    }
    text
}

/// Describes the first of so many cuts, one a line.
pub fn cuts<'a>(first: impl Iterator<Item = &'a Cut>, count: usize) -> Vec<String> {
    let mut lines: Vec<String> = first.map(cut).collect();
    if count > lines.len() {
        lines.push(format!("{} in all", number(count as u64, "cut")));
    }
    lines
}

/// Describes a cut and the time that it left without ticks.
pub fn cut(cut: &Cut) -> String {
    let Cut { time_ns, reason, symbols, unchecked, missing } = cut;
    let checked = symbols - unchecked;
    let found = match missing {
        0 if *symbols == 0 => "no trade came before it, so missing trades do not show".to_owned(),
        0 if checked == 0 => "no symbol has traded since, so missing trades do not show yet".to_owned(),
        0 => "no trade is missing".to_owned(),
        1 => "1 trade is missing".to_owned(),
        missing => format!("{} trades are missing", HumanCount(*missing)),
    };
    let unknown = match unchecked {
        0 => String::new(),
        _ if checked == 0 => String::new(),
        unchecked => format!(
            "; {} not traded since",
            number(*unchecked as u64, "symbol") + if *unchecked == 1 { " has" } else { " have" }
        ),
    };
    format!("connection cut at {}: {reason}: {found}{unknown}", utc(*time_ns))
}

/// Describes the first gaps, one a line, and then all gaps in one line.
pub fn gaps(first: &[TradeGap], counts: &LiveCounts) -> Vec<String> {
    let mut lines: Vec<String> = first.iter().map(gap).collect();
    if counts.gaps > lines.len() as u64 || counts.recovered > 0 {
        let (gaps, missing) = (number(counts.gaps, "gap"), number(counts.missing, "missing trade"));
        let recovered = match counts.recovered {
            0 => String::new(),
            recovered => format!(", without {} that came later", HumanCount(recovered)),
        };
        lines.push(format!("{gaps} in all, with {missing}{recovered}"));
    }
    lines
}

/// Describes a gap.
pub fn gap(gap: &TradeGap) -> String {
    let TradeGap { symbol, from, to, last_time_ns, found_time_ns, cut } = gap;
    let ids = if from == to { format!("id {from}") } else { format!("ids {from} to {to}") };
    let last = match last_time_ns {
        Some(time_ns) => format!("last trade before at {}, ", utc(*time_ns)),
        None => String::new(),
    };
    let cause = if cut.is_some() { "the connection was cut" } else { "the connection was not cut" };
    let trades = match gap.trades() {
        1 => "1 trade is missing".to_owned(),
        trades => format!("{} trades are missing", HumanCount(trades)),
    };
    format!("{symbol}: {trades}, {ids}: {last}found at {}; {cause}", utc(*found_time_ns))
}

/// Describes the difference of the clocks.
pub fn clock(clock: ClockSummary) -> String {
    let ClockSummary { median_ms, min_ns, max_ns } = clock;
    let ms = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
    format!(
        "trades were received {median_ms} ms after their event time in the median, {} to {}",
        ms(min_ns),
        ms(max_ns)
    )
}

/// Describes the ticks since the last report.
pub fn report(name: &str, ticks: u64, counts: &LiveCounts, recent: Option<ClockSummary>) -> String {
    let clock = recent.map_or("no trades".to_owned(), clock);
    let (gaps, missing) = (number(counts.gaps, "gap"), HumanCount(counts.missing));
    format!(
        "{name}: {} ticks in the last minute; {clock}; {gaps} so far with {missing} missing trades",
        HumanCount(ticks)
    )
}

/// Names the recording, and how to feed it again.
pub fn recorded(path: &Path, messages: u64, venue: LiveVenue, name: &str) -> String {
    let (path, source) = (path.display(), venue.recording_source());
    format!(
        "recorded {} in {path}; `feed {source} {name}={path}` feeds it into another log",
        number(messages, "message")
    )
}

fn number(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_says_what_is_missing_and_what_is_not_known() {
        let text = |symbols, unchecked, missing| {
            let all = cut(&Cut { time_ns: 0, reason: "closed".to_owned(), symbols, unchecked, missing });
            all.strip_prefix("connection cut at 1970-01-01T00:00:00.000000Z: closed: ")
                .expect("a head")
                .to_owned()
        };
        assert_eq!(text(2, 0, 0), "no trade is missing");
        assert_eq!(text(2, 0, 1), "1 trade is missing");
        assert_eq!(text(3, 1, 1_000), "1,000 trades are missing; 1 symbol has not traded since");
        assert_eq!(text(3, 2, 0), "no trade is missing; 2 symbols have not traded since");
        assert_eq!(text(2, 2, 0), "no symbol has traded since, so missing trades do not show yet");
        assert_eq!(text(0, 0, 0), "no trade came before it, so missing trades do not show");
        let one = Cut { time_ns: 0, reason: String::new(), symbols: 0, unchecked: 0, missing: 0 };
        assert_eq!(cuts(std::iter::repeat_n(&one, 20), 20).len(), 20);
        assert_eq!(cuts(std::iter::repeat_n(&one, 20), 21).pop().as_deref(), Some("21 cuts in all"));
    }

    #[test]
    fn a_gap_names_its_ids_and_times() {
        let mut missing = TradeGap {
            symbol: "V:A".to_owned(),
            from: 7,
            to: 9,
            last_time_ns: Some(1_000),
            found_time_ns: 2_000,
            cut: Some(0),
        };
        assert_eq!(
            gap(&missing),
            "V:A: 3 trades are missing, ids 7 to 9: last trade before at 1970-01-01T00:00:00.000001Z, found at \
             1970-01-01T00:00:00.000002Z; the connection was cut"
        );
        missing.to = 7;
        (missing.last_time_ns, missing.cut) = (None, None);
        let text = gap(&missing);
        assert!(
            text.starts_with("V:A: 1 trade is missing, id 7: found at ") && text.ends_with("not cut"),
            "{text}"
        );
        let mut all = LiveCounts { gaps: 30, missing: 90, ..LiveCounts::default() };
        let last = |all: &LiveCounts| gaps(std::slice::from_ref(&missing), all).pop();
        assert_eq!(last(&all).as_deref(), Some("30 gaps in all, with 90 missing trades"));
        (all.gaps, all.missing, all.recovered) = (1, 1, 2);
        let recovered = "1 gap in all, with 1 missing trade, without 2 that came later";
        assert_eq!(last(&all).as_deref(), Some(recovered));
    }

    #[test]
    fn counts_name_what_is_left_out() {
        let mut all = LiveCounts { messages: 1_234, ..LiveCounts::default() };
        assert_eq!(counts(&all, 1), "received 1,234 messages over 1 connection");
        (all.bad, all.repeated, all.earlier, all.unfit, all.recovered) = (1, 2, 3, 4, 1);
        assert_eq!(
            counts(&all, 2),
            "received 1,234 messages over 2 connections, 1 bad or of other symbols and left out, 2 repeated and left \
             out, 4 with a number that a tick or the symbol's scale cannot hold and left out, 3 trades out of order, \
             1 of them counted as missing before"
        );
    }
}
