//! The place where two journals diverge: the first different input, or the first different decision on the same input.

use serde::Serialize;
use serde_json::Value;
use warptape_schemas::journal::{Decision, Input, JournalEntry};

use super::side::configuration;
use super::{DiffSide, Unlike, unlike};
use crate::ReplayError;
use crate::entries::{Entries, EntryReader};

/// Fields with measurements of a decision, in addition to all fields whose name ends with `_ns`.
const MEASURED: [&str; 6] =
    ["telemetry", "sample", "service_ps_per_row", "service_fs_per_cost", "points", "measured"];

/// The common beginning of two journals.
#[derive(Clone, Debug, Serialize)]
pub struct Parted {
    /// Partition of the journals: the ordinal of the process.
    pub journal: i32,
    /// Number of equal entries at the beginning, apart from times and measurements.
    pub alike: u64,
    /// The place where the journals diverge; `None` if one ends first, or both end together.
    pub at: Option<PartedAt>,
    /// Number of further entries of each journal after the end of the other, if the journals do not diverge.
    pub more: [u64; 2],
    /// Number of starts before that place whose configurations differ; these entries do not count as equal.
    pub starts_unlike: u64,
}

/// The place where two journals diverge.
#[derive(Clone, Debug, Serialize)]
pub struct PartedAt {
    /// True if the inputs are equal, and scheduler, policy or configuration decide differently; false if the inputs
    /// differ.
    pub by_decision: bool,
    /// Sequence of the entry in each journal.
    pub sequences: [i64; 2],
    /// Time of the entry in each journal, ns since the epoch.
    pub at_ns: [i64; 2],
    /// Kind of the input in each journal, such as `arrived`.
    pub inputs: [String; 2],
    /// The fields that differ.
    pub fields: Vec<Unlike>,
}

/// Compares the journals of all processes that both runs have. If a run is modelled, entries about transactions are
/// skipped, because it has none.
pub(super) fn parted(sides: [DiffSide<'_>; 2], is_modelled: bool) -> Result<Vec<Parted>, ReplayError> {
    let [a, b] = sides;
    let (first, second) = (open(a)?, open(b)?);
    let mut all = Vec::new();
    for one in &first {
        let Some(other) = second.iter().find(|other| other.partition() == one.partition()) else { continue };
        let read = |entries: &Entries<'_>| {
            Ok::<_, ReplayError>(Side { reader: entries.read(entries.range)?, is_modelled })
        };
        all.push(compare(one.partition(), read(one)?, read(other)?)?);
    }
    Ok(all)
}

fn open(side: DiffSide<'_>) -> Result<Vec<Entries<'_>>, ReplayError> {
    let all = Entries::open_all(side.log, &side.options.journal)?;
    match all.is_empty() {
        true => Err(ReplayError::EmptyJournal { url: side.log.url(), topic: side.options.journal.clone() }),
        false => Ok(all),
    }
}

/// The entries of one run that are compared.
struct Side {
    reader: EntryReader,
    is_modelled: bool,
}

impl Side {
    fn next(&mut self) -> Result<Option<JournalEntry>, ReplayError> {
        loop {
            match self.reader.next()? {
                Some((_, entry)) if self.is_modelled && is_of_transactions(&entry.input) => {}
                next => return Ok(next.map(|(_, entry)| entry)),
            }
        }
    }
}

/// True if an input leads to no decision, because it only reports that something was written or stored.
fn is_of_transactions(input: &Input) -> bool {
    matches!(input, Input::Sealed(_) | Input::CommitEnded(_) | Input::Checkpoint(_) | Input::Positions(_))
}

fn compare(journal: i32, mut a: Side, mut b: Side) -> Result<Parted, ReplayError> {
    let mut parted = Parted { journal, alike: 0, at: None, more: [0, 0], starts_unlike: 0 };
    loop {
        match (a.next()?, b.next()?) {
            (None, None) => return Ok(parted),
            (Some(one), Some(other)) => match part(&one, &other) {
                None if is_configured_alike(&one.input, &other.input) => parted.alike += 1,
                None => parted.starts_unlike += 1,
                at => return Ok(Parted { at, ..parted }),
            },
            (Some(_), None) => {
                parted.more[0] = 1 + count(&mut a)?;
                return Ok(parted);
            }
            (None, Some(_)) => {
                parted.more[1] = 1 + count(&mut b)?;
                return Ok(parted);
            }
        }
    }
}

fn count(reader: &mut Side) -> Result<u64, ReplayError> {
    let mut count = 0;
    while reader.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// False if two inputs start processes with different configurations.
fn is_configured_alike(a: &Input, b: &Input) -> bool {
    match (a, b) {
        (Input::Started(a), Input::Started(b)) => configuration(a) == configuration(b),
        _ => true,
    }
}

fn part(a: &JournalEntry, b: &JournalEntry) -> Option<PartedAt> {
    let inputs = [input(a), input(b)];
    let [one, other] = &inputs;
    let by_decision = one == other;
    let fields = match by_decision {
        true => unlike("decisions", &decisions(a), &decisions(b)),
        false => unlike("input", one, other),
    };
    if fields.is_empty() {
        return None;
    }
    Some(PartedAt {
        by_decision,
        sequences: [a.sequence, b.sequence],
        at_ns: [a.at_ns, b.at_ns],
        inputs: [kind(one), kind(other)],
        fields,
    })
}

/// Returns the kind of an input, as used in paths of fields.
fn kind(input: &Value) -> String {
    let name = input.as_object().and_then(|fields| fields.keys().next());
    name.map_or_else(String::new, |name| crate::difference::joined("", name))
}

/// Returns an input without times, measurements and the contents of the configuration.
fn input(entry: &JournalEntry) -> Value {
    let mut value = match &entry.input {
        Input::Started(_) => serde_json::json!({ "Started": {} }),
        Input::Checkpoint(one) => {
            serde_json::json!({ "Checkpoint": { "part": one.part, "parts": one.parts } })
        }
        input => serde_json::json!(input),
    };
    set_aside(&mut value);
    value
}

/// Returns decisions without times and measurements, and without decisions that have no effect. The latter depend on
/// whether shadow policies or autoscaling are configured, which is compared as configuration.
fn decisions(entry: &JournalEntry) -> Value {
    let follows = |decision: &&Decision| !matches!(decision, Decision::Shadow(_) | Decision::Scale(_));
    let decisions: Vec<&Decision> = entry.decisions.iter().filter(follows).collect();
    let mut value = serde_json::json!(decisions);
    set_aside(&mut value);
    value
}

/// Removes times and measurements.
fn set_aside(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("_ns") && !MEASURED.contains(&name.as_str()));
            fields.values_mut().for_each(set_aside);
        }
        Value::Array(items) => items.iter_mut().for_each(set_aside),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{Completed, Shadow, WakeAt, Woke};

    use super::*;

    fn entry(sequence: i64, input: Input, decisions: Vec<Decision>) -> JournalEntry {
        JournalEntry {
            sequence,
            at_ns: 1_000 * sequence,
            input,
            decisions,
            state_hash: Digits::zeros(),
            hash: Digits::zeros(),
        }
    }

    #[test]
    fn what_nothing_follows_from_parts_nothing() {
        let woken = || Decision::WakeAt(WakeAt { at_ns: 5 });
        let shadow = Decision::Shadow(Shadow {
            policy: 0,
            task: 1,
            lane: Some(0),
            lane_instead: Some(1),
            task_instead: None,
        });
        let plain = entry(3, Input::Woke(Woke {}), vec![woken()]);
        let beside = entry(3, Input::Woke(Woke {}), vec![shadow.clone(), woken()]);
        assert!(part(&plain, &beside).is_none());
        let at = part(&plain, &entry(3, Input::Woke(Woke {}), vec![shadow])).unwrap();
        assert!(at.by_decision, "{:?}", at.fields);
    }

    #[test]
    fn times_and_measurements_part_nothing() {
        let completed =
            |batch, service_ns| Input::Completed(Completed { lane: 1, batch, service_ns, sample: None });
        let woken = |at_ns| vec![Decision::WakeAt(WakeAt { at_ns })];
        let a = entry(3, completed(7, 10), woken(5));
        assert!(part(&a, &entry(4, completed(7, 99), woken(6))).is_none());
        let at = part(&a, &entry(4, completed(8, 10), woken(5))).unwrap();
        assert_eq!((at.by_decision, at.fields[0].field.as_str()), (false, "input.completed.batch"));
        let at = part(&a, &entry(4, completed(7, 10), vec![])).unwrap();
        assert_eq!((at.by_decision, at.sequences, at.inputs[0].as_str()), (true, [3, 4], "completed"));
        let at = part(&a, &entry(4, Input::Woke(Woke {}), vec![])).unwrap();
        assert_eq!((at.by_decision, at.inputs), (false, ["completed".to_owned(), "woke".to_owned()]));
    }
}
