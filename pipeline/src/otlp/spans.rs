//! Builds the spans of a trace.
//!
//! The module uses neither tracing-opentelemetry nor the SDK's tracer. tracing-opentelemetry takes a span's times from
//! the clock when the span is entered and closed. Both draw ids from a generator that does not know the span. Here, the
//! spans are built once their trace is complete, with the times of events. Their ids are derived from the record, so a
//! rerun yields the same ids, and a record leads to its trace.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::traces::{Attribute, Trace, TraceValue};

impl Trace {
    /// Returns the spans to export. Their ids are derived from the trace, so nothing is random.
    pub(super) fn into_spans(self) -> impl Iterator<Item = SpanData> {
        let Self { id, read_at_ns, spans } = self;
        let trace_id = TraceId::from_bytes(id);
        let span_id = move |number: usize| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&id).update(&read_at_ns.to_le_bytes()).update(&(number as u64).to_le_bytes());
            SpanId::from_bytes(*hasher.finalize().as_bytes().first_chunk().expect("a digest has 32 bytes"))
        };
        let scope = InstrumentationScope::builder("warptape").with_version(env!("CARGO_PKG_VERSION")).build();
        let at = |ns: i64| UNIX_EPOCH + Duration::from_nanos(ns.max(0) as u64);
        spans.into_iter().enumerate().map(move |(number, span)| {
            let is_whole = number == 0;
            SpanData {
                span_context: SpanContext::new(
                    trace_id,
                    span_id(number),
                    TraceFlags::SAMPLED,
                    false,
                    TraceState::default(),
                ),
                parent_span_id: if is_whole { SpanId::INVALID } else { span_id(0) },
                parent_span_is_remote: false,
                span_kind: if is_whole { SpanKind::Consumer } else { SpanKind::Internal },
                name: Cow::Borrowed(span.name),
                start_time: at(span.start_ns),
                // The clock never goes back, but steps measured on different threads may overlap slightly.
                end_time: at(span.end_ns.max(span.start_ns)),
                attributes: span.attributes.into_iter().map(key_value).collect(),
                dropped_attributes_count: 0,
                events: SpanEvents::default(),
                links: SpanLinks::default(),
                status: span.error.map_or(Status::Unset, Status::error),
                instrumentation_scope: scope.clone(),
            }
        })
    }
}

fn key_value((name, value): Attribute) -> KeyValue {
    let value: Value = match value {
        TraceValue::Int(value) => value.into(),
        TraceValue::Bool(value) => value.into(),
        TraceValue::Text(value) => value.into(),
    };
    KeyValue::new(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::{TracedSpan, attribute, trace_id};

    fn trace(spans: usize) -> Trace {
        let span = |number: usize| TracedSpan {
            name: "step",
            start_ns: 10,
            end_ns: 9 + number as i64,
            attributes: vec![attribute("warptape.lane", 3), attribute("warptape.dead_letter", true)],
            error: (number == 1).then_some("let go"),
        };
        Trace { id: trace_id("ticks", 3, 42), read_at_ns: 7, spans: (0..spans).map(span).collect() }
    }

    #[test]
    fn spans_have_ids_of_the_record_and_the_reading() {
        let spans: Vec<SpanData> = trace(3).into_spans().collect();
        let ids: Vec<SpanId> = spans.iter().map(|span| span.span_context.span_id()).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
        assert_eq!(spans[0].parent_span_id, SpanId::INVALID);
        assert!(spans[1..].iter().all(|span| span.parent_span_id == ids[0]), "{spans:?}");
        assert!(spans.iter().all(|span| span.end_time >= span.start_time), "{spans:?}");
        assert_eq!(spans[1].status, Status::error("let go"));
        let expected = [KeyValue::new("warptape.lane", 3), KeyValue::new("warptape.dead_letter", true)];
        assert_eq!(spans[0].attributes, expected);
        let again = Trace { read_at_ns: 8, ..trace(1) };
        assert_ne!(again.into_spans().next().expect("a span").span_context.span_id(), ids[0]);
    }
}
