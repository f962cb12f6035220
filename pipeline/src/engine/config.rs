//! What an engine needs to be told.

use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::TopicSpec;
use warptape_kernels::Isa;
use warptape_schemas::SchemaSource;
use warptape_schemas::journal::{LaneSpec, SchedulerConfig};
use warptape_stages::StageConfig;

use super::LaneFault;

/// Configuration of an engine, checked where it was read.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Name of the process in its group.
    pub node: String,
    /// Consumer group, also the prefix of the transactional id.
    pub group: String,
    /// Topic names.
    pub topics: Topics,
    /// What outputs depend on.
    pub stages: StageConfig,
    /// What the scheduler goes by.
    pub scheduler: SchedulerConfig,
    /// Lanes, by index.
    pub lanes: Vec<LaneSpec>,
    /// Instruction set of the CPU lanes.
    pub isa: Isa,
    /// Time between commits.
    pub commit_interval: Duration,
    /// Source records of a partition between snapshots.
    pub snapshot_interval_records: i64,
    /// Records of one fetch.
    pub poll_records_max: usize,
    /// Bytes of one fetch, about.
    pub poll_bytes_max: usize,
    /// Writer schemas of ticks in a registry's frame.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Faults to inject, for tests.
    pub lane_faults: Vec<LaneFault>,
}

/// Names of the topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Ticks in.
    pub ticks: String,
    /// Signals out.
    pub signals: String,
    /// Scheduler inputs and decisions.
    pub journal: String,
    /// Stage state.
    pub snapshots: String,
    /// Ticks behind the watermark.
    pub late: String,
    /// Records that cannot be processed.
    pub dead_letter: String,
    /// Starts, losses, stops; not transactional.
    pub lifecycle: String,
}

impl Topics {
    /// All names with a prefix.
    pub fn new(prefix: &str) -> Self {
        let name = |topic: &str| format!("{prefix}{topic}");
        Self {
            ticks: name("ticks"),
            signals: name("signals"),
            journal: name("journal"),
            snapshots: name("snapshots"),
            late: name("late"),
            dead_letter: name("dead-letter"),
            lifecycle: name("lifecycle"),
        }
    }

    /// The topics as they are created: outputs have the partitions of the source, journal and lifecycle one.
    pub fn specs(&self, partitions: i32) -> Vec<TopicSpec> {
        let spec = |name: &str, partitions: i32, compacted: bool| TopicSpec {
            name: name.to_owned(),
            partitions,
            compacted,
            ..TopicSpec::default()
        };
        vec![
            spec(&self.ticks, partitions, false),
            spec(&self.signals, partitions, false),
            spec(&self.journal, 1, false),
            spec(&self.snapshots, partitions, true),
            spec(&self.late, partitions, false),
            spec(&self.dead_letter, partitions, false),
            spec(&self.lifecycle, 1, false),
        ]
    }
}
