//! All lanes, with cached answers to the questions that every step asks about all of them.
//!
//! Most steps change a lane or two, but need two answers for every lane. One is the time of its next batch, the other
//! whether it is free for tasks. So mutable access to a lane marks it, once for each question. The cached answer holds
//! for a lane without a mark. The module owns marks and cached answers, which follow from the lanes and are neither
//! hashed nor in checkpoints; it must not decide.

use std::collections::BTreeSet;
use std::ops::{Deref, Index, IndexMut};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use warptape_events::journal::LaneKind;

use super::Lane;
use crate::classes::{ClassId, KINDS};
use crate::config::LANES_MAX;

/// Every lane, by its number.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    all: Vec<Lane>,
    /// Lanes that may have changed since dispatch last judged them.
    undispatched: Set,
    /// Time before which dispatch need not judge the lane, by lane.
    quiet_until_ns: Vec<i64>,
    on_devices: Set,
    /// Lanes of each class, by its number.
    of_classes: Vec<Set>,
    /// Lanes that may have changed since the sets below were updated.
    marked: Set,
    free: Set,
    /// Ready lanes with batches or waiting rows, and no slice.
    with_ticks_alone: Set,
    /// Lanes that are ready and in full service.
    in_service: Set,
    ready: Set,
}

impl Lanes {
    /// Makes the set of all lanes, each of them marked.
    pub(crate) fn new(all: Vec<Lane>) -> Self {
        let mut new = Self {
            undispatched: Set::default(),
            quiet_until_ns: vec![0; all.len()],
            on_devices: Set::default(),
            of_classes: Vec::new(),
            marked: Set::default(),
            free: Set::default(),
            with_ticks_alone: Set::default(),
            in_service: Set::default(),
            ready: Set::default(),
            all,
        };
        for (index, lane) in new.all.iter().enumerate() {
            new.undispatched.set(index, true);
            new.marked.set(index, true);
            new.on_devices.set(index, lane.kind == LaneKind::Device);
            let class = lane.class.index();
            new.of_classes.resize_with(new.of_classes.len().max(class + 1), Set::default);
            new.of_classes[class].set(index, true);
        }
        new
    }

    /// Notes that dispatch need not judge a lane before this time unless the lane changes, and removes its mark.
    pub(crate) fn rest(&mut self, index: usize, quiet_until_ns: i64) {
        self.quiet_until_ns[index] = quiet_until_ns;
        self.undispatched.set(index, false);
    }

    /// Updates the cached answers to all other questions for marked lanes, and removes their marks.
    pub(crate) fn note(&mut self) {
        for index in std::mem::take(&mut self.marked).iter() {
            let lane = &self.all[index];
            self.free.set(index, lane.is_free());
            self.with_ticks_alone.set(index, lane.has_ticks_alone());
            self.in_service.set(index, lane.is_in_service());
            self.ready.set(index, lane.ready);
        }
    }

    /// Time before which dispatch need not judge a lane; `None` if it must judge it now.
    pub(crate) fn quiet_until_ns(&self, index: usize) -> Option<i64> {
        (!self.undispatched.has(index)).then_some(self.quiet_until_ns[index])
    }

    /// The first free lane from this one on.
    pub(crate) fn next_free(&self, from: usize) -> Option<usize> {
        self.next(from, &self.free, Lane::is_free)
    }

    /// Lanes with ticks and no slice according to the cache, plus all marked lanes.
    pub(crate) fn may_have_ticks_alone(&self) -> Set {
        self.with_ticks_alone.or(&self.marked)
    }

    /// True if a lane has ticks and no slice.
    pub(crate) fn has_ticks_alone(&self, index: usize) -> bool {
        match self.marked.has(index) {
            true => self.all[index].has_ticks_alone(),
            false => self.with_ticks_alone.has(index),
        }
    }

    /// True if a lane is ready and in full service.
    pub(crate) fn is_in_service(&self, index: usize) -> bool {
        match self.marked.has(index) {
            true => self.all[index].is_in_service(),
            false => self.in_service.has(index),
        }
    }

    /// True if some ready lane is in full service.
    pub(crate) fn any_in_service(&self) -> bool {
        self.next(0, &self.in_service, Lane::is_in_service).is_some()
    }

    /// The classes of ready lanes, by number.
    pub(crate) fn ready_classes(&self) -> impl Iterator<Item = ClassId> {
        let has_ready = |of_class: &Set| {
            let mut words = of_class.words.iter().zip(&self.ready.words).zip(&self.marked.words);
            words.any(|((word, ready), marked)| word & ready & !marked != 0)
                || self.marked.iter().any(|index| of_class.has(index) && self.all[index].ready)
        };
        let numbers = self.of_classes.iter().enumerate();
        numbers.filter(move |(_, of_class)| has_ready(of_class)).map(|(class, _)| ClassId::of_number(class))
    }

    /// Number of lanes of a kind that are ready and in full service.
    pub(crate) fn count_in_service(&self, kind: LaneKind) -> usize {
        let is_device = kind == LaneKind::Device;
        let words = self.in_service.words.iter().zip(&self.marked.words).zip(&self.on_devices.words);
        let of_kind = |device: u64| if is_device { device } else { !device };
        let unmarked = words.map(|((word, marked), device)| (word & !marked & of_kind(*device)).count_ones());
        let marked = self.marked.iter().filter(|&index| {
            let lane = &self.all[index];
            lane.kind == kind && lane.is_in_service()
        });
        unmarked.sum::<u32>() as usize + marked.count()
    }

    /// The first lane from this one on for which the predicate holds. `noted` are the lanes for which it held according
    /// to the cache.
    fn next(&self, from: usize, noted: &Set, is_true: impl Fn(&Lane) -> bool) -> Option<usize> {
        let mut from = from;
        loop {
            let index = noted.next_of_either(&self.marked, from)?;
            if !self.marked.has(index) || is_true(&self.all[index]) {
                return Some(index);
            }
            from = index + 1;
        }
    }

    /// Panics unless every cached answer equals the one computed from all lanes.
    pub(crate) fn audit(&self) {
        for (index, lane) in self.all.iter().enumerate() {
            let answers = [self.has_ticks_alone(index), self.is_in_service(index)];
            assert_eq!(answers, [lane.has_ticks_alone(), lane.is_in_service()], "lane {index}");
            let may_have = self.may_have_ticks_alone().has(index);
            assert!(may_have || !lane.has_ticks_alone(), "lane {index} has ticks alone");
            let next = (index..self.all.len()).find(|index| self.all[*index].is_free());
            assert_eq!(self.next_free(index), next, "free lanes from {index} on");
        }
        let in_service = || self.all.iter().filter(|lane| lane.is_in_service());
        assert_eq!(self.any_in_service(), in_service().next().is_some(), "lanes in service");
        for kind in [LaneKind::Host, LaneKind::Device] {
            let of_kind = in_service().filter(|lane| lane.kind == kind);
            assert_eq!(self.count_in_service(kind), of_kind.count(), "lanes in service: {kind:?}");
        }
        let ready = self.all.iter().filter(|lane| lane.ready);
        let classes: BTreeSet<ClassId> = ready.map(|lane| lane.class).collect();
        assert!(self.ready_classes().eq(classes), "classes of ready lanes");
    }
}

impl Deref for Lanes {
    type Target = [Lane];

    fn deref(&self) -> &[Lane] {
        &self.all
    }
}

impl Index<usize> for Lanes {
    type Output = Lane;

    fn index(&self, index: usize) -> &Lane {
        &self.all[index]
    }
}

/// Mutable access to a lane leaves both marks.
impl IndexMut<usize> for Lanes {
    fn index_mut(&mut self, index: usize) -> &mut Lane {
        self.undispatched.set(index, true);
        self.marked.set(index, true);
        &mut self.all[index]
    }
}

impl Serialize for Lanes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Lanes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: Vec<Lane> = Vec::deserialize(deserializer)?;
        // Each lane may have a class of its own, in addition to those of the kinds.
        let is_good = |lane: &Lane| lane.class.index() < KINDS + LANES_MAX;
        match all.len() <= LANES_MAX && all.iter().all(is_good) {
            true => Ok(Self::new(all)),
            false => Err(D::Error::custom("too many lanes, or one of a class that cannot be")),
        }
    }
}

/// A set of lanes, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Set {
    words: [u64; LANES_MAX.div_ceil(64)],
}

impl Set {
    fn has(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    fn set(&mut self, index: usize, is_in: bool) {
        let word = &mut self.words[index / 64];
        *word = *word & !(1 << (index % 64)) | u64::from(is_in) << (index % 64);
    }

    fn or(&self, other: &Self) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(word, others)| *word |= others);
        Self { words }
    }

    /// The lanes in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        self.words.into_iter().enumerate().flat_map(|(number, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(number * 64 + bit)
            })
        })
    }

    /// The first lane from this one on that is in either set.
    fn next_of_either(&self, other: &Self, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..self.words.len() {
            let bits = (self.words[word] | other.words[word]) & mask;
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::LaneSpec;

    use super::*;
    use crate::lanes::InFlight;
    use crate::state_hash::StateHash;

    fn lanes(count: i32) -> Lanes {
        let lane = |lane| {
            let kind = if lane % 3 == 0 { "cuda" } else { "cpu" };
            let spec = LaneSpec::new(lane, format!("{kind}:{lane}"), 1);
            Lane::new(&spec, ClassId::of_kind(spec.kind()))
        };
        Lanes::new((0..count).map(lane).collect())
    }

    /// Updates the cache for one lane, as if no other one were marked.
    fn note(lanes: &mut Lanes, index: usize) {
        let others = lanes.marked;
        lanes.marked = Set::default();
        lanes.marked.set(index, true);
        lanes.note();
        lanes.marked = others;
        lanes.marked.set(index, false);
    }

    #[test]
    fn what_is_asked_of_lanes_is_the_same_with_marks_and_without() {
        for count in [1, 63, 64, 65, LANES_MAX as i32] {
            let mut lanes = lanes(count);
            let mut hash = StateHash::default();
            let all = 0..count as usize;
            for index in all.clone().filter(|index| index % 5 == 4) {
                lanes[index].lose(0, 0, &mut hash);
            }
            for index in all.clone().filter(|index| index % 7 == 6) {
                lanes[index].dispatch(0, InFlight { batch: 0, rows: 1, bytes: 1 }, &mut hash);
            }
            lanes.audit();
            for index in all {
                assert_eq!(lanes.quiet_until_ns(index), None);
                assert!(lanes.may_have_ticks_alone().iter().any(|lane| lane == index));
                lanes.rest(index, 7);
                assert_eq!(lanes.quiet_until_ns(index), Some(7));
                note(&mut lanes, index);
                lanes.audit();
            }
            assert_eq!(
                lanes.may_have_ticks_alone().iter().count(),
                lanes.iter().filter(|lane| lane.has_ticks_alone()).count()
            );
        }
    }

    #[test]
    fn a_lane_that_is_taken_to_be_changed_is_looked_at_again() {
        let mut lanes = lanes(70);
        let mut hash = StateHash::default();
        (0..70).for_each(|index| lanes.rest(index, i64::MAX));
        lanes.note();
        let changes: [fn(&mut Lane, &mut StateHash); 4] = [
            |lane, hash| _ = lane.dispatch(0, InFlight { batch: 0, rows: 1, bytes: 1 }, hash),
            |lane, hash| _ = lane.complete(0, 1, hash),
            |lane, hash| lane.lose(1, 0, hash),
            |lane, _| lane.ready = true,
        ];
        // One lane is on a device, and one on the processor.
        for (index, change) in [66, 67].into_iter().flat_map(|index| changes.map(|change| (index, change))) {
            change(&mut lanes[index], &mut hash);
            assert_eq!(lanes.quiet_until_ns(index), None);
            lanes.audit();
            lanes.note();
            lanes.audit();
        }
        assert_eq!((lanes.next_free(66), lanes.next_free(70)), (Some(66), None));
        assert_eq!((read(&lanes).unwrap().len(), read(&lanes).unwrap().quiet_until_ns(3)), (70, None));
    }

    fn read(lanes: &[Lane]) -> Result<Lanes, postcard::Error> {
        postcard::from_bytes(&postcard::to_allocvec(lanes).unwrap())
    }

    #[test]
    fn what_cannot_be_lanes_is_refused() {
        let mut lanes = lanes(LANES_MAX as i32);
        lanes[LANES_MAX - 1].class = ClassId::of_number(KINDS + LANES_MAX - 1);
        assert!(read(&lanes).is_ok());
        let more: Vec<Lane> = lanes.iter().chain(lanes.first()).cloned().collect();
        for class in [KINDS + LANES_MAX, usize::MAX] {
            lanes[3].class = ClassId::of_number(class);
            assert!(read(&lanes).is_err());
        }
        assert!(read(&more).is_err());
    }
}
