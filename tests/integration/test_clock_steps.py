# SPDX-License-Identifier: MIT
"""The time of day is set while cuscope runs: an hour forth, and two back. (tests/programs/clockstep.c sets it, for cuscope
alone; the machine of tests/shipped/machine has one that is set for all.)"""

import http.client
import os
import re
import subprocess
import time

import checks
from harness import Failure, Places, alone, stress, wait_until
from test_flight_recorder import Agent, info, loop

STEPS = (3600, -3600)


def set_clock(case, seconds):
    path = case.path("clock")
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(seconds))
    os.rename(path + ".new", path)
    return lambda: time.time() + seconds


class Stepped:
    """What is started within has a clock that can be set."""

    def __init__(self, case):
        self.case = case
        set_clock(case, 0)

    def __enter__(self):
        self.case.env.update(LD_PRELOAD=Places.program("libclockstep.so"), CLOCKSTEP_FILE=self.case.path("clock"))

    def __exit__(self, *_):
        del self.case.env["LD_PRELOAD"], self.case.env["CLOCKSTEP_FILE"]


def openmetrics(agent):
    connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=10)
    connection.request("GET", "/metrics", headers={"Authorization": "Bearer 0123456789abcdef0123456789abcdef",
                                                   "Accept": "application/openmetrics-text"})
    text = connection.getresponse().read().decode()
    connection.close()
    return dict(re.findall(r"^(\S+) (\S+)$", text, re.M))


def counters(values):
    return {name: float(value) for name, value in values.items() if name.split("{")[0].endswith("_total")}


def created(values, pid):
    found = [float(value) for name, value in values.items()
             if name.startswith("cuscope_process_launches_created{") and f'pid="{pid}"' in name]
    return found[0] if found else None


def near(what, wanted, seen, most):
    if seen is None or abs(seen - wanted) > most:
        raise Failure(f"{what}: {seen}, not within {most} s of {wanted}")


def record_now(case, agent, now):
    """A recording that is asked for: named by the clock as it stands, and readable."""
    status, name = agent.request()
    checks.equal(f"status of the answer: {name}", 200, status)
    stamp = time.strptime(name.split("-")[0] + "UTC", "%Y%m%dT%H%M%SZ%Z")
    near("the time in its name", now(), time.mktime(stamp) - time.timezone, 60)
    seen = info(case, os.path.join(agent.spool, name))
    near("the time in it", now(), seen["begin_realtime_ns"] / 1e9, 90)
    return name


@alone
@stress("it takes 30 s")
def test_clock_steps_do_not_disturb_the_agent(case):
    with Stepped(case):
        agent = Agent(case, {"agent": {"age": "0"}, "spool": {"files": "2"}}).start()
    first = loop(case, 50, 120)
    wait_until(lambda: created(openmetrics(agent), first.pid), "the first program's series")
    begun = created(openmetrics(agent), first.pid)
    near("when it began", time.time(), begun, 30)
    names = [record_now(case, agent, time.time)]
    before = counters(openmetrics(agent))
    for seconds in STEPS:
        now, at = set_clock(case, seconds), time.monotonic()
        later = loop(case, 50, 60)
        wait_until(lambda: created(openmetrics(agent), later.pid), "the next program's series")
        near("when it began", now(), created(openmetrics(agent), later.pid), 30)
        checks.equal("when the first one began", begun, created(openmetrics(agent), first.pid))
        time.sleep(max(0, 11 - (time.monotonic() - at)))  # requests are ten seconds apart
        names.append(record_now(case, agent, now))
        checks.equal("status of /healthz", 200, agent.ask("GET", "/healthz", None)[0])
        after = counters(openmetrics(agent))
        down = {name: (value, after.get(name)) for name, value in before.items() if after.get(name, 0) < value}
        checks.equal("counters that went down", {}, down)
        if after["cuscope_launches_total"] < before["cuscope_launches_total"] + 300:
            raise Failure(f"launches did not go on: {before['cuscope_launches_total']}, {after['cuscope_launches_total']}")
        before = after
    checks.equal("what stays in the spool is what was written last", sorted(names[1:]), sorted(os.path.basename(path)
                                                                                          for path in agent.files()))
    checks.equal("starts of the recorder", 1.0, agent.metric("recorder_starts_total"))
    began = time.monotonic()
    agent.process.process.terminate()
    checks.equal("status", 0, agent.process.wait())
    if time.monotonic() - began > 10:
        raise Failure("it did not end in time")


@alone
@stress("it takes 30 s")
def test_clock_steps_do_not_disturb_a_recording(case):
    with Stepped(case):
        began = time.time()
        record = case.cuscope("record", "--duration", "5", "-o", case.path("run.cuscope"), "--", Places.program("loop"), "30", "50",
                              stdin=subprocess.PIPE)
    time.sleep(1.5)
    for seconds in STEPS:
        set_clock(case, seconds)
        time.sleep(1)
    record.wait()
    seen = info(case, case.path("run.cuscope"))
    near("how long it took", 5, seen["duration_ns"] / 1e9, 1.5)
    near("when it began", began, seen["begin_realtime_ns"] / 1e9, 30)
    if not 150 <= seen["calls"] or not seen["missed"]["complete"]:
        raise Failure(f"{seen}")
