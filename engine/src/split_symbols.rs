//! Symbols that are in more than one partition, because their producers disagree on a partitioner. The status reports
//! them; no output depends on it.

use std::fmt;

/// Symbols that were found in a second partition of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitSymbols {
    /// Number of split symbols, each counted once for every pair of partitions.
    pub count: u64,
    /// The symbol found first; `None` if there is none.
    pub first: Option<SplitSymbol>,
}

/// A symbol in two partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSymbol {
    /// Name of the symbol.
    pub symbol: String,
    /// The partitions, the lower one first.
    pub partitions: [i32; 2],
}

impl SplitSymbols {
    /// Counts a symbol that two partitions share.
    pub(crate) fn add(&mut self, symbol: &str, one: i32, other: i32) {
        self.count += 1;
        self.first.get_or_insert_with(|| SplitSymbol {
            symbol: symbol.to_owned(),
            partitions: [one.min(other), one.max(other)],
        });
    }
}

/// Displays the count, the first symbol, the effect and the remedy.
impl fmt::Display for SplitSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(SplitSymbol { symbol, partitions: [low, high] }) = &self.first else {
            return f.write_str("no symbol is in two partitions");
        };
        write!(
            f,
            "symbols in two partitions: {}, the first being {symbol} in {low} and {high}. Each partition \
             makes its own bars of it. Have all producers key ticks by symbol and use the same partitioner \
             (librdkafka: partitioner=murmur2_random)",
            self.count
        )
    }
}
