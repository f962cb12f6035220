//! Rows on their way to a device.

use std::ops::Range;

use bytemuck::{Pod, cast_slice_mut};

use super::Address;
use crate::bars::Quote;
use crate::bars::device::{DeviceMark, DeviceQuote, DeviceTrade, FoldArgs};
use crate::rows::{RowKind, Rows};

/// Alignment of the arrays within one piece of memory, in bytes.
pub(super) const ALIGNMENT: usize = 256;

/// The rows of a group in a batch.
pub struct GroupRows<'a> {
    /// Slots on the device, by the slots' numbers in the group.
    pub slots: &'a [u32],
    /// Rows of the group.
    pub rows: &'a Rows,
    /// Range of the rows to process.
    pub range: Range<usize>,
}

/// Rows of groups, counted by slot. They are written sorted by slot, in log order within a slot. Trades, quotes and
/// watermarks are in separate lists. The *place* of a slot is its number over the slots of all groups, the first
/// group's first.
pub struct StagedRows<'a> {
    groups: &'a [GroupRows<'a>],
    marks: usize,
    /// Index of the first trade of each place, then the number of trades. Below: the same for quotes.
    trade_begin: Vec<u32>,
    quote_begin: Vec<u32>,
}

/// Consecutive arrays, and their address on the device.
struct Arrays<'a> {
    memory: &'a mut [u8],
    at: Address,
}

/// Distance in bytes from the beginning of an array to that of the next one.
pub(super) fn padded<T>(count: usize) -> usize {
    (count * size_of::<T>()).next_multiple_of(ALIGNMENT)
}

impl<'a> Arrays<'a> {
    /// The next array, with its address.
    fn take<T: Pod>(&mut self, count: usize) -> (&'a mut [T], Address) {
        let (array, rest) = std::mem::take(&mut self.memory).split_at_mut(padded::<T>(count));
        let at = self.at;
        self.memory = rest;
        self.at += array.len() as Address;
        (cast_slice_mut(&mut array[..count * size_of::<T>()]), at)
    }
}

impl<'a> StagedRows<'a> {
    /// Counts the rows of groups. Rows are numbered in 32 bits over all groups, including those outside of the ranges.
    pub fn count(groups: &'a [GroupRows<'a>]) -> Self {
        let rows_total: usize = groups.iter().map(|group| group.rows.len()).sum();
        assert!(rows_total < u32::MAX as usize, "rows of a batch are counted in 32 bits");
        let places: usize = groups.iter().map(|group| group.slots.len()).sum();
        assert!(places < DeviceTrade::PLACES_MAX, "places of a batch are counted in 26 bits");
        let (mut trade_begin, mut quote_begin) = (vec![0_u32; places + 1], vec![0_u32; places + 1]);
        let (mut first_place, mut marks) = (0, 0);
        for GroupRows { slots, rows, range } in groups {
            let places = first_place + 1..first_place + 1 + slots.len();
            let (trades, quotes) = (&mut trade_begin[places.clone()], &mut quote_begin[places]);
            for (kind, slot) in rows.kind[range.clone()].iter().zip(&rows.slot[range.clone()]) {
                match kind.base() {
                    RowKind::QUOTE => quotes[*slot as usize] += 1,
                    RowKind::WATERMARK => marks += 1,
                    RowKind::BARRIER => {}
                    _ => trades[*slot as usize] += 1,
                }
            }
            first_place += slots.len();
        }
        for begins in [&mut trade_begin, &mut quote_begin] {
            (0..places).for_each(|place| begins[place + 1] += begins[place]);
        }
        Self { groups, marks, trade_begin, quote_begin }
    }

    fn places(&self) -> usize {
        self.trade_begin.len() - 1
    }

    fn trades(&self) -> usize {
        self.trade_begin[self.places()] as usize
    }

    fn quotes(&self) -> usize {
        self.quote_begin[self.places()] as usize
    }

    /// Bytes of the rows in the device's memory.
    pub fn bytes(&self) -> usize {
        let (places, trades, quotes, marks) = (self.places(), self.trades(), self.quotes(), self.marks);
        let by_place = 2 * padded::<u32>(places) + 2 * padded::<u32>(places + 1);
        let of_rows =
            padded::<DeviceTrade>(trades) + padded::<DeviceQuote>(quotes) + padded::<DeviceMark>(marks);
        by_place + padded::<u32>(self.groups.len() + 1) + of_rows
    }

    /// Writes the rows to memory that is to be copied to an address of the device. Returns the kernels' arguments that
    /// follow from the rows: counts and addresses.
    pub fn write(mut self, memory: &mut [u8], at: Address) -> FoldArgs {
        let (places, trades, quotes) = (self.places(), self.trades(), self.quotes());
        let mut arrays = Arrays { memory, at };
        let (slots, slot) = arrays.take::<u32>(places);
        let (groups, group) = arrays.take::<u32>(places);
        let (trade_begins, trade_begin) = arrays.take::<u32>(places + 1);
        let (trades_out, trade) = arrays.take::<DeviceTrade>(trades);
        let (quote_begins, quote_begin) = arrays.take::<u32>(places + 1);
        let (quotes_out, quote) = arrays.take::<DeviceQuote>(quotes);
        let (mark_begins, mark_begin) = arrays.take::<u32>(self.groups.len() + 1);
        let (marks_out, mark) = arrays.take::<DeviceMark>(self.marks);

        trade_begins.copy_from_slice(&self.trade_begin);
        quote_begins.copy_from_slice(&self.quote_begin);
        mark_begins[0] = 0;
        let (mut first_place, mut first_row, mut marks) = (0, 0, 0);
        for (number, GroupRows { slots: of_group, rows, range }) in self.groups.iter().enumerate() {
            let places = first_place..first_place + of_group.len();
            slots[places.clone()].copy_from_slice(of_group);
            groups[places].fill(number as u32);
            let mut quote_sizes = rows.quote_sizes[rows.quotes_before(range.start)..].iter();
            for row in range.clone() {
                let (place, number) = (first_place + rows.slot[row] as usize, (first_row + row) as u32);
                let (time_ns, price_e9, size_e9) = (rows.time_ns[row], rows.price_e9[row], rows.size_e9[row]);
                match rows.kind[row].base() {
                    RowKind::QUOTE => {
                        let next = &mut self.quote_begin[place];
                        let sizes = *quote_sizes.next().expect("each quote has an entry");
                        let quote = Quote::of(rows, row, sizes);
                        quotes_out[*next as usize] = DeviceQuote::new(place as u32, number, quote);
                        *next += 1;
                    }
                    RowKind::WATERMARK => {
                        marks_out[marks] = DeviceMark { row: number.into(), time_ns };
                        marks += 1;
                    }
                    RowKind::BARRIER => {}
                    _ => {
                        let next = &mut self.trade_begin[place];
                        let trade = DeviceTrade::new(
                            place as u32,
                            rows.kind[row],
                            number,
                            [time_ns, price_e9, size_e9],
                        );
                        trades_out[*next as usize] = trade;
                        *next += 1;
                    }
                }
            }
            mark_begins[number + 1] = marks as u32;
            first_place += of_group.len();
            first_row += rows.len();
        }
        FoldArgs {
            places: places as u64,
            slot,
            group,
            trades: trades as u64,
            trade_begin,
            trade,
            quotes: quotes as u64,
            quote_begin,
            quote,
            mark_begin,
            mark,
            ..FoldArgs::default()
        }
    }
}
