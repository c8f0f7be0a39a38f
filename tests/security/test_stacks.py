# SPDX-License-Identifier: MIT
"""Targets whose stacks, mappings and tables are made to mislead: cuscope neither hangs nor grows, says what is missing,
and the stacks of another target beside are right all the while."""

import os
import random
import re
import struct
import time

import checks
import profiles
import test_profile_python
from harness import Failure, Places, Skip, alone, wait_until
from test_groups import cpu_seconds
from test_memory import MIB, peak_of

MOST_MIB = 160
DEPTH = 20


def victim(case):
    return profiles.started(case, Places.program("frames"), "recursion", DEPTH, name="victim")


def of_victim(profile, few=40):
    """Each of its stacks, and no other's, has dive() in it."""
    chain = ("main", *["dive"] * DEPTH, "spin_until_over", "spin")
    seen = {names: n for names, n in profile.names().items() if "dive" in names}
    right = sum(n for names, n in seen.items() if profiles.from_main(profiles.user_side(names)) == chain)
    if sum(seen.values()) < few or right < 0.99 * sum(seen.values()):
        raise Failure(f"{right} of {sum(seen.values())} stacks of the other target are right: {profile.said()}")


def profile_beside(case, hostile, seconds=3, ending="pb.gz", most_mib=MOST_MIB, late=30):
    """All of them at once; returns the path of the profile, which may be there so many seconds late."""
    pids = ",".join(str(process.pid) for process in [*hostile, victim(case)])
    path = case.path("p." + ending)
    process = case.cuscope("profile", "-F", 999, "--duration", f"{seconds}s", "-o", path, "-p", pids)
    peak = peak_of(process, seconds + late)
    checks.equal(f"status ({process.err()})", 0, process.wait(5))
    if not peak or peak > most_mib * MIB:
        raise Failure(f"{peak / MIB:.0f} MiB of memory, {most_mib} at most")
    return path


def hostile_stacks(case, what):
    return profiles.started(case, Places.program("hostile-stacks"), what)


@alone
def test_a_python_that_is_none(case):
    """Its frames are rings, lead nowhere, and are of thousands of code objects a second."""
    profile = profiles.Profile(profile_beside(case, [hostile_stacks(case, "python")]))
    of_victim(profile)
    inner = sum(n for names, n in profile.names().items() if any("be_python" in name for name in names))
    fake = sum(n for stack, n in profile.stacks.items() if any("script" in frame.name for frame in stack))
    if not fake:
        raise Failure(f"it was not taken for a Python at all, so nothing was tried: {inner} samples")
    for stack in profile.stacks:
        if len(stack) > 600 or any("\x1b" in frame.name + frame.file or "\x07" in frame.name for frame in stack):
            raise Failure(f"{len(stack)} frames, {stack[:2]}")
    checks.contains("what is missing", "frames? of Python (have no name|has no name|are missing)", profile.said())


@alone
def test_a_python_with_long_tables_of_lines(case):
    """Of 480 functions on each stack the line is looked up in 16 KiB: it is not gone through from its begin."""
    python, version = "/usr/bin/python3", test_profile_python.minor_of("/usr/bin/python3")
    if not version or version < 11:
        raise Skip("no Python 3.11 or later as /usr/bin/python3")
    script = os.path.join(Places.root, "tests", "security", "line_tables.py")
    pids = [profiles.started(case, python, script).pid for _ in range(2)]
    used, begin = 0, time.monotonic()
    process = case.cuscope("profile", "-F", 999, "--duration", "4s", "-o", case.path("p.folded"), "-p",
                           ",".join(map(str, pids)), start_new_session=True)
    while process.process.poll() is None and time.monotonic() - begin < 120:
        used = max(used, cpu_seconds(process.pid))
        time.sleep(0.05)
    checks.equal(f"status ({process.err()})", 0, process.wait(1))
    n = int(re.search(r"all ([\d,]+) stacks", process.err())[1].replace(",", ""))
    with open(case.path("p.folded")) as file:
        if max(line.count("dive") for line in file) < 480:
            raise Failure("no stack is deep: nothing was tried")
    if used > 0.6 + 0.002 * n:
        raise Failure(f"{used} s of a processor for {n} stacks")


@alone
def test_names_of_a_python_that_is_none_in_each_output(case):
    """Controls and markup stay what they are: text."""
    scripts = {}
    for ending in "html", "svg", "folded", "speedscope.json":
        hostile = hostile_stacks(case, "python")
        path = profile_beside(case, [hostile], 1, ending)
        with open(path, "rb") as file:
            data = file.read()
        for control in b"\x1b", b"\x07", b"\xff":
            checks.equal(f"{ending}: {control}", 0, data.count(control))
        if ending in ("html", "svg"):
            if re.search(rb"<script>alert|</script><script>alert|</style>\.py|<b>&\"'", data):
                raise Failure(f"{ending}: markup of the target's")
        scripts[ending] = data.count(b"script")
        profiles.ended(hostile)
        for process in case.started:
            process.stop()
    if not scripts["folded"]:
        raise Failure("the names were not seen at all")
    process = case.cuscope("profile", "-F", 999, "--duration", "1s", "-p", hostile_stacks(case, "python").pid)
    checks.equal("status", 0, process.wait())
    checks.contains_not("the text", "[\x00-\x08\x0b-\x1f]", process.out())


@alone
def test_many_mappings(case):
    """1,024 of a process are kept."""
    hostile = hostile_stacks(case, "mappings")
    profile = profiles.Profile(profile_beside(case, [hostile]))
    of_victim(profile)


@alone
def test_mappings_that_come_and_go(case):
    profile = profiles.Profile(profile_beside(case, [hostile_stacks(case, "churn")]))
    of_victim(profile)


@alone
def test_a_deep_recursion(case):
    """512 frames are kept; which is said."""
    hostile = profiles.started(case, Places.program("frames"), "recursion", 10000)
    good = profiles.started(case, Places.program("frames"), "alloca", DEPTH)
    profile = profiles.take(case, ["-p", f"{hostile.pid},{good.pid}"], 2)
    inside = {names: n for names, n in profile.names().items() if "swell" in names}
    chain = ("main", *["swell"] * DEPTH, "spin_until_over", "spin")
    right = sum(n for names, n in inside.items() if profiles.from_main(profiles.user_side(names)) == chain)
    if right < 0.99 * sum(inside.values()) or not right:
        raise Failure(f"{right} of {sum(inside.values())} of the other are right")
    checks.contains("what is said", "deeper than", profile.said())


@alone
def test_a_stack_that_is_nowhere(case):
    profile = profiles.Profile(profile_beside(case, [profiles.started(case, Places.program("frames"), "nowhere")]))
    of_victim(profile)
    checks.contains("what is said", "could not be read", profile.said())


@alone
def test_a_vdso_that_is_damaged(case):
    """What one process did to the kernel's library in its own memory is nothing to the others."""
    hostile = hostile_stacks(case, "vdso")
    good = profiles.started(case, Places.program("frames"), "clock")
    profile = profiles.take(case, ["-p", f"{hostile.pid},{good.pid}"], 2)
    clock = {names: n for names, n in profile.names().items() if "spin" not in names}
    right = sum(n for names, n in clock.items()
                if profiles.from_main(profiles.user_side(names))[:2] == ("main", "read_the_clock"))
    if right < 0.99 * sum(clock.values()) or not right:
        raise Failure(f"{right} of {sum(clock.values())} in the clock are right: {list(clock.items())[:3]}; "
                      f"{profile.said()}")


def section_of(data, name):
    """Offset and size of a section of an ELF file of 64 bits."""
    at, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    table, = struct.unpack_from("<Q", data, at + names * size + 24)
    for i in range(count):
        header = at + i * size
        text = table + struct.unpack_from("<I", data, header)[0]
        if data[text:data.index(b"\0", text)] == name:
            return struct.unpack_from("<QQ", data, header + 24)
    raise Failure(f"no {name}")


@alone
def test_tables_that_are_damaged(case):
    """Of the program itself: at random, in whole and in part. Its own stacks are lost, and nobody else's."""
    with open(Places.program("frames"), "rb") as file:
        good = file.read()
    offset, size = section_of(good, b".eh_frame")
    randomly = random.Random(1)
    hostile = []
    for kind in range(6):
        data = bytearray(good)
        for i in range(size):
            if kind < 2 or randomly.random() < 0.02 * kind:
                data[offset + i] = randomly.randrange(256) if kind else 0xff
        path = case.path(f"damaged{kind}")
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o755)
        hostile.append(profiles.started(case, path, "alloca", 10))
    profile = profiles.Profile(profile_beside(case, hostile, 4))
    of_victim(profile, 20)


@alone
def test_files_with_more_functions_than_there_is_time_for(case):
    """A second's work each, and no two have room beside each other: its user has some seconds for all of them."""
    hostile = profiles.started(case, "setpriv", "--reuid", 65534, "--clear-groups", Places.program("hostile-tables"), case.folder, 8)
    profile = profiles.Profile(profile_beside(case, [hostile], most_mib=256, late=60))
    of_victim(profile)
    checks.contains("what is said", "frames of native code are without functions", profile.said())
    names = profile.names()
    if not any("function" in stack for stack in names):
        raise Failure("nothing of its files was read, so nothing was tried")


@alone
def test_more_processes_than_are_walked(case):
    """300 at once, where 256 are kept: those beyond are said, and the first ones are right."""
    good = victim(case)
    env = dict(case.environment(), NAPS_MS="3000")  # else nothing but these would run on this machine
    many = [case.start(Places.program("frames"), "recursion", "3", stdin=-1, name=f"many{i}", env=env)
            for i in range(300)]
    wait_until(lambda: all("ready" in process.out() for process in many), "all to be ready", 60)
    path = case.path("p.pb.gz")
    pids = ",".join(str(process.pid) for process in [good] + many)
    process = case.cuscope("profile", "-F", 999, "--duration", "8s", "-o", path, "-p", pids)
    peak = peak_of(process, 60)
    checks.equal(f"status ({process.err()})", 0, process.wait(5))
    if peak > MOST_MIB * MIB:
        raise Failure(f"{peak / MIB:.0f} MiB of memory")
    profile = profiles.Profile(path)
    checks.contains("what is said", r"4[0-9] processes were more than stacks are walked of", profile.said())
    whole = sum(n for names, n in profile.names().items() if "main" in names)
    if whole < 0.7 * profile.samples:
        raise Failure(f"{whole} of {profile.samples} are whole: {profile.said()}")
