//! The scale of each symbol's prices. The first price sets it: later prices must be exact with that many decimals.
//!
//! Bars compare prices as integers, so `run` rejects a price that its symbol's scale cannot represent. `feed` checks
//! prices by the same rule.

use std::collections::{BTreeSet, HashMap};

use warptape_events::tick::{Scales, Tick};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::FieldProblem;

/// Scales of symbols' prices.
#[derive(Debug, Default)]
pub struct PriceScales {
    of_symbol: HashMap<String, u8, Xxh3DefaultBuilder>,
    /// Symbols whose prices have another scale than nine decimals.
    others: BTreeSet<String>,
    /// Symbol and scale of the last tick; `None` unless it was the symbol's first tick, with a scale other than nine
    /// decimals.
    begun: Option<(String, u8)>,
}

impl PriceScales {
    /// Notes a symbol's existing scale.
    pub(super) fn know(&mut self, symbol: &str, scale: u8) {
        self.of_symbol.insert(symbol.to_owned(), scale);
    }

    /// Returns the symbols whose prices have another scale than nine decimals.
    pub(super) fn others(&self) -> &BTreeSet<String> {
        &self.others
    }

    /// Returns symbol and scale of the last tick; `None` unless it was the symbol's first tick, with a scale other than
    /// nine decimals.
    pub(super) fn take_begun(&mut self) -> Option<(String, u8)> {
        self.begun.take()
    }

    /// Records the scale of a symbol's first tick, and checks every other tick against it.
    pub(super) fn check(&mut self, tick: &Tick) -> Result<(), FieldProblem> {
        let scale = tick.scales.price;
        if scale != Scales::E9.price && !self.others.contains(&tick.symbol) {
            self.others.insert(tick.symbol.clone());
        }
        let Some(&first) = self.of_symbol.get(&tick.symbol) else {
            self.know(&tick.symbol, scale);
            if scale != Scales::E9.price {
                self.begun = Some((tick.symbol.clone(), scale));
            }
            return Ok(());
        };
        if first == scale {
            return Ok(());
        }
        let prices = [tick.price_e9, tick.bid_price_e9, tick.ask_price_e9];
        let Some(price) = prices.into_iter().find(|price| !is_exact(*price, scale, first)) else {
            return Ok(());
        };
        let expected = format!(
            "a price that fits into 64 bits with {first} decimals, as many as the first price of {}",
            tick.symbol
        );
        let mut problem = FieldProblem::new("price", decimal_text(price, scale), expected);
        problem.does_not_fit = true;
        Err(problem)
    }
}

/// Returns true if a number with `from` decimals is exact with `to` decimals.
fn is_exact(value: i64, from: u8, to: u8) -> bool {
    let power = 10_i64.pow(from.abs_diff(to).into());
    if from > to {
        return value % power == 0;
    }
    // The ends of the range are reserved values.
    value.checked_mul(power).is_some_and(|value| value != i64::MIN && value != i64::MAX)
}

fn decimal_text(value: i64, scale: u8) -> String {
    let width = usize::from(scale) + 1;
    let digits = format!("{:0width$}", value.unsigned_abs());
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ticks::tick;

    #[test]
    fn later_prices_have_the_decimals_of_the_first_one() {
        let mut scales = PriceScales::default();
        let mut check = |symbol: &str, price_e9, price| {
            let scales_of_tick = Scales { price, size: 9 };
            scales.check(&Tick { symbol: symbol.to_owned(), price_e9, scales: scales_of_tick, ..tick() })
        };
        assert!(check("V:A", 61_686_200_000_000, 9).is_ok());
        // Prices fit with as many decimals, or with zeros as further decimals.
        assert!(check("V:A", 61_686_300_000_000, 12).is_ok());
        let problem = check("V:A", 61_686_299_999_999_996, 12).expect_err("61686.299999999996");
        assert!(problem.to_string().contains("found `61686.299999999996`"), "{problem}");
        assert!(problem.does_not_fit && problem.to_string().contains("with 9 decimals"), "{problem}");
        assert!(check("V:B", 61_686_299_999_999_996, 12).is_ok(), "another symbol");
        // One million with 14 decimals exceeds 64 bits.
        assert!(check("V:C", 1, 14).is_ok());
        assert!(check("V:C", 1_000_000_000_000_000, 9).is_err());
        assert_eq!(scales.others().iter().map(String::as_str).collect::<Vec<_>>(), ["V:A", "V:B", "V:C"]);
        assert_eq!(decimal_text(-50, 3), "-0.05");
        assert_eq!(decimal_text(7, 0), "7");
    }
}
