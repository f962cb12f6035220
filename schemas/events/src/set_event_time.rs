//! An operator's word among the ticks: how far event time has come.

use crate::check::{InvalidTick, TickProblem};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::wire::Wire;
use crate::{frame, known};

/// An operator's word among the ticks of a partition: the greatest event time that it has come to, from this record on. The process that is
/// told so by a command writes it, in the transaction with the answer, so that what follows is a function of the log alone.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct SetEventTime {
    /// Id of the command.
    pub id: String,
    /// Who sent it.
    pub by: String,
    /// The greatest event time from now on, in nanoseconds since the epoch; positive. The watermark is behind it by the allowed lateness.
    pub event_time_max_ns: i64,
}

impl SetEventTime {
    /// The record that a payload holds, if it names the schema of one.
    pub fn of(payload: &[u8]) -> Option<Result<Self, DecodeError>> {
        let (fingerprint, datum) = frame::split(payload).ok()?;
        (fingerprint == known::SET_EVENT_TIME.fingerprint).then(|| Self::read(datum))
    }

    fn read(datum: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(datum);
        let read = Self::get(&mut cursor)?;
        cursor.finish()?;
        Self::check(read.event_time_max_ns).map_err(|problem| InvalidTick {
            row: 0,
            field: "event_time_max_ns",
            problem,
        })?;
        Ok(read)
    }

    /// Refuses what is no event time.
    pub fn check(event_time_max_ns: i64) -> Result<(), TickProblem> {
        match event_time_max_ns {
            0 => Err(TickProblem::NoTime),
            i64::MAX => Err(TickProblem::NotANumber(i64::MAX)),
            time_ns if time_ns < 0 => Err(TickProblem::Negative(time_ns)),
            _ => Ok(()),
        }
    }
}
