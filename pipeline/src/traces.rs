//! Traces in the form that the engine passes to an exporter: the steps of a record or a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;

/// The steps of one record or request.
#[derive(Debug)]
pub struct Trace {
    /// Id of the trace, see [`trace_id`].
    pub id: [u8; 16],
    /// Time of the read, which distinguishes this trace from others of the same record, such as another process's.
    pub read_at_ns: i64,
    /// The root span, followed by its steps.
    pub spans: Vec<TracedSpan>,
}

/// A step of a trace.
#[derive(Debug)]
pub struct TracedSpan {
    /// Name of the step.
    pub name: &'static str,
    /// Start of the step, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// End of the step, in nanoseconds since the epoch.
    pub end_ns: i64,
    /// Attributes of the step.
    pub attributes: Vec<Attribute>,
    /// Reason for the failure; `None` if the step succeeded.
    pub error: Option<&'static str>,
}

/// Returns the trace id of a record: the first 16 bytes of the BLAKE3 digest of `TOPIC/PARTITION/OFFSET`. So the trace
/// of a record can be found from the record.
pub fn trace_id(topic: &str, partition: i32, offset: i64) -> [u8; 16] {
    let digest = blake3::hash(format!("{topic}/{partition}/{offset}").as_bytes());
    *digest.as_bytes().first_chunk().expect("a digest has 32 bytes")
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceValue {
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
}

impl From<i64> for TraceValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for TraceValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<String> for TraceValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// A name and its value.
pub type Attribute = (&'static str, TraceValue);

/// Builds an attribute.
pub fn attribute(name: &'static str, value: impl Into<TraceValue>) -> Attribute {
    (name, value.into())
}

/// Counts of spans by state.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    /// Number of spans passed on, but not yet exported or lost. The engine adds to it, and the exporter subtracts.
    pub(crate) under_way: AtomicU64,
    /// Number of spans that were not exported.
    pub(crate) lost: AtomicU64,
}

/// The engine's sender of traces, with the sampling rates.
#[derive(Clone)]
pub struct TraceSender {
    waiting: Sender<Trace>,
    counts: Arc<SpanCounts>,
    sample_ppm: u32,
    request_sample_ppm: u32,
}

impl TraceSender {
    #[cfg(any(test, feature = "otlp"))]
    pub(crate) fn new(
        waiting: Sender<Trace>,
        counts: Arc<SpanCounts>,
        sample_ppm: u32,
        request_sample_ppm: u32,
    ) -> Self {
        Self { waiting, counts, sample_ppm, request_sample_ppm }
    }

    /// Creates a sender that traces everything, for tests of its callers.
    #[cfg(test)]
    pub(crate) fn of_all(waiting: Sender<Trace>) -> Self {
        Self::new(waiting, Arc::default(), 1_000_000, 1_000_000)
    }

    /// True if a tick record is traced.
    pub fn samples_record(&self, partition: i32, offset: i64) -> bool {
        is_sampled(partition, offset, self.sample_ppm)
    }

    /// True if a risk request is traced.
    pub fn samples_request(&self, partition: i32, offset: i64) -> bool {
        is_sampled(partition, offset, self.request_sample_ppm)
    }

    /// Passes a trace on; drops it if too many are waiting.
    pub fn send(&self, trace: Trace) {
        let spans = trace.spans.len() as u64;
        self.counts.under_way.fetch_add(spans, Ordering::Relaxed);
        if self.waiting.try_send(trace).is_err() {
            self.counts.under_way.fetch_sub(spans, Ordering::Relaxed);
            self.counts.lost.fetch_add(spans, Ordering::Relaxed);
        }
    }
}

/// True if a record is in the sample of `ppm` per million. The result is the same in every process and every life.
fn is_sampled(partition: i32, offset: i64, ppm: u32) -> bool {
    // SplitMix64's finalizer makes the results of neighbouring offsets independent.
    let mut mixed = (offset as u64) ^ (partition as u64).rotate_left(40);
    mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (u128::from(mixed) * 1_000_000) >> 64 < u128::from(ppm)
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;

    fn trace(spans: usize) -> Trace {
        let span = |number: usize| TracedSpan {
            name: "step",
            start_ns: 10,
            end_ns: 9 + number as i64,
            attributes: Vec::new(),
            error: (number == 1).then_some("let go"),
        };
        Trace { id: trace_id("ticks", 3, 42), read_at_ns: 7, spans: (0..spans).map(span).collect() }
    }

    #[test]
    fn as_many_are_sampled_as_asked_for_whatever_the_partition() {
        for (ppm, expected) in [(0, 0..=0), (1_000_000, 100_000..=100_000), (10_000, 900..=1_100)] {
            for partition in [0, 1, 1023] {
                let sampled = (0..100_000).filter(|&offset| is_sampled(partition, offset, ppm)).count();
                assert!(expected.contains(&sampled), "{sampled} of partition {partition} at {ppm}");
            }
        }
        // Different partitions sample different offsets.
        let both = (0..100_000).filter(|&offset| [0, 1].iter().all(|&one| is_sampled(one, offset, 10_000)));
        assert!(both.count() < 50);
    }

    #[test]
    fn ids_follow_from_the_record() {
        // The expected text is the output of `printf ticks/3/42 | b3sum --length 16`.
        let id: String = trace_id("ticks", 3, 42).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(id, "3538af9bf0da45089a59085157d7a7f1");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (waiting, traces) = bounded(1);
        let counts = Arc::new(SpanCounts::default());
        let sender = TraceSender::new(waiting, counts.clone(), 0, 0);
        [2, 3, 4].into_iter().for_each(|spans| sender.send(trace(spans)));
        assert_eq!(counts.lost.load(Ordering::Relaxed), 7);
        assert_eq!(counts.under_way.load(Ordering::Relaxed), 2);
        assert_eq!(traces.try_iter().map(|trace| trace.spans.len()).collect::<Vec<_>>(), [2]);
    }
}
