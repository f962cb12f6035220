//! Anchors of real runs: the signer of a journal, and what is reported for journals that were cut, rolled back or
//! rewritten.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, Record, SqliteLog};
use warptape_pipeline::runtime::{Anchoring, EngineConfig, EngineError, Progress, Stop, Topics, run};
use warptape_replay::anchor::{Anchor, Anchored, PublicKey, SigningKey, Statement, Told};
use warptape_replay::{AnchorProblem, Divergence, ReplayError, Report, VerifyOptions, verify};
use warptape_schemas::GENESIS_HASH;
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};
use warptape_tests::random::Random;

use crate::tampered::Tampered;

type Log = Arc<dyn EventLog>;

/// Number of ticks of a process life.
const TICKS: usize = 600;

struct Run {
    folder: TempDir,
    key: Arc<SigningKey>,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, key: Arc::new(SigningKey::from_seed([9; 32])) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn anchor_file(&self) -> PathBuf {
        self.path("anchors")
    }

    fn config(&self) -> EngineConfig {
        let mut config = engine_config(stage_config(&["1s"]), 2);
        config.core.times.commit_interval_ns = 2_000_000;
        config.poll_records_max = 4;
        config.anchoring = Some(Anchoring {
            key: self.key.clone(),
            file: Some(self.anchor_file()),
            log: None,
            interval: Duration::ZERO,
        });
        config
    }

    fn open(&self, name: &str) -> Log {
        Arc::new(SqliteLog::open(self.path(name), Durability::Process).expect("a log"))
    }

    /// Runs one process life over its part of the ticks.
    fn live(&self, log: &Log, life: usize, config: EngineConfig) {
        let market =
            SynthSource::new(SynthConfig { symbols: 6, ..SynthConfig::default() }).expect("a market");
        feed(log, 2, 8, market.skip(life * TICKS).take(TICKS));
        run_to_end(log, config);
    }
}

fn checked(log: &dyn EventLog, keys: &[PublicKey], file: Option<&Path>) -> Result<Report, ReplayError> {
    let mut options = VerifyOptions::new(&Topics::new(""), "warptape");
    (options.outputs, options.public_keys) = (true, keys.to_vec());
    options.anchored = file.map(|file| Anchored::read(file, keys).expect("a file of anchors"));
    verify(log, &options, &mut |_| {})
}

fn problem(report: Result<Report, ReplayError>) -> AnchorProblem {
    match report.expect("the log can be read").divergence {
        Some(Divergence::Anchor(found)) => {
            assert!(!found.to_string().is_empty());
            found.problem
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_commit_is_signed_and_kept_elsewhere() {
    let run = Run::new();
    let log = run.open("log.db");
    run.live(&log, 0, run.config());
    run.live(&log, 1, run.config());
    let key = *run.key.public();
    let report = checked(log.as_ref(), &[key], Some(&run.anchor_file())).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
    let records = read_partition(log.as_ref(), "journal", 0);
    let last = records.len() - 1;
    assert!(
        report.notes.iter().any(|note| note.contains(&format!("entries 0 to {last} are signed"))),
        "{report}"
    );
    let anchor = Anchor::of(&records[last]).expect("the last record has one").expect("it is whole");
    assert!(anchor.is_by(&key) && anchor.statement.sequence == last as i64);
    // The last line of the file is the process's last anchor.
    let lines = fs::read_to_string(run.anchor_file()).expect("it is text");
    let newest: Anchor = lines.lines().last().expect("a line").parse().expect("an anchor");
    assert_eq!(newest.statement.hash, anchor.statement.hash);
    assert!(newest.statement.told.count > anchor.statement.told.count, "{lines}");
    // A foreign key does not prove anything. One right key among several is enough.
    let other = *SigningKey::from_seed([8; 32]).public();
    assert!(matches!(
        problem(checked(log.as_ref(), &[other], None)),
        AnchorProblem::Unsigned { first_sequence: 0, .. }
    ));
    assert!(checked(log.as_ref(), &[other, key], None).expect("the log can be read").is_identical());
}

#[test]
fn an_unsigned_journal_is_what_it_was() {
    let run = Run::new();
    let log = run.open("log.db");
    run.live(&log, 0, EngineConfig { anchoring: None, ..run.config() });
    for topic in ["journal", "lifecycle"] {
        assert!(read_partition(log.as_ref(), topic, 0).iter().all(|record| record.headers.is_empty()));
    }
    // A life that signs signs all entries up to its end; entries of a later life without signing remain unsigned.
    run.live(&log, 1, run.config());
    let key = *run.key.public();
    assert!(
        checked(log.as_ref(), &[key], Some(&run.anchor_file())).expect("the log can be read").is_identical()
    );
    let signed = read_partition(log.as_ref(), "journal", 0).len() as i64;
    run.live(&log, 2, EngineConfig { anchoring: None, ..run.config() });
    let found = problem(checked(log.as_ref(), &[key], None));
    assert!(
        matches!(found, AnchorProblem::Unsigned { first_sequence, .. } if first_sequence == signed),
        "{found:?}"
    );
}

#[test]
fn a_log_that_was_rolled_back_is_found_and_is_not_gone_on_with() {
    let run = Run::new();
    let log = run.open("log.db");
    run.live(&log, 0, run.config());
    drop(log);
    let closed = SqliteLog::open_existing(run.path("log.db")).expect("a log");
    closed.backup(run.path("older.db"), &mut |_| {}).expect("a copy");
    drop(closed);
    let log = run.open("log.db");
    run.live(&log, 1, run.config());
    let older = run.open("older.db");
    let key = *run.key.public();
    // By itself, the older log is consistent.
    assert!(checked(older.as_ref(), &[key], None).expect("the log can be read").is_identical());
    let found = problem(checked(older.as_ref(), &[key], Some(&run.anchor_file())));
    assert!(matches!(found, AnchorProblem::CutOff { .. }), "{found:?}");
    let (stop, stopped) = bounded(1);
    stop.send(Stop::Now).expect("the receiver is here");
    let ended = run_engine(&older, run.config(), stopped);
    assert!(matches!(ended, Some(EngineError::RolledBack { .. })), "{ended:?}");
    // A process that continues anyway, without anchors, writes other entries.
    run.live(&older, 2, EngineConfig { anchoring: None, ..run.config() });
    run.live(&older, 3, EngineConfig { anchoring: None, ..run.config() });
    let found = problem(checked(older.as_ref(), &[], Some(&run.anchor_file())));
    assert!(matches!(found, AnchorProblem::Rewritten { .. }), "{found:?}");
    let (stop, stopped) = bounded(1);
    stop.send(Stop::Now).expect("the receiver is here");
    let ended = run_engine(&older, run.config(), stopped);
    assert!(
        matches!(ended, Some(EngineError::Rewritten { .. } | EngineError::RolledBack { .. })),
        "{ended:?}"
    );
}

fn run_engine(
    log: &Log,
    config: EngineConfig,
    stopped: crossbeam_channel::Receiver<Stop>,
) -> Option<EngineError> {
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    run(log.clone(), config, progress, stopped).err()
}

/// A signature takes less than a hundredth of the default commit interval of 100 ms.
#[test]
fn a_signature_takes_no_time_that_counts() {
    let key = SigningKey::from_seed([9; 32]);
    let sign = |sequence: i64| {
        let (topic, hash, told) = ("journal".to_owned(), GENESIS_HASH, Told::new(0));
        let statement = Statement { topic, partition: 0, sequence, hash, at_ns: sequence, told };
        let began = Instant::now();
        assert_eq!(statement.sign(&key).to_string().lines().count(), 1);
        began.elapsed()
    };
    // The least of many times is used, because other processes may interrupt.
    let least = (0..1_000).map(sign).min().expect("there are some");
    eprintln!("an anchor takes {least:?}");
    assert!(least < Duration::from_millis(1), "{least:?}");
}

/// Tests cuts of random length, changed anchors, and removed lifecycle records.
#[test]
fn no_cut_is_left_unnoticed() {
    let run = Run::new();
    let log = run.open("log.db");
    run.live(&log, 0, run.config());
    run.live(&log, 1, run.config());
    let key = *run.key.public();
    let is_found = |topic: &str, records: Vec<Record>| {
        // A forger can also change the group's offset.
        let end = records.len() as i64;
        let log = Tampered::new(log.as_ref(), topic, 0, records).with_committed(end);
        checked(&log, &[key], Some(&run.anchor_file())).map_or(true, |report| !report.is_identical())
    };
    let journal = read_partition(log.as_ref(), "journal", 0);
    assert!(!is_found("journal", journal.clone()));
    let mut random = Random::new(83);
    for _ in 0..60 {
        let mut cut = journal.clone();
        cut.truncate(1 + random.index(journal.len() - 1));
        assert!(is_found("journal", cut));
    }
    // An anchor is moved to another record, or one of its bits is changed.
    let signed: Vec<usize> = (0..journal.len()).filter(|index| !journal[*index].headers.is_empty()).collect();
    for _ in 0..60 {
        let mut forged = journal.clone();
        let (one, other) = (signed[random.index(signed.len())], random.index(journal.len()));
        let headers = forged[one].headers.clone();
        if random.one_in(2) && one != other {
            forged[other].headers = headers;
        } else {
            let value = &mut forged[one].headers[0].1;
            // If the key's name changed, the anchor would be a foreign one, which is harmless; so only the statement is
            // changed.
            let statement = String::from_utf8_lossy(value).find(" key=").expect("an anchor names its key");
            let at = random.index(statement);
            value[at] ^= 1 << random.index(7);
        }
        assert!(is_found("journal", forged), "{one} {other}");
    }
    let lifecycle = read_partition(log.as_ref(), "lifecycle", 0);
    assert!(!is_found("lifecycle", lifecycle.clone()));
    for removed in 0..lifecycle.len() {
        let mut forged = lifecycle.clone();
        forged.remove(removed);
        assert!(is_found("lifecycle", forged), "{removed}");
        let mut forged = lifecycle.clone();
        let at = random.index(forged[removed].value.len());
        forged[removed].value[at] ^= 1;
        assert!(is_found("lifecycle", forged), "{removed}");
    }
}
