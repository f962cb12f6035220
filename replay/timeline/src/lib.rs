//! A recorded run as a trace for Perfetto (<https://ui.perfetto.dev>): the work of each lane over time, the waits, and
//! the commits with their results.
//!
//! ```text
//!  journal ──► history ──► Timeline ──► Packets ──► FILE
//!               items       slices,      bytes
//!                           flows
//! ```
//!
//! The trace follows Perfetto's published definitions (`proto`). It is written while it is drawn: memory is bounded by
//! what a history keeps, and some bytes per track. This crate does not know settings or the command line, and does not
//! judge the run.

mod commits;
mod names;
mod packets;
pub mod proto;
mod timeline;
mod tracks;
mod words;
mod work;

use std::io;

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError};
use warptape_replay::history::{Ended, HistoryOptions, Window, read_history};
use warptape_replay::{ReplayError, ReplayProgress};

pub use self::timeline::Timeline;

/// Reasons why a timeline cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The log cannot be read, or has nothing to draw.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The trace cannot be written.
    #[error("the timeline cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

/// Contents of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// Number of process lives.
    pub lives: u64,
    /// Number of batches.
    pub batches: u64,
    /// Number of transactions.
    pub commits: u64,
    /// Number of moves of groups.
    pub moves: u64,
    /// Number of slices on all tracks, without nested ones.
    pub slices: u64,
    /// Number of slices and other events that were left out, because too many overlap on a track or there are too many
    /// tracks.
    pub left_out: u64,
    /// Size of the trace, in bytes.
    pub bytes: u64,
}

/// Writes the timeline of a window of journals. Memory is bounded by what a history keeps.
///
/// # Errors
/// If the log cannot be read, has no journal, or the trace cannot be written. The written part is then not a valid
/// trace.
pub fn write_timeline(
    log: &dyn EventLog,
    out: impl io::Write,
    options: &HistoryOptions,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Drawn, TimelineError> {
    let is_window = options.window != Window::default();
    let mut timeline = Timeline::new(out, is_window);
    let mut failed: Option<io::Error> = None;
    let read = read_history(
        log,
        options,
        &mut |ended, item| {
            let added = match ended {
                Ended::Within => timeline.add(&item),
                Ended::Before => {
                    timeline.add_before(&item);
                    Ok(())
                }
            };
            added.map_err(|error| {
                // The error ends the reading, and is handled below.
                let cause = error.to_string();
                failed = Some(error);
                let (url, doing) = (log.url(), "writing a timeline".to_owned());
                ReplayError::Log(LogError::Storage { url, doing, cause })
            })
        },
        progress,
    );
    if let Some(error) = failed {
        return Err(TimelineError::Unwritable(error));
    }
    read?;
    let (mut out, drawn) = timeline.finish().map_err(TimelineError::Unwritable)?;
    out.flush().map_err(TimelineError::Unwritable)?;
    Ok(drawn)
}
