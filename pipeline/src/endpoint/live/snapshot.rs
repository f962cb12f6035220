//! State of a running pipeline as `/live` streams it, for the page and for `warptape top`.
//!
//! Times are ISO 8601 in UTC. Names of fields carry their units. Lists have the newest item first.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// State of the pipeline at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub at: String,
    /// The process.
    pub process: Process,
    /// State of the pipeline in words.
    pub state: State,
    /// Totals since the process started.
    pub totals: Totals,
    /// Rates and lag of the last two minutes.
    pub history: History,
    /// Latency of signals, from the publication of a tick to the commit; `None` before the first signal.
    pub latency: Option<Latency>,
    /// Lag over all partitions; `None` if the log does not report it.
    pub lag: Option<Lag>,
    /// Partitions of this process.
    pub partitions: Vec<Partition>,
    /// Lanes by index.
    pub lanes: Vec<Lane>,
    /// GPUs, as in `/gpu-health`, with the memory of `/gpu-memory`.
    pub devices: Vec<serde_json::Value>,
    /// The newest signals.
    pub signals: Vec<Signal>,
    /// Number of signals by kind that this page has read.
    pub signals_by_kind: BTreeMap<String, u64>,
    /// The newest entries of the journal with a decision.
    pub decisions: Vec<Entry>,
    /// The newest risk requests and results.
    pub risk: Vec<Risk>,
    /// Log, its disk, and hot state.
    pub stores: Stores,
    /// Progress of the verifier within this process; `None` if there is none.
    pub verified: Option<Verified>,
    /// Symbols with candles, most signals first.
    pub symbols: Vec<Symbol>,
    /// Symbols of the process that `symbols` leaves out.
    pub symbols_left_out: u64,
    /// Number of records of signals and of the journal that the page skipped, because it may use only a share of a
    /// core.
    pub records_skipped: u64,
}

/// The process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Name of the process.
    pub node: String,
    /// Consumer group of the process.
    pub group: String,
    /// Ordinal of the process in the group.
    pub ordinal: i32,
    /// Version of the software.
    pub version: String,
}

/// State in words, with the components of `/health`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// `ok`, `degraded` or `down`.
    pub level: String,
    /// The state in a few words, such as `caught up`, `reading`, `draining`, or the worst component's reason.
    pub words: String,
    /// State of each component.
    pub components: Vec<Component>,
}

/// A component of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Name of the component.
    pub name: String,
    /// `ok`, `degraded` or `down`.
    pub level: String,
    /// The trouble, or the current activity.
    pub reason: String,
}

/// Totals since the process started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of accepted ticks.
    pub ticks: u64,
    /// Number of committed signals.
    pub signals: u64,
    /// Number of decisions.
    pub decisions: u64,
    /// Number of committed transactions.
    pub commits: u64,
    /// Number of late ticks.
    pub late: u64,
    /// Number of dead letters.
    pub dead_letters: u64,
    /// Number of risk requests read.
    pub risk_requests: u64,
    /// Number of symbols in the owned partitions.
    pub symbols: u64,
    /// Number of rows that wait on the host.
    pub waiting_rows: u64,
    /// Number of rows in flight on lanes.
    pub in_flight_rows: u64,
}

/// Series of the last two minutes, oldest first, with one value a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Ticks per second.
    pub ticks_per_s: Vec<f64>,
    /// Signals per second.
    pub signals_per_s: Vec<f64>,
    /// Commits per second.
    pub commits_per_s: Vec<f64>,
    /// Lag in seconds; null where it is unknown.
    pub lag_s: Vec<Option<f64>>,
    /// Number of rows that wait on the host.
    pub waiting_rows: Vec<u64>,
}

/// Quantiles of latency, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median, in ms.
    pub p50_ms: f64,
    /// Quantile of 99 %, in ms.
    pub p99_ms: f64,
    /// Quantile of 99.9 %, in ms.
    pub p999_ms: f64,
}

/// Uncommitted records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    /// Number of uncommitted records.
    pub records: i64,
    /// Age of the oldest uncommitted record, in seconds.
    pub seconds: f64,
}

/// An owned partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// Number of the partition.
    pub partition: i32,
    /// True while the partition's state is being restored.
    pub is_restoring: bool,
    /// True if the scheduler has paused the partition at the source.
    pub is_paused: bool,
    /// Watermark of the partition; `None` before the first tick.
    pub watermark: Option<String>,
    /// Number of symbols in the partition.
    pub symbols: u64,
    /// Number of the partition's rows that wait on the host.
    pub waiting_rows: i64,
    /// Lag of the partition; `None` if the log does not report it.
    pub lag: Option<Lag>,
}

/// A lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Index of the lane.
    pub lane: i32,
    /// Device of the lane, such as `cpu` or `cuda:0`.
    pub device: String,
    /// `working`, `idle`, `lost`, `drained` or `held` (by its breaker).
    pub state: String,
    /// Busy share of the last second, in percent.
    pub busy_percent: f64,
    /// Rows finished per second.
    pub rows_per_s: f64,
    /// Number of rows in flight on the lane.
    pub in_flight_rows: i64,
    /// Number of rows that wait on the host for the lane.
    pub waiting_rows: i64,
    /// Groups whose state is on the lane, as `partition:group`; at most 64.
    pub groups: Vec<String>,
    /// Shown symbols whose state is on the lane; at most 64.
    pub symbols: Vec<String>,
}

/// A signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Partition and offset, as `3:17`.
    pub place: String,
    /// Symbol of the signal.
    pub symbol: String,
    /// Kind of the signal, such as `BAR` or `EMA_CROSS_UP`; for alerts of formulas with the name, as `ALERT wide`.
    pub kind: String,
    /// Specification of the signal's bar.
    pub bar: String,
    /// End of the bar.
    pub end: String,
    /// Value of the signal; null for a value that is not a finite number.
    #[serde(deserialize_with = "number")]
    pub value: f64,
}

/// Reads a number, or null as NaN, which JSON cannot represent otherwise.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// An entry of the journal with its decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Partition of the journal and sequence, as `0:1234`.
    pub place: String,
    /// Time of the entry.
    pub at: String,
    /// Name of the input, such as `BatchCompleted`.
    pub input: String,
    /// The input in words.
    pub words: String,
    /// Each decision with its reason, in words.
    pub reasons: Vec<String>,
}

/// A risk request or its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Risk {
    /// Id of the request.
    pub id: String,
    /// `asked` for a request, or the outcome of a result.
    pub outcome: String,
    /// Kind of the request, such as `greeks`.
    pub kind: String,
    /// The record's fields.
    pub fields: serde_json::Value,
}

/// Log, disk and hot state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stores {
    /// URL of the log.
    pub log: String,
    /// Description of the log's outage; `None` while it answers.
    pub lost: Option<String>,
    /// Free bytes of the log's disk; `None` if it is not on a disk of this machine.
    pub disk_free_bytes: Option<u64>,
    /// Size of the log's disk, in bytes; `None` if it is not on a disk of this machine.
    pub disk_size_bytes: Option<u64>,
    /// Description of the state of hot state; `None` if it is in memory.
    pub hot_state: Option<String>,
}

/// Progress of the verifier within this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// First sequence of this process's journal that is not verified yet.
    pub sequence: i64,
    /// Sequence of the newest entry that the page has read; `None` before the first.
    pub newest: Option<i64>,
    /// Number of outputs that were recomputed and found equal.
    pub outputs: u64,
    /// The first difference; `None` if there is none.
    pub difference: Option<String>,
    /// Share of a core that the verifier may use, in percent.
    pub share_percent: u32,
}

/// A symbol with candles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Symbol {
    /// Name of the symbol.
    pub symbol: String,
    /// Specifications of the symbol's bars.
    pub bars: Vec<String>,
    /// Number of the symbol's signals that this page has read.
    pub signals: u64,
}

/// Candles of one symbol, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candles {
    /// Symbol of the candles.
    pub symbol: String,
    /// Specification of the bars.
    pub bar: String,
    /// The candles.
    pub candles: Vec<Candle>,
    /// Signals other than bars within the time of the candles.
    pub signals: Vec<Signal>,
}

/// A closed bar with its indicators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Candle {
    /// Start of the bar.
    pub start: String,
    /// End of the bar.
    pub end: String,
    /// Price of the first trade, as a decimal, like the following prices.
    pub open: String,
    /// Highest price.
    pub high: String,
    /// Lowest price.
    pub low: String,
    /// Price of the last trade.
    pub close: String,
    /// Sum of the sizes, as a decimal.
    pub volume: String,
    /// Number of trades.
    pub trades: i64,
    /// Indicators by name, without those that have no value yet.
    pub indicators: BTreeMap<String, f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_can_be_read_again() {
        for value in [f64::NAN, f64::INFINITY] {
            let written = serde_json::to_string(&Signal { value, ..Signal::default() }).expect("JSON");
            let read: Signal = serde_json::from_str(&written).expect("a signal");
            assert!(read.value.is_nan(), "{written}");
        }
    }
}
