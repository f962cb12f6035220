//! The state of one symbol, read from Redis or folded from the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError, Selection, TopicPartition};
use warptape_schemas::{Describer, decode_journal_entry};

use crate::HotConfig;
use crate::error::HotError;
use crate::follower::{partitions, read_selected_to_end, read_to_end};
use crate::keys::{Keys, LATEST, LaneValue, PlacementValue, PositionValue, SignalValue};
use crate::latest::Latest;
use crate::placements::Placements;
use crate::store::RedisStore;
use crate::url::RedisUrl;

/// Number of journal entries that the first search for the last start of a process covers; each further search doubles
/// it.
const TAIL_ENTRIES: i64 = 4_096;

/// The state of a symbol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SymbolState {
    /// The symbol, `VENUE:TICKER`.
    pub symbol: String,
    /// Source of the state: the Redis URL without its password, or the log.
    pub source: String,
    /// Partition of the symbol.
    pub partition: i32,
    /// Group of the symbol within its partition.
    pub group: i32,
    /// The latest signal of any kind.
    pub latest: SignalValue,
    /// The latest signal of each kind by `BAR_SPEC/KIND`.
    pub signals: BTreeMap<String, SignalValue>,
    /// Process and lane that compute the group; `None` if unknown.
    pub placement: Option<PlacementValue>,
    /// Health of the group's lane; `None` if unknown.
    pub lane: Option<LaneValue>,
    /// Position of Redis in the partition; `None` for the log, which is complete.
    pub position: Option<PositionValue>,
}

/// The symbol has no signal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name} knows no symbol {symbol:?}{}", self.hint())]
pub struct UnknownSymbol {
    /// The requested symbol.
    pub symbol: String,
    /// The source that was searched.
    pub source_name: String,
    /// Number of symbols in the source.
    pub known: usize,
    /// Symbols with similar names, the most similar first.
    pub near: Vec<String>,
}

/// Least similarity of similar names; 1 means equal.
const SIMILARITY_MIN: f64 = 0.75;
/// Greatest number of similar names in a message.
const NEAR_MAX: usize = 3;

impl UnknownSymbol {
    /// Creates the error, with known symbols of similar names.
    pub fn new(symbol: &str, source_name: String, known: &BTreeSet<String>) -> Self {
        let similarity = |name: &String| {
            // People often type a ticker without its venue.
            let ticker = name.split_once(':').map_or(name.as_str(), |(_, ticker)| ticker);
            let of = |name: &str| strsim::jaro_winkler(&symbol.to_uppercase(), &name.to_uppercase());
            of(name).max(of(ticker))
        };
        let mut near: Vec<(f64, &String)> = known
            .iter()
            .map(|name| (similarity(name), name))
            .filter(|(near, _)| *near >= SIMILARITY_MIN)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let near = near.into_iter().take(NEAR_MAX).map(|(_, name)| name.clone()).collect();
        Self { symbol: symbol.to_owned(), source_name, known: known.len(), near }
    }

    fn hint(&self) -> String {
        match (self.near.as_slice(), self.known) {
            ([], 0) => "; it knows none so far: a symbol is known from its first signal on".to_owned(),
            ([], known) => {
                format!(" among {known}; a symbol is VENUE:TICKER, and known from its first signal on")
            }
            (near, _) => format!("; did you mean {}?", near.join(" or ")),
        }
    }
}

/// Returns the state from Redis.
pub fn from_redis(
    url: &RedisUrl,
    keys: Keys,
    symbol: &str,
) -> Result<Result<SymbolState, UnknownSymbol>, HotError> {
    let mut store = RedisStore::connect(url, keys)?;
    store.check_layout()?;
    let mut signals = store.symbol(symbol)?;
    let Some(latest) = signals.remove(LATEST) else {
        let known = store.symbols()?.into_iter().collect();
        return Ok(Err(UnknownSymbol::new(symbol, url.to_string(), &known)));
    };
    let (partition, group) = (latest.partition, latest.group);
    let placement = store.placement(partition, group)?;
    let lane = match &placement {
        Some(placement) => store.lane(&placement.node, placement.lane)?,
        None => None,
    };
    let position = store.partition(partition)?.and_then(|stored| stored.position);
    let (symbol, source) = (symbol.to_owned(), url.to_string());
    Ok(Ok(SymbolState { symbol, source, partition, group, latest, signals, placement, lane, position }))
}

/// Folds the state from the log: reads the signals of the symbol, and the journal back to the last start of a process.
pub fn from_log(
    log: &dyn EventLog,
    config: &HotConfig,
    symbol: &str,
) -> Result<Result<SymbolState, UnknownSymbol>, HotError> {
    let journals: Vec<Placements> = (0..partitions(log, &config.journal)?)
        .map(|partition| last_life(log, TopicPartition { topic: config.journal.clone(), partition }))
        .collect::<Result<_, _>>()?;
    // The key of a signal is its symbol.
    let selection =
        Selection { key: Some(symbol.as_bytes().to_vec()), by_own_key: true, ..Selection::default() };
    let (describer, mut found) = (Describer::new(), BTreeMap::<String, SignalValue>::new());
    for partition in 0..partitions(log, &config.signals)? {
        let mut latest = Latest::default();
        let source = TopicPartition { topic: config.signals.clone(), partition };
        read_selected_to_end(log, &source, 0, &selection, |record| {
            if record.key.as_deref() == Some(symbol.as_bytes()) {
                // Records other than signals are ignored.
                drop(latest.push(record));
            }
        })?;
        let assigned = journals.iter().find_map(|journal| journal.assigned().get(&partition));
        let groups = assigned.map_or(config.groups_per_partition, |assigned| assigned.groups);
        for (_, fields) in latest.take(&describer, partition, |symbol| config.group_of(symbol, groups)) {
            for (field, value) in fields {
                if found.get(&field).is_none_or(|there| there.offset < value.offset) {
                    found.insert(field, value);
                }
            }
        }
    }
    let Some(latest) = found.remove(LATEST) else {
        let known = known_symbols(log, config, symbol)?;
        return Ok(Err(UnknownSymbol::new(symbol, log.url(), &known)));
    };
    let (partition, group) = (latest.partition, latest.group);
    let places =
        journals.iter().filter_map(|journal| journal.group(partition, group).map(|place| (journal, place)));
    let newest = places.max_by_key(|(_, place)| (place.assigned_offset, place.at_ns));
    let placement = newest.map(|(_, place)| place.clone());
    let lane = newest.and_then(|(journal, place)| {
        let written_ns = journal.last_ns();
        journal.lanes(written_ns).find(|(lane, _)| *lane == place.lane).map(|(_, value)| value)
    });
    let (symbol, source) = (symbol.to_owned(), log.url());
    Ok(Ok(SymbolState {
        symbol,
        source,
        partition,
        group,
        latest,
        signals: found,
        placement,
        lane,
        position: None,
    }))
}

/// Returns the keys of all signals, except those of a symbol without signals.
fn known_symbols(log: &dyn EventLog, config: &HotConfig, symbol: &str) -> Result<BTreeSet<String>, LogError> {
    let mut known = BTreeSet::new();
    for partition in 0..partitions(log, &config.signals)? {
        let source = TopicPartition { topic: config.signals.clone(), partition };
        read_to_end(log, &source, 0, |record| {
            if let Ok(other) = std::str::from_utf8(record.key.as_deref().unwrap_or_default())
                && other != symbol
                && !known.contains(other)
            {
                known.insert(other.to_owned());
            }
        })?;
    }
    Ok(known)
}

/// Returns the placements in a journal since the last start of a process.
fn last_life(log: &dyn EventLog, journal: TopicPartition) -> Result<Placements, LogError> {
    let range = log.reader(std::slice::from_ref(&journal))?.offsets(&journal)?;
    let mut entries = TAIL_ENTRIES;
    loop {
        let from = (range.next - entries).max(range.first);
        let mut placements = Placements::default();
        read_to_end(log, &journal, from, |record| {
            if let Ok(entry) = decode_journal_entry(&record.value) {
                placements.push(&entry);
            }
        })?;
        if placements.node().is_some() || from == range.first {
            return Ok(placements);
        }
        entries = entries.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_told() {
        let known: BTreeSet<String> =
            ["BINANCE:BTCUSDT", "BINANCE:ETHUSDT", "XNAS:AAPL", "XNAS:MSFT"].map(str::to_owned).into();
        let said = |symbol: &str| UnknownSymbol::new(symbol, "sqlite:w.db".to_owned(), &known).to_string();
        assert_eq!(
            said("XNAS:APPL"),
            "sqlite:w.db knows no symbol \"XNAS:APPL\"; did you mean XNAS:AAPL or XNAS:MSFT?"
        );
        assert!(said("btcusdt").contains("did you mean BINANCE:BTCUSDT"), "{}", said("btcusdt"));
        assert!(said("#").contains(" among 4; a symbol is VENUE:TICKER"), "{}", said("#"));
        let none = UnknownSymbol::new("A:X", "redis://h".to_owned(), &BTreeSet::new()).to_string();
        assert!(none.contains("it knows none so far"), "{none}");
    }
}
