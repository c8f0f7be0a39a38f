// SPDX-License-Identifier: MIT
#include "output/sqlite/nsys_tables.h"

#include <string.h>

#include "base/array.h"

/* ---- nsys closing -------------------------------------------------------------------------- */

/* What is done to a database when all rows are there. */

/* Of a trace while it runs it is known now who was blocked until the end, and does not come back.
 */
const char nsys_closing_sql[] =
	"CREATE INDEX CUDA_CALLCHAINS_id ON CUDA_CALLCHAINS(id);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_RUNTIME_correlation ON "
	"CUPTI_ACTIVITY_KIND_RUNTIME(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_KERNEL_correlation ON "
	"CUPTI_ACTIVITY_KIND_KERNEL(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_MEMCPY_correlation ON "
	"CUPTI_ACTIVITY_KIND_MEMCPY(correlationId);\n"
	"CREATE INDEX CUPTI_ACTIVITY_KIND_MEMSET_correlation ON "
	"CUPTI_ACTIVITY_KIND_MEMSET(correlationId);\n"
	"DELETE FROM SCHED_EVENTS\n"
	"WHERE isSchedIn AND start >= (SELECT duration FROM ANALYSIS_DETAILS);\n"
	/* The flags are those of enum call_flags. */
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

/* ---- nsys tables --------------------------------------------------------------------------- */

/* Columns that every kind of GPU activity begins with. */
#define ACTIVITY_COLUMNS                                                                           \
	"start INTEGER NOT NULL,\n"                                                                \
	"end INTEGER NOT NULL,\n"                                                                  \
	"deviceId INTEGER NOT NULL,\n"                                                             \
	"contextId INTEGER NOT NULL,\n"                                                            \
	"greenContextId INTEGER,\n"                                                                \
	"streamId INTEGER NOT NULL,\n"                                                             \
	"correlationId INTEGER,\n"                                                                 \
	"globalPid INTEGER,\n"

/*
 * NOT NULL stands where Nsight Systems has it, but for what a probe on the API cannot know: the
 * device of an allocation, the value of a memset, the context of a wait, the CPU that a thread
 * left. Those are NULL here.
 */
const struct nsys_table_layout nsys_tables[TABLE_COUNT] = {
	[TABLE_STRING] = { "StringIds", "id INTEGER NOT NULL PRIMARY KEY,\n"
	                                "value TEXT NOT NULL" },
	[TABLE_PROCESS] = { "PROCESSES",
	                    "globalPid INTEGER,\n"
	                    "pid INTEGER,\n"
	                    "name TEXT",
	                    "globalPid" },
	[TABLE_THREAD] = { "ThreadNames",
	                   "nameId INTEGER NOT NULL,\n"
	                   "priority INTEGER,\n"
	                   "globalTid INTEGER",
	                   "globalTid" },
	[TABLE_RUNTIME] = { "CUPTI_ACTIVITY_KIND_RUNTIME",
	                    "start INTEGER NOT NULL,\n"
	                    "end INTEGER NOT NULL,\n"
	                    "eventClass INTEGER NOT NULL,\n"
	                    "globalTid INTEGER,\n"
	                    "correlationId INTEGER,\n"
	                    "nameId INTEGER NOT NULL,\n"
	                    "returnValue INTEGER NOT NULL,\n"
	                    "callchainId INTEGER",
	                    .frequent = true, .numbered = true },
	[TABLE_OSRT] = { "OSRT_API",
	                 "start INTEGER NOT NULL,\n"
	                 "end INTEGER NOT NULL,\n"
	                 "eventClass INTEGER NOT NULL,\n"
	                 "globalTid INTEGER,\n"
	                 "correlationId INTEGER,\n"
	                 "nameId INTEGER NOT NULL,\n"
	                 "returnValue INTEGER NOT NULL,\n"
	                 "nestingLevel INTEGER,\n"
	                 "callchainId INTEGER",
	                 .frequent = true, .numbered = true, .lazy = true },
	[TABLE_KERNEL] = { "CUPTI_ACTIVITY_KIND_KERNEL",
	                   ACTIVITY_COLUMNS "demangledName INTEGER NOT NULL,\n"
	                                    "shortName INTEGER NOT NULL,\n"
	                                    "mangledName INTEGER,\n"
	                                    "launchType INTEGER,\n"
	                                    "cacheConfig INTEGER,\n"
	                                    "registersPerThread INTEGER NOT NULL,\n"
	                                    "gridX INTEGER NOT NULL,\n"
	                                    "gridY INTEGER NOT NULL,\n"
	                                    "gridZ INTEGER NOT NULL,\n"
	                                    "blockX INTEGER NOT NULL,\n"
	                                    "blockY INTEGER NOT NULL,\n"
	                                    "blockZ INTEGER NOT NULL,\n"
	                                    "staticSharedMemory INTEGER NOT NULL,\n"
	                                    "dynamicSharedMemory INTEGER NOT NULL,\n"
	                                    "localMemoryPerThread INTEGER,\n"
	                                    "localMemoryTotal INTEGER,\n"
	                                    "gridId INTEGER,\n"
	                                    "sharedMemoryExecuted INTEGER,\n"
	                                    "graphNodeId INTEGER,\n"
	                                    "sharedMemoryLimitConfig INTEGER",
	                   .frequent = true },
	[TABLE_MEMCPY] = { "CUPTI_ACTIVITY_KIND_MEMCPY",
	                   ACTIVITY_COLUMNS "bytes INTEGER NOT NULL,\n"
	                                    "copyKind INTEGER NOT NULL,\n"
	                                    "deprecatedSrcId INTEGER,\n"
	                                    "srcKind INTEGER,\n"
	                                    "dstKind INTEGER,\n"
	                                    "srcDeviceId INTEGER,\n"
	                                    "srcContextId INTEGER,\n"
	                                    "dstDeviceId INTEGER,\n"
	                                    "dstContextId INTEGER,\n"
	                                    "migrationCause INTEGER,\n"
	                                    "graphNodeId INTEGER,\n"
	                                    "virtualAddress INTEGER,\n"
	                                    "copyCount INTEGER",
	                   .frequent = true },
	[TABLE_MEMSET] = { "CUPTI_ACTIVITY_KIND_MEMSET",
	                   ACTIVITY_COLUMNS "value INTEGER,\n"
	                                    "bytes INTEGER NOT NULL,\n"
	                                    "graphNodeId INTEGER,\n"
	                                    "memKind INTEGER",
	                   .frequent = true },
	[TABLE_GRAPH_TRACE] = { "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	                        ACTIVITY_COLUMNS "graphId INTEGER NOT NULL,\n"
	                                         "graphExecId INTEGER",
	                        .frequent = true },
	[TABLE_SYNCHRONIZATION] = { "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	                            "start INTEGER NOT NULL,\n"
	                            "end INTEGER NOT NULL,\n"
	                            "deviceId INTEGER,\n"
	                            "contextId INTEGER,\n"
	                            "greenContextId INTEGER,\n"
	                            "streamId INTEGER,\n"
	                            "correlationId INTEGER,\n"
	                            "globalPid INTEGER,\n"
	                            "syncType INTEGER NOT NULL,\n"
	                            "eventId INTEGER,\n"
	                            "eventSyncId INTEGER",
	                            .frequent = true },
	[TABLE_OVERHEAD] = { "CUPTI_ACTIVITY_KIND_OVERHEAD",
	                     "start INTEGER NOT NULL,\n"
	                     "end INTEGER NOT NULL,\n"
	                     "eventClass INTEGER,\n"
	                     "globalTid INTEGER,\n"
	                     "correlationId INTEGER,\n"
	                     "nameId INTEGER,\n"
	                     "overheadType INTEGER NOT NULL",
	                     .frequent = true },
	[TABLE_PROFILER_OVERHEAD] = { "PROFILER_OVERHEAD",
	                              "start INTEGER NOT NULL,\n"
	                              "end INTEGER NOT NULL,\n"
	                              "globalTid INTEGER,\n"
	                              "nameId INTEGER NOT NULL,\n"
	                              "returnValue INTEGER NOT NULL,\n"
	                              "overheadType INTEGER",
	                              .frequent = true },
	[TABLE_GRAPH_NODE] = { "CUDA_GRAPH_NODE_EVENTS", "start INTEGER NOT NULL,\n"
	                                                 "end INTEGER NOT NULL,\n"
	                                                 "eventClass INTEGER NOT NULL,\n"
	                                                 "globalTid INTEGER,\n"
	                                                 "nameId INTEGER NOT NULL,\n"
	                                                 "graphNodeId INTEGER NOT NULL,\n"
	                                                 "originalGraphNodeId INTEGER" },
	[TABLE_NVTX] = { "NVTX_EVENTS", "start INTEGER NOT NULL,\n"
	                                "end INTEGER,\n"
	                                "eventType INTEGER NOT NULL,\n"
	                                "rangeId INTEGER,\n"
	                                "category INTEGER,\n"
	                                "color INTEGER,\n"
	                                "text TEXT,\n"
	                                "globalTid INTEGER,\n"
	                                "endGlobalTid INTEGER,\n"
	                                "textId INTEGER,\n"
	                                "domainId INTEGER,\n"
	                                "uint64Value INTEGER,\n"
	                                "int64Value INTEGER,\n"
	                                "doubleValue REAL,\n"
	                                "uint32Value INTEGER,\n"
	                                "int32Value INTEGER,\n"
	                                "floatValue REAL,\n"
	                                "jsonTextId INTEGER,\n"
	                                "jsonText TEXT,\n"
	                                "binaryData TEXT" },
	[TABLE_MEMORY_USAGE] = { "CUDA_GPU_MEMORY_USAGE_EVENTS",
	                         "start INTEGER NOT NULL,\n"
	                         "globalPid INTEGER NOT NULL,\n"
	                         "deviceId INTEGER,\n"
	                         "contextId INTEGER,\n"
	                         "address INTEGER NOT NULL,\n"
	                         "pc INTEGER,\n"
	                         "bytes INTEGER NOT NULL,\n"
	                         "memKind INTEGER NOT NULL,\n"
	                         "memoryOperationType INTEGER NOT NULL,\n"
	                         "name TEXT,\n"
	                         "correlationId INTEGER,\n"
	                         "streamId INTEGER,\n"
	                         "localMemoryPoolAddress INTEGER,\n"
	                         "localMemoryPoolReleaseThreshold INTEGER,\n"
	                         "localMemoryPoolSize INTEGER,\n"
	                         "localMemoryPoolUtilizedSize INTEGER,\n"
	                         "importedMemoryPoolAddress INTEGER,\n"
	                         "importedMemoryPoolProcessId INTEGER",
	                         .frequent = true },
	[TABLE_CALLCHAIN] = { "CUDA_CALLCHAINS", CALLCHAIN_COLUMNS, .frequent = true,
	                      .lazy = true },
	[TABLE_COMPOSITE] = { "COMPOSITE_EVENTS",
	                      "id INTEGER NOT NULL PRIMARY KEY,\n"
	                      "start INTEGER NOT NULL,\n"
	                      "cpu INTEGER,\n"
	                      "threadState INTEGER,\n"
	                      "globalTid INTEGER,\n"
	                      "cpuCycles INTEGER NOT NULL",
	                      .frequent = true, .lazy = true },
	[TABLE_SCHED] = { "SCHED_EVENTS",
	                  "start INTEGER NOT NULL,\n"
	                  "cpu INTEGER,\n"
	                  "isSchedIn INTEGER NOT NULL,\n"
	                  "globalTid INTEGER,\n"
	                  "threadState INTEGER,\n"
	                  "threadBlock INTEGER",
	                  .frequent = true, .lazy = true },
	[TABLE_START_TIME] = { "TARGET_INFO_SESSION_START_TIME", "utcEpochNs INTEGER,\n"
	                                                         "utcTime TEXT,\n"
	                                                         "localTime TEXT" },
	[TABLE_SYSTEM] = { "TARGET_INFO_SYSTEM_ENV", "globalVid INTEGER,\n"
	                                             "devStateName TEXT NOT NULL,\n"
	                                             "name TEXT NOT NULL,\n"
	                                             "nameEnum INTEGER NOT NULL,\n"
	                                             "value TEXT NOT NULL" },
	[TABLE_GPU] = { "TARGET_INFO_GPU", "vmId INTEGER NOT NULL,\n"
	                                   "id INTEGER NOT NULL,\n"
	                                   "name TEXT,\n"
	                                   "busLocation TEXT,\n"
	                                   "isDiscrete INTEGER,\n"
	                                   "l2CacheSize INTEGER,\n"
	                                   "totalMemory INTEGER,\n"
	                                   "memoryBandwidth INTEGER,\n"
	                                   "clockRate INTEGER,\n"
	                                   "smCount INTEGER,\n"
	                                   "pwGpuId INTEGER,\n"
	                                   "uuid TEXT,\n"
	                                   "luid INTEGER,\n"
	                                   "chipName TEXT,\n"
	                                   "cuDevice INTEGER,\n"
	                                   "ctxswDevPath TEXT,\n"
	                                   "ctrlDevPath TEXT,\n"
	                                   "revision INTEGER,\n"
	                                   "nodeMask INTEGER,\n"
	                                   "constantMemory INTEGER,\n"
	                                   "maxIPC INTEGER,\n"
	                                   "maxRegistersPerBlock INTEGER,\n"
	                                   "maxShmemPerBlock INTEGER,\n"
	                                   "maxShmemPerBlockOptin INTEGER,\n"
	                                   "maxShmemPerSm INTEGER,\n"
	                                   "maxRegistersPerSm INTEGER,\n"
	                                   "threadsPerWarp INTEGER,\n"
	                                   "asyncEngines INTEGER,\n"
	                                   "maxWarpsPerSm INTEGER,\n"
	                                   "maxBlocksPerSm INTEGER,\n"
	                                   "maxThreadsPerBlock INTEGER,\n"
	                                   "maxBlockDimX INTEGER,\n"
	                                   "maxBlockDimY INTEGER,\n"
	                                   "maxBlockDimZ INTEGER,\n"
	                                   "maxGridDimX INTEGER,\n"
	                                   "maxGridDimY INTEGER,\n"
	                                   "maxGridDimZ INTEGER,\n"
	                                   "computeMajor INTEGER,\n"
	                                   "computeMinor INTEGER,\n"
	                                   "smMajor INTEGER,\n"
	                                   "smMinor INTEGER" },
	[TABLE_GPU_METRIC] = { "GPU_METRICS",
	                       "timestamp INTEGER,\n"
	                       "typeId INTEGER NOT NULL,\n"
	                       "metricId INTEGER NOT NULL,\n"
	                       "value INTEGER NOT NULL",
	                       .lazy = true },
	[TABLE_GPU_METRIC_NAME] = { "TARGET_INFO_GPU_METRICS",
	                            "typeId INTEGER NOT NULL,\n"
	                            "sourceId INTEGER NOT NULL,\n"
	                            "typeName TEXT NOT NULL,\n"
	                            "metricId INTEGER NOT NULL,\n"
	                            "metricName TEXT NOT NULL",
	                            .lazy = true },
	[TABLE_CUDA_DEVICE] = { "TARGET_INFO_CUDA_DEVICE", "gpuId INTEGER,\n"
	                                                   "cudaId INTEGER NOT NULL,\n"
	                                                   "pid INTEGER NOT NULL,\n"
	                                                   "uuid TEXT,\n"
	                                                   "numMultiprocessors INTEGER" },
	[TABLE_CUDA_CONTEXT] = { "TARGET_INFO_CUDA_CONTEXT_INFO", "nullStreamId INTEGER,\n"
	                                                          "hwId INTEGER NOT NULL,\n"
	                                                          "vmId INTEGER NOT NULL,\n"
	                                                          "processId INTEGER NOT NULL,\n"
	                                                          "deviceId INTEGER NOT NULL,\n"
	                                                          "contextId INTEGER NOT NULL,\n"
	                                                          "parentContextId INTEGER,\n"
	                                                          "isGreenContext INTEGER" },
	[TABLE_CUDA_STREAM] = { "TARGET_INFO_CUDA_STREAM", "streamId INTEGER NOT NULL,\n"
	                                                   "hwId INTEGER NOT NULL,\n"
	                                                   "vmId INTEGER NOT NULL,\n"
	                                                   "processId INTEGER NOT NULL,\n"
	                                                   "contextId INTEGER NOT NULL,\n"
	                                                   "priority INTEGER,\n"
	                                                   "flag INTEGER" },
	[TABLE_NVTX_DEVICE] = { "TARGET_INFO_NVTX_CUDA_DEVICE", "name TEXT NOT NULL,\n"
	                                                        "hwId INTEGER NOT NULL,\n"
	                                                        "vmId INTEGER NOT NULL,\n"
	                                                        "deviceId INTEGER NOT NULL" },
	[TABLE_DIAGNOSTIC] = { "DIAGNOSTIC_EVENT", "timestamp INTEGER NOT NULL,\n"
	                                           "timestampType INTEGER NOT NULL,\n"
	                                           "source INTEGER NOT NULL,\n"
	                                           "severity INTEGER NOT NULL,\n"
	                                           "text TEXT NOT NULL,\n"
	                                           "globalPid INTEGER" },
	[TABLE_SESSION] = { "ANALYSIS_DETAILS", "globalVid INTEGER NOT NULL,\n"
	                                        "duration INTEGER NOT NULL,\n"
	                                        "startTime INTEGER NOT NULL,\n"
	                                        "stopTime INTEGER NOT NULL" },
	[TABLE_CAPTURE] = { "META_DATA_CAPTURE", "name TEXT NOT NULL,\n"
	                                         "value TEXT" },
	[TABLE_EXPORT] = { "META_DATA_EXPORT", "name TEXT NOT NULL,\n"
	                                       "value TEXT" },
	/* The arguments of a call; a call without any, that nothing is to be said of, has
	 * no row. */
	[TABLE_CALL] = { "cuscope_argument",
	                 "callId INTEGER NOT NULL PRIMARY KEY,\n"
	                 "flags INTEGER NOT NULL,\n"
	                 "depth INTEGER NOT NULL,\n"
	                 "kernelId INTEGER,\n"
	                 "gridX INTEGER,\n"
	                 "gridY INTEGER,\n"
	                 "gridZ INTEGER,\n"
	                 "blockX INTEGER,\n"
	                 "blockY INTEGER,\n"
	                 "blockZ INTEGER,\n"
	                 "sharedMemory INTEGER,\n"
	                 "stream INTEGER,\n"
	                 "bytes INTEGER,\n"
	                 "direction TEXT,\n"
	                 "address INTEGER,\n"
	                 "source INTEGER,\n"
	                 "memory TEXT",
	                 .frequent = true },
	[TABLE_FUNCTION] = { "cuscope_function",
	                     "nameId INTEGER NOT NULL,\n"
	                     "eventClass INTEGER NOT NULL,\n"
	                     "class TEXT NOT NULL,\n"
	                     "library TEXT NOT NULL",
	                     "nameId, eventClass" },
	[TABLE_RESULT] = { "cuscope_result",
	                   "eventClass INTEGER NOT NULL,\n"
	                   "code INTEGER NOT NULL,\n"
	                   "name TEXT",
	                   "eventClass, code" },
	[TABLE_MEMORY] = { "cuscope_memory",
	                   "start INTEGER NOT NULL,\n"
	                   "globalPid INTEGER NOT NULL,\n"
	                   "callId INTEGER,\n"
	                   "operation TEXT NOT NULL,\n"
	                   "memory TEXT,\n"
	                   "address INTEGER,\n"
	                   "bytes INTEGER NOT NULL,\n"
	                   "kindLiveBytes INTEGER NOT NULL,\n"
	                   "liveBytes INTEGER NOT NULL",
	                   .frequent = true },
	[TABLE_OTHER_CALL] = { "cuscope_other_call",
	                       "id INTEGER NOT NULL PRIMARY KEY,\n"
	                       "layer TEXT NOT NULL,\n"
	                       "library TEXT NOT NULL,\n"
	                       "status TEXT,\n"
	                       "arguments TEXT NOT NULL",
	                       .lazy = true },
	[TABLE_WHO] = { "cuscope_process",
	                "globalPid INTEGER NOT NULL,\n"
	                "pid INTEGER NOT NULL,\n"
	                "since INTEGER NOT NULL,\n"
	                "user TEXT,\n"
	                "container TEXT,\n"
	                "pod TEXT,\n"
	                "namespace TEXT,\n"
	                "slurmJob TEXT,\n"
	                "slurmStep TEXT,\n"
	                "rank TEXT,\n"
	                "localRank TEXT,\n"
	                "worldSize TEXT,\n"
	                "command TEXT,\n"
	                "unit TEXT,\n"
	                "ownWord TEXT",
	                .lazy = true },
	[TABLE_LOST] = { "cuscope_lost", "reason TEXT NOT NULL,\n"
	                                 "text TEXT NOT NULL,\n"
	                                 "count INTEGER NOT NULL" },
	[TABLE_MISSED] = { "cuscope_missed", "kind TEXT NOT NULL,\n"
	                                     "name TEXT,\n"
	                                     "library TEXT,\n"
	                                     "pid INTEGER,\n"
	                                     "why TEXT" },
	[TABLE_NOT_MEASURED] = { "cuscope_not_measured", "start INTEGER NOT NULL,\n"
	                                                 "end INTEGER NOT NULL,\n"
	                                                 "globalPid INTEGER NOT NULL" },
	[TABLE_SAMPLE] = { "cuscope_sample",
	                   "id INTEGER NOT NULL PRIMARY KEY,\n"
	                   "kind TEXT NOT NULL,\n"
	                   "end INTEGER NOT NULL,\n"
	                   "weight INTEGER NOT NULL,\n"
	                   "globalTid INTEGER,\n"
	                   "callchainId INTEGER,\n"
	                   "how TEXT,\n"
	                   "waker INTEGER,\n"
	                   "wakerTid INTEGER,\n"
	                   "stretches INTEGER,\n"
	                   "waitedFor TEXT,\n"
	                   "runnable INTEGER,\n"
	                   "rival INTEGER,\n"
	                   "rivalPid INTEGER",
	                   .frequent = true },
	[TABLE_STACK] = { "cuscope_stack", "id INTEGER NOT NULL PRIMARY KEY,\n"
	                                   "endsAt TEXT,\n"
	                                   "pythonCut INTEGER NOT NULL" },
	[TABLE_FRAME] = { "cuscope_frame", "id INTEGER NOT NULL PRIMARY KEY,\n"
	                                   "kind TEXT NOT NULL,\n"
	                                   "symbol INTEGER NOT NULL,\n"
	                                   "module INTEGER,\n"
	                                   "file INTEGER,\n"
	                                   "line INTEGER,\n"
	                                   "firstLine INTEGER,\n"
	                                   "inlined INTEGER NOT NULL,\n"
	                                   "buildId INTEGER" },
	[TABLE_STACK_COUNT] = { "cuscope_stack_count", "kind TEXT NOT NULL,\n"
	                                               "text TEXT NOT NULL,\n"
	                                               "count INTEGER NOT NULL" },
};

/* One line: "registersPerThread INTEGER NOT NULL". */
static void read_column(const char *line, size_t len, struct nsys_column *column)
{
	size_t name = strcspn(line, " ");

	*column = (struct nsys_column){
		.type = !strncmp(line + name, " TEXT", 5)   ? NSYS_TEXT
		        : !strncmp(line + name, " REAL", 5) ? NSYS_REAL
		                                            : NSYS_INTEGER,
		.not_null = memmem(line, len, "NOT NULL", 8) != NULL,
	};
	memcpy(column->name, line, name < sizeof(column->name) ? name : sizeof(column->name) - 1);
}

size_t nsys_columns(const struct nsys_table_layout *layout,
                    struct nsys_column columns[NSYS_COLUMNS_MOST])
{
	size_t n = 0;

	for (const char *line = layout->columns; n < NSYS_COLUMNS_MOST; n++) {
		size_t len = strcspn(line, "\n");

		read_column(line, len, &columns[n]);
		if (!line[len])
			return n + 1;
		line += len + 1;
	}
	return n;
}

const char nsys_enum_columns[] = "id INTEGER NOT NULL PRIMARY KEY,\n"
				 "name TEXT,\n"
				 "label TEXT";

/* Numbers are CUPTI's or Nsight Systems'; formats.h of neither is needed to use them. */
const struct nsys_enum_row nsys_enums[] = {
	{ "ENUM_NSYS_EVENT_CLASS", NSYS_CLASS_RUNTIME, "TRACE_PROCESS_EVENT_CUDA_RUNTIME",
	  "CUDA runtime" },
	{ NULL, NSYS_CLASS_DRIVER, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver" },
	{ "ENUM_CUDA_MEMCPY_OPER", 0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown" },
	{ NULL, 1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device" },
	{ NULL, 2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host" },
	{ NULL, 3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array" },
	{ NULL, 4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host" },
	{ NULL, 5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array" },
	{ NULL, 6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device" },
	{ NULL, 7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array" },
	{ NULL, 8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device" },
	{ NULL, 9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host" },
	{ NULL, 10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer" },
	{ NULL, 11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device" },
	{ NULL, 12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host" },
	{ NULL, 13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device" },
	{ "ENUM_CUDA_MEM_KIND", 0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable" },
	{ NULL, NSYS_MEMORY_PINNED, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned" },
	{ NULL, NSYS_MEMORY_DEVICE, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device" },
	{ NULL, NSYS_MEMORY_ARRAY, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array" },
	{ NULL, NSYS_MEMORY_MANAGED, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed" },
	{ NULL, 5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static" },
	{ NULL, 6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static" },
	{ NULL, NSYS_MEMORY_UNKNOWN, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown" },
	{ "ENUM_CUDA_DEV_MEM_EVENT_OPER", 0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation" },
	{ NULL, 1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation" },
	{ "ENUM_NSYS_EVENT_TYPE", NSYS_NVTX_MARK, "NvtxMark", "NVTX mark" },
	{ NULL, NSYS_NVTX_PUSHPOP, "NvtxPushPopRange", "NVTX push-pop range" },
	{ NULL, NSYS_NVTX_STARTEND, "NvtxStartEndRange", "NVTX start-end range" },
	{ NULL, NSYS_NVTX_DOMAIN, "NvtxDomainCreate", "NVTX domain" },
	{ "ENUM_CUPTI_SYNC_TYPE", 0, "CUPTI_SYNC_UNKNOWN", "Unknown" },
	{ NULL, 1, "CUPTI_SYNC_EVENT_SYNCHRONIZE", "Event Sync" },
	{ NULL, 2, "CUPTI_SYNC_STREAM_WAIT_EVENT", "Stream Wait Event" },
	{ NULL, 3, "CUPTI_SYNC_STREAM_SYNCHRONIZE", "Stream Sync" },
	{ NULL, 4, "CUPTI_SYNC_CONTEXT_SYNCHRONIZE", "Context Sync" },
	{ "ENUM_CUPTI_STREAM_TYPE", 0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown" },
	{ NULL, 1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default" },
	{ NULL, 2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking" },
	{ NULL, NSYS_STREAM_NULL, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null" },
	{ "ENUM_SAMPLING_THREAD_STATE", 0, "Unknown", "Unknown" },
	{ NULL, NSYS_THREAD_RUNNING, "Running", "Running" },
	{ NULL, 2, "Interruptible", "Interruptible" },
	{ NULL, 3, "Uninterruptible", "Uninterruptible" },
	{ NULL, 4, "Stopped", "Stopped" },
	{ NULL, 5, "Terminated", "Terminated" },
	{ NULL, NSYS_THREAD_UNSCHEDULED, "Unscheduled", "Unscheduled" },
	{ NULL, NSYS_THREAD_WAITING, "Waiting", "Waiting" },
	{ NULL, 8, "OSRuntime", "OS runtime" },
	{ NULL, 9, "Initialized", "Initialized" },
	{ NULL, 10, "Transition", "Transition" },
	{ "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", NSYS_SEVERITY_INFO, "Info", "Info" },
	{ NULL, NSYS_SEVERITY_WARNING, "Warning", "Warning" },
	{ NULL, NSYS_SEVERITY_ERROR, "Error", "Error" },
	{ "ENUM_DIAGNOSTIC_SOURCE_TYPE", 1, "Injection", "Injection" },
	{ NULL, 2, "Daemon", "Daemon" },
	{ NULL, NSYS_SOURCE_ANALYSIS, "Analysis", "Analysis" },
	{ "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", NSYS_TIME_OF_TARGET, "TargetTimestamp", "Target" },
	{ NULL, 2, "HostTimestamp", "Host" },
	{ "ENUM_CUPTI_OVERHEAD_TYPE", 1, "CUPTI_OVERHEAD_UNKNOWN", "Unknown" },
	{ NULL, 2, "CUPTI_OVERHEAD_DRIVER_COMPILER", "Driver Compiler" },
	{ NULL, 3, "CUPTI_OVERHEAD_BUFFER_FLUSH", "Buffer Flush" },
	{ NULL, 4, "CUPTI_OVERHEAD_INSTRUMENTATION", "Instrumentation" },
	{ NULL, 5, "CUPTI_OVERHEAD_RESOURCE", "Resource" },
	{ NULL, 6, "CUPTI_OVERHEAD_MODULE_LOADING", "Runtime Triggered Module Loading" },
	{ NULL, 7, "CUPTI_OVERHEAD_LAZY_FUNCTION_LOADING", "Lazy Function Loading" },
	{ NULL, 8, "CUPTI_OVERHEAD_COMMAND_BUFFER_FULL", "Command Buffer Full" },
	{ NULL, 9, "CUPTI_OVERHEAD_ACTIVITY_BUFFER_REQUEST", "Activity Buffer Request" },
	{ NULL, 10, "CUPTI_OVERHEAD_UVM_ACTIVITY_INIT", "UVM Activity Init" },
};

const size_t n_nsys_enums = ARRAY_SIZE(nsys_enums);

int nsys_enum_of_label(const char *table, const char *label, int unknown)
{
	bool inside = false;

	for (size_t i = 0; i < n_nsys_enums; i++) {
		if (nsys_enums[i].table)
			inside = !strcmp(nsys_enums[i].table, table);
		if (inside && !strcmp(nsys_enums[i].label, label))
			return nsys_enums[i].id;
	}
	return unknown;
}
