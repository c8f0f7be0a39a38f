# SPDX-License-Identifier: MIT
"""`cuscope agent` tells which rank is late: trainings of four programs that use the simulated libnccl."""

import os
import re
import signal
import time

import checks
from harness import Failure, alone, wait_until
from node import Node
from test_flight_recorder import Agent
from test_ranks import LATE, check_late as check_report, planted, report

SETTINGS = "[agent]\nage = 0\ninterval = 200ms\n[ranks]\nenabled = yes\n"


def agent(case, more="", settings=SETTINGS):
    node = Node(case, settings + more)
    wait_until(lambda: node.metrics().get(("cuscope_ranks_up", ())) == 1, "NCCL's calls to be recorded", 30)
    return node


def ranks(node, name, pids):
    """{pid: value} of cuscope_rank_NAME; other tests' jobs are told of as well."""
    return {int(dict(labels)["pid"]): value for (metric, labels), value in node.metrics().items()
            if metric == "cuscope_rank_" + name and int(dict(labels)["pid"]) in pids}


def labels_of(node, pids):
    """{rank: (pid, communicator)}."""
    return {dict(labels).get("rank"): (int(dict(labels)["pid"]), dict(labels)["communicator"]) for metric, labels in node.metrics()
            if metric == "cuscope_rank_missing_seconds" and int(dict(labels)["pid"]) in pids}


def unmatched(node):
    return {dict(labels)["why"]: value for (name, labels), value in node.metrics().items() if name == "cuscope_rank_calls_unmatched_total"}


def counted(node, least, pids):
    def have():
        of = ranks(node, "collectives_total", pids)
        return len(of) == len(pids) and min(of.values()) >= least
    wait_until(have, f"{least} collectives of each rank", 40)


def check_late(node, pids):
    """Between two looks the others wait for one rank most of the time, and for no other."""
    names = ("late_seconds_total", "waited_seconds_total")
    counted(node, 20, pids)
    of = labels_of(node, pids)
    checks.equal("ranks", ["0", "1", "2", "3"], sorted(of))
    before, begin = [ranks(node, name, pids) for name in names], time.monotonic()
    time.sleep(4)
    after, seconds = [ranks(node, name, pids) for name in names], time.monotonic() - begin
    for rank, (pid, _) in of.items():
        late, waited = ((after[i][pid] - before[i][pid]) / seconds for i in (0, 1))
        if not (0.4 < late < 1.3 and waited < 0.1 if rank == LATE else late < 0.1 and 0.4 < waited < 1.3):
            raise Failure(f"rank {rank}, of a second: late {late}, waited {waited}")


@alone
def test_agent_tells_which_rank_is_late(case):
    node = agent(case)
    program, pids = planted(case, "nccl_sleep", 60)
    check_late(node, pids)
    program.process.kill()


@alone
def test_agent_knows_ranks_that_run_by_ras(case):
    program, pids = planted(case, "nccl_sleep", 60)
    time.sleep(1)
    check_late(agent(case), pids)
    program.process.kill()


def test_agent_does_not_ask_ras_where_it_is_not_to(case):
    program, pids = planted(case, "nccl_sleep", 60)
    time.sleep(1)
    node = agent(case, "ras = no\n")
    wait_until(lambda: unmatched(node)["unknown"] > 0, "calls of a communicator that is not known", 45)
    checks.equal("ranks", {}, ranks(node, "collectives_total", pids))
    program.process.kill()


@alone
def test_agent_says_of_no_healthy_rank_that_it_is_late(case):
    node = agent(case)
    program, pids = planted(case, "nccl_busy", 60)
    counted(node, 500, pids)
    before, begin = ranks(node, "late_seconds_total", pids), time.monotonic()
    time.sleep(4)
    seconds = time.monotonic() - begin
    late = {pid: (value - before[pid]) / seconds for pid, value in ranks(node, "late_seconds_total", pids).items()}
    if max(late.values()) > 0.15:
        raise Failure(f"late, of a second: {late}")
    checks.equal("missing", {pid: 0 for pid in pids}, ranks(node, "missing_seconds", pids))
    program.process.kill()


def test_agent_tells_of_a_rank_that_hangs(case):
    node = agent(case)
    program, pids = planted(case, "nccl_hang", 30)

    def missing():
        return {pid for pid, value in ranks(node, "missing_seconds", pids).items() if value > 3}
    try:
        wait_until(missing, "a rank to be missing", 40)
    except Failure as why:
        raise Failure(f"{why}; not matched: {unmatched(node)}, collectives: {ranks(node, 'collectives_total', pids)}, "
                      f"missing: {ranks(node, 'missing_seconds', pids)}") from why
    checks.equal("the rank that is missing", {labels_of(node, pids)[LATE][0]}, missing())
    program.process.kill()


def test_agent_waits_for_no_rank_that_died(case):
    node = agent(case)
    program, pids = planted(case, "nccl_sleep", 60)
    counted(node, 20, pids)
    late = labels_of(node, pids)[LATE][0]
    os.kill(late, signal.SIGKILL)
    time.sleep(5)
    before = ranks(node, "late_seconds_total", pids)
    time.sleep(2)
    checks.equal("late", before, ranks(node, "late_seconds_total", pids))
    checks.equal("missing", {pid: 0 for pid in pids}, ranks(node, "missing_seconds", pids))
    program.process.kill()


def test_agent_tells_two_jobs_apart(case):
    node = agent(case)
    first, late = planted(case, "nccl_sleep", 25)
    second, busy = planted(case, "nccl_busy", 25)
    counted(node, 20, late)
    counted(node, 200, busy)
    checks.equal("communicators", [1, 1, 2], [len({comm for of in jobs for _, comm in labels_of(node, of).values()}) for jobs in ([late], [busy], [late, busy])])
    sums = {pid: value for pids in (late, busy) for pid, value in ranks(node, "late_seconds_total", pids).items()}
    checks.equal("whose rank is latest", True, max(sums, key=sums.get) in late)
    first.process.kill()
    second.process.kill()


def test_agent_has_no_more_series_than_it_may(case):
    node = agent(case, "series = 3\n")
    program, pids = planted(case, "nccl_sleep", 15)
    wait_until(lambda: node.metrics()["cuscope_ranks_left_out_total", ()] > 0, "a rank to be left out")
    checks.equal("series", 3, sum(name == "cuscope_rank_late_seconds_total" for name, _ in node.metrics()))
    program.process.kill()


def test_agent_believes_no_ras_that_lies(case):
    """It says of the ranks what they are not: their calls are matched with nobody's, or by their own creation."""
    program, pids = planted(case, "nccl_sleep", 40, SIMNCCL_RAS="lie")
    time.sleep(1)
    node = agent(case)
    time.sleep(8)
    late = ranks(node, "late_seconds_total", pids)
    checks.equal("late by what a liar says", 0, sum(late.values()))
    program.process.kill()


def test_agent_without_ranks_says_nothing_of_them(case):
    node = Node(case)
    program, _ = planted(case, "nccl_sleep", 4)
    time.sleep(2)
    checks.equal("metrics of ranks", [], [name for name, _ in node.metrics() if name.startswith("cuscope_rank")])
    checks.equal("POST /record", 403, node.get("/record", "POST")[0])
    program.process.kill()


def recorder(case):
    return Agent(case, {"rules": {"late_rank": "30"}, "ranks": {"enabled": "yes"}, "recorder": {"last": "12s"}}).start()


@alone
def test_agent_writes_the_last_seconds_of_a_late_rank_and_of_those_that_waited(case):
    """A recording of the last seconds has nothing of how communicators began, and knows them all the same."""
    agent = recorder(case)
    program, pids = planted(case, "nccl_sleep", 40)
    path, seen = agent.recorded("late_rank", f"process {late_of(agent, pids)} ")
    rows = [row for row in report(case, path)[0] if int(row["PID"]) in pids]
    check_report(rows)
    if f"rank {LATE} of communicator {rows[0]['Comm']}," not in seen["reason"]:
        raise Failure(f"the reason is {seen['reason']}")
    program.process.kill()


def test_agent_writes_what_was_before_a_rank_hung(case):
    agent = recorder(case)
    program, pids = planted(case, "nccl_hang", 40)
    path, seen = agent.recorded("late_rank", f"process {late_of(agent, pids)} ")
    if "has not called for 1" not in seen["reason"]:
        raise Failure(f"the reason is {seen['reason']}")
    program.process.kill()


def late_of(agent, pids):
    """Whose number a rank has that is late."""
    def found():
        words = re.findall(r'cuscope_rank_missing_seconds\{pid="(\d+)",[^}]*rank="%s"' % LATE, agent.ask("GET", "/metrics")[1])
        return [pid for pid in words if int(pid) in pids]
    wait_until(found, "ranks to be known", 40)
    return found()[0]
