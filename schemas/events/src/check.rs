//! The rules for valid ticks. They are checked once, when a tick is read from Avro or written to it, and not again
//! after the decoder.

use crate::long_field::{LONG_FIELD_COUNT, LongField};
use crate::tick::{Scales, Side, Tick, TickColumns, TickKind};
use crate::{SYMBOL_BYTES_MAX, dead_letter::DeadLetterReason};

/// An invalid tick, with its row, field and problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row}, field {field}: {problem}")]
pub struct InvalidTick {
    /// Row within the record, from 0.
    pub row: usize,
    /// Field of the schema.
    pub field: &'static str,
    /// The problem.
    pub problem: TickProblem,
}

/// A problem of a tick's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickProblem {
    /// A size or time below 0.
    #[error("{0} is negative; write 0 or more")]
    Negative(i64),
    /// A scale out of range: a number of digits after the decimal point.
    #[error("{0} is no scale; write the digits behind the decimal point, 0 to {max}", max = Scales::MAX)]
    NoScale(i64),
    /// A tick whose scale does not fit a record in units of 1e-9.
    #[error("a Tick or TickBatch has nine digits behind the decimal point, not {0}: write a ScaledTickBatch")]
    NotE9(u8),
    /// A price that has no exact form in the scale of its symbol's prices.
    #[error(
        "{value} with {scale} digits behind the decimal point has no 64-bit number with {symbol_scale}, which is the scale of all \
         prices of its symbol, because its first tick in the partition had it: publish it under another symbol"
    )]
    OtherScale {
        /// The price.
        value: i64,
        /// Its scale.
        scale: u8,
        /// The scale of the symbol's prices.
        symbol_scale: u8,
    },
    /// A size with more than nine digits after the decimal point.
    #[error(
        "{value} with {scale} digits behind the decimal point is no multiple of 1e-9, in which sizes are kept; round it"
    )]
    TooFine {
        /// The size.
        value: i64,
        /// Its scale.
        scale: u8,
    },
    /// The smallest or largest `i64`, which some feeds use for "no value".
    #[error("{0} stands for \"not a number\"; write 0 where there is no value")]
    NotANumber(i64),
    /// A trade without a price.
    #[error("a trade needs a price; a price of 0 is written in a ScaledTickBatch")]
    NoPrice,
    /// An event time of 0.
    #[error("0 is no time; write nanoseconds since 1970-01-01")]
    NoTime,
    /// An event time far ahead of all earlier ones.
    #[error(
        "{time_ns} is {ahead_s} s ahead of {reference_ns}, the greatest event time that the partition has come to, and \
         stages.future_max_ms allows {allowed_s} s: correct it; where data begin again after a gap, several such records in a row \
         are followed",
        ahead_s = time_ns.saturating_sub(*.reference_ns) / 1_000_000_000,
        allowed_s = future_max_ns / 1_000_000_000
    )]
    TooFarAhead {
        /// The event time.
        time_ns: i64,
        /// The partition's greatest event time.
        reference_ns: i64,
        /// The allowed lead, in nanoseconds.
        future_max_ns: i64,
    },
    /// An event time far ahead of the time at which its record was written.
    #[error(
        "{time_ns} is {ahead_s} s ahead of {written_ns}, when its record was written, and stages.clock_skew_max_ms allows \
         {clock_skew_max_ms} ms: correct it, or the clock by which records are written; where data are dated in the future, \
         several such records in a row are followed",
        ahead_s = time_ns.saturating_sub(*.written_ns) / 1_000_000_000,
        clock_skew_max_ms = clock_skew_max_ns / 1_000_000
    )]
    AheadOfWriting {
        /// The event time.
        time_ns: i64,
        /// The time at which its record was written.
        written_ns: i64,
        /// The allowed lead, in nanoseconds.
        clock_skew_max_ns: i64,
    },
    /// A value in a field of the other kind of tick.
    #[error("{value} in a {kind}; write 0, or send a second tick of the other kind", kind = kind_name(*.kind))]
    NotOfKind {
        /// The value.
        value: i64,
        /// The tick's kind.
        kind: TickKind,
    },
    /// A number that is no tick kind.
    #[error("{0} is no tick kind; write TRADE or QUOTE")]
    UnknownKind(i64),
    /// A number that is no side.
    #[error("{0} is no side; write NONE, BUY or SELL")]
    UnknownSide(i64),
    /// A symbol without a name.
    #[error("the symbol is empty; write VENUE:TICKER")]
    EmptySymbol,
    /// A symbol with too long a name.
    #[error("the symbol has {0} bytes; at most {SYMBOL_BYTES_MAX} are allowed")]
    LongSymbol(usize),
    /// A symbol with a control character.
    #[error("the symbol has a control character")]
    ControlCharacter,
    /// A symbol that is not text.
    #[error("the symbol is not UTF-8")]
    NotUtf8,
    /// A new symbol in a partition with the greatest number of symbols.
    #[error(
        "the partition has {symbols_max} symbols, as many as stages.symbols_max allows, and this would be another one: spread symbols over \
         more partitions, or raise the limit, for which `run --new-segment` begins a new segment of the log"
    )]
    TooManySymbols {
        /// The greatest number of symbols.
        symbols_max: u32,
    },
    /// A row with an index beyond the record's dictionary.
    #[error("index {index} into a dictionary of {symbols} symbols")]
    UnknownSymbol {
        /// The index.
        index: i64,
        /// Size of the dictionary.
        symbols: usize,
    },
}

/// Field with the scales of a record's prices.
pub const PRICE_SCALE: &str = "price_scale";
/// Field with the scales of a record's sizes.
pub const SIZE_SCALE: &str = "size_scale";

fn kind_name(kind: TickKind) -> &'static str {
    match kind {
        TickKind::Trade => "trade",
        TickKind::Quote => "quote",
    }
}

impl InvalidTick {
    /// Returns the reason for the tick's dead letter.
    pub fn reason(&self) -> DeadLetterReason {
        match self.problem {
            TickProblem::NotOfKind { .. } => DeadLetterReason::WrongFields,
            TickProblem::UnknownKind(_) => DeadLetterReason::BadKind,
            TickProblem::UnknownSide(_) => DeadLetterReason::BadSide,
            TickProblem::NoTime | TickProblem::TooFarAhead { .. } | TickProblem::AheadOfWriting { .. } => {
                DeadLetterReason::BadTime
            }
            TickProblem::NoPrice | TickProblem::OtherScale { .. } => DeadLetterReason::BadPrice,
            TickProblem::TooFine { .. } => DeadLetterReason::BadSize,
            TickProblem::NoScale(_) | TickProblem::NotE9(_) if self.field == PRICE_SCALE => {
                DeadLetterReason::BadPrice
            }
            TickProblem::NoScale(_) | TickProblem::NotE9(_) => DeadLetterReason::BadSize,
            TickProblem::EmptySymbol
            | TickProblem::LongSymbol(_)
            | TickProblem::ControlCharacter
            | TickProblem::NotUtf8
            | TickProblem::TooManySymbols { .. }
            | TickProblem::UnknownSymbol { .. } => DeadLetterReason::BadSymbol,
            TickProblem::Negative(_) | TickProblem::NotANumber(_) => match LongField::named(self.field)
                .or_else(|| LongField::scaled_named(self.field))
            {
                Some(LongField::EventTime | LongField::ReceiveTime) => DeadLetterReason::BadTime,
                Some(LongField::Price | LongField::BidPrice | LongField::AskPrice) => {
                    DeadLetterReason::BadPrice
                }
                Some(LongField::Size | LongField::BidSize | LongField::AskSize) => DeadLetterReason::BadSize,
                Some(LongField::TradeId) | None => DeadLetterReason::Other,
            },
        }
    }
}

/// Returns the symbol as text, if it is valid.
pub fn check_symbol(symbol: &[u8]) -> Result<&str, TickProblem> {
    if symbol.is_empty() {
        return Err(TickProblem::EmptySymbol);
    }
    if symbol.len() > SYMBOL_BYTES_MAX {
        return Err(TickProblem::LongSymbol(symbol.len()));
    }
    let text = std::str::from_utf8(symbol).map_err(|_| TickProblem::NotUtf8)?;
    if text.chars().any(char::is_control) {
        return Err(TickProblem::ControlCharacter);
    }
    Ok(text)
}

/// The numeric fields of a tick in the order of [`LongField`].
pub type Longs = [i64; LONG_FIELD_COUNT];

pub fn longs_of(tick: &Tick) -> Longs {
    [
        tick.event_time_ns,
        tick.receive_time_ns,
        tick.trade_id,
        tick.price_e9,
        tick.size_e9,
        tick.bid_price_e9,
        tick.bid_size_e9,
        tick.ask_price_e9,
        tick.ask_size_e9,
    ]
}

/// Returns a word whose sign bit is set if a numeric field of the tick is invalid. It has no branches, so that a loop
/// over columns runs in vector registers; [`explain`] finds the problem.
///
/// A value `v` in `0..i64::MAX` has a clear sign bit in both `v` and `v + 1`; a positive one also in `v - 1`. Prices
/// may have either sign. Only the ends of the range are invalid: their sign changes if they are moved by one.
#[inline(always)]
fn defect(kind: TickKind, side: Side, longs: &Longs, prices: Prices) -> i64 {
    let [event_time, receive_time, trade_id, price, size, bid_price, bid_size, ask_price, ask_size] = *longs;
    let in_range = |value: i64| value | value.wrapping_add(1);
    let is_end = |value: i64| (!value & value.wrapping_add(1)) | (value & !value.wrapping_sub(1));
    let quote = -(kind as i64);
    let of_trade = trade_id | price | size | side as i64;
    let of_quote = bid_price | bid_size | ask_price | ask_size;
    let of_other_kind = (of_trade & quote) | (of_quote & !quote);
    let no_price = match prices {
        Prices::NotZero => !(price | price.wrapping_neg()) & !quote,
        Prices::Any => 0,
    };
    in_range(event_time)
        | event_time.wrapping_sub(1)
        | in_range(receive_time)
        | is_end(price)
        | in_range(size)
        | is_end(bid_price)
        | in_range(bid_size)
        | is_end(ask_price)
        | in_range(ask_size)
        | of_other_kind
        | of_other_kind.wrapping_neg()
        | no_price
}

/// The rule for prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prices {
    /// Prices of 0 are invalid, because 0 means a field that was left out.
    #[default]
    NotZero,
    /// All prices are valid.
    Any,
}

/// Checks one tick, except for its symbol.
#[inline]
pub fn check_row(
    row: usize,
    kind: TickKind,
    side: Side,
    longs: &Longs,
    prices: Prices,
) -> Result<(), InvalidTick> {
    if defect(kind, side, longs, prices) < 0 { Err(explain(row, kind, side, longs, prices)) } else { Ok(()) }
}

/// Checks the rows from `start` on, except for their symbols. An error names the first invalid row, counted from
/// `start`.
pub fn check_rows(columns: &TickColumns, start: usize, prices: Prices) -> Result<(), InvalidTick> {
    let rows = columns.len() - start;
    // Slices of equal length let the compiler remove bounds checks from the loop.
    let kind = &columns.kind[start..][..rows];
    let side = &columns.side[start..][..rows];
    let event_time = &columns.event_time_ns[start..][..rows];
    let receive_time = &columns.receive_time_ns[start..][..rows];
    let trade_id = &columns.trade_id[start..][..rows];
    let price = &columns.price_e9[start..][..rows];
    let size = &columns.size_e9[start..][..rows];
    let bid_price = &columns.bid_price_e9[start..][..rows];
    let bid_size = &columns.bid_size_e9[start..][..rows];
    let ask_price = &columns.ask_price_e9[start..][..rows];
    let ask_size = &columns.ask_size_e9[start..][..rows];
    let mut defects = 0;
    for row in 0..rows {
        let longs = [
            event_time[row],
            receive_time[row],
            trade_id[row],
            price[row],
            size[row],
            bid_price[row],
            bid_size[row],
            ask_price[row],
            ask_size[row],
        ];
        defects |= defect(kind[row], side[row], &longs, prices);
    }
    if defects < 0 { first_bad_row(columns, start, prices) } else { Ok(()) }
}

/// Returns all invalid rows from `start` on, each with its first problem; rows are counted from `start`. Symbols are
/// not checked.
pub fn bad_rows(columns: &TickColumns, start: usize, prices: Prices) -> Vec<InvalidTick> {
    if check_rows(columns, start, prices).is_ok() {
        return Vec::new();
    }
    (start..columns.len()).filter_map(|row| check_row_of(columns, row, row - start, prices).err()).collect()
}

#[cold]
fn first_bad_row(columns: &TickColumns, start: usize, prices: Prices) -> Result<(), InvalidTick> {
    (start..columns.len()).try_for_each(|row| check_row_of(columns, row, row - start, prices))
}

fn check_row_of(columns: &TickColumns, row: usize, shown: usize, prices: Prices) -> Result<(), InvalidTick> {
    let longs = LongField::ALL.map(|field| field.column(columns)[row]);
    check_row(shown, columns.kind[row], columns.side[row], &longs, prices)
}

/// Returns the first problem of a tick for which [`defect`] has set the sign bit.
#[cold]
fn explain(row: usize, kind: TickKind, side: Side, longs: &Longs, prices: Prices) -> InvalidTick {
    let invalid = |field: &'static str, problem| InvalidTick { row, field, problem };
    for field in LongField::ALL {
        let value = longs[field as usize];
        if field != LongField::TradeId {
            if value == i64::MIN || value == i64::MAX {
                return invalid(field.name(), TickProblem::NotANumber(value));
            }
            if value < 0 && !field.is_price() {
                return invalid(field.name(), TickProblem::Negative(value));
            }
        }
        let of_kind = match field {
            LongField::EventTime if value == 0 => return invalid(field.name(), TickProblem::NoTime),
            LongField::EventTime | LongField::ReceiveTime => kind,
            LongField::Price if value == 0 && kind == TickKind::Trade && prices != Prices::Any => {
                return invalid(field.name(), TickProblem::NoPrice);
            }
            LongField::TradeId | LongField::Price | LongField::Size => TickKind::Trade,
            LongField::BidPrice | LongField::BidSize | LongField::AskPrice | LongField::AskSize => {
                TickKind::Quote
            }
        };
        if of_kind != kind && value != 0 {
            return invalid(field.name(), TickProblem::NotOfKind { value, kind });
        }
    }
    // The side of a quote is the only check left.
    invalid("side", TickProblem::NotOfKind { value: side as i64, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRADE: Longs = [1, 0, 0, 1, 0, 0, 0, 0, 0];
    const QUOTE: Longs = [1, 0, 0, 0, 0, 0, 0, 0, 0];

    fn check(kind: TickKind, side: Side, longs: Longs) -> Option<(&'static str, TickProblem)> {
        check_row(3, kind, side, &longs, Prices::NotZero).err().map(|invalid| {
            assert_eq!(invalid.row, 3);
            (invalid.field, invalid.problem)
        })
    }

    /// The same rules, checked one value at a time.
    fn is_good(kind: TickKind, side: Side, longs: &Longs, prices: Prices) -> bool {
        let is_price = |field| [3, 5, 7].contains(&field);
        let from = |field| if is_price(field) { i64::MIN + 1 } else { 0 };
        let numbers = (0..LONG_FIELD_COUNT).all(|f| f == 2 || (from(f)..i64::MAX).contains(&longs[f]));
        let own_fields = match kind {
            TickKind::Trade => (longs[3] != 0 || prices == Prices::Any) && longs[5..] == [0; 4],
            TickKind::Quote => longs[2..5] == [0; 3] && side == Side::None,
        };
        numbers && longs[0] > 0 && own_fields
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes too long there")]
    fn every_pair_of_odd_values_is_judged_by_the_rules() {
        let odd = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        let mut good = 0;
        for (kind, base) in [(TickKind::Trade, TRADE), (TickKind::Quote, QUOTE)] {
            for side in [Side::None, Side::Buy, Side::Sell] {
                for (first, second) in (0..81).map(|pair| (pair / 9, pair % 9)) {
                    for (one, other) in (0..49).map(|pair| (odd[pair / 7], odd[pair % 7])) {
                        let mut longs = base;
                        longs[first] = one;
                        longs[second] = other;
                        for prices in [Prices::NotZero, Prices::Any] {
                            let found = check_row(3, kind, side, &longs, prices);
                            assert_eq!(
                                found.is_ok(),
                                is_good(kind, side, &longs, prices),
                                "{kind:?} {side:?} {longs:?} {prices:?}: {found:?}"
                            );
                            good += usize::from(found.is_ok());
                        }
                    }
                }
            }
        }
        assert!(good > 1000, "the values make good ticks too: {good}");
    }

    #[test]
    fn the_first_defect_is_named() {
        let trade = |longs| check(TickKind::Trade, Side::Buy, longs);
        assert_eq!(trade([1, 0, 7, 5, 6, 0, 0, 0, 0]), None);
        assert_eq!(trade([0, 0, 7, 5, 6, 0, 0, 0, 0]), Some(("event_time_ns", TickProblem::NoTime)));
        assert_eq!(trade([-4, 0, 7, 5, 6, 0, 0, 0, 0]), Some(("event_time_ns", TickProblem::Negative(-4))));
        assert_eq!(trade([1, 0, 7, 0, 6, 0, 0, 0, 0]), Some(("price_e9", TickProblem::NoPrice)));
        assert_eq!(
            trade([1, 0, 7, i64::MAX, 6, 0, 0, 0, 0]),
            Some(("price_e9", TickProblem::NotANumber(i64::MAX)))
        );
        assert_eq!(
            trade([1, 0, 7, 5, 6, 0, 0, 2, 0]),
            Some(("ask_price_e9", TickProblem::NotOfKind { value: 2, kind: TickKind::Trade }))
        );
        assert_eq!(
            check(TickKind::Quote, Side::Sell, [1, 0, 0, 0, 0, 1, 1, 1, 1]),
            Some(("side", TickProblem::NotOfKind { value: 2, kind: TickKind::Quote }))
        );
    }

    #[test]
    fn symbols() {
        assert_eq!(check_symbol(b"BINANCE:BTCUSDT"), Ok("BINANCE:BTCUSDT"));
        assert_eq!(check_symbol("XETRA:MÜV2".as_bytes()), Ok("XETRA:MÜV2"));
        assert_eq!(check_symbol(b""), Err(TickProblem::EmptySymbol));
        assert_eq!(check_symbol(&[b'A'; 65]), Err(TickProblem::LongSymbol(65)));
        assert_eq!(check_symbol(&[b'A'; 64]).map(str::len), Ok(64));
        for control in ["A\u{7f}", "A\nB", "\u{85}", "\0"] {
            assert_eq!(check_symbol(control.as_bytes()), Err(TickProblem::ControlCharacter));
        }
        assert_eq!(check_symbol(b"\xff\xfe"), Err(TickProblem::NotUtf8));
    }
}
