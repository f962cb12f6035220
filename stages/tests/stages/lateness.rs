//! Lateness by venue.

use super::*;

/// Far ticks are 3 s behind near ones, and allowed to be 4 s late; near ones may be 1 s late.
fn config() -> StageConfig {
    let lateness_by_venue_ns = BTreeMap::from([("FAR".to_owned(), 4 * SECOND_NS)]);
    StageConfig { lateness_by_venue_ns, ..super::config(&["1s"], SECOND_NS) }
}

/// Symbol, first second and close.
type BarSeen = (String, i64, Option<i64>);

/// Bars, and the watermarks that late ticks met.
fn run(config: &StageConfig, ticks: &[Tick], restored_at: usize) -> (Vec<BarSeen>, Vec<i64>) {
    let mut partition = Partition::new(config);
    let (mut bars, mut late) = (Vec::new(), Vec::new());
    for (offset, tick) in ticks.iter().enumerate() {
        if offset == restored_at {
            partition = partition.restored();
        }
        partition.accept(offset as i64, tick);
        late.extend(partition.late.drain(..).map(|late| late.watermark_ns));
        partition.run(usize::MAX);
        for signal in partition.signals() {
            let signal = decode_signal(&signal).unwrap();
            let close_e9 = signal.bar.as_ref().and_then(|bar| bar.close_e9);
            bars.push((signal.symbol.to_string(), signal.bar_start_ns / SECOND_NS, close_e9));
        }
    }
    (bars, late)
}

#[test]
fn a_venue_that_is_behind_has_its_bars() {
    let near_and_far = |second: i64| {
        let near = trade("NEAR:A", (100 + second) * SECOND_NS, 500 + second);
        let far = trade("FAR:A", (97 + second) * SECOND_NS, 700 + second);
        [near, far]
    };
    let ticks: Vec<Tick> = (0..20).flat_map(near_and_far).collect();
    let one = StageConfig { lateness_by_venue_ns: BTreeMap::new(), ..config() };
    let (_, late) = run(&one, &ticks, 0);
    assert_eq!(late.len(), 20, "all of the far venue");
    for restored_at in [0, 7, 24] {
        let (bars, late) = run(&config(), &ticks, restored_at);
        assert_eq!(late, [0_i64; 0]);
        let of = |symbol: &str| -> Vec<(i64, Option<i64>)> {
            bars.iter().filter(|bar| bar.0 == symbol).map(|bar| (bar.1, bar.2)).collect()
        };
        // The newest time is 119 s: bars up to 118 s are closed near by, those up to 115 s far away.
        let near: Vec<_> = (0..18).map(|second| (100 + second, Some(500 + second))).collect();
        let far: Vec<_> = (0..18).map(|second| (97 + second, Some(700 + second))).collect();
        assert_eq!((of("NEAR:A"), of("FAR:A")), (near, far), "restored at {restored_at}");
    }
}

#[test]
fn each_venue_has_its_own_watermark() {
    let ticks = [
        trade("NEAR:A", 100 * SECOND_NS, 1),
        trade("FAR:A", 96 * SECOND_NS, 1),
        trade("FAR:A", 96 * SECOND_NS - 1, 1),
        trade("NEAR:A", 99 * SECOND_NS, 1),
        trade("NEAR:A", 99 * SECOND_NS - 1, 1),
        trade("FARTHER:A", 99 * SECOND_NS - 1, 1),
    ];
    let (_, late) = run(&config(), &ticks, 0);
    assert_eq!(late, [96, 99, 99].map(|second| second * SECOND_NS));
}

#[test]
fn groups_have_one_lateness_each() {
    let config = config();
    let lateness = Lateness::of(&config);
    assert_eq!((lateness.classes(), lateness.max_ns()), (2, 4 * SECOND_NS));
    for groups in 2..9 {
        let groups_of = |venue: &str| -> BTreeSet<u32> {
            (0..200).map(|number| lateness.group_of(&format!("{venue}:{number}"), groups)).collect()
        };
        let expected = |class: usize| (0..groups).skip(class).step_by(2).collect::<BTreeSet<u32>>();
        assert_eq!((groups_of("NEAR"), groups_of("FAR")), (expected(0), expected(1)));
    }
    let plain = Lateness::of(&StageConfig { lateness_by_venue_ns: BTreeMap::new(), ..config });
    assert!(
        (0..200)
            .map(|number| format!("FAR:{number}"))
            .all(|symbol| plain.group_of(&symbol, 7) == group_of(&symbol, 7))
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let mistakes = |config: StageConfig| -> Vec<String> {
        config.check().iter().map(|mistake| mistake.to_string()).collect()
    };
    assert_eq!(mistakes(config()), [""; 0]);
    let one = mistakes(StageConfig { groups_per_partition: 1, ..config() });
    assert!(
        one[0].contains("lateness_by_venue_ns") && one[0].contains("raise groups_per_partition"),
        "{one:?}"
    );
    // The configuration would allow too many open bars.
    let hour = BTreeMap::from([("FAR".to_owned(), 3_600 * SECOND_NS)]);
    let bars = vec!["250ms".parse().unwrap()];
    let many = mistakes(StageConfig { lateness_by_venue_ns: hour, bars, ..config() });
    assert!(many[0].contains("Use a longer interval or less lateness"), "{many:?}");
}
