//! Opens a log by its URL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Durability, EventLog, KafkaLog, KafkaOptions, LogError, SqliteLog};

/// The intended use of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading and writing; a missing log is created.
    Write(Durability),
    /// Reading an existing log.
    Read,
}

/// Opens the log of a URL. This is `sqlite:PATH`, with PATH taken literally (no escapes, no parameters), or
/// `kafka:HOST:PORT[,HOST:PORT…]` with the default options. A Kafka cluster's own settings determine durability,
/// whatever the mode.
pub fn open_url(url: &str, mode: OpenMode) -> Result<Arc<dyn EventLog>, LogError> {
    if let Some(brokers) = url.strip_prefix("kafka:") {
        return Ok(Arc::new(KafkaLog::open(KafkaOptions::new(brokers))?));
    }
    let path = sqlite_path(url)?;
    Ok(Arc::new(match mode {
        OpenMode::Write(durability) => SqliteLog::open(path, durability)?,
        OpenMode::Read => SqliteLog::open_existing(path)?,
    }))
}

/// Returns the path of a URL `sqlite:PATH`.
///
/// # Errors
/// The URL is not of this form, or names no file.
pub fn sqlite_path(url: &str) -> Result<PathBuf, LogError> {
    let wrong = |found: &str| LogError::Url { url: url.to_owned(), found: found.to_owned() };
    let Some((scheme, path)) = url.split_once(':') else {
        return Err(wrong("it has no scheme"));
    };
    if scheme != "sqlite" {
        return Err(wrong(&format!("the scheme {scheme:?} is not known")));
    }
    if path.is_empty() {
        return Err(wrong("it names no file"));
    }
    if path.starts_with("//") && !path.starts_with("///") {
        return Err(wrong("a host is not allowed; write the path right after the colon"));
    }
    if path.contains('?') {
        return Err(wrong("parameters and paths with a question mark are not supported"));
    }
    if path == ":memory:" {
        return Err(wrong("a log in memory cannot be shared; name a file"));
    }
    Ok(Path::new(path).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_they_are() {
        let check = |url: &str, path: &str| assert_eq!(sqlite_path(url).unwrap(), Path::new(path), "{url}");
        check("sqlite:warptape.db", "warptape.db");
        check("sqlite:./a b/100%25#é.db", "./a b/100%25#é.db");
        check("sqlite:/var/log.db", "/var/log.db");
        check("sqlite:///var/log.db", "/var/log.db");
        check("sqlite:C:\\log.db", "C:\\log.db");
    }

    #[test]
    fn other_urls_say_what_is_allowed() {
        let check = |url: &str, found: &str| {
            let message = sqlite_path(url).unwrap_err().to_string();
            assert!(message.contains(found) && message.contains("allowed: sqlite:PATH"), "{url}: {message}");
        };
        check("", "no scheme");
        check("warptape.db", "no scheme");
        check("redis:localhost:6379", "\"redis\" is not known");
        check("SQLITE:x", "\"SQLITE\" is not known");
        check("sqlite:", "names no file");
        check("sqlite://x.db", "host");
        check("sqlite:x.db?mode=ro", "parameters");
        check("sqlite::memory:", "memory");
    }
}
