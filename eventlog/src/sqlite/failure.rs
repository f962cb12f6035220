//! Explains SQLite's errors to users of a log.

use std::fs::File;
use std::io::{self, ErrorKind};

use rusqlite::{ErrorCode, ffi};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::limits::{Access, LOCK_WAIT_MAX, STEPS_MAX};
use crate::LogError;

pub(super) const DAMAGED_ACTION: &str = "restore the file from a copy together with its -wal and -head \
     files and its folder -segments, or build a usable log from its intact contents with `warptape log recover`";

/// The reason why a row's records cannot be read.
pub(super) enum Fault {
    /// The log's content: what was found instead.
    Damage(String),
    /// Anything else, such as a limit of this process.
    Failed(LogError),
}

impl Fault {
    /// Returns the error, made of the finding if the content is damaged.
    pub(super) fn explain(self, damaged: impl FnOnce(String) -> LogError) -> LogError {
        match self {
            Self::Damage(found) => damaged(found),
            Self::Failed(error) => error,
        }
    }
}

impl From<String> for Fault {
    fn from(found: String) -> Self {
        Self::Damage(found)
    }
}

/// Returns the log error for a system's error met while `doing` something with a file of the log at `url`.
pub(super) fn explain_io(url: &str, doing: &str, error: &io::Error) -> LogError {
    let (url, doing) = (url.to_owned(), doing.to_owned());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => LogError::Full { url, doing },
        ErrorKind::FileTooLarge => LogError::Limit { url, doing, cause: file_size_limit(error) },
        ErrorKind::PermissionDenied => LogError::Denied { url, doing, cause: error.to_string() },
        _ => match no_descriptors() {
            Some(cause) => LogError::Limit { url, doing, cause },
            None => LogError::Storage { url, doing, cause: error.to_string() },
        },
    }
}

/// Returns the error for a lock that others have held for too long.
pub(super) fn busy(url: &str, doing: &str) -> LogError {
    let waited_ms = u64::try_from(LOCK_WAIT_MAX.as_millis()).expect("the limit is seconds");
    LogError::Busy { url: url.to_owned(), doing: doing.to_owned(), waited_ms }
}

/// Returns the remedy for a file that is not a log.
pub(super) fn no_log_action(access: Access) -> &'static str {
    match access {
        Access::Write(_) => "name a log that warptape created, or a file that does not exist yet",
        Access::Read | Access::ReadFrozen => "name a log that warptape created",
    }
}

/// Returns the log error for an SQLite error met while `doing` something with the log at `url`.
pub(super) fn explain(url: &str, access: Access, doing: &str, error: rusqlite::Error) -> LogError {
    let url = url.to_owned();
    let doing = doing.to_owned();
    let Some(code) = error.sqlite_error_code() else {
        return match error {
            // Only columns of this crate's own tables are converted.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows => LogError::Unreadable {
                url,
                found: format!("the log is damaged: {error} (while {doing})"),
                action: DAMAGED_ACTION.to_owned(),
            },
            _ => LogError::Storage { url, doing, cause: error.to_string() },
        };
    };
    let extended = error.sqlite_error().map(|error| error.extended_code);
    let unreadable = |found: String, action: &str| LogError::Unreadable {
        url: url.clone(),
        found,
        action: action.to_owned(),
    };
    match code {
        ErrorCode::DatabaseCorrupt => {
            unreadable(format!("the log is damaged: {error} (while {doing})"), DAMAGED_ACTION)
        }
        ErrorCode::SystemIoFailure if extended == Some(ffi::SQLITE_IOERR_SHORT_READ) => {
            unreadable(format!("the log is truncated: {error} (while {doing})"), DAMAGED_ACTION)
        }
        ErrorCode::NotADatabase => unreadable(
            "the file is not an event log: it is not an SQLite database".to_owned(),
            no_log_action(access),
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => match no_descriptors() {
            Some(cause) => LogError::Limit { url, doing, cause },
            None => LogError::Denied { url, doing, cause: error.to_string() },
        },
        ErrorCode::OutOfMemory => LogError::Limit {
            url,
            doing,
            cause: format!(
                "{error}: this process may not use more memory (`ulimit -v`), or the machine has \
                            none left"
            ),
        },
        ErrorCode::SystemIoFailure if let Some(cause) = limits(&error) => {
            LogError::Limit { url, doing, cause }
        }
        // Only the progress handler of a log's connection causes this error here.
        ErrorCode::OperationInterrupted => unreadable(
            format!(
                "the log is damaged, or made to keep its readers busy: {doing} takes more steps than a real \
                 log needs (limit STEPS_MAX, {STEPS_MAX}, or by file size)"
            ),
            DAMAGED_ACTION,
        ),
        ErrorCode::TooBig => {
            unreadable(format!("the log is damaged: {error} (while {doing})"), DAMAGED_ACTION)
        }
        ErrorCode::DiskFull => LogError::Full { url, doing },
        ErrorCode::ReadOnly => LogError::ReadOnly { url, doing },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => busy(&url, &doing),
        _ => LogError::Storage { url, doing, cause: error.to_string() },
    }
}

/// Describes the limit that keeps this process from opening any file; `None` if files can be opened.
fn no_descriptors() -> Option<String> {
    let error = File::open("/").err()?;
    let errno = Errno::from_io_error(&error)?;
    if ![Errno::MFILE, Errno::NFILE].contains(&errno) {
        return None;
    }
    let limit = getrlimit(Resource::Nofile).current.map_or("no limit".to_owned(), |limit| limit.to_string());
    Some(format!("{error}; this process may open {limit} files (`ulimit -n`)"))
}

/// Describes the limits of this process that may be the cause of a failed write; `None` if there are none.
fn limits(error: &rusqlite::Error) -> Option<String> {
    if let Some(cause) = no_descriptors() {
        return Some(cause);
    }
    getrlimit(Resource::Fsize).current?;
    Some(file_size_limit(error))
}

fn file_size_limit(error: &dyn std::error::Error) -> String {
    match getrlimit(Resource::Fsize).current {
        Some(limit) => {
            format!("{error}; this process may write files of {limit} bytes at most (`ulimit -f`)")
        }
        None => error.to_string(),
    }
}
