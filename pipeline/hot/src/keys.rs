//! Names and values in Redis: the interface documented in `docs/hot-state.md`.
//!
//! Values are JSON. The leading whole numbers of a value are its stamp, which `write.lua` compares to find the newer of
//! two values. So the order of the fields below matters. This module knows no connection.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId};

/// Version of names and values. A writer writes nothing if Redis has another version.
pub const LAYOUT: &str = "1";
/// Field of a symbol's hash that has the value of the symbol's latest signal of any kind.
pub const LATEST: &str = "latest";

/// Builds the names of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// Creates names that all begin with `prefix`.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Returns the key of a string that contains the [`LAYOUT`] of all other keys.
    pub fn layout(&self) -> String {
        format!("{}layout", self.prefix)
    }

    /// Returns the key of a symbol's hash, which maps [`LATEST`] and `BAR_SPEC/KIND` to [`SignalValue`].
    pub fn symbol(&self, symbol: &str) -> String {
        format!("{}symbol:{symbol}", self.prefix)
    }

    /// Returns the key of a partition's hash, which maps `rebuild` to a random name, and `position` to
    /// [`PositionValue`].
    pub fn partition(&self, partition: PartitionId) -> String {
        format!("{}partition:{partition}", self.prefix)
    }

    /// Returns the key of the set of a partition's symbols.
    pub fn symbols(&self, partition: PartitionId) -> String {
        format!("{}symbols:{partition}", self.prefix)
    }

    /// Returns the key of a risk request's string, which is a [`ResultValue`] and is deleted when the retention time of
    /// results ends.
    pub fn result(&self, request_id: &str) -> String {
        format!("{}result:{request_id}", self.prefix)
    }

    /// Returns the key of the sorted set of the requests answered in a partition. They are sorted by the expiry of
    /// their results, in milliseconds since the epoch.
    pub fn results(&self, partition: PartitionId) -> String {
        format!("{}results:{partition}", self.prefix)
    }

    /// Returns the key of the set of all partitions' numbers.
    pub fn partitions(&self) -> String {
        format!("{}partitions", self.prefix)
    }

    /// Returns the key of a hash that maps `PARTITION/GROUP` to [`PlacementValue`].
    pub fn placements(&self) -> String {
        format!("{}placements", self.prefix)
    }

    /// Returns the key of a hash that maps `NODE/LANE` to [`LaneValue`].
    pub fn lanes(&self) -> String {
        format!("{}lanes", self.prefix)
    }
}

/// Returns the field of a symbol's hash for the latest signal of a kind and a bar specification: `1s/BAR`. Alerts and
/// faults of formulas have their names as well: `1s/ALERT/wide`.
pub fn signal_field(bar_spec: &str, kind: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{bar_spec}/{kind}/{name}"),
        None => format!("{bar_spec}/{kind}"),
    }
}

/// Returns a field of [`Keys::placements`].
pub fn placement_field(partition: PartitionId, group: GroupIndex) -> String {
    format!("{partition}/{group}")
}

/// Returns a field of [`Keys::lanes`].
pub fn lane_field(node: &str, lane: LaneId) -> String {
    format!("{node}/{lane}")
}

/// A signal. Its offset is the stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalValue {
    /// Offset of the record in the topic of signals.
    pub offset: i64,
    /// Partition of the symbol, in the topics of ticks and of signals.
    pub partition: PartitionId,
    /// Group of the symbol within its partition: the unit of placement.
    pub group: GroupIndex,
    /// Create time of the record, which is its commit time, ns since the epoch.
    pub committed_ns: i64,
    /// The record, as `tail signals -o json` prints it.
    pub record: Value,
}

/// The result of a risk request. It never changes, so it needs no stamp: the first one written stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultValue {
    /// Offset of the record in the topic of results.
    pub offset: i64,
    /// Partition of the request, in the topics of requests and of results.
    pub partition: PartitionId,
    /// Create time of the record, which is its commit time, ns since the epoch.
    pub committed_ns: i64,
    /// The record, as `tail risk.results -o json` prints it.
    pub record: Value,
}

/// Position up to which a partition's signals are written. The stamp is the offset, followed by the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionValue {
    /// Offset before which every signal is written, or a newer one of its kind is.
    pub next_offset: i64,
    /// Time of writing, ns since the epoch. A running writer updates it every second.
    pub written_ns: i64,
    /// Number of offsets from `next_offset` to the end of the partition at the time of writing.
    pub behind: i64,
    /// Name of the process that wrote the position.
    pub node: String,
    /// Hash of the record before `next_offset`, as hex digits; empty if there is none. If that record has a different
    /// hash, the position belongs to another log.
    pub record_hash: String,
}

/// Process and lane that compute a group. The stamp is the committed offset at which the process took over the
/// partition, then the time, then the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementValue {
    /// Committed offset of the ticks at which the process took over the partition. It never falls from owner to owner.
    pub assigned_offset: i64,
    /// Time of the decision, ns since the epoch.
    pub at_ns: i64,
    /// Fencing epoch of the group in this life of the process.
    pub epoch: i64,
    /// Name of the process.
    pub node: String,
    /// Lane of the group.
    pub lane: LaneId,
}

/// Health of a lane. The time of writing is the stamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneValue {
    /// Time of writing, ns since the epoch. A running process updates it every second.
    pub written_ns: i64,
    /// Time at which the lane entered this state, ns since the epoch.
    pub since_ns: i64,
    /// State of the lane.
    pub state: LaneState,
    /// Reason of the loss, if the lane is lost; empty otherwise.
    pub reason: String,
    /// Device of the lane, such as `cpu:0`.
    pub device: String,
    /// Number of groups placed on the lane.
    pub groups: i64,
    /// Time at which the lane last finished a batch, ns since the epoch; 0 for never.
    pub completed_ns: i64,
}

/// State of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LaneState {
    /// The lane accepts batches.
    Ready,
    /// The lane failed.
    Lost,
    /// The lane's process ended normally, or is about to.
    Stopped,
    /// The lane was ready, but its process no longer reports it, because the process has ended or is cut off. Readers
    /// derive this state; it is never written.
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
        assert_eq!(signal_field("tick:100", "BAR", None), "tick:100/BAR");
        assert_eq!(signal_field("1s", "ALERT", Some("wide")), "1s/ALERT/wide");
        assert_eq!(
            (placement_field(2, 5), lane_field("node-0", 1)),
            ("2/5".to_owned(), "node-0/1".to_owned())
        );
    }
}
