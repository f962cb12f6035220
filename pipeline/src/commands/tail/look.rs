//! A quick look at a record before it is converted to JSON. Most records of a topic have no row of the wanted symbol and
//! time.

use warptape_schemas::{SymbolTable, TickColumns, TickDecoder, decode_signal};

/// Looks at records for rows of a symbol and a range of times.
pub struct Look {
    symbol: Option<String>,
    since_ns: Option<i64>,
    until_ns: Option<i64>,
    decoder: TickDecoder,
    columns: TickColumns,
    /// Symbols of all rows so far.
    symbols: SymbolTable,
    /// Number of these symbols that were passed on.
    passed_on: usize,
}

/// The rows of a record that may be wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Any; the look did not tell.
    Any,
    /// Rows with these indexes, ascending.
    At(Vec<usize>),
}

impl Rows {
    /// Returns true if no row is wanted.
    pub fn are_none(&self) -> bool {
        matches!(self, Self::At(rows) if rows.is_empty())
    }

    /// Returns true if the row with this index may be wanted.
    pub fn have(&self, index: usize) -> bool {
        match self {
            Self::Any => true,
            Self::At(rows) => rows.binary_search(&index).is_ok(),
        }
    }
}

impl Look {
    /// Looks for rows with this symbol, if it is given, and a time in `since_ns..until_ns`.
    pub fn new(symbol: Option<&str>, since_ns: Option<i64>, until_ns: Option<i64>) -> Self {
        Self {
            symbol: symbol.map(str::to_owned),
            since_ns,
            until_ns,
            decoder: TickDecoder::new(),
            columns: TickColumns::default(),
            symbols: SymbolTable::default(),
            passed_on: 0,
        }
    }

    /// Returns the rows of a record that may be wanted. Only ticks and signals that decode without an error are told
    /// apart, so an undecodable record is never left out.
    pub fn at(&mut self, payload: &[u8]) -> Rows {
        if self.symbol.is_none() && self.since_ns.is_none() && self.until_ns.is_none() {
            return Rows::Any;
        }
        if let Ok(signal) = decode_signal(payload) {
            let symbol = self.symbols.intern(&signal.symbol);
            let is_wanted = self.is_wanted(self.wanted(), symbol, signal.bar_end_ns);
            return Rows::At(if is_wanted { vec![0] } else { Vec::new() });
        }
        self.columns.truncate(0);
        if self.decoder.decode(payload, &mut self.symbols, &mut self.columns).is_err() {
            return Rows::Any;
        }
        let (wanted, columns) = (self.wanted(), &self.columns);
        let rows = columns.symbol.iter().zip(&columns.event_time_ns).enumerate();
        let is_wanted =
            |(_, (symbol, time_ns)): &(usize, (&u32, &i64))| self.is_wanted(wanted, **symbol, **time_ns);
        Rows::At(rows.filter(is_wanted).map(|(index, _)| index).collect())
    }

    /// Returns the symbols that the looks since the last call found for the first time.
    pub fn new_symbols(&mut self) -> impl Iterator<Item = &str> {
        let passed_on = std::mem::replace(&mut self.passed_on, self.symbols.len());
        self.symbols.iter().skip(passed_on)
    }

    /// Returns the number of the wanted symbol, once a row had it.
    fn wanted(&self) -> Option<u32> {
        self.symbol.as_deref().and_then(|symbol| self.symbols.id(symbol))
    }

    fn is_wanted(&self, wanted: Option<u32>, symbol: u32, time_ns: i64) -> bool {
        (self.symbol.is_none() || wanted == Some(symbol))
            && self.since_ns.is_none_or(|since_ns| time_ns >= since_ns)
            && self.until_ns.is_none_or(|until_ns| time_ns < until_ns)
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
    use warptape_schemas::{encode_tick, encode_tick_batch};

    use super::*;

    fn tick(symbol: &str, event_time_ns: i64) -> Tick {
        Tick {
            symbol: symbol.to_owned(),
            kind: TickKind::Trade,
            event_time_ns,
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

    #[test]
    fn rows_of_ticks_are_told_apart_and_other_bytes_are_not() {
        let mut batch = Vec::new();
        let ticks = [tick("V:A", 5), tick("V:B", 6), tick("V:A", 9), tick("V:A", 7)];
        encode_tick_batch(&ticks, &mut batch).expect("a batch");
        let mut single = Vec::new();
        encode_tick(&ticks[0], &mut single).expect("a tick");
        for (symbol, since_ns, until_ns, of_batch, of_single) in [
            (None, None, None, Rows::Any, Rows::Any),
            (Some("V:A"), None, None, Rows::At(vec![0, 2, 3]), Rows::At(vec![0])),
            (Some("V:A"), Some(6), Some(9), Rows::At(vec![3]), Rows::At(Vec::new())),
            (None, Some(6), None, Rows::At(vec![1, 2, 3]), Rows::At(Vec::new())),
            (Some("V:C"), None, None, Rows::At(Vec::new()), Rows::At(Vec::new())),
        ] {
            let mut look = Look::new(symbol, since_ns, until_ns);
            assert_eq!((look.at(&batch), look.at(&single)), (of_batch, of_single), "{symbol:?} {since_ns:?}");
            assert_eq!(look.at(b"no record"), Rows::Any);
            assert_eq!(look.at(&batch[..batch.len() - 1]), Rows::Any, "a batch that is cut");
        }
        let mut look = Look::new(Some("V:A"), None, None);
        look.at(&batch);
        assert_eq!(look.new_symbols().collect::<Vec<_>>(), ["V:A", "V:B"]);
        look.at(&batch);
        assert_eq!(look.new_symbols().count(), 0);
    }
}
