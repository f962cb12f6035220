//! What librdkafka reports besides results: errors, lost records, changes of the group. Its threads and callbacks write
//! here, the owner of the client reads.

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

/// A change of what a member reads, as the group decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rebalance {
    /// These are to be read.
    Assign(Vec<TopicPartition>),
    /// These are to be given up.
    Revoke(Vec<TopicPartition>),
    /// These are someone else's already.
    Lose(Vec<TopicPartition>),
}

/// A record that was not taken, or an error of the client as a whole.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) code: RDKafkaErrorCode,
    pub(super) text: String,
}

/// What a client reported.
#[derive(Default)]
pub(super) struct Context {
    /// The last error of the client as a whole; one that tells a cause is not replaced by one that tells an effect.
    trouble: Mutex<Option<Trouble>>,
    /// The first record that was not delivered, since last asked.
    undelivered: Mutex<Option<Trouble>>,
    rebalances: Mutex<VecDeque<Rebalance>>,
    /// The consumer is closing: there is nobody to ask about a rebalance.
    closing: AtomicBool,
    /// The consumer has answered the group while it closes, by giving up everything.
    gave_up: AtomicBool,
    /// Where it tells its figures, if somebody wants them.
    reporter: Option<Reporter>,
}

impl Context {
    /// The context of a client that tells its figures.
    pub(super) fn reporting(reporter: Reporter) -> Self {
        Self { reporter: Some(reporter), ..Self::default() }
    }

    /// The last error of the client as a whole, and forgets it.
    pub(super) fn take_trouble(&self) -> Option<Trouble> {
        lock(&self.trouble).take()
    }

    /// The first record that was not delivered since the last call.
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

    /// Whether a consumer that is closing still has to answer the group. One answer is enough, whatever else the group decided:
    /// librdkafka (2.12.1) ends the membership upon it, and never replies to another one, which waits for ever.
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

/// Whether an error tells why nothing works; others only tell that.
pub(super) fn is_cause(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SSL | RDKafkaErrorCode::Resolve)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each holder leaves whole values behind, also when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line of librdkafka's own log.
pub(super) fn log_line(level: RDKafkaLogLevel, facility: &str, line: &str) {
    match level {
        // Options for the other kind of client are passed to both.
        _ if facility == "CONFWARN" => tracing::debug!(target: "librdkafka", facility, "{line}"),
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(target: "librdkafka", facility, "{line}");
        }
        RDKafkaLogLevel::Error => tracing::warn!(target: "librdkafka", facility, "{line}"),
        // What matters of these comes back as an error value; a coordinator that is not ready yet does not matter.
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
                // The producer dropped it itself, with its transaction.
                return;
            }
            let text = format!("a record for {}/{}: {code}", record.topic(), record.partition());
            lock(&self.undelivered).get_or_insert(Trouble { code, text });
        }
    }
}
