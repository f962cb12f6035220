//! Short trainings: they give repeatable results, resume from checkpoints, and improve the network.

use std::path::PathBuf;

use warptape_simulator::{Class, Fleet, Workload};
use warptape_train::{Method, Scene, TrainError, TrainOptions, compare, held_out, table, train};

fn sixteen_lanes() -> Scene {
    Scene::given(Fleet::volta_turing_radeon(), Workload::three_kinds(0.5, 1)).unwrap()
}

fn three_lanes() -> Scene {
    let classes = vec![Class::new("fast", 1, &[1.0, 1.0, 1.0]), Class::new("slow", 2, &[0.2, 0.5, 0.3])];
    Scene::given(Fleet { classes, ..Fleet::default() }, Workload::three_kinds(0.5, 1)).unwrap()
}

fn options(kind: Method, episodes: u64) -> TrainOptions {
    TrainOptions {
        episodes,
        tasks: 200,
        tasks_by_update: 10,
        batch: 32,
        validate_every: episodes.div_ceil(2),
        ..TrainOptions::new(sixteen_lanes(), kind)
    }
}

/// Returns a path that only this test uses, without a file.
fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("warptape-train-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_what_is_quantised_chooses_alike() {
    for kind in [Method::Improved, Method::Paper] {
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
        // Weights of eight bits change few choices, and change them only slightly.
        assert!(first.disagreement < 0.25 && first.regret < 0.02, "{first:?}");
        assert!(first.network.lanes() == (kind == Method::Paper).then_some(16));
    }
}

/// Random lanes take more than three times as long as earliest completion. A short training does far better.
#[test]
fn a_short_training_learns() {
    let options = TrainOptions { tasks_by_update: 8, ..options(Method::Improved, 24) };
    let trained = train(&options, &mut |_| true).unwrap();
    let best = trained.validations.iter().map(|one| one.ratio).fold(f64::INFINITY, f64::min);
    assert!(best < 1.6, "{:?}", trained.validations);
}

#[test]
fn training_goes_on_where_it_ended_and_refuses_what_is_of_another_one() {
    let path = file("checkpoint");
    let options =
        TrainOptions { checkpoint: Some(path.clone()), tasks_by_update: 40, ..options(Method::Improved, 8) };
    let mut episodes = 0;
    let stopped = train(&options, &mut |_| {
        episodes += 1;
        episodes < 3
    });
    assert_eq!((episodes, stopped.unwrap().validations.len()), (3, 1));
    let again = || train(&options, &mut |_| true);
    assert!(matches!(again(), Err(TrainError::Begun { .. })), "what was begun is not written over");
    let options = TrainOptions { resume: true, ..options.clone() };
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
    assert_eq!(why(&TrainOptions { seed: 2, ..options.clone() }), "it has another seed");
    assert_eq!(why(&TrainOptions { kind: Method::Paper, ..options.clone() }), "it has another architecture");
    let other = "it has another fleet, workload or option";
    assert_eq!(why(&TrainOptions { given: three_lanes(), ..options.clone() }), other);
    assert_eq!(why(&TrainOptions { gamma: 0.9, ..options.clone() }), other);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(why(&options), "it is truncated, or another kind of file");
    std::fs::write(&path, b"else").unwrap();
    assert_eq!(why(&options), "it has another header");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(train(&options, &mut |_| true), Err(TrainError::NotBegun { .. })));
}

/// Networks are trained for the given fleet, with any number of lanes, and are compared with rules on that fleet.
#[test]
fn networks_are_for_the_lanes_of_their_fleet() {
    for kind in [Method::Improved, Method::Paper] {
        let options = TrainOptions { given: three_lanes(), tasks_by_update: 50, ..options(kind, 4) };
        let network = train(&options, &mut |_| true).unwrap().network;
        assert_eq!(network.lanes(), (kind == Method::Paper).then_some(3));
        let scenes = &held_out(&options.given, 60)[..2];
        let mut asked = Vec::new();
        let found = compare(&network, scenes, &mut |name, of| {
            asked.push(name.to_owned());
            (0..3).map(of).collect()
        });
        assert_eq!((found.len(), asked.len()), (6, 8));
        assert_eq!(asked[1], "fair, arrivals as given");
        let lines = table(&found);
        assert_eq!(lines.lines().count(), 8);
        assert!(lines.contains("| other arrivals of training |") && lines.contains("`lp-price`"), "{lines}");
    }
}

#[test]
fn options_out_of_range_are_named() {
    let right = TrainOptions::new(sixteen_lanes(), Method::Improved);
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
