//! The entry point of events and the exit of commands.

use super::Core;
use crate::command::Command;
use crate::error::CoreError;
use crate::event::Event;

/// The events that a core wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Time at which the core wants to be called even without an event; `None` if there is none.
    pub wake_at_ns: Option<i64>,
    /// True if the core accepts records of ticks.
    pub records: bool,
    /// True if the core accepts risk requests.
    pub requests: bool,
    /// True if the core accepts operators' commands.
    pub controls: bool,
}

impl Core {
    /// Handles an event. Call [`Self::poll`] until it returns `None` before the next event.
    pub fn handle(&mut self, event: Event, now_ns: i64) -> Result<(), CoreError> {
        debug_assert!(self.commands.is_empty(), "commands are executed before the next event comes");
        match event {
            Event::Begun => self.begin(now_ns)?,
            Event::Stop(stop) => self.on_stop(now_ns, stop)?,
            Event::Assigned(partitions) => self.on_assigned(now_ns, partitions)?,
            Event::Revoked(partitions) => self.on_revoking(now_ns, partitions)?,
            Event::Lost(partitions) => self.on_lost(now_ns, &partitions)?,
            Event::Positions(positions) => {
                positions.into_iter().try_for_each(|position| self.on_position(now_ns, position))?;
            }
            Event::Records { partition, generation, records, ticks, read_at_ns } => {
                self.on_records(now_ns, partition, generation, (&records, ticks), read_at_ns)?;
            }
            Event::Lane { lane, life, news } => self.on_lane(now_ns, lane, life, news)?,
            Event::Sample { device, sample } => self.on_sample(now_ns, &device, &sample)?,
            Event::Committed(attempt) => self.on_committed(now_ns, attempt)?,
            Event::Aborted { attempt, request, reason } => {
                self.on_aborted(now_ns, attempt, request, reason)?
            }
            Event::Restored { number, restored } => self.on_restored(now_ns, number, *restored)?,
            Event::PagesRead { number, pages } => self.on_pages_read(number, pages)?,
            Event::PagesFound { partition, sought, found } => {
                self.on_pages_found(partition, &sought, &found);
            }
            Event::RequestsOpened { partition, assignment, committed, found_before, answered } => {
                self.on_requests_opened(partition, assignment, committed, found_before, answered);
            }
            Event::Requests { partition, generation, requests } => {
                self.on_requests(now_ns, partition, generation, requests)?;
            }
            Event::RequestsPosition { partition, generation, position } => {
                self.on_requests_position(partition, generation, position);
            }
            Event::Prepared(prepared) => self.on_prepared(now_ns, prepared)?,
            Event::Concluded(concluded) => self.on_concluded(now_ns, concluded)?,
            Event::Priced(priced) => self.on_priced(now_ns, priced)?,
            Event::Controls { ordinal, controls } => self.on_controls(now_ns, ordinal, controls)?,
        }
        Ok(())
    }

    /// Takes the next command, in order; `None` if there is none.
    pub fn poll(&mut self) -> Option<Command> {
        let abandoned = || self.risk.arrivals.pop_abandoned().map(|number| Command::Abandon { number });
        self.commands.pop_front().or_else(abandoned)
    }

    /// The events that the core wants next; `None` once everything before the stop is processed and committed.
    pub fn wants(&self) -> Option<Wants> {
        (!self.is_done()).then(|| self.wants_now())
    }

    /// The events that the core wants next, also when it is done.
    pub(crate) fn wants_now(&self) -> Wants {
        Wants {
            wake_at_ns: self.wake_at_ns(),
            records: self.takes_records(),
            requests: self.takes_requests(),
            controls: self.takes_controls(),
        }
    }

    /// Time at which something changes without an event; `None` if there is none.
    fn wake_at_ns(&self) -> Option<i64> {
        let wakes =
            [self.wake_at_ns, self.risk.arrivals.deadline_ns(), self.commit_at_ns(), self.release_at_ns()];
        wakes.into_iter().flatten().min()
    }
}
