//! An artificial drift in the simulation: tasks end late for a while, although no slice shows it. The policy `linucb`
//! falls back to its rule, and later decides again.

use warptape_events::journal::*;
use warptape_scheduler::{Scheduler, current_task_policy};

use crate::model::Model;
use crate::script::{assigned, config, task};

/// Tasks between two changes.
const PHASE: i64 = 250;
const MILLISECOND: i64 = 1_000_000;

/// Runs tasks one after the other in four phases. In the second and the last phase, tasks end sixteen times as late as
/// predicted.
pub fn run() -> Model {
    let mut config = config();
    config.risk.policy = current_task_policy("linucb");
    config.risk.predictor = 1;
    let mut model = Model::start(0, config, &[1, 1], None, None);
    model.step(assigned(0, 1));
    for number in 0..4 * PHASE {
        model.step(Input::TaskArrived(task(number)));
        let begun =
            (0..).zip(&model.lanes).find_map(|(lane, known)| Some((lane, known.slice.as_ref()?.slice)));
        let (lane, slice) = begun.expect("a lane that is free begins the task");
        let is_late = (number / PHASE) % 2 == 1;
        model.at_ns += if is_late { 16 * MILLISECOND } else { MILLISECOND };
        model.step(Input::SliceDone(SliceDone { lane, slice, service_ns: MILLISECOND }));
    }
    model
}

fn changes(decisions: &[Decision]) -> impl Iterator<Item = &FellBack> {
    decisions.iter().filter_map(|decision| match decision {
        Decision::FellBack(fell) => Some(fell),
        _ => None,
    })
}

#[test]
fn it_falls_back_at_each_change_and_says_what_it_learnt_from() {
    let model = run();
    model.check_replay();
    let said: Vec<_> = model.journal.iter().flat_map(|recorded| changes(&recorded.decisions)).collect();
    let turns: Vec<_> = said.iter().map(|fell| (fell.task / PHASE, fell.has_returned)).collect();
    let expected = [1, 2, 3].map(|phase| [(phase, false), (phase, true)]);
    assert_eq!(turns, expected.as_flattened(), "{said:?}");
    // The first task had no prediction.
    let mut forgotten = 1;
    for fell in said {
        assert_eq!(fell.completions, fell.task - forgotten, "{fell:?}");
        if fell.has_returned {
            assert!(fell.completions >= 96, "three windows: {fell:?}");
            // The rule's error is four powers of two while tasks are late.
            let rule = if fell.task / PHASE == 2 { 0 } else { 4_000 };
            assert!(fell.expected_milli.abs_diff(rule) < 10, "{fell:?}");
            assert!(fell.error_milli < 200, "{fell:?}");
        } else {
            forgotten = fell.task;
            assert!(fell.task % PHASE < 20, "{fell:?}");
            assert!(fell.error_milli > 2_000 && fell.expected_milli < fell.error_milli, "{fell:?}");
        }
    }
}

/// A replay from a checkpoint between a fall and the return continues identically.
#[test]
fn a_state_that_has_fallen_back_goes_on_as_it_was() {
    let model = run();
    let journal = &model.journal;
    let fell = journal.iter().position(|recorded| changes(&recorded.decisions).count() > 0);
    let middle = fell.expect("it falls back") + 40;
    let mut scheduler = Scheduler::new();
    let step = |scheduler: &mut Scheduler, number: usize| {
        let mut decisions = Vec::new();
        scheduler.step(journal[number].at_ns, &journal[number].input, &mut decisions).expect("good input");
        decisions
    };
    (0..middle).for_each(|number| assert_eq!(step(&mut scheduler, number), journal[number].decisions));
    let bytes = scheduler.checkpoint();
    let mut read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
    assert_eq!((bytes[0], read.state_hash()), (4, scheduler.state_hash()));
    let mut returned = 0;
    for (number, recorded) in journal.iter().enumerate().skip(middle) {
        assert_eq!(read.state_hash(), recorded.hash_before);
        let decisions = step(&mut read, number);
        assert_eq!(decisions, recorded.decisions);
        returned += changes(&decisions).filter(|fell| fell.has_returned).count();
    }
    assert_eq!(returned, 3);
    assert_eq!(read.state_hash(), model.scheduler.state_hash());
}
