//! The rows of one group in log order, as columns.

/// What a row is. A trade whose size does not fit into 64 bits in units of 1e-9 says by its kind in which unit the size is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowKind(u8);

impl RowKind {
    /// A trade of one slot.
    pub const TRADE: Self = Self(0);
    /// A change of one slot's best bid or ask.
    pub const QUOTE: Self = Self(1);
    /// The partition's watermark crossed a bar boundary.
    pub const WATERMARK: Self = Self(2);
    /// A position at which a snapshot of the state is taken; kernels ignore it.
    pub const BARRIER: Self = Self(3);

    /// A trade whose size is counted in `10^exponent` of 1e-9.
    ///
    /// # Panics
    /// If the exponent is greater than [`SIZE_EXPONENT_MAX`].
    pub fn trade(exponent: u32) -> Self {
        assert!(exponent <= SIZE_EXPONENT_MAX, "sizes are counted in 1 at most");
        if exponent == 0 { Self::TRADE } else { Self(Self::BARRIER.0 + exponent as u8) }
    }

    /// Whether it is a trade, of whatever size.
    #[inline(always)]
    pub fn is_trade(self) -> bool {
        self == Self::TRADE || self.0 > Self::BARRIER.0
    }

    /// The exponent of a trade: see [`RowKind::trade`].
    #[inline(always)]
    pub fn exponent(self) -> u32 {
        u32::from(self.0.saturating_sub(Self::BARRIER.0))
    }
}

/// The greatest exponent of a trade's size, with which it is counted in whole units.
pub const SIZE_EXPONENT_MAX: u32 = 9;

/// The most rows for which an emptied queue keeps room: 160 KiB.
const ROOM_ROWS_MAX: usize = 4096;

/// Rows of one group in log order. All columns have the same length; the functions that add rows keep it so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// What the row is.
    pub kind: Vec<RowKind>,
    /// Slot of a trade or quote; 0 in other rows.
    pub slot: Vec<u32>,
    /// Event time of a trade or quote; the watermark; the number of a barrier.
    pub time_ns: Vec<i64>,
    /// Price of a trade, bid price of a quote, in the unit of the slot's prices: 1e-9 unless its symbol has another.
    pub price_e9: Vec<i64>,
    /// Size of a trade, or **ask price** of a quote, in 1e-9; the size of a large trade is in the unit that its kind says.
    pub size_e9: Vec<i64>,
    /// Offset of the record that the row came from.
    pub offset: Vec<i64>,
    /// Number of the row within its record.
    pub index: Vec<u32>,
}

impl Rows {
    /// Memory that one row takes.
    pub const BYTES_PER_ROW: usize = size_of::<RowKind>() + 2 * size_of::<u32>() + 4 * size_of::<i64>();

    /// No rows, with room for `rows` of them.
    fn with_capacity(rows: usize) -> Self {
        Self {
            kind: Vec::with_capacity(rows),
            slot: Vec::with_capacity(rows),
            time_ns: Vec::with_capacity(rows),
            price_e9: Vec::with_capacity(rows),
            size_e9: Vec::with_capacity(rows),
            offset: Vec::with_capacity(rows),
            index: Vec::with_capacity(rows),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are no rows.
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
    pub fn push_large_trade(
        &mut self,
        slot: u32,
        time_ns: i64,
        price_e9: i64,
        (size, exponent): (i64, u32),
        offset: i64,
        index: u32,
    ) {
        self.push(RowKind::trade(exponent), slot, time_ns, price_e9, size, offset, index);
    }

    /// Adds a quote; a price of 0 says that the side has no orders.
    #[inline]
    pub fn push_quote(&mut self, slot: u32, time_ns: i64, bid_e9: i64, ask_e9: i64, offset: i64, index: u32) {
        self.push(RowKind::QUOTE, slot, time_ns, bid_e9, ask_e9, offset, index);
    }

    /// Adds a watermark at the position of the tick that moved it.
    #[inline]
    pub fn push_watermark(&mut self, watermark_ns: i64, offset: i64, index: u32) {
        self.push(RowKind::WATERMARK, 0, watermark_ns, 0, 0, offset, index);
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

    /// Adds the trades and quotes with these numbers within the record at `offset`; each function gives one column of a row
    /// by its number.
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
    ) {
        let numbers = indexes.iter().map(|index| *index as usize);
        self.kind.extend(numbers.clone().map(kind));
        self.slot.extend(numbers.clone().map(slot));
        self.time_ns.extend(numbers.clone().map(time_ns));
        self.price_e9.extend(numbers.clone().map(price_e9));
        self.size_e9.extend(numbers.map(size_e9));
        self.offset.resize(self.offset.len() + indexes.len(), offset);
        self.index.extend_from_slice(indexes);
    }

    /// Moves all rows of `other` behind these.
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
        self.offset.append(&mut other.offset);
        self.index.append(&mut other.index);
    }

    /// Removes and returns the first `rows` rows, or all where there are fewer. Taking all moves none, and leaves room
    /// for as many, up to a limit: more are likely to come. Otherwise the rows that stay are moved.
    pub fn take_front(&mut self, rows: usize) -> Rows {
        if rows >= self.len() {
            let room = Self::with_capacity(self.len().min(ROOM_ROWS_MAX));
            return std::mem::replace(self, room);
        }
        Rows {
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
