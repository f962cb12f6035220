//! Runs the command on the example files.

use super::*;
use crate::cli::SimulateFormat;

const EXAMPLES: &str = "../examples/simulate";
const IMPROVED: &str = "../tests/fixtures/networks/improved.network";
const PAPER: &str = "../tests/fixtures/networks/paper-16-lanes.network";

fn simulated(change: impl FnOnce(&mut SimulateArgs)) -> anyhow::Result<String> {
    let mut args = SimulateArgs {
        fleet: Some(format!("{EXAMPLES}/unequal-cpu-lanes.toml").into()),
        workload: Some(format!("{EXAMPLES}/three-kinds.toml").into()),
        policy: vec!["fair".to_owned(), "lp-price".to_owned()],
        seeds: 2,
        load: vec![0.5],
        slice_us: Some(20_000),
        placement: "rendezvous".to_owned(),
        svg: None,
        experiment: None,
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

/// The command's configuration equals that of `warptape run` without settings.
#[test]
fn runs_are_configured_as_production_is() {
    let production = super::policies::production();
    assert_eq!((production.risk.quantum_ns, production.risk.slice_ns), (20_000_000, 500_000));
    assert!(production.risk.steals && production.risk.ageing_ns > 0 && production.risk.critical_percent > 0);
    let policy = Policy::new("fair", 4).unwrap();
    let mut given = SimulateArgs {
        fleet: None,
        workload: None,
        policy: Vec::new(),
        seeds: 1,
        load: vec![0.5],
        slice_us: None,
        placement: "balanced".to_owned(),
        svg: None,
        experiment: None,
        output: SimulateFormat::Json,
    };
    let options = policy.options(&given, Scaling::None);
    assert_eq!((options.slice_ns, options.placement.as_str()), (500_000, "balanced"));
    assert_eq!(options.production.as_deref(), Some(&production));
    given.slice_us = Some(7);
    assert_eq!(policy.options(&given, Scaling::None).slice_ns, 7_000);
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

/// A run above capacity still finishes its tasks, at a rate of at most the capacity.
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
    check(
        &|args| args.policy = vec!["dice".to_owned()],
        "--policy \"dice\" is not known; give one of: fair, ",
    );
    check(&|args| args.load = vec![0.0], "--load is 0; it must be from 0.01 to 10");
    check(&|args| args.fleet = Some("nowhere.toml".into()), "nowhere.toml: ");
    let fleet = file("fleet.toml", "slice_overhead_us = 1");
    check(&|args| args.fleet = Some(fleet.clone()), "fleet.toml: missing field `classes`");
    let other = file("other.toml", "tasks = 1\nkinds = [{name = \"gpu\", share = 1, mean_s = 1}]");
    check(
        &|args| args.workload = Some(other.clone()),
        "no class of the fleet has a speed for tasks of the kind \"gpu\"",
    );
    let unknown = file("unknown.toml", "tasks = 1\nkinds = []\nsize = 3");
    check(&|args| args.workload = Some(unknown.clone()), "unknown field");
    let trace = file("trace.csv", "time_s,kind,size_s,class,tenant,deadline_s\n1,a,-1,batch,x,\n");
    check(&|args| args.workload = Some(trace.clone()), "trace.csv: line 2: size_s is -1");
}

/// Networks in files run beside other policies, and are named by the first digits of their hashes.
#[test]
fn networks_in_files_are_held_against_other_policies() {
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("best.network");
    std::fs::copy(IMPROVED, &network).unwrap();
    let hash = crate::network_file::read(&network, None).unwrap().hash;
    let label = format!("dqn:{}", &hash[..8]);
    let to = folder.path().join("pictures");
    let run = |output: SimulateFormat| {
        simulated(|args| {
            args.policy = vec!["fair".to_owned(), format!("dqn:{}", network.display())];
            args.svg = Some(to.clone());
            args.output = output;
        })
        .unwrap()
    };
    let rows: Vec<serde_json::Value> =
        run(SimulateFormat::Json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: usize, name: &str| rows[row]["figures"][name]["mean"].as_f64().unwrap();
    assert_eq!(
        rows[..2].iter().map(|row| row["policy"].as_str().unwrap()).collect::<Vec<_>>(),
        ["fair", &label]
    );
    assert_ne!(of(0, "mean_s"), of(1, "mean_s"));
    let table = run(SimulateFormat::Table);
    assert!(table.contains(&format!("{label} is the network in {}.", network.display())), "{table}");
    assert!(to.join(format!("timeline-dqn-{}.svg", &hash[..8])).exists());
}

#[test]
fn networks_that_cannot_be_used_are_said_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let check = |policy: &str, expected: &str| {
        let error = simulated(|args| args.policy = vec![policy.to_owned()]).unwrap_err();
        assert_eq!(crate::cli::exit_code(&error), crate::cli::UNUSABLE);
        assert!(error.to_string().contains(expected), "{error}");
    };
    let of_file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        format!("dqn:{}", path.display())
    };
    let bytes = std::fs::read(IMPROVED).unwrap();
    check("dqn:nowhere.network", "--policy \"dqn:nowhere.network\": nowhere.network cannot be read: ");
    check(&of_file("cut", &bytes[..100]), "cut cannot be used: the network's bytes are damaged");
    check(&of_file("other", b"something else"), "other cannot be used: this is no network");
    check(&of_file("long", &[&bytes[..], &[0; 1 << 20]].concat()), "but at most 65536 are allowed");
    check(
        &format!("dqn:{PAPER}"),
        "is for 16 lanes, but there are 4. Train one for 4 lanes, or one of the architecture `improved`",
    );
    check("dqn:0123abcd", "which a simulation cannot look up: give the file, as dqn:FILE");
}

/// Arrivals of a closed loop depend on the schedule, and the table says so.
#[test]
fn a_closed_loop_says_why_there_is_no_schedule_that_knows_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed.toml");
    let kind = "kinds = [{name = \"simulation\", share = 1, mean_s = 0.2, divisible = false}]";
    std::fs::write(&closed, format!("tasks = 200\narrivals = \"closed\"\nsenders = 8\n{kind}")).unwrap();
    let out = simulated(|args| {
        args.workload = Some(closed.clone());
        args.output = SimulateFormat::Table;
    });
    let out = out.unwrap();
    assert!(out.contains("in a closed loop, arrivals depend on the schedule"), "{out}");
    assert!(out.contains("(capacity)") && !out.contains("(bound)"), "{out}");
    assert!(out.contains("busy_s_fast") && out.contains("idle_s_slow"), "{out}");
}

/// Every fleet of the examples can be run, and a failing one reports the lost and repeated work.
#[test]
fn fleets_of_the_examples_are_run() {
    let mut fleets: Vec<_> =
        std::fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().path()).collect();
    let workloads = ["three-kinds.toml", "day-and-night.toml", "ticks-beside-tasks.toml"];
    fleets.retain(|path| !workloads.iter().any(|workload| path.ends_with(workload)));
    fleets.sort();
    let names =
        ["autoscale", "failing", "h200-nvlink", "throttled", "unequal-cpu-lanes", "volta-turing-radeon"];
    let found: Vec<_> = fleets.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(found, names);
    let outs = fleets.iter().map(|fleet| {
        simulated(|args| {
            args.fleet = Some(fleet.clone());
            args.output = SimulateFormat::Table;
        })
    });
    let outs: Vec<String> = outs.map(Result::unwrap).collect();
    let lost = ["lost_s_Turing", "lost_s_Volta", "redone", "for the fleet without failures"];
    assert!(lost.iter().all(|word| outs[1].contains(word)), "{}", outs[1]);
    assert!(
        outs[3].contains("without failures and throttling") && !outs[3].contains("lost_s"),
        "{}",
        outs[3]
    );
    assert!(!outs[5].contains("without failures"), "{}", outs[5]);
}

/// A fleet with lanes that start and stop is run under each policy of autoscaling. The table shows the cost of each
/// policy beside its missed deadlines.
#[test]
fn autoscaling_has_a_table_of_costs() {
    let autoscaled = |output: SimulateFormat, policy: &str| {
        simulated(|args| {
            args.fleet = Some(format!("{EXAMPLES}/autoscale.toml").into());
            args.workload = Some(format!("{EXAMPLES}/day-and-night.toml").into());
            args.policy = vec![policy.to_owned()];
            args.load = vec![0.4];
            args.output = output;
        })
    };
    let out = autoscaled(SimulateFormat::Json, "fair").unwrap();
    let rows: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["fair, none", "fair, reactive", "fair, predictive", "(capacity)"]);
    let of = |row: usize, name: &str| rows[row]["figures"][name]["mean"].as_f64().unwrap();
    assert!(of(1, "cost") < 0.8 * of(0, "cost") && of(2, "cost") < 0.8 * of(0, "cost"), "{out}");
    assert!(of(2, "missed_percent") < of(1, "missed_percent"), "{out}");
    assert!((of(0, "cost") / of(0, "lane_hours") - 4.0).abs() < 1e-9, "{out}");
    let table = autoscaled(SimulateFormat::Table, "fair").unwrap();
    let header = table.lines().find(|line| line.contains("lane_hours")).unwrap();
    assert!(
        ["cost", "forecast_error_percent", "missed_percent", "p99_s"]
            .iter()
            .all(|name| header.contains(name))
    );
    let error = autoscaled(SimulateFormat::Table, "max-min").unwrap_err();
    assert!(error.to_string().contains("a fleet with [autoscale] needs a production policy"), "{error}");
}

/// Pictures are valid XML and equal for the same seeds, and their points are the printed figures.
#[test]
fn pictures_are_of_the_figures_and_the_same_for_the_same_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = |name: &str| {
        let to = folder.path().join(name);
        let out = simulated(|args| {
            args.svg = Some(to.clone());
            args.load = vec![0.4, 0.7];
            args.policy = vec!["fair".to_owned(), "shortest-rest".to_owned()];
        });
        let names = ["completion", "timeline-fair", "utilisation-fair", "timeline-shortest-rest"];
        (out.unwrap(), names.map(|name| std::fs::read_to_string(to.join(format!("{name}.svg"))).unwrap()))
    };
    let (out, pictures) = drawn("one");
    assert_eq!(pictures, drawn("other").1);
    assert!(pictures.iter().all(|text| text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n")));
    let means = out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let means: Vec<_> = means
        .filter(|row| row["policy"] == "fair")
        .map(|row| row["figures"]["mean_s"]["mean"].as_f64())
        .collect();
    assert_eq!(means.len(), 2);
    for (load, mean) in [0.4, 0.7].iter().zip(means) {
        let tip = format!("fair: load {load}, {:.4} ±", mean.unwrap());
        assert!(pictures[0].contains(&tip), "{tip}: {}", pictures[0]);
    }
}

#[test]
fn baselines_of_the_simulator_are_told_apart() {
    let out = simulated(|args| {
        args.policy = vec!["fair".to_owned(), "max-min".to_owned()];
        args.output = SimulateFormat::Table;
    });
    let out = out.unwrap();
    assert!(out.contains("Only in the simulator, not for production: max-min"), "{out}");
}

/// The experiment's page has all methods in all loops, and is equal for the same seeds.
#[test]
fn the_experiment_is_a_page() {
    let page = || {
        let mut out = Vec::new();
        super::experiment::run_jobs(2, 100, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let one = page();
    assert_eq!(one, page());
    assert!(one.contains("| FCFS, blind queues by turns | 25.8 s, 6.2, 58.1 % |"), "{one}");
    assert_eq!(one.matches("| `lp-price` of production |").count(), 3, "{one}");
}

/// Ticks run beside tasks: the table shows their latency and their share of the fleet, and is equal for the same seeds.
#[test]
fn ticks_have_a_table_beside_that_of_tasks() {
    let ticked = |output: SimulateFormat, placement: &str| {
        simulated(|args| {
            args.workload = Some(format!("{EXAMPLES}/ticks-beside-tasks.toml").into());
            args.placement = placement.to_owned();
            args.slice_us = Some(4_000);
            args.output = output;
        })
        .unwrap()
    };
    let out = ticked(SimulateFormat::Json, "rendezvous");
    assert_eq!(out, ticked(SimulateFormat::Json, "rendezvous"));
    let rows: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |row: usize, name: &str| rows[row]["figures"][name]["mean"].as_f64();
    for row in [0, 1] {
        let [mean, p50, p99] =
            ["signal_mean_ms", "signal_p50_ms", "signal_p99_ms"].map(|name| of(row, name).unwrap());
        assert!(p50 < mean && mean < p99, "{p50} {mean} {p99}");
        assert!(of(row, "rows").unwrap() > of(row, "batches").unwrap(), "{out}");
        assert!(of(row, "ticks_percent").is_some_and(|percent| percent > 0.0), "{out}");
        assert!(of(row, "done_per_s") < of(4, "done_per_s"), "{out}");
    }
    // Both policies get the same ticks.
    assert_eq!(of(0, "rows"), of(1, "rows"));
    assert_eq!(of(4, "rows_per_s"), Some(3e6));
    let table = ticked(SimulateFormat::Table, "balanced");
    for expected in
        ["load 0.5, 2 seeds of 500 tasks beside 200000 ticks/s", "signal_p99_ms", "200000 ticks/s leave 9"]
    {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    let without = simulated(|args| args.output = SimulateFormat::Table).unwrap();
    assert!(!without.contains("signal") && !without.contains("ticks"), "{without}");
}

#[test]
fn ticks_that_cannot_be_simulated_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let workload = |ticks: &str| {
        let path = folder.path().join("ticks.toml");
        let kind = "tasks = 10\nkinds = [{name = \"simulation\", share = 1, mean_s = 0.2}]\n";
        std::fs::write(&path, format!("{kind}[ticks]\n{ticks}")).unwrap();
        path
    };
    let check = |ticks: &str, change: &dyn Fn(&mut SimulateArgs), expected: &str| {
        let path = workload(ticks);
        let error = simulated(|args| {
            args.workload = Some(path);
            change(args);
        });
        let error = error.unwrap_err();
        assert_eq!(crate::cli::exit_code(&error), crate::cli::UNUSABLE);
        assert!(error.to_string().contains(expected), "{error}");
    };
    let (fine, none) = ("rate = 1_000\nsymbols = 10", |_: &mut SimulateArgs| ());
    let of_fleet = |name: &'static str| {
        move |args: &mut SimulateArgs| args.fleet = Some(format!("{EXAMPLES}/{name}").into())
    };
    check("rate = -5\nsymbols = 10", &none, "ticks.toml: rate of [ticks] is -5; it must be from 0.001");
    check(
        "rate = 5\nsymbols = 10\ngroups = 0",
        &none,
        "ticks.toml: groups of [ticks] is 0; it must be from 1 to 4096",
    );
    check("rate = 5", &none, "ticks.toml: missing field `symbols`");
    check("rate = 5\nsymbols = 1\nspeed = 3", &none, "unknown field");
    let expected = "h200-nvlink.toml: the class H200 has no ticks_per_s, but the workload has [ticks]";
    check(fine, &of_fleet("h200-nvlink.toml"), expected);
    check(
        fine,
        &of_fleet("autoscale.toml"),
        "autoscale.toml: the fleet has [autoscale] and the workload has [ticks]",
    );
    let baseline = |args: &mut SimulateArgs| args.policy = vec!["fair".to_owned(), "max-min".to_owned()];
    check(fine, &baseline, "--policy \"max-min\" exists only in the simulator and cannot handle ticks");
    let dice = |args: &mut SimulateArgs| args.placement = "dice".to_owned();
    check(fine, &dice, "--placement \"dice\" is not known; give one of: rendezvous, balanced");
}
