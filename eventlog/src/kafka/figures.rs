//! librdkafka's statistics of its clients, for monitoring a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::Statistics;

use crate::ClientFigures;

/// Kinds of clients.
pub(super) const MEMBER: &str = "consumer";
pub(super) const PRODUCER: &str = "producer";
/// The state of a usable connection.
const UP: &str = "UP";

/// Statistics of all clients, including closed ones, so that counters only rise.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    clients: u64,
    /// The latest statistics of each client.
    live: BTreeMap<u64, ClientFigures>,
    /// Counters of closed clients, by kind.
    gone: BTreeMap<&'static str, ClientFigures>,
}

impl Board {
    /// Returns the statistics of each kind of client.
    pub(super) fn read(&self) -> Vec<ClientFigures> {
        let told = self.lock();
        let mut kinds = told.gone.clone();
        for figures in told.live.values() {
            let of_kind = kinds.entry(figures.client).or_insert_with(|| none_of(figures.client));
            add_counts(of_kind, figures);
            of_kind.brokers = of_kind.brokers.max(figures.brokers);
            of_kind.brokers_connected = of_kind.brokers_connected.max(figures.brokers_connected);
            of_kind.queued_records += figures.queued_records;
            of_kind.round_trip_us = of_kind.round_trip_us.max(figures.round_trip_us);
        }
        kinds.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // The value is complete even if a holder panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn none_of(client: &'static str) -> ClientFigures {
    ClientFigures { client, ..ClientFigures::default() }
}

fn add_counts(to: &mut ClientFigures, figures: &ClientFigures) {
    to.requests += figures.requests;
    to.sent_bytes += figures.sent_bytes;
    to.received_bytes += figures.received_bytes;
    to.errors += figures.errors;
}

/// A client's destination for statistics; it lives as long as the client.
pub(super) struct Reporter {
    board: Arc<Board>,
    number: u64,
    kind: &'static str,
    /// Failed requests by broker name, including brokers that the client no longer knows.
    errors: Mutex<BTreeMap<String, u64>>,
}

impl Reporter {
    pub(super) fn new(board: &Arc<Board>, kind: &'static str) -> Self {
        let number = {
            let mut told = board.lock();
            told.clients += 1;
            told.clients
        };
        Self { board: board.clone(), number, kind, errors: Mutex::default() }
    }

    pub(super) fn report(&self, statistics: &Statistics) {
        let mut figures = figures(self.kind, statistics);
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, broker) in &statistics.brokers {
            errors.insert(name.clone(), broker.txerrs + broker.rxerrs + broker.req_timeouts);
        }
        figures.errors = errors.values().sum();
        self.board.lock().live.insert(self.number, figures);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let mut told = self.board.lock();
        if let Some(figures) = told.live.remove(&self.number) {
            add_counts(told.gone.entry(self.kind).or_insert_with(|| none_of(self.kind)), &figures);
        }
    }
}

/// Converts all but the errors.
fn figures(client: &'static str, statistics: &Statistics) -> ClientFigures {
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    // librdkafka lists configured addresses and the coordinator besides the known brokers.
    let brokers = || statistics.brokers.values().filter(|broker| broker.nodeid >= 0);
    let round_trips = brokers().filter_map(|broker| broker.rtt.as_ref()).filter(|window| window.cnt > 0);
    ClientFigures {
        client,
        brokers: brokers().count() as u64,
        brokers_connected: brokers().filter(|broker| broker.state == UP).count() as u64,
        requests: count(statistics.tx),
        sent_bytes: count(statistics.tx_bytes),
        received_bytes: count(statistics.rx_bytes),
        errors: 0,
        queued_records: statistics.msg_cnt,
        round_trip_us: round_trips.map(|window| count(window.p99)).max(),
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::Broker;

    use super::*;

    fn statistics(requests: i64, queued: u64) -> Statistics {
        Statistics { tx: requests, tx_bytes: 10 * requests, msg_cnt: queued, ..Statistics::default() }
    }

    #[test]
    fn what_a_client_counted_stays_when_it_is_gone() {
        let board = Arc::default();
        let read = || {
            let figures = Board::read(&board);
            figures
                .iter()
                .map(|of| (of.client, of.requests, of.sent_bytes, of.queued_records))
                .collect::<Vec<_>>()
        };
        let (first, second) = (Reporter::new(&board, PRODUCER), Reporter::new(&board, PRODUCER));
        assert_eq!(read(), []);
        first.report(&statistics(5, 3));
        first.report(&statistics(7, 2));
        second.report(&statistics(1, 4));
        Reporter::new(&board, MEMBER).report(&statistics(9, 0));
        assert_eq!(read(), [(MEMBER, 9, 90, 0), (PRODUCER, 8, 80, 6)]);
        drop(first);
        assert_eq!(read(), [(MEMBER, 9, 90, 0), (PRODUCER, 8, 80, 4)]);
    }

    #[test]
    fn errors_of_brokers_stay_that_are_gone_and_those_of_addresses_count() {
        let board = Arc::default();
        let reporter = Reporter::new(&board, MEMBER);
        let broker = |nodeid, txerrs| Broker { nodeid, txerrs, rxerrs: 1, ..Broker::default() };
        let report = |brokers: &[(&str, Broker)]| {
            let brokers = brokers.iter().map(|(name, broker)| ((*name).to_owned(), broker.clone())).collect();
            reporter.report(&Statistics { brokers, ..Statistics::default() });
            let figures = Board::read(&board).remove(0);
            (figures.brokers, figures.errors)
        };
        assert_eq!(report(&[("a:9092/bootstrap", broker(-1, 3)), ("a:9092/1", broker(1, 0))]), (1, 5));
        assert_eq!(report(&[("a:9092/bootstrap", broker(-1, 3)), ("b:9092/2", broker(2, 1))]), (1, 7));
    }
}
