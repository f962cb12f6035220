//! A recorded run as a trace that Perfetto shows (<https://ui.perfetto.dev>): what each lane did and when, what waited, and which commit
//! had what came of it.
//!
//! ```text
//!  journal ──► history ──► Timeline ──► Packets ──► FILE
//!               items       slices,      bytes
//!                           flows
//! ```
//!
//! The trace is as Perfetto's published definitions have it (`proto`). It is written as it is drawn: memory is what a history keeps, and
//! some bytes for each track. It must not know settings or the command line, and it judges nothing.

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

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The log cannot be read, or has nothing to be drawn.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The trace cannot be written.
    #[error("the timeline cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

/// What a timeline has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drawn {
    /// Process lives.
    pub lives: u64,
    /// Batches.
    pub batches: u64,
    /// Transactions.
    pub commits: u64,
    /// Groups that were moved.
    pub moves: u64,
    /// Slices on all tracks, without those within others.
    pub slices: u64,
    /// Slices and other events that are left out, because too many overlap on a track or there are too many tracks.
    pub left_out: u64,
    /// Bytes of the trace.
    pub bytes: u64,
}

/// Writes the timeline of a window of journals. Memory is what a history keeps, which is bounded.
///
/// # Errors
/// If the log cannot be read, has no journal, or the trace cannot be written. What was written then is no trace.
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
                // It ends the reading; what is said of it is below.
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
