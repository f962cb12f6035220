//! Recorded runs of the real engine against their models: the same run predicted, and its second half from what lanes took in its first.
//!
//! The recordings are incidents of `tests/fixtures`, with real lanes and times of the wall clock, in which a lane is held up for each row so that lanes
//! are what rows wait for. A file says the same on every machine, so that none has to be quiet for these tests.

use std::path::PathBuf;

use warptape_replay::fixture::Fixture;
use warptape_replay::history::{Bound, Window};
use warptape_what_if::{Changes, Figures, Recording};

const SEEDS: u64 = 5;
/// For how long the market of an incident goes on.
const MARKET_NS: i64 = 4_000_000_000;
/// What may be missed of the mean, and of the 99th percentile.
const MEAN_MAX: f64 = 0.1;
const P99_MAX: f64 = 0.2;

/// A window of a recorded incident.
fn recorded(name: &str, window: Window) -> Recording {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("incident.db");
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/incidents");
    std::fs::copy(fixtures.join(format!("{name}.db")), &path).expect("an incident");
    let Fixture { log, options } = Fixture::open(&path).expect("an exported file");
    Recording::read(&*log, (&options.journal, 0), window, &mut |_| {}).expect("a journal")
}

/// A recorded run from the middle of its market on, on lanes that take what they took before.
fn second_half(name: &str) -> Recording {
    let (first_ns, _) = recorded(name, Window::default()).window_ns();
    let middle = Some(Bound::Time(first_ns + MARKET_NS / 2));
    let before = recorded(name, Window { from: None, to: middle });
    recorded(name, Window { from: middle, to: None }).with_times_of(&before)
}

/// By how much the model misses what was measured, as a share of it: the mean latency of rows, and the 99th percentile.
fn missed(recording: &Recording) -> [f64; 2] {
    assert!(recording.measured.rows > 1_000, "{} rows", recording.measured.rows);
    let modelled = (0..SEEDS).map(|seed| recording.model(&Changes::default(), seed));
    let modelled: Vec<Figures> = modelled.map(|run| run.expect("it is modelled").figures).collect();
    let figures: [fn(&Figures) -> f64; 2] = [
        |figures| figures.row_latency_mean_ms().expect("rows"),
        |figures| figures.row_latency_ms(0.99).expect("rows"),
    ];
    figures.map(|figure| {
        let found = modelled.iter().map(figure).sum::<f64>() / SEEDS as f64;
        let measured = figure(&recording.measured);
        println!("{found:.2} ms modelled, {measured:.2} ms measured");
        found / measured - 1.0
    })
}

#[track_caller]
fn check(name: &str, recording: &Recording) {
    let [mean, p99] = missed(recording);
    assert!(mean.abs() < MEAN_MAX, "{name}: the mean latency of rows is missed by {:.1} %", 100.0 * mean);
    assert!(p99.abs() < P99_MAX, "{name}: the 99th percentile is missed by {:.1} %", 100.0 * p99);
}

#[test]
fn a_run_is_modelled_as_it_was_measured() {
    for name in ["bad-weights", "hot-symbol"] {
        check(name, &recorded(name, Window::default()));
    }
}

/// What is measured of the second half has no part in the model of it.
#[test]
fn the_second_half_of_a_run_is_predicted_from_its_first_half() {
    check("bad-weights", &second_half("bad-weights"));
}

/// A device that becomes slow in the middle of the run: what it took before predicts nothing, and the comparison shows it.
#[test]
fn what_lanes_took_before_they_changed_predicts_nothing() {
    let [mean, p99] = missed(&second_half("throttled-device"));
    assert!(mean < -0.5 && p99 < -0.5, "missed by {:.1} % and {:.1} %", 100.0 * mean, 100.0 * p99);
}
