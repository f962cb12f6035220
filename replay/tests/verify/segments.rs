//! Verifies logs whose stage configuration changed.

use crate::recording::{Plan, options, record};
use crate::{records, verified};

#[test]
fn each_segment_is_verified_under_its_own_configuration() {
    for lateness_ms in [&[500, 100][..], &[500, 100, 500], &[500, 500, 2_000]] {
        let recording = record(Plan { lives: 3, lateness_ms, ..Plan::small(30) });
        let report = verified(&recording.log, &options()).unwrap();
        assert!(report.is_identical(), "{lateness_ms:?}: {report}");
        let outputs = report.outputs.unwrap();
        let count = |topic: &str| -> u64 {
            (0..2).map(|partition| records(&recording.log, topic, partition).len() as u64).sum()
        };
        assert_eq!((outputs.signals, outputs.late), (count("signals"), count("late")));
        assert_eq!(outputs.tick_records, count("ticks"));
        let text = report.to_string();
        assert!(
            text.contains("note: another stage configuration (allowed_lateness_ns: 500000000 to"),
            "{text}"
        );
        assert!(
            text.contains("from ticks/0 offset 12, ticks/1 offset 12 on") || lateness_ms[1] == 500,
            "{text}"
        );
    }
}

#[test]
fn a_segment_without_ticks_is_none() {
    for before in [0, 1] {
        let recording = record(Plan { idle: Some((before, 100)), ..Plan::small(31) });
        let report = verified(&recording.log, &options()).unwrap();
        assert!(report.is_identical() && report.notes.is_empty(), "{report}");
        assert_eq!(report.processes, 3);
    }
}
