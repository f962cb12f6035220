//! Closes of recorded bars, for sweeps, read from the closed bars in the topic of signals.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, TopicPartition};
use warptape_replay::PartitionReader;
use warptape_schemas::decode_signal;
use warptape_schemas::risk::SymbolBars;

use crate::usage_error::UsageError;
use warptape_sources::partition_of;

/// Returns the closes of each symbol's bars of one specification, in the order of the log.
pub fn recorded(
    log: &dyn EventLog,
    signals: &str,
    symbols: &[String],
    bar_spec: &str,
) -> anyhow::Result<Vec<SymbolBars>> {
    let topic = log.topic(signals)?.ok_or_else(|| {
        UsageError(format!("{} has no topic {signals}: `warptape run` writes bars there", log.url()))
    })?;
    let mut closes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut by_partition: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
    for symbol in symbols {
        let partition = partition_of(symbol, topic.spec.partitions);
        by_partition.entry(partition).or_default().push(symbol);
    }
    for (partition, symbols) in by_partition {
        let source = TopicPartition { topic: signals.to_owned(), partition };
        let mut reader = PartitionReader::open(log, source, topic.offsets[partition as usize])?;
        while let Some(record) = reader.next()? {
            let signal = decode_signal(&record.value)?;
            let Some(bar) = signal.bar.as_ref().filter(|_| signal.bar_spec == bar_spec) else { continue };
            if let Some(&symbol) = symbols.iter().find(|symbol| **symbol == signal.symbol) {
                closes.entry(symbol).or_default().push(bar.close());
            }
        }
    }
    let of_symbol = |symbol: &String| {
        let closes = closes.get(symbol.as_str()).cloned().ok_or_else(|| {
            UsageError(format!(
                "{signals} has no closed {bar_spec} bar of {symbol}: see `warptape tail {signals} \
                 --from-beginning --symbol {symbol}`"
            ))
        })?;
        Ok(SymbolBars { symbol: symbol.clone(), closes })
    };
    symbols.iter().map(of_symbol).collect()
}
