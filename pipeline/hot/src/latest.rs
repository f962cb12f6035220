//! The newest signals read so far. Older ones need not be written.
//!
//! A pure fold, in ascending order of offsets. It does not know where the signals are written.

use std::collections::HashMap;

use warptape_eventlog::Record;
use warptape_schemas::journal::{GroupIndex, PartitionId};
use warptape_schemas::signal::SignalKind;
use warptape_schemas::{DecodeError, Describer, decode_signal};

use crate::keys::{LATEST, SignalValue, signal_field};

/// The newest signal of each symbol, bar specification and kind in one partition.
#[derive(Debug, Default)]
pub(super) struct Latest {
    symbols: HashMap<String, Vec<Entry>>,
    entries: usize,
}

#[derive(Debug)]
struct Entry {
    kind: SignalKind,
    bar_spec: Box<str>,
    /// Name of an alert or fault of formulas.
    name: Option<Box<str>>,
    record: Record,
}

impl Latest {
    /// Adds a record of the topic of signals. An unreadable record changes nothing.
    pub(super) fn push(&mut self, record: Record) -> Result<(), DecodeError> {
        let signal = decode_signal(&record.value)?;
        let (kind, bar_spec) = (signal.kind, signal.bar_spec);
        let name: Option<Box<str>> = signal.name.as_deref().map(Into::into);
        let entry =
            |bar_spec: &str, record| Entry { kind, bar_spec: bar_spec.into(), name: name.clone(), record };
        match self.symbols.get_mut(&*signal.symbol) {
            None => {
                let (symbol, bar_spec) = (signal.symbol.into_owned(), bar_spec.into_owned());
                self.symbols.insert(symbol, vec![entry(&bar_spec, record)]);
            }
            Some(entries) => {
                let mut known = entries.iter_mut();
                let is_it = |known: &&mut Entry| {
                    known.kind == kind && *known.bar_spec == *bar_spec && known.name == name
                };
                if let Some(known) = known.find(is_it) {
                    known.record = record;
                    return Ok(());
                }
                let bar_spec = bar_spec.into_owned();
                entries.push(entry(&bar_spec, record));
            }
        }
        self.entries += 1;
        Ok(())
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Returns and removes all entries: for each symbol, the fields of its hash with their values.
    pub(super) fn take(
        &mut self,
        describer: &Describer,
        partition: PartitionId,
        group_of: impl Fn(&str) -> GroupIndex,
    ) -> Vec<(String, Vec<(String, SignalValue)>)> {
        self.entries = 0;
        let symbols = std::mem::take(&mut self.symbols).into_iter();
        symbols
            .map(|(symbol, entries)| {
                let group = group_of(&symbol);
                let fields = fields(describer, partition, group, entries);
                (symbol, fields)
            })
            .collect()
    }
}

/// Returns the fields of a symbol's hash.
fn fields(
    describer: &Describer,
    partition: PartitionId,
    group: GroupIndex,
    entries: Vec<Entry>,
) -> Vec<(String, SignalValue)> {
    let mut fields: Vec<(String, SignalValue)> = Vec::with_capacity(entries.len() + 1);
    for Entry { bar_spec, name, record, .. } in entries {
        let (_, fields_of_record) = describer
            .describe(&record.value)
            .expect("what was decoded as a signal is a record of a known schema");
        let kind = fields_of_record["kind"].as_str().unwrap_or_default();
        let field = signal_field(&bar_spec, kind, name.as_deref());
        let (offset, committed_ns) = (record.offset, record.timestamp_ns);
        fields
            .push((field, SignalValue { offset, partition, group, committed_ns, record: fields_of_record }));
    }
    if let Some((_, latest)) = fields.iter().max_by_key(|(_, value)| value.offset).cloned() {
        fields.push((LATEST.to_owned(), latest));
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use warptape_schemas::encode_signal;
    use warptape_schemas::signal::Signal;

    use super::*;

    fn record(offset: i64, symbol: &str, bar_spec: &str, kind: SignalKind) -> Record {
        let signal = Signal {
            symbol: Cow::Borrowed(symbol),
            kind,
            bar_spec: Cow::Borrowed(bar_spec),
            bar_start_ns: 0,
            bar_end_ns: 1,
            source_offset: offset,
            source_index: 0,
            value: 1.5,
            threshold: 0.0,
            bar: None,
            name: None,
        };
        let mut value = Vec::new();
        encode_signal(&signal, &mut value);
        Record { offset, key: None, headers: Vec::new(), timestamp_ns: 10 * offset, value }
    }

    #[test]
    fn the_newest_of_each_kind_is_kept() {
        let mut latest = Latest::default();
        for (offset, symbol, bar_spec, kind) in [
            (1, "A:X", "1s", SignalKind::Bar),
            (2, "A:X", "1m", SignalKind::Bar),
            (3, "A:Y", "1s", SignalKind::Bar),
            (4, "A:X", "1s", SignalKind::Bar),
            (5, "A:X", "1s", SignalKind::EmaCrossUp),
            (6, "A:Y", "1s", SignalKind::Bar),
        ] {
            latest.push(record(offset, symbol, bar_spec, kind)).expect("a signal");
        }
        assert_eq!(latest.len(), 4);
        let describer = Describer::new();
        let group_of = |symbol: &str| symbol.len() as GroupIndex + symbol.ends_with('Y') as GroupIndex;
        let mut found: Vec<_> = latest
            .take(&describer, 2, group_of)
            .into_iter()
            .flat_map(|(symbol, fields)| {
                fields.into_iter().map(move |(field, value)| (symbol.clone(), field, value))
            })
            .map(|(symbol, field, value)| {
                assert_eq!((value.partition, value.group), (2, group_of(&symbol)));
                assert_eq!(value.committed_ns, 10 * value.offset);
                assert_eq!(value.record["source_offset"], value.offset);
                (symbol, field, value.offset)
            })
            .collect();
        found.sort();
        let expected = [
            ("A:X", "1m/BAR", 2),
            ("A:X", "1s/BAR", 4),
            ("A:X", "1s/EMA_CROSS_UP", 5),
            ("A:X", "latest", 5),
            ("A:Y", "1s/BAR", 6),
            ("A:Y", "latest", 6),
        ];
        let found: Vec<_> =
            found.iter().map(|(symbol, field, offset)| (&**symbol, &**field, *offset)).collect();
        assert_eq!(found, expected);
        assert_eq!((latest.len(), latest.take(&describer, 2, group_of).len()), (0, 0));
    }

    #[test]
    fn what_is_no_signal_changes_nothing() {
        let mut latest = Latest::default();
        let damaged = Record { value: vec![1, 2, 3], ..record(1, "A:X", "1s", SignalKind::Bar) };
        assert!(latest.push(damaged).is_err());
        assert_eq!(latest.len(), 0);
    }
}
