//! Artificial faults in decisions. The model must detect each of them; otherwise it would miss real ones.

use std::panic::catch_unwind;

use warptape_events::journal::*;

use crate::simulation::run_with;

/// Most seeds to try until a run contains the fault and detects it.
const SEEDS: u64 = 200;

/// An artificial fault of a scheduler.
#[derive(Clone, Copy, Debug)]
pub enum Plant {
    /// A group is placed on a second lane while the first one still owns it.
    DoubleOwner,
    /// A decision about a slice is dropped, so that the lane never gets the slice.
    LostShare,
    /// The rows of a batch are dispatched a second time.
    RepeatedRows,
    /// Some rows of a batch are left out.
    LostRows,
}

impl Plant {
    /// Puts the fault into the first suitable decision. Returns true if no suitable decision was found yet.
    pub fn spoil(self, decisions: &mut Vec<Decision>, lanes: usize) -> bool {
        for index in 0..decisions.len() {
            match (self, &mut decisions[index]) {
                (Plant::DoubleOwner, Decision::Place(place)) if place.candidates.len() > 1 && lanes > 1 => {
                    let second = place.candidates.iter().find(|candidate| candidate.lane != place.lane);
                    let lane = second.expect("there are two").lane;
                    let place = Place { lane, epoch: place.epoch + 1, ..place.clone() };
                    decisions.insert(index + 1, Decision::Place(place));
                    return false;
                }
                (Plant::LostShare, Decision::RunSlice(_)) => {
                    decisions.remove(index);
                    return false;
                }
                (Plant::RepeatedRows, Decision::Dispatch(dispatch)) => {
                    let again = Dispatch { batch: dispatch.batch + 1, ..dispatch.clone() };
                    decisions.insert(index + 1, Decision::Dispatch(again));
                    return false;
                }
                (Plant::LostRows, Decision::Dispatch(dispatch)) if dispatch.takes[0].rows > 1 => {
                    dispatch.takes[0].rows -= 1;
                    dispatch.rows -= 1;
                    return false;
                }
                _ => (),
            }
        }
        true
    }
}

/// The model's error message for a scheduler with this fault; `None` if no run detects it.
fn found(plant: Plant) -> Option<String> {
    let broken = (0..SEEDS).find_map(|seed| catch_unwind(|| run_with(seed, Some(plant))).err())?;
    let said = broken.downcast::<String>().map(|text| *text);
    Some(said.unwrap_or_else(|other| format!("{:?}", other.downcast::<&str>())))
}

#[test]
fn planted_faults_are_found() {
    for plant in [Plant::DoubleOwner, Plant::LostShare, Plant::RepeatedRows, Plant::LostRows] {
        let said = found(plant);
        assert!(said.is_some(), "{plant:?} was not found by {SEEDS} seeds");
        println!("{plant:?}: {said:?}");
    }
}
