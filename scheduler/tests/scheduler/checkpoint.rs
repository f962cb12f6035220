//! Checkpoints from outside: reading them restores the state, and invalid bytes are refused.

use warptape_events::journal::*;
use warptape_scheduler::{CheckpointError, RULES, Scheduler};

use crate::learned::{network, trained};
use crate::script::{FIRST_RULES, assigned, config, started_by, task};

/// A scheduler with a network.
fn learnt() -> Scheduler {
    let mut scheduler = running();
    scheduler.step(2, &trained(&network(1)), &mut Vec::new()).expect("good input");
    scheduler
}

/// A scheduler with autoscaling and shadow policies.
fn watched() -> Scheduler {
    let Input::Started(started) = started_by(FIRST_RULES, config(), &[1, 1]) else { panic!("a start") };
    let autoscale = Some(AutoscaleConfig::default());
    let shadow = Some(ShadowConfig { policies: vec!["round-robin".into(), "fair".into()], every: 1 });
    let mut scheduler = Scheduler::new();
    let window_ns = AutoscaleConfig::default().window_ns;
    let inputs = [
        (window_ns, Input::Started(Box::new(Started { autoscale, shadow, ..*started }))),
        (window_ns, assigned(0, 4)),
        (window_ns + 1, Input::TaskArrived(task(0))),
        (3 * window_ns, Input::TaskArrived(task(1))),
    ];
    for (at_ns, input) in inputs {
        scheduler.step(at_ns, &input, &mut Vec::new()).expect("good input");
    }
    scheduler
}

/// A scheduler in which a critical task has passed a slice, so that its checkpoint is of version 5.
fn passed() -> Scheduler {
    let mut scheduler = running();
    for (number, class) in [TaskClass::Batch, TaskClass::Batch, TaskClass::Critical].into_iter().enumerate() {
        let arrived = TaskArrived { class, ..task(number as i64) };
        scheduler.step(1, &Input::TaskArrived(arrived), &mut Vec::new()).expect("good input");
    }
    scheduler
}

/// A scheduler without newer features, so that its checkpoint is of version 4.
fn running() -> Scheduler {
    let mut scheduler = Scheduler::new();
    let arrived =
        Arrived { partition: 0, next_offset: 5, groups: vec![GroupArrival { group: 1, rows: 5, bytes: 50 }] };
    for input in [started_by(FIRST_RULES, config(), &[1, 1]), assigned(0, 4), Input::Arrived(arrived)] {
        scheduler.step(1, &input, &mut Vec::new()).expect("good input");
    }
    scheduler
}

#[test]
fn a_state_is_read_back_whole() {
    for (scheduler, version) in
        [(Scheduler::new(), 4), (running(), 4), (learnt(), 4), (watched(), 4), (passed(), 5)]
    {
        let bytes = scheduler.checkpoint();
        assert_eq!(bytes[0], version);
        let read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
        read.audit();
        assert_eq!((read.state_hash(), read.checkpoint()), (scheduler.state_hash(), bytes));
    }
}

/// Pins the present bytes. If they change, the version must change as well, and with it the number below.
#[test]
fn the_bytes_of_a_version_never_change() {
    let found = [running(), learnt(), watched(), passed()].map(|scheduler| {
        let bytes = scheduler.checkpoint();
        (bytes[0], bytes.len(), xxhash_rust::xxh3::xxh3_64(&bytes))
    });
    let then = [
        (4, 700, 9_494_746_913_392_265_210),
        (4, 1_226, 10_687_487_311_664_343_963),
        (4, 1_023, 17_966_863_102_151_416_710),
        (5, 909, 1_656_402_610_380_127_866),
    ];
    assert_eq!(found, then);
}

#[test]
fn what_is_learnt_is_in_the_state_and_its_hash() {
    let (plain, learnt) = (running(), learnt());
    let (plain_bytes, learnt_bytes) = (plain.checkpoint(), learnt.checkpoint());
    assert_ne!(plain.state_hash(), learnt.state_hash());
    // A version byte that does not match the bytes is refused: one version needs more bytes, the other fewer.
    let changed = |bytes: &[u8], version| Scheduler::from_checkpoint(&[&[version], &bytes[1..]].concat());
    assert!(matches!(changed(&passed().checkpoint(), 4), Err(CheckpointError::Damaged(_))));
    assert!(matches!(changed(&plain_bytes, 5), Err(CheckpointError::Damaged(_))));
    let nothing = Scheduler::from_checkpoint(&[&[5], &learnt_bytes[1..], &[0, 0, 0]].concat());
    let words = "its contents need only version 4".to_owned();
    assert_eq!(nothing.unwrap_err(), CheckpointError::Damaged(words));
    // The checkpoint of a scheduler before its input `Started`, followed by learnt state.
    let mut before_the_start = Scheduler::new().checkpoint();
    before_the_start.truncate(2);
    before_the_start.extend(&learnt_bytes[plain_bytes.len() - 5..]);
    let before_the_start = Scheduler::from_checkpoint(&before_the_start);
    assert!(matches!(before_the_start, Err(CheckpointError::Damaged(_))));
    // These versions and rules are older than the first release.
    for version in 1..4 {
        assert_eq!(changed(&plain_bytes, version).unwrap_err(), CheckpointError::Version { found: version });
    }
}

#[test]
fn damaged_bytes_are_refused() {
    for scheduler in [running(), learnt(), watched(), passed()] {
        check_damaged(&scheduler);
    }
}

fn check_damaged(scheduler: &Scheduler) {
    let bytes = scheduler.checkpoint();
    let mut other = bytes.clone();
    other[0] = 200;
    assert_eq!(Scheduler::from_checkpoint(&other).unwrap_err(), CheckpointError::Version { found: 200 });
    for length in 0..bytes.len() {
        let cut = Scheduler::from_checkpoint(&bytes[..length]);
        assert!(matches!(cut, Err(CheckpointError::Damaged(_))), "{length} bytes of {}", bytes.len());
    }
    let longer = [bytes.clone(), vec![0]].concat();
    assert!(matches!(Scheduler::from_checkpoint(&longer), Err(CheckpointError::Damaged(_))));
    // A changed byte is refused, or does not change the state.
    for at in 1..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if let Ok(read) = Scheduler::from_checkpoint(&changed) {
            assert_eq!(read.state_hash(), scheduler.state_hash(), "byte {at}");
        }
    }
}

#[test]
fn rules_that_are_not_known_are_refused_by_their_number() {
    for rules in [0, 2, RULES + 1] {
        let refused = Scheduler::new().step(0, &started_by(rules, config(), &[1]), &mut Vec::new());
        let words = refused.expect_err("nobody knows them").to_string();
        assert!(words.contains(&format!("rules is {rules}; it must be from 3 to {RULES}")), "{words}");
    }
}
