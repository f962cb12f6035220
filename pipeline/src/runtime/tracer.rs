//! Traces of sampled tick records and risk requests, gathered from the shell's events. The worker threads know nothing
//! of them.
//!
//! ```text
//!  record   read ─► queue ─► batch (of each lane that has rows of it) ─► seal ─► commit
//!  request  wait ─► prepare ─► slice (each) ─► conclude ─► seal ─► commit
//! ```
//!
//! A trace is sent when its transaction is committed, or when its partition is released. Records whose outputs already
//! exist, for example after a restore, have no trace. The tracer only observes, and does nothing without a receiver.

mod open;

use std::collections::{BTreeMap, BTreeSet};

use warptape_engine::{
    Command, CommitAttempt, CommitRequest, Event, LaneBatch, LaneCommand, LaneNews, Observer, ReadRequest,
    SealedResult, Topics,
};
use warptape_eventlog::Record;
use warptape_kernels::RowKind;
use warptape_schemas::journal::LaneId;

use super::EngineConfig;
use crate::traces::TraceSender;
use open::{OpenRecord, OpenRequest, Passage, STEPS_MAX, Sealed, SliceRun};

/// Greatest number of records, and of requests, traced at the same time.
const OPEN_MAX: usize = 1_024;

/// Partition and offset.
type TickPlace = (i32, i64);

/// Follows sampled records and requests; `None` without a receiver of traces.
pub(super) struct Tracer(Option<Box<Following>>);

impl Tracer {
    pub(super) fn new(config: &EngineConfig) -> Self {
        let topics = &config.core.topics;
        Self(config.traces.clone().map(|sender| Box::new(Following::new(sender, topics))))
    }
}

impl Observer for Tracer {
    fn on_event(&mut self, now_ns: i64, event: &Event) {
        let Some(following) = &mut self.0 else { return };
        match event {
            Event::Records { partition, records, .. } => following.on_records(*partition, records),
            Event::Requests { partition, requests, .. } => {
                following.on_requests(now_ns, *partition, requests);
            }
            Event::Lane { news, .. } => following.on_lane(now_ns, news),
            Event::Prepared(prepared) => following.on_prepared(now_ns, prepared.number()),
            Event::Concluded(concluded) => following.on_concluded(now_ns, concluded.number()),
            Event::Committed(attempt) => following.on_committed(*attempt),
            Event::Aborted { attempt, .. } => following.on_aborted(*attempt),
            _ => {}
        }
    }

    fn on_command(&mut self, now_ns: i64, command: &Command) {
        if let Some(following) = &mut self.0 {
            following.on_command(now_ns, command);
        }
    }
}

/// The records and requests that are traced.
struct Following {
    sender: TraceSender,
    ticks: String,
    requests_topic: String,
    records: BTreeMap<TickPlace, OpenRecord>,
    /// Records passed to the core, but not accepted yet.
    heard: Vec<(TickPlace, OpenRecord)>,
    requests: BTreeMap<TickPlace, OpenRequest>,
    /// Batches in flight that contain rows of traced records.
    batches: BTreeMap<i64, (LaneId, Vec<TickPlace>)>,
    /// Slices in flight of traced requests.
    slices: BTreeMap<i64, TickPlace>,
    /// Requests by the number of their preparation.
    preparing: BTreeMap<u64, TickPlace>,
    /// Requests by the number of their task.
    concluding: BTreeMap<i64, TickPlace>,
    /// Offset in each partition before which outputs exist already.
    done_before: BTreeMap<i32, i64>,
    /// Traces of the transaction in progress.
    sealed: Vec<Sealed>,
}

impl Following {
    fn new(sender: TraceSender, topics: &Topics) -> Self {
        Self {
            sender,
            ticks: topics.ticks.clone(),
            requests_topic: topics.risk_requests.clone(),
            records: BTreeMap::new(),
            heard: Vec::new(),
            requests: BTreeMap::new(),
            batches: BTreeMap::new(),
            slices: BTreeMap::new(),
            preparing: BTreeMap::new(),
            concluding: BTreeMap::new(),
            done_before: BTreeMap::new(),
            sealed: Vec::new(),
        }
    }

    /// Handles records that the core gets.
    fn on_records(&mut self, partition: i32, records: &[Record]) {
        let done_before = self.done_before.get(&partition).copied().unwrap_or(0);
        let followed = records.iter().filter(|record| {
            record.offset >= done_before && self.sender.samples_record(partition, record.offset)
        });
        let open = |record: &Record| OpenRecord {
            written_ns: record.timestamp_ns,
            bytes: record.value.len(),
            ..OpenRecord::default()
        };
        let heard = followed.map(|record| ((partition, record.offset), open(record)));
        self.heard = heard.take(OPEN_MAX).collect();
    }

    /// Handles the core's acceptance of the records before an offset.
    fn accept(&mut self, now_ns: i64, partition: i32, read_to: i64, read_at_ns: i64) {
        for (place, open) in self.heard.drain(..) {
            if place.0 == partition && place.1 < read_to && self.records.len() < OPEN_MAX {
                let open = || OpenRecord { read_at_ns, accepted_ns: now_ns, ..open };
                self.records.entry(place).or_insert_with(open);
            }
        }
    }

    /// Handles risk requests that were read.
    fn on_requests(&mut self, now_ns: i64, partition: i32, requests: &[ReadRequest]) {
        for read in requests {
            // An unreadable request is answered at once, so it has no trace.
            let Ok(request) = &read.request else { continue };
            if self.sender.samples_request(partition, read.offset) && self.requests.len() < OPEN_MAX {
                let open = || OpenRequest {
                    request_id: request.request_id.clone(),
                    bytes: read.bytes,
                    read_at_ns: now_ns,
                    ..OpenRequest::default()
                };
                self.requests.entry((partition, read.offset)).or_insert_with(open);
            }
        }
    }

    /// Handles a command of the core.
    fn on_command(&mut self, now_ns: i64, command: &Command) {
        match command {
            Command::Lane(lane, LaneCommand::Run(batch)) => self.dispatch(now_ns, *lane, batch),
            Command::EndLane { lane, .. } => self.lose(now_ns, *lane),
            Command::Accepted { partition, read_to, read_at_ns, .. } => {
                self.accept(now_ns, *partition, *read_to, *read_at_ns);
            }
            Command::Slice { lane, slice, request, .. } => {
                if let Some(open) = self.requests.get_mut(request)
                    && open.slices.len() < STEPS_MAX
                {
                    self.slices.insert(slice.slice, *request);
                    let units = (slice.units.start, slice.units.end);
                    open.slices.push(SliceRun {
                        slice: slice.slice,
                        lane: *lane,
                        units,
                        begun_ns: now_ns,
                        ended: None,
                    });
                }
            }
            Command::Prepare(preparation) => {
                let place = (preparation.partition, preparation.offset);
                if let Some(open) = self.requests.get_mut(&place) {
                    open.prepare_ns[0] = now_ns;
                    self.preparing.insert(preparation.number(), place);
                }
            }
            Command::Abandon { number } => drop(self.preparing.remove(number)),
            Command::Conclude(conclusion) => {
                let place = conclusion.request();
                if let Some(open) = self.requests.get_mut(&place) {
                    open.conclude_ns[0] = now_ns;
                    self.concluding.insert(conclusion.number(), place);
                }
            }
            Command::Commit(request) => self.seal(request),
            Command::Restore { partition, sealed_offset, .. } => {
                // Records that still wait are read again.
                self.records.retain(|place, _| place.0 != *partition);
                self.done_before.insert(*partition, *sealed_offset);
            }
            Command::LetGo { partition } => self.let_go(now_ns, *partition),
            _ => {}
        }
    }

    /// Handles a lane's news.
    fn on_lane(&mut self, now_ns: i64, news: &LaneNews) {
        match news {
            LaneNews::Completed { batch, service_ns, .. } => {
                let (_, places) = self.batches.remove(batch).unwrap_or_default();
                for place in places {
                    let passages = self.records.get_mut(&place).map(|open| &mut open.passages);
                    if let Some(passage) =
                        passages.into_iter().flatten().find(|passage| passage.batch == *batch)
                    {
                        passage.ended = Some((now_ns, Some(*service_ns)));
                    }
                }
            }
            LaneNews::SliceDone { slice, service_ns, .. } => {
                let open = self.slices.remove(slice).and_then(|place| self.requests.get_mut(&place));
                let run = open.and_then(|open| open.slices.iter_mut().find(|run| run.slice == *slice));
                if let Some(run) = run {
                    run.ended = Some((now_ns, Some(*service_ns)));
                }
            }
            LaneNews::Released { .. } | LaneNews::Measured { .. } | LaneNews::Lost { .. } => {}
        }
    }

    /// Handles a finished preparation.
    fn on_prepared(&mut self, now_ns: i64, number: u64) {
        let open = self.preparing.remove(&number).and_then(|place| self.requests.get_mut(&place));
        if let Some(open) = open {
            open.prepare_ns[1] = now_ns;
        }
    }

    /// Handles a round that was concluded in the background.
    fn on_concluded(&mut self, now_ns: i64, number: i64) {
        let open = self.concluding.remove(&number).and_then(|place| self.requests.get_mut(&place));
        if let Some(open) = open {
            open.conclude_ns[1] = now_ns;
        }
    }

    /// Handles the commit of the transaction in progress.
    fn on_committed(&mut self, attempt: CommitAttempt) {
        for mut sealed in std::mem::take(&mut self.sealed) {
            sealed.attempts.push((attempt, true));
            self.sender.send(sealed.into_trace(None));
        }
    }

    /// Handles an aborted attempt; nothing of it was written.
    fn on_aborted(&mut self, attempt: CommitAttempt) {
        for sealed in &mut self.sealed {
            sealed.attempts.push((attempt, false));
        }
    }

    /// Finds rows of traced records in a batch.
    fn dispatch(&mut self, now_ns: i64, lane: LaneId, batch: &LaneBatch) {
        if self.records.is_empty() {
            return;
        }
        let mut found: BTreeMap<TickPlace, usize> = BTreeMap::new();
        for part in &batch.parts {
            let (partition, rows) = (part.group.partition, &part.input.rows);
            let (Some(&first), Some(&last)) = (rows.offset.first(), rows.offset.last()) else { continue };
            for (&place, open) in self.records.range_mut((partition, first)..=(partition, last)) {
                let from = rows.offset.partition_point(|&offset| offset < place.1);
                let count = rows.offset[from..].partition_point(|&offset| offset == place.1);
                for row in from..from + count {
                    let kind = rows.kind[row];
                    // A barrier is only placed at a record, while a watermark is caused by its record.
                    if kind != RowKind::BARRIER {
                        *found.entry(place).or_default() += 1;
                    }
                    if kind.is_trade() || kind == RowKind::QUOTE {
                        open.symbols.insert((part.group.group, rows.slot[row]));
                    }
                }
            }
        }
        for (&place, &rows) in &found {
            let open = self.records.get_mut(&place).expect("it was found there");
            if open.passages.len() < STEPS_MAX {
                open.passages.push(Passage {
                    batch: batch.batch,
                    lane,
                    rows,
                    handed_ns: now_ns,
                    ended: None,
                });
            } else {
                open.left_out += 1;
            }
        }
        if !found.is_empty() {
            self.batches.insert(batch.batch, (lane, found.into_keys().collect()));
        }
    }

    /// Handles the loss of a lane. Its work in flight is done again elsewhere.
    fn lose(&mut self, now_ns: i64, lane: LaneId) {
        self.batches.retain(|_, (owner, _)| *owner != lane);
        for passage in self.records.values_mut().flat_map(|open| &mut open.passages) {
            if passage.lane == lane {
                passage.ended.get_or_insert((now_ns, None));
            }
        }
        for run in self.requests.values_mut().flat_map(|open| &mut open.slices) {
            if run.lane == lane {
                run.ended.get_or_insert((now_ns, None));
            }
        }
    }

    /// Handles a transaction that is sent: its traces wait for its outcome. A repeated attempt adds nothing.
    fn seal(&mut self, request: &CommitRequest) {
        for (source, next) in &request.offsets {
            if source.topic == self.ticks {
                self.done_before.insert(source.partition, *next);
                self.seal_records(source.partition, *next, request);
            }
        }
        for sealed in &request.sealed {
            for SealedResult { request_id: key, .. } in &sealed.risk_results {
                let asked = self.requests.range((sealed.partition, 0)..=(sealed.partition, i64::MAX));
                let of_result = |(_, open): &(&TickPlace, &OpenRequest)| open.request_id == *key;
                let place = asked.filter(|(_, open)| !open.request_id.is_empty()).find(of_result);
                if let Some((&place, _)) = place {
                    let open = self.requests.remove(&place).expect("it was found there");
                    self.sealed.push(Sealed::request(
                        &self.requests_topic,
                        place,
                        open,
                        request.sealed_at_ns,
                    ));
                }
            }
        }
        // Requests that were answered before they were read again have no result of their own.
        for (source, next) in request.offsets.iter().filter(|(source, _)| source.topic == self.requests_topic)
        {
            self.requests.retain(|place, _| place.0 != source.partition || place.1 >= *next);
        }
    }

    fn seal_records(&mut self, partition: i32, next: i64, request: &CommitRequest) {
        let places: BTreeSet<TickPlace> =
            self.records.range((partition, i64::MIN)..(partition, next)).map(|(&place, _)| place).collect();
        if places.is_empty() {
            return;
        }
        let mut taken: BTreeMap<i64, OpenRecord> = BTreeMap::new();
        for place in places {
            taken.insert(place.1, self.records.remove(&place).expect("it was found there"));
        }
        for sealed in request.sealed.iter().filter(|sealed| sealed.partition == partition) {
            for key in sealed.signals.keys() {
                if let Some(open) = taken.get_mut(&key.offset) {
                    open.signals += 1;
                }
            }
            for side_output in &sealed.side_outputs {
                if let Some(open) = taken.get_mut(&side_output.offset) {
                    open.count_side_output(side_output.topic);
                }
            }
        }
        for (offset, open) in taken {
            self.sealed.push(Sealed::record(&self.ticks, (partition, offset), open, request.sealed_at_ns));
        }
    }

    /// Handles a released partition: its uncommitted outputs are dropped here.
    fn let_go(&mut self, now_ns: i64, partition: i32) {
        self.done_before.remove(&partition);
        let is_gone = |place: &TickPlace| place.0 == partition;
        let gone = self.sealed.extract_if(.., |sealed| is_gone(&sealed.place)).collect::<Vec<_>>();
        for sealed in gone {
            self.sender.send(sealed.into_trace(Some(now_ns)));
        }
        let records: Vec<_> = self.records.extract_if(.., |place, _| is_gone(place)).collect();
        for (place, open) in records {
            self.sender.send(Sealed::record(&self.ticks, place, open, now_ns).into_trace(Some(now_ns)));
        }
        let requests: Vec<_> = self.requests.extract_if(.., |place, _| is_gone(place)).collect();
        for (place, open) in requests {
            self.sender
                .send(Sealed::request(&self.requests_topic, place, open, now_ns).into_trace(Some(now_ns)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, bounded};

    use super::*;
    use crate::traces::{Trace, TracedSpan};

    const PLACE: TickPlace = (2, 7);

    /// Traces a record with rows in a batch of lane 1, and a request with a slice there.
    fn following() -> (Following, Receiver<Trace>) {
        let (waiting, traces) = bounded(8);
        let mut following = Following::new(TraceSender::of_all(waiting), &Topics::new(""));
        let passage = |batch, lane| Passage { batch, lane, rows: 3, handed_ns: 20, ended: None };
        let passages = vec![passage(5, 1), passage(6, 0)];
        following
            .records
            .insert(PLACE, OpenRecord { read_at_ns: 10, accepted_ns: 15, passages, ..OpenRecord::default() });
        following.batches.insert(5, (1, vec![PLACE]));
        following.batches.insert(6, (0, vec![PLACE]));
        let slice = SliceRun { slice: 4, lane: 1, units: (0, 9), begun_ns: 21, ended: None };
        let open = OpenRequest { read_at_ns: 10, slices: vec![slice], ..OpenRequest::default() };
        following.requests.insert(PLACE, open);
        following.slices.insert(4, PLACE);
        (following, traces)
    }

    fn completed(batch: i64) -> LaneNews {
        LaneNews::Completed { batch, service_ns: 8, parts: Vec::new(), memory_bytes: None }
    }

    /// Returns the end and error of each span with this name.
    fn of_name<'a>(trace: &'a Trace, name: &str) -> Vec<(i64, Option<&'static str>)> {
        let found = trace.spans.iter().filter(|span: &&'a TracedSpan| span.name == name);
        found.map(|span| (span.end_ns, span.error)).collect()
    }

    #[test]
    fn what_a_lost_lane_had_is_an_error_and_what_comes_of_it_later_is_nothing() {
        let (mut following, _traces) = following();
        following.lose(30, 1);
        following.on_lane(40, &completed(5));
        following.on_lane(41, &completed(6));
        let open = following.records.remove(&PLACE).expect("it is followed");
        let trace = Sealed::record("ticks", PLACE, open, 50).into_trace(None);
        assert_eq!(of_name(&trace, "batch"), [(30, Some("the lane was lost")), (41, None)]);
        let open = following.requests.remove(&PLACE).expect("it is followed");
        let trace = Sealed::request("risk.requests", PLACE, open, 50).into_trace(None);
        assert_eq!(of_name(&trace, "slice"), [(30, Some("the lane was lost"))]);
    }

    #[test]
    fn a_transaction_that_is_aborted_and_sent_again_is_one_trace_with_both_attempts() {
        let (mut following, traces) = following();
        let open = following.records.remove(&PLACE).expect("it is followed");
        following.sealed.push(Sealed::record("ticks", PLACE, open, 50));
        let attempt = |ended_ns| CommitAttempt { sent_ns: ended_ns - 5, ended_ns, looked_up: false };
        following.on_aborted(attempt(60));
        assert!(traces.try_recv().is_err(), "its outcome is not known yet");
        following.on_committed(attempt(70));
        let trace = traces.try_recv().expect("a trace");
        assert_eq!(of_name(&trace, "commit"), [(60, Some("the transaction was aborted")), (70, None)]);
        assert_eq!(of_name(&trace, "record"), [(70, None)]);
    }

    #[test]
    fn a_partition_that_is_let_go_ends_its_traces_with_an_error() {
        let (mut following, traces) = following();
        let open = OpenRecord::default();
        following.sealed.push(Sealed::record("ticks", (2, 6), open, 50));
        following.sealed.push(Sealed::record("ticks", (3, 6), OpenRecord::default(), 50));
        following.let_go(90, 2);
        let ended: Vec<_> =
            traces.try_iter().map(|trace| (trace.spans[0].end_ns, trace.spans[0].error)).collect();
        let error = Some("the partition was let go before the transaction was committed");
        assert_eq!(ended, [(90, error); 3]);
        // The trace of the other partition continues.
        assert_eq!(following.sealed.len(), 1);
    }
}
