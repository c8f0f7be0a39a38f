#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds a Perfetto trace to the rules of its format, as trace_processor would read it.

    tests/schema/perfetto.py FILE.pftrace [--open-flows]

Prints what is wrong, a line each, and ends with 1 where something is. --open-flows: it was written
while the program ran, when it is not known which calls have work: flows may lead nowhere.
"""

import argparse
import collections
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CLEARED, NEEDS = 1, 2
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6


def use_distribution():
    """Starts again with the python3 that the distribution's python3-protobuf is for, where another is before it."""
    system = "/usr/bin/python3"
    if importlib.util.find_spec("google") is None and sys.executable != system and os.path.exists(system):
        os.execv(system, [system, *sys.argv])


def messages():
    """The classes that protoc makes of the schema."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={HERE}", f"--python_out={folder}", "perfetto_subset.proto"],
                       check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("perfetto_subset_pb2")
        finally:
            sys.path.remove(folder)


use_distribution()
pb = messages()
BEGIN, END = pb.TrackEvent.TYPE_SLICE_BEGIN, pb.TrackEvent.TYPE_SLICE_END
INSTANT, COUNTER = pb.TrackEvent.TYPE_INSTANT, pb.TrackEvent.TYPE_COUNTER


def unknown_fields(message, path="Trace"):
    """Names of messages in which something is that the schema does not have."""
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
        unknown = UnknownFieldSet(message)
    except ImportError:
        unknown = message.UnknownFields()
    if len(unknown):
        yield f"{path} has the unknown fields {[field.field_number for field in unknown]}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
            for one in value if repeated else [value]:
                yield from unknown_fields(one, f"{path}.{field.name}")


class Checker:
    def __init__(self, trace):
        self.trace = trace
        self.findings = []
        self.names = {field.name: {} for field in pb.InternedData.DESCRIPTOR.fields}
        self.tracks = {}
        self.events = []  # (time, place in the file, packet)
        self.flows = collections.defaultdict(lambda: [[], []])  # begins or steps, ends

    def say(self, text):
        self.findings.append(text)

    # ---- packets, in the order of the file

    def sequence(self):
        packets = self.trace.packet
        if not packets or packets[0].sequence_flags != CLEARED:
            self.say("the first packet does not clear the sequence's state")
        if packets and packets[0].trace_packet_defaults.timestamp_clock_id != MONOTONIC:
            self.say("the default clock is not CLOCK_MONOTONIC")
        snapshot = packets[0].clock_snapshot if packets else pb.ClockSnapshot()
        # trace_processor: what it cannot relate to BOOTTIME is clock_sync_unrelatable_clock_domains
        if not {REALTIME, MONOTONIC, BOOTTIME} <= {clock.clock_id for clock in snapshot.clocks}:
            self.say("there is no snapshot of the real, the monotonic and the boot clock")
        if snapshot.primary_trace_clock != MONOTONIC:
            self.say("the trace's clock is not CLOCK_MONOTONIC")
        for i, packet in enumerate(packets):
            if not packet.trusted_packet_sequence_id:
                self.say(f"packet {i} is of no sequence")
            if i and packet.sequence_flags != NEEDS:
                self.say(f"packet {i} does not say that it needs the sequence's state")

    def system(self, info):
        """trace_processor: "Unknown architecture" where there is a utsname without one that it knows."""
        if info.HasField("utsname") and not info.utsname.machine:
            self.say("the system has no machine")

    def intern(self, data):
        for kind, known in self.names.items():
            for entry in getattr(data, kind):
                text = (entry.str if hasattr(entry, "str") else entry.name if hasattr(entry, "name")
                        else entry.SerializeToString())
                if not entry.iid:
                    self.say(f"{kind}: a name with the number 0")
                if known.setdefault(entry.iid, text) != text:
                    self.say(f"{kind}: {entry.iid} is {known[entry.iid]!r} and {text!r}")

    def frames(self, data):
        """trace_processor refuses a callstack of which a part is not known."""
        for mapping in data.mappings:
            if not mapping.path_string_ids:
                self.say(f"mapping {mapping.iid} has no path")
            for iid in mapping.path_string_ids:
                self.resolve("mapping_paths", iid)
            if mapping.build_id:
                self.resolve("build_ids", mapping.build_id)
        for frame in data.frames:
            self.resolve("function_names", frame.function_name_id)
            self.resolve("mappings", frame.mapping_id)  # older ones know no frame without one
            if frame.source_path_iid:
                self.resolve("source_paths", frame.source_path_iid)
        for stack in data.callstacks:
            if not stack.frame_ids:
                self.say(f"callstack {stack.iid} is empty")
            for iid in stack.frame_ids:
                self.resolve("frames", iid)

    def sample(self, packet):
        sample = packet.perf_sample
        if not packet.HasField("timestamp") or not sample.pid or not sample.tid:
            self.say("a sample without its time or thread")
        if sample.callstack_iid:
            self.resolve("callstacks", sample.callstack_iid)

    def resolve(self, kind, iid):
        if iid not in self.names[kind]:
            self.say(f"{kind}: {iid} is referred to before it is defined")
        return self.names[kind].get(iid)

    def describe(self, track):
        before = self.tracks.get(track.uuid)
        if before and track.process.process_labels and before.process.pid == track.process.pid:
            return  # labels are known at the end; the same track may be described again
        if not track.uuid or before:
            self.say(f"track {track.uuid} is 0 or described twice")
        if track.HasField("parent_uuid") and track.parent_uuid not in self.tracks:
            self.say(f"track {track.uuid}: its parent {track.parent_uuid} is not described before it")
        if not (track.name or track.HasField("process") or track.HasField("thread")):
            self.say(f"track {track.uuid} has no name")
        self.tracks[track.uuid] = track

    def event(self, packet):
        event = packet.track_event
        track = self.tracks.get(event.track_uuid)
        if track is None:
            self.say(f"an event is on track {event.track_uuid}, which is not described before it")
        elif (event.type == COUNTER) != track.HasField("counter"):
            self.say(f"track {track.uuid}: counters and slices are mixed")
        if not packet.HasField("timestamp"):
            self.say("an event without a time")
        if event.type in (BEGIN, INSTANT):
            if not self.resolve("event_names", event.name_iid):
                self.say("an event without a name")
            if not event.category_iids:
                self.say("an event without a category")
        for iid in event.category_iids:
            self.resolve("event_categories", iid)
        if event.callstack_iid:
            self.resolve("callstacks", event.callstack_iid)
        for annotation in event.debug_annotations:
            self.resolve("debug_annotation_names", annotation.name_iid)
            if annotation.WhichOneof("value") is None:
                self.say("an annotation without a value")
            if annotation.HasField("string_value_iid"):
                self.resolve("debug_annotation_string_values", annotation.string_value_iid)
        for ends, ids in enumerate((event.flow_ids, event.terminating_flow_ids)):
            for flow in ids:
                self.flows[flow][ends].append(packet.timestamp)

    def packets(self):
        for place, packet in enumerate(self.trace.packet):
            self.intern(packet.interned_data)
            self.frames(packet.interned_data)
            kind = packet.WhichOneof("data")
            if kind == "track_descriptor":
                self.describe(packet.track_descriptor)
            elif kind == "system_info":
                self.system(packet.system_info)
            elif kind == "perf_sample":
                self.sample(packet)
            elif kind == "track_event":
                self.event(packet)
                self.events.append((packet.timestamp, place, packet))

    # ---- events, in the order of time: what has the same time, as it stands in the file

    def partners(self):
        """Which END belongs to which BEGIN, from the order of the file: calls that are written are whole."""
        open_slices, partner = collections.defaultdict(list), {}
        for _, place, packet in sorted(self.events, key=lambda event: event[1]):
            event = packet.track_event
            if event.type == BEGIN:
                open_slices[event.track_uuid].append(place)
            elif event.type == END:
                if not open_slices[event.track_uuid]:
                    self.say(f"track {event.track_uuid}: an end without a begin")
                    continue
                partner[place] = open_slices[event.track_uuid].pop()
        for track, rest in open_slices.items():
            if rest:
                self.say(f"track {track}: {len(rest)} slices without an end")
        return partner

    def nesting(self):
        partner, stacks = self.partners(), collections.defaultdict(list)
        for time, place, packet in sorted(self.events, key=lambda event: event[:2]):
            event = packet.track_event
            stack = stacks[event.track_uuid]
            if event.type == BEGIN:
                stack.append(place)
            elif event.type == END and place in partner:
                if not stack or stack[-1] != partner[place]:
                    self.say(f"track {event.track_uuid}: the slice that ends at {time} is not the innermost one")
                    if partner[place] in stack:
                        stack.remove(partner[place])
                else:
                    stack.pop()

    def counters(self):
        for time, _, packet in self.events:
            if packet.track_event.type == COUNTER and packet.track_event.counter_value < 0:
                name = self.tracks[packet.track_event.track_uuid].name
                self.say(f"the counter '{name}' is {packet.track_event.counter_value} at {time}")

    def check_flows(self, may_be_open):
        for flow, (begins, ends) in self.flows.items():
            if not begins:
                self.say(f"flow {flow:#x} ends and never began")
            if not ends and not may_be_open:
                self.say(f"flow {flow:#x} leads nowhere")
            if len(begins) > 1:
                self.say(f"flow {flow:#x} begins {len(begins)} times")
            if ends and begins and min(begins) > min(ends):
                self.say(f"flow {flow:#x} ends before it begins")
            if len(ends) > 1:
                self.say(f"flow {flow:#x} ends {len(ends)} times")


def check_bytes(data, may_have_open_flows=False):
    """What is wrong with a trace, a sentence each."""
    trace = pb.Trace.FromString(data)
    checker = Checker(trace)
    checker.findings += unknown_fields(trace)
    checker.sequence()
    checker.packets()
    checker.nesting()
    checker.counters()
    checker.check_flows(may_have_open_flows)
    return checker.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--open-flows", action="store_true")
    options = parser.parse_args()
    with open(options.file, "rb") as file:
        findings = check_bytes(file.read(), options.open_flows)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
