# SPDX-License-Identifier: MIT
"""`./run test`: what its closing lines say of parts that fail once or always, see tests/tally."""

import os
import shutil
import subprocess
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

# Stands for make. A part leaves in `order` when it ran; "slow" runs beside the others and ends when they have.
MAKE = """#!/bin/sh
for target; do :; done
echo "$target" >>order
count=$(grep -cx "$target" order)
case $target in
prepare-*) exit ;;
test-slow) echo '--- begun'; until grep -q test-late order; do sleep 0.02; done; sleep 0.2; echo ended >>order ;;
test-once) [ "$count" -gt 1 ] || { echo 'FAIL: a test of once: why'; echo '3 passed, 1 failed'; exit 1; } ;;
test-always) echo 'FAIL: a test of always: why'; echo '3 passed, 1 failed'; exit 1 ;;
test-strict) echo 'FAIL: a test of strict: why'; echo '3 passed, 1 failed'; exit 1 ;;
test-alone)
	echo "once one: why"
	echo "echo alone-again >>order; echo 'ok   one'; echo '1 passed, 0 failed'" >"$SECOND_TRIES" ;;
test-silent) echo "exit 1" >"$SECOND_TRIES" ;;
esac
echo '4 passed, 0 failed'
"""


def tally(*parts):
    """What is said of these parts, each of which is a row of the table, the exit status, and what ran in which order."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "tally", "beside":
            shutil.copy(os.path.join(ROOT, "tests", name), folder)
        with open(os.path.join(folder, "parts"), "w", encoding="utf-8") as file:
            file.write("\n".join(parts) + "\n")
        make = os.path.join(folder, "make")
        with open(make, "w", encoding="utf-8") as file:
            file.write(MAKE)
        os.chmod(make, 0o755)
        # MAKEFLAGS and the like: of the make that runs this
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        done = subprocess.run(["./tally", "logs"], cwd=folder, env={**environment, "MAKE": make}, capture_output=True, text=True, timeout=60)
        with open(os.path.join(folder, "order"), encoding="utf-8") as file:
            order = file.read().split()
    return done.stdout.partition("=== all\n")[2].splitlines(), done.returncode, order


def expect(said, status, ending, *lines):
    closing, code = said[0][-1], said[1]
    assert (closing, code) == (ending, status), f"{closing!r}, status {code}: {said}"
    for line in lines:
        assert any(line in one for one in said[0]), f"{line!r} is not in {said}"


def test_parts_that_pass(build):
    said = tally("first", "late")
    expect(said, 0, "8 passed, 0 failed")
    assert said[2] == ["test-first", "test-late"], said


def test_a_part_that_fails_once_is_run_again_and_named(build):
    said = tally("once again", "late")
    expect(said, 0, "8 passed, 0 failed", "failed once", "    once a test of once: why")
    assert said[2] == ["test-once", "test-late", "test-once"], said


def test_a_part_that_fails_twice_has_failed(build):
    expect(tally("always again", "late"), 1, "7 passed, 1 failed", "    once a test of always: why", "    FAIL: a test of always: why")


def test_a_part_that_is_not_marked_has_one_try(build):
    said = tally("strict", "late")
    expect(said, 1, "7 passed, 1 failed", "    FAIL: a test of strict: why")
    assert said[2].count("test-strict") == 1, said


def test_tests_that_a_part_puts_off_run_when_all_else_has_ended(build):
    said = tally("slow beside", "alone", "once again", "late")
    expect(said, 0, "17 passed, 0 failed", "    once one: why")
    assert said[2][-3:] == ["ended", "alone-again", "test-once"], said


def test_second_tries_that_say_nothing_have_failed(build):
    expect(tally("silent", "late"), 1, "8 passed, 1 failed", "ended with status 1 and without a closing line")
