//! Inputs from a damaged journal: they never cause a panic, and refused ones leave no trace.

use proptest::collection::vec;
use proptest::prelude::*;
use warptape_events::journal::*;
use warptape_scheduler::{
    GROUPS_PER_PARTITION_MAX, GROUPS_TOTAL_MAX, PARTITIONS_MAX, Scheduler, StepError, TASK_POLICIES,
    current_task_policy,
};

use crate::script::{assigned, config, started};

/// Small numbers, which are valid, and extreme ones, which may overflow.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 0i64..6,
        1 => prop_oneof![
            Just(i64::MIN), Just(-1), Just(i64::from(i32::MAX)), Just(1 << 40), Just(1 << 50), Just(i64::MAX / 2),
            Just(i64::MAX)
        ],
    ]
}

fn index() -> impl Strategy<Value = i32> {
    prop_oneof![9 => 0..3i32, 1 => prop_oneof![Just(i32::MIN), Just(-1), Just(300), Just(i32::MAX)]]
}

fn arrivals() -> impl Strategy<Value = Vec<GroupArrival>> {
    let arrival = (index(), number(), number());
    let sorted = |mut arrivals: Vec<GroupArrival>| {
        arrivals.sort_by_key(|arrival| arrival.group);
        arrivals
    };
    vec(arrival.prop_map(|(group, rows, bytes)| GroupArrival { group, rows, bytes }), 0..3).prop_map(sorted)
}

fn start() -> impl Strategy<Value = Input> {
    let fields = (number(), number(), number(), number(), number(), number(), number(), index(), index());
    let changed = (0..30i32, fields).prop_map(|(which, fields)| {
        let mut config = config();
        match which {
            0 => config.lane_credit_rows = fields.0,
            1 => config.lane_credit_bytes = fields.1,
            2 => config.batch_rows_max = fields.2,
            3 => config.row_deadline_ns = fields.3,
            4 => config.high_water_rows = fields.4,
            5 => config.low_water_rows = fields.5,
            6 => config.placement_seed = fields.6,
            7 => config.load_factor_percent = fields.7,
            8 => config.lane_batches_max = fields.8,
            15 => config.risk.slice_ns = fields.0,
            16 => config.risk.tasks_max = fields.7,
            17 => config.risk.split = SplitPolicy::Equal,
            18 => config.risk.split = SplitPolicy::Score,
            19..26 => {
                config.risk.policy = current_task_policy(TASK_POLICIES[which as usize % TASK_POLICIES.len()]);
                config.risk.price_interval_ns = fields.0;
            }
            29..31 => {
                config.risk.critical_percent = 100;
                config.risk.ageing_ns = fields.0;
                config.risk.predictor = 1;
                config.risk.queues.delay_target_ns = fields.0;
                config.risk.queues.delay_interval_ns = 1;
                config.risk.queues.in_flight_min = 1;
                config.risk.steals = true;
            }
            26..29 => {
                config.risk.policy = "lp-price".to_owned();
                config.risk.price_interval_ns = 1;
            }
            10..15 => {
                config.route_interval_ns = fields.0;
                config.load_factor_percent = 10_000;
            }
            9 => {
                // This is the largest valid configuration.
                config.lane_credit_rows = 1 << 40;
                config.lane_credit_bytes = 1 << 50;
                config.batch_rows_max = 1 << 40;
                config.high_water_rows = 1 << 40;
                config.load_factor_percent = 10_000;
                config.lane_batches_max = 1_024;
                config.row_deadline_ns = 86_400_000_000_000;
            }
            _ => (),
        }
        config
    });
    let weights =
        vec(prop_oneof![9 => 1..4i32, 1 => prop_oneof![Just(0), Just(1_000_000), Just(i32::MAX)]], 0..4);
    (changed, weights).prop_map(|(config, weights)| started(config, &weights))
}

fn task() -> impl Strategy<Value = Input> {
    let numbers = (number(), number(), number(), number(), number(), number());
    (index(), numbers, 0..3usize, any::<bool>()).prop_map(|(partition, numbers, class, gang)| {
        let (task, first_unit, units, unit_cost, slice_units_max, deadline_ns) = numbers;
        let mut arrived = crate::script::task(task);
        (arrived.partition, arrived.gang, arrived.bytes) = (partition, gang, deadline_ns);
        (arrived.first_unit, arrived.units) = (first_unit, units);
        (arrived.unit_cost, arrived.slice_units_max) = (unit_cost, slice_units_max);
        arrived.unit_width = slice_units_max as u16;
        arrived.deadline_ns = Some(deadline_ns).filter(|&deadline_ns| deadline_ns > 3);
        arrived.class = [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch][class];
        Input::TaskArrived(arrived)
    })
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        1 => start(),
        4 => (index(), index(), number(), number()).prop_map(|(partition, groups, committed, snapshot)| {
            let (committed_offset, snapshot_offset) = (committed, snapshot.min(committed));
            Input::PartitionAssigned(PartitionAssigned { partition, groups, committed_offset, snapshot_offset, ..PartitionAssigned::default() })
        }),
        1 => index().prop_map(|partition| Input::PartitionRevoked(PartitionRevoked { partition })),
        12 => (index(), number(), arrivals()).prop_map(|(partition, next_offset, groups)| {
            Input::Arrived(Arrived { partition, next_offset, groups })
        }),
        8 => (index(), number(), number()).prop_map(|(lane, batch, service_ns)| {
            Input::Completed(Completed { lane, batch, service_ns, sample: None })
        }),
        1 => index().prop_map(|lane| Input::LaneLost(LaneLost { lane, reason: "gone".into(), kept: false })),
        2 => index().prop_map(|lane| Input::LaneReady(LaneReady { lane })),
        1 => Just(Input::Woke(Woke {})),
        1 => Just(Input::Draining(Draining {})),
        1 => (number(), index(), number()).prop_map(|(sealed, attempt, sent_ns)| {
            let (ended_ns, outcome, looked_up) = (!sent_ns, CommitOutcome::Aborted, attempt > 1);
            Input::CommitEnded(CommitEnded { sealed, attempt, sent_ns, ended_ns, outcome, looked_up })
        }),
        1 => (0..20u8, any::<bool>()).prop_map(|(number, is_whole)| {
            let network = crate::learned::network(number.into());
            let mut bytes = network.to_bytes();
            bytes.truncate(if is_whole { bytes.len() } else { number.into() });
            Input::Trained(Trained { hash: network.hash(), network: StateBytes(bytes) })
        }),
        2 => (index(), vec((number(), number()), 0..4)).prop_map(|(lane, points)| {
            let points = points.into_iter().map(|(rows, service_ns)| ServicePoint { rows, service_ns });
            Input::Measured(Measured { lane, points: points.collect() })
        }),
        6 => task(),
        6 => (index(), number(), number()).prop_map(|(lane, slice, service_ns)| {
            Input::SliceDone(SliceDone { lane, slice, service_ns })
        }),
        2 => (index(), number(), number(), number()).prop_map(|(lane, celsius, bits, errors)| {
            let sample = DeviceSample {
                temperature_c: Some(celsius),
                throttle_bits: Some(bits),
                ecc_errors_uncorrected: Some(errors),
                xid: (errors % 7 == 0).then_some(errors),
                ..DeviceSample::default()
            };
            Input::Sampled(Box::new(Sampled { lane, sample }))
        }),
        4 => (index(), index(), number(), 0..8).prop_map(|(lane, weight, deadline_ns, which)| {
            let tenant = format!("tenant-{weight}");
            let command = match which {
                0 => ControlCommand::DrainLane(DrainLane { lane }),
                1 => ControlCommand::UndrainLane(UndrainLane { lane }),
                2 => ControlCommand::WeighLane(WeighLane { lane, weight }),
                3 => ControlCommand::Rebalance(Rebalance {}),
                4 => ControlCommand::WeighTenant(WeighTenant { tenant, weight }),
                5 => ControlCommand::SetBreaker(SetBreaker { lane, to: BreakerMode::Open }),
                6 => ControlCommand::SetWatermark(SetWatermark { partition: lane, event_time_max_ns: deadline_ns }),
                _ => ControlCommand::ChoosePolicy(ChoosePolicy { of: tenant.clone(), name: tenant }),
            };
            Input::Control(Control { offset: -1, id: String::new(), by: String::new(), deadline_ns, command })
        }),
        1 => number().prop_map(|task| Input::TaskDropped(TaskDropped { task })),
        2 => (number(), vec(number(), 0..3)).prop_map(|(question, prices)| {
            Input::Priced(Priced { question, prices })
        }),
        2 => (index(), index(), index(), number()).prop_map(|(partition, group, lane, epoch)| {
            Input::Released(Released { partition, group, lane, epoch })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics_and_refusals_leave_no_trace(
        steps in vec((prop_oneof![9 => 0i64..50, 1 => number()], input()), 1..60)
    ) {
        let mut scheduler = Scheduler::new();
        let mut decisions = Vec::new();
        scheduler.step(0, &started(config(), &[1, 2, 1]), &mut decisions).expect("good input");
        let mut at_ns = 0i64;
        for (pause_ns, input) in steps {
            at_ns = at_ns.saturating_add(pause_ns);
            let before = (scheduler.state_hash(), decisions.len());
            if scheduler.step(at_ns, &input, &mut decisions).is_err() {
                prop_assert_eq!((scheduler.state_hash(), decisions.len()), before);
                at_ns = at_ns.saturating_sub(pause_ns);
            }
            scheduler.audit();
        }
    }
}

/// Assigns partitions of `groups` groups until one is refused. Returns the number of accepted partitions, and the
/// error.
fn assign_until_refused(groups: i32) -> (i32, StepError) {
    let mut scheduler = Scheduler::new();
    let mut decisions = Vec::new();
    scheduler.step(0, &started(config(), &[1, 1]), &mut decisions).expect("good input");
    for partition in 0.. {
        decisions.clear();
        if let Err(error) = scheduler.step(0, &assigned(partition, groups), &mut decisions) {
            // A known partition may still be assigned again.
            scheduler.step(0, &assigned(0, groups), &mut decisions).expect("a known partition");
            scheduler.audit();
            return (partition, error);
        }
    }
    unreachable!("limits are below the number of partitions")
}

#[test]
fn partitions_and_groups_are_bounded() {
    let most = (GROUPS_TOTAL_MAX / i64::from(GROUPS_PER_PARTITION_MAX)) as i32;
    assert_eq!(assign_until_refused(GROUPS_PER_PARTITION_MAX), (most, StepError::TooManyGroups));
    assert_eq!(assign_until_refused(1), (PARTITIONS_MAX as i32, StepError::TooManyPartitions));
}

/// If all groups go to one kind of lanes, the weights of the other kind do not count, however large they are.
#[test]
fn weights_of_another_kind_overflow_nothing() {
    let config = SchedulerConfig { load_factor_percent: 10_000, route_interval_ns: 1, ..config() };
    let measured = |lane| {
        let points = vec![ServicePoint { rows: 1, service_ns: 1 }];
        Input::Measured(Measured { lane, points })
    };
    let most = GROUPS_PER_PARTITION_MAX;
    let mut scheduler = Scheduler::new();
    let mut decisions = Vec::new();
    for input in
        [started(config, &[1, 1_000_000]), measured(0), measured(1), assigned(0, most), assigned(1, most)]
    {
        scheduler.step(0, &input, &mut decisions).expect("good input");
        scheduler.audit();
    }
    assert_eq!(decisions.len(), 2 * most as usize, "all groups are placed");
}
