//! Partitions that were processed with another stage configuration.

use warptape_schemas::{Snapshot, decode_snapshot};

use super::*;

/// Processed offset of one partition, under another configuration; the other partition has no ticks.
const PROCESSED: i64 = 7;

/// Returns a core that was assigned the partitions, and the result.
fn assigned(is_allowed: bool) -> (Core, Collected, EngineConfig, Result<(), CoreError>) {
    let sources = Sources { cores: 1, ..Sources::default() };
    let mut config = load(&sources).expect("the defaults are good").0.engine_config(None);
    config.core.new_segment = is_allowed;
    config.core.times.commit_interval_ns = 0;
    let positions = JournalPositions::beginning();
    let mut core =
        Core::new(config.core.clone(), Box::new(TickDecoder::new()), None, positions).expect("a new journal");
    let mut outside = Collected::default();
    tell(&mut core, &mut outside, Event::Begun).expect(TOLD);
    let of = |partition, committed| Assigned { partition, committed, ..Assigned::default() };
    let assigned = Event::Assigned(vec![of(0, Some(PROCESSED)), of(1, None)]);
    tell(&mut core, &mut outside, assigned).expect("states are asked for");
    let mut former = config.core.stages.clone();
    former.allowed_lateness_ns += 1;
    let mut result = Ok(());
    for command in take(&mut outside.commands) {
        let Command::Restore { number, sealed_offset, .. } = command else { continue };
        let segment = (sealed_offset > 0).then(|| former.to_json());
        let beginning = Restored::beginning(&config.core.stages, Isa::Baseline);
        let restored = Box::new(Restored { segment, ..beginning });
        result = tell(&mut core, &mut outside, Event::Restored { number, restored });
    }
    (core, outside, config, result)
}

#[test]
fn another_segment_is_refused_unless_it_is_asked_for() {
    let (mut core, mut outside, _, result) = assigned(false);
    let error = result.expect_err("nobody asked for it");
    assert!(matches!(error, CoreError::OtherSegment { partitions: 1, records: PROCESSED, .. }), "{error}");
    let owns = |command: &Command| matches!(command, Command::Own { .. } | Command::Seek { .. });
    outside.commands.extend(std::iter::from_fn(|| core.poll()));
    assert!(!outside.commands.iter().any(owns), "no partition is taken over");
}

/// Without the segment in these partitions, the next start would ask again.
#[test]
fn a_segment_begins_in_partitions_without_ticks_too() {
    let (mut core, mut outside, config, result) = assigned(true);
    result.expect("it was asked for");
    let commands = take(&mut outside.commands);
    let told =
        |command: &Command| matches!(command, Command::NewSegment { partitions: 1, records: PROCESSED, .. });
    assert!(commands.iter().any(told));
    outside.now_ns = 1;
    settle(&mut core, &mut outside).expect(TOLD);
    let commit = outside.commands.into_iter().find_map(|command| match command {
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
