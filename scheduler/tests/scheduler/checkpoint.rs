//! Checkpoints from outside: what is read back is the state, and nothing else is taken for one.

use warptape_events::journal::*;
use warptape_scheduler::{CheckpointError, RULES, Scheduler};

use crate::learned::{network, trained};
use crate::script::{assigned, config, started_by, task};

/// States of the simulation in the middle of a run, as the software before version 2 wrote them: a line of hex digits each.
const OF_VERSION_1: &str = include_str!("../fixtures/checkpoint_1.txt");

/// A scheduler that knows a network, so that its checkpoint is of version 2.
fn learnt() -> Scheduler {
    let mut scheduler = running();
    scheduler.step(2, &trained(&network(1)), &mut Vec::new()).expect("good input");
    scheduler
}

/// One that judges how many lanes are wanted and asks policies in the shadow, so that its checkpoint is of version 3.
fn watched() -> Scheduler {
    let Input::Started(started) = started_by(1, config(), &[1, 1]) else { panic!("a start") };
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

fn from_hex(line: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("hex digits");
    (0..line.len()).step_by(2).map(byte).collect()
}

/// A scheduler that decides by the first rules and knows nothing, so that its checkpoint is of version 1.
fn running() -> Scheduler {
    running_by(1)
}

/// Likewise by those that came next, of version 4.
fn ruled() -> Scheduler {
    running_by(2)
}

/// One with a slice that a critical task has passed, so that its checkpoint is of version 5.
fn passed() -> Scheduler {
    let mut scheduler = running_by(RULES);
    for (number, class) in [TaskClass::Batch, TaskClass::Batch, TaskClass::Critical].into_iter().enumerate() {
        let arrived = TaskArrived { class, ..task(number as i64) };
        scheduler.step(1, &Input::TaskArrived(arrived), &mut Vec::new()).expect("good input");
    }
    scheduler
}

fn running_by(rules: i32) -> Scheduler {
    let mut scheduler = Scheduler::new();
    let arrived =
        Arrived { partition: 0, next_offset: 5, groups: vec![GroupArrival { group: 1, rows: 5, bytes: 50 }] };
    for input in [started_by(rules, config(), &[1, 1]), assigned(0, 4), Input::Arrived(arrived)] {
        scheduler.step(1, &input, &mut Vec::new()).expect("good input");
    }
    scheduler
}

#[test]
fn a_state_is_read_back_whole() {
    for (scheduler, version) in
        [(Scheduler::new(), 1), (running(), 1), (learnt(), 2), (watched(), 3), (ruled(), 4), (passed(), 5)]
    {
        let bytes = scheduler.checkpoint();
        assert_eq!(bytes[0], version);
        let read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
        read.audit();
        assert_eq!((read.state_hash(), read.checkpoint()), (scheduler.state_hash(), bytes));
    }
}

/// A state of version 1 is read, is written again with the same bytes, and goes on as it did then.
#[test]
fn states_of_version_1_are_read_for_ever() {
    let lines: Vec<_> = OF_VERSION_1.lines().map(from_hex).collect();
    let found: Vec<_> = lines
        .iter()
        .map(|bytes| {
            let mut read = Scheduler::from_checkpoint(bytes).expect("a state of version 1");
            assert_eq!((read.checkpoint(), bytes[0]), (bytes.clone(), 1));
            let before = read.state_hash();
            let (at_ns, mut decisions) = (1 << 61, Vec::new());
            read.step(at_ns, &Input::Woke(Woke {}), &mut decisions).expect("good input");
            read.audit();
            (before, decisions.len(), read.state_hash())
        })
        .collect();
    let then = [
        (7_493_890_538_813_370_099, 2, 10_252_475_508_797_763_260),
        (4_722_712_156_894_552_114, 1, 14_115_700_185_868_632_050),
        (6_805_656_472_967_509_822, 0, 156_141_418_194_325_259),
        (12_955_585_078_969_540_904, 1, 13_489_309_537_508_645_993),
    ];
    assert_eq!(found, then);
}

/// The bytes of today: where they change, so does what the version of the state says, and the number below.
#[test]
fn the_bytes_of_a_version_never_change() {
    let found = [running(), learnt(), watched(), ruled(), passed()].map(|scheduler| {
        let bytes = scheduler.checkpoint();
        (bytes[0], bytes.len(), xxhash_rust::xxh3::xxh3_64(&bytes))
    });
    let then = [
        (1, 695, 11_500_981_613_835_590_032),
        (2, 1_223, 1_017_234_736_380_615_443),
        (3, 1_022, 14_999_119_606_866_223_878),
        (4, 700, 16_142_030_762_475_595_500),
        (5, 909, 1_656_402_610_380_127_866),
    ];
    assert_eq!(found, then);
}

#[test]
fn what_is_learnt_is_in_the_state_and_its_hash() {
    let (plain, learnt) = (running(), learnt());
    let (plain_bytes, learnt_bytes) = (plain.checkpoint(), learnt.checkpoint());
    assert_ne!(plain.state_hash(), learnt.state_hash());
    // A version that does not fit its bytes is a mistake: one says that there is more, the other that there is less.
    let changed = |bytes: &[u8], version| Scheduler::from_checkpoint(&[&[version], &bytes[1..]].concat());
    assert!(matches!(changed(&learnt_bytes, 1), Err(CheckpointError::Damaged(_))));
    assert!(matches!(changed(&plain_bytes, 2), Err(CheckpointError::Damaged(_))));
    let nothing = Scheduler::from_checkpoint(&[&[2], &plain_bytes[1..], &[0, 0]].concat());
    let words =
        |before| CheckpointError::Damaged(format!("it says nothing that version {before} does not say"));
    assert_eq!(nothing.unwrap_err(), words(1));
    let nothing_later = Scheduler::from_checkpoint(&[&[3], &learnt_bytes[1..], &[0, 0]].concat());
    assert_eq!(nothing_later.unwrap_err(), words(2));
    let first_rules = Scheduler::from_checkpoint(&[&[4], &watched().checkpoint()[1..], &[2]].concat());
    assert_eq!(first_rules.unwrap_err(), words(3));
    assert_ne!(ruled().state_hash(), plain.state_hash());
    let before_the_start = Scheduler::from_checkpoint(&[2, 0, 0]);
    assert!(matches!(before_the_start, Err(CheckpointError::Damaged(_))));
}

#[test]
fn damaged_bytes_are_refused() {
    for scheduler in [running(), learnt(), watched(), ruled(), passed()] {
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
    // A changed byte is refused, or it is none of those that anything follows from.
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
    for rules in [0, RULES + 1] {
        let refused = Scheduler::new().step(0, &started_by(rules, config(), &[1]), &mut Vec::new());
        let words = refused.expect_err("nobody knows them").to_string();
        assert!(words.contains(&format!("rules is {rules}; it must be from 1 to {RULES}")), "{words}");
    }
}
