//! Verification of recorded runs. Unchanged runs are identical, and any change is found and located.

mod accounts;
mod chain;
mod corruption;
mod corruptions;
mod debugger;
mod diff;
mod export;
mod follower;
mod history;
mod journal;
mod outputs;
mod recording;
mod scheduled;
mod segments;
mod states;
mod tampered;
mod versions;
mod why;

use warptape_eventlog::{EventLog, Record};
use warptape_replay::{OutputOptions, Phase, ReplayError, ReplayProgress, Report, VerifyOptions, verify};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Input;

use recording::{PARTITIONS, Plan, empty, feed, options, record, records, run};

fn verified(log: &dyn EventLog, options: &VerifyOptions) -> Result<Report, ReplayError> {
    verify(log, options, &mut |_| {})
}

fn journal_only() -> VerifyOptions {
    VerifyOptions { outputs: false, ..options() }
}

#[test]
fn an_unchanged_run_is_identical() {
    for seed in 0..3 {
        println!("seed {seed}");
        let recording = record(Plan::small(seed));
        let mut seen = Vec::new();
        let report = verify(&recording.log, &options(), &mut |progress| seen.push(progress)).unwrap();
        let outputs = report.outputs.unwrap();
        assert_eq!(report.divergence, None, "{report}");
        let journal = records(&recording.log, "journal", 0);
        let count = |topic: &str| {
            let records =
                (0..PARTITIONS).map(|partition| records(&recording.log, topic, partition).len() as u64);
            records.sum::<u64>()
        };
        assert_eq!((report.entries, report.processes), (journal.len() as u64, 2));
        assert_eq!(outputs.tick_records, count("ticks"));
        assert_eq!(
            (outputs.signals, outputs.late, outputs.dead_letters),
            (count("signals"), count("late"), count("dead-letter"))
        );
        assert!(
            outputs.signals > 100 && outputs.late > 0 && outputs.dead_letters > 0 && report.decisions > 20
        );
        assert_eq!(
            report.to_string(),
            format!("{} decisions, {} signals: identical", report.decisions, outputs.signals)
        );
        let last = |phase| seen.iter().rfind(|progress| progress.phase == phase).copied();
        let done = |phase, total| Some(ReplayProgress { phase, done: total, total });
        assert_eq!(last(Phase::Journal), done(Phase::Journal, report.entries));
        assert_eq!(last(Phase::Outputs), done(Phase::Outputs, outputs.tick_records));
        let alone = verified(&recording.log, &journal_only()).unwrap();
        assert_eq!(alone.to_string(), format!("{} decisions: identical", report.decisions));
    }
}

/// The log of a running pipeline is identical so far, whenever the verification happens between its transactions.
#[test]
fn a_run_may_go_on_meanwhile() {
    let (recording, plan) = (empty(), Plan { records: 60, ..Plan::small(13) });
    feed(&recording.log, plan);
    let (mut entries, mut looks) = (0, 0);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&recording.log, plan));
        loop {
            let is_last = running.is_finished();
            match verified(&recording.log, &options()) {
                Ok(report) => {
                    assert!(report.is_identical(), "{report}");
                    assert!(report.entries >= entries, "a journal only grows");
                    entries = report.entries;
                    looks += 1;
                }
                Err(ReplayError::EmptyJournal { .. }) if !is_last => {}
                Err(error) => panic!("{error}"),
            }
            if is_last {
                break;
            }
        }
    });
    println!("{looks} looks, {entries} entries");
    assert_eq!(entries, records(&recording.log, "journal", 0).len() as u64);
}

#[test]
fn logs_that_cannot_be_verified_say_why() {
    let check = |log: &dyn EventLog, options: &VerifyOptions, expected: &str| {
        let message = verified(log, options).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected:?} expected in {message:?}");
    };
    check(&empty().log, &options(), "the journal \"journal\" has no entries");
    let recording = record(Plan { records: 2, ..Plan::small(11) });
    let other = VerifyOptions { journal: "other".to_owned(), ..journal_only() };
    check(
        &recording.log,
        &other,
        "no topic \"other\"; the log has control, control.results, dead-letter, journal,",
    );
    let with = |change: fn(&mut OutputOptions)| {
        let mut options = options();
        change(&mut options.sources);
        options
    };
    check(
        &recording.log,
        &with(|outputs| outputs.group = "x".to_owned()),
        "group \"x\" has committed nothing",
    );
    check(&recording.log, &with(|outputs| outputs.late = "x".to_owned()), "no topic \"x\"");
    check(
        &recording.log,
        &with(|outputs| outputs.late = "journal".to_owned()),
        "has 1 partitions and the ticks have 2",
    );
}

/// Returns the positions of the entries for which `is` is true.
fn positions(journal: &[Record], is: impl Fn(&Input) -> bool) -> Vec<usize> {
    (0..).zip(inputs(journal)).filter(|(_, input)| is(input)).map(|(index, _)| index).collect()
}

fn inputs(journal: &[Record]) -> Vec<Input> {
    journal.iter().map(|record| decode_journal_entry(&record.value).unwrap().input).collect()
}
