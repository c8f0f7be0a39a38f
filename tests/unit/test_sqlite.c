// SPDX-License-Identifier: MIT
/* The SQLite export, read back by SQL. */
#include "support.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/buf.h"
#include "output/sink.h"
#include "output/sqlite/nsys_tables.h"

static char folder[] = "/tmp/test_sqlite.XXXXXX";
static char path[64];
static struct run run;
static sqlite3 *db;
static FILE *file;

static int begin_database(void **state)
{
	struct sink_options options = { .path = path, .out = file };

	options.out = file = fopen(path, "w+");
	assert_non_null(file);
	open_run(&run);
	run.info.hostname = "gpu1";
	run.info.command = "./app --x";
	begin_run(&run, sink_format_by_name("sqlite")->create(&options));
	return 0;
}

static int end_database(void **state)
{
	close_run(&run);
	if (db)
		sqlite3_close(db);
	db = NULL;
	fclose(file);
	unlink(path);
	return 0;
}

static void finish_open(void)
{
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
}

/* Ends the run and opens what it wrote. */
static void finish(void)
{
	end_run(&run);
	finish_open();
}

/* Rows as "a|b;c|d". */
static const char *ask(const char *sql)
{
	static struct buf out;
	sqlite3_stmt *statement;

	if (!db)
		finish();
	buf_reset(&out);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while (sqlite3_step(statement) == SQLITE_ROW) {
		buf_puts(&out, out.len ? ";" : "");
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const unsigned char *text = sqlite3_column_text(statement, i);

			buf_printf(&out, "%s%s", i ? "|" : "", text ? (const char *)text : "NULL");
		}
	}
	sqlite3_finalize(statement);
	return out.len ? out.data : "";
}

static void push_activity(const struct process *process, const struct activity *activity)
{
	push(&run, &(struct event){ .type = EVENT_ACTIVITY,
	                            .time_ns = activity->end_ns,
	                            .process = process,
	                            .activity = activity });
}

static struct activity kernel_at(double begin_us, double duration_us, uint64_t correlation,
                                 const struct kernel *kernel)
{
	return (struct activity){
		.kind = ACTIVITY_KERNEL,
		.begin_ns = US(begin_us),
		.end_ns = US(begin_us + duration_us),
		.correlation = correlation,
		.context = 1,
		.stream = 7,
		.kernel = kernel,
		.grid = { 196, 1, 1 },
		.block = { 256, 1, 1 },
		.registers = 32,
	};
}

/* ---- what queries for Nsight Systems' tables find ------------------------------------------ */

static void test_calls_are_found_by_name_thread_and_process(void **state)
{
	struct call call = alloc_at("cudaMalloc", 100, 0x7000, 4096);

	call.correlation = 5;
	push_process(&run, the_process(), 0);
	push_call(&run, call);
	assert_string_equal(ask("SELECT r.start, r.end - r.start, s.value, r.eventClass, "
	                        "r.correlationId, r.returnValue, "
	                        "r.globalTid / 0x1000000 % 0x1000000, r.globalTid % 0x1000000, "
	                        "p.name FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
	                        "JOIN StringIds s ON s.id = r.nameId "
	                        "JOIN PROCESSES p ON p.globalPid = r.globalTid & ~0xffffff"),
	                    "100000|10000|cudaMalloc|0|5|0|4242|4243|vectorAdd");
}

static void test_launch_is_joined_to_its_kernel_by_correlation(void **state)
{
	struct kernel *kernel = new_kernel("void ns::add<float>(float const*, int)", true);
	struct call call = launch_at("cuLaunchKernel", 10, kernel);
	struct activity ran = kernel_at(20, 50, 3, kernel);

	kernel->mangled = "_ZN2ns3addIfEEvPKfi";
	call.correlation = 3;
	push_call(&run, call);
	push_activity(the_process(), &ran);
	assert_string_equal(ask("SELECT api.value, d.value, b.value, m.value, k.start - r.end, "
	                        "k.end - k.start, k.gridX, k.blockX, k.streamId "
	                        "FROM CUPTI_ACTIVITY_KIND_KERNEL k "
	                        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
	                        "ON r.correlationId = k.correlationId "
	                        "AND r.globalTid & ~0xffffff = k.globalPid "
	                        "JOIN StringIds api ON api.id = r.nameId "
	                        "JOIN StringIds d ON d.id = k.demangledName "
	                        "JOIN StringIds b ON b.id = k.shortName "
	                        "JOIN StringIds m ON m.id = k.mangledName"),
	                    "cuLaunchKernel|void ns::add<float>(float const*, int)|add|"
	                    "_ZN2ns3addIfEEvPKfi|5000|50000|196|256|7");
}

static void test_equal_correlations_of_two_processes_do_not_join(void **state)
{
	const struct process *one = new_process(50, "one"), *two = new_process(51, "two");
	struct kernel *kernel = new_kernel("k", true);
	struct call call = launch_at("cuLaunchKernel", 10, kernel);
	struct activity ran = kernel_at(20, 50, 1, kernel);

	call.correlation = 1;
	push_call_of(&run, one, 50, &call);
	push_call_of(&run, two, 51, &call);
	push_activity(two, &ran);
	assert_string_equal(ask("SELECT r.globalTid % 0x1000000 FROM CUPTI_ACTIVITY_KIND_KERNEL k "
	                        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"),
	                    "51");
}

static void test_copies_have_kind_and_memory_by_name(void **state)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .begin_ns = US(1),
		                 .end_ns = US(2),
		                 .stream = 7,
		                 .bytes = 1024,
		                 .direction = DIRECTION_H2D,
		                 .source = ACTIVITY_MEMORY_PAGEABLE,
		                 .destination = ACTIVITY_MEMORY_DEVICE };
	struct activity to_array = copy, peer = copy;

	to_array.destination = ACTIVITY_MEMORY_ARRAY;
	peer.direction = DIRECTION_P2P;
	peer.source = ACTIVITY_MEMORY_UNKNOWN;
	peer.peer_device = 3;
	push_activity(the_process(), &copy);
	push_activity(the_process(), &to_array);
	push_activity(the_process(), &peer);
	assert_string_equal(ask("SELECT o.label, s.label, d.label, m.bytes, m.dstDeviceId "
	                        "FROM CUPTI_ACTIVITY_KIND_MEMCPY m "
	                        "JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind "
	                        "JOIN ENUM_CUDA_MEM_KIND s ON s.id = m.srcKind "
	                        "JOIN ENUM_CUDA_MEM_KIND d ON d.id = m.dstKind"),
	                    "Host-to-Device|Pageable|Device|1024|NULL;"
	                    "Host-to-Array|Pageable|Array|1024|NULL;"
	                    "Peer-to-Peer|Unknown|Device|1024|3");
	assert_string_equal(ask("SELECT cudaId, pid FROM TARGET_INFO_CUDA_DEVICE"), "0|4242");
}

static void test_memset_is_an_activity_with_bytes(void **state)
{
	struct activity set = { .kind = ACTIVITY_SET,
		                .begin_ns = US(1),
		                .end_ns = US(2),
		                .stream = 7,
		                .bytes = 64,
		                .destination = ACTIVITY_MEMORY_DEVICE };

	push_activity(the_process(), &set);
	assert_string_equal(
		ask("SELECT m.bytes, m.value, k.label FROM CUPTI_ACTIVITY_KIND_MEMSET m "
	            "JOIN ENUM_CUDA_MEM_KIND k ON k.id = m.memKind"),
		"64|NULL|Device");
}

static void test_memory_usage_events_pair(void **state)
{
	push_call(&run, alloc_at("cudaMallocHost", 1, 0x10, 4096));
	push_call(&run, free_at("cudaFreeHost", 20, 0x10));
	assert_string_equal(
		ask("SELECT o.label, k.label, u.address, u.bytes "
	            "FROM CUDA_GPU_MEMORY_USAGE_EVENTS u "
	            "JOIN ENUM_CUDA_DEV_MEM_EVENT_OPER o ON o.id = u.memoryOperationType "
	            "JOIN ENUM_CUDA_MEM_KIND k ON k.id = u.memKind"),
		"Allocation|Pinned|16|4096;Deallocation|Pinned|16|4096");
}

static void test_session_start_and_machine_are_told(void **state)
{
	assert_string_equal(ask("SELECT utcEpochNs, utcTime FROM TARGET_INFO_SESSION_START_TIME"),
	                    "1800000000000000000|2027-01-15T08:00:00");
	assert_string_equal(ask("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'"),
	                    "gpu1");
	assert_string_equal(ask("SELECT value FROM META_DATA_CAPTURE WHERE name = 'COMMAND'"),
	                    "./app --x");
	assert_string_equal(ask("SELECT value FROM META_DATA_EXPORT "
	                        "WHERE name = 'EXPORT_SCHEMA_VERSION'"),
	                    "3.16.1");
	assert_string_equal(ask("SELECT count(*) FROM TARGET_INFO_GPU"), "0");
}

static void test_no_two_properties_of_the_machine_have_a_number(void **state)
{
	run.info.kernel_release = "6.8";
	run.info.driver_version = "580.65.06";
	run.info.machine = "aarch64";
	run.info.cpus = 72;
	run.info.memory_bytes = 1ull << 39;
	assert_string_equal(ask("SELECT count(*), count(DISTINCT nameEnum), min(nameEnum) > 0 "
	                        "FROM TARGET_INFO_SYSTEM_ENV"),
	                    "6|6|1");
	assert_string_equal(ask("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name LIKE 'Cpu%' "
	                        "ORDER BY name"),
	                    "aarch64;72");
}

static const struct run_gpu h200 = { .name = "NVIDIA H200",
	                             .uuid = "GPU-8c0d",
	                             .bus = "00000000:18:00.0",
	                             .memory_bytes = 150754820096,
	                             .clock_hz = 1980000000,
	                             .memory_bandwidth = 4916736000000,
	                             .major = 9,
	                             .multiprocessors = 132 };

static void test_gpus_have_what_is_known_of_them(void **state)
{
	run.info.gpus = &h200;
	run.info.n_gpus = 1;
	assert_string_equal(ask("SELECT id, cuDevice, name, uuid, busLocation, totalMemory, "
	                        "memoryBandwidth, clockRate, smCount, computeMajor, computeMinor, "
	                        "smMajor, l2CacheSize FROM TARGET_INFO_GPU"),
	                    "0|0|NVIDIA H200|GPU-8c0d|0000:18:00.0|150754820096|4916736000000|"
	                    "1980000000|132|9|0|9|NULL");
	assert_string_equal(
		ask("SELECT maxRegistersPerSm, maxShmemPerSm, maxShmemPerBlockOptin, "
	            "maxWarpsPerSm, maxBlocksPerSm, threadsPerWarp, maxThreadsPerBlock, "
	            "maxBlockDimZ, maxGridDimX, maxGridDimZ, constantMemory "
	            "FROM TARGET_INFO_GPU"),
		"65536|233472|232448|64|32|32|1024|64|2147483647|65535|65536");
}

static void test_an_unknown_gpu_has_no_sizes(void **state)
{
	static const struct run_gpu gpu = { .name = "later", .major = 99 };

	run.info.gpus = &gpu;
	run.info.n_gpus = 1;
	assert_string_equal(ask("SELECT name, uuid, maxRegistersPerBlock, threadsPerWarp, "
	                        "maxGridDimZ, computeMajor, smMajor FROM TARGET_INFO_GPU"),
	                    "later|NULL|NULL|NULL|NULL|99|99");
}

static void push_work_on(uint32_t device)
{
	push_activity(the_process(), &(struct activity){ .kind = ACTIVITY_SET,
	                                                 .begin_ns = 10,
	                                                 .end_ns = 20,
	                                                 .device = device });
}

#define DEVICES                                                                                    \
	"SELECT cudaId, gpuId, uuid, numMultiprocessors FROM TARGET_INFO_CUDA_DEVICE ORDER BY 1"

static void test_the_only_gpu_is_the_one_that_was_used(void **state)
{
	run.info.gpus = &h200;
	run.info.n_gpus = 1;
	push_work_on(0);
	assert_string_equal(ask(DEVICES), "0|0|GPU-8c0d|132");
}

static void test_which_of_two_gpus_it_was_is_not_guessed(void **state)
{
	struct run_gpu gpus[2] = { h200, h200 };

	run.info.gpus = gpus;
	run.info.n_gpus = 2;
	push_work_on(1);
	push_work_on(0);
	assert_string_equal(ask(DEVICES), "0|NULL|NULL|132;1|NULL|NULL|132");
}

static void test_a_thread_has_its_last_name_once(void **state)
{
	struct thread thread = { .comm = "worker", .priority = 20 };
	struct event event = { .type = EVENT_THREAD,
		               .time_ns = US(1),
		               .process = the_process(),
		               .tid = 4243,
		               .thread = &thread };

	push(&run, &event);
	snprintf(thread.comm, sizeof(thread.comm), "renamed");
	push(&run, &event);
	assert_string_equal(ask("SELECT s.value, t.priority, t.globalTid % 0x1000000 "
	                        "FROM ThreadNames t JOIN StringIds s ON s.id = t.nameId"),
	                    "renamed|20|4243");
}

static void test_times_before_the_session_are_negative(void **state)
{
	struct call call = call_at("cudaFree", 0, 5);

	call.begin_ns -= 2000;
	push_call(&run, call);
	assert_string_equal(ask("SELECT start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME"),
	                    "-2000|5000");
}

/* ---- our own tables ------------------------------------------------------------------------ */

static void test_view_of_calls_has_arguments_by_name(void **state)
{
	struct call copy = copy_at("cudaMemcpyAsync", 30, DIRECTION_D2H, 512);

	set_stream(&copy, 0x55);
	push_process(&run, the_process(), 0);
	push_call(&run, launch_at("cuLaunchKernel", 10, new_kernel("add(int)", true)));
	push_call(&run, copy);
	assert_string_equal(
		ask("SELECT layer, class, function, kernel, gridX, blockX, stream, bytes, "
	            "direction, resultName FROM cuscope_call ORDER BY start"),
		"driver|launch|cuLaunchKernel|add(int)|196|256|0|NULL|NULL|CUDA_SUCCESS;"
		"runtime|transfer|cudaMemcpyAsync|NULL|NULL|NULL|85|512|D2H|cudaSuccess");
}

static void test_bytes_that_a_call_does_not_say_are_null(void **state)
{
	struct call copy = copy_at("cudaMemcpyAsync", 30, DIRECTION_D2H, 0);

	push_process(&run, the_process(), 0);
	push_call(&run, copy);
	copy.begin_ns++;
	copy.flags |= CALL_SIZE_UNKNOWN;
	push_call(&run, copy);
	assert_string_equal(
		ask("SELECT direction, bytes, failed, captured FROM cuscope_call ORDER BY start"),
		"D2H|0|0|0;D2H|NULL|0|0");
}

static void test_calls_without_an_end_have_no_duration_and_result(void **state)
{
	struct call call = alloc_at("cudaMalloc", 10, 0, 4096);

	never_ends(&call, CALL_UNFINISHED);
	push_call(&run, call);
	assert_string_equal(
		ask("SELECT start, end, duration, result, unfinished FROM cuscope_call"),
		"10000|NULL|NULL|NULL|1");
}

static void test_failed_and_nested_calls_are_marked(void **state)
{
	struct call call = alloc_at("cuMemAlloc_v2", 10, 0, 1ull << 40);

	fail_call(&call, 2);
	call.flags |= CALL_NESTED;
	call.depth = 1;
	push_call(&run, call);
	assert_string_equal(ask("SELECT failed, nested, depth, resultName FROM cuscope_call"),
	                    "1|1|1|CUDA_ERROR_OUT_OF_MEMORY");
}

static void test_one_function_in_two_libraries_is_one_row_a_call(void **state)
{
	struct function twin = *the_function("cudaMalloc");
	struct call call = alloc_at("cudaMalloc", 10, 0x10, 1), other = call;

	twin.id = 63;
	twin.lib = "libcudart.so.12";
	other.function = &twin;
	push_call(&run, call);
	push_call(&run, other);
	assert_string_equal(ask("SELECT count(*) FROM cuscope_call"), "2");
}

static void test_memory_tells_live_bytes_and_what_went_with_its_process(void **state)
{
	struct call failed = alloc_at("cudaMalloc", 3, 0, 1ull << 50);

	fail_call(&failed, 2);
	push_call(&run, alloc_at("cudaMalloc", 1, 0x10, 4096));
	push_call(&run, alloc_at("cudaMallocManaged", 2, 0x20, 100));
	push_call(&run, failed);
	push_call(&run, free_at("cudaFree", 40, 0x20));
	push_exit(&run, the_process(), 100);
	assert_string_equal(ask("SELECT operation, memory, bytes, kindLiveBytes, liveBytes "
	                        "FROM cuscope_memory"),
	                    "alloc|device|4096|4096|4096;alloc|managed|100|100|4196;"
	                    "failed|device|1125899906842624|4096|4196;free|managed|100|0|4096;"
	                    "exit|device|4096|0|0");
	assert_string_equal(ask("SELECT sum(CASE memoryOperationType WHEN 0 THEN bytes "
	                        "ELSE -bytes END) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"),
	                    "0");
}

static void test_memory_of_a_call_is_found_by_its_row(void **state)
{
	push_call(&run, call_at("cudaSetDevice", 1, 1));
	push_call(&run, alloc_at("cudaMalloc", 2, 0x10, 4096));
	assert_string_equal(ask("SELECT c.function, m.bytes FROM cuscope_memory m "
	                        "JOIN cuscope_call c ON c.id = m.callId"),
	                    "cudaMalloc|4096");
}

static void test_losses_are_told(void **state)
{
	struct miss miss = { .kind = MISS_NOT_HOOKED, .name = "cuFoo", .why = "no room" };

	run.info.lost[LOST_RING_FULL] = 12;
	run.info.misses = &miss;
	run.info.n_misses = 1;
	assert_string_equal(ask("SELECT reason, count FROM cuscope_lost"), "ring_full|12");
	assert_string_equal(ask("SELECT kind, name, pid, why FROM cuscope_missed"),
	                    "not_hooked|cuFoo|NULL|no room");
	assert_string_equal(ask("SELECT e.name, s.name, d.text FROM DIAGNOSTIC_EVENT d "
	                        "JOIN ENUM_DIAGNOSTIC_SEVERITY_LEVEL e ON e.id = d.severity "
	                        "JOIN ENUM_DIAGNOSTIC_SOURCE_TYPE s ON s.id = d.source "
	                        "WHERE d.text NOT LIKE '12 events: %'"),
	                    "Warning|Analysis|not_hooked cuFoo: no room");
	assert_string_equal(ask("SELECT count(*) FROM DIAGNOSTIC_EVENT"), "2");
}

/* Of readers some take the text, some join by its number. */
static void test_texts_of_ranges_have_a_number_too(void **state)
{
	push_range(&run, 51,
	           (struct range){
			   .kind = RANGE_PUSHPOP, .end_ns = 2, .name = "step", .domain = "ai" });
	push_range(&run, 51, (struct range){ .kind = RANGE_MARK, .end_ns = 3, .name = "step" });
	assert_string_equal(ask("SELECT n.eventType, n.text, s.value FROM NVTX_EVENTS n "
	                        "JOIN StringIds s ON s.id = n.textId ORDER BY n.rowid"),
	                    "75|ai|ai;59|step|step;34|step|step");
}

static void test_ranges_have_category_and_colour(void **state)
{
	push_range(&run, 51,
	           (struct range){ .kind = RANGE_PUSHPOP,
	                           .end_ns = 2,
	                           .name = "a",
	                           .category = 7,
	                           .color = 0xff00ff80 });
	push_range(&run, 51, (struct range){ .kind = RANGE_PUSHPOP, .end_ns = 3, .name = "b" });
	assert_string_equal(ask("SELECT text, category, color FROM NVTX_EVENTS ORDER BY rowid"),
	                    "a|7|4278255488;b|NULL|NULL");
}

/* More than are remembered: 40,000 texts of half a KiB. */
static void test_any_number_of_texts_is_written(void **state)
{
	char text[520];

	for (int i = 0; i < 40000; i++) {
		snprintf(text, sizeof(text), "%0512d", i);
		push_range(&run, 51,
		           (struct range){ .kind = RANGE_MARK, .end_ns = 3, .name = text });
	}
	assert_string_equal(ask("SELECT count(*), count(DISTINCT s.id) FROM NVTX_EVENTS n "
	                        "JOIN StringIds s ON s.id = n.textId AND s.value = n.text"),
	                    "40000|40000");
}

static void test_overhead_is_in_both_tables_of_it(void **state)
{
	push_range(&run, 51,
	           (struct range){ .kind = RANGE_OVERHEAD,
	                           .begin_ns = 1,
	                           .end_ns = 8,
	                           .name = "Buffer Flush" });
	assert_string_equal(ask("SELECT s.value, p.end - p.start, p.overheadType, o.overheadType "
	                        "FROM PROFILER_OVERHEAD p JOIN StringIds s ON s.id = p.nameId "
	                        "JOIN CUPTI_ACTIVITY_KIND_OVERHEAD o USING (start)"),
	                    "Buffer Flush|7|3|3");
}

#define WAITS                                                                                      \
	"SELECT e.label, s.end - s.start, r.rowid FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION s "     \
	"JOIN ENUM_CUPTI_SYNC_TYPE e ON e.id = s.syncType "                                        \
	"LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) ORDER BY s.start"

static void push_wait(const char *function, double begin_us, double duration_us, uint64_t number)
{
	struct call call = call_at(function, begin_us, duration_us);

	call.correlation = number;
	push_call(&run, call);
}

static void test_calls_that_wait_are_waits_where_nothing_else_tells(void **state)
{
	push_wait("cudaDeviceSynchronize", 1, 5, 1);
	push_wait("cudaStreamSynchronize_ptsz", 10, 6, 2);
	push_wait("cudaEventSynchronize", 20, 7, 3);
	push_wait("cudaStreamWaitEvent", 30, 8, 4);
	push_wait("cudaSetDevice", 40, 9, 5);
	assert_string_equal(ask(WAITS), "Context Sync|5000|1;Stream Sync|6000|2;"
	                                "Event Sync|7000|3;Stream Wait Event|8000|4");
}

static void test_calls_of_a_process_whose_waits_are_told_are_no_second_ones(void **state)
{
	push_wait("cudaDeviceSynchronize", 1, 5, 1);
	push_range(&run, 51,
	           (struct range){ .kind = RANGE_SYNC,
	                           .begin_ns = US(2),
	                           .end_ns = US(4),
	                           .correlation = 1,
	                           .name = "Context Sync" });
	assert_string_equal(ask(WAITS), "Context Sync|2000|1");
}

static void test_names_are_valid_text_whatever_a_program_chose(void **state)
{
	push_process(&run, new_process(60, "a\x1b[1m\xff'"), 0);
	assert_string_equal(ask("SELECT name FROM PROCESSES"), "a\\x1b[1m\\xff'");
}

static void test_a_trace_without_events_has_all_tables(void **state)
{
	assert_string_equal(ask("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), "0");
	assert_string_equal(ask("SELECT count(*) FROM cuscope_call"), "0");
	assert_string_equal(ask("PRAGMA integrity_check"), "ok");
}

/* ---- what cannot be written ---------------------------------------------------------------- */

static void test_a_file_that_cannot_be_written_is_one_sentence(void **state)
{
	struct sink_options options = { .out = fopen("/dev/full", "r+") };
	struct consumer *consumer = sink_format_by_name("sqlite")->create(&options);
	struct run_info info = default_run_info();
	struct err err = { 0 };
	int rc = consumer->ops->begin(consumer, &info, &err);

	assert_int_equal(rc ? rc : consumer->ops->end(consumer, &info, &err), -ENOSPC);
	assert_string_equal(err.text, "cannot write the database: No space left on device");
	assert_false(sink_ended(consumer));
	consumer->ops->free(consumer);
	fclose(options.out);
}

static void test_a_consumer_that_is_never_ended_says_so(void **state)
{
	push_call(&run, alloc_at("cudaMalloc", 1, 0x10, 4096));
	assert_false(sink_ended(run.consumer)); /* whoever made the file takes it away */
	run.consumer->ops->free(run.consumer);
}

static void test_what_lies_beside_the_database_is_left_alone(void **state)
{
	char journal[80];
	FILE *planted;

	snprintf(journal, sizeof(journal), "%s-journal", path);
	planted = fopen(journal, "w");
	fputs("not a journal", planted);
	fclose(planted);
	push_call(&run, alloc_at("cudaMalloc", 1, 0x10, 4096));
	end_run(&run);
	assert_int_equal(unlink(journal), 0); /* SQLite would have rolled it back, and removed it */
	finish_open();
	assert_string_equal(ask("SELECT count(*) FROM cuscope_call"), "1");
}

static void test_a_column_is_what_its_marks_say(void **state)
{
	struct nsys_column columns[NSYS_COLUMNS_MOST];
	AT_END(buf_free) struct buf sql = { 0 };

	assert_int_equal(nsys_columns("id* name$! share% at", columns), 4);
	assert_true(columns[0].is_key && columns[0].not_null);
	assert_true(columns[1].type == NSYS_TEXT && columns[1].not_null && !columns[1].is_key);
	assert_true(columns[2].type == NSYS_REAL && !columns[2].not_null);
	assert_string_equal(columns[3].name, "at");
	nsys_columns_sql("id* name$! share% at", &sql);
	assert_string_equal(sql.data, "id INTEGER NOT NULL PRIMARY KEY,\nname TEXT NOT NULL,\n"
	                              "share REAL,\nat INTEGER");
}

int main(void)
{
#define DATABASE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_database, end_database)
	const struct CMUnitTest tests[] = {
		DATABASE_TEST(test_calls_are_found_by_name_thread_and_process),
		DATABASE_TEST(test_launch_is_joined_to_its_kernel_by_correlation),
		DATABASE_TEST(test_equal_correlations_of_two_processes_do_not_join),
		DATABASE_TEST(test_copies_have_kind_and_memory_by_name),
		DATABASE_TEST(test_memset_is_an_activity_with_bytes),
		DATABASE_TEST(test_memory_usage_events_pair),
		DATABASE_TEST(test_session_start_and_machine_are_told),
		DATABASE_TEST(test_a_thread_has_its_last_name_once),
		DATABASE_TEST(test_times_before_the_session_are_negative),
		DATABASE_TEST(test_view_of_calls_has_arguments_by_name),
		DATABASE_TEST(test_bytes_that_a_call_does_not_say_are_null),
		DATABASE_TEST(test_calls_without_an_end_have_no_duration_and_result),
		DATABASE_TEST(test_failed_and_nested_calls_are_marked),
		DATABASE_TEST(test_one_function_in_two_libraries_is_one_row_a_call),
		DATABASE_TEST(test_memory_tells_live_bytes_and_what_went_with_its_process),
		DATABASE_TEST(test_memory_of_a_call_is_found_by_its_row),
		DATABASE_TEST(test_losses_are_told),
		DATABASE_TEST(test_names_are_valid_text_whatever_a_program_chose),
		DATABASE_TEST(test_a_trace_without_events_has_all_tables),
		DATABASE_TEST(test_no_two_properties_of_the_machine_have_a_number),
		DATABASE_TEST(test_gpus_have_what_is_known_of_them),
		DATABASE_TEST(test_an_unknown_gpu_has_no_sizes),
		DATABASE_TEST(test_the_only_gpu_is_the_one_that_was_used),
		DATABASE_TEST(test_which_of_two_gpus_it_was_is_not_guessed),
		DATABASE_TEST(test_texts_of_ranges_have_a_number_too),
		DATABASE_TEST(test_ranges_have_category_and_colour),
		DATABASE_TEST(test_any_number_of_texts_is_written),
		DATABASE_TEST(test_overhead_is_in_both_tables_of_it),
		DATABASE_TEST(test_calls_that_wait_are_waits_where_nothing_else_tells),
		DATABASE_TEST(test_calls_of_a_process_whose_waits_are_told_are_no_second_ones),
		cmocka_unit_test(test_a_file_that_cannot_be_written_is_one_sentence),
		cmocka_unit_test(test_a_column_is_what_its_marks_say),
		DATABASE_TEST(test_a_consumer_that_is_never_ended_says_so),
		DATABASE_TEST(test_what_lies_beside_the_database_is_left_alone),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/trace.sqlite", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
