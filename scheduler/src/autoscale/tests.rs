//! Both policies on artificial patterns.

use xxhash_rust::xxh3::xxh3_64;

use super::*;

/// A random number about zero with this standard deviation, by seed and number: the sum of twelve uniform draws, which
/// is nearly normal.
pub(super) fn noise(seed: u64, number: i64, deviation: i64) -> i64 {
    let draw = |index: i64| {
        let address: Vec<u8> =
            [seed as i64, number, index].iter().flat_map(|part| part.to_le_bytes()).collect();
        (xxh3_64(&address) >> 44) as i64
    };
    let sum: i64 = (0..12).map(draw).sum();
    ((sum - 6 * (1 << 20)) * deviation) >> 20
}

const WINDOW_NS: i64 = 60_000_000_000;

fn config(policy: AutoscalePolicy) -> AutoscaleConfig {
    AutoscaleConfig { policy, lanes_max: 40, ..AutoscaleConfig::default() }
}

/// Figures of a window in which this load arrived and was done, in millionths of lanes.
fn window(number: i64, load_e6: i64, waiting_ns: i64, lanes: i32) -> Figures {
    let busy_ns = load_e6 * (WINDOW_NS / LANE_E6);
    Figures { number, busy_ns, arrived_ns: busy_ns, waiting_ns, lanes }
}

/// Ten lanes of work in the first half of a season of 24 windows, two in the second.
fn by_season(number: i64) -> i64 {
    if number.rem_euclid(24) < 12 { 10 * LANE_E6 } else { 2 * LANE_E6 }
}

#[test]
fn more_lanes_are_wanted_at_once_and_fewer_after_the_hold() {
    let mut scaler = Autoscaler::new(config(AutoscalePolicy::Reactive), 4);
    let mut wanted = |number, load_e6| scaler.window(&window(number, load_e6, 0, 4));
    let up = wanted(0, 7 * LANE_E6);
    assert_eq!((up.lanes, up.reason), (10, ScaleReason::Utilization));
    assert_eq!(up.utilization_percent, 175);
    for number in 1..6 {
        let hold = wanted(number, 2 * LANE_E6);
        assert_eq!((hold.lanes, hold.reason), (10, ScaleReason::Hold), "window {number}");
    }
    // Two lanes of work, divided by 70 less 10 percent.
    assert_eq!(wanted(6, 2 * LANE_E6).lanes, 4);
    // Slightly fewer lanes would be enough as well; the number stays because of the hysteresis.
    assert_eq!(wanted(7, 2 * LANE_E6 - 200_000).lanes, 4);
    assert_eq!(wanted(8, 2_900_000).lanes, 5);
}

#[test]
fn waiting_work_asks_for_lanes_that_work_it_off_in_time() {
    let mut scaler = Autoscaler::new(config(AutoscalePolicy::Reactive), 4);
    let wish = scaler.window(&window(0, 3 * LANE_E6, 3 * WINDOW_NS, 4));
    // 3 ÷ 0.7, rounded up, and three lanes for waiting work.
    assert_eq!((wish.lanes, wish.reason), (8, ScaleReason::Waiting));
}

#[test]
fn wishes_are_within_their_limits() {
    let limits =
        AutoscaleConfig { lanes_min: 3, lanes_max: 6, hold_windows: 0, ..config(AutoscalePolicy::Reactive) };
    let mut scaler = Autoscaler::new(limits, 100);
    assert_eq!(scaler.lanes(), 6);
    let most = scaler.window(&window(0, 20 * LANE_E6, i64::MAX, 6));
    assert_eq!((most.lanes, most.reason), (6, ScaleReason::Limit));
    let fewest = scaler.window(&window(1, 0, 0, 6));
    assert_eq!((fewest.lanes, fewest.reason), (3, ScaleReason::Limit));
}

/// The number of wanted lanes rises before the load does, by the time that a lane takes to start. A season is found
/// even if it is not configured.
#[test]
fn the_predictive_policy_wants_lanes_before_they_are_needed() {
    for season_windows in [0, 24] {
        let config = AutoscaleConfig { season_windows, ..config(AutoscalePolicy::Predictive) };
        let mut scaler = Autoscaler::new(config, 4);
        let mut wishes = Vec::new();
        for number in 0..24 * 12 {
            wishes.push(scaler.window(&window(number, by_season(number) + noise(1, number, 200_000), 0, 4)));
        }
        let last = &wishes[24 * 11..];
        assert_eq!(last[0].season_windows, 24);
        assert!(last.iter().all(|wish| wish.error_ppm.unwrap() < 60_000), "{last:?}");
        // The load rises with window 24; with two windows to start, lanes must be asked for after window 21.
        let (before, asked) = (last[20], last[21]);
        assert!(before.lanes < 6 && asked.lanes > 13, "{before:?} {asked:?}");
        assert_eq!(asked.reason, ScaleReason::Forecast);
        let mut reactive =
            Autoscaler::new(AutoscaleConfig { policy: AutoscalePolicy::Reactive, ..config }, 4);
        let late = (0..24 * 12).map(|number| reactive.window(&window(number, by_season(number), 0, 4)).lanes);
        let late: Vec<i32> = late.skip(24 * 11).collect();
        assert!(late[21] < 6 && late[23] < 6 && late[0] > 13, "{late:?}");
    }
}

/// The season ends: the error shows it, and the policy acts like the reactive one until another season is known.
#[test]
fn the_predictive_policy_reacts_while_its_error_is_above_the_limit() {
    let config =
        AutoscaleConfig { season_windows: 24, hold_windows: 0, ..config(AutoscalePolicy::Predictive) };
    let mut scaler = Autoscaler::new(config, 4);
    let mut reactive = Autoscaler::new(AutoscaleConfig { policy: AutoscalePolicy::Reactive, ..config }, 4);
    for number in 0..24 {
        let figures = window(number, by_season(number), 0, 4);
        assert_eq!(scaler.window(&figures).lanes, reactive.window(&figures).lanes, "nothing is known");
    }
    for number in 24..240 {
        scaler.window(&window(number, by_season(number), 0, 4));
    }
    let mut wrong = 0;
    for number in 240..1_200 {
        let load_e6 = (noise(7, number, 3 * LANE_E6) + 5 * LANE_E6).max(0);
        let wish = scaler.window(&window(number, load_e6, 0, 4));
        if wish.error_ppm.unwrap() > 300_000 {
            wrong += 1;
            assert_eq!(wish.load_e6, wish.arrived_e6, "{wish:?}");
            assert_ne!(wish.reason, ScaleReason::Forecast);
        }
    }
    assert!(wrong > 800, "{wrong}");
}

/// The error is the mean distance between load and forecast at the horizon, divided by the mean load.
#[test]
fn the_error_is_measured_as_far_ahead_as_forecasts_are_used() {
    let config = AutoscaleConfig { anomaly_deviations: 0, ..config(AutoscalePolicy::Predictive) };
    let mut scaler = Autoscaler::new(config, 4);
    // The load alternates between seven and nine lanes.
    let load_e6 = |number: i64| 8 * LANE_E6 + if number % 2 == 0 { LANE_E6 } else { -LANE_E6 };
    let wishes: Vec<Wish> =
        (0..31).map(|number| scaler.window(&window(number, load_e6(number), 0, 8))).collect();
    // Two windows pass before the first forecast can be compared, and sixteen comparisons are needed.
    assert!(wishes[16].error_ppm.is_none() && wishes[17].error_ppm.is_some());
    let error_ppm = wishes[30].error_ppm.unwrap();
    assert!((error_ppm - 125_000).abs() < 25_000, "{error_ppm}");
}

/// An artificial spike is the only anomaly, and forecasts hardly change because of it.
#[test]
fn a_planted_spike_is_an_anomaly_and_white_noise_has_none() {
    for seed in 0..10 {
        let mut scaler = Autoscaler::new(config(AutoscalePolicy::Predictive), 4);
        let mut flagged = Vec::new();
        let mut wishes = Vec::new();
        for number in 0..2_000 {
            let spike_e6 = if number == 1_500 { 5 * LANE_E6 } else { 0 };
            let load_e6 = by_season(number) + noise(seed, number, 300_000) + spike_e6;
            let wish = scaler.window(&window(number, load_e6, 0, 4));
            if wish.is_anomaly && number > 200 {
                flagged.push(number);
            }
            wishes.push(wish);
        }
        assert_eq!(flagged, [1_500], "seed {seed}");
        let [spike, after] = [wishes[1_500], wishes[1_501]];
        assert!(spike.deviations_e3.unwrap() > 10_000, "{spike:?}");
        assert!((after.forecast_e6.unwrap() - wishes[1_499].forecast_e6.unwrap()).abs() < 1_000_000);

        let mut white = Autoscaler::new(config(AutoscalePolicy::Predictive), 4);
        let wishes = (0..2_000).map(|number| 6 * LANE_E6 + noise(seed + 100, number, 600_000)).zip(0..);
        let wishes: Vec<Wish> =
            wishes.map(|(load_e6, number)| white.window(&window(number, load_e6, 0, 4))).collect();
        assert!(wishes.iter().all(|wish| !wish.is_anomaly && wish.season_windows == 0), "seed {seed}");
    }
}

/// Work that is an anomaly causes more lanes, because the forecast does not know it.
#[test]
fn an_anomaly_asks_for_lanes() {
    let mut scaler =
        Autoscaler::new(AutoscaleConfig { season_windows: 24, ..config(AutoscalePolicy::Predictive) }, 4);
    for number in 0..24 * 10 + 18 {
        scaler.window(&window(number, by_season(number) + noise(3, number, 100_000), 0, 4));
    }
    let wish = scaler.window(&window(24 * 10 + 18, 14 * LANE_E6, 0, 14));
    assert_eq!((wish.lanes, wish.reason, wish.is_anomaly), (20, ScaleReason::Anomaly, true));
}

#[test]
fn windows_that_are_missing_had_no_arrivals_and_after_many_nothing_is_known() {
    let config = config(AutoscalePolicy::Predictive);
    let all = |numbers: &mut dyn Iterator<Item = i64>, zero: std::ops::Range<i64>| {
        let mut scaler = Autoscaler::new(config, 4);
        let mut last = None;
        for number in numbers {
            let load_e6 = if zero.contains(&number) { 0 } else { by_season(number) };
            last = Some(scaler.window(&window(number, load_e6, 0, 4)));
        }
        last.map(|wish| (wish.forecast_e6, wish.error_ppm))
    };
    let zeros = all(&mut (0..200), 150..160);
    assert_eq!(all(&mut (0..150).chain(160..200), 0..0), zeros);
    let anew = all(&mut (1_000..1_001), 0..0);
    assert_eq!(all(&mut (0..150).chain(1_000..1_001), 0..0), anew);
}

#[test]
fn the_same_windows_give_the_same_hash_and_others_another() {
    let after = |last_e6| {
        let mut scaler = Autoscaler::new(config(AutoscalePolicy::Predictive), 4);
        for number in 0..100 {
            scaler.window(&window(number, by_season(number), 0, 4));
        }
        scaler.window(&window(100, last_e6, 0, 4));
        scaler.hash()
    };
    assert_eq!(after(LANE_E6), after(LANE_E6));
    assert_ne!(after(LANE_E6), after(LANE_E6 + 1));
}
