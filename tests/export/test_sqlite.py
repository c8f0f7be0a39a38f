# SPDX-License-Identifier: MIT
"""Databases, asked as people ask those of Nsight Systems."""

import sqlite3

from case import equal

PID = "/ 0x1000000 % 0x1000000"


def ask(case, trace, sql):
    with sqlite3.connect(case.export(trace, trace + ".sqlite", "--force")) as db:
        return db.execute(sql).fetchall()


def rows_of_all_tables(db):
    for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        yield sql
        if sql.startswith("CREATE TABLE"):
            yield from map(repr, db.execute(f"SELECT * FROM {name}"))


def test_sqlite_is_what_it_was(case):
    with sqlite3.connect(case.export("gpu", "gpu.db")) as db:
        lines = [line for line in rows_of_all_tables(db) if "EXPORT_PRODUCT_VERSION" not in line]
    case.golden("gpu.sqlite.txt", "\n".join(lines) + "\n")


def test_sqlite_ranges(case):
    rows = ask(case, "ranges", """
        SELECT n.text, e.name, d.text, n.end - n.start, n.globalTid % 0x1000000
        FROM NVTX_EVENTS n JOIN ENUM_NSYS_EVENT_TYPE e ON e.id = n.eventType
        LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = n.domainId
        WHERE n.eventType != 75 AND n.text NOT IN ('aten::mm', 'optimizer') AND n.text NOT LIKE 'forward%'
        ORDER BY n.start""")
    equal("ranges", [("epoch", "NvtxStartEndRange", "train", 10200000, 5152),
                     ("ProfilerStep#1", "NvtxPushPopRange", None, 4500000, 5151),
                     ("ncclAllReduce", "NvtxPushPopRange", "NCCL", 30000, 5151),
                     ("backward", "NvtxPushPopRange", None, 800000, 5152),
                     ("checkpoint", "NvtxMark", None, None, 5151),
                     ("ProfilerStep#2", "NvtxPushPopRange", None, 4500000, 5151)], rows)


def test_sqlite_waits_overhead_and_graphs(case):
    equal("waits", [("Context Sync", 2, 7980000, 0, 2)], ask(case, "ranges", """
        SELECT e.label, COUNT(*), SUM(s.end - s.start), s.deviceId, COUNT(r.rowid)
        FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s JOIN ENUM_CUPTI_SYNC_TYPE e ON e.id = s.syncType
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = s.correlationId GROUP BY 1"""))
    equal("overhead", [("Buffer Flush", 120000, 5152)], ask(case, "ranges", """
        SELECT e.label, o.end - o.start, o.globalTid % 0x1000000
        FROM CUPTI_ACTIVITY_KIND_OVERHEAD o JOIN ENUM_CUPTI_OVERHEAD_TYPE e ON e.id = o.overheadType"""))
    equal("graphs", [(3, 2, 5200000)], ask(case, "ranges", """
        SELECT graphId, COUNT(*), SUM(end - start) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE GROUP BY 1"""))


def test_sqlite_waits_have_their_events(case):
    equal("waits", 3 * [("Stream Wait Event", 1), ("Event Sync", 2), ("Context Sync", None)] +
          [("Stream Wait Event", 3), ("Event Sync", 2), ("Context Sync", None)], ask(case, "events", """
        SELECT e.label, s.eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s
        JOIN ENUM_CUPTI_SYNC_TYPE e ON e.id = s.syncType ORDER BY s.start"""))
    equal("waits that calls tell", [(2, 1), (1, 1)], ask(case, "gpu", """
        SELECT syncType, eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION WHERE eventId IS NOT NULL"""))


def test_sqlite_work_is_of_contexts_and_streams_that_are_listed(case):
    equal("streams", [(4242, 0, 1, 7, 7, "Null"), (5151, 0, 1, 13, None, None), (5151, 0, 1, 14, None, None),
                      (5151, 1, 2, 13, None, None)], ask(case, "gpu", """
        SELECT c.processId, c.deviceId, c.contextId, s.streamId, c.nullStreamId, t.label
        FROM TARGET_INFO_CUDA_CONTEXT_INFO c JOIN TARGET_INFO_CUDA_STREAM s USING (processId, contextId)
        LEFT JOIN ENUM_CUPTI_STREAM_TYPE t ON t.id = s.flag ORDER BY 1, 3, 4"""))
    equal("kernels without a context", [(0,)], ask(case, "gpu", f"""
        SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN TARGET_INFO_CUDA_CONTEXT_INFO c
        ON c.processId = k.globalPid {PID} AND c.contextId = k.contextId AND c.deviceId = k.deviceId
        WHERE c.contextId IS NULL"""))


def test_sqlite_memory_has_the_columns_of_pools(case):
    with sqlite3.connect(case.export("gpu", "gpu.sqlite")) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(CUDA_GPU_MEMORY_USAGE_EVENTS)")]
    equal("the last six", ["localMemoryPoolAddress", "localMemoryPoolReleaseThreshold", "localMemoryPoolSize",
                           "localMemoryPoolUtilizedSize", "importedMemoryPoolAddress", "importedMemoryPoolProcessId"],
          names[-6:])


def test_sqlite_is_sound(case):
    for trace in ("plain", "gpu", "lost", "ranges"):
        equal(trace, [("ok",)], ask(case, trace, "PRAGMA integrity_check"))


def test_sqlite_summary_of_kernels(case):
    rows = ask(case, "gpu", """
        SELECT names.value, COUNT(*) AS instances, SUM(k.end - k.start) AS total,
               MIN(k.end - k.start), MAX(k.end - k.start), k.registersPerThread
        FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        LEFT JOIN StringIds AS names ON names.id = k.shortName
        GROUP BY k.shortName ORDER BY total DESC""")
    equal("vectorAdd", ("vectorAdd", 3, 870375, 290125, 290125, 16), rows[0])
    equal("kernels", ["vectorAdd", "gemm", "softmax"], [row[0] for row in rows])


def test_sqlite_summary_of_calls(case):
    rows = ask(case, "plain", """
        WITH calls AS (
            SELECT nameId, end - start AS duration FROM CUPTI_ACTIVITY_KIND_RUNTIME)
        SELECT value, COUNT(*), MAX(duration)
        FROM calls JOIN StringIds ON StringIds.id = calls.nameId
        GROUP BY value HAVING value LIKE 'cudaMal%' ORDER BY value""")
    equal("calls", [("cudaMalloc", 7, 250000), ("cudaMallocArray", 1, 10000),
                    ("cudaMallocAsync", 1, 10000), ("cudaMallocHost", 1, 10000),
                    ("cudaMallocManaged", 1, 10000)], rows)


def test_sqlite_copies_by_kind(case):
    rows = ask(case, "gpu", """
        SELECT '[CUDA memcpy ' || oper.label || ']', COUNT(*), SUM(copy.bytes)
        FROM CUPTI_ACTIVITY_KIND_MEMCPY AS copy
        INNER JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id == copy.copyKind
        GROUP BY 1 ORDER BY 1""")
    equal("copies", [("[CUDA memcpy Device-to-Device]", 1, 8192),
                     ("[CUDA memcpy Device-to-Host]", 2, 201024),
                     ("[CUDA memcpy Host-to-Device]", 1, 1 << 20),
                     ("[CUDA memcpy Peer-to-Peer]", 1, 1 << 20)], rows)


def test_sqlite_pageable_copies(case):
    rows = ask(case, "gpu", """
        SELECT copy.bytes, source.label, target.label
        FROM CUPTI_ACTIVITY_KIND_MEMCPY AS copy
        JOIN ENUM_CUDA_MEM_KIND AS source ON source.id = copy.srcKind
        JOIN ENUM_CUDA_MEM_KIND AS target ON target.id = copy.dstKind
        WHERE copy.srcKind = 0 OR copy.dstKind = 0""")
    equal("pageable copies", [(200000, "Device", "Pageable")], rows)


def test_sqlite_launches_joined_to_kernels(case):
    rows = ask(case, "gpu", f"""
        SELECT r.globalTid {PID} AS pid, r.globalTid % 0x1000000 AS tid, api.value,
               kernel.value, k.start - r.start AS delay
        FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
          ON r.correlationId = k.correlationId
         AND r.globalTid {PID} = k.globalPid {PID}
        JOIN StringIds AS api ON api.id = r.nameId
        JOIN StringIds AS kernel ON kernel.id = k.shortName
        WHERE pid = 4242 ORDER BY k.start""")
    equal("launches", [(4242, 4242, "cudaLaunchKernel", "vectorAdd", delay)
                       for delay in (50000, 250000, 450000)], rows)


def test_sqlite_every_activity_has_its_call(case):
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        rows = ask(case, "gpu", f"""
            SELECT COUNT(*), COUNT(r.start) FROM CUPTI_ACTIVITY_KIND_{table} AS a
            LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId)
            WHERE a.correlationId IS NOT NULL""")
        equal(table, rows[0][0], rows[0][1])


def test_sqlite_threads_and_processes_have_names(case):
    rows = ask(case, "plain", """
        SELECT p.name, names.value, t.globalTid & 0xffffff
        FROM ThreadNames AS t JOIN StringIds AS names ON names.id = t.nameId
        JOIN PROCESSES AS p ON p.globalPid = t.globalTid - t.globalTid % 0x1000000
        ORDER BY 3""")
    equal("threads", [("vectorAdd", "vectorAdd", 4242), ("python3", "python3", 5151),
                      ("python3", "pt_autograd_0", 5152),
                      ("python3", "red\\x1b[31m", 5153)], rows)


def test_sqlite_memory_ends_where_it_should(case):
    rows = ask(case, "plain", """
        SELECT u.globalPid / 0x1000000 % 0x1000000,
               SUM(CASE o.label WHEN 'Allocation' THEN bytes ELSE -bytes END)
        FROM CUDA_GPU_MEMORY_USAGE_EVENTS AS u
        JOIN ENUM_CUDA_DEV_MEM_EVENT_OPER AS o ON o.id = u.memoryOperationType
        GROUP BY 1""")
    equal("live bytes", [(4242, 0), (5151, 512 << 10)], rows)
    rows = ask(case, "gpu", "SELECT max(liveBytes) FROM cuscope_memory")
    equal("peak", [(5324800,)], rows)


def test_sqlite_view_of_calls_counts_as_the_table_does(case):
    for trace in ("plain", "gpu", "lost", "ranges"):
        rows = ask(case, trace, """SELECT (SELECT COUNT(*) FROM cuscope_call),
                                          (SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME)""")
        equal(trace, rows[0][0], rows[0][1])


def test_sqlite_errors_by_name(case):
    rows = ask(case, "plain", """SELECT function, resultName, COUNT(*) FROM cuscope_call
                                 WHERE failed GROUP BY 1, 2 ORDER BY 1""")
    equal("errors", [("cudaLaunchKernel", "cudaErrorInvalidConfiguration", 1),
                     ("cudaMalloc", "cudaErrorMemoryAllocation", 2),
                     ("cudaStreamSynchronize", "cudaErrorIllegalAddress", 1)], rows)


def test_sqlite_part_of_a_trace(case):
    with sqlite3.connect(case.export("plain", "part.sqlite", "--pid", "4242")) as db:
        pids = db.execute(f"SELECT DISTINCT globalTid {PID} FROM CUPTI_ACTIVITY_KIND_RUNTIME")
        equal("processes", [(4242,)], pids.fetchall())


def test_sqlite_properties_of_the_machine_have_keys(case):
    rows = ask(case, "gpu", "SELECT nameEnum, name, value FROM TARGET_INFO_SYSTEM_ENV")
    values = {key: (name, value) for key, name, value in rows}
    equal("one row a key", len(rows), len(values))
    equal("CPUs", [("CpuCores", "96")], [row for row in values.values() if row[0] == "CpuCores"])


def test_sqlite_ranges_by_the_number_of_their_text(case):
    rows = ask(case, "ranges", """
        SELECT COUNT(*), COUNT(s.id) FROM NVTX_EVENTS n
        LEFT JOIN StringIds s ON s.id = n.textId AND s.value = n.text""")
    equal("with a number", rows[0][0], rows[0][1])
    equal("any", True, rows[0][0] > 10)


def test_sqlite_devices_are_gpus_of_the_machine(case):
    rows = ask(case, "ranges", """
        SELECT c.cudaId, g.name, g.busLocation, g.smCount, g.uuid = c.uuid, c.numMultiprocessors
        FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE c ON c.gpuId = g.id GROUP BY c.cudaId""")
    equal("device", [(0, "NVIDIA H200", "0000:18:00.0", 132, 1, 132)], rows)
    rows = ask(case, "gpu", "SELECT cudaId, gpuId, numMultiprocessors FROM TARGET_INFO_CUDA_DEVICE")
    equal("of two GPUs", [(0, None, 132), (0, None, 132), (1, None, 132)], rows)


def test_sqlite_calls_that_wait(case):
    rows = ask(case, "gpu", """
        SELECT e.label, n.value, s.end - s.start = r.end - r.start
        FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s JOIN ENUM_CUPTI_SYNC_TYPE e ON e.id = s.syncType
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = s.correlationId
        JOIN StringIds n ON n.id = r.nameId ORDER BY s.start""")
    equal("waits", [("Context Sync", "cudaDeviceSynchronize", 1),
                    ("Stream Sync", "cudaStreamSynchronize", 1),
                    ("Stream Wait Event", "cudaStreamWaitEvent", 1),
                    ("Event Sync", "cudaEventSynchronize", 1),
                    ("Stream Sync", "cudaStreamSynchronize", 1)], rows)


def test_sqlite_what_was_missed_is_a_warning(case):
    rows = ask(case, "lost", """
        SELECT e.name, COUNT(*) FROM DIAGNOSTIC_EVENT d
        JOIN ENUM_DIAGNOSTIC_SEVERITY_LEVEL e ON e.id = d.severity GROUP BY 1""")
    equal("warnings", [("Warning", 8)], rows)
    equal("nothing missed", [], ask(case, "gpu", "SELECT * FROM DIAGNOSTIC_EVENT"))
