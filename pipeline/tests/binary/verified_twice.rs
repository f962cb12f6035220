//! Runs under each kind of task policy, with an operator's commands, a kill, and another configuration afterwards. Two
//! independent processes verify them with the same output.

use std::path::Path;

use serde_json::Value;
use warptape_eventlog::{Durability, SqliteLog};
use warptape_network::Network;

use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const NETWORK: &[u8] = include_bytes!("../../../tests/fixtures/networks/improved.network");
/// Settings with short intervals, so that snapshots and checkpoints exist.
const CONFIGURATION: [(&str, &str); 4] = [
    ("WARPTAPE__ENGINE__DEVICES", "cpu:3"),
    ("WARPTAPE__ENGINE__SNAPSHOT_INTERVAL_RECORDS", "50"),
    ("WARPTAPE__ENGINE__CHECKPOINT_INTERVAL_S", "1"),
    ("WARPTAPE__RISK__NETWORKS", "network.bin"),
];
/// Settings that the second life changes: lanes, the placement policy, and the stages.
const OTHER: [(&str, &str); 3] = [
    ("WARPTAPE__ENGINE__DEVICES", "cpu:2"),
    ("WARPTAPE__SCHEDULER__PLACEMENT_POLICY", "balanced"),
    ("WARPTAPE__STAGES__ALLOWED_LATENESS_MS", "500"),
];

fn command(folder: &Path, words: &[&str]) -> String {
    texts(&warptape(folder, &[words, &LOG].concat()), 0).0
}

/// Feeds a part of a market, and starts a process that handles it, answers requests and executes a few commands.
fn live(folder: &Path, seed: &str, arguments: &[&str], settings: &[(&str, &str)], policy: &str) -> Running {
    let feed = ["feed", "synth", "--symbols", "10", "--ticks", "8000", "--batch", "32", "--seed", seed];
    command(folder, &feed);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start_with(folder, &[&["run"], arguments, &LOG].concat(), settings);
    run_until_drained(&mut run, &log, "warptape");
    let price = |id: &str| {
        let option = ["risk", "price", "--kind", "call", "--strike", "100", "--expiry-days", "30"];
        let rest = ["--spot", "100", "--volatility", "0.2", "--request-id", id, "--timeout-s", "120"];
        command(folder, &[&option[..], &rest].concat());
    };
    let tell = |words: &[&str]| command(folder, &[&["control"], words, &["--timeout-s", "120"]].concat());
    price(&format!("first-{seed}"));
    assert!(tell(&["drain", "1"]).contains("lane 1 is drained"));
    assert!(tell(&["policy", "tasks", "earliest-deadline"]).contains("the policy of tasks is"));
    price(&format!("second-{seed}"));
    assert!(tell(&["policy", "tasks", policy]).contains("the policy of tasks is"));
    assert!(tell(&["undrain", "1"]).contains("lane 1 is drained no more"));
    run
}

fn check(policy: &str) {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("network.bin"), NETWORK).expect("a file");
    let policy_of = [("WARPTAPE__RISK__POLICY", policy)];
    let first = [&CONFIGURATION[..], &policy_of].concat();
    live(folder, "1", &[], &first, policy).kill();
    // If a variable is set twice, the later value counts.
    let second = [&first[..], &OTHER].concat();
    live(folder, "2", &["--new-segment"], &second, policy).stop("TERM");

    let verify = || command(folder, &["replay", "verify", "--outputs", "-o", "json"]);
    let (said, again) = (verify(), verify());
    assert_eq!(said, again);
    let report: Value = serde_json::from_str(&said).expect("one JSON object");
    assert_eq!((&report["divergence"], &report["processes"]), (&Value::Null, &2.into()), "{said}");
    let count = |what: &str| report["outputs"][what].as_u64().expect(what);
    assert_eq!((count("ticks"), count("risk_results"), count("control_results")), (16_000, 4, 8), "{said}");
    assert!(count("signals") > 20 && count("snapshots") > 10, "{said}");
}

#[test]
fn runs_under_the_fair_policy_are_verified_twice() {
    check("fair");
}

#[test]
fn runs_by_prices_of_lanes_are_verified_twice() {
    check("lp-price");
}

#[test]
fn runs_by_turns_are_verified_twice() {
    check("round-robin");
}

#[test]
fn runs_under_a_network_are_verified_twice() {
    let network = Network::from_bytes(NETWORK).expect("a network");
    check(&format!("dqn:{}", &network.hash()[..8]));
}
