//! The replay buffer: transitions to learn from.

use crate::model::{Method, State};
use crate::numbers::Numbers;

/// A choice of a lane and its consequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transition {
    pub(crate) state: State,
    pub(crate) lane: usize,
    pub(crate) reward: f32,
    /// The state when the next task arrives.
    pub(crate) next: State,
}

/// The newest transitions; their number is limited to `most`.
#[derive(Debug)]
pub(crate) struct Buffer {
    most: usize,
    transitions: Vec<Transition>,
    /// Index of the next transition to replace.
    at: usize,
}

impl Buffer {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, transitions: Vec::new(), at: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.transitions.len()
    }

    pub(crate) fn push(&mut self, transition: Transition) {
        if self.transitions.len() < self.most {
            self.transitions.push(transition);
        } else {
            self.transitions[self.at] = transition;
        }
        self.at = (self.at + 1) % self.most;
    }

    /// Draws a batch from all transitions, or only from the newest in the published variant.
    pub(crate) fn sample(
        &self,
        kind: Method,
        number: usize,
        newest: usize,
        numbers: &mut Numbers,
    ) -> Vec<&Transition> {
        let among = match kind {
            Method::Improved => self.len(),
            Method::Paper => newest.min(self.len()),
        };
        let draw = |_| {
            let back = 1 + numbers.below(among);
            &self.transitions[(self.at + self.len() - back) % self.len()]
        };
        (0..number).map(draw).collect()
    }
}

#[cfg(test)]
mod tests {
    use warptape_network::{LaneState, TaskState};

    use super::*;

    #[test]
    fn the_oldest_go_first_and_the_newest_are_drawn_where_they_are_asked_for() {
        let state = State::new(Method::Improved, &TaskState::default(), &[LaneState::default(); 16]);
        let mut buffer = Buffer::new(5);
        let mut numbers = Numbers::new(1, 2, 3);
        let mut rewards = |buffer: &Buffer, kind, newest| {
            let sample = buffer.sample(kind, 200, newest, &mut numbers);
            let mut rewards: Vec<_> = sample.iter().map(|one| one.reward as i32).collect();
            rewards.sort_unstable();
            rewards.dedup();
            rewards
        };
        for number in 0..8 {
            let (state, next) = (state.clone(), state.clone());
            buffer.push(Transition { state, lane: 0, reward: number as f32, next });
            if number == 2 {
                assert_eq!(rewards(&buffer, Method::Paper, 2), [1, 2]);
            }
        }
        assert_eq!(rewards(&buffer, Method::Improved, 2), [3, 4, 5, 6, 7]);
        assert_eq!(rewards(&buffer, Method::Paper, 2), [6, 7]);
    }
}
