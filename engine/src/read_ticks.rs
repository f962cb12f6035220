//! Ticks that were decoded where their records were read, so that the core need not wait for the decoding.
//!
//! ```text
//!  source thread   TickReader ── records ──► columns, with the reader's numbers of symbols ──► ReadTicks
//!  core            ReadNumbers ── the partition's numbers, if all symbols have one ──► intake
//! ```
//!
//! They only save time. The core decodes a record by itself if it has no columns, a rejected row, or a symbol without a
//! number. So symbols are numbered as if the core decoded everything.

use warptape_events::tick::{SymbolTable, TickColumns};
use warptape_events::{DecodeTicks, SetEventTime};
use warptape_record::Record;

use crate::side_outputs::tick_record;
use crate::tick_digest::tick_record_digest;

/// Number of a symbol that is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// The ticks of read records.
#[derive(Debug)]
pub struct ReadTicks {
    table: Table,
    /// Number of the first name below. Earlier ticks of the table brought the others.
    names_from: usize,
    /// New symbols of the reader's table, in the order of their numbers.
    names: Vec<String>,
    records: Vec<ReadRecord>,
}

#[derive(Debug)]
struct ReadRecord {
    digest: u64,
    /// Rows of the record; `None` if the core has to decode it.
    columns: Option<Box<TickColumns>>,
}

/// A reader's table of symbols: its reading position's generation, and the number of the table since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Table {
    generation: u64,
    number: u64,
}

/// Decodes the records of a partition from a reading position on.
#[derive(Debug)]
pub struct TickReader {
    table: Table,
    symbols: SymbolTable,
    /// Number of the table's symbols that were passed on.
    told: usize,
    /// Size of the smallest record to decode, in bytes.
    bytes_min: usize,
    /// Number of symbols from which on the table is begun anew. A hostile producer may invent symbols.
    symbols_max: usize,
}

impl TickReader {
    /// Returns a reader for a new reading position. Records of less than `bytes_min` bytes are left to the core, because
    /// handing over a few rows takes longer than decoding them.
    pub fn new(generation: u64, bytes_min: usize, symbols_max: usize) -> Self {
        let table = Table { generation, number: 0 };
        Self { table, symbols: SymbolTable::default(), told: 0, bytes_min, symbols_max }
    }

    /// Decodes records, which follow those of the call before.
    pub fn read(&mut self, records: &[Record], decoder: &mut dyn DecodeTicks) -> ReadTicks {
        if self.symbols.len() > self.symbols_max {
            self.table.number += 1;
            (self.symbols, self.told) = (SymbolTable::default(), 0);
        }
        let read =
            |record| ReadRecord { digest: tick_record_digest(record), columns: self.decode(record, decoder) };
        let records = records.iter().map(read).collect();
        let names_from = self.told;
        self.told = self.symbols.len();
        let names = self.symbols.iter().skip(names_from).map(str::to_owned).collect();
        ReadTicks { table: self.table, names_from, names, records }
    }

    fn decode(&mut self, record: &Record, decoder: &mut dyn DecodeTicks) -> Option<Box<TickColumns>> {
        let value = tick_record(record).ok()?.value;
        if value.len() < self.bytes_min || SetEventTime::of(value).is_some() {
            return None;
        }
        let mut columns = Box::<TickColumns>::default();
        decoder.decode(value, &mut self.symbols, &mut columns).ok()?;
        columns.rejected.is_empty().then_some(columns)
    }
}

/// A partition's numbers of the symbols in a reader's table.
#[derive(Debug, Default)]
pub(crate) struct ReadNumbers {
    table: Table,
    /// The partition's numbers, by those of the table; [`UNKNOWN`] if there is none yet.
    numbers: Vec<u32>,
    /// Names, by number in the table; `None` once the partition's number is known.
    names: Vec<Option<String>>,
}

impl ReadNumbers {
    /// Takes over the new symbols of a table.
    pub(crate) fn begin(&mut self, ticks: &mut ReadTicks) {
        if self.table != ticks.table {
            *self = Self { table: ticks.table, ..Self::default() };
        }
        // Ticks in between may have been dropped, and the names with them. Then these ticks are of no use.
        if ticks.names_from == self.names.len() {
            self.names.extend(ticks.names.drain(..).map(Some));
            self.numbers.resize(self.names.len(), UNKNOWN);
        }
    }

    /// Returns the rows of a record with the partition's numbers of symbols; `None` if the record has to be decoded.
    pub(crate) fn take(
        &mut self,
        ticks: &mut ReadTicks,
        index: usize,
        symbols: &SymbolTable,
    ) -> Option<TickColumns> {
        let mut columns = ticks.records.get_mut(index)?.columns.take()?;
        for &given in &columns.symbol {
            if *self.numbers.get(given as usize)? == UNKNOWN && !self.look_up(given as usize, symbols) {
                return None;
            }
        }
        for symbol in &mut columns.symbol {
            *symbol = self.numbers[*symbol as usize];
        }
        Some(*columns)
    }

    /// Looks a symbol up in the partition. Returns false if it has no number.
    #[cold]
    fn look_up(&mut self, given: usize, symbols: &SymbolTable) -> bool {
        let Some(number) = self.names[given].as_deref().and_then(|name| symbols.id(name)) else {
            return false;
        };
        (self.numbers[given], self.names[given]) = (number, None);
        true
    }
}

impl ReadTicks {
    /// Returns the digest of a record.
    pub(crate) fn digest(&self, index: usize) -> u64 {
        self.records[index].digest
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::DecodeError;
    use warptape_events::tick::{Scales, Side, Tick, TickKind};

    use super::*;

    fn tick() -> Tick {
        Tick {
            symbol: String::new(),
            kind: TickKind::Trade,
            event_time_ns: 1,
            receive_time_ns: 0,
            trade_id: 0,
            side: Side::None,
            price_e9: 1,
            size_e9: 1,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        }
    }

    /// Decodes each byte to a row of a symbol with this letter. A `!` is a rejected record.
    #[derive(Debug)]
    struct Letters;

    impl DecodeTicks for Letters {
        fn decode(
            &mut self,
            payload: &[u8],
            symbols: &mut SymbolTable,
            out: &mut TickColumns,
        ) -> Result<usize, DecodeError> {
            if payload.contains(&b'!') {
                return Err(DecodeError::Truncated { length: payload.len() });
            }
            for &letter in payload {
                out.push(&Tick { symbol: char::from(letter).to_string(), ..tick() }, symbols);
            }
            Ok(payload.len())
        }

        fn rows_alone(&mut self, _: &[u8], _: &[&[u32]]) -> Vec<Vec<u8>> {
            unreachable!("nothing is rejected row by row")
        }
    }

    fn read(reader: &mut TickReader, values: &[&str]) -> ReadTicks {
        let record = |(offset, value): (i64, &&str)| Record {
            offset,
            key: None,
            headers: Vec::new(),
            timestamp_ns: 0,
            value: value.as_bytes().to_vec(),
        };
        let records: Vec<Record> = (0..).zip(values).map(record).collect();
        reader.read(&records, &mut Letters)
    }

    fn table(letters: &str) -> SymbolTable {
        let mut symbols = SymbolTable::default();
        for letter in letters.chars() {
            symbols.intern(&letter.to_string());
        }
        symbols
    }

    #[test]
    fn a_record_has_the_partitions_numbers_once_all_its_symbols_have_one() {
        let (mut reader, mut numbers) = (TickReader::new(1, 2, 9), ReadNumbers::default());
        let mut symbols = table("xba");
        let mut ticks = read(&mut reader, &["abba", "abc", "a", "ab!", "cc"]);
        numbers.begin(&mut ticks);
        let mut take = |index, symbols: &SymbolTable| {
            numbers.take(&mut ticks, index, symbols).map(|columns| columns.symbol)
        };
        assert_eq!(take(0, &symbols), Some(vec![2, 1, 1, 2]));
        assert_eq!(take(1, &symbols), None, "c is new, so the core has to number it");
        assert_eq!(take(2, &symbols), None, "it is small");
        assert_eq!(take(3, &symbols), None, "it is not valid");
        symbols.intern("c");
        assert_eq!(take(4, &symbols), Some(vec![3, 3]));
        assert_eq!(take(5, &symbols), None, "there is no such record");
    }

    #[test]
    fn ticks_after_missing_ones_are_of_no_use_until_the_next_table() {
        let (mut reader, mut numbers) = (TickReader::new(1, 0, 9), ReadNumbers::default());
        let symbols = table("abc");
        let mut take = |mut ticks: ReadTicks| {
            numbers.begin(&mut ticks);
            numbers.take(&mut ticks, 0, &symbols).map(|columns| columns.symbol)
        };
        assert_eq!(take(read(&mut reader, &["a"])), Some(vec![0]));
        drop(read(&mut reader, &["b"]));
        assert_eq!(take(read(&mut reader, &["c"])), None);
        assert_eq!(take(read(&mut reader, &["a"])), Some(vec![0]), "its name came in time");
        let mut reader = TickReader::new(2, 0, 9);
        assert_eq!(take(read(&mut reader, &["cb"])), Some(vec![2, 1]));
    }

    #[test]
    fn a_table_with_too_many_symbols_is_begun_anew() {
        let (mut reader, mut numbers) = (TickReader::new(1, 0, 2), ReadNumbers::default());
        let symbols = table("abcd");
        for value in ["ab", "abc", "dc"] {
            let mut ticks = read(&mut reader, &[value]);
            numbers.begin(&mut ticks);
            let columns = numbers.take(&mut ticks, 0, &symbols).expect("all symbols are known");
            let names: String = columns.symbol.iter().map(|&number| symbols.name(number)).collect();
            assert_eq!(names, value);
        }
        assert_eq!((reader.table.number, reader.symbols.len()), (1, 2));
    }

    #[test]
    fn digests_are_those_of_the_records() {
        let records = read(&mut TickReader::new(1, 9, 9), &["a", "b"]);
        let record = |offset, value: &[u8]| {
            let (key, headers, timestamp_ns, value) = (None, Vec::new(), 0, value.to_vec());
            tick_record_digest(&Record { offset, key, headers, timestamp_ns, value })
        };
        assert_eq!([records.digest(0), records.digest(1)], [record(0, b"a"), record(1, b"b")]);
    }
}
