# SPDX-License-Identifier: MIT
"""Stacks of `cuscope profile`, frame by frame, of programs whose chains of calls are known."""

import collections
import os
import re
import shutil
import subprocess
import time

import checks
import harness
import profiles
from harness import Failure, Places, Skip, wait_until
from profiles import chain_is, of_program, share_of, user_side

SPIN = ("spin_until_over", "spin")


def test_profile_recursion(case):
    profile = of_program(case, "frames", "recursion", 40)
    chain_is(profile, "main", *["dive"] * 40, *SPIN)
    checks.contains("the whole ones", "stacks whole", profile.said())


def test_profile_of_a_static_program(case):
    chain_is(of_program(case, "frames-static", "recursion", 9), "main", *["dive"] * 9, *SPIN)


def test_profile_frames_of_sizes_that_vary(case):
    chain_is(of_program(case, "frames", "alloca", 20), "main", *["swell"] * 20, *SPIN)


def test_profile_through_a_signal_handler(case):
    """The name of what returns from a handler is not in a stripped C library."""
    profile = of_program(case, "frames", "signal", seconds=2)
    waiting = ("main", "in_signal", "be_interrupted")
    handling = (*waiting, None, "handle", *SPIN)
    share_of(profile, lambda names: len(names) > 3 and
             any(len(n) == len(chain) and all(a == b or b is None for a, b in zip(n, chain))
                 for chain in (waiting, handling) for n in [profiles.from_main(user_side(names))]))
    if not any("handle" in names for names in profile.names()):
        raise Failure(f"the handler was never seen: {profile.names()}")


def test_profile_a_jump_at_the_end_leaves_no_frame(case):
    chain_is(of_program(case, "frames", "tail"), "main", "in_tail_call", "jumped_to", *SPIN)


def test_profile_through_a_library_that_was_opened(case):
    profile = of_program(case, "frames", "library", Places.program("libframelib.so"))
    chain_is(profile, "main", "in_library", "call_back", "deeper", *SPIN)


def test_profile_of_a_go_program(case):
    """It has no unwind tables. Frame pointers lead to the begin of each goroutine: past a function that keeps none."""
    go = shutil.which("go")
    if not go:
        raise Skip("no compiler of Go")
    program = case.path("go_chain")
    built = subprocess.run([go, "build", "-o", program, "."], cwd=os.path.join(Places.root, "tests/programs/go_chain"),
                           env={**os.environ, "GOCACHE": case.path("cache"), "GOFLAGS": "-buildvcs=false"},
                           capture_output=True, text=True, check=False)
    checks.equal(f"built ({built.stderr[-300:]})", 0, built.returncode)
    process = profiles.started(case, program)
    profile = profiles.take(case, ["-p", process.pid])
    profiles.ended(process)
    names = profile.names()
    for begin, called in (("runtime.main", "main.main"), ("main.main.func", "main.work")):
        if not any(stack[0].startswith(begin) and stack[1] == called and "main.spin" in stack for stack in names):
            raise Failure(f"nothing spins in {called}: {names}")
    share = re.search(r"(?:all|(\d+\.\d) % of) \d+ stacks reach their begin", profile.said())
    if not share or (share[1] and float(share[1]) < 90):
        raise Failure(f"how whole they are: {profile.said()}")


def test_profile_a_library_that_comes_later(case):
    """Stacks end in it until it was looked at, and are whole soon."""
    profile = of_program(case, "frames", "late", Places.program("libframelib.so"), seconds=3)
    inside = {names: n for names, n in profile.names().items() if "deeper" in names}
    whole = sum(n for names, n in inside.items()
                if profiles.from_main(user_side(names)) ==
                ("main", "in_late_library", "in_library", "call_back", "deeper", *SPIN))
    if whole < 100 or sum(inside.values()) - whole > 200:
        raise Failure(f"{whole} of {sum(inside.values())} in the library are whole: {inside}")


def test_profile_while_exceptions_are_thrown(case):
    """
    The frames within the runtime of C++ are its own; those around them are known. Its unwinder leaves by writing
    another return address into its own frame: for these few instructions no walk can be right.
    """
    outer = ("main", "catcher")
    profile = of_program(case, "framethrow")

    def right(names):
        names = profiles.from_main(user_side(names))
        throwers = sum(name == "thrower" for name in names)
        return names[:2] == outer and names[2:2 + throwers] == ("thrower",) * throwers
    share_of(profile, right, 0.97)
    eight = sum(n for names, n in profile.names().items() if names.count("thrower") == 8)
    if eight < 0.8 * profile.samples:
        raise Failure(f"in eight frames: {eight} of {profile.samples}")


def test_profile_each_thread(case):
    profile = of_program(case, "frames", "threads", 4)
    seen = set()

    def right(names):
        names = profiles.from_main(user_side(names), "dive_in_thread")
        dives = names.count("dive")
        seen.add(dives)
        return names == ("dive_in_thread", *["dive"] * dives, *SPIN)
    share_of(profile, right)
    checks.equal("depths", {1, 2, 3, 4}, seen)


def outermost(case, process, option, count):
    """The frames that an option puts at the outer end."""
    path = case.path(option + ".folded")
    trace = case.cuscope("profile", "-F", 999, "--duration", f"{harness.patience}s", "-o", path, option, "-p",
                         process.pid)
    checks.equal("status", 0, trace.wait())
    return {names[:count] for names in profiles.folded(path)}


def test_profile_threads_and_processes_apart(case):
    process = profiles.started(case, Places.program("frames"), "threads", 3)
    name = f"frames ({process.pid})"
    checks.equal("processes", {(name,)}, outermost(case, process, "--per-process", 1))
    threads = outermost(case, process, "--per-thread", 2)
    tids = {tid for tid in os.listdir(f"/proc/{process.pid}/task")}
    for outer, thread in threads:
        checks.equal("of the process", name, outer)
        called, _, tid = thread.partition(" (")
        if called != "frames" or tid.rstrip(")") not in tids:
            raise Failure(f"{thread} is none of {tids}")
    checks.equal("threads", 3, len(threads))
    profiles.ended(process)


def test_profile_parent_and_child_of_a_fork(case):
    process = profiles.started(case, Places.program("frames"), "fork", 3)
    parent = profiles.take_of_spinning(case, ["-p", process.pid])
    chain_is(parent, "main", "in_fork", *["dive"] * 3, *SPIN)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        both = profiles.take(case, ["-p", f"{process.pid},{children.read().strip()}"], name="both")
    chains = {profiles.from_main(user_side(names)) for names in both.names()}
    for depth in 3, 4:
        if ("main", "in_fork", *["dive"] * depth, *SPIN) not in chains:
            raise Failure(f"nothing of depth {depth}: {chains}")
    profiles.ended(process)


def test_profile_a_command_that_execs(case):
    """Samples of the first moments come before anything is known of it."""
    process = case.cuscope("profile", "-F", 999, "-o", case.path("p.pb.gz"), "--", Places.program("frames"), "exec",
                           7, stdin=subprocess.PIPE)
    wait_until(lambda: profiles.processor_seconds(harness.descendants(process.pid)) > 2, "it to run for 2 s", 60)
    profiles.ended(process)
    profile = profiles.Profile(case.path("p.pb.gz"))
    chain_is(profile, "main", *["dive"] * 7, *SPIN, least=0.9)


def test_profile_a_process_that_ends_at_once(case):
    for ending in "pb.gz", "folded":
        process = case.cuscope("profile", "-F", 999, "-o", case.path("p." + ending), "--", Places.program("frames"),
                               "exit")
        checks.equal("status", 0, process.wait())
        checks.equal("what it said", "", profiles.without_how_whole(process.err()))
    profiles.Profile(case.path("p.pb.gz"))


def test_profile_of_a_stripped_program(case):
    """Frames are there, and names are not."""
    profile = of_program(case, "frames-stripped", "recursion", 6)
    share_of(profile, lambda names: user_side(names)[-9:] == ("[frames-stripped]",) * 9)


def test_profile_deeper_than_is_kept(case):
    profile = of_program(case, "frames", "recursion", 2000)
    share_of(profile, lambda names: user_side(names)[-2:] == SPIN and names.count("dive") > 1000)
    checks.contains("why they are not whole", "0 .*whole.*deeper than", profile.said())


def test_profile_in_the_kernel(case):
    """A system call's frames stand on those of who made it."""
    profile = of_program(case, "frames", "zeros")
    inner = sum(n for names, n in profile.names().items() if "vfs_read" in names)
    if inner < 0.8 * profile.samples:
        raise Failure(f"{inner} of {profile.samples} are in vfs_read: {profile.names().most_common(3)}")
    share_of(profile, lambda names: profiles.from_main(names)[:2] == ("main", "read_zeros"))


def in_the_clock(names):
    """The vdso's own frames, with or without names, stand on the C library's."""
    return profiles.from_main(user_side(names))[:2] == ("main", "read_the_clock")


def test_profile_through_the_kernel_s_own_library(case):
    profile = of_program(case, "frames", "clock")
    share_of(profile, in_the_clock)
    if not any("[vdso]" in names or "__vdso_clock_gettime" in names for names in profile.names()):
        raise Failure(f"the vdso was never seen: {profile.names().most_common(4)}")


def test_profile_a_stack_pointer_that_leads_nowhere(case):
    profile = of_program(case, "frames", "nowhere")
    share_of(profile, lambda names: user_side(names) in (("in_nowhere",),
                                                         ("_start",) + user_side(names)[1:]), 0.9)
    checks.contains("why they are not whole", "could not be read", profile.said())


def test_profile_through_returns_that_are_probed(case):
    """A trace that runs beside puts the kernel's trampoline in the place of return addresses, one in the other."""
    process = profiles.started(case, Places.program("frames"), "driver")
    trace = case.start_trace(target=["-p", process.pid])
    case.attached(trace)
    profile = profiles.take_of_spinning(case, ["-p", process.pid])
    trace.signal(2)
    result = case.result(trace)
    profiles.ended(process)
    if not any(call.get("duration_us") for call in result.calls(name="cuSimCallback")):
        raise Failure("no return was probed")
    between = "cuSimCallback"
    chain = ["main", "in_driver", between, "call_back_once_more", between, "spin_in_callback", "spin"]

    def right(names):
        """Within the driver, functions may stand between: the library's own. While a probe runs some have not been called yet."""
        known = [name for name in profiles.from_main(user_side(names)) if name in chain]
        probed = any("uprobe" in name or "uretprobe" in name for name in names)
        return known == chain or (probed and known == chain[:len(known)] and len(known) > 1)
    share_of(profile, right, 0.99)
    checks.contains("the whole ones", r"all \d+ stacks whole|99\.\d % of|100\.0 % of", profile.said())


def frames_by_gdb(pid):
    """Names and addresses, innermost first."""
    text = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "set print frame-arguments none", "-ex",
                           "set backtrace past-main on", "-ex", "set backtrace past-entry on", "-ex", "bt"],
                          capture_output=True, text=True, timeout=60, check=False).stdout
    return [(name, int(address, 16)) for address, name in re.findall(r"^#\d+ +0x([0-9a-f]+) in (\S+) \(", text, re.M)
            ] or [Failure(text)]


def in_files(pid, addresses):
    """Where in their files addresses are."""
    with open(f"/proc/{pid}/maps") as file:
        maps = [line.split()[:3] for line in file]
    found = []
    for address in addresses:
        for extent, _, offset in maps:
            begin, end = (int(word, 16) for word in extent.split("-"))
            if begin <= address < end:
                found.append(address - begin + int(offset, 16))
    return found


def test_profile_is_what_gdb_says(case):
    """Frame by frame, to the byte: but for the innermost, which is where the program happens to be."""
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    for program in ("library", Places.program("libframelib.so")), ("alloca", 12), ("recursion", 30):
        process = profiles.started(case, Places.program("frames"), *program)
        profile = profiles.take(case, ["-p", process.pid], 0.5, name=program[0])
        by_gdb = frames_by_gdb(process.pid)
        if isinstance(by_gdb[0], Failure):
            raise by_gdb[0]
        outer = by_gdb[-1 - [name for name, _ in reversed(by_gdb)].index("spin_until_over"):]
        expected = in_files(process.pid, [address - 1 for _, address in outer])
        profiles.ended(process)
        chains = collections.Counter()
        for stack, n in profile.stacks.items():
            names = [frame.name for frame in stack]
            if "spin" in names:
                chains[tuple(frame.address for frame in reversed(stack[:names.index("spin")]))] += n
        checks.equal(f"frames of {program[0]}", tuple(expected), chains.most_common(1)[0][0])


def backward(case, program):
    """As PyTorch's: run by a thread of the engine's, asked for by another one."""
    profile = of_program(case, program, seconds=2)
    share_of(profile, lambda names: "compute_gradients" not in " ".join(names) or
             [name.split("(")[0].split("::")[-1] for name in profiles.from_main(user_side(names))][:5] ==
             ["main", "call_backward", "execute", "thread_main", "compute_gradients"])
    inside = sum(n for names, n in profile.names().items() if "compute_gradients" in " ".join(names))
    if inside < profile.samples / 2:
        raise Failure(f"{inside} of {profile.samples} samples are in the pass: {profile.names()}")


def test_profile_a_backward_pass_stands_under_who_asked(case):
    backward(case, "engine")


def test_profile_a_backward_pass_of_an_engine_that_is_not_exported(case):
    backward(case, "libtorch_python_engine")
