//! Compares risk results with their requests. Each result is computed again on this thread, with the market that the
//! journal names.
//!
//! ```text
//!   results ──► which request each is of: one for each, and none without
//!                  │
//!   requests ──────┴──► refused, or asks nothing of the market ──► compared at once
//!                  │
//!                  └──► in the order of their decisions ──► MarketFold ──► RiskTask ──► compared
//! ```
//!
//!
//! A request that needs the market but was refused without a decision waits for the market, too. Its result names the
//! market with which it was judged.
//!
//! Times, devices and the process are not checked; everything else is a function of the log.

mod admitted;
mod answers;
mod misplaced;
mod order;
mod rerun;
mod sealed;

use warptape_engine::payload_of;
use warptape_eventlog::{EventLog, Record, TopicPartition};
use warptape_schemas::journal::{AsOf, Input, TaskArrived};
use warptape_schemas::risk::{RiskError, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::{DecodeError, Describer, decode_risk_request, decode_risk_result};
use warptape_stages::risk::refusals::{self, RequestIds};

use self::answers::{Answers, Missing, ResultsEnd};
use crate::accounts::Accounts;
use crate::admissions::{Admission, Admissions};
use crate::comparison::{Expected, changed};
use crate::cut::RiskCut;
use crate::difference::Difference;
use crate::journal::JournalCheck;
use crate::market_fold::MarketFold;
use crate::partition_reader::{PartitionReader, RecordWindow};
use crate::segments::{ConfigId, Segments};
use crate::{
    Divergence, JournalDivergence, OutputDivergence, OutputOptions, OutputProblem, Phase, ReplayError,
    ReplayProgress, VerifyOptions,
};

/// Sequence in a result for which the scheduler was not asked.
const NO_SEQUENCE: i64 = -1;

/// Compares the results of all partitions.
pub(crate) struct RiskCheck<'a> {
    log: &'a dyn EventLog,
    /// Topic of the journal.
    journal: &'a str,
    options: &'a OutputOptions,
    segments: &'a Segments,
    accounts: &'a Accounts,
    cuts: &'a [RiskCut],
    admissions: Admissions,
    describer: Describer,
    /// Number of results found identical.
    pub(crate) identical: u64,
}

/// A result that is compared once the market has reached the state that its request saw.
struct Waiting {
    /// Time at which the request was admitted or refused.
    at_ns: i64,
    partition: i32,
    /// Offset of the request.
    request: i64,
    /// Offset of the result.
    result: i64,
    /// Error of a cancelled request; `None` if the request was not cancelled.
    cancelled: Option<RiskError>,
    /// The market that the request saw, and the stage configuration.
    met: Box<[AsOf]>,
    config: ConfigId,
}

/// A request from the log.
struct Asked {
    request: Result<RiskRequest, DecodeError>,
    /// Size of the request's record, in bytes.
    bytes: usize,
}

/// A result from the log.
struct Found<'a> {
    record: &'a Record,
    result: RiskResult,
}

/// The requirement that a result must meet.
enum Verdict<'a> {
    /// The result must be exactly this one.
    Is(Box<RiskResult>),
    /// The result must be the one that the request yields with this decision.
    Of(&'a Admission),
    /// The result must be the refusal that the request gets with the market named in the result and with a stage
    /// configuration.
    Judged(ConfigId),
    /// The result is wrong, because it names a decision that does not belong to the request.
    Not(Vec<Difference>),
}

impl<'a> RiskCheck<'a> {
    pub(crate) fn new(
        log: &'a dyn EventLog,
        options: &'a VerifyOptions,
        check: &'a JournalCheck,
        cuts: &'a [RiskCut],
        mut admissions: Admissions,
    ) -> Self {
        let JournalCheck { segments, accounts, .. } = check;
        admissions.gather();
        let VerifyOptions { journal, sources: options, .. } = options;
        Self {
            log,
            journal,
            options,
            segments,
            accounts,
            cuts,
            admissions,
            describer: Describer::new(),
            identical: 0,
        }
    }

    /// Compares all results, up to the first difference.
    pub(crate) fn run(
        &mut self,
        progress: &mut dyn FnMut(ReplayProgress),
    ) -> Result<Option<Divergence>, ReplayError> {
        if let Some((admission, differences)) = self.admissions.misstated.take().map(|misstated| *misstated) {
            return Ok(Some(self.misstated(&admission, differences)));
        }
        let mut waiting = Vec::new();
        for partition in 0..self.cuts.len() as i32 {
            let divergence = self.check_partition(partition, &mut waiting, progress)?;
            if divergence.is_some() {
                return Ok(divergence);
            }
        }
        self.check_waiting(waiting, progress)
    }

    fn check_partition(
        &mut self,
        partition: i32,
        waiting: &mut Vec<Waiting>,
        progress: &mut dyn FnMut(ReplayProgress),
    ) -> Result<Option<Divergence>, ReplayError> {
        let cut = &self.cuts[partition as usize];
        let (requests, results) = self.sources(partition);
        let end = ResultsEnd { source: results.clone(), offset: cut.results.next };
        let reader = PartitionReader::open(self.log, results.clone(), cut.results)?;
        let mut answers = match Answers::read(reader, &requests)? {
            Ok(answers) => answers,
            Err(divergence) => return Ok(Some(Divergence::Output(*divergence))),
        };
        if let Some(double) = answers.double {
            let divergence = self.blame_one(&answers, double, partition, &end)?;
            return Ok(Some(Divergence::Output(divergence)));
        }
        let answered = answers.by_result();
        let source = requests.clone();
        let mut results = RecordWindow::open(self.log, results, cut.results)?;
        let mut requests = PartitionReader::open(self.log, requests, cut.requests)?;
        let mut offsets = Vec::new();
        let mut ids = RequestIds::default();
        let mut missing = Missing::default();
        while let Some(record) = requests.next()? {
            let asked = Asked::of(&record);
            let request = &asked.request;
            offsets.push(record.offset);
            let is_new = request.as_ref().map_or(true, |request| ids.insert(&request.request_id));
            if let Some(divergence) = self.check_admissions(partition, record.offset, request) {
                return Ok(Some(divergence));
            }
            match answers.take(record.offset) {
                None if record.offset < cut.answered => missing.add(&record, asked.request.ok()),
                // Once a result is missing, only missing results are counted.
                Some(result) if missing.first().is_none() => {
                    let found = Found::of(results.at(result)?);
                    let cancelled = answers.cancelled(request, is_new);
                    let verdict =
                        self.verdict(partition, record.offset, request, is_new, cancelled, &found.result);
                    let met = match &verdict {
                        Verdict::Of(Admission { at_ns, as_of, config, .. }) if !as_of.is_empty() => {
                            Some((*at_ns, *config, &as_of[..]))
                        }
                        Verdict::Judged(config) => {
                            Some((found.result.finished_ns, *config, &found.result.judged_on[..]))
                        }
                        _ => None,
                    };
                    if let Some((at_ns, config, met)) = met {
                        let (request, cancelled, met) = (record.offset, cancelled.cloned(), met.into());
                        waiting.push(Waiting { at_ns, partition, request, result, cancelled, met, config });
                        continue;
                    }
                    let divergence = self.compare(&end.source, &asked, &found, verdict, cancelled, None);
                    if divergence.is_some() {
                        return Ok(divergence);
                    }
                    self.count(progress);
                }
                _ => {}
            }
        }
        if let Some(unanswered) = missing.first()
            && let Some(found) = self.elsewhere(unanswered, partition, &end)?
        {
            return Ok(Some(Divergence::Output(found)));
        }
        let divergence = missing.divergence(&end).or_else(|| answers.surplus(&end)).map(Divergence::Output);
        let seals = self.accounts.results(partition).filter(|_| divergence.is_none());
        let misstated =
            seals.and_then(|seals| sealed::check(&source, seals, &answered, &offsets, cut.requests.next));
        Ok(divergence.or(misstated.map(Divergence::Sealed)))
    }

    /// Returns the first decision whose copy of its request differs from the request.
    fn check_admissions(
        &self,
        partition: i32,
        offset: i64,
        request: &Result<RiskRequest, DecodeError>,
    ) -> Option<Divergence> {
        let request = request.as_ref().ok()?;
        self.admissions.of(partition, offset).iter().find_map(|admission| {
            let differences = admitted::check_repeated(admission, request)?;
            Some(self.misstated(admission, differences))
        })
    }

    /// Compares the results that wait for the market, in the order in which the market reaches their states.
    fn check_waiting(
        &mut self,
        mut waiting: Vec<Waiting>,
        progress: &mut dyn FnMut(ReplayProgress),
    ) -> Result<Option<Divergence>, ReplayError> {
        waiting.sort_by_key(|waiting| (waiting.at_ns, waiting.partition, waiting.request));
        let mut market: Option<(ConfigId, MarketFold<'_>)> = None;
        let mut windows = Vec::with_capacity(self.cuts.len());
        for (partition, cut) in (0..).zip(self.cuts) {
            let (requests, results) = self.sources(partition);
            let requests = RecordWindow::open(self.log, requests, cut.requests)?;
            windows.push((requests, RecordWindow::open(self.log, results, cut.results)?));
        }
        let of_configs = waiting.chunk_by(|one, next| one.config == next.config);
        let in_order = of_configs.flat_map(|waiting| {
            let order = order::by_market(waiting.iter().map(|waiting| &*waiting.met));
            order.into_iter().map(|place| &waiting[place])
        });
        for &Waiting { partition, request: offset, result, ref cancelled, .. } in in_order {
            let (requests, results) = &mut windows[partition as usize];
            let asked = Asked::of(requests.at(offset)?);
            let found = Found::of(results.at(result)?);
            let cancelled = cancelled.as_ref();
            let verdict = self.verdict(partition, offset, &asked.request, true, cancelled, &found.result);
            let met = match &verdict {
                Verdict::Of(admission) => Some((admission.config, &*admission.as_of)),
                Verdict::Judged(config) => Some((*config, &found.result.judged_on[..])),
                Verdict::Is(_) | Verdict::Not(_) => None,
            };
            if let Some((config, as_of)) = met {
                // With another configuration, the market is another fold of the ticks.
                let (_, market) = match market.take_if(|(known, _)| *known == config) {
                    Some(same) => market.insert(same),
                    None => market.insert((config, self.market(config)?)),
                };
                market.advance(as_of)?;
            }
            let (_, source) = self.sources(partition);
            let fold = market.as_ref().map(|(_, market)| market);
            let divergence = self.compare(&source, &asked, &found, verdict, cancelled, fold);
            if divergence.is_some() {
                return Ok(divergence);
            }
            self.count(progress);
        }
        Ok(None)
    }

    /// Returns the market at the beginning of the log, with a stage configuration.
    fn market(&self, config: ConfigId) -> Result<MarketFold<'a>, ReplayError> {
        let ticks = self.cuts.iter().map(|cut| cut.ticks).collect();
        Ok(MarketFold::new(self.log, self.options, self.segments.config(config)?, ticks))
    }

    /// Returns the partition's places in the topics of requests and results.
    fn sources(&self, partition: i32) -> (TopicPartition, TopicPartition) {
        let source = |topic: &String| TopicPartition { topic: topic.clone(), partition };
        (source(&self.options.risk_requests), source(&self.options.risk_results))
    }

    /// Returns what the result of a request must be.
    fn verdict(
        &self,
        partition: i32,
        offset: i64,
        request: &Result<RiskRequest, DecodeError>,
        is_new: bool,
        cancelled: Option<&RiskError>,
        found: &RiskResult,
    ) -> Verdict<'_> {
        let refused = |request, error| Verdict::Is(Box::new(rerun::refused(found, request, error)));
        let request = match request {
            Err(error) => return refused(None, refusals::unreadable(error)),
            Ok(request) if !is_new => {
                return refused(Some(request), refusals::duplicate(&request.request_id));
            }
            Ok(request) => request,
        };
        if let Some(other) = &request.cancels {
            return match &found.outcome {
                RiskOutcome::Error(_) => refused(Some(request), rerun::not_cancelled(other, &found.outcome)),
                _ => Verdict::Is(Box::new(rerun::confirmed(found, request))),
            };
        }
        let admissions = self.admissions.of(partition, offset);
        let is_named = |admission: &&Admission| {
            admission.sequence == found.decision_sequence
                && *admission.node == *found.node
                && admission.end().is_some()
        };
        if let Some(admission) = admissions.iter().find(is_named) {
            return Verdict::Of(admission);
        }
        if found.decision_sequence == NO_SEQUENCE
            && let Some(error) = cancelled
        {
            return refused(Some(request), error.clone());
        }
        if found.decision_sequence == NO_SEQUENCE && !found.judged_on.is_empty() {
            return match self.admissions.config_of(&found.node, found.received_ns) {
                Some(config) => Verdict::Judged(config),
                None => {
                    let expected = "a process of the journal";
                    Verdict::Not(vec![Difference::new("node", expected, found.node.as_str())])
                }
            };
        }
        // The request needs no market, or there was none.
        if found.decision_sequence == NO_SEQUENCE
            && let Some(expected) = rerun::judged(found, request, &|_| None)
        {
            return Verdict::Is(Box::new(expected));
        }
        let last = admissions.iter().rfind(|admission| admission.end().is_some());
        Verdict::Not(other_decision(last, found))
    }
}

impl RiskCheck<'_> {
    /// Returns the difference between a result and its requirement; `None` if there is none.
    fn compare(
        &self,
        source: &TopicPartition,
        asked: &Asked,
        found: &Found<'_>,
        verdict: Verdict<'_>,
        cancelled: Option<&RiskError>,
        market: Option<&MarketFold<'_>>,
    ) -> Option<Divergence> {
        let Found { record, result } = found;
        let request = &asked.request;
        let problem = match verdict {
            Verdict::Not(differences) => OutputProblem::Changed { differences },
            // Refusals are short, so no size limit applies.
            Verdict::Is(expected) => self.difference(*expected, i64::MAX, record)?,
            Verdict::Judged(_) => {
                let request = request.as_ref().expect("what cannot be read is judged on no market");
                let market_of = |symbol: &str| market?.market_of(symbol, &result.judged_on);
                let expected = rerun::judged(result, request, &market_of)
                    .unwrap_or_else(|| rerun::refused(result, Some(request), rerun::admitted()));
                self.difference(expected, i64::MAX, record)?
            }
            Verdict::Of(admission) => {
                let request = request.as_ref().expect("what cannot be read has no decision");
                let market_of = |symbol: &str| market?.market_of(symbol, &admission.as_of);
                let (isa, end) = (self.options.isa, admission.end().cloned());
                let end = end.expect("a result names a decision that came to an end");
                let expected = rerun::answered(result, request, end, cancelled, &market_of, isa);
                let bytes_max = refusals::stated_limit(&result.outcome).unwrap_or(i64::MAX);
                let Some(problem) = self.difference(expected, bytes_max, record) else {
                    let told = admitted::check(admission, request, asked.bytes, &market_of);
                    return told.map(|differences| self.misstated(admission, differences));
                };
                problem
            }
        };
        Some(Divergence::Output(OutputDivergence {
            topic: source.topic.clone(),
            partition: source.partition,
            offset: record.offset,
            symbol: None,
            request_id: Some(result.request_id.clone()),
            problem,
        }))
    }

    /// Returns the divergence of a task that differs from its request.
    fn misstated(&self, admission: &Admission, differences: Vec<Difference>) -> Divergence {
        let (partition, offset) = admission.place;
        let arrived = TaskArrived { as_of: admission.as_of.to_vec(), ..(*admission.arrived).clone() };
        Divergence::Journal(JournalDivergence {
            topic: self.journal.to_owned(),
            partition,
            offset,
            sequence: admission.sequence,
            software: None,
            at_ns: Some(admission.at_ns),
            input: serde_json::to_value(Input::TaskArrived(arrived)).ok(),
            differences,
        })
    }

    fn difference(&self, mut expected: RiskResult, bytes_max: i64, found: &Record) -> Option<OutputProblem> {
        let key = Some(expected.request_id.clone().into_bytes());
        let value = refusals::encode_bounded(&mut expected, bytes_max);
        let expected = Expected { key, value };
        (!expected.is(found)).then(|| changed(&self.describer, &expected, found))
    }

    /// Counts an identical result.
    fn count(&mut self, progress: &mut dyn FnMut(ReplayProgress)) {
        self.identical += 1;
        let results = self.cuts.iter().map(|cut| (cut.results.next - cut.results.first) as u64);
        progress(ReplayProgress { phase: Phase::Risk, done: self.identical, total: results.sum() });
    }
}

impl Asked {
    fn of(record: &Record) -> Self {
        Self { request: payload_of(record).and_then(decode_risk_request), bytes: record.value.len() }
    }
}

impl<'a> Found<'a> {
    fn of(record: &'a Record) -> Self {
        let result = decode_risk_result(&record.value).expect("what cannot be decoded is no answer");
        Self { record, result }
    }
}

/// Returns the differences between the decision that a result names and the last decision on its request.
fn other_decision(admission: Option<&Admission>, found: &RiskResult) -> Vec<Difference> {
    let sequence = found.decision_sequence;
    let Some(admission) = admission else {
        return vec![Difference::new("decision_sequence", "a decision on this request", sequence)];
    };
    let mut differences = Vec::new();
    if *admission.node != *found.node {
        differences.push(Difference::new("node", &*admission.node, found.node.as_str()));
    }
    if admission.sequence != sequence {
        differences.push(Difference::new("decision_sequence", admission.sequence, sequence));
    }
    differences
}
