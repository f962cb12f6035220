//! The metrics: what there are, and their values at one moment.
//!
//! Names are stable, have their unit in them and begin with `warptape_`; labels are bounded by the configuration (partitions, lanes,
//! devices) or by this program (kinds, reasons). docs/metrics.md is written from [`METRICS`], which a test compares.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet, prometheus_protobuf, prometheus_text,
    text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use warptape_engine::{Counts, REQUEST_OUTCOMES, TASK_CLASSES, TimeBuckets};
use warptape_eventlog::ClientFigures;
use warptape_hot::Connection;
use warptape_schemas::journal::BreakerState;

use super::health::assess;
use super::process::usage;
use super::view::View;

/// What kind of a metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, and begins at 0 with the process; its name ends in `_total`.
    Counter,
    /// It rises and falls.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name without the prefix, the unit and `_total`.
    name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The unit, which is a part of the name; none where things are counted.
    unit: &'static str,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// What it says: one sentence.
    pub help: &'static str,
}

impl Metric {
    /// The name as it stands in a scrape.
    pub fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("warptape_{}{unit}{total}", self.name)
    }
}

/// Declares the metrics: a constant of each, and the list of all.
macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal $unit:literal [$($label:literal),*] $help:literal;)+) => {
        $(const $constant: Metric =
            Metric { name: $name, kind: Kind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)+

        /// All metrics, in the order of a scrape.
        pub const METRICS: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    BUILD = Gauge "build_info" "" ["version", "node", "group"] "1; the labels say which process this is.";
    READY = Gauge "ready" "" [] "1 where /readyz says so: the pipeline reads, commits and computes.";
    COMPONENT = Gauge "component_healthy" "" ["component"] "1 where /health calls the component ok, 0.5 where it calls it degraded, 0 where it is down.";

    READ_RECORDS = Counter "read_records" "" [] "Records of ticks read, those included that are read again after a lane was lost.";
    READ = Counter "read" "bytes" [] "Bytes of their values.";
    TICKS = Counter "ticks" "" [] "Ticks accepted, late ones included.";
    LATE = Counter "late_ticks" "" [] "Ticks that were late.";
    DEAD = Counter "dead_letters" "" [] "Records that could not be processed.";
    REPEATED = Counter "repeated_trades" "" [] "Trades with an id that their symbol had before.";
    SIGNALS = Counter "signals" "" [] "Signals committed.";
    WRITTEN = Counter "written_records" "" ["topic"] "Records committed, by the topic that they are written to.";
    SYMBOLS = Gauge "symbols" "" [] "Symbols seen in the partitions of this process.";

    KAFKA_BROKERS = Gauge "kafka_client_brokers" "" ["client"] "Brokers that the Kafka client knows; absent on the embedded log.";
    KAFKA_CONNECTED = Gauge "kafka_client_brokers_connected" "" ["client"] "Those of them that it is connected to; it connects where it has something to ask.";
    KAFKA_REQUESTS = Counter "kafka_client_requests" "" ["client"] "Requests that it has sent.";
    KAFKA_SENT = Counter "kafka_client_sent" "bytes" ["client"] "Bytes that it has sent.";
    KAFKA_RECEIVED = Counter "kafka_client_received" "bytes" ["client"] "Bytes that it has received.";
    KAFKA_ERRORS = Counter "kafka_client_errors" "" ["client"] "Requests that could not be sent, failed, or had no answer in time.";
    KAFKA_QUEUED = Gauge "kafka_client_queued_records" "" ["client"] "Records that wait to be sent, or to be acknowledged.";
    KAFKA_ROUND_TRIP = Gauge "kafka_client_round_trip_p99" "seconds" ["client"] "99 % of the last requests had their answer within this time, by the slowest broker.";

    LAG_RECORDS = Gauge "partition_lag_records" "" ["partition"] "Records of ticks in the log that are not committed; absent while the log does not say where it ends.";
    LAG = Gauge "partition_lag" "seconds" ["partition"] "For how long the first of these records has been in the log, as the process has seen it come; as long as the process watches, for one that was there before; absent likewise.";
    WATERMARK_DELAY = Gauge "partition_watermark_delay" "seconds" ["partition"] "How far the watermark, before which ticks are late, is behind the clock of this machine.";
    PARTITION_ROWS = Gauge "partition_waiting_rows" "" ["partition"] "Rows of the partition that wait on the host for a lane.";
    PARTITION_BYTES = Gauge "partition_waiting" "bytes" ["partition"] "Their bytes.";
    PAUSED = Gauge "partition_paused" "" ["partition"] "1 while the partition is not read because too many of its rows wait.";
    RESTORED = Gauge "partition_restored" "" ["partition"] "0 while the state of the partition is being restored.";

    TICK_TO_SIGNAL = Histogram "tick_to_signal" "seconds" [] "From the read of the record that causes a signal to the commit of the signal.";
    READ_TO_SEAL = Histogram "read_to_seal" "seconds" [] "The part of it until the signal is sealed: queues, lanes, and the wait for the commit before.";
    COMMIT = Histogram "commit" "seconds" [] "From sealing a transaction to its commit, those included that were sent again.";
    BATCH_WAIT = Histogram "batch_wait" "seconds" [] "How long the oldest row of a batch had waited when the batch was sent to its lane.";
    BATCH_SERVICE = Histogram "batch_service" "seconds" [] "How long lanes worked on a batch.";
    PREDICTION_ERROR = Histogram "batch_prediction_error" "seconds" [] "How far from the predicted time a batch was done, earlier or later.";

    TRANSACTIONS = Counter "transactions" "" ["outcome"] "Transactions, committed or aborted; one that was aborted is sent again.";
    LOOKED_UP = Counter "transactions_looked_up" "" [] "Transactions whose outcome the log did not tell, so that it was looked up.";
    COMMITTING = Gauge "commit_under_way" "seconds" [] "For how long the transaction that is under way has been so; 0 where none is.";
    ABORTING = Gauge "commit_failing" "seconds" [] "For how long every transaction has been aborted; 0 where the last one was committed.";
    LOG_LOST = Gauge "log_lost" "seconds" [] "For how long the log has not answered; 0 where it does.";

    DISK_FREE = Gauge "log_disk_free" "bytes" [] "What is left of the disk below the embedded log; absent on Kafka.";
    DISK_SIZE = Gauge "log_disk_size" "bytes" [] "Size of that disk.";

    DECISIONS = Counter "decisions" "" ["kind"] "Decisions of the scheduler, each of which is in the journal.";
    BATCHES = Counter "batches" "" ["reason"] "Batches sent to lanes, by why they were sent then.";
    MOVES = Counter "group_moves" "" ["cause"] "Groups of symbols that left their lane for another, by why.";

    LANE_READY = Gauge "lane_ready" "" ["lane", "device"] "0 while the lane is lost, or not open yet.";
    LANE_IN_SERVICE = Gauge "lane_in_service" "" ["lane", "device"] "0 while the lane gets no work: it is drained, or its breaker is open.";
    BREAKER = Gauge "lane_breaker_state" "" ["lane", "device", "state"] "1 for the state that the lane's breaker is in.";
    LANE_STALLED = Gauge "lane_stalled" "seconds" ["lane", "device"] "For how long the lane has been at the same batch, seen once a second.";
    LANE_GROUPS = Gauge "lane_groups" "" ["lane", "device"] "Groups of symbols that the lane owns.";
    LANE_WAITING = Gauge "lane_waiting_rows" "" ["lane", "device"] "Rows that wait on the host for the lane.";
    LANE_IN_FLIGHT = Gauge "lane_in_flight_rows" "" ["lane", "device"] "Rows that the lane has been sent and has not finished.";
    LANE_IN_FLIGHT_BYTES = Gauge "lane_in_flight" "bytes" ["lane", "device"] "Their bytes.";
    LANE_BATCHES = Gauge "lane_in_flight_batches" "" ["lane", "device"] "Their batches.";
    LANE_ROWS = Counter "lane_rows" "" ["lane", "device"] "Rows that the lane has finished.";
    LANE_BUSY = Counter "lane_busy" "seconds" ["lane", "device"] "Time that the lane has worked on batches and on slices of risk tasks.";

    RISK_REQUESTS = Counter "risk_requests" "" [] "Risk requests read.";
    RISK_RESULTS = Counter "risk_results" "" ["class", "outcome"] "Risk results committed: done, or the error that the request was answered with.";
    RISK_ADMITTED = Counter "risk_tasks_admitted" "" ["class"] "Risk tasks admitted.";
    RISK_REJECTED = Counter "risk_tasks_rejected" "" ["reason"] "Risk tasks not admitted, by why: quotas, rates, limits, deadlines.";
    RISK_MISSES = Counter "risk_deadline_misses" "" [] "Risk tasks that were not done by their deadline.";
    RISK_SHED = Counter "risk_tasks_shed" "" [] "Risk tasks dropped because their queue stood still for too long.";
    RISK_TASKS = Gauge "risk_tasks" "" [] "Risk tasks that are known and not done.";
    RISK_WAITING = Gauge "risk_tasks_waiting" "" [] "Those of them with work that no lane has begun.";

    QUOTA_TASKS = Gauge "risk_quota_tasks" "" ["quota"] "Risk tasks of a quota that is configured, those of quotas below it included.";
    QUOTA_LIMIT = Gauge "risk_quota_limit_tasks" "" ["quota"] "Risk tasks that the quota may have; absent where it has no limit.";

    HOT_UP = Gauge "hot_state_connected" "" [] "1 while there is a connection to Redis; absent where hot state is kept in memory.";
    HOT_WRITTEN = Counter "hot_state_written_values" "" [] "Values written to Redis.";
    HOT_BEHIND = Gauge "hot_state_behind_records" "" [] "Signals and results in the log that Redis does not have yet.";
    HOT_REBUILDS = Counter "hot_state_rebuilds" "" [] "Partitions rebuilt in Redis from the log's beginning.";
    HOT_LOSSES = Counter "hot_state_connections_lost" "" [] "Connections to Redis that were lost.";

    MEMORY_USED = Gauge "device_memory_used" "bytes" ["device"] "Memory of the GPU in use, by all processes.";
    MEMORY_FREE = Gauge "device_memory_free" "bytes" ["device"] "Memory of the GPU that nobody uses.";
    UTILIZATION = Gauge "device_utilization" "ratio" ["device"] "Share of the last moments in which a kernel ran.";
    TEMPERATURE = Gauge "device_temperature" "celsius" ["device"] "Temperature of the chip.";
    SLOWDOWN = Gauge "device_slowdown_temperature" "celsius" ["device"] "Temperature of the chip at which it lowers its clocks.";
    POWER = Gauge "device_power" "watts" ["device"] "Power drawn.";
    SM_CLOCK = Gauge "device_sm_clock" "hertz" ["device"] "Clock of the multiprocessors.";
    MEMORY_CLOCK = Gauge "device_memory_clock" "hertz" ["device"] "Clock of the memory.";
    THROTTLED = Gauge "device_throttle_reason" "" ["device", "reason"] "1 for each reason for which the clocks are not higher, as NVML names it.";
    ECC = Gauge "device_ecc_uncorrected_errors" "" ["device"] "Memory errors since the driver was loaded that could not be corrected.";
    XID = Counter "device_xid_errors" "" ["device"] "Critical Xid errors of the device.";

    CPU = Counter "process_cpu" "seconds" [] "Processor time of the process.";
    RESIDENT = Gauge "process_resident_memory" "bytes" [] "Memory of the process that is in use.";
    MEMORY_LIMIT = Gauge "process_memory_limit" "bytes" [] "Memory that the process may use: what its control group is allowed, or all of the machine's.";
    FILES = Gauge "process_open_files" "" [] "Files and sockets that the process has open.";
}

/// The formats that a scrape may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    /// Prometheus' own text, which everybody reads.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' protobuf, the only one with native histograms.
    Protobuf,
}

impl Format {
    /// The format that an `Accept` header asks for: the richest one that it names.
    pub(super) fn accepted(accept: &str) -> Self {
        let of = |name: &str| accept.split(',').any(|part| part.trim().starts_with(name));
        match () {
            () if of("application/vnd.google.protobuf") => Self::Protobuf,
            () if of("application/openmetrics-text") => Self::OpenMetrics,
            () => Self::Text,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// All metrics of a view as a scrape.
pub(super) fn scrape(view: View<'_>, format: Format) -> Result<Vec<u8>, fmt::Error> {
    let page = Page::of(&view);
    let mut registry = Registry::with_prefix("warptape");
    registry.register_collector(Box::new(page));
    let mut written = String::new();
    match format {
        Format::Text => prometheus_text::encode(&mut written, &registry)?,
        Format::OpenMetrics => text::encode(&mut written, &registry)?,
        Format::Protobuf => {
            return prometheus_protobuf::encode_to_vec(&registry).map_err(|_| fmt::Error);
        }
    }
    Ok(written.into_bytes())
}

/// The values of a label set, in the order of the metric's labels.
type Labels = Vec<String>;

/// What a metric has.
#[derive(Debug)]
enum Samples {
    Numbers(Vec<(Labels, f64)>),
    Distribution(Histogram),
    Times(TimeBuckets),
}

/// A scrape before it is written.
#[derive(Debug)]
struct Page(Vec<(Metric, Samples)>);

impl Page {
    fn number(&mut self, metric: Metric, value: f64) {
        self.numbers(metric, [(Vec::new(), value)]);
    }

    fn count(&mut self, metric: Metric, value: u64) {
        self.number(metric, value as f64);
    }

    fn numbers(&mut self, metric: Metric, samples: impl IntoIterator<Item = (Labels, f64)>) {
        self.0.push((metric, Samples::Numbers(samples.into_iter().collect())));
    }

    fn counts(&mut self, metric: Metric, counts: &Counts) {
        self.numbers(metric, counts.iter().map(|(label, count)| (vec![label.to_owned()], count as f64)));
    }

    fn of(view: &View<'_>) -> Self {
        let mut page = Self(Vec::with_capacity(METRICS.len()));
        page.process(view);
        page.ticks(view);
        page.kafka_clients(view);
        page.partitions(view);
        page.latencies(view);
        page.commits(view);
        page.decisions(view);
        page.lanes(view);
        page.risk(view);
        page.hot_state(view);
        page.devices(view);
        page.usage();
        page
    }

    fn process(&mut self, view: &View<'_>) {
        let health = assess(view);
        let labels = vec![health.version.to_owned(), health.node.clone(), health.group.clone()];
        self.numbers(BUILD, [(labels, 1.0)]);
        self.number(READY, f64::from(u8::from(health.ready)));
        let healthy = health.components.iter().map(|component| {
            let value = match component.state {
                super::health::State::Ok => 1.0,
                super::health::State::Degraded => 0.5,
                super::health::State::Down => 0.0,
            };
            (vec![component.name.to_owned()], value)
        });
        self.numbers(COMPONENT, healthy);
    }

    fn ticks(&mut self, view: &View<'_>) {
        let progress = &view.watched.progress;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        self.count(READ_RECORDS, read(&progress.records_read));
        self.count(READ, read(&progress.bytes_read));
        self.count(TICKS, read(&progress.ticks));
        self.count(LATE, read(&progress.late));
        self.count(DEAD, read(&progress.dead_letters));
        self.count(REPEATED, read(&progress.repeated_trades));
        let signals = read(&progress.signals);
        self.count(SIGNALS, signals);
        let committed = &view.engine.committed;
        let written = [
            ("signals", signals),
            ("late", committed.late),
            ("dead-letter", committed.dead_letters),
            ("snapshots", committed.snapshots),
            ("risk.results", committed.risk_results.values().sum()),
            ("journal", committed.journal_entries),
        ];
        self.numbers(WRITTEN, written.map(|(topic, count)| (vec![topic.to_owned()], count as f64)));
        self.count(SYMBOLS, view.engine.status.symbols as u64);
    }

    fn kafka_clients(&mut self, view: &View<'_>) {
        let clients = &view.clients;
        if clients.is_empty() {
            return;
        }
        let mut each = |metric, value: fn(&ClientFigures) -> Option<u64>| {
            let known = clients.iter().filter_map(|of| Some((vec![of.client.to_owned()], value(of)? as f64)));
            self.numbers(metric, known);
        };
        each(KAFKA_BROKERS, |of| Some(of.brokers));
        each(KAFKA_CONNECTED, |of| Some(of.brokers_connected));
        each(KAFKA_REQUESTS, |of| Some(of.requests));
        each(KAFKA_SENT, |of| Some(of.sent_bytes));
        each(KAFKA_RECEIVED, |of| Some(of.received_bytes));
        each(KAFKA_ERRORS, |of| Some(of.errors));
        each(KAFKA_QUEUED, |of| Some(of.queued_records));
        let waits = clients
            .iter()
            .filter_map(|of| Some((vec![of.client.to_owned()], of.round_trip_us? as f64 / 1e6)));
        self.numbers(KAFKA_ROUND_TRIP, waits);
    }

    fn partitions(&mut self, view: &View<'_>) {
        let partitions = &view.engine.status.partitions;
        let name = |partition: i32| vec![partition.to_string()];
        let lags = || view.sampled.lag.known(view.now_ns).into_iter().flatten();
        self.numbers(LAG_RECORDS, lags().map(|(&partition, lag)| (name(partition), lag.records as f64)));
        self.numbers(LAG, lags().map(|(&partition, lag)| (name(partition), lag.seconds)));
        let delays = partitions.iter().filter_map(|partition| {
            let delay_ns = view.now_ns.checked_sub(partition.watermark_ns?)?;
            Some((name(partition.partition), delay_ns as f64 / 1e9))
        });
        self.numbers(WATERMARK_DELAY, delays);
        let mut each = |metric, value: fn(&warptape_engine::PartitionStatus) -> f64| {
            self.numbers(
                metric,
                partitions.iter().map(|partition| (name(partition.partition), value(partition))),
            );
        };
        each(PARTITION_ROWS, |partition| partition.waiting_rows as f64);
        each(PARTITION_BYTES, |partition| partition.waiting_bytes as f64);
        each(PAUSED, |partition| f64::from(u8::from(partition.is_paused)));
        each(RESTORED, |partition| f64::from(u8::from(partition.is_restored)));
    }

    fn latencies(&mut self, view: &View<'_>) {
        let latencies = &view.watched.progress.latencies;
        for (metric, histogram) in [
            (TICK_TO_SIGNAL, &latencies.tick_to_signal),
            (READ_TO_SEAL, &latencies.read_to_seal),
            (COMMIT, &latencies.commit),
        ] {
            self.0.push((metric, Samples::Distribution(histogram.clone())));
        }
        let tally = &view.engine.status.tally;
        for (metric, times) in [
            (BATCH_WAIT, &tally.batch_waits),
            (BATCH_SERVICE, &tally.batch_service),
            (PREDICTION_ERROR, &tally.prediction_errors),
        ] {
            self.0.push((metric, Samples::Times(times.clone())));
        }
    }

    fn commits(&mut self, view: &View<'_>) {
        let since_s = |since_ns: Option<i64>| since_ns.map_or(0.0, |since_ns| view.lasts_s(since_ns));
        let (engine, committed) = (&view.engine, &view.engine.committed);
        let outcomes = [
            ("committed", view.watched.progress.commits.load(Ordering::Relaxed)),
            ("aborted", committed.aborts),
        ];
        self.numbers(TRANSACTIONS, outcomes.map(|(outcome, count)| (vec![outcome.to_owned()], count as f64)));
        self.count(LOOKED_UP, committed.looked_up);
        self.number(COMMITTING, since_s(engine.status.committing_since_ns));
        self.number(ABORTING, since_s(engine.status.aborting_since_ns));
        self.number(LOG_LOST, view.lost.as_ref().map_or(0.0, |lost| lost.since.elapsed().as_secs_f64()));
        if let Some(disk) = view.sampled.disk {
            self.count(DISK_FREE, disk.free);
            self.count(DISK_SIZE, disk.size);
        }
    }

    fn decisions(&mut self, view: &View<'_>) {
        let tally = &view.engine.status.tally;
        self.counts(DECISIONS, &tally.decisions);
        self.counts(BATCHES, &tally.batches);
        self.counts(MOVES, &tally.moves);
    }

    fn lanes(&mut self, view: &View<'_>) {
        let lanes = &view.engine.status.lanes;
        let name = |lane: i32| vec![lane.to_string(), view.watched.device_of(lane).to_owned()];
        let states = [
            (BreakerState::Closed, "closed"),
            (BreakerState::HalfOpen, "half_open"),
            (BreakerState::Open, "open"),
        ];
        let breakers = lanes.iter().flat_map(|lane| {
            states.map(|(state, word)| {
                let labels = name(lane.lane()).into_iter().chain([word.to_owned()]).collect();
                (labels, f64::from(u8::from(lane.breaker == state)))
            })
        });
        let breakers: Vec<_> = breakers.collect();
        let mut each = |metric, value: fn(&warptape_engine::LaneStatus) -> f64| {
            self.numbers(metric, lanes.iter().map(|lane| (name(lane.lane()), value(lane))));
        };
        each(LANE_READY, |lane| f64::from(u8::from(lane.load.ready)));
        each(LANE_IN_SERVICE, |lane| f64::from(u8::from(lane.load.in_service)));
        each(LANE_GROUPS, |lane| f64::from(lane.load.groups_placed));
        each(LANE_WAITING, |lane| lane.load.waiting_rows as f64);
        each(LANE_IN_FLIGHT, |lane| lane.load.in_flight_rows as f64);
        each(LANE_IN_FLIGHT_BYTES, |lane| lane.load.in_flight_bytes as f64);
        each(LANE_BATCHES, |lane| f64::from(lane.load.in_flight_batches));
        self.numbers(BREAKER, breakers);
        let stalls = (0..).zip(&view.sampled.stalls);
        self.numbers(LANE_STALLED, stalls.map(|(lane, &stalled_s)| (name(lane), stalled_s)));
        let figures = || (0..).zip(&view.watched.progress.lanes);
        let rows = |of: &crate::engine::LaneProgress| of.rows.load(Ordering::Relaxed) as f64;
        self.numbers(LANE_ROWS, figures().map(|(lane, of)| (name(lane), rows(of))));
        let busy_s = |of: &crate::engine::LaneProgress| of.busy_ns.load(Ordering::Relaxed) as f64 / 1e9;
        self.numbers(LANE_BUSY, figures().map(|(lane, of)| (name(lane), busy_s(of))));
    }

    fn risk(&mut self, view: &View<'_>) {
        let status = &view.engine.status;
        self.count(RISK_REQUESTS, view.watched.progress.risk_requests.load(Ordering::Relaxed));
        let results = &view.engine.committed.risk_results;
        let all = TASK_CLASSES
            .iter()
            .flat_map(|&class| REQUEST_OUTCOMES.iter().map(move |&outcome| (class, outcome)));
        let counted = all.map(|(class, outcome)| {
            let count = results.get(&(class, outcome)).copied().unwrap_or_default();
            (vec![class.to_owned(), outcome.to_owned()], count as f64)
        });
        self.numbers(RISK_RESULTS, counted);
        self.counts(RISK_ADMITTED, &status.tally.admitted);
        self.counts(RISK_REJECTED, &status.tally.rejected);
        self.count(RISK_MISSES, status.tally.deadline_misses);
        self.count(RISK_SHED, status.tally.shed);
        self.numbers(
            QUOTA_TASKS,
            status.quotas.iter().map(|(name, tasks, _)| (vec![name.clone()], *tasks as f64)),
        );
        let limited = status.quotas.iter().filter(|(_, _, limit)| *limit > 0);
        self.numbers(QUOTA_LIMIT, limited.map(|(name, _, limit)| (vec![name.clone()], *limit as f64)));
        self.count(RISK_TASKS, status.tasks as u64);
        self.number(RISK_WAITING, f64::from(status.tasks_waiting));
    }

    fn hot_state(&mut self, view: &View<'_>) {
        let Some(figures) = &view.hot_state else { return };
        self.number(HOT_UP, f64::from(u8::from(figures.connection == Connection::Up)));
        self.count(HOT_WRITTEN, figures.written);
        self.count(HOT_BEHIND, figures.behind);
        self.count(HOT_REBUILDS, figures.rebuilds);
        self.count(HOT_LOSSES, figures.losses);
    }

    fn devices(&mut self, view: &View<'_>) {
        let samples = &view.engine.samples;
        if samples.is_empty() {
            return;
        }
        let mut each = |metric, value: fn(&warptape_kernels::device::Sample) -> Option<f64>| {
            let known =
                samples.iter().filter_map(|(device, sample)| Some((vec![device.clone()], value(sample)?)));
            self.numbers(metric, known);
        };
        each(MEMORY_USED, |sample| sample.memory_used_bytes.map(|bytes| bytes as f64));
        each(MEMORY_FREE, |sample| sample.memory_free_bytes.map(|bytes| bytes as f64));
        each(UTILIZATION, |sample| sample.utilization_percent.map(|percent| f64::from(percent) / 100.0));
        each(TEMPERATURE, |sample| sample.temperature_c.map(f64::from));
        each(SLOWDOWN, |sample| sample.slowdown_c.map(f64::from));
        each(POWER, |sample| sample.power_mw.map(|milliwatts| f64::from(milliwatts) / 1e3));
        each(SM_CLOCK, |sample| sample.sm_clock_mhz.map(|megahertz| f64::from(megahertz) * 1e6));
        each(MEMORY_CLOCK, |sample| sample.memory_clock_mhz.map(|megahertz| f64::from(megahertz) * 1e6));
        each(ECC, |sample| sample.ecc_errors_uncorrected.map(|errors| errors as f64));
        let reasons = samples.iter().flat_map(|(device, sample)| {
            let named = throttle_reasons(sample.throttle_bits.unwrap_or_default());
            named.map(move |reason| (vec![device.clone(), reason.to_owned()], 1.0))
        });
        self.numbers(THROTTLED, reasons);
        let xids = &view.engine.xids;
        self.numbers(XID, xids.iter().map(|(device, &count)| (vec![device.clone()], count as f64)));
    }

    fn usage(&mut self) {
        let usage = usage();
        self.number(CPU, usage.cpu_s);
        if let Some(bytes) = usage.resident_bytes {
            self.count(RESIDENT, bytes);
        }
        if let Some(bytes) = usage.limit_bytes {
            self.count(MEMORY_LIMIT, bytes);
        }
        if let Some(files) = usage.open_files {
            self.count(FILES, files);
        }
    }
}

/// Names of NVML's bits for why clocks are not higher. An idle GPU and one at its highest clocks are not throttled.
const THROTTLE_REASONS: &[(u32, &str)] = &[
    (1, "applications_clocks_setting"),
    (2, "software_power_cap"),
    (3, "hardware_slowdown"),
    (4, "sync_boost"),
    (5, "software_thermal_slowdown"),
    (6, "hardware_thermal_slowdown"),
    (7, "hardware_power_brake_slowdown"),
    (8, "display_clocks_setting"),
];

/// Why the clocks are not higher.
pub(super) fn throttle_reasons(bits: u64) -> impl Iterator<Item = &'static str> {
    THROTTLE_REASONS.iter().filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name)
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (metric, samples) in &self.0 {
            let unit = (!metric.unit.is_empty()).then(|| Unit::Other(metric.unit.to_owned()));
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let encoder = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            samples.encode(metric, encoder)?;
        }
        Ok(())
    }
}

impl Samples {
    fn encode(&self, metric: &Metric, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Numbers(samples) => {
                for (values, value) in samples {
                    let labels: Vec<_> =
                        metric.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                    let mut encoder = encoder.encode_family(&labels)?;
                    match metric.kind {
                        Kind::Counter => encoder.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                        Kind::Gauge | Kind::Histogram => encoder.encode_gauge(value)?,
                    }
                }
                Ok(())
            }
            Self::Distribution(histogram) => histogram.encode(encoder),
            Self::Times(times) => {
                let bound = |us: Option<u64>| us.map_or(f64::INFINITY, |us| us as f64 / 1e6);
                let buckets: Vec<_> = times.buckets().map(|(us, count)| (bound(us), count)).collect();
                let sum_s = times.sum_ns() as f64 / 1e9;
                encoder.encode_histogram::<NoLabelSet>(sum_s, times.count(), &buckets, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use super::super::view::tests::full_view;
    use super::*;

    fn text(format: Format) -> String {
        let watched = full_view::watched();
        String::from_utf8(scrape(full_view::view(&watched), format).expect("it can be written"))
            .expect("UTF-8")
    }

    #[test]
    fn a_full_scrape_has_every_metric_once_with_its_labels() {
        for format in [Format::Text, Format::OpenMetrics] {
            let text = text(format);
            for metric in METRICS {
                let name = metric.full_name();
                // OpenMetrics names the family of a counter without `_total`.
                let family = match format {
                    Format::OpenMetrics => name.trim_end_matches("_total"),
                    _ => &name,
                };
                let declared =
                    text.lines().filter(|line| line.starts_with(&format!("# TYPE {family} "))).count();
                assert_eq!(declared, 1, "{family} in\n{text}");
                let suffix = if metric.kind == Kind::Histogram { "_count" } else { "" };
                let sample = text.lines().find(|line| {
                    line.strip_prefix(&format!("{name}{suffix}"))
                        .is_some_and(|rest| rest.starts_with(['{', ' ']))
                });
                let sample = sample.unwrap_or_else(|| panic!("no sample of {name} in\n{text}"));
                let labels: Vec<&str> = match sample.split_once('{') {
                    Some((_, rest)) => rest
                        .split("\",")
                        .filter_map(|label| label.split_once("=\""))
                        .map(|(name, _)| name)
                        .collect(),
                    None => Vec::new(),
                };
                assert_eq!(labels, metric.labels, "{sample}");
            }
            let declared: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
            assert_eq!(declared.len(), METRICS.len());
        }
        assert!(text(Format::OpenMetrics).ends_with("# EOF\n"));
    }

    #[test]
    fn a_scrape_asks_for_its_format() {
        // What Prometheus 2.42 sends without and with native histograms.
        let plain = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let native = format!(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,{plain}"
        );
        assert_eq!(Format::accepted(plain), Format::OpenMetrics);
        assert_eq!(Format::accepted(&native), Format::Protobuf);
        assert_eq!(Format::accepted("*/*"), Format::Text);
        assert_eq!(Format::accepted(""), Format::Text);
    }

    #[test]
    fn bits_of_nvml_are_named() {
        let named: Vec<&str> = throttle_reasons(1 << 6 | 1 << 2 | 1).collect();
        assert_eq!(named, ["software_power_cap", "hardware_thermal_slowdown"]);
    }

    /// The page's table, from [`METRICS`].
    fn table() -> String {
        let mut table = "| metric | kind | labels | what it says |\n| --- | --- | --- | --- |\n".to_owned();
        for metric in METRICS {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, labels, help) = (metric.full_name(), labels.join(", "), metric.help);
            writeln!(table, "| `{name}` | {kind} | {labels} | {help} |")
                .expect("a text takes what is written");
        }
        table
    }

    #[test]
    fn the_page_of_metrics_lists_them() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
        let page = std::fs::read_to_string(&path).expect("docs/metrics.md is there");
        let (begin, end) = ("<!-- metrics: written by a test -->\n", "<!-- /metrics -->\n");
        let (before, rest) = page.split_once(begin).expect("the mark before the table");
        let (listed, after) = rest.split_once(end).expect("the mark behind the table");
        if std::env::var_os("WARPTAPE_UPDATE_EXAMPLE").is_some() {
            std::fs::write(&path, [before, begin, &table(), end, after].concat())
                .expect("the page can be written");
            return;
        }
        assert_eq!(listed, table(), "run with WARPTAPE_UPDATE_EXAMPLE=1 to write it anew");
    }
}
