//! Ticks that arrive after their turn.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use warptape_events::tick::Tick;

use super::random::{Random, STREAM_DELAYS};

/// Time from the venue to the recorder, for every tick.
const LATENCY_NS: i64 = 250_000;
const OUT_OF_ORDER_NS_MIN: i64 = 1_000_000;
const OUT_OF_ORDER_NS_MAX: i64 = 500_000_000;
const LATE_NS_MIN: i64 = 6_000_000_000;
const LATE_NS_MAX: i64 = 20_000_000_000;
/// Greatest time from an event to its receipt.
pub(super) const DELAY_NS_MAX: i64 = LATENCY_NS + LATE_NS_MAX;
/// Greatest number of ticks held back at once; further ticks are not delayed.
const HELD_MAX: usize = 1 << 16;

/// Holds ticks back and returns them in order of receive time.
pub(super) struct Delays {
    random: Random,
    /// A tick is late if its draw is below this value.
    late_below: u64,
    /// A tick is out of order if its draw is below this value and it is not late.
    out_of_order_below: u64,
    held: BinaryHeap<Reverse<Held>>,
    /// Number of ticks held so far, which orders ticks of the same receive time.
    sequence: u64,
}

struct Held {
    sequence: u64,
    tick: Tick,
}

impl Delays {
    pub(super) fn new(seed: u64, out_of_order_percent: f64, late_percent: f64) -> Delays {
        Delays {
            random: Random::stream(seed, STREAM_DELAYS),
            late_below: Random::below_percent(late_percent),
            out_of_order_below: Random::below_percent(late_percent + out_of_order_percent),
            held: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Sets the tick's receive time. Returns the tick if it is on time; otherwise holds it.
    pub(super) fn pass(&mut self, mut tick: Tick) -> Option<Tick> {
        tick.receive_time_ns = tick.event_time_ns + LATENCY_NS;
        let draw = self.random.next_u64();
        if draw >= self.out_of_order_below || self.held.len() >= HELD_MAX {
            return Some(tick);
        }
        let (least_ns, most_ns) = if draw < self.late_below {
            (LATE_NS_MIN, LATE_NS_MAX)
        } else {
            (OUT_OF_ORDER_NS_MIN, OUT_OF_ORDER_NS_MAX)
        };
        tick.receive_time_ns += least_ns + self.random.below((most_ns - least_ns) as u64) as i64;
        self.held.push(Reverse(Held { sequence: self.sequence, tick }));
        self.sequence += 1;
        None
    }

    /// Returns the earliest held tick if it arrives at or before `time_ns`.
    pub(super) fn pop_until(&mut self, time_ns: i64) -> Option<Tick> {
        let Reverse(first) = self.held.peek()?;
        if first.tick.receive_time_ns > time_ns {
            return None;
        }
        self.held.pop().map(|Reverse(held)| held.tick)
    }
}

impl Held {
    fn key(&self) -> (i64, u64) {
        (self.tick.receive_time_ns, self.sequence)
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Held {}
