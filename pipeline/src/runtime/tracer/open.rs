//! State of a traced record or request, and the trace built from it.

use std::collections::BTreeSet;

use warptape_engine::{CommitAttempt, SideTopic};
use warptape_schemas::journal::LaneId;

use super::TickPlace;
use crate::traces::{Attribute, Trace, TracedSpan, attribute, trace_id};

/// Greatest number of a record's batches, or a request's slices, in its trace. Further ones are only counted.
pub(super) const STEPS_MAX: usize = 64;
/// Error of a trace whose partition went to another process.
const LET_GO: &str = "the partition was let go before the transaction was committed";
/// Error of a batch or slice without a result.
const LANE_LOST: &str = "the lane was lost";

/// An accepted record.
#[derive(Default)]
pub(super) struct OpenRecord {
    /// Create time of the record, set by the producer or the broker.
    pub(super) written_ns: i64,
    pub(super) bytes: usize,
    pub(super) read_at_ns: i64,
    /// Time when the record was decoded and its rows began to wait for lanes.
    pub(super) accepted_ns: i64,
    /// Group and slot of each symbol in the record.
    pub(super) symbols: BTreeSet<(i32, u32)>,
    pub(super) passages: Vec<Passage>,
    /// Number of batches that the trace leaves out.
    pub(super) left_out: usize,
    pub(super) signals: i64,
    pub(super) late: i64,
    pub(super) is_dead_letter: bool,
}

/// Rows of a record in a batch.
pub(super) struct Passage {
    pub(super) batch: i64,
    pub(super) lane: LaneId,
    pub(super) rows: usize,
    pub(super) handed_ns: i64,
    /// Time of the end, with the duration; after the lane's loss, without it. `None` until then.
    pub(super) ended: Option<(i64, Option<i64>)>,
}

/// A risk request that was read.
#[derive(Default)]
pub(super) struct OpenRequest {
    pub(super) request_id: String,
    pub(super) bytes: usize,
    pub(super) read_at_ns: i64,
    /// Start and end of the preparation as a task; 0 if there was none.
    pub(super) prepare_ns: [i64; 2],
    pub(super) slices: Vec<SliceRun>,
    /// Start and end of the last round's conclusion in the background; 0 if it took no time.
    pub(super) conclude_ns: [i64; 2],
}

/// Units of a request on a lane.
pub(super) struct SliceRun {
    pub(super) slice: i64,
    pub(super) lane: LaneId,
    pub(super) units: (i64, i64),
    pub(super) begun_ns: i64,
    /// Time of the end, with the duration; after the lane's loss, without it. `None` until then.
    pub(super) ended: Option<(i64, Option<i64>)>,
}

impl OpenRecord {
    pub(super) fn count_side_output(&mut self, topic: SideTopic) {
        match topic {
            SideTopic::Late => self.late += 1,
            SideTopic::DeadLetter => self.is_dead_letter = true,
        }
    }
}

/// Traced record or request in a transaction whose outcome is unknown.
pub(super) struct Sealed {
    pub(super) place: TickPlace,
    id: [u8; 16],
    read_at_ns: i64,
    sealed_ns: i64,
    /// The root span without its end, followed by the steps so far.
    spans: Vec<TracedSpan>,
    /// Attempts to commit, each with true if it succeeded.
    pub(super) attempts: Vec<(CommitAttempt, bool)>,
}

fn step(name: &'static str, start_ns: i64, end_ns: i64, attributes: Vec<Attribute>) -> TracedSpan {
    TracedSpan { name, start_ns, end_ns, attributes, error: None }
}

/// Returns the span of a step on a lane; a step that has not ended gets the end `until_ns`.
fn step_on_lane(
    name: &'static str,
    start_ns: i64,
    ended: Option<(i64, Option<i64>)>,
    until_ns: i64,
    mut attributes: Vec<Attribute>,
) -> TracedSpan {
    let (end_ns, service_ns) = ended.unwrap_or((until_ns, None));
    attributes.extend(service_ns.map(|service_ns| attribute("warptape.service_ns", service_ns)));
    let error = (ended.is_some() && service_ns.is_none()).then_some(LANE_LOST);
    TracedSpan { name, start_ns, end_ns, attributes, error }
}

/// Returns the attributes of a record's place, by OpenTelemetry's conventions for messaging.
fn place_attributes(topic: &str, (partition, offset): TickPlace, bytes: usize) -> Vec<Attribute> {
    vec![
        attribute("messaging.destination.name", topic.to_owned()),
        attribute("messaging.destination.partition.id", partition.to_string()),
        attribute("messaging.kafka.offset", offset),
        attribute("messaging.message.body.size", bytes as i64),
    ]
}

impl Sealed {
    pub(super) fn record(topic: &str, place: TickPlace, open: OpenRecord, sealed_ns: i64) -> Self {
        let OpenRecord { written_ns, read_at_ns, accepted_ns, passages, .. } = open;
        let mut attributes = place_attributes(topic, place, open.bytes);
        attributes.extend([
            attribute("warptape.written_ns", written_ns),
            attribute("warptape.symbols", open.symbols.len() as i64),
            attribute("warptape.signals", open.signals),
            attribute("warptape.late_ticks", open.late),
            attribute("warptape.dead_letter", open.is_dead_letter),
            attribute("warptape.batches", (passages.len() + open.left_out) as i64),
        ]);
        let mut spans = vec![
            step("record", read_at_ns, sealed_ns, attributes),
            step("read", read_at_ns, accepted_ns, Vec::new()),
        ];
        let mut done_ns = accepted_ns;
        for passage in passages {
            let Passage { batch, lane, rows, handed_ns, ended } = passage;
            let attributes = || {
                vec![
                    attribute("warptape.batch", batch),
                    attribute("warptape.lane", i64::from(lane)),
                    attribute("warptape.rows", rows as i64),
                ]
            };
            spans.push(step("queue", accepted_ns, handed_ns, attributes()));
            spans.push(step_on_lane("batch", handed_ns, ended, sealed_ns, attributes()));
            done_ns = done_ns.max(ended.map_or(sealed_ns, |(ended_ns, _)| ended_ns));
        }
        spans.push(step("seal", done_ns, sealed_ns, Vec::new()));
        let id = trace_id(topic, place.0, place.1);
        Self { place, id, read_at_ns, sealed_ns, spans, attempts: Vec::new() }
    }

    pub(super) fn request(topic: &str, place: TickPlace, open: OpenRequest, sealed_ns: i64) -> Self {
        let OpenRequest { request_id, bytes, read_at_ns, prepare_ns, slices, conclude_ns } = open;
        let mut attributes = place_attributes(topic, place, bytes);
        attributes.push(attribute("warptape.request.id", request_id));
        attributes.push(attribute("warptape.slices", slices.len() as i64));
        let mut spans = vec![step("risk request", read_at_ns, sealed_ns, attributes)];
        let mut done_ns = read_at_ns;
        if let [begun_ns @ 1..=i64::MAX, ended_ns @ 1..=i64::MAX] = prepare_ns {
            spans.push(step("wait", read_at_ns, begun_ns, Vec::new()));
            spans.push(step("prepare", begun_ns, ended_ns, Vec::new()));
            done_ns = ended_ns;
        }
        for SliceRun { slice, lane, units, begun_ns, ended } in slices {
            let attributes = vec![
                attribute("warptape.slice", slice),
                attribute("warptape.lane", i64::from(lane)),
                attribute("warptape.units.from", units.0),
                attribute("warptape.units.to", units.1),
            ];
            spans.push(step_on_lane("slice", begun_ns, ended, sealed_ns, attributes));
            done_ns = done_ns.max(ended.map_or(sealed_ns, |(ended_ns, _)| ended_ns));
        }
        if let [begun_ns @ 1..=i64::MAX, ended_ns @ 1..=i64::MAX] = conclude_ns {
            spans.push(step("conclude", begun_ns, ended_ns, Vec::new()));
            done_ns = done_ns.max(ended_ns);
        }
        spans.push(step("seal", done_ns, sealed_ns, Vec::new()));
        let id = trace_id(topic, place.0, place.1);
        Self { place, id, read_at_ns, sealed_ns, spans, attempts: Vec::new() }
    }

    /// Returns the whole trace, with the last attempt's commit. If `let_go_ns` has a time, the trace ends there without
    /// a commit, because the partition was released.
    pub(super) fn into_trace(self, let_go_ns: Option<i64>) -> Trace {
        let Self { id, read_at_ns, sealed_ns, mut spans, attempts, .. } = self;
        let committed_ns = attempts.last().map(|(attempt, _)| attempt.ended_ns);
        let end_ns = let_go_ns.or(committed_ns).unwrap_or(sealed_ns);
        let mut begun_ns = sealed_ns;
        for (number, (attempt, is_committed)) in (1_i64..).zip(&attempts) {
            let attributes = vec![
                attribute("warptape.attempt", number),
                attribute("warptape.sent_ns", attempt.sent_ns),
                attribute("warptape.looked_up", attempt.looked_up),
            ];
            let error = (!is_committed).then_some("the transaction was aborted");
            spans.push(TracedSpan {
                name: "commit",
                start_ns: begun_ns,
                end_ns: attempt.ended_ns,
                attributes,
                error,
            });
            begun_ns = attempt.ended_ns;
        }
        let whole = &mut spans[0];
        whole.end_ns = end_ns;
        whole.error = let_go_ns.map(|_| LET_GO);
        Trace { id, read_at_ns, spans }
    }
}
