//! Tests of valid files, and of the errors that invalid files give.

use super::workload::{exponential, interactive};
use super::*;
use crate::fleet::Fleet;
use crate::ticks::{Pace, Surges, TickSpeed};
use crate::workload::{Diurnal, Process, Workload};

fn said<T>(result: Result<T, FileError>) -> String {
    result.err().map_or("no error".to_owned(), |error| error.to_string())
}

fn lines(lines: &[&str]) -> String {
    [&[TRACE_COLUMNS], lines].concat().join("\n")
}

#[test]
fn a_recording_is_its_tasks() {
    let text = lines(&["0,a,0.5,batch,x,", "0.5,b,1.5,critical,y,2.5", "", "0.5,a,0.25,batch,x,9"]);
    let workload = trace(&text).unwrap();
    assert_eq!(workload.tasks, 3);
    let shares: Vec<_> = workload.kinds.iter().map(|kind| (kind.share, kind.mean_s)).collect();
    assert_eq!(shares, [(0.75 / 2.25, 0.375), (1.5 / 2.25, 1.5)]);
    let Process::Recorded(arrivals) = workload.process else { panic!("a recording") };
    let found: Vec<_> =
        arrivals.iter().map(|one| (one.at_ns, one.kind, one.units, one.deadline_ns)).collect();
    let expected = [
        (0, 0, 1_000, None),
        (500_000_000, 1, 3_000, Some(2_500_000_000)),
        (500_000_000, 0, 500, Some(9_000_000_000)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_wrong_with_a_recording_is_said_with_its_line() {
    let check = |line: &str, expected: &str| {
        assert_eq!(said(trace(&lines(&["1,a,1,batch,x,", line]))), format!("line 3: {expected}"));
    };
    check("2,a,-1,batch,x,", "size_s is -1; it must be above 0 and up to a day");
    check("0.5,a,1,batch,x,", "time_s is 0.5, less than 1 of the previous line; times must not decrease");
    check("2,a,1,urgent,x,", "class is \"urgent\"; it must be one of: critical, interactive, batch");
    check("2,a,much,batch,x,", "size_s is \"much\"; it must be a number");
    check("nan,a,1,batch,x,", "time_s is \"nan\"; it must be a number");
    check("2,a,1,batch", "it has 4 columns; 6 are needed");
    check("2,a,1,batch,x,2", "deadline_s is 2; it must be after time_s");
    assert_eq!(said(trace(TRACE_COLUMNS)), "the recording is empty; give at least one");
    assert!(said(trace("time,size\n")).starts_with("line 1: the columns are \"time,size\"; they must be"));
}

#[test]
fn what_is_wrong_with_a_fleet_or_a_workload_is_said() {
    let class = |lanes, speed| ClassFile {
        name: "A".into(),
        lanes,
        speeds: [("a".into(), speed)].into(),
        ..ClassFile::default()
    };
    let fleet = |classes| FleetFile { slice_overhead_us: 20.0, classes, ..FleetFile::default() };
    let found = fleet(vec![class(2, 0.5)]).fleet(["a"].into_iter()).unwrap();
    assert_eq!((found.lanes(), found.classes[0].speeds[0], found.slice_overhead_ns), (2, 0.5, 20_000));
    let expected =
        "no class of the fleet has a speed for tasks of the kind \"b\"; the fleet has speeds for: a";
    assert_eq!(said(fleet(vec![class(2, 0.5)]).fleet(["a", "b"].into_iter())), expected);
    let expected = "the speed of A for a is -1; it must be from 0.001 to 1000";
    assert_eq!(said(fleet(vec![class(2, -1.0)]).fleet(["a"].into_iter())), expected);
    assert_eq!(
        said(fleet(vec![]).fleet([].into_iter())),
        "lanes of all classes is 0; it must be from 1 to 64"
    );

    let kind = |mean_s| KindFile {
        name: "a".into(),
        share: 1.0,
        mean_s,
        sizes: exponential(),
        class: interactive(),
        divisible: true,
    };
    let workload = |arrivals: &str, mean_s| WorkloadFile {
        tasks: 10,
        arrivals: arrivals.to_owned(),
        burst_probability: Some(0.8),
        burst_spacing: Some(1.5),
        period_s: None,
        swing: None,
        senders: None,
        think_s: None,
        deadline_factor: None,
        kinds: vec![kind(mean_s)],
        tenants: Vec::new(),
        ticks: None,
    };
    assert!(workload("poisson", 1.0).workload(0.5).is_ok());
    let check = |arrivals, mean_s, expected: &str| {
        assert_eq!(said(workload(arrivals, mean_s).workload(0.5)), expected);
    };
    check("poisson", -1.0, "mean_s of the kind a is -1; it must be above 0, up to a day");
    check("bursty", 1.0, "burst_spacing is 1.5; it must be from 0, below 1");
    check("diurnal", 1.0, "period_s is NaN; it must be above 0");
    check("closed", 1.0, "senders is 0; it must be from 1 to 100,000");
    check("daily", 1.0, "arrivals is \"daily\"; it must be one of: poisson, bursty, diurnal, closed");
}

#[test]
fn failures_and_throttling_name_lanes_and_what_is_wrong_with_them_is_said() {
    let class = |name: &str, lanes| ClassFile {
        name: name.to_owned(),
        lanes,
        speeds: [("a".to_owned(), 1.0)].into(),
        ..ClassFile::default()
    };
    let at = |class: &str, lane, at_s, back_after_s| FailureFile {
        class: class.to_owned(),
        lane,
        at_s: Some(at_s),
        back_after_s,
        ..FailureFile::default()
    };
    let with = |failures: Vec<FailureFile>, throttling: Vec<ThrottlingFile>| {
        let classes = vec![class("A", 2), class("B", 3)];
        FleetFile { classes, failures, throttling, ..FleetFile::default() }.fleet(["a"].into_iter())
    };
    let drawn = FailureFile { mtbf_s: Some(9.0), mttr_s: Some(1.0), ..at("A", None, 0.0, None) };
    let drawn = FailureFile { at_s: None, ..drawn };
    let hot =
        |factor| ThrottlingFile { class: "B".to_owned(), lane: Some(0), from_s: 1.0, until_s: 2.0, factor };
    let fleet = with(vec![at("B", Some(1), 5.0, None), drawn.clone()], vec![hot(0.5)]).unwrap();
    let lanes: Vec<_> = fleet.failures.iter().map(|failure| failure.lanes.clone()).collect();
    assert_eq!((lanes, fleet.throttling[0].lanes.clone()), (vec![3..4, 0..2], 2..3));
    let check = |failure, expected: &str| assert_eq!(said(with(vec![failure], Vec::new())), expected);
    check(at("C", None, 1.0, None), "a failure names the class \"C\"; the fleet has: A, B");
    check(
        at("A", Some(2), 1.0, None),
        "lane of a failure is 2; it must be below the number of the class's lanes",
    );
    check(at("A", None, -1.0, None), "at_s of a failure of A is -1; it must be above 0, up to 1e9");
    let both = FailureFile { at_s: Some(1.0), ..drawn };
    assert!(said(with(vec![both], Vec::new())).starts_with("a failure of A needs either at_s "));
    let all = vec![at("A", None, 1.0, None), at("B", None, 2.0, None)];
    let expected = "failures leave no lane in the end; let at least one come back, with back_after_s";
    assert_eq!(said(with(all, Vec::new())), expected);
    let expected = "factor of a throttling of B is 0; it must be from 0.01 to 1";
    assert_eq!(said(with(Vec::new(), vec![hot(0.0)])), expected);
}

#[test]
fn autoscaling_is_read_and_what_is_wrong_with_it_is_said() {
    let class = |name: &str, lanes| ClassFile {
        name: name.to_owned(),
        lanes,
        speeds: [("a".to_owned(), 1.0)].into(),
        ..ClassFile::default()
    };
    let with = |autoscale: AutoscaleFile| {
        let classes = vec![class("A", 2), class("none", 0), class("B", 3)];
        FleetFile { classes, autoscale: Some(autoscale), ..FleetFile::default() }.fleet(["a"].into_iter())
    };
    let price_per_hour = [("B".to_owned(), 2.5)].into();
    let file =
        AutoscaleFile { window_s: Some(0.3), season_s: Some(7.2), price_per_hour, ..Default::default() };
    let found = with(file.clone()).unwrap().autoscale.unwrap();
    assert_eq!(found.price_per_hour, [0.0, 2.5]);
    let config = found.config;
    assert_eq!(
        (config.lanes_min, config.lanes_max, config.season_windows, config.hold_windows),
        (1, 5, 24, 5)
    );
    assert_eq!(config.window_ns, 300_000_000);
    let check = |file: AutoscaleFile, expected: &str| assert_eq!(said(with(file)), expected);
    let default = AutoscaleFile::default;
    check(
        AutoscaleFile { lanes_max: Some(6), ..default() },
        "lanes_max is 6; it must be from 1 to the number of lanes",
    );
    check(
        AutoscaleFile { lanes_min: Some(0), ..default() },
        "lanes_min is 0; it must be from 1 to lanes_max",
    );
    check(AutoscaleFile { window_s: Some(0.0), ..default() }, "window_s is 0; it must be from 0.1 to 86,400");
    let expected = "season_s is 1; it must be a multiple of window_s, from 2 to 1,440 of them";
    check(AutoscaleFile { season_s: Some(1.0), ..file.clone() }, expected);
    check(AutoscaleFile { season_s: Some(0.3), ..file }, &expected.replace("is 1;", "is 0.3;"));
    let expected = "hysteresis_percent is 70; it must be from 0, below utilization_percent";
    check(AutoscaleFile { hysteresis_percent: Some(70), ..default() }, expected);
    let price_per_hour = [("C".to_owned(), 2.5)].into();
    check(
        AutoscaleFile { price_per_hour, ..default() },
        "a price names the class \"C\"; the fleet has: A, B",
    );
    let price_per_hour = [("A".to_owned(), -1.0)].into();
    check(
        AutoscaleFile { price_per_hour, ..default() },
        "the price of A is -1; it must be from 0 to 1,000,000",
    );
}

#[test]
fn ticks_are_read_and_what_is_wrong_with_them_is_said() {
    let file = TicksFile {
        rate: 200_000.0,
        arrivals: "constant".to_owned(),
        burst_share: Some(0.25),
        burst_factor: Some(3.0),
        burst_s: Some(0.5),
        period_s: Some(60.0),
        swing: Some(0.5),
        symbols: 500,
        skew: 1.1,
        partitions: 2,
        groups: 16,
        interval_us: 500.0,
    };
    let found = file.ticks().unwrap();
    assert_eq!((found.pace, found.interval_ns, found.shares().len()), (Pace::Constant, 500_000, 32));
    let of = |arrivals: &str| TicksFile { arrivals: arrivals.to_owned(), ..file.clone() };
    let surges = Surges { share: 0.25, factor: 3.0, mean_s: 0.5 };
    assert_eq!(of("bursty").ticks().unwrap().pace, Pace::Bursty(surges));
    assert_eq!(of("diurnal").ticks().unwrap().pace, Pace::Diurnal(Diurnal { period_s: 60.0, swing: 0.5 }));
    let check = |file: TicksFile, expected: &str| assert_eq!(said(file.ticks()), expected);
    let expected = "rate of [ticks] is -1; it must be from 0.001 to 10,000,000 ticks a second";
    check(TicksFile { rate: -1.0, ..file.clone() }, expected);
    check(TicksFile { groups: 0, ..file.clone() }, "groups of [ticks] is 0; it must be from 1 to 4096");
    check(
        TicksFile { symbols: 0, ..file.clone() },
        "symbols of [ticks] is 0; it must be from 1 to 1,000,000",
    );
    check(
        TicksFile { partitions: 65, ..file.clone() },
        "partitions of [ticks] is 65; it must be from 1 to 64",
    );
    check(TicksFile { skew: -0.1, ..file.clone() }, "skew of [ticks] is -0.1; it must be from 0 to 4");
    let expected = "interval_us of [ticks] is 0; it must be from 1 to 1,000,000";
    check(TicksFile { interval_us: 0.0, ..file.clone() }, expected);
    let expected = "burst_factor of [ticks] is 5; it must be 1 or more, and times burst_share at most 1";
    check(TicksFile { burst_factor: Some(5.0), ..of("bursty") }, expected);
    let expected = "swing of [ticks] is NaN; it must be from 0, below 1";
    check(TicksFile { swing: None, ..of("diurnal") }, expected);
    let expected = "arrivals of [ticks] is \"poisson\"; it must be one of: constant, bursty, diurnal";
    check(of("poisson"), expected);

    let class = |ticks_per_s| ClassFile {
        name: "A".into(),
        lanes: 2,
        speeds: [("simulation".into(), 1.0)].into(),
        ticks_per_s,
        batch_overhead_us: 7.5,
        ..ClassFile::default()
    };
    let fleet = |ticks_per_s| {
        FleetFile { classes: vec![class(ticks_per_s)], ..FleetFile::default() }
            .fleet(["simulation"].into_iter())
    };
    let speed = TickSpeed { rows_per_s: 1e6, batch_overhead_ns: 7_500 };
    assert_eq!(fleet(Some(1e6)).unwrap().classes[0].ticks, Some(speed));
    assert_eq!(said(fleet(Some(-2.0))), "ticks_per_s of the class A is -2; it must be from 1 to 1e12");
    let workload = Workload { ticks: Some(found), ..Workload::three_kinds(0.5, 1) };
    let check = |fleet: &Fleet, expected: &str| assert_eq!(said(check_ticks(fleet, &workload)), expected);
    let expected = "the class A has no ticks_per_s, but the workload has [ticks]; give the ticks per second of one of its lanes";
    check(&fleet(None).unwrap(), expected);
    check(&fleet(Some(1e6)).unwrap(), "no error");
    let autoscale = crate::Autoscale { config: Default::default(), price_per_hour: vec![1.0] };
    let scaled = Fleet { autoscale: Some(autoscale), ..fleet(Some(1e6)).unwrap() };
    assert!(
        said(check_ticks(&scaled, &workload))
            .starts_with("the fleet has [autoscale] and the workload has [ticks]")
    );
    assert_eq!(said(check_ticks(&scaled, &Workload { ticks: None, ..workload.clone() })), "no error");
}
