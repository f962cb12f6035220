//! Requests that are prepared and concluded while ticks go on.

use warptape_engine::Position;
use warptape_schemas::journal::{Decision, Input};

use super::*;

#[test]
fn ticks_go_on_while_a_request_is_prepared_and_concluded() {
    let mut shell = Shell::begin(0);
    assert!(shell.tick(0, 0));
    shell.ask(1_000_000_000, 0, None);
    assert_eq!(shell.around.preparations.len(), 1);
    assert!(shell.tick(1_000_000_000, 1), "while it is prepared");
    shell.prepare(2_000_000_000);
    assert_eq!(shell.around.conclusions.len(), 1, "the lane was done at once");
    assert!(shell.tick(2_000_000_000, 2), "while it is concluded");
    assert!(shell.results(2_000_000_000).is_empty());
    shell.conclude(3_000_000_000);
    let [result] = &shell.results(3_000_000_000)[..] else { panic!("there is one request") };
    assert_eq!(code(result), None);
    assert_eq!(result.as_of[0].next_offset, 1, "the market of when its turn came");
    let times = [result.received_ns, result.started_ns, result.finished_ns];
    assert_eq!(times, [1_000_000_000, 2_000_000_000, 3_000_000_000]);
}

#[test]
fn a_market_is_as_new_as_it_was_though_no_records_stand_before_the_offset() {
    // The group's offset is after the marker of a transaction.
    let mut shell = Shell::begin(3);
    shell.ask(0, 0, None);
    shell.tick(0, 0);
    shell.tick(1_000_000_000, 1);
    assert!(shell.around.preparations.is_empty(), "more is to be read");
    let position = Position { partition: PARTITION, generation: shell.around.generations[0], offset: 3 };
    shell.tell(2_000_000_000, Event::Positions(vec![position]));
    shell.turn(2_000_000_000);
    assert_eq!(shell.around.preparations.len(), 1);
}

#[test]
fn a_deadline_passes_whatever_a_request_waits_for() {
    for is_prepared in [false, true] {
        let mut shell = Shell::begin(i64::from(!is_prepared));
        shell.ask(5, 0, Some(70));
        assert_eq!(shell.around.preparations.len(), usize::from(is_prepared));
        assert_eq!(shell.wants().wake_at_ns, Some(70));
        assert!(shell.results(69).is_empty());
        let [result] = &shell.results(70)[..] else { panic!("there is one request") };
        assert_eq!((code(result), result.finished_ns), (Some(RiskErrorCode::Expired), 70));
        assert!(result.as_of.is_empty());
        // The scheduler refused the task, as its journal shows.
        let entries = shell.entries();
        let entry =
            entries.iter().find(|entry| entry.sequence == result.decision_sequence).expect("its entry");
        assert!(matches!(&entry.input, Input::TaskArrived(arrived) if arrived.as_of.is_empty()));
        assert!(matches!(entry.decisions[..], [Decision::Reject(_)]));
        // The task is abandoned.
        if is_prepared {
            shell.prepare(80);
        }
        assert!(shell.core.poll().is_none() && shell.results(90).is_empty());
        assert_eq!(shell.wants().wake_at_ns, None);
    }
}

#[test]
fn a_deadline_that_none_may_have_is_no_deadline() {
    let mut shell = Shell::begin(0);
    let request = request(0, Some(-1), &json!(100.0));
    shell.read(5, vec![request]);
    shell.turn(5);
    shell.prepare(5);
    assert_eq!(shell.results(5).iter().map(code).collect::<Vec<_>>(), [Some(RiskErrorCode::BadParameter)]);
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
        shell.tell(2_000_000_000, Event::Lost(vec![PARTITION]));
        shell.turn(2_000_000_000);
        match is_concluded {
            true => shell.conclude(3_000_000_000),
            false => shell.prepare(3_000_000_000),
        }
        shell.turn(10_000_000_000);
        assert!(shell.around.conclusions.is_empty() && shell.results(10_000_000_000).is_empty());
        assert_eq!(shell.core.status().tasks, 0);
    }
}

/// Returns a request of a class, with the market's price or a given one.
fn request_of(class: &str, offset: i64, spot: &serde_json::Value) -> ReadRequest {
    let mut request = request(offset, None, spot);
    let asked = request.request.as_mut().expect("it can be read");
    asked.class = serde_json::from_value(json!(class)).expect("a class");
    request
}

#[test]
fn requests_begin_though_a_lane_is_never_without_ticks() {
    const MILLISECOND: i64 = 1_000_000;
    let begins = |critical_percent: i32| {
        let mut shell = Shell::begin_changed(0, 0, |config| {
            config.lanes.truncate(1);
            config.scheduler.risk.critical_percent = critical_percent;
        });
        assert!(shell.tick(0, 0));
        shell.around.holds_batches = true;
        shell.tick(10 * MILLISECOND, 1);
        let asked_ns = 20 * MILLISECOND;
        shell.read(
            asked_ns,
            ["BATCH", "CRITICAL"]
                .iter()
                .zip(0..)
                .map(|(class, offset)| request_of(class, offset, &json!(100.0)))
                .collect(),
        );
        shell.turn(asked_ns);
        shell.prepare(asked_ns);
        shell.prepare(asked_ns);
        for at_ns in (asked_ns..3_000 * MILLISECOND).step_by(MILLISECOND as usize) {
            shell.turn(at_ns);
        }
        let first_ns = |is_critical| {
            let mut slices = shell.around.slices.iter().filter(|(_, critical)| *critical == is_critical);
            slices.next().map(|(at_ns, _)| (at_ns - asked_ns) / MILLISECOND)
        };
        [first_ns(true), first_ns(false)]
    };
    // The critical request starts at once, the other one after it has aged. Without a reserve neither starts.
    assert_eq!(begins(25), [Some(0), Some(1_000)]);
    assert_eq!(begins(0), [None, None]);
}

#[test]
fn the_most_urgent_request_is_prepared_first() {
    // The market is older than before, so all requests wait.
    let mut shell = Shell::begin(1);
    let classes = ["BATCH", "INTERACTIVE", "BATCH", "CRITICAL", "INTERACTIVE"];
    for (class, offset) in classes.into_iter().zip(0..) {
        shell.read(0, vec![request_of(class, offset, &json!({"from": "market"}))]);
    }
    assert!(shell.around.preparations.is_empty());
    shell.tick(1, 0);
    let mut offsets = Vec::new();
    while let Some(preparation) = shell.around.preparations.first() {
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
    let under_way = shell.around.preparations.len();
    assert!(under_way < 100, "{under_way} are prepared at once");
    shell.turn(deadline_ns);
    let results = shell.results(deadline_ns);
    assert_eq!(results.len(), 100);
    assert!(results.iter().all(|result| code(result) == Some(RiskErrorCode::Expired)));
    (100..200).for_each(|offset| shell.ask(deadline_ns, offset, None));
    assert_eq!(
        shell.around.preparations.len(),
        under_way,
        "nobody wants them, but they are still to be done"
    );
    assert_eq!(shell.around.abandoned.len(), under_way, "so they may be left out");
    shell.prepare(deadline_ns);
    assert_eq!(shell.around.preparations.len(), under_way, "one has gone, and one come");
}

/// A partition is assigned with ticks: two processed ones that its state lacks, and three others.
#[test]
fn requests_are_answered_while_ticks_are_caught_up_with() {
    let market = json!({"from": "market"});
    let assigned = Assigned { partition: PARTITION, committed: Some(2), end: 5, ..Assigned::default() };
    let mut shell = Shell::begin_assigned(assigned, 0, |_| {});
    let mut waiting = request_of("CRITICAL", 0, &market);
    waiting.waits = true;
    shell
        .read(0, vec![waiting, request_of("BATCH", 1, &market), request_of("INTERACTIVE", 2, &json!(100.0))]);
    let mut begun = Vec::new();
    for offset in 0..=5 {
        shell.turn(offset);
        begun.extend(shell.around.preparations.drain(..).map(|preparation| (offset, preparation.offset)));
        shell.tick(offset, offset);
    }
    // A request without market data starts at once. A request with market data starts with the processed ticks, and one
    // with the header after all ticks are accepted.
    assert_eq!(begun, [(0, 2), (2, 1), (5, 0)]);
}

/// The system has delayed the thread that prepares two large requests.
#[test]
fn a_critical_request_waits_for_no_large_one_that_is_prepared() {
    let mut shell = Shell::begin(0);
    shell.tick(0, 0);
    let mut large = |offset: i64| {
        let mut request = request_of("BATCH", offset, &json!(100.0));
        request.bytes = 1 << 20;
        request
    };
    shell.read(1, (0..3).map(&mut large).collect());
    shell.turn(1);
    shell.read(2, vec![request_of("CRITICAL", 3, &json!(100.0)), request_of("BATCH", 4, &json!(100.0))]);
    shell.turn(2);
    let begun: Vec<_> =
        shell.around.preparations.iter().map(|preparation| (preparation.offset, preparation.haste)).collect();
    assert_eq!(begun, [(0, Haste::Yields), (1, Haste::Yields), (3, Haste::AtOnce), (4, Haste::Soon)]);
}

/// The system has delayed a lane's thread for slices, so the thread does nothing.
#[test]
fn a_critical_task_passes_a_slice_that_is_put_off() {
    let mut shell = Shell::begin_changed(0, 0, |config| config.lanes.truncate(1));
    shell.tick(0, 0);
    shell.around.held_slices = Some(Vec::new());
    for (class, offset) in [("BATCH", 0), ("BATCH", 1), ("CRITICAL", 2), ("CRITICAL", 3)] {
        shell.read(offset, vec![request_of(class, offset, &json!(100.0))]);
        shell.turn(offset);
        shell.prepare(offset);
    }
    // The second slice of each kind waits for the first.
    assert_eq!(shell.around.slices, [(0, false), (2, true)]);
}
