//! The kernels one after the other, as a stage uses them.

use std::ops::Range;

use warptape_kernels::{
    BarSlab, ClosedBars, Detected, INDICATORS, IndicatorColumns, IndicatorParams, IndicatorSlab, Isa, Rows,
    SignalParams, SignalSlab, StateError,
};

use crate::market::Market;

/// Thresholds that values of short windows can exceed: a z-score over n bars is at most √(n − 1).
pub fn signal_params() -> SignalParams {
    SignalParams { zscore_threshold: 2.0, ..SignalParams::default() }
}

/// Short windows for all indicators, some of them equal, so that all have values after a few bars.
pub fn short_params() -> IndicatorParams {
    IndicatorParams::from_values(|parameter| match parameter.key {
        "momentum" => 1.0,
        "bollinger_width" => 2.0,
        "ema_fast" | "macd_fast" | "vwap" => 3.0,
        "sma" | "atr" | "roc" => 5.0,
        "bollinger" | "macd_slow" => 6.0,
        "ema_slow" => 7.0,
        "zscore" => 9.0,
        _ => 4.0,
    })
}

/// All state of a group, and all its outputs.
#[derive(Clone, Debug)]
pub struct Chain {
    isa: Isa,
    bars: Vec<BarSlab>,
    indicators: Vec<IndicatorSlab>,
    signals: Vec<SignalSlab>,
    /// Outputs, by specification.
    pub out: Vec<Outputs>,
}

/// The outputs of one specification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    pub closed: Vec<ClosedBars>,
    /// Bits of values, by bar, then by indicator.
    pub indicators: Vec<[u64; INDICATORS]>,
    /// Number of the bar since the start, kind, bits of value and threshold.
    pub detected: Vec<(usize, u8, u64, u64)>,
}

impl Chain {
    pub fn new(market: &Market, params: &IndicatorParams, isa: Isa) -> Self {
        let slots = market.slots as usize;
        let mut chain = Self {
            isa,
            bars: market.specs.iter().map(|spec| BarSlab::new(*spec, market.allowed_lateness_ns)).collect(),
            indicators: market
                .specs
                .iter()
                .map(|_| IndicatorSlab::new(params.clone(), &signal_params()))
                .collect(),
            signals: market.specs.iter().map(|_| SignalSlab::new(signal_params())).collect(),
            out: vec![Outputs::default(); market.specs.len()],
        };
        for spec in 0..market.specs.len() {
            chain.bars[spec].resize(slots);
            chain.indicators[spec].resize(slots);
            chain.signals[spec].resize(slots);
        }
        chain
    }

    pub fn run(&mut self, rows: &Rows, range: Range<usize>) {
        for spec in 0..self.bars.len() {
            let mut closed = ClosedBars::default();
            self.bars[spec].fold(rows, range.clone(), &mut closed);
            let mut columns = IndicatorColumns::default();
            self.indicators[spec].update(self.isa, &closed, &mut columns);
            let mut detected = Vec::new();
            self.signals[spec].detect(&closed, &columns, &mut detected);
            self.out[spec].add(closed, &columns, &detected);
        }
    }

    pub fn state(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for spec in 0..self.bars.len() {
            self.bars[spec].write(&mut bytes);
            self.indicators[spec].write(&mut bytes);
            self.signals[spec].write(&mut bytes);
        }
        bytes
    }

    /// Replaces the state by one that was written earlier, and keeps the outputs.
    pub fn restore(
        &mut self,
        market: &Market,
        params: &IndicatorParams,
        mut bytes: &[u8],
    ) -> Result<(), StateError> {
        let (slots, bytes) = (market.slots as usize, &mut bytes);
        for (spec, text) in market.specs.iter().enumerate() {
            self.bars[spec] = BarSlab::read(*text, market.allowed_lateness_ns, slots, bytes)?;
            self.indicators[spec] = IndicatorSlab::read(params.clone(), &signal_params(), slots, bytes)?;
            self.signals[spec] = SignalSlab::read(signal_params(), slots, bytes)?;
        }
        assert!(bytes.is_empty(), "{} bytes were not read", bytes.len());
        Ok(())
    }
}

impl Outputs {
    fn add(&mut self, mut closed: ClosedBars, columns: &IndicatorColumns, detected: &[Detected]) {
        let before = self.indicators.len();
        for row in 0..closed.len() {
            self.indicators.push(columns.of_bar(row).map(f64::to_bits));
        }
        self.detected.extend(detected.iter().map(|detected| {
            let bar = before + detected.row as usize;
            (bar, detected.kind as u8, detected.value.to_bits(), detected.threshold.to_bits())
        }));
        // All bars become one list, whatever the cuts.
        match self.closed.first_mut() {
            None => self.closed.push(closed),
            Some(all) => {
                all.slot.append(&mut closed.slot);
                all.start_ns.append(&mut closed.start_ns);
                all.end_ns.append(&mut closed.end_ns);
                all.open_e9.append(&mut closed.open_e9);
                all.high_e9.append(&mut closed.high_e9);
                all.low_e9.append(&mut closed.low_e9);
                all.close_e9.append(&mut closed.close_e9);
                all.volume_e9.append(&mut closed.volume_e9);
                all.notional_e18.append(&mut closed.notional_e18);
                all.trades.append(&mut closed.trades);
                all.bid_price_e9.append(&mut closed.bid_price_e9);
                all.ask_price_e9.append(&mut closed.ask_price_e9);
                all.by_side.append(&mut closed.by_side);
                all.quote_sizes_e9.append(&mut closed.quote_sizes_e9);
                all.is_cut.append(&mut closed.is_cut);
                all.offset.append(&mut closed.offset);
                all.index.append(&mut closed.index);
                all.row.append(&mut closed.row);
            }
        }
    }
}
