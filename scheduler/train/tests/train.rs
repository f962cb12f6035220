//! Short trainings: they are repeatable, go on from checkpoints, and learn.

use std::path::PathBuf;

use warptape_train::{Kind, TrainError, TrainOptions, learning_curve, train};

fn options(kind: Kind, episodes: u64) -> TrainOptions {
    TrainOptions {
        episodes,
        tasks: 200,
        tasks_by_update: 10,
        batch: 32,
        validate_every: episodes.div_ceil(2),
        ..TrainOptions::new(kind)
    }
}

/// A file of this test alone that does not exist yet.
fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("warptape-train-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_what_is_quantised_chooses_alike() {
    for kind in [Kind::Improved, Kind::Paper] {
        let of = |seed| {
            let mut told = Vec::new();
            let options = TrainOptions { seed, tasks_by_update: 20, ..options(kind, 8) };
            let trained = train(&options, &mut |progress| {
                told.push(*progress);
                true
            });
            (trained.unwrap(), told)
        };
        let (first, told) = of(1);
        assert_eq!(first, of(1).0, "{kind:?}");
        assert_ne!(first.network.hash(), of(2).0.network.hash());
        let episodes: Vec<_> = told.iter().map(|progress| progress.episode).collect();
        assert_eq!(episodes, (1..=8).collect::<Vec<_>>());
        assert!(told[7].updates >= 40 && told[7].loss > 0.0, "{:?}", told[7]);
        assert!(told[0].epsilon == 1.0 && (told[7].epsilon - 0.05).abs() < 1e-9);
        assert_eq!(first.validations.len(), 2);
        // Eight bits for a weight move few choices, and those by little.
        assert!(first.disagreement < 0.25 && first.regret < 0.02, "{first:?}");
        assert!(first.network.lanes() == (kind == Kind::Paper).then_some(16));
        assert!(learning_curve("improved", &first.validations).starts_with("<svg"));
    }
}

/// Lanes that are drawn take three times as long as earliest completion and more; a short training is far better than that.
#[test]
fn a_short_training_learns() {
    let options = TrainOptions { tasks_by_update: 8, ..options(Kind::Improved, 24) };
    let trained = train(&options, &mut |_| true).unwrap();
    let best = trained.validations.iter().map(|one| one.ratio).fold(f64::INFINITY, f64::min);
    assert!(best < 1.6, "{:?}", trained.validations);
}

#[test]
fn training_goes_on_where_it_ended_and_refuses_what_is_of_another_one() {
    let path = file("checkpoint");
    let options =
        TrainOptions { checkpoint: Some(path.clone()), tasks_by_update: 40, ..options(Kind::Improved, 8) };
    let mut episodes = 0;
    let stopped = train(&options, &mut |_| {
        episodes += 1;
        episodes < 3
    });
    assert_eq!((episodes, stopped.unwrap().validations.len()), (3, 1));
    let mut told = Vec::new();
    let trained = train(&options, &mut |progress| {
        told.push((progress.episode, progress.updates));
        true
    });
    let episodes: Vec<_> = told.iter().map(|(episode, _)| *episode).collect();
    assert_eq!(episodes, [4, 5, 6, 7, 8]);
    let validated: Vec<_> = trained.unwrap().validations.iter().map(|one| one.episode).collect();
    assert_eq!(validated, [3, 4, 8]);

    let why = |options: &TrainOptions| match train(options, &mut |_| true) {
        Err(TrainError::Checkpoint { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&TrainOptions { seed: 2, ..options.clone() }), "it is of another seed");
    assert_eq!(why(&TrainOptions { kind: Kind::Paper, ..options.clone() }), "it is of another architecture");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(why(&options), "it is cut off, or another file");
    std::fs::write(&path, b"else").unwrap();
    assert_eq!(why(&options), "it begins otherwise");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn options_out_of_range_are_named() {
    let right = TrainOptions::new(Kind::Improved);
    let name = |options: TrainOptions| match train(&options, &mut |_| true) {
        Err(TrainError::Option { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(TrainOptions { lambda: 1.0, ..right.clone() }), "lambda");
    assert_eq!(name(TrainOptions { gamma: f64::NAN, ..right.clone() }), "gamma");
    assert_eq!(name(TrainOptions { learning_rate: 0.0, ..right.clone() }), "learning_rate");
    assert_eq!(name(TrainOptions { epsilon: [2.0, 0.0], ..right.clone() }), "epsilon");
    assert_eq!(name(TrainOptions { validate_every: 0, ..right.clone() }), "episodes and validate_every");
    assert_eq!(name(TrainOptions { tasks: 1, ..right }), "tasks, batch and tasks_by_update");
}
