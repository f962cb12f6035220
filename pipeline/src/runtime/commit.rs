//! The commit thread: writes each of the engine's requests as one transaction, while the engine goes on.

use std::borrow::Cow;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_engine::{CommitAttempt, CommitRequest, Receipt, SideTopic};
use warptape_eventlog::{About, LogError, NewRecord};
use warptape_schemas::{decode_late_tick, decode_signal_head};

use super::anchoring::Anchors;
use super::dead_letter_headers::dead_letter_headers;
use super::fence::Fence;
use super::transaction::EngineTransaction;
use super::worker::Worker;
use super::written::Written;
use super::{Clock, EngineConfig, Progress, Topics};
use crate::transaction::{Attempted, Outcome, TransactionWriter};

/// Returns the records of a request in the order of writing. The order is signals, late ticks, dead letters, snapshots,
/// risk results, journal entries, answers to commands, and operators' event times among the ticks. Entries and answers
/// go to the partition with the process's ordinal.
pub fn records_of<'a>(
    request: &'a CommitRequest,
    topics: &'a Topics,
    node: &'a str,
    ordinal: i32,
) -> impl Iterator<Item = NewRecord<'a>> {
    let record =
        |topic: &'a str, partition, timestamp_ns, key: Option<&'a [u8]>, value: &'a [u8]| NewRecord {
            topic: topic.into(),
            partition,
            key: key.map(Into::into),
            headers: Cow::default(),
            timestamp_ns,
            value: value.into(),
            about: None,
        };
    let at_ns = request.sealed_at_ns;
    let sealed = request.sealed.iter().flat_map(move |sealed| {
        let partition = sealed.partition;
        let signals = sealed.signals.iter().map(move |signal| NewRecord {
            about: about_signal(signal.bytes),
            ..record(&topics.signals, partition, at_ns, Some(signal.symbol), signal.bytes)
        });
        let side_outputs = sealed.side_outputs.iter().map(move |side_output| match side_output.topic {
            SideTopic::Late => NewRecord {
                about: about_late(&side_output.bytes),
                ..record(&topics.late, partition, at_ns, None, &side_output.bytes)
            },
            SideTopic::DeadLetter => NewRecord {
                headers: dead_letter_headers(&side_output.bytes).into(),
                about: Some(About::at(at_ns)),
                ..record(&topics.dead_letter, partition, at_ns, None, &side_output.bytes)
            },
        });
        let snapshots = sealed.snapshots.iter().map(move |(key, bytes)| {
            record(&topics.snapshots, partition, at_ns, Some(key.as_bytes()), bytes)
        });
        let risk_results = sealed.risk_results.iter().map(move |result| {
            let key = result.request_id.as_bytes();
            record(&topics.risk_results, partition, at_ns, Some(key), &result.bytes)
        });
        signals.chain(side_outputs).chain(snapshots).chain(risk_results)
    });
    let entry = move |(at_ns, bytes): &'a (i64, Vec<u8>)| NewRecord {
        about: Some(About::at(*at_ns)),
        ..record(&topics.journal, ordinal, *at_ns, Some(node.as_bytes()), bytes)
    };
    let answers = request.control.results.iter().map(move |(key, bytes)| {
        record(&topics.control_results, ordinal, at_ns, Some(key.as_bytes()), bytes)
    });
    // Event times come last, because an operator's event time applies only after its place among the ticks.
    let told = request.control.event_times.iter();
    let told = told.map(move |(partition, bytes)| record(&topics.ticks, *partition, at_ns, None, bytes));
    sealed.chain(request.entries.iter().map(entry)).chain(answers).chain(told)
}

/// Describes a signal by the end of its bar; its key is its symbol.
fn about_signal(bytes: &[u8]) -> Option<About<'static>> {
    decode_signal_head(bytes).ok().map(|head| About::at(head.bar_end_ns))
}

/// Describes a late tick by its symbol and its event time.
fn about_late(bytes: &[u8]) -> Option<About<'static>> {
    let tick = decode_late_tick(bytes).ok()?.tick();
    let keys = vec![tick.symbol.into_bytes().into()];
    Some(About { keys, ..About::at(tick.event_time_ns) })
}

/// Outcome of a request.
pub(super) enum CommitEvent {
    /// The transaction is durable and visible.
    Done { receipt: Receipt, written: Written, attempt: CommitAttempt },
    /// Nothing of the transaction was written; the request can be sent again.
    Aborted { request: Box<CommitRequest>, attempt: CommitAttempt, error: LogError },
    /// The log refuses the transaction; the thread has ended.
    Failed(LogError),
}

/// Handle of the commit thread.
pub(super) struct Committer {
    pub(super) requests: Sender<Box<CommitRequest>>,
    pub(super) events: Receiver<CommitEvent>,
    worker: Worker,
}

impl Committer {
    /// Starts the thread. It holds one request at a time; meanwhile the engine gathers more for the next.
    pub(super) fn start(mut writer: TransactionWriter, shell: CommitShell) -> Self {
        let (requests, received) = bounded(1);
        let (sent, events) = bounded(1);
        let worker = Worker::start("commit", move || shell.run(&mut writer, &received, &sent));
        Self { requests, events, worker }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.requests);
        drop(self.events);
        self.worker.join();
    }
}

/// Data that the commit thread uses.
pub(super) struct CommitShell {
    pub(super) config: EngineConfig,
    pub(super) fence: Fence,
    pub(super) anchors: Option<Arc<Anchors>>,
    pub(super) clock: Clock,
    pub(super) progress: Arc<Progress>,
}

impl CommitShell {
    fn run(
        &self,
        writer: &mut TransactionWriter,
        requests: &Receiver<Box<CommitRequest>>,
        events: &Sender<CommitEvent>,
    ) {
        for request in requests {
            let (partitions, entries) = (request.sealed.len(), request.entries.len());
            let _span = tracing::debug_span!("commit", partitions, entries).entered();
            let event = self.write(writer, request);
            let failed = matches!(event, CommitEvent::Failed(_));
            if events.send(event).is_err() || failed {
                return;
            }
        }
    }

    fn write(&self, writer: &mut TransactionWriter, request: Box<CommitRequest>) -> CommitEvent {
        let Self { config, fence, anchors, clock, progress } = self;
        let anchors = anchors.as_deref();
        let sent_ns = clock.now_ns();
        match writer.write(&EngineTransaction { request: &request, config, fence, anchors }) {
            Ok(Attempted { outcome, looked_up }) => {
                let attempt = CommitAttempt { sent_ns, ended_ns: clock.now_ns(), looked_up };
                match outcome {
                    Outcome::Committed => {
                        anchors.into_iter().for_each(Anchors::on_committed);
                        let CommitRequest { ref receipt, sealed_at_ns, .. } = *request;
                        progress.latencies.observe_commit(receipt, sealed_at_ns, attempt.ended_ns);
                        CommitEvent::Done {
                            written: Written::of(&request, &config.core.topics.ticks),
                            receipt: request.receipt,
                            attempt,
                        }
                    }
                    Outcome::Aborted(error) => CommitEvent::Aborted { request, attempt, error },
                }
            }
            Err(error) => CommitEvent::Failed(error),
        }
    }
}
