//! Rows of a batch as separate records. Invalid rows keep their faults, so that a producer can correct and resend them.

use std::collections::BTreeMap;

use super::dictionary::Dictionary;
use super::enum_table::{SIDES, TICK_KINDS};
use crate::check::{InvalidTick, TickProblem};
use crate::long_field::LongField;
use crate::symbol_table::SymbolTable;
use crate::tick::{TickColumns, TickKind};
use crate::varint::put_long;
use crate::{frame, known};

/// A batch that was decoded row by row, from an empty table of symbols.
pub(super) struct Rows<'a> {
    columns: &'a TickColumns,
    symbols: &'a SymbolTable,
    dictionary: &'a Dictionary,
}

/// An entry of a dictionary: the symbol, and the scales of prices and sizes.
type Entry<'a> = (&'a [u8], [i64; 2]);

impl<'a> Rows<'a> {
    pub(super) fn new(
        columns: &'a TickColumns,
        symbols: &'a SymbolTable,
        dictionary: &'a Dictionary,
    ) -> Self {
        Self { columns, symbols, dictionary }
    }

    /// Returns a record of these rows, in the published schema that has all necessary fields.
    pub(super) fn encode(&self, selection: &[u32]) -> Vec<u8> {
        let rows = || selection.iter().map(|row| *row as usize);
        // Without scales, a trade needs a price.
        let is_free =
            |row: usize| self.columns.kind[row] == TickKind::Trade && self.columns.price_e9[row] == 0;
        let has_free_trades = self.dictionary.are_scales_optional() && rows().any(is_free);
        let is_scaled = self.dictionary.is_scaled() || has_free_trades;
        let schema = if is_scaled { known::SCALED_TICK_BATCH } else { known::TICK_BATCH };
        let (entries, indexes) = self.entries(selection);
        let mut out = frame::header(schema.fingerprint).to_vec();
        put_array(&mut out, &entries, |out, (symbol, _)| {
            put_long(symbol.len() as i64, out);
            out.extend_from_slice(symbol);
        });
        for scales in 0..if is_scaled { 2 } else { 0 } {
            put_array(&mut out, &entries, |out, (_, scale)| put_long(scale[scales], out));
        }
        let longs = |out: &mut Vec<u8>, values: Vec<i64>| {
            put_array(out, &values, |out, value| put_long(*value, out));
        };
        longs(&mut out, indexes);
        longs(&mut out, rows().map(|row| self.kind(row)).collect());
        // A trade lacks a price if the record has no column of prices. A column of zeros would mean prices of 0.
        let has_no_prices = |row| matches!(self.problem(row), Some(TickProblem::NoPrice));
        let skips_prices = is_scaled && rows().any(has_no_prices);
        for field in LongField::ALL {
            if field == LongField::Price {
                longs(&mut out, rows().map(|row| self.side(row)).collect());
            }
            let column = field.column(self.columns);
            let is_left_out = field == LongField::Price && skips_prices;
            longs(&mut out, if is_left_out { Vec::new() } else { rows().map(|row| column[row]).collect() });
        }
        out
    }

    fn rejected(&self, row: usize) -> Option<&InvalidTick> {
        let rejected = &self.columns.rejected;
        rejected.binary_search_by_key(&row, |invalid| invalid.row).ok().map(|at| &rejected[at])
    }

    fn problem(&self, row: usize) -> Option<TickProblem> {
        self.rejected(row).map(|invalid| invalid.problem)
    }

    /// Returns the published index of a row's kind; an unknown kind stays unknown.
    fn kind(&self, row: usize) -> i64 {
        match self.problem(row) {
            Some(TickProblem::UnknownKind(index)) => unknown(index, TICK_KINDS.len()),
            _ => self.columns.kind[row] as i64,
        }
    }

    /// Returns the published index of a row's side; an unknown side stays unknown.
    fn side(&self, row: usize) -> i64 {
        match self.problem(row) {
            Some(TickProblem::UnknownSide(index)) => unknown(index, SIDES.len()),
            _ => self.columns.side[row] as i64,
        }
    }

    /// Returns the dictionary of these rows, and their indexes into it. A row with an index beyond its old dictionary
    /// gets one beyond the new dictionary.
    fn entries(&self, selection: &[u32]) -> (Vec<Entry<'a>>, Vec<i64>) {
        let (mut entries, mut places) = (Vec::new(), BTreeMap::<Entry<'a>, i64>::new());
        let of_rows: Vec<Option<Entry<'a>>> = selection.iter().map(|row| self.entry(*row as usize)).collect();
        for entry in of_rows.iter().flatten() {
            places.entry(*entry).or_insert_with(|| {
                entries.push(*entry);
                entries.len() as i64 - 1
            });
        }
        let index = |(row, entry): (&u32, &Option<Entry<'a>>)| match entry {
            Some(entry) => places[entry],
            None => match self.problem(*row as usize) {
                Some(TickProblem::UnknownSymbol { index, .. }) if index < 0 => index,
                Some(TickProblem::UnknownSymbol { index, .. }) => index.max(entries.len() as i64),
                _ => entries.len() as i64,
            },
        };
        let indexes = selection.iter().zip(&of_rows).map(index).collect();
        (entries, indexes)
    }

    /// Returns a row's entry of the dictionary; `None` if its index is beyond it.
    fn entry(&self, row: usize) -> Option<Entry<'a>> {
        let number = self.columns.symbol[row];
        if self.rejected(row).is_some() {
            return self.dictionary.entry(number as usize);
        }
        let scales = self.columns.scales_of(row);
        Some((self.symbols.name(number).as_bytes(), [scales.price.into(), scales.size.into()]))
    }
}

/// Returns an index beyond a dictionary of `names` names; the given one if it is beyond.
fn unknown(index: i64, names: usize) -> i64 {
    if (0..names as i64).contains(&index) { names as i64 } else { index }
}

fn put_array<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    if !items.is_empty() {
        put_long(items.len() as i64, out);
        items.iter().for_each(|item| put(out, item));
    }
    put_long(0, out);
}
