//! One symbol: its price, its book, and its ticks.

use warptape_events::tick::{Scales, Side, Tick, TickKind};

use super::arithmetic::{exp, ln};
use super::market_factor::{YEAR_SECONDS_SQRT, jump};
use super::random::{Random, STREAM_INSTRUMENTS};

/// Number of names with four letters.
pub(super) const SYMBOLS_MAX: u32 = 26 * 26 * 26 * 26;

/// Initial prices are between these limits, distributed log-uniformly.
const PRICE_MIN: f64 = 0.5;
const PRICE_MAX: f64 = 50_000.0;
/// Greatest part of the initial price that a price step may be. The step is a power of ten, so prices are 1e5 to 1e6
/// steps.
const STEP_OF_PRICE: f64 = 1e-5;
/// Range around the initial price that a price never leaves, as a factor. A price beyond it is reflected at the limit.
/// The range keeps prices positive and within an `i64` for any time.
const PRICE_RANGE: f64 = 8.0;
/// Greatest return of one tick, up or down; a jump of this size is hundreds of deviations away.
const RETURN_MAX: f64 = 0.5;
/// Median value of a trade or of a level, in the currency of the price.
const VALUE_MEDIAN: f64 = 1_500.0;
/// Least number of lots in the median size, which is 100 to 1000 lots. Sizes are whole lots.
const LOTS_OF_MEDIAN: f64 = 100.0;
const SIZE_DEVIATION: f64 = 1.2;
const JUMPS_PER_SECOND: f64 = 2.0 / 3_600.0;
const JUMP_DEVIATION: f64 = 0.004;
/// Probability in percent that the next aggressor is on the same side, so that aggressors come in runs.
const SAME_SIDE_PERCENT: f64 = 60.0;

/// The constant properties of a symbol.
struct Character {
    /// Price of one step.
    step_e9: i64,
    lot_e9: i64,
    lots_median: f64,
    /// Greatest spread, in steps.
    spread_steps_max: u64,
    /// Exposure to the market factor.
    beta: f64,
    /// The symbol's own volatility per √second.
    volatility: f64,
    price_steps_min: f64,
    price_steps_max: f64,
}

/// A symbol of the synthetic market.
pub(super) struct Instrument {
    symbol: String,
    character: Character,
    /// The price at the centre of the book.
    price_steps: f64,
    /// Time and level of the market factor at the price's last move.
    moved_time_ns: i64,
    moved_level: f64,
    /// The current book, in steps; 0 before the first quote.
    bid_steps: i64,
    ask_steps: i64,
    last_side: Side,
    trades: i64,
}

impl Instrument {
    /// Creates the symbol with this number. Its properties depend only on seed and number.
    pub(super) fn new(seed: u64, index: u32, start_time_ns: i64) -> Instrument {
        let mut random = Random::stream(seed, STREAM_INSTRUMENTS + u64::from(index));
        let price = exp(random.between(ln(PRICE_MIN), ln(PRICE_MAX)));
        let step = power_of_ten_at_most(price * STEP_OF_PRICE);
        let size_median = VALUE_MEDIAN / price;
        let lot = power_of_ten_at_most(size_median / LOTS_OF_MEDIAN);
        let price_steps = price / step;
        Instrument {
            symbol: symbol_name(index),
            character: Character {
                step_e9: nearest(step * 1e9),
                lot_e9: nearest(lot * 1e9),
                lots_median: size_median / lot,
                spread_steps_max: 1 + random.below(8),
                beta: random.between(0.5, 1.5),
                volatility: random.between(0.2, 1.0) / YEAR_SECONDS_SQRT,
                price_steps_min: price_steps / PRICE_RANGE,
                price_steps_max: price_steps * PRICE_RANGE,
            },
            price_steps,
            moved_time_ns: start_time_ns,
            moved_level: 0.0,
            bid_steps: 0,
            ask_steps: 0,
            last_side: Side::Buy,
            trades: 0,
        }
    }

    /// Returns true if there was a quote.
    pub(super) fn has_book(&self) -> bool {
        self.bid_steps > 0
    }

    /// Moves the price to `time_ns` and puts a new book around it.
    pub(super) fn quote(&mut self, time_ns: i64, market_level: f64, random: &mut Random) -> Tick {
        self.move_price(time_ns, market_level, random);
        let spread_steps = 1 + random.below(self.character.spread_steps_max) as i64;
        self.bid_steps = nearest(self.price_steps) - spread_steps / 2;
        self.ask_steps = self.bid_steps + spread_steps;
        Tick {
            symbol: self.symbol.clone(),
            kind: TickKind::Quote,
            event_time_ns: time_ns,
            receive_time_ns: 0,
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9: self.bid_steps * self.character.step_e9,
            bid_size_e9: self.size_e9(random),
            ask_price_e9: self.ask_steps * self.character.step_e9,
            ask_size_e9: self.size_e9(random),
            scales: Scales::E9,
        }
    }

    /// Makes a trade against the current book. There must have been a quote.
    pub(super) fn trade(&mut self, time_ns: i64, random: &mut Random) -> Tick {
        debug_assert!(self.has_book(), "a trade needs a book");
        if random.next_u64() >= Random::below_percent(SAME_SIDE_PERCENT) {
            self.last_side = match self.last_side {
                Side::Buy => Side::Sell,
                Side::Sell | Side::None => Side::Buy,
            };
        }
        let price_steps = if self.last_side == Side::Buy { self.ask_steps } else { self.bid_steps };
        self.trades += 1;
        Tick {
            symbol: self.symbol.clone(),
            kind: TickKind::Trade,
            event_time_ns: time_ns,
            receive_time_ns: 0,
            trade_id: self.trades,
            side: self.last_side,
            price_e9: price_steps * self.character.step_e9,
            size_e9: self.size_e9(random),
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        }
    }

    fn move_price(&mut self, time_ns: i64, market_level: f64, random: &mut Random) {
        let seconds = (time_ns - self.moved_time_ns) as f64 * 1e-9;
        let mut change = self.character.beta * (market_level - self.moved_level);
        change += self.character.volatility * seconds.sqrt() * random.normal();
        change += jump(random, seconds, JUMPS_PER_SECOND, 0.0, JUMP_DEVIATION);
        let moved = self.price_steps * (1.0 + change.clamp(-RETURN_MAX, RETURN_MAX));
        self.price_steps = if moved > self.character.price_steps_max {
            self.character.price_steps_max * (self.character.price_steps_max / moved)
        } else if moved < self.character.price_steps_min {
            self.character.price_steps_min * (self.character.price_steps_min / moved)
        } else {
            moved
        };
        self.moved_time_ns = time_ns;
        self.moved_level = market_level;
    }

    /// Draws a log-normal size in whole lots, at least one.
    fn size_e9(&self, random: &mut Random) -> i64 {
        let lots = nearest(self.character.lots_median * exp(SIZE_DEVIATION * random.normal()));
        lots.max(1) * self.character.lot_e9
    }
}

/// Returns `SYNTH:AAAA` for 0, `SYNTH:AAAB` for 1.
fn symbol_name(index: u32) -> String {
    let letter = |place: u32| char::from(b'A' + (index / 26_u32.pow(place) % 26) as u8);
    let mut name = String::from("SYNTH:");
    name.extend([3, 2, 1, 0].map(letter));
    name
}

/// Returns the integer nearest to a positive number; halves are rounded up.
fn nearest(value: f64) -> i64 {
    (value + 0.5) as i64
}

/// Returns the greatest power of ten that is at most the value. Values must be at least 1e-9.
fn power_of_ten_at_most(value: f64) -> f64 {
    let mut power = 1e-9;
    while power * 10.0 <= value {
        power *= 10.0;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_distinct() {
        assert_eq!(symbol_name(0), "SYNTH:AAAA");
        assert_eq!(symbol_name(27), "SYNTH:AABB");
        assert_eq!(symbol_name(SYMBOLS_MAX - 1), "SYNTH:ZZZZ");
    }

    #[test]
    fn steps_and_lots_are_powers_of_ten() {
        for index in 0..2_000 {
            let instrument = Instrument::new(3, index, 1);
            for unit_e9 in [instrument.character.step_e9, instrument.character.lot_e9] {
                assert!(unit_e9 > 0 && 10_i64.pow(unit_e9.ilog10()) == unit_e9, "{index}: {unit_e9}");
            }
            assert!(
                (99_999.0..1_000_001.0).contains(&instrument.price_steps),
                "{index}: {}",
                instrument.price_steps
            );
            assert!(
                (99.9..1_000.1).contains(&instrument.character.lots_median),
                "{index}: {}",
                instrument.character.lots_median
            );
        }
    }

    #[test]
    fn the_price_stays_in_its_range_for_ever() {
        let mut random = Random::seeded(5);
        let mut instrument = Instrument::new(5, 0, 0);
        let (low, high) = (instrument.character.price_steps_min, instrument.character.price_steps_max);
        let (mut lowest, mut highest) = (f64::MAX, 0.0_f64);
        // One tick in ten days, for 2,700 years if 64 bits allowed it.
        for step in 1..10_000 {
            instrument.move_price(step * 864_000_000_000_000, 0.0, &mut random);
            lowest = lowest.min(instrument.price_steps);
            highest = highest.max(instrument.price_steps);
        }
        assert!(low <= lowest && highest <= high, "{lowest}..{highest} within {low}..{high}");
        assert!(highest / lowest > 4.0, "the price moves: {lowest}..{highest}");
    }
}
