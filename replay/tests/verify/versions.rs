//! Journals and configurations of versions that this software cannot read.

use warptape_eventlog::{EventLog, Record};
use warptape_replay::chain::{SlowestOptions, slowest, why_batch, why_signal};
use warptape_replay::debugger::Stepper;
use warptape_replay::diff::{DiffSide, diff};
use warptape_replay::history::{self, HistoryOptions, read_history};
use warptape_replay::{Bound, ExportOptions, ReplayError, VerifyOptions, WhyOptions, Window, export, why};
use warptape_schemas::journal::Input;
use warptape_schemas::{JournalWriter, decode_journal_entry};

use crate::recording::{Plan, options, record};
use crate::tampered::Tampered;
use crate::{records, verified};

/// Returns the entries of a journal. From an offset on they have the fingerprint of an unknown version.
fn of_unknown_version(log: &dyn EventLog, from: usize) -> Vec<Record> {
    let mut journal = records(log, "journal", 0);
    journal.iter_mut().skip(from).for_each(|record| record.value[2..10].fill(0x11));
    journal
}

/// Every command that reads a journal reports an unreadable version, wherever it is.
#[test]
fn whoever_reads_a_journal_names_an_unknown_version() {
    let recording = record(Plan { outcomes: true, checkpoint: Some(4), ..Plan::small(71) });
    let length = records(&recording.log, "journal", 0).len();
    for from in [0, length / 2] {
        let log = &Tampered::new(&recording.log, "journal", 0, of_unknown_version(&recording.log, from));
        let last = length as i64 - 1;
        let folder = tempfile::tempdir().unwrap();
        let asked = WhyOptions { journal: "journal".to_owned(), partition: 0, sequence: last };
        let of_history = HistoryOptions {
            journal: "journal".to_owned(),
            partition: None,
            window: history::Window::default(),
        };
        let VerifyOptions { journal, sources, .. } = options();
        let window = Window { since: Some(Bound::Sequence(last)), ..Window::default() };
        let of_export = ExportOptions {
            journal,
            sources,
            others: Vec::new(),
            window,
            with_ticks: false,
            by: serde_json::json!({"software": "test"}),
        };
        let wanted = SlowestOptions { count: 5, window: history::Window::default(), partition: None };
        let seen = &mut |_| {};
        let sides = [DiffSide { log, options: &options() }, DiffSide { log, options: &options() }];
        let step_to_end = || -> Result<(), ReplayError> {
            let mut stepper = Stepper::open(log, "journal", 0)?;
            stepper.go_to(history::Bound::Sequence(last), &mut |_| true).map(drop)
        };
        let errors: [(&str, Result<(), ReplayError>); 8] = [
            ("why", why(log, &asked).map(drop)),
            ("why batch", why_batch(log, &options(), 0, 1, &mut |_| {}).map(drop)),
            ("why signal", why_signal(log, &options(), 0, 0, &mut |_| {}).map(drop)),
            ("slowest", slowest(log, &options(), wanted, &mut |_| {}).map(drop)),
            ("history", read_history(log, &of_history, &mut |_, _| Ok(()), seen).map(drop)),
            ("diff", diff(sides, &mut |_| {}).map(drop)),
            ("export", export(log, &folder.path().join("export.db"), &of_export, &mut |_| {}).map(drop)),
            ("debug", step_to_end()),
        ];
        // The part before the first of these entries can be explained.
        let reads_all = |command: &str| from == 0 || !["why batch", "why signal"].contains(&command);
        for (command, result) in errors.into_iter().filter(|(command, _)| reads_all(command)) {
            let error = result.expect_err(command).to_string();
            let named = error.contains("version of JournalEntry, fingerprint 1111111111111111");
            assert!(
                named && error.contains("use the version of warptape that wrote it"),
                "{command}: {error}"
            );
        }
        let report =
            verified(log, &options()).unwrap().divergence.expect("it cannot be compared").to_string();
        assert!(report.contains("version of JournalEntry, fingerprint 1111111111111111"), "{report}");
    }
}

/// A journal whose stages followed other rules is refused, and the error names the rule.
#[test]
fn a_run_by_other_rules_of_stages_is_refused() {
    let recording = record(Plan { lives: 1, ..Plan::small(72) });
    for (rule, other, named) in [
        (r#","rules":2"#, r#","rules":3"#, "rules 3 are not known: this software has rules 2"),
        (r#","rules":2"#, "", "missing field `rules`"),
        (r#""rejects":"rows","#, "", "missing field `rejects`"),
    ] {
        let mut writer = JournalWriter::new();
        let mut journal = records(&recording.log, "journal", 0);
        for record in &mut journal {
            let mut entry = decode_journal_entry(&record.value).unwrap();
            if let Input::Started(started) = &mut entry.input {
                assert!(started.stage_config.contains(rule), "{}", started.stage_config);
                started.stage_config = started.stage_config.replace(rule, other);
            }
            record.value.clear();
            let state_hash = u64::from_str_radix(&entry.state_hash, 16).unwrap();
            writer.append(entry.at_ns, &entry.input, &entry.decisions, state_hash, &mut record.value);
        }
        let log = Tampered::new(&recording.log, "journal", 0, journal);
        let error = verified(&log, &options()).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("use the version of warptape"), "{error}");
    }
}
