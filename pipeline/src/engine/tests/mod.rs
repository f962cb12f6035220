//! The core under a shell that does everything at once: what it decides about records, requests and commits.

mod cancelling;
mod risk;
mod segments;

use serde_json::{Value, json};
use warptape_engine::{
    AfterAbort, Answered, Assigned, Command, CommitAttempt, CommitRequest, Conclusion, Config, Core, Haste,
    JournalPositions, LaneCommand, LaneNews, Preparation, ReadRequest, Restored, Slice,
};
use warptape_eventlog::Record;
use warptape_kernels::Isa;
use warptape_schemas::journal::{CommitEnded, CommitOutcome, Input};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    LifecycleEvent, TickDecoder, decode_journal_entry, decode_risk_result, encode_risk_request, encode_tick,
};

use super::{EngineConfig, LaneResult, LaneStages, read_request};
use crate::settings::{Sources, load};

const TOLD: &str = "the core takes it";
const PARTITION: i32 = 0;

/// A core with one lane, and what it commanded that is still to be done.
struct Shell {
    core: Core,
    config: EngineConfig,
    /// Of ticks, and of requests.
    generations: [u64; 2],
    lane: LaneStages,
    preparations: Vec<Preparation>,
    conclusions: Vec<Conclusion>,
    abandoned: Vec<u64>,
    told: Vec<(LifecycleEvent, String)>,
    /// What was committed since it was taken.
    commits: Vec<CommitRequest>,
    batches: usize,
    /// Whether lanes never finish a batch.
    holds_batches: bool,
    /// True if lanes never finish a slice.
    holds_slices: bool,
    /// Slices that lanes were told to do: when, and whether they were of critical tasks.
    slices: Vec<(i64, bool)>,
    /// Requests that lay there when the partition came.
    requests_before: i64,
}

impl Shell {
    /// Has restored a partition, outputs existing before an offset, and reads its requests.
    fn begin(sealed_offset: i64) -> Self {
        Self::begin_with(sealed_offset, 0)
    }

    /// The same, with requests that lay there.
    fn begin_with(sealed_offset: i64, requests_before: i64) -> Self {
        Self::begin_changed(sealed_offset, requests_before, |_| ())
    }

    /// The same, under a configuration that is changed.
    fn begin_changed(sealed_offset: i64, requests_before: i64, change: impl FnOnce(&mut Config)) -> Self {
        let committed = (sealed_offset > 0).then_some(sealed_offset);
        let assigned = Assigned { partition: PARTITION, committed, ..Assigned::default() };
        Self::begin_assigned(assigned, requests_before, change)
    }

    /// The same, of a partition that comes with ticks that nobody has processed.
    fn begin_assigned(assigned: Assigned, requests_before: i64, change: impl FnOnce(&mut Config)) -> Self {
        let sources = Sources { cores: 1, ..Sources::default() };
        let config = load(&sources).expect("the defaults are good").0.engine_config(None);
        let mut core_config = config.core.clone();
        // Each turn commits what there is.
        core_config.times.commit_interval_ns = 0;
        change(&mut core_config);
        let core = Core::new(core_config, Box::new(TickDecoder::new()), None, JournalPositions::beginning())
            .expect("a new journal can be begun");
        let lane = LaneStages::on_host(&config.core.stages, Isa::Baseline);
        let mut shell = Self {
            core,
            config,
            generations: [0; 2],
            lane,
            preparations: Vec::new(),
            conclusions: Vec::new(),
            abandoned: Vec::new(),
            told: Vec::new(),
            commits: Vec::new(),
            batches: 0,
            holds_batches: false,
            holds_slices: false,
            slices: Vec::new(),
            requests_before,
        };
        shell.core.begin(0).expect(TOLD);
        shell.core.on_assigned(0, vec![assigned]).expect(TOLD);
        shell.obey(0);
        shell.turn(0);
        shell.commits.clear();
        shell
    }

    /// What the engine's loop does after each event; the lane is done at once with all that it is told.
    fn turn(&mut self, now_ns: i64) {
        loop {
            self.core.on_wake(now_ns).expect(TOLD);
            self.obey(now_ns);
            self.core.on_time(now_ns).expect(TOLD);
            self.obey(now_ns);
            self.core.write_entries();
            if !self.core.has_uncommitted() {
                return;
            }
        }
    }

    fn obey(&mut self, now_ns: i64) {
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return;
            }
            for command in commands {
                match command {
                    Command::Prepare(preparation) => self.preparations.push(preparation),
                    Command::Abandon { number } => self.abandoned.push(number),
                    Command::Conclude(conclusion) => self.conclusions.push(conclusion),
                    Command::Slice(lane, Slice { slice, task, units, critical }) => {
                        self.slices.push((now_ns, critical));
                        if self.holds_slices {
                            continue;
                        }
                        let partial = task.run(Isa::Baseline, units);
                        let done = LaneNews::SliceDone { slice, service_ns: 1, partial };
                        self.core.on_lane(now_ns, lane, 0, done).expect(TOLD);
                    }
                    Command::Lane(_, LaneCommand::Run(_)) if self.holds_batches => {}
                    Command::Lane(lane, command) => match self.lane.obey(command).expect("it is on the host")
                    {
                        Some(LaneResult::Batch { batch, parts }) => {
                            self.batches += 1;
                            let done =
                                LaneNews::Completed { batch, service_ns: 1, parts, memory_bytes: None };
                            self.core.on_lane(now_ns, lane, 0, done).expect(TOLD);
                        }
                        Some(LaneResult::Released { .. }) | None => {}
                    },
                    Command::Commit(request) => {
                        self.core.on_committed(now_ns, written(now_ns)).expect(TOLD);
                        self.commits.push(*request);
                    }
                    Command::Restore { number, .. } => {
                        let beginning = Restored::beginning(&self.config.core.stages, Isa::Baseline);
                        self.core.on_restored(now_ns, number, beginning).expect(TOLD);
                    }
                    Command::Seek { generation, .. } => self.generations[0] = generation,
                    Command::OpenRequests { partition, assignment, committed } => {
                        let answered = Answered::default();
                        self.core.on_requests_opened(
                            partition,
                            assignment,
                            committed,
                            self.requests_before,
                            answered,
                        );
                    }
                    Command::ReadRequests { generation, .. } => self.generations[1] = generation,
                    Command::Lifecycle(event, detail) => self.told.push((event, detail)),
                    _ => {}
                }
            }
        }
    }

    /// A trade comes; whether a batch is run for it, at once or when it has waited long enough.
    fn tick(&mut self, now_ns: i64, offset: i64) -> bool {
        let before = self.batches;
        self.core.on_records(now_ns, PARTITION, self.generations[0], &[trade(offset)], now_ns).expect(TOLD);
        self.turn(now_ns);
        let due_ns = now_ns + self.config.core.scheduler.row_deadline_ns;
        self.turn(due_ns);
        self.batches > before
    }

    /// Requests come.
    fn read(&mut self, now_ns: i64, requests: Vec<ReadRequest>) {
        self.core.on_requests(now_ns, PARTITION, self.generations[1], requests).expect(TOLD);
    }

    fn ask(&mut self, now_ns: i64, offset: i64, deadline_ns: Option<i64>) {
        self.read(now_ns, vec![request(offset, deadline_ns, &json!({"from": "market"}))]);
        self.turn(now_ns);
    }

    fn prepare(&mut self, now_ns: i64) {
        let preparation = self.preparations.remove(0);
        let prepared = match self.abandoned.contains(&preparation.number()) {
            true => preparation.abandon(),
            false => preparation.run(),
        };
        self.core.on_prepared(now_ns, prepared).expect(TOLD);
        self.turn(now_ns);
    }

    fn conclude(&mut self, now_ns: i64) {
        let conclusion = self.conclusions.remove(0);
        self.core.on_concluded(now_ns, conclusion.run(|| now_ns)).expect(TOLD);
        self.turn(now_ns);
    }

    /// Takes the results that were committed until now.
    fn results(&mut self, now_ns: i64) -> Vec<RiskResult> {
        self.turn(now_ns);
        let results: Vec<RiskResult> = self.commits.iter().flat_map(results).collect();
        self.commits
            .iter_mut()
            .flat_map(|commit| &mut commit.sealed)
            .for_each(|sealed| sealed.risk_results.clear());
        results
    }

    /// The journal entries that were committed until now.
    fn entries(&self) -> Vec<warptape_schemas::journal::JournalEntry> {
        let entries = self.commits.iter().flat_map(|commit| &commit.entries);
        entries.map(|(_, entry)| decode_journal_entry(entry).expect("an entry")).collect()
    }
}

fn unreadable(offset: i64, bytes: usize) -> Record {
    Record { offset, key: None, headers: Vec::new(), timestamp_ns: 0, value: vec![0; bytes] }
}

fn trade(offset: i64) -> Record {
    let tick = Tick {
        symbol: "A:X".to_owned(),
        kind: TickKind::Trade,
        event_time_ns: offset + 1,
        receive_time_ns: offset,
        trade_id: offset,
        side: Side::Buy,
        price_e9: 1_000_000_000,
        size_e9: 1,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    };
    let mut record = unreadable(offset, 0);
    encode_tick(&tick, &mut record.value).expect("a good tick");
    record
}

fn request(offset: i64, deadline_ns: Option<i64>, spot: &Value) -> ReadRequest {
    let asset = json!({"symbol": "A:X", "spot": spot, "volatility": 0.2});
    let option = json!({"asset": 0, "kind": "call", "strike": 1.0, "expiry_years": 1.0});
    // So many that they are concluded beside the core.
    let problem = json!({"type": "options", "assets": [asset], "options": vec![option; 1_000]});
    let request = json!({"request_id": offset.to_string(), "deadline_ns": deadline_ns, "problem": problem});
    let request: RiskRequest = serde_json::from_value(request).expect("a request");
    let mut record = unreadable(offset, 0);
    encode_risk_request(&request, &mut record.value);
    read_request(&record)
}

fn results(commit: &CommitRequest) -> Vec<RiskResult> {
    let results = commit.sealed.iter().flat_map(|sealed| &sealed.risk_results);
    results.map(|result| decode_risk_result(&result.bytes).expect("a result")).collect()
}

fn code(result: &RiskResult) -> Option<RiskErrorCode> {
    match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    }
}

#[test]
fn no_ticks_are_read_while_too_much_waits_for_a_commit_and_requests_are() {
    let mut shell = Shell::begin(0);
    // Each is a dead letter with half of the record. The commit with the first is under way.
    let records: Vec<Record> = (0..35).map(|offset| unreadable(offset, 1 << 20)).collect();
    let core = &mut shell.core;
    core.on_records(0, PARTITION, shell.generations[0], &records[..1], 0).expect(TOLD);
    core.on_time(0).expect(TOLD);
    assert!(core.take_commands().iter().any(|command| matches!(command, Command::Commit(_))));
    core.on_records(0, PARTITION, shell.generations[0], &records[1..], 0).expect(TOLD);
    assert!(!core.takes_records() && core.takes_requests());
    // It asks nothing of the market, and becomes a task as well.
    core.on_requests(0, PARTITION, shell.generations[1], vec![request(0, None, &json!(100.0))]).expect(TOLD);
    core.on_time(0).expect(TOLD);
    assert!(core.take_commands().iter().any(|command| matches!(command, Command::Prepare(_))));
    core.on_committed(0, written(0)).expect(TOLD);
    shell.turn(0);
    assert!(shell.core.takes_records() && shell.core.takes_requests());
}

/// An attempt that took no time.
fn written(now_ns: i64) -> CommitAttempt {
    CommitAttempt { sent_ns: now_ns, ended_ns: now_ns, looked_up: false }
}

/// The outcomes of commits in journal entries.
fn outcomes(entries: &[(i64, Vec<u8>)]) -> Vec<CommitEnded> {
    let inputs = entries.iter().map(|(_, bytes)| decode_journal_entry(bytes).expect("an entry").input);
    let outcome = |input| match input {
        Input::CommitEnded(ended) => Some(ended),
        _ => None,
    };
    inputs.filter_map(outcome).collect()
}

#[test]
fn the_outcome_of_a_commit_is_told_in_the_next_one_and_causes_none() {
    let mut shell = Shell::begin(0);
    shell.tick(0, 0);
    let last = shell.commits.last().expect("the tick is committed").last_entry().expect("it has entries");
    let sealed = decode_journal_entry(last).expect("an entry").sequence;
    let commits = shell.commits.len();
    // A process that has nothing to do stays silent: it writes no checkpoint for the sake of an outcome either.
    let hour_ns = 3_600_000_000_000;
    for now_ns in [hour_ns, 2 * hour_ns, 3 * hour_ns] {
        shell.turn(now_ns);
    }
    let silent = shell.commits.len();
    shell.turn(4 * hour_ns);
    assert_eq!(shell.commits.len(), silent, "outcomes alone are no reason to commit");
    assert!(silent <= commits + 1, "a checkpoint at most");
    shell.tick(5 * hour_ns, 1);
    let entries: Vec<_> = shell.commits[commits..].iter().flat_map(|commit| commit.entries.clone()).collect();
    let ended = outcomes(&entries);
    let CommitAttempt { sent_ns, ended_ns, looked_up } = written(0);
    let expected =
        CommitEnded { sealed, attempt: 1, sent_ns, ended_ns, outcome: CommitOutcome::Committed, looked_up };
    assert_eq!(ended.first(), Some(&expected));
}

#[test]
fn each_attempt_of_a_commit_is_told() {
    let mut shell = Shell::begin(0);
    let core = &mut shell.core;
    core.on_records(0, PARTITION, shell.generations[0], &[unreadable(0, 10)], 0).expect(TOLD);
    let commit = |core: &mut Core, now_ns| {
        core.on_time(now_ns).expect(TOLD);
        let commits = core.take_commands().into_iter().filter_map(|command| match command {
            Command::Commit(request) => Some(request),
            _ => None,
        });
        commits.last().expect("it is time for a commit")
    };
    let request = commit(core, 0);
    let sealed =
        decode_journal_entry(request.last_entry().expect("it has entries")).expect("an entry").sequence;
    let entries = request.entries.clone();
    let again = core.on_aborted(5, CommitAttempt { looked_up: true, ..written(4) }, request, "refused");
    assert_eq!(again.expect(TOLD), AfterAbort::Again);
    let later_ns = 1_000_000_000;
    let request = commit(core, later_ns);
    assert_eq!(request.entries, entries, "it is sent again as it was");
    core.on_committed(later_ns, written(later_ns)).expect(TOLD);
    core.on_records(later_ns, PARTITION, shell.generations[0], &[unreadable(1, 10)], 0).expect(TOLD);
    let ended = outcomes(&commit(core, 2 * later_ns).entries);
    let told: Vec<_> =
        ended.iter().map(|ended| (ended.attempt, ended.outcome, ended.sent_ns, ended.looked_up)).collect();
    assert_eq!(told, [(1, CommitOutcome::Aborted, 4, true), (2, CommitOutcome::Committed, later_ns, false)]);
    assert!(ended.iter().all(|ended| ended.sealed == sealed));
}

#[test]
fn each_transaction_says_how_far_the_journal_reaches() {
    let mut shell = Shell::begin(0);
    for offset in 0..3 {
        shell.tick(offset * 1_000_000_000, offset);
    }
    shell.core.on_lost(4_000_000_000, &[PARTITION]).expect(TOLD);
    shell.turn(4_000_000_000);
    let (mut sealed, mut others) = (0, 0);
    for commit in shell.commits.iter().filter(|commit| !commit.entries.is_empty()) {
        let last = decode_journal_entry(commit.last_entry().expect("there are some")).expect("an entry");
        if matches!(last.input, Input::Sealed(_)) {
            assert_eq!(commit.journal_end, None, "what it accounts for tells");
            sealed += 1;
        } else {
            assert_eq!(commit.journal_end, Some(last.sequence + 1));
            others += 1;
        }
    }
    assert!(sealed >= 3 && others >= 1, "{sealed} and {others}");
}
