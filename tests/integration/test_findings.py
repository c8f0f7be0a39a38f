# SPDX-License-Identifier: MIT
"""Findings, overlap and nsys' expert rules, of recordings with GPU times by the simulated driver."""

import json

import checks
from gpu_trace import read, start
from harness import Failure, Places

ASYNC_PAGEABLE = """select count(*) from CUPTI_ACTIVITY_KIND_MEMCPY m
    join CUPTI_ACTIVITY_KIND_RUNTIME c on c.correlationId = m.correlationId
    join StringIds s on s.id = c.nameId
    where s.value like 'cuMemcpy%Async%' and (m.srcKind = 0 or m.dstKind = 0)"""
SYNC = """select count(*) from CUPTI_ACTIVITY_KIND_MEMCPY m
    join CUPTI_ACTIVITY_KIND_RUNTIME c on c.correlationId = m.correlationId
    join StringIds s on s.id = c.nameId
    where s.value like 'cuMemcpy%' and s.value not like '%Async%'"""


def record(case, program, *arguments):
    process = start(case, ["--", Places.program(program), *map(str, arguments)])
    checks.equal("status of record", 0, process.wait())
    return case.path("trace.cuscope")


def report(case, path, name, *options):
    process = case.cuscope("report", path, name, "--format", "json", *options)
    checks.equal(f"status of report {name}", 0, process.wait())
    return json.loads(process.out())


def test_findings_expert_rules_find_what_sql_finds(case):
    path = record(case, "gpucopies", 3)
    database = read(case).database
    for name, query in (("cuda_memcpy_async", ASYNC_PAGEABLE), ("cuda_memcpy_sync", SYNC)):
        rows = report(case, path, name, "--top", "1000")
        expected = database.execute(query).fetchone()[0]
        checks.equal(name, expected, len(rows))
        if not expected:
            raise Failure(f"nothing to be found by {name}")


def test_findings_of_all_copies_that_ran(case):
    path = record(case, "gpucopies", 3)
    ran = [row for row in report(case, path, "cuda_gpu_trace") if row["Bytes (MB)"] is not None]
    groups = report(case, path, "copies")
    checks.equal("copies and sets", len(ran), sum(group["Count"] for group in groups))
    rounded = sum(row["Bytes (MB)"] for row in ran) * 1e6  # each to 1,000 bytes, as nsys has it
    exact = sum(group["Bytes (bytes)"] for group in groups)
    if abs(rounded - exact) > 500 * len(ran):
        raise Failure(f"bytes: {rounded} in the trace, {exact} in groups")


def test_findings_overlap_and_gaps_are_busy_for_as_long(case):
    path = record(case, "gpustreams", 30)
    rows = report(case, path, "overlap")["busy"]
    gpus = report(case, path, "gaps")["gpus"]
    if not rows:
        raise Failure("no GPU was busy")
    checks.equal("the time", [row["Time (ns)"] for row in gpus], [row["Time (ns)"] for row in rows])
    checks.equal("idle", [row["Idle (ns)"] for row in gpus], [row["Nothing (ns)"] for row in rows])


# Copies take most of the time, whatever else the run waits for.
LONG_COPIES = {"SIMCUDA_TIME_SCALE": "100"}


def same_as_why(case, path, parts):
    """Findings are what why would change, in its order, and the accounts are why's."""
    process = case.cuscope("why", path, "--format", "json")
    checks.equal("status of why", 0, process.wait())
    why = json.loads(process.out())
    changes = ([why["first"]] if why["first"] else []) + why["next"]
    told = [row for row in parts["findings"] if row["Time (ns)"] is not None]
    checks.equal("changes", [(change["cause"], change["gain_ns"]) for change in changes],
                 [(row["Cause"], row["Time (ns)"]) for row in told])
    for gpu in why["gpus"]:
        rows = [row for row in parts["account"] if (row["PID"], row["Device"]) == (gpu["pid"], gpu.get("gpu"))]
        checks.equal("the account", gpu["account"][0]["cause"], rows[0]["Cause"])
        total = sum(row["Of Time (%)"] for row in rows)
        if not 99 < total < 101:
            raise Failure(f"the account of GPU {gpu.get('gpu')} has {total} %")


def test_findings_of_a_real_recording(case):
    case.env = LONG_COPIES
    path = record(case, "gpucopies", 20)
    parts = report(case, path, "findings")
    same_as_why(case, path, parts)
    account = {row["Cause"]: row["Time (ns)"] for row in reversed(parts["account"])}
    if max(account, key=account.get) not in ("copies", "copy_call"):
        raise Failure(f"the GPU copies for most of the time: {account}")
    numbers = {row["No"] for row in parts["findings"]}
    checks.equal("findings with details", numbers, {row["No"] for row in parts["details"]})


def test_findings_from_calls_alone(case):
    case.env = LONG_COPIES
    path = case.path("calls.cuscope")
    process = case.cuscope("record", "-o", path, "--", Places.program("gpucopies"), "20")
    checks.equal("status of record", 0, process.wait())
    parts = report(case, path, "findings")
    same_as_why(case, path, parts)
    checks.contains("what is not known", "GPU times were not recorded", json.dumps(parts["not_known"]))
