//! Autoscaling of a running process: figures of windows, times of decisions, and checkpoints.

use warptape_events::journal::*;
use warptape_scheduler::{Comparison, Condition, Explanation, Instead, Otherwise, Scheduler, StepError};

use crate::script::{assigned, config, started};

const S: i64 = 1_000_000_000;

fn autoscale() -> AutoscaleConfig {
    AutoscaleConfig {
        window_ns: S,
        clear_ns: S,
        start_ns: S,
        hold_windows: 2,
        lanes_max: 8,
        utilization_percent: 80,
        ..AutoscaleConfig::default()
    }
}

fn starts(autoscale: Option<AutoscaleConfig>) -> Input {
    let Input::Started(plain) = started(config(), &[1, 1]) else { panic!("a start") };
    Input::Started(Box::new(Started { autoscale, ..*plain }))
}

/// A scheduler, and its decisions about the number of lanes so far.
struct World {
    scheduler: Scheduler,
    scales: Vec<(i64, Scale)>,
    wakes: Vec<i64>,
    batches: Vec<Dispatch>,
    offset: i64,
}

impl World {
    fn new(autoscale: Option<AutoscaleConfig>) -> Self {
        let (scales, wakes, batches) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = Self { scheduler: Scheduler::new(), scales, wakes, batches, offset: 0 };
        world.step(S / 2, &starts(autoscale));
        world.step(S / 2, &assigned(0, 4));
        world
    }

    fn step(&mut self, at_ns: i64, input: &Input) {
        let mut decisions = Vec::new();
        self.scheduler.step(at_ns, input, &mut decisions).expect("good input");
        self.scheduler.audit();
        for decision in decisions {
            match decision {
                Decision::Scale(scale) => self.scales.push((at_ns, scale)),
                Decision::WakeAt(wake) => self.wakes.push(wake.at_ns),
                Decision::Dispatch(dispatch) => self.batches.push(dispatch),
                _ => {}
            }
        }
    }

    /// Adds ten rows, which take their lane this long.
    fn work(&mut self, at_ns: i64, service_ns: i64) {
        self.offset += 1;
        let rows = GroupArrival { group: 0, rows: 10, bytes: 10 };
        let arrived = Arrived { partition: 0, next_offset: self.offset, groups: vec![rows] };
        self.step(at_ns, &Input::Arrived(arrived));
        for Dispatch { lane, batch, .. } in std::mem::take(&mut self.batches) {
            self.step(at_ns, &Input::Completed(Completed { lane, batch, service_ns, sample: None }));
        }
    }
}

#[test]
fn lanes_are_wanted_by_what_they_did_in_whole_windows() {
    let mut world = World::new(Some(autoscale()));
    // The first window is incomplete, and therefore not judged.
    world.work(S * 6 / 10, 50 * S);
    world.step(S, &Input::Woke(Woke {}));
    assert_eq!((world.scales.len(), world.scheduler.wish()), (0, None));
    assert!(world.wakes.contains(&S) && world.wakes.contains(&(2 * S)), "{:?}", world.wakes);
    // Three lanes work without a pause.
    for part in 0..10 {
        world.work(S + part * S / 10, 3 * S / 10);
    }
    world.step(2 * S, &Input::Woke(Woke {}));
    let (at_ns, scale) = world.scales[0];
    assert_eq!((at_ns, scale.lanes, scale.lanes_before, scale.lanes_in_service), (2 * S, 4, 2, 2));
    assert_eq!(
        (scale.reason, scale.load_e6, scale.utilization_percent),
        (ScaleReason::Utilization, 3_000_000, 150)
    );
    // The wanted number stays during the hold; only a change of it is a decision.
    for window in 3..9 {
        world.step(window * S, &Input::Woke(Woke {}));
    }
    let found: Vec<_> = world.scales.iter().map(|(at_ns, scale)| (*at_ns, scale.lanes)).collect();
    assert_eq!(found, [(2 * S, 4), (5 * S, 1)]);
}

/// Explains the wanted number after a window in which two lanes worked `parts` times 100 ms.
fn explained(parts: i64) -> Explanation {
    let mut world = World::new(Some(autoscale()));
    world.step(S, &Input::Woke(Woke {}));
    world.work(S, parts * S / 10);
    let (woke, mut decisions) = (Input::Woke(Woke {}), Vec::new());
    world.scheduler.clone().step(2 * S, &woke, &mut decisions).expect("good input");
    let index = decisions.iter().position(|decision| matches!(decision, Decision::Scale(_)));
    world.scheduler.explain(2 * S, &woke, index.expect("it is decided")).expect("the step was taken")
}

/// The thresholds in an explanation are exact: at loads beside them, other numbers are wanted.
#[test]
fn a_wish_says_with_which_load_it_would_have_been_another() {
    let wish = explained(30);
    let value =
        |name: &str| wish.measures.iter().find(|one| one.name == name).map(|one| (one.value, one.threshold));
    assert_eq!(value("utilization_percent"), Some((150, Some(80))));
    assert_eq!(value("load_e6"), Some((3_000_000, None)));
    assert_eq!(value("lanes_that_would_do"), Some((4, None)));
    let with = |is, value, lanes| {
        let instead = Instead::Lanes(lanes);
        Otherwise::With(Condition { name: "load_e6", is, value, instead })
    };
    assert_eq!(
        wish.otherwise,
        [with(Comparison::Below, 2_400_001, 3), with(Comparison::AtLeast, 3_200_001, 5)]
    );
    for (parts, lanes) in [(24, 3), (25, 4), (32, 4), (33, 5)] {
        let Decision::Scale(scale) = explained(parts).decision else { panic!("a wish") };
        assert_eq!(scale.lanes, lanes, "{parts}");
    }
    // A load below that of three lanes would have kept the two wanted lanes.
    let instead = Instead::Nothing;
    let two =
        Otherwise::With(Condition { name: "load_e6", is: Comparison::Below, value: 1_600_001, instead });
    assert_eq!(explained(24).otherwise[0], two);
}

/// The first step after a window's end may add work, which does not belong to that window.
#[test]
fn what_ends_after_a_window_counts_in_the_next_one() {
    let mut world = World::new(Some(autoscale()));
    world.step(S, &Input::Woke(Woke {}));
    world.work(2 * S + 1, 3 * S);
    assert_eq!(world.scheduler.wish().expect("a window has passed").arrived_e6, 0);
    // Nothing happened in the window after that.
    world.step(5 * S, &Input::Woke(Woke {}));
    assert_eq!(world.scheduler.wish().expect("windows have passed").arrived_e6, 3_000_000);
    world.step(6 * S, &Input::Woke(Woke {}));
    assert_eq!(world.scheduler.wish().expect("windows have passed").arrived_e6, 0);
}

#[test]
fn rows_that_wait_are_counted_by_what_rows_take() {
    let mut world = World::new(Some(autoscale()));
    world.step(S, &Input::Woke(Woke {}));
    // A row takes 10 ms. Then three hundred rows wait behind those in flight.
    world.work(S, S / 10);
    let rows = GroupArrival { group: 0, rows: 320, bytes: 320 };
    world.step(S, &Input::Arrived(Arrived { partition: 0, next_offset: 2, groups: vec![rows] }));
    let in_flight: i64 = world.batches.iter().map(|batch| batch.rows).sum();
    world.step(2 * S, &Input::Woke(Woke {}));
    let (_, scale) = world.scales[0];
    assert_eq!(scale.waiting_ns, (320 - in_flight) * S / 100);
    assert_eq!(scale.reason, ScaleReason::Waiting);
    assert_eq!(scale.arrived_e6, 100_000 + (320 - in_flight) * 10_000);
}

/// Without autoscaling there are no decisions, wakes or hashes of it. With it, a checkpoint has the whole state, and
/// the restored scheduler continues identically.
#[test]
fn the_state_has_all_of_it_and_nothing_where_it_is_off() {
    let (mut on, mut off) = (World::new(Some(autoscale())), World::new(None));
    assert_ne!(on.scheduler.state_hash(), off.scheduler.state_hash());
    assert_eq!((on.scheduler.checkpoint()[0], off.scheduler.checkpoint()[0]), (4, 4));
    for part in 0..60 {
        on.work(S + part * S / 4, S / 2);
        off.work(S + part * S / 4, S / 2);
    }
    assert!(off.scales.is_empty() && off.wakes.is_empty() && !on.scales.is_empty());
    let read = Scheduler::from_checkpoint(&on.scheduler.checkpoint()).expect("it was just written");
    assert_eq!(read.state_hash(), on.scheduler.state_hash());
    let mut other = World { scheduler: read, scales: on.scales.clone(), ..World::new(None) };
    other.offset = on.offset;
    for part in 60..120 {
        on.work(S + part * S / 4, S);
        other.work(S + part * S / 4, S);
    }
    assert_eq!(other.scales, on.scales);
    assert_eq!(other.scheduler.state_hash(), on.scheduler.state_hash());
}

#[test]
fn nothing_is_wanted_of_a_process_that_ends() {
    let mut world = World::new(Some(autoscale()));
    world.step(S, &Input::Draining(Draining {}));
    for window in 2..6 {
        world.step(window * S, &Input::Woke(Woke {}));
    }
    assert!(world.scales.is_empty());
}

#[test]
fn what_is_wrong_with_a_configuration_is_said() {
    let check = |config: AutoscaleConfig, expected: &str| {
        let error = Scheduler::new().step(0, &starts(Some(config)), &mut Vec::new()).unwrap_err();
        let StepError::BadConfig(mistakes) = &error else { panic!("{error}") };
        assert_eq!(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    };
    let good = autoscale();
    let expected = "autoscale.window_ns is 1; it must be from 1000000000 to 86400000000000";
    check(AutoscaleConfig { window_ns: 1, ..good }, expected);
    let expected = "autoscale.lanes_min is 9; it must be up to lanes_max (8)";
    check(AutoscaleConfig { lanes_min: 9, ..good }, expected);
    let expected = "autoscale.hysteresis_percent is 80; it must be below utilization_percent (80)";
    check(AutoscaleConfig { hysteresis_percent: 80, ..good }, expected);
    let expected = "autoscale.season_windows is -1; it must be from 0 to 1440";
    check(AutoscaleConfig { season_windows: -1, ..good }, expected);
}
