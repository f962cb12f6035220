//! Reports of librdkafka other than results: errors, lost records, changes of the group. Its threads and callbacks
//! write here; the client's owner reads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::Statistics;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;

use super::figures::Reporter;
use crate::TopicPartition;

/// A change of a member's partitions, decided by the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rebalance {
    /// Partitions to read.
    Assign(Vec<TopicPartition>),
    /// Partitions to give up.
    Revoke(Vec<TopicPartition>),
    /// Partitions that already belong to another member.
    Lose(Vec<TopicPartition>),
}

/// A rejected record, or an error of the client as a whole.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) code: RDKafkaErrorCode,
    pub(super) text: String,
}

/// Reports of a client.
#[derive(Default)]
pub(super) struct Context {
    /// The last error of the client as a whole. An error that names a cause is not replaced by one that names an
    /// effect.
    trouble: Mutex<Option<Trouble>>,
    /// The first undelivered record since the last query.
    undelivered: Mutex<Option<Trouble>>,
    rebalances: Mutex<VecDeque<Rebalance>>,
    /// True while the consumer closes: no caller can decide about a rebalance then.
    closing: AtomicBool,
    /// True if the closing consumer has answered the group by giving up all partitions.
    gave_up: AtomicBool,
    /// Destination of the client's statistics; `None` if nobody reads them.
    reporter: Option<Reporter>,
}

impl Context {
    /// Creates the context of a client that reports statistics.
    pub(super) fn reporting(reporter: Reporter) -> Self {
        Self { reporter: Some(reporter), ..Self::default() }
    }

    /// Returns and clears the last error of the client as a whole.
    pub(super) fn take_trouble(&self) -> Option<Trouble> {
        lock(&self.trouble).take()
    }

    /// Returns the first undelivered record since the last call.
    pub(super) fn take_undelivered(&self) -> Option<Trouble> {
        lock(&self.undelivered).take()
    }

    pub(super) fn put_rebalance(&self, rebalance: Rebalance) {
        lock(&self.rebalances).push_back(rebalance);
    }

    pub(super) fn take_rebalance(&self) -> Option<Rebalance> {
        lock(&self.rebalances).pop_front()
    }

    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Returns true if a closing consumer still has to answer the group. One answer is enough, whatever else the group
    /// decided: librdkafka (2.12.1) ends the membership upon it. A second answer gets no reply and waits forever.
    pub(super) fn begin_to_give_up(&self) -> bool {
        !self.gave_up.swap(true, Ordering::SeqCst)
    }

    pub(super) fn put_trouble(&self, code: RDKafkaErrorCode, text: &str) {
        tracing::debug!(%code, text, "librdkafka reported an error");
        let mut trouble = lock(&self.trouble);
        if trouble.as_ref().is_none_or(|known| !is_cause(known.code) || is_cause(code)) {
            *trouble = Some(Trouble { code, text: text.to_owned() });
        }
    }
}

/// Returns true if an error names the cause of the trouble; other errors only say that there is trouble.
pub(super) fn is_cause(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SSL | RDKafkaErrorCode::Resolve)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is complete even if a holder panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs a line of librdkafka's own log.
pub(super) fn log_line(level: RDKafkaLogLevel, facility: &str, line: &str) {
    match level {
        // Both kinds of clients get the options of the other kind, too.
        _ if facility == "CONFWARN" => tracing::debug!(target: "librdkafka", facility, "{line}"),
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(target: "librdkafka", facility, "{line}");
        }
        RDKafkaLogLevel::Error => tracing::warn!(target: "librdkafka", facility, "{line}"),
        // Important warnings are returned as error values as well. The others, such as an unready coordinator, do not
        // matter.
        RDKafkaLogLevel::Warning => tracing::info!(target: "librdkafka", facility, "{line}"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
            tracing::debug!(target: "librdkafka", facility, "{line}");
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log_line(level, facility, line);
    }

    fn stats(&self, statistics: Statistics) {
        if let Some(reporter) = &self.reporter {
            reporter.report(&statistics);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.put_trouble(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown), reason);
    }
}

impl ConsumerContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, record)) = result {
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
            if matches!(code, RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight) {
                // The producer dropped the record itself, with its transaction.
                return;
            }
            let text = format!("a record for {}/{}: {code}", record.topic(), record.partition());
            lock(&self.undelivered).get_or_insert(Trouble { code, text });
        }
    }
}
