//! Partitions that were processed under another stage configuration.

use warptape_engine::CoreError;
use warptape_schemas::{Snapshot, decode_snapshot};

use super::*;

/// Partitions, one of which was processed up to this offset under another configuration, and one has nothing.
const PROCESSED: i64 = 7;

/// A core that is given the partitions, and what came of that.
fn assigned(is_allowed: bool) -> (Core, EngineConfig, Result<(), CoreError>) {
    let sources = Sources { cores: 1, ..Sources::default() };
    let mut config = load(&sources).expect("the defaults are good").0.engine_config(None);
    config.core.new_segment = is_allowed;
    config.core.times.commit_interval_ns = 0;
    let positions = JournalPositions::beginning();
    let mut core =
        Core::new(config.core.clone(), Box::new(TickDecoder::new()), None, positions).expect("a new journal");
    core.begin(0).expect(TOLD);
    let of = |partition, committed| Assigned { partition, committed, ..Assigned::default() };
    core.on_assigned(0, vec![of(0, Some(PROCESSED)), of(1, None)]).expect("states are asked for");
    let mut former = config.core.stages.clone();
    former.allowed_lateness_ns += 1;
    let mut result = Ok(());
    for command in core.take_commands() {
        let Command::Restore { number, sealed_offset, .. } = command else { continue };
        let segment = (sealed_offset > 0).then(|| former.to_json());
        let beginning = Restored::beginning(&config.core.stages, Isa::Baseline);
        result = core.on_restored(0, number, Restored { segment, ..beginning });
    }
    (core, config, result)
}

#[test]
fn another_segment_is_refused_unless_it_is_asked_for() {
    let (mut core, _, result) = assigned(false);
    let error = result.expect_err("nobody asked for it");
    assert!(matches!(error, CoreError::OtherSegment { partitions: 1, records: PROCESSED, .. }), "{error}");
    let owns = |command: &Command| matches!(command, Command::Own { .. } | Command::Seek { .. });
    assert!(!core.take_commands().iter().any(owns), "no partition is taken over");
}

/// So that the next start does not ask again.
#[test]
fn a_segment_begins_in_partitions_without_ticks_too() {
    let (mut core, config, result) = assigned(true);
    result.expect("it was asked for");
    let commands = core.take_commands();
    let told =
        |command: &Command| matches!(command, Command::NewSegment { partitions: 1, records: PROCESSED, .. });
    assert!(commands.iter().any(told));
    core.on_time(1).expect(TOLD);
    let commit = core.take_commands().into_iter().find_map(|command| match command {
        Command::Commit(request) => Some(request),
        _ => None,
    });
    let commit = commit.expect("the journal's first entries");
    for sealed in &commit.sealed {
        let [(_, record)] = &sealed.snapshots[..] else { panic!("partition {}", sealed.partition) };
        let segment = decode_snapshot(record).expect("it is whole");
        assert_eq!((segment.group, segment.partition), (Snapshot::SEGMENT, sealed.partition));
        assert_eq!(segment.state, config.core.stages.to_json().into_bytes());
    }
    assert_eq!(commit.sealed.len(), 2);
    assert!(commit.offsets.is_empty(), "nothing was read");
}
