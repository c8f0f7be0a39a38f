# SPDX-License-Identifier: MIT
"""Lines and inlined functions of native code, from wherever debug information can be."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import checks
import profiles
from harness import Failure, Places, alone, wait_until

DEBUG = "/usr/lib/debug"
NAMES = ("innermost", "between", "outermost", "main")


def lines_of_source():
    """{function: line} by the marks in the source."""
    source = os.path.join(os.path.dirname(__file__), "..", "programs", "inlined.c")
    with open(source) as file:
        return {found[1]: number for number, line in enumerate(file, 1) for found in re.finditer(r"/\* LINE (\w+)", line)}



def copy(case, name="inlined"):
    path = case.path(name)
    shutil.copy(Places.program("inlined"), path)
    return path


def profile_of(case, path, seconds=0.6, name="profile", **options):
    process = profiles.started(case, path)
    profile = profiles.take(case, ["-p", process.pid], seconds, name=name, **options)
    profiles.ended(process)
    return profile


def found_in(profile):
    """How many samples have the chain of inlined functions with its lines, and how many there are."""
    lines, right = lines_of_source(), 0
    for stack, n in profile.stacks.items():
        at = {frame.name: frame for frame in stack}
        chain = [frame.name for frame in stack if frame.name in NAMES]
        if chain == ["main", "outermost", "between", "innermost"] and all(
                frame.file.endswith("inlined.c") for name, frame in at.items() if name in NAMES) and (
                at["between"].line, at["outermost"].line, at["main"].line) == (
                    lines["between"], lines["outermost"], lines["main"]) and (
                0 <= at["innermost"].line - lines["innermost"] + 1 <= 2):
            right += n
    return right, profile.samples


def has_lines(profile, least=0.9):
    right, samples = found_in(profile)
    if samples < 20 or right < least * samples:
        raise Failure(f"{right} of {samples} samples have their lines; others: "
                      f"{list(profile.stacks)[:3]}; {profile.said()}")


def has_none(profile):
    right, samples = found_in(profile)
    if right or samples < 10:
        raise Failure(f"{right} of {samples} samples have lines")


def apart(case, name="inlined"):
    """The program without its debug information, and that in a file of its own."""
    path = copy(case, name)
    subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run(["strip", path], check=True)
    return path, path + ".debug"


@alone
def test_lines_and_inlined_functions(case):
    """In pprof's file, and as frames in folded stacks."""
    path = copy(case)
    has_lines(profile_of(case, path))
    process = profiles.started(case, path)
    out = case.path("p.folded")
    run = case.cuscope("profile", "-p", process.pid, "--duration", "500ms", "-F", 999, "-o", out)
    checks.equal("status", 0, run.wait())
    if not any(chain[-4:] == ("main", "outermost", "between", "innermost") for chain in profiles.folded(out)):
        raise Failure(f"{list(profiles.folded(out))[:5]}")
    profiles.ended(process)


@alone
def test_lines_of_a_recording(case):
    """It is read without the program."""
    path = copy(case)
    trace, out = case.path("run.cuscope"), case.path("run.pb.gz")
    process = profiles.started(case, path)
    run = case.cuscope("record", "--stacks", "--duration", "3s", "-o", trace,
                       "-p", process.pid)
    checks.equal("status", 0, run.wait())
    profiles.ended(process)
    os.unlink(path)
    read = case.cuscope("profile", trace, "-o", out)
    checks.equal("status, errors", (0, ""), (read.wait(), read.err()))
    has_lines(profiles.Profile(out))
    stacks_have_lines(case, trace)


@alone
def test_lines_of_a_snapshot(case):
    """What SIGUSR2 writes while the recording goes on has the lines that are known by then, and what comes later those of both."""
    path = copy(case)
    process = profiles.started(case, path)
    run = case.cuscope("record", "--stacks", "--last", "20s", "-o", case.path("run.cuscope"), "-p", process.pid)
    time.sleep(3)
    for name in ("run.cuscope", "run-2.cuscope"):
        run.signal(signal.SIGUSR2)
        wait_until(lambda: f"{name}: " in run.err(), name)
        stacks_have_lines(case, case.path(name))
    profiles.ended(process)
    checks.equal("status", 0, run.wait())
    stacks_have_lines(case, case.path("run-3.cuscope"))


def stacks_have_lines(case, trace):
    """As an export has them, which knows stacks with the first sample, and lines with the end of the file."""
    lines, out = lines_of_source(), trace + ".jsonl"
    export = case.cuscope("export", trace, "-o", out)
    checks.equal("status", 0, export.wait())
    with open(out) as file:
        stacks = [line["frames"] for line in map(json.loads, file) if line["type"] == "stack"]
    found = [[(frame["function"], frame.get("inlined", False), frame.get("line")) for frame in frames if frame.get("function") in NAMES]
             for frames in stacks]
    wanted = [("between", True, lines["between"]), ("outermost", False, lines["outermost"]), ("main", False, lines["main"])]
    if not any(chain[:1] and chain[0][:2] == ("innermost", True) and chain[1:] == wanted for chain in found):
        raise Failure(f"no stack has them: {found[:4]}")


@alone
def test_names_of_the_compressed_section(case):
    path = copy(case)
    mini = path + ".mini"
    subprocess.run(["objcopy", "-S", "--keep-symbol=outermost", path, mini], check=True)
    subprocess.run(["xz", "-f", mini], check=True)
    subprocess.run(["strip", "-s", path], check=True)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={mini}.xz", path], check=True)
    names = profile_of(case, path).names()
    if not any("outermost" in chain for chain in names):
        raise Failure(f"{list(names)[:4]}")


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def linked(case, path, debug, place):
    """The debug file at a place that the program's link names, and nowhere else."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    shutil.move(debug, place)
    os.chmod(place, 0o644)
    os.chown(place, 0, 0)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={place}", path], check=True)


@alone
def test_a_debug_file_that_root_keeps(case):
    """By its link below /usr/lib/debug, by its build id there; and not where another could have put it."""
    path, debug = apart(case)
    place = DEBUG + os.path.join(os.path.dirname(path), os.path.basename(debug))
    top = os.path.join(DEBUG, path.split("/")[1])
    made = not os.path.exists(top)
    has_none(profile_of(case, path, name="nothing"))
    try:
        linked(case, path, debug, place)
        has_lines(profile_of(case, path, name="link"))
        os.chmod(place, 0o666)
        has_none(profile_of(case, path, name="writable"))
        os.chmod(place, 0o644)
        os.chown(place, 1000, 1000)
        has_none(profile_of(case, path, name="others"))
        os.chown(place, 0, 0)
        with open(place, "r+b") as file:  # its sum is another, and it says that it is of another program
            data = file.read()
            file.seek(data.index(b"GNU\0") + 4)
            file.write(b"\0" * 20)
        has_none(profile_of(case, path, name="foreign"))
    finally:
        shutil.rmtree(top if made else os.path.dirname(place), ignore_errors=True)


@alone
def test_a_debug_file_that_was_fetched(case):
    """By debuginfod's client, for who runs cuscope; where that is asked for, and it is his."""
    path, debug = apart(case)
    folder = case.path("cache")
    place = f"{folder}/{build_id_of(path)}/debuginfo"
    os.makedirs(os.path.dirname(place))
    shutil.move(debug, place)
    os.chmod(place, 0o644)
    os.chown(place, 0, 0)
    cache = {"DEBUGINFOD_CACHE_PATH": folder}
    for name, urls, owner, has in (("unasked", "", 0, has_none), ("asked", "https://debuginfod.invalid", 0, has_lines),
                                   ("others", "https://debuginfod.invalid", 1000, has_none)):
        os.chown(place, owner, owner)
        process = profiles.started(case, path, name="program-" + name)
        out = case.path(name + ".pb.gz")
        run = case.cuscope("profile", "-F", 999, "--duration", "600ms", "-o", out, "-p", process.pid,
                           env=os.environ | cache | {"DEBUGINFOD_URLS": urls})
        checks.equal("status", 0, run.wait())
        profiles.ended(process)
        has(profiles.Profile(out))


@alone
def test_a_debug_file_by_its_build_id(case):
    path, debug = apart(case)
    build_id = build_id_of(path)
    place = f"{DEBUG}/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.move(debug, place)
        os.chmod(place, 0o644)
        os.chown(place, 0, 0)
        has_lines(profile_of(case, path))
        os.chmod(os.path.dirname(place), 0o777)
        has_none(profile_of(case, path, name="folder"))
    finally:
        shutil.rmtree(os.path.dirname(place), ignore_errors=True)
