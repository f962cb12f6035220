//! Writes events as packets of a trace, one after the other.

use std::io::{self, Write};

use prost::Message;

use crate::names::{Key, Name};
use crate::proto::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, Clock, ClockSnapshot, DebugAnnotation, EventType, InternedData,
    InternedName, SEQUENCE_BEGINS, SEQUENCE_GOES_ON, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent,
};

/// Tag and wire type of [`crate::proto::Trace::packet`].
const PACKET_KEY: u8 = 1 << 3 | 2;
/// Number of the only sequence in a trace.
const SEQUENCE: u32 = 1;
/// Greatest number of bytes shown of a text from a record.
const TEXT_BYTES_MAX: usize = 200;

/// An interval, ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
}

/// Annotations of an event.
pub(crate) type Notes = Vec<DebugAnnotation>;

/// Returns an annotation with a number.
pub(crate) fn number(key: Key, value: impl Into<i64>) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(key.iid()), int_value: Some(value.into()), string_value: None }
}

/// Returns an annotation with a text.
pub(crate) fn text(key: Key, value: &str) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(key.iid()), int_value: None, string_value: Some(short(value)) }
}

/// Returns the part of a text that is shown.
pub(crate) fn short(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}

/// An event to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) flows: Vec<u64>,
    pub(crate) ending_flows: Vec<u64>,
    pub(crate) notes: Notes,
}

/// Writes and counts packets, without knowing their meaning.
pub(crate) struct Packets<W> {
    out: W,
    buffer: Vec<u8>,
    has_begun: bool,
    bytes: u64,
}

impl<W: Write> Packets<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, buffer: Vec::new(), has_begun: false, bytes: 0 }
    }

    /// Writes the clock of times, and the interned names, unless they are already written.
    pub(crate) fn begin_trace(&mut self, at_ns: i64) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        // The two clocks agree: Perfetto shows the trace by the wall clock, and queries by the default clock give the
        // same times.
        let timestamp = Some(time(at_ns));
        let clocks = [CLOCK_REALTIME, CLOCK_BOOTTIME].map(|id| Clock { clock_id: Some(id), timestamp });
        let primary_trace_clock = Some(CLOCK_REALTIME);
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            clock_snapshot: Some(ClockSnapshot { clocks: clocks.into(), primary_trace_clock }),
            ..TracePacket::default()
        })?;
        let interned =
            |(iid, text): (u64, &str)| InternedName { iid: Some(iid), name: Some(text.to_owned()) };
        let names = Name::ALL.iter().map(|(name, text)| interned((name.iid(), text)));
        let keys = Key::ALL.iter().map(|(key, text)| interned((key.iid(), text)));
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQUENCE_BEGINS),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: Some(CLOCK_REALTIME) }),
            interned_data: Some(InternedData {
                event_names: names.collect(),
                debug_annotation_names: keys.collect(),
            }),
            ..TracePacket::default()
        })
    }

    /// Writes the descriptor of a track.
    pub(crate) fn describe(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Begins a slice. Its nested slices follow, and then its end.
    pub(crate) fn begin(&mut self, track: u64, at_ns: i64, name: Name, event: Event) -> io::Result<()> {
        self.named(EventType::SliceBegin, track, at_ns, name, event)
    }

    /// Ends the last slice that began on the track.
    pub(crate) fn end(&mut self, track: u64, at_ns: i64) -> io::Result<()> {
        let event = TrackEvent { r#type: Some(EventType::SliceEnd.into()), ..TrackEvent::default() };
        self.event(track, at_ns, event)
    }

    /// Writes a slice without nested slices.
    pub(crate) fn slice(&mut self, track: u64, span: Span, name: Name, event: Event) -> io::Result<()> {
        self.begin(track, span.begin_ns, name, event)?;
        self.end(track, span.end_ns)
    }

    /// Writes an instant event.
    pub(crate) fn instant(&mut self, track: u64, at_ns: i64, name: Name, event: Event) -> io::Result<()> {
        self.named(EventType::Instant, track, at_ns, name, event)
    }

    /// Sets the value of a counter, starting at a time.
    pub(crate) fn count(&mut self, track: u64, at_ns: i64, value: i64) -> io::Result<()> {
        let r#type = Some(EventType::Counter.into());
        let event = TrackEvent { r#type, counter_value: Some(value), ..TrackEvent::default() };
        self.event(track, at_ns, event)
    }

    /// Ends the trace. Returns the writer and the number of bytes.
    pub(crate) fn finish(mut self) -> io::Result<(W, u64)> {
        self.begin_trace(0)?;
        self.out.flush()?;
        Ok((self.out, self.bytes))
    }

    fn named(&mut self, what: EventType, track: u64, at_ns: i64, name: Name, event: Event) -> io::Result<()> {
        let event = TrackEvent {
            debug_annotations: event.notes,
            r#type: Some(what.into()),
            name_iid: Some(name.iid()),
            flow_ids: event.flows,
            terminating_flow_ids: event.ending_flows,
            ..TrackEvent::default()
        };
        self.event(track, at_ns, event)
    }

    fn event(&mut self, track: u64, at_ns: i64, event: TrackEvent) -> io::Result<()> {
        self.write(&TracePacket {
            timestamp: Some(time(at_ns)),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQUENCE_GOES_ON),
            track_event: Some(TrackEvent { track_uuid: Some(track), ..event }),
            ..TracePacket::default()
        })
    }

    fn write(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).expect("a vector takes as many bytes as there are");
        self.bytes += self.buffer.len() as u64;
        self.out.write_all(&self.buffer)
    }
}

/// Converts a time for a trace, in which no time is before the epoch.
fn time(at_ns: i64) -> u64 {
    at_ns.max(0).cast_unsigned()
}
