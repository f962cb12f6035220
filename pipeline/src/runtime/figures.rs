//! Figures of a run, for displays and for its summary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use warptape_engine::{
    Accepted, Command, CommitAttempt, CommitRequest, Core, Event, LaneBatch, LaneCommand, LaneNews, Observer,
    Receipt, RecordTimes,
};
use warptape_kernels::device::Sample;
use warptape_record::Record;
use warptape_schemas::journal::LaneId;
use warptape_stages::RepeatedTrades;

use super::progress::{Committed, seconds};
use super::summary::{LATENCY_NS_MAX, latency_histogram};
use super::written::Written;
use super::{Progress, Summary};

/// Time between two reports of the engine's state.
const SHOW_INTERVAL_NS: i64 = 200_000_000;

pub(super) struct Figures {
    progress: Arc<Progress>,
    /// Time of the last report of the engine's state.
    shown_at_ns: i64,
    committed: Committed,
    /// Trades that repeat an earlier trade id of the same symbol.
    repeated: RepeatedTrades,
    /// True once symbols in two partitions were reported.
    has_told_split: bool,
    /// Seal time of the last commit whose signals were shown.
    shown_ns: i64,
    first_read_ns: Option<i64>,
    last_advance_ns: i64,
    /// Latencies from the publication of records, and from their read.
    latency_ns: Histogram<u64>,
    read_latency_ns: Histogram<u64>,
    /// Lane and number of rows of each batch in flight.
    batches: BTreeMap<i64, (LaneId, i64)>,
}

impl Figures {
    pub(super) fn new(progress: Arc<Progress>, now_ns: i64) -> Self {
        Self {
            progress,
            shown_at_ns: i64::MIN,
            committed: Committed::default(),
            repeated: RepeatedTrades::default(),
            has_told_split: false,
            shown_ns: 0,
            first_read_ns: None,
            last_advance_ns: now_ns,
            latency_ns: latency_histogram(),
            read_latency_ns: latency_histogram(),
            batches: BTreeMap::new(),
        }
    }

    fn show_now(&mut self, now_ns: i64, core: &Core) {
        self.shown_at_ns = now_ns;
        let (status, committed) = (core.status(), self.committed.clone());
        self.progress.decisions.store(status.decisions, Ordering::Relaxed);
        self.progress.waiting_rows.store(status.waiting_rows as i64, Ordering::Relaxed);
        if status.split_symbols.count > 0 && !self.has_told_split {
            self.has_told_split = true;
            tracing::warn!("{}", status.split_symbols);
        }
        let quantile_ms = |quantile| self.latency_ns.value_at_quantile(quantile) as f64 / 1e6;
        let latency_ms = (!self.latency_ns.is_empty()).then(|| [0.5, 0.99, 0.999].map(quantile_ms));
        self.progress.change_engine(|view| {
            (view.at_ns, view.status) = (now_ns, status);
            (view.committed, view.latency_ms) = (committed, latency_ms);
        });
    }

    /// Stores a sample of a device's state.
    fn count_sample(&self, device: &str, sample: &Sample) {
        self.progress.change_engine(|view| {
            *view.xids.entry(device.to_owned()).or_default() += u64::from(sample.xid.is_some());
            view.samples.insert(device.to_owned(), sample.clone());
            view.sampled_at.insert(device.to_owned(), Instant::now());
        });
    }

    /// Counts tick records that were read.
    fn count_read(&self, records: &[Record]) {
        let bytes: usize = records.iter().map(|record| record.value.len()).sum();
        Progress::add(&self.progress.records_read, records.len() as u64);
        Progress::add(&self.progress.bytes_read, bytes as u64);
    }

    /// Forgets partitions that this process no longer owns, because another process reports their progress.
    fn forget(&mut self, partition: i32) {
        self.committed.offsets.remove(&partition);
    }

    /// Counts a batch that a lane is about to run.
    fn begin_batch(&mut self, lane: LaneId, batch: &LaneBatch) {
        let rows = batch.parts.iter().map(|part| part.input.rows.len() as i64).sum();
        self.batches.insert(batch.batch, (lane, rows));
        self.progress.lanes[lane as usize].in_flight_rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts news from a lane.
    fn count_lane(&mut self, lane: LaneId, news: &LaneNews) {
        let figures = &self.progress.lanes[lane as usize];
        match news {
            LaneNews::Completed { batch, service_ns, .. } => {
                let (_, rows) = self.batches.remove(batch).unwrap_or_default();
                figures.in_flight_rows.fetch_sub(rows, Ordering::Relaxed);
                Progress::add(&figures.rows, rows as u64);
                Progress::add(&figures.busy_ns, *service_ns as u64);
            }
            LaneNews::SliceDone { service_ns, .. } => Progress::add(&figures.busy_ns, *service_ns as u64),
            LaneNews::Released { .. } | LaneNews::Measured { .. } | LaneNews::Lost { .. } => {}
        }
    }

    /// Forgets the batches of a lost lane.
    fn end_lane(&mut self, lane: LaneId) {
        self.batches.retain(|_, (owner, _)| *owner != lane);
        self.progress.lanes[lane as usize].in_flight_rows.store(0, Ordering::Relaxed);
    }

    /// Counts accepted records; `read_at_ns` is the time at which they were read.
    fn count_accepted(&mut self, accepted: &Accepted, read_at_ns: i64) {
        self.first_read_ns.get_or_insert(read_at_ns);
        Progress::add(&self.progress.ticks, accepted.ticks);
        Progress::add(&self.progress.late, accepted.late);
        Progress::add(&self.progress.dead_letters, accepted.dead);
        Progress::add(&self.progress.dead_ticks, accepted.dead_rows);
        let repeated = accepted.repeated.clone();
        if self.repeated.first.is_none() && repeated.first.is_some() {
            tracing::warn!("{repeated}");
        }
        Progress::add(&self.progress.repeated_trades, repeated.repeated);
        self.repeated.add(repeated);
    }

    /// Returns details of records that retention removed since the last call.
    pub(super) fn take_removals(&self) -> Vec<String> {
        self.progress.take_removals()
    }

    /// Ends retention, and returns details of the last removed records.
    pub(super) fn end_removals(&self) -> Vec<String> {
        self.progress.end_removals()
    }

    /// Records the enqueue delay of a round. Its first slice, which the scheduler started in the step of the
    /// submission, is now in its lane's queue.
    pub(super) fn count_enqueued(&self, submitted_ns: i64, now_ns: i64) {
        self.progress.latencies.risk_enqueue.observe(seconds(submitted_ns, now_ns));
    }

    fn count_requests(&self, count: usize) {
        Progress::add(&self.progress.risk_requests, count as u64);
    }

    /// Notes that a request is about to be written, for the first time or again.
    fn begin_commit(&mut self, request: &CommitRequest) {
        if request.sealed_at_ns > self.shown_ns {
            self.shown_ns = request.sealed_at_ns;
            self.progress.keep_latest(request.newest_signals());
        }
    }

    /// Counts a durable and visible transaction.
    pub(super) fn count_commit(&mut self, receipt: Receipt, written: Written, attempt: CommitAttempt) {
        let committed_at_ns = attempt.ended_ns;
        if receipt.advances {
            self.last_advance_ns = committed_at_ns;
        }
        Progress::add(&self.progress.signals, written.signals);
        for (RecordTimes { written_ns, read_at_ns }, count) in receipt.signals_by_record {
            let record = |histogram: &mut Histogram<u64>, from_ns: i64| {
                let latency_ns = (committed_at_ns - from_ns).clamp(0, LATENCY_NS_MAX as i64) as u64;
                histogram.record_n(latency_ns, count).expect("the value was clamped to the bounds");
            };
            record(&mut self.read_latency_ns, read_at_ns);
            if written_ns > 0 {
                record(&mut self.latency_ns, written_ns);
            }
        }
        Progress::add(&self.progress.commits, 1);
        let committed = &mut self.committed;
        committed.looked_up += u64::from(attempt.looked_up);
        committed.failing = None;
        committed.last_ns = Some(committed_at_ns);
        committed.late += written.late;
        committed.dead_letters += written.dead_letters;
        committed.snapshots += written.snapshots;
        committed.journal_entries += written.journal_entries;
        for result in written.risk_results {
            *committed.risk_results.entry(result).or_default() += 1;
        }
        committed.offsets.extend(written.offsets);
    }

    /// Counts an aborted attempt with its reason.
    fn count_abort(&mut self, attempt: CommitAttempt, reason: &str) {
        self.committed.aborts += 1;
        self.committed.looked_up += u64::from(attempt.looked_up);
        self.committed.failing = Some(reason.to_owned());
    }

    /// Reports the engine's last state.
    pub(super) fn end(&mut self, now_ns: i64, core: &Core) {
        self.show_now(now_ns, core);
        self.progress.change_engine(|view| view.has_ended = true);
    }

    pub(super) fn summary(self, core: &Core) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let status = core.status();
        Summary {
            ticks: read(&self.progress.ticks),
            late: read(&self.progress.late),
            dead_letters: read(&self.progress.dead_letters),
            repeated: self.repeated,
            split_symbols: status.split_symbols,
            open_bars: status.open_bars,
            signals: read(&self.progress.signals),
            decisions: read(&self.progress.decisions),
            commits: read(&self.progress.commits),
            symbols: status.symbols as u64,
            active_ns: self.first_read_ns.map_or(0, |first| (self.last_advance_ns - first).max(0)),
            latency_ns: self.latency_ns,
            read_latency_ns: self.read_latency_ns,
        }
    }
}

impl Observer for Figures {
    fn on_event(&mut self, _: i64, event: &Event) {
        match event {
            Event::Records { records, .. } => self.count_read(records),
            Event::Lane { lane, news, .. } => self.count_lane(*lane, news),
            Event::Sample { device, sample } => self.count_sample(device, sample),
            Event::Requests { requests, .. } => self.count_requests(requests.len()),
            Event::Aborted { attempt, reason, .. } => self.count_abort(*attempt, reason),
            _ => {}
        }
    }

    fn on_command(&mut self, _: i64, command: &Command) {
        match command {
            Command::Accepted { read_at_ns, accepted, .. } => self.count_accepted(accepted, *read_at_ns),
            Command::Lane(lane, LaneCommand::Run(batch)) => self.begin_batch(*lane, batch),
            Command::EndLane { lane, .. } => self.end_lane(*lane),
            Command::LetGo { partition } => self.forget(*partition),
            Command::Commit(request) => self.begin_commit(request),
            _ => {}
        }
    }

    /// Reports the engine's state if the last report is old enough.
    fn on_settled(&mut self, now_ns: i64, core: &Core) {
        if now_ns >= self.shown_at_ns.saturating_add(SHOW_INTERVAL_NS) {
            self.show_now(now_ns, core);
        }
    }
}
