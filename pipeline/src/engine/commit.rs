//! The commit thread: writes what the engine hands it as one transaction, while the engine goes on.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_eventlog::{LogError, NewRecord, Producer, TopicPartition};

use super::Clock;

/// A commit that other writers kept from the log is tried this often before it fails.
const COMMIT_ATTEMPTS_MAX: u32 = 3;

/// Everything one transaction holds.
#[derive(Debug, Default)]
pub struct CommitRequest {
    /// Signals, late ticks, dead letters, snapshots and journal entries.
    pub records: Vec<NewRecord>,
    /// Next-to-read source offsets.
    pub offsets: Vec<(TopicPartition, i64)>,
    /// What to count when it is committed.
    pub receipt: Receipt,
}

/// What a commit makes true.
#[derive(Debug, Default)]
pub struct Receipt {
    /// Signals by the time at which the record that caused them was read.
    pub signals_by_read: Vec<(i64, u64)>,
    /// Signals in all.
    pub signals: u64,
    /// Whether source offsets move: false for a commit of journal entries alone.
    pub advances: bool,
}

/// What became of a request.
pub(super) enum CommitEvent {
    /// It is durable and visible.
    Done { receipt: Receipt, committed_at_ns: i64 },
    /// It is not; the thread ended.
    Failed(LogError),
}

/// Handle of the commit thread.
pub(super) struct Committer {
    pub(super) requests: Sender<CommitRequest>,
    pub(super) events: Receiver<CommitEvent>,
    thread: JoinHandle<()>,
}

impl Committer {
    /// Starts the thread. One request may be under way and none waits: the engine gathers instead.
    pub(super) fn start(producer: Box<dyn Producer>, group: String, clock: Clock) -> Self {
        let (requests, received) = bounded(1);
        let (sent, events) = bounded(1);
        let thread = std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || run(producer, &group, clock, &received, &sent))
            .expect("the system can start a thread");
        Self { requests, events, thread }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.requests);
        drop(self.events);
        self.thread.join().expect("the commit thread does not panic");
    }
}

fn run(
    mut producer: Box<dyn Producer>,
    group: &str,
    clock: Clock,
    requests: &Receiver<CommitRequest>,
    events: &Sender<CommitEvent>,
) {
    for request in requests {
        let event = match write(producer.as_mut(), group, request.records, &request.offsets) {
            Ok(()) => CommitEvent::Done { receipt: request.receipt, committed_at_ns: clock.now_ns() },
            Err(error) => CommitEvent::Failed(error),
        };
        let failed = matches!(event, CommitEvent::Failed(_));
        if events.send(event).is_err() || failed {
            return;
        }
    }
}

fn write(
    producer: &mut dyn Producer,
    group: &str,
    records: Vec<NewRecord>,
    offsets: &[(TopicPartition, i64)],
) -> Result<(), LogError> {
    producer.begin()?;
    for record in records {
        producer.send(record)?;
    }
    producer.send_offsets(group, offsets)?;
    for _ in 1..COMMIT_ATTEMPTS_MAX {
        match producer.commit() {
            Err(LogError::Busy { .. }) => {
                tracing::warn!("another writer holds the log; the commit is tried again")
            }
            result => return result,
        }
    }
    producer.commit()
}
