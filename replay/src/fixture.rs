//! A captured run as a regression test, in one line.
//!
//! `warptape replay export --with-ticks --to night.db` captures it; a test holds it against the software as it is now:
//!
//! ```no_run
//! warptape_replay::fixture::assert_verified("tests/fixtures/night.db");
//! ```

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use warptape_engine::Topics;
use warptape_eventlog::{EventLog, OpenMode, TopicPartition, open_url};

use crate::partition_reader::PartitionReader;
use crate::{ABOUT_KEY, ABOUT_TOPIC, ReplayError, Report, VerifyOptions, verify};

/// The end of the name of a journal's topic, behind the prefix of all topics.
const JOURNAL: &str = "journal";

/// An exported file that is open.
pub struct Fixture {
    /// Its log.
    pub log: Arc<dyn EventLog>,
    /// Its topics, as the file itself names them, and whether it has outputs to compare.
    pub options: VerifyOptions,
}

impl Fixture {
    /// Opens an exported file.
    ///
    /// # Errors
    /// If it cannot be read, or is not what `replay export` writes.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReplayError> {
        let log = open_url(&format!("sqlite:{}", path.as_ref().display()), OpenMode::Read)?;
        let about = about(&*log)?;
        let text = |name: &str| about[name].as_str().unwrap_or_default();
        let prefix = text("journal").strip_suffix(JOURNAL).unwrap_or_default();
        let mut options = VerifyOptions::new(&Topics::new(prefix), text("group"));
        options.outputs = about["with_ticks"] == true;
        Ok(Self { log, options })
    }

    /// Replays the journal, and the outputs where the file has ticks.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn verify(&self) -> Result<Report, ReplayError> {
        verify(&*self.log, &self.options, &mut |_| {})
    }
}

/// Opens an exported file that this software must decide and compute the same as when it was captured.
///
/// # Panics
/// With the first difference, if it does not, or with the reason why the file cannot be read.
#[track_caller]
pub fn assert_verified(path: impl AsRef<Path>) -> Fixture {
    let fixture = Fixture::open(path).unwrap_or_else(|error| panic!("{error}"));
    let report = fixture.verify().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_identical(), "{report}");
    fixture
}

/// What an exported file says of itself.
fn about(log: &dyn EventLog) -> Result<Value, ReplayError> {
    let topics = log.topics()?;
    let topic =
        topics.iter().find(|topic| topic.spec.name == ABOUT_TOPIC).ok_or_else(|| ReplayError::NoTopic {
            url: log.url(),
            topic: ABOUT_TOPIC.to_owned(),
            known: topics.iter().map(|topic| topic.spec.name.clone()).collect::<Vec<_>>().join(", "),
        })?;
    let source = TopicPartition { topic: ABOUT_TOPIC.to_owned(), partition: 0 };
    let unreadable = |offset: i64, error: String| ReplayError::RecordUnreadable {
        url: log.url(),
        topic: ABOUT_TOPIC.to_owned(),
        partition: 0,
        offset,
        error,
    };
    let mut reader = PartitionReader::open(log, source, topic.offsets[0])?;
    while let Some(record) = reader.next()? {
        if record.key.as_deref() == Some(ABOUT_KEY.as_bytes()) {
            return serde_json::from_slice(&record.value)
                .map_err(|error| unreadable(record.offset, error.to_string()));
        }
    }
    Err(unreadable(0, format!("there is no record with the key {ABOUT_KEY}")))
}
