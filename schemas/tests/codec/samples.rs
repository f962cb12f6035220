//! Values to encode. Random ones come from proptest, which prints the seed of a failure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;
use warptape_schemas::control::{Control, ControlResult};
use warptape_schemas::journal::{self, *};
use warptape_schemas::signal::{Bar, ExactBar, ExactFlow, Signal, SignalKind};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    Checksum, DeadLetter, DeadLetterCut, DeadLetterDigest, DeadLetterReason, Decimal, Feed, LateTick,
    Lifecycle, LifecycleEvent, SetEventTime, Snapshot,
};

/// A trade at 61,234.5 with a size of 0.25.
pub fn trade() -> Tick {
    Tick {
        symbol: "BINANCE:BTCUSDT".into(),
        kind: TickKind::Trade,
        event_time_ns: 1_722_470_400_123_000_000,
        receive_time_ns: 1_722_470_400_125_678_901,
        trade_id: 3_711_234_567,
        side: Side::Sell,
        price_e9: 61_234_500_000_000,
        size_e9: 250_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

pub fn quote() -> Tick {
    Tick {
        symbol: "XETRA:MÜV2".into(),
        kind: TickKind::Quote,
        event_time_ns: 1_722_470_400_200_000_000,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::None,
        price_e9: 0,
        size_e9: 0,
        bid_price_e9: 450_100_000_000,
        bid_size_e9: 1_200_000_000_000,
        ask_price_e9: 450_200_000_000,
        ask_size_e9: 1,
        scales: Scales::E9,
    }
}

/// Numbers of every size on the wire.
pub fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0..200_i64, 0..1_000_000_000_000_i64, Just(i64::MAX - 1), 0..i64::MAX]
}

pub fn any_long() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MIN), Just(i64::MAX), -70..70_i64, any::<i64>()]
}

pub fn tick() -> impl Strategy<Value = Tick> {
    let symbol = prop_oneof!["[A-C]:[A-D]", "[A-Z]{1,9}:[A-Z0-9.üΩ]{1,9}", "\\PC{1,16}"];
    let side = prop_oneof![Just(Side::None), Just(Side::Buy), Just(Side::Sell)];
    let times = (1..i64::MAX, amount());
    let amounts = (amount(), amount(), amount(), amount());
    (symbol, side, any::<bool>(), times, any_long(), amounts).prop_map(
        |(symbol, side, is_trade, times, id, amounts)| {
            let base = Tick {
                symbol,
                event_time_ns: times.0,
                receive_time_ns: times.1,
                ..if is_trade { trade() } else { quote() }
            };
            if is_trade {
                Tick { trade_id: id, side, price_e9: amounts.0.max(1), size_e9: amounts.1, ..base }
            } else {
                Tick {
                    bid_price_e9: amounts.0,
                    bid_size_e9: amounts.1,
                    ask_price_e9: amounts.2,
                    ask_size_e9: amounts.3,
                    ..base
                }
            }
        },
    )
}

pub fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    prop_oneof![
        4 => prop::collection::vec(tick(), 1..40),
        1 => prop::collection::vec(tick().prop_filter("trades", |tick| tick.kind == TickKind::Trade), 1..40),
        1 => prop::collection::vec(tick(), 200..300),
    ]
}

/// Returns a bar whose indicator `i` is set if bit `i` of `set` is.
pub fn bar(set: u32) -> Bar {
    let mut indicators = [None; 16];
    for (index, indicator) in indicators.iter_mut().enumerate() {
        *indicator = (set >> index & 1 == 1).then_some(61_000.25 + index as f64 / 3.0);
    }
    Bar {
        open_e9: Some(61_000_000_000_000),
        high_e9: Some(61_500_000_000_000),
        low_e9: Some(60_999_000_000_000),
        close_e9: Some(61_234_500_000_000),
        volume_e9: i64::MAX,
        trades: 812,
        bid_price_e9: Some(0),
        ask_price_e9: Some(61_234_600_000_000),
        exact: None,
        indicators,
        further_indicators: Default::default(),
        partial: None,
        buy_volume_e9: None,
        sell_volume_e9: None,
        buy_trades: None,
        sell_trades: None,
        bid_size_e9: None,
        ask_size_e9: None,
        quote_forgotten: None,
        exact_flow: None,
    }
}

/// Bars that fields in 1e-9 cannot represent: because of their prices, or only of their volume.
pub fn exact_signals() -> Vec<Signal<'static>> {
    let exact = ExactBar {
        open: Decimal(812_345_678_901),
        high: Decimal(i128::from(i64::MAX) * 1_000_000_000_000_000_000),
        low: Decimal(-37_630_000_000_000_000_000),
        close: Decimal(0),
        volume: Decimal(18_999_999_999 * 1_000_000_000 + 1),
        bid_price: Decimal(-1),
        ask_price: Decimal(128),
    };
    let bars = [
        Bar {
            open_e9: None,
            high_e9: None,
            low_e9: None,
            close_e9: None,
            bid_price_e9: None,
            ask_price_e9: None,
            exact: Some(exact),
            ..bar(0x5555)
        },
        Bar { exact: Some(exact), ..bar(0xffff) },
    ];
    let of_bar = |bar| Signal { bar: Some(bar), ..signals().remove(0) };
    bars.map(of_bar).into()
}

/// Bars with further indicators: one with ordinary numbers, and one that fields in 1e-9 cannot represent.
pub fn further_signals() -> Vec<Signal<'static>> {
    let further: BTreeMap<Cow<'static, str>, f64> = [("b".into(), -0.5), ("a".into(), 61_000.25)].into();
    let with = |mut signal: Signal<'static>| {
        let bar = signal.bar.as_mut().expect("a bar");
        bar.further_indicators.clone_from(&further);
        signal
    };
    [signals().remove(1), exact_signals().remove(0)].map(with).into()
}

/// Bars with volumes by side and sizes of quotes. The numbers of the first fit into 64 bits of 1e-9; those of the
/// second do not.
pub fn flow_signals() -> Vec<Signal<'static>> {
    let with = |(mut signal, exact_flow): (Signal<'static>, Option<ExactFlow>)| {
        let bar = signal.bar.as_mut().expect("a bar");
        let of_bar = std::mem::replace(bar, self::bar(0));
        *bar = Bar {
            partial: Some(exact_flow.is_some()),
            buy_volume_e9: Some(i64::MAX),
            sell_volume_e9: Some(0),
            buy_trades: Some(800),
            sell_trades: Some(12),
            bid_size_e9: exact_flow.is_none().then_some(1_500_000_000),
            ask_size_e9: None,
            quote_forgotten: Some(exact_flow.is_some()),
            exact_flow,
            ..of_bar
        };
        signal
    };
    let exact = ExactFlow {
        buy_volume: Decimal(18_999_999_999 * 1_000_000_000 + 1),
        sell_volume: Decimal(0),
        bid_size: Decimal(1_500_000_000),
        ask_size: Decimal(0),
    };
    [(signals().remove(1), None), (further_signals().remove(1), Some(exact))].map(with).into()
}

/// Ticks of a coin of low value, and of a spread.
pub fn scaled_ticks() -> Vec<Tick> {
    let coin =
        Tick { symbol: "X:COIN".into(), price_e9: 812_345, scales: Scales { price: 14, size: 0 }, ..trade() };
    let large = Tick { size_e9: 18_999_999_999, ..coin.clone() };
    let fine = Tick { size_e9: 5, scales: Scales { price: 13, size: 1 }, ..coin };
    let spread = Tick { symbol: "X:SPREAD".into(), price_e9: -37_630_000_000, scales: Scales::E9, ..trade() };
    let at_zero = Tick { price_e9: 0, ..spread.clone() };
    vec![large, spread, fine, at_zero, quote()]
}

/// Ticks for records with packed columns: with scales, with quotes and without, and one tick alone.
pub fn packed_ticks() -> [Vec<Tick>; 4] {
    let later = |tick: Tick, id| Tick {
        event_time_ns: tick.event_time_ns + 7_000 * id,
        trade_id: tick.trade_id + id,
        price_e9: tick.price_e9 - 100_000_000 * id,
        side: Side::Buy,
        ..tick
    };
    let trades = vec![trade(), later(trade(), 1), later(trade(), 300)];
    [scaled_ticks(), [trades.clone(), vec![quote()], trades.clone()].concat(), trades, vec![quote()]]
}

pub fn signals() -> Vec<Signal<'static>> {
    let mut signals = Vec::new();
    for &kind in SignalKind::ALL {
        for set in [0, 0x5555, 0xffff] {
            signals.push(Signal {
                symbol: Cow::Borrowed("BINANCE:BTCUSDT"),
                kind,
                bar_spec: Cow::Borrowed("5m"),
                bar_start_ns: 1_722_470_400_000_000_000,
                bar_end_ns: 1_722_470_700_000_000_000,
                source_offset: 81_234,
                source_index: 255,
                value: 61_234.5,
                threshold: -0.1,
                bar: (kind == SignalKind::Bar).then(|| bar(set)),
                name: matches!(kind, SignalKind::Alert | SignalKind::Fault).then_some("wide_spread".into()),
            });
        }
    }
    signals
}

/// One of every input and decision.
pub fn journal() -> Vec<(Input, Vec<Decision>)> {
    let scheduler = SchedulerConfig {
        placement_policy: "rendezvous".into(),
        placement_seed: i64::MIN,
        load_factor_percent: 125,
        lane_credit_rows: 65_536,
        lane_credit_bytes: 8 << 20,
        lane_batches_max: 2,
        batch_rows_max: 4096,
        row_deadline_ns: 5_000_000,
        high_water_rows: 1_000_000,
        low_water_rows: 500_000,
        route_interval_ns: 1_000_000_000,
        balance_interval_ns: 250_000_000,
        risk: RiskConfig {
            slice_ns: 250_000,
            tasks_max: 12,
            split: SplitPolicy::Score,
            tenant_weights: vec![TenantWeight { tenant: "desk".into(), weight: 3 }],
            bytes_max: 64 << 20,
            quantum_ns: 50_000_000,
            policy: "lp-price@1".into(),
            price_interval_ns: 1_000_000_000,
            critical_percent: 25,
            ageing_ns: 1_000_000_000,
            predictor: 1,
            queues: QueueConfig {
                quotas: vec![Quota {
                    name: "desk".into(),
                    parent: "firm".into(),
                    guaranteed: 8,
                    lendable: 4,
                    limit: 100,
                    rate_per_s: 50,
                    burst: 10,
                }],
                delay_target_ns: 20_000_000,
                delay_interval_ns: 100_000_000,
                in_flight_min: 4,
            },
            explore_ppm: 10_000,
            steals: true,
        },
        breakers: Some(BreakerConfig {
            losses_max: 3,
            window_ns: 60_000_000_000,
            slow_percent: 500,
            slow_ns: 250_000_000,
            probe_ns: 5_000_000_000,
            probe_ns_max: 300_000_000_000,
            probes: 8,
            headroom_c: 5,
            memory_free_percent: 5,
        }),
    };
    let reasons = [
        BreakerReason::Losses,
        BreakerReason::Slow,
        BreakerReason::Memory,
        BreakerReason::Probe,
        BreakerReason::ProbeFailed,
        BreakerReason::Recovered,
    ];
    let states = [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen];
    let breaker =
        |(reason, state)| Decision::Breaker(Breaker { lane: 2, state, reason, measured: 3, limit: -1 });
    let mut breakers: Vec<_> = reasons.into_iter().zip(states.into_iter().cycle()).map(breaker).collect();
    breakers.push(Decision::Headroom(Headroom {
        lane: 2,
        weight_percent: 50,
        temperature_c: 84,
        limit_c: 87,
    }));
    let route = |kind, break_even_rows| Route {
        kind,
        rows: 4_000,
        break_even_rows,
        host_ns: 200_000,
        device_ns: 150_000,
    };
    let mut lanes: Vec<_> = (0..4).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect();
    let links = [Link::SameDevice, Link::Nvlink, Link::Pcie];
    lanes.push(LaneSpec {
        class: "NVIDIA H200".into(),
        memory_bytes: 141 << 30,
        numa_node: Some(1),
        peers: (0..).zip(links).map(|(lane, link)| Peer { lane, link }).collect(),
        width: 2_112,
        ..LaneSpec::new(4, "cuda:0", 900)
    });
    let started = Started {
        node: "demo".into(),
        software: "0.1.0".into(),
        stage_config: "{\"bars\":[\"1s\"]}".into(),
        scheduler,
        lanes,
        autoscale: Some(AutoscaleConfig {
            policy: AutoscalePolicy::Predictive,
            ..AutoscaleConfig::default()
        }),
        shadow: Some(ShadowConfig { policies: vec!["fair".into(), "earliest-completion".into()], every: 16 }),
        rules: 2,
    };
    let place = Place {
        partition: 3,
        group: 7,
        lane: 1,
        epoch: 42,
        policy: PolicyRef { id: "rendezvous".into(), version: 1 },
        candidates: (0..3)
            .map(|lane| Candidate {
                lane,
                score: i64::MAX - i64::from(lane),
                groups_placed: 2,
                groups_max: 5,
            })
            .collect(),
        excluded: vec![
            Exclusion { lane: 3, reason: ExclusionReason::Lost },
            Exclusion { lane: 4, reason: ExclusionReason::Full },
            Exclusion { lane: 5, reason: ExclusionReason::Slower },
            Exclusion { lane: 6, reason: ExclusionReason::Drained },
            Exclusion { lane: 7, reason: ExclusionReason::Broken },
            Exclusion { lane: 8, reason: ExclusionReason::Memory },
        ],
        random_stream: -1,
        random_counter: 12,
        propensity_ppm: 1_000_000,
        route: None,
    };
    let dispatch = |reason| {
        Decision::Dispatch(Dispatch {
            batch: 9,
            lane: 2,
            takes: (0..5).map(|group| Take { partition: 0, group, epoch: 1, rows: 100 }).collect(),
            rows: 500,
            bytes: 40_000,
            reason,
            telemetry: LaneTelemetry {
                in_flight_rows: 1000,
                in_flight_bytes: 80_000,
                in_flight_batches: 1,
                service_ps_per_row: 23_000,
            },
            oldest_arrival_ns: 1_722_470_400_000_000_000,
            predicted_finish_ns: 1_722_470_400_001_000_000,
        })
    };
    vec![
        (Input::Started(Box::new(started.clone())), breakers),
        (
            Input::Checkpoint(Checkpoint {
                started: Some(Box::new(started)),
                part: 0,
                parts: 2,
                state: StateBytes(vec![1, 0xfe, 0]),
            }),
            vec![],
        ),
        (
            Input::PartitionAssigned(PartitionAssigned {
                partition: 3,
                groups: 16,
                committed_offset: 100,
                ..PartitionAssigned::default()
            }),
            vec![
                Decision::Place(place.clone()),
                Decision::Place(Place { route: Some(route(LaneKind::Device, Some(2_560))), ..place }),
            ],
        ),
        (Input::PartitionRevoked(PartitionRevoked { partition: 3 }), vec![]),
        (
            Input::Arrived(Arrived {
                partition: 0,
                next_offset: 101,
                groups: (0..16).map(|group| GroupArrival { group, rows: 30, bytes: 2400 }).collect(),
            }),
            [ReleaseReason::Idle, ReleaseReason::Full, ReleaseReason::Deadline, ReleaseReason::Drain]
                .map(dispatch)
                .to_vec(),
        ),
        (Input::Completed(Completed { lane: 1, batch: 8, service_ns: 123_456, sample: None }), vec![]),
        (
            Input::Completed(Completed {
                lane: 1,
                batch: 9,
                service_ns: 123_457,
                sample: Some(Box::new(DeviceSample {
                    slots_bytes: 1,
                    staging_bytes: 2,
                    work_bytes: 3,
                    memory_used_bytes: Some(4),
                    memory_free_bytes: Some(i64::MIN),
                    utilization_percent: Some(5),
                    temperature_c: Some(-6),
                    power_mw: Some(7),
                    sm_clock_mhz: None,
                    memory_clock_mhz: None,
                    throttle_bits: Some(i64::MAX),
                    ecc_errors_uncorrected: Some(0),
                    xid: None,
                    slowdown_c: None,
                })),
            }),
            vec![Decision::Resume(Resume { partition: 0, waiting_rows: 1, low_water_rows: 2 })],
        ),
        (
            Input::LaneLost(LaneLost { lane: 1, reason: "thread ended".into(), kept: true }),
            vec![
                Decision::Fence(Fence { lane: 1, groups: 4, reason: "thread ended".into() }),
                Decision::Restore(Restore { partition: 0, lost_lane: 1 }),
            ],
        ),
        (Input::LaneReady(LaneReady { lane: 1 }), vec![Decision::WakeAt(WakeAt { at_ns: 5 })]),
        (
            Input::Woke(Woke {}),
            vec![Decision::Pause(Pause { partition: 0, waiting_rows: 9, high_water_rows: 8 })],
        ),
        (Input::Draining(Draining {}), vec![]),
        (
            Input::Measured(Measured {
                lane: 1,
                points: [(2, 300), (8, 1_100)]
                    .map(|(rows, service_ns)| ServicePoint { rows, service_ns })
                    .into(),
            }),
            vec![Decision::Release(Release {
                partition: 3,
                group: 7,
                lane: 1,
                epoch: 42,
                route: Some(route(LaneKind::Host, None)),
                cause: ReleaseCause::Route,
                imbalance: None,
            })],
        ),
        (Input::Released(Released { partition: 3, group: 7, lane: 1, epoch: 42 }), vec![]),
    ]
    .into_iter()
    .chain(task_journal())
    .collect()
}

fn commit_ended(attempt: i32, outcome: CommitOutcome) -> CommitEnded {
    let looked_up = outcome == CommitOutcome::Committed;
    CommitEnded { sealed: i64::MAX, attempt, sent_ns: 1_000, ended_ns: i64::MAX, outcome, looked_up }
}

fn positions() -> Positions {
    let settled = Position { partition: 0, next_offset: 101, ..Position::default() };
    let unsettled =
        Position { partition: 3, next_offset: 100, unsettled_offset: Some(i64::MAX), next_request: Some(13) };
    Positions { group: "warptape".to_owned(), is_whole: true, partitions: vec![settled, unsettled] }
}

fn sealed() -> Vec<SealedPartition> {
    let with_results = SealedPartition {
        partition: 3,
        first_offset: 100,
        next_offset: 100,
        risk_results: 2,
        next_request: Some(13),
        ..SealedPartition::default()
    };
    let with_signals = SealedPartition {
        partition: 0,
        first_offset: 80,
        next_offset: 101,
        ticks_digest: i64::MIN,
        signals: 12,
        late: 1,
        dead_letters: 2,
        ..SealedPartition::default()
    };
    vec![with_signals, with_results]
}

/// One of every input and decision about tasks.
fn task_journal() -> Vec<(Input, Vec<Decision>)> {
    let arrived = |task, class, deadline_ns, as_of| {
        Input::TaskArrived(TaskArrived {
            task,
            partition: 3,
            offset: 12,
            request_id: format!("request-{task}"),
            tenant: "desk".into(),
            class,
            deadline_ns,
            rate_key: "asian/f64".into(),
            first_unit: 0,
            units: 10_000,
            unit_cost: 252,
            slice_units_max: 512,
            gang: task == 2,
            as_of,
            bytes: 1_234,
            unit_width: 1,
        })
    };
    let deadline_ns = Some(1_722_470_400_500_000_000);
    let reject = |reason, deadline_ns| {
        Decision::Reject(Reject {
            task: 3,
            reason,
            tasks: 12,
            tasks_max: 12,
            deadline_ns,
            bytes: 67_108_865,
            bytes_max: 64 << 20,
            quota: if reason == RejectReason::Expired { String::new() } else { "desk".into() },
        })
    };
    let run = |slice, lane, class, (from, to)| {
        Decision::RunSlice(RunSlice {
            slice,
            task: 2,
            lane,
            from,
            to,
            class,
            tenant: "desk".into(),
            tasks_waiting: 2,
            tenant_service_ns: 1_500_000,
            service_fs_per_cost: 1_980_000,
            predicted_finish_ns: 1_722_470_400_000_250_000,
            reason: match slice {
                0 => SliceReason::Order,
                2 => SliceReason::Stolen,
                3 => SliceReason::StoodIn,
                _ => SliceReason::Aged,
            },
            upper_ns: 260_000,
            propensity_ppm: 990_000,
            stolen_from: (slice == 2).then_some(5),
        })
    };
    let split = |policy, gang| {
        let share = |(lane, from, to, score)| Share { lane, from, to, score };
        let shares = [(0, 0, 5_429, 95), (1, 5_429, 10_000, 80)].map(share).into();
        Decision::Split(Split { task: 2, policy, gang, shares })
    };
    let as_of = vec![AsOf { partition: 0, next_offset: 77 }, AsOf { partition: 3, next_offset: 78 }];
    let mut entries = vec![
        (
            arrived(1, TaskClass::Critical, deadline_ns, as_of),
            vec![
                Decision::Admit(Admit {
                    task: 1,
                    class: TaskClass::Critical,
                    tenant: "desk".into(),
                    tasks: 2,
                }),
                run(0, 0, TaskClass::Critical, (0, 1)),
            ],
        ),
        (
            arrived(2, TaskClass::Interactive, None, vec![]),
            vec![
                split(SplitPolicy::Equal, false),
                Decision::Reserve(Reserve { task: 2, lanes: vec![0, 1], busy: vec![1], until_ns: 5 }),
            ],
        ),
        (
            arrived(3, TaskClass::Batch, deadline_ns, vec![]),
            vec![reject(RejectReason::Overloaded, None), reject(RejectReason::Expired, deadline_ns)],
        ),
        (
            Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 49_000 }),
            vec![
                Decision::Finish(Finish { task: 1, slices: 1, service_ns: 49_000, predicted_ns: 50_000 }),
                split(SplitPolicy::Score, true),
                run(1, 0, TaskClass::Interactive, (0, 512)),
                run(2, 1, TaskClass::Batch, (5_429, 5_941)),
            ],
        ),
        (
            Input::TaskDropped(TaskDropped { task: 2 }),
            vec![
                Decision::Expire(Expire { task: 4, deadline_ns: 5, slices_running: 2 }),
                Decision::Shed(Shed {
                    task: 6,
                    reason: ShedReason::StandingDelay,
                    class: TaskClass::Batch,
                    waited_ns: 140_000_000,
                    target_ns: 20_000_000,
                    number: 2,
                }),
                Decision::Drift(Drift {
                    slice: 9,
                    lane: 1,
                    rate_key: "asian/f64".into(),
                    predicted_ns: 500_000,
                    service_ns: 1_500_000,
                    slices: 800,
                }),
                Decision::FellBack(FellBack {
                    policy: "linucb".into(),
                    has_returned: true,
                    task: 7,
                    error_milli: 250,
                    expected_milli: 300,
                    completions: 96,
                }),
                Decision::Scale(Scale {
                    lanes: 6,
                    lanes_before: 4,
                    lanes_in_service: 4,
                    reason: ScaleReason::Forecast,
                    utilization_percent: 81,
                    waiting_ns: 1_500_000_000,
                    arrived_e6: 3_300_000,
                    load_e6: 4_100_000,
                    forecast_e6: Some(4_100_000),
                    error_ppm: Some(120_000),
                    deviations_e3: None,
                    season_windows: 1_440,
                }),
                Decision::Shadow(Shadow {
                    policy: 1,
                    task: 7,
                    lane: Some(2),
                    lane_instead: Some(0),
                    task_instead: None,
                }),
            ],
        ),
        (Input::Sealed(Sealed { partitions: sealed() }), vec![]),
        (
            Input::Priced(Priced { question: 3, prices: vec![0, 1, i64::MAX] }),
            vec![
                Decision::Assign(Assign {
                    task: 5,
                    lane: 2,
                    tasks: 3,
                    backlog_ns: 1_000_000,
                    task_ns: 0,
                    reason: SliceReason::Explored,
                    propensity_ppm: 5_000,
                }),
                Decision::AskPrices(AskPrices {
                    question: 4,
                    lanes: vec![8, 4],
                    kinds: vec![KindDemand {
                        rate_key: "asian/f64".into(),
                        cost: i64::MAX,
                        fs_per_cost: vec![1_000_000, 0],
                    }],
                }),
            ],
        ),
        (
            Input::Sampled(Box::new(Sampled {
                lane: 2,
                sample: DeviceSample {
                    temperature_c: Some(71),
                    xid: Some(79),
                    slowdown_c: Some(87),
                    ..DeviceSample::default()
                },
            })),
            vec![],
        ),
        (
            Input::Checkpoint(Checkpoint { started: None, part: 1, parts: 2, state: StateBytes(vec![]) }),
            vec![],
        ),
        (Input::CommitEnded(commit_ended(1, CommitOutcome::Aborted)), vec![]),
        (Input::CommitEnded(commit_ended(2, CommitOutcome::Committed)), vec![]),
        (Input::Trained(Trained { hash: "0f".repeat(32), network: StateBytes((0..=255).collect()) }), vec![]),
        (Input::Positions(positions()), vec![]),
        (
            Input::PartitionAssigned(PartitionAssigned {
                partition: 1,
                groups: 4,
                committed_offset: 700,
                snapshot_offset: 700,
                is_emptied: true,
                lost_from: Some(640),
            }),
            vec![],
        ),
    ];
    entries.extend(control_commands().into_iter().enumerate().map(|(number, command)| {
        let id = format!("control-{number}");
        let (offset, by, deadline_ns) = (number as i64, "someone".to_owned(), 5);
        let outcome = if number % 2 == 0 { ControlOutcome::Done } else { ControlOutcome::Refused };
        let causes =
            [ReleaseCause::Drained, ReleaseCause::Breaker, ReleaseCause::Rebalance, ReleaseCause::Balance];
        let release = |cause| {
            let imbalance = (cause == ReleaseCause::Balance).then_some(Imbalance {
                to: 2,
                group_load_ns: 10_000_000,
                from_load_ns: 90_000_000,
                to_load_ns: 20_000_000,
                gain_ns: 2_500_000,
                cost_ns: 1_000_000,
                windows: 3,
            });
            Decision::Release(Release {
                partition: 3,
                group: 7,
                lane: 1,
                epoch: 42,
                route: None,
                cause,
                imbalance,
            })
        };
        let controlled = Controlled { id: id.clone(), outcome, detail: "in words".into() };
        let decisions = [Decision::Controlled(controlled)].into_iter().chain(causes.map(release));
        (Input::Control(journal::Control { offset, id, by, deadline_ns, command }), decisions.collect())
    }));
    entries
}

pub fn snapshot() -> Snapshot {
    Snapshot {
        partition: 2,
        group: Snapshot::INTAKE,
        offset: 1_000_000,
        part: 1,
        parts: 3,
        state_version: 1,
        state: (0..=255).collect(),
        checksum: Checksum,
    }
}

pub fn late_tick(tick: Tick) -> LateTick {
    let watermark_ns = tick.event_time_ns + 1500;
    LateTick::new("ticks".into(), 1, 77, 12, tick, watermark_ns)
}

pub fn dead_letter(reason: DeadLetterReason, key: Option<&[u8]>) -> DeadLetter {
    DeadLetter {
        topic: "ticks".into(),
        partition: 1,
        offset: 78,
        reason,
        detail: "row 3, field price_e9: -5 is negative; write 0 or more".into(),
        key: key.map(<[u8]>::to_vec),
        value: vec![0xc3, 0x01, 0xff],
        cut: None,
        last_offset: (reason == DeadLetterReason::UnreadableBatch).then_some(90),
        rows: Vec::new(),
    }
}

/// A dead letter about rows of a record.
pub fn dead_letter_of_rows(rows: &[i32]) -> DeadLetter {
    DeadLetter { rows: rows.to_vec(), ..dead_letter(DeadLetterReason::BadPrice, Some(b"key")) }
}

/// A dead letter about a record that is too large for one.
pub fn cut_dead_letter() -> DeadLetter {
    DeadLetter {
        cut: Some(DeadLetterCut {
            key_bytes: 3,
            value_bytes: 20_000_000,
            digest: DeadLetterDigest([0xd1; 32]),
        }),
        ..dead_letter(DeadLetterReason::NotFramed, Some(b"key"))
    }
}

/// A record that sets event time among the ticks.
pub fn set_event_time() -> SetEventTime {
    SetEventTime {
        id: "control-7".into(),
        by: "ops".into(),
        event_time_max_ns: 1_723_075_200_000_000_000,
        cuts_bars: true,
        only_forward: true,
    }
}

/// One of every command.
pub fn control_commands() -> Vec<ControlCommand> {
    let breaker = |to| ControlCommand::SetBreaker(SetBreaker { lane: 3, to });
    vec![
        ControlCommand::DrainLane(DrainLane { lane: 1 }),
        ControlCommand::UndrainLane(UndrainLane { lane: i32::MAX }),
        ControlCommand::WeighLane(WeighLane { lane: 2, weight: -1 }),
        ControlCommand::Rebalance(Rebalance {}),
        ControlCommand::WeighTenant(WeighTenant { tenant: "desk".into(), weight: 7 }),
        breaker(BreakerMode::Auto),
        breaker(BreakerMode::Open),
        breaker(BreakerMode::Closed),
        ControlCommand::ChoosePolicy(ChoosePolicy { of: "tasks".into(), name: "lp-price".into() }),
        ControlCommand::SetWatermark(SetWatermark {
            partition: 3,
            event_time_max_ns: 1_723_075_200_000_000_000,
        }),
    ]
}

pub fn controls() -> Vec<Control> {
    let control = |command| Control {
        id: "control-7".into(),
        at_ns: 1_722_470_400_000_000_000,
        by: "someone@host".into(),
        deadline_ns: 1_722_470_430_000_000_000,
        command,
    };
    control_commands().into_iter().map(control).collect()
}

pub fn control_results() -> [ControlResult; 2] {
    let done = ControlResult {
        id: "control-7".into(),
        ordinal: 3,
        node: "node-3".into(),
        offset: 12,
        at_ns: 1_722_470_400_000_000_000,
        outcome: ControlOutcome::Done,
        detail: "lane 1 is drained".into(),
        sequence: Some(77),
    };
    let refused = ControlResult {
        id: String::new(),
        outcome: ControlOutcome::Refused,
        detail: "it cannot be read".into(),
        sequence: None,
        ..done.clone()
    };
    [done, refused]
}

pub fn feeds() -> [Feed; 2] {
    let file = Feed {
        source: "csv venue=BINANCE".into(),
        name: "ticks.csv".into(),
        digest: "0123456789abcdef".repeat(4),
        size_bytes: 1 << 33,
        ticks: 65_536,
        is_finished: true,
    };
    [file, Feed { source: "synth symbols=500 seed=7".into(), ticks: 9, ..Feed::default() }]
}

pub const LIFECYCLE_EVENTS: [LifecycleEvent; 13] = [
    LifecycleEvent::Unknown,
    LifecycleEvent::Started,
    LifecycleEvent::Restored,
    LifecycleEvent::Drained,
    LifecycleEvent::Stopped,
    LifecycleEvent::Failed,
    LifecycleEvent::CommitFailed,
    LifecycleEvent::CommitUnknown,
    LifecycleEvent::PartitionAssigned,
    LifecycleEvent::PartitionRevoked,
    LifecycleEvent::LaneLost,
    LifecycleEvent::LaneReady,
    LifecycleEvent::RecordsRemoved,
];

pub fn lifecycle(event: LifecycleEvent) -> Lifecycle {
    Lifecycle {
        at_ns: 1_722_470_400_000_000_000,
        node: "demo".into(),
        event,
        detail: "lane 1: thread ended".into(),
    }
}
