# SPDX-License-Identifier: MIT
"""The command line of `cuscope profile`: its outputs, its options, and what it says of bad ones."""

import contextlib
import gzip
import json
import os
import time

import checks
import profiles
from harness import Failure, Places, wait_until

BEGINS = {"folded": b"", "svg": b"<?xml|<svg", "html": b"<!DOCTYPE html|<!doctype html", "pb.gz": b"\x1f\x8b",
          "speedscope.json": b"{"}


def command_of(case, *options, **more):
    process = case.cuscope("profile", *options, **more)
    return process.wait(), process.out(), process.err()


def test_profile_writes_each_form(case):
    """Of one program; the frames are in each of them."""
    process = profiles.started(case, Places.program("frames"), "recursion", 5)
    for ending, begins in BEGINS.items():
        path = case.path("p." + ending)
        status, out, err = command_of(case, "-p", process.pid, "-F", 499, "--duration", "300ms", "-o", path)
        checks.equal(f"{ending}: status, output, errors", (0, "", ""),
                     (status, out, profiles.without_how_whole(err)))
        with open(path, "rb") as file:
            data = file.read()
        if not any(data.startswith(begin) for begin in begins.split(b"|")):
            raise Failure(f"{ending} begins with {data[:60]}")
        checks.equal(f"{ending}: mode", 0o600, os.stat(path).st_mode & 0o777)
        if ending == "pb.gz":
            data = gzip.decompress(data)
        if ending == "speedscope.json":
            json.loads(data)
        for name in b"spin_until_over", b"dive", b"main":
            if name not in data:
                raise Failure(f"{ending}: no {name}")
    status, out, err = command_of(case, "-p", process.pid, "-F", 499, "--duration", "300ms")
    checks.equal("status, errors", (0, ""), (status, err))
    checks.contains("the text", r"spin\n\s+< spin_until_over < dive < dive[^C]*main", out)
    checks.contains("the text", r"Completeness: (all \d+|\d.* % of \d+) stacks whole", out)
    profiles.ended(process)


def test_profile_has_its_bound_while_it_is_taken(case):
    """Names of a program, which may be as long as it likes, are in each of its stacks."""
    process = profiles.started(case, Places.program("frames"), "recursion", 500)
    path = case.path("p.folded")
    status, _, err = command_of(case, "-p", process.pid, "-F", 499, "--duration", "300ms", "--max-size", "1K",
                                "-o", path)
    checks.equal("status", 1, status)
    checks.contains("what it says", "there would be more: --max-size SIZE allows more", err)
    if os.path.getsize(path) > 1024:
        raise Failure(f"it has {os.path.getsize(path)} bytes")
    profiles.ended(process)


def test_profile_samples_as_often_as_asked_for(case):
    """Of time on CPUs, so that it does not matter what else runs: 1,000 ms of it are so many samples."""
    process = profiles.started(case, Places.program("frames"), "recursion", 2)

    def cpu_seconds():
        return profiles.processor_seconds([process.pid])
    for hz in 49, 499, 1999:
        before, begin = cpu_seconds(), time.monotonic()
        profile = profiles.take(case, ["-p", process.pid], 2, hz, name=f"p{hz}")
        share = (cpu_seconds() - before) / (time.monotonic() - begin)
        rate = profile.samples / 2 / share
        if not 0.7 * hz < rate < 1.3 * hz:
            raise Failure(f"{hz} a second were asked for, {rate:.0f} came ({profile.samples} samples)")
    profiles.ended(process)


def test_profile_bad_options(case):
    for options, status, said in (
            ((), 2, "--pid|-p"),
            (("--mode", "merge", "--", "true"), 2, "--mode merge needs --gpu, which measures GPU times"),
            (("--launch-stacks", "all", "--", "true"), 2, "--launch-stacks goes with --gpu or --hook"),
            (("-F", 0, "--all"), 2, "--frequency: '0' is no number from 1 to 2000"),
            (("-F", 2001, "--all"), 2, "--frequency: '2001' is no number from 1 to 2000"),
            (("-F", "x", "--all"), 2, "--frequency: 'x' is no number from 1 to 2000"),
            (("-o", "x.png", "--all"), 2, "no form of a profile has the ending of 'x.png' \\(there are .folded, .svg, .html, .pb.gz, .speedscope.json\\)"),
            (("-o", "folded", "--all"), 2, "no form of a profile has the ending of 'folded'"),
            (("--duration", "soon", "--all"), 2, "--duration"),
            (("--output-mode", "9", "--all"), 2, "--output-mode"),
            (("--without", "everything", "--all"), 1, "everything"),
            (("--nonsense",), 2, "nonsense"),
            (("-p", 1, "--all"), 2, "one|both|only"),
            (("-p", 4000000), 1, "4000000")):
        got, out, err = command_of(case, *options)
        checks.equal(f"{options}: status ({err.strip()[-200:]})", status, got)
        checks.contains(f"{options}", said, err)
        checks.equal(f"{options}: output", "", out)


def test_profile_an_output_that_cannot_be_written(case):
    program = ["--", Places.program("frames"), "exit"]
    status, _, err = command_of(case, "-o", case.path("none/p.folded"), *program)
    checks.equal("status", 1, status)
    checks.contains("the reason", "none/p.folded", err)
    with open(case.path("there.folded"), "w") as file:
        file.write("mine")
    status, _, err = command_of(case, "-o", case.path("there.folded"), *program)
    checks.equal("status", 1, status)
    checks.contains("the reason", "exists already: --force overwrites it", err)
    with open(case.path("there.folded")) as file:
        checks.equal("what was there", "mine", file.read())
    status, _, err = command_of(case, "--force", "--output-mode", "644", "-o", case.path("there.folded"), *program)
    checks.equal("with --force", (0, ""), (status, profiles.without_how_whole(err)))
    checks.equal("mode", 0o644, os.stat(case.path("there.folded")).st_mode & 0o777)
    checks.equal("files", ["there.folded"], [name for name in os.listdir(case.folder) if "folded" in name])


def test_profile_of_a_process_that_ends_before_a_sample(case):
    """It waits all the time, so there is nothing to sample; what is said is why there is none."""
    process = case.start("sleep", "100")
    profile = case.cuscope("profile", "-p", process.pid)

    def has_begun():
        folder = f"/proc/{profile.pid}/fd"
        names = []
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError):  # closed meanwhile
                names.append(os.readlink(os.path.join(folder, fd)))
        return any("timerfd" in name for name in names)
    wait_until(has_begun, "the profile to begin")
    process.process.kill()
    process.wait()
    checks.equal("status", 0, profile.wait())
    checks.equal("what is said", f"cuscope: process {process.pid} has ended: no sample of it was taken\n", profile.err())
    checks.contains("the profile", "no samples", profile.out())


def test_profile_counts_a_process_that_execs_once(case):
    spins = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    status, out, err = command_of(case, "-F", 999, "--", "/bin/sh", "-c", f"{spins}; exec /bin/sh -c '{spins}; exit 3'")
    checks.equal("status, errors", (3, ""), (status, err))
    checks.contains("the head", r"\n1 process, ", out)


def test_profile_that_ends_before_its_command(case):
    _, _, err = command_of(case, "--duration", "100ms", "--", "sleep", "1")
    checks.contains("what is said", r"cuscope: the profile is over; waiting for the command \(process \d+\) to end", err)


def test_profile_status_is_the_command_s(case):
    status, out, _ = command_of(case, "--", "/bin/sh", "-c", "exit 7")
    checks.equal("status", 7, status)
    checks.contains("a profile is there all the same", "Profile of /bin/sh -c exit 7", out)
    status, _, err = command_of(case, "--", "/nowhere/to/be/found")
    checks.equal("status", 127, status)
    checks.contains("the reason", "/nowhere/to/be/found", err)
