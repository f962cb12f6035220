//! Candles as JSON, each made at most once in a quarter of a second.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::body::Bytes;

use crate::endpoint::pages::PAGE_AGE_MAX;

/// Greatest number of answers kept; more within a quarter of a second are made, but not kept.
const KEPT_MAX: usize = 16;

/// Answers of a moment ago, by symbol and bar.
#[derive(Default)]
pub(super) struct Cache(Mutex<BTreeMap<(String, String), (Instant, Bytes)>>);

impl Cache {
    /// Returns the answer of a moment ago, or makes one. `None` is not kept, because there are names without end.
    pub(super) fn get(
        &self,
        symbol: String,
        bar: String,
        make: impl FnOnce(&str, &str) -> Option<Vec<u8>>,
    ) -> Option<Bytes> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (at, _)| at.elapsed() < PAGE_AGE_MAX);
        let of = (symbol, bar);
        if let Some((_, bytes)) = kept.get(&of) {
            return Some(bytes.clone());
        }
        let bytes = Bytes::from(make(&of.0, &of.1)?);
        if kept.len() < KEPT_MAX {
            kept.insert(of, (Instant::now(), bytes.clone()));
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_for_a_moment_and_their_number_is_bounded() {
        let cache = Cache::default();
        let asked_at = Instant::now();
        let get = |symbol: &str, answer: Option<&[u8]>| {
            cache.get(symbol.to_owned(), "1s".to_owned(), |_, _| answer.map(<[u8]>::to_vec))
        };
        assert_eq!(get("A", None), None);
        assert_eq!(get("A", Some(b"1")).as_deref(), Some(&b"1"[..]));
        let again = get("A", Some(b"2"));
        // A busy machine may take longer.
        if asked_at.elapsed() < PAGE_AGE_MAX {
            assert_eq!(again.as_deref(), Some(&b"1"[..]));
        }
        (0..100).for_each(|number| assert!(get(&format!("S{number}"), Some(b"3")).is_some()));
        assert!(cache.0.lock().expect("nobody panics while holding it").len() <= KEPT_MAX);
        while get("A", Some(b"4")).as_deref() != Some(&b"4"[..]) {
            assert!(asked_at.elapsed() < 400 * PAGE_AGE_MAX, "an old answer is kept");
            std::thread::park_timeout(PAGE_AGE_MAX);
        }
    }
}
