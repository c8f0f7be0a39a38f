# SPDX-License-Identifier: MIT
"""Processes that speak for the agent that was to be in them, and lie (tests/security/inside.c): of where
code may be written, of slots, answers, records and messages.

cuscope goes on, within its limits of memory and time; nothing is written but where the process itself
has offered it; and of the honest processes beside it no call is missed."""

import collections
import json
import os

import checks
from harness import Failure, Places, Skip, alone
from test_memory import MIB, peak_of

MOST_MIB = 96
SECONDS = 60

# The hostile one is there before and after each honest one.
SCRIPT = """
"$1" $3 2>"$4" & hostile=$!
"$2" 2 40 || exit 7
"$2" 2 40 || exit 7
wait $hostile
"""


def checked(case, result):
    """Each honest process's calls, as it has counted them."""
    if not result.counts.processes:
        raise Failure("no honest process told what it did")
    for process in result.counts.processes:
        told = result.names(pid=process["pid"])
        checks.equal(f"calls of {process['pid']}", collections.Counter(process["calls"]), told)


def beside(case, *words, status=0):
    if os.uname().machine != "x86_64":
        raise Skip("calls are recorded inside of processes on x86-64 only")
    lies = case.path("lies")
    trace = case.start_trace(["--in-process", "--all-calls"], ["--", "/bin/sh", "-c", SCRIPT, "sh", Places.program("hostile-inside"),
                                                Places.program("threads"), " ".join(map(str, words)), lies])
    peak = peak_of(trace, SECONDS)
    result = case.result(trace)
    with open(lies) as file:
        said = file.read()
    if result.status != status:
        raise Failure(f"{words}: status {result.status}: {said} {result.err[-800:]}")
    if peak > MOST_MIB * MIB:
        raise Failure(f"{words}: {peak / MIB:.0f} MiB of memory")
    checked(case, result)
    return result


def test_memory_for_code_that_is_none(case):
    """Of each kind, by a process of its own: writable, shared, a file's, a library's, too short, nowhere, of the kernel ..."""
    result = beside(case, "areas")
    for sentence in ("holds other code already", "has no area for moved code", "says of what it was asked for makes no sense"):
        checks.contains("why it is refused", sentence, result.err)


def test_memory_for_code_as_it_should_be(case):
    """It is written to, and the library is put back when the agent is gone."""
    result = beside(case, "area", "honest")
    checks.contains("it is diverted", "functions of libcuda.so.1 are recorded inside of process", result.err)


def test_slots_and_earlier_areas_that_make_no_sense(case):
    result = beside(case, "hellos")
    checks.contains("slots", "says of its slots makes no sense", result.err)
    checks.contains("areas", "says of code of earlier recordings makes no sense", result.err)


def test_answers_to_what_was_not_asked(case):
    beside(case, "answers")


@alone
def test_records_at_random(case):
    """Some are calls of functions that the process could have called; all others are counted."""
    lost = beside(case, "records", 6).summary["missed"]["lost"]
    if not lost["gpu_bad_records"]:
        raise Failure("no record was bad")


@alone
def test_counts_at_random(case):
    """They go back, jump and overflow: none is taken that its processors could not have called."""
    result = beside(case, "counts", 3)
    missed = result.summary["missed"]
    if not missed["lost"]["gpu_bad_records"]:
        raise Failure("no count was bad")
    told = [hook for hook in missed["hooks"] if hook["kind"] == "counted"]
    most = (result.summary["duration_seconds"] * 1e9 * os.cpu_count() + 1e6 * 300) * len(told)
    if not told or sum(hook["calls"] for hook in told) > most:
        raise Failure(f"counted: {told}, at most {most}")


@alone
def test_what_is_no_message(case):
    beside(case, "messages", 20000)


@alone
def test_more_connections_than_agents_make(case):
    beside(case, "connects", 2000)


@alone
def test_an_agent_that_comes_and_goes(case):
    """Nobody else's sentences are left out for that."""
    result = beside(case, "flickers", 100)
    checks.contains("it is not taken any more", "came more often than agents do", result.err)
    told = result.err.count("keeps its probes")
    if told > 14:
        raise Failure(f"{told} sentences of one process")


FLOOD = """
"$1" nodes 40 & hostile=$!
sleep 2
sleep 20 | "$2" 2 1000 1 & echo $! >"$3"
wait $!
wait $hostile
"""


@alone
def test_agents_that_tell_without_end_leave_others_their_time(case):
    """Forty rings of 8 MiB were read whole before anybody else was heard: another user's process had no agent in time."""
    if os.uname().machine != "x86_64":
        raise Skip("calls are recorded inside of processes on x86-64 only")
    trace, pid = case.path("run.cuscope"), case.path("pid")
    record = case.cuscope("record", "--gpu", "-o", trace, "--", "/bin/sh", "-c", FLOOD, "sh", Places.program("hostile-inside"),
                          Places.program("gpuloop"), pid)
    record.wait(SECONDS * 3)
    info = case.cuscope("info", "--json", trace)
    checks.equal("status", 0, info.wait())
    with open(pid) as file:
        honest = int(file.read())
    missed = [hook["why"] for hook in json.loads(info.out())["missed"]["hooks"] if hook.get("pid") == honest]
    checks.equal("told of the honest process", [], missed)


@alone
def test_many_processes_that_answer_nothing(case):
    """Each had a plan of its own meanwhile, 200 MiB in all."""
    result = beside(case, "silent", 600)
    checks.contains("most of them get none", "of one user's processes 256 modules", result.err)


def test_a_program_that_executes_itself_when_it_is_asked(case):
    beside(case, "executes", 8)


def test_a_program_that_gets_another_user_when_it_is_asked(case):
    result = beside(case, "user")
    checks.contains("it is left alone", "keeps its probes", result.err)


def test_a_program_that_gets_another_user_when_it_is_diverted(case):
    """Nobody writes to it any more, and that is said."""
    if os.uname().machine != "x86_64":
        raise Skip("calls are recorded inside of processes on x86-64 only")
    trace = case.start_trace(["--in-process", "--duration", "8s"], ["--", Places.program("hostile-inside"), "later"])
    result = case.result(trace)
    checks.contains("it is diverted", "are recorded inside of process", result.err)
    checks.contains("it stays so", "stay diverted: process", result.err)
    checks.contains("why", "has other users or groups", result.err)


def test_shared_memory_that_is_taken_away(case):
    beside(case, "truncates")


@alone
def test_all_of_it_at_random(case):
    beside(case, "mixed", os.environ.get("STRESS_SEED", "7"))
