//! Signals as rows.

use std::collections::BTreeMap;

use serde_json::json;
use warptape_eventlog::Record;
use warptape_schemas::signal::{Bar, ExactBar, ExactFlow, INDICATOR_COUNT};
use warptape_schemas::{Decimal, decode_signal};
use warptape_stages::Indicator;

use crate::cell::{Cell, Misfit, price, size};
use crate::declared::{FURTHER_COUNT, SIGNALS};
use crate::rows::Rows;

/// Digits after the decimal point of fields whose names end in `_e9`.
const E9: u8 = 9;

/// Adds the row of a record. An error says why the record cannot be read.
pub(crate) fn push(partition: i32, record: &Record, rows: &mut Rows) -> Result<(), String> {
    let signal = decode_signal(&record.value).map_err(|error| error.to_string())?;
    let bar = signal.bar.as_ref();
    let numbers = Numbers::of(bar).map_err(|error| error.to_string())?;
    let (further, others) = further(bar);
    let others = (!others.is_empty()).then(|| json!(others).to_string());
    let number = |of: fn(&Bar) -> Option<i64>| Cell::from(bar.and_then(of));
    let mut row: Vec<Cell<'_>> = vec![
        partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        (&*signal.symbol).into(),
        signal.kind.name().into(),
        (&*signal.bar_spec).into(),
        signal.bar_start_ns.into(),
        signal.bar_end_ns.into(),
        signal.source_offset.into(),
        signal.source_index.into(),
        signal.value.into(),
        signal.threshold.into(),
    ];
    row.extend(numbers.prices);
    row.extend([numbers.volume, number(|bar| Some(bar.trades))]);
    row.extend(numbers.quote);
    row.extend((0..INDICATOR_COUNT).map(|index| Cell::from(bar.and_then(|bar| bar.indicators[index]))));
    row.extend(further.map(Cell::from));
    row.push(others.as_deref().into());
    row.push(bar.and_then(|bar| bar.partial).into());
    row.extend(numbers.sides);
    row.extend([number(|bar| bar.buy_trades), number(|bar| bar.sell_trades)]);
    row.extend(numbers.quote_sizes);
    row.push(bar.and_then(|bar| bar.quote_forgotten).into());
    row.push(signal.name.as_deref().into());
    rows.push(&SIGNALS, &row);
    Ok(())
}

/// Returns the values of further indicators in the order of their columns, and by name those that have no column.
fn further(bar: Option<&Bar>) -> ([Option<f64>; FURTHER_COUNT], BTreeMap<&str, f64>) {
    let all = bar.into_iter().flat_map(|bar| &bar.further_indicators);
    let mut others: BTreeMap<&str, f64> = all.map(|(name, value)| (&**name, *value)).collect();
    let mut columns = [None; FURTHER_COUNT];
    for (column, indicator) in columns.iter_mut().zip(&Indicator::ALL[INDICATOR_COUNT..]) {
        *column = others.remove(indicator.name());
    }
    (columns, others)
}

/// Prices and sizes of a bar: the exact ones if it has them, otherwise those in 1e-9.
struct Numbers<'a> {
    prices: [Cell<'a>; 4],
    volume: Cell<'a>,
    /// Bid and ask.
    quote: [Cell<'a>; 2],
    /// Volume of buyers, and volume of sellers.
    sides: [Cell<'a>; 2],
    quote_sizes: [Cell<'a>; 2],
}

impl Numbers<'_> {
    fn of(bar: Option<&Bar>) -> Result<Self, Misfit> {
        let Some(bar) = bar else {
            let (prices, two) = ([Cell::Null; 4], [Cell::Null; 2]);
            return Ok(Self { prices, volume: Cell::Null, quote: two, sides: two, quote_sizes: two });
        };
        let of_price = |e9: Option<i64>, exact: fn(&ExactBar) -> Decimal<18>| match &bar.exact {
            Some(numbers) => price(exact(numbers).0, 18),
            None => e9.map_or(Ok(Cell::Null), |e9| price(e9, E9)),
        };
        let of_flow = |e9: Option<i64>, exact: fn(&ExactFlow) -> Decimal<9>| match (e9, &bar.exact_flow) {
            (Some(_), Some(numbers)) => size(exact(numbers).0, E9),
            (Some(e9), None) => size(e9, E9),
            (None, _) => Ok(Cell::Null),
        };
        let quote_sizes = [
            of_flow(bar.bid_size_e9, |exact| exact.bid_size)?,
            of_flow(bar.ask_size_e9, |exact| exact.ask_size)?,
        ];
        let quote = [
            of_price(bar.bid_price_e9, |exact| exact.bid_price)?,
            of_price(bar.ask_price_e9, |exact| exact.ask_price)?,
        ];
        Ok(Self {
            prices: [
                of_price(bar.open_e9, |exact| exact.open)?,
                of_price(bar.high_e9, |exact| exact.high)?,
                of_price(bar.low_e9, |exact| exact.low)?,
                of_price(bar.close_e9, |exact| exact.close)?,
            ],
            volume: size(bar.exact.map_or(bar.volume_e9.into(), |exact| exact.volume.0), E9)?,
            quote: [present(quote[0], quote_sizes[0]), present(quote[1], quote_sizes[1])],
            sides: [
                of_flow(bar.buy_volume_e9, |exact| exact.buy_volume)?,
                of_flow(bar.sell_volume_e9, |exact| exact.sell_volume)?,
            ],
            quote_sizes,
        })
    }
}

/// Returns the price of a quote; null if price and size are 0, because then there is none.
pub(crate) fn present<'a>(price: Cell<'a>, size: Cell<'a>) -> Cell<'a> {
    let has_size = !matches!(size, Cell::Null | Cell::Decimal(0));
    if price == Cell::Decimal(0) && !has_size { Cell::Null } else { price }
}
