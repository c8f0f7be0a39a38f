# SPDX-License-Identifier: MIT
"""Functions of a running process are diverted and put back while all of its threads call them (tests/divert/cut.c).

Its 32 threads want all CPUs, so that each test is alone: two at a time took minutes, and one takes seconds.

What it checks itself: each answer is right, no wait is interrupted, and the code at the end is that of the file.
"""

import json
import os
import re
import shutil

import checks
from harness import Failure, Places, Skip, alone, stress

SHAPES = ("push", "endbr", "stub")
NUMBERS = re.compile(r"(calls|by thunk|by probe|signals|forks|waits|exceptions|not thrown|loads|stops|given up|mean) "
                     r"(\d+[.]?\d*)")


def own_library(case, shape):
    """A copy of the simulated driver: kernel probes on the file of others would be seen in this one."""
    path = case.path(f"{shape}-libcuda.so.1")
    if not os.path.exists(path):
        shutil.copy(Places.simcuda(f"{shape}/libcuda.so.1"), path)
    return path


def cut(case, shape, rounds, *words, seconds=400):
    """The numbers that it prints: {name: value}. Its many threads come behind all else, so that it takes long where CPUs are wanted."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    process = case.start(os.path.join(Places.build, "tests/divert/cut"), own_library(case, shape),
                         str(rounds), *words)
    status = process.wait(seconds)
    if status:
        raise Failure(f"{shape}: {process.out()[-500:]}")
    numbers = {name: float(value) for name, value in NUMBERS.findall(process.out())}
    if numbers.get("not thrown"):
        raise Skip(f"return probes of another session are on functions of each process (trace --all?), through which no "
                   f"exception comes: {numbers['not thrown']:.0f} were not thrown, {numbers['exceptions']:.0f} were")
    return numbers


@alone
def test_threads_signals_and_children_call_functions_that_are_diverted_and_put_back(case):
    for shape in SHAPES:
        numbers = cut(case, shape, 5, "signals", "forks", "throws", "loads")
        checks.equal("some came to a thunk", True, numbers["by thunk"] > 1000)
        checks.equal("signals, forks, waits, exceptions, loads", True,
                     min(numbers[name] for name in ("signals", "forks", "waits", "exceptions", "loads")) > 5)


@alone
def test_a_kernel_probe_and_the_thunks_see_each_call_once(case):
    """The probe is there all the time. With the jump behind it, it sees all; before it, it sees what is not diverted."""
    for shape in SHAPES:
        numbers = cut(case, shape, 4, "signals", "forks", "probe")
        diverted = numbers["by thunk"] if shape == "stub" else 0
        checks.equal(f"{shape}: calls", numbers["calls"], numbers["by probe"] + diverted)


@alone
def test_a_kernel_probe_comes_and_goes_while_functions_are_diverted(case):
    for shape in SHAPES:
        cut(case, shape, 4, "signals", "comes")


@alone
def test_an_area_is_used_again_as_long_as_it_would_have_the_same_code(case):
    """Threads stay in it from round to round; with other thunks it is refused, and nothing is written."""
    for shape in SHAPES:
        cut(case, shape, 6, "signals", "forks", "again")


@alone
def test_all_is_put_back_when_cuscope_is_killed(case):
    cut(case, "push", 4, "orphan", "signals")
    cut(case, "stub", 3, "orphan", "forks")


@alone
def test_five_hundred_threads_are_stopped_in_time_or_left_alone(case):
    """All of them run all the time, so two processors may not do it in 5 ms; then nothing is written."""
    numbers = cut(case, "endbr", 1, "threads=500", "patience=1")
    checks.equal(f"mean of {numbers['mean']} ms", True, numbers["mean"] < 6)


@stress("it takes 28 s")
def test_processes_that_change_while_they_are_diverted(case):
    """They exit, execute, unmap, are debugged, have 5,000 threads ...: each is refused in a sentence, or diverted (tests/divert/hostile.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    for shape in SHAPES:
        process = case.start(os.path.join(Places.build, "tests/divert/hostile"),
                             own_library(case, shape))
        if process.wait(120):
            raise Failure(f"{shape}: {process.out()[-500:]}")
        checks.contains(shape, "has more than 4096 threads", process.out())
        checks.contains(shape, "and only one can do that", process.out())


def test_nobody_waits_for_a_process_that_diverts_and_hangs(case):
    """Orders wait within bounds, and what is to be put back is put back when it goes on (tests/divert/held.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    process = case.start(os.path.join(Places.build, "tests/divert/held"), own_library(case, "push"))
    if process.wait(60):
        raise Failure(process.out()[-500:])


def test_who_diverts_is_ended_while_it_writes(case):
    """What it has written by then is read from the process (tests/divert/ended.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    for shape in SHAPES:
        process = case.start(os.path.join(Places.build, "tests/divert/ended"), own_library(case, shape))
        if process.wait(60):
            raise Failure(f"{shape}: {process.out()[-500:]}")


@stress("it takes 14 s")
def test_processes_that_share_memory_are_stopped_or_keep_their_probes(case):
    """By clone with CLONE_VM, or vfork, there before or coming later (tests/divert/peers.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    for shape in SHAPES:
        process = case.start(os.path.join(Places.build, "tests/divert/peers"), own_library(case, shape))
        if process.wait(60):
            raise Failure(f"{shape}: {process.out()[-500:]}")


def test_children_without_number_are_put_back_and_take_no_place_of_others(case):
    """Also children of children, and those whose end nobody told (tests/divert/forks.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    process = case.start(os.path.join(Places.build, "tests/divert/forks"), own_library(case, "push"))
    if process.wait(60):
        raise Failure(process.out()[-500:])


def test_processes_of_kinds_that_are_seldom(case):
    """Without a first thread, in other namespaces, with workers of io_uring ...: diverted and put back (tests/divert/odd.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    process = case.start(os.path.join(Places.build, "tests/divert/odd"), os.path.abspath(Places.simcuda("push/libcuda.so.1")))
    if process.wait(60):
        raise Failure(process.out()[-500:])


def test_a_thread_at_each_place_of_an_entry_is_seen_once(case):
    """By the thunk, just where the probe does not see it (tests/divert/places.c)."""
    if os.uname().machine != "x86_64":
        raise Skip("entries are moved on x86-64 only")
    for shape in SHAPES:
        process = case.start(os.path.join(Places.build, "tests/divert/places"),
                             own_library(case, shape))
        if process.wait(60):
            raise Failure(f"{shape}: {process.out()[-500:]}")


@alone
def test_stress_divert_a_thousand_times(case):
    """With STRESS_ROUNDS, as `make stress` has it: 4 without."""
    rounds = int(os.environ.get("STRESS_ROUNDS", "4"))
    for shape in SHAPES:
        numbers = cut(case, shape, rounds, "signals", "forks", "throws", "loads", "probe", seconds=60 + 5 * rounds)
        with open(case.path(f"{shape}.json"), "w") as file:
            json.dump(numbers, file)
