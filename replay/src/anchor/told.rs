//! The lifecycle records of a process life. They are written outside of transactions, so each record names its life,
//! and anchors count the records.

use warptape_schemas::hex::Digits;

/// Name of the header of a lifecycle record that identifies the life. Its value is the partition of the journal and the
/// start of the life, separated by a slash.
pub const LIFE_HEADER: &str = "warptape-life";

/// The lifecycle records that a life has written so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Time at which the life began, ns since the epoch. It identifies the life, because a life that ends before its
    /// first commit has no journal entry.
    pub life: i64,
    /// Number of records.
    pub count: u64,
    /// BLAKE3 hash of the previous hash and the value of the newest record; zeros before the first record.
    pub hash: Digits<64>,
}

impl Told {
    /// Returns the state before the first record.
    pub fn new(life: i64) -> Self {
        Self { life, count: 0, hash: Digits::zeros() }
    }

    /// Returns the state after one more record with this value.
    #[must_use]
    pub fn with(self, value: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.hash.as_bytes());
        hasher.update(value);
        Self { hash: Digits::of(hasher.finalize().as_bytes()), count: self.count + 1, ..self }
    }
}
