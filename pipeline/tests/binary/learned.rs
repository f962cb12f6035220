//! A network chooses lanes for risk tasks. The configuration names the network, the journal contains it, and another
//! process verifies the run.

use std::path::Path;

use warptape_eventlog::{Durability, SqliteLog};
use warptape_network::Network;
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry, SliceReason};

use super::outputs::records;
#[cfg(target_arch = "x86_64")]
use super::processes::on_baseline;
use super::processes::{Running, folder, is_long, run_until_drained, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const NETWORKS: (&str, &str) = ("WARPTAPE__RISK__NETWORKS", "network.bin");
const LANES: (&str, &str) = ("WARPTAPE__ENGINE__DEVICES", "cpu:3");

/// Returns a network that works with any number of lanes.
fn network() -> Network {
    Network::from_bytes(include_bytes!("../../../tests/fixtures/networks/improved.network"))
        .expect("a network")
}

fn price(folder: &Path, id: &str) {
    let option =
        ["--kind", "call", "--strike", "100", "--expiry-days", "30", "--spot", "100", "--volatility", "0.2"];
    let rest = ["--request-id", id, "--timeout-s", "120"];
    texts(&warptape(folder, &[&["risk", "price"][..], &option, &rest, &LOG].concat()), 0);
}

#[test]
fn a_run_under_a_network_is_verified_in_another_process() {
    let folder = folder();
    let folder = folder.path();
    let network = network();
    let (hash, policy) = (network.hash(), format!("dqn:{}", network.hash()));
    std::fs::write(folder.join("network.bin"), network.to_bytes()).expect("a file");
    let feed = [&["feed", "synth", "--symbols", "10", "--ticks", "10000"][..], &LOG].concat();
    texts(&warptape(folder, &feed), 0);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let short = &policy[..12];
    let checkpoints = ("WARPTAPE__ENGINE__CHECKPOINT_INTERVAL_S", "1");
    let settings = [LANES, NETWORKS, ("WARPTAPE__RISK__POLICY", short), checkpoints];
    let mut run = Running::start_with(folder, &[&["run"][..], &LOG].concat(), &settings);
    run_until_drained(&mut run, &log, "warptape");
    price(folder, "one");
    let tell = |name: &str| {
        let told = ["control", "policy", "tasks", name, "--timeout-s", "120"];
        texts(&warptape(folder, &[&told[..], &LOG].concat()), 0).0
    };
    assert!(tell("fair").contains(&format!("the policy of tasks is fair@1, and was {policy}")));
    assert!(tell(short).contains(&format!("the policy of tasks is {policy}, and was fair@1")));
    price(folder, "two");
    run.stop("TERM");

    let journal: Vec<JournalEntry> = records(&log, "journal", 0)
        .iter()
        .map(|record| decode_journal_entry(&record.value).expect("an entry"))
        .collect();
    assert!(matches!(&journal[0].input, Input::Started(started) if started.scheduler.risk.policy == policy));
    assert!(matches!(&journal[1].input, Input::Trained(trained) if trained.hash == hash));
    let assigned = journal.iter().flat_map(|entry| &entry.decisions).filter_map(|decision| match decision {
        Decision::Assign(assign) => Some(assign.reason),
        _ => None,
    });
    assert_eq!(assigned.collect::<Vec<_>>(), [SliceReason::Order; 2], "the network itself decided");
    let verify = [&["replay", "verify", "--outputs"][..], &LOG].concat();
    let verified = texts(&warptape(folder, &verify), 0).0;
    assert!(verified.contains("identical"), "{verified}");
    if is_long() {
        check_on_baseline(folder, &verify, &verified);
    }

    let what_if = |policy: &str, code: i32| {
        let asked = ["replay", "what-if", "--policy", policy, "--seeds", "2"];
        texts(&warptape(folder, &[&asked[..], &LOG].concat()), code)
    };
    // The modelled run begins under the network, named by hash or file. The command that chose another policy is
    // omitted.
    for named in [short, "dqn:network.bin"] {
        let said = what_if(named, 0).0;
        assert!(said.contains("changed: nothing") && said.contains("are left out"), "{said}");
    }
    assert!(what_if("dqn:0123abcd", 2).1.contains(&format!("which has: {policy}; give")));
    assert!(what_if("dqn:w.db", 2).1.contains("w.db cannot be used: this is no network"));
    assert!(what_if("dqn:nowhere", 2).1.contains("\"dqn:nowhere\": nowhere cannot be read: "));
}

/// On a processor without AVX2, the same command must give the same hashes of states, decisions, signals and results.
#[cfg(target_arch = "x86_64")]
fn check_on_baseline(folder: &Path, verify: &[&str], verified: &str) {
    let devices = texts(&on_baseline(folder, &["devices"]), 0).0;
    assert!(devices.contains("Instructions: baseline"), "{devices}");
    assert_eq!(texts(&on_baseline(folder, verify), 0).0, verified);
}

#[cfg(not(target_arch = "x86_64"))]
fn check_on_baseline(_: &Path, _: &[&str], _: &str) {
    println!("another instruction set is tried on x86-64 alone");
}

/// The configuration names shadow policies. The journal has their answers, which are also shown in words, and another
/// process verifies them.
#[test]
fn what_policies_in_the_shadow_say_is_in_the_journal() {
    let folder = folder();
    let folder = folder.path();
    let network = network();
    std::fs::write(folder.join("network.bin"), network.to_bytes()).expect("a file");
    let feed = [&["feed", "synth", "--symbols", "10", "--ticks", "10000"][..], &LOG].concat();
    texts(&warptape(folder, &feed), 0);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let policies = format!("earliest-deadline,dqn:{}", &network.hash()[..8]);
    let shadow = [("WARPTAPE__RISK__SHADOW", &*policies), ("WARPTAPE__RISK__SHADOW_EVERY", "1")];
    let settings = [&[LANES, NETWORKS][..], &shadow].concat();
    let mut run = Running::start_with(folder, &[&["run"][..], &LOG].concat(), &settings);
    run_until_drained(&mut run, &log, "warptape");
    price(folder, "one");
    run.stop("TERM");

    let journal = records(&log, "journal", 0);
    let entries = journal.iter().map(|record| decode_journal_entry(&record.value).expect("an entry"));
    let mut asked = [0; 2];
    for decision in entries.flat_map(|entry| entry.decisions) {
        if let Decision::Shadow(shadow) = decision {
            asked[shadow.policy as usize] += 1;
            assert_eq!(shadow.lane_instead.is_some(), shadow.policy == 1, "{shadow:?}");
        }
    }
    assert!(asked[0] >= 1 && asked[1] == 1, "{asked:?}");
    let told = ["tail", "journal", "--from-beginning", "--exit-at-end"];
    let told = texts(&warptape(folder, &[&told[..], &LOG].concat()), 0).0;
    assert!(told.contains("policy 1 of risk.shadow would send task 0 to the queue of lane "), "{told}");
    // Only the run needs the network file; the verification does not.
    std::fs::remove_file(folder.join("network.bin")).expect("it is there");
    let verify = [&["replay", "verify", "--outputs"][..], &LOG].concat();
    let verified = texts(&warptape_with(folder, &verify, &settings), 0).0;
    assert!(verified.contains("identical"), "{verified}");
    let check = |shadow: &str| {
        let settings = [LANES, ("WARPTAPE__RISK__SHADOW", shadow)];
        texts(&warptape_with(folder, &["config", "check"], &settings), 1).0
    };
    assert!(check("linucb").contains("except `linucb`, which learns only from its own decisions"));
    assert!(check("fair,fair").contains("each policy is asked once"));
    assert!(check("dqn:01234567").contains("the hash of exactly one network of risk.networks, which are []"));
}

#[test]
fn networks_that_cannot_be_used_are_named() {
    let folder = folder();
    let folder = folder.path();
    let check = |environment: &[(&str, &str)]| {
        texts(&warptape_with(folder, &["config", "check"], &[&[LANES], environment].concat()), 1).0
    };
    assert!(check(&[NETWORKS]).contains("network.bin cannot be read: "));
    std::fs::write(folder.join("network.bin"), b"no earlier decision on the same subject").expect("a file");
    assert!(check(&[NETWORKS]).contains("network.bin cannot be used: "));
    let network = network();
    std::fs::write(folder.join("network.bin"), network.to_bytes()).expect("a file");
    let other = check(&[NETWORKS, ("WARPTAPE__RISK__POLICY", "dqn:00000000")]);
    assert!(other.contains(&format!("of risk.networks, which are [dqn:{}]", network.hash())), "{other}");
    let short = check(&[NETWORKS, ("WARPTAPE__RISK__POLICY", "dqn:0")]);
    assert!(short.contains("the first eight or more digits of the hash"), "{short}");
    let twice = check(&[("WARPTAPE__RISK__NETWORKS", "network.bin,network.bin")]);
    assert!(twice.contains("network.bin is listed twice"), "{twice}");
}
