//! `warptape replay export --follow`: tables beside a running pipeline.
//!
//! An unreadable log is retried without limit. Then the files continue after their last rows.

use std::time::{Duration, Instant};

use warptape_eventlog::EventLog;
use warptape_replay::{ExportOptions, ReplayError};
use warptape_tables::{Follow, Table, TableFormat, TablesError, Written};

use crate::cli::{ExportArgs, Interrupt};
use crate::printable::to_stderr;

/// Pause before the next read of a log that was read to its end.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a failed read of the log.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Writes tables until a signal comes; returns the rows that this process has written.
pub fn execute(
    args: &ExportArgs,
    log: &dyn EventLog,
    options: &ExportOptions,
    (format, tables): (TableFormat, &[&'static Table]),
) -> anyhow::Result<Written> {
    let interrupt = Interrupt::install()?;
    to_stderr(format_args!("writing tables into {}; Ctrl-C to end", args.to.display()));
    let mut all = Written::default();
    let mut is_failing = false;
    while !interrupt.is_set() {
        let mut follow = Follow::open(log, &args.to, format, options, tables)?;
        let ended = write(&mut follow, args, &interrupt, &mut is_failing);
        add(&mut all, follow.written());
        match ended {
            Ok(()) => break,
            Err(TablesError::Replay(error)) if is_passing(&error) => {
                if !is_failing {
                    tracing::warn!("the log cannot be exported for now, and is retried: {error}");
                }
                is_failing = true;
                drop(follow);
                interrupt.wait(RETRY_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Writes tables until a signal comes.
fn write(
    follow: &mut Follow<'_>,
    args: &ExportArgs,
    interrupt: &Interrupt,
    is_failing: &mut bool,
) -> Result<(), TablesError> {
    let every = Duration::from_secs(args.every);
    let mut cut = Instant::now();
    while !interrupt.is_set() {
        let is_at_end = follow.round()?;
        *is_failing = false;
        if cut.elapsed() >= every {
            follow.cut()?;
            cut = Instant::now();
        }
        if is_at_end {
            interrupt.wait(LOOK_PAUSE);
        }
    }
    follow.cut()
}

/// True if the log may become readable: it is unreachable, busy, or has no journal yet.
fn is_passing(error: &ReplayError) -> bool {
    use ReplayError::{EmptyJournal, Log, Moving, NoTopic, Undecided};
    matches!(error, Log(_) | EmptyJournal { .. } | Moving { .. } | NoTopic { .. } | Undecided { .. })
}

fn add(all: &mut Written, part: Written) {
    for table in part.tables {
        match all.tables.iter_mut().find(|of| of.name == table.name) {
            Some(of) => of.rows += table.rows,
            None => all.tables.push(table),
        }
    }
    all.notes.extend(part.notes);
}
