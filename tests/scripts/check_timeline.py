"""Reads a timeline by the module that Perfetto's package has for its published definitions, and says what is in it as JSON.

    python3 tests/scripts/check_timeline.py FILE

It ends with an error if a field is not known at any level, a value is none of its enum, a track is not described before something is on
it, a name was not interned, or slices of a track are not nested or do not end.
"""

import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2


def check_known(message, where):
    """No field is unknown, in this message and in those within it."""
    unknown = unknown_fields.UnknownFieldSet(message)
    numbers = [field.field_number for field in unknown]
    assert not numbers, f"{where}: fields {numbers} of {message.DESCRIPTOR.full_name} are not known"
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.is_repeated else [value]:
            check_known(part, where)


def check_nesting(edges, name):
    """Ends belong to the same begins in the order of the file and in that of time, by which Perfetto reads them."""

    def pairs(order):
        begun, found = [], {}
        for index in order:
            if edges[index][1]:
                begun.append(index)
            else:
                assert begun, f"{name}: a slice ends that did not begin"
                found[begun.pop()] = index
        assert not begun, f"{name}: {len(begun)} slices do not end"
        return found

    in_file = list(range(len(edges)))
    by_time = sorted(in_file, key=lambda index: edges[index][0])
    assert pairs(in_file) == pairs(by_time), f"{name}: slices overlap"


def main(path):
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    event_type = perfetto_trace_pb2.TrackEvent
    clock = None
    names, keys, tracks, used = {}, {}, {}, set()
    edges, flows = collections.defaultdict(list), collections.defaultdict(lambda: [0, 0])
    counts = {kind: collections.Counter() for kind in ("slices", "instants", "counters", "notes")}
    times = []
    for number, packet in enumerate(trace.packet):
        check_known(packet, f"packet {number}")
        if packet.HasField("clock_snapshot"):
            assert packet.clock_snapshot.primary_trace_clock == perfetto_trace_pb2.BUILTIN_CLOCK_REALTIME
        if packet.HasField("trace_packet_defaults"):
            clock = packet.trace_packet_defaults.timestamp_clock_id
        names.update((one.iid, one.name) for one in packet.interned_data.event_names)
        keys.update((one.iid, one.name) for one in packet.interned_data.debug_annotation_names)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, f"packet {number}: track {track.uuid} is described twice"
            assert track.HasField("process") or track.parent_uuid in tracks, f"packet {number}: the parent is not described"
            tracks[track.uuid] = track
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert clock == perfetto_trace_pb2.BUILTIN_CLOCK_REALTIME and packet.HasField("timestamp")
        assert packet.sequence_flags == perfetto_trace_pb2.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        assert event.track_uuid in tracks, f"packet {number}: track {event.track_uuid} is not described"
        track = tracks[event.track_uuid]
        used.add(event.track_uuid)
        times.append(packet.timestamp)
        for note in event.debug_annotations:
            counts["notes"][keys[note.name_iid]] += 1
        for flow in event.flow_ids:
            flows[flow][0] += 1
        for flow in event.terminating_flow_ids:
            flows[flow][1] += 1
        assert track.HasField("counter") == (event.type == event_type.TYPE_COUNTER), f"packet {number}: {track.name}"
        if event.type in (event_type.TYPE_SLICE_BEGIN, event_type.TYPE_SLICE_END):
            is_begin = event.type == event_type.TYPE_SLICE_BEGIN
            edges[event.track_uuid].append((packet.timestamp, is_begin))
            if is_begin:
                counts["slices"][names[event.name_iid]] += 1
        elif event.type == event_type.TYPE_INSTANT:
            counts["instants"][names[event.name_iid]] += 1
        else:
            assert event.type == event_type.TYPE_COUNTER, f"packet {number}: {event.type}"
            counts["counters"][track.name] += 1
    for uuid, of_track in edges.items():
        check_nesting(of_track, tracks[uuid].name)
    assert not any(begins == 0 for begins, _ in flows.values()), "a flow ends that did not begin"
    found = {kind: dict(sorted(counter.items())) for kind, counter in counts.items()}
    found["processes"] = [track.process.process_name for track in tracks.values() if track.HasField("process")]
    found["tracks"] = sorted({tracks[uuid].name for uuid in used})
    found["flows"] = {"whole": sum(begins + ends > 1 for begins, ends in flows.values()), "all": len(flows)}
    found["first_ns"], found["last_ns"] = min(times), max(times)
    print(json.dumps(found))


main(sys.argv[1])
