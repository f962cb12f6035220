//! Tests of the command with short trainings, which learn almost nothing.

use super::*;

const EXAMPLES: &str = "../examples/simulate";
const KINDS: &str = "kinds = [{name = \"simulation\", share = 1, mean_s = 0.2}]";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("workload.toml"), format!("tasks = 30\n{KINDS}")).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn args(&self, to: &str) -> TrainArgs {
        TrainArgs {
            command: None,
            fleet: Some(format!("{EXAMPLES}/unequal-cpu-lanes.toml").into()),
            workload: Some(self.at("workload.toml")),
            to: Some(self.at(to)),
            kind: NetworkKind::Improved,
            seed: 1,
            episodes: 2,
            tasks: 40,
            seconds: None,
            resume: false,
            seeds: 0,
        }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap()
    }
}

fn trained(args: &TrainArgs) -> anyhow::Result<String> {
    let mut out = Vec::new();
    execute_train(args, &Interrupt::default(), &mut out)?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn a_workload_with_ticks_is_refused() {
    let place = Place::new();
    let text = format!("tasks = 30\n{KINDS}\n[ticks]\nrate = 1\nsymbols = 1");
    std::fs::write(place.at("workload.toml"), text).unwrap();
    let error = trained(&place.args("one")).unwrap_err().to_string();
    assert!(error.contains("workload.toml: networks are trained only on tasks; remove [ticks]"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_files_and_a_training_goes_on_where_it_ended() {
    let place = Place::new();
    let said = trained(&TrainArgs { seeds: 2, ..place.args("one") }).unwrap();
    trained(&place.args("other")).unwrap();
    for ending in ["", ".svg", ".checkpoint"] {
        assert_eq!(place.bytes(&format!("one{ending}")), place.bytes(&format!("other{ending}")), "{ending}");
    }
    let hash = network_file::read(&place.at("one"), Some(4)).unwrap().hash;
    assert!(said.contains(&format!("dqn:{hash}\nbest of 1 validations in 2 episodes: ")), "{said}");
    // The table printed after a training equals that of `train compare`.
    let compare = CompareArgs {
        network: place.at("one"),
        fleet: place.args("one").fleet.unwrap(),
        workload: place.at("workload.toml"),
        seeds: 2,
    };
    let mut out = Vec::new();
    execute_compare(&compare, &mut out).unwrap();
    let table = String::from_utf8(out).unwrap();
    assert!(table.contains("| arrivals as given, divisible |") && said.ends_with(&table), "{said}\n{table}");

    let error = trained(&place.args("one")).unwrap_err();
    assert!(error.to_string().contains("exists, and existing files"), "{error}");
    std::fs::remove_file(place.at("one")).unwrap();
    let error = trained(&TrainArgs { to: Some(place.at("one")), ..place.args("two") }).unwrap_err();
    assert!(error.to_string().contains("one.svg exists, and existing files"), "{error}");
    let on = TrainArgs { resume: true, episodes: 3, ..place.args("one") };
    let said = trained(&on).unwrap();
    assert!(said.contains("best of 2 validations in 3 episodes: "), "{said}");
    let error = trained(&TrainArgs { seed: 2, ..on }).unwrap_err();
    assert!(error.to_string().contains("one.checkpoint is not a checkpoint of this training"), "{error}");
}

#[test]
fn a_training_ends_early_with_what_there_is() {
    let place = Place::new();
    let said = trained(&TrainArgs { seconds: Some(0), episodes: 9, ..place.args("timed") }).unwrap();
    assert!(said.contains("in 1 episodes: "), "{said}");
    assert!(place.at("timed").exists() && place.at("timed.svg").exists());
}

#[test]
fn what_cannot_be_trained_is_said_with_what_to_do() {
    let place = Place::new();
    let check = |args: TrainArgs, expected: &str| {
        let error = trained(&args).unwrap_err();
        assert_eq!(crate::cli::exit_code(&error), crate::cli::UNUSABLE, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!place.at("none").exists());
    };
    std::fs::write(
        place.at("closed.toml"),
        format!("tasks = 9\narrivals = \"closed\"\nsenders = 3\n{KINDS}"),
    )
    .unwrap();
    let closed = TrainArgs { workload: Some(place.at("closed.toml")), ..place.args("none") };
    check(closed, "give a workload with Poisson, bursty or diurnal arrivals");
    check(
        TrainArgs { resume: true, ..place.args("none") },
        "none.checkpoint to continue from: start without --resume",
    );
    check(TrainArgs { fleet: Some("nowhere.toml".into()), ..place.args("none") }, "nowhere.toml: ");
    let compare = CompareArgs {
        network: "../tests/fixtures/networks/paper-16-lanes.network".into(),
        fleet: place.args("none").fleet.unwrap(),
        workload: place.at("workload.toml"),
        seeds: 2,
    };
    let error = execute_compare(&compare, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("is for 16 lanes, but there are 4"), "{error}");
}
