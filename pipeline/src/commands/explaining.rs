//! Explanations on the live page, in the words of `tail journal` and `replay why`.

use serde_json::json;
use warptape_eventlog::EventLog;
use warptape_replay::VerifyOptions;
use warptape_schemas::journal::{JournalEntry, Started};

use super::replay;
use super::tail::{inputs, reasons};
use crate::cli::{VerifyFormat, WhyArgs, WhySubject};
use crate::endpoint::{Explains, Subject};

/// Explains with the code of `tail journal` and `replay why`.
pub(super) struct Explaining(pub(super) VerifyOptions);

impl Explains for Explaining {
    fn entry(&self, entry: &JournalEntry, started: Option<&Started>) -> (String, Vec<String>) {
        let decisions = json!({ "at_ns": entry.at_ns, "decisions": entry.decisions });
        let reasons = reasons::of_decisions(&decisions, started).collect();
        (inputs::words(entry, started), reasons)
    }

    fn why(&self, log: &dyn EventLog, subject: &Subject) -> Result<String, String> {
        let (subject, partition) = match subject {
            Subject::Entry(journal, sequence) => (WhySubject::Entry(*sequence), *journal),
            Subject::Signal(partition, offset) => {
                (WhySubject::Signal { partition: *partition, offset: *offset }, 0)
            }
            Subject::Request(id) => (WhySubject::Request(id.clone()), 0),
        };
        let args =
            WhyArgs { subject, bar: None, partition, output: VerifyFormat::Text, wide: true, raw: false };
        replay::why::explain(&args, log, &self.0, &mut |_| {}).map_err(|error| format!("{error:#}"))
    }
}
