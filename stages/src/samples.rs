//! Prices of all symbols of a partition at regular times, of which most are those of the time before.
//!
//! ```text
//!   sample   │ chunk of 64 symbols │ chunk │ chunk │ …      oldest
//!   sample   │       ▲ shared      │ chunk │   ▲   │ …
//!   sample   │       ▲ shared      │   ▲   │ chunk │ …      newest
//! ```
//!
//! A chunk in which no price has changed is that of the sample before: symbols that are idle take next to no room, however many samples are
//! kept.

use std::collections::VecDeque;
use std::sync::Arc;

/// Symbols of a chunk.
const CHUNK: usize = 64;

/// Prices by symbol number, as far as there were symbols; 0 where no positive price was known.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleRow {
    symbols: usize,
    chunks: Arc<[Arc<[f64]>]>,
}

impl SampleRow {
    /// The price of a symbol, if it was there.
    pub(crate) fn get(&self, symbol: usize) -> Option<f64> {
        self.chunks.get(symbol / CHUNK)?.get(symbol % CHUNK).copied()
    }

    /// Number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.symbols
    }

    /// All prices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied())
    }

    /// The row of these prices, which shares what it can with the row before it.
    pub(crate) fn after(before: Option<&Self>, prices: impl ExactSizeIterator<Item = f64>) -> Self {
        let (symbols, mut prices) = (prices.len(), prices);
        let mut scratch = Vec::with_capacity(CHUNK);
        let chunk = |index: usize| -> Arc<[f64]> {
            scratch.clear();
            scratch.extend(prices.by_ref().take(CHUNK));
            let known = before.and_then(|before| before.chunks.get(index));
            let is_same = |known: &&Arc<[f64]>| {
                known.len() == scratch.len()
                    && known.iter().zip(&scratch).all(|(one, other)| one.to_bits() == other.to_bits())
            };
            known.filter(is_same).cloned().unwrap_or_else(|| Arc::from(&scratch[..]))
        };
        Self { symbols, chunks: (0..symbols.div_ceil(CHUNK)).map(chunk).collect() }
    }
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
