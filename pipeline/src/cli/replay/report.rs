//! Arguments of `replay report`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use warptape_replay::history::{Bound, Window};
use warptape_report::SLOWEST_ON_PAGE_MAX;

use super::chain::{forwards, parse_bound};
use crate::usage_error::UsageError;

/// Arguments of `warptape replay report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The page is one file that opens offline in any browser and has less than 2 MiB, whatever the size of the log. The command verifies the
whole journal against its replay, even if the page shows only a window. Existing files are never overwritten.

Exit status: 0 written; 1 written, but the run differs from its replay, or FILE cannot be written (see standard error); 2 the log cannot be read,
or FILE exists.

Example: warptape replay report --to night.html --since 2026-11-24T03:00:00Z --until 2026-11-24T03:10:00Z --log sqlite:market.db")]
pub struct ReportArgs {
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Begin here: a time such as 2026-11-24T03:00:00Z, `sequence:N` or `offset:N` of the journal (default: its
    /// beginning)
    #[arg(long, value_name = "WHEN", value_parser = parse_bound)]
    pub since: Option<Bound>,
    /// End before this, in the same forms (default: the end of the journal)
    #[arg(long, value_name = "WHEN", value_parser = parse_bound)]
    pub until: Option<Bound>,
    /// Number of slowest signals to explain, 50 at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u16).range(0..=SLOWEST_ON_PAGE_MAX as i64))]
    pub slowest: u16,
    /// Do not verify the run
    #[arg(long, conflicts_with = "outputs")]
    pub no_verify: bool,
    /// Verify the outputs as well: rerun the stages over the recorded ticks and compare every signal bit for bit
    #[arg(long)]
    pub outputs: bool,
}

impl ReportArgs {
    /// Returns the window for the replay; an error if it ends before it begins.
    pub fn window(&self) -> Result<Window, UsageError> {
        forwards(Window { from: self.since, to: self.until })
    }
}
