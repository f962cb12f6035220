//! SQLite's errors in the words of a log's user.

use rusqlite::{ErrorCode, ffi};

use super::file::LOCK_WAIT_MAX;
use crate::LogError;

pub(super) const DAMAGED_ACTION: &str = "restore the file from a copy together with its -wal file, or start a new log; \
     what can still be read can be saved with `sqlite3 FILE .recover`";

/// The log error for an SQLite error met while `doing` something with the log at `url`.
pub(super) fn explain(url: &str, doing: &str, error: rusqlite::Error) -> LogError {
    let url = url.to_owned();
    let doing = doing.to_owned();
    let Some(code) = error.sqlite_error_code() else {
        return match error {
            // The only conversions that are asked for are of this crate's own columns.
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
            "name a file that warptape made, or one that does not exist yet",
        ),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            LogError::Denied { url, doing, cause: error.to_string() }
        }
        ErrorCode::DiskFull => LogError::Full { url, doing },
        ErrorCode::ReadOnly => LogError::ReadOnly { url, doing },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LogError::Busy {
            url,
            doing,
            waited_ms: u64::try_from(LOCK_WAIT_MAX.as_millis()).expect("the limit is seconds"),
        },
        _ => LogError::Storage { url, doing, cause: error.to_string() },
    }
}
