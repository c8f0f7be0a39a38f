# SPDX-License-Identifier: MIT
"""Profiles for pprof and speedscope: read by their schemas, with every number referring to something."""

import gzip
import json
import os
import re
import shutil
import subprocess

from case import Failure, Skip, equal
from test_flame import profile

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "schema")
MS = 1000000
KINDS = ("plain", "large", "hostile", "deep", "empty")


def parsed(lines):
    """protoc's text as [(field, value)], a message's value being such a list."""
    fields = []
    for line in lines:
        line = line.strip()
        if line == "}":
            return fields
        if line[0].isdigit():
            raise Failure(f"a field that the schema does not have: {line}")
        if line.endswith("{"):
            fields.append((line.split()[0], parsed(lines)))
        else:
            name, value = line.split(": ", 1)
            fields.append((name, value))
    return fields


def all_of(message, name):
    return [value for field, value in message if field == name]


def number(message, name):
    values = all_of(message, name)
    return int(values[0]) if values else 0


class Pprof:
    """A decoded file; texts by their place in the table."""

    def __init__(self, path):
        with gzip.open(path) as file:
            text = subprocess.run(["protoc", f"--proto_path={SCHEMA}", "--decode=perftools.profiles.Profile",
                                   "pprof_subset.proto"], input=file.read(), capture_output=True, check=True).stdout
        self.fields = parsed(iter(text.decode().splitlines()))
        self.strings = [json.loads(re.sub(r"\\([0-7]{3})", lambda m: f"\\u{int(m[1], 8):04x}", value.replace("\\'", "'"))
                                   ).encode("latin-1").decode() for value in all_of(self.fields, "string_table")]
        self.samples = all_of(self.fields, "sample")
        for kind in ("mapping", "location", "function"):
            setattr(self, kind, {number(value, "id"): value for value in all_of(self.fields, kind)})

    def text(self, message, name):
        return self.strings[number(message, name)]

    def types(self):
        return [(self.text(value, "type"), self.text(value, "unit")) for value in all_of(self.fields, "sample_type")]

    def stack(self, sample):
        """Names, the innermost first."""
        return [self.text(self.function[number(line, "function_id")], "name")
                for place in all_of(sample, "location_id")
                for line in all_of(self.location[int(place)], "line")]


def check_references(pprof):
    equal("the first text", "", pprof.strings[0])
    equal("texts that are there twice", len(pprof.strings), len(set(pprof.strings)))
    for sample in pprof.samples:
        equal("values", len(pprof.types()), len(all_of(sample, "value")))
        pprof.stack(sample)
        for label in all_of(sample, "label"):
            pprof.text(label, "key"), pprof.text(label, "str")
    for place in pprof.location.values():
        mapping = number(place, "mapping_id")
        if mapping and number(place, "address") >= number(pprof.mapping[mapping], "memory_limit"):
            raise Failure(f"a place outside of its file: {place}")
        if not all_of(place, "line"):
            raise Failure("a place without a function")


def test_pprof_refers_to_what_is_there(case):
    for kind in KINDS:
        check_references(Pprof(profile(case, kind, kind + ".pb.gz")))


def test_pprof_has_a_type_for_each_kind_of_time(case):
    pprof = Pprof(profile(case, "plain", "plain.pb.gz"))
    equal("types", [("samples", "count"), ("cpu", "nanoseconds"), ("off_cpu", "nanoseconds"),
                    ("gpu_time", "nanoseconds")], pprof.types())
    sums = [sum(column) for column in zip(*[map(int, all_of(sample, "value")) for sample in pprof.samples])]
    equal("sums", [10, 100 * MS, 40 * MS, 60 * MS], sums)
    equal("shown first", "cpu", pprof.text(pprof.fields, "default_sample_type"))
    equal("period", 1000000000 // 99, number(pprof.fields, "period"))
    equal("duration", 200 * MS, number(pprof.fields, "duration_nanos"))
    comments = [pprof.strings[int(value)] for value in all_of(pprof.fields, "comment")]
    equal("comments", True, comments[1].startswith("Completeness: 77.8 % of 9 stacks whole;"))


def test_pprof_stacks_have_what_was_inlined(case):
    pprof = Pprof(profile(case, "plain", "plain.pb.gz"))
    stacks = [pprof.stack(sample) for sample in pprof.samples]
    addmm = "at::addmm(at::Tensor const&, at::Tensor const&)"
    equal("a stack", True, ["check", addmm, "Net.forward", "train", "_start"] in stacks)
    equal("a kernel", True, ["[GPU_Kernel]void gemm<float, 128>(float const*, int)", "cudaLaunchKernel", addmm,
                             "Net.forward", "train", "_start"] in stacks)
    inlined = [place for place in pprof.location.values() if len(all_of(place, "line")) > 1]
    equal("places with inlined functions", [[7, 301]],
          [[number(line, "line") for line in all_of(place, "line")] for place in inlined])
    ends = [pprof.text(label, "str") for sample in pprof.samples for label in all_of(sample, "label")]
    equal("ends", ["a file without unwind tables", "a frame that led nowhere"], ends)


def test_pprof_files_are_told_apart_by_their_build_ids(case):
    pprof = Pprof(profile(case, "plain", "plain.pb.gz"))
    equal("files", [("[jit]", "", 1), ("kernel", "", 1), ("libcuda.so.1", "aa01", 0x9001),
                    ("libcuda.so.1", "aa02", 0x9101), ("libcudart.so.12", "", 0x778),
                    ("libtorch_cpu.so", "0123abcd", 0x1235), ("nvidia", "", 1), ("python3.11", "", 1)],
          sorted((pprof.text(value, "filename"), pprof.text(value, "build_id"), number(value, "memory_limit"))
                 for value in pprof.mapping.values()))


def test_pprof_names_the_program_first(case):
    """pprof says it as the profile's file."""
    for kind in ("plain", "large", "shell"):
        pprof = Pprof(profile(case, kind, kind + ".pb.gz"))
        equal(f"the first file of {kind}", "python3.11", pprof.text(pprof.mapping[1], "filename"))


def test_pprof_shortens_names_of_c_only(case):
    """Where both names are there, it takes <...> off: of <module> nothing is left."""
    for kind in KINDS:
        pprof = Pprof(profile(case, kind, kind + ".pb.gz"))
        for function in pprof.function.values():
            name, system = pprof.text(function, "name"), pprof.text(function, "system_name")
            if name.startswith(("<module>", "<lambda>", "[GPU_Kernel]")):
                equal(f"what {name} is shortened from", "", system)


def test_pprof_labels_processes_and_threads(case):
    pprof = Pprof(profile(case, "threads", "threads.pb.gz"))
    for sample in pprof.samples:
        labels = {pprof.text(label, "key"): pprof.text(label, "str") or number(label, "num")
                  for label in all_of(sample, "label")}
        labels.pop("stack_ends_at", None)
        equal("labels", {"process": "python3", "pid": 4242, "thread": "worker", "tid": 4243}, labels)


def test_pprof_is_read_by_pprof(case):
    if not shutil.which("go"):
        raise Skip("no go")
    for kind in KINDS:
        path = profile(case, kind, kind + ".pb.gz")
        result = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=3", path], capture_output=True, text=True,
                                env=dict(os.environ, HOME=case.folder))
        equal("status", 0, result.returncode)
        if kind == "plain":
            rows = re.findall(r"^ +(\S+) +\S+% +\S+% +(\S+) +\S+%  (.*)", result.stdout, re.M)
            equal("rows", [("40ms", "85ms", "Net.forward"), ("25ms", "25ms", "nvidia_ioctl"),
                           ("20ms", "20ms", "check (inline)")], rows)


def test_pprof_names_are_utf8_without_controls(case):
    for text in Pprof(profile(case, "hostile", "hostile.pb.gz")).strings:
        if re.search(r"[\x00-\x1f\x7f-\x9f\u200e-\u202e\ufffe\uffff]", text):
            raise Failure(f"{text!r} is a text")


def scope(case, kind):
    with open(profile(case, kind, kind + ".speedscope.json")) as file:
        return json.load(file)


def test_speedscope_obeys_its_schema(case):
    for kind in KINDS:
        written = scope(case, kind)
        equal("keys", {"$schema", "exporter", "name", "shared", "profiles"}, set(written))
        frames = written["shared"]["frames"]
        equal("frames that are there twice", len(frames),
              len({(frame["name"], frame.get("file"), frame.get("line")) for frame in frames}))
        for frame in frames:
            equal("a frame's keys", set(), set(frame) - {"name", "file", "line"})
        if not written["profiles"]:
            raise Failure("no profile")
        for shown in written["profiles"]:
            equal("keys", {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, set(shown))
            equal("type and unit", ("sampled", "nanoseconds"), (shown["type"], shown["unit"]))
            equal("weights", len(shown["samples"]), len(shown["weights"]))
            equal("sum", shown["endValue"], sum(shown["weights"]))
            if any(not 0 <= frame < len(frames) for stack in shown["samples"] for frame in stack):
                raise Failure("a frame that is not there")


def test_speedscope_has_a_profile_for_all_and_for_each_kind_of_time(case):
    written = scope(case, "plain")
    equal("profiles", [("all time", 200 * MS), ("CPU time", 100 * MS), ("blocked", 40 * MS), ("GPU time", 60 * MS)],
          [(shown["name"], shown["endValue"]) for shown in written["profiles"]])
    names = [frame["name"] for frame in written["shared"]["frames"]]
    gpu = {";".join(names[frame] for frame in stack[-2:]): weight
           for stack, weight in zip(written["profiles"][3]["samples"], written["profiles"][3]["weights"])}
    equal("GPU work", {"cudaLaunchKernel;[GPU_Kernel]void gemm<float, 128>(float const*, int)": 50 * MS,
                       "cudaLaunchKernel;[GPU_Copy]HtoD": 6 * MS, "[stack not known];[GPU_Set]Device": 4 * MS}, gpu)
