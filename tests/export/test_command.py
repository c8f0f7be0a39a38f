# SPDX-License-Identifier: MIT
"""The command itself: what it takes, what it refuses, and what it leaves behind."""

import fcntl
import os
import pty
import signal
import subprocess
import time

from case import Failure, equal


def said(case, status, sentence, *arguments):
    """One sentence on standard error, nothing on standard output."""
    result = case.cuscope("export", *arguments)
    equal("status", status, result.returncode)
    equal("standard output", "", result.stdout)
    if sentence not in result.stderr:
        raise Failure(f"it said {result.stderr!r}, should have {sentence!r}")


def on_terminal(case, *arguments):
    """Status and text of a run whose output is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([os.path.join(case.build, "cuscope"), "export", *arguments],
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # how a terminal ends
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    return process.wait(timeout=60), text.decode(errors="replace")


def test_command_wants_a_trace_and_a_format(case):
    said(case, 2, "which trace?")
    said(case, 2, "to which format?", case.trace("gpu"))
    said(case, 2, "has the ending of no format", case.trace("gpu"), "-o", case.path("x.xml"))
    said(case, 2, "did you mean 'perfetto'?", case.trace("gpu"), "--format", "perfeto")
    said(case, 2, "is a second one", case.trace("gpu"), case.trace("plain"))


def test_command_refuses_bad_values(case):
    for option, value in (("--from", "x"), ("--to", "-1s"), ("--pid", "me"), ("--rank", "3/3"), ("--rank", "a"),
                          ("--min-duration", "0"), ("--max-events", "0"), ("--kernel", ""), ("--function", "")):
        said(case, 2, f"'{value}' is no", case.trace("gpu"), "-o", case.path("x.json"), f"{option}={value}")
    said(case, 2, "--to is not later than --from", case.trace("gpu"), "-o", case.path("x.json"), "--from", "2s", "--to", "1s")
    said(case, 2, "goes with --format jsonl", case.trace("gpu"), "-o", case.path("x.json"), "--begin-end")


def test_command_gives_the_file_the_mode_that_is_asked_for(case):
    for mode in ("0640", "400"):
        case.export("gpu", mode + ".json", "--output-mode", mode)
        equal("mode", int(mode, 8), os.stat(case.path(mode + ".json")).st_mode & 0o7777)
    for mode in ("rw", "1777", "0200", ""):
        said(case, 2, f"'{mode}' is no mode in octal digits", case.trace("gpu"), "-o", case.path("x.json"), f"--output-mode={mode}")


def test_command_refuses_what_is_no_trace(case):
    path = case.path("x.cuscope")
    for content in (b"", b"not a trace at all, but long enough to be one" * 10):
        with open(path, "wb") as file:
            file.write(content)
        said(case, 1, path, path, "-o", case.path("x.json"))
    said(case, 1, "No such file", case.path("none.cuscope"), "-o", case.path("x.json"))
    equal("files", ["x.cuscope"], os.listdir(case.folder))


def test_command_does_not_overwrite_the_trace_itself(case):
    path = case.path("a.jsonl")
    with open(case.trace("gpu"), "rb") as source, open(path, "wb") as file:
        file.write(source.read())
    said(case, 1, "is the trace itself", path, "-o", path, "--force")


def test_command_overwrites_with_force(case):
    path = case.path("x.json")
    with open(path, "w") as file:
        file.write("old")
    case.export("gpu", "x.json", "--force")
    if os.path.getsize(path) < 1000:
        raise Failure("the old file is still there")
    equal("files", ["x.json"], os.listdir(case.folder))


def test_command_writes_every_format_to_standard_output_and_pipes(case):
    for name in ("table", "jsonl", "log", "csv", "svg", "perfetto", "chrome"):
        command = [os.path.join(case.build, "cuscope"), "export", case.trace("plain"), "--format", name]
        one = subprocess.run(command, capture_output=True, check=True)
        other = subprocess.run([*command, "-o", "/dev/stdout"], capture_output=True, check=True)
        if len(one.stdout) < 1000 or one.stderr:
            raise Failure(f"{name}: {len(one.stdout)} bytes, and {one.stderr!r}")
        equal(f"bytes of {name}", len(one.stdout), len(other.stdout) - (len("/dev/stdout") if name == "chrome" else 0))


def test_command_writes_no_binary_to_a_terminal(case):
    status, text = on_terminal(case, case.trace("gpu"), "--format", "perfetto")
    equal("status", 2, status)
    if "-o FILE.pftrace" not in text or text.count("\n") != 1:
        raise Failure(f"it said {text!r}")
    status, text = on_terminal(case, case.trace("gpu"), "--format", "jsonl")
    equal("status", 0, status)


def test_command_draws_no_bar_for_a_moment(case):
    equal("status and text", (0, ""), on_terminal(case, case.trace("gpu"), "-o", case.path("x.json")))


def test_command_that_waits_for_a_pipe_can_be_interrupted(case):
    """The first signal waits for the conversion, which waits for a reader; the second does not."""
    os.mkfifo(case.path("pipe"))
    reader = os.open(case.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([os.path.join(case.build, "cuscope"), "export", case.trace("gpu"), "--format", "jsonl",
                                "-o", case.path("pipe")], stderr=subprocess.DEVNULL)
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    equal("status", -signal.SIGINT, process.wait(timeout=10))
    os.close(reader)


def test_command_of_a_cut_trace_keeps_what_is_there_and_says_so(case):
    with open(case.trace("gpu"), "rb") as file:
        data = file.read()
    for length in range(len(data) // 4, len(data), 97):
        path, out = case.path("cut.cuscope"), case.path("cut.json")
        with open(path, "wb") as file:
            file.write(data[:length])
        result = case.cuscope("export", path, "-o", out, "--force")
        if result.returncode not in (0, 1) or (result.returncode and not result.stderr):
            raise Failure(f"{length} bytes: status {result.returncode}, {result.stderr!r}")
    equal("left over", [], [name for name in os.listdir(case.folder) if name.endswith(".tmp")])
