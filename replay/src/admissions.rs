//! What a journal says of risk requests: under which entry each was given to the scheduler, on which market, and how it ended.

use std::sync::Arc;

use warptape_schemas::journal::{AsOf, Decision, Expire, Input, JournalEntry, Reject, TaskArrived, TaskId};

/// A request that was given to the scheduler.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Process that the entry is of.
    pub(crate) node: Arc<str>,
    /// Sequence of the entry.
    pub(crate) sequence: i64,
    /// Time of the entry.
    pub(crate) at_ns: i64,
    /// Partition of the request.
    partition: i32,
    /// Offset of the request.
    offset: i64,
    task: TaskId,
    /// The market that it was worked on with, by partition.
    pub(crate) as_of: Box<[AsOf]>,
    /// How it ended; `None` if it was withdrawn or its process ended before.
    end: Option<AdmissionEnd>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AdmissionEnd {
    Finished,
    Rejected(Reject),
    Expired(Expire),
}

/// All admissions of a log. Some hundred bytes for each request are kept, and nothing of what it asks.
#[derive(Debug, Default)]
pub(crate) struct Admissions {
    /// In the order of the journal, by partition; once gathered by request.
    all: Vec<Admission>,
    /// Where those of the process life begin that is read: its tasks are numbered in order.
    life: usize,
    node: Arc<str>,
}

impl Admissions {
    /// Another partition of the journal begins.
    pub(crate) fn begin(&mut self) {
        self.life = self.all.len();
    }

    /// The next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        match &entry.input {
            Input::Started(started) => {
                self.life = self.all.len();
                self.node = started.node.as_str().into();
            }
            Input::TaskArrived(arrived) if arrived.first_unit == 0 => self.admit(entry, arrived),
            _ => {}
        }
        for decision in &entry.decisions {
            match decision {
                Decision::Finish(finish) => self.end(finish.task, AdmissionEnd::Finished),
                Decision::Reject(reject) => self.end(reject.task, AdmissionEnd::Rejected(*reject)),
                Decision::Expire(expire) => self.end(expire.task, AdmissionEnd::Expired(*expire)),
                _ => {}
            }
        }
    }

    fn admit(&mut self, entry: &JournalEntry, arrived: &TaskArrived) {
        let mut as_of = arrived.as_of.clone();
        as_of.sort_by_key(|as_of| as_of.partition);
        self.all.push(Admission {
            node: self.node.clone(),
            sequence: entry.sequence,
            at_ns: entry.at_ns,
            partition: arrived.partition,
            offset: arrived.offset,
            task: arrived.task,
            as_of: as_of.into(),
            end: None,
        });
    }

    /// A task has come to an end, or one of its rounds: the last counts.
    fn end(&mut self, task: TaskId, end: AdmissionEnd) {
        let life = &mut self.all[self.life..];
        let index = life.partition_point(|admission| admission.task < task);
        if let Some(admission) = life.get_mut(index).filter(|admission| admission.task == task) {
            admission.end = Some(end);
        }
    }

    /// The journal was read: those that came to no end are of no result.
    pub(crate) fn gather(&mut self) {
        self.all.retain(|admission| admission.end.is_some());
        self.all.sort_by_key(|admission| (admission.partition, admission.offset, admission.at_ns));
    }

    /// Those of a request, oldest first: several, where the process that answered had lost the partition.
    pub(crate) fn of(&self, partition: i32, offset: i64) -> &[Admission] {
        let key = |admission: &Admission| (admission.partition, admission.offset);
        let first = self.all.partition_point(|admission| key(admission) < (partition, offset));
        let rest = &self.all[first..];
        &rest[..rest.partition_point(|admission| key(admission) == (partition, offset))]
    }
}

impl Admission {
    /// How it ended.
    pub(crate) fn end(&self) -> AdmissionEnd {
        self.end.expect("those without an end are not gathered")
    }
}
