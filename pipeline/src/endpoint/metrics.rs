//! The metrics, for Prometheus and for OTLP. Their values are in [`scrape`](super::scrape) and in `otlp`.
//!
//! Names are stable, contain their unit and begin with `warptape_`. Label values are bounded by the configuration
//! (partitions, lanes, devices) or by this program (kinds, reasons). docs/metrics.md is generated from [`METRICS`]; a
//! test compares them.

/// Kinds of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A count that only rises, and begins at 0 with the process; its name ends in `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name without the prefix, the unit and `_total`.
    pub(super) name: &'static str,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Unit, which is part of the name; empty for counts.
    pub(super) unit: &'static str,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Meaning: one sentence.
    pub help: &'static str,
}

impl Metric {
    /// Returns the name in a scrape.
    pub fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let total = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("warptape_{}{unit}{total}", self.name)
    }

    /// Returns the name for OpenTelemetry. A collector builds the name of a scrape from it and the unit.
    #[cfg(feature = "otlp")]
    pub(crate) fn otlp_name(&self) -> String {
        format!("warptape.{}", self.name)
    }

    /// Returns the unit in OpenTelemetry's form; empty for counts.
    #[cfg(feature = "otlp")]
    pub(crate) fn otlp_unit(&self) -> &'static str {
        match self.unit {
            "bytes" => "By",
            "seconds" => "s",
            "ratio" => "1",
            "celsius" => "Cel",
            "watts" => "W",
            "hertz" => "Hz",
            other => other,
        }
    }
}

/// Declares metrics: a constant for each, and the list of all.
macro_rules! metrics {
    ($(#[$document:meta])* $list:ident; $($constant:ident = $kind:ident $name:literal $unit:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(crate) const $constant: Metric =
            Metric { name: $name, kind: MetricKind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)+

        $(#[$document])*
        pub const $list: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    /// All metrics of a pipeline, in the order of a scrape.
    METRICS;

    BUILD = Gauge "build_info" "" ["version", "node", "group"] "1; the labels say which process this is.";
    READY = Gauge "ready" "" [] "1 where /readyz says so: the pipeline reads, commits and computes.";
    COMPONENT = Gauge "component_healthy" "" ["component"] "1 where /health calls the component ok, 0.5 where it calls it degraded, 0 where it is down.";

    READ_RECORDS = Counter "read_records" "" [] "Records of ticks read, those included that are read again after a lane was lost.";
    READ = Counter "read" "bytes" [] "Bytes of their values.";
    TICKS = Counter "ticks" "" [] "Ticks accepted, late ones included.";
    LATE = Counter "late_ticks" "" [] "Ticks that were late.";
    DEAD = Counter "dead_letters" "" [] "Records, and rows of records, that could not be processed.";
    DEAD_TICKS = Counter "dead_ticks" "" [] "Ticks that dead letters are of; a record that is rejected as a whole counts as one.";
    REPEATED = Counter "repeated_trades" "" [] "Trades with an id that their symbol had before.";
    SIGNALS = Counter "signals" "" [] "Signals committed.";
    WRITTEN = Counter "written_records" "" ["topic"] "Records committed, by the topic that they are written to.";
    SYMBOLS = Gauge "symbols" "" [] "Symbols seen in the partitions of this process.";
    EVICTED_SYMBOLS = Gauge "symbols_evicted" "" [] "Symbols of these that left memory, as they had no tick for engine.evict_idle_s.";
    SPLIT_SYMBOLS = Gauge "split_symbols" "" [] "Symbols seen in two of these partitions, for every two: their producers do not agree on a partitioner.";

    KAFKA_BROKERS = Gauge "kafka_client_brokers" "" ["client"] "Brokers that the Kafka client knows; absent on the embedded log.";
    KAFKA_CONNECTED = Gauge "kafka_client_brokers_connected" "" ["client"] "Those of them that it is connected to; it connects where it has something to ask.";
    KAFKA_REQUESTS = Counter "kafka_client_requests" "" ["client"] "Requests that it has sent.";
    KAFKA_SENT = Counter "kafka_client_sent" "bytes" ["client"] "Bytes that it has sent.";
    KAFKA_RECEIVED = Counter "kafka_client_received" "bytes" ["client"] "Bytes that it has received.";
    KAFKA_ERRORS = Counter "kafka_client_errors" "" ["client"] "Requests that could not be sent, failed, or had no answer in time.";
    KAFKA_QUEUED = Gauge "kafka_client_queued_records" "" ["client"] "Records that wait to be sent, or to be acknowledged.";
    KAFKA_ROUND_TRIP = Gauge "kafka_client_round_trip_p99" "seconds" ["client"] "99 % of the last requests had their answer within this time, by the slowest broker.";

    LAG_RECORDS = Gauge "partition_lag_records" "" ["partition"] "Records of ticks in the log that are not committed; absent while the log does not say where it ends.";
    OPEN_RECORDS = Gauge "partition_open_records" "" ["partition"] "Those of these records that nobody can read yet, because a producer's transaction before them has not ended; absent likewise.";
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
    RISK_ENQUEUE = Histogram "risk_enqueue" "seconds" [] "From the time at which the scheduler is given a round of a risk task to that at which its first slice is in the queue of its lane, where that slice begins in the same step.";
    RISK_TASKS = Gauge "risk_tasks" "" [] "Risk tasks that are known and not done.";
    RISK_WAITING = Gauge "risk_tasks_waiting" "" [] "Those of them with work that no lane has begun.";

    SHADOW = Counter "shadow_choices" "" ["policy", "choice"] "Choices at which a policy of risk.shadow was asked: it would have done the same or other than was done, also where there was nothing else to choose, or it named a lane before any had taken the task, with which nothing can be compared. Slices that were drawn, aged, reserved or stolen are left out, and so are tasks that are split.";

    LANES_WANTED = Gauge "lanes_wanted" "" [] "Lanes that this process wants by its last window of autoscaling; absent where autoscale.policy is off, before the first whole window, and while the process ends.";
    LANES_LOAD = Gauge "lanes_wanted_load" "" [] "The load that they are wanted for, as lanes that work without a pause, without what waits; absent likewise.";
    FORECAST_ERROR = Gauge "lanes_forecast_error" "ratio" [] "Mean error of forecasts of what arrives, as far ahead as a lane takes to start, by the mean of what arrived; absent while too few have come true or not.";

    QUOTA_TASKS = Gauge "risk_quota_tasks" "" ["quota"] "Risk tasks of a quota that is configured, those of quotas below it included.";
    QUOTA_LIMIT = Gauge "risk_quota_limit_tasks" "" ["quota"] "Risk tasks that the quota may have; absent where it has no limit.";

    HOT_UP = Gauge "hot_state_connected" "" [] "1 while Redis is connected and the log can be read for it; `/health` says what is missing. Absent where hot state is kept in memory.";
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

metrics! {
    /// All metrics that only a verifier has, in the order of a scrape. It has `build_info` and the `process` metrics as
    /// well.
    VERIFIER_METRICS;

    VERIFIED_ENTRIES = Counter "verifier_entries" "" [] "Journal entries that were stepped again and found identical.";
    VERIFIED_DECISIONS = Counter "verifier_decisions" "" [] "Decisions in them.";
    VERIFIED_OUTPUTS = Counter "verifier_outputs" "" ["topic"] "Records that were computed again and found identical, by their topic; absent without --outputs.";
    VERIFIER_BEHIND_RECORDS = Gauge "verifier_behind_records" "" [] "Records of the journal that are not verified yet, with all that came of them.";
    VERIFIER_BEHIND = Gauge "verifier_behind" "seconds" [] "For how long the first of them has been in the log; while the log does not answer, that time counts as well.";
    VERIFIER_DIFFERENCE = Gauge "verifier_difference" "" [] "1 once a difference was found, 0 before.";
    VERIFIER_SEQUENCE = Gauge "verifier_difference_sequence" "" [] "The difference is of the journal entry with this sequence, or of the transaction that it sealed; absent without one.";
}

/// Metric of OTLP alone: rows waiting for all lanes. A scrape has them by lane and by partition.
#[cfg(feature = "otlp")]
pub(crate) const WAITING_ROWS: Metric = Metric {
    name: "waiting_rows",
    kind: MetricKind::Gauge,
    unit: "",
    labels: &[],
    help: "Rows that wait on the host for a lane.",
};

/// Metric of OTLP alone, about its own losses.
#[cfg(feature = "otlp")]
pub(crate) const LOST_SPANS: Metric = Metric {
    name: "otlp_lost_spans",
    kind: MetricKind::Counter,
    unit: "",
    labels: &[],
    help: "Spans that could not be exported.",
};

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use super::*;

    /// Formats the page's table of some metrics.
    fn table(metrics: &[Metric]) -> String {
        let mut table = "| metric | kind | labels | what it says |\n| --- | --- | --- | --- |\n".to_owned();
        for metric in metrics {
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
        for (name, metrics) in [("metrics", METRICS), ("verifier metrics", VERIFIER_METRICS)] {
            let page = std::fs::read_to_string(&path).expect("docs/metrics.md is there");
            let (begin, end) =
                (format!("<!-- {name}: written by a test -->\n"), format!("<!-- /{name} -->\n"));
            let (before, rest) = page.split_once(&begin).expect("the mark before the table");
            let (listed, after) = rest.split_once(&end).expect("the mark behind the table");
            let table = table(metrics);
            if std::env::var_os("WARPTAPE_UPDATE_EXAMPLE").is_some() {
                std::fs::write(&path, [before, &begin, &table, &end, after].concat())
                    .expect("the page can be written");
                continue;
            }
            assert_eq!(listed, table, "run with WARPTAPE_UPDATE_EXAMPLE=1 to write it anew");
        }
    }

    /// Metrics without a panel: ticks are shown instead of the records that hold them.
    const WITHOUT_A_PANEL: [&str; 1] = ["warptape_read_records_total"];

    #[test]
    fn the_dashboard_shows_them() {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy/grafana/dashboards/warptape.json");
        let dashboard = std::fs::read_to_string(&path).expect("the dashboard is there");
        let all = METRICS.iter().chain(VERIFIER_METRICS).map(Metric::full_name);
        let missing: Vec<String> = all.filter(|name| !dashboard.contains(name.as_str())).collect();
        assert_eq!(missing, WITHOUT_A_PANEL, "add a panel to {}", path.display());
    }
}
