//! Packets in the order of time, with interned names.

use super::messages::{CLOCK_MONOTONIC, CLOCK_REALTIME};
use super::messages::{
    Clock, ClockSnapshot, DebugAnnotation, EventType, InternedData, NEEDS_STATE, Named, PerfSample, PerfSampleDefaults,
    STATE_CLEARED, Timebase, TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent, Value,
};
use prost::Message;
use prost::encoding::encode_varint;
use slowpath_recording::Clock as RecordedClock;
use std::cmp::Reverse;
use std::collections::HashMap;

/// All packets are of one sequence, which one writer would have written.
const SEQUENCE: u32 = 1;

/// Tag of `Trace.packet`: field 1, length-delimited.
const PACKET_TAG: u8 = 0x0a;

/// Names by number, from 1.
#[derive(Default)]
pub(super) struct Interned {
    numbers: HashMap<String, u64>,
}

impl Interned {
    pub(super) fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn list(self) -> Vec<Named> {
        let mut list: Vec<_> =
            self.numbers.into_iter().map(|(name, iid)| Named { iid: Some(iid), name: Some(name) }).collect();
        list.sort_by_key(|named| named.iid);
        list
    }
}

/// A value beside an event.
pub(super) enum Detail<'a> {
    Bool(bool),
    Uint(u64),
    Int(i64),
    Address(u64),
    Text(&'a str),
}

/// What happened on a track.
pub(super) struct Event<'a> {
    pub start: u64,
    /// Null for a moment, or where the end was not seen.
    pub end: Option<u64>,
    pub category: &'static str,
    pub name: &'a str,
    pub details: Vec<(&'static str, Detail<'a>)>,
    /// Number of the interned call stack.
    pub stack: Option<u64>,
}

/// Collects packets.
#[derive(Default)]
pub(super) struct Packets {
    categories: Interned,
    names: Interned,
    detail_names: Interned,
    texts: Interned,
    descriptors: Vec<Vec<u8>>,
    events: Vec<(u64, Vec<u8>)>,
    tracks: u64,
    shortened: u64,
}

impl Packets {
    /// Adds a track and returns its number.
    pub(super) fn track(&mut self, mut descriptor: TrackDescriptor) -> u64 {
        self.tracks += 1;
        descriptor.uuid = Some(self.tracks);
        let packet = TracePacket { track_descriptor: Some(Box::new(descriptor)), ..sequence_packet() };
        self.descriptors.push(packet.encode_to_vec());
        self.tracks
    }

    /// Slices that did not nest in the one around them and were ended with it.
    pub(super) fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Adds the events of one track. Slices of a track must nest: one that outlasts the slice it began in, by the
    /// inaccuracy of two clocks, ends with it.
    pub(super) fn events(&mut self, track: u64, mut events: Vec<Event>) {
        events.sort_by_key(|event| (event.start, Reverse(event.end)));
        let mut open: Vec<u64> = Vec::new();
        for event in events {
            while let Some(end) = open.pop_if(|end| *end <= event.start) {
                self.end(track, end);
            }
            let Some(mut end) = event.end else {
                self.begin(track, &event, EventType::Instant);
                continue;
            };
            if let Some(around) = open.last().filter(|around| **around < end) {
                end = *around;
                self.shortened += 1;
            }
            self.begin(track, &event, EventType::SliceBegin);
            open.push(end);
        }
        while let Some(end) = open.pop() {
            self.end(track, end);
        }
    }

    /// Adds a value of a counter track.
    pub(super) fn count(&mut self, track: u64, timestamp: u64, value: u64) {
        self.event(
            timestamp,
            TrackEvent {
                r#type: Some(EventType::Counter.into()),
                track_uuid: Some(track),
                counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
                ..TrackEvent::default()
            },
        );
    }

    /// Adds a sample of a running thread.
    pub(super) fn sample(&mut self, timestamp: u64, sample: PerfSample) {
        let packet = TracePacket { timestamp: Some(timestamp), perf_sample: Some(sample), ..sequence_packet() };
        self.events.push((timestamp, packet.encode_to_vec()));
    }

    /// Adds names that events use.
    pub(super) fn interned(&mut self, data: InternedData) {
        let packet = TracePacket { interned_data: Some(Box::new(data)), ..sequence_packet() };
        self.descriptors.push(packet.encode_to_vec());
    }

    fn begin(&mut self, track: u64, event: &Event, kind: EventType) {
        let debug_annotations = event
            .details
            .iter()
            .map(|(name, detail)| DebugAnnotation {
                name_iid: Some(self.detail_names.number(name)),
                value: Some(match detail {
                    Detail::Bool(value) => Value::Bool(*value),
                    Detail::Uint(value) => Value::Uint(*value),
                    Detail::Int(value) => Value::Int(*value),
                    Detail::Address(value) => Value::Pointer(*value),
                    Detail::Text(value) => Value::StringIid(self.texts.number(value)),
                }),
            })
            .collect();
        let track_event = TrackEvent {
            category_iids: vec![self.categories.number(event.category)],
            debug_annotations,
            r#type: Some(kind.into()),
            name_iid: Some(self.names.number(event.name)),
            track_uuid: Some(track),
            counter_value: None,
            callstack_iid: event.stack,
        };
        self.event(event.start, track_event);
    }

    fn end(&mut self, track: u64, timestamp: u64) {
        self.event(
            timestamp,
            TrackEvent { r#type: Some(EventType::SliceEnd.into()), track_uuid: Some(track), ..TrackEvent::default() },
        );
    }

    fn event(&mut self, timestamp: u64, event: TrackEvent) {
        let packet =
            TracePacket { timestamp: Some(timestamp), track_event: Some(Box::new(event)), ..sequence_packet() };
        self.events.push((timestamp, packet.encode_to_vec()));
    }

    /// The bytes of the trace: clocks and names, then tracks and call stacks, then events by time. Events of one moment keep the order
    /// in which they were added, on which nesting relies.
    pub(super) fn into_trace(mut self, clock: RecordedClock, sample_rate: Option<u64>) -> Vec<u8> {
        let mut trace = Vec::new();
        let first = TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![
                    Clock { clock_id: Some(CLOCK_MONOTONIC), timestamp: Some(clock.monotonic.0) },
                    Clock {
                        clock_id: Some(CLOCK_REALTIME),
                        timestamp: Some(u64::try_from(clock.realtime).unwrap_or(0)),
                    },
                ],
                primary_trace_clock: Some(CLOCK_MONOTONIC),
            }),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        };
        append(&mut trace, &first.encode_to_vec());
        let names = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(STATE_CLEARED),
            first_packet_on_sequence: Some(true),
            trace_packet_defaults: Some(TracePacketDefaults {
                timestamp_clock_id: Some(CLOCK_MONOTONIC),
                perf_sample_defaults: Some(PerfSampleDefaults {
                    timebase: Some(Timebase { frequency: sample_rate, name: Some("CPU samples".to_owned()) }),
                }),
            }),
            interned_data: Some(Box::new(InternedData {
                event_categories: self.categories.list(),
                event_names: self.names.list(),
                debug_annotation_names: self.detail_names.list(),
                debug_annotation_string_values: self.texts.list(),
                ..InternedData::default()
            })),
            ..TracePacket::default()
        };
        append(&mut trace, &names.encode_to_vec());
        for descriptor in &self.descriptors {
            append(&mut trace, descriptor);
        }
        self.events.sort_by_key(|(timestamp, _)| *timestamp);
        for (_, event) in &self.events {
            append(&mut trace, event);
        }
        trace
    }
}

fn sequence_packet() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NEEDS_STATE),
        ..TracePacket::default()
    }
}

fn append(trace: &mut Vec<u8>, packet: &[u8]) {
    trace.push(PACKET_TAG);
    encode_varint(packet.len() as u64, trace);
    trace.extend_from_slice(packet);
}
