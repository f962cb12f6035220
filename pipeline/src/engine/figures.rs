//! What is counted of a run, for those who watch it and for its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use warptape_engine::{Accepted, CommitRequest, Core, LaneCommand, LaneNews, Receipt};
use warptape_schemas::journal::LaneId;
use warptape_stages::RepeatedTrades;

use super::summary::{LATENCY_NS_MAX, latency_histogram};
use super::{Progress, Summary};

pub(super) struct Figures {
    progress: Arc<Progress>,
    /// Trades whose id their symbol had before.
    repeated: RepeatedTrades,
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
            repeated: RepeatedTrades::default(),
            shown_ns: 0,
            first_read_ns: None,
            last_advance_ns: now_ns,
            latency_ns: latency_histogram(),
        }
    }

    pub(super) fn count_decisions(&self, core: &Core) {
        self.progress.decisions.store(core.decisions_total(), Ordering::Relaxed);
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
        let repeated = accepted.repeated;
        if self.repeated.first.is_none() && repeated.first.is_some() {
            tracing::warn!("{repeated}");
        }
        Progress::add(&self.progress.repeated_trades, repeated.repeated);
        self.repeated.add(repeated);
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
    pub(super) fn count_commit(&mut self, receipt: Receipt, committed_at_ns: i64) {
        if receipt.advances {
            self.last_advance_ns = committed_at_ns;
        }
        Progress::add(&self.progress.signals, receipt.signals());
        for (read_at_ns, count) in receipt.signals_by_read {
            let latency_ns = (committed_at_ns - read_at_ns).clamp(0, LATENCY_NS_MAX as i64) as u64;
            self.latency_ns.record_n(latency_ns, count).expect("the value was clamped to the bounds");
        }
        Progress::add(&self.progress.commits, 1);
    }

    pub(super) fn summary(self, core: &Core) -> Summary {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            ticks: read(&self.progress.ticks),
            late: read(&self.progress.late),
            dead_letters: read(&self.progress.dead_letters),
            repeated: self.repeated,
            signals: read(&self.progress.signals),
            decisions: read(&self.progress.decisions),
            commits: read(&self.progress.commits),
            symbols: core.symbol_count() as u64,
            active_ns: self.first_read_ns.map_or(0, |first| (self.last_advance_ns - first).max(0)),
            latency_ns: self.latency_ns,
        }
    }
}
