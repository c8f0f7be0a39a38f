// SPDX-License-Identifier: MIT
/* What is done to a database when all rows are there. */
#include "output/sqlite/nsys_tables.h"

/*
 * Of the waits of a process either CUPTI told, or its calls do. Which event they are for the calls
 * tell, which may come after them. Who is blocked until the end does not come back then. The flags
 * are those of enum call_flags.
 */
const char nsys_closing_sql[] =
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION\n"
	"SELECT r.start, r.end, NULL, NULL, NULL, NULL, r.correlationId, r.globalTid & "
	"~0xffffff,\n"
	" c.syncType, NULL, NULL\n"
	"FROM cuscope_sync_call c JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.rowid = c.callId\n"
	"WHERE r.globalTid & ~0xffffff NOT IN\n"
	" (SELECT globalPid FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);\n"
	"CREATE INDEX CUDA_CALLCHAINS_id ON CUDA_CALLCHAINS(id);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_RUNTIME_correlation ON "
	"CUPTI_ACTIVITY_KIND_RUNTIME(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_KERNEL_correlation ON "
	"CUPTI_ACTIVITY_KIND_KERNEL(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_MEMCPY_correlation ON "
	"CUPTI_ACTIVITY_KIND_MEMCPY(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_MEMSET_correlation ON "
	"CUPTI_ACTIVITY_KIND_MEMSET(correlationId);\n"
	"UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION AS s SET eventId =\n"
	" (SELECT c.eventId FROM CUPTI_ACTIVITY_KIND_RUNTIME r\n"
	"  JOIN cuscope_sync_call c ON c.callId = r.rowid WHERE r.correlationId = "
	"s.correlationId)\n"
	"WHERE s.syncType IN (1, 2);\n"
	"DROP TABLE cuscope_sync_call;\n"
	"DELETE FROM SCHED_EVENTS\n"
	"WHERE isSchedIn AND start >= (SELECT duration FROM ANALYSIS_DETAILS);\n"
	"CREATE VIEW cuscope_call AS\n"
	"SELECT r.rowid AS id, r.start, CASE WHEN a.flags & 6 THEN NULL ELSE r.end END AS "
	"end,\n"
	" CASE WHEN a.flags & 6 THEN NULL ELSE r.end - r.start END AS duration,\n"
	" p.name AS process, r.globalTid >> 24 & 0xffffff AS pid, r.globalTid & 0xffffff AS "
	"tid,\n"
	" tn.value AS thread, CASE r.eventClass WHEN 0 THEN 'runtime' ELSE 'driver' END AS "
	"layer,\n"
	" f.class, n.value AS function,\n"
	" CASE WHEN a.flags & 6 THEN NULL ELSE r.returnValue END AS result,\n"
	" CASE WHEN a.flags & 6 THEN NULL ELSE e.name END AS resultName,\n"
	" k.value AS kernel, a.gridX, a.gridY, a.gridZ, a.blockX, a.blockY, a.blockZ,\n"
	" a.sharedMemory, a.stream, a.bytes, a.direction, a.address, a.source, a.memory,\n"
	" ifnull(a.depth, 0) AS depth, ifnull(a.flags & 1, 0) AS nested,\n"
	" ifnull(a.flags >> 3 & 1, 0) AS captured, ifnull(a.flags >> 4 & 1, 0) AS failed,\n"
	" ifnull(a.flags >> 2 & 1, 0) AS unfinished, r.correlationId\n"
	"FROM CUPTI_ACTIVITY_KIND_RUNTIME r\n"
	"JOIN StringIds n ON n.id = r.nameId\n"
	"LEFT JOIN cuscope_argument a ON a.callId = r.rowid\n"
	"LEFT JOIN StringIds k ON k.id = a.kernelId\n"
	"LEFT JOIN cuscope_function f ON f.nameId = r.nameId AND f.eventClass = r.eventClass\n"
	"LEFT JOIN cuscope_result e ON e.eventClass = r.eventClass AND e.code = r.returnValue\n"
	"LEFT JOIN PROCESSES p ON p.globalPid = r.globalTid & ~0xffffff\n"
	"LEFT JOIN ThreadNames t ON t.globalTid = r.globalTid\n"
	"LEFT JOIN StringIds tn ON tn.id = t.nameId;\n";

#define SAMPLING_ROWS                                                                              \
	"SELECT s.id, c.symbol, c.module, c.kernelMode, c.thumbCode, c.unresolved,\n"              \
	" c.specialEntry, c.originalIP, c.unwindMethod, c.stackDepth, c.frameId\n"                 \
	"FROM cuscope_sample s JOIN CUDA_CALLCHAINS c ON c.id = ifnull(s.callchainId, 0)\n"        \
	"WHERE s.kind = 'cpu';\n"

const char nsys_sampling_table[] =
	"CREATE TABLE SAMPLING_CALLCHAINS (\n" CALLCHAIN_COLUMNS "\n);\n"
	"INSERT INTO SAMPLING_CALLCHAINS\n" SAMPLING_ROWS
	"CREATE INDEX SAMPLING_CALLCHAINS_id ON SAMPLING_CALLCHAINS(id);\n";

const char nsys_sampling_view[] = "CREATE VIEW SAMPLING_CALLCHAINS AS\n" SAMPLING_ROWS;
