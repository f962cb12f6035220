//! Sends a request through the log and waits for its result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, TopicInfo, TopicPartition};
use warptape_replay::PartitionReader;
use warptape_schemas::risk::{RiskRequest, RiskResult};
use warptape_schemas::{decode_risk_request, decode_risk_result, encode_risk_request};

use super::request::{cancelling, market_symbol};
use crate::cli::Interrupt;
use crate::open::{Purpose, open_log};
use crate::printable::to_stderr;
use crate::publishing::{NewPlaced, Placed};
use crate::runtime::WAIT_HEADER;
use crate::settings::Settings;
use crate::transaction::TransactionWriter;
use crate::usage_error::UsageError;
use warptape_sources::partition_of;

/// Longest poll before Ctrl-C is checked again.
const POLL: Duration = Duration::from_millis(100);
const POLL_RECORDS_MAX: usize = 256;
const POLL_BYTES_MAX: usize = 4 << 20;

/// A result with its place in the log.
pub struct Answer {
    pub result: RiskResult,
    pub place: TopicPartition,
    pub offset: i64,
}

/// A request to send.
pub struct Asked<'a> {
    pub request: &'a RiskRequest,
    /// Transactional id, unique to this command.
    pub name: &'a str,
    pub timeout: Duration,
    /// True if the pipeline must catch up with the ticks before it answers.
    pub waits: bool,
}

impl Asked<'_> {
    /// Sends the request and waits for its result. Cancels the request after the timeout or an interrupt.
    pub fn ask(&self, settings: &Settings, interrupt: &Interrupt) -> anyhow::Result<Answer> {
        let names = &settings.topics.names;
        // The command creates no log.
        let shown = open_log(settings, Purpose::Show)?.log;
        let partitions = partitions(&*shown, settings)?;
        let (partition, key) = match &self.request.cancels {
            Some(other) => place_of(&*shown, settings, partitions, other)?,
            None => {
                let key = market_symbol(&self.request.problem).unwrap_or(&self.request.request_id);
                (partition_of(key, partitions), key.as_bytes().to_vec())
            }
        };
        let requests = TopicPartition { topic: names.risk_requests.clone(), partition };
        let results = TopicPartition { topic: names.risk_results.clone(), partition };

        let log = open_log(settings, Purpose::Ask)?.log;
        if !log.has_member(&settings.engine.group)? {
            let url = log.url();
            to_stderr(format_args!(
                "no pipeline runs on {url}; waiting for one for at most {} s: start it with `warptape run \
                 --log {url}`",
                self.timeout.as_secs()
            ));
        }
        // Reads the results from their current end, because the awaited one comes after it.
        let mut reader = reader_at_end(&*log, &results)?;
        let headers = if self.waits { vec![(WAIT_HEADER.to_owned(), Vec::new())] } else { Vec::new() };
        let record =
            NewPlaced { place: requests.clone(), key: key.clone(), value: encoded(self.request), headers };
        send(&log, record, self.name, interrupt)?;

        let id = &self.request.request_id;
        if let Some((result, offset)) = wait_for(&mut *reader, id, self.timeout, interrupt)? {
            return Ok(Answer { result, place: results, offset });
        }
        let why = match interrupt.is_set() {
            true => format!("interrupted before there was a result of {id}"),
            false => format!(
                "no result of {id} within {} s: no pipeline runs on this log, or it is overloaded; start one \
                 with `warptape run --log {}`",
                self.timeout.as_secs(),
                log.url()
            ),
        };
        if self.request.cancels.is_some() {
            bail!("{why}; the request stays in {}", requests.topic);
        }
        self.cancel(&log, requests, &key, interrupt)?;
        let url = log.url();
        bail!(
            "{why}; the request was cancelled, unless it was answered meanwhile: see `warptape tail {} --from-beginning --log {url}`",
            results.topic
        )
    }

    /// Cancels a request whose result the command no longer awaits.
    fn cancel(
        &self,
        log: &Arc<dyn EventLog>,
        place: TopicPartition,
        key: &[u8],
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let id = &self.request.request_id;
        let name = format!("{}-cancel", self.name);
        let mut request = cancelling(id);
        request.insert("request_id".to_owned(), json!(name));
        request.insert("tenant".to_owned(), json!(self.request.tenant));
        let request = serde_json::from_value(serde_json::Value::Object(request))?;
        let record = NewPlaced { place, key: key.to_vec(), value: encoded(&request), headers: Vec::new() };
        Ok(send(log, record, &name, interrupt)?)
    }
}

/// Returns the partition and key of a request that may still be unanswered.
fn place_of(
    log: &dyn EventLog,
    settings: &Settings,
    partitions: i32,
    request_id: &str,
) -> anyhow::Result<(i32, Vec<u8>)> {
    let topic = &settings.topics.names.risk_requests;
    for partition in 0..partitions {
        let place = TopicPartition { topic: topic.clone(), partition };
        let OffsetRange { first, next } = log.reader(std::slice::from_ref(&place))?.offsets(&place)?;
        // All requests before the committed offset are answered.
        let committed = log.committed(&settings.engine.group, &place)?.unwrap_or(first);
        let range = OffsetRange { first: committed.clamp(first, next), next };
        let mut reader = PartitionReader::open(log, place, range)?;
        while let Some(record) = reader.next()? {
            let is_it = |request: &RiskRequest| request.request_id == request_id && request.cancels.is_none();
            if decode_risk_request(&record.value).is_ok_and(|request| is_it(&request)) {
                return Ok((partition, record.key.unwrap_or_default()));
            }
        }
    }
    let message = format!(
        "no request {request_id} waits for an answer in {topic}: it already has its result, or was never \
         sent; see `warptape tail {} --from-beginning`",
        settings.topics.names.risk_results
    );
    bail!(message)
}

/// Returns the first result of a request with its offset; `None` after the time limit or an interrupt.
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
            // Other programs may write records to the topic; unreadable ones are not results.
            let Ok(result) = decode_risk_result(&record.value) else { continue };
            if result.request_id == request_id {
                return Ok(Some((result, record.offset)));
            }
        }
    }
    Ok(None)
}

fn encoded(request: &RiskRequest) -> Vec<u8> {
    let mut value = Vec::new();
    encode_risk_request(request, &mut value);
    value
}

/// Writes the request exactly once.
fn send(
    log: &Arc<dyn EventLog>,
    record: NewPlaced,
    transactional_id: &str,
    interrupt: &Interrupt,
) -> Result<(), LogError> {
    let transaction = Placed::new(&**log, vec![record])?;
    let stopping = interrupt.clone();
    let stopping_since = Box::new(move || stopping.since());
    let mut writer = TransactionWriter::new(log.clone(), transactional_id.to_owned(), stopping_since)?;
    writer.write_surely(&transaction)
}

/// Returns the number of partitions of the requests and results, which must equal that of the ticks.
fn partitions(log: &dyn EventLog, settings: &Settings) -> anyhow::Result<i32> {
    let names = &settings.topics.names;
    let topics = log.topics_named(&[&names.ticks, &names.risk_requests, &names.risk_results])?;
    let of = |name: &str| {
        let is_it = |topic: &&TopicInfo| topic.spec.name == name;
        topics.iter().find(is_it).map(|topic| topic.spec.partitions)
    };
    let url = log.url();
    let found = |name: &str| {
        of(name).ok_or_else(|| {
            UsageError(format!(
                "{url} has no topic {name}: create missing topics with `warptape topics create --log {url}`"
            ))
        })
    };
    let (requests, results) = (found(&names.risk_requests)?, found(&names.risk_results)?);
    let ticks = of(&names.ticks).unwrap_or(requests);
    if requests != ticks || results != ticks {
        return Err(UsageError(format!(
            "{} has {ticks} partitions, {} {requests} and {} {results}: the numbers must be equal, so that \
             requests meet the ticks of their symbols. Delete and recreate the topics",
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
