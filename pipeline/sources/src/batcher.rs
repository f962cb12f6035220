//! Groups ticks into records: each record holds ticks of one partition, in order of arrival.
//!
//! The batcher knows partitions and order, but not bytes. The caller encodes a [`TickRecord`] with one tick as a tick,
//! and a longer one as a batch.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use warptape_events::tick::Tick;

use super::partition_of;

/// Limits of grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatcherConfig {
    /// Number of partitions of the topic; positive.
    pub partitions: i32,
    /// Greatest number of ticks in a record; with 1, every tick is a record.
    pub record_ticks_max: NonZeroUsize,
    /// Greatest number of ticks, of any partition, that may be pushed while a tick waits. Age is counted in ticks, not
    /// time, so that the records depend on the ticks alone. A caller that paces ticks calls [`Batcher::flush`] when it
    /// pauses.
    pub age_ticks_max: u64,
}

/// Ticks of one partition for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickRecord {
    /// Partition of the topic.
    pub partition: i32,
    /// At least one tick, in the order in which they were pushed.
    pub ticks: Vec<Tick>,
}

/// Collects ticks per partition. It holds at most `partitions × record_ticks_max` ticks.
pub struct Batcher {
    config: BatcherConfig,
    /// Ticks waiting, by partition.
    waiting: Vec<Vec<Tick>>,
    /// Value of `pushed` when each partition's first waiting tick was pushed; unused if no tick waits.
    started: Vec<u64>,
    /// Partitions in the order in which they began to wait, as (pushed, partition). An entry is stale once its
    /// partition was released; stale entries are skipped.
    by_age: VecDeque<(u64, i32)>,
    /// Number of ticks pushed so far.
    pushed: u64,
}

impl Batcher {
    /// Creates an empty batcher.
    ///
    /// # Panics
    /// If `partitions` is not positive; the configuration was checked before.
    pub fn new(config: BatcherConfig) -> Batcher {
        let partitions = usize::try_from(config.partitions).ok().filter(|&count| count > 0);
        let partitions =
            partitions.expect("a topic has at least one partition: checked with the configuration");
        Batcher {
            config,
            waiting: vec![Vec::new(); partitions],
            started: vec![0; partitions],
            by_age: VecDeque::new(),
            pushed: 0,
        }
    }

    /// Adds one tick, and appends the due records to `released`: at most two.
    pub fn push(&mut self, tick: Tick, released: &mut Vec<TickRecord>) {
        let partition = partition_of(&tick.symbol, self.config.partitions);
        let slot = partition as usize;
        if self.waiting[slot].is_empty() {
            self.started[slot] = self.pushed;
            self.by_age.push_back((self.pushed, partition));
            self.waiting[slot].reserve_exact(self.config.record_ticks_max.get());
        }
        self.waiting[slot].push(tick);
        self.pushed += 1;
        if self.waiting[slot].len() >= self.config.record_ticks_max.get() {
            self.release(partition, released);
        }
        while let Some(&(started, partition)) = self.by_age.front() {
            let stale = self.is_stale(started, partition);
            if !stale && self.pushed - started <= self.config.age_ticks_max {
                break;
            }
            self.by_age.pop_front();
            if !stale {
                self.release(partition, released);
            }
        }
    }

    /// Releases all waiting ticks, oldest first.
    pub fn flush(&mut self, released: &mut Vec<TickRecord>) {
        while let Some((started, partition)) = self.by_age.pop_front() {
            if !self.is_stale(started, partition) {
                self.release(partition, released);
            }
        }
    }

    /// Releases the waiting ticks of one partition.
    pub fn flush_partition(&mut self, partition: i32, released: &mut Vec<TickRecord>) {
        if !self.waiting[partition as usize].is_empty() {
            self.release(partition, released);
        }
    }

    /// Returns the number of waiting ticks.
    pub fn waiting_ticks(&self) -> usize {
        self.waiting.iter().map(Vec::len).sum()
    }

    fn is_stale(&self, started: u64, partition: i32) -> bool {
        let slot = partition as usize;
        self.waiting[slot].is_empty() || self.started[slot] != started
    }

    fn release(&mut self, partition: i32, released: &mut Vec<TickRecord>) {
        let ticks = std::mem::take(&mut self.waiting[partition as usize]);
        released.push(TickRecord { partition, ticks });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{SynthConfig, SynthSource};

    fn batches(
        record_ticks_max: usize,
        age_ticks_max: u64,
        partitions: i32,
        ticks: &[Tick],
    ) -> Vec<TickRecord> {
        let record_ticks_max = NonZeroUsize::new(record_ticks_max).expect("tests ask for at least one");
        let mut batcher = Batcher::new(BatcherConfig { partitions, record_ticks_max, age_ticks_max });
        let mut released = Vec::new();
        for (index, tick) in ticks.iter().enumerate() {
            let before = released.len();
            batcher.push(tick.clone(), &mut released);
            assert!(released.len() - before <= 2, "push {index} released more than two records");
            assert!(batcher.by_age.len() as u64 <= age_ticks_max + 1, "the queue by age is bounded");
        }
        batcher.flush(&mut released);
        assert_eq!(batcher.waiting_ticks(), 0);
        released
    }

    fn ticks(count: u64) -> Vec<Tick> {
        let config = SynthConfig { symbols: 50, ticks: Some(count), ..SynthConfig::default() };
        SynthSource::new(config).expect("a valid configuration").collect()
    }

    fn check(record_ticks_max: usize, age_ticks_max: u64, partitions: i32) {
        let ticks = ticks(5_000);
        let records = batches(record_ticks_max, age_ticks_max, partitions, &ticks);
        for partition in 0..partitions {
            let expected: Vec<&Tick> =
                ticks.iter().filter(|tick| partition_of(&tick.symbol, partitions) == partition).collect();
            let found: Vec<&Tick> = records
                .iter()
                .filter(|record| record.partition == partition)
                .flat_map(|record| &record.ticks)
                .collect();
            assert_eq!(found, expected, "partition {partition}");
        }
        for record in &records {
            assert!((1..=record_ticks_max).contains(&record.ticks.len()));
        }
    }

    #[test]
    fn order_within_a_partition_is_kept() {
        check(1, 0, 4);
        check(1, 1_000, 1);
        check(16, 40, 8);
        check(256, 4_096, 3);
        check(256, 0, 5);
    }

    #[test]
    fn full_records_have_the_size_asked_for() {
        let records = batches(100, u64::MAX - 1, 2, &ticks(5_000));
        let short = records.iter().filter(|record| record.ticks.len() != 100).count();
        assert!(short <= 2, "only the last record of each partition may be short, found {short}");
    }

    #[test]
    fn no_tick_waits_longer_than_its_age() {
        let ticks = ticks(3_000);
        let (partitions, age_ticks_max) = (64, 25);
        let record_ticks_max = NonZeroUsize::new(1_000).expect("not zero");
        let mut batcher = Batcher::new(BatcherConfig { partitions, record_ticks_max, age_ticks_max });
        let (mut released, mut oldest_seen) = (Vec::new(), 0);
        for (index, tick) in ticks.iter().enumerate() {
            let mut tick = tick.clone();
            tick.trade_id = index as i64;
            batcher.push(tick, &mut released);
            for tick in released.drain(..).flat_map(|record| record.ticks) {
                oldest_seen = oldest_seen.max(index as i64 - tick.trade_id);
            }
        }
        assert_eq!(oldest_seen, age_ticks_max as i64);
    }
}
