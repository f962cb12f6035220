//! The source of a simulated process: its reading positions, and the events that the core has not received.

use std::collections::{BTreeMap, VecDeque};

use warptape_engine::{Event, Position, TickReader};
use warptape_eventlog::Record;
use warptape_schemas::TickDecoder;

use super::process::{Process, any_of};
use super::{Failure, World};
use crate::market;

/// Number of offsets without a record after the last record of a log: the marker of its transaction.
pub(super) const MARKERS: i64 = 1;

/// The reading state of a partition.
pub(super) struct Reading {
    pub(super) next: usize,
    pub(super) generation: u64,
    paused: bool,
    /// The last reported position; `None` before the first report.
    told: Option<i64>,
    reader: TickReader,
}

/// The thread of a source, as separate steps.
pub(super) struct SimulatedSource {
    pub(super) reading: BTreeMap<i32, Reading>,
    events: VecDeque<Event>,
    decoder: TickDecoder,
    /// True while the source does not poll, because the core must release partitions first.
    pub(super) stands_still: bool,
    /// Offset before which ticks were delivered and accepted, by this process or earlier ones; by partition.
    pub(super) delivered: Vec<i64>,
}

impl SimulatedSource {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            reading: BTreeMap::new(),
            events: VecDeque::new(),
            decoder: TickDecoder::new().by_rows(true),
            stands_still: false,
            delivered: vec![0; partitions],
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Returns the number of events that the core has not received.
    pub(super) fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Starts reading a partition at an offset.
    pub(super) fn seek(&mut self, partition: i32, offset: i64, generation: u64) {
        self.reading.insert(
            partition,
            Reading {
                next: offset as usize,
                generation,
                paused: false,
                told: None,
                reader: TickReader::new(generation, 0, 8),
            },
        );
    }

    pub(super) fn set_paused(&mut self, partition: i32, paused: bool, world: &mut World) {
        if let Some(reading) = self.reading.get_mut(&partition) {
            reading.paused = paused;
            world.coverage.pauses += usize::from(paused);
        }
    }

    /// Records that the core has accepted the ticks before an offset. Ticks after a requested stop remain unread.
    pub(super) fn accept(&mut self, partition: i32, read_to: i64) {
        let delivered = &mut self.delivered[partition as usize];
        *delivered = (*delivered).max(read_to);
    }

    /// Reads some records of a partition.
    pub(super) fn read(&mut self, records_max: usize, world: &mut World) {
        let left = |partition: i32, reading: &Reading| {
            world.published(world.source[partition as usize].len()).saturating_sub(reading.next)
        };
        let is_readable =
            |(partition, reading): &(&i32, &Reading)| !reading.paused && left(**partition, reading) > 0;
        let readable = self.reading.iter().filter(is_readable).map(|(&partition, _)| partition as usize);
        let readable: Vec<usize> = readable.collect();
        if readable.is_empty() && !self.stands_still {
            return self.tell_positions(world);
        }
        let Some(partition) = any_of(readable, &mut world.random).filter(|_| !self.stands_still) else {
            return;
        };
        let reading = self.reading.get_mut(&(partition as i32)).expect("it is read");
        let left = world.published(world.source[partition].len()) - reading.next;
        let count = left.min(1 + world.random.index(records_max));
        let range = reading.next..reading.next + count;
        assert!(reading.next as i64 >= world.first[partition], "records that are gone cannot be read");
        reading.next += count;
        let record = |offset: usize| Record {
            offset: offset as i64,
            key: None,
            headers: Vec::new(),
            timestamp_ns: market::written_ns(&world.source[partition][offset]),
            value: world.source[partition][offset].clone(),
        };
        let generation = reading.generation;
        let records: Vec<Record> = range.map(record).collect();
        let ticks = reading.reader.read(&records, &mut self.decoder);
        // The core must do without them, and with only some.
        let ticks = (world.random.index(8) > 0).then_some(ticks);
        self.tell(Event::Records {
            partition: partition as i32,
            generation,
            records,
            ticks,
            read_at_ns: world.now_ns,
        });
    }
}

impl SimulatedSource {
    /// Reports changed positions, because nothing is left to read.
    fn tell_positions(&mut self, world: &World) {
        let moved = |(&partition, reading): (&i32, &mut Reading)| {
            let offset = end_of(world.source[partition as usize].len(), reading.next, world);
            let is_new = reading.told.replace(offset) != Some(offset);
            is_new.then_some(Position { partition, generation: reading.generation, offset })
        };
        let moved: Vec<Position> = self.reading.iter_mut().filter_map(moved).collect();
        if !moved.is_empty() {
            self.tell(Event::Positions(moved));
        }
    }
}

/// Returns the reading position in a log whose records before `next` were read. At the end, the position is after the
/// marker of the last record.
pub(super) fn end_of(records: usize, next: usize, world: &World) -> i64 {
    let is_whole = world.published(records) == records && next >= records;
    if is_whole { records as i64 + MARKERS } else { next as i64 }
}

impl Process {
    /// Passes the source's oldest event to the core.
    pub(super) fn deliver(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(mut event) = self.around.source.events.pop_front() else { return Ok(()) };
        match &mut event {
            Event::Assigned(partitions) => {
                for assigned in partitions {
                    let delivered = &mut self.around.source.delivered[assigned.partition as usize];
                    let records = world.source[assigned.partition as usize].len() as i64;
                    *delivered = assigned.committed.unwrap_or(0).min(records);
                }
            }
            Event::Records { partition, generation, read_at_ns, .. } => {
                let current = self.around.source.reading.get(partition).map(|reading| reading.generation);
                world.coverage.stale_fetches += usize::from(current != Some(*generation));
                *read_at_ns = world.now_ns;
            }
            _ => {}
        }
        self.tell(event, world)
    }
}
