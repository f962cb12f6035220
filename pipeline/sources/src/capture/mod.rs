//! Recorded messages of a venue's streams: text files, packed or not, with a line `<receive ns> <JSON>` per message.
//!
//! Each venue's module converts its messages to ticks. Files and live feeds share it, so that the recording of a live
//! feed yields the same ticks as the feed.

mod file;
mod scalar;

use warptape_events::tick::Tick;

pub use self::file::CaptureFile;
pub(crate) use self::scalar::{Scalar, prices, sizes};
use crate::time_unit::TimeUnit;
use crate::{FieldProblem, PassedOver};

/// Converts the messages of one venue to ticks, in the order of their receipt.
pub trait VenueMessages {
    /// Converts the message of a line `<receive ns> <JSON>`.
    ///
    /// # Errors
    /// The field that does not parse. The line then has no effect on later lines, unless only its number does not fit a
    /// tick.
    fn read(&mut self, line: &[u8]) -> Result<Message, FieldProblem>;

    /// Undoes the last line, as if it had not been read.
    fn forget_last(&mut self) {}
}

/// Contents of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A trade or a quote.
    Tick(Tick),
    /// A numbered trade that does not become a tick, such as one of size 0.
    PassedTrade {
        /// Kind under which it is counted.
        kind: String,
        /// Symbol with venue, and trade id; `None` if the message lacks one of them.
        trade: Option<(String, i64)>,
    },
    /// A numbered trade with a price or a size that does not fit a tick. It has no effect on later lines.
    UnfitTrade {
        /// The number.
        problem: FieldProblem,
        /// Symbol with venue.
        symbol: String,
        /// Its id.
        trade_id: i64,
    },
    /// The id of a symbol's newest trade.
    LastTrade {
        /// Kind under which it is counted.
        kind: &'static str,
        /// Symbol with venue.
        symbol: String,
        /// Id of the trade.
        trade_id: i64,
    },
    /// The venue refused the subscription, for this reason.
    Refused(String),
    /// Any other message, by kind.
    Other(String),
}

impl Message {
    /// Returns the tick; counts any other message by its kind.
    ///
    /// # Errors
    /// The number that does not fit a tick.
    fn into_tick(self, passed_over: &mut PassedOver) -> Result<Option<Tick>, FieldProblem> {
        match self {
            Message::Tick(tick) => return Ok(Some(tick)),
            Message::UnfitTrade { problem, .. } => return Err(problem),
            Message::PassedTrade { kind, .. } | Message::Other(kind) => passed_over.ignore(&kind),
            Message::LastTrade { kind, .. } => passed_over.ignore(kind),
            Message::Refused(_) => passed_over.ignore("error"),
        }
        Ok(None)
    }
}

/// Splits a line into the receive time and the JSON.
pub(crate) fn split_line(line: &[u8]) -> Result<(i64, &[u8]), FieldProblem> {
    let space = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let (receive, json) = line.split_at(space);
    let unit = TimeUnit::Nanoseconds;
    let receive_time_ns =
        unit.parse_ns(receive).ok_or_else(|| FieldProblem::new("receive time", receive, unit.expected()))?;
    Ok((receive_time_ns, json))
}

/// Parses the JSON of a message.
pub(crate) fn parse_json<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, FieldProblem> {
    serde_json::from_slice(json)
        .map_err(|error| FieldProblem::new("event", json, format!("the JSON of a stream's event ({error})")))
}
