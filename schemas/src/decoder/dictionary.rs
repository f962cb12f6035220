//! The symbols of one record: their numbers in the partition, and their scales.

use crate::check::{InvalidTick, PRICE_SCALE, SIZE_SCALE, TickProblem, check_symbol};
use crate::error::DecodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::{RowScales, Scales, TickColumns};

/// The symbols of one record.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// Bytes of the new symbols, one after the other.
    text: Vec<u8>,
    /// End of each symbol in `text`.
    ends: Vec<usize>,
    /// Numbers of the symbols in the partition's table; a new symbol is [`UNNUMBERED`] until a row uses it.
    ids: Vec<u32>,
    /// Scales of prices and, below, of sizes by symbol; empty if the record has none.
    price_scales: Vec<i64>,
    size_scales: Vec<i64>,
    /// True if the record may leave scales out, and allows trades at a price of 0.
    are_scales_optional: bool,
}

const UNNUMBERED: u32 = u32::MAX;

/// Dictionary index beyond every dictionary.
pub(super) const NO_SYMBOL: u32 = u32::MAX;

/// Rejects an invalid row: only the row if rows are judged separately, otherwise the whole record.
pub(super) fn reject(
    by_rows: bool,
    rejected: &mut Vec<InvalidTick>,
    invalid: InvalidTick,
) -> Result<(), DecodeError> {
    if by_rows {
        rejected.push(invalid);
        return Ok(());
    }
    Err(invalid.into())
}

impl Dictionary {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.ids.clear();
        self.price_scales.clear();
        self.size_scales.clear();
        self.are_scales_optional = false;
    }

    pub(super) fn push(&mut self, symbol: &[u8], symbols: &SymbolTable) {
        let id = symbols.find(symbol);
        if id.is_none() {
            self.text.extend_from_slice(symbol);
        }
        self.ends.push(self.text.len());
        self.ids.push(id.unwrap_or(UNNUMBERED));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn price_scales_mut(&mut self) -> &mut Vec<i64> {
        &mut self.price_scales
    }

    pub(super) fn size_scales_mut(&mut self) -> &mut Vec<i64> {
        &mut self.size_scales
    }

    /// Gives every entry nine digits where the record leaves scales out.
    pub(super) fn default_scales(&mut self) {
        self.are_scales_optional = true;
        if self.price_scales.is_empty() && self.size_scales.is_empty() {
            return;
        }
        for scales in [&mut self.price_scales, &mut self.size_scales] {
            if scales.is_empty() {
                scales.resize(self.ends.len(), Scales::E9.price.into());
            }
        }
    }

    /// True if the record has scales.
    pub(super) fn is_scaled(&self) -> bool {
        !self.price_scales.is_empty()
    }

    /// True if the record may leave scales out, and allows trades at a price of 0.
    pub(super) fn are_scales_optional(&self) -> bool {
        self.are_scales_optional
    }

    /// Returns a new symbol's bytes, and its scales; nine digits if the record has no scales, `None` beyond the
    /// dictionary.
    pub(super) fn entry(&self, index: usize) -> Option<(&[u8], [i64; 2])> {
        let scale = |scales: &[i64]| scales.get(index).copied().unwrap_or(Scales::E9.price.into());
        let scales = [scale(&self.price_scales), scale(&self.size_scales)];
        (index < self.len()).then(|| (self.new_symbol(index), scales))
    }

    /// Returns the bytes of a new symbol.
    fn new_symbol(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// Checks that every entry has scales, used or not. Returns true if some are out of range; that is an error unless
    /// rows are judged separately.
    fn check_scales(&self, by_rows: bool) -> Result<bool, DecodeError> {
        let mut has_bad = false;
        for (field, scales) in [(PRICE_SCALE, &self.price_scales), (SIZE_SCALE, &self.size_scales)] {
            if scales.len() != self.len() {
                let (found, expected) = (scales.len(), self.len());
                return Err(DecodeError::LengthsDiffer { field, found, expected });
            }
            // The row in the error is the index in the dictionary, as the field's name shows.
            let mut no_scales = scales.iter().enumerate().filter(|(_, scale)| !is_scale(**scale));
            if let Some((row, &scale)) = no_scales.next() {
                has_bad = true;
                if !by_rows {
                    return Err(InvalidTick { row, field, problem: TickProblem::NoScale(scale) }.into());
                }
            }
        }
        Ok(has_bad)
    }

    /// Appends the scales of the rows from `start` on that are not [`Scales::E9`]. Rows whose scales are out of range are
    /// rejected.
    pub(super) fn scale_rows(
        &self,
        start: usize,
        by_rows: bool,
        out: &mut TickColumns,
    ) -> Result<(), DecodeError> {
        if self.are_scales_optional && self.price_scales.is_empty() {
            return Ok(());
        }
        let has_bad_scales = self.check_scales(by_rows)?;
        if !has_bad_scales && (0..self.len()).all(|index| self.scales(index) == Scales::E9) {
            return Ok(());
        }
        for (row, &index) in (start..).zip(&out.symbol[start..]) {
            if has_bad_scales && let Some((field, problem)) = self.bad_scale(index as usize) {
                out.rejected.push(InvalidTick { row: row - start, field, problem });
                continue;
            }
            let scales = self.scales(index as usize);
            if scales != Scales::E9 {
                out.scales.push(RowScales { row: row as u32, scales });
            }
        }
        Ok(())
    }

    /// Returns the problem of an entry's scales; `None` if they are in range.
    fn bad_scale(&self, index: usize) -> Option<(&'static str, TickProblem)> {
        let scales = [(PRICE_SCALE, &self.price_scales), (SIZE_SCALE, &self.size_scales)];
        let of_entry = scales.into_iter().filter_map(|(field, scales)| Some((field, *scales.get(index)?)));
        let mut bad = of_entry.filter(|(_, scale)| !is_scale(*scale));
        bad.next().map(|(field, scale)| (field, TickProblem::NoScale(scale)))
    }

    /// Returns the checked scales of an entry; arbitrary scales for an index beyond the dictionary.
    fn scales(&self, index: usize) -> Scales {
        let scale = |scales: &[i64]| scales.get(index).map_or(0, |scale| *scale as u8);
        Scales { price: scale(&self.price_scales), size: scale(&self.size_scales) }
    }

    /// Checks every new symbol, used or not. Symbols with a number are valid.
    fn check(&self) -> Result<(), InvalidTick> {
        for (index, _) in self.ids.iter().enumerate().filter(|(_, id)| **id == UNNUMBERED) {
            // The row in the error is the index in the dictionary, as the field's name shows.
            let invalid = |problem| InvalidTick { row: index, field: "symbols", problem };
            check_symbol(self.new_symbol(index)).map_err(invalid)?;
        }
        Ok(())
    }

    /// Replaces the dictionary index of each row by the symbol's number, if all symbols have one. Otherwise it changes
    /// nothing, and returns false.
    fn number_known_rows(&self, rows: &mut [u32]) -> bool {
        let last = rows.iter().fold(0, |last, index| *index.max(&last));
        if last as usize >= self.ids.len() || self.ids.contains(&UNNUMBERED) {
            return false;
        }
        match self.ids[..] {
            [id] => rows.fill(id),
            ref ids => rows.iter_mut().for_each(|slot| *slot = ids[*slot as usize]),
        }
        true
    }

    /// Checks every new symbol, used or not, and replaces the dictionary index of each row by the symbol's number. A new symbol gets its number at its first row.
    pub(super) fn number_rows(
        &mut self,
        symbols: &mut SymbolTable,
        rows: &mut [u32],
    ) -> Result<(), DecodeError> {
        if self.number_known_rows(rows) {
            return Ok(());
        }
        self.check()?;
        for (row, slot) in rows.iter_mut().enumerate() {
            let index = *slot as usize;
            *slot = match self.ids.get(index) {
                Some(&id) if id != UNNUMBERED => id,
                Some(_) => self.number(index, symbols),
                None => return Err(unknown_symbol(row, i64::from(*slot), self.len()).into()),
            };
        }
        Ok(())
    }

    /// Does the same for rows that are not rejected, and rejects those with an invalid symbol. Rejected rows keep their
    /// indexes.
    pub(super) fn number_good_rows(
        &mut self,
        symbols: &mut SymbolTable,
        rows: &mut [u32],
        rejected: &mut Vec<InvalidTick>,
    ) {
        if rejected.is_empty() && self.number_known_rows(rows) {
            return;
        }
        let mut before = std::mem::take(rejected).into_iter().peekable();
        for (row, slot) in rows.iter_mut().enumerate() {
            if let Some(invalid) = before.next_if(|invalid| invalid.row == row) {
                rejected.push(invalid);
                continue;
            }
            let index = *slot as usize;
            match self.ids.get(index) {
                Some(&id) if id != UNNUMBERED => *slot = id,
                Some(_) => match check_symbol(self.new_symbol(index)) {
                    Ok(_) => *slot = self.number(index, symbols),
                    Err(problem) => rejected.push(InvalidTick { row, field: "symbol", problem }),
                },
                None => rejected.push(unknown_symbol(row, i64::from(*slot), self.len())),
            }
        }
    }

    fn number(&mut self, index: usize, symbols: &mut SymbolTable) -> u32 {
        let symbol = self.new_symbol(index);
        let id = symbols.find(symbol).unwrap_or_else(|| {
            // `check` has already verified that it is UTF-8.
            symbols.push(std::str::from_utf8(symbol).expect("a checked symbol is UTF-8"))
        });
        self.ids[index] = id;
        id
    }
}

fn is_scale(scale: i64) -> bool {
    (0..=Scales::MAX.into()).contains(&scale)
}

#[cold]
pub(super) fn unknown_symbol(row: usize, index: i64, symbols: usize) -> InvalidTick {
    InvalidTick { row, field: "symbol", problem: TickProblem::UnknownSymbol { index, symbols } }
}
