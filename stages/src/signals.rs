//! Signals as records: what a specification of bars closed, detected and computed.

use std::borrow::Cow;

use warptape_events::Decimal;
use warptape_events::signal::{Bar, ExactBar, ExactFlow, INDICATOR_COUNT, Signal, SignalKind};
use warptape_events::tick::Scales;
use warptape_kernels::{BySide, Detected, FORGOTTEN, Indicator};

use crate::formulas::{Occurred, Program};
use crate::group::{GroupSymbol, SpecState};
use crate::scales::{of_nine_digits, to_e18};

impl SpecState {
    /// The record of a detected signal.
    pub(crate) fn signal<'a>(
        &'a self,
        symbol: &'a GroupSymbol,
        detected: &Detected,
        program: &Program,
    ) -> Signal<'a> {
        let (closed, row) = (&self.closed, detected.row as usize);
        let kind = detected.kind;
        let scaled = |value| if kind.is_price() { of_nine_digits(value, symbol.price_scale) } else { value };
        Signal {
            symbol: Cow::Borrowed(&symbol.name),
            kind,
            bar_spec: Cow::Borrowed(&self.name),
            bar_start_ns: closed.start_ns[row],
            bar_end_ns: closed.end_ns[row],
            source_offset: closed.offset[row],
            source_index: closed.index[row] as i32,
            value: scaled(detected.value),
            threshold: scaled(detected.threshold),
            bar: (kind == SignalKind::Bar).then(|| self.bar_with_formulas(row, symbol, program)),
            name: None,
        }
    }

    /// The record of an alert or a fault of a formula.
    pub(crate) fn occurrence<'a>(&'a self, symbol: &'a GroupSymbol, occurred: &'a Occurred) -> Signal<'a> {
        let (closed, row) = (&self.closed, occurred.row as usize);
        Signal {
            symbol: Cow::Borrowed(&symbol.name),
            kind: occurred.kind,
            bar_spec: Cow::Borrowed(&self.name),
            bar_start_ns: closed.start_ns[row],
            bar_end_ns: closed.end_ns[row],
            source_offset: closed.offset[row],
            source_index: closed.index[row] as i32,
            value: occurred.sides[0],
            threshold: occurred.sides[1],
            bar: None,
            name: Some(Cow::Borrowed(&occurred.name)),
        }
    }

    fn bar_with_formulas(&self, row: usize, symbol: &GroupSymbol, program: &Program) -> Bar {
        let mut bar = self.bar(row, symbol);
        let count = program.formula_count();
        let values = self.computed.values[row * count..(row + 1) * count].iter();
        let named = program.formula_names().zip(values).filter(|(_, value)| !value.is_nan());
        bar.further_indicators.extend(named.map(|(name, value)| (Cow::Owned(name.to_owned()), *value)));
        bar
    }

    fn bar(&self, row: usize, symbol: &GroupSymbol) -> Bar {
        let (closed, columns) = (&self.closed, self.columns.of_bar(row));
        let values = columns.map(|value| (!value.is_nan()).then_some(value));
        let (indicators, further) = values.split_at(INDICATOR_COUNT);
        let further = Indicator::ALL[INDICATOR_COUNT..].iter().zip(further);
        let volume_e9 = i64::try_from(closed.volume_e9[row]);
        let bar = Bar {
            open_e9: Some(closed.open_e9[row]),
            high_e9: Some(closed.high_e9[row]),
            low_e9: Some(closed.low_e9[row]),
            close_e9: Some(closed.close_e9[row]),
            volume_e9: volume_e9.unwrap_or(i64::MAX),
            trades: closed.trades[row],
            bid_price_e9: Some(closed.bid_price_e9[row]),
            ask_price_e9: Some(closed.ask_price_e9[row]),
            exact: None,
            indicators: indicators.try_into().expect("the first columns have fields of their own"),
            further_indicators: further
                .filter_map(|(indicator, value)| value.map(|value| (indicator.name().into(), value)))
                .collect(),
            partial: None,
            buy_volume_e9: None,
            sell_volume_e9: None,
            buy_trades: None,
            sell_trades: None,
            bid_size_e9: None,
            ask_size_e9: None,
            quote_forgotten: None,
            exact_flow: None,
        };
        let bar = self.with_flow(bar, row, symbol);
        if symbol.price_scale == Scales::E9.price && volume_e9.is_ok() {
            bar
        } else {
            exact(bar, closed.volume_e9[row], symbol.price_scale)
        }
    }

    /// The bar with its flow: volumes and trades by aggressor, and sizes of the last quote.
    fn with_flow(&self, bar: Bar, row: usize, symbol: &GroupSymbol) -> Bar {
        let closed = &self.closed;
        let BySide { volumes_e9, trades } = closed.by_side[row];
        let sizes_e9 = closed.quote_sizes_e9[row];
        let saturated = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
        let size = |size_e9: i128| (size_e9 >= 0).then(|| saturated(size_e9));
        let is_large =
            [volumes_e9, sizes_e9].as_flattened().iter().any(|number| i64::try_from(*number).is_err());
        let decimal = |number: i128| Decimal(number.max(0));
        let begins_unseen = self.is_of_time && closed.start_ns[row] < symbol.seen_since_ns;
        Bar {
            partial: Some(begins_unseen || closed.is_cut[row]),
            buy_volume_e9: Some(saturated(volumes_e9[0])),
            sell_volume_e9: Some(saturated(volumes_e9[1])),
            buy_trades: Some(trades[0]),
            sell_trades: Some(trades[1]),
            bid_size_e9: size(sizes_e9[0]),
            ask_size_e9: size(sizes_e9[1]),
            quote_forgotten: Some(sizes_e9[0] == i128::from(FORGOTTEN)),
            exact_flow: is_large.then(|| ExactFlow {
                buy_volume: decimal(volumes_e9[0]),
                sell_volume: decimal(volumes_e9[1]),
                bid_size: decimal(sizes_e9[0]),
                ask_size: decimal(sizes_e9[1]),
            }),
            ..bar
        }
    }
}

/// A bar with exact numbers, if its prices have another scale than nine digits or its volume exceeds 64 bits.
#[cold]
fn exact(bar: Bar, volume_e9: i128, price_scale: u8) -> Bar {
    let e18 = |price: Option<i64>| Decimal(to_e18(price.expect("a bar that closed has prices"), price_scale));
    let exact = ExactBar {
        open: e18(bar.open_e9),
        high: e18(bar.high_e9),
        low: e18(bar.low_e9),
        close: e18(bar.close_e9),
        volume: Decimal(volume_e9),
        bid_price: e18(bar.bid_price_e9),
        ask_price: e18(bar.ask_price_e9),
    };
    if price_scale == Scales::E9.price {
        return Bar { exact: Some(exact), ..bar };
    }
    let mut bar = bar;
    for indicator in Indicator::ALL.into_iter().filter(|indicator| indicator.is_price()) {
        let value = match bar.indicators.get_mut(indicator as usize) {
            Some(value) => value.as_mut(),
            None => bar.further_indicators.get_mut(indicator.name()),
        };
        if let Some(value) = value {
            *value = of_nine_digits(*value, price_scale);
        }
    }
    Bar {
        open_e9: None,
        high_e9: None,
        low_e9: None,
        close_e9: None,
        bid_price_e9: None,
        ask_price_e9: None,
        exact: Some(exact),
        ..bar
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::known;
    use warptape_events::signal::INDICATORS;

    use super::*;

    /// The first columns are fields of the schema, under the same names; the others have names that no field has.
    #[test]
    fn signals_have_all_indicators() {
        let schema: serde_json::Value = serde_json::from_str(known::SIGNAL.text).expect("JSON");
        let field = |name: &str| {
            let fields = schema["fields"].as_array().expect("a record has fields");
            fields.iter().find(|field| field["name"] == name)
        };
        let (own, further) = Indicator::ALL.split_at(INDICATOR_COUNT);
        for (indicator, name) in own.iter().zip(INDICATORS) {
            assert_eq!(indicator.name(), name);
            let words = field(name).expect("a field")["doc"].as_str();
            assert_eq!(words, Some(&*format!("{} Null until enough bars closed.", indicator.about())));
        }
        for indicator in further {
            assert_eq!(field(indicator.name()), None);
        }
    }
}
