//! Files of fleets, workloads and recordings. Reading checks them; errors name the faulty field.

mod autoscale;
mod fleet;
mod ticks;
mod trace;
mod workload;

use thiserror::Error;
use warptape_events::journal::TaskClass;

pub use autoscale::AutoscaleFile;
pub use fleet::{ClassFile, FailureFile, FleetFile, ThrottlingFile};
pub use ticks::{TicksFile, check_ticks};
pub use trace::{TRACE_COLUMNS, trace};
pub use workload::{KindFile, TenantFile, WorkloadFile};

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FileError {
    /// A number is out of its range.
    #[error("{field} is {found}; it must be {allowed}")]
    Number {
        /// The field.
        field: String,
        /// The value found.
        found: f64,
        /// The allowed range.
        allowed: &'static str,
    },
    /// A word is unknown.
    #[error("{field} is {found:?}; it must be one of: {allowed}")]
    Word {
        /// The field.
        field: String,
        /// The word found.
        found: String,
        /// The allowed words.
        allowed: &'static str,
    },
    /// A list is empty.
    #[error("{0} is empty; give at least one")]
    Empty(&'static str),
    /// No lane of the fleet can do a kind.
    #[error(
        "no class of the fleet has a speed for tasks of the kind {kind:?}; the fleet has speeds for: {known}"
    )]
    Kind {
        /// The kind.
        kind: String,
        /// The kinds that the fleet knows.
        known: String,
    },
    /// A failure, throttling or price names an unknown class.
    #[error("{field} names the class {found:?}; the fleet has: {known}")]
    Class {
        /// The field that contains the name.
        field: String,
        /// The name found.
        found: String,
        /// The fleet's classes.
        known: String,
    },
    /// A failure has neither a fixed time nor times to draw from.
    #[error(
        "a failure of {class} needs either at_s (with back_after_s if the lanes come back) or mtbf_s and mttr_s, but not both"
    )]
    Failure {
        /// The failure's class.
        class: String,
    },
    /// The failures leave no lane.
    #[error("failures leave no lane in the end; let at least one come back, with back_after_s")]
    AllLost,
    /// A class has no speed at ticks.
    #[error(
        "the class {class} has no ticks_per_s, but the workload has [ticks]; give the ticks per second of one of its lanes"
    )]
    TickSpeed {
        /// The class.
        class: String,
    },
    /// A fleet with autoscaling is combined with ticks.
    #[error(
        "the fleet has [autoscale] and the workload has [ticks]; autoscaling is simulated only with tasks: remove one of the two"
    )]
    TicksAutoscaled,
    /// A line of a recording cannot be read.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
}

/// Number of units in a second of work.
const UNITS_PER_S: f64 = 2_000.0;
/// Longest task, in seconds: a day.
const SIZE_S_MAX: f64 = 86_400.0;

fn number(
    field: impl Into<String>,
    found: f64,
    is_allowed: bool,
    allowed: &'static str,
) -> Result<(), FileError> {
    match is_allowed {
        true => Ok(()),
        false => Err(FileError::Number { field: field.into(), found, allowed }),
    }
}

fn is_positive(found: f64) -> bool {
    found > 0.0 && found <= SIZE_S_MAX
}

fn class_of(field: impl Into<String>, word: &str) -> Result<TaskClass, FileError> {
    match word {
        "critical" => Ok(TaskClass::Critical),
        "interactive" => Ok(TaskClass::Interactive),
        "batch" => Ok(TaskClass::Batch),
        _ => {
            let (field, found) = (field.into(), word.to_owned());
            Err(FileError::Word { field, found, allowed: "critical, interactive, batch" })
        }
    }
}

#[cfg(test)]
mod tests;
