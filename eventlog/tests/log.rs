//! The embedded log from outside: what every log must do, and what this one promises beyond it.

use warptape_eventlog::{Durability, SqliteLog, conformance};

#[test]
fn conformance_of_the_embedded_log() {
    for (name, check) in conformance::CHECKS {
        for durability in [Durability::Process, Durability::Full] {
            println!("{name}, {durability:?}");
            let directory = tempfile::tempdir().unwrap();
            check(&SqliteLog::open(directory.path().join("log.db"), durability).unwrap());
        }
    }
}

#[test]
fn all_conformance_checks_share_one_log() {
    let directory = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(directory.path().join("log.db"), Durability::Process).unwrap();
    for (name, check) in conformance::CHECKS {
        println!("{name}");
        check(&log);
    }
}
