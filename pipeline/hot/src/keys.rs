//! Names and values in Redis: the interface documented in `docs/hot-state.md`.
//!
//! Values are JSON. The leading whole numbers of a value are its stamp, by which `write.lua` finds the newer of two. So
//! the order of the fields below matters. This module knows no connection.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId};

/// Version of names and values. A writer does not write if Redis has another version.
pub const LAYOUT: &str = "1";
/// Field of a symbol's hash with the value of its latest signal, whatever its kind.
pub const LATEST: &str = "latest";

/// Builds the names of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// All keys begin with `prefix`.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// String: the [`LAYOUT`] of all other keys.
    pub fn layout(&self) -> String {
        format!("{}layout", self.prefix)
    }

    /// Hash of a symbol: [`LATEST`] and `BAR_SPEC/KIND` to [`SignalValue`].
    pub fn symbol(&self, symbol: &str) -> String {
        format!("{}symbol:{symbol}", self.prefix)
    }

    /// Hash of a partition: `rebuild` to a random name, `position` to [`PositionValue`].
    pub fn partition(&self, partition: PartitionId) -> String {
        format!("{}partition:{partition}", self.prefix)
    }

    /// Set of the symbols of a partition.
    pub fn symbols(&self, partition: PartitionId) -> String {
        format!("{}symbols:{partition}", self.prefix)
    }

    /// String of a risk request: [`ResultValue`], for as long as results are kept.
    pub fn result(&self, request_id: &str) -> String {
        format!("{}result:{request_id}", self.prefix)
    }

    /// Sorted set of the requests answered in a partition, by expiry of their results, ms since the epoch.
    pub fn results(&self, partition: PartitionId) -> String {
        format!("{}results:{partition}", self.prefix)
    }

    /// Set of the numbers of all partitions.
    pub fn partitions(&self) -> String {
        format!("{}partitions", self.prefix)
    }

    /// Hash: `PARTITION/GROUP` to [`PlacementValue`].
    pub fn placements(&self) -> String {
        format!("{}placements", self.prefix)
    }

    /// Hash: `NODE/LANE` to [`LaneValue`].
    pub fn lanes(&self) -> String {
        format!("{}lanes", self.prefix)
    }
}

/// Field of a symbol's hash for the latest signal of a kind and a bar specification: `1s/BAR`.
pub fn signal_field(bar_spec: &str, kind: &str) -> String {
    format!("{bar_spec}/{kind}")
}

/// Field of [`Keys::placements`].
pub fn placement_field(partition: PartitionId, group: GroupIndex) -> String {
    format!("{partition}/{group}")
}

/// Field of [`Keys::lanes`].
pub fn lane_field(node: &str, lane: LaneId) -> String {
    format!("{node}/{lane}")
}

/// A signal. Stamp: its offset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalValue {
    /// Offset of the record in the topic of signals.
    pub offset: i64,
    /// Partition of the symbol, in the topics of ticks and of signals alike.
    pub partition: PartitionId,
    /// Group of the symbol within its partition: the unit of placement.
    pub group: GroupIndex,
    /// Create time of the record, which is that of its commit, ns since the epoch.
    pub committed_ns: i64,
    /// The record, as `tail signals -o json` prints it.
    pub record: Value,
}

/// The result of a risk request. It never changes, so it needs no stamp: the first one written stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultValue {
    /// Offset of the record in the topic of results.
    pub offset: i64,
    /// Partition of the request, in the topics of requests and of results alike.
    pub partition: PartitionId,
    /// Create time of the record, which is that of its commit, ns since the epoch.
    pub committed_ns: i64,
    /// The record, as `tail risk.results -o json` prints it.
    pub record: Value,
}

/// Position up to which a partition's signals are written. Stamp: the offset, then the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionValue {
    /// Signals before this offset are written, or newer ones of their kind are.
    pub next_offset: i64,
    /// Time of writing, ns since the epoch; a live writer updates it every second.
    pub written_ns: i64,
    /// Offsets from `next_offset` to the end of the partition when this was written.
    pub behind: i64,
    /// Name of the process that wrote it.
    pub node: String,
    /// Hash of the record before `next_offset`, as hex digits; empty if there is none. A different hash of that record
    /// means another log.
    pub record_hash: String,
}

/// Process and lane that compute a group. Stamp: the committed offset at which the partition was taken over, then time,
/// then epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementValue {
    /// Committed offset of the ticks at which the node took the partition over. It never falls from owner to owner.
    pub assigned_offset: i64,
    /// Time of the decision, ns since the epoch.
    pub at_ns: i64,
    /// Fencing epoch of the group in the life of the process.
    pub epoch: i64,
    /// Name of the process.
    pub node: String,
    /// Its lane.
    pub lane: LaneId,
}

/// Health of a lane. Stamp: the time of writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneValue {
    /// Time of writing, ns since the epoch; a live process updates it every second.
    pub written_ns: i64,
    /// Time at which the lane entered this state, ns since the epoch.
    pub since_ns: i64,
    /// State.
    pub state: LaneState,
    /// Reason of a lost lane; empty otherwise.
    pub reason: String,
    /// Device name, such as `cpu:0`.
    pub device: String,
    /// Groups placed on it.
    pub groups: i64,
    /// Time at which it last finished a batch, ns since the epoch; 0 for never.
    pub completed_ns: i64,
}

/// State of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LaneState {
    /// The lane takes batches.
    Ready,
    /// The lane failed.
    Lost,
    /// The lane's process ended in order, or is about to.
    Stopped,
    /// The lane was ready, but its process, which has ended or is cut off, no longer reports it. Readers derive this
    /// state; it is never written.
    Silent,
}

/// Encodes a value for Redis.
pub fn encode(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("structs of numbers and texts are JSON")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_begin_with_their_stamp() {
        let signal =
            SignalValue { offset: 7, partition: 2, group: 3, committed_ns: 9, record: json!({"value": 1.5}) };
        let position = PositionValue {
            next_offset: 8,
            written_ns: 10,
            behind: 0,
            node: "n".to_owned(),
            record_hash: String::new(),
        };
        let placement =
            PlacementValue { assigned_offset: 1, at_ns: 2, epoch: 3, node: "n".to_owned(), lane: 1 };
        let lane = LaneValue {
            written_ns: 11,
            since_ns: 1,
            state: LaneState::Lost,
            reason: "x".to_owned(),
            device: "cpu:0".to_owned(),
            groups: 0,
            completed_ns: 0,
        };
        for (text, beginning) in [
            (encode(&signal), r#"{"offset":7,"partition":2,"group":3,"committed_ns":9,"record":{"#),
            (encode(&position), r#"{"next_offset":8,"written_ns":10,"#),
            (encode(&placement), r#"{"assigned_offset":1,"at_ns":2,"epoch":3,"node":"#),
            (encode(&lane), r#"{"written_ns":11,"since_ns":1,"state":"LOST","#),
        ] {
            assert!(text.starts_with(beginning), "{text}");
        }
    }

    #[test]
    fn names() {
        let keys = Keys::new("warptape:eu.");
        assert_eq!(keys.symbol("BINANCE:BTCUSDT"), "warptape:eu.symbol:BINANCE:BTCUSDT");
        assert_eq!(keys.partition(3), "warptape:eu.partition:3");
        assert_eq!(keys.result("desk:7"), "warptape:eu.result:desk:7");
        assert_eq!(keys.results(3), "warptape:eu.results:3");
        assert_eq!(signal_field("tick:100", "BAR"), "tick:100/BAR");
        assert_eq!(
            (placement_field(2, 5), lane_field("node-0", 1)),
            ("2/5".to_owned(), "node-0/1".to_owned())
        );
    }
}
