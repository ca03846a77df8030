"""Reads samples, waits and call stacks of a Perfetto trace by the definitions of the PyPI package `perfetto`.

Usage: perfetto_samples.py TRACE EXPECTED.json
"""

import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from perfetto_readback import check, check_known


def by_number(trace, kind):
    """All interned entries of a kind; a number has one meaning."""
    found = {}
    for packet in trace.packet:
        for entry in getattr(packet.interned_data, kind):
            check(f"{kind} {entry.iid} stands twice", entry.iid in found, False)
            found[entry.iid] = entry
    return found


def main():
    trace = pb.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        expected = json.load(file)
    check_known(trace)
    kinds = ("function_names", "frames", "callstacks", "mappings", "mapping_paths", "build_ids", "source_paths", "event_names")
    names = {kind: by_number(trace, kind) for kind in kinds}

    def frame(iid):
        """Function, file, offset, build-id and source of a frame."""
        entry = names["frames"][iid]
        mapping = names["mappings"][entry.mapping_id]
        path = "/".join(names["mapping_paths"][part].str.decode() for part in mapping.path_string_ids)
        build_id = names["build_ids"][mapping.build_id].str.hex() if mapping.HasField("build_id") else None
        source = names["source_paths"][entry.source_path_iid].str.decode() if entry.HasField("source_path_iid") else None
        return [names["function_names"][entry.function_name_id].str.decode(), path, entry.rel_pc, build_id, source]

    def stack(iid):
        return [frame(number) for number in names["callstacks"][iid].frame_ids]

    samples, slices, tracks = [], [], {}
    last = 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("perf_sample"):
            check("order of time", packet.timestamp >= last, True)
            last = packet.timestamp
            sample = packet.perf_sample
            frames = stack(sample.callstack_iid) if sample.HasField("callstack_iid") else None
            mode = pb.Profiling.CpuMode.Name(sample.cpu_mode)
            samples.append([packet.timestamp, sample.pid, sample.tid, sample.cpu, mode, frames])
        event = packet.track_event
        if packet.HasField("track_event") and event.type in (pb.TrackEvent.TYPE_SLICE_BEGIN, pb.TrackEvent.TYPE_INSTANT):
            innermost = stack(event.callstack_iid)[-1][0] if event.HasField("callstack_iid") else None
            slices.append([event.track_uuid, packet.timestamp, names["event_names"][event.name_iid].name, innermost])

    def place(uuid):
        """Thread and name of the track below it."""
        track = tracks[uuid]
        if track.HasField("thread"):
            return [track.thread.tid, ""]
        parent = tracks.get(track.parent_uuid)
        return [parent.thread.tid if parent is not None else 0, track.name]

    told = [[*place(uuid), timestamp, name, innermost] for uuid, timestamp, name, innermost in slices]
    told = [row for row in told if row[0] and row[3] != "exec"]
    check("samples", samples, expected["samples"])
    check("slices of threads", sorted(told, key=lambda row: row[2]), expected["slices"])
    timebase = trace.packet[1].trace_packet_defaults.perf_sample_defaults.timebase
    check("rate of the samples", timebase.frequency, 1000)
    print(f"{len(samples)} samples, {len(names['callstacks'])} stacks, {len(told)} slices agree")


main()
