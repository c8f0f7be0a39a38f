# SPDX-License-Identifier: MIT
"""Profiles of hooks of one's own: the time in calls that users name, under the stacks that made them."""

import collections
import os
import re

import checks
from harness import Failure, Places, Skip

RECURSE = "uprobe:libhooked.so:hooked_recurse"


def words(*specs):
    return [word for spec in specs for word in ("--hook", spec)]


def profile(case, options, program=("hooked",), name="profile"):
    process = case.cuscope("profile", *options, "--", Places.program(program[0]), *program[1:])
    checks.equal(f"status ({process.err()[-400:]})", 0, process.wait())
    return process


def folded(case, options, program=("hooked",)):
    """{frames from main on: ns}"""
    path = case.path("x.folded")
    process = profile(case, [*options, "--force", "-o", path], program)
    stacks = collections.Counter()
    for line in open(path):
        frames, us = line.rsplit(" ", 1)
        frames = frames.split(";")
        stacks[tuple(frames[frames.index("main"):] if "main" in frames else frames)] += 1000 * int(us)
    return stacks, process


def calls_of(text):
    """{(hook, its callers): calls} of the table."""
    found = re.findall(r"^ +[<\d.]+ % +[\d.]+ [num]?s +(\d+)  \[hook\](\S+)\n((?: +<.*\n)*)", text, re.M)
    return {(hook, tuple(re.findall(r"< (\S+)", callers))): int(calls) for calls, hook, callers in found}


def test_profile_hooks_are_under_the_stacks_that_called(case):
    stacks, process = folded(case, ["--launch-stacks", "all", *words(
        "uprobe:libhooked.so:nccl* as nccl if ret == 0", RECURSE, "uprobe:libhooked.so:hooked_jump")])
    wanted = {("main", "ncclAllReduce", "[hook]nccl.ncclAllReduce")} | {
        ("main", *["hooked_recurse"] * depth, "[hook]hooked_recurse") for depth in (1, 2, 3, 4)}
    checks.equal("stacks", wanted, set(stacks))
    own = stacks["main", "ncclAllReduce", "[hook]nccl.ncclAllReduce"]
    if not 3 * 200_000 <= own < 100_000_000:
        raise Failure(f"three collectives sleep for 200 us each: {own} ns")
    checks.contains("how whole", "stacks whole", process.err())


def test_profile_hooks_with_each_mechanism(case):
    for without in ("session", "session,multi", "session,multi,cookie"):
        stacks, _ = folded(case, ["--without", without, *words("uprobe:libhooked.so:nccl*")])
        checks.equal(without, {("main", "ncclAllReduce", "[hook]ncclAllReduce")}, set(stacks))


def test_profile_hooks_as_a_table_with_calls(case):
    out = profile(case, ["--launch-stacks", "all", *words(RECURSE, "uprobe:libhooked.so:hooked_jump")], ("hooked", "100")).out()
    checks.contains("title", "Profile of .*: [\\d.]+ [mu]s in hooked calls\n", out)
    checks.contains("columns", r"\n +Share +Time +Calls  Stack, innermost frame first\n", out)
    calls = {callers.count("hooked_recurse"): n for (_, callers), n in calls_of(out).items()}
    checks.equal("calls by depth", {1: 101, 2: 1, 3: 1, 4: 1}, calls)
    checks.contains("without a time", "3 calls whose return was not seen: they have no time", out)


def test_profile_hooks_that_come_too_fast_are_walked_at_times(case):
    """Their number is exact all the same, and it is said what is estimated."""
    out = profile(case, ["--launch-stacks", "100", *words(RECURSE + " if arg0 == 0")], ("hooked", "20000")).out()
    calls = sum(calls_of(out).values())
    if abs(calls - 20001) > 5:
        raise Failure(f"{calls} calls")
    checks.contains("what is estimated", r"[\d.]+ % of the time is of calls whose stack was not walked: it stands where that of the same "
                                         r"hook's others does", out)


def test_profile_hooks_of_cuda_and_each_form(case):
    for ending, wanted in (("svg", "hook"), ("html", "cuMemAlloc_v2"), ("speedscope.json", "hooked calls"), ("folded", r"\[hook\]own.cuMemAlloc_v2 \d")):
        path = case.path("x." + ending)
        profile(case, ["-o", path, *words("uprobe:libcuda.so:cuMemAlloc_v2(n=arg1:bytes) as own")], ("threads", "2", "5"))
        checks.contains(ending, wanted, open(path).read())


def test_profile_hooks_of_the_kernel(case):
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has no kprobes")
    stacks, _ = folded(case, ["--launch-stacks", "all", *words("kprobe:vfs_open as opens")], ("threads", "1", "1"))
    of_main = {frames for frames in stacks if frames[0] == "main" or "_start" in frames}
    checks.equal("hooks", {"[hook]opens.vfs_open"}, {frames[-1] for frames in stacks})
    if not of_main:
        raise Failure(f"no stack of the program: {stacks}")


def test_profile_hooks_bad_input(case):
    for options, told in ((["--mode", "hooks"], "--mode hooks needs --hook or --hooks: whose time?"),
                          (["--mode", "hook"], "mode (merge, gpu, cpu, off-cpu or hooks)"),
                          (["--mode", "cpu", *words(RECURSE)], "it goes with no --gpu, --off-cpu or other --mode than hooks"),
                          (["--off-cpu", *words(RECURSE)], "it goes with no --gpu, --off-cpu or other --mode than hooks"),
                          (["--gpu", *words(RECURSE)], "it goes with no --gpu, --off-cpu or other --mode than hooks"),
                          (words(RECURSE, "uentry:libx.so:f"), "--hook: a profile is of time, and this hook is a moment: uprobe and kprobe have a begin and an end"),
                          (words("uprobe:libx.so:f(n=arg0:i33)"), "'i33' is no type"),
                          (["--hook-limit", "0"], "'0' is no number from 1 to 8192")):
        process = case.cuscope("profile", *options, "--", "/bin/true")
        checks.equal(f"status of {options}", 2, process.wait())
        checks.contains(f"{options}", re.escape(told), process.err())
    process = case.cuscope("profile", *words(RECURSE), "x.cuscope")
    checks.equal("status with a trace file", 2, process.wait())
    checks.contains("a trace file", "--hook is for taking a profile: x.cuscope has what was recorded", process.err())
