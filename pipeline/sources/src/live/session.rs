//! One live feed: converts its messages to ticks, and counts missing, repeated and wrong messages.

use std::collections::BTreeMap;

use warptape_events::tick::{Tick, TickKind};

use super::clock_difference::{ClockDifferences, ClockSummary};
use super::cuts::{Cut, Cuts};
use super::missing::Missing;
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
    cuts: Cuts,
    counts: LiveCounts,
    clock: ClockDifferences,
    /// Differences of the clocks since the last report.
    recent_clock: ClockDifferences,
}

#[derive(Default)]
struct SymbolState {
    ids: TradeIds,
    missing: Missing,
    /// Event time of the last trade.
    last_time_ns: Option<i64>,
    /// The first cut since the last trade; `None` if there was none.
    cut: Option<usize>,
}

/// Counts of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Number of messages received, including bad ones.
    pub messages: u64,
    /// Number of messages that do not parse, or belong to a symbol that was not requested.
    pub bad: u64,
    /// Number of trades received again, which are not published again.
    pub repeated: u64,
    /// Number of trades received after a later one, which are published.
    pub earlier: u64,
    /// Earlier trades that had been counted as missing.
    pub recovered: u64,
    /// Ticks left out because a number of them does not fit a tick, or their price the scale of their symbol.
    pub unfit: u64,
    /// Number of gaps in trade ids.
    pub gaps: u64,
    /// Number of trades missing in these gaps.
    pub missing: u64,
    /// Number of messages without a tick, by kind.
    pub passed_over: PassedOver,
}

/// Meaning of a message for the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A tick to publish.
    Tick(Tick),
    /// Nothing to publish.
    Nothing,
    /// A tick with a number that does not fit a tick, or a price that does not fit the scale of its symbol.
    Unfit(FieldProblem),
    /// A message that does not parse, and is not part of the feed.
    Bad(FieldProblem),
    /// A trade that was received before, and is not part of the feed.
    Repeated,
    /// The venue refused the subscription, for this reason.
    Refused(String),
}

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Meaning of the message for the feed.
    pub outcome: Outcome,
    /// The gap that the message reveals; `None` if it reveals none.
    pub gap: Option<TradeGap>,
    /// The cut that is checked now for all symbols; `None` for none.
    pub checked_cut: Option<Cut>,
}

impl Received {
    fn only(outcome: Outcome) -> Self {
        Self { outcome, gap: None, checked_cut: None }
    }
}

impl LiveSession {
    /// Begins a feed of tickers, in the form that [`LiveVenue::ticker`] returns. `name` is the venue of their symbols.
    pub fn new(venue: LiveVenue, name: &str, tickers: &[String]) -> Self {
        let symbol = |ticker: &String| (format!("{name}:{ticker}"), SymbolState::default());
        Self {
            messages: venue.messages(name),
            symbols: tickers.iter().map(symbol).collect(),
            scales: PriceScales::default(),
            cuts: Cuts::default(),
            counts: LiveCounts::default(),
            clock: ClockDifferences::default(),
            recent_clock: ClockDifferences::default(),
        }
    }

    /// Sets the scale that a symbol's prices have in the log. Must be called before the first message.
    pub fn know_scale(&mut self, symbol: &str, scale: u8) {
        self.scales.know(symbol, scale);
    }

    /// Returns symbol and scale of the last tick; `None` unless it was the symbol's first tick, with a scale other than
    /// nine decimals.
    pub fn take_begun_scale(&mut self) -> Option<(String, u8)> {
        self.scales.take_begun()
    }

    /// Processes a message that was received at this time, given as a line `<receive ns> <JSON>`.
    pub fn receive(&mut self, receive_time_ns: i64, line: &[u8]) -> Received {
        self.counts.messages += 1;
        match self.messages.read(line) {
            Err(problem) => Received::only(self.bad(problem)),
            Ok(Message::Tick(tick)) => self.take_tick(tick),
            Ok(Message::PassedTrade { kind, trade }) => {
                self.counts.passed_over.ignore(&kind);
                match trade {
                    Some((symbol, id)) => self.take_id(&symbol, id, None, receive_time_ns),
                    None => Received::only(Outcome::Nothing),
                }
            }
            Ok(Message::UnfitTrade { problem, symbol, trade_id }) => {
                self.take_unfit(problem, &symbol, trade_id, receive_time_ns)
            }
            Ok(Message::LastTrade { kind, symbol, trade_id }) => {
                self.counts.passed_over.ignore(kind);
                self.announce(&symbol, trade_id, receive_time_ns)
            }
            Ok(Message::Refused(reason)) => Received::only(Outcome::Refused(reason)),
            Ok(Message::Other(kind)) => {
                self.counts.passed_over.ignore(&kind);
                Received::only(Outcome::Nothing)
            }
        }
    }

    /// Counts a message that is not text, such as a binary one.
    pub fn receive_other(&mut self) {
        self.counts.messages += 1;
        self.counts.bad += 1;
    }

    /// Records the end of a connection. Returns the number of the cut.
    pub fn cut(&mut self, time_ns: i64, reason: String) -> usize {
        let number = self.cuts.count();
        let known = self.symbols.values_mut().filter(|state| state.ids.is_known() && state.cut.is_none());
        let symbols = known.map(|state| state.cut = Some(number)).count();
        self.cuts.add(Cut { time_ns, reason, symbols, unchecked: symbols, missing: 0 });
        number
    }

    /// Returns the first cuts, at most [`FIRST_CUTS`](super::FIRST_CUTS).
    pub fn first_cuts(&self) -> impl Iterator<Item = &Cut> {
        self.cuts.first()
    }

    /// Returns the number of cuts so far.
    pub fn cut_count(&self) -> usize {
        self.cuts.count()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &LiveCounts {
        &self.counts
    }

    /// Returns the differences between receive and event times of all trades; `None` without trades.
    pub fn clock(&self) -> Option<ClockSummary> {
        self.clock.summary()
    }

    /// Returns the differences for the trades since the last call; `None` without trades.
    pub fn take_recent_clock(&mut self) -> Option<ClockSummary> {
        self.recent_clock.take()
    }

    fn take_tick(&mut self, tick: Tick) -> Received {
        if !self.symbols.contains_key(&tick.symbol) {
            self.messages.forget_last();
            let problem = FieldProblem::new("symbol", &tick.symbol, "a symbol that was asked for");
            return Received::only(self.bad(problem));
        }
        if tick.kind == TickKind::Quote {
            return Received::only(self.check_scale(tick));
        }
        let (symbol, id, time_ns) = (tick.symbol.clone(), tick.trade_id, tick.event_time_ns);
        let received_ns = tick.receive_time_ns;
        let mut received = self.take_id(&symbol, id, Some(time_ns), received_ns);
        if received.outcome == Outcome::Repeated {
            return received;
        }
        self.clock.add(received_ns, time_ns);
        self.recent_clock.add(received_ns, time_ns);
        received.outcome = self.check_scale(tick);
        received
    }

    /// Takes a trade that cannot be a tick. The feed received it, so it is not missing.
    fn take_unfit(&mut self, problem: FieldProblem, symbol: &str, id: i64, found_time_ns: i64) -> Received {
        if !self.symbols.contains_key(symbol) {
            return Received::only(self.bad(problem));
        }
        let mut received = self.take_id(symbol, id, None, found_time_ns);
        if received.outcome != Outcome::Repeated {
            self.counts.unfit += 1;
            received.outcome = Outcome::Unfit(problem);
        }
        received
    }

    /// Takes the id of a trade, with its event time if it is a tick.
    fn take_id(&mut self, symbol: &str, id: i64, time_ns: Option<i64>, found_time_ns: i64) -> Received {
        let mut received = Received::only(Outcome::Nothing);
        let Some(state) = self.symbols.get_mut(symbol) else { return received };
        match state.ids.take(id) {
            Place::Repeated => {
                self.messages.forget_last();
                self.counts.repeated += 1;
                return Received::only(Outcome::Repeated);
            }
            Place::Earlier => {
                self.counts.earlier += 1;
                if let Some(range) = state.missing.take(id) {
                    self.counts.recovered += 1;
                    self.counts.missing = self.counts.missing.saturating_sub(1);
                    range.cut.into_iter().for_each(|number| self.cuts.recover(number));
                }
                return received;
            }
            Place::Next => received.checked_cut = self.check_cut(symbol, 0).1,
            Place::After(from, to) => received = self.gap(symbol, from, to, found_time_ns),
        }
        if let (Some(state), Some(_)) = (self.symbols.get_mut(symbol), time_ns) {
            state.last_time_ns = time_ns;
        }
        received
    }

    fn announce(&mut self, symbol: &str, trade_id: i64, found_time_ns: i64) -> Received {
        let missing = self.symbols.get_mut(symbol).and_then(|state| state.ids.announce(trade_id));
        match missing {
            Some((from, to)) => self.gap(symbol, from, to, found_time_ns),
            None => Received::only(Outcome::Nothing),
        }
    }

    /// Counts missing trades.
    fn gap(&mut self, symbol: &str, from: i64, to: i64, found_time_ns: i64) -> Received {
        let last_time_ns = self.symbols.get(symbol).and_then(|state| state.last_time_ns);
        let mut gap =
            TradeGap { symbol: symbol.to_owned(), from, to, last_time_ns, found_time_ns, cut: None };
        self.counts.gaps += 1;
        self.counts.missing = self.counts.missing.saturating_add(gap.trades());
        let (cut, checked_cut) = self.check_cut(symbol, gap.trades());
        gap.cut = cut;
        if let Some(state) = self.symbols.get_mut(symbol) {
            state.missing.add(from, to, cut);
        }
        Received { outcome: Outcome::Nothing, gap: Some(gap), checked_cut }
    }

    /// Checks a symbol for the cut since its last trade. Returns its number, and the cut itself if it is checked for all
    /// symbols now.
    fn check_cut(&mut self, symbol: &str, missing: u64) -> (Option<usize>, Option<Cut>) {
        let Some(number) = self.symbols.get_mut(symbol).and_then(|state| state.cut.take()) else {
            return (None, None);
        };
        (Some(number), self.cuts.check(number, missing))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::line_of;

    fn session() -> LiveSession {
        let tickers = ["A".to_owned(), "B".to_owned()];
        LiveSession::new(LiveVenue::Binance, "V", &tickers)
    }

    fn trade(ticker: &str, id: i64) -> String {
        trade_at(ticker, id, 1_723_161_255_000 + id)
    }

    fn trade_at(ticker: &str, id: i64, time_ms: i64) -> String {
        format!(
            r#"{{"data":{{"e":"trade","E":{time_ms},"s":"{ticker}","t":{id},"p":"1.5","q":"2","T":{time_ms},"m":false}}}}"#
        )
    }

    fn receive(session: &mut LiveSession, text: &str) -> Received {
        session.receive(7, &line_of(7, text))
    }

    /// Returns the ids and the cut of the gap that a trade reveals.
    fn gap(session: &mut LiveSession, ticker: &str, id: i64) -> Option<(i64, i64, Option<usize>)> {
        let received = receive(session, &trade(ticker, id));
        assert!(matches!(received.outcome, Outcome::Tick(_)), "{received:?}");
        received.gap.map(|gap| (gap.from, gap.to, gap.cut))
    }

    #[test]
    fn a_cut_is_checked_once_each_symbol_has_traded() {
        let mut session = session();
        assert_eq!(gap(&mut session, "A", 5), None);
        assert_eq!(gap(&mut session, "B", 70), None);
        assert_eq!(session.cut(9, "closed".to_owned()), 0);
        assert_eq!(gap(&mut session, "A", 6), None);
        assert_eq!(session.first_cuts().map(|cut| cut.unchecked).collect::<Vec<_>>(), [1]);
        // B is checked for the first cut, A for the second.
        assert_eq!(session.cut(10, "silent".to_owned()), 1);
        let received = receive(&mut session, &trade("B", 74));
        let last_time_ns = Some((1_723_161_255_000 + 70) * 1_000_000);
        let symbol = "V:B".to_owned();
        let expected = TradeGap { symbol, from: 71, to: 73, last_time_ns, found_time_ns: 7, cut: Some(0) };
        let reason = |received: Received| received.checked_cut.map(|cut| cut.reason);
        assert_eq!(received.gap.as_ref(), Some(&expected));
        assert_eq!(reason(received).as_deref(), Some("closed"));
        assert_eq!(reason(receive(&mut session, &trade("A", 7))).as_deref(), Some("silent"));
        assert_eq!(gap(&mut session, "A", 9), Some((8, 8, None)), "within a connection");
        let cuts = [(0, "closed", 2, 3), (1, "silent", 1, 0)].map(|(number, reason, symbols, missing)| {
            let time_ns = 9 + number;
            Cut { time_ns, reason: reason.to_owned(), symbols, unchecked: 0, missing }
        });
        assert_eq!(session.first_cuts().cloned().collect::<Vec<_>>(), cuts);
        assert_eq!((session.counts().gaps, session.counts().missing), (2, 4));
    }

    #[test]
    fn a_missing_trade_that_comes_after_all_is_missing_no_longer() {
        let mut session = session();
        assert_eq!(gap(&mut session, "A", 5), None);
        session.cut(9, "closed".to_owned());
        assert_eq!(gap(&mut session, "A", 9), Some((6, 8, Some(0))));
        assert_eq!(gap(&mut session, "A", 11), Some((10, 10, None)));
        // Trade 4 is of the time before the session.
        for id in [7, 10, 4] {
            assert_eq!(gap(&mut session, "A", id), None);
        }
        let LiveCounts { earlier, recovered, gaps, missing, .. } = *session.counts();
        assert_eq!((earlier, recovered, gaps, missing), (3, 2, 2, 2));
        assert_eq!(session.first_cuts().map(|cut| cut.missing).collect::<Vec<_>>(), [2]);
        assert_eq!(receive(&mut session, &trade("A", 7)).outcome, Outcome::Repeated);
        assert_eq!(session.counts().missing, 2);
    }

    #[test]
    fn a_trade_with_a_number_that_fits_no_tick_is_not_missing() {
        let product = r#"{"type":"match","trade_id":6,"time":"2024-11-07T08:19:27.028459Z","product_id":"A","size":"5","price":"2","side":"sell"}"#;
        let venues = [
            (LiveVenue::Binance, trade("A", 6), "\"1.5\""),
            (LiveVenue::Coinbase, product.to_owned(), "\"2\""),
        ];
        for (venue, message, price) in venues {
            let mut session = LiveSession::new(venue, "V", &["A".to_owned()]);
            let numbered = |id: i64| match venue {
                LiveVenue::Binance => trade("A", id),
                LiveVenue::Coinbase => message.replace("\"trade_id\":6", &format!("\"trade_id\":{id}")),
            };
            assert!(matches!(receive(&mut session, &numbered(5)).outcome, Outcome::Tick(_)));
            let unfit = message.replace(price, &format!("\"{}\"", "9".repeat(30)));
            let outcome = receive(&mut session, &unfit).outcome;
            assert!(matches!(&outcome, Outcome::Unfit(problem) if problem.does_not_fit), "{outcome:?}");
            assert_eq!(receive(&mut session, &unfit).outcome, Outcome::Repeated);
            assert_eq!(receive(&mut session, &numbered(7)).gap, None);
            let foreign = receive(&mut session, &unfit.replace("\"A\"", "\"B\"")).outcome;
            assert!(matches!(foreign, Outcome::Bad(_)), "{foreign:?}");
            let LiveCounts { bad, repeated, unfit, missing, .. } = *session.counts();
            assert_eq!((bad, repeated, unfit, missing), (1, 1, 1, 0));
        }
    }

    #[test]
    fn repeated_trades_and_other_symbols_leave_no_trace() {
        let book = r#"{"s":"A","b":"1","B":"2","a":"3","A":"4"}"#;
        let mut session = session();
        receive(&mut session, &trade("A", 5));
        assert_eq!(receive(&mut session, &trade_at("A", 5, 1_900_000_000_000)).outcome, Outcome::Repeated);
        let foreign = receive(&mut session, &trade_at("C", 5, 1_900_000_000_000)).outcome;
        assert!(matches!(&foreign, Outcome::Bad(problem) if problem.found == "V:C"), "{foreign:?}");
        // The quote has the time of the last event that counts.
        let Outcome::Tick(quote) = receive(&mut session, book).outcome else { panic!("a quote") };
        assert_eq!(quote.event_time_ns, (1_723_161_255_000 + 5) * 1_000_000);
        let counts = session.counts();
        assert_eq!((counts.messages, counts.bad, counts.repeated), (4, 1, 1));
    }

    #[test]
    fn trades_that_are_no_ticks_have_ids_as_well() {
        let mut session = session();
        assert_eq!(gap(&mut session, "A", 5), None);
        let zero = trade("A", 6).replace("\"2\"", "\"0\"");
        assert_eq!(receive(&mut session, &zero).outcome, Outcome::Nothing);
        let transfer = trade("A", 7).replace("\"m\"", "\"X\":\"ADL\",\"m\"");
        assert_eq!(receive(&mut session, &transfer).outcome, Outcome::Nothing);
        assert_eq!(gap(&mut session, "A", 8), None);
        let kinds = [(crate::ZERO_TRADE, 1), ("trade of ADL", 1)];
        let ignored = kinds.map(|(kind, count)| (kind.to_owned(), count)).into();
        assert_eq!(session.counts().passed_over, PassedOver { ignored, bad: 0 });
    }

    #[test]
    fn bad_messages_are_counted_and_change_nothing() {
        let mut session = session();
        for text in ["", "hello", "[", "{\"data\":{\"e\":\"trade\"}}", &"[".repeat(50_000), "\u{0}"] {
            let outcome = receive(&mut session, text).outcome;
            assert!(matches!(outcome, Outcome::Bad(_)), "{text:.20}: {outcome:?}");
        }
        session.receive_other();
        assert_eq!((session.counts().messages, session.counts().bad), (7, 7));
        assert_eq!(gap(&mut session, "A", 5), None);
    }

    #[test]
    fn heartbeats_show_missing_trades_of_a_quiet_symbol() {
        let mut session = LiveSession::new(LiveVenue::Coinbase, "V", &["A-B".to_owned()]);
        let heartbeat =
            |id: i64| format!(r#"{{"type":"heartbeat","last_trade_id":{id},"product_id":"A-B"}}"#);
        let mut gap = |id| receive(&mut session, &heartbeat(id)).gap.map(|gap| (gap.from, gap.to));
        assert_eq!([gap(5), gap(6), gap(6), gap(6)], [None, None, Some((6, 6)), None]);
    }
}
