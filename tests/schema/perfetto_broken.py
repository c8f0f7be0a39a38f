#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks a good Perfetto trace in every way that perfetto.py looks for, and says what it overlooks.

    tests/schema/perfetto_broken.py FILE.pftrace STACKS.pftrace

The first has GPU activities and nested calls, the second stacks and samples.
"""

import sys

import perfetto
from perfetto import BEGIN, COUNTER, END, pb


def events(trace, **wanted):
    return [packet for packet in trace.packet if packet.HasField("track_event")
            and all(getattr(packet.track_event, key) == value for key, value in wanted.items())]


def first(trace, **wanted):
    return events(trace, **wanted)[0]


def without(trace, packet):
    kept = [other for other in trace.packet if other != packet]
    del trace.packet[:]
    trace.packet.extend(kept)


def descriptor(trace, field):
    return next(packet for packet in trace.packet if packet.track_descriptor.HasField(field))


def with_flow(trace):
    return next(packet for packet in events(trace, type=BEGIN) if packet.track_event.terminating_flow_ids)


def swap_times(trace):
    """Two slices of a track that overlap without one being in the other."""
    begins = events(trace, type=BEGIN)
    track = begins[0].track_event.track_uuid
    on_track = [packet for packet in begins if packet.track_event.track_uuid == track]
    on_track[1].timestamp = on_track[0].timestamp + 1


def drop_interned(trace, kind):
    packet = next(packet for packet in trace.packet if getattr(packet.interned_data, kind))
    without(trace, packet)


def redefine(trace):
    packet = trace.packet.add(trusted_packet_sequence_id=1, sequence_flags=2)
    packet.interned_data.event_names.add(iid=1, name="another")


def open_flow(trace):
    flow = with_flow(trace).track_event.terminating_flow_ids[0]
    for packet in events(trace):
        if flow in packet.track_event.flow_ids:
            del packet.track_event.flow_ids[:]


def twice(trace):
    packet = next(packet for packet in events(trace, type=BEGIN) if packet.track_event.flow_ids)
    packet.track_event.flow_ids.append(packet.track_event.flow_ids[0])


def turn_flow(trace):
    flow = with_flow(trace).track_event.terminating_flow_ids[0]
    for packet in events(trace):
        if flow in packet.track_event.flow_ids:
            packet.timestamp += 10 ** 12


# what perfetto.py should say, and what is broken
CHANGES = [
    ("does not clear", lambda t: setattr(t.packet[0], "sequence_flags", 2)),
    ("default clock", lambda t: t.packet[0].ClearField("trace_packet_defaults")),
    ("no snapshot", lambda t: t.packet[0].clock_snapshot.ClearField("clocks")),
    ("no snapshot", lambda t: t.packet[0].clock_snapshot.clocks.pop()),  # the boot clock is the last
    ("the trace's clock", lambda t: t.packet[0].clock_snapshot.ClearField("primary_trace_clock")),
    ("no machine", lambda t: t.packet[1].system_info.utsname.ClearField("machine")),
    ("of no sequence", lambda t: t.packet[5].ClearField("trusted_packet_sequence_id")),
    ("does not say that it needs", lambda t: t.packet[5].ClearField("sequence_flags")),
    ("event_names: ", lambda t: drop_interned(t, "event_names")),
    ("event_categories: ", lambda t: drop_interned(t, "event_categories")),
    ("debug_annotation_names: ", lambda t: drop_interned(t, "debug_annotation_names")),
    ("debug_annotation_string_values: ", lambda t: drop_interned(t, "debug_annotation_string_values")),
    ("event_names: 1 is", redefine),
    ("described twice", lambda t: t.packet.add().CopyFrom(descriptor(t, "thread"))),
    ("its parent", lambda t: without(t, descriptor(t, "process"))),
    ("has no name", lambda t: descriptor(t, "process").track_descriptor.ClearField("process")),
    ("not described before", lambda t: without(t, descriptor(t, "thread"))),
    ("counters and slices", lambda t: setattr(first(t, type=COUNTER).track_event, "track_uuid", 1)),
    ("without a time", lambda t: first(t, type=BEGIN).ClearField("timestamp")),
    ("without a name", lambda t: first(t, type=BEGIN).track_event.ClearField("name_iid")),
    ("without a category", lambda t: first(t, type=BEGIN).track_event.ClearField("category_iids")),
    ("without a value", lambda t: first(t, type=BEGIN).track_event.debug_annotations.add(name_iid=1)),
    ("without a begin", lambda t: without(t, first(t, type=BEGIN))),
    ("without an end", lambda t: without(t, first(t, type=END))),
    ("not the innermost", swap_times),
    ("the counter", lambda t: setattr(first(t, type=COUNTER).track_event, "counter_value", -1)),
    ("never began", open_flow),
    ("leads nowhere", lambda t: with_flow(t).track_event.ClearField("terminating_flow_ids")),
    ("begins 2 times", twice),
    ("ends before", turn_flow),
    ("ends 2 times", lambda t: with_flow(t).track_event.terminating_flow_ids.append(
        with_flow(t).track_event.terminating_flow_ids[0])),
]


def sample(trace):
    return next(packet for packet in trace.packet if packet.HasField("perf_sample")).perf_sample


def part(trace, kind):
    """The first that is defined of a kind."""
    return next(getattr(packet.interned_data, kind)[0] for packet in trace.packet if getattr(packet.interned_data, kind))


STACK_CHANGES = [(f"{kind}: ", lambda t, kind=kind: drop_interned(t, kind))
                 for kind in ("function_names", "frames", "callstacks", "mapping_paths", "source_paths", "mappings")] + [
    ("without its time or thread", lambda t: sample(t).ClearField("tid")),
    ("callstacks: 99 is", lambda t: setattr(sample(t), "callstack_iid", 99)),
    ("is empty", lambda t: part(t, "callstacks").ClearField("frame_ids")),
    ("has no path", lambda t: part(t, "mappings").ClearField("path_string_ids")),
    ("mappings: 0 is", lambda t: part(t, "frames").ClearField("mapping_id")),
    ("build_ids: 7 is", lambda t: setattr(part(t, "mappings"), "build_id", 7)),
    ("frames: 1 is", lambda t: setattr(part(t, "frames"), "iid", 77)),
]


def overlooked(path, changes):
    with open(path, "rb") as file:
        data = file.read()
    failed = [f"not clean before: {finding}" for finding in perfetto.check_bytes(data)]
    for expected, change in changes:
        trace = pb.Trace.FromString(data)
        change(trace)
        findings = perfetto.check_bytes(trace.SerializeToString())
        if not any(expected in finding for finding in findings):
            failed.append(f"'{expected}' was overlooked; found {findings[:3]}")
    unknown = data + b"\x0a\x03\xb8\x3e\x01"  # a packet with a field 999
    if not any("unknown fields" in finding for finding in perfetto.check_bytes(unknown)):
        failed.append("an unknown field was overlooked")
    return failed


def main():
    failed = overlooked(sys.argv[1], CHANGES) + overlooked(sys.argv[2], STACK_CHANGES)
    for line in failed:
        print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
