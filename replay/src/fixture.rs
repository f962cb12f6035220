//! Turns a captured run into a one-line regression test.
//!
//! `warptape replay export --with-ticks --to night.db` captures the run; a test compares it with the current software:
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

/// Suffix of the name of a journal topic, after the prefix of all topics.
const JOURNAL: &str = "journal";

/// An open exported file.
pub struct Fixture {
    /// Log of the file.
    pub log: Arc<dyn EventLog>,
    /// Topics of the file, as it names them; outputs are compared if it has any.
    pub options: VerifyOptions,
}

impl Fixture {
    /// Opens an exported file.
    ///
    /// # Errors
    /// If the file cannot be read, or was not written by `replay export`.
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

    /// Replays the journal, and the outputs if the file has ticks.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify(&self) -> Result<Report, ReplayError> {
        verify(&*self.log, &self.options, &mut |_| {})
    }
}

/// Opens an exported file, and verifies that this software makes the same decisions and outputs as at the capture.
///
/// # Panics
/// If anything differs, with the first difference; or if the file cannot be read, with the reason.
#[track_caller]
pub fn assert_verified(path: impl AsRef<Path>) -> Fixture {
    let fixture = Fixture::open(path).unwrap_or_else(|error| panic!("{error}"));
    let report = fixture.verify().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_identical(), "{report}");
    fixture
}
