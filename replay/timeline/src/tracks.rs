//! The tracks of a process life, and their rows, in which slices find room.
//!
//! ```text
//!  process ─┬─ commits                         ┐
//!           ├─ lane N ── service, tasks, …     │ a row, or several of the same name where slices overlap:
//!           ├─ moves, risk requests            │ Perfetto shows these as one track
//!           └─ partition N ── arrivals, …      ┘
//! ```
//!
//! Slices in a row never overlap, for any journal. This module ensures it for all tracks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warptape_replay::history::Life;
use warptape_schemas::journal::{LaneId, PartitionId};

use crate::packets::{Packets, Span, short};
use crate::proto::{CounterDescriptor, EXPLICIT_ORDER, ProcessDescriptor, TrackDescriptor};

/// Greatest number of slices that may overlap on a track; further ones are left out.
pub(crate) const ROWS_MAX: usize = 256;
/// Greatest number of tracks of a process life; further ones are left out.
const TRACKS_MAX: usize = 1 << 16;
/// Upper bound of the ranks of lanes and partitions.
const RANKS: i32 = 1_000_000;

/// The subject of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Commits,
    Wanted,
    Wishes,
    Lane(LaneId),
    LaneTasks(LaneId),
    LaneState(LaneId),
    LaneBreaker(LaneId),
    LaneInFlight(LaneId),
    Moves,
    Placements,
    Requests,
    Partition(PartitionId),
    Waiting(PartitionId),
    Arrivals(PartitionId),
    Pauses(PartitionId),
    Transactions(PartitionId),
}

/// How overlapping slices of a track are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Slices follow each other; one that would overlap is shortened.
    Never,
    /// Slices may overlap, and are spread over several rows.
    Maybe,
}

/// The tracks of a process life.
pub(crate) struct Tracks {
    process: u64,
    devices: BTreeMap<LaneId, String>,
    rows: BTreeMap<Of, Vec<TrackRow>>,
    count: usize,
}

/// A row of slices that do not overlap.
struct TrackRow {
    uuid: u64,
    /// End of the last slice.
    free_ns: i64,
}

/// The next free numbers of tracks and processes.
#[derive(Default)]
pub(crate) struct Numbers {
    track: u64,
    process: i32,
}

impl Numbers {
    fn next_track(&mut self) -> u64 {
        self.track += 1;
        self.track
    }
}

impl Tracks {
    /// Creates the tracks of a process life. `life` is `None` for the entries before the journal's first start.
    pub(crate) fn new<W: Write>(
        life: Option<&Life>,
        numbers: &mut Numbers,
        out: &mut Packets<W>,
    ) -> io::Result<Self> {
        let process = numbers.next_track();
        numbers.process = numbers.process.saturating_add(1);
        out.describe(TrackDescriptor {
            uuid: Some(process),
            process: Some(ProcessDescriptor {
                pid: Some(numbers.process),
                process_name: Some(life.map_or_else(|| "before the first start".to_owned(), name_of)),
            }),
            child_ordering: Some(EXPLICIT_ORDER),
            ..TrackDescriptor::default()
        })?;
        let lanes = life.map_or(&[][..], |life| &life.started.lanes);
        let devices = lanes.iter().map(|lane| (lane.lane, short(&lane.device))).collect();
        Ok(Self { process, devices, rows: BTreeMap::new(), count: 0 })
    }

    /// Returns the only row of a track; `None` if there are too many tracks.
    pub(crate) fn only<W: Write>(
        &mut self,
        of: Of,
        numbers: &mut Numbers,
        out: &mut Packets<W>,
    ) -> io::Result<Option<u64>> {
        if let Some([row, ..]) = self.rows.get(&of).map(Vec::as_slice) {
            return Ok(Some(row.uuid));
        }
        self.add_row(of, numbers, out)
    }

    /// Returns a row with room for a slice, and the slice's interval there; `None` if there is no room.
    pub(crate) fn room<W: Write>(
        &mut self,
        of: Of,
        span: Span,
        overlap: Overlap,
        numbers: &mut Numbers,
        out: &mut Packets<W>,
    ) -> io::Result<Option<(u64, Span)>> {
        if self.only(of, numbers, out)?.is_none() {
            return Ok(None);
        }
        let rows = self.rows.get_mut(&of).expect("it has a row by now");
        let fits = |row: &&mut TrackRow| overlap == Overlap::Never || row.free_ns <= span.begin_ns;
        // Uses the free row that was used last, so that few rows are needed.
        let best = rows.iter_mut().filter(fits).max_by_key(|row| row.free_ns);
        if let Some(row) = best {
            let begin_ns = span.begin_ns.max(row.free_ns);
            let span = Span { begin_ns, end_ns: span.end_ns.max(begin_ns) };
            row.free_ns = span.end_ns;
            return Ok(Some((row.uuid, span)));
        }
        if rows.len() >= ROWS_MAX {
            return Ok(None);
        }
        let Some(uuid) = self.add_row(of, numbers, out)? else { return Ok(None) };
        let row = self.rows.get_mut(&of).and_then(|rows| rows.last_mut()).expect("it was just added");
        row.free_ns = span.end_ns;
        Ok(Some((uuid, span)))
    }

    fn add_row<W: Write>(
        &mut self,
        of: Of,
        numbers: &mut Numbers,
        out: &mut Packets<W>,
    ) -> io::Result<Option<u64>> {
        let parent = match parent(of) {
            None => Some(self.process),
            Some(parent) => self.only(parent, numbers, out)?,
        };
        let Some(parent) = parent.filter(|_| self.count < TRACKS_MAX) else { return Ok(None) };
        self.count += 1;
        let uuid = numbers.next_track();
        let unit = match of {
            Of::Waiting(_) | Of::LaneInFlight(_) => Some("rows".to_owned()),
            Of::Wanted => Some("lanes".to_owned()),
            _ => None,
        };
        out.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(self.name(of)),
            parent_uuid: Some(parent),
            counter: unit.map(|unit| CounterDescriptor { unit_name: Some(unit) }),
            child_ordering: matches!(of, Of::Lane(_) | Of::Partition(_)).then_some(EXPLICIT_ORDER),
            sibling_order_rank: Some(rank(of)),
            description: Some(description(of).to_owned()),
            ..TrackDescriptor::default()
        })?;
        self.rows.entry(of).or_default().push(TrackRow { uuid, free_ns: 0 });
        Ok(Some(uuid))
    }

    fn name(&self, of: Of) -> String {
        match of {
            Of::Commits => "commits".to_owned(),
            Of::Wanted => "lanes wanted".to_owned(),
            Of::Wishes => "wanted lanes changed".to_owned(),
            Of::Lane(lane) => match self.devices.get(&lane) {
                Some(device) => format!("lane {lane} ({device})"),
                None => format!("lane {lane}"),
            },
            Of::LaneTasks(_) => "risk tasks".to_owned(),
            Of::LaneState(_) => "lost, ready, heat".to_owned(),
            Of::LaneBreaker(_) => "breaker".to_owned(),
            Of::LaneInFlight(_) => "rows in flight".to_owned(),
            Of::Moves => "moves".to_owned(),
            Of::Placements => "placements after moves".to_owned(),
            Of::Requests => "risk requests".to_owned(),
            Of::Partition(partition) => format!("partition {partition}"),
            Of::Waiting(_) => "rows waiting".to_owned(),
            Of::Arrivals(_) => "arrivals".to_owned(),
            Of::Pauses(_) => "pauses".to_owned(),
            Of::Transactions(_) => "transactions".to_owned(),
        }
    }
}

/// Returns the name of a process life.
fn name_of(life: &Life) -> String {
    let (journal, node) = (life.journal, short(&life.started.node));
    match life.began {
        Some(began) => format!("process {journal} ({node}), started at entry {}", began.sequence),
        None => format!("process {journal} ({node}), from entry {} on", life.since.sequence),
    }
}

/// Returns the track above a track; `None` for the process.
fn parent(of: Of) -> Option<Of> {
    match of {
        Of::Commits
        | Of::Wanted
        | Of::Wishes
        | Of::Lane(_)
        | Of::Moves
        | Of::Placements
        | Of::Requests
        | Of::Partition(_) => None,
        Of::LaneTasks(lane) | Of::LaneState(lane) | Of::LaneBreaker(lane) | Of::LaneInFlight(lane) => {
            Some(Of::Lane(lane))
        }
        Of::Waiting(partition)
        | Of::Arrivals(partition)
        | Of::Pauses(partition)
        | Of::Transactions(partition) => Some(Of::Partition(partition)),
    }
}

/// Returns the position of a track below its parent.
fn rank(of: Of) -> i32 {
    match of {
        Of::Commits => 0,
        Of::Wanted => 1,
        Of::Wishes => 2,
        Of::Lane(lane) => 3 + lane.clamp(0, RANKS),
        Of::Moves => RANKS + 4,
        Of::Placements => RANKS + 5,
        Of::Requests => RANKS + 6,
        Of::Partition(partition) => RANKS + 7 + partition.clamp(0, RANKS),
        Of::LaneTasks(_) | Of::Arrivals(_) => 0,
        Of::LaneInFlight(_) | Of::Waiting(_) => 1,
        Of::LaneState(_) | Of::Pauses(_) => 2,
        Of::LaneBreaker(_) | Of::Transactions(_) => 3,
    }
}

/// Describes the contents of a track.
fn description(of: Of) -> &'static str {
    match of {
        Of::Commits => "Transactions from their seal until their outcome was known, with each commit attempt",
        Of::Wanted => "Number of lanes that the process wanted (autoscaling)",
        Of::Wishes => "Changes of the number of wanted lanes, with the reason",
        Of::Lane(_) => {
            "Batches from the earliest time at which the lane could begin until their completion, with the working time"
        }
        Of::LaneTasks(_) => "Slices of risk tasks",
        Of::LaneState(_) => "Times when the lane was lost or ready again",
        Of::LaneBreaker(_) => "Times when the breaker of the lane was not closed",
        Of::LaneInFlight(_) => "Rows of batches in flight on the lane",
        Of::Moves => "Groups from the order to the lane to release them until the release",
        Of::Placements => "Times when moved groups were placed again",
        Of::Requests => "Rounds of risk requests from their arrival to their end",
        Of::Partition(_) => "Times when the process owned the partition",
        Of::Waiting(_) => "Rows that wait in host memory for a batch",
        Of::Arrivals(_) => "Arrivals of the rows of batches",
        Of::Pauses(_) => "Times when the partition was paused, because too many of its rows waited",
        Of::Transactions(_) => "Parts of the partition in transactions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows and intervals of slices that arrive in the order of their ends.
    fn placed(spans: &[(i64, i64)], overlap: Overlap) -> Vec<(u64, i64, i64)> {
        let (mut numbers, mut out) = (Numbers::default(), Packets::new(Vec::new()));
        let mut tracks = Tracks::new(None, &mut numbers, &mut out).unwrap();
        let place = |&(begin_ns, end_ns): &(i64, i64)| {
            let span = Span { begin_ns, end_ns };
            let (row, span) =
                tracks.room(Of::Commits, span, overlap, &mut numbers, &mut out).unwrap().unwrap();
            (row, span.begin_ns, span.end_ns)
        };
        spans.iter().map(place).collect()
    }

    #[test]
    fn slices_that_overlap_are_on_rows_of_their_own() {
        let spans = [(0, 5), (5, 7), (1, 9), (6, 9), (9, 10), (0, 12)];
        let expected = [(2, 0, 5), (2, 5, 7), (3, 1, 9), (4, 6, 9), (4, 9, 10), (5, 0, 12)];
        assert_eq!(placed(&spans, Overlap::Maybe), expected);
    }

    #[test]
    fn slices_that_follow_each_other_are_shortened_where_they_do_not() {
        let spans = [(0, 5), (3, 7), (8, 9), (1, 4)];
        assert_eq!(placed(&spans, Overlap::Never), [(2, 0, 5), (2, 5, 7), (2, 8, 9), (2, 9, 9)]);
    }
}
