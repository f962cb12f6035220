//! Finds the wrong result if a request has two results or none. A result names its request by offset and contains the
//! request's id, so a result with another request's offset is recognised.

use serde_json::json;
use warptape_schemas::risk::RiskResult;
use warptape_schemas::{decode_risk_request, decode_risk_result};
use warptape_stages::risk::refusals;

use super::answers::{Answers, ResultsEnd, Unanswered};
use super::{Found, RiskCheck};
use crate::difference::Difference;
use crate::partition_reader::{PartitionReader, RecordWindow};
use crate::{OutputDivergence, OutputProblem, ReplayError};

impl RiskCheck<'_> {
    /// Returns the wrong one of two results that name the same request: the one that belongs to another request without
    /// a result; otherwise the second.
    pub(super) fn blame_one(
        &self,
        answers: &Answers,
        double: [i64; 2],
        partition: i32,
        end: &ResultsEnd,
    ) -> Result<OutputDivergence, ReplayError> {
        let cut = &self.cuts[partition as usize];
        let (requests, results) = self.sources(partition);
        let mut window = RecordWindow::open(self.log, results, cut.results)?;
        let mut found = Vec::with_capacity(double.len());
        for offset in double {
            found.push((offset, Found::of(window.at(offset)?).result));
        }
        let mut named = None;
        let mut own = [None; 2];
        let mut reader = PartitionReader::open(self.log, requests, cut.requests)?;
        while let Some(record) = reader.next()? {
            let id = decode_risk_request(&record.value).map_or(String::new(), |request| request.request_id);
            if record.offset == found[0].1.offset {
                named = Some(id);
                continue;
            }
            for ((_, result), own) in found.iter().zip(&mut own) {
                if own.is_none() && !answers.has(record.offset) && is_of(result, &id) {
                    *own = Some(record.offset);
                }
            }
        }
        for ((offset, result), own) in found.iter().zip(own) {
            if let Some(problem) = own.and_then(|own| misplaced(result, named.as_deref(), own)) {
                return Ok(end.divergence(*offset, Some(result.request_id.clone()), problem));
            }
        }
        let (offset, result) = found.pop().expect("there are two");
        let first = json!({"request_id": result.request_id, "offset": result.offset});
        Ok(end.divergence(offset, Some(result.request_id), OutputProblem::Surplus { count: 1, first }))
    }

    /// Returns the result of an unanswered request, if that result names another request or none.
    pub(super) fn elsewhere(
        &self,
        unanswered: &Unanswered,
        partition: i32,
        end: &ResultsEnd,
    ) -> Result<Option<OutputDivergence>, ReplayError> {
        let cut = &self.cuts[partition as usize];
        let (requests, results) = self.sources(partition);
        let mut requests = PartitionReader::open(self.log, requests, cut.requests)?;
        let mut results = PartitionReader::open(self.log, results, cut.results)?;
        let id = unanswered.request_id.as_deref().unwrap_or_default();
        while let Some(record) = results.next()? {
            let Ok(result) = decode_risk_result(&record.value) else { continue };
            if !is_of(&result, id) {
                continue;
            }
            let mut named = None;
            if (cut.requests.first..cut.requests.next).contains(&result.offset) {
                requests.seek(result.offset)?;
                let there = requests.next()?.filter(|request| request.offset == result.offset);
                named = there.map(|request| decode_risk_request(&request.value));
            }
            let named = named.map(|named| named.map_or(String::new(), |request| request.request_id));
            if let Some(problem) = misplaced(&result, named.as_deref(), unanswered.offset) {
                return Ok(Some(end.divergence(record.offset, Some(result.request_id), problem)));
            }
        }
        Ok(None)
    }
}

/// Returns the problem of a result that does not name its own request. `named` is the id of the request that it names;
/// `None` if there is no such request.
fn misplaced(result: &RiskResult, named: Option<&str>, own: i64) -> Option<OutputProblem> {
    let is_named = named.is_some_and(|named| is_of(result, named));
    let differences = vec![Difference::new("offset", own, result.offset)];
    (!is_named).then_some(OutputProblem::Changed { differences })
}

/// True if a result belongs to a request with this id, which is empty if the request cannot be read.
fn is_of(result: &RiskResult, request_id: &str) -> bool {
    refusals::repeated(&result.request_id) == refusals::repeated(request_id)
}
