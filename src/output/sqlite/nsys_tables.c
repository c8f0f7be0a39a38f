// SPDX-License-Identifier: MIT
#include "output/sqlite/nsys_tables.h"

#include <string.h>

#include "base/array.h"
#include "base/buf.h"

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

const char nsys_sampling_rows[] =
	"INSERT INTO SAMPLING_CALLCHAINS\n" SAMPLING_ROWS
	"CREATE INDEX SAMPLING_CALLCHAINS_id ON SAMPLING_CALLCHAINS(id);\n";

const char nsys_sampling_view[] = "CREATE VIEW SAMPLING_CALLCHAINS AS\n" SAMPLING_ROWS;

/* ---- nsys tables --------------------------------------------------------------------------- */

/* Columns that every kind of GPU activity begins with. */
#define ACTIVITY_COLUMNS                                                                           \
	"start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid "

/*
 * NOT NULL stands where Nsight Systems has it, but for what a probe on the API cannot know: the
 * device of an allocation, the value of a memset, the context of a wait, the CPU that a thread
 * left. Those are NULL here.
 */
const struct nsys_table_layout nsys_tables[TABLE_COUNT] = {
	[TABLE_STRING] = { "StringIds", "id* value$!" },
	[TABLE_PROCESS] = { "PROCESSES", "globalPid pid name$", "globalPid" },
	[TABLE_THREAD] = { "ThreadNames", "nameId! priority globalTid", "globalTid" },
	[TABLE_RUNTIME] = { "CUPTI_ACTIVITY_KIND_RUNTIME",
	                    "start! end! eventClass! globalTid correlationId nameId! returnValue! "
	                    "callchainId",
	                    .frequent = true, .numbered = true },
	[TABLE_OSRT] = { "OSRT_API",
	                 "start! end! eventClass! globalTid correlationId nameId! returnValue! "
	                 "nestingLevel callchainId",
	                 .frequent = true, .numbered = true, .lazy = true },
	[TABLE_KERNEL] = { "CUPTI_ACTIVITY_KIND_KERNEL",
	                   ACTIVITY_COLUMNS
	                   "demangledName! shortName! mangledName launchType cacheConfig "
	                   "registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! "
	                   "staticSharedMemory! dynamicSharedMemory! localMemoryPerThread "
	                   "localMemoryTotal gridId sharedMemoryExecuted graphNodeId "
	                   "sharedMemoryLimitConfig",
	                   .frequent = true },
	[TABLE_MEMCPY] = { "CUPTI_ACTIVITY_KIND_MEMCPY",
	                   ACTIVITY_COLUMNS "bytes! copyKind! deprecatedSrcId srcKind dstKind "
	                                    "srcDeviceId srcContextId dstDeviceId dstContextId "
	                                    "migrationCause graphNodeId virtualAddress copyCount",
	                   .frequent = true },
	[TABLE_MEMSET] = { "CUPTI_ACTIVITY_KIND_MEMSET",
	                   ACTIVITY_COLUMNS "value bytes! graphNodeId memKind", .frequent = true },
	[TABLE_GRAPH_TRACE] = { "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
	                        ACTIVITY_COLUMNS "graphId! graphExecId", .frequent = true },
	[TABLE_SYNCHRONIZATION] = { "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	                            "start! end! deviceId contextId greenContextId streamId "
	                            "correlationId globalPid syncType! eventId eventSyncId",
	                            .frequent = true },
	[TABLE_OVERHEAD] = { "CUPTI_ACTIVITY_KIND_OVERHEAD",
	                     "start! end! eventClass globalTid correlationId nameId overheadType!",
	                     .frequent = true },
	[TABLE_PROFILER_OVERHEAD] = { "PROFILER_OVERHEAD",
	                              "start! end! globalTid nameId! returnValue! overheadType",
	                              .frequent = true },
	[TABLE_GRAPH_NODE] = { "CUDA_GRAPH_NODE_EVENTS",
	                       "start! end! eventClass! globalTid nameId! graphNodeId! "
	                       "originalGraphNodeId" },
	[TABLE_NVTX] = { "NVTX_EVENTS",
	                 "start! end eventType! rangeId category color text$ globalTid "
	                 "endGlobalTid textId domainId uint64Value int64Value doubleValue% "
	                 "uint32Value int32Value floatValue% jsonTextId jsonText$ binaryData$" },
	[TABLE_MEMORY_USAGE] = { "CUDA_GPU_MEMORY_USAGE_EVENTS",
	                         "start! globalPid! deviceId contextId address! pc bytes! memKind! "
	                         "memoryOperationType! name$ correlationId streamId "
	                         "localMemoryPoolAddress localMemoryPoolReleaseThreshold "
	                         "localMemoryPoolSize localMemoryPoolUtilizedSize "
	                         "importedMemoryPoolAddress importedMemoryPoolProcessId",
	                         .frequent = true },
	/*
	 * A row for each frame of a stack, stackDepth 0 the innermost. `unresolved` and
	 * `specialEntry` are 1 or NULL, as readers ask for it (Extra-P: "unresolved IS NULL"). The
	 * last column is our own.
	 */
	[TABLE_CALLCHAIN] = { "CUDA_CALLCHAINS",
	                      "id! symbol module kernelMode thumbCode unresolved specialEntry "
	                      "originalIP unwindMethod stackDepth! frameId",
	                      .frequent = true, .lazy = true },
	[TABLE_COMPOSITE] = { "COMPOSITE_EVENTS", "id* start! cpu threadState globalTid cpuCycles!",
	                      .frequent = true, .lazy = true },
	[TABLE_SCHED] = { "SCHED_EVENTS", "start! cpu isSchedIn! globalTid threadState threadBlock",
	                  .frequent = true, .lazy = true },
	[TABLE_START_TIME] = { "TARGET_INFO_SESSION_START_TIME", "utcEpochNs utcTime$ localTime$" },
	[TABLE_SYSTEM] = { "TARGET_INFO_SYSTEM_ENV",
	                   "globalVid devStateName$! name$! nameEnum! value$!" },
	[TABLE_GPU] = { "TARGET_INFO_GPU",
	                "vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory "
	                "memoryBandwidth clockRate smCount pwGpuId uuid$ luid chipName$ cuDevice "
	                "ctxswDevPath$ ctrlDevPath$ revision nodeMask constantMemory maxIPC "
	                "maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm "
	                "maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm "
	                "maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ "
	                "maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor "
	                "smMinor" },
	[TABLE_GPU_METRIC] = { "GPU_METRICS", "timestamp typeId! metricId! value!", .lazy = true },
	[TABLE_GPU_METRIC_NAME] = { "TARGET_INFO_GPU_METRICS",
	                            "typeId! sourceId! typeName$! metricId! metricName$!",
	                            .lazy = true },
	[TABLE_CUDA_DEVICE] = { "TARGET_INFO_CUDA_DEVICE",
	                        "gpuId cudaId! pid! uuid$ numMultiprocessors" },
	[TABLE_CUDA_CONTEXT] = { "TARGET_INFO_CUDA_CONTEXT_INFO",
	                         "nullStreamId hwId! vmId! processId! deviceId! contextId! "
	                         "parentContextId isGreenContext" },
	[TABLE_CUDA_STREAM] = { "TARGET_INFO_CUDA_STREAM",
	                        "streamId! hwId! vmId! processId! contextId! priority flag" },
	[TABLE_NVTX_DEVICE] = { "TARGET_INFO_NVTX_CUDA_DEVICE", "name$! hwId! vmId! deviceId!" },
	[TABLE_DIAGNOSTIC] = { "DIAGNOSTIC_EVENT",
	                       "timestamp! timestampType! source! severity! text$! globalPid" },
	[TABLE_SESSION] = { "ANALYSIS_DETAILS", "globalVid! duration! startTime! stopTime!" },
	[TABLE_CAPTURE] = { "META_DATA_CAPTURE", "name$! value$" },
	[TABLE_EXPORT] = { "META_DATA_EXPORT", "name$! value$" },
	/* The arguments of a call; a call without any, that nothing is to be said of, has
	 * no row. */
	[TABLE_CALL] = { "cuscope_argument",
	                 "callId* flags! depth! kernelId gridX gridY gridZ blockX blockY blockZ "
	                 "sharedMemory stream bytes direction$ address source memory$",
	                 .frequent = true },
	[TABLE_FUNCTION] = { "cuscope_function", "nameId! eventClass! class$! library$!",
	                     "nameId, eventClass" },
	[TABLE_RESULT] = { "cuscope_result", "eventClass! code! name$", "eventClass, code" },
	[TABLE_MEMORY] = { "cuscope_memory",
	                   "start! globalPid! callId operation$! memory$ address bytes! "
	                   "kindLiveBytes! liveBytes!",
	                   .frequent = true },
	[TABLE_OTHER_CALL] = { "cuscope_other_call", "id* layer$! library$! status$ arguments$!",
	                       .lazy = true },
	[TABLE_WHO] = { "cuscope_process",
	                "globalPid! pid! since! user$ container$ pod$ namespace$ slurmJob$ "
	                "slurmStep$ rank$ localRank$ worldSize$ command$ unit$ ownWord$",
	                .lazy = true },
	[TABLE_LOST] = { "cuscope_lost", "reason$! text$! count!" },
	[TABLE_MISSED] = { "cuscope_missed", "kind$! name$ library$ pid why$" },
	[TABLE_NOT_MEASURED] = { "cuscope_not_measured", "start! end! globalPid!" },
	[TABLE_SAMPLE] = { "cuscope_sample",
	                   "id* kind$! end! weight! globalTid callchainId how$ waker wakerTid "
	                   "stretches waitedFor$ runnable rival rivalPid",
	                   .frequent = true },
	[TABLE_STACK] = { "cuscope_stack", "id* endsAt$ pythonCut!" },
	[TABLE_FRAME] = { "cuscope_frame",
	                  "id* kind$! symbol! module file line firstLine inlined! buildId" },
	[TABLE_STACK_COUNT] = { "cuscope_stack_count", "kind$! text$! count!" },
};

size_t nsys_columns(const char *names, struct nsys_column columns[NSYS_COLUMNS_MOST])
{
	size_t n = 0;

	for (; *names && n < NSYS_COLUMNS_MOST; n++) {
		size_t name = strcspn(names, "$%!* "), len = strcspn(names, " ");
		const char *marks = names + name;

		columns[n] = (struct nsys_column){
			.type = *marks == '$'   ? NSYS_TEXT
			        : *marks == '%' ? NSYS_REAL
			                        : NSYS_INTEGER,
			.not_null =
				memchr(marks, '!', len - name) || memchr(marks, '*', len - name),
			.is_key = memchr(marks, '*', len - name),
		};
		memcpy(columns[n].name, names, name);
		names += len + (names[len] == ' ');
	}
	return n;
}

void nsys_columns_sql(const char *names, struct buf *sql)
{
	static const char *const types[] = {
		[NSYS_INTEGER] = "INTEGER", [NSYS_REAL] = "REAL", [NSYS_TEXT] = "TEXT"
	};
	struct nsys_column columns[NSYS_COLUMNS_MOST];
	size_t n = nsys_columns(names, columns);

	for (size_t i = 0; i < n; i++)
		buf_printf(sql, "%s%s %s%s", i ? ",\n" : "", columns[i].name,
		           types[columns[i].type],
		           columns[i].is_key     ? " NOT NULL PRIMARY KEY"
		           : columns[i].not_null ? " NOT NULL"
		                                 : "");
}

const char nsys_enum_columns[] = "id* name$ label$";

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
