//! What can go wrong with a log.

/// Every failure of an event log. Messages name the log and say what to do.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log's file is missing, not a log, truncated or corrupted.
    #[error("{url}: {found}; {action}")]
    Unreadable {
        /// The log.
        url: String,
        /// What was found.
        found: String,
        /// What the user can do.
        action: String,
    },
}
