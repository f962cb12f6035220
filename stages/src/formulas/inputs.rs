//! Names that formulas read: numbers of the closed bar and its indicators, as consumers of the signal see them.

use warptape_kernels::{ClosedBars, Indicator, IndicatorColumns, IndicatorParams};

use crate::scales::{of_nine_digits, price_of};

/// A name of the bar, with its value's words.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Name in formulas.
    pub name: &'static str,
    /// The value, for the book.
    pub about: &'static str,
}

const fn input(name: &'static str, about: &'static str) -> Input {
    Input { name, about }
}

/// Names of the bar. The names of indicators follow them.
pub const INPUTS: [Input; 17] = [
    input("open", "first price"),
    input("high", "greatest price"),
    input("low", "least price"),
    input("close", "last price"),
    input("volume", "sum of the sizes"),
    input("trades", "number of trades"),
    input("buy_volume", "sum of the sizes of trades with an aggressive buyer"),
    input("sell_volume", "sum of the sizes of trades with an aggressive seller"),
    input("buy_trades", "number of trades with an aggressive buyer"),
    input("sell_trades", "number of trades with an aggressive seller"),
    input("bid", "best bid before the bar's end; null if there is none"),
    input("ask", "best offer of the same quote; null if there is none"),
    input("bid_size", "size at `bid`; 0 if the quote has no sizes, null if there is no bid"),
    input("ask_size", "size at `ask`; 0 if the quote has no sizes, null if there is no offer"),
    input("mid", "`(bid + ask) / 2`"),
    input("spread", "`ask - bid`"),
    input("seconds", "time from start to end of the bar"),
];

/// Number of inputs: names of the bar, then indicators.
pub(super) const COUNT: usize = INPUTS.len() + Indicator::ALL.len();

/// The place of a name among the inputs; `None` if it is none of them.
pub(super) fn place(name: &str) -> Option<usize> {
    names().position(|other| other == name)
}

/// True if the name is that of an indicator which is off.
pub(super) fn is_off(name: &str, params: &IndicatorParams) -> bool {
    Indicator::ALL.into_iter().any(|indicator| indicator.name() == name && params.is_off(indicator))
}

/// All names, in the order of their places.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    INPUTS.iter().map(|input| input.name).chain(Indicator::ALL.iter().map(|indicator| indicator.name()))
}

/// The inputs at a closed bar of a symbol whose prices have so many digits.
pub(crate) fn inputs_of(
    closed: &ClosedBars,
    columns: &IndicatorColumns,
    row: usize,
    price_scale: u8,
) -> [f64; COUNT] {
    let price = |price: i64| price_of(price as f64, price_scale);
    let e9 = |number: i128| number as f64 / 1e9;
    let sizes = closed.quote_sizes_e9[row];
    // A size below 0 stands for a side without orders, or a quote that is no longer kept.
    let side = |price_e9: i64, size: i128| {
        if size >= 0 { (price(price_e9), e9(size)) } else { (f64::NAN, f64::NAN) }
    };
    let (bid, bid_size) = side(closed.bid_price_e9[row], sizes[0]);
    let (ask, ask_size) = side(closed.ask_price_e9[row], sizes[1]);
    let by_side = &closed.by_side[row];
    let of_bar = [
        price(closed.open_e9[row]),
        price(closed.high_e9[row]),
        price(closed.low_e9[row]),
        price(closed.close_e9[row]),
        e9(closed.volume_e9[row]),
        closed.trades[row] as f64,
        e9(by_side.volumes_e9[0]),
        e9(by_side.volumes_e9[1]),
        by_side.trades[0] as f64,
        by_side.trades[1] as f64,
        bid,
        ask,
        bid_size,
        ask_size,
        (bid + ask) / 2.0,
        ask - bid,
        // The difference of two times within 64 bits may need 65.
        (i128::from(closed.end_ns[row]) - i128::from(closed.start_ns[row])) as f64 / 1e9,
    ];
    let mut inputs = [f64::NAN; COUNT];
    let (bar, indicators) = inputs.split_at_mut(INPUTS.len());
    bar.copy_from_slice(&of_bar);
    for ((input, value), indicator) in indicators.iter_mut().zip(columns.of_bar(row)).zip(Indicator::ALL) {
        *input = if indicator.is_price() { of_nine_digits(value, price_scale) } else { value };
    }
    inputs
}
