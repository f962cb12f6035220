//! Virtual time: the pending events, sorted by time.

use std::collections::BTreeMap;

/// Pending events. Events with the same time keep the order in which they were pushed.
#[derive(Debug)]
pub struct Agenda<E> {
    ahead: BTreeMap<(i64, u64), E>,
    /// Number of events pushed so far.
    known: u64,
}

/// The next step of virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<E> {
    /// An event of the agenda.
    Event(E),
    /// The next input; the caller keeps the order of inputs.
    Input,
    /// The scheduler's timer.
    Wake,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { ahead: BTreeMap::new(), known: 0 }
    }
}

impl<E> Agenda<E> {
    /// Schedules an event at a time.
    pub fn push(&mut self, at_ns: i64, event: E) {
        self.known += 1;
        self.ahead.insert((at_ns, self.known), event);
    }

    /// True if no event is pending.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns the next step before `end_ns` with its time; `None` if there is none. A step is an event, an input that
    /// arrives at `input_ns`, or a wake at `wake_ns`. An event or an input at the time of a wake comes first and
    /// replaces it, as in production.
    pub fn next(
        &mut self,
        input_ns: Option<i64>,
        wake_ns: Option<i64>,
        end_ns: i64,
    ) -> Option<(i64, Next<E>)> {
        let event_ns = self.ahead.first_key_value().map(|((at_ns, _), _)| *at_ns);
        let at_ns =
            [event_ns, input_ns, wake_ns].into_iter().flatten().min().filter(|at_ns| *at_ns < end_ns)?;
        let next = if event_ns == Some(at_ns) {
            Next::Event(self.ahead.pop_first()?.1)
        } else if input_ns == Some(at_ns) {
            Next::Input
        } else {
            Next::Wake
        };
        Some((at_ns, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_in_the_order_of_its_time_then_as_it_became_known() {
        let mut agenda = Agenda::default();
        for (at_ns, event) in [(5, "late"), (3, "first"), (3, "second")] {
            agenda.push(at_ns, event);
        }
        let mut next = |input_ns, wake_ns| agenda.next(input_ns, wake_ns, 5);
        assert_eq!(next(Some(3), Some(2)), Some((2, Next::Wake)));
        assert_eq!(next(Some(3), Some(3)), Some((3, Next::Event("first"))));
        assert_eq!(next(Some(3), Some(3)), Some((3, Next::Event("second"))));
        assert_eq!(next(Some(3), Some(3)), Some((3, Next::Input)));
        assert_eq!(next(None, None), None, "the end comes before the last one");
        assert!(!agenda.is_empty());
    }
}
