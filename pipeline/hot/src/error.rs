//! Errors of hot state. No error ends a pipeline.

use warptape_eventlog::LogError;

/// Every failure of hot state. Messages name the server without its password.
#[derive(Debug, thiserror::Error)]
pub enum HotError {
    /// The server cannot be reached, or a command failed.
    #[error(
        "{url}: {doing} failed: {cause}; check hot_state.url and that the server runs and lets this user in"
    )]
    Redis {
        /// The server.
        url: String,
        /// The operation that failed.
        doing: &'static str,
        /// The message of the client or the server.
        cause: redis::RedisError,
    },
    /// The keys belong to another version of Warptape.
    #[error(
        "{url}: {key} is {found:?}, but this version writes layout {expected:?}; use another \
         hot_state.prefix, or delete the keys of this one"
    )]
    Layout {
        /// The server.
        url: String,
        /// The key that holds the layout.
        key: String,
        /// The layout found.
        found: String,
        /// The layout of this version.
        expected: &'static str,
    },
    /// A value that this version did not write.
    #[error(
        "{url}: {key}{} cannot be read: {cause}. Delete the key: a running pipeline writes it again (a \
         result when it next connects)",
        .field.as_ref().map_or_else(String::new, |field| format!(" field {field:?}"))
    )]
    Value {
        /// The server.
        url: String,
        /// The key.
        key: String,
        /// The field of a hash; `None` for other keys.
        field: Option<String>,
        /// The fault of the value.
        cause: serde_json::Error,
    },
    /// The written values are gone, because the server was emptied or restarted. The writer starts over.
    #[error(
        "{url}: the server was emptied, or another process started over; hot state is written again from the \
         log"
    )]
    Emptied {
        /// The server.
        url: String,
    },
    /// The log, the source of hot state, cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}
