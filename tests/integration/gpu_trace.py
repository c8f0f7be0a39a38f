# SPDX-License-Identifier: MIT
"""A recording with GPU times, as its export to SQLite has it."""

import collections
import os
import sqlite3

import checks
from harness import Failure, Places, wait_until

CALLS = """select c.start, c.end, c.correlationId, s.value as name, c.globalTid & 0xffffff as tid,
                  (c.globalTid >> 24) & 0xffffff as pid, a.flags
           from CUPTI_ACTIVITY_KIND_RUNTIME c join StringIds s on s.id = c.nameId
           left join cuscope_argument a on a.callId = c.rowid"""
KERNELS = """select k.start, k.end, k.correlationId, s.value as name, k.streamId, k.deviceId,
                    (k.globalPid >> 24) & 0xffffff as pid, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY,
                    k.blockZ
             from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName"""
COPIES = """select start, end, correlationId, bytes, copyKind, streamId, (globalPid >> 24) & 0xffffff as pid
            from CUPTI_ACTIVITY_KIND_MEMCPY"""
SETS = """select start, end, correlationId, bytes, streamId, (globalPid >> 24) & 0xffffff as pid
          from CUPTI_ACTIVITY_KIND_MEMSET"""


class Trace:
    """Its calls, and what ran on the GPU; times are nanoseconds since the trace began."""

    def __init__(self, path):
        self.database = sqlite3.connect(path)
        self.database.row_factory = sqlite3.Row
        self.calls, self.kernels = self.rows(CALLS), self.rows(KERNELS)
        self.copies, self.sets = self.rows(COPIES), self.rows(SETS)
        # numbers are a process's own; one that execs begins again
        self.by_number = collections.defaultdict(list)
        for call in self.calls:
            self.by_number[call["pid"], call["correlationId"]].append(call)

    def rows(self, query):
        try:
            return self.database.execute(query).fetchall()
        except sqlite3.OperationalError as error:  # tables without rows are left out
            if "no such table" in str(error):
                return []
            raise

    @property
    def activities(self):
        return self.kernels + self.copies + self.sets

    def launches(self):
        return [c for c in self.calls if "Launch" in c["name"]]

    def call_of(self, activity):
        """The call that asked for it: of several programs in one process, the last before it."""
        calls = [c for c in self.by_number[activity["pid"], activity["correlationId"]]
                 if c["start"] <= activity["start"]]
        if not activity["correlationId"] or not calls:
            raise Failure(f"no call asked for {tuple(activity)}")
        return calls[-1]


def start(case, target, options=(), cupti="libcupti.so.13", name="trace", **more):
    """cuscope record --gpu, by the simulated libcupti where it is not to be looked for."""
    path = [] if cupti is None else ["--cupti", Places.simcuda(cupti)]
    return case.cuscope("record", "-o", case.path(name + ".cuscope"), "--gpu", *path, *options, *target,
                        **more)


def read(case, name="trace"):
    database = case.path(name + ".sqlite")
    export = case.cuscope("export", case.path(name + ".cuscope"), "-o", database, "--force")
    checks.equal("status of the export", 0, export.wait())
    return Trace(database)


def record(case, program, *arguments, options=(), status=0, name="trace", said="", **more):
    """Records a program from its begin to its end."""
    command = program if program.startswith("/") else Places.program(program)
    process = start(case, ["--", command, *map(str, arguments)], options, name=name, **more)
    checks.equal("status", status, process.wait())
    if said is not None:
        checks.contains("what it said", said, process.err())
    return read(case, name)


def measures(process, pid=r"\d+"):
    """Waits until a recording says that it has GPU times."""
    def said():
        if process.process.poll() is not None:
            raise Failure(f"it ended: {process.err()}")
        return f"GPU times of process {pid} by" in process.err() if isinstance(pid, int) else \
            "GPU times of process" in process.err()
    wait_until(said, "GPU times to begin")


def sensible(trace, unknown=0):
    """No activity begins before its call did, and each ends after it began. `unknown`: that many may
    have been asked for before agents listened."""
    for activity in trace.activities:
        if activity["end"] < activity["start"]:
            raise Failure(f"it ended before it began: {tuple(activity)}")
        if not activity["correlationId"] and unknown:
            unknown -= 1
            continue
        trace.call_of(activity)


def running(name):
    """(pid, environment) of the processes of a program."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ") as environ:
                if comm.read().strip() == name:
                    found.append((int(pid), environ.read()))
        except OSError:
            pass
    return found
