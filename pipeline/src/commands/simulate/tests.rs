//! The command as it is called, on the files of the examples.

use super::*;
use crate::cli::SimulateFormat;

const EXAMPLES: &str = "../examples/simulate";

fn simulated(change: impl FnOnce(&mut SimulateArgs)) -> anyhow::Result<String> {
    let mut args = SimulateArgs {
        fleet: format!("{EXAMPLES}/unequal-cpu-lanes.toml").into(),
        workload: format!("{EXAMPLES}/three-kinds.toml").into(),
        policy: vec!["fair".to_owned(), "lp-price".to_owned()],
        seeds: 2,
        load: vec![0.5],
        slice_us: 20_000,
        output: SimulateFormat::Json,
    };
    change(&mut args);
    let mut out = Vec::new();
    simulate(&args, &mut out)?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn the_same_seeds_give_the_same_bytes_in_every_form() {
    for output in [SimulateFormat::Json, SimulateFormat::Csv, SimulateFormat::Table] {
        let [one, same] = [(); 2].map(|()| simulated(|args| args.output = output).unwrap());
        assert_eq!(one, same);
        assert!(["fair", "lp-price", "(bound)"].iter().all(|name| one.contains(name)), "{one}");
    }
    let [one, other] = [2, 3].map(|seeds| simulated(|args| args.seeds = seeds).unwrap());
    assert_ne!(one, other);
}

#[test]
fn no_policy_is_better_than_the_bound() {
    let out = simulated(|_| ()).unwrap();
    let rows: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let means: Vec<f64> = rows.iter().filter_map(|row| row["figures"]["mean_s"]["mean"].as_f64()).collect();
    assert_eq!(means.len(), 4);
    assert!(means.iter().all(|mean| *mean >= means[3]), "{out}");
    let capacity = &rows[4]["figures"];
    for row in &rows[..2] {
        let [done, most] = [&row["figures"], capacity].map(|of| of["done_per_s"]["mean"].as_f64().unwrap());
        assert!(done < most, "{row}");
    }
}

/// Above capacity a run ends with its tasks, and no more than capacity is done meanwhile.
#[test]
fn a_load_above_capacity_is_run_to_its_end() {
    let out = simulated(|args| args.load = vec![1.5]).unwrap();
    let row: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let done = row["figures"]["in_time_by_capacity"]["mean"].as_f64().unwrap();
    assert!((0.8..1.1).contains(&done), "{row}");
}

#[test]
fn bad_input_is_said_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let check = |change: &dyn Fn(&mut SimulateArgs), expected: &str| {
        let error = simulated(change).unwrap_err();
        assert_eq!(crate::cli::exit_code(&error), crate::cli::UNUSABLE);
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&|args| args.policy = vec!["dice".to_owned()], "--policy \"dice\" is not known; there are: fair, ");
    check(&|args| args.load = vec![0.0], "--load is 0; it must be from 0.01 to 10");
    check(&|args| args.fleet = "nowhere.toml".into(), "nowhere.toml: ");
    let fleet = file("fleet.toml", "slice_overhead_us = 1");
    check(&|args| args.fleet = fleet.clone(), "fleet.toml: missing field `classes`");
    let other = file("other.toml", "tasks = 1\nkinds = [{name = \"gpu\", share = 1, mean_s = 1}]");
    check(
        &|args| args.workload = other.clone(),
        "no class of the fleet has a speed for tasks of the kind \"gpu\"",
    );
    let unknown = file("unknown.toml", "tasks = 1\nkinds = []\nsize = 3");
    check(&|args| args.workload = unknown.clone(), "unknown field");
    let trace = file("trace.csv", "time_s,kind,size_s,class,tenant,deadline_s\n1,a,-1,batch,x,\n");
    check(&|args| args.workload = trace.clone(), "trace.csv: line 2: size_s is -1");
}

/// In a closed loop what arrives depends on the schedule, and the table says so.
#[test]
fn a_closed_loop_says_why_there_is_no_schedule_that_knows_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed.toml");
    let kind = "kinds = [{name = \"simulation\", share = 1, mean_s = 0.2, divisible = false}]";
    std::fs::write(&closed, format!("tasks = 200\narrivals = \"closed\"\nsenders = 8\n{kind}")).unwrap();
    let out = simulated(|args| {
        args.workload = closed.clone();
        args.output = SimulateFormat::Table;
    });
    let out = out.unwrap();
    assert!(out.contains("in a closed loop what arrives depends on the schedule"), "{out}");
    assert!(out.contains("(capacity)") && !out.contains("(bound)"), "{out}");
    assert!(out.contains("busy_s_fast") && out.contains("idle_s_slow"), "{out}");
}

/// Every fleet of the examples can be run, and one that fails says what of it was lost and done again.
#[test]
fn fleets_of_the_examples_are_run() {
    let mut fleets: Vec<_> =
        std::fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().path()).collect();
    fleets.retain(|path| !path.ends_with("three-kinds.toml"));
    fleets.sort();
    let names = ["failing", "h200-nvlink", "throttled", "unequal-cpu-lanes", "volta-turing-radeon"];
    let found: Vec<_> = fleets.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(found, names);
    let outs = fleets.iter().map(|fleet| {
        simulated(|args| {
            args.fleet = fleet.clone();
            args.output = SimulateFormat::Table;
        })
    });
    let outs: Vec<String> = outs.map(Result::unwrap).collect();
    let lost = ["lost_s_Turing", "lost_s_Volta", "redone", "of the fleet without failures"];
    assert!(lost.iter().all(|word| outs[0].contains(word)), "{}", outs[0]);
    assert!(
        outs[2].contains("without failures and throttling") && !outs[2].contains("lost_s"),
        "{}",
        outs[2]
    );
    assert!(!outs[4].contains("without failures"), "{}", outs[4]);
}
