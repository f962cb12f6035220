//! The messages of a Perfetto trace that a timeline uses, with the field numbers of Perfetto's published definitions
//! (`protos/perfetto/trace`, release 59). A test parses written traces with the module generated from these
//! definitions.

/// A trace: packets, each of which can be written on its own.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// The packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet of a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Time, by the clock in the sequence's defaults.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Number of the sequence within which names are interned.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Flags of the sequence: [`SEQUENCE_BEGINS`] or [`SEQUENCE_GOES_ON`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Clocks that show the same time.
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    /// An event on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names for numbers that later packets use.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// Defaults for packets that do not set these fields.
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    /// The description of a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// Value of [`TracePacket::sequence_flags`]: earlier state is dropped.
pub const SEQUENCE_BEGINS: u32 = 1;
/// Value of [`TracePacket::sequence_flags`]: names that were interned earlier are used.
pub const SEQUENCE_GOES_ON: u32 = 2;

/// Contents of [`TracePacket::trace_packet_defaults`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacketDefaults {
    /// Clock of the timestamps.
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

/// The wall clock: time since the epoch.
pub const CLOCK_REALTIME: u32 = 1;
/// The default clock of a trace.
pub const CLOCK_BOOTTIME: u32 = 6;

/// Contents of [`TracePacket::clock_snapshot`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClockSnapshot {
    /// The clocks.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// Number of the clock by which Perfetto shows the trace.
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// The reading of a clock.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Clock {
    /// Number of the clock.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Time of the clock, in nanoseconds.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// A track: a line of slices, or a counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Number of the track in events.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name of the track.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The process, if the track belongs to a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Track below which this one is shown.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// The counter, if the track is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// Order of the tracks below this one; see [`EXPLICIT_ORDER`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Position of the track among the children of its parent.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// Description of the track's contents.
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
}

/// Value of [`TrackDescriptor::child_ordering`]: in the order of [`TrackDescriptor::sibling_order_rank`].
pub const EXPLICIT_ORDER: i32 = 3;

/// Contents of [`TrackDescriptor::process`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// A number that is unique within the trace.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name of the process.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// Contents of [`TrackDescriptor::counter`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// Name of the counted quantity.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// An event on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Annotations of the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Type of the event; see [`EventType`].
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Interned name of the event.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Flows that begin at the event or pass through it.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Flows that end at the event.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// The type of a [`TrackEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Not specified.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The last slice that began ends.
    SliceEnd = 2,
    /// An instant event.
    Instant = 3,
    /// A counter has a new value from this time on.
    Counter = 4,
}

/// An annotation of an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Interned name of the annotation.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Value of the annotation, if it is a number.
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    /// Value of the annotation, if it is a text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
}

/// Contents of [`TracePacket::interned_data`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of annotations.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
}

/// A name with its number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedName {
    /// The number.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
