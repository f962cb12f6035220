//! The trade ids of one symbol. Venues number a symbol's trades consecutively, so a jump shows which trades are
//! missing.

use std::collections::VecDeque;

/// Number of newest ids that are kept to recognise repeated trades.
const REMEMBERED: usize = 1_024;

/// Trades of a symbol that were not received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeGap {
    /// Symbol with venue.
    pub symbol: String,
    /// First missing id.
    pub from: i64,
    /// Last missing id.
    pub to: i64,
    /// Event time of the last trade before the gap; `None` if there was none.
    pub last_time_ns: Option<i64>,
    /// Receive time of the message that revealed the gap.
    pub found_time_ns: i64,
    /// Number of the connection's cut within the gap, from 0; `None` within one connection.
    pub cut: Option<usize>,
}

impl TradeGap {
    /// Returns the number of missing trades.
    pub fn trades(&self) -> u64 {
        self.to.abs_diff(self.from).saturating_add(1)
    }
}

/// The position of a trade among those of its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The next trade, or the first one of the session.
    Next,
    /// The trade follows missing ones, from the first to the last id.
    After(i64, i64),
    /// The trade is older than another one, and was not received before.
    Earlier,
    /// The trade was received before.
    Repeated,
}

/// Ids of one symbol.
#[derive(Debug, Default)]
pub(super) struct TradeIds {
    /// Greatest id received or found missing; `None` before the first trade.
    last: Option<i64>,
    /// Newest ids received.
    newest: VecDeque<i64>,
    /// Greatest id that the venue has announced. It is checked at the next announcement, because an announcement may
    /// overtake its trade.
    announced: Option<i64>,
}

impl TradeIds {
    /// Processes the id of a trade.
    pub(super) fn take(&mut self, id: i64) -> Place {
        // Received ids are never above `last`.
        if self.last.is_some_and(|last| id <= last) && self.newest.contains(&id) {
            return Place::Repeated;
        }
        if self.newest.len() == REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back(id);
        match self.last.replace(id) {
            Some(last) if id <= last => {
                self.last = Some(last);
                Place::Earlier
            }
            Some(last) if last < id.saturating_sub(1) => Place::After(last + 1, id - 1),
            _ => Place::Next,
        }
    }

    /// Processes the id that the venue announces as the symbol's newest trade. Returns the missing ids up to the
    /// previously announced one, first and last.
    pub(super) fn announce(&mut self, id: i64) -> Option<(i64, i64)> {
        let Some(last) = self.last else {
            self.last = Some(id);
            return None;
        };
        let due = self.announced.replace(id)?;
        if due <= last {
            return None;
        }
        self.last = Some(due);
        Some((last + 1, due))
    }

    /// True if an id is known, so that missing trades can be noticed.
    pub(super) fn is_known(&self) -> bool {
        self.last.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_gaps_and_older_trades_are_earlier_or_repeated() {
        let mut ids = TradeIds::default();
        let expected = [
            (5, Place::Next),
            (6, Place::Next),
            (6, Place::Repeated),
            (9, Place::After(7, 8)),
            (5, Place::Repeated),
            (8, Place::Earlier),
            (8, Place::Repeated),
            (10, Place::Next),
        ];
        for (id, place) in expected {
            assert_eq!(ids.take(id), place, "{id}");
        }
    }

    #[test]
    fn ids_at_the_ends_of_their_range_are_taken() {
        for ids_taken in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN], [0, i64::MIN], [-1, i64::MAX]] {
            let mut ids = TradeIds::default();
            for id in ids_taken {
                ids.take(id);
                ids.announce(id);
            }
            // A wrong id does not hide later trades.
            assert!(!matches!(ids.take(7), Place::Repeated));
        }
    }

    #[test]
    fn an_announced_trade_is_missing_at_the_next_announcement() {
        let mut ids = TradeIds::default();
        assert_eq!(ids.announce(20), None, "the session begins after it");
        assert_eq!(ids.take(21), Place::Next);
        assert_eq!(ids.announce(22), None);
        assert_eq!(ids.take(22), Place::Next, "the announcement overtook it");
        assert_eq!(ids.announce(24), None);
        assert_eq!(ids.announce(24), Some((23, 24)));
        assert_eq!(ids.announce(24), None);
        assert_eq!(ids.take(24), Place::Earlier, "it comes after all");
        assert_eq!(ids.take(25), Place::Next);
    }

    #[test]
    fn the_number_of_remembered_ids_is_bounded() {
        let mut ids = TradeIds::default();
        (0..10 * REMEMBERED as i64).for_each(|id| assert_eq!(ids.take(id), Place::Next));
        assert_eq!(ids.newest.len(), REMEMBERED);
        assert_eq!(ids.take(9 * REMEMBERED as i64), Place::Repeated);
        assert_eq!(ids.take(9 * REMEMBERED as i64 - 1), Place::Earlier);
    }
}
