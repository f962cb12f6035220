//! Classes of lanes. Lanes of one class are equally fast and wide, so that the times of one predict those of the
//! others.
//!
//! It owns the classes' numbers, which are part of the state hash; it must not know what is learnt of a class.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, LaneKind, LaneSpec};

use crate::state_hash::{Component, hash_component};

/// Number of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ClassId(usize);

impl ClassId {
    /// The unnamed class of all lanes of this kind.
    pub(crate) const fn of_kind(kind: LaneKind) -> Self {
        match kind {
            LaneKind::Host => Self(0),
            LaneKind::Device => Self(1),
        }
    }

    /// The class's number.
    pub(crate) fn index(self) -> usize {
        self.0
    }

    /// The class with this number.
    pub(crate) fn of_number(number: usize) -> Self {
        Self(number)
    }

    /// Hash of a lane's class; 0 if the class has no name.
    pub(crate) fn hash(self, lane: LaneId) -> u64 {
        match self.0 {
            0..KINDS => 0,
            index => hash_component(Component::LaneClass, [i64::from(lane), index as i64]),
        }
    }
}

/// The class of each lane, by lane, and the number of classes. A lane of width 1 without a named class belongs to the
/// class of its kind. Other classes have the numbers after these two, in the order of their first lanes. `widths` are
/// those of the lanes.
pub(crate) fn classes_of(lanes: &[LaneSpec], widths: &[i32]) -> (Vec<ClassId>, usize) {
    let mut named: Vec<(LaneKind, &str, i32)> = Vec::new();
    let mut classes = Vec::with_capacity(lanes.len());
    for (lane, &width) in lanes.iter().zip(widths) {
        if lane.class.is_empty() && width == 1 {
            classes.push(ClassId::of_kind(lane.kind()));
            continue;
        }
        let key = (lane.kind(), lane.class.as_str(), width);
        let known = named.iter().position(|class| *class == key);
        let index = known.unwrap_or_else(|| {
            named.push(key);
            named.len() - 1
        });
        classes.push(ClassId(KINDS + index));
    }
    (classes, KINDS + named.len())
}

/// Number of unnamed classes: one for each kind of lanes.
pub(crate) const KINDS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_of_one_class_where_kind_name_and_width_are_the_same() {
        let lanes =
            [("cuda:0", "H200"), ("cpu:1", ""), ("cuda:1", "T4"), ("cuda:2", "H200"), ("cpu:2", "T4")];
        let lanes: Vec<_> = (0..)
            .zip(lanes)
            .map(|(lane, (device, class))| LaneSpec { class: class.into(), ..LaneSpec::new(lane, device, 1) })
            .collect();
        let check = |widths: &[i32], expected: [usize; 5], expected_count| {
            let (classes, count) = classes_of(&lanes, widths);
            assert_eq!(classes.iter().map(|class| class.index()).collect::<Vec<_>>(), expected);
            assert_eq!(count, expected_count);
        };
        check(&[1; 5], [2, 0, 3, 2, 4], 5);
        check(&[16, 1, 16, 16, 1], [2, 0, 3, 2, 4], 5);
        check(&[16, 2, 16, 8, 1], [2, 3, 4, 5, 6], 7);
    }
}
