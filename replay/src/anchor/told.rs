//! The lifecycle records of a process life. They are outside of transactions, so each record names its life, and anchors say how
//! many there were.

use warptape_schemas::hex::Digits;

/// Name of the header of a lifecycle record that says by which life it was written: the partition of the journal and when the life
/// began, with a slash between them.
pub const LIFE_HEADER: &str = "warptape-life";

/// The records that a life has told so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// When the life began, in nanoseconds since the epoch: one that ends before it commits anything has no entry that would name it.
    pub life: i64,
    /// How many there are.
    pub count: u64,
    /// BLAKE3 over the hash before and the value of the newest; zeros before the first.
    pub hash: Digits<64>,
}

impl Told {
    /// Nothing so far.
    pub fn new(life: i64) -> Self {
        Self { life, count: 0, hash: Digits::zeros() }
    }

    /// With one more record, of this value.
    #[must_use]
    pub fn with(self, value: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.hash.as_bytes());
        hasher.update(value);
        Self { hash: Digits::of(hasher.finalize().as_bytes()), count: self.count + 1, ..self }
    }
}
