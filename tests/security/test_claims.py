# SPDX-License-Identifier: MIT
"""Recordings of several users: the id of a communicator is no secret, so anybody can say that he is in another's."""

import csv
import io
import json
import os
import sys

import checks
from harness import Failure

VICTIM, HOSTILE = 1234, 1235

# Two ranks of a communicator with the given id, which the second comes to 5 ms late: sys.argv: calls, bytes of each.
RANKS = """
import ctypes, os, sys, time
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]
rank = 1 if os.fork() else 0
cuda, nccl = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnccl.so.2")
cuda.cuInit(0)
context, memory, comm, one = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), Id()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
one.internal[0] = 77
assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, one, rank) == 0
for step in range(int(sys.argv[1])):
    time.sleep(0.005 * rank)
    at, count = ctypes.c_void_p(memory.value), ctypes.c_size_t(int(sys.argv[2]))
    assert nccl.ncclAllReduce(at, at, count, 7, 0, comm, None) == 0
    cuda.cuCtxSynchronize()
os.write(1, b"pid %d\\n" % os.getpid())
os._exit(0) if not rank else os.wait()
"""


def test_ranks_that_say_the_id_of_another_users_communicator_are_not_in_it(case):
    os.chmod(case.folder, 0o755)
    jobs = []
    for user, steps, size in ((VICTIM, 40, 1024), (HOSTILE, 30, 2048)):
        folder = case.path(f"of{user}")
        os.mkdir(folder)
        os.chown(folder, user, user)
        jobs.append(f"SIMNCCL_DIR={folder} setpriv --reuid {user} --regid {user} --clear-groups {sys.executable} -c '{RANKS}' {steps} {size}")
    path, script = case.path("ranks.cuscope"), case.path("jobs.sh")
    with open(script, "w") as file:
        file.write(" &\n".join(jobs) + "\nwait\n")
    done = case.cuscope("record", "--gpu", "--hooks", "nccl", "-o", path, "--", "sh", script)
    checks.equal("status of record", 0, done.wait())
    pids = [int(line.split()[1]) for line in done.out().splitlines() if line.startswith("pid")]
    checks.equal("ranks", 4, len(pids))
    done = case.cuscope("report", path, "ranks", "--format", "csv", name="report")
    checks.equal("status of report", 0, done.wait())
    rows = list(csv.DictReader(io.StringIO(done.out().split("\n\n")[0])))
    counts = sorted((row["Comm"].split(" of ")[1], int(row["Count"])) for row in rows)
    checks.equal("collectives that each was seen in", [(f"user {VICTIM}", 40)] * 2 + [(f"user {HOSTILE}", 30)] * 2, counts)
    if f"theirs by processes of user {VICTIM} and user {HOSTILE}" not in done.err():
        raise Failure(f"report says {done.err()}")
    done = case.cuscope("why", path, "--format", "json", name="why")
    checks.equal("status of why", 0, done.wait())
    checks.equal("who says so", [f"user {VICTIM}", f"user {HOSTILE}"], json.loads(done.out())["claimed"][0]["users"])
