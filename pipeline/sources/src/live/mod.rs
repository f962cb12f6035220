//! Live feeds without sockets and clocks. A [`LiveVenue`] knows addresses and subscriptions. A [`LiveSession`] converts
//! messages to ticks, finds missing trades, and compares the clocks. [`Backoff`] computes the waits between
//! connections.

mod backoff;
mod clock_difference;
mod cuts;
mod missing;
mod session;
mod trade_ids;
mod venue;

pub use self::backoff::Backoff;
pub use self::clock_difference::{ClockDifferences, ClockSummary};
pub use self::cuts::{Cut, FIRST_CUTS};
pub use self::session::{LiveCounts, LiveSession, Outcome, Received};
pub use self::trade_ids::TradeGap;
pub use self::venue::{LiveVenue, SYMBOLS_MAX};

/// Returns a message as a line of a recording, `<receive ns> <JSON>`, without its end. Line breaks become blanks,
/// because in JSON they only occur between parts.
pub fn line_of(receive_time_ns: i64, text: &str) -> Vec<u8> {
    let mut line = format!("{receive_time_ns} ").into_bytes();
    line.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    line
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_is_one_line() {
        assert_eq!(super::line_of(5, "{\n\"a\":\r\n1}"), b"5 { \"a\":  1}");
    }
}
