//! The open connections, limited in number. Beyond the limit, the address with the most connections loses its oldest.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// Connections by increasing number, each with the address of its client.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    last: u64,
    /// Address and handle by number; the handle is `None` until the connection is served.
    of: BTreeMap<u64, (IpAddr, Option<AbortHandle>)>,
}

/// A connection's place among the open ones, freed when this is dropped.
pub(super) struct Permit {
    connections: Connections,
    number: u64,
}

impl Connections {
    /// Takes a place for a connection. If `most` connections are open, closes the oldest one of the address that has
    /// the most.
    pub(super) fn enter(&self, from: IpAddr, most: usize) -> Permit {
        let mut open = self.lock();
        if open.of.len() >= most {
            open.close_one();
        }
        open.last += 1;
        let number = open.last;
        open.of.insert(number, (from, None));
        Permit { connections: self.clone(), number }
    }

    /// Sets the handle that closes a connection.
    pub(super) fn served_by(&self, number: u64, handle: AbortHandle) {
        if let Some((_, of)) = self.lock().of.get_mut(&number) {
            *of = Some(handle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // A panic while the lock is held leaves the contents consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn close_one(&mut self) {
        let mut by_address: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        for (&number, &(address, _)) in &self.of {
            by_address.entry(address).or_insert((0, number)).0 += 1;
        }
        let most = by_address.into_values().max_by_key(|&(connections, _)| connections);
        let closed = most.and_then(|(_, oldest)| self.of.remove(&oldest));
        if let Some((_, Some(handle))) = closed {
            handle.abort();
        }
    }
}

impl Permit {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.lock().of.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_connections_loses_the_oldest() {
        let connections = Connections::default();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().expect("an address"));
        let numbers = || connections.lock().of.keys().copied().collect::<Vec<_>>();
        let places: Vec<Permit> =
            [one, other, other, one, other].map(|from| connections.enter(from, 5)).into();
        assert_eq!(numbers(), [1, 2, 3, 4, 5]);
        let newest = connections.enter(one, 5);
        assert_eq!(numbers(), [1, 3, 4, 5, 6]);
        // The other address now has fewer connections.
        let last = connections.enter(one, 5);
        assert_eq!(numbers(), [3, 4, 5, 6, 7]);
        drop((places, newest));
        assert_eq!(numbers(), [7]);
        drop(last);
        assert!(numbers().is_empty());
    }
}
