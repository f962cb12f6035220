//! Policies: the rules that choose, one small file each, named and versioned.
//!
//! A journal names the policies of its run as `NAME` or `NAME@VERSION`, and is replayed with that version. The version
//! rises whenever the same inputs could give another decision. A version that this build does not have is refused by
//! name. Policies see values and return a choice; they must not change state, and every draw is addressed by stream and
//! counter.

pub(crate) mod placement;
pub(crate) mod task;

/// A policy's name with its version: `NAME@VERSION`, or `NAME` for the first version.
pub(crate) fn named(text: &str) -> Option<(&str, i32)> {
    match text.split_once('@') {
        None => Some((text, 1)),
        Some((name, version)) => Some((name, version.parse().ok().filter(|version| *version > 0)?)),
    }
}
