//! One scale for all prices of a symbol, and one unit for all sizes.
//!
//! ```text
//!   tick as it came          as it is dealt
//!   price, price_scale  ──►  price in the symbol's scale: that of its first tick in the partition
//!   size, size_scale    ──►  size in 10^exponent of 1e-9, the exponent being 0 wherever 64 bits allow it
//! ```
//!
//! Bars compare and add integers, so all prices of a symbol have one scale. A price of another scale is converted if
//! that is exact; otherwise its tick is rejected. Almost all symbols have the scale of nine digits, and their ticks
//! come with it: then nothing is converted.

use warptape_events::TickProblem;
use warptape_events::tick::{RowScales, Scales, TickColumns};
use warptape_kernels::SIZE_EXPONENT_MAX;

use crate::StageError;
use crate::bytes::{get_u32, put_u32};

/// The scales of the prices of a partition's symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriceScales {
    /// Scales by symbol number.
    scales: Vec<u8>,
    /// True if one of them is not nine digits.
    has_others: bool,
    /// Scales of the symbols that the record at hand names first; kept between records for their memory.
    new: Vec<u8>,
}

impl PriceScales {
    /// The scale of a symbol, which must have a number.
    pub fn of(&self, symbol: u32) -> u8 {
        self.scales[symbol as usize]
    }

    /// Begins a record whose rows are converted one by one.
    pub fn begin_record(&mut self) {
        self.new.clear();
    }

    /// True if all symbols have nine digits, so that rows without scales of their own need no conversion.
    pub fn are_of_nine_digits(&self) -> bool {
        !self.has_others
    }

    /// Converts a row to the scale of its symbol and the unit of sizes. A symbol without a number yet takes the scale
    /// of the row.
    pub fn convert_row(
        &self,
        ticks: &mut TickColumns,
        row: usize,
        symbol: Option<u32>,
    ) -> Result<Scales, Problem> {
        let given = ticks.scales_of(row);
        let price = symbol.map_or(given.price, |symbol| {
            let new = (symbol as usize).checked_sub(self.scales.len());
            new.map_or_else(|| self.scales[symbol as usize], |new| self.new[new])
        });
        convert_row(ticks, row, given, price)
    }

    /// Adds the scale of the next new symbol, which is that of its first row.
    pub fn add_new(&mut self, scale: u8) {
        self.new.push(scale);
    }

    /// Keeps the scales of the symbols that an accepted record named first, which are numbered now.
    pub fn keep_new(&mut self) {
        for scale in self.new.drain(..) {
            self.scales.push(scale);
            self.has_others |= scale != Scales::E9.price;
        }
    }

    /// Writes the scales that are not nine digits.
    pub fn write(&self, out: &mut Vec<u8>) {
        let others = || self.scales.iter().enumerate().filter(|(_, scale)| **scale != Scales::E9.price);
        put_u32(out, others().count() as u32);
        for (symbol, scale) in others() {
            put_u32(out, symbol as u32);
            put_u32(out, u32::from(*scale));
        }
    }

    /// Reads the bytes of a partition with `symbols` symbols.
    pub fn read(symbols: usize, bytes: &mut &[u8]) -> Result<Self, StageError> {
        let mut found = Self { scales: vec![Scales::E9.price; symbols], ..Self::default() };
        for _ in 0..get_u32(bytes, "count of scales")? {
            let (symbol, scale) = (get_u32(bytes, "symbol of a scale")?, get_u32(bytes, "scale")?);
            let slot = found.scales.get_mut(symbol as usize).filter(|_| scale <= Scales::MAX.into());
            let damaged = || StageError::Damaged { found: format!("scale {scale} of symbol {symbol}") };
            *slot.ok_or_else(damaged)? = scale as u8;
            found.has_others = true;
        }
        Ok(found)
    }
}

/// The exponent of a converted row's size: see [`warptape_kernels::RowKind::trade`].
pub(crate) fn size_exponent(scales: Scales) -> u32 {
    u32::from(Scales::E9.size - scales.size)
}

/// A price with `scale` digits after the decimal point as a number, which is rounded to 53 bits and then divided.
pub(crate) fn price_of(value: f64, scale: u8) -> f64 {
    value / POWERS_OF_TEN[usize::from(scale)] as f64
}

/// A number that was computed from prices with `scale` digits as if they had nine, in the right scale.
pub(crate) fn of_nine_digits(value: f64, scale: u8) -> f64 {
    if scale <= Scales::E9.price {
        value * POWERS_OF_TEN[usize::from(Scales::E9.price - scale)] as f64
    } else {
        value / POWERS_OF_TEN[usize::from(scale - Scales::E9.price)] as f64
    }
}

/// A price with `scale` digits after the decimal point, scaled by 1e-18.
pub(crate) fn to_e18(price: i64, scale: u8) -> i128 {
    i128::from(price) * i128::from(POWERS_OF_TEN[usize::from(Scales::MAX - scale)])
}

/// Powers of ten up to 64 bits; f64 represents them exactly.
const POWERS_OF_TEN: [i64; Scales::MAX as usize + 1] = {
    let mut powers = [1; Scales::MAX as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A number of one scale in another one; `None` if it has more digits or more than 64 bits there.
fn rescaled(value: i64, from: u8, to: u8) -> Option<i64> {
    let power = POWERS_OF_TEN[usize::from(from.abs_diff(to))];
    // The ends of the range mean that there is no number.
    let fits = |value: &i64| *value != i64::MIN && *value != i64::MAX;
    if from <= to {
        value.checked_mul(power).filter(fits)
    } else {
        (value % power == 0).then_some(value / power)
    }
}

/// A field with its problem.
pub(crate) type Problem = (&'static str, TickProblem);

/// Sets the scales of the rows from `first` on.
pub(crate) fn set_scales(ticks: &mut TickColumns, first: usize, converted: &mut Vec<RowScales>) {
    ticks.scales.truncate(ticks.scales.len() - ticks.scales_from(first).len());
    ticks.scales.append(converted);
}

fn convert_row(
    ticks: &mut TickColumns,
    row: usize,
    given: Scales,
    symbol_scale: u8,
) -> Result<Scales, Problem> {
    convert_prices(ticks, row, given.price, symbol_scale)?;
    let size = convert_sizes(ticks, row, given.size)?;
    Ok(Scales { price: symbol_scale, size })
}

fn convert_prices(ticks: &mut TickColumns, row: usize, scale: u8, symbol_scale: u8) -> Result<(), Problem> {
    if scale == symbol_scale {
        return Ok(());
    }
    for (field, column) in [
        ("price", &mut ticks.price_e9),
        ("bid_price", &mut ticks.bid_price_e9),
        ("ask_price", &mut ticks.ask_price_e9),
    ] {
        let value = column[row];
        let problem = TickProblem::OtherScale { value, scale, symbol_scale };
        column[row] = rescaled(value, scale, symbol_scale).ok_or((field, problem))?;
    }
    Ok(())
}

/// Converts sizes. Returns their new scale: nine digits, or the greatest scale below at which all of them have 64 bits.
fn convert_sizes(ticks: &mut TickColumns, row: usize, scale: u8) -> Result<u8, Problem> {
    if scale == Scales::E9.size {
        return Ok(scale);
    }
    let mut columns = [
        ("size", &mut ticks.size_e9),
        ("bid_size", &mut ticks.bid_size_e9),
        ("ask_size", &mut ticks.ask_size_e9),
    ];
    let to = if scale > Scales::E9.size {
        Scales::E9.size
    } else {
        let all_fit = |to: &u8| columns.iter().all(|(_, column)| rescaled(column[row], scale, *to).is_some());
        (scale..=Scales::E9.size).rev().find(all_fit).unwrap_or(scale)
    };
    for (field, column) in &mut columns {
        let value = column[row];
        column[row] = rescaled(value, scale, to).ok_or((*field, TickProblem::TooFine { value, scale }))?;
    }
    Ok(to)
}

const _: () = assert!(Scales::E9.size as u32 == SIZE_EXPONENT_MAX);
