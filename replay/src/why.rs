//! Explains a recorded entry, with the reason of each of its decisions.

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Explanation;
use warptape_schemas::journal::{Decision, Input, JournalEntry, LaneId, Started};

use crate::ReplayError;
use crate::entries::{BACK_RECORDS, Entries};
use crate::moment::Moment;

/// Greatest distance before an entry, in offsets, within which the previous decision of the same kind is searched.
const BEFORE_RECORDS_MAX: i64 = 1_000_000;

/// A recorded entry, and an explanation of each of its decisions.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Partition of the journal.
    pub partition: i32,
    /// Offset of the entry.
    pub offset: i64,
    /// The entry.
    pub entry: JournalEntry,
    /// Explanations of the entry's decisions, in order.
    pub explanations: Vec<Explained>,
    /// Start of the process that wrote the entry; `None` if it is no longer known.
    #[serde(skip)]
    pub started: Option<Started>,
}

/// Explanation of a decision, with the previous decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// Alternatives, comparisons, and what would have changed the decision.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The previous decision of the same kind on the same subject; `None` for kinds without such a series, such as
    /// `Dispatch`.
    pub before: Option<Before>,
}

/// The previous decision of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// The previous decision.
    Decided {
        /// The entry.
        at: Moment,
        /// The decision.
        decision: Decision,
    },
    /// The process life, which began then, has no previous decision.
    NoneSinceStart(Moment),
    /// There is no previous decision since this entry; earlier ones were removed or not searched. `None` if there is no
    /// earlier entry.
    NoneSince(Option<Moment>),
}

/// The journal, and the entry to explain.
#[derive(Clone, Debug)]
pub struct WhyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Partition of the journal: the ordinal of the process.
    pub partition: i32,
    /// Sequence of the entry.
    pub sequence: i64,
}

/// Explains the decisions of an entry. Steps the scheduler from the last start or checkpoint before it.
///
/// # Errors
/// If the log cannot be read, the entry does not exist, the entries before it were removed, or this software decides
/// differently from them.
pub fn why(log: &dyn EventLog, options: &WhyOptions) -> Result<Why, ReplayError> {
    let entries = Entries::open(log, &options.journal, options.partition)?;
    let (offset, entry) = entries.with_sequence(options.sequence)?;
    let scheduler = entries.scheduler_before(offset)?;
    let explain = |index| {
        let explanation = scheduler.explain(entry.at_ns, &entry.input, index);
        explanation.map_err(|error| entries.not_replayed(entry.sequence, error.to_string()))
    };
    let explanations: Vec<Explanation> = (0..entry.decisions.len()).map(explain).collect::<Result<_, _>>()?;
    let before = before(&entries, offset, &entry)?;
    let explanations = explanations
        .into_iter()
        .zip(before)
        .map(|(explanation, before)| Explained { explanation, before })
        .collect();
    let started = entries.started_before(offset + 1)?;
    Ok(Why { partition: options.partition, offset, entry, explanations, started })
}

/// The subject of a decision whose kind is rare enough for the previous one to matter. Decisions with the same subject
/// form a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series<'a> {
    Breaker(i32),
    Headroom(i32),
    FellBack(&'a str),
    Scale,
    /// Decisions of a shadow policy, by its index; true if it chooses lanes for tasks, false if it chooses tasks for
    /// lanes.
    Shadow(i32, bool),
}

fn series(decision: &Decision) -> Option<Series<'_>> {
    match decision {
        Decision::Breaker(breaker) => Some(Series::Breaker(breaker.lane)),
        Decision::Headroom(headroom) => Some(Series::Headroom(headroom.lane)),
        Decision::FellBack(fell) => Some(Series::FellBack(&fell.policy)),
        Decision::Scale(_) => Some(Series::Scale),
        Decision::Shadow(shadow) => Some(Series::Shadow(shadow.policy, shadow.lane_instead.is_some())),
        _ => None,
    }
}

fn at(entry: &JournalEntry) -> Moment {
    Moment { sequence: entry.sequence, at_ns: entry.at_ns }
}

fn decided(entry: &JournalEntry, decision: &Decision) -> Option<Before> {
    Some(Before::Decided { at: at(entry), decision: decision.clone() })
}

/// Returns the previous decision for each decision of an entry.
pub(crate) fn before(
    entries: &Entries<'_>,
    offset: i64,
    entry: &JournalEntry,
) -> Result<Vec<Option<Before>>, ReplayError> {
    let mut found: Vec<Option<Before>> = vec![None; entry.decisions.len()];
    let mut open: Vec<(usize, Series<'_>)> = Vec::new();
    for (index, decision) in entry.decisions.iter().enumerate() {
        let Some(series_of) = series(decision) else { continue };
        let mut earlier = entry.decisions[..index].iter().rev();
        match earlier.find(|other| series(other) == Some(series_of)) {
            Some(other) => found[index] = decided(entry, other),
            None => open.push((index, series_of)),
        }
    }
    let wanted: Vec<Series<'_>> = open.iter().map(|(_, series)| *series).collect();
    for ((index, _), last) in open.into_iter().zip(last_of(entries, offset, &wanted)?) {
        found[index] = Some(last);
    }
    Ok(found)
}

/// Returns the last decisions before an offset that reduced a lane: its weight because of its device's heat, or its
/// service because of its breaker.
pub(crate) fn last_of_lane(
    entries: &Entries<'_>,
    offset: i64,
    lane: LaneId,
    [headroom, breaker]: [bool; 2],
) -> Result<Vec<Before>, ReplayError> {
    let wanted = [(headroom, Series::Headroom(lane)), (breaker, Series::Breaker(lane))];
    let wanted: Vec<Series<'_>> =
        wanted.into_iter().filter_map(|(is, series)| is.then_some(series)).collect();
    last_of(entries, offset, &wanted)
}

/// Returns the last decision of each series before an offset, within the process life.
fn last_of(entries: &Entries<'_>, offset: i64, wanted: &[Series<'_>]) -> Result<Vec<Before>, ReplayError> {
    let mut found: Vec<Option<Before>> = vec![None; wanted.len()];
    let mut open: Vec<(usize, Series<'_>)> = wanted.iter().copied().enumerate().collect();
    let least = entries.range.first.max(offset - BEFORE_RECORDS_MAX);
    let (mut next, mut first_seen, mut is_at_start) = (offset, None, false);
    while !open.is_empty() && next > least && !is_at_start {
        let first = (next - BACK_RECORDS).max(least);
        let mut reader = entries.read(OffsetRange { first, next })?;
        let mut last: Vec<Option<Before>> = vec![None; open.len()];
        let mut seen = None;
        while let Some((_, other)) = reader.next()? {
            if matches!(other.input, Input::Started(_)) {
                // Earlier entries belong to another life.
                (seen, is_at_start) = (Some(at(&other)), true);
                last.iter_mut().for_each(|last| *last = None);
            }
            seen = seen.or(Some(at(&other)));
            for decision in &other.decisions {
                let Some(series_of) = series(decision) else { continue };
                for ((_, wanted), last) in open.iter().zip(&mut last) {
                    if *wanted == series_of {
                        *last = decided(&other, decision);
                    }
                }
            }
        }
        first_seen = seen.or(first_seen);
        let mut ends = last.into_iter();
        open.retain(|(index, _)| {
            found[*index] = ends.next().flatten();
            found[*index].is_none()
        });
        next = first;
    }
    let none = || match first_seen.filter(|_| is_at_start) {
        Some(began) => Before::NoneSinceStart(began),
        None => Before::NoneSince(first_seen),
    };
    Ok(found.into_iter().map(|found| found.unwrap_or_else(none)).collect())
}
