//! A request into the log, and its result out of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, NewRecord, OffsetRange, Producer, TopicInfo, TopicPartition,
};
use warptape_replay::PartitionReader;
use warptape_schemas::risk::{RiskRequest, RiskResult};
use warptape_schemas::{decode_risk_result, encode_risk_request};

use super::request::market_symbol;
use crate::cli::{Interrupt, UsageError};
use crate::open::{Purpose, open_log};
use crate::settings::Settings;
use crate::sources::partition_of;
use crate::transaction::{Transaction, TransactionWriter};

/// How long a poll waits before Ctrl-C is looked at again.
const POLL: Duration = Duration::from_millis(100);
const POLL_RECORDS_MAX: usize = 256;
const POLL_BYTES_MAX: usize = 4 << 20;

/// A result, and where it stands.
pub struct Answer {
    pub result: RiskResult,
    pub place: TopicPartition,
    pub offset: i64,
}

/// Sends a request under a transactional id that nobody else has, and waits for its result.
pub fn ask(
    settings: &Settings,
    request: &RiskRequest,
    transactional_id: &str,
    timeout: Duration,
) -> anyhow::Result<Answer> {
    let names = &settings.topics.names;
    // A log that does not exist is not made for this.
    let partitions = partitions(&*open_log(settings, Purpose::Show)?.log, settings)?;
    let key = market_symbol(&request.problem).unwrap_or(&request.request_id);
    let partition = partition_of(key, partitions);
    let requests = TopicPartition { topic: names.risk_requests.clone(), partition };
    let results = TopicPartition { topic: names.risk_results.clone(), partition };

    let log = open_log(settings, Purpose::Ask)?.log;
    // Where the results end now: the one that is waited for comes behind.
    let mut reader = reader_at_end(&*log, &results)?;
    let interrupt = Interrupt::install()?;
    send(&log, requests, key, request, transactional_id, &interrupt)?;

    if let Some((result, offset)) = wait_for(&mut *reader, &request.request_id, timeout, &interrupt)? {
        return Ok(Answer { result, place: results, offset });
    }
    let (id, url) = (&request.request_id, log.url());
    let later = format!(
        "the request is in {} all the same, and its result will be in partition {partition} of {}: `warptape tail {} \
         --from-beginning --log {url}`",
        names.risk_requests, names.risk_results, names.risk_results
    );
    if interrupt.is_set() {
        bail!("interrupted before there was a result of {id}; {later}");
    }
    bail!(
        "no result of {id} within {} s: no pipeline seems to run on this log, or it has much to do; `warptape run --log \
         {url}` starts one; {later}",
        timeout.as_secs()
    )
}

/// The first result of a request with its offset; `None` when the time is over, or at an interrupt.
fn wait_for(
    reader: &mut dyn Consumer,
    request_id: &str,
    timeout: Duration,
    interrupt: &Interrupt,
) -> Result<Option<(RiskResult, i64)>, LogError> {
    let until = Instant::now() + timeout;
    while !interrupt.is_set() && Instant::now() < until {
        let Fetched::Records { records, .. } = reader.poll(POLL, POLL_RECORDS_MAX, POLL_BYTES_MAX)? else {
            continue;
        };
        for record in records {
            // What others wrote and nobody can read is no result.
            let Ok(result) = decode_risk_result(&record.value) else { continue };
            if result.request_id == request_id {
                return Ok(Some((result, record.offset)));
            }
        }
    }
    Ok(None)
}

/// Writes the request, once.
fn send(
    log: &Arc<dyn EventLog>,
    place: TopicPartition,
    key: &str,
    request: &RiskRequest,
    transactional_id: &str,
    interrupt: &Interrupt,
) -> Result<(), LogError> {
    let transaction = RequestTransaction::new(&**log, place, key, request)?;
    let stopping = interrupt.clone();
    let stopping_since = Box::new(move || stopping.since());
    let mut writer = TransactionWriter::new(log.clone(), transactional_id.to_owned(), stopping_since)?;
    writer.write_surely(&transaction)
}

/// The number of partitions of the topics of requests and results, which is that of the ticks.
fn partitions(log: &dyn EventLog, settings: &Settings) -> anyhow::Result<i32> {
    let names = &settings.topics.names;
    let topics = log.topics()?;
    let of = |name: &str| {
        let is_it = |topic: &&TopicInfo| topic.spec.name == name;
        topics.iter().find(is_it).map(|topic| topic.spec.partitions)
    };
    let url = log.url();
    let found = |name: &str| {
        of(name).ok_or_else(|| {
            UsageError(format!(
                "{url} has no topic {name}: make what is missing with `warptape topics create --log {url}`"
            ))
        })
    };
    let (requests, results) = (found(&names.risk_requests)?, found(&names.risk_results)?);
    let ticks = of(&names.ticks).unwrap_or(requests);
    if requests != ticks || results != ticks {
        return Err(UsageError(format!(
            "{} has {ticks} partitions, {} {requests} and {} {results}: they must be as many, so that requests come to \
             the ticks they are about; create the topics anew",
            names.ticks, names.risk_requests, names.risk_results
        ))
        .into());
    }
    Ok(requests)
}

fn reader_at_end(log: &dyn EventLog, place: &TopicPartition) -> Result<Box<dyn Consumer>, LogError> {
    let mut reader = log.reader(std::slice::from_ref(place))?;
    let end = reader.offsets(place)?.next;
    reader.seek(place, end)?;
    Ok(reader)
}

fn end_of(log: &dyn EventLog, place: &TopicPartition) -> Result<i64, LogError> {
    Ok(log.reader(std::slice::from_ref(place))?.offsets(place)?.next)
}

/// One record, which itself tells whether it is in the log.
struct RequestTransaction {
    place: TopicPartition,
    /// Where the partition ended before.
    end_before: i64,
    key: String,
    value: Vec<u8>,
}

impl RequestTransaction {
    fn new(
        log: &dyn EventLog,
        place: TopicPartition,
        key: &str,
        request: &RiskRequest,
    ) -> Result<Self, LogError> {
        let end_before = end_of(log, &place)?;
        let mut value = Vec::new();
        encode_risk_request(request, &mut value);
        Ok(Self { place, end_before, key: key.to_owned(), value })
    }
}

impl Transaction for RequestTransaction {
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError> {
        producer.send(NewRecord {
            topic: self.place.topic.as_str().into(),
            partition: self.place.partition,
            key: Some(self.key.as_bytes().into()),
            timestamp_ns: super::now_ns(),
            value: self.value.as_slice().into(),
            ..NewRecord::default()
        })
    }

    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError> {
        let next = end_of(log, &self.place)?;
        let range = OffsetRange { first: self.end_before.min(next), next };
        let mut reader = PartitionReader::open(log, self.place.clone(), range)?;
        while let Some(record) = reader.next()? {
            if record.value == self.value {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
