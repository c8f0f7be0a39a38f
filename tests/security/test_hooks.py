# SPDX-License-Identifier: MIT
"""Hooks of one's own on programs and files that are somebody else's."""

import collections
import contextlib
import json
import os
import shutil
import struct
import subprocess

import checks
from harness import Failure, Places, Skip, wait_until

NOBODY = 65534
LIBRARY = "libhooked.so.1"
MARK = "hooked_mark"


def hooks(*specs):
    return [word for spec in specs for word in ("--hook", spec)]


def of(result, name):
    return result.calls(layer="hook", name=name)


def missed(result):
    return {hook.get("name"): hook["why"] for hook in result.summary["missed"]["hooks"]}


@contextlib.contextmanager
def hostile(case, *words, **more):
    """The program of hooks.c, once it is where it wants to be."""
    process = case.program("hostile-hooks", *words, stdin=subprocess.PIPE, **more)
    try:
        wait_until(lambda: "ready" in process.out() or process.process.poll() is not None, "the program")
        if "ready" not in process.out():
            raise Failure(f"it ended: {process.err()}")
        yield process
    finally:
        process.process.stdin.close()
        process.wait()


def copied(case, name):
    path = case.path(name)
    shutil.copyfile(Places.program(LIBRARY), path)
    os.chmod(path, 0o755)
    return path


# ---- what is asked for

def test_hooks_of_a_file_that_others_can_write_are_not_read(case):
    def told(path):
        process = case.cuscope("trace", "--hooks", path, "--", "/bin/true")
        checks.equal("status", 2, process.wait())
        return process.err()

    folder, text = case.path("own"), "uprobe:libhooked.so:hooked_mark\n"
    os.mkdir(folder, 0o700)
    own = os.path.join(folder, "own.hooks")
    for path in (own, case.path("open.hooks")):  # the folder of the test is everybody's
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o600)
    checks.contains("a folder that others can write", r"open\.hooks", told(case.path("open.hooks")))
    os.chmod(own, 0o666)
    checks.contains("a file that others can write", r"own\.hooks", told(own))
    os.chmod(own, 0o600)
    os.chown(own, NOBODY, NOBODY)
    checks.contains("another's file", r"own\.hooks", told(own))
    os.chown(own, 0, 0)
    for place, name, owner in ((case.path("open.hooks"), "link", 0), (own, "others", NOBODY)):
        link = os.path.join(folder, name + ".hooks")
        os.symlink(place, link)
        os.chown(link, owner, owner, follow_symlinks=False)
        checks.contains("where a link leads, or whose it is", name.replace("link", "open") + r"\.hooks", told(link))
    own = os.path.join(folder, "sound.hooks")
    os.symlink("../own/own.hooks", own)
    process = case.cuscope("trace", "--hooks", own, "--", Places.program("hooked"))
    checks.equal("root's own", 0, process.wait())


# ---- what functions are given

def test_arguments_that_cannot_be_read_are_counted(case):
    result = case.trace("hostile-hooks", "arguments", "3", options=hooks(
        "uprobe:hostile-hooks:hooked_read(at=*arg0:u64, behind=arg0+8->8:u32, text=arg1:str)"))
    checks.valid(result)
    calls = of(result, "hooked_read")
    checks.equal("calls", 27, len(calls))
    texts = [call["args"]["text"] for call in calls]  # an address where it has none
    checks.equal("texts", ["x" * 255] * 3, [text for text in texts if not text.startswith("0x")])
    checks.equal("numbers", {0, 0x7878787878787878}, {call["args"]["at"] for call in calls})
    lost = result.summary["missed"]["lost"]
    checks.equal("calls with arguments that cannot be read", 27, lost["unreadable"])
    checks.equal("texts that were cut", 3, lost["texts"])


def test_addresses_of_the_kernel_are_not_read_for_a_program(case):
    with open("/proc/kallsyms") as file:
        banner = next((line.split()[0] for line in file if line.split()[2] == "linux_banner"), "0")

    def paths(kind, name):
        result = case.trace("hostile-hooks", "paths", banner, name=name, options=hooks(
            f"tracepoint:syscalls:sys_enter_openat(path=filename:{kind})"))
        return [call["args"].get("path") or "" for call in of(result, "sys_enter_openat")]
    told = paths("str", "str")
    checks.equal("a path of the program", True, "/nowhere/of-the-program" in told)
    checks.equal("text of the kernel", [], [path for path in told if path.startswith("Linux version")])
    if int(banner, 16):  # it is there for who asks for the kernel's
        told = paths("kstr", "kstr")
        checks.equal("text of the kernel", 1, len([path for path in told if path.startswith("Linux version")]))
        checks.equal("a path of the program", False, "/nowhere/of-the-program" in told)


def test_threads_that_all_stand_in_hooked_calls_are_told_at_the_end(case):
    """4,096 of them in `make stress`."""
    n = 4096 if "STRESS_ROUNDS" in os.environ else 500
    with hostile(case, "threads", 100) as waiting:
        trace = case.start_trace(hooks("uprobe:hostile-hooks:hooked_wait(n=arg0:i32)") + ["--duration", "1s"],
                                 ["--", Places.program("hostile-hooks"), "threads", str(n)], stdin=subprocess.PIPE)
        wait_until(lambda: "the trace is over" in trace.err(), "the end", 30)
        trace.process.stdin.close()
        result = case.result(trace)
        checks.equal("others", True, waiting.process.poll() is None)
    checks.valid(result)
    calls = of(result, "hooked_wait")
    checks.equal("calls without an end", list(range(n)), sorted(call["args"]["n"] for call in calls
                                                                  if call.get("duration_us") is None))
    checks.equal("threads without room", 0, result.summary["missed"]["lost"]["threads_full"])


def test_a_process_has_half_of_the_room_for_calls_that_wait(case):
    program, n = Places.program("hostile-hooks"), 1200
    both = f"sleep 2 | {program} threads {n} 15 & sleep 1; sleep 0.3 | {program} threads 100; wait"
    trace = case.start_trace(hooks("uprobe:hostile-hooks:hooked_wait(n=arg0:i32)"), ["--", "/bin/sh", "-c", both])
    result = case.result(trace, seconds=30)
    calls = collections.Counter(call["pid"] for call in of(result, "hooked_wait"))
    checks.equal("processes", 2, len(calls))
    checks.equal("calls of both", [8192, 100], sorted(calls.values(), reverse=True))
    checks.equal("calls without room", n * 15 - 8192, result.summary["missed"]["lost"]["threads_full"])


# ---- which files

def test_a_library_that_takes_anothers_place_while_it_is_hooked(case):
    library, other = copied(case, LIBRARY), copied(case, "other.so")
    with hostile(case, "swap", library, other) as target:
        trace = case.start_trace(hooks(f"uprobe:{LIBRARY}:{MARK}(n=arg0:i32)") + ["--duration", "1s"],
                                 ["-p", target.pid])
        result = case.result(trace, seconds=30)
    checks.equal("status", 0, result.status)
    checks.valid(result)
    checks.equal("arguments", {-1}, {call["args"]["n"] for call in of(result, MARK)} or {-1})
    if not of(result, MARK) and not missed(result):
        raise Failure("no call is there, and nothing is told of that")


def has_call(case, pid):
    with open(case.path("trace.jsonl")) as file:
        return any(MARK in line and f'"pid":{pid},' in line for line in file)


def test_a_library_of_another_mount_namespace_is_the_one_that_is_hooked(case):
    host, inside = copied(case, LIBRARY), copied(case, "inside.so")
    run = f"mount --bind {inside} {host} && exec {Places.program('hostile-hooks')} load {host}"
    other = case.start(Places.program("ownroot"), "sh", "-c", run, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in other.out() or other.process.poll() is not None, "the namespace")
    checks.equal(f"the namespace ({other.err()})", True, "ready" in other.out())
    with hostile(case, "load", host) as target:
        trace = case.start_trace(hooks(f"uprobe:{host}:{MARK}"), ["-p", f"{target.pid},{other.pid}"])
        case.attached(trace)
        wait_until(lambda: has_call(case, target.pid) and has_call(case, other.pid), "a call of each", 30)
        trace.signal(2)
        result = case.result(trace, seconds=30)
        other.process.stdin.close()
        other.wait()
    checks.equal("both are seen", {target.pid, other.pid}, {call["pid"] for call in of(result, MARK)})


@contextlib.contextmanager
def chroot(case, *files):
    """A folder that is no mount, where these and their libraries have the paths that they have outside."""
    root = case.path("root")
    needed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout.split()
    for path in {*files, *(word for word in needed if word.startswith("/") and not word.endswith(":"))}:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        shutil.copy(path, root + path)
    mounts = [root + path for path in ("/proc", "/sys", "/dev")]
    try:
        for path in mounts:
            os.mkdir(path)
            subprocess.run(["mount", "--bind", path.removeprefix(root), path], check=True)
        yield root
    finally:
        for path in mounts:
            subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)


def test_processes_that_are_gone_at_once_are_looked_into_in_a_chroot(case):
    """The path that the kernel tells of a library begins outside of it."""
    libraries = [copied(case, f"{n}.so") for n in range(10)]
    program, shell, path = Places.program("hostile-hooks"), os.path.realpath("/bin/sh"), "/trace.jsonl"
    with chroot(case, Places.cuscope(), program, shell, *libraries) as root:
        script = "".join(f"{program} load {library}; " for library in libraries)
        trace = case.start("chroot", root, Places.cuscope(), "trace", "--no-hold", *hooks(*(f"uprobe:{library}:{MARK}" for library in libraries)),
                           "-o", path, "--", shell, "-c", script + "exit 0")
        checks.equal("status", 0, trace.wait(30))
        with open(root + path) as file:
            missed = json.loads(file.read().splitlines()[-1])["hooks"]
    checks.equal("what is not known", [], [hook for hook in missed if hook["kind"] in ("unseen", "not_hooked")])


def many_symbols(path, count):
    """A library with so many functions of one long name in .symtab."""
    name, at, head = b"a" * 500, 0x2000, 64
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000, 1) * count
    strings, sections = b"\0" + name + b"\0", at + 24 * (count + 1) + 512

    def section(kind, offset, size, link, entry):
        return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 1, 8, entry)
    with open(path, "wb") as file:
        file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 3, 62, 1, 0, head, sections, 0, 64, 56, 1, 64, 3, 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, at, at, 0x1000))
        file.seek(at)
        file.write(symbols + strings)
        file.seek(sections)
        file.write(section(0, 0, 0, 0, 0) + section(2, at, len(symbols), 2, 24) + section(3, at + len(symbols), len(strings), 0, 0))


def test_a_file_with_symbols_without_number_holds_up_nobody(case):
    if "STRESS_ROUNDS" not in os.environ:
        raise Skip("it takes 10 s: make stress")
    many_symbols(case.path(LIBRARY), 1000000)
    slow = [f"uprobe:{LIBRARY}:*a*a*a*{n}" for n in range(30)]
    with hostile(case, "map", case.path(LIBRARY)) as target:
        trace = case.start_trace(hooks(*slow) + ["--duration", "8s"], ["-p", str(target.pid)])
        process = case.cuscope("trace", "-o", case.path("other.jsonl"), *hooks(f"uprobe:{LIBRARY}:{MARK}"), "--",
                               Places.program("hooked"))
        checks.equal("status of another", 0, process.wait())
        result = case.result(trace, seconds=60)
    checks.contains("why none is hooked", "so many symbols|a large symbol table was not read yet", result.out)
