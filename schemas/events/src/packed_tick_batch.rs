//! Encoding of records of many ticks with numbers of a fixed width.

use std::borrow::Cow;

use crate::offsets;
use crate::tick::{Scales, Tick, TickKind};
use crate::wire::Wire;

/// Many ticks of one partition in one record, by columns of numbers with a fixed width. Such columns decode faster than
/// the arrays of `ScaledTickBatch`, and take fewer bytes. Trades and quotes have columns of their own, without zeros for
/// the other kind. A record has 1 to 65,536 rows, in log order. A bad row is rejected alone. A field of type `bytes`,
/// except `quotes` and `side`, is a column of unsigned numbers, little endian, one after the other. All numbers of a
/// column have the same width of 0 to 8 bytes: the length of the field divided by the number of items. An empty column
/// has 0 in every item. A number with a base is an offset, which is added to the base. Sums and products must fit into
/// 64 bits with a sign. Prices of a symbol follow the rules of `ScaledTickBatch`.
#[derive(Wire)]
pub struct PackedTickBatch<'a> {
    /// Dictionary of the record's symbols, each `VENUE:TICKER` in 1 to 64 bytes of UTF-8 without control characters.
    /// Unused entries have no effect. A symbol may have several entries, with different scales.
    symbols: Vec<Cow<'a, str>>,
    /// Scale of the prices in each entry's rows: 0 to 18 digits after the decimal point. Empty: 9 for every entry.
    #[wire(default = "[]")]
    price_scale: Vec<i32>,
    /// Scale of the sizes in each entry's rows: 0 to 18 digits after the decimal point. Sizes are kept in units of
    /// 1e-9, so digits after the ninth must be 0. Empty: 9 for every entry.
    #[wire(default = "[]")]
    size_scale: Vec<i32>,
    /// Zeros at the end of all prices of each entry, which the columns leave out: 0 to 18. A price is (`price_base` +
    /// offset) × 10^`price_zeros`, in the entry's price scale. Empty: 0 for every entry.
    #[wire(default = "[]")]
    price_zeros: Vec<i32>,
    /// Zeros at the end of all sizes of each entry, which the columns leave out: 0 to 18. A size is number ×
    /// 10^`size_zeros`, in the entry's size scale. Empty: 0 for every entry.
    #[wire(default = "[]")]
    size_zeros: Vec<i32>,
    /// Base of the prices of each entry, without the zeros left out. Empty: 0 for every entry.
    #[wire(default = "[]")]
    price_base: Vec<i64>,
    /// Base of the trade ids of each entry. Empty: 0 for every entry.
    #[wire(default = "[]")]
    trade_id_base: Vec<i64>,
    /// Number of rows. It is at most the length of `event_time_ns`, so a short record cannot claim many rows.
    rows: i32,
    /// Kind of each row: a bit that is 1 for a quote and 0 for a trade. Row i has bit i modulo 8 of byte i / 8, from
    /// the lowest bit. Unused bits are 0. Empty: every row is a trade.
    #[wire(default = "\"\"")]
    quotes: Vec<u8>,
    /// Entry of each row, which gives its symbol, scales, zeros and bases: the index in `symbols`, from 0.
    #[wire(default = "\"\"")]
    symbol: Vec<u8>,
    /// Base of `event_time_ns`.
    event_time_base_ns: i64,
    /// Unit of the offsets in `event_time_ns`, in nanoseconds; 0 or more.
    event_time_unit_ns: i64,
    /// Time of each row's event at the venue, in nanoseconds since 1970-01-01T00:00:00Z; positive. The time is base +
    /// unit × offset. The width is at least 1.
    event_time_ns: Vec<u8>,
    /// Base of `receive_time_ns`.
    #[wire(default = "0")]
    receive_time_base_ns: i64,
    /// Unit of the offsets in `receive_time_ns`, in nanoseconds; 0 or more.
    #[wire(default = "0")]
    receive_time_unit_ns: i64,
    /// Time at which the recorder received each row, in nanoseconds since the Unix epoch; 0 if unknown. The time is
    /// base + unit × offset.
    #[wire(default = "\"\"")]
    receive_time_ns: Vec<u8>,
    /// Trade id of the venue for each trade, as an offset from its entry's base; the sum is 0 if the id is unknown.
    #[wire(default = "\"\"")]
    trade_id: Vec<u8>,
    /// Aggressor of each trade, in two bits: 0 is `NONE`, 1 is `BUY`, 2 is `SELL`. Trade i has bits 2 (i modulo 4) and
    /// above of byte i / 4. Unused bits are 0. Empty: `NONE` for every trade.
    #[wire(default = "\"\"")]
    side: Vec<u8>,
    /// Price of each trade, as an offset from its entry's base. The price may be negative or 0.
    #[wire(default = "\"\"")]
    price: Vec<u8>,
    /// Size of each trade, without the zeros left out.
    #[wire(default = "\"\"")]
    size: Vec<u8>,
    /// Best bid of each quote, as an offset from its entry's base. The bid is 0 if there is none, and may be negative.
    /// A bid at 0 counts if its size is not 0.
    #[wire(default = "\"\"")]
    bid_price: Vec<u8>,
    /// Size at the best bid of each quote, without the zeros left out. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders.
    #[wire(default = "\"\"")]
    bid_size: Vec<u8>,
    /// Best offer of each quote, as an offset from its entry's base. The offer is 0 if there is none, and may be
    /// negative. An offer at 0 counts if its size is not 0.
    #[wire(default = "\"\"")]
    ask_price: Vec<u8>,
    /// Size at the best offer of each quote, without the zeros left out. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders.
    #[wire(default = "\"\"")]
    ask_size: Vec<u8>,
}

impl<'a> PackedTickBatch<'a> {
    /// Returns a batch of ticks that were checked, each with the index of its symbol and scales in `dictionary`. All
    /// columns have the narrowest width.
    pub fn new(dictionary: &[(&'a str, Scales)], symbol: &[u32], ticks: &[Tick]) -> Self {
        let entries = Entries::of(dictionary.len(), symbol, ticks);
        let (trades, quotes): (Vec<_>, Vec<_>) =
            ticks.iter().zip(symbol).partition(|(tick, _)| tick.kind == TickKind::Trade);
        let event_time = Times::of(ticks, |tick| tick.event_time_ns);
        let receive_time = Times::of(ticks, |tick| tick.receive_time_ns);
        let price = |of: &[Row<'_>], value: fn(&Tick) -> i64| {
            column(of, |entry, tick| entry.price_offset(value(tick)), &entries)
        };
        let size = |of: &[Row<'_>], value: fn(&Tick) -> i64| {
            column(of, |entry, tick| entry.size(value(tick)), &entries)
        };
        let is_e9 = dictionary.iter().all(|(_, scales)| *scales == Scales::E9);
        let scaled = if is_e9 { &[] } else { dictionary };
        Self {
            symbols: dictionary.iter().map(|(symbol, _)| Cow::Borrowed(*symbol)).collect(),
            price_scale: scaled.iter().map(|(_, scales)| scales.price.into()).collect(),
            size_scale: scaled.iter().map(|(_, scales)| scales.size.into()).collect(),
            price_zeros: or_empty(entries.iter().map(|entry| entry.price_zeros as i32)),
            size_zeros: or_empty(entries.iter().map(|entry| entry.size_zeros as i32)),
            price_base: or_empty(entries.iter().map(|entry| entry.price_base)),
            trade_id_base: or_empty(entries.iter().map(|entry| entry.trade_id_base)),
            rows: ticks.len() as i32,
            quotes: bitmap(ticks),
            symbol: offsets::narrowest(&symbol.iter().map(|index| u64::from(*index)).collect::<Vec<_>>()),
            event_time_base_ns: event_time.base_ns,
            event_time_unit_ns: event_time.unit_ns,
            event_time_ns: event_time.offsets_with_bytes(),
            receive_time_base_ns: receive_time.base_ns,
            receive_time_unit_ns: receive_time.unit_ns,
            receive_time_ns: offsets::narrowest(&receive_time.offsets),
            trade_id: column(&trades, |entry, tick| entry.trade_id_offset(tick.trade_id), &entries),
            side: sides(&trades),
            price: price(&trades, |tick| tick.price_e9),
            size: size(&trades, |tick| tick.size_e9),
            bid_price: price(&quotes, |tick| tick.bid_price_e9),
            bid_size: size(&quotes, |tick| tick.bid_size_e9),
            ask_price: price(&quotes, |tick| tick.ask_price_e9),
            ask_size: size(&quotes, |tick| tick.ask_size_e9),
        }
    }
}

/// A tick and its entry of the dictionary.
type Row<'a> = (&'a Tick, &'a u32);

/// Returns a column of these rows.
fn column(rows: &[Row<'_>], offset: impl Fn(&Entry, &Tick) -> u64, entries: &[Entry]) -> Vec<u8> {
    let offsets: Vec<u64> =
        rows.iter().map(|(tick, index)| offset(&entries[**index as usize], tick)).collect();
    offsets::narrowest(&offsets)
}

/// Returns an empty list if all values are 0, because an empty list means that.
fn or_empty<T: Default + PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let values: Vec<T> = values.collect();
    if values.iter().all(|value| *value == T::default()) { Vec::new() } else { values }
}

fn bitmap(ticks: &[Tick]) -> Vec<u8> {
    let byte = |ticks: &[Tick]| ticks.iter().rev().fold(0, |bits, tick| bits << 1 | tick.kind as u8);
    or_empty(ticks.chunks(8).map(byte))
}

fn sides(trades: &[Row<'_>]) -> Vec<u8> {
    let byte =
        |trades: &[Row<'_>]| trades.iter().rev().fold(0, |bits, (tick, _)| bits << 2 | tick.side as u8);
    or_empty(trades.chunks(4).map(byte))
}

/// The bases and zeros of a dictionary's entry.
struct Entry {
    price_base: i64,
    price_zeros: u32,
    /// 10 to the power of `price_zeros`.
    price_unit: i64,
    size_zeros: u32,
    size_unit: i64,
    trade_id_base: i64,
}

impl Entry {
    fn price_offset(&self, price: i64) -> u64 {
        (price / self.price_unit).wrapping_sub(self.price_base) as u64
    }

    fn size(&self, size: i64) -> u64 {
        (size / self.size_unit) as u64
    }

    fn trade_id_offset(&self, trade_id: i64) -> u64 {
        trade_id.wrapping_sub(self.trade_id_base) as u64
    }
}

/// The prices, sizes and trade ids of an entry, gathered tick by tick.
struct Entries {
    prices: Vec<Zeros>,
    sizes: Vec<Zeros>,
    price_min: Vec<Option<i64>>,
    trade_id_min: Vec<Option<i64>>,
}

impl Entries {
    fn of(count: usize, symbol: &[u32], ticks: &[Tick]) -> Vec<Entry> {
        let mut entries = Self {
            prices: vec![Zeros::default(); count],
            sizes: vec![Zeros::default(); count],
            price_min: vec![None; count],
            trade_id_min: vec![None; count],
        };
        ticks.iter().zip(symbol).for_each(|(tick, index)| entries.add(*index as usize, tick));
        (0..count).map(|index| entries.entry(index)).collect()
    }

    fn add(&mut self, index: usize, tick: &Tick) {
        match tick.kind {
            TickKind::Trade => {
                self.add_side(index, tick.price_e9, tick.size_e9);
                put_min(&mut self.trade_id_min[index], tick.trade_id);
            }
            TickKind::Quote => {
                self.add_side(index, tick.bid_price_e9, tick.bid_size_e9);
                self.add_side(index, tick.ask_price_e9, tick.ask_size_e9);
            }
        }
    }

    fn add_side(&mut self, index: usize, price: i64, size: i64) {
        self.prices[index].add(price);
        self.sizes[index].add(size);
        put_min(&mut self.price_min[index], price);
    }

    fn entry(&self, index: usize) -> Entry {
        let [price_zeros, size_zeros] = [&self.prices, &self.sizes].map(|zeros| zeros[index].count());
        let [price_unit, size_unit] = [price_zeros, size_zeros].map(|zeros| 10_i64.pow(zeros));
        Entry {
            price_base: self.price_min[index].unwrap_or(0) / price_unit,
            price_zeros,
            price_unit,
            size_zeros,
            size_unit,
            trade_id_base: self.trade_id_min[index].unwrap_or(0),
        }
    }
}

fn put_min(least: &mut Option<i64>, value: i64) {
    *least = Some(least.map_or(value, |least| least.min(value)));
}

/// The zeros at the end of all numbers of a set.
#[derive(Clone, Default)]
struct Zeros {
    /// The greatest power of ten that divides all numbers; 0 if all are 0.
    unit: i64,
}

impl Zeros {
    fn add(&mut self, number: i64) {
        if self.unit == 0 && number != 0 {
            self.unit = 10_i64.pow(number.unsigned_abs().ilog10());
        }
        while self.unit > 1 && number % self.unit != 0 {
            self.unit /= 10;
        }
    }

    fn count(&self) -> u32 {
        self.unit.checked_ilog10().unwrap_or(0)
    }
}

/// A column of times: base + unit × offset.
struct Times {
    base_ns: i64,
    unit_ns: i64,
    offsets: Vec<u64>,
}

impl Times {
    /// Returns the column of times that are not negative.
    fn of(ticks: &[Tick], time: impl Fn(&Tick) -> i64) -> Self {
        let base_ns = ticks.iter().map(&time).min().unwrap_or(0);
        let mut offsets: Vec<u64> =
            ticks.iter().map(|tick| time(tick).wrapping_sub(base_ns) as u64).collect();
        let unit = offsets.iter().fold(0, |unit, offset| common_divisor(unit, *offset));
        if unit > 1 {
            offsets.iter_mut().for_each(|offset| *offset /= unit);
        }
        // The differences of times that are not negative have at most 63 bits.
        Self { base_ns, unit_ns: unit as i64, offsets }
    }

    /// Returns the offsets in at least one byte each.
    fn offsets_with_bytes(&self) -> Vec<u8> {
        let bytes = offsets::narrowest(&self.offsets);
        if bytes.is_empty() { vec![0; self.offsets.len()] } else { bytes }
    }
}

/// Returns the greatest common divisor. It takes one division if `unit` divides the number, as it mostly does.
fn common_divisor(unit: u64, number: u64) -> u64 {
    if unit == 1 {
        return 1;
    }
    let (mut divisor, mut rest) = (number, unit);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_those_of_all_numbers() {
        let of = |numbers: &[i64]| {
            let mut zeros = Zeros::default();
            numbers.iter().for_each(|number| zeros.add(*number));
            zeros.count()
        };
        assert_eq!([of(&[]), of(&[0]), of(&[0, 700]), of(&[700, 0, -45_000]), of(&[10, 3])], [0, 0, 2, 2, 0]);
        assert_eq!(
            [of(&[i64::MAX]), of(&[i64::MIN]), of(&[5 * 10_i64.pow(18), 0]), of(&[7, 100])],
            [0, 0, 18, 0]
        );
    }

    #[test]
    fn divisors() {
        let of = |numbers: &[u64]| numbers.iter().fold(0, |unit, number| common_divisor(unit, *number));
        assert_eq!([of(&[]), of(&[0, 0]), of(&[0, 6]), of(&[12, 0, 18]), of(&[12, 7])], [0, 0, 6, 6, 1]);
    }
}
