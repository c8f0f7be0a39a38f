# SPDX-License-Identifier: MIT
"""With --gpu calls are recorded inside of processes, unless --no-in-process is there."""

import json
import os
import signal
import subprocess
import time

import checks
from gpu_trace import measures, read, sensible, start
from harness import Failure, Places, alone, wait_until
from test_in_process import told_inside, text_of


def jumps(program):
    """How many bytes of the driver's code begin a jump that its file lacks."""
    memory, file = text_of(program, "libcuda.so.1")
    return sum(here == 0xe9 != there for here, there in zip(memory, file))


def looping(case):
    program = case.program("loop", 120, 500, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program")
    return program


def end(case, process, program):
    """A loop makes the same calls in each round, so that a missing one shows."""
    process.signal(signal.SIGINT)
    checks.equal("status", 0, process.wait())
    trace = read(case)
    sensible(trace, unknown=2)
    if len(trace.kernels) < 50:
        raise Failure(f"{len(trace.kernels)} kernels")
    begins = sorted(call["start"] for call in trace.launches())
    gaps = [later - earlier for earlier, later in zip(begins, begins[1:])]
    if max(gaps) > 500e6:
        raise Failure(f"no launch was told of for {max(gaps) / 1e6} ms")
    program.signal(signal.SIGTERM)


def test_gpu_inside_is_the_default(case):
    program = looping(case)
    before = jumps(program)
    process = start(case, ["-p", program.pid])
    wait_until(lambda: jumps(program) >= before + 50, "functions to be diverted")
    time.sleep(1)
    end(case, process, program)
    if "recorded inside" in process.err() or "keep" in process.err():
        raise Failure(f"it says what nobody asked for: {process.err()}")


def test_gpu_inside_says_so_where_it_was_asked_for(case):
    program = looping(case)
    process = start(case, ["-p", program.pid], ["--in-process"])
    wait_until(lambda: "are recorded inside of process" in process.err(), "functions to be diverted")
    time.sleep(1)
    end(case, process, program)
    checks.contains("it says", r"\d+ calls of \d+ functions were recorded inside of 1 process", process.err())


def not_with(*options):
    def test(case):
        program = looping(case)
        before = jumps(program)
        process = start(case, ["-p", program.pid], options)
        measures(process)
        time.sleep(1.5)
        checks.equal("jumps", before, jumps(program))
        process.signal(signal.SIGINT)
        checks.equal("status", 0, process.wait())
        program.signal(signal.SIGTERM)
    return test


test_gpu_inside_not_with_no_in_process = not_with("--no-in-process")
test_gpu_inside_not_with_both_in_this_order = not_with("--in-process", "--no-in-process")
test_gpu_inside_not_without_returns = not_with("--no-returns")
test_gpu_inside_not_with_a_limit_of_the_cost = not_with("--max-overhead", "20%")
for name, value in list(globals().items()):
    if name.startswith("test_gpu_inside_not"):
        value.__name__ = name


def with_device(case, device):
    """A program that has a device open, and lets its children use CUDA once it is told to."""
    case.env["SAMPLE_WAIT"] = case.path("go")
    open(device, "w").close()
    program = case.program("fork", "opened", device)
    wait_until(lambda: "ready" in program.out(), "the program")
    return program, start(case, ["-p", program.pid])


def is_entered(program):
    with open(f"/proc/{program.pid}/maps") as maps:
        return "cuscope" in maps.read().replace(Places.root, "")


@alone  # another test's traces of programs that run would take its file for a GPU's
def test_gpu_attached_to_who_only_asks_nvml(case):
    """It would be initialised by CUPTI, and CUDA not work in its children."""
    device = f"/dev/nvidia-test-{os.getpid()}"
    try:
        program, process = with_device(case, device)
        until = time.monotonic() + 1.5
        wait_until(lambda: is_entered(program) or time.monotonic() > until, "it to be entered, or not")
        checks.equal("entered", False, is_entered(program))
        open(case.path("go"), "w").close()
        status = process.wait()
        measured = "cuscope: GPU times of process" in process.err()
        checks.equal("status: its children may end before they are entered", 0 if measured else 1, status)
        checks.equal("status of the program", 0, program.wait())
    finally:
        os.unlink(device)
    trace = read(case)
    if not trace.launches():
        raise Failure("no launches of its children")
    sensible(trace, unknown=2)


@alone
def test_gpu_attached_to_who_has_cudas_device(case):
    device = f"/dev/nvidia-uvm-test-{os.getpid()}"
    try:
        program, process = with_device(case, device)
        measures(process, program.pid)
    finally:
        os.unlink(device)
    process.signal(signal.SIGINT)
    program.signal(signal.SIGTERM)
    checks.equal("status", 0, process.wait())


# ---- commands: what is short would be over before its functions are diverted, so it waits in cuInit ----

def gpu_times():
    return ["--gpu", "--cupti", Places.simcuda("libcupti.so.13")]


def test_gpu_inside_of_a_short_program(case):
    result = case.trace("threads", "2", "50", options=["--in-process", *gpu_times()])
    checks.valid(result)
    checks.nothing_missed(result)
    launches = len(result.calls(name="cuLaunchKernel"))
    calls = sum("lib" in call for call in result.calls())
    inside = told_inside(result.err)[0]
    if launches != 200 or inside < calls - 10:
        raise Failure(f"{inside} of {calls} calls were recorded inside, {launches} launches")
    init = result.calls(name="cuInit")[0]
    waits = [event for event in result.events if event.get("name") == "Waiting for cuscope"]
    if len(waits) != 1 or init["duration_us"] > 500_000:
        raise Failure(f"cuInit took {init['duration_us']} us, and waited: {waits}")


def test_gpu_inside_launches_that_the_runtime_refuses_are_told(case):
    """The driver never hears of them, and the program does not ask for the error. Those that it hears of are told once."""
    for asked in (0, 2):
        result = case.trace("refused", "20", "10", str(asked), name=f"asked{asked}", options=["--gpu"])
        checks.valid(result)
        calls = result.calls(name="cudaLaunchKernel", error="cudaErrorInvalidConfiguration")
        checks.equal("refused launches", 20 + asked, len(calls))
        if asked:  # by the stub's symbol, in a program that is there long enough to be looked into
            checks.equal("their kernels", {"scale(float*, float, int)"}, {call["kernel"] for call in calls})
        checks.equal("failed calls", 20 + asked, result.summary["calls"]["failed"])
        checks.equal("launches", 10, result.summary["launches"]["kernels"])
        checks.equal("in the driver", 10, len(result.calls(name="cuLaunchKernel")))
        checks.equal("nothing is late", [], result.said("hooked_late"))
        checks.contains_not("what it said", "hooked in the runtime as well", result.err)


def diverting(mark):
    """cuscope-divert of the session that has this in its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ") as environ:
                if comm.read().strip() == "cuscope-divert" and mark in environ.read():
                    return int(pid)
        except OSError:
            pass
    return None


def test_gpu_inside_nobody_waits_for_good(case):
    """Who diverts hangs: the program goes on after two seconds, by its probes, and that is said."""
    case.env["GPU_INSIDE_TEST"] = mark = case.path("mark")
    case.env["SIMCUPTI_LOAD_MS"] = "1000"
    begin = time.monotonic()
    process = case.start_trace(["--in-process", *gpu_times()], ["--", Places.program("threads"), "2", "50"])
    pid = wait_until(lambda: diverting(mark), "cuscope-divert")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: "was not diverted within 2 s of its start, and goes on" in process.err(), "a word of that")
        result = case.result(process)
    finally:
        os.kill(pid, signal.SIGCONT)
    checks.valid(result)
    checks.equal("launches", 200, len(result.calls(name="cuLaunchKernel")))
    waits = [event["duration_us"] for event in result.events if event.get("name") == "Waiting for cuscope"]
    if len(waits) != 1 or not 1.9e6 < waits[0] < 3e6:
        raise Failure(f"it waited for {waits} us, in {time.monotonic() - begin:.1f} s")


def waits_of_ranks(case, name):
    """How long each of two ranks of one command stood until cuscope let it go, in milliseconds."""
    command = ["--", os.path.join(Places.build, "planted", "planted"), "rank_prep", "0.5"]
    process = start(case, command, ["--stacks"], name=name, env=dict(case.environment(), SIMCUDA_TIME_SCALE="1"))
    checks.equal(f"status ({process.err()})", 0, process.wait())
    export = case.cuscope("export", case.path(name + ".cuscope"), "--format", "jsonl")
    checks.equal("status of the export", 0, export.wait())
    events = map(json.loads, export.out().splitlines())
    return {event["pid"]: event["duration_us"] / 1000 for event in events if event.get("name") == "Waiting for cuscope"}


def test_gpu_inside_ranks_of_one_command_wait_for_no_probe(case):
    """They have one library of the agent, and the one probe in it is each rank's: else all but the first stand for half a second."""
    longest = []
    for attempt in range(4):
        waits = waits_of_ranks(case, f"ranks{attempt}")
        checks.equal(f"ranks ({waits})", 2, len(waits))
        longest.append(max(waits.values()))
        if longest[-1] < 400:
            return
    raise Failure(f"a rank stood for {longest} ms")
