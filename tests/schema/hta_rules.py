#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds a Chrome trace to what Holistic Trace Analysis and Kineto's other readers take for granted.

    tests/schema/hta_rules.py FILE.json[.gz]...

Several files are the ranks of one program. Prints what is wrong, a line each, and ends with 1 where
something is. The rules have the numbers of docs/export.md.
"""

import collections
import gzip
import json
import re
import sys

RANK = re.compile(r'"rank":\s+(\d+)')  # HTA's own, line by line
CPU_CATEGORIES = {"cuda_runtime", "cuda_driver"}
GPU_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}
OTHER_CATEGORIES = {"user_annotation", "gpu_user_annotation", "cuda_sync", "overhead"}
SYNCS = {"Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync"}
COLUMNS = {"ts", "dur", "name", "cat", "pid", "tid", "args"}
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
            "cudaMemsetAsync"}
GPU_SORT_INDEX = 5_000_000
WEEK_US = 7 * 24 * 3600 * 1e6


def text_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return file.read()


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys that stand twice in {keys}")
    return dict(pairs)


def parse(text):
    """Strictly: no NaN, no key twice. Times are kept as they are written, in `raw`."""
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_duplicates)


class Checker:
    def __init__(self, text):
        self.text, self.findings = text, []
        self.trace = parse(text)
        self.events = self.trace["traceEvents"]
        self.every_slice = [event for event in self.events if event["ph"] == "X"]
        self.slices = [event for event in self.every_slice if COLUMNS <= event.keys()]
        self.cpu = [event for event in self.slices if event.get("cat") in CPU_CATEGORIES]
        self.gpu = [event for event in self.slices if event.get("cat") in GPU_CATEGORIES]

    def say(self, rule, text):
        self.findings.append(f"{rule}: {text}")

    def skeleton(self):
        for key, value in (("schemaVersion", 1), ("displayTimeUnit", "ms")):
            if self.trace.get(key) != value:
                self.say("skeleton", f"{key} is {self.trace.get(key)!r}")
        if not isinstance(self.trace.get("baseTimeNanoseconds"), int):
            self.say("skeleton", "no baseTimeNanoseconds")
        if list(self.trace)[-1] != "traceName":
            self.say("skeleton", "traceName is not last")
        if self.trace.get("deviceProperties") == []:
            self.say("skeleton", "deviceProperties is empty, which HTA's reader of metadata stumbles over")

    def rank(self):
        """1: the pattern finds the rank, at the top, on a line of its own."""
        lines = self.text.splitlines()
        hits = [(i, RANK.search(line)) for i, line in enumerate(lines[:10]) if RANK.search(line)]
        if not hits:
            self.say("rule 1", "HTA's pattern finds no rank near the top")
            return None
        i, hit = hits[0]
        if not lines[i].strip().startswith('"distributedInfo"'):
            self.say("rule 1", "distributedInfo is not on a line of its own")
        if int(hit[1]) != self.trace["distributedInfo"]["rank"]:
            self.say("rule 1", "HTA's pattern finds another rank first")
        return int(hit[1])

    def columns(self):
        """2: every slice has what becomes HTA's columns."""
        for event in self.every_slice:
            if not COLUMNS <= event.keys():
                self.say("rule 2", f"{event.get('name')} lacks {sorted(COLUMNS - event.keys())}")
            if event.get("cat") not in CPU_CATEGORIES | GPU_CATEGORIES | OTHER_CATEGORIES:
                self.say("rule 2", f"{event.get('name')} is of the category {event.get('cat')!r}")

    def streams(self):
        """3: a stream means that it ran on a GPU, and 0 is none."""
        for event in self.cpu:
            if "stream" in event["args"]:
                self.say("rule 3", f"{event['name']} of the CPU has a stream")
        for event in self.slices:
            if event["cat"] == "user_annotation" and "stream" in event["args"]:
                self.say("rule 3", f"the annotation {event['name']} has a stream")
            if event["cat"] == "cuda_sync" and (event["name"] not in SYNCS or event["pid"] != event["args"]["device"]):
                self.say("rule 3", f"{event['name']} is no wait that HTA knows, or not in its device's process")
        for event in self.gpu:
            if event["args"].get("stream", 0) <= 0 or event["args"].get("correlation", -1) < 0:
                self.say("rule 3", f"{event['name']} of the GPU has no stream or no correlation")
            if event["pid"] != event["args"].get("device"):
                self.say("rule 3", f"{event['name']} is not in its device's process")

    def metadata(self):
        """4: metadata first, and of each row; no name is told twice."""
        if not self.events or self.events[0]["ph"] != "M":
            self.say("rule 4", "the first event is no metadata: a correlation with its index is none")
        told = collections.Counter((event["name"], event["pid"], "process" in event["name"] or event["tid"])
                                   for event in self.events if event["ph"] == "M")
        for (name, pid, tid), count in told.items():
            if count > 1:
                self.say("rule 4", f"{name} of {pid}, {tid} is told {count} times")
        for event in self.events:
            if event["ph"] == "X" and not (("process_name", event["pid"], True) in told and
                                           ("thread_name", event["pid"], event["tid"]) in told):
                self.say("rule 4", f"{event['name']} is in a row without a name")
        for event in self.events:
            if event["ph"] == "M" and event["name"] == "process_sort_index":
                gpu = event["args"]["sort_index"] >= GPU_SORT_INDEX
                if gpu and event["args"]["sort_index"] != GPU_SORT_INDEX + event["pid"]:
                    self.say("rule 4", f"GPU {event['pid']} is sorted elsewhere")

    def times(self):
        """5 and 9: microseconds with three decimals after the base, and less than a week of them."""
        for key in ("ts", "dur"):
            for number in re.findall(rf'"{key}": ([^,}}]*)', self.text):
                if not re.fullmatch(r"\d+\.\d{3}", number):
                    self.say("rule 5", f"the {key} {number} has not three decimals")
        times = [event["ts"] for event in self.slices]
        if times and max(times) - min(times) > WEEK_US:
            self.say("rule 9", "events more than a week apart are dropped")
        if times and max(times) > 2 ** 53 / 1000:
            self.say("rule 9", "times are too large for a double to hold nanoseconds")

    def vendor(self):
        """6: a trace with launches is known as one of CUDA by this name."""
        names = {event["name"] for event in self.cpu}
        if any("Launch" in name for name in names) and "cudaLaunchKernel" not in names:
            self.say("rule 6", "there is no cudaLaunchKernel")
        for name in names:
            if re.search(r"(_v\d+|_ptsz|_ptds)$", name):
                self.say("rule 6", f"{name} has a version or variant in its name")

    def pairs(self):
        """7: calls have numbers of their own, and a launch that has one has its work: as many as that."""
        calls = collections.Counter(event["args"]["correlation"] for event in self.cpu
                                    if "correlation" in event["args"])
        work = collections.Counter(event["args"].get("correlation") for event in self.gpu)
        for correlation, count in calls.items():
            if count != 1:
                self.say("rule 7", f"{count} calls have the correlation {correlation}")
            if not correlation:
                self.say("rule 7", "a call has the correlation 0, which is none")
        for event in self.cpu:
            if event["name"] in LAUNCHES and "correlation" in event["args"] and not work[event["args"]["correlation"]]:
                self.say("rule 7", f"nothing ran for the call with the correlation {event['args']['correlation']}")
        launches = [event["args"]["correlation"] for event in self.cpu
                    if event["name"] in LAUNCHES and "correlation" in event["args"]]
        done = sum(work[correlation] for correlation in set(launches))
        if len(launches) != done:
            self.say("rule 7", f"{len(launches)} launches and {done} pieces of work of theirs")

    def waits(self):
        """10: a wait for an event says for which record of it, by the number that this call has."""
        calls = {event["args"]["correlation"]: event["name"] for event in self.cpu if "correlation" in event["args"]}
        streams = {event["args"]["stream"] for event in self.gpu}
        for event in self.cpu:
            if event["name"].startswith("cudaEventRecord") and self.gpu and "correlation" not in event["args"]:
                self.say("rule 10", f"{event['name']} at {event['ts']} has no correlation")
        for event in self.slices:
            args = event["args"]
            if event["cat"] != "cuda_sync":
                continue
            if ("wait_on_stream" in args) != (event["name"] in ("Event Sync", "Stream Wait Event")):
                self.say("rule 10", f"{event['name']} says for which stream it waits, or a wait for an event does not")
            elif "wait_on_stream" in args:
                record = args["wait_on_cuda_event_record_corr_id"]
                if record != -1 and "EventRecord" not in calls.get(record, ""):
                    self.say("rule 10", f"{event['name']} waits for {record}, which records no event")
                if args["wait_on_stream"] not in streams | {-1}:
                    self.say("rule 10", f"{event['name']} waits for the stream {args['wait_on_stream']}")

    def flows(self):
        """Kineto's arrows: from a call to each piece of its work, and to nothing else."""
        begins = {event["id"]: event for event in self.events if event["ph"] == "s"}
        ends = [event for event in self.events if event["ph"] == "f"]
        calls = {event["args"]["correlation"]: event for event in self.cpu if "correlation" in event["args"]}
        work = {(event["args"].get("correlation"), event["pid"], event["tid"], event["ts"]) for event in self.gpu}
        if len(begins) != sum(event["ph"] == "s" for event in self.events):
            self.say("flows", "two begin with the same id")
        for id_, event in begins.items():
            call = calls.get(id_)
            if not call or any(call[key] != event[key] for key in ("pid", "tid", "ts")):
                self.say("flows", f"{id_} does not begin at its call")
            if event["cat"] != "ac2g" or event["name"] != "ac2g":
                self.say("flows", f"{id_} is no ac2g")
        for event in ends:
            if (event["id"], event["pid"], event["tid"], event["ts"]) not in work or event.get("bp") != "e":
                self.say("flows", f"{event['id']} does not end at its work")
        if begins.keys() != {event["id"] for event in ends}:
            self.say("flows", "some have one end only")

    def rows(self):
        """In a row slices nest; what runs on a GPU does not even do that."""
        rows = collections.defaultdict(list)
        for event in self.slices:
            begin = round(event["ts"] * 1000)
            rows[event["pid"], event["tid"]].append((begin, -round(event["dur"] * 1000), event))
        for (pid, tid), slices in rows.items():
            stack = []
            for begin, minus_duration, event in sorted(slices, key=lambda s: s[:2]):
                end = begin - minus_duration
                while stack and stack[-1] <= begin:
                    stack.pop()
                if stack and (end > stack[-1] or event["cat"] in GPU_CATEGORIES):
                    self.say("rows", f"{event['name']} overlaps another in the row {pid}, {tid}")
                stack.append(end)

    def work(self):
        for event in self.gpu:
            args, ns = event["args"], round(event["dur"] * 1000)
            if event["cat"] == "kernel":
                whole_graph = "graph id" in args and "graph node id" not in args
                if not whole_graph and not all(len(args.get(key, ())) == 3 for key in ("grid", "block")):
                    self.say("kernels", f"{event['name']} has no grid or no block")
            elif ("memory bandwidth (GB/s)" in args) != bool(ns):
                self.say("copies", f"{event['name']}: a bandwidth without a duration, or none with one")
            elif ns and abs(args["memory bandwidth (GB/s)"] - args["bytes"] / ns) > 1e-5:
                self.say("copies", f"{event['name']}: the bandwidth is not bytes a nanosecond")

    def stacks(self):
        """The Trace Event Format: "sf" is a key of stackFrames, whose parents are, too, and lead to an end."""
        frames = self.trace.get("stackFrames", {})
        for number, frame in frames.items():
            if not frame.get("name") or not frame.get("category"):
                self.say("stacks", f"frame {number} has no name or no category")
            if "parent" in frame and not (str(frame["parent"]) in frames and frame["parent"] < int(number)):
                self.say("stacks", f"the parent of frame {number} is none that stands before it")
        for event in self.events:
            if "sf" in event and str(event["sf"]) not in frames:
                self.say("stacks", f"{event['name']} has the stack {event['sf']}, which is not there")
            if event["ph"] == "P" and ("dur" in event or "id" in event):
                self.say("stacks", "a sample that HTA takes for a slice, or Perfetto for one of JavaScript")

    def all(self):
        self.skeleton()
        rank = self.rank()
        for rule in (self.columns, self.streams, self.metadata, self.times, self.vendor, self.pairs, self.waits, self.flows,
                     self.rows, self.work, self.stacks):
            rule()
        return rank


def check(paths):
    """What is wrong with the files of the ranks of one program, a sentence each."""
    findings, ranks = [], collections.Counter()
    for path in paths:
        checker = Checker(text_of(path))
        ranks[checker.all()] += 1
        findings += checker.findings
    findings += [f"rule 1: {count} files are of rank {rank}" for rank, count in ranks.items() if count > 1]
    return findings


def main():
    findings = check(sys.argv[1:])
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
