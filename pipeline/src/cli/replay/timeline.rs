//! Arguments of `replay timeline`.

use std::path::PathBuf;

use clap::Args;
use warptape_replay::history::{Bound, Window};

use super::VerifyFormat;
use super::chain::{forwards, parse_bound};
use crate::usage_error::UsageError;

/// Arguments of `warptape replay timeline`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A BOUND is a time (2026-11-24T03:00:00Z), `offset:N` or `sequence:N` of a journal entry; --until names the first entry after the
timeline. To open the file, drag it into https://ui.perfetto.dev; nothing is uploaded. docs/timeline.md explains each track. Existing files
are never overwritten.

Example: warptape replay timeline --to night.pftrace --since 2026-11-24T03:00:00Z --until 2026-11-24T03:01:00Z")]
pub struct TimelineArgs {
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// First entry of the timeline (default: the first one in the log)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub since: Option<Bound>,
    /// First entry after the timeline (default: none, all entries to the end)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub until: Option<Bound>,
    /// Only the process with this ordinal (default: all processes). Offsets and sequences refer to each process's own
    /// partition of the journal
    #[arg(long, value_name = "ORDINAL")]
    pub partition: Option<i32>,
    /// Format of the printed report
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
}

impl TimelineArgs {
    /// Returns the window for the replay; an error if it ends before it begins.
    pub fn window(&self) -> Result<Window, UsageError> {
        forwards(Window { from: self.since, to: self.until })
    }
}
