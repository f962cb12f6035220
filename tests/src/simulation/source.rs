//! The source of a simulated process: where it reads the ticks, and what it has told that the core has not heard.

use std::collections::{BTreeMap, VecDeque};

use warptape_engine::Assigned;
use warptape_eventlog::Record;

use super::process::{Process, any_of};
use super::{Failure, World};
use crate::market;

/// Where a partition is read.
pub(super) struct Reading {
    pub(super) next: usize,
    pub(super) generation: u64,
    paused: bool,
}

/// What the source's thread has put into its channel.
pub(super) enum SourceEvent {
    Assigned(Vec<Assigned>),
    Revoked(Vec<i32>),
    Lost(Vec<i32>),
    Records { partition: i32, generation: u64, records: Vec<Record> },
}

/// What the thread of a source is, one step after the other.
pub(super) struct SimulatedSource {
    pub(super) reading: BTreeMap<i32, Reading>,
    events: VecDeque<SourceEvent>,
    /// It polls nothing until the core has let go of partitions.
    pub(super) stands_still: bool,
    /// By partition, the offset before which the ticks were delivered and taken, by this process or by those before it.
    pub(super) delivered: Vec<i64>,
}

impl SimulatedSource {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            reading: BTreeMap::new(),
            events: VecDeque::new(),
            stands_still: false,
            delivered: vec![0; partitions],
        }
    }

    pub(super) fn tell(&mut self, event: SourceEvent) {
        self.events.push_back(event);
    }

    /// Events that the core has not heard.
    pub(super) fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// A partition is read from an offset on.
    pub(super) fn seek(&mut self, partition: i32, offset: i64, generation: u64) {
        self.reading.insert(partition, Reading { next: offset as usize, generation, paused: false });
    }

    pub(super) fn set_paused(&mut self, partition: i32, paused: bool, world: &mut World) {
        if let Some(reading) = self.reading.get_mut(&partition) {
            reading.paused = paused;
            world.coverage.pauses += usize::from(paused);
        }
    }

    /// Some records of a partition are read.
    pub(super) fn read(&mut self, records_max: usize, world: &mut World) {
        let left = |partition: i32, reading: &Reading| {
            world.published(world.source[partition as usize].len()).saturating_sub(reading.next)
        };
        let is_readable =
            |(partition, reading): &(&i32, &Reading)| !reading.paused && left(**partition, reading) > 0;
        let readable = self.reading.iter().filter(is_readable).map(|(&partition, _)| partition as usize);
        let readable: Vec<usize> = readable.collect();
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
        let (generation, records) = (reading.generation, range.map(record).collect());
        self.tell(SourceEvent::Records { partition: partition as i32, generation, records });
    }
}

impl Process {
    /// What the source told first reaches the core.
    pub(super) fn deliver(&mut self, world: &mut World) -> Result<(), Failure> {
        let now_ns = world.now_ns;
        match self.source.events.pop_front() {
            None => {}
            Some(SourceEvent::Assigned(partitions)) => {
                for assigned in &partitions {
                    self.source.delivered[assigned.partition as usize] = assigned.committed.unwrap_or(0);
                }
                self.core.on_assigned(now_ns, partitions)?;
            }
            Some(SourceEvent::Revoked(partitions)) => self.core.on_revoking(now_ns, partitions)?,
            Some(SourceEvent::Lost(partitions)) => self.core.on_lost(now_ns, &partitions)?,
            Some(SourceEvent::Records { partition, generation, records }) => {
                let current = self.source.reading.get(&partition).map(|reading| reading.generation);
                world.coverage.stale_fetches += usize::from(current != Some(generation));
                self.core.on_records(now_ns, partition, generation, &records, now_ns)?;
                // What comes once a stop was asked for is left where it is.
                let ends = records.iter().map(|record| record.offset + 1);
                let accepted = ends.filter(|end| self.core.is_read_to(partition, *end)).max();
                if let Some(end) = accepted.filter(|_| current == Some(generation)) {
                    let delivered = &mut self.source.delivered[partition as usize];
                    *delivered = (*delivered).max(end);
                }
            }
        }
        Ok(())
    }
}
