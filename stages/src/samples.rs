//! Prices of all symbols of a partition at regular times. Most are those of the sample before.
//!
//! ```text
//!   sample   │ chunk of 64 symbols │ chunk │ chunk │ …      oldest
//!   sample   │       ▲ shared      │ chunk │   ▲   │ …
//!   sample   │       ▲ shared      │   ▲   │ chunk │ …      newest
//! ```
//!
//! A chunk without a changed price is shared with the sample before. So idle symbols take almost no room, however many
//! samples are kept.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::StageError;
use crate::bytes::{get_bytes, get_u32, get_u64, put_u32, put_u64};

/// Symbols of a chunk.
const CHUNK: usize = 64;
/// Marks of an encoded chunk: its prices follow, or are those of the row before.
const OWN: u8 = 0;
const SAME: u8 = 1;

/// Prices by symbol number, for the symbols that existed; 0 if no positive price was known.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleRow {
    symbols: usize,
    chunks: Arc<[Arc<[f64]>]>,
}

impl SampleRow {
    /// The price of a symbol; `None` if the symbol did not exist.
    pub(crate) fn get(&self, symbol: usize) -> Option<f64> {
        self.chunks.get(symbol / CHUNK)?.get(symbol % CHUNK).copied()
    }

    /// Number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.symbols
    }

    /// All prices.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied())
    }

    /// The row of these prices, which shares unchanged chunks with the row before it.
    pub(crate) fn after(before: Option<&Self>, prices: impl ExactSizeIterator<Item = f64>) -> Self {
        let (symbols, mut prices) = (prices.len(), prices);
        let mut scratch = Vec::with_capacity(CHUNK);
        let chunk = |index: usize| -> Arc<[f64]> {
            scratch.clear();
            scratch.extend(prices.by_ref().take(CHUNK));
            let known = before.and_then(|before| before.chunks.get(index));
            known.filter(|known| is_same(known, &scratch)).cloned().unwrap_or_else(|| Arc::from(&scratch[..]))
        };
        Self { symbols, chunks: (0..symbols.div_ceil(CHUNK)).map(chunk).collect() }
    }
}

impl SampleRow {
    /// Writes the number of symbols, and for each chunk a mark, followed by its prices unless they are those of the row
    /// before.
    pub(crate) fn write(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_u32(out, self.len() as u32);
        for (index, chunk) in self.chunks.iter().enumerate() {
            let known = before.and_then(|before| before.chunks.get(index));
            if known.is_some_and(|known| is_same(known, chunk)) {
                out.push(SAME);
            } else {
                out.push(OWN);
                chunk.iter().for_each(|price| put_u64(out, price.to_bits()));
            }
        }
    }

    /// Reads the bytes of [`SampleRow::write`] for at most `symbols_max` symbols.
    pub(crate) fn read(
        before: Option<&Self>,
        symbols_max: usize,
        bytes: &mut &[u8],
    ) -> Result<Self, StageError> {
        let length = get_u32(bytes, "sample length")? as usize;
        if length > symbols_max {
            return Err(StageError::Damaged { found: format!("a sample of {length} symbols") });
        }
        let mut prices = Vec::with_capacity(length);
        while prices.len() < length {
            let count = CHUNK.min(length - prices.len());
            match get_bytes(bytes, 1, "mark of prices")?[0] {
                OWN => {
                    for _ in 0..count {
                        prices.push(get_u64(bytes, "sample").map(f64::from_bits)?);
                    }
                }
                SAME => {
                    let chunk = before.and_then(|before| before.chunks.get(prices.len() / CHUNK));
                    let chunk = chunk.filter(|chunk| chunk.len() == count).ok_or_else(|| {
                        StageError::Damaged { found: "prices of a sample that is not there".to_owned() }
                    })?;
                    prices.extend_from_slice(chunk);
                }
                found => return Err(StageError::Damaged { found: format!("mark {found} of prices") }),
            }
        }
        Ok(Self::after(before, prices.into_iter()))
    }
}

/// True if all bits are equal.
fn is_same(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

/// Rows, the oldest first.
pub(crate) type SampleRows = VecDeque<SampleRow>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_prices_and_shares_what_has_not_changed() {
        let prices = |changed: usize, count: usize| {
            (0..count).map(move |symbol| if symbol == changed { -1.0 } else { symbol as f64 })
        };
        let first = SampleRow::after(None, prices(usize::MAX, 200));
        let second = SampleRow::after(Some(&first), prices(70, 201));
        assert!(second.iter().eq(prices(70, 201)) && first.iter().eq(prices(usize::MAX, 200)));
        assert_eq!(
            (second.len(), second.get(70), second.get(200), second.get(201)),
            (201, Some(-1.0), Some(200.0), None)
        );
        let shared: Vec<bool> =
            first.chunks.iter().zip(&*second.chunks).map(|(one, other)| Arc::ptr_eq(one, other)).collect();
        assert_eq!(shared, [true, false, true, false]);
        assert_eq!(SampleRow::after(Some(&second), [].into_iter()).len(), 0);
    }
}
