//! The rows of one group in log order, as columns.

/// The kind of a row, in two bits. Four more bits have the unit of its sizes, if these do not fit into 64 bits in units
/// of 1e-9. The last two have the aggressor of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKind(u8);

/// The side that crossed the spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Aggressor {
    /// Unknown.
    #[default]
    Unknown = 0,
    /// The buyer.
    Buyer = 1,
    /// The seller.
    Seller = 2,
}

impl RowKind {
    /// A trade of one slot.
    pub const TRADE: Self = Self(0);
    /// A change of one slot's best bid or ask.
    pub const QUOTE: Self = Self(1);
    /// The partition's watermark crossed a bar boundary.
    pub const WATERMARK: Self = Self(2);
    /// A position at which a snapshot of the state is taken; kernels ignore it.
    pub const BARRIER: Self = Self(3);
    /// A watermark that closes bars before their ends.
    pub const CUT: Self = Self(2 | 1 << Self::AGGRESSOR);

    const KIND_MASK: u8 = 3;
    const EXPONENT: u32 = 2;
    const EXPONENT_MASK: u8 = 15;
    const AGGRESSOR: u32 = 6;

    /// A trade whose size is counted in `10^exponent` of 1e-9.
    ///
    /// # Panics
    /// If the exponent is greater than [`SIZE_EXPONENT_MAX`].
    #[inline(always)]
    pub fn trade(exponent: u32, aggressor: Aggressor) -> Self {
        Self(Self::TRADE.of_exponent(exponent).0 | (aggressor as u8) << Self::AGGRESSOR)
    }

    /// A quote whose sizes are counted in `10^exponent` of 1e-9.
    ///
    /// # Panics
    /// If the exponent is greater than [`SIZE_EXPONENT_MAX`].
    #[inline(always)]
    pub fn quote(exponent: u32) -> Self {
        Self::QUOTE.of_exponent(exponent)
    }

    #[inline(always)]
    fn of_exponent(self, exponent: u32) -> Self {
        assert!(exponent <= SIZE_EXPONENT_MAX, "sizes are counted in 1 at most");
        Self(self.0 | (exponent as u8) << Self::EXPONENT)
    }

    /// One of the four kinds, without the other bits.
    #[inline(always)]
    pub fn base(self) -> Self {
        Self(self.0 & Self::KIND_MASK)
    }

    /// True if it is a trade.
    #[inline(always)]
    pub fn is_trade(self) -> bool {
        self.base() == Self::TRADE
    }

    /// True if it is a quote.
    #[inline(always)]
    pub fn is_quote(self) -> bool {
        self.base() == Self::QUOTE
    }

    /// The exponent of a trade's or quote's size: see [`RowKind::trade`].
    #[inline(always)]
    pub fn exponent(self) -> u32 {
        u32::from(self.0 >> Self::EXPONENT & Self::EXPONENT_MASK)
    }

    /// 0, or the [`Aggressor`] of a trade.
    #[inline(always)]
    pub fn aggressor(self) -> u32 {
        u32::from(self.0 >> Self::AGGRESSOR)
    }
}

/// Special size for a side without orders.
pub const ABSENT: i64 = -1;

/// The greatest exponent of a trade's size, for sizes in whole units.
pub const SIZE_EXPONENT_MAX: u32 = 9;

/// Most rows for which an emptied queue keeps memory: 160 KiB.
const ROOM_ROWS_MAX: usize = 4096;

/// Rows of one group in log order. All columns have the same length, except `quote_sizes`; the functions that add rows
/// ensure that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The kind of the row.
    pub kind: Vec<RowKind>,
    /// Slot of a trade or quote; 0 in other rows.
    pub slot: Vec<u32>,
    /// Event time of a trade or quote, the watermark, or the number of a barrier, depending on the kind.
    pub time_ns: Vec<i64>,
    /// Price of a trade, or bid price of a quote; for a cut see [`Rows::push_cut`]. The unit is that of the symbol's
    /// prices, usually 1e-9.
    pub price_e9: Vec<i64>,
    /// Size of a trade, or **ask price** of a quote, in 1e-9; the kind has the unit of a large trade's size.
    pub size_e9: Vec<i64>,
    /// Sizes of bid and ask for each quote, in the unit of its kind. 0 if they are unknown, [`ABSENT`] for a side
    /// without orders.
    pub quote_sizes: Vec<[i64; 2]>,
    /// Offset of the row's record.
    pub offset: Vec<i64>,
    /// Number of the row within its record.
    pub index: Vec<u32>,
}

impl Rows {
    /// Memory of one row in bytes, without the sizes of quotes.
    pub const BYTES_PER_ROW: usize = size_of::<RowKind>() + 2 * size_of::<u32>() + 4 * size_of::<i64>();

    /// No rows, with memory for `rows` of them.
    fn with_capacity(rows: usize) -> Self {
        Self {
            kind: Vec::with_capacity(rows),
            slot: Vec::with_capacity(rows),
            time_ns: Vec::with_capacity(rows),
            price_e9: Vec::with_capacity(rows),
            size_e9: Vec::with_capacity(rows),
            quote_sizes: Vec::new(),
            offset: Vec::with_capacity(rows),
            index: Vec::with_capacity(rows),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Adds a trade.
    #[inline]
    pub fn push_trade(
        &mut self,
        slot: u32,
        time_ns: i64,
        price_e9: i64,
        size_e9: i64,
        offset: i64,
        index: u32,
    ) {
        self.push(RowKind::TRADE, slot, time_ns, price_e9, size_e9, offset, index);
    }

    /// Adds a trade of `size` in `10^exponent` of 1e-9.
    #[inline]
    pub fn push_trade_of(
        &mut self,
        slot: u32,
        time_ns: i64,
        price_e9: i64,
        (size, exponent, aggressor): (i64, u32, Aggressor),
        offset: i64,
        index: u32,
    ) {
        self.push(RowKind::trade(exponent, aggressor), slot, time_ns, price_e9, size, offset, index);
    }

    /// Adds a quote without sizes.
    #[inline]
    pub fn push_quote(&mut self, slot: u32, time_ns: i64, bid_e9: i64, ask_e9: i64, offset: i64, index: u32) {
        self.push_quote_of(slot, time_ns, [bid_e9, ask_e9], ([0; 2], 0), offset, index);
    }

    /// Adds a quote with sizes in `10^exponent` of 1e-9.
    #[inline]
    pub fn push_quote_of(
        &mut self,
        slot: u32,
        time_ns: i64,
        [bid_e9, ask_e9]: [i64; 2],
        (sizes, exponent): ([i64; 2], u32),
        offset: i64,
        index: u32,
    ) {
        self.push(RowKind::quote(exponent), slot, time_ns, bid_e9, ask_e9, offset, index);
        self.quote_sizes.push(sizes);
    }

    /// Adds a watermark at the position of the tick that moved it.
    #[inline]
    pub fn push_watermark(&mut self, watermark_ns: i64, offset: i64, index: u32) {
        self.push(RowKind::WATERMARK, 0, watermark_ns, 0, 0, offset, index);
    }

    /// Adds a watermark that closes bars before their ends. `seen_since_ns` is the event time since which ticks are
    /// seen, from this row on; 0 if it does not change.
    pub fn push_cut(&mut self, watermark_ns: i64, seen_since_ns: i64, offset: i64, index: u32) {
        self.push(RowKind::CUT, 0, watermark_ns, seen_since_ns, 0, offset, index);
    }

    /// The event time since which ticks are seen, from a row on; `None` unless the row is a cut that changes it.
    pub fn seen_since_ns(&self, row: usize) -> Option<i64> {
        (self.kind[row] == RowKind::CUT).then_some(self.price_e9[row]).filter(|&time_ns| time_ns != 0)
    }

    /// Number of quotes before a row.
    pub fn quotes_before(&self, row: usize) -> usize {
        match row {
            0 => 0,
            row if row == self.len() => self.quote_sizes.len(),
            row => self.kind[..row].iter().filter(|kind| kind.is_quote()).count(),
        }
    }

    /// Adds a barrier.
    pub fn push_barrier(&mut self, barrier: i64, offset: i64, index: u32) {
        self.push(RowKind::BARRIER, 0, barrier, 0, 0, offset, index);
    }

    // Called once per tick, on the engine's own thread.
    #[expect(clippy::too_many_arguments, reason = "one per column")]
    #[inline(always)]
    fn push(
        &mut self,
        kind: RowKind,
        slot: u32,
        time_ns: i64,
        price: i64,
        size: i64,
        offset: i64,
        index: u32,
    ) {
        self.kind.push(kind);
        self.slot.push(slot);
        self.time_ns.push(time_ns);
        self.price_e9.push(price);
        self.size_e9.push(size);
        self.offset.push(offset);
        self.index.push(index);
    }

    /// Adds the trades and quotes with these numbers within the record at `offset`. Each function returns one column of
    /// a row by its number; the last one returns `None` for a trade.
    #[expect(clippy::too_many_arguments, reason = "one per column")]
    pub fn extend_record(
        &mut self,
        offset: i64,
        indexes: &[u32],
        kind: impl Fn(usize) -> RowKind,
        slot: impl Fn(usize) -> u32,
        time_ns: impl Fn(usize) -> i64,
        price_e9: impl Fn(usize) -> i64,
        size_e9: impl Fn(usize) -> i64,
        quote_sizes: impl Fn(usize) -> Option<[i64; 2]>,
    ) {
        let numbers = indexes.iter().map(|index| *index as usize);
        self.kind.extend(numbers.clone().map(kind));
        self.slot.extend(numbers.clone().map(slot));
        self.time_ns.extend(numbers.clone().map(time_ns));
        self.price_e9.extend(numbers.clone().map(price_e9));
        self.size_e9.extend(numbers.clone().map(size_e9));
        self.quote_sizes.extend(numbers.filter_map(quote_sizes));
        self.offset.resize(self.offset.len() + indexes.len(), offset);
        self.index.extend_from_slice(indexes);
    }

    /// Moves all rows of `other` after these.
    pub fn append(&mut self, other: &mut Rows) {
        if self.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        self.kind.append(&mut other.kind);
        self.slot.append(&mut other.slot);
        self.time_ns.append(&mut other.time_ns);
        self.price_e9.append(&mut other.price_e9);
        self.size_e9.append(&mut other.size_e9);
        self.quote_sizes.append(&mut other.quote_sizes);
        self.offset.append(&mut other.offset);
        self.index.append(&mut other.index);
    }

    /// Removes and returns the first `rows` rows, or all if there are fewer. If it takes all, no row is moved, and
    /// memory for as many is reserved, up to a limit, because more are likely to arrive. Otherwise the remaining rows
    /// are moved.
    pub fn take_front(&mut self, rows: usize) -> Rows {
        if rows >= self.len() {
            let mut room = Self::with_capacity(self.len().min(ROOM_ROWS_MAX));
            room.quote_sizes.reserve(self.quote_sizes.len().min(ROOM_ROWS_MAX));
            return std::mem::replace(self, room);
        }
        let quotes = self.quotes_before(rows);
        Rows {
            quote_sizes: self.quote_sizes.drain(..quotes).collect(),
            kind: self.kind.drain(..rows).collect(),
            slot: self.slot.drain(..rows).collect(),
            time_ns: self.time_ns.drain(..rows).collect(),
            price_e9: self.price_e9.drain(..rows).collect(),
            size_e9: self.size_e9.drain(..rows).collect(),
            offset: self.offset.drain(..rows).collect(),
            index: self.index.drain(..rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(range: std::ops::Range<u32>) -> Rows {
        let mut rows = Rows::default();
        for index in range {
            match index % 4 {
                0 => rows.push_trade(index, 1, 2, 3, 4, index),
                1 => rows.push_quote(index, 1, 2, 3, 4, index),
                2 => rows.push_watermark(1, 4, index),
                _ => rows.push_barrier(1, 4, index),
            }
        }
        rows
    }

    #[test]
    fn front_and_rest_together_are_the_whole() {
        for cut in 0..12 {
            let mut rest = rows(0..10);
            let mut front = rest.take_front(cut);
            assert_eq!(front, rows(0..cut.min(10) as u32));
            front.append(&mut rest);
            assert_eq!(front, rows(0..10));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_row_takes_as_many_bytes_as_it_says() {
        assert_eq!(Rows::BYTES_PER_ROW, 41);
    }
}
