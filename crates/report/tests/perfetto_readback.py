"""Reads a Perfetto trace by the definitions of the PyPI package `perfetto` and compares it with expected counts.

Usage: perfetto_readback.py TRACE EXPECTED.json
"""

import json
import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}, expected {expected!r}")


def check_known(message, path="Trace"):
    """A wrong field number or wire type shows up as a field that the definitions do not know."""
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    check(f"unknown fields of {path}", unknown, [])
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if field.is_repeated else [value]:
            check_known(item, f"{path}.{field.name}")


def main():
    trace = pb.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        expected = json.load(file)
    check_known(trace)

    snapshot = trace.packet[0].clock_snapshot
    clocks = {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
    check("clocks", clocks, {pb.BUILTIN_CLOCK_MONOTONIC: expected["clock"]["monotonic"],
                             pb.BUILTIN_CLOCK_REALTIME: expected["clock"]["realtime"]})
    check("clock of the trace", snapshot.primary_trace_clock, pb.BUILTIN_CLOCK_MONOTONIC)
    names = trace.packet[1]
    check("sequence state", names.sequence_flags, pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
    check("clock of the events", names.trace_packet_defaults.timestamp_clock_id, pb.BUILTIN_CLOCK_MONOTONIC)
    event_names = {entry.iid: entry.name for entry in names.interned_data.event_names}
    detail_names = {entry.iid: entry.name for entry in names.interned_data.debug_annotation_names}
    texts = {entry.iid: entry.str.decode() for entry in names.interned_data.debug_annotation_string_values}
    categories = {entry.iid: entry.name for entry in names.interned_data.event_categories}

    tracks = {packet.track_descriptor.uuid: packet.track_descriptor
              for packet in trace.packet if packet.HasField("track_descriptor")}
    for track in tracks.values():
        if track.HasField("parent_uuid"):
            check("a parent track exists", track.parent_uuid in tracks, True)

    def pid_of(uuid):
        track = tracks[uuid]
        if track.HasField("thread"):
            return track.thread.pid
        if track.HasField("process"):
            return track.process.pid
        return pid_of(track.parent_uuid) if track.HasField("parent_uuid") else None

    found = defaultdict(Counter)
    requests = 0
    ready = None
    fault_ns = 0
    files = set()
    open_slices = defaultdict(list)
    counters = {}
    last = 0
    for packet in trace.packet:
        check("one sequence", packet.trusted_packet_sequence_id, 1)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        check("order of time", packet.timestamp >= last, True)
        last = packet.timestamp
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            check("a counter track", tracks[event.track_uuid].HasField("counter"), True)
            counters[event.track_uuid] = event.counter_value
            continue
        if event.type == pb.TrackEvent.TYPE_SLICE_END:
            name, begin = open_slices[event.track_uuid].pop()
            fault_ns += packet.timestamp - begin if name.endswith("fault") else 0
            continue
        name = event_names[event.name_iid]
        check("a category", all(iid in categories for iid in event.category_iids), True)
        details = {detail_names[d.name_iid]: texts[d.string_value_iid] if d.HasField("string_value_iid") else d
                   for d in event.debug_annotations}
        if isinstance(details.get("file"), str):
            files.add(details["file"])
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((name, packet.timestamp))
        if name == "ready":
            ready = packet.timestamp
        pid = pid_of(event.track_uuid)
        if pid is not None:
            found[str(pid)][name] += 1
        elif name.endswith("request"):
            requests += 1
            device = tracks[tracks[event.track_uuid].parent_uuid]
            check("name of the device", device.name, expected["device"])
    check("slices left open", [stack for stack in open_slices.values() if stack], [])
    total = 0
    for uuid, value in counters.items():
        pid = pid_of(uuid)
        if pid is None:
            total = value
        else:
            found[str(pid)]["pages inserted"] = value

    check("counts per process", {pid: dict(counts) for pid, counts in found.items()}, expected["processes"])
    check("pages of all processes", total, sum(p.get("pages inserted", 0) for p in expected["processes"].values()))
    check("nanoseconds in faults", fault_ns, expected["fault_ns"])
    check("block requests", requests, expected["requests"])
    check("ready", ready, expected["ready"])
    check("files of reads", files, {expected["file"]})
    process_names = {str(t.process.pid): t.process.process_name for t in tracks.values() if t.HasField("process")}
    check("names of processes", process_names, expected["names"])
    threads = sorted([t.thread.pid, t.thread.tid] for t in tracks.values() if t.HasField("thread"))
    check("threads", threads, expected["threads"])
    print(f"{len(trace.packet)} packets, {len(tracks)} tracks, counts agree: {dict(found)}")


if __name__ == "__main__":
    main()
