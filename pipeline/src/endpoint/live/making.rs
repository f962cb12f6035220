//! Makes a snapshot from the endpoint's view and the records read from the log. A pure function of both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use warptape_engine::{LaneStatus, PartitionStatus};
use warptape_replay::iso;
use warptape_schemas::journal::BreakerState;

use super::history::{LaneRate, Rates};
use super::seen::Seen;
use super::snapshot::{
    Component, Lag, Lane, Latency, Partition, Process, Snapshot, State, Stores, Symbol, Totals, Verified,
};
use crate::endpoint::health::{self, Health};
use crate::endpoint::reports;
use crate::endpoint::view::View;

/// Lag in seconds below which a pipeline counts as caught up.
const KEEPING_UP_S: f64 = 2.0;
/// Greatest number of groups, and of symbols, shown for a lane.
const OF_LANE_MAX: usize = 64;

/// Makes the snapshot. `log` is the URL of the log, and `skipped` the number of records that the page did not read.
pub(super) fn snapshot(
    view: &View<'_>,
    log: &str,
    rates: &Rates,
    seen: &Seen,
    skipped: u64,
    verified: Option<Verified>,
) -> Snapshot {
    let status = &view.engine.status;
    let lag = lag(view);
    let symbols = seen.series().symbols();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let progress = &view.watched.progress;
    let rows = |of: fn(&LaneStatus) -> i64| status.lanes.iter().map(of).sum::<i64>().max(0).unsigned_abs();
    let totals = Totals {
        ticks: read(&progress.ticks),
        signals: read(&progress.signals),
        decisions: read(&progress.decisions),
        commits: read(&progress.commits),
        late: read(&progress.late),
        dead_letters: read(&progress.dead_letters),
        risk_requests: read(&progress.risk_requests),
        symbols: status.symbols as u64,
        waiting_rows: status.waiting_rows as u64,
        in_flight_rows: rows(|lane| lane.load.in_flight_rows),
    };
    Snapshot {
        at: iso(view.now_ns),
        process: Process {
            node: view.watched.node.clone(),
            group: view.watched.group.clone(),
            ordinal: view.watched.ordinal,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        state: state(&health::assess(view), view, lag.as_ref()),
        history: rates.history(),
        latency: view.engine.latency_ms.map(|[p50_ms, p99_ms, p999_ms]| Latency { p50_ms, p99_ms, p999_ms }),
        partitions: status.partitions.iter().map(|partition| of_partition(view, partition)).collect(),
        lanes: lanes(view, rates, seen, &symbols),
        devices: reports::devices(view),
        signals: seen.signals.iter().cloned().collect(),
        signals_by_kind: seen.signals_by_kind.clone(),
        decisions: seen.entries.iter().cloned().collect(),
        risk: seen.risk.iter().cloned().collect(),
        stores: Stores {
            log: log.to_owned(),
            lost: view.lost.as_ref().map(ToString::to_string),
            disk_free_bytes: view.sampled.disk.map(|disk| disk.free),
            disk_size_bytes: view.sampled.disk.map(|disk| disk.size),
            hot_state: view.watched.hot_state.as_ref().map(ToString::to_string),
        },
        verified,
        symbols_left_out: totals.symbols.saturating_sub(symbols.len() as u64),
        symbols,
        records_skipped: skipped,
        totals,
        lag,
    }
}

/// Returns the lag over all partitions; `None` if it is unknown.
fn lag(view: &View<'_>) -> Option<Lag> {
    let lags = view.sampled.lag.known(view.now_ns)?;
    Some(Lag {
        records: lags.values().map(|lag| lag.records).sum(),
        seconds: lags.values().map(|lag| lag.seconds).fold(0.0, f64::max),
    })
}

/// Returns the state in a phrase: the worst trouble, or the current activity.
fn state(health: &Health, view: &View<'_>, lag: Option<&Lag>) -> State {
    let worst = health.components.iter().find(|component| component.state == health.status);
    let is_ok = health.status == health::State::Ok;
    let words = match (worst, lag) {
        (Some(worst), _) if !is_ok => worst.reason.clone(),
        _ if view.engine.status.partitions.is_empty() => {
            "standing by: this process owns no partition".to_owned()
        }
        (_, None) => "reading; the lag is unknown".to_owned(),
        (_, Some(lag)) if lag.records == 0 && view.engine.status.waiting_rows == 0 => "caught up".to_owned(),
        (_, Some(lag)) if lag.seconds < KEEPING_UP_S => format!("keeping up, {:.1} s behind", lag.seconds),
        (_, Some(lag)) => format!("catching up, {} records and {:.0} s behind", lag.records, lag.seconds),
    };
    let components = health.components.iter().map(|component| Component {
        name: component.name.to_owned(),
        level: component.state.name().to_owned(),
        reason: component.reason.clone(),
    });
    State { level: health.status.name().to_owned(), words, components: components.collect() }
}

fn of_partition(view: &View<'_>, partition: &PartitionStatus) -> Partition {
    let lags = view.sampled.lag.known(view.now_ns);
    let lag = lags.and_then(|lags| lags.get(&partition.partition));
    Partition {
        partition: partition.partition,
        is_restoring: !partition.is_restored,
        is_paused: partition.is_paused,
        watermark: partition.watermark_ns.map(iso),
        symbols: partition.symbols as u64,
        waiting_rows: partition.waiting_rows,
        lag: lag.map(|lag| Lag { records: lag.records, seconds: lag.seconds }),
    }
}

fn lanes(view: &View<'_>, rates: &Rates, seen: &Seen, symbols: &[Symbol]) -> Vec<Lane> {
    let homes = Homes::of(view, seen, symbols);
    let lanes = view.engine.status.lanes.iter().enumerate().map(|(index, lane)| {
        let LaneRate { busy_percent, rows_per_s } = rates.lanes.get(index).copied().unwrap_or_default();
        Lane {
            lane: lane.lane(),
            device: view.watched.device_of(lane.lane()).to_owned(),
            state: lane_state(lane).to_owned(),
            busy_percent,
            rows_per_s,
            in_flight_rows: lane.load.in_flight_rows,
            waiting_rows: lane.load.waiting_rows,
            groups: homes.groups.get(&lane.lane()).cloned().unwrap_or_default(),
            symbols: homes.symbols.get(&lane.lane()).cloned().unwrap_or_default(),
        }
    });
    lanes.collect()
}

fn lane_state(lane: &LaneStatus) -> &'static str {
    match lane {
        LaneStatus { load, .. } if !load.ready => "lost",
        LaneStatus { breaker: BreakerState::Open, .. } => "held",
        LaneStatus { load, .. } if !load.in_service => "drained",
        LaneStatus { load, .. } if load.in_flight_batches > 0 || load.slice.is_some() => "working",
        LaneStatus { .. } => "idle",
    }
}

/// Groups and symbols, by the lane that holds their state.
#[derive(Default)]
struct Homes {
    groups: BTreeMap<i32, Vec<String>>,
    symbols: BTreeMap<i32, Vec<String>>,
}

impl Homes {
    fn of(view: &View<'_>, seen: &Seen, symbols: &[Symbol]) -> Self {
        let mut homes = Self::default();
        let mut lane_of = BTreeMap::new();
        let mut groups: BTreeMap<i32, u32> = BTreeMap::new();
        for placement in &view.engine.status.placements {
            *groups.entry(placement.partition).or_default() += 1;
            let Some(lane) = placement.lane else { continue };
            lane_of.insert((placement.partition, placement.group), lane);
            let of = homes.groups.entry(lane).or_default();
            if of.len() < OF_LANE_MAX {
                of.push(format!("{}:{}", placement.partition, placement.group));
            }
        }
        let series = seen.series();
        for Symbol { symbol, .. } in symbols {
            let Some(partition) = series.partition_of(symbol) else { continue };
            let Some(&count) = groups.get(&partition) else { continue };
            let group = view.watched.lateness.group_of(symbol, count);
            let home = i32::try_from(group).ok().and_then(|group| lane_of.get(&(partition, group)));
            let Some(lane) = home else { continue };
            let of = homes.symbols.entry(*lane).or_default();
            if of.len() < OF_LANE_MAX {
                of.push(symbol.clone());
            }
        }
        homes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Clock;
    use crate::endpoint::live::tests::Wordless;
    use crate::endpoint::sampler::Sampled;
    use crate::endpoint::view::tests::full_view;

    fn seen() -> Seen {
        Seen::new(Arc::new(Wordless), Arc::default())
    }

    #[test]
    fn unknown_figures_are_null_and_not_zero() {
        let watched = full_view::watched();
        let view = watched.view(Clock::start(), Sampled::default(), Vec::new());
        let made = snapshot(&view, "sqlite:x.db", &Rates::default(), &seen(), 0, None);
        assert_eq!((made.lag, made.verified), (None, None));
        assert_eq!(made.stores.disk_free_bytes, None);
        assert_eq!(made.state.level, "down", "the engine has not reported: {:?}", made.state.words);
    }

    #[test]
    fn a_lane_is_said_lost_before_anything_else() {
        let mut lane = LaneStatus { load: full_view::load(0), breaker: BreakerState::Open };
        lane.load.ready = false;
        assert_eq!(lane_state(&lane), "lost");
        lane.load.ready = true;
        assert_eq!(lane_state(&lane), "held");
        lane.breaker = BreakerState::Closed;
        lane.load.in_service = false;
        assert_eq!(lane_state(&lane), "drained");
    }
}
