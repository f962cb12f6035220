//! The segments of a log: the parts of each partition that were processed with the same stage configuration.
//!
//! A process that gets a partition continues at the group's offset, with the state that its own configuration yields
//! from the partition's beginning. So a segment begins at the offset of an assignment, and its rerun folds all earlier
//! ticks first. A segment without commits does not count.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry};
use warptape_stages::StageConfig;

use crate::ReplayError;
use crate::difference::{Difference, differences, joined, shown};

/// Index of a stage configuration among those of a log.
pub(crate) type ConfigId = usize;

/// The configurations and assignments in a journal.
#[derive(Default)]
pub(crate) struct Segments {
    /// Each distinct configuration, with the sequence of its first start.
    configs: Vec<(i64, String)>,
    /// Beginnings by partition of the source, in the order of the journals.
    begins: BTreeMap<i32, Vec<Begin>>,
    /// The configuration of the process life being read.
    config: ConfigId,
    /// Time of the newest entry read in the current journal.
    at_ns: i64,
    /// Partitions whose beginning in the current process life is known.
    begun: BTreeSet<i32>,
}

/// An assignment of a partition.
#[derive(Clone, Copy)]
struct Begin {
    at_ns: i64,
    offset: i64,
    config: ConfigId,
    fold: Fold,
}

/// The records on which the state of an assigned partition depends.
#[derive(Clone, Copy)]
enum Fold {
    /// All records from this one on.
    From(i64),
    /// The records on which a snapshot depends.
    Snapshot,
}

/// The offsets `from..to` of a partition, processed with one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) config: ConfigId,
    /// First record that the state includes: earlier ones had been removed when it began.
    pub(crate) fold: i64,
}

impl Segments {
    /// Begins another partition of the journal.
    pub(crate) fn begin(&mut self) {
        self.at_ns = i64::MIN;
        self.begun.clear();
    }

    /// Adds the next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        self.at_ns = self.at_ns.max(entry.at_ns);
        match &entry.input {
            Input::Started(started) => {
                self.learn(entry.sequence, &started.stage_config);
                self.begun.clear();
            }
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) => {
                self.learn(entry.sequence, &started.stage_config);
            }
            Input::PartitionAssigned(assigned) => {
                let fold = match assigned.snapshot_offset {
                    first if assigned.is_emptied => Fold::From(first),
                    0 => Fold::From(0),
                    _ => Fold::Snapshot,
                };
                self.begin_with(assigned.partition, assigned.committed_offset, fold);
            }
            // If a journal has lost its beginning, the assignment may precede its first remaining entry.
            Input::Sealed(sealed) => {
                for account in &sealed.partitions {
                    if !self.begun.contains(&account.partition) {
                        self.begin_with(account.partition, account.first_offset, Fold::Snapshot);
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that the current process life has a partition from this offset on.
    fn begin_with(&mut self, partition: i32, offset: i64, fold: Fold) {
        let (at_ns, config) = (self.at_ns, self.config);
        self.begins.entry(partition).or_default().push(Begin { at_ns, offset, config, fold });
        self.begun.insert(partition);
    }

    /// Sets the configuration of the current process life.
    fn learn(&mut self, sequence: i64, config: &str) {
        let known = self.configs.iter().position(|(_, known)| is_same(known, config));
        self.config = known.unwrap_or_else(|| {
            self.configs.push((sequence, config.to_owned()));
            self.configs.len() - 1
        });
    }

    /// Drops the assignments, for callers that keep the ones they need.
    pub(crate) fn forget(&mut self) {
        self.begins.clear();
    }

    /// True if no configuration is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.configs.is_empty()
    }

    /// True if a process of the journal had this configuration.
    pub(crate) fn knows(&self, config: &str) -> bool {
        self.configs.iter().any(|(_, known)| is_same(known, config))
    }

    /// Ids of all configurations.
    pub(crate) fn all(&self) -> std::ops::Range<ConfigId> {
        0..self.configs.len()
    }

    /// Returns the configuration of the process life being read.
    pub(crate) fn current(&self) -> ConfigId {
        self.config
    }

    /// Returns the segments of a partition. Offsets before `end` are committed.
    pub(crate) fn of(&self, partition: i32, end: i64) -> Vec<Segment> {
        let mut begins = self.begins.get(&partition).cloned().unwrap_or_default();
        begins.sort_by_key(|begin| begin.at_ns);
        let mut segments: Vec<Segment> = Vec::new();
        // A snapshot belongs to the last fold with its configuration.
        let mut folds: BTreeMap<ConfigId, i64> = BTreeMap::new();
        for Begin { offset, config, fold, .. } in begins {
            let fold = match fold {
                Fold::From(first) => first,
                Fold::Snapshot => folds.get(&config).copied().unwrap_or(0),
            };
            folds.insert(config, fold);
            // A segment at or after the new beginning was never committed.
            while segments.pop_if(|last| last.from >= offset).is_some() {}
            if segments.last().is_none_or(|last| (last.config, last.fold) != (config, fold)) {
                // The partition may have been assigned by older entries, which were removed.
                let from = if segments.is_empty() { 0 } else { offset };
                segments.push(Segment { from, to: end, config, fold });
            }
        }
        if segments.is_empty() {
            segments.push(Segment { from: 0, to: end, config: 0, fold: 0 });
        }
        segments.retain(|segment| segment.from < end);
        for index in 1..segments.len() {
            segments[index - 1].to = segments[index].from;
        }
        segments
    }

    /// Returns a stage configuration of the log.
    ///
    /// # Panics
    /// If the journal has no such configuration, for example because it has no entries.
    pub(crate) fn config(&self, config: ConfigId) -> Result<StageConfig, ReplayError> {
        // The scheduler refuses all other inputs before the first start.
        let (sequence, text) =
            self.configs.get(config).expect("an identical journal begins with a process start");
        parse(*sequence, text)
    }

    /// Describes the differences between two configurations.
    pub(crate) fn change(&self, from: ConfigId, to: ConfigId) -> String {
        let changes = stage_config_changes(&self.configs[from].1, &self.configs[to].1);
        let told = changes.iter().map(|change| {
            let StageConfigChange { field, before, after } = change;
            format!("{field}: {before} to {after}")
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// A changed field of a stage configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageConfigChange {
    /// Path of the field.
    pub field: String,
    /// Old value.
    pub before: String,
    /// New value.
    pub after: String,
}

/// Returns the differences between two stage configurations, both in the form of the journal.
pub fn stage_config_changes(from: &str, to: &str) -> Vec<StageConfigChange> {
    let as_value = |text: &str| serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()));
    let one = |Difference { field, expected, found }: Difference| StageConfigChange {
        field,
        before: shown(expected.as_ref()),
        after: shown(found.as_ref()),
    };
    changes("", Some(&as_value(from)), Some(&as_value(to))).into_iter().map(one).collect()
}

/// Compares fields. A version may add fields, or omit fields at their default. Such a field is listed by itself, with
/// its nested fields.
fn changes(field: &str, before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let of_name = |name: &String| changes(&joined(field, name), before.get(name), after.get(name));
            names.into_iter().flat_map(of_name).collect()
        }
        (Some(before), Some(after)) => differences(field, before, after),
        (before, after) => {
            vec![Difference { field: field.to_owned(), expected: before.cloned(), found: after.cloned() }]
        }
    }
}

/// Parses the stage configuration in the entry with a sequence.
pub(crate) fn parse(sequence: i64, text: &str) -> Result<StageConfig, ReplayError> {
    let unusable = |mistake: String| ReplayError::StageConfig { sequence, mistake };
    let config = StageConfig::from_json(text).map_err(|error| unusable(error.to_string()))?;
    match config.check().as_slice() {
        [] => Ok(config),
        mistakes => {
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            Err(unusable(mistakes.join("; ")))
        }
    }
}

/// True if two texts mean the same configuration, which a later version may write in another form.
pub(crate) fn is_same(first: &str, other: &str) -> bool {
    first == other
        || matches!((StageConfig::from_json(first), StageConfig::from_json(other)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(begins: &[(i64, i64, ConfigId)], end: i64, expected: &[(i64, i64, ConfigId)]) {
        let begin = |&(at_ns, offset, config)| Begin { at_ns, offset, config, fold: Fold::From(0) };
        let begins = BTreeMap::from([(3, begins.iter().map(begin).collect())]);
        let segments = Segments { begins, ..Segments::default() };
        let found = segments.of(3, end).into_iter();
        let found = found.map(|Segment { from, to, config, .. }| (from, to, config));
        assert_eq!(found.collect::<Vec<_>>(), expected, "up to {end}");
    }

    #[test]
    fn a_segment_begins_where_a_process_with_another_configuration_went_on() {
        check(&[], 7, &[(0, 7, 0)]);
        check(&[(1, 0, 0), (2, 5, 0)], 9, &[(0, 9, 0)]);
        check(&[(1, 0, 0), (2, 5, 1), (3, 8, 0)], 9, &[(0, 5, 0), (5, 8, 1), (8, 9, 0)]);
        // The order is by time, not by journal.
        check(&[(1, 0, 0), (3, 8, 0), (2, 5, 1)], 9, &[(0, 5, 0), (5, 8, 1), (8, 9, 0)]);
    }

    #[test]
    fn a_state_that_begins_behind_removed_ticks_begins_a_segment() {
        let of = |at_ns, offset, config, fold| Begin { at_ns, offset, config, fold };
        let begins = vec![
            of(1, 0, 0, Fold::From(0)),
            of(2, 5, 0, Fold::Snapshot),
            of(3, 7, 0, Fold::From(6)),
            of(4, 8, 0, Fold::Snapshot),
            of(5, 9, 1, Fold::From(6)),
        ];
        let segments = Segments { begins: BTreeMap::from([(3, begins)]), ..Segments::default() };
        let found = segments.of(3, 12).into_iter().map(|of| (of.from, of.to, of.config, of.fold));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 7, 0, 0), (7, 9, 0, 6), (9, 12, 1, 6)]);
    }

    #[test]
    fn a_segment_without_ticks_is_none() {
        check(&[(1, 0, 0), (2, 5, 1), (3, 5, 0)], 9, &[(0, 9, 0)]);
        check(&[(1, 0, 1), (2, 0, 0)], 9, &[(0, 9, 0)]);
        check(&[(1, 0, 0), (2, 9, 1)], 9, &[(0, 9, 0)]);
        check(&[(1, 0, 0)], 0, &[]);
    }

    #[test]
    fn a_field_that_was_not_there_yet_is_told_alone() {
        let changes = stage_config_changes(
            r#"{"bars": ["1s"], "signals": {"rsi": 30}, "future_max_ns": 5}"#,
            r#"{"bars": ["1s"], "signals": {"rsi": 40}, "clock_skew_max_ns": 7}"#,
        );
        let told = changes
            .iter()
            .map(|StageConfigChange { field, before, after }| format!("{field}: {before} to {after}"));
        let expected =
            ["clock_skew_max_ns: nothing to 7", "future_max_ns: 5 to nothing", "signals.rsi: 30 to 40"];
        assert!(told.eq(expected), "{changes:?}");
    }

    #[test]
    fn what_was_never_committed_is_forgotten() {
        // A lane was lost. Its partition was restored to a commit that was then lost with the process.
        check(&[(1, 0, 0), (2, 8, 0), (3, 5, 1)], 9, &[(0, 5, 0), (5, 9, 1)]);
        // The earlier entries were removed.
        check(&[(2, 4, 1), (3, 6, 0)], 9, &[(0, 6, 1), (6, 9, 0)]);
    }
}
