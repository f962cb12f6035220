//! A captured run as a regression test, in one line.
//!
//! `warptape replay export --with-ticks --to night.db` captures it; a test holds it against the software as it is now:
//!
//! ```no_run
//! warptape_replay::fixture::assert_verified("tests/fixtures/night.db");
//! ```

use std::path::Path;
use std::sync::Arc;

use warptape_engine::Topics;
use warptape_eventlog::{EventLog, OpenMode, open_url};

use crate::about::about;
use crate::{ABOUT_TOPIC, ReplayError, Report, VerifyOptions, verify};

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
        let Some(about) = about(&*log)? else {
            let known = log.topic_names()?;
            let (url, topic) = (log.url(), ABOUT_TOPIC.to_owned());
            return Err(ReplayError::NoTopic { url, topic, known: known.join(", ") });
        };
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
