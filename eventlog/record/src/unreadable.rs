//! The record that replaces an unreadable batch.

use std::fmt;

use crate::Record;

/// Name of the header that marks a record as the replacement of an unreadable batch. No other record has it: foreign
/// headers of this name are dropped when records are read.
pub const UNREADABLE_BATCH_HEADER: &str = "warptape.unreadable-batch";

/// A batch of records of a partition that cannot be unpacked. One record replaces it, at the last offset of the batch,
/// so that reading continues after the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableBatch {
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Number of its records; 0 if its writer did not record it.
    pub records: i64,
    /// Size of the batch as written, in bytes.
    pub bytes: i64,
    /// Kafka's number of its compression codec.
    pub codec: i64,
    /// Memory limit in bytes that it exceeds when unpacked; `None` if it is damaged instead.
    pub limit_bytes: Option<i64>,
    /// Greatest create time of its records, nanoseconds since the epoch.
    pub timestamp_ns: i64,
}

impl UnreadableBatch {
    /// Returns the batch that a record replaces; `None` for an ordinary record.
    pub fn of(record: &Record) -> Option<Self> {
        let (name, text) = record.headers.first()?;
        if name != UNREADABLE_BATCH_HEADER {
            return None;
        }
        let batch = Self::parse(std::str::from_utf8(text).ok()?)?;
        (batch.last_offset == record.offset).then_some(batch)
    }

    /// Returns the record that replaces the batch.
    pub fn record(&self) -> Record {
        Record {
            offset: self.last_offset,
            key: None,
            headers: vec![(UNREADABLE_BATCH_HEADER.to_owned(), self.text().into_bytes())],
            timestamp_ns: self.timestamp_ns,
            value: Vec::new(),
        }
    }

    /// Reads the fields `NAME=NUMBER` of a text; other words may precede them.
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| -> Option<i64> {
            let value =
                text.split_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
            value.parse().ok()
        };
        let batch = Self {
            first_offset: field("first")?,
            last_offset: field("last")?,
            records: field("records")?,
            bytes: field("bytes")?,
            codec: field("codec")?,
            limit_bytes: field("limit").map(|limit| (limit > 0).then_some(limit))?,
            timestamp_ns: field("time_ms")?.saturating_mul(1_000_000),
        };
        (0 <= batch.first_offset && batch.first_offset <= batch.last_offset).then_some(batch)
    }

    fn text(&self) -> String {
        let Self { first_offset, last_offset, records, bytes, codec, limit_bytes, timestamp_ns } = self;
        let (limit, time_ms) = (limit_bytes.unwrap_or(0), timestamp_ns / 1_000_000);
        format!(
            "first={first_offset} last={last_offset} records={records} bytes={bytes} codec={codec} limit={limit} time_ms={time_ms}"
        )
    }

    fn codec_name(&self) -> &'static str {
        match self.codec {
            1 => "gzip",
            2 => "snappy",
            3 => "lz4",
            4 => "zstd",
            _ => "an unknown codec",
        }
    }
}

/// Displays the batch, the reason and the remedy.
impl fmt::Display for UnreadableBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_offset, last_offset, records, bytes, .. } = self;
        write!(
            f,
            "a batch of {records} records at offsets {first_offset} to {last_offset}, {bytes} bytes of {}",
            self.codec_name()
        )?;
        match self.limit_bytes {
            Some(limit) => write!(
                f,
                ", takes more than {limit} bytes of memory unpacked: publish smaller batches, or raise kafka.unpacked_bytes_max"
            ),
            None => write!(f, ", cannot be unpacked: it is damaged, have its producer send it again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: UnreadableBatch = UnreadableBatch {
        first_offset: 5,
        last_offset: 184,
        records: 180,
        bytes: 32_533,
        codec: 4,
        limit_bytes: Some(1 << 28),
        timestamp_ns: 1_700_000_000_123_000_000,
    };

    #[test]
    fn a_record_stands_for_its_batch() {
        for batch in [BATCH, UnreadableBatch { limit_bytes: None, ..BATCH }] {
            let record = batch.record();
            assert_eq!((record.offset, UnreadableBatch::of(&record)), (184, Some(batch)));
            let elsewhere = Record { offset: 183, ..record.clone() };
            assert_eq!(UnreadableBatch::of(&elsewhere), None);
            assert_eq!(UnreadableBatch::of(&Record { headers: Vec::new(), ..record }), None);
        }
    }

    #[test]
    fn what_librdkafka_says_is_read() {
        let said = "Decompression (codec 0x4) of message at 5 of 32533 bytes failed: first=5 last=184 records=180 bytes=32533 \
                    codec=4 limit=268435456 time_ms=1700000000123";
        assert_eq!(UnreadableBatch::parse(said), Some(BATCH));
        for wrong in
            ["", "first=5", &said.replace("last=184", "last=4"), &said.replace("first=5", "first=-1")]
        {
            assert_eq!(UnreadableBatch::parse(wrong), None, "{wrong}");
        }
        let shown = BATCH.to_string();
        assert!(
            shown.contains("offsets 5 to 184") && shown.contains("zstd") && shown.contains("268435456"),
            "{shown}"
        );
    }
}
