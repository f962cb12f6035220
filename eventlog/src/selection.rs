//! Subjects of records, and the records that a reader looks for.

use std::borrow::Cow;

/// The subject of a record, as its producer knows it. Readers skip blocks of records whose subjects they do not look
/// for. A record without it is never skipped.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct About<'a> {
    /// All keys that readers look for, such as the symbols in the record. The record's own key counts without being
    /// listed.
    pub keys: Vec<Cow<'a, [u8]>>,
    /// Least time that readers compare, such as the first event's, in nanoseconds since the epoch.
    pub least_ns: i64,
    /// Greatest such time.
    pub greatest_ns: i64,
}

impl About<'_> {
    /// Describes a record of one time, without further keys.
    pub fn at(time_ns: i64) -> Self {
        Self { keys: Vec::new(), least_ns: time_ns, greatest_ns: time_ns }
    }
}

/// The records that a reader looks for. The default is all records.
///
/// A selection is a hint: a log may deliver other records too, so the caller still filters. It never leaves out a
/// selected record, nor one whose producer did not describe it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selection {
    /// A key of the record: its own, or one of [`About::keys`]. `None` for any.
    pub key: Option<Vec<u8>>,
    /// True if records are left out whose own key is another, or missing, even if nothing describes them.
    pub by_own_key: bool,
    /// Least time of interest. A record is left out if all its times are before.
    pub since_ns: Option<i64>,
    /// First time after those of interest.
    pub until_ns: Option<i64>,
}

impl Selection {
    /// Returns true if it selects every record.
    pub fn is_all(&self) -> bool {
        self.key.is_none() && self.since_ns.is_none() && self.until_ns.is_none()
    }

    /// Returns true if a record with this own key may be delivered.
    pub fn takes_own_key(&self, key: Option<&[u8]>) -> bool {
        !self.by_own_key || self.key.is_none() || self.key.as_deref() == key
    }

    /// Returns true if some time of the range `least_ns..=greatest_ns` is of interest.
    pub fn takes_times(&self, least_ns: i64, greatest_ns: i64) -> bool {
        self.since_ns.is_none_or(|since_ns| greatest_ns >= since_ns)
            && self.until_ns.is_none_or(|until_ns| least_ns < until_ns)
    }
}
