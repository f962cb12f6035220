//! The source of a simulated process: where it reads the ticks, and what it has told that the core has not heard.

use std::collections::{BTreeMap, VecDeque};

use warptape_engine::Event;
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

/// What the thread of a source is, one step after the other.
pub(super) struct SimulatedSource {
    pub(super) reading: BTreeMap<i32, Reading>,
    events: VecDeque<Event>,
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

    pub(super) fn tell(&mut self, event: Event) {
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

    /// The core has taken the ticks before an offset. What comes once a stop was asked for is left where it is.
    pub(super) fn accept(&mut self, partition: i32, read_to: i64) {
        let delivered = &mut self.delivered[partition as usize];
        *delivered = (*delivered).max(read_to);
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
        self.tell(Event::Records {
            partition: partition as i32,
            generation,
            records,
            read_at_ns: world.now_ns,
        });
    }
}

impl Process {
    /// What the source told first reaches the core.
    pub(super) fn deliver(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(mut event) = self.around.source.events.pop_front() else { return Ok(()) };
        match &mut event {
            Event::Assigned(partitions) => {
                for assigned in partitions {
                    let delivered = &mut self.around.source.delivered[assigned.partition as usize];
                    *delivered = assigned.committed.unwrap_or(0);
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
