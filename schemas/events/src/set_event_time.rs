//! A statement among the ticks of how far event time has come, by an operator or a process.

use crate::check::{InvalidTick, TickProblem};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::frame;
use crate::known::{self, KnownSchema};
use crate::wire::Wire;

/// A word among the ticks of a partition: the greatest event time that it has come to, from this record on. An operator says it, and the process
/// that is told so by a command writes it in the transaction with the answer; or a process says it of a partition that has become quiet. So what
/// follows is a function of the log alone.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct SetEventTime {
    /// Id of the command; empty where a process says it by itself.
    pub id: String,
    /// Who sent it.
    pub by: String,
    /// The greatest event time from now on, in nanoseconds since the epoch; positive. The watermark is behind it by the allowed lateness.
    pub event_time_max_ns: i64,
    /// Whether bars that close by it are partial, since event time comes no further by ticks of their own time.
    #[wire(since = 2, default = "false")]
    pub cuts_bars: bool,
    /// Whether it is no word at all where event time has come further.
    #[wire(since = 2, default = "false")]
    pub only_forward: bool,
}

impl SetEventTime {
    /// Returns the record in a payload; `None` if the payload names another schema.
    pub fn of(payload: &[u8]) -> Option<Result<Self, DecodeError>> {
        let (fingerprint, datum) = frame::split(payload).ok()?;
        let version = Self::version_of(fingerprint)?;
        Some(Self::read(datum, version))
    }

    /// Returns the version of this record's schema with a fingerprint; `None` for other schemas.
    pub fn version_of(fingerprint: u64) -> Option<u32> {
        let schemas = [known::SET_EVENT_TIME_1, known::SET_EVENT_TIME];
        schemas.into_iter().find(|schema| schema.fingerprint == fingerprint).map(|schema| schema.version)
    }

    /// Returns the first version of the schema that can hold it.
    pub(crate) fn schema(&self) -> KnownSchema {
        if self.cuts_bars || self.only_forward { known::SET_EVENT_TIME } else { known::SET_EVENT_TIME_1 }
    }

    fn read(datum: &[u8], version: u32) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(datum);
        let read = Self::get_version(&mut cursor, version)?;
        cursor.finish()?;
        Self::check(read.event_time_max_ns).map_err(|problem| InvalidTick {
            row: 0,
            field: "event_time_max_ns",
            problem,
        })?;
        Ok(read)
    }

    /// Refuses a number that is no event time.
    pub fn check(event_time_max_ns: i64) -> Result<(), TickProblem> {
        match event_time_max_ns {
            0 => Err(TickProblem::NoTime),
            i64::MAX => Err(TickProblem::NotANumber(i64::MAX)),
            time_ns if time_ns < 0 => Err(TickProblem::Negative(time_ns)),
            _ => Ok(()),
        }
    }
}
