//! Checkpoints from outside: what is read back is the state, and nothing else is taken for one.

use warptape_events::journal::*;
use warptape_scheduler::{CheckpointError, Scheduler};

use crate::script::{assigned, config, started};

fn running() -> Scheduler {
    let mut scheduler = Scheduler::new();
    let arrived =
        Arrived { partition: 0, next_offset: 5, groups: vec![GroupArrival { group: 1, rows: 5, bytes: 50 }] };
    for input in [started(config(), &[1, 1]), assigned(0, 4), Input::Arrived(arrived)] {
        scheduler.step(1, &input, &mut Vec::new()).expect("good input");
    }
    scheduler
}

#[test]
fn a_state_is_read_back_whole() {
    for scheduler in [Scheduler::new(), running()] {
        let bytes = scheduler.checkpoint();
        let read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
        read.audit();
        assert_eq!((read.state_hash(), read.checkpoint()), (scheduler.state_hash(), bytes));
    }
}

/// The bytes of today: where they change, so does what the version of the state says, and the number below.
#[test]
fn the_bytes_of_a_version_never_change() {
    let bytes = running().checkpoint();
    assert_eq!(
        (bytes[0], bytes.len(), xxhash_rust::xxh3::xxh3_64(&bytes)),
        (1, 695, 11_500_981_613_835_590_032)
    );
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = running().checkpoint();
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
        if let Ok(scheduler) = Scheduler::from_checkpoint(&changed) {
            assert_eq!(scheduler.state_hash(), running().state_hash(), "byte {at}");
        }
    }
}
