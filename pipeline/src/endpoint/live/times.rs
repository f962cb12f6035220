//! Times of the page.

use warptape_replay::utc;

/// Formats nanoseconds since the epoch as ISO 8601, to the nanosecond.
pub(super) fn iso(ns: i64) -> String {
    let micros = utc(ns);
    match micros.strip_suffix('Z') {
        Some(micros) => format!("{micros}{:03}Z", ns.rem_euclid(1_000)),
        None => micros,
    }
}
