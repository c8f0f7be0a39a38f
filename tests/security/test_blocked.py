# SPDX-License-Identifier: MIT
"""Whoever is to read what cuscope prints does not: it ends all the same when it is told to."""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import time

import checks
from harness import Places, wait_until

FULL = 60000  # of the 65536 bytes that a pipe has
LIMIT_SECONDS = 20  # two streams, five seconds each, and the end of a trace


def waiting_bytes(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def blocked_trace(case, form):
    """A trace whose standard output is a pipe that nobody reads, when it is full."""
    reader, writer = os.pipe()
    process = case.cuscope("trace", "--format", form, "--", Places.program("loop"), "60", "20000",
                           stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    wait_until(lambda: waiting_bytes(reader) > FULL, "the pipe to be full")
    time.sleep(0.5)
    return process, reader


def test_sigterm_ends_a_trace_that_nobody_reads(case):
    for form in ("jsonl", "table"):
        process, reader = blocked_trace(case, form)
        begin = time.monotonic()
        process.signal(signal.SIGTERM)
        process.wait(LIMIT_SECONDS)
        took = time.monotonic() - begin
        os.close(reader)
        checks.contains(form, r"\d+ bytes of the trace, and what came after them, were not written: the "
                        "program that is to read them does not read", process.err())
        checks.equal(f"{form}: waited for the reader", True, took > 3)


def test_sigterm_ends_pages_that_nobody_reads(case):
    reader, writer = os.pipe()
    os.write(writer, b"x" * 65536)  # all that it has room for
    process = case.cuscope("launches", "--interval", "500ms", "--", Places.program("loop"), "60", "2000",
                           stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    time.sleep(4)
    process.signal(signal.SIGTERM)
    process.wait(LIMIT_SECONDS)
    os.close(reader)
    checks.contains("said", r"\d+ bytes of the pages, and what came after them, were not written", process.err())


def test_a_reader_that_comes_back_gets_all(case):
    """A pager that is not scrolled for longer than the limit is no reason to lose lines."""
    process, reader = blocked_trace(case, "jsonl")
    time.sleep(4)
    read = subprocess.Popen(["tail", "-1"], stdin=reader, stdout=subprocess.PIPE, text=True)
    os.close(reader)
    process.process.stdin.close()
    process.process.stdin = None
    checks.equal("status", 0, process.wait())
    checks.equal("the last line", True, '"type":"summary"' in read.communicate(timeout=20)[0])
