# SPDX-License-Identifier: MIT
"""Which rank the others wait for: trainings of four programs that use the simulated libnccl, of which one sleeps."""

import contextlib
import csv
import ctypes
import fcntl
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import checks
from harness import Failure, Places, alone, descendants, wait_until

LATE = "1"  # the rank that does


def own_network():
    """RAS has one port: each job is in a network of its own, with nothing but a loopback."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up and running


def come_first(pids):
    """A GPU needs no CPU for what it does, and kernels of a collective end together: simulated ones do so where their threads
    come before what else the machine is at. Otherwise who waits for a CPU is a rank that is late, and is told as one."""
    for pid in [*pids, *pids]:  # what was begun meanwhile, too
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):  # where a container may not: then as far as the machine is idle
                os.sched_setscheduler(int(tid), os.SCHED_RR, os.sched_param(1))


def join_network(pid):
    with open(f"/proc/{pid}/ns/net") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def planted(case, kind, seconds, network=own_network, name="planted", **more):
    """Its four programs, by the numbers that they have; it is over when the case is."""
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="1", SIMNCCL_DIR=case.path("."), **more)
    program = case.start(os.path.join(Places.build, "planted", "planted"), kind, str(seconds), env=env, name=name, preexec_fn=network)
    wait_until(lambda: "ready" in program.out(), "the ranks to begin")
    with open(f"/proc/{program.pid}/task/{program.pid}/children") as children:
        pids = [program.pid, *map(int, children.read().split())]
    if case.alone:  # two such jobs would leave nothing to those that watch them
        come_first(pids)
    return program, pids


def report(case, path, part=0):
    """The rows of a part of `report ranks`, and what is said."""
    done = case.cuscope("report", path, "ranks", "--format", "csv")
    checks.equal("status of report", 0, done.wait())
    parts = done.out().strip().split("\n\n")
    return list(csv.DictReader(io.StringIO(parts[part]))), done.err()


def attached(case, kind, *options, **more):
    path = case.path("ranks.cuscope")
    program, pids = planted(case, kind, 20, **more)
    if kind.endswith("hang"):
        time.sleep(1)  # until it does
    watched = case.cuscope("why", "-o", path, "--duration", "4s", "-p", ",".join(map(str, pids)), *options)
    checks.equal("status of why", 0, watched.wait())
    program.process.kill()
    return path, watched


def check_late(rows):
    """Most of the time one rank is waited for, and by far no other."""
    held = {row["Rank"]: float(row["Held (%)"] or 0) for row in rows}
    if sorted(held) != ["0", "1", "2", "3"] or held[LATE] < 50 or any(held[rank] > 20 for rank in held if rank != LATE):
        raise Failure(f"held up by ranks: {held}")
    for row in rows:
        if int(row["Count"]) < 20:
            raise Failure(f"rank {row['Rank']} was seen in {row['Count']} collectives")


def test_ranks_of_a_training_that_is_started(case):
    path = case.path("ranks.cuscope")
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="1", SIMNCCL_DIR=case.path("."))
    done = case.cuscope("why", "-o", path, "--no-ras", "--", os.path.join(Places.build, "planted", "planted"), "nccl_sleep", "2", env=env)
    checks.equal("status of why", 0, done.wait())
    rows, said = report(case, path)
    check_late(rows)
    if f"Rank {LATE} (pid " not in done.out():
        raise Failure(f"why says {done.out()}")
    answer = case.cuscope("why", path, "--format", "json")
    checks.equal("status of why", 0, answer.wait())
    late = json.loads(answer.out())["late"]
    checks.equal("who is late", (LATE, 3), (late["rank"], late["others"]))
    if f"Rank {LATE} (pid " not in said or "fetch_on_one_rank" not in said:
        raise Failure(f"report ranks says {said}")


@alone
def test_ranks_of_a_training_that_runs_are_known_by_ras(case):
    path, watched = attached(case, "nccl_sleep")
    check_late(report(case, path)[0])
    if "fetch_on_one_rank" not in watched.out():
        raise Failure(f"why says {watched.out()}")


def test_ranks_of_two_jobs_in_one_network_have_a_port_each(case):
    path = case.path("ranks.cuscope")
    first, sleeping = planted(case, "nccl_sleep", 20)
    second, preparing = planted(case, "nccl_prep", 20, network=lambda: join_network(first.pid), name="second", NCCL_RAS_ADDR="localhost:28111")
    watched = case.cuscope("why", "-o", path, "--duration", "4s", "-p", ",".join(map(str, sleeping + preparing)))
    checks.equal("status of why", 0, watched.wait())
    first.process.kill()
    second.process.kill()
    rows = report(case, path)[0]
    for pids, late in ((sleeping, LATE), (preparing, "3")):
        held = {row["Rank"]: float(row["Held (%)"] or 0) for row in rows if int(row["PID"]) in pids}
        if sorted(held) != ["0", "1", "2", "3"] or max(held, key=held.get) != late or held[late] < 30:
            raise Failure(f"held up by ranks: {held}")


@alone
def test_ranks_in_ones_own_network_are_known_without_the_right_to_enter_others(case):
    """As the agent's unit has none."""
    program, pids = planted(case, "nccl_sleep", 20)
    path, rights = case.path("ranks.cuscope"), "-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+setuid,+setgid"
    watched = case.start("setpriv", "--bounding-set", rights, "--inh-caps", rights, Places.cuscope(), "why", "-o", path, "--duration", "4s",
                         "-p", ",".join(map(str, pids)), name="why", preexec_fn=lambda: join_network(program.pid))
    checks.equal("status of why", 0, watched.wait())
    program.process.kill()
    check_late(report(case, path)[0])


@alone
def test_ranks_of_parts_of_a_communicator(case):
    rows = report(case, attached(case, "nccl_halves")[0])[0]
    checks.equal("communicators", 2, len({row["Comm"] for row in rows}))
    held = {row["Rank"]: float(row["Held (%)"] or 0) for row in rows}
    if held["3"] < 50 or any(held[rank] > 20 for rank in "012"):
        raise Failure(f"held up by ranks: {held}")


def test_ranks_of_a_job_that_stands_still(case):
    """Nothing is called any more: RAS tells who lacks what, and a nudge where threads that have waited all the while are."""
    path, watched = attached(case, "nccl_hang")
    said = watched.out()
    for words in (f"Standing still: rank {LATE} has not launched AllReduce 101 of communicator", "ranks 0, 2 and 3 have",
                  f"Rank {LATE} (", "wait_for_more_data", "keep_two_steps"):
        if words not in said:
            raise Failure(f"why does not say {words!r}: {said}")
    done = case.cuscope("why", path, "--format", "json")
    checks.equal("status of why", 0, done.wait())
    standing = json.loads(done.out())["standing"][0]
    checks.equal("what is missing", ("AllReduce", 101, 0), (standing["function"], standing["number"], standing["missing"]))
    checks.equal("who is behind", [True, False, False, False], [rank["behind"] for rank in standing["ranks"]])
    checks.equal("what it does", "sleep", standing["ranks"][0]["cause"])
    rows, said = report(case, path, 1)
    checks.equal("who lacks what", [(LATE, True), ("0", False), ("2", False), ("3", False)], [(row["Rank"], int(row["Behind"]) > 0) for row in rows])
    checks.equal("what was launched", {"AllReduce"}, {row["Function"] for row in rows})
    if "wait_for_more_data" not in rows[0]["Does"]:
        raise Failure(f"report ranks says of the rank that has not come: {rows[0]}")
    if f"Standing still: rank {LATE} has not launched AllReduce 101" not in said or "comes last" in said:
        raise Failure(f"report ranks says {said}")


def other_machine(case, name):
    """Who does this is on another machine, as far as the kernel says: mounts of its own, with another number of this start."""
    path = case.path(f"boot-{name}")
    with open(path, "w") as file:
        file.write(f"6a1c1f0e-0000-4000-8000-{name:>012}\n")

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):  # MS_REC | MS_PRIVATE
            raise OSError(ctypes.get_errno(), "unshare")
        if libc.mount(path.encode(), b"/proc/sys/kernel/random/boot_id", None, 0x1000, None):  # MS_BIND
            raise OSError(ctypes.get_errno(), "mount")

    return enter


def recorded_apart(case, kind, machines, *options):
    """A recording for each two ranks, on a machine of its own or not."""
    program, pids = planted(case, kind, 20)
    if kind.endswith("hang"):
        time.sleep(1)
    paths = [case.path(f"node{i}.cuscope") for i in range(2)]
    watched = [case.cuscope("why", "-o", path, "--no-follow", "--duration", "4s", "-p", ",".join(map(str, pids[2 * i:2 * i + 2])), *options,
                            preexec_fn=other_machine(case, i) if machines else None, name=f"why{i}") for i, path in enumerate(paths)]
    for one in watched:
        checks.equal("status of why", 0, one.wait())
    program.process.kill()
    return paths


@alone
def test_ranks_of_machines_have_one_clock(case):
    """Collectives tell how clocks go by each other; here it is one, so it is known what that has to say."""
    paths = recorded_apart(case, "nccl_sleep", True)
    done = case.cuscope("report", *paths, "ranks", "--format", "csv")
    checks.equal("status of report", 0, done.wait())
    check_late([row for row in csv.DictReader(io.StringIO(done.out().split("\n\n")[0])) if row["Count"] != "0"])
    if "Clocks of 2 machines are compared by" not in done.err():
        raise Failure(f"report says {done.err()}")
    answer = case.cuscope("why", *paths, "--format", "json")
    checks.equal("status of why", 0, answer.wait())
    error = json.loads(answer.out())["machines"][1]["clock_error_ns"]
    if not 0 < error < 50000000:
        raise Failure(f"the clock is said to be wrong by {error} ns")


def check_standing(case, paths):
    done = case.cuscope("why", *paths, name="standing")
    checks.equal("status of why", 0, done.wait())
    for words in (f"Standing still: rank {LATE} has not launched AllReduce 101 of communicator", "ranks 0, 2 and 3 have",
                  f"Rank {LATE} (", "wait_for_more_data", "keep_two_steps"):
        if done.out().count(words) != 1 and words != "keep_two_steps" or words not in done.out():
            raise Failure(f"why does not say {words!r} once: {done.out()}{done.err()}")


def test_ranks_that_stand_still_by_recordings_of_others(case):
    """Each knows what threads of its own ranks do."""
    check_standing(case, recorded_apart(case, "nccl_hang", False))


def test_ranks_that_stand_still_on_several_machines(case):
    """No collective ends any more by which clocks could be compared, and none is needed."""
    paths = recorded_apart(case, "nccl_hang", True)
    check_standing(case, paths)
    done = case.cuscope("why", *paths, "--format", "json", name="json")
    checks.equal("status of why", 0, done.wait())
    last = json.JSONDecoder().raw_decode(done.out()[done.out().rindex("\n{") + 1:])[0]["standing"][0]
    checks.equal("who is behind", [(1, True), (0, False), (2, False), (3, False)], [(rank["rank"], rank["behind"]) for rank in last["ranks"]])
    if "wait_for_more_data" not in last["ranks"][0]["where"]:
        raise Failure(f"why says {last}")
    refused = case.cuscope("report", "ranks", *paths, name="refused")
    checks.equal("status of report", 1, refused.wait())
    if "whom a job waits for that stands still" not in refused.err():
        raise Failure(f"report says {refused.err()}")


def test_a_report_of_recordings_of_a_job_that_stands_still(case):
    done = case.cuscope("report", "ranks", *recorded_apart(case, "nccl_hang", False), "--format", "json")
    checks.equal("status of report", 0, done.wait())
    rows = json.loads(done.out())["standing"]
    checks.equal("who has not come", [(LATE, True), ("0", False), ("2", False), ("3", False)], [(row["Rank"], row["Behind"] > 0) for row in rows])


def test_ranks_that_stand_still_without_ras(case):
    """Their calls are counted, as they were seen from the first one on."""
    path = case.path("ranks.cuscope")
    env = dict(case.environment(), SIMCUDA_TIME_SCALE="1", SIMNCCL_DIR=case.path("."))
    done = case.cuscope("why", "-o", path, "--no-ras", "--duration", "5s", "--", os.path.join(Places.build, "planted", "planted"),
                        "nccl_hang", "20", env=env)
    wait_until(lambda: "waiting for the command" in done.err(), "the recording to be over", 60)
    for pid in descendants(done.pid):
        with contextlib.suppress(ProcessLookupError):  # some end with their first rank
            os.kill(pid, signal.SIGKILL)
    checks.equal("status of why", 128 + signal.SIGKILL, done.wait())  # the command's
    for words in (f"Standing still: rank {LATE} has not launched AllReduce 101 of communicator", "ranks 0, 2 and 3 have"):
        if words not in done.out():
            raise Failure(f"why does not say {words!r}: {done.out()}")


def test_ranks_of_another_job_are_none_of_ours(case):
    """Its RAS answers in the same network: of a program that is no rank of it nothing is told, nor that it stands still."""
    program, pids = planted(case, "nccl_hang", 20)
    time.sleep(1)
    other = case.program("loop", 200000, 500, stdin=subprocess.PIPE, name="other", preexec_fn=lambda: join_network(program.pid))
    wait_until(lambda: "ready" in other.out(), "the program to begin")
    path = case.path("other.cuscope")
    watched = case.cuscope("why", "-o", path, "--duration", "3s", "-p", other.pid)
    checks.equal("status of why", 0, watched.wait())
    program.process.kill()
    other.process.stdin.close()
    done = case.cuscope("export", path, "-o", case.path("other.jsonl"))
    checks.equal("status of export", 0, done.wait())
    with open(case.path("other.jsonl")) as events:
        if any('"ras.' in line for line in events) or "Standing" in watched.out():
            raise Failure(f"another job is told of: {watched.out()}")


def test_ranks_that_run_do_not_stand_still(case):
    if "Standing still" in attached(case, "nccl_busy")[1].out():
        raise Failure("a job that runs stands still")


def test_ranks_that_nothing_is_heard_of(case):
    said = attached(case, "nccl_hang", SIMNCCL_RAS="missing")[1].out()
    if "Nothing has been heard of 1 of its ranks" not in said:
        raise Failure(f"why says {said}")


def test_ranks_that_nothing_is_heard_of_are_told_of_by_whichever_answer_comes(case):
    """On a busy machine neither the first question is answered, nor the last."""
    said = attached(case, "nccl_hang", SIMNCCL_RAS="missing", SIMNCCL_RAS_ONLY="3-9")[1].out()
    if "Nothing has been heard of 1 of its ranks" not in said:
        raise Failure(f"why says {said}")


@alone
def test_ranks_of_recordings_that_are_read_together(case):
    """Again where an agent was not answered in time, which a busy machine does: that is told, and asked elsewhere."""
    program, pids = planted(case, "nccl_sleep", 60)
    paths = [case.path(f"rank{i}.cuscope") for i in range(4)]
    for _ in range(3):
        watched = [case.cuscope("why", "-o", path, "--force", "--no-follow", "--duration", "4s", "-p", pid) for path, pid in zip(paths, pids)]
        for one in watched:
            checks.equal("status of why", 0, one.wait())
        if not any("no GPU times of" in one.err() for one in watched):
            break
    program.process.kill()
    done = case.cuscope("report", *paths, "ranks", "--format", "csv")
    checks.equal("status of report", 0, done.wait())
    check_late([row for row in csv.DictReader(io.StringIO(done.out().split("\n\n")[0])) if row["Count"] != "0"])
    os.mkdir(case.path("folder"))
    for path in paths:
        os.rename(path, os.path.join(case.path("folder"), os.path.basename(path)))
    os.mkdir(case.path("empty"))
    again = case.cuscope("report", "ranks", case.path("folder"), "--format", "csv")
    checks.equal("report of the folder", (0, done.out()), (again.wait(), again.out()))
    for wrong, says in (((case.path("folder"), "overview"), "overview is of one file"),
                        ((case.path("folder"), "ranks", "--pid", "1"), "of several files all is read"),
                        ((case.path("folder"), "nosuch"), "there is no report 'nosuch'"),
                        (("nosuch", case.path("folder")), "cannot read nosuch: No such file"),
                        ((case.path("empty"), "ranks"), "no recording (*.cuscope) in ")):
        refused = case.cuscope("report", *wrong)
        if not refused.wait() or says not in refused.err():
            raise Failure(f"{wrong}: {refused.err()}")


def not_matched(case, *options, **more):
    """What is said where nothing is matched."""
    rows, said = report(case, attached(case, "nccl_sleep", *options, **more)[0])
    checks.equal("collectives that are matched", {"0"}, {row["Count"] for row in rows})
    if "matched with none" not in said:
        raise Failure(f"report ranks says {said}")


def test_ranks_without_ras_are_not_matched_and_that_is_said(case):
    not_matched(case, "--no-ras")


def test_ranks_that_ras_lies_about_are_not_matched(case):
    not_matched(case, SIMNCCL_RAS="lie")


def test_ras_that_never_answers_holds_nobody_up(case):
    not_matched(case, SIMNCCL_RAS="hang")


def test_ras_that_answers_without_end_is_left(case):
    not_matched(case, SIMNCCL_RAS="huge")


def test_ras_of_another_user_is_not_believed(case):
    """Who has the port answers, and may say of his own processes what he likes."""
    answer = ('{ "nccl_version": "2.28.9", "communicators": [ { "hash": "0x1", "size": 4, "ranks": [ ' +
              ", ".join('{ "rank": %d, "pid": %%d }' % rank for rank in range(4)) + " ] } ] }")
    program, pids = planted(case, "nccl_sleep", 20, NCCL_RAS_ENABLE="0")
    script = f"""
import socket
listening = socket.create_server(("127.0.0.1", 28028))
print("ready", flush=True)
while True:
    one, _ = listening.accept()
    one.sendall(b"SERVER PROTOCOL 2\\n")
    asked = b""
    while not asked.endswith(b"STATUS\\n"):
        asked += one.recv(1000)
    one.sendall(b"OK\\nOK\\n" + {answer % tuple(pids)!r}.encode())
    one.close()
"""
    other = subprocess.Popen(["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "python3", "-c", script],
                             stdout=subprocess.PIPE, text=True, preexec_fn=lambda: join_network(program.pid))
    try:
        other.stdout.readline()
        path = case.path("ranks.cuscope")
        watched = case.cuscope("why", "-o", path, "--duration", "3s", "-p", ",".join(map(str, pids)))
        checks.equal("status of why", 0, watched.wait())
    finally:
        other.kill()
        other.wait()
        program.process.kill()
    done = case.cuscope("export", path, "-o", case.path("ranks.jsonl"))
    checks.equal("status of export", 0, done.wait())
    with open(case.path("ranks.jsonl")) as events:
        told = [line for line in events if '"ras.' in line]
    checks.equal("what RAS is believed", [], told)


# A process that has all ranks. Its group never ends: simulated kernels of one process do not run beside each other.
IN_ONE = """
import ctypes, os
cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")
comms = (ctypes.c_void_p * 3)()
assert not cuda.cuInit(0) and not nccl.ncclCommInitAll(comms, 3, None) and not nccl.ncclGroupStart()
for step in range(5):
    for comm in comms:
        assert not nccl.ncclAllReduce(None, None, ctypes.c_size_t(1024), 7, 0, ctypes.c_void_p(comm), None)
os._exit(0)
"""


def test_ranks_of_one_process(case):
    """ncclCommInitAll makes the communicators of all its GPUs at once."""
    path = case.path("one.cuscope")
    env = dict(case.environment(), SIMNCCL_DIR=case.path("."))
    done = case.cuscope("record", "-o", path, "--hooks", "nccl", "--", sys.executable, "-c", IN_ONE, env=env)
    checks.equal("status of record", 0, done.wait())
    rows, said = report(case, path)
    checks.equal("ranks and their collectives", [("0", "5"), ("1", "5"), ("2", "5")], [(row["Rank"], row["Count"]) for row in rows])
