# SPDX-License-Identifier: MIT
"""The target's behaviour never changes, whatever becomes of cuscope."""

import os
import shutil
import signal
import subprocess
import time

import checks
from harness import Failure, Places, Skip, alone, wait_until


def numbers(process):
    return [float(line) for line in process.out().split()]


def median(values):
    return sorted(values)[len(values) // 2]


@alone
def test_kill_9_of_cuscope_leaves_the_target_running_and_unhooked(case):
    """A call costs again what it did before."""
    target = case.program("tight", 0)
    wait_until(lambda: len(numbers(target)) > 20, "the target")
    bare = median(numbers(target))
    trace = case.start_trace(["--only", "cuCtxSetCurrent", "--summary-only"], ["-p", target.pid])
    wait_until(lambda: numbers(target)[-1] > bare * 5, "hooks to cost something")
    trace.signal(signal.SIGKILL)
    trace.wait()
    wait_until(lambda: numbers(target)[-1] < bare * 3 + 20, "calls to be cheap again", 10)
    before = len(numbers(target))
    wait_until(lambda: len(numbers(target)) > before + 50, "the target to go on")
    again = median(numbers(target)[-20:])
    if again > 3 * bare + 20:
        raise Failure(f"{again} ns a call, {bare} before")
    checks.equal("it runs", None, target.process.poll())


@alone
def test_kill_9_of_cuscope_while_it_holds_a_command(case):
    """The command goes on: tracing by ptrace ends with the tracer."""
    counts = case.path("counts")
    for round_ in range(5):
        if os.path.exists(counts):
            os.unlink(counts)
        process = case.cuscope("trace", "--summary-only", "--", Places.program("dlopen"), "--thread",
                               "libcuda.so.1", "libcudart.so.13", name=f"round{round_}")
        # at moments that are spread over its start
        time.sleep(0.1 + 0.06 * round_)
        process.signal(signal.SIGKILL)
        process.wait()
        children = subprocess.run(["pgrep", "-f", Places.program("dlopen")], capture_output=True,
                                  text=True, check=False).stdout.split()
        for child in children:
            wait_until(lambda c=child: not os.path.exists(f"/proc/{c}"),
                       f"the command to end, it is {state(child)}", 5)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def test_end_of_cuscope_leaves_no_probes(case):
    if not shutil.which("bpftool"):
        raise Skip("bpftool is not installed")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        target = case.program("loop", 30, 200, stdin=subprocess.PIPE)
        wait_until(lambda t=target: "ready" in t.out(), "the loop")
        trace = case.start_trace([], ["-p", target.pid], name=f"t{number}")
        case.attached(trace)
        trace.signal(number)
        trace.wait()
        wait_until(lambda pid=trace.pid: not links_of(pid), "its links to be gone", 5)
        target.process.stdin.close()
        checks.equal("status of the target", 0, target.wait())


def links_of(pid):
    text = subprocess.run(["bpftool", "-j", "link", "show"], capture_output=True, text=True,
                          check=False).stdout
    return f'"pid":{pid},' in text


def test_target_under_seccomp_survives_with_returns(case):
    result = case.trace("seccomp")
    checks.everything(result)


def test_target_under_seccomp_survives_on_a_kernel_that_would_kill_it(case):
    """There only entries are hooked for it, and that is said."""
    result = case.trace("seccomp", options=["--without", "seccomp"])
    checks.valid(result)
    checks.calls(result)
    checks.launches(result)
    before = [c for c in result.calls(name="cuMemAlloc_v2", size=1000)]
    after = [c for c in result.calls(name="cuMemAlloc_v2") if c["size"] >= 2000]
    checks.equal("with a duration, before the filter", 1, sum("duration_us" in c for c in before))
    checks.equal("with a duration, after it", 0, sum("duration_us" in c for c in after))
    hooks = result.summary["missed"]["hooks"]
    if not any(h["kind"] == "entry_only" for h in hooks):
        raise Failure(f"not said: {hooks}")


def test_of_many_processes_under_seccomp_the_last_miss_stands_for_all_others(case):
    program = Places.program("seccomp")
    result = case.trace("/bin/sh", "-c", f"for i in $(seq 70); do {program}; done",
                        options=["--without", "seccomp"])
    told = [hook for hook in result.summary["missed"]["hooks"] if "under seccomp" in hook["why"]]
    checks.equal("misses", 65, len(told))
    checks.contains("the last", "more processes than these are under seccomp", told[-1]["why"])


def test_running_target_under_seccomp(case):
    """A filter that is there before the trace is found in /proc."""
    target = case.start("/bin/sh", "-c", "exec \"$@\"", "sh", Places.program("loop"), "30", "100",
                        stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in target.out(), "the loop")
    trace = case.start_trace([], ["-p", target.pid])
    case.attached(trace)
    wait_until(lambda: os.path.getsize(case.path("trace.jsonl")) > 3000, "calls")
    target.process.stdin.close()
    checks.equal("status", 0, target.wait())
    checks.valid(case.result(trace))


def test_descriptors_and_environment_stay(case):
    """A program sees three descriptors, whichever cuscope has open."""
    process = case.cuscope("trace", "--summary-only", "--", "/bin/ls", "/proc/self/fd")
    checks.equal("status", 0, process.wait())
    checks.equal("descriptors", "0 1 2 3", " ".join(process.out().split("===")[0].split()))


def test_standard_input_goes_to_the_command(case):
    process = case.cuscope("trace", "--summary-only", "-o", case.path("s"), "--", "/bin/cat",
                           stdin=subprocess.PIPE)
    process.process.stdin.write(b"through\n")
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    checks.equal("output", "through\n", process.out())


def test_daemon_that_outlives_the_command(case):
    """A child that the command leaves behind goes on when the trace is over."""
    result = case.trace("/bin/sh", "-c", "(sleep 0.7; echo alive > daemon) & exit 3", status=3,
                        cwd=case.folder)
    checks.valid(result)
    wait_until(lambda: os.path.exists(case.path("daemon")), "the child to do its work", 5)


@alone
def test_memory_of_cuscope_is_bounded(case):
    """64 MiB and the rings, however long the trace."""
    process = case.start_trace(["--only", "cuCtxSetCurrent"],
                               ["--", Places.program("tight"), "600000"])
    most = 0

    def ended():
        nonlocal most
        try:
            with open(f"/proc/{process.pid}/status") as file:
                text = file.read()
            if "RssAnon:" in text:
                most = max(most, int(text.split("RssAnon:")[1].split()[0]))
        except OSError:
            pass
        return process.process.poll() is not None

    wait_until(ended, "the trace", 40)
    if not 0 < most < 64 * 1024:
        raise Failure(f"{most} KiB of anonymous memory")


def test_no_returns_where_they_would_kill_and_cannot_be_declined(case):
    result = case.trace("seccomp", options=["--without", "session,seccomp"])
    checks.contains("the notice", "only entries are hooked", result.err)
    checks.equal("calls with a duration", 0, sum("duration_us" in call for call in result.calls()))
