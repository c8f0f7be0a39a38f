# SPDX-License-Identifier: MIT
"""A target chooses who wakes it, and so who is sampled beside it: nobody whom it may not look into by itself."""

import checks
import profiles
from harness import Places
from wakers import record, sampled, start

AS_USER = ("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups")


def expect_nobody(case, **options):
    process, (worker,) = start(case, **options)
    events, said = record(case, [process], until=[worker])
    checks.equal("who is sampled", {process.pid}, sampled(events))
    checks.equal("what is told of the other", [], [event for event in events if event.get("pid") == worker])
    checks.contains("said", rf"process {worker} \(worker\), which process {process.pid} waits for, is not sampled: "
                    "that process may not look into it", said)
    profiles.ended(process)


def test_not_a_process_of_another_user(case):
    expect_nobody(case, user=4321)


def test_not_one_that_lets_nobody_look(case):
    expect_nobody(case, under=AS_USER, closed=1)


def test_not_one_in_another_namespace(case):
    expect_nobody(case, under=(Places.program("ownroot"),), closed=2)


def test_one_of_the_same_user(case):
    process, (worker,) = start(case, under=AS_USER)
    events, _ = record(case, [process], until=[worker])
    checks.equal("who is sampled", {process.pid, worker}, sampled(events))
    profiles.ended(process)
