//! Exit codes and their meanings.

use std::io;

use warptape_eventlog::LogError;
use warptape_replay::ReplayError;

use crate::feed_ledger::FeedLedgerError;
use crate::runtime::EngineError;
use crate::settings::SettingsError;
use crate::usage_error::UsageError;
use warptape_sources::SourceError;
#[cfg(feature = "tables")]
use warptape_tables::TablesError;
use warptape_timeline::TimelineError;
#[cfg(feature = "lab")]
use warptape_what_if::WhatIfError;

/// Exit code of a failure, and of a replay that found a difference.
pub const DIVERGED: u8 = 1;
/// Exit code of wrong usage and of input that cannot be read.
pub const UNUSABLE: u8 = 2;

/// Exit code of a simulation that did not reach the standard error that was asked for.
pub const INEXACT: u8 = 3;

/// Returns the exit code of an error; 0 if the reader of our standard output is gone, because that ends a command
/// quietly.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let as_json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    if error.downcast_ref::<io::Error>().map(io::Error::kind).or(as_json) == Some(io::ErrorKind::BrokenPipe) {
        return 0;
    }
    if error.is::<UsageError>() || error.is::<SettingsError>() || error.is::<ReplayError>() {
        return UNUSABLE;
    }
    if error.is::<SourceError>() || matches!(error.downcast_ref(), Some(TimelineError::Replay(_))) {
        return UNUSABLE;
    }
    #[cfg(feature = "tables")]
    if matches!(
        error.downcast_ref(),
        Some(TablesError::Replay(_) | TablesError::Taken { .. } | TablesError::Unfit { .. })
    ) {
        return UNUSABLE;
    }
    #[cfg(feature = "lab")]
    if error.is::<WhatIfError>() {
        return UNUSABLE;
    }
    if matches!(
        error.downcast_ref::<FeedLedgerError>(),
        Some(
            FeedLedgerError::Twice { .. }
                | FeedLedgerError::Changed { .. }
                | FeedLedgerError::OtherOrder { .. }
                | FeedLedgerError::SortedGrew { .. }
                | FeedLedgerError::File { .. }
        )
    ) {
        return UNUSABLE;
    }
    if matches!(error.downcast_ref::<EngineError>(), Some(EngineError::OtherSegment { .. })) {
        return UNUSABLE;
    }
    match error.downcast_ref::<LogError>() {
        Some(LogError::Unreadable { .. } | LogError::Url { .. } | LogError::UnknownTopic { .. }) => UNUSABLE,
        _ => DIVERGED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        let check = |error: anyhow::Error, expected: u8| assert_eq!(exit_code(&error), expected, "{error}");
        check(UsageError("x".to_owned()).into(), 2);
        check(SettingsError::Mistakes(Vec::new()).into(), 2);
        check(anyhow::Error::new(UsageError("x".to_owned())).context("while reading"), 2);
        check(io::Error::from(io::ErrorKind::BrokenPipe).into(), 0);
        check(serde_json::Error::io(io::ErrorKind::BrokenPipe.into()).into(), 0);
        check(io::Error::from(io::ErrorKind::NotFound).into(), 1);
        check(LogError::Url { url: "x".to_owned(), found: "y".to_owned() }.into(), 2);
        check(SourceError::NoFiles.into(), 2);
        check(anyhow::anyhow!("anything else"), 1);
    }
}
