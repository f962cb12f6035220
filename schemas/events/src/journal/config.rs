//! The start of a scheduler in the journal: its limits and weights, and its lanes.

use serde::{Deserialize, Serialize};

use super::{LaneId, LaneKind, RiskConfig};
use crate::wire::Wire;

/// Limits and weights of the scheduler. Recorded in [`Input::Started`], so that a journal explains itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SchedulerConfig {
    /// The placement policy: `NAME` or `NAME@VERSION`, and behind a slash the bytes that a step decides at most.
    pub placement_policy: String,
    /// Seed of the policy's counter-addressed hash streams.
    pub placement_seed: i64,
    /// A lane takes at most `ceil(load_factor_percent / 100 × its weighted share)` groups. At least 100.
    pub load_factor_percent: i32,
    /// Rows a lane may have in flight.
    pub lane_credit_rows: i64,
    /// Bytes a lane may have in flight.
    pub lane_credit_bytes: i64,
    /// Batches a lane may have in flight (2 = one running, one queued).
    pub lane_batches_max: i32,
    /// Rows of the largest batch.
    pub batch_rows_max: i64,
    /// A busy lane is given a further batch early enough that its oldest row is predicted to finish within this time
    /// from its arrival, in nanoseconds.
    pub row_deadline_ns: i64,
    /// A partition is paused at the source when this many of its rows wait on the host.
    pub high_water_rows: i64,
    /// A paused partition is resumed when no more than this many of its rows wait on the host.
    pub low_water_rows: i64,
    /// Time between looks at which groups are better off on lanes of the other kind, in nanoseconds; 0: never.
    #[wire(default = "0")]
    pub route_interval_ns: i64,
    /// Limits and weights of risk tasks.
    #[wire(
        default = r#"{"slice_ns": 500000, "tasks_max": 10000, "split": "DYNAMIC", "tenant_weights": [], "bytes_max": 268435456, "quantum_ns": 0, "policy": "", "price_interval_ns": 0, "critical_percent": 0, "ageing_ns": 0, "predictor": 0, "queues": {"quotas": [], "delay_target_ns": 0, "delay_interval_ns": 0, "in_flight_min": 0}, "explore_ppm": 0, "steals": false}"#
    )]
    pub risk: RiskConfig,
    /// When lanes are taken out of service; `None`: never.
    #[wire(default = "null")]
    pub breakers: Option<BreakerConfig>,
    /// Length of a window in which the placement policy `balanced` measures what lanes have to do, and after which it moves groups, in
    /// nanoseconds; 0: it measures nothing and moves none.
    #[wire(default = "0")]
    pub balance_interval_ns: i64,
}

/// When a lane's breaker opens, and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct BreakerConfig {
    /// Losses of a lane within `window_ns` that open its breaker; 0: none do.
    pub losses_max: i32,
    /// Time in which losses are counted, in nanoseconds.
    pub window_ns: i64,
    /// A lane that takes so many percent of what its batches are predicted to take, relative to the other lanes, is slow; 0: none is.
    pub slow_percent: i32,
    /// How long it has to be slow without a break, in nanoseconds.
    pub slow_ns: i64,
    /// Time between the opening and the first probes, in nanoseconds. It doubles with each opening that follows failed probes.
    pub probe_ns: i64,
    /// The longest such time, in nanoseconds.
    pub probe_ns_max: i64,
    /// Batches and slices that have to succeed before the breaker closes.
    pub probes: i32,
    /// A lane whose device has less than this left before it throttles gets a part of its weight alone, in degrees Celsius; 0: all
    /// have all of it.
    pub headroom_c: i32,
    /// A lane whose device has less than so many percent of its memory free gets no further groups while another lane can take them,
    /// until it has twice as many; 0: memory does not count.
    pub memory_free_percent: i32,
}

/// One lane as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneSpec {
    /// The lane's index.
    pub lane: LaneId,
    /// Device name, such as `cpu:0`.
    pub device: String,
    /// Relative speed, for weighted placement; equal lanes have equal weights. 0: the lane stands by, and gets groups only
    /// when no lane with a weight is ready, or when their route names its kind.
    pub weight: i32,
    /// Lanes of one class are alike: GPUs of one model and MIG profile, or the processor with one instruction set. Speeds are
    /// learnt by class. Empty: the class is the lane's kind.
    #[wire(default = r#""""#)]
    pub class: String,
    /// Memory of the lane's device, in bytes; 0: not known.
    #[wire(default = "0")]
    pub memory_bytes: i64,
    /// NUMA node of the host that the device is attached to; null: not known.
    #[wire(default = "null")]
    pub numa_node: Option<i32>,
    /// Lanes whose device memory can be copied to without the host, by index.
    #[wire(default = "[]")]
    pub peers: Vec<Peer>,
}

/// A lane whose device memory can be copied to without the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Peer {
    /// Its index.
    pub lane: LaneId,
    /// The connection.
    pub link: Link,
}

/// How two lanes' devices are connected, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Link {
    /// Both lanes are on one device.
    SameDevice,
    /// NVLink connects the devices.
    Nvlink,
    /// The devices copy over PCI Express.
    Pcie,
}

impl LaneSpec {
    /// Returns a lane with its device and weight, and nothing else known.
    pub fn new(lane: LaneId, device: impl Into<String>, weight: i32) -> Self {
        let device = device.into();
        Self {
            lane,
            device,
            weight,
            class: String::new(),
            memory_bytes: 0,
            numa_node: None,
            peers: Vec::new(),
        }
    }

    /// Returns the place of the lane's state, by its device's name.
    pub fn kind(&self) -> LaneKind {
        match self.device.split(':').next() {
            Some("cpu") => LaneKind::Host,
            _ => LaneKind::Device,
        }
    }
}
