//! What is counted of a run, for those who watch it and for its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use warptape_engine::{Accepted, CommitAttempt, CommitRequest, Core, LaneCommand, LaneNews, Receipt};
use warptape_kernels::device::Sample;
use warptape_record::Record;
use warptape_schemas::journal::LaneId;
use warptape_stages::RepeatedTrades;

use super::progress::Committed;
use super::summary::{LATENCY_NS_MAX, latency_histogram};
use super::written::Written;
use super::{Progress, Summary};

/// Time between two times at which the engine says what it is at.
const SHOW_INTERVAL_NS: i64 = 200_000_000;

pub(super) struct Figures {
    progress: Arc<Progress>,
    /// When the engine said last what it is at.
    shown_at_ns: i64,
    committed: Committed,
    /// Trades whose id their symbol had before.
    repeated: RepeatedTrades,
    /// Whether it was said that symbols are in two partitions.
    has_told_split: bool,
    /// When the commit was sealed whose signals were shown last.
    shown_ns: i64,
    first_read_ns: Option<i64>,
    last_advance_ns: i64,
    latency_ns: Histogram<u64>,
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
        }
    }

    pub(super) fn count_decisions(&self, core: &Core) {
        self.progress.decisions.store(core.decisions_total(), Ordering::Relaxed);
    }

    /// Says what the engine is at, unless it has just done so.
    pub(super) fn show(&mut self, now_ns: i64, core: &Core) {
        if now_ns >= self.shown_at_ns.saturating_add(SHOW_INTERVAL_NS) {
            self.show_now(now_ns, core);
        }
    }

    fn show_now(&mut self, now_ns: i64, core: &Core) {
        self.shown_at_ns = now_ns;
        let (status, committed) = (core.status(), self.committed.clone());
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

    /// Keeps how a device fares.
    pub(super) fn count_sample(&self, device: &str, sample: &Sample) {
        self.progress.change_engine(|view| {
            *view.xids.entry(device.to_owned()).or_default() += u64::from(sample.xid.is_some());
            view.samples.insert(device.to_owned(), sample.clone());
            view.sampled_at.insert(device.to_owned(), Instant::now());
        });
    }

    /// Counts records of ticks as they were read.
    pub(super) fn count_read(&self, records: &[Record]) {
        let bytes: usize = records.iter().map(|record| record.value.len()).sum();
        Progress::add(&self.progress.records_read, records.len() as u64);
        Progress::add(&self.progress.bytes_read, bytes as u64);
    }

    /// Partitions are no longer this process's: how far they were committed is somebody else's to tell.
    pub(super) fn forget(&mut self, partition: i32) {
        self.committed.offsets.remove(&partition);
    }

    /// Counts what a lane is told.
    pub(super) fn command_lane(&self, lane: LaneId, command: &LaneCommand, core: &Core) {
        if let LaneCommand::Run(batch) = command {
            let rows = core.batch_rows(batch.batch);
            self.progress.lanes[lane as usize].in_flight_rows.fetch_add(rows, Ordering::Relaxed);
        }
    }

    /// Counts what a lane tells.
    pub(super) fn count_lane(&self, lane: LaneId, news: &LaneNews, core: &Core) {
        let figures = &self.progress.lanes[lane as usize];
        match news {
            LaneNews::Completed { batch, service_ns, .. } => {
                let rows = core.batch_rows(*batch);
                figures.in_flight_rows.fetch_sub(rows, Ordering::Relaxed);
                Progress::add(&figures.rows, rows as u64);
                Progress::add(&figures.busy_ns, *service_ns as u64);
            }
            LaneNews::SliceDone { service_ns, .. } => Progress::add(&figures.busy_ns, *service_ns as u64),
            LaneNews::Released { .. } | LaneNews::Measured { .. } | LaneNews::Lost { .. } => {}
        }
    }

    /// Forgets what a lost lane had.
    pub(super) fn end_lane(&self, lane: LaneId) {
        self.progress.lanes[lane as usize].in_flight_rows.store(0, Ordering::Relaxed);
    }

    /// Counts records that were accepted; `read_at_ns` is when they were read.
    pub(super) fn count_accepted(&mut self, accepted: Accepted, read_at_ns: i64) {
        self.first_read_ns.get_or_insert(read_at_ns);
        Progress::add(&self.progress.ticks, accepted.ticks);
        Progress::add(&self.progress.late, accepted.late);
        Progress::add(&self.progress.dead_letters, accepted.dead);
        Progress::add(&self.progress.dead_ticks, accepted.dead_rows);
        let repeated = accepted.repeated;
        if self.repeated.first.is_none() && repeated.first.is_some() {
            tracing::warn!("{repeated}");
        }
        Progress::add(&self.progress.repeated_trades, repeated.repeated);
        self.repeated.add(repeated);
    }

    /// The first slice of a round that was given to the scheduler at a time, in the step in which the slice began, is in the queue of its lane.
    pub(super) fn count_enqueued(&self, submitted_ns: i64, now_ns: i64) {
        self.progress.latencies.risk_enqueue.observe(seconds(submitted_ns, now_ns));
    }

    pub(super) fn count_requests(&self, count: usize) {
        Progress::add(&self.progress.risk_requests, count as u64);
    }

    /// A request is about to be written, for the first time or again.
    pub(super) fn begin_commit(&mut self, request: &CommitRequest, core: &Core) {
        if request.sealed_at_ns > self.shown_ns {
            self.shown_ns = request.sealed_at_ns;
            self.progress.keep_latest(request.newest_signals());
        }
        self.progress.waiting_rows.store(core.waiting_rows() as i64, Ordering::Relaxed);
    }

    /// It is durable and visible.
    pub(super) fn count_commit(
        &mut self,
        receipt: Receipt,
        written: Written,
        attempt: CommitAttempt,
        sealed_ns: i64,
    ) {
        let committed_at_ns = attempt.ended_ns;
        if receipt.advances {
            self.last_advance_ns = committed_at_ns;
        }
        Progress::add(&self.progress.signals, written.signals);
        let latencies = &self.progress.latencies;
        for (read_at_ns, count) in receipt.signals_by_read {
            let latency_ns = (committed_at_ns - read_at_ns).clamp(0, LATENCY_NS_MAX as i64) as u64;
            self.latency_ns.record_n(latency_ns, count).expect("the value was clamped to the bounds");
            for _ in 0..count {
                latencies.tick_to_signal.observe(seconds(read_at_ns, committed_at_ns));
                latencies.read_to_seal.observe(seconds(read_at_ns, sealed_ns));
            }
        }
        latencies.commit.observe(seconds(sealed_ns, committed_at_ns));
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

    /// It was aborted, for this reason.
    pub(super) fn count_abort(&mut self, attempt: CommitAttempt, reason: String) {
        self.committed.aborts += 1;
        self.committed.looked_up += u64::from(attempt.looked_up);
        self.committed.failing = Some(reason);
    }

    /// Says what the engine was at in the end.
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
            symbols: core.symbol_count() as u64,
            active_ns: self.first_read_ns.map_or(0, |first| (self.last_advance_ns - first).max(0)),
            latency_ns: self.latency_ns,
        }
    }
}

fn seconds(from_ns: i64, to_ns: i64) -> f64 {
    (to_ns - from_ns).max(0) as f64 / 1e9
}
