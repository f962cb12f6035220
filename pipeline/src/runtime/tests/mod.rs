//! The core's decisions on records, requests and commits, in a shell that executes everything at once.

mod cancelling;
mod driving;
mod risk;
mod segments;

use std::collections::VecDeque;
use std::mem::take;

use serde_json::{Value, json};
use warptape_engine::{
    Answered, Assigned, Command, CommitAttempt, CommitRequest, Conclusion, Config, Core, CoreError, Event,
    Haste, JournalPositions, LaneCommand, LaneNews, Outside, Preparation, ReadRequest, Restored, Slice,
    Wants, settle, tell,
};
use warptape_eventlog::Record;
use warptape_kernels::Isa;
use warptape_schemas::journal::{CommitEnded, CommitOutcome, Input};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    LifecycleEvent, TickDecoder, decode_journal_entry, decode_risk_result, encode_risk_request, encode_tick,
};

use super::{EngineConfig, LaneResult, LaneStages, LaneWork, read_request};
use crate::settings::{Sources, load};

const TOLD: &str = "the core takes it";
const PARTITION: i32 = 0;

/// A core with one lane.
struct Shell {
    core: Core,
    around: Around,
}

/// Surroundings of the core, with the commands that are not executed yet.
struct Around {
    config: EngineConfig,
    now_ns: i64,
    /// Events that the lane has not reported yet.
    news: VecDeque<Event>,
    /// Events that other threads have not reported yet.
    events: VecDeque<Event>,
    /// Generations of ticks and of requests.
    generations: [u64; 2],
    lane: LaneStages,
    preparations: Vec<Preparation>,
    conclusions: Vec<Conclusion>,
    abandoned: Vec<u64>,
    told: Vec<(LifecycleEvent, String)>,
    /// Commits since the test last took them.
    commits: Vec<CommitRequest>,
    batches: usize,
    /// True if lanes never finish a batch.
    holds_batches: bool,
    /// Results of slices held back until the test releases them; `None` if lanes report them at once.
    held_slices: Option<Vec<Event>>,
    /// The commit in progress if commits never end; the outer `None` means that commits end at once.
    held_commit: Option<Option<Box<CommitRequest>>>,
    /// Start times of slices on lanes, each with true for a slice of a critical task.
    slices: Vec<(i64, bool)>,
    /// Number of requests that were present when the partition was assigned.
    requests_before: i64,
}

impl Outside for Around {
    type Error = CoreError;

    fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// The lane executes all its commands at once.
    fn execute(&mut self, command: Command, _: &Core) -> Result<(), CoreError> {
        match command {
            Command::Prepare(preparation) => self.preparations.push(preparation),
            Command::Abandon { number } => self.abandoned.push(number),
            Command::Conclude(conclusion) => self.conclusions.push(conclusion),
            Command::Slice { lane, slice: Slice { slice, task, units, critical }, .. } => {
                self.slices.push((self.now_ns, critical));
                let partial = task.run(Isa::Baseline, units);
                let news = LaneNews::SliceDone { slice, service_ns: 1, partial };
                let done = Event::Lane { lane, life: 0, news };
                match &mut self.held_slices {
                    Some(held) => held.push(done),
                    None => self.news.push_back(done),
                }
            }
            Command::Lane(_, LaneCommand::Run(_)) if self.holds_batches => {}
            Command::Lane(lane, command) => match self.lane.obey(command).expect("it is on the host") {
                Some(LaneResult::Batch { batch, parts }) => {
                    self.batches += 1;
                    let news = LaneNews::Completed { batch, service_ns: 1, parts, memory_bytes: None };
                    self.news.push_back(Event::Lane { lane, life: 0, news });
                }
                Some(LaneResult::Released { .. }) | None => {}
            },
            Command::Commit(request) => match &mut self.held_commit {
                Some(held) => *held = Some(request),
                None => {
                    self.events.push_back(Event::Committed(written(self.now_ns)));
                    self.commits.push(*request);
                }
            },
            Command::GiveUp => panic!("the log takes what is committed"),
            Command::Restore { number, .. } => {
                let restored = Box::new(Restored::beginning(&self.config.core.stages, Isa::Baseline));
                self.events.push_back(Event::Restored { number, restored });
            }
            Command::Seek { generation, .. } => self.generations[0] = generation,
            Command::OpenRequests { partition, assignment, committed } => {
                let (found_before, answered) = (self.requests_before, Answered::default());
                self.events.push_back(Event::RequestsOpened {
                    partition,
                    assignment,
                    committed,
                    found_before,
                    answered,
                });
            }
            Command::ReadRequests { generation, .. } => self.generations[1] = generation,
            Command::Lifecycle(event, detail) => self.told.push((event, detail)),
            _ => {}
        }
        Ok(())
    }

    fn lane_news(&mut self) -> Option<Event> {
        self.news.pop_front()
    }
}

/// An outside that executes nothing, and collects commands.
#[derive(Default)]
struct Collected {
    now_ns: i64,
    commands: Vec<Command>,
}

impl Outside for Collected {
    type Error = CoreError;

    fn now_ns(&self) -> i64 {
        self.now_ns
    }

    fn execute(&mut self, command: Command, _: &Core) -> Result<(), CoreError> {
        self.commands.push(command);
        Ok(())
    }
}

impl Shell {
    /// Restores a partition whose outputs end before an offset, and reads its requests.
    fn begin(sealed_offset: i64) -> Self {
        Self::begin_with(sealed_offset, 0)
    }

    /// Begins with requests that are already present.
    fn begin_with(sealed_offset: i64, requests_before: i64) -> Self {
        Self::begin_changed(sealed_offset, requests_before, |_| ())
    }

    /// Begins with requests that are already present, under a changed configuration.
    fn begin_changed(sealed_offset: i64, requests_before: i64, change: impl FnOnce(&mut Config)) -> Self {
        let committed = (sealed_offset > 0).then_some(sealed_offset);
        let assigned = Assigned { partition: PARTITION, committed, ..Assigned::default() };
        Self::begin_assigned(assigned, requests_before, change)
    }

    /// Begins with unprocessed ticks in the partition, under a changed configuration.
    fn begin_assigned(assigned: Assigned, requests_before: i64, change: impl FnOnce(&mut Config)) -> Self {
        let sources = Sources { cores: 1, ..Sources::default() };
        let config = load(&sources).expect("the defaults are good").0.engine_config(None);
        let mut core_config = config.core.clone();
        // Each turn commits everything that is sealed.
        core_config.times.commit_interval_ns = 0;
        change(&mut core_config);
        let core = Core::new(core_config, Box::new(TickDecoder::new()), None, JournalPositions::beginning())
            .expect("a new journal can be begun");
        let lane = LaneStages::on_host(&config.core.stages, Isa::Baseline);
        let around = Around {
            config,
            now_ns: 0,
            news: VecDeque::new(),
            events: VecDeque::new(),
            generations: [0; 2],
            lane,
            preparations: Vec::new(),
            conclusions: Vec::new(),
            abandoned: Vec::new(),
            told: Vec::new(),
            commits: Vec::new(),
            batches: 0,
            holds_batches: false,
            held_slices: None,
            held_commit: None,
            slices: Vec::new(),
            requests_before,
        };
        let mut shell = Self { core, around };
        shell.tell(0, Event::Begun);
        shell.tell(0, Event::Assigned(vec![assigned]));
        shell.turn(0);
        shell.around.commits.clear();
        shell
    }

    fn tell(&mut self, now_ns: i64, event: Event) {
        self.around.now_ns = now_ns;
        tell(&mut self.core, &mut self.around, event).expect(TOLD);
    }

    /// Does everything that is due, once.
    fn settle(&mut self, now_ns: i64) {
        self.around.now_ns = now_ns;
        settle(&mut self.core, &mut self.around).expect(TOLD);
    }

    /// Does everything that is due, until nothing is left to report or commit.
    fn turn(&mut self, now_ns: i64) {
        loop {
            self.settle(now_ns);
            while let Some(event) = self.around.events.pop_front() {
                self.tell(now_ns, event);
            }
            if !self.core.status().has_uncommitted && self.around.news.is_empty() {
                return;
            }
        }
    }

    fn wants(&self) -> Wants {
        self.core.wants().expect("nobody asked it to stop")
    }

    /// Delivers a trade. Returns true if a batch runs for it, at once or after the greatest wait.
    fn tick(&mut self, now_ns: i64, offset: i64) -> bool {
        let before = self.around.batches;
        self.records(now_ns, vec![trade(offset)]);
        self.turn(now_ns);
        let due_ns = now_ns + self.around.config.core.scheduler.row_deadline_ns;
        self.turn(due_ns);
        self.around.batches > before
    }

    /// Delivers records.
    fn records(&mut self, now_ns: i64, records: Vec<Record>) {
        let generation = self.around.generations[0];
        self.tell(
            now_ns,
            Event::Records { partition: PARTITION, generation, records, ticks: None, read_at_ns: now_ns },
        );
    }

    /// Delivers requests.
    fn read(&mut self, now_ns: i64, requests: Vec<ReadRequest>) {
        let generation = self.around.generations[1];
        self.tell(now_ns, Event::Requests { partition: PARTITION, generation, requests });
    }

    fn ask(&mut self, now_ns: i64, offset: i64, deadline_ns: Option<i64>) {
        self.read(now_ns, vec![request(offset, deadline_ns, &json!({"from": "market"}))]);
        self.turn(now_ns);
    }

    fn prepare(&mut self, now_ns: i64) {
        let preparation = self.around.preparations.remove(0);
        let prepared = match self.around.abandoned.contains(&preparation.number()) {
            true => preparation.abandon(),
            false => preparation.run(),
        };
        self.tell(now_ns, Event::Prepared(prepared));
        self.turn(now_ns);
    }

    fn conclude(&mut self, now_ns: i64) {
        let conclusion = self.around.conclusions.remove(0);
        self.tell(now_ns, Event::Concluded(conclusion.run(|| now_ns)));
        self.turn(now_ns);
    }

    /// Returns the results committed so far, and forgets them.
    fn results(&mut self, now_ns: i64) -> Vec<RiskResult> {
        self.turn(now_ns);
        let results: Vec<RiskResult> = self.around.commits.iter().flat_map(results).collect();
        self.around
            .commits
            .iter_mut()
            .flat_map(|commit| &mut commit.sealed)
            .for_each(|sealed| sealed.risk_results.clear());
        results
    }

    /// Returns the journal entries committed so far.
    fn entries(&self) -> Vec<warptape_schemas::journal::JournalEntry> {
        let entries = self.around.commits.iter().flat_map(|commit| &commit.entries);
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
    // There are too many results for the core to conclude, so that is done in the background.
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
    // Each record becomes a dead letter with half of its bytes. The commit of the first is in progress.
    let records: Vec<Record> = (0..35).map(|offset| unreadable(offset, 1 << 20)).collect();
    let mut records = records.into_iter();
    shell.around.held_commit = Some(None);
    shell.records(0, records.by_ref().take(1).collect());
    shell.settle(0);
    assert!(matches!(shell.around.held_commit.take(), Some(Some(_))));
    shell.records(0, records.collect());
    assert!(!shell.wants().records && shell.wants().requests);
    // The request needs no market data, and becomes a task anyway.
    shell.read(0, vec![request(0, None, &json!(100.0))]);
    shell.settle(0);
    assert_eq!(shell.around.preparations.len(), 1);
    shell.tell(0, Event::Committed(written(0)));
    shell.turn(0);
    assert!(shell.wants().records && shell.wants().requests);
}

/// Returns an attempt that took no time.
fn written(now_ns: i64) -> CommitAttempt {
    CommitAttempt { sent_ns: now_ns, ended_ns: now_ns, looked_up: false }
}

/// Returns the outcomes of commits in journal entries.
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
    let last =
        shell.around.commits.last().expect("the tick is committed").last_entry().expect("it has entries");
    let sealed = decode_journal_entry(last).expect("an entry").sequence;
    let commits = shell.around.commits.len();
    // An idle process stays silent: it writes no checkpoint just because of an outcome.
    let hour_ns = 3_600_000_000_000;
    for now_ns in [hour_ns, 2 * hour_ns, 3 * hour_ns] {
        shell.turn(now_ns);
    }
    let silent = shell.around.commits.len();
    shell.turn(4 * hour_ns);
    assert_eq!(shell.around.commits.len(), silent, "outcomes alone are no reason to commit");
    assert!(silent <= commits + 1, "a checkpoint at most");
    shell.tick(5 * hour_ns, 1);
    let entries: Vec<_> =
        shell.around.commits[commits..].iter().flat_map(|commit| commit.entries.clone()).collect();
    let ended = outcomes(&entries);
    let CommitAttempt { sent_ns, ended_ns, looked_up } = written(0);
    let expected =
        CommitEnded { sealed, attempt: 1, sent_ns, ended_ns, outcome: CommitOutcome::Committed, looked_up };
    assert_eq!(ended.first(), Some(&expected));
}

#[test]
fn each_attempt_of_a_commit_is_told() {
    let mut shell = Shell::begin(0);
    shell.around.held_commit = Some(None);
    shell.records(0, vec![unreadable(0, 10)]);
    let commit = |shell: &mut Shell, now_ns| {
        shell.settle(now_ns);
        let held = shell.around.held_commit.as_mut().and_then(Option::take);
        held.expect("it is time for a commit")
    };
    let request = commit(&mut shell, 0);
    let sealed =
        decode_journal_entry(request.last_entry().expect("it has entries")).expect("an entry").sequence;
    let entries = request.entries.clone();
    let attempt = CommitAttempt { looked_up: true, ..written(4) };
    shell.tell(5, Event::Aborted { attempt, request, reason: "refused".to_owned() });
    let later_ns = 1_000_000_000;
    let request = commit(&mut shell, later_ns);
    assert_eq!(request.entries, entries, "it is sent again as it was");
    shell.tell(later_ns, Event::Committed(written(later_ns)));
    shell.records(later_ns, vec![unreadable(1, 10)]);
    let ended = outcomes(&commit(&mut shell, 2 * later_ns).entries);
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
    shell.tell(4_000_000_000, Event::Lost(vec![PARTITION]));
    shell.turn(4_000_000_000);
    let (mut sealed, mut others) = (0, 0);
    for commit in shell.around.commits.iter().filter(|commit| !commit.entries.is_empty()) {
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
