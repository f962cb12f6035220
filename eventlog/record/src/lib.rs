//! A record of the log and its place, for code that neither reads nor writes a log.
//!
//! This is a separate crate, so that the engine can take records without depending on any log.

mod unreadable;

pub use unreadable::{UNREADABLE_BATCH_HEADER, UnreadableBatch};

/// One partition of one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// Topic name.
    pub topic: String,
    /// Partition number.
    pub partition: i32,
}

/// A record as read. Its topic and partition are those of the fetch it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset in its partition.
    pub offset: i64,
    /// Key, if any.
    pub key: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Create time, nanoseconds since the epoch.
    pub timestamp_ns: i64,
    /// Payload.
    pub value: Vec<u8>,
}

impl Record {
    /// Bytes of key and value.
    pub fn bytes(&self) -> usize {
        self.value.len() + self.key.as_ref().map_or(0, Vec::len)
    }
}
