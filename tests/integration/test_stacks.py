# SPDX-License-Identifier: MIT
"""Stacks in trace files: what `record --stacks` keeps, and the profiles that are made of it."""

import json
import re

import checks
import gpu_trace
import profiles
from harness import Failure, Places

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
    checks.equal("time of kernels", sum(k["end"] - k["start"] for k in trace.activities), sum(on_gpu.values()))
    checks.equal("time of samples", info["samples"] * info["sample_ns"], sum(merged.values()) - sum(on_gpu.values()))
    checks.equal("calls with stacks", len(trace.launches()), info["calls"])
    right = sum(ns for chain, ns in on_gpu.items() if chain[-4:-1] == ("work", "sample_launch", "cuLaunchKernel"))
    if right < 0.99 * sum(on_gpu.values()):
        raise Failure(f"kernels are not under their launches: {list(on_gpu)[:4]}")
    checks.equal("GPU alone", on_gpu, profile_of(case, path, "--mode", "gpu"))
    checks.equal("CPUs alone", {chain: ns for chain, ns in merged.items() if chain not in on_gpu},
                 profile_of(case, path, "--mode", "cpu"))


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
    path = record(case, "--stacks", "--launch-stacks", "all", "--last", "1min")
    info = json.loads(succeed(case, "info", "--json", path))
    checks.equal("calls with stacks", info["activities"]["kernels"], info["stacks"]["calls"])
    if not any(chain[-1].startswith("[GPU_") and len(chain) > 3 for chain in profile_of(case, path)):
        raise Failure("no kernel is under its launch")


def test_stacks_are_not_recorded_unless_asked_for(case):
    path = record(case)
    info = json.loads(succeed(case, "info", "--json", path))["stacks"]
    checks.equal("stacks", (0, 0, 0), (info["samples"], info["calls"], info["sample_ns"]))
    checks.contains("its profile", "has no samples of stacks: 'cuscope record --stacks' takes them",
                    ended_with(case, 1, "profile", path))


def test_stacks_and_options_that_do_not_go_together(case):
    path = record(case, "--stacks=samples")
    for said, arguments in (("--frequency goes with --stacks", ["record", "-F", "9", "--", "true"]),
                            ("its list follows '='", ["record", "--stacks", "launches", "--", "true"]),
                            ("did you mean 'samples'?", ["record", "--stacks=sampels", "--", "true"]),
                            ("--frequency is for taking a profile", ["profile", path, "-F", "9"]),
                            ("--gpu is for taking a profile", ["profile", path, "--gpu"]),
                            ("it goes with no command", ["profile", path, "--name", "x"]),
                            ("is for a trace file, which is none of the arguments", ["profile", "--from", "1s", "-p", "1"]),
                            ("is a second one", ["profile", path, path])):
        checks.contains(" ".join(map(str, arguments)), said, ended_with(case, 2, *arguments))
    checks.contains("a file that is not there", "cannot read", ended_with(case, 1, "profile", "/nowhere/a.cuscope"))


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
