//! Queries to the cluster about topics and groups, outside consuming and producing.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::MetadataTopic;
use rdkafka::{Offset, TopicPartitionList};

use super::context::{Context, is_cause};
use super::failure::{failure, is_passing, refused};
use super::figures::Board;
use super::native::NativeConsumer;
use super::options::{BatchBytes, GroupProtocol, KafkaOptions};
use crate::topic::{check_spec, conflict_of};
use crate::{LogError, OffsetRange, PartitionEnd, RecordClock, TopicInfo, TopicPartition, TopicSpec};

/// Timeout of the first attempt; each further one doubles it. The client's reports are checked in between.
const STEP: Duration = Duration::from_millis(500);
/// Largest number of reports served between two attempts.
const REPORTS_MAX: usize = 64;
/// Longest wait for a cluster's first answer, so that a wrong address is reported soon.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Wait for the offsets of a topic, after which the topic's existence is checked.
const GONE_AFTER: Duration = Duration::from_secs(2);
/// Largest number of attempts to get the offsets of a topic that others may remove and create again.
const OFFSETS_TRIES_MAX: usize = 8;
/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// Kafka's default of `max.message.bytes`.
const BATCH_BYTES_MAX_DEFAULT: usize = 1_048_588;

/// Explanation for a missing answer about committed offsets although the brokers run.
const HANGING: &str = "no answer; if the brokers run, a transaction of this group hangs: find it with \
                       `kafka-transactions.sh find-hanging`";

/// A connection to the cluster for queries.
pub(super) struct Cluster {
    pub(super) options: KafkaOptions,
    pub(super) url: String,
    /// The client for queries; it belongs to no group. It is a consumer, because metadata queries of producers and
    /// administrators create topics.
    client: BaseConsumer<Context>,
    /// A second client that also sees uncommitted records; created on first use.
    uncommitted: OnceLock<BaseConsumer<Context>>,
    /// The smallest and largest batch limits of the topics queried so far.
    batch_bytes: Mutex<BatchBytes>,
    /// Statistics of the clients.
    pub(super) board: Arc<Board>,
}

impl Cluster {
    /// Connects to the cluster, so that a wrong address or password fails at once.
    pub(super) fn connect(options: KafkaOptions) -> Result<Self, LogError> {
        options.check()?;
        let url = options.url();
        let client =
            options.asker().create_with_context(Context::default()).map_err(|error| refused(&url, error))?;
        let (uncommitted, batch_bytes, board) = (OnceLock::new(), Mutex::default(), Arc::default());
        let cluster = Self { options, url, client, uncommitted, batch_bytes, board };
        let time_max = cluster.options.request_timeout.min(CONNECT_TIME_MAX);
        let metadata = |client: &BaseConsumer<_>, timeout| client.client().fetch_metadata(None, timeout);
        cluster.ask_within(time_max, "connecting", metadata)?;
        Ok(cluster)
    }

    /// Repeats a query until it is answered, at most for the request timeout. A wrong password ends it early.
    fn ask<T>(
        &self,
        doing: &str,
        question: impl Fn(&BaseConsumer<Context>, Duration) -> KafkaResult<T>,
    ) -> Result<T, LogError> {
        self.ask_within(self.options.request_timeout, doing, question)
    }

    fn ask_within<T>(
        &self,
        time_max: Duration,
        doing: &str,
        question: impl Fn(&BaseConsumer<Context>, Duration) -> KafkaResult<T>,
    ) -> Result<T, LogError> {
        let deadline = Instant::now() + time_max;
        let mut step = STEP;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match question(&self.client, left.min(step)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Each poll serves one report of the client: a line of its log or an error.
            for _ in 0..REPORTS_MAX {
                drop(self.client.poll(Duration::ZERO));
            }
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
            let trouble = self.client.context().take_trouble();
            let is_known = trouble.as_ref().is_some_and(|trouble| is_cause(trouble.code));
            if !is_passing(code) || is_known || left.is_zero() {
                return Err(failure(&self.url, doing, code, "", trouble));
            }
            if let Some(trouble) = trouble {
                self.client.context().put_trouble(trouble.code, &trouble.text);
            }
            // A query may fail immediately and repeatedly.
            step = (step * 2).min(time_max);
            thread::park_timeout(RETRY.min(left));
        }
    }

    /// Returns the number of partitions of an existing topic.
    pub(super) fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        match self.partitions_if_any(topic)? {
            Some(partitions) => Ok(partitions),
            None => {
                let known = shown(&self.topic_names()?);
                Err(LogError::UnknownTopic { url: self.url.clone(), topic: topic.to_owned(), known })
            }
        }
    }

    /// Checks that the leaders of all partitions of a topic answer, waiting about `timeout` for each.
    pub(super) fn reach(&self, topic: &str, timeout: Duration) -> Result<(), LogError> {
        let doing = format!("checking whether {topic:?} can be reached");
        let found = self.ask_within(timeout, &doing, |client, timeout| {
            client.client().fetch_metadata(Some(topic), timeout)
        })?;
        let partitions = found.topics().iter().flat_map(MetadataTopic::partitions);
        // One partition per leader.
        let leaders: BTreeMap<i32, i32> =
            partitions.map(|partition| (partition.leader(), partition.id())).collect();
        for (leader, partition) in leaders {
            let broker = found.brokers().iter().find(|broker| broker.id() == leader);
            let doing = match broker {
                Some(broker) => format!(
                    "checking whether broker {}:{}, the leader of {topic}/{partition}, answers",
                    broker.host(),
                    broker.port()
                ),
                None => format!("looking for the leader of {topic}/{partition}"),
            };
            let source = TopicPartition { topic: topic.to_owned(), partition };
            self.ask_within(timeout, &doing, |client, timeout| watermarks(client, &source, timeout))?;
        }
        Ok(())
    }

    pub(super) fn partitions_if_any(&self, topic: &str) -> Result<Option<i32>, LogError> {
        let doing = format!("looking up topic {topic:?}");
        let metadata = self.ask(&doing, |client, timeout| {
            let metadata = client.client().fetch_metadata(Some(topic), timeout)?;
            // A new topic has no leader for a moment.
            let error = metadata.topics().first().and_then(|topic| topic.error());
            match error.map(RDKafkaErrorCode::from) {
                Some(code @ RDKafkaErrorCode::LeaderNotAvailable) => Err(KafkaError::MetadataFetch(code)),
                _ => Ok(metadata),
            }
        })?;
        let Some(found) = metadata.topics().first() else { return Ok(None) };
        match found.error().map(RDKafkaErrorCode::from) {
            None => Ok(i32::try_from(found.partitions().len()).ok()),
            Some(
                RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::InvalidTopic,
            ) => Ok(None),
            Some(code) => Err(failure(&self.url, &doing, code, "", None)),
        }
    }

    /// Rejects a partition that does not exist.
    pub(super) fn check_partition(&self, source: &TopicPartition) -> Result<(), LogError> {
        let partitions = self.partitions(&source.topic)?;
        if (0..partitions).contains(&source.partition) {
            return Ok(());
        }
        Err(self.unknown_partition(source, format!("0 to {}", partitions - 1)))
    }

    pub(super) fn unknown_partition(&self, source: &TopicPartition, allowed: String) -> LogError {
        LogError::UnknownPartition {
            url: self.url.clone(),
            topic: source.topic.clone(),
            partition: source.partition,
            allowed,
        }
    }

    /// Returns the users' topics with their numbers of partitions.
    fn names(&self) -> Result<BTreeMap<String, i32>, LogError> {
        let metadata =
            self.ask("listing topics", |client, timeout| client.client().fetch_metadata(None, timeout))?;
        let is_internal = |name: &str| name.starts_with("__");
        Ok(metadata
            .topics()
            .iter()
            .filter(|topic| !is_internal(topic.name()) && topic.error().is_none())
            .map(|topic| (topic.name().to_owned(), topic.partitions().len() as i32))
            .collect())
    }

    /// Returns the first offset and the last stable offset of a partition.
    pub(super) fn offsets(&self, source: &TopicPartition) -> Result<OffsetRange, LogError> {
        let doing = format!("looking up the offsets of {}/{}", source.topic, source.partition);
        let (first, next) = self.ask(&doing, |client, timeout| watermarks(client, source, timeout))?;
        Ok(OffsetRange { first, next })
    }

    /// Returns these offsets of all partitions of a topic.
    fn all_offsets(
        &self,
        topic: &str,
        partitions: i32,
        time_max: Duration,
    ) -> Result<Vec<OffsetRange>, LogError> {
        let source = |partition| TopicPartition { topic: topic.to_owned(), partition };
        let sources: Vec<TopicPartition> = (0..partitions).map(source).collect();
        let doing = format!("looking up the offsets of {topic}");
        let ask = |edge| {
            self.ask_within(time_max, &doing, |client, timeout| edges(client, &sources, edge, timeout))
        };
        let (firsts, nexts) = (ask(Offset::Beginning)?, ask(Offset::End)?);
        Ok(firsts.into_iter().zip(nexts).map(|(first, next)| OffsetRange { first, next }).collect())
    }

    /// Returns the offset after the last record of a partition, committed or not.
    pub(super) fn written_end(&self, source: &TopicPartition) -> Result<i64, LogError> {
        let doing = format!("looking up the end of {}/{}", source.topic, source.partition);
        let client = self.uncommitted()?;
        let (_, next) = self.ask(&doing, |_, timeout| watermarks(client, source, timeout))?;
        Ok(next)
    }

    /// Returns the ends of partitions: one request per leader for readable records, and one for all written records.
    pub(super) fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        let doing = format!("looking up the ends of {} partitions", partitions.len());
        let readable = self.ask(&doing, |client, timeout| edges(client, partitions, Offset::End, timeout))?;
        let client = self.uncommitted()?;
        // The written ends are queried second, so that no readable end exceeds the written one.
        let written = self.ask(&doing, |_, timeout| edges(client, partitions, Offset::End, timeout))?;
        let end = |(readable, written)| PartitionEnd { readable, written };
        Ok(readable.into_iter().zip(written).map(end).collect())
    }

    fn uncommitted(&self) -> Result<&BaseConsumer<Context>, LogError> {
        if let Some(client) = self.uncommitted.get() {
            return Ok(client);
        }
        let mut config = self.options.asker();
        config.set("isolation.level", "read_uncommitted");
        let client =
            config.create_with_context(Context::default()).map_err(|error| refused(&self.url, error))?;
        Ok(self.uncommitted.get_or_init(|| client))
    }

    /// Returns all topics of users. `compacted` is known only if the broker reports the setting to this user.
    pub(super) fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.described(self.names()?)
    }

    /// Returns those of the named topics that exist.
    pub(super) fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        self.described(self.existing(names.iter().copied())?)
    }

    pub(super) fn topic_names(&self) -> Result<Vec<String>, LogError> {
        Ok(self.names()?.into_keys().collect())
    }

    /// Returns those of the named topics that exist, with their numbers of partitions.
    fn existing<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, i32>, LogError> {
        let found = names.map(|name| Ok(self.partitions_if_any(name)?.map(|count| (name.to_owned(), count))));
        found.filter_map(Result::transpose).collect()
    }

    /// Describes each topic, with two queries for its offsets. A topic that is removed meanwhile is left out.
    fn described(&self, names: BTreeMap<String, i32>) -> Result<Vec<TopicInfo>, LogError> {
        let compacted = self.compacted(names.keys().map(String::as_str)).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot find out which topics are compacted");
            BTreeMap::new()
        });
        let mut topics = Vec::with_capacity(names.len());
        for (name, partitions) in names {
            let Some(offsets) = self.all_offsets_if_any(&name, partitions)? else { continue };
            let (partitions, compacted) =
                (offsets.len() as i32, compacted.get(&name).copied().unwrap_or(false));
            topics.push(TopicInfo {
                spec: TopicSpec { name, partitions, compacted, ..TopicSpec::default() },
                offsets,
            });
        }
        Ok(topics)
    }

    /// Returns the first and last stable offsets of all partitions of a topic; `None` if it is gone. `partitions` is
    /// the last known number: the topic may have been removed and created again with another one.
    fn all_offsets_if_any(
        &self,
        topic: &str,
        mut partitions: i32,
    ) -> Result<Option<Vec<OffsetRange>>, LogError> {
        let deadline = Instant::now() + self.options.request_timeout;
        let mut time_max = GONE_AFTER;
        let mut tries = 1;
        loop {
            let error = match self.all_offsets(topic, partitions, time_max) {
                Ok(offsets) => return Ok(Some(offsets)),
                Err(error) => error,
            };
            let Some(found) = self.partitions_if_any(topic)? else { return Ok(None) };
            time_max = deadline.saturating_duration_since(Instant::now());
            if tries == OFFSETS_TRIES_MAX || time_max.is_zero() {
                return Err(error);
            }
            (partitions, tries) = (found, tries + 1);
        }
    }

    /// Returns true if a consumer group has a member, or if its protocol is not the classic one, whose
    /// members librdkafka does not see.
    pub(super) fn has_member(&self, group: &str) -> Result<bool, LogError> {
        if self.options.group_protocol == GroupProtocol::Consumer {
            return Ok(true);
        }
        let doing = format!("listing the members of consumer group {group}");
        let groups =
            self.ask(&doing, |client, timeout| client.client().fetch_group_list(Some(group), timeout))?;
        Ok(groups.groups().iter().any(|found| !found.members().is_empty()))
    }

    /// Creates missing topics, and waits until they are usable.
    pub(super) fn create_topics(&self, specs: &[TopicSpec]) -> Result<(), LogError> {
        for spec in specs {
            check_spec(&self.url, spec)?;
        }
        let names = self.existing(specs.iter().map(|spec| spec.name.as_str()))?;
        let (there, missing): (Vec<_>, Vec<_>) =
            specs.iter().partition(|spec| names.contains_key(&spec.name));
        self.check_same(&there, &names)?;
        if missing.is_empty() {
            return Ok(());
        }
        self.create(&missing)?;
        for spec in &missing {
            self.await_topic(spec)?;
        }
        // Another process may have created one with other settings meanwhile.
        let names = missing.iter().map(|spec| Ok((spec.name.clone(), self.partitions(&spec.name)?)));
        self.check_same(&missing, &names.collect::<Result<_, LogError>>()?)
    }

    fn check_same(&self, specs: &[&TopicSpec], found: &BTreeMap<String, i32>) -> Result<(), LogError> {
        if specs.is_empty() {
            return Ok(());
        }
        let compacted = self.compacted(specs.iter().map(|spec| spec.name.as_str()))?;
        for spec in specs {
            let found = TopicSpec {
                name: spec.name.clone(),
                partitions: found[&spec.name],
                compacted: compacted.get(&spec.name).copied().unwrap_or(false),
                ..TopicSpec::default()
            };
            if let Some(conflict) = conflict_of(&self.url, &found, spec) {
                return Err(conflict);
            }
        }
        Ok(())
    }

    fn create(&self, specs: &[&TopicSpec]) -> Result<(), LogError> {
        const DOING: &str = "creating topics";
        // The broker decides settings that the topic leaves open.
        const AS_THE_BROKER_HAS_IT: i32 = -1;
        let settings: Vec<Vec<(&str, String)>> = specs.iter().map(|spec| settings_of(spec)).collect();
        let topics: Vec<NewTopic<'_>> = specs
            .iter()
            .zip(&settings)
            .map(|(spec, settings)| {
                let replication = spec.replication.map_or(AS_THE_BROKER_HAS_IT, i32::from);
                let topic = NewTopic::new(&spec.name, spec.partitions, TopicReplication::Fixed(replication));
                settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
            })
            .collect();
        let admin = self.admin()?;
        let results = wait_for(admin.create_topics(&topics, &self.admin_options()))
            .map_err(|error| self.admin_failure(DOING, &error))?;
        for result in results {
            match result {
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => {
                    return Err(failure(&self.url, &format!("creating topic {topic:?}"), code, "", None));
                }
            }
        }
        Ok(())
    }

    fn await_topic(&self, spec: &TopicSpec) -> Result<(), LogError> {
        let deadline = Instant::now() + self.options.request_timeout;
        loop {
            if self.partitions_if_any(&spec.name)?.is_some() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let doing = format!("waiting for the new topic {:?}", spec.name);
                let code = RDKafkaErrorCode::OperationTimedOut;
                return Err(failure(&self.url, &doing, code, "", self.client.context().take_trouble()));
            }
            thread::park_timeout(RETRY);
        }
    }

    /// Returns the largest record size of each of these topics. If this user may not read the setting, Kafka's default
    /// applies.
    pub(super) fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        let found = match self.setting("max.message.bytes", topics.iter().copied()) {
            Err(error @ LogError::NotAuthorized { .. }) => {
                tracing::warn!(%error, "the maximum size of records is unknown: the default is assumed");
                BTreeMap::new()
            }
            found => found?,
        };
        let batch_bytes = |topic: &&str| match found.get(*topic) {
            Some(bytes) => bytes.parse().unwrap_or(BATCH_BYTES_MAX_DEFAULT),
            None => BATCH_BYTES_MAX_DEFAULT,
        };
        let by_topic: Vec<usize> = topics.iter().map(batch_bytes).collect();
        let mut limits = self.batch_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        by_topic.iter().for_each(|bytes| limits.add(*bytes));
        Ok(by_topic.iter().map(|bytes| self.options.record_bytes_max(*bytes)).collect())
    }

    /// Returns the smallest and largest batch limits of the topics queried so far.
    pub(super) fn batch_bytes(&self) -> BatchBytes {
        *self.batch_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns for each of these topics whether it is compacted.
    fn compacted<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, bool>, LogError> {
        let policies = self.setting("cleanup.policy", names)?;
        Ok(policies.into_iter().map(|(name, policy)| (name, policy.contains("compact"))).collect())
    }

    /// Returns the clock that a topic's record times come from; `None` if this client may not ask, or if the topic does
    /// not exist.
    pub(super) fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        let found = match self.setting("message.timestamp.type", std::iter::once(topic)) {
            Err(error @ LogError::NotAuthorized { .. }) => {
                tracing::warn!(%error, "cannot find out whose clock stamps the records");
                BTreeMap::new()
            }
            found => found?,
        };
        Ok(match found.get(topic).map(String::as_str) {
            Some("CreateTime") => Some(RecordClock::Writer),
            Some("LogAppendTime") => Some(RecordClock::Log),
            _ => None,
        })
    }

    /// Returns a setting by topic; an empty text if the cluster does not have the setting.
    fn setting<'a>(
        &self,
        setting: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, String>, LogError> {
        const DOING: &str = "reading the settings of topics";
        let names: Vec<_> = names.map(ResourceSpecifier::Topic).collect();
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let admin = self.admin()?;
        let results = wait_for(admin.describe_configs(&names, &self.admin_options()))
            .map_err(|error| self.admin_failure(DOING, &error))?;
        let mut found = BTreeMap::new();
        for result in results {
            let resource = match result {
                // The topic was removed meanwhile.
                Err(RDKafkaErrorCode::UnknownTopicOrPartition) => continue,
                result => result.map_err(|code| failure(&self.url, DOING, code, "", None))?,
            };
            let value = resource.get(setting).and_then(|entry| entry.value.clone());
            if let rdkafka::admin::OwnedResourceSpecifier::Topic(name) = resource.specifier {
                found.insert(name, value.unwrap_or_default());
            }
        }
        Ok(found)
    }

    fn admin(&self) -> Result<AdminClient<Context>, LogError> {
        self.options
            .client()
            .create_with_context(Context::default())
            .map_err(|error| refused(&self.url, error))
    }

    fn admin_options(&self) -> AdminOptions {
        let timeout = Some(self.options.request_timeout);
        AdminOptions::new().request_timeout(timeout).operation_timeout(timeout)
    }

    fn admin_failure(&self, doing: &str, error: &KafkaError) -> LogError {
        let code = match error {
            KafkaError::AdminOp(code) => *code,
            other => other.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown),
        };
        failure(&self.url, doing, code, &error.to_string(), None)
    }

    /// Returns a group's committed next-to-read offsets, through a consumer of that group. Waits for transactions that
    /// are about to commit or abort offsets.
    pub(super) fn committed(
        &self,
        consumer: &NativeConsumer,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Option<i64>>, LogError> {
        // The broker ends a crashed process's transaction after its timeout, which the broker checks periodically.
        let settled_after = self.options.transaction_timeout + self.options.request_timeout;
        let deadline = Instant::now() + settled_after;
        let failed = |code, text: &str| {
            let doing = format!("reading the committed offsets of group {group:?}");
            failure(&self.url, &doing, code, text, consumer.context().take_trouble())
        };
        loop {
            let list = list_of(partitions.iter().map(|partition| (partition, Offset::Invalid)));
            let left = deadline.saturating_duration_since(Instant::now());
            let result = consumer.committed(&list, left.min(self.options.request_timeout));
            let code = result.err().or_else(|| {
                let errors = list.elements().into_iter().filter_map(|element| element.error().err());
                errors.filter_map(|error| error.rdkafka_error_code()).next()
            });
            match code {
                None => {
                    let offset = |source: &TopicPartition| {
                        let found = list.find_partition(&source.topic, source.partition);
                        found.and_then(|element| match element.offset() {
                            Offset::Offset(offset) => Some(offset),
                            _ => None,
                        })
                    };
                    return Ok(partitions.iter().map(offset).collect());
                }
                Some(code) if left.is_zero() => return Err(failed(code, HANGING)),
                Some(code) if !is_passing(code) => return Err(failed(code, "")),
                Some(_) => thread::park_timeout(RETRY.min(left)),
            }
        }
    }
}

/// Joins names of topics for a message, and shortens the list: a shared cluster may have thousands.
fn shown(names: &[String]) -> String {
    const SHOWN_MAX: usize = 20;
    match names.len().checked_sub(SHOWN_MAX) {
        None if names.is_empty() => "no topics yet".to_owned(),
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN_MAX].join(", ")),
    }
}

/// Makes a list for librdkafka.
pub(super) fn list_of<'a>(
    partitions: impl IntoIterator<Item = (&'a TopicPartition, Offset)>,
) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    for (source, offset) in partitions {
        list.add_partition_offset(&source.topic, source.partition, offset)
            .expect("an offset is taken by every element that was just added");
    }
    list
}

/// Returns a topic's settings by the broker's names.
fn settings_of(spec: &TopicSpec) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    let policy = if spec.compacted { "compact" } else { "delete" };
    settings.push(("cleanup.policy", policy.to_owned()));
    if let Some(retention) = spec.retention {
        settings.push(("retention.ms", retention.as_millis().to_string()));
    }
    if let Some(replicas) = spec.min_insync_replicas {
        settings.push(("min.insync.replicas", replicas.to_string()));
    }
    settings
}

/// Returns a partition's first offset and the end of the records that the client may read.
fn watermarks(
    client: &BaseConsumer<Context>,
    source: &TopicPartition,
    timeout: Duration,
) -> KafkaResult<(i64, i64)> {
    let error = match client.client().fetch_watermarks(&source.topic, source.partition, timeout) {
        Err(error) if error.rdkafka_error_code() == Some(RDKafkaErrorCode::UnknownPartition) => error,
        answered => return answered,
    };
    // librdkafka reports a partition without a leader as unknown, too.
    let metadata = client.client().fetch_metadata(Some(&source.topic), timeout)?;
    let exists = |topic: &MetadataTopic| topic.partitions().iter().any(|p| p.id() == source.partition);
    match metadata.topics().iter().any(exists) {
        true => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::LeaderNotAvailable)),
        false => Err(error),
    }
}

/// Returns the beginnings or ends of partitions in the order given, by the client's isolation level: one request per
/// leader.
fn edges(
    client: &BaseConsumer<Context>,
    partitions: &[TopicPartition],
    edge: Offset,
    timeout: Duration,
) -> KafkaResult<Vec<i64>> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for TopicPartition { topic, partition } in partitions {
        // This value, in place of a time, requests the beginning or the end.
        list.add_partition_offset(topic, *partition, edge)?;
    }
    let found = client.offsets_for_times(list, timeout)?;
    let end = |place: &TopicPartition| {
        let end = found.find_partition(&place.topic, place.partition);
        let end = end.ok_or(KafkaError::OffsetFetch(RDKafkaErrorCode::UnknownPartition))?;
        end.error()?;
        match end.offset() {
            Offset::Offset(offset) => Ok(offset),
            _ => Err(KafkaError::OffsetFetch(RDKafkaErrorCode::LeaderNotAvailable)),
        }
    };
    partitions.iter().map(end).collect()
}

/// Waits for an answer of the administration client, which has its own thread.
fn wait_for<T>(answer: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = TaskContext::from_waker(&waker);
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut task) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
