//! Compares recorded runs of the real engine with their models: the same run, and its second half predicted from the
//! times of its first half.
//!
//! The recordings are incidents of `tests/fixtures`, with real lanes and the wall clock. A lane is delayed for each
//! row, so rows wait for lanes. The files are the same on every machine, so these tests do not need a quiet one.

use std::path::PathBuf;

use warptape_replay::fixture::Fixture;
use warptape_replay::history::{Bound, Window};
use warptape_what_if::{Changes, Figures, Recording};

const SEEDS: u64 = 5;
/// Length of an incident's market, in nanoseconds.
const MARKET_NS: i64 = 4_000_000_000;
/// Greatest allowed relative error of the mean, and of the 99th percentile.
const MEAN_MAX: f64 = 0.1;
const P99_MAX: f64 = 0.2;

/// Returns a window of a recorded incident.
fn recorded(name: &str, window: Window) -> Recording {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("incident.db");
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/incidents");
    std::fs::copy(fixtures.join(format!("{name}.db")), &path).expect("an incident");
    let Fixture { log, options } = Fixture::open(&path).expect("an exported file");
    Recording::read(&*log, (&options.journal, 0), window, &mut |_| {}).expect("a journal")
}

/// Returns the second half of a recorded market, with the service times of its first half.
fn second_half(name: &str) -> Recording {
    let (first_ns, _) = recorded(name, Window::default()).window_ns();
    let middle = Some(Bound::Time(first_ns + MARKET_NS / 2));
    let before = recorded(name, Window { from: None, to: middle });
    recorded(name, Window { from: middle, to: None }).with_times_of(&before)
}

/// Returns the model's relative errors of the mean row latency and of its 99th percentile.
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

/// The model of the second half uses no measurements from it.
#[test]
fn the_second_half_of_a_run_is_predicted_from_its_first_half() {
    check("bad-weights", &second_half("bad-weights"));
}

/// A device becomes slow in the middle of the run. Its earlier times do not predict the later ones, and the comparison
/// shows that.
#[test]
fn what_lanes_took_before_they_changed_predicts_nothing() {
    let [mean, p99] = missed(&second_half("throttled-device"));
    assert!(mean < -0.5 && p99 < -0.5, "missed by {:.1} % and {:.1} %", 100.0 * mean, 100.0 * p99);
}
