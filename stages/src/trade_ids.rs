//! Repeated trade ids: a window of the newest ids of each symbol.
//!
//! ```text
//!   ids of a symbol   ── told nothing of ──┬──── the window: a bit for each id ────┬── greatest so far ── new ──►
//!                                          └ greatest − WINDOW_IDS
//! ```
//!
//! The window is that of IPsec against replayed packets, with its bits in a ring of words as in RFC 6479. An id above
//! the greatest moves the window, and one within it is looked up. An id behind it may or may not be a repetition. So a
//! trade costs two memory accesses, and a symbol a fixed number of bytes, however many trades it has.
//!
//! The window only watches, since not every venue's ids are unique: a trade that repeats an id counts in bars like any
//! other. Late trades are watched too, because most ticks that are published a second time are late.

use std::fmt;

use crate::StageError;
use crate::bytes::{get_i64, get_u64, put_i64, put_u64};

/// Ids of a word.
const WORD_IDS: i64 = u64::BITS as i64;
/// Words of a ring. The word into which the window moves is cleared, so the window is a word shorter than the ring.
const WORDS: usize = 16;
/// Distance below the greatest id within which an id is looked up.
const WINDOW_IDS: u64 = (WORDS as u64 - 1) * WORD_IDS as u64;

const _: () = assert!(WORDS.is_power_of_two(), "so that the place of a word is a mask");

/// Counts of a record's trade ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TradeIdCounts {
    /// Trades with an id that their symbol had before.
    pub repeated: u64,
    /// Trades with an id so far below the greatest of their symbol that a repetition is unknown.
    pub untold: u64,
    /// The first repeated id; `None` if there is none.
    pub first: Option<RepeatedId>,
}

/// A repeated trade id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedId {
    /// Number of the trade's symbol in its partition.
    pub symbol: u32,
    /// The id.
    pub trade_id: i64,
}

/// Trades of one or many partitions with repeated ids, as people are told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepeatedTrades {
    /// Trades with an id that their symbol had before.
    pub repeated: u64,
    /// Trades with an id so far below the greatest of their symbol that a repetition is unknown.
    pub untold: u64,
    /// The first trade with a repeated id; `None` if there is none.
    pub first: Option<RepeatedTrade>,
}

/// A trade with an id that its symbol had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedTrade {
    /// Its symbol.
    pub symbol: String,
    /// The id.
    pub trade_id: i64,
    /// Partition of its record.
    pub partition: i32,
    /// Offset of its record.
    pub offset: i64,
}

impl RepeatedTrades {
    /// Adds the counts of a record; `name` gives the name of a symbol by its number.
    pub fn add_record<'a>(
        &mut self,
        counts: TradeIdCounts,
        partition: i32,
        offset: i64,
        name: impl FnOnce(u32) -> &'a str,
    ) {
        self.repeated += counts.repeated;
        self.untold += counts.untold;
        if let (None, Some(RepeatedId { symbol, trade_id })) = (&self.first, counts.first) {
            let symbol = name(symbol).to_owned();
            self.first = Some(RepeatedTrade { symbol, trade_id, partition, offset });
        }
    }

    /// Adds other counts. The first repeated trade of a partition stays first; those of several partitions have no
    /// order.
    pub fn add(&mut self, others: Self) {
        self.repeated += others.repeated;
        self.untold += others.untold;
        self.first = match (self.first.take(), others.first) {
            (Some(one), Some(other)) if one.partition == other.partition && other.offset < one.offset => {
                Some(other)
            }
            (one, other) => one.or(other),
        };
    }

    /// True if no trade repeats an id, so that there is nothing to tell. Ids whose repetition is unknown do not count:
    /// of a symbol with many trades, a tick that is seconds late is far behind.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl fmt::Display for RepeatedTrades {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeated, untold, first } = self;
        let Some(RepeatedTrade { symbol, trade_id, partition, offset }) = first else {
            return write!(formatter, "no trade has an id that its symbol had before");
        };
        write!(
            formatter,
            "trades with an id that their symbol had before: {repeated}, first {symbol} id {trade_id} at partition {partition} offset \
             {offset}"
        )?;
        if *untold > 0 {
            write!(formatter, ", and trades whose ids are too far behind to check: {untold}")?;
        }
        write!(
            formatter,
            ". Either the same ticks were published twice (as with `feed --again`), and those that are not \
             late count twice. Or a producer gives several trades the same id"
        )
    }
}

/// The windows of a partition's symbols.
#[derive(Debug, Default)]
pub(crate) struct TradeIds {
    /// Windows by symbol number.
    windows: Vec<Window>,
    /// Counts of the record at hand so far.
    counts: TradeIdCounts,
}

impl TradeIds {
    /// Makes room for `symbols` symbols.
    pub(crate) fn grow(&mut self, symbols: usize) {
        self.windows.resize(symbols, Window::default());
    }

    /// Begins another record.
    pub(crate) fn begin_record(&mut self) {
        self.counts = TradeIdCounts::default();
    }

    /// Counts of the record at hand so far.
    pub(crate) fn counts(&self) -> TradeIdCounts {
        self.counts
    }

    /// Watches a trade; its id is 0 if the venue gives none.
    #[inline]
    pub(crate) fn watch(&mut self, symbol: u32, trade_id: i64) {
        if trade_id == 0 {
            return;
        }
        match self.windows[symbol as usize].insert(trade_id) {
            Seen::New => {}
            Seen::Before => {
                self.counts.repeated += 1;
                self.counts.first.get_or_insert(RepeatedId { symbol, trade_id });
            }
            Seen::Untold => self.counts.untold += 1,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for window in &self.windows {
            put_i64(out, window.greatest);
            // A symbol without an id takes no more room.
            if window.greatest != 0 {
                let words = window.words.as_deref().copied().unwrap_or_else(|| words_of(window.greatest));
                words.iter().for_each(|word| put_u64(out, *word));
            }
        }
    }

    /// Reads the bytes of a partition with `symbols` symbols.
    pub(crate) fn read(symbols: usize, bytes: &mut &[u8]) -> Result<Self, StageError> {
        let mut windows = vec![Window::default(); symbols];
        for window in &mut windows {
            window.greatest = get_i64(bytes, "greatest trade id")?;
            if window.greatest != 0 {
                for word in window.words.get_or_insert_default().iter_mut() {
                    *word = get_u64(bytes, "window of trade ids")?;
                }
            }
        }
        Ok(Self { windows, counts: TradeIdCounts::default() })
    }
}

/// The state of an id before it was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    New,
    Before,
    /// The id is behind the window, so its state is unknown.
    Untold,
}

/// The newest ids of a symbol.
#[derive(Clone, Debug, Default)]
struct Window {
    /// The greatest id so far; 0, which is no id, before the first.
    greatest: i64,
    /// A bit for each id of the last `WORDS` words, each word at the place of its number in the ring. `None` before the
    /// second id, so that symbols with a single trade take no room.
    words: Option<Box<[u64; WORDS]>>,
}

impl Window {
    #[inline]
    fn insert(&mut self, id: i64) -> Seen {
        if self.greatest == 0 {
            self.greatest = id;
            return Seen::New;
        }
        let words = self.words.get_or_insert_with(|| Box::new(words_of(self.greatest)));
        if id > self.greatest {
            // The words into which the window moves are empty.
            let (from, to) = (word_of(self.greatest), word_of(id));
            if to.abs_diff(from) >= WORDS as u64 {
                **words = [0; WORDS];
            } else {
                (from + 1..=to).for_each(|word| words[place(word)] = 0);
            }
            self.greatest = id;
        } else if self.greatest.abs_diff(id) >= WINDOW_IDS {
            return Seen::Untold;
        }
        let (word, bit) = (&mut words[place(word_of(id))], 1 << (id & (WORD_IDS - 1)));
        let seen = if *word & bit != 0 { Seen::Before } else { Seen::New };
        *word |= bit;
        seen
    }
}

/// The words of a window with one id.
fn words_of(id: i64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[place(word_of(id))] = 1 << (id & (WORD_IDS - 1));
    words
}

/// Number of the word with the bit of an id.
#[inline]
fn word_of(id: i64) -> i64 {
    id.div_euclid(WORD_IDS)
}

/// Place of a word in the ring.
#[inline]
fn place(word: i64) -> usize {
    word as usize & (WORDS - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: i64 = WINDOW_IDS as i64;

    /// The window as a set of all ids.
    #[derive(Default)]
    struct Model {
        ids: BTreeSet<i64>,
        greatest: Option<i64>,
    }

    impl Model {
        fn insert(&mut self, id: i64) -> Seen {
            let greatest = *self.greatest.insert(self.greatest.map_or(id, |greatest| greatest.max(id)));
            if i128::from(greatest) - i128::from(id) >= i128::from(WINDOW) {
                return Seen::Untold;
            }
            if self.ids.insert(id) { Seen::New } else { Seen::Before }
        }
    }

    fn seen(ids: &[i64]) -> Vec<Seen> {
        let mut window = Window::default();
        ids.iter().map(|id| window.insert(*id)).collect()
    }

    #[test]
    fn ids_out_of_order_are_no_repeats() {
        use Seen::{Before, New, Untold};
        let downwards: Vec<i64> = (1..=WINDOW).rev().collect();
        assert!(seen(&downwards).iter().all(|seen| *seen == New));
        assert_eq!(seen(&[5, 3, 4, 3, 5, 6]), [New, New, New, Before, Before, New]);
        assert_eq!(seen(&[WINDOW + 1, 2, 1, 2]), [New, New, Untold, Before]);
        // The ring holds a word more than the window: an id behind the window is unknown, though its bit may be there.
        assert_eq!(seen(&[1, WINDOW + 1, 1]), [New, New, Untold]);
        assert_eq!(seen(&[-1, -3, -1, 1, -3]), [New, New, Before, New, Before]);
        assert_eq!(seen(&[i64::MIN, i64::MAX, i64::MIN, i64::MAX]), [New, New, Untold, Before]);
    }

    #[test]
    fn a_symbol_without_ids_has_none_and_takes_no_room() {
        let mut ids = TradeIds::default();
        ids.grow(3);
        for (symbol, id) in [(0, 0), (0, 0), (1, 7), (2, 7), (1, 7), (2, 8)] {
            ids.watch(symbol, id);
        }
        let first = Some(RepeatedId { symbol: 1, trade_id: 7 });
        assert_eq!(ids.counts(), TradeIdCounts { repeated: 1, untold: 0, first });
        let mut bytes = Vec::new();
        ids.write(&mut bytes);
        assert_eq!(bytes.len(), 3 * 8 + 2 * WORDS * 8);
        let read = TradeIds::read(3, &mut bytes.as_slice()).expect("what was written");
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!(again, bytes);
        assert!((0..bytes.len()).all(|length| TradeIds::read(3, &mut &bytes[..length]).is_err()));
    }

    proptest! {
        /// Steps of all sizes around the limits of words and of the window, with a restart after every few.
        #[test]
        fn the_window_is_the_set_of_the_newest_ids(
            first in prop_oneof![-2_000..2_000_i64, any::<i64>()],
            steps in prop::collection::vec(
                prop_oneof![6 => -3..5_i64, 3 => -70..70_i64, 2 => -WINDOW - 70..WINDOW + 70, 1 => any::<i64>()],
                1..600,
            ),
            restart_every in 1..50_usize,
        ) {
            let (mut ids, mut model, mut id) = (TradeIds::default(), Model::default(), first);
            ids.grow(1);
            let mut expected = TradeIdCounts::default();
            for (number, step) in steps.into_iter().enumerate() {
                id = id.wrapping_add(step);
                if id == 0 {
                    continue;
                }
                ids.begin_record();
                ids.watch(0, id);
                let seen = model.insert(id);
                expected.repeated = u64::from(seen == Seen::Before);
                expected.untold = u64::from(seen == Seen::Untold);
                expected.first = (seen == Seen::Before).then_some(RepeatedId { symbol: 0, trade_id: id });
                prop_assert_eq!(ids.counts(), expected, "id {}", id);
                if number % restart_every == 0 {
                    let mut bytes = Vec::new();
                    ids.write(&mut bytes);
                    ids = TradeIds::read(1, &mut bytes.as_slice()).expect("what was written");
                }
            }
        }
    }
}
