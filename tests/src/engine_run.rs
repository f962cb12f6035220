//! Runs the real engine with its threads on an embedded log until everything fed is processed.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::bounded;
use warptape_engine::{AcceptedLoss, Config, Limits, Times};
use warptape_eventlog::{EventLog, Fetched, Record, TopicPartition};
use warptape_kernels::Isa;
use warptape_kernels::device::NoDevices;
use warptape_pipeline::publisher::{Publisher, create_missing_topics};
use warptape_pipeline::runtime::{
    COMMIT_BYTES_MAX, ConfiguredLanes, EngineConfig, Progress, Stop, Summary, TopicPlan, Topics, run,
};
use warptape_scheduler::{STEP_BYTES_MAX, in_steps};
use warptape_schemas::journal::{LaneSpec, RiskConfig, SchedulerConfig};
use warptape_schemas::tick::Tick;
use warptape_stages::StageConfig;

/// Returns an engine configuration with `lanes` CPU lanes and the default limits of `warptape`.
pub fn engine_config(stages: StageConfig, lanes: i32) -> EngineConfig {
    EngineConfig {
        core: Config {
            node: "node-0".to_owned(),
            group: "warptape".to_owned(),
            topics: Topics::new(""),
            stages,
            scheduler: SchedulerConfig {
                placement_policy: in_steps("rendezvous", STEP_BYTES_MAX),
                placement_seed: 0,
                load_factor_percent: 125,
                lane_credit_rows: 262_144,
                lane_credit_bytes: 33_554_432,
                lane_batches_max: 2,
                batch_rows_max: 65_536,
                row_deadline_ns: 5_000_000,
                high_water_rows: 1_048_576,
                low_water_rows: 262_144,
                route_interval_ns: 0,
                balance_interval_ns: 0,
                risk: RiskConfig::default(),
                breakers: None,
            },
            autoscale: None,
            shadow: None,
            networks: Vec::new(),
            lanes: (0..lanes).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect(),
            limits: Limits {
                kept_bytes_max: 64 << 20,
                commit_bytes_max: COMMIT_BYTES_MAX,
                risk_result_bytes_max: i64::MAX,
                risk_cost_max_ns: i64::MAX,
                snapshot_interval_records: 20_000,
            },
            times: Times {
                commit_interval_ns: 100_000_000,
                checkpoint_interval_ns: 60_000_000_000,
                risk_commit_interval_ns: 5_000_000,
                device_deadline_ns: 5_000_000_000,
                device_open_deadline_ns: 5_000_000_000,
                evict_idle_ns: None,
                idle_close_ns: None,
            },
            new_segment: false,
            accepted_loss: AcceptedLoss::None,
            closes_bars: false,
        },
        ordinal: 0,
        isa: Isa::detect(),
        poll_records_max: 256,
        poll_bytes_max: 512 << 10,
        schemas: None,
        devices: Arc::new(NoDevices),
        device_sample_interval: Duration::from_secs(5),
        lanes: Arc::new(ConfiguredLanes),
        anchoring: None,
        traces: None,
    }
}

/// Returns the default stage configuration of `warptape` for these bars.
///
/// # Panics
/// If one of the texts is not a bar.
pub fn stage_config(bars: &[&str]) -> StageConfig {
    let bars = bars.iter().map(|bars| bars.parse().expect("a specification of bars")).collect();
    StageConfig {
        future_max_ns: 4 * 86_400 * 1_000_000_000,
        clock_skew_max_ns: 60_000_000_000,
        symbols_max: 65_536,
        ..StageConfig::unlimited(bars, 2_000_000_000, 16)
    }
}

/// Publishes ticks in records of `batch` ticks.
pub fn feed(log: &Arc<dyn EventLog>, partitions: i32, batch: usize, ticks: impl Iterator<Item = Tick>) {
    push_all(publisher(log, partitions, batch), ticks);
}

/// Publishes ticks to an existing topic, in records of `batch` ticks.
pub fn feed_topic(
    log: &Arc<dyn EventLog>,
    topic: &str,
    partitions: i32,
    batch: usize,
    ticks: impl Iterator<Item = Tick>,
) {
    push_all(publisher_into(log, topic, partitions, batch), ticks);
}

fn push_all(mut publisher: Publisher, ticks: impl Iterator<Item = Tick>) {
    for tick in ticks {
        publisher.push(tick).expect("the tick is valid");
    }
    publisher.flush().expect("the log takes the ticks");
}

/// Returns a publisher of records of `batch` ticks. Missing topics are created.
pub fn publisher(log: &Arc<dyn EventLog>, partitions: i32, batch: usize) -> Publisher {
    let (topics, plan) = (Topics::new(""), TopicPlan::new(partitions));
    let partitions = create_missing_topics(log.as_ref(), &topics, &plan).expect("the topics can be made");
    publisher_into(log, &topics.ticks, partitions, batch)
}

fn publisher_into(log: &Arc<dyn EventLog>, topic: &str, partitions: i32, batch: usize) -> Publisher {
    let batch = NonZeroUsize::new(batch).expect("a batch has ticks");
    Publisher::new(log, "feed", topic, partitions, batch, Box::new(|| None))
        .expect("the log takes a producer")
}

/// Runs an engine until all existing ticks and risk requests are processed and committed.
pub fn run_to_end(log: &Arc<dyn EventLog>, config: EngineConfig) -> Summary {
    let ends = |topic: &str| topic_ends(log.as_ref(), topic);
    let stop_at = Stop::At {
        ticks: ends(&config.core.topics.ticks),
        requests: ends(&config.core.topics.risk_requests),
    };
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    let (stop, stopped) = bounded(1);
    stop.send(stop_at).expect("the receiver is here");
    run(log.clone(), config, progress, stopped).expect("the engine works")
}

/// Returns the end offset of each partition of a topic.
pub fn topic_ends(log: &dyn EventLog, topic: &str) -> Vec<(i32, i64)> {
    let topics = log.topics().expect("the log is readable");
    let info = topics.iter().find(|info| info.spec.name == topic).expect("the topic exists");
    (0..).zip(info.offsets.iter().map(|range| range.next)).collect()
}

/// Wait of one poll, between two checks for the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Returns all records of one partition.
pub fn read_partition(log: &dyn EventLog, topic: &str, partition: i32) -> Vec<Record> {
    let partition = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&partition)).expect("the topic exists");
    let end = reader.offsets(&partition).expect("the log is readable").next;
    let mut records = Vec::new();
    while reader.position(&partition).expect("the log is readable") < end {
        let fetched = reader.poll(READ_WAIT, 4_096, 16 << 20).expect("the log is readable");
        if let Fetched::Records { records: more, .. } = fetched {
            records.extend(more);
        }
    }
    records
}
