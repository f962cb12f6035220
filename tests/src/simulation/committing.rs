//! The commit thread of a simulated process. Its transactions are written, rejected or aborted, or have an unknown
//! outcome.

use warptape_engine::{CommitAttempt, CommitRequest, Event};
use warptape_pipeline::runtime::records_of;

use super::process::{Around, Process};
use super::snapshots::in_first_place;
use super::{Failure, Plant, World};

impl Process {
    /// Finishes the running transaction, in place of the commit thread.
    pub(super) fn finish_commit(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some((sent_ns, request)) = self.around.in_flight.take() else { return Ok(()) };
        let mut attempt = CommitAttempt { sent_ns, ended_ns: world.now_ns, looked_up: false };
        if !self.around.is_allowed(&request, world) {
            world.coverage.commits_refused += 1;
            return self.abort(attempt, request, world);
        }
        if world.random.one_in(12) && !world.phase.healing {
            world.coverage.commits_aborted += 1;
            return self.abort(attempt, request, world);
        }
        attempt.looked_up = world.random.one_in(12);
        world.coverage.commits_unknown += usize::from(attempt.looked_up);
        if attempt.looked_up && world.random.one_in(2) {
            return self.abort(attempt, request, world);
        }
        if attempt.looked_up && world.plant == Plant::DoubleCommit {
            let again = request.clone();
            self.around.write(*request, world);
            return self.abort(attempt, again, world);
        }
        self.around.write(*request, world);
        self.tell(Event::Committed(attempt), world)
    }

    fn abort(
        &mut self,
        attempt: CommitAttempt,
        request: Box<CommitRequest>,
        world: &mut World,
    ) -> Result<(), Failure> {
        self.tell(Event::Aborted { attempt, request, reason: "simulated".to_owned() }, world)
    }
}

impl Around {
    /// True if the fence and the group let a request commit.
    pub(super) fn is_allowed(&self, request: &CommitRequest, world: &World) -> bool {
        world.plant == Plant::DoubleOwner
            || request.sealed.iter().all(|sealed| {
                self.fence.get(&sealed.partition) == Some(&sealed.assignment)
                    && world.group.is_member(self.ordinal as usize, sealed.partition)
            })
    }

    pub(super) fn write(&self, request: CommitRequest, world: &mut World) {
        for record in records_of(&request, &self.config.core.topics, &self.config.core.node, self.ordinal) {
            if record.topic == self.config.core.topics.snapshots {
                let key = record.key.as_deref().expect("records of snapshots have keys");
                let key = if world.plant == Plant::OnePlace { in_first_place(key) } else { key };
                world.snapshots.add(record.partition, key, record.value.into_owned());
                continue;
            }
            let topic = world.committed.records.entry(record.topic.into_owned()).or_default();
            topic.entry(record.partition).or_default().push(record.value.into_owned());
        }
        if let Some((partition, next)) = request.control.next {
            world.controls.offsets.insert(partition.partition, next);
        }
        for (partition, offset) in request.offsets {
            world.commit_offset(&partition, offset);
        }
    }
}
