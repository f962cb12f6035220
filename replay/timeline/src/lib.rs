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
mod file;
mod names;
mod packets;
pub mod proto;
mod timeline;
mod tracks;
mod words;
mod work;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError};
use warptape_replay::history::{HistoryOptions, Window, read_history};
use warptape_replay::{Progress, ReplayError};

pub use self::timeline::Timeline;

use self::file::{Unfinished, unwritable};

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The log cannot be read, or has nothing to be drawn.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Something is there already.
    #[error("{}: it exists already, and nothing is written over; name a file that does not exist yet", .path.display())]
    Taken {
        /// What is there.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written ({cause}); check the folder's permissions and the room on the disk", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
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

/// Writes the timeline of a window of journals to a file that must not exist. Memory is what a history keeps, which is bounded.
///
/// # Errors
/// If the log cannot be read, has no journal, or the file cannot be written. Then there is no file.
pub fn write_timeline(
    log: &dyn EventLog,
    to: &Path,
    options: &HistoryOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Drawn, TimelineError> {
    let (unfinished, out) = Unfinished::create(to)?;
    let is_window = options.window != Window::default();
    let mut timeline = Timeline::new(out, is_window);
    let mut failed: Option<io::Error> = None;
    let read = read_history(
        log,
        options,
        &mut |item| {
            timeline.add(&item).map_err(|error| {
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
        return Err(unwritable(to, &error));
    }
    read?;
    let (out, drawn) = timeline.finish().map_err(|error| unwritable(to, &error))?;
    unfinished.finish(out)?;
    Ok(drawn)
}
