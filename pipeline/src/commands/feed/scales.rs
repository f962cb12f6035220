//! The scales of symbols' prices in the log, set by each symbol's first tick there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cli::Interrupt;
use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_schemas::{SymbolTable, TickColumns, TickDecoder};
use warptape_sources::partition_of;

/// Greatest number of records and bytes of one read.
const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 4 << 20;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Returns the scales of the symbols that have ticks in the log. Reads their partitions from the beginning until all
/// are found.
pub fn scales_in_log(
    log: &dyn EventLog,
    topic: &str,
    partitions: i32,
    symbols: &BTreeSet<String>,
    interrupt: &Interrupt,
) -> Result<BTreeMap<String, u8>, LogError> {
    let mut wanted: BTreeMap<i32, BTreeSet<&str>> = BTreeMap::new();
    for symbol in symbols {
        wanted.entry(partition_of(symbol, partitions)).or_default().insert(symbol);
    }
    let mut found = BTreeMap::new();
    for (partition, mut wanted) in wanted {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let mut reader = log.reader(std::slice::from_ref(&source))?;
        let end = log.written_end(&source)?;
        let (mut decoder, mut names) = (TickDecoder::new().by_rows(true), SymbolTable::default());
        let mut columns = TickColumns::default();
        while !wanted.is_empty() && !interrupt.is_set() && reader.position(&source)? < end {
            let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            else {
                continue;
            };
            for record in records {
                columns.clear();
                // `run` turns an unreadable record into a dead letter, which sets no scale.
                if decoder.decode(&record.value, &mut names, &mut columns).is_err() {
                    continue;
                }
                for row in columns.good_rows() {
                    let name = names.name(columns.symbol[row]);
                    if wanted.remove(name) {
                        found.insert(name.to_owned(), columns.scales_of(row).price);
                    }
                }
            }
        }
    }
    Ok(found)
}
