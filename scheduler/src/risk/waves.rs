//! Waves: the units of a task that a lane works on at the same time.
//!
//! ```text
//!   a lane of width 4, and a task whose units have width 2
//!     ├─ units 0, 1 ─┤├─ units 2, 3 ─┤├─ unit 4 ─┤     two waves and a part of one, each in the time of a whole wave
//! ```
//!
//! The time of a slice is constant up to one wave, and grows by whole waves above. So costs of slices count in whole
//! waves, and a partly filled wave changes no rate. On a lane of width 1, such as a processor, a wave is one unit. The
//! same holds for tasks whose units run one after the other. The module owns the widths; it must not know how fast a
//! lane is.

use warptape_events::journal::{LaneId, LaneSpec};

use super::rates::Rates;
use super::task::{Task, TaskSpec};
use crate::classes::ClassId;
use crate::config::WAVE_RULES;
use crate::state_hash::{Component, hash_component};

/// Widths of all lanes; empty lists if all are 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Widths {
    of_lanes: Vec<i32>,
    /// Widths by class: lanes of a class have the same width. 0 for a class without lanes.
    of_classes: Vec<i32>,
}

/// Widths of configured lanes. Rules before [`WAVE_RULES`] do not know them.
pub(crate) fn widths_of(specs: &[LaneSpec], rules: i32) -> Vec<i32> {
    let has_waves = rules >= WAVE_RULES;
    specs.iter().map(|spec| if has_waves { spec.width } else { 1 }).collect()
}

impl Widths {
    /// Widths of lanes of these classes; `None` if lanes of a class differ, or a lane has none.
    pub(crate) fn new(of_lanes: Vec<i32>, classes: impl ExactSizeIterator<Item = ClassId>) -> Option<Self> {
        if of_lanes.iter().all(|width| *width == 1) {
            return Some(Self::default());
        }
        if of_lanes.len() != classes.len() {
            return None;
        }
        let mut of_classes = Vec::new();
        for (&width, class) in of_lanes.iter().zip(classes) {
            of_classes.resize(of_classes.len().max(class.index() + 1), 0);
            let of_class = &mut of_classes[class.index()];
            if width < 1 || ![0, width].contains(of_class) {
                return None;
            }
            *of_class = width;
        }
        Some(Self { of_lanes, of_classes })
    }

    /// Widths by lane; empty if all are 1.
    pub(crate) fn of_lanes(&self) -> &[i32] {
        &self.of_lanes
    }

    pub(crate) fn of_lane(&self, lane: LaneId) -> i64 {
        self.of_lanes.get(lane as usize).map_or(1, |width| i64::from(*width))
    }

    pub(crate) fn of_class(&self, class: ClassId) -> i64 {
        self.of_classes.get(class.index()).map_or(1, |width| i64::from(*width).max(1))
    }

    /// Hash of the widths; 0 if all are 1.
    pub(crate) fn hash(&self) -> u64 {
        let of_lane =
            |(lane, width): (i64, &i32)| hash_component(Component::LaneWidth, [lane, i64::from(*width)]);
        (0..).zip(&self.of_lanes).map(of_lane).fold(0, u64::wrapping_add)
    }
}

impl TaskSpec {
    /// Units of a wave on a lane of this width; at least 1.
    fn wave(&self, width: i64) -> i64 {
        width.checked_div(i64::from(self.unit_width)).unwrap_or(1).max(1)
    }

    /// Units of a slice that takes about `wanted_ns` on a lane of this class and width. These are whole waves, at least
    /// one. It is one while nothing is known.
    pub(super) fn slice_units(&self, rates: &Rates, class: ClassId, width: i64, wanted_ns: i64) -> i64 {
        let wave = self.wave(width);
        let waves = rates.slice_waves(class, &self.rate_key, wave * self.unit_cost, wanted_ns);
        (waves * wave).min(self.slice_units_max)
    }
}

impl Task {
    /// Cost of some of its units on a lane of this width, in whole waves.
    pub(crate) fn cost_on(&self, width: i64, units: i64) -> i64 {
        let wave = self.spec.wave(width);
        self.cost((units + wave - 1) / wave * wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(of_lanes: &[i32], classes: &[usize]) -> Option<Widths> {
        Widths::new(of_lanes.to_vec(), classes.iter().copied().map(ClassId::of_number))
    }

    #[test]
    fn lanes_of_a_class_have_one_width() {
        let both = widths(&[1, 16, 16], &[0, 3, 3]).expect("widths of these lanes");
        assert_eq!([0, 1, 2, 3].map(|lane| both.of_lane(lane)), [1, 16, 16, 1]);
        assert_eq!([0, 1, 3, 9].map(|class| both.of_class(ClassId::of_number(class))), [1, 1, 16, 1]);
        assert_eq!(widths(&[1, 1], &[0, 0]), Some(Widths::default()));
        let wrong = [widths(&[16, 8], &[3, 3]), widths(&[16], &[3, 3]), widths(&[0, 8], &[0, 1])];
        assert_eq!(wrong, [None, None, None]);
        assert_eq!(Widths::default().hash(), 0);
        assert_ne!(both.hash(), widths(&[16, 1, 16], &[3, 0, 3]).expect("other widths").hash());
    }

    #[test]
    fn rules_before_waves_do_not_know_widths() {
        let lanes = [1, 16].map(|width| LaneSpec { width, ..LaneSpec::new(0, "cuda:0", 1) });
        assert_eq!(widths_of(&lanes, WAVE_RULES), [1, 16]);
        assert_eq!(widths_of(&lanes, WAVE_RULES - 1), [1, 1]);
    }
}
