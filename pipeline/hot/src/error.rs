//! What can go wrong with hot state. None of it ends a pipeline.

use warptape_eventlog::LogError;

/// Every failure of hot state. Messages name the server without its password.
#[derive(Debug, thiserror::Error)]
pub enum HotError {
    /// The server cannot be reached, or did not do what it was asked.
    #[error(
        "{url}: {doing} failed: {cause}; check hot_state.url and that the server runs and lets this user in"
    )]
    Redis {
        /// The server.
        url: String,
        /// What was attempted.
        doing: &'static str,
        /// What the client or the server said.
        cause: redis::RedisError,
    },
    /// The keys belong to another version of Warptape.
    #[error(
        "{url}: {key} is {found:?}, this version writes layout {expected:?}; use another hot_state.prefix, or delete the \
         keys of this one"
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
        "{url}: {key}{} cannot be read: {cause}; delete the key, a running pipeline writes it anew, a result when it \
         connects next",
        .field.as_ref().map_or_else(String::new, |field| format!(" field {field:?}"))
    )]
    Value {
        /// The server.
        url: String,
        /// The key.
        key: String,
        /// The field, where it is one of a hash.
        field: Option<String>,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// What was written is gone: the server was emptied or restarted. The writer begins anew.
    #[error(
        "{url}: the server was emptied, or another process began anew; hot state is taken up again from the log"
    )]
    Emptied {
        /// The server.
        url: String,
    },
    /// The log that hot state is made from cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}
