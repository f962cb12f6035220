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
    READY = Gauge "ready" "" [] "1 while /readyz answers 200: the pipeline reads, commits and computes.";
    COMPONENT = Gauge "component_healthy" "" ["component"] "State of the component in /health: 1 for ok, 0.5 for degraded, 0 for down.";

    READ_RECORDS = Counter "read_records" "" [] "Tick records read, including those read again after the loss of a lane.";
    READ = Counter "read" "bytes" [] "Bytes of the values of the tick records read.";
    TICKS = Counter "ticks" "" [] "Ticks accepted, including late ones.";
    LATE = Counter "late_ticks" "" [] "Late ticks.";
    DEAD = Counter "dead_letters" "" [] "Records, and rows of records, that could not be processed.";
    DEAD_TICKS = Counter "dead_ticks" "" [] "Ticks in dead letters; a record that was rejected as a whole counts as one.";
    REPEATED = Counter "repeated_trades" "" [] "Trades whose id their symbol had before.";
    SIGNALS = Counter "signals" "" [] "Signals committed.";
    WRITTEN = Counter "written_records" "" ["topic"] "Records committed, by topic.";
    SYMBOLS = Gauge "symbols" "" [] "Symbols seen in the partitions of this process.";
    EVICTED_SYMBOLS = Gauge "symbols_evicted" "" [] "Symbols that left memory, because they had no tick for engine.evict_idle_s.";
    SPLIT_SYMBOLS = Gauge "split_symbols" "" [] "Symbols seen in two partitions of this process, counted once for each pair; their producers use different partitioners.";

    KAFKA_BROKERS = Gauge "kafka_client_brokers" "" ["client"] "Brokers that the Kafka client knows; absent on the embedded log.";
    KAFKA_CONNECTED = Gauge "kafka_client_brokers_connected" "" ["client"] "Brokers to which the Kafka client is connected; it connects to those of which it needs something.";
    KAFKA_REQUESTS = Counter "kafka_client_requests" "" ["client"] "Requests that the Kafka client has sent.";
    KAFKA_SENT = Counter "kafka_client_sent" "bytes" ["client"] "Bytes that the Kafka client has sent.";
    KAFKA_RECEIVED = Counter "kafka_client_received" "bytes" ["client"] "Bytes that the Kafka client has received.";
    KAFKA_ERRORS = Counter "kafka_client_errors" "" ["client"] "Requests of the Kafka client that could not be sent, failed, or had no answer in time.";
    KAFKA_QUEUED = Gauge "kafka_client_queued_records" "" ["client"] "Records of the Kafka client that wait to be sent or acknowledged.";
    KAFKA_ROUND_TRIP = Gauge "kafka_client_round_trip_p99" "seconds" ["client"] "99th percentile of the round trip of recent requests to the slowest broker.";

    LAG_RECORDS = Gauge "partition_lag_records" "" ["partition"] "Tick records in the log that are not committed; absent while the end of the log is unknown.";
    OPEN_RECORDS = Gauge "partition_open_records" "" ["partition"] "Uncommitted tick records that nobody can read yet, because an earlier transaction of a producer is open; absent while the end of the log is unknown.";
    LAG = Gauge "partition_lag" "seconds" ["partition"] "Time since the process saw the first uncommitted tick record in the log, or since its own start if that record is older; absent while the end of the log is unknown.";
    WATERMARK_DELAY = Gauge "partition_watermark_delay" "seconds" ["partition"] "Time by which the watermark is behind this machine's clock; ticks older than the watermark are late.";
    PARTITION_ROWS = Gauge "partition_waiting_rows" "" ["partition"] "Rows of the partition that wait on the host for a lane.";
    PARTITION_BYTES = Gauge "partition_waiting" "bytes" ["partition"] "Bytes of the rows of the partition that wait on the host for a lane.";
    PAUSED = Gauge "partition_paused" "" ["partition"] "1 while the partition is not read because too many of its rows wait.";
    RESTORED = Gauge "partition_restored" "" ["partition"] "1, or 0 while the state of the partition is being restored.";

    TICK_TO_SIGNAL = Histogram "tick_to_signal" "seconds" [] "Time from reading the record that causes a signal to committing the signal.";
    READ_TO_SEAL = Histogram "read_to_seal" "seconds" [] "Time from reading the record that causes a signal to sealing the signal: queues, lanes, and the wait for the previous commit.";
    COMMIT = Histogram "commit" "seconds" [] "Time from sealing a transaction to its commit, including repeated attempts.";
    BATCH_WAIT = Histogram "batch_wait" "seconds" [] "Time that the oldest row of a batch waited until the batch was sent to its lane.";
    BATCH_SERVICE = Histogram "batch_service" "seconds" [] "Time that a lane worked on a batch.";
    PREDICTION_ERROR = Histogram "batch_prediction_error" "seconds" [] "Distance between the predicted and the actual end of a batch, in either direction.";

    TRANSACTIONS = Counter "transactions" "" ["outcome"] "Transactions committed or aborted; an aborted one is sent again.";
    LOOKED_UP = Counter "transactions_looked_up" "" [] "Transactions whose outcome was unknown after the commit request, and was looked up in the log.";
    COMMITTING = Gauge "commit_under_way" "seconds" [] "Age of the transaction under way; 0 without one.";
    ABORTING = Gauge "commit_failing" "seconds" [] "Time since which every transaction has been aborted; 0 if the last one was committed.";
    LOG_LOST = Gauge "log_lost" "seconds" [] "Time since which the log has not answered; 0 while it answers.";

    DISK_FREE = Gauge "log_disk_free" "bytes" [] "Free bytes of the disk with the embedded log; absent on Kafka.";
    DISK_SIZE = Gauge "log_disk_size" "bytes" [] "Size of the disk with the embedded log; absent on Kafka.";

    DECISIONS = Counter "decisions" "" ["kind"] "Decisions of the scheduler, all of which are in the journal.";
    BATCHES = Counter "batches" "" ["reason"] "Batches sent to lanes, by the reason for sending them.";
    MOVES = Counter "group_moves" "" ["cause"] "Groups of symbols that moved from one lane to another, by cause.";

    LANE_READY = Gauge "lane_ready" "" ["lane", "device"] "1, or 0 while the lane is lost or not open yet.";
    LANE_IN_SERVICE = Gauge "lane_in_service" "" ["lane", "device"] "1, or 0 while the lane gets no work, because it is drained or its breaker is open.";
    BREAKER = Gauge "lane_breaker_state" "" ["lane", "device", "state"] "1 for the present state of the lane's breaker, 0 for the others.";
    LANE_STALLED = Gauge "lane_stalled" "seconds" ["lane", "device"] "Time that the lane has worked on its present batch, looked at once a second.";
    LANE_GROUPS = Gauge "lane_groups" "" ["lane", "device"] "Groups of symbols that the lane owns.";
    LANE_WAITING = Gauge "lane_waiting_rows" "" ["lane", "device"] "Rows that wait on the host for the lane.";
    LANE_IN_FLIGHT = Gauge "lane_in_flight_rows" "" ["lane", "device"] "Rows that were sent to the lane and are not finished.";
    LANE_IN_FLIGHT_BYTES = Gauge "lane_in_flight" "bytes" ["lane", "device"] "Bytes of the rows that were sent to the lane and are not finished.";
    LANE_BATCHES = Gauge "lane_in_flight_batches" "" ["lane", "device"] "Batches that were sent to the lane and are not finished.";
    LANE_ROWS = Counter "lane_rows" "" ["lane", "device"] "Rows that the lane has finished.";
    LANE_BUSY = Counter "lane_busy" "seconds" ["lane", "device"] "Time that the lane has worked on batches and on slices of risk tasks.";

    RISK_REQUESTS = Counter "risk_requests" "" [] "Risk requests read.";
    RISK_RESULTS = Counter "risk_results" "" ["class", "outcome"] "Risk results committed, by class and outcome: done, or the kind of error.";
    RISK_ADMITTED = Counter "risk_tasks_admitted" "" ["class"] "Risk tasks admitted.";
    RISK_REJECTED = Counter "risk_tasks_rejected" "" ["reason"] "Risk tasks not admitted, by reason: quotas, rates, limits, deadlines.";
    RISK_MISSES = Counter "risk_deadline_misses" "" [] "Risk tasks that were not done by their deadline.";
    RISK_SHED = Counter "risk_tasks_shed" "" [] "Risk tasks dropped because tasks had waited for too long.";
    RISK_ENQUEUE = Histogram "risk_enqueue" "seconds" [] "Time from giving the scheduler a round of a risk task to queueing its first slice at a lane; only rounds whose first slice begins in the same step count.";
    RISK_TASKS = Gauge "risk_tasks" "" [] "Risk tasks that the scheduler knows and that are not done.";
    RISK_WAITING = Gauge "risk_tasks_waiting" "" [] "Known risk tasks with work that no lane has begun.";

    SHADOW = Counter "shadow_choices" "" ["policy", "choice"] "Choices at which a policy of risk.shadow was asked. Its answer is the same, another, or named a lane before any lane had taken the task, which cannot be compared. Choices without an alternative count too. Slices that were drawn, aged, reserved or stolen, and split tasks, do not count.";

    LANES_WANTED = Gauge "lanes_wanted" "" [] "Lanes that this process wants since its last window of autoscaling; absent if autoscale.policy is off, before the first whole window, and while the process ends.";
    LANES_LOAD = Gauge "lanes_wanted_load" "" [] "Load behind warptape_lanes_wanted without waiting work, as a number of lanes that work without a pause; absent when that is absent.";
    FORECAST_ERROR = Gauge "lanes_forecast_error" "ratio" [] "Mean error of forecasts of arrivals, relative to the mean of arrivals, at the distance of a lane's start; absent while too few forecasts were compared.";

    QUOTA_TASKS = Gauge "risk_quota_tasks" "" ["quota"] "Risk tasks of a configured quota, including those of quotas below it.";
    QUOTA_LIMIT = Gauge "risk_quota_limit_tasks" "" ["quota"] "Greatest number of risk tasks of the quota; absent without a limit.";

    HOT_UP = Gauge "hot_state_connected" "" [] "1 while Redis is connected and the log can be read for it; `/health` says what is missing. Absent if hot state is kept in memory.";
    HOT_WRITTEN = Counter "hot_state_written_values" "" [] "Values written to Redis.";
    HOT_BEHIND = Gauge "hot_state_behind_records" "" [] "Signals and results in the log that Redis does not have yet.";
    HOT_REBUILDS = Counter "hot_state_rebuilds" "" [] "Partitions rebuilt in Redis from the log's beginning.";
    HOT_LOSSES = Counter "hot_state_connections_lost" "" [] "Connections to Redis that were lost.";

    MEMORY_USED = Gauge "device_memory_used" "bytes" ["device"] "Memory of the GPU in use, by all processes.";
    MEMORY_FREE = Gauge "device_memory_free" "bytes" ["device"] "Memory of the GPU that nobody uses.";
    UTILIZATION = Gauge "device_utilization" "ratio" ["device"] "Share of recent time in which a kernel ran.";
    TEMPERATURE = Gauge "device_temperature" "celsius" ["device"] "Temperature of the chip.";
    SLOWDOWN = Gauge "device_slowdown_temperature" "celsius" ["device"] "Temperature of the chip at which it lowers its clocks.";
    POWER = Gauge "device_power" "watts" ["device"] "Power drawn.";
    SM_CLOCK = Gauge "device_sm_clock" "hertz" ["device"] "Clock of the multiprocessors.";
    MEMORY_CLOCK = Gauge "device_memory_clock" "hertz" ["device"] "Clock of the memory.";
    THROTTLED = Gauge "device_throttle_reason" "" ["device", "reason"] "1 for each reason that keeps the clocks low, by NVML's name.";
    ECC = Gauge "device_ecc_uncorrected_errors" "" ["device"] "Uncorrectable memory errors since the driver was loaded.";
    XID = Counter "device_xid_errors" "" ["device"] "Critical Xid errors of the device.";

    CPU = Counter "process_cpu" "seconds" [] "Processor time of the process.";
    RESIDENT = Gauge "process_resident_memory" "bytes" [] "Memory that the process uses.";
    MEMORY_LIMIT = Gauge "process_memory_limit" "bytes" [] "Memory that the process may use: the limit of its control group, or all of the machine's memory.";
    FILES = Gauge "process_open_files" "" [] "Files and sockets that the process has open.";
}

metrics! {
    /// All metrics that only a verifier has, in the order of a scrape. It has `build_info` and the `process` metrics as
    /// well.
    VERIFIER_METRICS;

    VERIFIED_ENTRIES = Counter "verifier_entries" "" [] "Journal entries stepped again and found identical.";
    VERIFIED_DECISIONS = Counter "verifier_decisions" "" [] "Decisions of journal entries that were stepped again and found identical.";
    VERIFIED_OUTPUTS = Counter "verifier_outputs" "" ["topic"] "Output records computed again and found identical, by topic; absent without --outputs.";
    VERIFIER_BEHIND_RECORDS = Gauge "verifier_behind_records" "" [] "Journal records that are not verified yet, with their effects.";
    VERIFIER_BEHIND = Gauge "verifier_behind" "seconds" [] "Time since the first unverified journal record came into the log; it goes on while the log does not answer.";
    VERIFIER_DIFFERENCE = Gauge "verifier_difference" "" [] "1 once a difference was found, 0 before.";
    VERIFIER_SEQUENCE = Gauge "verifier_difference_sequence" "" [] "Sequence of the journal entry with the difference, or of the entry that sealed the transaction with it; absent without a difference.";
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
