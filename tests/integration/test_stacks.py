# SPDX-License-Identifier: MIT
"""Stacks in trace files: what `record --stacks` keeps, and the profiles that are made of it."""

import ctypes
import json
import os
import re
import struct
import subprocess
import time

import checks
import gpu_trace
import profiles
from harness import Failure, Places, wait_until

SLOW = {"SIMCUDA_TIME_SCALE": "1", "SIMCUDA_KERNEL_US": "200"}


def record(case, *options, name="trace", program=("gpuloop", 1, 1000, 2)):
    process = gpu_trace.start(case, ["--", Places.program(program[0]), *map(str, program[1:])], options, name=name)
    checks.equal("status of the recording", 0, process.wait())
    return case.path(name + ".cuscope")


def succeed(case, *arguments):
    process = case.cuscope(*arguments)
    checks.equal(f"status of {arguments}", 0, process.wait())
    return process.out()


def profile_of(case, path, *options):
    out = case.path("profile.folded")
    succeed(case, "profile", path, "-o", out, "--force", *options)
    return profiles.folded(out)


def ended_with(case, status, *arguments):
    process = case.cuscope(*arguments)
    checks.equal(f"status of {arguments}", status, process.wait())
    return process.err()


def test_stacks_of_a_recording_make_its_profile(case):
    """The sums are those that other ways of reading the file give."""
    case.env = SLOW
    path = record(case, "--stacks", "-F", "999", "--launch-stacks", "all")
    trace = gpu_trace.read(case)
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    merged = profile_of(case, path)
    on_gpu = {chain: ns for chain, ns in merged.items() if chain[-1].startswith("[GPU_")}
    on_cpu = {chain: ns for chain, ns in merged.items() if chain not in on_gpu}
    profiles.same_time("time of kernels", sum(k["end"] - k["start"] for k in trace.activities), on_gpu)
    profiles.same_time("time of samples", info["samples"] * info["sample_ns"], on_cpu)
    calls = [call for call in trace.calls if any(belongs(call["name"]) for belongs in KINDS.values())]
    checks.equal("calls with stacks", len(calls), info["calls"])
    right = sum(ns for chain, ns in on_gpu.items() if chain[-4:-1] == ("work", "sample_launch", "cuLaunchKernel"))
    if right < 0.99 * sum(on_gpu.values()):
        raise Failure(f"kernels are not under their launches: {list(on_gpu)[:4]}")
    checks.equal("GPU alone", on_gpu, profile_of(case, path, "--mode", "gpu"))
    checks.equal("CPUs alone", on_cpu, profile_of(case, path, "--mode", "cpu"))


def test_stacks_in_every_form_of_a_profile(case):
    path = record(case, "--stacks")
    for ending in ("svg", "html", "pb.gz", "speedscope.json", "folded"):
        succeed(case, "profile", path, "-o", case.path("profile." + ending))
    checks.contains("what is printed", "Completeness: ", succeed(case, "profile", path, "--per-thread"))


def test_stacks_of_launches_alone(case):
    path = record(case, "--stacks=launches")
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    checks.equal("samples", (0, 0), (info["samples"], info["sample_ns"]))
    if not info["calls"]:
        raise Failure("no call has a stack")
    if not all(chain[-1].startswith("[GPU_") for chain in profile_of(case, path)):
        raise Failure("there is more than GPU time")
    checks.contains("a mode without samples", "has no samples of stacks",
                    ended_with(case, 1, "profile", path, "--mode", "cpu"))


def test_stacks_of_samples_alone(case):
    path = record(case, "--stacks=samples", "-F", "999")
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    checks.equal("calls with stacks", (0, False), (info["calls"], info["of_calls"]))
    checks.equal("GPU time", [], [chain for chain in profile_of(case, path) if chain[-1].startswith("[GPU_")])
    checks.contains("a mode without launches", "has no GPU times with stacks of launches",
                    ended_with(case, 1, "profile", path, "--mode", "merge"))


def test_stacks_are_in_the_last_part_of_a_recording(case):
    path = record(case, "--stacks=samples,launches", "--launch-stacks", "all", "--last", "1min")
    info = json.loads(succeed(case, "info", "--json", path))
    checks.equal("calls with stacks", info["activities"]["kernels"], info["stacks"]["calls"])
    if not any(chain[-1].startswith("[GPU_") and len(chain) > 3 for chain in profile_of(case, path)):
        raise Failure("no kernel is under its launch")


def asked_of(case, path):
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    return info["sample_ns"], info["calls"], info["samples"]


def test_record_takes_samples_by_itself(case):
    """They cost next to nothing; not those of calls, nor where only some calls are kept."""
    for options, expected in (((), (10101010, 0)), (("--no-stacks",), (0, 0)), (("--only", "cu*"), (0, 0)), (("-F", "49", "--stacks=samples"), (20408163, 0))):
        checks.equal(f"stacks, {options}", expected, asked_of(case, record(case, *options, "--force"))[:2])


def refuse_samples():
    """perf_event_open() of this process and what it starts is EPERM, as where a container has no right to it."""
    code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, {"x86_64": 298, "aarch64": 241}[os.uname().machine],
                       0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(program)):
        raise OSError("prctl")


def test_record_without_samples_has_all_else(case):
    """Nobody asked for them."""
    for options, status in (((), 0), (("--stacks=samples",), 1)):
        path = case.path("refused.cuscope")
        process = case.cuscope("record", "--force", *options, "-o", path, "--", Places.program("loop"), "1", "10", preexec_fn=refuse_samples)
        checks.equal(f"status, {options}", status, process.wait())
        checks.contains("why", "taking samples of the CPUs: Operation not permitted", process.err())
        if not status:
            checks.equal("stacks", (0, 0, 0), asked_of(case, path))


def test_stacks_are_not_recorded_where_they_are_not_wanted(case):
    path = record(case, "--no-stacks")
    checks.equal("stacks", (0, 0, 0), asked_of(case, path))
    checks.contains("its profile", "has no samples of stacks: 'cuscope record --stacks' takes them",
                    ended_with(case, 1, "profile", path))


def is_copy(name):
    return "Memcpy" in name or "Memset" in name


KINDS = {
    "launches": lambda name: "Launch" in name,
    "copies": is_copy,
    "waits": lambda name: "Synchronize" in name or "Memcpy" in name and "Async" not in name,
    "allocations": lambda name: "Alloc" in name or "Free" in name,
}


def events_of(case, path):
    return [json.loads(line) for line in succeed(case, "export", "--format", "jsonl", "-o", "-", path).splitlines()]


def names_with_stacks(case, path):
    """Of calls that no other made: those that have a stack, and all."""
    calls = [e for e in events_of(case, path) if e.get("depth") == 0 and "name" in e]
    return {e["name"] for e in calls if "stack" in e}, {e["name"] for e in calls}


def python_places(case, path):
    """From a function of CUDA to the lines of Python that called it, innermost first."""
    stacks, places = {}, {}
    for event in events_of(case, path):
        if event["type"] == "stack":
            stacks[event["stack"]] = [(f.get("function"), f.get("line")) for f in event["frames"] if f["kind"] == "python"]
        elif "stack" in event and "name" in event:
            places.setdefault(event["name"], set()).add(tuple(stacks[event["stack"]][:1]))
    return places


def marked(name):
    with open(os.path.join(Places.root, "tests/programs/leak.py")) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# at {name}"))


def record_calls(case, *options, program=("gpucopies",), name="trace"):
    """Without GPU times."""
    path = case.path(name + ".cuscope")
    process = case.cuscope("record", *options, "--force", "-o", path, "--", *map(str, program))
    checks.equal("status of the recording", 0, process.wait())
    return path, process.err()


def test_stacks_of_each_kind_of_calls_alone(case):
    for kind, belongs in KINDS.items():
        program = ("gpuloop", 1, 100, 2) if kind == "launches" else ("gpucopies",)
        path, _ = record_calls(case, f"--stacks={kind}", "--launch-stacks", "all",
                               program=(Places.program(program[0]), *program[1:]))
        walked, called = names_with_stacks(case, path)
        checks.equal(f"functions with stacks, of {kind}", {name for name in called if belongs(name)}, walked)
        info = json.loads(succeed(case, "info", "--json", path))["stacks"]
        checks.equal("kinds that were asked for, and samples", ([kind], 0), (info["call_kinds"], info["samples"]))
        if not walked or walked == called:
            raise Failure(f"the program does not tell {kind} from other calls: {called}")


def frames_of_calls(case, path):
    """Of each call in order: its function, and the frames that called it, from its own out."""
    stacks, calls = {}, []
    for event in events_of(case, path):
        if event["type"] == "stack":
            stacks[event["stack"]] = [(f.get("function"), f.get("module"), f.get("line")) for f in event["frames"]]
        elif "name" in event and event.get("depth") == 0:
            calls.append((event["name"], stacks.get(event.get("stack"))))
    return calls


def test_stacks_of_calls_that_are_recorded_inside_are_those_of_probes(case):
    case.env["SIMCUDA_WAIT"] = "1"
    for program in (("copies", 30), ("places", 40, 100, 20), ("threads", 1, 25)):
        program = (Places.program(program[0]), *program[1:])
        told = {}
        for option in ("--in-process", "--no-in-process"):
            path, said = record_calls(case, "--stacks=launches,copies,waits,allocations", "--launch-stacks=all", option, program=program)
            told[option] = frames_of_calls(case, path)
            checks.equal(f"calls recorded inside of {program[0]}, {option}", option == "--in-process", "calls of" in said)
        walked = sum(frames is not None for _, frames in told["--no-in-process"])
        checks.equal(f"calls and stacks of {program[0]}", told["--no-in-process"], told["--in-process"])
        if walked < 100:
            raise Failure(f"{walked} calls of {program[0]} with a stack")


def test_stacks_of_all_kinds_of_calls_name_lines_of_python(case):
    """The program is there for as long again as it took to get so far: names are read from its memory beside it."""
    path, begin = case.path("trace.cuscope"), time.monotonic()
    process = case.cuscope("record", "--stacks", "-o", path, "--", "/usr/bin/python3",
                           os.path.join(Places.root, "tests/programs/leak.py"), 20, 15, "stay", stdin=subprocess.PIPE)
    wait_until(lambda: "done" in process.out(), "the program to have done its work", 30)
    time.sleep(max(1, time.monotonic() - begin))
    process.process.stdin.close()
    checks.equal("status of the recording", 0, process.wait())
    places = python_places(case, path)
    for function, name in (("cuLaunchKernel", "train"), ("cuStreamSynchronize", "wait"), ("cuMemFree_v2", "give_back")):
        checks.equal(function, {((name, marked(name)),)}, places[function])
    checks.equal("cuMemAlloc_v2", {((last, marked(last.rpartition(".")[2])),) for last in
                                   ("Cache.fill_cache", "borrow")}, places["cuMemAlloc_v2"])


def test_stacks_name_places_in_reports(case):
    """A leak of Python, by its line; and the same without stacks."""
    program = ("/usr/bin/python3", os.path.join(Places.root, "tests/programs/leak.py"), 20, 15)
    path, _ = record_calls(case, "--stacks", "--launch-stacks", "all", program=program)
    leak, other = f"Cache.fill_cache (leak.py:{marked('fill_cache')})", f"borrow (leak.py:{marked('borrow')})"
    memory = json.loads(succeed(case, "report", path, "memory", "--format", "json"))
    checks.equal("places of memory", [(leak, 20, 0, 20 * 4096), (other, 20, 20 << 20, 0)],
                 [(row["Place"], row["Count"], row["Freed (bytes)"], row["By Exit (bytes)"]) for row in memory["places"]])
    checks.equal("what was never freed", {leak}, {row["Place"] for row in memory["kept"]})
    calls = json.loads(succeed(case, "report", path, "cuda_api_sum:place", "--format", "json"))
    checks.equal("calls by place", {(leak, 20), (other, 20)},
                 {(row["Place"], row["Num Calls"]) for row in calls if row["Name"] == "cuMemAlloc_v2"})
    launches = json.loads(succeed(case, "report", path, "launches:place", "--format", "json"))
    checks.equal("launches by place", [(f"train (leak.py:{marked('train')})", 20)],
                 [(row["Place"], row["Launches"]) for row in launches["kernels"]])
    path, _ = record_calls(case, name="without", program=program)
    memory = json.loads(succeed(case, "report", path, "memory", "--format", "json"))
    checks.equal("a report without stacks has no places", (False, False),
                 ("places" in memory, "Place" in memory["kept"][0]))


def test_stacks_of_allocations_are_not_starved_by_launches(case):
    """Each kind has a clock of its own: the few allocations of a flood are all walked."""
    path, _ = record_calls(case, "--stacks=launches,allocations", "--launch-stacks", "1", program=("/usr/bin/python3",
                           os.path.join(Places.root, "tests/programs/leak.py"), 300, 0))
    calls = [e for e in events_of(case, path) if e.get("depth") == 0]
    allocations = [e for e in calls if e["type"] == "memory" and e.get("op") == "alloc"]
    launches = [e for e in calls if e.get("name") == "cuLaunchKernel"]
    checks.equal("allocations", (600, 600), (len(allocations), sum("stack" in e for e in allocations)))
    walked = sum("stack" in e for e in launches)
    if len(launches) != 300 or not 1 <= walked < 100:
        raise Failure(f"{walked} of {len(launches)} launches have stacks")


def test_stacks_of_what_becomes_the_command_are_not_the_command_s(case):
    """cuscope's own child runs for a while until it is the program: at that rate samples see it."""
    path = case.path("command.cuscope")
    succeed(case, "record", "--stacks", "-F", 2000, "-o", path, "--", Places.program("memory"))
    begun = [event for event in events_of(case, path) if event["type"] == "process" and event["op"] == "start"]
    checks.equal("processes", 1, len(begun))


def test_stacks_of_allocations_have_a_rate_and_it_is_told(case):
    """10,000 a second of a thread, and as many at once; what is beyond is counted."""
    path, _ = record_calls(case, "--stacks=allocations", program=(Places.program("places"), 10, 5, 6000))
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    missed = info["missed"]["allocations_too_fast"]
    allocated = [e for e in events_of(case, path) if e["type"] == "memory" and e.get("op") == "alloc"]
    checks.equal("allocations, with and without a stack", (60000, 60000 - missed),
                 (len(allocated), sum("stack" in e for e in allocated)))
    seconds = (allocated[-1]["ts"] - allocated[0]["ts"]) / 1000
    if not 60000 - 10000 * (1.2 * seconds + 1.2) <= missed < 50000 or (seconds < 3 and not missed):
        raise Failure(f"{missed} of 60000 stacks of allocations were left out in {seconds} s")
    if missed:
        checks.contains("what info says", "allocations came faster than their stacks are walked", succeed(case, "info", path))


def test_stacks_of_many_deep_places(case):
    """A program that allocates at a thousand places, 500 frames down each, is told whole."""
    path, said = record_calls(case, "--stacks=allocations", program=(Places.program("places"), 1000, 490, 2, "keep"))
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    checks.equal("stacks: of calls, that differ, whole", (2000, 1000, 2000),
                 (info["calls"], info["different"], info["whole"]))
    checks.contains("what record says", "none lost", said)


def test_stacks_and_options_that_do_not_go_together(case):
    path = record(case, "--stacks=samples")
    for said, arguments in (("--frequency goes with --stacks", ["record", "-F", "9", "--", "true"]),
                            ("its list follows '='", ["record", "--stacks", "launches", "--", "true"]),
                            ("did you mean 'samples'?", ["record", "--stacks=sampels", "--", "true"]),
                            ("did you mean 'allocations'?", ["record", "--stacks=waits,allocation", "--", "true"]),
                            ("(samples, launches, copies, waits, allocations or blocked)", ["record", "--stacks=x", "--", "true"]),
                            ("its list follows '='", ["record", "--stacks", "waits", "--", "true"]),
                            ("--frequency is for taking a profile", ["profile", path, "-F", "9"]),
                            ("--gpu is for taking a profile", ["profile", path, "--gpu"]),
                            ("it goes with no command", ["profile", path, "--name", "x"]),
                            ("is for a trace file, which is none of the arguments", ["profile", "--from", "1s", "-p", "1"]),
                            ("is a trace file: 'cuscope profile .* -o x.folded'", ["profile", "--diff", path, path]),
                            ("is a second one", ["profile", path, path])):
        checks.contains(" ".join(map(str, arguments)), said, ended_with(case, 2, *arguments))
    checks.contains("a file that is not there", "cannot read", ended_with(case, 1, "profile", "/nowhere/a.cuscope"))


def test_stacks_profile_of_a_command_that_cannot_run(case):
    """There is nothing to show of it, and no file is made."""
    process = case.cuscope("profile", "-o", case.path("none.svg"), "/nowhere/app")
    checks.equal("status", 127, process.wait())
    checks.contains("what is said", "cannot run '/nowhere/app'", process.err())
    process = case.cuscope("profile", "/nowhere/app")
    checks.equal("status", 127, process.wait())
    checks.equal("what is shown", "", process.out())
    checks.equal("the file is there", False, os.path.exists(case.path("none.svg")))


def test_stacks_profile_of_no_process(case):
    process = case.cuscope("profile", "--name", "nothing-is-called-so", "--duration", "200ms")
    checks.equal("status", 0, process.wait())
    checks.contains("what is shown", "no samples(?s:.*)No such process was there", process.out())


def test_stacks_of_a_file_that_was_cut_short(case):
    path = record(case, "--stacks", "-F", "999")
    with open(path, "r+b") as file:
        data = file.read()
        file.truncate(data.rindex(b"CHNK", 0, data.rindex(b"CHNK")) + 10)  # within END
    process = case.cuscope("profile", path)
    checks.equal("status", 1, process.wait())
    checks.contains("what is said", "was cut short", process.err())
    if not re.search(r"on CPUs", process.out()):
        raise Failure(f"nothing is shown: {process.out()}")
