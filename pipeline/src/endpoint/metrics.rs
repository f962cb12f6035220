//! The metrics, for Prometheus and for OTLP. [`scrape`](super::scrape) and `otlp` supply their values.
//!
//! Names are stable, contain their unit and begin with `warptape_`. Label values are bounded by the configuration
//! (partitions, lanes, devices) or by this program (kinds, reasons). docs/metrics.md is generated from [`METRICS`]; a
//! test compares them.

/// Kinds of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A count that only rises, starting at 0 with the process; its name ends in `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// A distribution of values.
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
    /// Description in one sentence.
    pub help: &'static str,
}

impl Metric {
    /// Returns the name in a scrape.
    pub fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let total = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("warptape_{}{unit}{total}", self.name)
    }

    /// Returns the name in OpenTelemetry. Collectors append the unit to get the Prometheus name.
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

    BUILD = Gauge "build_info" "" ["version", "node", "group"] "Always 1; the labels name the version, the \
                                                                node and the group of the process.";
    READY = Gauge "ready" "" [] "1 if /readyz answers 200: the pipeline reads, computes and commits. 0 if not.";
    COMPONENT = Gauge "component_healthy" "" ["component"] "State of the component in /health: 1 is ok, 0.5 degraded, 0 down.";

    READ_RECORDS = Counter "read_records" "" [] "Tick records read. A record that is read again after the loss of a lane counts again.";
    READ = Counter "read" "bytes" [] "Bytes of the values of tick records read.";
    TICKS = Counter "ticks" "" [] "Ticks accepted, late ones included.";
    LATE = Counter "late_ticks" "" [] "Late ticks: those behind the watermark.";
    DEAD = Counter "dead_letters" "" [] "Dead letters: records, and rows of records, that could not be processed.";
    DEAD_TICKS = Counter "dead_ticks" "" [] "Ticks that became dead letters; a record that is rejected as a whole counts as one tick.";
    REPEATED = Counter "repeated_trades" "" [] "Trades whose id repeats an earlier trade of their symbol.";
    SIGNALS = Counter "signals" "" [] "Signals committed.";
    WRITTEN = Counter "written_records" "" ["topic"] "Records committed, by topic.";
    SYMBOLS = Gauge "symbols" "" [] "Symbols seen in the partitions of this process.";
    EVICTED_SYMBOLS = Gauge "symbols_evicted" "" [] "Symbols seen in the partitions of this process and evicted from memory, after engine.evict_idle_s without a tick.";
    SPLIT_SYMBOLS = Gauge "split_symbols" "" [] "Symbols that occur in more than one partition of this process, counted once for each pair of partitions. Their producers use different partitioners.";

    KAFKA_BROKERS = Gauge "kafka_client_brokers" "" ["client"] "Brokers known to the Kafka client; absent on the embedded log.";
    KAFKA_CONNECTED = Gauge "kafka_client_brokers_connected" "" ["client"] "Brokers that the Kafka client is connected to; it connects when it has a request for them.";
    KAFKA_REQUESTS = Counter "kafka_client_requests" "" ["client"] "Requests sent by the Kafka client.";
    KAFKA_SENT = Counter "kafka_client_sent" "bytes" ["client"] "Bytes sent by the Kafka client.";
    KAFKA_RECEIVED = Counter "kafka_client_received" "bytes" ["client"] "Bytes received by the Kafka client.";
    KAFKA_ERRORS = Counter "kafka_client_errors" "" ["client"] "Requests of the Kafka client that could not be sent, failed or timed out.";
    KAFKA_QUEUED = Gauge "kafka_client_queued_records" "" ["client"] "Records in the Kafka client that are not sent or not acknowledged yet.";
    KAFKA_ROUND_TRIP = Gauge "kafka_client_round_trip_p99" "seconds" ["client"] "99th percentile of the round trip of recent requests, for the slowest broker.";

    LAG_RECORDS = Gauge "partition_lag_records" "" ["partition"] "Uncommitted tick records in the log. Absent while the end of the partition is unknown.";
    OPEN_RECORDS = Gauge "partition_open_records" "" ["partition"] "Uncommitted tick records that cannot be read yet, because they are in or behind an open transaction of a producer. Absent while the end of the partition is unknown.";
    LAG = Gauge "partition_lag" "seconds" ["partition"] "Age of the first uncommitted tick record, since this process first saw it in the log. Absent while the end of the partition is unknown. A record that is older than the process counts from the start of the process.";
    WATERMARK_DELAY = Gauge "partition_watermark_delay" "seconds" ["partition"] "Clock of this machine less the watermark of the partition. Ticks before the watermark are late.";
    PARTITION_ROWS = Gauge "partition_waiting_rows" "" ["partition"] "Rows of the partition that wait in host memory for a lane.";
    PARTITION_BYTES = Gauge "partition_waiting" "bytes" ["partition"] "Bytes of the rows of the partition that wait in host memory for a lane.";
    PAUSED = Gauge "partition_paused" "" ["partition"] "1 while the partition is paused, because too many of its rows wait. 0 if not.";
    RESTORED = Gauge "partition_restored" "" ["partition"] "0 while the state of the partition is being \
                                                            restored, then 1.";

    TICK_TO_SIGNAL = Histogram "tick_to_signal" "seconds" [] "Time from the publication of the tick record that causes a signal to the commit of the signal. The publication is by the clock of the producer, or of a Kafka broker that stamps records.";
    READ_TO_SIGNAL = Histogram "read_to_signal" "seconds" [] "Time from the read of the tick record that causes a signal to the commit of the signal.";
    READ_TO_SEAL = Histogram "read_to_seal" "seconds" [] "Time from the read of the tick record that causes a signal to the seal of the signal. It is spent in queues, on lanes, and waiting for the previous commit.";
    COMMIT = Histogram "commit" "seconds" [] "Time from the seal of a transaction to its commit, repeated attempts included.";
    BATCH_WAIT = Histogram "batch_wait" "seconds" [] "Waiting time of the oldest row of a batch, when the batch is sent to its lane.";
    BATCH_SERVICE = Histogram "batch_service" "seconds" [] "Time that a lane works on a batch.";
    PREDICTION_ERROR = Histogram "batch_prediction_error" "seconds" [] "Difference between the predicted and the actual end of a batch, without its sign.";

    TRANSACTIONS = Counter "transactions" "" ["outcome"] "Transactions by outcome, committed or aborted. An aborted transaction is sent again.";
    LOOKED_UP = Counter "transactions_looked_up" "" [] "Transactions whose outcome had to be looked up in the log, because the log did not report it.";
    COMMITTING = Gauge "commit_under_way" "seconds" [] "Age of the transaction under way; 0 if there is none.";
    ABORTING = Gauge "commit_failing" "seconds" [] "Time for which every transaction has been aborted; 0 if the last one was committed.";
    LOG_LOST = Gauge "log_lost" "seconds" [] "Time since the log stopped answering; 0 while it answers.";

    DISK_FREE = Gauge "log_disk_free" "bytes" [] "Free space on the disk that holds the embedded log; absent \
                                                  on Kafka.";
    DISK_SIZE = Gauge "log_disk_size" "bytes" [] "Size of the disk that holds the embedded log; absent on Kafka.";

    DECISIONS = Counter "decisions" "" ["kind"] "Decisions of the scheduler, by kind. Each is in the journal.";
    BATCHES = Counter "batches" "" ["reason"] "Batches sent to lanes, by the reason for sending them at that time.";
    MOVES = Counter "group_moves" "" ["cause"] "Moves of symbol groups from one lane to another, by cause.";

    LANE_READY = Gauge "lane_ready" "" ["lane", "device"] "1 if the lane works; 0 if it is lost or not open yet.";
    LANE_IN_SERVICE = Gauge "lane_in_service" "" ["lane", "device"] "1 if the lane gets work; 0 if it is drained or its breaker is open.";
    BREAKER = Gauge "lane_breaker_state" "" ["lane", "device", "state"] "1 for the current state of the lane's breaker, 0 for the other states.";
    LANE_STALLED = Gauge "lane_stalled" "seconds" ["lane", "device"] "Time that the lane has spent on its current batch, sampled once a second.";
    LANE_GROUPS = Gauge "lane_groups" "" ["lane", "device"] "Symbol groups placed on the lane.";
    LANE_WAITING = Gauge "lane_waiting_rows" "" ["lane", "device"] "Rows that wait in host memory for the lane.";
    LANE_IN_FLIGHT = Gauge "lane_in_flight_rows" "" ["lane", "device"] "Rows sent to the lane and not finished yet.";
    LANE_IN_FLIGHT_BYTES = Gauge "lane_in_flight" "bytes" ["lane", "device"] "Bytes sent to the lane and not finished yet.";
    LANE_BATCHES = Gauge "lane_in_flight_batches" "" ["lane", "device"] "Batches sent to the lane and not finished yet.";
    LANE_ROWS = Counter "lane_rows" "" ["lane", "device"] "Rows finished by the lane.";
    LANE_BUSY = Counter "lane_busy" "seconds" ["lane", "device"] "Time that the lane has spent on batches and on slices of risk tasks.";

    RISK_REQUESTS = Counter "risk_requests" "" [] "Risk requests read.";
    RISK_RESULTS = Counter "risk_results" "" ["class", "outcome"] "Risk results committed, by outcome: done, or the code of the error.";
    RISK_ADMITTED = Counter "risk_tasks_admitted" "" ["class"] "Risk tasks admitted.";
    RISK_REJECTED = Counter "risk_tasks_rejected" "" ["reason"] "Risk tasks rejected on arrival, by reason: a quota, a rate, a limit or a deadline.";
    RISK_MISSES = Counter "risk_deadline_misses" "" [] "Risk tasks that missed their deadline.";
    RISK_SHED = Counter "risk_tasks_shed" "" [] "Risk tasks dropped because tasks had waited for too long.";
    RISK_ENQUEUE = Histogram "risk_enqueue" "seconds" [] "Time from the arrival of a round of a risk task at the scheduler until its first slice is in the queue of a lane. Counts only slices that begin in the same step.";
    RISK_TASKS = Gauge "risk_tasks" "" [] "Risk tasks admitted and not done yet.";
    RISK_WAITING = Gauge "risk_tasks_waiting" "" [] "Risk tasks with units that no lane has begun.";

    SHADOW = Counter "shadow_choices" "" ["policy", "choice"] "Choices at which a policy of risk.shadow was asked, compared with the actual choice: `same`, `other` or `before`. `same` includes choices without an alternative. `before` means that no lane had taken the task yet when the policy named one. Slices that were drawn at random, aged, reserved or stolen do not count, nor do split tasks.";

    LANES_WANTED = Gauge "lanes_wanted" "" [] "Number of lanes that this process wants, decided in its last autoscaling window. Absent if autoscale.policy is off, before the first whole window, and while the process ends.";
    LANES_LOAD = Gauge "lanes_wanted_load" "" [] "Load behind lanes_wanted, in fully busy lanes, without waiting work. Absent whenever lanes_wanted is.";
    FORECAST_ERROR = Gauge "lanes_forecast_error" "ratio" [] "Mean absolute error of forecasts of arrivals, divided by the mean arrivals. The horizon is the time that a lane takes to start. Absent until enough forecasts can be checked.";

    QUOTA_TASKS = Gauge "risk_quota_tasks" "" ["quota"] "Risk tasks that count against the quota, its child quotas included.";
    QUOTA_LIMIT = Gauge "risk_quota_limit_tasks" "" ["quota"] "Limit of the quota, in risk tasks; absent if it has none.";

    HOT_UP = Gauge "hot_state_connected" "" [] "1 while Redis is connected and the log can be read for it, else 0; `/health` names the cause. Absent if hot_state.url is `memory`.";
    HOT_WRITTEN = Counter "hot_state_written_values" "" [] "Values written to Redis.";
    HOT_BEHIND = Gauge "hot_state_behind_records" "" [] "Signals and results in the log that are not in Redis yet.";
    HOT_REBUILDS = Counter "hot_state_rebuilds" "" [] "Rebuilds of a partition's state in Redis, from the \
                                                       beginning of the log.";
    HOT_LOSSES = Counter "hot_state_connections_lost" "" [] "Lost connections to Redis.";

    MEMORY_USED = Gauge "device_memory_used" "bytes" ["device"] "Memory of the GPU in use by all processes.";
    MEMORY_FREE = Gauge "device_memory_free" "bytes" ["device"] "Free memory of the GPU.";
    UTILIZATION = Gauge "device_utilization" "ratio" ["device"] "Share of the last sampling period (NVML's) \
                                                                 in which a kernel ran.";
    TEMPERATURE = Gauge "device_temperature" "celsius" ["device"] "Temperature of the chip.";
    SLOWDOWN = Gauge "device_slowdown_temperature" "celsius" ["device"] "Temperature at which the chip lowers its clocks.";
    POWER = Gauge "device_power" "watts" ["device"] "Power drawn.";
    SM_CLOCK = Gauge "device_sm_clock" "hertz" ["device"] "Clock of the multiprocessors.";
    MEMORY_CLOCK = Gauge "device_memory_clock" "hertz" ["device"] "Clock of the memory.";
    THROTTLED = Gauge "device_throttle_reason" "" ["device", "reason"] "1 for each current reason for lower clocks, as NVML names it.";
    ECC = Gauge "device_ecc_uncorrected_errors" "" ["device"] "Uncorrectable memory errors since the driver was loaded.";
    XID = Counter "device_xid_errors" "" ["device"] "Critical Xid errors of the device.";

    CPU = Counter "process_cpu" "seconds" [] "CPU time of the process.";
    RESIDENT = Gauge "process_resident_memory" "bytes" [] "Resident memory of the process.";
    MEMORY_LIMIT = Gauge "process_memory_limit" "bytes" [] "Memory that the process may use: the limit of its control group, or else all memory of the machine.";
    FILES = Gauge "process_open_files" "" [] "Open files and sockets of the process.";
}

metrics! {
    /// All metrics that only a verifier has, in the order of a scrape. A verifier has `build_info` and the `process`
    /// metrics as well.
    VERIFIER_METRICS;

    VERIFIED_ENTRIES = Counter "verifier_entries" "" [] "Journal entries that were stepped again with identical results.";
    VERIFIED_DECISIONS = Counter "verifier_decisions" "" [] "Decisions in the journal entries that were verified.";
    VERIFIED_OUTPUTS = Counter "verifier_outputs" "" ["topic"] "Output records that were computed again with identical results, by topic; absent without --outputs.";
    VERIFIER_BEHIND_RECORDS = Gauge "verifier_behind_records" "" [] "Records of the journal that are not verified yet, with their outputs.";
    VERIFIER_BEHIND = Gauge "verifier_behind" "seconds" [] "Age of the first journal record that is not verified, since it came to the log. Time in which the log does not answer counts too.";
    VERIFIER_DIFFERENCE = Gauge "verifier_difference" "" [] "1 once a difference is found, 0 before.";
    VERIFIER_SEQUENCE = Gauge "verifier_difference_sequence" "" [] "Sequence of the journal entry that differs, or that sealed the transaction that differs; absent without a difference.";
}

/// A metric of OTLP only: rows waiting for all lanes. A scrape has them by lane and by partition instead.
#[cfg(feature = "otlp")]
pub(crate) const WAITING_ROWS: Metric = Metric {
    name: "waiting_rows",
    kind: MetricKind::Gauge,
    unit: "",
    labels: &[],
    help: "Rows that wait in host memory for a lane.",
};

/// A metric of OTLP only: spans that it lost.
#[cfg(feature = "otlp")]
pub(crate) const LOST_SPANS: Metric = Metric {
    name: "otlp_lost_spans",
    kind: MetricKind::Counter,
    unit: "",
    labels: &[],
    help: "Spans lost because they could not be exported.",
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

    /// Metrics without a panel on the dashboard: ticks are shown instead of the records that contain them.
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
