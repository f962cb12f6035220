//! Batch consumption by librdkafka, and the few calls that rdkafka lacks.
//!
//! `rd_kafka_consume_batch_queue` takes many messages off the consumer's queue at the price of one. It passes the
//! queue's other events to callbacks, whereas rdkafka's consumers expect events. So this consumer uses rdkafka's
//! `Client` and installs its own rebalance callback, which only records the group's decision ([`Context`]).
//! [`NativeConsumer::assign`] and [`NativeConsumer::unassign`] answer it later. Messages are copied out before a call
//! returns: no pointer leaves this module.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::time::Duration;

use rdkafka::bindings as rd;
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::types::{RDKafkaRespErr, RDKafkaType};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::context::{Context, Rebalance, log_line};
use crate::{Record, TopicPartition, UNREADABLE_BATCH_HEADER};

unsafe extern "C" {
    /// This reference to a function of `native/batch_reader.c` makes the linker take that file instead of librdkafka's
    /// own.
    safe fn warptape_batches_are_bounded() -> c_int;
}

/// An error object of librdkafka, by value.
#[derive(Clone, Debug)]
pub(super) struct NativeError {
    pub(super) code: RDKafkaErrorCode,
    pub(super) text: String,
    pub(super) fatal: bool,
    pub(super) retriable: bool,
    pub(super) requires_abort: bool,
}

/// Messages off the queue, in order.
pub(super) enum Arrival {
    /// Consecutive records of a partition; never empty.
    Records(TopicPartition, Vec<Record>),
    /// An error; it concerns a partition if `offset` is a valid offset.
    Failure { source: TopicPartition, offset: i64, code: RDKafkaErrorCode, text: String },
}

/// A consumer. Calls may come from several threads.
pub(super) struct NativeConsumer {
    client: Client<Context>,
    queue: NonNull<rd::rd_kafka_queue_t>,
}

/// Selects records with or without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Headers {
    Kept,
    /// No headers: librdkafka parses headers on request, and allocates for them even if there are none.
    Left,
}

// SAFETY: librdkafka's handles and queues are safe to use from any thread (its introduction, "Threads and callbacks").
// `queue` is released once, in `drop`, which has exclusive access.
unsafe impl Send for NativeConsumer {}
// SAFETY: as above.
unsafe impl Sync for NativeConsumer {}

impl NativeConsumer {
    /// Creates a consumer with a `group.id`; it joins no group before [`Self::subscribe`].
    pub(super) fn new(config: &ClientConfig, context: Context) -> KafkaResult<Self> {
        assert_eq!(warptape_batches_are_bounded(), 1, "batches are unpacked within bounds");
        let native = config.create_native_config()?;
        // SAFETY: `native` is a live configuration, and the callbacks live as long as the program. Their `opaque`
        // argument is the context, which `Client::new` sets and `Client` keeps alive.
        unsafe {
            rd::rd_kafka_conf_set_rebalance_cb(native.ptr(), Some(on_rebalance));
            rd::rd_kafka_conf_set_error_cb(native.ptr(), Some(on_error));
            rd::rd_kafka_conf_set_log_cb(native.ptr(), Some(on_log));
            rd::rd_kafka_conf_set_stats_cb(native.ptr(), Some(on_statistics));
        }
        let client = Client::new(config, native, RDKafkaType::RD_KAFKA_CONSUMER, context)?;
        // SAFETY: the client is live. From here on its main queue is served through the consumer's queue.
        let queue = unsafe {
            rd::rd_kafka_poll_set_consumer(client.native_ptr());
            NonNull::new(rd::rd_kafka_queue_get_consumer(client.native_ptr()))
        };
        let queue =
            queue.ok_or_else(|| KafkaError::ClientCreation("the consumer has no queue".to_owned()))?;
        Ok(Self { client, queue })
    }

    pub(super) fn context(&self) -> &Context {
        self.client.context()
    }

    fn ptr(&self) -> *mut rd::rd_kafka_t {
        self.client.native_ptr()
    }

    /// Waits up to `timeout` for a first message, then takes the other available ones, up to `messages_max`. Returns
    /// early on a rebalance.
    pub(super) fn consume(&self, timeout: Duration, messages_max: usize, headers: Headers) -> Vec<Arrival> {
        let mut batch = Vec::with_capacity(messages_max.max(1));
        // With room for more than one message, the call would wait until the room is full.
        if !timeout.is_zero() && self.fill(&mut batch, millis(timeout), 1) == 0 {
            return Vec::new();
        }
        let room = messages_max.saturating_sub(batch.len());
        self.fill(&mut batch, 0, room);
        arrivals(batch, headers)
    }

    fn fill(&self, batch: &mut Vec<Message>, timeout_ms: c_int, count_max: usize) -> usize {
        batch.reserve(count_max);
        // SAFETY: the queue is live, and the vector has room for `count_max` more pointers, each of them a `Message`.
        // The call returns how many it wrote; a negative number is an error and means none. The vector then owns them.
        unsafe {
            let room = batch.as_mut_ptr().add(batch.len());
            let count =
                rd::rd_kafka_consume_batch_queue(self.queue.as_ptr(), timeout_ms, room.cast(), count_max);
            let count = usize::try_from(count).unwrap_or(0);
            batch.set_len(batch.len() + count);
            count
        }
    }

    /// Returns the error that made the client unusable; `None` while it works.
    pub(super) fn fatal_error(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.client.fatal_error()
    }

    /// Joins the group.
    pub(super) fn subscribe(&self, topics: &[String]) -> Result<(), RDKafkaErrorCode> {
        let mut list = TopicPartitionList::new();
        for topic in topics {
            list.add_topic_unassigned(topic);
        }
        // SAFETY: both are live; the list is copied.
        checked(unsafe { rd::rd_kafka_subscribe(self.ptr(), list.ptr()) })
    }

    /// Reads these partitions from their offsets, outside any group.
    pub(super) fn read(&self, partitions: &TopicPartitionList) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: both are live; the list is copied.
        checked(unsafe { rd::rd_kafka_assign(self.ptr(), partitions.ptr()) })
    }

    /// Answers [`Rebalance::Assign`].
    pub(super) fn assign(&self, partitions: &TopicPartitionList) -> Result<(), NativeError> {
        // SAFETY: both are live; the list is copied, the error handed over.
        taken(unsafe { rd::rd_kafka_incremental_assign(self.ptr(), partitions.ptr()) })
    }

    /// Answers [`Rebalance::Revoke`] and [`Rebalance::Lose`].
    pub(super) fn unassign(&self, partitions: &TopicPartitionList) -> Result<(), NativeError> {
        // SAFETY: both are live; the list is copied, the error handed over.
        taken(unsafe { rd::rd_kafka_incremental_unassign(self.ptr(), partitions.ptr()) })
    }

    pub(super) fn pause(&self, partitions: &TopicPartitionList) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: both are live; the call writes results into the list.
        checked(unsafe { rd::rd_kafka_pause_partitions(self.ptr(), partitions.ptr()) })
    }

    pub(super) fn resume(&self, partitions: &TopicPartitionList) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: both are live; the call writes results into the list.
        checked(unsafe { rd::rd_kafka_resume_partitions(self.ptr(), partitions.ptr()) })
    }

    /// Seeks to the offsets in the list, which also receives each partition's result.
    pub(super) fn seek(&self, partitions: &TopicPartitionList, timeout: Duration) -> Result<(), NativeError> {
        // SAFETY: both are live; the call writes results into the list and hands the error over.
        taken(unsafe { rd::rd_kafka_seek_partitions(self.ptr(), partitions.ptr(), millis(timeout)) })
    }

    /// Returns the offset after the last message that was taken off the queue for a partition, transaction markers
    /// included. `None` before the first message since the partition was assigned or sought.
    pub(super) fn position(&self, source: &TopicPartition) -> Option<i64> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&source.topic, source.partition);
        // SAFETY: both are live; the call writes results into the list.
        checked(unsafe { rd::rd_kafka_position(self.ptr(), list.ptr()) }).ok()?;
        match list.elements()[0].offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// Writes the group's committed offsets into the list.
    pub(super) fn committed(
        &self,
        partitions: &TopicPartitionList,
        timeout: Duration,
    ) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: both are live; the call writes results into the list.
        checked(unsafe { rd::rd_kafka_committed(self.ptr(), partitions.ptr(), millis(timeout)) })
    }

    /// Returns the group's current identity of this member, if `is_owner` then still returns true. The group refuses
    /// commits under an identity from before the member released a partition.
    pub(super) fn membership(&self, is_owner: &dyn Fn() -> bool) -> Result<GroupMetadata, NativeError> {
        // SAFETY: the consumer is live.
        let membership = GroupMetadata(unsafe { rd::rd_kafka_consumer_group_metadata(self.ptr()) });
        membership.if_owner(is_owner)
    }
}

impl Drop for NativeConsumer {
    fn drop(&mut self) {
        self.context().close();
        // SAFETY: the client is live until this returns. Closing serves the callbacks once more, while the context is
        // alive, and waits until the group is left; the queue is not used afterwards.
        unsafe {
            rd::rd_kafka_consumer_close(self.ptr());
            rd::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
    }
}

/// The reason for an abort by a transaction's owner.
pub(super) const GIVEN_UP: &str = "partitions were given up meanwhile";

/// A member's identity in its group.
pub(super) struct GroupMetadata(*mut rd::rd_kafka_consumer_group_metadata_t);

// SAFETY: the value is owned here alone.
unsafe impl Send for GroupMetadata {}

impl GroupMetadata {
    /// Returns the identity for commits of a group that has no member in this process. `is_owner` is asked, because a
    /// member may have left just now.
    pub(super) fn none(group: &CStr, is_owner: &dyn Fn() -> bool) -> Result<Self, NativeError> {
        // SAFETY: the name is copied.
        let membership = Self(unsafe { rd::rd_kafka_consumer_group_metadata_new(group.as_ptr()) });
        membership.if_owner(is_owner)
    }

    fn if_owner(self, is_owner: &dyn Fn() -> bool) -> Result<Self, NativeError> {
        if is_owner() {
            return Ok(self);
        }
        Err(NativeError {
            code: RDKafkaErrorCode::RebalanceInProgress,
            text: GIVEN_UP.to_owned(),
            fatal: false,
            retriable: false,
            requires_abort: true,
        })
    }
}

impl Drop for GroupMetadata {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned, and no reference to it is left.
        unsafe { rd::rd_kafka_consumer_group_metadata_destroy(self.0) };
    }
}

/// Adds the offsets of a group to a producer's transaction.
pub(super) fn send_offsets<C: ClientContext>(
    producer: &Client<C>,
    offsets: &TopicPartitionList,
    membership: &GroupMetadata,
    timeout: Duration,
) -> Result<(), NativeError> {
    // SAFETY: all arguments are live and only read; the error is handed over.
    taken(unsafe {
        rd::rd_kafka_send_offsets_to_transaction(
            producer.native_ptr(),
            offsets.ptr(),
            membership.0,
            millis(timeout),
        )
    })
}

/// Sends a producer's buffered records and waits for all acknowledgements. Returns true if all arrived. Another thread
/// must serve the producer's events meanwhile.
pub(super) fn flush<C: ClientContext>(producer: &Client<C>, timeout: Duration) -> bool {
    // SAFETY: the client is live.
    let result = unsafe { rd::rd_kafka_flush(producer.native_ptr(), millis(timeout)) };
    result == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR
}

/// An owned message: a pointer that librdkafka wrote.
#[repr(transparent)]
struct Message(NonNull<rd::rd_kafka_message_t>);

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the message is owned, and destroyed only here.
        unsafe { rd::rd_kafka_message_destroy(self.0.as_ptr()) };
    }
}

/// Copies a batch out. Each message is destroyed right after its copy, while it is in the processor's cache.
fn arrivals(batch: Vec<Message>, headers: Headers) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut left = batch.len();
    // The partition of the last records. Within a batch, all messages of a topic have the same handle.
    let mut run: Option<(*mut rd::rd_kafka_topic_t, i32)> = None;
    for message in batch {
        // SAFETY: a message is live until it is dropped.
        let content = unsafe { message.0.as_ref() };
        let code = RDKafkaErrorCode::from(content.err);
        if code == RDKafkaErrorCode::NoError {
            match arrivals.last_mut() {
                Some(Arrival::Records(_, records)) if run == Some((content.rkt, content.partition)) => {
                    records.push(record(content, headers));
                }
                _ => {
                    let mut records = Vec::with_capacity(left);
                    records.push(record(content, headers));
                    arrivals.push(Arrival::Records(source(content), records));
                }
            }
            run = Some((content.rkt, content.partition));
        } else {
            // SAFETY: the payload of an error message is its text.
            let text = unsafe { bytes(content.payload, content.len) };
            arrivals.push(Arrival::Failure {
                source: source(content),
                offset: content.offset,
                code,
                text: String::from_utf8_lossy(text).into_owned(),
            });
        }
        left -= 1;
    }
    arrivals
}

fn source(message: &rd::rd_kafka_message_t) -> TopicPartition {
    let topic = if message.rkt.is_null() {
        String::new()
    } else {
        // SAFETY: the topic's handle lives as long as its message; the name is copied.
        unsafe { text(rd::rd_kafka_topic_name(message.rkt)) }
    };
    TopicPartition { topic, partition: message.partition }
}

fn record(message: &rd::rd_kafka_message_t, headers: Headers) -> Record {
    // SAFETY: the message is live, and its fields describe memory that it owns; all of it is copied.
    unsafe {
        let timestamp_ms = rd::rd_kafka_message_timestamp(message, ptr::null_mut());
        Record {
            offset: message.offset,
            key: (!message.key.is_null()).then(|| bytes(message.key, message.key_len).to_vec()),
            headers: match headers {
                Headers::Kept => headers_of(message),
                Headers::Left => Vec::new(),
            },
            timestamp_ns: timestamp_ms.saturating_mul(1_000_000),
            value: bytes(message.payload, message.len).to_vec(),
        }
    }
}

/// # Safety
/// The message must be live.
unsafe fn headers_of(message: &rd::rd_kafka_message_t) -> Vec<(String, Vec<u8>)> {
    let mut list = ptr::null_mut();
    let mut headers = Vec::new();
    // SAFETY: the message is live; it keeps the list, and the list keeps what it names.
    unsafe {
        if rd::rd_kafka_message_headers(message, &mut list) != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return headers;
        }
        let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
        while rd::rd_kafka_header_get_all(list, headers.len(), &mut name, &mut value, &mut size)
            == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR
        {
            headers.push((text(name), bytes(value, size).to_vec()));
        }
    }
    // Foreign records cannot pose as a batch.
    headers.retain(|(name, _)| name != UNREADABLE_BATCH_HEADER);
    headers
}

/// # Safety
/// `start` must be null or the beginning of `length` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { slice::from_raw_parts(start.cast(), length) }
}

/// # Safety
/// `start` must be null or the beginning of a text that ends with a zero byte.
unsafe fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

fn checked(result: RDKafkaRespErr) -> Result<(), RDKafkaErrorCode> {
    match RDKafkaErrorCode::from(result) {
        RDKafkaErrorCode::NoError => Ok(()),
        code => Err(code),
    }
}

fn taken(error: *mut rd::rd_kafka_error_t) -> Result<(), NativeError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a call of librdkafka has just handed the error over; it is copied before it is destroyed.
    unsafe {
        let copy = NativeError {
            code: rd::rd_kafka_error_code(error).into(),
            text: text(rd::rd_kafka_error_string(error)),
            fatal: rd::rd_kafka_error_is_fatal(error) != 0,
            retriable: rd::rd_kafka_error_is_retriable(error) != 0,
            requires_abort: rd::rd_kafka_error_txn_requires_abort(error) != 0,
        };
        rd::rd_kafka_error_destroy(error);
        Err(copy)
    }
}

fn millis(timeout: Duration) -> c_int {
    // A wait below a millisecond is rounded up, because 0 would mean no wait.
    c_int::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX)
}

/// # Safety
/// `opaque` must be the context of a live client.
unsafe fn context<'a>(opaque: *mut c_void) -> &'a Context {
    // SAFETY: promised by the caller.
    unsafe { &*opaque.cast::<Context>() }
}

/// Records the group's decision. A closing consumer has no caller to ask and agrees at once.
unsafe extern "C" fn on_rebalance(
    client: *mut rd::rd_kafka_t,
    what: RDKafkaRespErr,
    partitions: *mut rd::rd_kafka_topic_partition_list_t,
    opaque: *mut c_void,
) {
    // SAFETY: librdkafka calls this from within a call on a live client, with that client's opaque value (its context).
    // The list lives until this returns; the kept data is copied.
    unsafe {
        let context = context(opaque);
        if context.is_closing() {
            if context.begin_to_give_up() {
                rd::rd_kafka_assign(client, ptr::null());
            }
            return;
        }
        let list = &*partitions;
        let elements: &[rd::rd_kafka_topic_partition_t] = match list.cnt {
            0 => &[],
            count => slice::from_raw_parts(list.elems, count as usize),
        };
        let named = elements
            .iter()
            .map(|element| TopicPartition { topic: text(element.topic), partition: element.partition })
            .collect();
        context.put_rebalance(match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Rebalance::Assign(named),
            _ if rd::rd_kafka_assignment_lost(client) != 0 => Rebalance::Lose(named),
            _ => Rebalance::Revoke(named),
        });
        // The yield ends the wait in `consume`, which would otherwise continue until a message arrives.
        let queue = rd::rd_kafka_queue_get_consumer(client);
        rd::rd_kafka_queue_yield(queue);
        rd::rd_kafka_queue_destroy(queue);
    }
}

unsafe extern "C" fn on_error(
    client: *mut rd::rd_kafka_t,
    code: c_int,
    reason: *const c_char,
    opaque: *mut c_void,
) {
    let mut code = RDKafkaRespErr::try_from(code).map_or(RDKafkaErrorCode::Unknown, RDKafkaErrorCode::from);
    // SAFETY: as for `on_rebalance`.
    unsafe {
        let mut reason = text(reason);
        if code == RDKafkaErrorCode::Fatal {
            // The code `Fatal` refers to the first fatal error.
            let mut buffer: [c_char; 512] = [0; 512];
            code = rd::rd_kafka_fatal_error(client, buffer.as_mut_ptr(), buffer.len()).into();
            reason = text(buffer.as_ptr());
        }
        context(opaque).put_trouble(code, reason.trim());
    }
}

unsafe extern "C" fn on_statistics(
    _: *mut rd::rd_kafka_t,
    json: *mut c_char,
    length: usize,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: as for `on_rebalance`; the text has this length and lives until this returns. Returning 0 tells
    // librdkafka to free it.
    unsafe { context(opaque).stats_raw(bytes(json.cast(), length)) };
    0
}

unsafe extern "C" fn on_log(
    _: *const rd::rd_kafka_t,
    level: c_int,
    facility: *const c_char,
    line: *const c_char,
) {
    let level = match level {
        ..=2 => RDKafkaLogLevel::Critical,
        3 => RDKafkaLogLevel::Error,
        4 => RDKafkaLogLevel::Warning,
        _ => RDKafkaLogLevel::Info,
    };
    // SAFETY: both are texts that live until this returns.
    unsafe { log_line(level, text(facility).trim(), text(line).trim()) };
}

/// Converts a name for librdkafka; `None` if it contains a zero byte.
pub(super) fn c_name(name: &str) -> Option<CString> {
    CString::new(name).ok()
}
