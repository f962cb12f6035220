//! Reads committed records of some partitions in turn, as a member of a group or outside any group.
//!
//! Records come off librdkafka's queue in batches of several partitions, and are held here until they are polled. A
//! paused partition keeps its held records; a seek or a revocation drops them.
//!
//! A batch that cannot be unpacked is replaced by one record ([`UnreadableBatch`]), and reading continues after it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{ClientConfig, Offset};

use super::cluster::{Cluster, list_of};
use super::context::{Context, Rebalance};
use super::failure::{failure, is_passing, refused};
use super::figures::{MEMBER, Reporter};
use super::native::{Arrival, Headers, NativeConsumer};
use super::watchdog::Watchdog;
use super::{Members, READER_GROUP};
use crate::{Consumer, Fetched, LogError, OffsetRange, Record, TopicPartition, UnreadableBatch};

/// Largest number of held records, except those of paused partitions.
const HELD_RECORDS_MAX: usize = 1024;
/// Bytes of held records from which no more are fetched.
const HELD_BYTES_DUE: usize = 64 << 20;
/// Pause before a call is repeated because a partition was not ready.
const RETRY: Duration = Duration::from_millis(1);
/// Pause before a member asks again for its place in the group while another client still has it.
const PLACE_RETRY: Duration = Duration::from_secs(1);
/// Interval between notices that the member waits for its place.
const PLACE_NEWS: Duration = Duration::from_secs(10);

/// The reading state of a partition.
struct Reading {
    /// Offset before which every record was polled.
    position: i64,
    held: VecDeque<Record>,
    paused: bool,
}

impl Reading {
    fn at(position: i64) -> Self {
        Self { position, held: VecDeque::new(), paused: false }
    }

    /// Returns the offset after the last record received.
    fn next_offset(&self) -> i64 {
        self.held.back().map_or(self.position, |last| last.offset + 1)
    }

    fn held_bytes(&self) -> usize {
        self.held.iter().map(Record::bytes).sum()
    }

    /// Returns the records not received before: librdkafka may deliver records again after an outage.
    fn new_of(&self, source: &TopicPartition, mut records: Vec<Record>) -> Vec<Record> {
        let mut next = self.next_offset();
        let before = records.len();
        records.retain(|record| {
            let is_new = record.offset >= next;
            next = next.max(record.offset + 1);
            is_new
        });
        if records.len() < before {
            tracing::warn!(
                ?source,
                again = before - records.len(),
                "records arrived a second time and are skipped"
            );
        }
        records
    }
}

/// The group that a consumer has joined or waits to join.
struct Group {
    name: String,
    topics: Vec<String>,
    members: Arc<Members>,
    /// Next time to request this member's place; `None` unless another client has the place. The other client is a
    /// running process, or a killed one whose session has not ended.
    next_try: Option<Instant>,
    /// Time of the next notice that the member waits.
    next_news: Instant,
}

/// A consumer of a group, or a reader outside any.
pub(super) struct KafkaConsumer {
    cluster: Arc<Cluster>,
    native: Arc<NativeConsumer>,
    /// `None` for a reader.
    group: Option<Group>,
    headers: Headers,
    readings: BTreeMap<TopicPartition, Reading>,
    /// The partition that was served last.
    last: Option<TopicPartition>,
    /// Decisions of the group that the caller does not know yet.
    news: VecDeque<Fetched>,
    /// Partitions that the caller gives up by the next poll.
    leaving: Vec<TopicPartition>,
    /// A failure that occurred after records were received; the records are delivered first.
    failed: Option<LogError>,
    watchdog: Watchdog,
}

impl KafkaConsumer {
    pub(super) fn member(
        cluster: Arc<Cluster>,
        members: Arc<Members>,
        group: &str,
        topics: &[&str],
    ) -> Result<Self, LogError> {
        for topic in topics {
            cluster.partitions(topic)?;
        }
        let config = cluster.options.member(group);
        let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
        let group =
            Group { name: group.to_owned(), topics, members, next_try: None, next_news: Instant::now() };
        let consumer = Self::new(cluster, Some(group), &config)?;
        consumer.join()?;
        Ok(consumer)
    }

    /// Joins the group with the current client.
    fn join(&self) -> Result<(), LogError> {
        let group = self.group.as_ref().expect("only members join");
        let joined = self.native.subscribe(&group.topics);
        joined.map_err(|code| self.failure("joining the group", code, ""))?;
        group.members.add(&group.name, &self.native);
        Ok(())
    }

    fn group_name(&self) -> Option<&str> {
        self.group.as_ref().map(|group| group.name.as_str())
    }

    pub(super) fn reader(cluster: Arc<Cluster>, partitions: &[TopicPartition]) -> Result<Self, LogError> {
        for partition in partitions {
            cluster.check_partition(partition)?;
        }
        let config = cluster.options.reader(READER_GROUP, partitions.len());
        let mut consumer = Self::new(cluster, None, &config)?;
        for partition in partitions {
            let first = consumer.cluster.offsets(partition)?.first;
            consumer.readings.insert(partition.clone(), Reading::at(first));
        }
        let list =
            consumer.readings.iter().map(|(source, reading)| (source, Offset::Offset(reading.position)));
        let list = list_of(list);
        consumer.native.read(&list).map_err(|code| consumer.failure("starting to read", code, ""))?;
        Ok(consumer)
    }

    fn new(cluster: Arc<Cluster>, group: Option<Group>, config: &ClientConfig) -> Result<Self, LogError> {
        let context = match &group {
            Some(_) => Context::reporting(Reporter::new(&cluster.board, MEMBER)),
            None => Context::default(),
        };
        let native = NativeConsumer::new(config, context)
            .map_err(|error| refused(&cluster.url, error))
            .map(Arc::new)?;
        let watchdog = Watchdog::new(cluster.options.stall_timeout);
        Ok(Self {
            cluster,
            native,
            group,
            headers: Headers::Kept,
            readings: BTreeMap::new(),
            last: None,
            news: VecDeque::new(),
            leaving: Vec::new(),
            failed: None,
            watchdog,
        })
    }

    fn failure(&self, doing: &str, code: RDKafkaErrorCode, text: &str) -> LogError {
        failure(&self.cluster.url, doing, code, text, self.native.context().take_trouble())
    }

    /// Gives up the partitions that the previous poll reported as revoked.
    fn let_go(&mut self) -> Result<(), LogError> {
        if self.leaving.is_empty() {
            return Ok(());
        }
        let leaving = std::mem::take(&mut self.leaving);
        if self.is_waiting() {
            return Ok(());
        }
        let list = list_of(leaving.iter().map(|partition| (partition, Offset::Invalid)));
        self.native
            .unassign(&list)
            .map_err(|error| self.failure("giving up partitions", error.code, &error.text))
    }

    /// Takes the queue's contents, waiting up to `timeout` for the first message.
    fn gather(&mut self, timeout: Duration) -> Result<(), LogError> {
        let read = || self.readings.values().filter(|reading| !reading.paused);
        let held: usize = read().map(|reading| reading.held.len()).sum();
        let is_full = read().map(Reading::held_bytes).sum::<usize>() >= HELD_BYTES_DUE;
        let room = if is_full { 0 } else { HELD_RECORDS_MAX.saturating_sub(held) };
        for arrival in self.native.consume(timeout, room, self.headers) {
            self.accept(arrival);
        }
        while let Some(rebalance) = self.native.context().take_rebalance() {
            self.watchdog.progress();
            self.change(rebalance)?;
        }
        Ok(())
    }

    fn accept(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Records(source, records) => {
                self.watchdog.progress();
                if let Some(reading) = self.readings.get_mut(&source) {
                    let records = reading.new_of(&source, records);
                    if reading.held.is_empty() {
                        // The common case, which moves no single records.
                        reading.held = records.into();
                    } else {
                        reading.held.extend(records);
                    }
                }
            }
            // Covers the client's first fatal error and its last reported error.
            Arrival::Failure { .. } if self.has_no_place() => self.begin_to_wait(),
            Arrival::Failure { source, offset, code, text } => match unreadable_batch(code, &text) {
                Some(batch) => self.pass_over(&source, &batch),
                None => {
                    let failed = self.judge(source, offset, code, text);
                    self.failed = self.failed.take().or(failed);
                }
            },
        }
    }

    /// Replaces a batch's records by the record for the unreadable batch, and seeks to the offset after the batch.
    /// Without the seek, librdkafka would fetch the batch again and again, and report each time that it cannot be
    /// unpacked.
    fn pass_over(&mut self, source: &TopicPartition, batch: &UnreadableBatch) {
        let Some(reading) = self.readings.get_mut(source) else { return };
        self.watchdog.progress();
        if batch.last_offset >= reading.next_offset() {
            tracing::warn!(topic = source.topic, partition = source.partition, "skipping {batch}");
            reading.held.push_back(batch.record());
        }
        let list = list_of([(source, Offset::Offset(reading.next_offset()))]);
        // The next report of the batch repeats the seek if it has no effect, as on a partition that is being given up.
        if let Err(error) = self.native.seek(&list, self.cluster.options.request_timeout) {
            tracing::debug!(?source, ?error, "no seek after the batch");
        }
    }

    /// Returns true if the group rejects this client because another client with the same instance id still has the
    /// place.
    fn has_no_place(&self) -> bool {
        let fatal = self.native.fatal_error();
        fatal.is_some_and(|(code, _)| code == RDKafkaErrorCode::UnreleasedInstanceId)
    }

    fn is_waiting(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.next_try.is_some())
    }

    /// Reports the partitions as lost, and schedules the next request for the place in the group. The current client,
    /// which the group no longer knows, stays until then, so that no commit in its name succeeds.
    fn begin_to_wait(&mut self) {
        let Some(group) = self.group.as_mut().filter(|group| group.next_try.is_none()) else { return };
        group.next_try = Some(Instant::now() + PLACE_RETRY);
        let lost: Vec<TopicPartition> = std::mem::take(&mut self.readings).into_keys().collect();
        if !lost.is_empty() {
            self.news.push_back(Fetched::Lost(lost));
        }
    }

    /// Waits up to `timeout` for the place in the group, and requests it again when due. Returns false while there is
    /// nothing to read.
    fn take_place(&mut self, timeout: Duration) -> Result<bool, LogError> {
        let Some(group) = &mut self.group else { return Ok(true) };
        let Some(next_try) = group.next_try else { return Ok(true) };
        // Lost partitions are reported to the caller first.
        if !self.news.is_empty() {
            return Ok(false);
        }
        let instance_id = self.cluster.options.instance_id.as_deref().unwrap_or_default();
        let now = Instant::now();
        if now >= group.next_news {
            group.next_news = now + PLACE_NEWS;
            tracing::warn!(
                group = group.name,
                instance_id,
                "another process with the same name holds the place of this one in the group, so this one \
                 waits. The place of a killed process becomes free after its session timeout (the broker's \
                 group.consumer.session.timeout.ms). Never run two processes with the same name"
            );
        }
        if now < next_try {
            thread::park_timeout(timeout.min(next_try - now));
            return Ok(false);
        }
        // A client with a fatal error is unusable.
        let config = self.cluster.options.member(&group.name);
        let context = Context::reporting(Reporter::new(&self.cluster.board, MEMBER));
        let native =
            NativeConsumer::new(&config, context).map_err(|error| refused(&self.cluster.url, error))?;
        group.next_try = None;
        self.native = Arc::new(native);
        self.join()?;
        Ok(true)
    }

    /// Returns the error for a failure among the messages; `None` if librdkafka recovers by itself.
    fn judge(
        &self,
        source: TopicPartition,
        offset: i64,
        code: RDKafkaErrorCode,
        text: String,
    ) -> Option<LogError> {
        use RDKafkaErrorCode as Code;
        let url = self.cluster.url.clone();
        let (code, text) = match code {
            // The code `Fatal` refers to the first fatal error.
            Code::Fatal => self.native.fatal_error().unwrap_or((code, text)),
            code => (code, text),
        };
        match code {
            Code::AutoOffsetReset | Code::OffsetOutOfRange => {
                let range = self.cluster.offsets(&source).ok();
                let offset = self.readings.get(&source).map_or(offset, |reading| reading.position);
                Some(out_of_range(url, &source, offset, range))
            }
            Code::FencedInstanceId => Some(LogError::MemberFenced {
                url,
                group: self.group_name().unwrap_or_default().to_owned(),
                instance_id: self.cluster.options.instance_id.clone().unwrap_or_default(),
            }),
            Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
                Some(LogError::UnknownTopic { url, topic: source.topic, known: text })
            }
            Code::BadCompression => Some(LogError::UnreadableBatch {
                url,
                topic: source.topic,
                partition: source.partition,
                offset,
                cause: text,
            }),
            // A reader names a group only because librdkafka requires a name.
            Code::GroupAuthorizationFailed if self.group.is_none() => None,
            // The loss of the partitions arrives as a rebalance.
            Code::PollExceeded => {
                tracing::warn!(%text, "the consumer was not polled for too long and lost its partitions");
                None
            }
            code if is_passing(code) => {
                tracing::warn!(%code, %text, "the broker did not answer; the request is retried");
                None
            }
            code => Some(self.failure("reading records", code, &text)),
        }
    }

    /// Executes the group's decision, unless the caller has to act first.
    fn change(&mut self, rebalance: Rebalance) -> Result<(), LogError> {
        let group = self.group_name().expect("only groups rebalance").to_owned();
        match rebalance {
            Rebalance::Assign(partitions) => {
                let mut starts = Vec::with_capacity(partitions.len());
                let committed = self.cluster.committed(&self.native, &group, &partitions)?;
                for (partition, committed) in partitions.iter().zip(committed) {
                    // The offsets are queried here, because librdkafka would do so half a second later and fail if the
                    // offset does not exist any more.
                    let OffsetRange { first, next } = self.cluster.offsets(partition)?;
                    starts.push(committed.map_or(first, |committed| committed.clamp(first, next)));
                }
                let offsets = starts.iter().copied().map(Offset::Offset);
                self.native
                    .assign(&list_of(partitions.iter().zip(offsets)))
                    .map_err(|error| self.failure("taking partitions", error.code, &error.text))?;
                for (partition, start) in partitions.iter().zip(starts) {
                    self.readings.insert(partition.clone(), Reading::at(start));
                }
                if !partitions.is_empty() {
                    self.news.push_back(Fetched::Assigned(partitions));
                }
            }
            Rebalance::Revoke(partitions) => self.take_away(partitions, Fetched::Revoked)?,
            Rebalance::Lose(partitions) => self.take_away(partitions, Fetched::Lost)?,
        }
        Ok(())
    }

    fn take_away(
        &mut self,
        partitions: Vec<TopicPartition>,
        news: fn(Vec<TopicPartition>) -> Fetched,
    ) -> Result<(), LogError> {
        for partition in &partitions {
            self.readings.remove(partition);
        }
        self.leaving.extend_from_slice(&partitions);
        if partitions.is_empty() {
            // The caller need not know this, but the group waits for the answer.
            let list = list_of([]);
            return self
                .native
                .unassign(&list)
                .map_err(|error| self.failure("giving up partitions", error.code, &error.text));
        }
        self.news.push_back(news(partitions));
        Ok(())
    }

    /// Returns held records of the next partition that has some.
    fn deliver(&mut self, records_max: usize, bytes_max: usize) -> Option<Fetched> {
        let has_some =
            |(_, reading): &(&TopicPartition, &Reading)| !reading.paused && !reading.held.is_empty();
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let source = self
            .readings
            .range((after, Bound::Unbounded))
            .find(has_some)
            .or_else(|| self.readings.iter().find(has_some))
            .map(|(source, _)| source.clone())?;
        let reading = self.readings.get_mut(&source).expect("it was just found");
        let mut bytes = 0;
        let count = reading
            .held
            .iter()
            .take(records_max.max(1))
            .take_while(|record| {
                let has_room = bytes < bytes_max;
                bytes += record.value.len() + record.key.as_ref().map_or(0, Vec::len);
                has_room
            })
            .count()
            .max(1);
        let rest = reading.held.split_off(count);
        let records = Vec::from(std::mem::replace(&mut reading.held, rest));
        reading.position = records.last().expect("one record always comes").offset + 1;
        self.last = Some(source.clone());
        Some(Fetched::Records { source, records })
    }

    /// Returns true if calls about the partition have an effect. A member's calls about a revoked partition have none:
    /// the caller may not know of the revocation yet.
    fn is_read(&self, partition: &TopicPartition) -> Result<bool, LogError> {
        if self.readings.contains_key(partition) {
            return Ok(true);
        }
        if self.group.is_some() {
            return Ok(false);
        }
        let allowed = match self.readings.first_key_value() {
            None => "none: this consumer has no partitions".to_owned(),
            Some((first, _)) => format!(
                "the {} partitions of this consumer, the first being \"{}/{}\"",
                self.readings.len(),
                first.topic,
                first.partition
            ),
        };
        Err(self.cluster.unknown_partition(partition, allowed))
    }

    fn set_paused(&mut self, partitions: &[TopicPartition], paused: bool) -> Result<(), LogError> {
        let mut changed = Vec::with_capacity(partitions.len());
        for partition in partitions {
            if self.is_read(partition)? {
                changed.push((partition, Offset::Invalid));
            }
        }
        let list = list_of(changed.iter().copied());
        let (result, doing) = match paused {
            true => (self.native.pause(&list), "pausing partitions"),
            false => (self.native.resume(&list), "resuming partitions"),
        };
        result.map_err(|code| self.failure(doing, code, ""))?;
        for (partition, _) in changed {
            self.readings.get_mut(partition).expect("it is read").paused = paused;
        }
        Ok(())
    }

    /// Handles an idle poll: the watchdog checks whether there is really nothing to read.
    fn idle(&mut self) -> Result<Fetched, LogError> {
        let cluster = &self.cluster;
        if self.watchdog.is_due() {
            let unread: Vec<_> = self
                .readings
                .iter()
                .filter(|(_, reading)| !reading.paused)
                .map(|(source, _)| source)
                .collect();
            let passed = |source: &TopicPartition| self.native.position(source).unwrap_or(0);
            let positions =
                unread.into_iter().map(|source| (source, self.readings[source].position.max(passed(source))));
            let trouble = self.native.context().take_trouble();
            match self.watchdog.look(&cluster.url, positions, trouble, |source| cluster.offsets(source)) {
                // A member waits for the cluster without limit; the writers to its topics decide when to give up.
                Err(error @ LogError::Unreachable { .. }) if self.group.is_some() => {
                    tracing::warn!(%error, "nothing is read");
                }
                looked => looked?,
            }
        }
        Ok(Fetched::Idle)
    }
}

/// Returns the batch that an unpacking failure is about; `None` for other failures.
fn unreadable_batch(code: RDKafkaErrorCode, text: &str) -> Option<UnreadableBatch> {
    use RDKafkaErrorCode as Code;
    matches!(code, Code::BadCompression | Code::NotImplemented).then(|| UnreadableBatch::parse(text))?
}

fn out_of_range(url: String, source: &TopicPartition, offset: i64, range: Option<OffsetRange>) -> LogError {
    LogError::OffsetOutOfRange {
        url,
        topic: source.topic.clone(),
        partition: source.partition,
        offset,
        there: range.map_or_else(
            || "unknown offsets".to_owned(),
            |range| format!("offsets {} to {}", range.first, range.next),
        ),
    }
}

impl Consumer for KafkaConsumer {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        self.let_go()?;
        let deadline = Instant::now().checked_add(timeout);
        if !self.take_place(timeout)? {
            return Ok(self.news.pop_front().unwrap_or(Fetched::Idle));
        }
        let mut wait = Duration::ZERO;
        loop {
            self.gather(wait)?;
            if let Some(news) = self.news.pop_front() {
                return Ok(news);
            }
            if let Some(records) = self.deliver(records_max, bytes_max) {
                return Ok(records);
            }
            if let Some(failed) = self.failed.take() {
                return Err(failed);
            }
            wait = deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if wait.is_zero() {
                return self.idle();
            }
        }
    }

    fn leave_headers(&mut self) {
        self.headers = Headers::Left;
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.set_paused(partitions, true)
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.set_paused(partitions, false)
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        if !self.is_read(partition)? {
            return Ok(());
        }
        let range = self.cluster.offsets(partition)?;
        let offset = offset.max(0);
        // A reader skips removed records; a member must not, because its outputs would differ.
        let first_allowed = if self.group.is_some() { offset } else { offset.max(range.first) };
        if first_allowed < range.first || first_allowed > range.next {
            return Err(out_of_range(self.cluster.url.clone(), partition, offset, Some(range)));
        }
        let offset = first_allowed;
        let deadline = Instant::now() + self.cluster.options.request_timeout;
        loop {
            let list = list_of([(partition, Offset::Offset(offset))]);
            let left = deadline.saturating_duration_since(Instant::now());
            self.native
                .seek(&list, left)
                .map_err(|error| self.failure("seeking", error.code, &error.text))?;
            let result = list.elements()[0].error();
            match result.map_err(|error| error.rdkafka_error_code()) {
                Ok(()) => break,
                // A newly assigned partition is not fetched yet.
                Err(Some(RDKafkaErrorCode::State | RDKafkaErrorCode::PreviousInProgress))
                    if !left.is_zero() =>
                {
                    thread::park_timeout(RETRY);
                }
                Err(code) => {
                    return Err(self.failure("seeking", code.unwrap_or(RDKafkaErrorCode::Unknown), ""));
                }
            }
        }
        let paused = self.readings[partition].paused;
        self.readings.insert(partition.clone(), Reading { paused, ..Reading::at(offset) });
        Ok(())
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        let Some(group) = self.group_name() else { return Ok(None) };
        let committed = self.cluster.committed(&self.native, group, std::slice::from_ref(partition))?;
        Ok(committed[0])
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        if self.is_read(partition)? {
            let reading = &self.readings[partition];
            // librdkafka may have passed transaction markers after the last polled record.
            let passed = reading.held.is_empty().then(|| self.native.position(partition)).flatten();
            return Ok(passed.map_or(reading.position, |passed| passed.max(reading.position)));
        }
        match self.committed(partition)? {
            Some(committed) => Ok(committed),
            None => Ok(self.cluster.offsets(partition)?.first),
        }
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.cluster.offsets(partition)
    }
}

impl Drop for KafkaConsumer {
    fn drop(&mut self) {
        // Revoked partitions are given up before the client closes, because no commit needs to be awaited any more.
        if let Err(error) = self.let_go() {
            tracing::debug!(%error, "partitions were not given up before closing");
        }
    }
}
