//! Matches results with requests: one result for each answered request, and none without a request.

use std::collections::BTreeMap;

use serde_json::json;
use warptape_eventlog::{LogError, Record, TopicPartition};
use warptape_schemas::risk::{RULES, RiskError, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::{DecodeError, decode_risk_result};
use warptape_stages::risk::refusals;

use crate::difference::Difference;
use crate::partition_reader::PartitionReader;
use crate::{OutputDivergence, OutputProblem};

/// The results of a partition by the offsets of their requests. Each result is removed with its request, so those left
/// at the end have no request.
#[derive(Default)]
pub(super) struct Answers {
    /// Offsets of results, by the offsets of their requests.
    results: BTreeMap<i64, i64>,
    /// Errors of requests that other requests cancelled, by id.
    cancelled: BTreeMap<String, RiskError>,
    /// Offsets of the first two results that name the same request; `None` if there are none.
    pub(super) double: Option<[i64; 2]>,
}

/// Requests without results.
#[derive(Default)]
pub(super) struct Missing {
    count: u64,
    /// The first request without a result; `None` if there is none.
    first: Option<Unanswered>,
}

/// A request without a result.
pub(super) struct Unanswered {
    pub(super) offset: i64,
    /// Id of the request; `None` if the request cannot be read.
    pub(super) request_id: Option<String>,
}

/// The end of a partition's results.
pub(super) struct ResultsEnd {
    pub(super) source: TopicPartition,
    pub(super) offset: i64,
}

impl Answers {
    /// Reads all results, up to one that cannot be valid.
    pub(super) fn read(
        mut results: PartitionReader,
        requests: &TopicPartition,
    ) -> Result<Result<Self, Box<OutputDivergence>>, LogError> {
        let mut answers = Self::default();
        while let Some(record) = results.next()? {
            let taken = match decode_risk_result(&record.value) {
                Ok(result) => answers.add(&record, &result, requests).map_err(|error| (error, Some(result))),
                Err(error) => {
                    let expected = "a risk result".into();
                    Err((OutputProblem::Unreadable { error: error.to_string(), expected }, None))
                }
            };
            // After the first double result, the others are read to find the requests without results.
            if let Err((problem, result)) = taken
                && answers.double.is_none()
            {
                let TopicPartition { topic, partition } = results.source;
                return Ok(Err(Box::new(OutputDivergence {
                    topic,
                    partition,
                    offset: record.offset,
                    symbol: None,
                    request_id: result.map(|result| result.request_id),
                    problem,
                })));
            }
        }
        Ok(Ok(answers))
    }

    fn add(
        &mut self,
        record: &Record,
        result: &RiskResult,
        requests: &TopicPartition,
    ) -> Result<(), OutputProblem> {
        if result.rules != RULES {
            let error = format!(
                "it was answered by rules {}, and this software knows rules {RULES}: use the version of warptape that wrote it",
                result.rules
            );
            return Err(OutputProblem::Unreadable { error, expected: "a risk result".into() });
        }
        let mut differences = Vec::new();
        if result.topic != requests.topic {
            differences.push(Difference::new("topic", requests.topic.as_str(), result.topic.as_str()));
        }
        if result.partition != requests.partition {
            differences.push(Difference::new("partition", requests.partition, result.partition));
        }
        if !differences.is_empty() {
            return Err(OutputProblem::Changed { differences });
        }
        if let Some(&first) = self.results.get(&result.offset) {
            self.double.get_or_insert([first, record.offset]);
            return Ok(());
        }
        self.results.insert(result.offset, record.offset);
        if let (Some(other), false) = (&result.cancels, matches!(result.outcome, RiskOutcome::Error(_))) {
            let error = refusals::cancelled(&result.request_id, &result.tenant, result.offset);
            self.cancelled.insert(other.clone(), error);
        }
        Ok(())
    }

    /// Returns the error of a request if another request claims to have cancelled it. Only the first request with an id
    /// counts.
    pub(super) fn cancelled(
        &self,
        request: &Result<RiskRequest, DecodeError>,
        is_new: bool,
    ) -> Option<&RiskError> {
        let request = request.as_ref().ok().filter(|request| is_new && request.cancels.is_none())?;
        self.cancelled.get(&request.request_id)
    }

    /// Returns the offsets of requests, in the order of their results.
    pub(super) fn by_result(&self) -> Vec<i64> {
        let mut all: Vec<(i64, i64)> =
            self.results.iter().map(|(&request, &result)| (result, request)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, request)| request).collect()
    }

    /// True if a result names the request at an offset.
    pub(super) fn has(&self, request: i64) -> bool {
        self.results.contains_key(&request)
    }

    /// Removes and returns the offset of the result of the request at an offset.
    pub(super) fn take(&mut self, request: i64) -> Option<i64> {
        self.results.remove(&request)
    }

    /// Returns the divergence of the results that are left after all requests were read.
    pub(super) fn surplus(&self, end: &ResultsEnd) -> Option<OutputDivergence> {
        let (&request, &offset) = self.results.iter().min_by_key(|(_, result)| **result)?;
        let (count, first) = (self.results.len() as u64, json!({"offset": request}));
        Some(end.divergence(offset, None, OutputProblem::Surplus { count, first }))
    }
}

impl Missing {
    /// Adds a request whose result is missing.
    pub(super) fn add(&mut self, record: &Record, request: Option<RiskRequest>) {
        let request_id = request.map(|request| request.request_id);
        self.first.get_or_insert(Unanswered { offset: record.offset, request_id });
        self.count += 1;
    }

    /// Returns the first request without a result; `None` if there is none.
    pub(super) fn first(&self) -> Option<&Unanswered> {
        self.first.as_ref()
    }

    pub(super) fn divergence(self, end: &ResultsEnd) -> Option<OutputDivergence> {
        let Self { count, first } = self;
        let Unanswered { offset, request_id } = first?;
        let first = json!({"request_id": request_id, "offset": offset});
        Some(end.divergence(end.offset, request_id, OutputProblem::Missing { count, first }))
    }
}

impl ResultsEnd {
    pub(super) fn divergence(
        &self,
        offset: i64,
        request_id: Option<String>,
        problem: OutputProblem,
    ) -> OutputDivergence {
        let TopicPartition { topic, partition } = self.source.clone();
        OutputDivergence { topic, partition, offset, symbol: None, request_id, problem }
    }
}
