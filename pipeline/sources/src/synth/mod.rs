//! A synthetic market, which is determined by its seed and equal on every platform.
//!
//! - **Prices**: Merton jump-diffusions, correlated through one market factor. The return of symbol *i* over *dt* is
//!   `β_i · dM + σ_i · √dt · N(0,1) + jumps`, where *M* is a jump-diffusion too (R. C. Merton, "Option pricing when
//!   underlying stock returns are discontinuous", 1976). Returns are simple, not logarithmic: over the milliseconds
//!   between ticks the two are equal.
//! - **Activity**: symbols are drawn by Zipf's law; arrivals are Poisson with a rate that is U-shaped over the UTC day.
//! - **Ticks**: quotes around the price, and trades at the current bid or ask, one in four as in the recordings. Sizes
//!   are log-normal. The first tick of a symbol is a quote.
//! - **Disorder**: ticks arrive in order of receive time; a few are held back by up to 500 ms, fewer by more than 5 s.
//!
//! Floats use only `+ − × ÷ √`, which IEEE 754 rounds the same everywhere, and approximations built from them
//! ([`arithmetic`]). They use no `exp` or `ln` of a platform's library and no fused multiply-add. A test fixes the
//! ticks of a seed.

mod activity;
mod arithmetic;
mod config;
mod delays;
mod instrument;
mod market_factor;
mod random;

use warptape_events::tick::Tick;

use self::activity::{SymbolDraw, activity};
use self::arithmetic::ln;
use self::delays::Delays;
use self::instrument::Instrument;
use self::market_factor::MarketFactor;
use self::random::Random;
use super::price_scales::PriceScales;
use super::{PassedOver, ProgressUnit, SourceError, SourceProgress, TickSource};

pub use self::config::SynthConfig;

/// Ticks of the synthetic market.
pub struct SynthSource {
    ticks: Option<u64>,
    /// Greatest number of ticks to return; `None` for all.
    given_max: Option<u64>,
    /// Number of ticks made so far; some may still be held back.
    made: u64,
    /// Number of ticks returned so far.
    given: u64,
    /// Event time of the last tick made.
    time_ns: i64,
    /// Mean time between ticks at activity 1.
    gap_ns: f64,
    /// A draw below this value makes a trade.
    trade_below: u64,
    random: Random,
    market: MarketFactor,
    draw: SymbolDraw,
    instruments: Vec<Instrument>,
    delays: Delays,
    /// A tick that is on time, and waits for delayed ticks that arrive before it.
    on_time: Option<Tick>,
}

impl SynthSource {
    /// Creates the configured market.
    ///
    /// # Errors
    /// If a setting is out of its range; the error names the first.
    pub fn new(config: SynthConfig) -> Result<SynthSource, SourceError> {
        config.check()?;
        let instruments =
            (0..config.symbols).map(|index| Instrument::new(config.seed, index, config.start_time_ns));
        Ok(SynthSource {
            ticks: config.ticks,
            given_max: None,
            made: 0,
            given: 0,
            time_ns: config.start_time_ns,
            gap_ns: 1e9 / config.events_per_second,
            trade_below: Random::below_percent(config.trade_percent),
            random: Random::stream(config.seed, random::STREAM_TICKS),
            market: MarketFactor::new(config.seed, config.start_time_ns),
            draw: SymbolDraw::zipf(config.symbols, config.zipf_exponent),
            instruments: instruments.collect(),
            delays: Delays::new(config.seed, config.out_of_order_percent, config.late_percent),
            on_time: None,
        })
    }

    /// Ends after `ticks` ticks of a market that goes on, so that a longer run begins like a shorter one. (A market
    /// that closes releases its last ticks at once.)
    pub fn first(self, ticks: u64) -> SynthSource {
        SynthSource { given_max: Some(ticks), ..self }
    }

    /// Returns the number of ticks returned so far, and the total if it is limited.
    pub fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.given, total: self.given_max.or(self.ticks), unit: ProgressUnit::Ticks }
    }

    /// Returns the next tick in order of event time; `None` once all are made, or at the end of representable time (the
    /// year 2262).
    fn make(&mut self) -> Option<Tick> {
        if self.ticks.is_some_and(|ticks| self.made >= ticks) {
            return None;
        }
        let gap_ns = -ln(self.random.uniform()) * self.gap_ns / activity(self.time_ns);
        let time_ns = self.time_ns.checked_add((gap_ns as i64).max(1))?;
        // A delayed tick arrives after its event time, which must be representable, too.
        time_ns.checked_add(delays::DELAY_NS_MAX)?;
        self.time_ns = time_ns;
        self.made += 1;
        self.market.advance(time_ns);
        let instrument = &mut self.instruments[self.draw.draw(&mut self.random)];
        let is_trade = self.random.next_u64() < self.trade_below;
        Some(if is_trade && instrument.has_book() {
            instrument.trade(time_ns, &mut self.random)
        } else {
            instrument.quote(time_ns, self.market.level(), &mut self.random)
        })
    }
}

/// The market as a source for `feed`. No tick is an error.
pub struct SynthTicks(pub SynthSource);

impl Iterator for SynthTicks {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl TickSource for SynthTicks {
    fn progress(&self) -> SourceProgress {
        self.0.progress()
    }

    fn last_input(&self) -> usize {
        0
    }

    fn last_line(&self) -> u64 {
        0
    }

    fn leave(&mut self, _: usize, ticks: u64) {
        self.0.by_ref().take(usize::try_from(ticks).unwrap_or(usize::MAX)).for_each(drop);
    }

    fn scales(&mut self) -> Option<&mut PriceScales> {
        None
    }

    fn passed_over(&self) -> PassedOver {
        PassedOver::default()
    }
}

impl Iterator for SynthSource {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        if self.given_max.is_some_and(|given_max| self.given >= given_max) {
            return None;
        }
        while self.on_time.is_none() {
            match self.make() {
                Some(tick) => self.on_time = self.delays.pass(tick),
                None => break,
            }
        }
        let before_ns = self.on_time.as_ref().map_or(i64::MAX, |tick| tick.receive_time_ns);
        let tick = self.delays.pop_until(before_ns).or_else(|| self.on_time.take());
        self.given += u64::from(tick.is_some());
        tick
    }
}

#[cfg(test)]
mod tests;
