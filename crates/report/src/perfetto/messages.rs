//! The messages of a Perfetto trace that are written here, by hand: the few that are used.
//!
//! Field numbers are those of `protos/perfetto/trace/**/*.proto` in Perfetto (they never change there); the read-back
//! test compares with the definitions that Perfetto publishes for Python. Compiling all definitions takes minutes.

use prost::{Enumeration, Message};

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, boxed, tag = "11")]
    pub track_event: Option<Box<TrackEvent>>,
    #[prost(message, optional, boxed, tag = "12")]
    pub interned_data: Option<Box<InternedData>>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, boxed, tag = "60")]
    pub track_descriptor: Option<Box<TrackDescriptor>>,
    #[prost(message, optional, tag = "66")]
    pub perf_sample: Option<PerfSample>,
    #[prost(bool, optional, tag = "87")]
    pub first_packet_on_sequence: Option<bool>,
}

/// `Trace`; it is written packet by packet and read back here only.
#[cfg(test)]
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED`: interned names begin here.
pub const STATE_CLEARED: u32 = 1;
/// `TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE`: the packet uses interned names.
pub const NEEDS_STATE: u32 = 2;

/// `BuiltinClock.BUILTIN_CLOCK_REALTIME`.
pub const CLOCK_REALTIME: u32 = 1;
/// `BuiltinClock.BUILTIN_CLOCK_MONOTONIC`.
pub const CLOCK_MONOTONIC: u32 = 3;

/// `ClockSnapshot`.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// `ClockSnapshot.Clock`.
#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `TracePacketDefaults`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacketDefaults {
    #[prost(message, optional, tag = "12")]
    pub perf_sample_defaults: Option<PerfSampleDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
}

/// `ProcessDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
    #[prost(int64, optional, tag = "7")]
    pub start_timestamp_ns: Option<i64>,
}

/// `ThreadDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// `CounterDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(uint64, optional, tag = "56")]
    pub callstack_iid: Option<u64>,
}

/// `TrackEvent.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// `TYPE_UNSPECIFIED`.
    Unspecified = 0,
    /// `TYPE_SLICE_BEGIN`.
    SliceBegin = 1,
    /// `TYPE_SLICE_END`.
    SliceEnd = 2,
    /// `TYPE_INSTANT`.
    Instant = 3,
    /// `TYPE_COUNTER`.
    Counter = 4,
}

/// `DebugAnnotation`.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    #[prost(oneof = "Value", tags = "2, 3, 4, 7, 17")]
    pub value: Option<Value>,
}

/// `DebugAnnotation.value`.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum Value {
    /// `bool_value`.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// `uint_value`.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// `int_value`.
    #[prost(int64, tag = "4")]
    Int(i64),
    /// `pointer_value`: shown in hexadecimal.
    #[prost(uint64, tag = "7")]
    Pointer(u64),
    /// `string_value_iid`.
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// `InternedData`.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<Named>,
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Named>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Named>,
    #[prost(message, repeated, tag = "5")]
    pub function_names: Vec<Named>,
    #[prost(message, repeated, tag = "6")]
    pub frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub build_ids: Vec<InternedBytes>,
    #[prost(message, repeated, tag = "17")]
    pub mapping_paths: Vec<Named>,
    #[prost(message, repeated, tag = "18")]
    pub source_paths: Vec<Named>,
    #[prost(message, repeated, tag = "19")]
    pub mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<Named>,
}

/// `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`, which have one wire format.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// `InternedString` of what is no text.
#[derive(Clone, PartialEq, Message)]
pub struct InternedBytes {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub bytes: Option<Vec<u8>>,
}

/// `Mapping`.
#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub build_id: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub path_string_ids: Vec<u64>,
}

/// `Frame`.
#[derive(Clone, PartialEq, Message)]
pub struct Frame {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub mapping_id: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub rel_pc: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub source_path_iid: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub line_number: Option<u32>,
}

/// `Callstack`: the outermost frame first.
#[derive(Clone, PartialEq, Message)]
pub struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub frame_ids: Vec<u64>,
}

/// `PerfSample`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct PerfSample {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub tid: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub callstack_iid: Option<u64>,
    #[prost(enumeration = "CpuMode", optional, tag = "5")]
    pub cpu_mode: Option<i32>,
}

/// `Profiling.CpuMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CpuMode {
    /// `MODE_UNKNOWN`.
    Unknown = 0,
    /// `MODE_KERNEL`.
    Kernel = 1,
    /// `MODE_USER`.
    User = 2,
}

/// `PerfSampleDefaults`.
#[derive(Clone, PartialEq, Message)]
pub struct PerfSampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub timebase: Option<Timebase>,
}

/// `PerfEvents.Timebase`.
#[derive(Clone, PartialEq, Message)]
pub struct Timebase {
    #[prost(uint64, optional, tag = "2")]
    pub frequency: Option<u64>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}
