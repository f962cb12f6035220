//! Risk requests that were read and are not tasks yet: some wait for their turn, some are in preparation.
//!
//! The scheduler does not know them. So their deadlines are watched here, and an overdue request is passed to it
//! without a task.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_events::journal::{AsOf, Input, TaskArrived, TaskId};
use warptape_events::risk::{RiskRequest, TaskClass};
use warptape_stages::risk::{is_deadline, refusals, symbols_of, takes_matrix};

/// Number of waiting requests from which no more are read, because the deadlines and urgency of unread ones are
/// unknown. It exceeds the default number of tasks that the scheduler knows at a time.
const WAITING_MAX: usize = 16_384;
/// Approximate bytes of the waiting requests' records from which no more are read. Decoded requests are larger.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Most requests in preparation at a time, by [`Haste`]. Each has the market of its turn, and a more urgent one of the
/// same haste waits for all of them.
const PREPARED_MAX: [usize; 3] = [8, 16, 2];
/// Most bytes of their records, approximately.
const PREPARED_BYTES_MAX: usize = 4 << 20;
/// Largest record of a small request, in bytes. Preparing it takes less than a millisecond, unless it needs a
/// covariance from the market.
const SMALL_BYTES_MAX: usize = 32 << 10;

/// The condition under which a request's market snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// No condition: the request names no symbol.
    Nothing,
    /// The market is no older than it was under the last owner.
    Market,
    /// There are more symbols than this number, or the ticks that existed when partitions were assigned are accepted:
    /// one of the request's symbols was unknown.
    Symbols(usize),
    /// The ticks that existed when partitions were assigned are accepted.
    CaughtUp,
}

/// Priority of a preparation on the processor. The system may delay a yielding thread while any other work wants the
/// core. So yielding work has a thread of its own, and no other work queues behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// The request is critical; its preparation yields to no other work.
    AtOnce,
    /// The preparation is short, and yields to no other work.
    Soon,
    /// The preparation yields to all other work.
    Yields,
}

/// The parts of a request that remain when its problem, which may be large, has become a task.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) request_id: String,
    pub(crate) tenant: String,
    pub(crate) class: TaskClass,
    pub(crate) deadline_ns: Option<i64>,
    pub(crate) seed: i64,
    pub(crate) gang: bool,
    /// Bytes of its record, plus the bytes of its task's work once they are known.
    pub(crate) bytes: usize,
    pub(crate) received_ns: i64,
    /// Estimated computing time, in nanoseconds; 0 until it is known.
    pub(crate) cost_ns: i64,
    /// Id of the request to cancel; `None` if it cancels none.
    pub(crate) cancels: Option<String>,
    /// The markets in which the request's symbols were looked up, if it is refused without asking the scheduler.
    pub(crate) judged_on: Vec<AsOf>,
    pub(crate) needs: Needs,
    pub(crate) haste: Haste,
}

impl Asked {
    /// Splits a request off its problem, and notes whether it waits until ticks are caught up with. Most fields are
    /// empty if the request cannot be read.
    pub(crate) fn new(
        partition: i32,
        offset: i64,
        request: Option<&RiskRequest>,
        waits: bool,
        bytes: usize,
        now_ns: i64,
    ) -> Self {
        let asks = request.is_some_and(|request| symbols_of(&request.problem).next().is_some());
        Self {
            partition,
            offset,
            request_id: request.map_or(String::new(), |request| refusals::repeated(&request.request_id)),
            tenant: request.map_or(String::new(), |request| refusals::repeated(&request.tenant)),
            class: request.map_or(TaskClass::Interactive, |request| request.class),
            deadline_ns: request.and_then(|request| request.deadline_ns),
            seed: request.map_or(0, |request| request.seed),
            gang: request.is_some_and(|request| request.gang),
            bytes,
            received_ns: now_ns,
            cost_ns: 0,
            cancels: request.and_then(|request| request.cancels.as_deref()).map(refusals::repeated),
            judged_on: Vec::new(),
            needs: match (asks, waits) {
                (false, _) => Needs::Nothing,
                (true, false) => Needs::Market,
                (true, true) => Needs::CaughtUp,
            },
            haste: match request {
                Some(request) if request.class == TaskClass::Critical => Haste::AtOnce,
                Some(request) if is_large(request, bytes) => Haste::Yields,
                _ => Haste::Soon,
            },
        }
    }

    /// The input that passes an overdue request without a task to the scheduler.
    pub(crate) fn overdue(&self, task: TaskId) -> Input {
        Input::TaskArrived(TaskArrived {
            task,
            partition: self.partition,
            offset: self.offset,
            request_id: self.request_id.clone(),
            tenant: self.tenant.clone(),
            class: self.class,
            deadline_ns: self.deadline_ns,
            rate_key: String::new(),
            first_unit: 0,
            units: 1,
            unit_cost: 1,
            slice_units_max: 1,
            gang: false,
            as_of: Vec::new(),
            bytes: self.bytes as i64,
            unit_width: 0,
        })
    }
}

/// True if the preparation of a request may take long.
fn is_large(request: &RiskRequest, bytes: usize) -> bool {
    bytes > SMALL_BYTES_MAX || takes_matrix(&request.problem)
}

/// A request in preparation, or in the queue for it. It counts against the limits even if its result is no longer
/// wanted.
struct Preparing {
    asked: Option<Asked>,
    bytes: usize,
    haste: Haste,
}

/// A request whose preparation begins now.
pub(crate) struct Turn {
    pub(crate) number: u64,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) haste: Haste,
    pub(crate) request: Box<RiskRequest>,
}

/// The key of a queue: requests with the same conditions and the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Queue {
    haste: Haste,
    pub(crate) needs: Needs,
    pub(crate) partition: i32,
}

impl Queue {
    fn of(asked: &Asked) -> Self {
        Self { haste: asked.haste, needs: asked.needs, partition: asked.partition }
    }
}

/// All requests that are not tasks yet, numbered in the order of reading. The most urgent one goes first.
#[derive(Default)]
pub(crate) struct Arrivals {
    number_next: u64,
    waiting: BTreeMap<(TaskClass, u64), (Asked, Box<RiskRequest>)>,
    waiting_bytes: usize,
    /// Waiting requests, by their conditions. No queue is empty.
    queues: BTreeMap<Queue, BTreeSet<(TaskClass, u64)>>,
    preparing: BTreeMap<u64, Preparing>,
    /// Deadlines of waiting requests and of requests in preparation.
    deadlines: BTreeSet<(i64, TaskClass, u64)>,
    /// Numbers of requests in preparation whose results are no longer wanted, for
    /// [`Command::Abandon`](crate::Command::Abandon).
    abandoned: VecDeque<u64>,
}

impl Arrivals {
    /// Adds a request, which waits for its turn.
    pub(crate) fn push(&mut self, asked: Asked, request: Box<RiskRequest>) {
        let number = self.number_next;
        self.number_next += 1;
        // An invalid deadline is not watched, because the request is refused for it anyway.
        let deadline_ns = asked.deadline_ns.filter(|&deadline_ns| is_deadline(deadline_ns));
        self.deadlines.extend(deadline_ns.map(|deadline_ns| (deadline_ns, asked.class, number)));
        self.add_waiting(number, asked, request);
    }

    fn add_waiting(&mut self, number: u64, asked: Asked, request: Box<RiskRequest>) {
        let key = (asked.class, number);
        self.waiting_bytes += asked.bytes;
        self.queues.entry(Queue::of(&asked)).or_default().insert(key);
        self.waiting.insert(key, (asked, request));
    }

    fn take_waiting(&mut self, key: (TaskClass, u64)) -> Option<(Asked, Box<RiskRequest>)> {
        let (asked, request) = self.waiting.remove(&key)?;
        self.waiting_bytes -= asked.bytes;
        if let Entry::Occupied(mut queue) = self.queues.entry(Queue::of(&asked)) {
            queue.get_mut().remove(&key);
            if queue.get().is_empty() {
                queue.remove();
            }
        }
        Some((asked, request))
    }

    /// True if more requests may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX && self.waiting_bytes < WAITING_BYTES_MAX
    }

    /// True if some requests wait for their turn.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next request to prepare: the most urgent one whose conditions are met and whose thread has room.
    pub(crate) fn prepare(&mut self, is_met: impl Fn(&Queue) -> bool) -> Option<Turn> {
        let room = [Haste::AtOnce, Haste::Soon, Haste::Yields].map(|haste| self.has_room_to_prepare(haste));
        let is_next = |queue: &Queue| room[queue.haste as usize] && is_met(queue);
        let next = self.queues.iter().filter(|(queue, _)| is_next(queue));
        let key = next.filter_map(|(_, keys)| keys.first()).min().copied()?;
        let (asked, request) = self.take_waiting(key)?;
        let Asked { partition, offset, bytes, haste, .. } = asked;
        self.preparing.insert(key.1, Preparing { asked: Some(asked), bytes, haste });
        Some(Turn { number: key.1, partition, offset, haste, request })
    }

    /// Puts a request back to wait for more than `symbols` symbols, because one of its own was unknown at its turn.
    pub(crate) fn wait_for_symbols(&mut self, number: u64, request: Box<RiskRequest>, symbols: usize) {
        let preparing = self.preparing.remove(&number);
        let Some(Preparing { asked: Some(mut asked), .. }) = preparing else { return };
        asked.needs = Needs::Symbols(symbols);
        self.add_waiting(number, asked, request);
    }

    fn has_room_to_prepare(&self, haste: Haste) -> bool {
        let bytes = || self.preparing.values().filter(|other| other.haste == haste).map(|other| other.bytes);
        bytes().count() < PREPARED_MAX[haste as usize] && bytes().sum::<usize>() < PREPARED_BYTES_MAX
    }

    /// Removes a prepared request; `None` if its result is no longer wanted.
    pub(crate) fn take_prepared(&mut self, number: u64) -> Option<Asked> {
        let preparing = self.preparing.remove(&number)?;
        let asked = preparing.asked?;
        if let Some(deadline_ns) = asked.deadline_ns {
            self.deadlines.remove(&(deadline_ns, asked.class, number));
        }
        Some(asked)
    }

    /// The next deadline; `None` if there is none.
    pub(crate) fn deadline_ns(&self) -> Option<i64> {
        self.deadlines.first().map(|&(deadline_ns, ..)| deadline_ns)
    }

    /// Removes a request whose deadline has passed; `None` if there is none.
    pub(crate) fn take_overdue(&mut self, now_ns: i64) -> Option<Asked> {
        let &(deadline_ns, class, number) = self.deadlines.first()?;
        if deadline_ns > now_ns {
            return None;
        }
        self.deadlines.pop_first();
        match self.take_waiting((class, number)) {
            Some((asked, _)) => Some(asked),
            None => self.abandon(number),
        }
    }

    /// Removes a request of a partition by its id, because another request cancels it.
    pub(crate) fn cancel(&mut self, partition: i32, request_id: &str) -> Option<Asked> {
        let is_it = |asked: &Asked| asked.partition == partition && asked.request_id == request_id;
        let waiting = self.waiting.iter().find(|(_, (asked, _))| is_it(asked)).map(|(&key, _)| key);
        let (number, asked) = match waiting {
            Some(key) => {
                let (asked, _) = self.take_waiting(key)?;
                (key.1, asked)
            }
            None => {
                let is_prepared = |preparing: &Preparing| preparing.asked.as_ref().is_some_and(is_it);
                let number = *self.preparing.iter().find(|(_, preparing)| is_prepared(preparing))?.0;
                (number, self.abandon(number)?)
            }
        };
        self.deadlines.retain(|&(_, _, other)| other != number);
        Some(asked)
    }

    /// Abandons the preparation of a request whose result is no longer wanted.
    fn abandon(&mut self, number: u64) -> Option<Asked> {
        let asked = self.preparing.get_mut(&number)?.asked.take()?;
        self.abandoned.push_back(number);
        Some(asked)
    }

    /// Takes the number of an abandoned request; `None` if there is none.
    pub(crate) fn pop_abandoned(&mut self) -> Option<u64> {
        self.abandoned.pop_front()
    }

    /// Forgets the requests of a partition, or all if `None`.
    pub(crate) fn withdraw(&mut self, partition: Option<i32>) {
        let stays = |asked: &Asked| partition.is_some_and(|partition| partition != asked.partition);
        self.waiting.retain(|_, (asked, _)| stays(asked));
        self.waiting_bytes = self.waiting.values().map(|(asked, _)| asked.bytes).sum();
        self.queues.retain(|queue, _| partition.is_some_and(|partition| partition != queue.partition));
        let goes =
            |(_, preparing): &(&u64, &Preparing)| preparing.asked.as_ref().is_some_and(|asked| !stays(asked));
        let numbers: Vec<u64> = self.preparing.iter().filter(goes).map(|(&number, _)| number).collect();
        for number in numbers {
            self.abandon(number);
        }
        let (waiting, preparing) = (&self.waiting, &self.preparing);
        let is_wanted = |number: &u64| {
            preparing.get(number).is_some_and(|preparing: &Preparing| preparing.asked.is_some())
        };
        self.deadlines
            .retain(|&(_, class, number)| waiting.contains_key(&(class, number)) || is_wanted(&number));
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::risk::{
        Asset, AssetKind, FromMarket, MarketSource, OptionValues, Quantity, RiskProblem,
    };

    use super::*;

    /// Adds a request that names a symbol of the market, or none.
    fn push(arrivals: &mut Arrivals, offset: i64, class: TaskClass, asks: bool, waits: bool) {
        let spot = if asks {
            Quantity::Market(FromMarket { from: MarketSource::Market })
        } else {
            Quantity::Given(1.0)
        };
        let asset = Asset {
            symbol: "X:A".to_owned(),
            spot,
            volatility: Quantity::Given(0.2),
            rate: 0.0,
            dividend_yield: 0.0,
            kind: AssetKind::default(),
        };
        let request = RiskRequest {
            request_id: offset.to_string(),
            tenant: String::new(),
            class,
            deadline_ns: Some(1_000 + offset),
            seed: 0,
            gang: false,
            problem: RiskProblem::Options(OptionValues { assets: vec![asset], options: Vec::new() }),
            cancels: None,
        };
        let asked = Asked::new(0, offset, Some(&request), waits, 100, 0);
        arrivals.push(asked, Box::new(request));
    }

    #[test]
    fn requests_that_wait_for_ticks_are_in_nobodys_way() {
        let mut arrivals = Arrivals::default();
        (0..1_000).for_each(|offset| push(&mut arrivals, offset, TaskClass::Critical, true, true));
        push(&mut arrivals, 1_000, TaskClass::Critical, true, false);
        push(&mut arrivals, 1_001, TaskClass::Batch, false, false);
        let is_met = |queue: &Queue| queue.needs != Needs::CaughtUp;
        let turn = arrivals.prepare(is_met).expect("one that does not wait");
        assert_eq!(turn.offset, 1_000);
        // The request's symbol is unknown, so that it waits as well.
        arrivals.wait_for_symbols(turn.number, turn.request, 5);
        let is_met = |queue: &Queue| !matches!(queue.needs, Needs::CaughtUp | Needs::Symbols(5));
        assert_eq!(arrivals.prepare(is_met).expect("one that asks no market").offset, 1_001);
        assert!(arrivals.prepare(is_met).is_none() && arrivals.is_waiting());
        assert_eq!(arrivals.deadline_ns(), Some(1_000));
        let all: Vec<i64> = std::iter::from_fn(|| {
            let turn = arrivals.prepare(|_| true)?;
            arrivals.take_prepared(turn.number).expect("it is wanted");
            Some(turn.offset)
        })
        .collect();
        assert_eq!(all, (0..1_001).collect::<Vec<i64>>());
        assert!(arrivals.queues.is_empty() && arrivals.waiting_bytes == 0);
    }

    #[test]
    fn what_is_taken_away_leaves_nothing_behind() {
        let mut arrivals = Arrivals::default();
        (0..4).for_each(|offset| push(&mut arrivals, offset, TaskClass::Batch, offset % 2 == 0, false));
        assert_eq!(arrivals.cancel(0, "2").map(|asked| asked.offset), Some(2));
        assert_eq!(arrivals.take_overdue(1_000).map(|asked| asked.offset), Some(0));
        assert_eq!(arrivals.prepare(|_| true).map(|turn| turn.offset), Some(1));
        arrivals.withdraw(Some(0));
        assert!(arrivals.queues.is_empty() && arrivals.waiting_bytes == 0);
    }
}
