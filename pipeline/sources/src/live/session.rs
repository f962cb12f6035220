//! One live feed: its messages become ticks, and what is missing, repeated or wrong is counted.

use std::collections::BTreeMap;

use warptape_events::tick::{Tick, TickKind};

use super::clock_difference::{ClockDifferences, ClockSummary};
use super::trade_ids::{Place, TradeGap, TradeIds};
use super::venue::LiveVenue;
use crate::capture::{Message, VenueMessages};
use crate::price_scales::PriceScales;
use crate::{FieldProblem, PassedOver};

/// Ticks, gaps and counts of a live feed over all its connections.
pub struct LiveSession {
    messages: Box<dyn VenueMessages>,
    symbols: BTreeMap<String, SymbolState>,
    scales: PriceScales,
    cuts: Vec<Cut>,
    counts: LiveCounts,
    clock: ClockDifferences,
    /// The same since the last report.
    recent_clock: ClockDifferences,
}

#[derive(Default)]
struct SymbolState {
    ids: TradeIds,
    /// Event time of the last trade.
    last_time_ns: Option<i64>,
    /// The first cut since the last trade; `None` if there was none.
    cut: Option<usize>,
}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Time by the local clock.
    pub time_ns: i64,
    /// The reason, in words.
    pub reason: String,
    /// Number of symbols with trades before it.
    pub symbols: usize,
    /// Number of these symbols without a trade since, so that missing trades do not show yet.
    pub unchecked: usize,
    /// Number of trades that are missing.
    pub missing: u64,
}

/// Counts of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Messages received, bad ones included.
    pub messages: u64,
    /// Messages that do not parse, or are of a symbol that was not asked for.
    pub bad: u64,
    /// Trades received again, which are not published again.
    pub repeated: u64,
    /// Trades received after a later one; they are published.
    pub earlier: u64,
    /// Ticks left out because their price does not fit the scale of their symbol.
    pub unfit: u64,
    /// Gaps in trade ids.
    pub gaps: u64,
    /// Trades that are missing in these gaps.
    pub missing: u64,
    /// Messages without a tick, by kind.
    pub passed_over: PassedOver,
}

/// The meaning of a message for the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A tick to publish.
    Tick(Tick),
    /// Nothing to publish.
    Nothing,
    /// A tick whose price does not fit the scale of its symbol.
    Unfit(FieldProblem),
    /// A message that does not parse. It is no part of the feed.
    Bad(FieldProblem),
    /// A trade that was received before. It is no part of the feed.
    Repeated,
    /// The venue refused the subscription, with its reason.
    Refused(String),
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its meaning.
    pub outcome: Outcome,
    /// The gap that it shows; `None` if it shows none.
    pub gap: Option<TradeGap>,
    /// Number of the cut that is checked now for all symbols; `None` for none.
    pub checked_cut: Option<usize>,
}

impl LiveSession {
    /// Begins a feed of tickers as [`LiveVenue::ticker`] returns them. `name` is the venue of their symbols.
    pub fn new(venue: LiveVenue, name: &str, tickers: &[String]) -> Self {
        let symbol = |ticker: &String| (format!("{name}:{ticker}"), SymbolState::default());
        Self {
            messages: venue.messages(name),
            symbols: tickers.iter().map(symbol).collect(),
            scales: PriceScales::default(),
            cuts: Vec::new(),
            counts: LiveCounts::default(),
            clock: ClockDifferences::default(),
            recent_clock: ClockDifferences::default(),
        }
    }

    /// Sets the scale of a symbol's prices in the log. To be called before the first message.
    pub fn know_scale(&mut self, symbol: &str, scale: u8) {
        self.scales.know(symbol, scale);
    }

    /// Returns symbol and scale of the last tick; `None` unless it was the symbol's first one and its scale is not nine
    /// decimals.
    pub fn take_begun_scale(&mut self) -> Option<(String, u8)> {
        self.scales.take_begun()
    }

    /// Takes a message as a line `<receive ns> <JSON>`.
    pub fn receive(&mut self, line: &[u8]) -> Received {
        self.counts.messages += 1;
        let only = |outcome| Received { outcome, gap: None, checked_cut: None };
        match self.messages.read(line) {
            Err(problem) => only(self.bad(problem)),
            Ok(Message::Tick(tick)) => self.take_tick(tick),
            Ok(Message::PassedTrade { kind, trade }) => {
                self.counts.passed_over.ignore(&kind);
                let found_time_ns = receive_time_ns(line);
                match trade {
                    Some((symbol, id)) => self.take_id(&symbol, id, None, found_time_ns, Outcome::Nothing),
                    None => only(Outcome::Nothing),
                }
            }
            Ok(Message::LastTrade { kind, symbol, trade_id }) => {
                self.counts.passed_over.ignore(kind);
                self.announce(&symbol, trade_id, receive_time_ns(line))
            }
            Ok(Message::Refused(reason)) => only(Outcome::Refused(reason)),
            Ok(Message::Other(kind)) => {
                self.counts.passed_over.ignore(&kind);
                only(Outcome::Nothing)
            }
        }
    }

    /// Counts a message that is no text, such as a binary one.
    pub fn receive_other(&mut self) {
        self.counts.messages += 1;
        self.counts.bad += 1;
    }

    /// Notes that the connection ended. Returns the number of the cut.
    pub fn cut(&mut self, time_ns: i64, reason: String) -> usize {
        let number = self.cuts.len();
        let known = self.symbols.values_mut().filter(|state| state.ids.is_known() && state.cut.is_none());
        let symbols = known.map(|state| state.cut = Some(number)).count();
        self.cuts.push(Cut { time_ns, reason, symbols, unchecked: symbols, missing: 0 });
        number
    }

    /// Returns the cuts so far.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &LiveCounts {
        &self.counts
    }

    /// Returns the differences between receive and event times of all trades; `None` without trades.
    pub fn clock(&self) -> Option<ClockSummary> {
        self.clock.summary()
    }

    /// Returns the same for the trades since the last call.
    pub fn take_recent_clock(&mut self) -> Option<ClockSummary> {
        self.recent_clock.take()
    }

    fn take_tick(&mut self, tick: Tick) -> Received {
        if !self.symbols.contains_key(&tick.symbol) {
            self.messages.forget_last();
            let problem = FieldProblem::new("symbol", &tick.symbol, "a symbol that was asked for");
            return Received { outcome: self.bad(problem), gap: None, checked_cut: None };
        }
        if tick.kind == TickKind::Quote {
            return Received { outcome: self.check_scale(tick), gap: None, checked_cut: None };
        }
        let (symbol, id, time_ns) = (tick.symbol.clone(), tick.trade_id, tick.event_time_ns);
        let received_ns = tick.receive_time_ns;
        let mut received = self.take_id(&symbol, id, Some(time_ns), received_ns, Outcome::Nothing);
        if received.outcome == Outcome::Repeated {
            self.messages.forget_last();
            return received;
        }
        self.clock.add(received_ns, time_ns);
        self.recent_clock.add(received_ns, time_ns);
        received.outcome = self.check_scale(tick);
        received
    }

    /// Takes the id of a trade. Returns `outcome` unless the trade is repeated.
    fn take_id(
        &mut self,
        symbol: &str,
        id: i64,
        time_ns: Option<i64>,
        found_time_ns: i64,
        outcome: Outcome,
    ) -> Received {
        let mut received = Received { outcome, gap: None, checked_cut: None };
        let Some(state) = self.symbols.get_mut(symbol) else { return received };
        let last_time_ns = state.last_time_ns;
        match state.ids.take(id) {
            Place::Repeated => {
                self.counts.repeated += 1;
                received.outcome = Outcome::Repeated;
                return received;
            }
            Place::Earlier => {
                self.counts.earlier += 1;
                return received;
            }
            Place::Next => received.checked_cut = self.check_cut(symbol, 0).1,
            Place::After(from, to) => {
                received.gap = Some(self.gap(symbol, from, to, last_time_ns, found_time_ns));
                let gap = received.gap.as_mut();
                let missing = gap.as_ref().map_or(0, |gap| gap.trades());
                let (cut, checked) = self.check_cut(symbol, missing);
                gap.into_iter().for_each(|gap| gap.cut = cut);
                received.checked_cut = checked;
            }
        }
        if let (Some(state), Some(_)) = (self.symbols.get_mut(symbol), time_ns) {
            state.last_time_ns = time_ns;
        }
        received
    }

    fn announce(&mut self, symbol: &str, trade_id: i64, found_time_ns: i64) -> Received {
        let mut received = Received { outcome: Outcome::Nothing, gap: None, checked_cut: None };
        let Some(state) = self.symbols.get_mut(symbol) else { return received };
        let last_time_ns = state.last_time_ns;
        if let Some((from, to)) = state.ids.announce(trade_id) {
            let mut gap = self.gap(symbol, from, to, last_time_ns, found_time_ns);
            let (cut, checked) = self.check_cut(symbol, gap.trades());
            gap.cut = cut;
            received = Received { gap: Some(gap), checked_cut: checked, ..received };
        }
        received
    }

    /// Counts a gap.
    fn gap(
        &mut self,
        symbol: &str,
        from: i64,
        to: i64,
        last_time_ns: Option<i64>,
        found_time_ns: i64,
    ) -> TradeGap {
        let gap = TradeGap { symbol: symbol.to_owned(), from, to, last_time_ns, found_time_ns, cut: None };
        self.counts.gaps += 1;
        self.counts.missing = self.counts.missing.saturating_add(gap.trades());
        gap
    }

    /// Checks a symbol for the cut since its last trade. Returns the cut, and once more if it is checked for all
    /// symbols now.
    fn check_cut(&mut self, symbol: &str, missing: u64) -> (Option<usize>, Option<usize>) {
        let Some(number) = self.symbols.get_mut(symbol).and_then(|state| state.cut.take()) else {
            return (None, None);
        };
        let cut = &mut self.cuts[number];
        cut.unchecked -= 1;
        cut.missing = cut.missing.saturating_add(missing);
        (Some(number), (cut.unchecked == 0).then_some(number))
    }

    fn check_scale(&mut self, tick: Tick) -> Outcome {
        match self.scales.check(&tick) {
            Ok(()) => Outcome::Tick(tick),
            Err(problem) => {
                self.counts.unfit += 1;
                Outcome::Unfit(problem)
            }
        }
    }

    fn bad(&mut self, problem: FieldProblem) -> Outcome {
        self.counts.bad += 1;
        Outcome::Bad(problem)
    }
}

/// Returns the receive time of a line that was read.
fn receive_time_ns(line: &[u8]) -> i64 {
    crate::capture::split_line(line).map_or(0, |(time_ns, _)| time_ns)
}
