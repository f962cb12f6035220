//! The start of a scheduler in the journal: its limits and weights, and its lanes.

use serde::{Deserialize, Serialize};

use super::{LaneId, LaneKind, RiskConfig};
use crate::wire::Wire;

/// Limits and weights of the scheduler. `Started` records them, so that a journal is self-contained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SchedulerConfig {
    /// Placement policy: `NAME` or `NAME@VERSION`, and optionally `/BYTES`. `BYTES` is the approximate maximum size of
    /// one step's decisions, in bytes of the journal.
    pub placement_policy: String,
    /// Seed of the policy's random streams. A draw is a hash of the stream and a counter.
    pub placement_seed: i64,
    /// Bound on a lane's groups, in percent of its weighted share; at least 100. A lane takes at most
    /// `ceil(load_factor_percent / 100 × share)` groups.
    pub load_factor_percent: i32,
    /// Maximum number of rows in flight on a lane.
    pub lane_credit_rows: i64,
    /// Maximum number of bytes in flight on a lane.
    pub lane_credit_bytes: i64,
    /// Maximum number of batches in flight on a lane; 2: one runs, and one is queued.
    pub lane_batches_max: i32,
    /// Maximum number of rows in a batch.
    pub batch_rows_max: i64,
    /// Time from a row's arrival within which its batch should finish, in nanoseconds. A busy lane gets a further batch
    /// early enough for that.
    pub row_deadline_ns: i64,
    /// Number of a partition's rows waiting on the host from which its source is paused.
    pub high_water_rows: i64,
    /// Number of a paused partition's rows waiting on the host down to which its source is resumed.
    pub low_water_rows: i64,
    /// Time between checks whether groups are better off on lanes of the other kind (processor or GPU), in nanoseconds;
    /// 0: never.
    #[wire(default = "0")]
    pub route_interval_ns: i64,
    /// Limits and weights of risk tasks.
    #[wire(
        default = r#"{"slice_ns": 500000, "tasks_max": 10000, "split": "DYNAMIC", "tenant_weights": [], "bytes_max": 268435456, "quantum_ns": 0, "policy": "", "price_interval_ns": 0, "critical_percent": 0, "ageing_ns": 0, "predictor": 0, "queues": {"quotas": [], "delay_target_ns": 0, "delay_interval_ns": 0, "in_flight_min": 0}, "explore_ppm": 0, "steals": false}"#
    )]
    pub risk: RiskConfig,
    /// Settings of the lanes' breakers; `None`: lanes have no breakers.
    #[wire(default = "null")]
    pub breakers: Option<BreakerConfig>,
    /// Length of a window of the placement policy `balanced`, in nanoseconds. It measures the load of lanes in a
    /// window, and then moves groups. 0: it does neither.
    #[wire(default = "0")]
    pub balance_interval_ns: i64,
}

/// Settings of the lanes' breakers. A breaker keeps work from a lane that fails or is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct BreakerConfig {
    /// Number of losses of a lane within `window_ns` that opens its breaker; 0: losses never do.
    pub losses_max: i32,
    /// Time in which losses are counted, in nanoseconds.
    pub window_ns: i64,
    /// Service time from which a lane is slow, in percent of the prediction and relative to other lanes; 0: no lane is
    /// slow.
    pub slow_percent: i32,
    /// Time for which a lane must be slow without a break before its breaker opens, in nanoseconds.
    pub slow_ns: i64,
    /// Time from the opening of a breaker to its first probes, in nanoseconds. It doubles with each opening that
    /// follows failed probes.
    pub probe_ns: i64,
    /// Maximum time from an opening to its first probes, in nanoseconds.
    pub probe_ns_max: i64,
    /// Number of batches and slices that must succeed before the breaker closes.
    pub probes: i32,
    /// Distance of a device from its throttling temperature below which its lane gets a part of its weight only, in
    /// degrees Celsius. 0: all weights count in full.
    pub headroom_c: i32,
    /// Free share of device memory below which a lane gets no further groups while another lane can take them, in
    /// percent. It gets groups again at twice that share. 0: memory does not count.
    pub memory_free_percent: i32,
}

/// One lane as configured: a worker that owns a device, or a share of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneSpec {
    /// Number of the lane, from 0 in configuration order.
    pub lane: LaneId,
    /// Name of the device, such as `cpu:0`.
    pub device: String,
    /// Relative speed, for weighted placement; equal lanes have equal weights. With 0, the lane gets groups only if no
    /// lane with a weight is ready, or if their route names its kind.
    pub weight: i32,
    /// Class of the lane; speeds are learnt by class. Lanes of one class are alike: GPUs of one model and MIG profile,
    /// or the processor with one instruction set. Empty: the class is the lane's kind.
    #[wire(default = r#""""#)]
    pub class: String,
    /// Memory of the lane's device, in bytes; 0 if unknown.
    #[wire(default = "0")]
    pub memory_bytes: i64,
    /// NUMA node of the host to which the device is attached; null if unknown.
    #[wire(default = "null")]
    pub numa_node: Option<i32>,
    /// Lanes to whose device memory this lane can copy without the host.
    #[wire(default = "[]")]
    pub peers: Vec<Peer>,
    /// Number of blocks of a kernel that the lane's device runs at the same time; 1 on the processor, or if unknown.
    #[wire(default = "1")]
    pub width: i32,
}

/// A lane to whose device memory another lane can copy without the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Peer {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Connection of the two devices.
    pub link: Link,
}

/// Connection of two lanes' devices, the fastest first.
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
    /// Returns a lane with a device and a weight; all other fields are unknown, and the width is 1.
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
            width: 1,
        }
    }

    /// Returns the lane's kind, the place of its state, by its device's name.
    pub fn kind(&self) -> LaneKind {
        match self.device.split(':').next() {
            Some("cpu") => LaneKind::Host,
            _ => LaneKind::Device,
        }
    }
}
