# SPDX-License-Identifier: MIT
"""`cuscope why`: what it watches and reads, what it leaves behind, and how it ends. What it answers is asked elsewhere."""

import json
import os
import pwd
import signal
import stat
import subprocess
import sys

import checks
from harness import Failure, Places, alone, wait_until

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
MEMBERS = {"schema", "gpus", "first", "next"}


def golden(name="gpu"):
    return os.path.join(GOLDEN, name + ".cuscope")


def start(case, *words, **more):
    """Its temporary files go to a folder of their own."""
    os.makedirs(case.path("temporary"), exist_ok=True)
    return case.cuscope("why", *words, env=dict(case.environment(), TMPDIR=case.path("temporary")), **more)


def start_loop(case, *arguments):
    """A program with calls until its input ends; waits for its first one."""
    program = case.program("loop", *(arguments or (60, 200)), stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    return program


def windows_of(case, program, *options):
    """For how long the account of a program is that was watched for five seconds, and what is said to be not known."""
    program = case.program(*program, stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    answer = answers(start(case, "-p", program.pid, "--duration", "5s", "--format", "json", *options))
    program.process.stdin.close()
    checks.equal("status of the program", 0, program.wait())
    checks.equal("GPU times", "records", answer["gpu_times"])
    return answer["gpus"][0]["ns"] / 1e9, "what GPUs did between the windows" in "\n".join(answer["not_known"])


@alone
def test_why_gpu_times_are_of_windows_where_they_cost_more(case):
    seconds, windows = windows_of(case, ("gpuloop", 60, 100))
    if not 0.1 < seconds < 2.5:
        raise Failure(f"the account is of {seconds:.2f} s of 5")
    checks.equal("windows are told", True, windows)


def test_why_gpu_times_that_cost_little_or_are_asked_for_are_of_all_the_time(case):
    for program, options in ((("loop", 60, 100), ()), (("gpuloop", 60, 100), ("--gpu",))):
        seconds, windows = windows_of(case, program, *options)
        if seconds < 3:
            raise Failure(f"the account of {program[0]} is of {seconds:.2f} s of 5")
        checks.equal("windows are told", False, windows)


def answers_of(text):
    """The objects that stand one after the other."""
    decoder, found = json.JSONDecoder(), []
    text = text.strip()
    while text:
        answer, end = decoder.raw_decode(text)
        checks.equal("schema", "cuscope-why-1", answer["schema"])
        checks.equal("members that are not there", set(), MEMBERS - answer.keys())
        found.append(answer)
        text = text[end:].strip()
    return found


def answers(process, status=0):
    """One object and nothing else on its standard output."""
    checks.equal("status", status, process.wait())
    found = answers_of(process.out())
    checks.equal("answers", 1, len(found))
    return found[0]


def silent(what, status, said, process):
    checks.equal(f"{what}: status", status, process.wait())
    checks.contains(f"{what}: message", said, process.err())
    checks.equal(f"{what}: standard output", "", process.out())


# ---- recordings ----------------------------------------------------------------------------------


def test_why_of_a_recording_is_what_the_report_prints(case):
    for form, table in (("text", "table"), ("json", "json")):
        process = start(case, golden(), "--format", form)
        checks.equal("status", 0, process.wait())
        report = case.cuscope("report", golden(), "why", "--format", table)
        checks.equal("status of the report", 0, report.wait())
        checks.equal(form, report.out(), process.out())
    answers_of(process.out())


def test_why_answers_of_each_of_several_recordings(case):
    """One that cannot be read keeps nobody from the others, and each has its name above it."""
    with open(case.path("text.cuscope"), "w") as file:
        file.write("no recording\n")
    paths = [golden(), case.path("text.cuscope"), golden("plain")]
    process = start(case, *paths)
    checks.equal("status", 1, process.wait())
    checks.equal("names", [paths[0] + ":", paths[2] + ":"], [line for line in process.out().splitlines() if line.endswith(".cuscope:")])
    checks.contains("message", r"text\.cuscope is no trace: such a file is made by 'cuscope record'", process.err())
    process = start(case, *paths, "--format", "json")
    checks.equal("status", 1, process.wait())
    checks.equal("answers", 2, len(answers_of(process.out())))


def test_why_of_what_is_no_recording(case):
    with open(case.path("empty.cuscope"), "wb"):
        pass
    os.mkdir(case.path("none"))
    for path, said in ((case.path("empty.cuscope"), "is empty: nothing was recorded in it"), (case.path("missing.cuscope"), "cannot read .*No such file"),
                       (case.path("none"), "no recording .*in "), (case.folder, "is empty: nothing was recorded in it"), ("/dev/null", "is not a regular file"),
                       (Places.program("loop"), "loop is no recording: to start it, put -- before it")):
        silent(path, 1, said, start(case, path))


def test_why_of_a_damaged_recording_is_of_what_could_be_read(case):
    with open(golden(), "rb") as file:
        good = file.read()
    half = len(good) // 2
    for name, content in (("cut", good[:half]), ("damaged", good[:half - 500] + good[-700:])):
        with open(case.path(name + ".cuscope"), "wb") as file:
            file.write(content)
    for name, said in (("cut", "has no end, the recording was cut short"), ("damaged", "is damaged at byte")):
        process = start(case, case.path(name + ".cuscope"), "--format", "json")
        answers(process, status=1)
        checks.contains(name, said, process.err())


def test_why_needs_no_root_for_a_recording(case):
    """And says what it lacks where it is to watch."""
    nobody = pwd.getpwnam("nobody").pw_uid
    with open(golden(), "rb") as file:
        trace = file.read()
    process = case.start("/bin/sh", "-c", "cat > /dev/null; exec \"$@\"", "sh", Places.cuscope(), "--version", user=nobody)
    if process.wait():
        raise Failure(f"nobody cannot start cuscope: {process.err()}")
    path = case.path("readable.cuscope")
    with open(path, "wb") as file:
        file.write(trace)
    os.chmod(path, 0o644)
    answers(case.cuscope("why", path, "--format", "json", user=nobody))
    process = case.cuscope("why", "-p", os.getpid(), "--duration", "1s", user=nobody)
    checks.equal("status", 1, process.wait())
    checks.contains("message", "(?i)root|CAP_|permission|refuse", process.err())
    checks.equal("standard output", "", process.out())


def test_why_refuses_what_does_not_go_together(case):
    run = golden()
    for words, said in (([], "of what\\? A recording, a command after --, -p PID"), (["--"], "of what\\?"),
                        ([run, "-p", "1"], "-p is for watching what runs"), ([run, "--duration", "1s"], "--duration is for watching"),
                        ([run, "-o", "x"], "--output is for watching"), ([run, "--no-gpu"], "--no-gpu is for watching"),
                        ([run, "--", "true"], "a command after -- is for watching"), ([run, "--max-overhead", "5%"], "--max-overhead is for watching"),
                        (["-p", "1", "--all"], "give one kind of target"), (["-p", "1", "--force"], "--force goes with --output"),
                        (["-p", "1", "--no-gpu", "--cupti", "x"], "--cupti is for GPU times"), (["-p", "x"], "is no list of process ids"),
                        (["-p", "1", "--duration", "long"], "is no duration"), ([run, "--format", "csv"], "'csv' is no format \\(text or json\\)"),
                        ([run, "--color", "red"], "is no choice"), (["--user", "nobody", "-p", "1"], "--user goes with a command"),
                        (["--durration", "1s"], "did you mean '--duration'")):
        silent(" ".join(words), 2, "cuscope why: .*" + said, start(case, *words))


def test_why_that_cannot_be_written_is_a_failure(case):
    for form in ("text", "json"):
        with open("/dev/full", "w") as full:
            process = start(case, golden(), "--format", form, stdout=full)
        checks.equal("status", 1, process.wait())
        checks.contains("message", "No space left on device", process.err())


# ---- watching ------------------------------------------------------------------------------------


def test_why_records_all_that_an_answer_is_made_of(case):
    program = start_loop(case)
    path = case.path("kept.cuscope")
    process = start(case, "-p", program.pid, "--duration", "2s", "-o", path, "--format", "json", "--cupti", Places.simcuda("libcupti.so.13"))
    answers(process)
    checks.contains("what it kept", r"kept\.cuscope: \d+ events in .*; next: cuscope report", process.err())
    checks.equal("permissions", 0o600, stat.S_IMODE(os.stat(path).st_mode))
    told = case.cuscope("info", "--json", path)
    checks.equal("status of info", 0, told.wait())
    told = json.loads(told.out())
    for what in ("calls", "activities"):
        if not told[what]:
            raise Failure(f"no {what}: {told}")
    shown = case.cuscope("info", path)
    shown.wait()
    checks.contains("stacks", r"\nstacks .*samples \(99 a second of each CPU\), .*times blocked", shown.out())
    checks.equal("the program goes on", None, program.process.poll())


def test_why_leaves_nothing_behind(case):
    """No file has a name while it watches, and none is there where it is killed."""
    program = start_loop(case)
    for end in (signal.SIGINT, signal.SIGKILL):
        process = start(case, "-p", program.pid, "--no-gpu", name=f"ends-by-{end}")
        watched(process)
        checks.equal("files while it watches", [], os.listdir(case.path("temporary")))
        process.signal(end)
        process.wait()
        checks.equal("files behind it", [], os.listdir(case.path("temporary")))
    checks.equal("the program goes on", None, program.process.poll())


def recordings_of(process):
    """How long the files without a name are that it writes."""
    sizes = []
    folder = f"/proc/{process.pid}/fd"
    try:
        for name in os.listdir(folder):
            if "/temporary/" in os.readlink(os.path.join(folder, name)):
                sizes.append(os.stat(os.path.join(folder, name)).st_size)
    except OSError:
        pass
    return sizes


def watched(process):
    """Waits until something is in its recording."""
    wait_until(lambda: max(recordings_of(process), default=0) > 300, "a recording that grows", 60)


def test_why_has_a_file_that_nobody_else_can_open(case):
    program = start_loop(case)
    process = start(case, "-p", program.pid, "--no-gpu", "--duration", "2s")
    watched(process)
    folder = f"/proc/{process.pid}/fd"
    modes = {stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)
             if "/temporary/" in os.readlink(os.path.join(folder, name))}
    checks.equal("permissions", {0o600}, modes)
    checks.equal("status", 0, process.wait())


def test_why_is_asked_to_end_and_answers_of_what_it_has(case):
    program = start_loop(case)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = start(case, "-p", program.pid, "--no-gpu", "--format", "json", "--duration", "60s", name=f"ends-by-{number}")
        watched(process)
        process.signal(number)
        answers(process)


def test_why_of_a_program_that_ends_meanwhile(case):
    program = start_loop(case)
    process = start(case, "-p", program.pid, "--no-gpu", "--format", "json", "--duration", "60s")
    watched(process)
    program.process.stdin.close()
    answers(process)
    checks.equal("status of the program", 0, program.wait())


def test_why_of_a_program_that_is_idle(case):
    """Calls ended before, and CUDA is there: nothing is called meanwhile."""
    program = start_loop(case, 60, 1)
    os.kill(program.pid, signal.SIGSTOP)
    process = start(case, "-p", program.pid, "--no-gpu", "--format", "json", "--duration", "1s")
    answers(process)
    os.kill(program.pid, signal.SIGCONT)


def test_why_of_a_program_without_cuda(case):
    program = case.start("/bin/sleep", "60")
    process = start(case, "-p", program.pid, "--duration", "1s", "--format", "json")
    checks.equal("GPUs", [], answers(process)["gpus"])
    checks.contains("message", "nothing was traced: no target was seen to load CUDA", process.err())
    process = start(case, "-p", program.pid, "--timeout", "500ms", name="gives-up")
    checks.equal("status", 1, process.wait())
    checks.contains("message", "no CUDA library was loaded within 0.5 s", process.err())


def test_why_of_no_process(case):
    silent("a process that is not there", 1, "there is no process 4194305|no process", start(case, "-p", "4194304"))
    process = start(case, "--name", "there-is-no-such-program", "--duration", "1s", "--format", "json")
    checks.equal("GPUs", [], answers(process)["gpus"])
    checks.contains("message", "no matching process", process.err())


def test_why_of_a_program_of_another_user(case):
    nobody = pwd.getpwnam("nobody").pw_uid
    program = case.program("loop", 60, 200, stdin=subprocess.PIPE, user=nobody)
    wait_until(lambda: "ready" in program.out(), "the program to begin")
    process = start(case, "-p", program.pid, "--duration", "1s", "--format", "json", "-o", case.path("other.cuscope"))
    answers(process)
    told = case.cuscope("info", "--json", case.path("other.cuscope"))
    told.wait()
    if not json.loads(told.out())["calls"]:
        raise Failure(f"no calls: {process.err()}")


def test_why_sees_what_runs_below_a_process_already(case):
    """The workers of a program that has run for long, but with --no-follow."""
    parent = case.start("/bin/sh", "-c", f"{Places.program('loop')} 60 200; true", stdin=subprocess.PIPE)
    wait_until(lambda: "ready" in parent.out(), "the program to begin")
    for options, calls in (((), True), (("--no-follow",), False)):
        path = case.path(f"kept{len(options)}.cuscope")
        process = start(case, "-p", parent.pid, "--no-gpu", "--duration", "2s", "-o", path, *options)
        checks.equal("status", 0, process.wait())
        told = case.cuscope("info", "--json", path)
        told.wait()
        checks.equal(f"calls, {options}", calls, json.loads(told.out())["calls"] > 0)
    parent.process.stdin.close()


SERVER = """import socket, sys, time
def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
client, _ = listening.accept()
while client.recv(1):
    compute(0.03)
    client.send(b"x")
"""
CLIENT = """import socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
print("ready", flush=True)
while server.send(b"x") and server.recv(1):
    pass
"""


@alone  # its samples are few where others take its CPUs
def test_why_samples_who_is_waited_for(case):
    """A server that nobody named and that no target has started: in which line it makes others wait."""
    server = case.start(sys.executable, "-c", SERVER, case.path("socket"), name="server")
    wait_until(lambda: "ready" in server.out(), "the server")
    client = case.start(sys.executable, "-c", CLIENT, case.path("socket"), name="client")
    wait_until(lambda: "ready" in client.out(), "the client")
    process = start(case, "-p", client.pid, "--no-gpu", "--duration", "6s", "-o", case.path("kept.cuscope"))
    checks.equal("status", 0, process.wait())
    checks.contains("what it says", rf"process {server.pid} \(.*\), which process {client.pid} waits for, is sampled, too", process.err())
    profile = case.cuscope("profile", case.path("kept.cuscope"), "--per-process", "-o", case.path("kept.folded"))
    checks.equal("status of the profile", 0, profile.wait())
    with open(case.path("kept.folded")) as file:
        checks.contains("stacks", rf"(?m)^[^;\n]*{server.pid}[^\n]*;compute", file.read())
    process = case.cuscope("record", "--stacks", "-p", client.pid, "--duration", "1s", "-o", case.path("record.cuscope"))
    checks.equal("status", 0, process.wait())
    checks.contains_not("other commands", "is sampled, too", process.err())


@alone  # another test would take its file for a GPU's
def test_why_enters_no_copy_of_a_process(case):
    """A child of fork has the device open, and cannot use the CUDA of its parent."""
    device = f"/dev/nvidia-uvm-of-{os.getpid()}"
    code = ("import ctypes, os, sys; ctypes.CDLL('libcuda.so.1'); open(sys.argv[1], 'w').close(); held = open(sys.argv[1]); "
            "pid = os.fork(); print(os.getpid() if pid else os.getppid(), pid or os.getpid(), flush=True) if pid else None; "
            "sys.stdin.read()")
    try:
        program = case.start(sys.executable, "-c", code, device, stdin=subprocess.PIPE)
        parent, child = map(int, wait_until(lambda: program.out().split() if "\n" in program.out() else None, "the program"))
        process = start(case, "-p", parent, "--duration", "2s", "--cupti", Places.simcuda("libcupti.so.13"))
        checks.equal("status", 0, process.wait())
        for pid, entered in ((parent, True), (child, False)):
            with open(f"/proc/{pid}/maps") as maps:
                checks.equal(f"{'parent' if entered else 'child'} is entered", entered, "cuscope" in maps.read().replace(Places.root, ""))
    finally:
        os.unlink(device)


def test_why_without_gpu_times_is_an_answer(case):
    """Where none can be had that is no failure: nobody asked for them."""
    case.env = {"SIMCUPTI_BUSY": "1"}
    program = start_loop(case)
    process = start(case, "-p", program.pid, "--duration", "2s", "--format", "json", "--cupti", Places.simcuda("libcupti.so.13"))
    answers(process)
    checks.contains("why there are none", f"another profiler .*process {program.pid}", process.err())
    for path, said in (("/bin/true", "no libcupti"), ("/nothing", "cannot open")):
        silent(path, 1, "--cupti: .*" + said, start(case, "--cupti", path, "-p", program.pid))


# ---- a command -----------------------------------------------------------------------------------


def test_why_has_the_status_of_its_command(case):
    for command, status in (("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + signal.SIGTERM)):
        process = start(case, "--format", "json", "--no-gpu", "--", "/bin/sh", "-c", f"{Places.program('memory')}; {command}")
        answers(process, status=status)


def test_why_of_a_command_that_cannot_be_run(case):
    silent("one that is not there", 127, "cannot run '/nothing/app': No such file", start(case, "--", "/nothing/app"))
    silent("one that is none", 127, "cannot run .*Permission denied", start(case, "--", "/etc/passwd"))
    checks.equal("files", [], os.listdir(case.path("temporary")))
    path = case.path("kept.cuscope")
    silent("one that is not there, kept", 127, "cannot run", start(case, "-o", path, "--", "/nothing/app"))
    checks.equal("a recording of nothing", False, os.path.exists(path))


def test_why_answers_before_a_command_that_runs_on_is_waited_for(case):
    process = start(case, "--no-gpu", "--duration", "1s", "--format", "json", "--", Places.program("loop"), "60", "200", stdin=subprocess.PIPE)
    wait_until(lambda: "is over; waiting for the command" in process.err(), "the watching to end", 60)
    checks.equal("it waits", None, process.process.poll())
    checks.equal("answers", 1, len(answers_of(process.out())))
    checks.equal("files", [], os.listdir(case.path("temporary")))
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())
    checks.equal("answers at its end", 1, len(answers_of(process.out())))


def test_why_watches_a_command_from_its_first_work_on(case):
    """However long it takes to start: of a program that imports for ten seconds nothing else would be seen."""
    path = case.path("kept.cuscope")
    process = start(case, "--no-gpu", "--duration", "1s", "-o", path, "--", "/bin/sh", "-c",
                    f"sleep 3; {Places.program('loop')} 60 200", stdin=subprocess.PIPE)
    wait_until(lambda: "is over; waiting for the command" in process.err(), "the watching to end", 60)
    checks.contains("what it says meanwhile", "no work for a GPU yet: the 1 s begin with the first", process.err())
    told = case.cuscope("info", "--json", path)
    told.wait()
    if json.loads(told.out())["calls"] < 100:
        raise Failure(f"{json.loads(told.out())['calls']} calls only")
    process.process.stdin.close()
    checks.equal("status", 0, process.wait())


def test_why_has_the_standard_output_to_itself(case):
    """A program reads it: what the command prints goes to standard error."""
    process = start(case, "--no-gpu", "--format", "json", "--", "/bin/sh", "-c", f"echo of the command; {Places.program('memory')}")
    answers(process)
    checks.contains("standard error", "of the command", process.err())


def test_why_takes_options_of_its_command_as_they_are(case):
    process = start(case, "--no-gpu", "--format", "json", "--", "/bin/sh", "-c", "echo \"$@\"", "sh", "-o", "--format", "--", "-p")
    answers(process)
    checks.contains("standard error", "(?m)^-o --format -- -p$", process.err())


# ---- the recording that is kept ------------------------------------------------------------------


def test_why_keeps_a_recording_where_it_may(case):
    path = case.path("kept.cuscope")
    with open(path, "w") as file:
        file.write("mine\n")
    silent("what is there", 1, "kept.cuscope exists already: --force overwrites it", start(case, "-o", path, "--", Places.program("memory")))
    with open(path) as file:
        checks.equal("what was there", "mine\n", file.read())
    silent("a device", 1, "cannot record to /dev/null: it is not a regular file", start(case, "-o", "/dev/null", "--", Places.program("memory")))
    silent("standard output", 1, "cannot record to -: it is not a regular file", start(case, "-o", "-", "--", Places.program("memory")))
    process = start(case, "-o", path, "--force", "--output-mode", "0640", "--no-gpu", "--format", "json", "--", Places.program("memory"))
    answers(process)
    checks.equal("permissions", 0o640, stat.S_IMODE(os.stat(path).st_mode))
    again = start(case, path, "--format", "json")
    checks.equal("the same answer of what was kept", answers_of(process.out()), [answers(again)])
