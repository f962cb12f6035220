//! Explanations on the live page, in the words of `tail journal` and `replay why`.

use serde_json::json;
use warptape_eventlog::EventLog;
use warptape_replay::{ReplayError, VerifyOptions};
use warptape_schemas::journal::{JournalEntry, Started};

use super::replay;
use super::tail::{inputs, reasons};
use crate::cli::{VerifyFormat, WhyArgs, WhySubject};
use crate::endpoint::{Explains, Subject, Unexplained};

/// Explains with the code of `tail journal` and `replay why`.
pub(super) struct Explaining(pub(super) VerifyOptions);

impl Explains for Explaining {
    fn entry(&self, entry: &JournalEntry, started: Option<&Started>) -> (String, Vec<String>) {
        let decisions = json!({ "at_ns": entry.at_ns, "decisions": entry.decisions });
        let reasons = reasons::of_decisions(&decisions, started).collect();
        (inputs::words(entry, started), reasons)
    }

    fn why(&self, log: &dyn EventLog, subject: &Subject) -> Result<String, Unexplained> {
        let (subject, partition) = match subject {
            Subject::Entry(journal, sequence) => (WhySubject::Entry(*sequence), *journal),
            Subject::Signal(partition, offset) => {
                (WhySubject::Signal { partition: *partition, offset: *offset }, 0)
            }
            Subject::Request(id) => (WhySubject::Request(id.clone()), 0),
        };
        let args =
            WhyArgs { subject, bar: None, partition, output: VerifyFormat::Text, wide: true, raw: false };
        replay::why::explain(&args, log, &self.0, &mut |_| {}).map_err(unexplained)
    }
}

fn unexplained(error: anyhow::Error) -> Unexplained {
    let reason = format!("{error:#}");
    match error.downcast_ref::<ReplayError>() {
        Some(error) if error.is_absence() => Unexplained::Missing(reason),
        _ => Unexplained::Failed(reason),
    }
}

#[cfg(test)]
mod tests {
    use warptape_eventlog::LogError;

    use super::*;

    #[test]
    fn a_log_that_cannot_be_read_is_not_one_without_the_subject() {
        let (url, topic) = ("sqlite:a.db".to_owned(), "journal".to_owned());
        let no_entry = ReplayError::NoEntry { url: url.clone(), topic, partition: 0, sequence: 7 };
        assert!(
            matches!(unexplained(no_entry.into()), Unexplained::Missing(why) if why.contains("sequence 7"))
        );
        let lost = LogError::Storage { url, doing: "reading".to_owned(), cause: "gone".to_owned() };
        let lost = ReplayError::from(lost).into();
        assert!(matches!(unexplained(lost), Unexplained::Failed(why) if why.contains("gone")));
    }
}
