//! An event time that an operator, a process or a feed sets among the ticks.

use crate::check::{InvalidTick, TickProblem};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::frame;
use crate::known::{self, KnownSchema};
use crate::wire::Wire;

/// Record among the ticks of a partition that sets the partition's greatest event time from there on. It is in the log,
/// so that all later outputs are a function of the log. A process writes it for an operator's command, in the
/// transaction of the answer, or by itself for a quiet partition. A feed writes it for a gap in its ticks.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct SetEventTime {
    /// Id of the command; empty if a process writes the record by itself.
    pub id: String,
    /// Sender: an operator, a process or a feed.
    pub by: String,
    /// Greatest event time from this record on, in nanoseconds since the Unix epoch; positive. The watermark is this
    /// time minus the allowed lateness.
    pub event_time_max_ns: i64,
    /// True if bars that this record closes are marked as partial, because more ticks of their intervals could have
    /// come.
    #[wire(since = 2, default = "false")]
    pub cuts_bars: bool,
    /// True if the record may only move event time forward. Then it has no effect if event time is already that far, or
    /// if the partition has none yet.
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

    /// Returns the first version of the schema that can represent the record.
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

    /// Refuses a number that is not a valid event time.
    pub fn check(event_time_max_ns: i64) -> Result<(), TickProblem> {
        match event_time_max_ns {
            0 => Err(TickProblem::NoTime),
            i64::MAX => Err(TickProblem::NotANumber(i64::MAX)),
            time_ns if time_ns < 0 => Err(TickProblem::Negative(time_ns)),
            _ => Ok(()),
        }
    }
}
