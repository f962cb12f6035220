//! Writes transactions, and decides what their errors mean.
//!
//! ```text
//!  error of librdkafka        meaning                                consequence for the transaction
//!  ─────────────────────────  ─────────────────────────────────────  ───────────────────────────────────────────
//!  retriable, timed out       no answer yet                          asked again, until the request timeout
//!  … after that timeout       unknown outcome                        OutcomeUnknown: this producer is unusable
//!  requires an abort          the cluster rejected something         aborted at once; Aborted
//!  fenced                     a newer producer has the id            Fenced: this producer is unusable
//!  … open for too long        or the cluster ended the transaction   OutcomeUnknown: this producer is unusable
//!  fatal otherwise            misconfigured, or not allowed          the cause; this producer is unusable
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::client::Client as NativeClient;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};

use super::Members;
use super::caller::{Caller, Client};
use super::cluster::{Cluster, list_of};
use super::context::Context;
use super::failure::{failure, is_passing, refused};
use super::figures::{PRODUCER, Reporter};
use super::native::{self, GroupMetadata, NativeConsumer, NativeError};
use crate::{LogError, NewRecord, Producer, TopicPartition};

/// Longest wait for acknowledgements between two checks of their progress.
const STEP: Duration = Duration::from_millis(100);
/// Longest time that dropping a producer waits for the abort of its transaction.
const DROP_WAIT_MAX: Duration = Duration::from_secs(5);

/// The state of a producer.
enum State {
    /// Between transactions.
    Ready,
    /// In a transaction.
    Open,
    /// The transaction was aborted, for this reason; the caller has not acknowledged it.
    Aborted(String),
    /// The producer is unusable.
    Ended(Ending),
}

/// The reason why a producer is unusable.
#[derive(Clone)]
enum Ending {
    Fenced,
    Unknown { doing: &'static str, cause: String },
    Fatal { doing: &'static str, code: RDKafkaErrorCode, cause: String },
}

/// The kind of failure of a call.
enum Fault {
    /// The transaction must be aborted.
    Abort(String),
    End(Ending),
}

/// A producer of transactions.
pub(super) struct KafkaProducer {
    cluster: Arc<Cluster>,
    members: Arc<Members>,
    /// The client, with a second thread that serves reports.
    caller: Caller,
    transactional_id: String,
    state: State,
    /// Time when the current or last transaction was opened.
    opened_at: Instant,
    /// Known numbers of partitions by topic.
    partitions: HashMap<String, i32>,
    /// Next-to-read offsets of the open transaction, by group. They are sent at its end, because other clients cannot
    /// read the committed offsets once new ones are sent.
    offsets: BTreeMap<String, BTreeMap<TopicPartition, i64>>,
    /// Offsets that are committed regardless of the groups' members.
    positions: BTreeMap<String, BTreeMap<TopicPartition, i64>>,
}

impl KafkaProducer {
    /// Fences every earlier producer of this transactional id, and settles its open transaction.
    pub(super) fn new(
        cluster: Arc<Cluster>,
        members: Arc<Members>,
        transactional_id: &str,
    ) -> Result<Self, LogError> {
        let config = cluster.options.producer(transactional_id, cluster.batch_bytes());
        let context = Context::reporting(Reporter::new(&cluster.board, PRODUCER));
        let client = ThreadedProducer::from_config_and_context(&config, context)
            .map_err(|error| refused(&cluster.url, error))?;
        let producer = Self {
            cluster,
            members,
            caller: Caller::new(client),
            transactional_id: transactional_id.to_owned(),
            state: State::Ready,
            opened_at: Instant::now(),
            partitions: HashMap::new(),
            offsets: BTreeMap::new(),
            positions: BTreeMap::new(),
        };
        const DOING: &str = "starting a producer";
        match producer
            .ask(DOING, |left| Ok(move |client: &Client| transactional(client.init_transactions(left))))
        {
            Ok(()) => Ok(producer),
            // No record of this producer was ever written.
            Err(Fault::Abort(cause) | Fault::End(Ending::Unknown { cause, .. })) => {
                let code = RDKafkaErrorCode::OperationTimedOut;
                let trouble = producer.context().take_trouble();
                Err(failure(&producer.cluster.url, DOING, code, &cause, trouble))
            }
            Err(Fault::End(end)) => Err(producer.ended(&end)),
        }
    }

    fn client(&self) -> &Client {
        self.caller.client()
    }

    fn native(&self) -> &NativeClient<Context> {
        self.client().client()
    }

    fn context(&self) -> &Context {
        self.client().context()
    }

    /// Repeats a call while it fails with a retriable error, at most for the request timeout. `call` makes one attempt
    /// with the given timeout.
    fn ask<C>(
        &self,
        doing: &'static str,
        call: impl Fn(Duration) -> Result<C, NativeError>,
    ) -> Result<(), Fault>
    where
        C: FnOnce(&Client) -> Result<(), NativeError> + Send + 'static,
    {
        let deadline = Instant::now() + self.cluster.options.request_timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match call(left).map(|call| self.caller.call(left, call)) {
                Ok(Some(Ok(()))) => return Ok(()),
                Ok(Some(Err(error))) | Err(error) => error,
                Ok(None) => {
                    let cause = self.cause("a connection to the cluster hangs".to_owned());
                    return Err(Fault::End(Ending::Unknown { doing, cause }));
                }
            };
            use RDKafkaErrorCode as Code;
            let is_fenced = matches!(error.code, Code::Fenced | Code::ProducerFenced)
                || (error.fatal && error.code == Code::InvalidProducerEpoch);
            let may_repeat = error.retriable || is_passing(error.code);
            if is_fenced {
                return Err(Fault::End(Ending::Fenced));
            } else if error.fatal {
                return Err(Fault::End(Ending::Fatal { doing, code: error.code, cause: error.text }));
            } else if error.requires_abort {
                return Err(Fault::Abort(self.cause(error.text)));
            } else if !may_repeat {
                return Err(Fault::End(Ending::Fatal { doing, code: error.code, cause: error.text }));
            } else if left.is_zero() {
                return Err(Fault::End(Ending::Unknown { doing, cause: self.cause(error.text) }));
            }
        }
    }

    /// Adds the client's other reports to a failure's text.
    fn cause(&self, text: String) -> String {
        let beside = [self.context().take_undelivered(), self.context().take_trouble()];
        beside.into_iter().flatten().fold(text, |text, trouble| format!("{text}; {}", trouble.text))
    }

    fn url(&self) -> String {
        self.cluster.url.clone()
    }

    fn ended(&self, end: &Ending) -> LogError {
        let (url, transactional_id) = (self.url(), self.transactional_id.clone());
        match end.clone() {
            Ending::Fenced => LogError::Fenced { url, transactional_id },
            Ending::Unknown { doing, cause } => {
                LogError::OutcomeUnknown { url, transactional_id, doing: doing.to_owned(), cause }
            }
            Ending::Fatal { doing, code, cause } => failure(&url, doing, code, &cause, None),
        }
    }

    fn aborted(&self, cause: &str) -> LogError {
        LogError::Aborted {
            url: self.url(),
            transactional_id: self.transactional_id.clone(),
            cause: cause.to_owned(),
        }
    }

    /// Rejects a call outside a transaction.
    fn check_open(&self, call: &'static str) -> Result<(), LogError> {
        match &self.state {
            State::Open => Ok(()),
            State::Ready => Err(LogError::TransactionState {
                url: self.url(),
                call,
                needs: "an open transaction: call begin first",
            }),
            State::Aborted(cause) => Err(self.aborted(cause)),
            State::Ended(end) => Err(self.ended(end)),
        }
    }

    /// Takes the action that a fault requires. Returns the error for the caller.
    fn judge(&mut self, fault: Fault) -> LogError {
        let (state, error) = match fault {
            Fault::End(end) => self.end(end),
            // The result of the abort shows whether a newer producer was the reason.
            Fault::Abort(cause) => match self.abort_now() {
                Ok(()) => (State::Aborted(cause.clone()), self.aborted(&cause)),
                Err(Fault::End(end @ (Ending::Fenced | Ending::Unknown { .. }))) => self.end(end),
                // An unanswered abort continues by itself, and librdkafka accepts no second one meanwhile.
                Err(Fault::Abort(again) | Fault::End(Ending::Fatal { cause: again, .. })) => {
                    self.end(Ending::Unknown { doing: "aborting", cause: format!("{cause}; {again}") })
                }
            },
        };
        self.forget_offsets();
        self.state = state;
        error
    }

    /// Returns the state after an end, and the error for the caller. The cluster gives the same answer to a producer
    /// whose transaction was open for too long and to a producer that a newer one replaced.
    fn end(&self, end: Ending) -> (State, LogError) {
        let (open_for, open_max) = (self.opened_at.elapsed(), self.cluster.options.transaction_timeout);
        let end = match end {
            Ending::Fenced if matches!(self.state, State::Open) && open_for >= open_max => {
                let cause = format!(
                    "the transaction was open for {} ms, and the broker aborts transactions after {} ms",
                    open_for.as_millis(),
                    open_max.as_millis()
                );
                Ending::Unknown { doing: "writing a transaction", cause }
            }
            end => end,
        };
        let error = self.ended(&end);
        (State::Ended(end), error)
    }

    fn abort_now(&self) -> Result<(), Fault> {
        let aborted = self.ask("aborting a transaction", |left| {
            Ok(move |client: &Client| transactional(client.abort_transaction(left)))
        });
        // Undelivered records ended with the transaction.
        self.context().take_undelivered();
        aborted
    }

    /// Waits until every record is acknowledged.
    fn drain(&self) -> Result<(), Fault> {
        const DOING: &str = "writing records";
        let mut waiting = self.client().in_flight_count();
        let mut progress_at = Instant::now();
        while !native::flush(self.native(), STEP) {
            self.check_fatal(DOING)?;
            let now_waiting = self.client().in_flight_count();
            if now_waiting != waiting {
                (waiting, progress_at) = (now_waiting, Instant::now());
            }
            let stalled = progress_at.elapsed();
            if stalled >= self.cluster.options.stall_timeout {
                let text =
                    format!("{waiting} records were not acknowledged within {} ms", stalled.as_millis());
                return Err(Fault::End(Ending::Unknown { doing: DOING, cause: self.cause(text) }));
            }
        }
        match self.context().take_undelivered() {
            None => Ok(()),
            Some(trouble) => Err(Fault::Abort(advice(trouble.code, trouble.text))),
        }
    }

    fn check_fatal(&self, doing: &'static str) -> Result<(), Fault> {
        use RDKafkaErrorCode as Code;
        match self.native().fatal_error() {
            None => Ok(()),
            Some((Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch, _)) => {
                Err(Fault::End(Ending::Fenced))
            }
            Some((code, cause)) => Err(Fault::End(Ending::Fatal { doing, code, cause })),
        }
    }

    fn try_commit(&self, is_owner: &dyn Fn() -> bool) -> Result<(), Fault> {
        self.drain()?;
        if !is_owner() {
            return Err(Fault::Abort(native::GIVEN_UP.to_owned()));
        }
        for (group, offsets) in &self.offsets {
            self.add_offsets(group, offsets, self.members.find(group).as_deref(), is_owner)?;
        }
        for (group, positions) in &self.positions {
            self.add_offsets(group, positions, None, is_owner)?;
        }
        self.ask("committing a transaction", |left| {
            Ok(move |client: &Client| transactional(client.commit_transaction(left)))
        })
    }

    /// Adds offsets of a group to the transaction, in the name of the group's member in this process, if there is one.
    fn add_offsets(
        &self,
        group: &str,
        offsets: &BTreeMap<TopicPartition, i64>,
        member: Option<&NativeConsumer>,
        is_owner: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let list = list_of(offsets.iter().map(|(source, next)| (source, Offset::Offset(*next))));
        let name = native::c_name(group).expect("the name was checked when the offsets were sent");
        // The member's identity is read again at each attempt, because there may have been a rebalance.
        self.ask("sending offsets", |left| {
            let member = match member {
                Some(member) => member.membership(is_owner)?,
                None => GroupMetadata::none(&name, is_owner)?,
            };
            let list = list.clone();
            Ok(move |client: &Client| native::send_offsets(client.client(), &list, &member, left))
        })
    }

    fn forget_offsets(&mut self) {
        self.offsets.clear();
        self.positions.clear();
    }

    /// Rejects an invalid group name or offset.
    fn check_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        let wrong = |argument, value: String, allowed: &str| LogError::Argument {
            url: self.cluster.url.clone(),
            argument,
            value,
            allowed: allowed.to_owned(),
        };
        if group.is_empty() || native::c_name(group).is_none() {
            return Err(wrong("consumer group", group.to_owned(), "use a name without zero bytes"));
        }
        if let Some((_, next)) = offsets.iter().find(|(_, next)| *next < 0) {
            return Err(wrong("next-to-read offset", next.to_string(), "use 0 or more"));
        }
        offsets.iter().try_for_each(|(source, _)| self.check_partition(&source.topic, source.partition))
    }

    /// Rejects a partition that does not exist: librdkafka would wait for it.
    fn check_partition(&mut self, topic: &str, partition: i32) -> Result<(), LogError> {
        if self.partitions.get(topic).is_some_and(|count| (0..*count).contains(&partition)) {
            return Ok(());
        }
        // The topic is new to this producer, or may have more partitions by now.
        let count = self.cluster.partitions(topic)?;
        let known = self.partitions.insert(topic.to_owned(), count);
        if (0..count).contains(&partition) {
            if known.is_some() {
                self.learn_partitions(topic)?;
            }
            return Ok(());
        }
        let source = TopicPartition { topic: topic.to_owned(), partition };
        Err(self.cluster.unknown_partition(&source, format!("0 to {}", count - 1)))
    }

    /// Makes librdkafka query the topic's number of partitions now, which it otherwise does periodically.
    fn learn_partitions(&self, topic: &str) -> Result<(), LogError> {
        let doing = format!("looking up the new partitions of {topic:?}");
        let looked = self.native().fetch_metadata(Some(topic), self.cluster.options.request_timeout);
        looked.map(drop).map_err(|error| {
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
            failure(&self.cluster.url, &doing, code, "", self.context().take_trouble())
        })
    }

    /// Hands a record over to librdkafka, which copies it; waits while its buffer is full.
    fn enqueue(&mut self, record: &NewRecord<'_>) -> Result<(), LogError> {
        const DOING: &str = "writing records";
        // Number of unacknowledged records at the last check, and the time when it last fell.
        let mut looked: Option<(i32, Instant)> = None;
        loop {
            let error = match self.client().send(kafka_record(record)) {
                Ok(()) => return Ok(()),
                Err((error, _)) => error,
            };
            match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::QueueFull) => {
                    native::flush(self.native(), STEP);
                    let waiting = self.client().in_flight_count();
                    let since = match looked {
                        Some((before, since)) if waiting >= before => since,
                        _ => Instant::now(),
                    };
                    looked = Some((waiting, since));
                    let stalled = since.elapsed();
                    if stalled >= self.cluster.options.stall_timeout {
                        let text = format!(
                            "{waiting} records were not acknowledged within {} ms",
                            stalled.as_millis()
                        );
                        let cause = self.cause(text);
                        return Err(self.judge(Fault::End(Ending::Unknown { doing: DOING, cause })));
                    }
                }
                Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
                    return Err(LogError::RecordTooLarge {
                        url: self.url(),
                        topic: record.topic.clone().into_owned(),
                        bytes: record.value.len() + record.key.as_ref().map_or(0, |key| key.len()),
                        action: "send smaller records, or raise message.max.bytes of this client and max.message.bytes of \
                                 the topic",
                    });
                }
                code => {
                    let text = format!("a record for {}/{}: {error}", record.topic, record.partition);
                    let code = code.unwrap_or(RDKafkaErrorCode::Unknown);
                    let fault = self.check_fatal(DOING).err();
                    return Err(self.judge(fault.unwrap_or_else(|| Fault::Abort(advice(code, text)))));
                }
            }
        }
    }
}

/// Adds the user's remedy to the text about a record that a broker refused.
fn advice(code: RDKafkaErrorCode, text: String) -> String {
    match code {
        RDKafkaErrorCode::MessageSizeTooLarge => {
            format!("{text}; raise max.message.bytes of the topic, or send smaller records")
        }
        RDKafkaErrorCode::TopicAuthorizationFailed => format!("{text}; allow this user to write the topic"),
        _ => text,
    }
}

fn kafka_record<'a>(record: &'a NewRecord<'_>) -> BaseRecord<'a, [u8], [u8]> {
    let mut kafka_record = BaseRecord::to(&record.topic)
        .partition(record.partition)
        .payload(&*record.value)
        .timestamp(record.timestamp_ns / 1_000_000);
    kafka_record.key = record.key.as_deref();
    if !record.headers.is_empty() {
        let headers = OwnedHeaders::new_with_capacity(record.headers.len());
        kafka_record.headers = Some(
            record
                .headers
                .iter()
                .fold(headers, |headers, (key, value)| headers.insert(Header { key, value: Some(value) })),
        );
    }
    kafka_record
}

/// Converts the result of a transactional call of rdkafka.
fn transactional(result: KafkaResult<()>) -> Result<(), NativeError> {
    result.map_err(|error| match error {
        KafkaError::Transaction(error) => NativeError {
            code: error.code(),
            text: error.string(),
            fatal: error.is_fatal(),
            retriable: error.is_retriable(),
            requires_abort: error.txn_requires_abort(),
        },
        // Only the flush within a commit remains, which may be repeated.
        other => NativeError {
            code: other.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown),
            text: other.to_string(),
            fatal: false,
            retriable: true,
            requires_abort: false,
        },
    })
}

impl Producer for KafkaProducer {
    fn begin(&mut self) -> Result<(), LogError> {
        match &self.state {
            State::Ready => {}
            State::Open | State::Aborted(_) => {
                return Err(LogError::TransactionState {
                    url: self.url(),
                    call: "begin",
                    needs: "no open transaction: commit or abort the one before",
                });
            }
            State::Ended(end) => return Err(self.ended(end)),
        }
        match self.ask("beginning a transaction", |_| {
            Ok(|client: &Client| transactional(client.begin_transaction()))
        }) {
            Ok(()) => {
                self.state = State::Open;
                self.opened_at = Instant::now();
                Ok(())
            }
            Err(fault) => Err(self.judge(fault)),
        }
    }

    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError> {
        self.check_open("send")?;
        self.check_partition(&record.topic, record.partition)?;
        self.enqueue(&record)
    }

    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        self.check_open("send_offsets")?;
        self.check_offsets(group, offsets)?;
        if !offsets.is_empty() {
            self.offsets.entry(group.to_owned()).or_default().extend(offsets.iter().cloned());
        }
        Ok(())
    }

    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError> {
        self.check_open("send_position")?;
        self.check_offsets(group, &[(partition.clone(), next)])?;
        self.positions.entry(group.to_owned()).or_default().insert(partition.clone(), next);
        Ok(())
    }

    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError> {
        self.check_open("commit")?;
        match self.try_commit(is_owner) {
            Ok(()) => {
                self.forget_offsets();
                self.state = State::Ready;
                Ok(())
            }
            Err(fault) => Err(self.judge(fault)),
        }
    }

    fn abort(&mut self) -> Result<(), LogError> {
        match &self.state {
            State::Open => {}
            // The transaction was aborted already; this call acknowledges it.
            State::Aborted(_) => {
                self.state = State::Ready;
                return Ok(());
            }
            State::Ready | State::Ended(_) => return self.check_open("abort"),
        }
        self.forget_offsets();
        match self.abort_now() {
            Ok(()) => {
                self.state = State::Ready;
                Ok(())
            }
            Err(Fault::Abort(cause) | Fault::End(Ending::Fatal { cause, .. })) => {
                Err(self.judge(Fault::End(Ending::Unknown { doing: "aborting a transaction", cause })))
            }
            Err(fault) => Err(self.judge(fault)),
        }
    }
}

impl Drop for KafkaProducer {
    fn drop(&mut self) {
        if matches!(self.state, State::Ended(Ending::Unknown { .. })) {
            self.caller.leave();
        }
        // Readers wait for open transactions. Without an answer, the broker aborts this one after its timeout.
        if matches!(self.state, State::Open)
            && let Some(Err(error)) = self
                .caller
                .call(DROP_WAIT_MAX, |client| transactional(client.abort_transaction(DROP_WAIT_MAX)))
        {
            tracing::debug!(
                error = error.text,
                "the transaction of a dropped producer is left to the broker"
            );
        }
    }
}
