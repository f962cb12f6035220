mod cancelling;

use serde_json::{Value, json};
use warptape_eventlog::Record;
use warptape_kernels::Isa;
use warptape_schemas::journal::{Decision, Input};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{decode_journal_entry, decode_risk_result, encode_risk_request, encode_tick};

use super::super::gates::tests::{PARTITION, restored, unreadable};
use super::*;
use crate::engine::{CommitRequest, LaneResult, LaneStages, Slice};

const TOLD: &str = "the journal takes it";

/// A core with one lane, and what it commanded that is still to be done.
struct Shell {
    core: Core,
    /// Of ticks, and of requests.
    generations: [u64; 2],
    lane: LaneStages,
    preparations: Vec<Preparation>,
    conclusions: Vec<Conclusion>,
    batches: usize,
}

impl Shell {
    /// Has restored a partition, outputs existing before an offset, and reads its requests.
    fn begin(sealed_offset: i64) -> Self {
        let (mut core, generation) = restored(sealed_offset);
        core.on_requests_opened(PARTITION, 0, 0, Answered::default());
        let lane = LaneStages::on_host(&core.config.stages, Isa::Baseline);
        let generations = [generation, core.generation];
        let (preparations, conclusions) = (Vec::new(), Vec::new());
        let mut shell = Self { core, generations, lane, preparations, conclusions, batches: 0 };
        shell.turn(0);
        shell
    }

    /// What the engine's loop does after each event; the lane is done at once with all that it is told.
    fn turn(&mut self, now_ns: i64) {
        self.core.on_time(now_ns).expect(TOLD);
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return;
            }
            for command in commands {
                match command {
                    Command::Prepare(preparation) => self.preparations.push(preparation),
                    Command::Conclude(conclusion) => self.conclusions.push(conclusion),
                    Command::Slice(lane, Slice { slice, task, units }) => {
                        let partial = task.run(Isa::Baseline, units);
                        self.core.on_slice_done(now_ns, lane, slice, 1, partial).expect(TOLD);
                    }
                    Command::Lane(lane, command) => match self.lane.obey(command).expect("it is on the host")
                    {
                        Some(LaneResult::Batch { batch, parts }) => {
                            self.batches += 1;
                            self.core.on_completed(now_ns, lane, batch, 1, parts, None).expect(TOLD);
                        }
                        Some(LaneResult::Released { .. }) | None => {}
                    },
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
        let due_ns = now_ns + self.core.config.scheduler.row_deadline_ns;
        self.turn(due_ns);
        self.batches > before
    }

    fn ask(&mut self, now_ns: i64, offset: i64, deadline_ns: Option<i64>) {
        let request = request(offset, deadline_ns, &json!({"from": "market"}));
        self.core.on_requests(now_ns, PARTITION, self.generations[1], vec![request]).expect(TOLD);
        self.turn(now_ns);
    }

    fn prepare(&mut self, now_ns: i64) {
        let preparation = self.preparations.remove(0);
        self.core.on_prepared(now_ns, preparation.run()).expect(TOLD);
        self.turn(now_ns);
    }

    fn conclude(&mut self, now_ns: i64) {
        let conclusion = self.conclusions.remove(0);
        self.core.on_concluded(now_ns, conclusion.run(|| now_ns)).expect(TOLD);
        self.turn(now_ns);
    }

    fn seal(&mut self, now_ns: i64) -> CommitRequest {
        self.core.seal(now_ns).unwrap()
    }
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
    ReadRequest::of(&record)
}

fn results(commit: &CommitRequest) -> Vec<RiskResult> {
    let results = commit.sealed.iter().flat_map(|sealed| &sealed.risk_results);
    results.map(|(_, bytes)| decode_risk_result(bytes).expect("a result")).collect()
}

fn code(result: &RiskResult) -> Option<RiskErrorCode> {
    match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    }
}

#[test]
fn ticks_go_on_while_a_request_is_prepared_and_concluded() {
    let mut shell = Shell::begin(0);
    assert!(shell.tick(0, 0));
    shell.ask(1_000_000_000, 0, None);
    assert_eq!(shell.preparations.len(), 1);
    assert!(shell.tick(1_000_000_000, 1), "while it is prepared");
    shell.prepare(2_000_000_000);
    assert_eq!(shell.conclusions.len(), 1, "the lane was done at once");
    assert!(shell.tick(2_000_000_000, 2), "while it is concluded");
    assert!(!shell.core.has_risk_results());
    shell.conclude(3_000_000_000);
    let commit = shell.seal(3_000_000_000);
    let [result] = &results(&commit)[..] else { panic!("there is one request") };
    assert_eq!(code(result), None);
    assert_eq!(result.as_of[0].next_offset, 1, "the market of when its turn came");
    let times = [result.received_ns, result.started_ns, result.finished_ns];
    assert_eq!(times, [1_000_000_000, 2_000_000_000, 3_000_000_000]);
}

#[test]
fn a_market_is_as_new_as_it_was_though_no_records_stand_before_the_offset() {
    // The group's offset lies behind the marker of a transaction.
    let mut shell = Shell::begin(3);
    shell.ask(0, 0, None);
    shell.tick(0, 0);
    shell.tick(1_000_000_000, 1);
    assert!(shell.preparations.is_empty(), "more is to be read");
    shell.core.on_position(2_000_000_000, PARTITION, shell.generations[0], 3).expect(TOLD);
    shell.turn(2_000_000_000);
    assert_eq!(shell.preparations.len(), 1);
}

#[test]
fn a_deadline_passes_whatever_a_request_waits_for() {
    for is_prepared in [false, true] {
        let mut shell = Shell::begin(i64::from(!is_prepared));
        shell.ask(5, 0, Some(70));
        assert_eq!(shell.preparations.len(), usize::from(is_prepared));
        assert_eq!(shell.core.wake_at_ns(), Some(70));
        shell.turn(69);
        assert!(!shell.core.has_risk_results());
        shell.turn(70);
        let commit = shell.seal(70);
        let [result] = &results(&commit)[..] else { panic!("there is one request") };
        assert_eq!((code(result), result.finished_ns), (Some(RiskErrorCode::Expired), 70));
        assert!(result.as_of.is_empty());
        // The scheduler refused it, which its journal tells.
        let mut entries =
            commit.entries.iter().map(|(_, entry)| decode_journal_entry(entry).expect("an entry"));
        let entry = entries.find(|entry| entry.sequence == result.decision_sequence).expect("its entry");
        assert!(matches!(&entry.input, Input::TaskArrived(arrived) if arrived.as_of.is_empty()));
        assert!(matches!(entry.decisions[..], [Decision::Reject(_)]));
        // Nobody waits for the task any more.
        if is_prepared {
            shell.prepare(80);
        }
        assert!(shell.core.take_commands().is_empty() && !shell.core.has_risk_results());
        assert_eq!(shell.core.wake_at_ns(), None);
    }
}

#[test]
fn a_deadline_that_none_may_have_is_no_deadline() {
    let mut shell = Shell::begin(0);
    let request = request(0, Some(-1), &json!(100.0));
    shell.core.on_requests(5, PARTITION, shell.generations[1], vec![request]).expect(TOLD);
    shell.turn(5);
    shell.prepare(5);
    let commit = shell.seal(5);
    assert_eq!(results(&commit).iter().map(code).collect::<Vec<_>>(), [Some(RiskErrorCode::BadParameter)]);
}

#[test]
fn what_is_done_for_a_partition_that_has_gone_is_for_nothing() {
    for is_concluded in [false, true] {
        let mut shell = Shell::begin(0);
        shell.tick(0, 0);
        shell.ask(1_000_000_000, 0, Some(9_000_000_000));
        if is_concluded {
            shell.prepare(1_000_000_000);
        }
        shell.core.on_revoked(2_000_000_000, PARTITION).expect(TOLD);
        shell.turn(2_000_000_000);
        match is_concluded {
            true => shell.conclude(3_000_000_000),
            false => shell.prepare(3_000_000_000),
        }
        shell.turn(10_000_000_000);
        assert!(!shell.core.has_risk_results() && shell.core.risk.tasks.is_empty());
        assert!(shell.conclusions.is_empty() && results(&shell.seal(10_000_000_000)).is_empty());
    }
}

#[test]
fn the_most_urgent_request_is_prepared_first() {
    // The market is older than it has been: all of them wait.
    let mut shell = Shell::begin(1);
    let classes = ["BATCH", "INTERACTIVE", "BATCH", "CRITICAL", "INTERACTIVE"];
    for (class, offset) in classes.into_iter().zip(0..) {
        let mut request = request(offset, None, &json!(100.0));
        let asked = request.request.as_mut().expect("it can be read");
        asked.class = serde_json::from_value(json!(class)).expect("a class");
        shell.core.on_requests(0, PARTITION, shell.generations[1], vec![request]).expect(TOLD);
    }
    assert!(shell.preparations.is_empty());
    shell.tick(1, 0);
    let mut offsets = Vec::new();
    while let Some(preparation) = shell.preparations.first() {
        offsets.push(preparation.offset);
        shell.prepare(2);
    }
    assert_eq!(offsets, [3, 1, 4, 0, 2]);
}

#[test]
fn what_is_prepared_in_vain_makes_room_only_when_it_is_done() {
    let mut shell = Shell::begin(0);
    assert!(shell.tick(0, 0));
    let (now_ns, deadline_ns) = (1_000_000_000, 1_050_000_000);
    (0..100).for_each(|offset| shell.ask(now_ns, offset, Some(deadline_ns)));
    let under_way = shell.preparations.len();
    assert!(under_way < 100, "{under_way} are prepared at once");
    shell.turn(deadline_ns);
    assert!(
        results(&shell.seal(deadline_ns)).iter().all(|result| code(result) == Some(RiskErrorCode::Expired))
    );
    (100..200).for_each(|offset| shell.ask(deadline_ns, offset, None));
    assert_eq!(shell.preparations.len(), under_way, "nobody wants them, but they are still to be done");
    let prepared = shell.preparations.remove(0).run();
    assert!(prepared.task.is_none(), "it is left out");
    shell.core.on_prepared(deadline_ns, prepared).expect(TOLD);
    shell.turn(deadline_ns);
    assert_eq!(shell.preparations.len(), under_way, "one has gone, and one come");
}
