#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A reader of trace files written from docs/trace-format.md alone, to hold the page to the program.

    tests/golden/reader.py FILE                          the events, one a line
    tests/golden/reader.py --check build/cuscope FILE... compares them with what cuscope exports

It unpacks with the zstd program.
"""

import csv
import io
import struct
import subprocess
import sys
import zlib

MAGIC = b"\x89CUSCOPE"
RUN, DEFINITIONS, EVENTS, END, INDEX, NAMES = range(1, 7)
NO_RETURN, UNFINISHED = 2, 4
KINDS = ("kernel", "memcpy", "memset", "graph")
RANGES = ("nvtx", "nvtx_start_end", "nvtx_mark", "sync", "overhead", "not_measured")
RANGE, SAMPLE, METRICS, STALL = 7, 6, 5, 4
METRIC_NAMES = ("graphics", "sm", "occupancy", "tensor", "fp32", "fp64", "fp16", "integer", "dram", "pcie_tx", "pcie_rx",
                "nvlink_tx", "nvlink_rx", "busy", "memory_busy")
RATES = METRIC_NAMES[9:13]
SAMPLES = ("cpu", "off_cpu")
BLOCKED = ("unknown", "woken", "interrupt", "still", "before", "brief", "skipped", "preempted")
WAITS = ("", "cpu", "disk", "network", "pipe", "lock", "sleep", "fault", "swap", "device", "events", "child", "stop", "call")
DIRECTIONS = ("", "H2D", "D2H", "D2D", "H2H", "P2P", "default")
FLAGS = ("nested", "no_return", "unfinished", "captured", "failed", "size_unknown")
MASK = 2 ** 64 - 1


class Damage(Exception):
    pass


class Bytes:
    """A stretch of bytes that is read from its begin on."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def done(self):
        return self.at == len(self.data)

    def take(self, n):
        part = self.data[self.at:self.at + n]
        if len(part) != n:
            raise Damage("a stretch ends too early")
        self.at += n
        return part

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value & MASK

    def signed(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def string(self):
        return self.take(self.varint()).decode(errors="replace")

    def text(self):
        end = self.data.index(b"\0", self.at)
        text = self.take(end - self.at).decode(errors="replace")
        self.at += 1
        return text


# ---- chunks --------------------------------------------------------------------------------------


def chunks(data):
    """(head, payload) of each, up to the index."""
    if data[:8] != MAGIC or struct.unpack_from("<H", data, 8)[0] != 1:
        raise Damage("no trace of version 1")
    at = 16
    while True:
        head = struct.unpack_from("<IIIIIIQQQIIII", data, at)
        magic, kind, stored, raw = head[:4]
        if magic != 0x4b4e4843 or zlib.crc32(data[at:at + 60]) != head[-1]:
            raise Damage(f"no chunk at {at}")
        payload = data[at + 64:at + 64 + stored]
        if zlib.crc32(payload) != head[10]:
            raise Damage(f"the chunk at {at} is damaged")
        unpacked = subprocess.run(["zstd", "-dc"], input=payload, capture_output=True, check=True).stdout
        if len(unpacked) != raw:
            raise Damage(f"the chunk at {at} has another size")
        yield {"type": kind, "events": head[4], "announced": head[5], "at": at}, unpacked
        if kind == INDEX:
            check_end(data, at, stored)
            return
        at += 64 + stored


def check_end(data, at, stored):
    offset, size, crc = struct.unpack_from("<QII", data, len(data) - 24)
    if (offset, size, data[-8:]) != (at, 64 + stored, MAGIC) or crc != zlib.crc32(data[-24:-12]):
        raise Damage("the trailer does not lead to the index")


def records(payload):
    data = Bytes(payload)
    while not data.done():
        tag = data.varint()
        yield tag, Bytes(data.take(data.varint()))


# ---- definitions ---------------------------------------------------------------------------------


class Trace:
    def __init__(self, data):
        self.run = {}
        self.processes, self.functions, self.kernels = [], [], {}
        self.frames, self.stacks = [], []
        self.waiting, self.events, names = [], [], []
        for head, payload in chunks(data):
            if head["type"] in (RUN, END):
                self.run = {tag: body for tag, body in records(payload) if tag != 4 and tag != 5}
            elif head["type"] == DEFINITIONS:
                self.define(payload)
            elif head["type"] == EVENTS:
                while len(self.waiting) > head["announced"]:
                    self.events.append(self.waiting.pop(0))
                self.events += Chunk(self, head, payload, names).read()
            if head["type"] == NAMES:
                names = [name.decode(errors="replace") for name in payload.split(b"\0")[:-1]]
            else:
                names = []
        self.begin_ns = self.run[1].varint()

    def define(self, payload):
        for tag, body in records(payload):
            if tag == 1:
                self.number(body, len(self.processes))
                self.processes.append({"pid": body.varint(), "comm": body.string()})
            elif tag == 2:
                self.number(body, len(self.functions))
                self.functions.append({"name": body.string(), "lib": body.string(), "layer": body.varint()})
            elif tag == 3:
                number, _, name = body.varint(), body.varint(), body.string()
                self.kernels[number] = name
            elif tag in (4, 5):
                process, tid, time = body.varint(), body.varint(), body.varint()
                event = {"kind": "process" if tag == 4 else "thread", "pid": self.processes[process]["pid"],
                         "tid": tid, "time": time}
                if tag == 5:
                    event["comm"] = body.string()
                self.waiting.append(event)
            elif tag == 6:
                self.number(body, len(self.frames))
                kind, flags, line, first_line, offset, texts = (body.varint() for _ in range(6))
                function, module, file, build_id = (body.string() if texts & bit else None for bit in (1, 2, 4, 8))
                self.frames.append({"kind": kind, "inlined": flags & 1, "line": line, "first_line": first_line,
                                    "offset": offset, "function": function, "module": module, "file": file,
                                    "build_id": build_id})
            elif tag == 7:
                self.number(body, len(self.stacks))
                end, flags, count, frame, frames = body.varint(), body.varint(), body.varint(), 0, []
                for _ in range(count):
                    frame += body.signed()
                    frames.append(self.frames[frame])
                self.stacks.append({"end": end, "python_cut": flags & 1, "frames": frames})
            elif tag == 8:
                frame = self.frames[body.varint()]
                frame["parts"] = [self.frames[body.varint()] for _ in range(body.varint())]

    @staticmethod
    def number(body, expected):
        if body.varint() != expected:
            raise Damage("numbers have gaps")


# ---- events --------------------------------------------------------------------------------------


class Slot:
    def __init__(self, owner):
        self.owner = owner
        self.values = [0] * 29
        self.follows = {}  # bits 12 to 18: an argument


class Chunk:
    def __init__(self, trace, head, payload, names):
        lengths = struct.unpack_from("<IIII", payload)
        at, columns = 16, []
        for length in lengths:
            columns.append(Bytes(payload[at:at + length]))
            at += length
        self.trace, self.head, self.names = trace, head, names
        self.heads, self.times, self.values, self.texts = columns
        self.threads, self.thread, self.time = [], None, 0
        self.slots, self.last_kernel, self.correlations = {}, {}, {}

    def read(self):
        events = [self.event() for _ in range(self.head["events"])]
        if not all(c.done() for c in (self.heads, self.times, self.values, self.texts)):
            raise Damage("columns do not end with the last event")
        return events

    def event(self):
        head = self.heads.varint()
        code = head >> 2
        if code == 0:
            return self.trace.waiting.pop(0)
        if head & 1:
            self.read_thread()
        process, tid = self.thread
        event = {"pid": self.trace.processes[process]["pid"], "tid": tid, "process": process}
        if code == 1:
            event["kind"] = "exit"
            self.read_times(event)
        elif code == 2:
            self.activity(event, head)
        else:
            self.call(event, head, code - 4)
        return event

    def read_thread(self):
        number = self.heads.varint()
        if number == len(self.threads):
            self.threads.append((self.heads.varint(), self.heads.varint()))
        self.thread = self.threads[number]

    def read_times(self, event):
        self.time += self.times.signed()
        event["time"], event["begin"] = self.time, self.time - self.times.varint()

    def kernel(self, head, owner):
        if head & 2:
            self.last_kernel[owner] = self.heads.varint()
        return self.last_kernel.get(owner, 0)

    def slot(self, function, kernel):
        number = (function * 0x9e3779b1 + kernel * 0x85ebca6b) % 2 ** 32 >> 20
        slot = self.slots.get(number)
        if not slot or slot.owner != (function, kernel):
            slot = self.slots[number] = Slot((function, kernel))
        return slot

    def correlation(self, event, what, mask):
        key = (event["process"], what)
        step = self.values.signed() if mask >> 29 & 1 else 1
        self.correlations[key] = (self.correlations.get(key, 0) + step) & MASK
        return self.correlations[key]

    def call(self, event, head, number):
        kernel = self.kernel(head, number)
        mask = self.heads.varint()
        slot = self.slot(number, kernel)
        values = slot.values
        self.read_times(event)
        for bit in range(29):
            if mask >> bit & 1:
                values[bit] = (values[bit] + self.values.signed()) & MASK
                if 12 <= bit <= 18:
                    same = [i for i in range(12) if values[i] == values[bit]]
                    slot.follows[bit] = same[0] if same else None
            elif slot.follows.get(bit) is not None:
                values[bit] = values[slot.follows[bit]]
        event["correlation"] = self.correlation(event, "call", mask)
        event["end"] = 0 if values[25] & (NO_RETURN | UNFINISHED) else event["time"]
        if mask >> 30 & 1:
            event["end"] = event["time"] + self.values.signed()
        event["text"] = self.texts.text() if mask >> 31 & 1 else None
        event["stack"] = self.stack(mask >> 32)
        event.update(kind="call", function=self.trace.functions[number], values=list(values),
                     kernel=self.trace.kernels[kernel - 1] if kernel else "")

    def activity(self, event, head):
        what = self.heads.varint()
        if what == RANGE:
            self.range(event)
            return
        if what == SAMPLE:
            self.sample(event)
            return
        if what == METRICS:
            self.metrics(event)
            return
        kernel = self.kernel(head, ("activity", what))
        if what == STALL:
            self.stall(event, kernel)
            return
        mask = self.heads.varint()
        slot = self.slot(2 ** 32 - 1 - what, kernel)
        self.read_times(event)
        for bit in range(19):
            if mask >> bit & 1:
                slot.values[bit] = (slot.values[bit] + self.values.signed()) & MASK
        event["correlation"] = self.correlation(event, "activity", mask)
        event["end"] = event["time"] + (self.values.signed() if mask >> 30 & 1 else 0)
        event["stack"] = self.stack(mask >> 32)
        event.update(kind=KINDS[what], values=list(slot.values),
                     kernel=self.trace.kernels[kernel - 1] if kernel else "")


    def range(self, event):
        mask = self.heads.varint()
        values = self.slot(2 ** 32 - 1 - RANGE, 0).values
        self.read_times(event)
        for bit in range(9):
            if mask >> bit & 1:
                values[bit] = (values[bit] + self.values.signed()) & MASK
        self.correlation(event, "activity", mask)
        event["end"] = event["time"] + (self.values.signed() if mask >> 30 & 1 else 0)
        event.update(kind=RANGES[values[0]], name=self.name(values[1]), domain=self.name(values[2]), depth=values[3],
                     context=values[4], stream=values[5], correlation=values[6])

    def sample(self, event):
        mask = self.heads.varint()
        values = self.slot(2 ** 32 - 1 - SAMPLE, 0).values
        self.read_times(event)
        for bit in range(11):
            if mask >> bit & 1:
                values[bit] = (values[bit] + self.values.signed()) & MASK
        self.correlation(event, "activity", mask)
        if mask >> 30 & 1:
            self.values.signed()
        event.update(kind=SAMPLES[values[0]], weight=values[1], stack=self.stack(values[2]), blocked=BLOCKED[values[3]],
                     waker=self.name(values[4]), waker_tid=values[5], count=values[6], wait=WAITS[values[7]],
                     runnable=values[8], rival=self.name(values[9]), rival_pid=values[10])

    def metrics(self, event):
        mask = self.heads.varint()
        values = self.slot(2 ** 32 - 1 - METRICS, 0).values
        self.read_times(event)
        for bit in range(2 + len(METRIC_NAMES)):
            if mask >> bit & 1:
                values[bit] = (values[bit] + self.values.signed()) & MASK
        self.correlation(event, "activity", mask)
        event["end"] = event["time"] + (self.values.signed() if mask >> 30 & 1 else 0)
        event.update(kind="metrics", gpu=values[0], source=values[1],
                     metrics={name: number - 1 for name, number in zip(METRIC_NAMES, values[2:]) if number})

    def stall(self, event, kernel):
        mask = self.heads.varint()
        values = self.slot(2 ** 32 - 1 - STALL, kernel).values
        self.read_times(event)
        for bit in range(9):
            if mask >> bit & 1:
                values[bit] = (values[bit] + self.values.signed()) & MASK
        self.correlation(event, "activity", mask)
        event["end"] = event["time"] + (self.values.signed() if mask >> 30 & 1 else 0)
        event.update(kind="stall", kernel=self.trace.kernels[kernel - 1] if kernel else "", reason=self.name(values[0]),
                     offset=values[1], samples=values[2], file=self.name(values[4]), line=values[5])

    def stack(self, number):
        """None, or the number of a stack that is defined."""
        if not number:
            return None
        if number > len(self.trace.stacks):
            raise Damage(f"there is no stack {number - 1}")
        return number - 1

    def name(self, number):
        return self.names[number - 1] if number else ""


# ---- comparing -----------------------------------------------------------------------------------


def shape(values):
    """The columns of the grid and the block of a launch."""
    names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    return dict(zip(names, values))


def row_of_call(trace, event):
    values = event["values"]
    row = {"time_ns": event["begin"] - trace.begin_ns, "pid": event["pid"], "tid": event["tid"],
           "function": event["function"]["name"], "kernel": event["kernel"],
           "duration_ns": event["end"] - event["begin"] if event["end"] else "",
           "correlation": event["correlation"],
           "flags": {flag for bit, flag in enumerate(FLAGS) if values[25] >> bit & 1}}
    if event["kernel"]:
        row.update(shape(values[19:25]))
    return row


def row_of_activity(trace, event):
    values = event["values"]
    row = {"time_ns": event["begin"] - trace.begin_ns, "pid": event["pid"], "kernel": event["kernel"],
           "duration_ns": event["end"] - event["begin"], "correlation": event["correlation"],
           "device": values[0], "context": values[1], "stream": values[2],
           "stack": "" if event["stack"] is None else event["stack"]}
    if event["kernel"]:
        row.update(shape(values[3:9]))
    else:
        row["function"], row["graph"] = event["kind"], values[12] or ""
    if event["kind"] in ("memcpy", "memset"):
        row["bytes"] = values[14]
    if event["kind"] == "memcpy":
        row["direction"] = DIRECTIONS[values[15]]
    return row


def row_of_range(trace, event):
    kind = {"nvtx": "push_pop", "nvtx_start_end": "start_end", "nvtx_mark": "mark", "sync": "wait",
            "overhead": "overhead", "not_measured": "not_measured"}[event["kind"]]
    return {"time_ns": event["begin"] - trace.begin_ns, "pid": event["pid"], "function": kind,
            "duration_ns": event["end"] - event["begin"], "correlation": event["correlation"],
            "tid": event["tid"] or "", "name": event["name"].replace("\x1b", "\\x1b"), "domain": event["domain"],
            "depth": event["depth"] if kind == "push_pop" else "", "stream": event["stream"] or "",
            "context": event["context"] or ""}


def row_of_sample(trace, event):
    """What stands for one stretch of blocked time begins with it; a sum of many is told when it is."""
    blocked = event["kind"] == "off_cpu"
    stretch = blocked and event["blocked"] not in ("before", "brief", "skipped")
    return {"time_ns": event["time"] - trace.begin_ns - (event["weight"] if stretch else 0), "pid": event["pid"],
            "tid": event["tid"], "class": "sample", "function": "blocked" if blocked else "on_cpu",
            "duration_ns": event["weight"], "flags": {event["blocked"], event["wait"]} - {""} if blocked else set(),
            "stack": "" if event["stack"] is None else event["stack"]}


def rows_of_metrics(trace, event):
    for name, number in event["metrics"].items():
        yield {"time_ns": event["begin"] - trace.begin_ns, "duration_ns": event["end"] - event["begin"], "pid": "", "tid": "",
               "layer": "gpu", "class": "metric", "function": name, "device": event["gpu"],
               "value": number if name in RATES else f"{number / 100:.2f}"}


def row_of_stall(trace, event):
    return {"time_ns": event["begin"] - trace.begin_ns, "duration_ns": event["end"] - event["begin"], "pid": event["pid"], "tid": "",
            "layer": "gpu", "class": "stall" if event["kernel"] else "stalls", "function": event["reason"] or "window",
            "kernel": event["kernel"], "address": f"0x{event['offset']:x}" if event["kernel"] and event["offset"] != MASK else "",
            "name": f"{event['file']}:{event['line']}" if event["file"] else "", "value": event["samples"]}


def rows_of(trace, event):
    if event["kind"] == "stall":
        yield row_of_stall(trace, event)
    elif event["kind"] == "metrics":
        yield from rows_of_metrics(trace, event)
    elif event["kind"] in ("call", *KINDS, *RANGES, *SAMPLES):
        yield row_of(trace, event)


def row_of(trace, event):
    if event["kind"] == "call":
        return row_of_call(trace, event)
    if event["kind"] in SAMPLES:
        return row_of_sample(trace, event)
    return row_of_activity(trace, event) if event["kind"] in KINDS else row_of_range(trace, event)


def differences(cuscope, path):
    """Sentences about what is not the same."""
    with open(path, "rb") as file:
        trace = Trace(file.read())
    text = subprocess.run([cuscope, "export", path, "--format", "csv", "-o", "-"], capture_output=True,
                          text=True, check=True).stdout
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["layer"] != "cuscope"]  # what was missed is no event
    ours = [row for event in trace.events for row in rows_of(trace, event)]
    if len(rows) != len(ours):
        yield f"{len(ours)} rows, cuscope has {len(rows)}"
    for number, (mine, row) in enumerate(zip(ours, rows)):
        for key, value in mine.items():
            if key == "flags":
                if value != set(row[key].split()):
                    yield f"row {number}: {key}: {value}, cuscope has {row[key]}"
            elif key == "correlation" and not value:
                continue
            elif str(value) != row[key]:
                yield f"row {number}: {key}: {value}, cuscope has {row[key]}"


def main(arguments):
    if arguments[:1] != ["--check"]:
        with open(arguments[0], "rb") as file:
            for event in Trace(file.read()).events:
                print(event)
        return 0
    failed = 0
    for path in arguments[2:]:
        found = list(differences(arguments[1], path))
        failed += bool(found)
        print(f"FAIL: {path}: {'; '.join(found[:5])}" if found else f"ok   {path}")
    print(f"{len(arguments) - 2 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
