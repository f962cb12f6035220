//! Explanations of single decisions, as engineers read them.

use warptape_events::journal::*;
use warptape_scheduler::{
    Choice, Comparison, Condition, Explanation, Instead, NextBatch, Otherwise, Scheduler, Subject,
    current_task_policy,
};

use crate::script::{assigned, config, started, task};
use crate::{drifting, shadow};

struct Steps {
    scheduler: Scheduler,
    at_ns: i64,
}

impl Steps {
    fn start(config: SchedulerConfig, weights: &[i32]) -> Self {
        let mut steps = Self { scheduler: Scheduler::new(), at_ns: 0 };
        steps.step(&started(config, weights));
        steps
    }

    fn step(&mut self, input: &Input) -> Vec<Decision> {
        let mut decisions = Vec::new();
        self.at_ns += 10;
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        decisions
    }

    /// Explains the first decision of the next step for which `is` holds, and takes the step.
    fn explain(&mut self, input: &Input, is: impl Fn(&Decision) -> bool) -> Explanation {
        let before = self.scheduler.clone();
        let decisions = self.step(input);
        let index = decisions.iter().position(is).expect("the step decides it");
        before.explain(self.at_ns, input, index).expect("the step was taken")
    }
}

#[test]
fn a_lane_that_is_drained_would_have_been_chosen() {
    let mut steps = Steps::start(config(), &[1, 1, 1]);
    let place = |decision: &Decision| matches!(decision, Decision::Place(_));
    let free = steps.explain(&assigned(0, 1), place);
    let Decision::Place(Place { lane, .. }) = free.decision else { panic!("{free:?}") };
    // The next best lane follows, with the difference of scores.
    let [Otherwise::Next(Subject::Lane(next), Some(less))] = free.otherwise[..] else { panic!("{free:?}") };
    let score = |lane: LaneId| free.choices[lane as usize].score.unwrap();
    assert_eq!(score(lane) - score(next), less);

    let drain = Control {
        offset: 0,
        id: "one".into(),
        by: "someone".into(),
        deadline_ns: i64::MAX,
        command: ControlCommand::DrainLane(DrainLane { lane }),
    };
    steps.step(&Input::Control(drain));
    let released = Released { partition: 0, group: 0, lane, epoch: 1 };
    let moved = steps.explain(&Input::Released(released), place);
    assert!(moved.otherwise.contains(&Otherwise::Unless(lane, ExclusionReason::Drained)), "{moved:?}");
    assert!(moved.choices[next as usize].is_chosen);
    assert_eq!(moved.choices[lane as usize].score, Some(score(lane)), "what it would have had");
}

#[test]
fn a_batch_says_what_would_have_had_it_leave_otherwise() {
    let mut steps = Steps::start(SchedulerConfig { batch_rows_max: 10, ..config() }, &[1]);
    steps.step(&assigned(0, 1));
    let groups = vec![GroupArrival { group: 0, rows: 4, bytes: 40 }];
    let arrived = Input::Arrived(Arrived { partition: 0, next_offset: 1, groups });
    let batch = steps.explain(&arrived, |decision| matches!(decision, Decision::Dispatch(_)));
    let by_ns = steps.at_ns + config().row_deadline_ns;
    assert_eq!(batch.otherwise, [Otherwise::AtLatest(by_ns), Otherwise::FullWith(6)]);
    let term = |name: &str| batch.choices[0].terms.iter().find(|term| term.name == name).unwrap().value;
    assert_eq!((term("waiting_rows"), term("rows_in_flight"), term("oldest_row_waits_ns")), (4, 0, 0));
}

#[test]
fn a_slice_says_which_task_would_have_been_next() {
    let mut steps = Steps::start(config(), &[1]);
    steps.step(&assigned(0, 1));
    // No other slice passes this one.
    steps.step(&Input::TaskArrived(TaskArrived { class: TaskClass::Critical, ..task(0) }));
    for (id, class) in [(1, TaskClass::Batch), (2, TaskClass::Critical), (3, TaskClass::Interactive)] {
        steps.step(&Input::TaskArrived(TaskArrived { class, ..task(id) }));
    }
    let done = Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 5 });
    let run = steps.explain(&done, |decision| matches!(decision, Decision::RunSlice(_)));
    let chosen: Vec<_> = run.choices.iter().filter(|choice| choice.is_chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0].subject, Subject::Task(2), "the most urgent one");
    assert_eq!(run.choices.len(), 3, "the first of each class: {run:?}");
    assert_eq!(run.otherwise, [Otherwise::Next(Subject::Task(3), None)]);
}

#[test]
fn a_lane_says_what_keeps_it_from_batches_and_groups() {
    let limits = SchedulerConfig { lane_batches_max: 2, batch_rows_max: 10, ..config() };
    let mut steps = Steps::start(limits, &[1, 1]);
    steps.step(&assigned(0, 4));
    let lane_of = |steps: &Steps, group: GroupIndex| {
        let mut placements = steps.scheduler.placements();
        placements.find(|one| one.group == group).and_then(|one| one.lane).expect("it is placed")
    };
    let lane = lane_of(&steps, 0);
    let explained = |steps: &Steps| steps.scheduler.explain_lane(lane).expect("there is such a lane");
    assert_eq!(explained(&steps).next_batch, NextBatch::NothingWaits);

    let arrive = |steps: &mut Steps, next_offset: i64, rows: i64| {
        let groups = vec![GroupArrival { group: 0, rows, bytes: 10 * rows }];
        steps.step(&Input::Arrived(Arrived { partition: 0, next_offset, groups }))
    };
    arrive(&mut steps, 1, 3);
    let wakes = arrive(&mut steps, 2, 3);
    let wake_ns =
        wakes.iter().find_map(|one| if let Decision::WakeAt(wake) = one { Some(wake.at_ns) } else { None });
    assert_eq!(explained(&steps).next_batch, NextBatch::AtLatest(wake_ns.expect("it is to be woken")));
    // Two batches are in flight when as many rows wait as fit into a batch.
    arrive(&mut steps, 3, 10);
    assert_eq!(explained(&steps).next_batch, NextBatch::BatchesInFlight);
    assert_eq!(explained(&steps).rows_left, 0);

    let others = explained(&steps).elsewhere;
    assert_eq!(others.len(), 4 - explained(&steps).load.groups_placed as usize);
    for other in &others {
        assert_eq!((other.choice.subject, other.lane), (Subject::Lane(lane), Some(1 - lane)));
        let lanes = steps.scheduler.lanes_for(0, other.group);
        assert_eq!(lanes.iter().filter(|one| one.is_chosen).count(), 1);
        assert_eq!(lanes[lane as usize], other.choice);
    }
    steps.step(&Input::LaneLost(LaneLost { lane, reason: "it broke".into(), kept: true }));
    assert_eq!(explained(&steps).excluded, Some(ExclusionReason::Lost));
    assert_eq!(explained(&steps).elsewhere.len(), 4);
    assert!(steps.scheduler.explain_lane(2).is_none());
}

/// The lanes of a placed group are as placement saw them, provided that nothing has changed since.
#[test]
fn lanes_of_a_placed_group_are_those_of_its_placement() {
    let mut steps = Steps::start(config(), &[1, 1, 1]);
    let placed = steps.explain(&assigned(0, 1), |decision| matches!(decision, Decision::Place(_)));
    assert_eq!(steps.scheduler.lanes_for(0, 0), placed.choices);
    assert!(steps.scheduler.lanes_for(0, 1).is_empty() && steps.scheduler.lanes_for(1, 0).is_empty());
}

/// A measure and its threshold.
#[track_caller]
fn measured(explanation: &Explanation, name: &str) -> (i64, Option<i64>) {
    let found = explanation.measures.iter().find(|measure| measure.name == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {explanation:?}"));
    (found.value, found.threshold)
}

fn with(name: &'static str, is: Comparison, value: i64, instead: Instead) -> Otherwise {
    Otherwise::With(Condition { name, is, value, instead })
}

fn breakers() -> BreakerConfig {
    BreakerConfig {
        losses_max: 2,
        window_ns: 1_000,
        slow_percent: 300,
        slow_ns: 1_000,
        probe_ns: 500,
        probe_ns_max: 5_000,
        probes: 2,
        headroom_c: 10,
        memory_free_percent: 0,
    }
}

#[test]
fn a_breaker_says_what_was_counted_and_what_would_have_kept_it() {
    let is_breaker = |decision: &Decision| matches!(decision, Decision::Breaker(_));
    let mut steps = Steps::start(SchedulerConfig { breakers: Some(breakers()), ..config() }, &[1, 1]);
    let lost = Input::LaneLost(LaneLost { lane: 1, reason: "gone".into(), kept: true });
    steps.step(&lost);
    steps.step(&Input::LaneReady(LaneReady { lane: 1 }));
    let opened = steps.explain(&lost, is_breaker);
    assert_eq!(measured(&opened, "losses_in_window"), (2, Some(2)));
    assert_eq!(measured(&opened, "first_of_these_losses_ago_ns"), (20, Some(1_000)));
    assert_eq!(measured(&opened, "other_lanes_in_full_service"), (1, Some(1)));
    assert_eq!(measured(&opened, "time_to_probe_ns"), (500, None));
    let nothing = |name, is, value| with(name, is, value, Instead::Nothing);
    assert_eq!(
        opened.otherwise,
        [
            nothing("losses_in_window", Comparison::Below, 2),
            nothing("first_of_these_losses_ago_ns", Comparison::AtLeast, 1_000),
            nothing("other_lanes_in_full_service", Comparison::Below, 1),
        ]
    );
    let opened_ns = steps.at_ns;
    steps.step(&Input::LaneReady(LaneReady { lane: 1 }));
    steps.at_ns = opened_ns + 590;
    let probed = steps.explain(&Input::Woke(Woke {}), is_breaker);
    assert_eq!(measured(&probed, "out_of_service_ns"), (600, Some(500)));
    assert_eq!(measured(&probed, "state_before_lasted_ns"), (600, None));
    assert_eq!(probed.otherwise, [nothing("out_of_service_ns", Comparison::Below, 500)]);
    let failed = steps.explain(&lost, is_breaker);
    assert_eq!(measured(&failed, "losses_while_tried"), (1, Some(1)));
    assert_eq!(measured(&failed, "time_to_probe_ns"), (1_000, None), "twice as long");
}

/// The account counts only losses within the window: the same steps at later times open no breaker.
#[test]
fn a_loss_that_has_left_the_window_opens_no_breaker() {
    let mut steps = Steps::start(SchedulerConfig { breakers: Some(breakers()), ..config() }, &[1, 1]);
    let lost = Input::LaneLost(LaneLost { lane: 1, reason: "gone".into(), kept: true });
    steps.step(&lost);
    steps.step(&Input::LaneReady(LaneReady { lane: 1 }));
    steps.at_ns += 980;
    let decisions = steps.step(&lost);
    assert!(!decisions.iter().any(|decision| matches!(decision, Decision::Breaker(_))), "{decisions:?}");
}

#[test]
fn a_hot_device_says_which_temperature_would_have_left_its_lane_more() {
    let mut steps = Steps::start(SchedulerConfig { breakers: Some(breakers()), ..config() }, &[8, 8]);
    let sampled = |temperature_c| {
        let sample = DeviceSample {
            temperature_c: Some(temperature_c),
            slowdown_c: Some(90),
            ..DeviceSample::default()
        };
        Input::Sampled(Box::new(Sampled { lane: 1, sample }))
    };
    let is_headroom = |decision: &Decision| matches!(decision, Decision::Headroom(_));
    let warm = steps.explain(&sampled(82), is_headroom);
    assert_eq!(measured(&warm, "degrees_to_throttling_c"), (8, Some(10)));
    assert_eq!(measured(&warm, "weight_before_percent"), (100, None));
    let temperature = |is, value, instead| with("temperature_c", is, value, instead);
    assert_eq!(
        warm.otherwise,
        [
            temperature(Comparison::AtMost, 80, Instead::Nothing),
            temperature(Comparison::AtLeast, 86, Instead::WeightPercent(25)),
        ]
    );
    let hot = steps.explain(&sampled(86), is_headroom);
    assert_eq!(hot.otherwise, [temperature(Comparison::AtMost, 85, Instead::Nothing)]);
    (0..9).for_each(|_| _ = steps.step(&sampled(70)));
    let cool = steps.explain(&sampled(70), is_headroom);
    assert_eq!(measured(&cool, "cool_samples"), (10, Some(10)));
    assert_eq!(
        cool.otherwise,
        [
            with("cool_samples", Comparison::Below, 10, Instead::Nothing),
            temperature(Comparison::AtLeast, 81, Instead::WeightPercent(50)),
            temperature(Comparison::AtLeast, 86, Instead::Nothing),
        ]
    );
}

/// Explains the first decision of a journal for which `is` holds.
fn explain_first(journal: &[(i64, Input)], is: impl Fn(&Decision) -> bool) -> Explanation {
    let mut scheduler = Scheduler::new();
    for (at_ns, input) in journal {
        let (before, mut decisions) = (scheduler.clone(), Vec::new());
        scheduler.step(*at_ns, input, &mut decisions).expect("good input");
        if let Some(index) = decisions.iter().position(&is) {
            return before.explain(*at_ns, input, index).expect("the step was taken");
        }
    }
    panic!("nothing of the kind was decided");
}

#[test]
fn a_learner_says_by_how_much_its_errors_had_grown() {
    let journal: Vec<_> =
        drifting::run().journal.into_iter().map(|recorded| (recorded.at_ns, recorded.input)).collect();
    let fell = explain_first(&journal, |one| matches!(one, Decision::FellBack(fell) if !fell.has_returned));
    let Decision::FellBack(decided) = &fell.decision else { panic!("{fell:?}") };
    assert_eq!(measured(&fell, "error_of_this_completion_milli"), (decided.error_milli, None));
    assert_eq!(measured(&fell, "mean_error_milli"), (decided.expected_milli, None));
    let (above, limit) = measured(&fell, "errors_above_their_mean_milli");
    let (before, _) = measured(&fell, "errors_above_their_mean_before_milli");
    assert!(before <= 8_000 && 8_000 < above && limit == Some(8_000), "{fell:?}");
    // One error counts for at most two powers of two above the mean, less a quarter that does not count.
    let counted = (decided.error_milli - decided.expected_milli).min(2_000) - 250;
    assert!((above - before - counted).abs() <= 3, "{fell:?}");
    let [Otherwise::With(Condition { is: Comparison::AtMost, value, instead: Instead::Nothing, .. })] =
        fell.otherwise[..]
    else {
        panic!("{fell:?}")
    };
    assert!((value - (decided.expected_milli + 8_250 - before)).abs() <= 3, "{fell:?}");

    let returned =
        explain_first(&journal, |one| matches!(one, Decision::FellBack(fell) if fell.has_returned));
    let Decision::FellBack(decided) = &returned.decision else { panic!("{returned:?}") };
    assert_eq!(measured(&returned, "good_windows"), (3, Some(3)));
    let (error, limit) = measured(&returned, "mean_error_in_window_milli");
    assert_eq!((error, limit), (decided.error_milli, Some(decided.expected_milli + 125)));
}

/// Terms of lanes in a choice, by lane.
fn terms_of(explanation: &Explanation, name: &str) -> Vec<Option<i64>> {
    let of = |choice: &Choice| choice.terms.iter().find(|term| term.name == name).map(|term| term.value);
    explanation.choices.iter().map(of).collect()
}

#[test]
fn the_policy_that_learns_says_its_corrections_and_what_lanes_are_worth_elsewhere() {
    let is_assignment = |decision: &Decision| matches!(decision, Decision::Assign(_));
    let said = |policy: &str| {
        let mut config = config();
        config.risk.policy = current_task_policy(policy);
        let mut steps = Steps::start(config, &[1, 1]);
        steps.step(&assigned(0, 1));
        let assigned = steps.explain(&Input::TaskArrived(task(0)), is_assignment);
        ["correction_milli_log2", "worth_more_on_other_kind_milli_log2"].map(|name| terms_of(&assigned, name))
    };
    // An unknown task may be better than expected by a quarter of a power of two; there are no prices.
    assert_eq!(said("linucb"), [vec![Some(-250); 2], vec![Some(0); 2]]);
    assert_eq!(said("earliest-completion"), [vec![None; 2], vec![None; 2]]);
}

#[test]
fn a_policy_in_the_shadow_says_what_it_chose_among() {
    let is_shadow = |decision: &Decision| matches!(decision, Decision::Shadow(_));
    let mut steps = Steps { scheduler: Scheduler::new(), at_ns: 0 };
    steps.step(&shadow::starts("shortest-queue", &["round-robin"], 1));
    steps.step(&assigned(0, 1));
    let joined = steps.explain(&Input::TaskArrived(task(0)), is_shadow);
    assert_eq!(joined.choices.len(), 3);
    assert_eq!(measured(&joined, "number_of_arrival"), (1, Some(1)));
    // Turns begin after lane 0. Without lane 1, the next turn would be lane 2's.
    assert!(joined.choices[1].is_chosen);
    assert_eq!(joined.otherwise, [Otherwise::Next(Subject::Lane(2), None)]);

    let mut steps = Steps { scheduler: Scheduler::new(), at_ns: 0 };
    steps.step(&shadow::starts("first-come", &["earliest-deadline"], 1));
    steps.step(&assigned(0, 1));
    let arrived =
        |task_: TaskId, deadline_ns| TaskArrived { task: task_, offset: task_, deadline_ns, ..task(0) };
    for (number, deadline_ns) in [None, None, None, None, Some(2_000_000), Some(1_000_000)].iter().enumerate()
    {
        steps.step(&Input::TaskArrived(arrived(number as TaskId, *deadline_ns)));
    }
    let done = Input::SliceDone(SliceDone { lane: 1, slice: 1, service_ns: 100 });
    let begun = steps.explain(&done, is_shadow);
    let Decision::Shadow(said) = &begun.decision else { panic!("{begun:?}") };
    assert_eq!((said.task, said.task_instead), (3, Some(5)));
    let tasks: Vec<_> = begun.choices.iter().map(|choice| (choice.subject, choice.is_chosen)).collect();
    assert_eq!(tasks, [3, 4, 5].map(|task| (Subject::Task(task), task == 5)));
    assert_eq!(begun.otherwise, [Otherwise::Next(Subject::Task(4), None)]);
    assert_eq!(measured(&begun, "number_of_slice"), (4, Some(1)));
}
