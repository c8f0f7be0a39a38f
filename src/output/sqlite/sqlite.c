// SPDX-License-Identifier: MIT
/*
 * A database in the form of Nsight Systems' export, with tables of our own beside it: see
 * nsys_tables.c, and docs/sqlite.md for what differs.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/xalloc.h"
#include "cuda/error.h"
#include "cuda/kernel_name.h"
#include "gpus/gpu_metrics.h"
#include "output/format.h"
#include "output/describe.h"
#include "output/sqlite/nsys_tables.h"
#include "output/sqlite/sqlite.h"

/* ---- sqlite metrics ------------------------------------------------------------------------ */

/*
 * Metrics of GPUs as Nsight Systems' export has them: whole numbers, a percentage each or bytes a
 * second, with the number of the GPU in the lowest byte of typeId.
 */

#define TYPE_OF_GPU(gpu) (0x1000100000000ll | (int64_t)(gpu))
#define SOURCE           0x1000100000000ll

/* Those that mean what Nsight Systems' do have its names. */
static const char *const metrics_names[GPU_METRICS_DRAWN] = {
	[GPU_METRIC_GRAPHICS] = "GR Active [Throughput %]",
	[GPU_METRIC_SM] = "SMs Active [Throughput %]",
	[GPU_METRIC_OCCUPANCY] = "Compute Warps in Flight [Throughput %]",
	[GPU_METRIC_TENSOR] = "Tensor Active [Throughput %]",
	[GPU_METRIC_FP32] = "FP32 Active [Throughput %]",
	[GPU_METRIC_FP64] = "FP64 Active [Throughput %]",
	[GPU_METRIC_FP16] = "FP16 Active [Throughput %]",
	[GPU_METRIC_INTEGER] = "Integer Active [Throughput %]",
	[GPU_METRIC_DRAM] = "DRAM Bandwidth [Throughput %]",
	[GPU_METRIC_PCIE_TX] = "PCIe TX Throughput [Bytes/s]",
	[GPU_METRIC_PCIE_RX] = "PCIe RX Throughput [Bytes/s]",
	[GPU_METRIC_NVLINK_TX] = "NVLink TX Throughput [Bytes/s]",
	[GPU_METRIC_NVLINK_RX] = "NVLink RX Throughput [Bytes/s]",
	[GPU_METRIC_BUSY] = "GPU Utilization [%]",
	[GPU_METRIC_MEMORY_BUSY] = "Memory Utilization [%]",
	[GPU_METRIC_SAMPLED_SM] = "SMs Active, sampled [Throughput %]",
	[GPU_METRIC_SAMPLED_TENSOR] = "Tensor Active, sampled [Throughput %]",
	[GPU_METRIC_SAMPLED_DRAM] = "DRAM Bandwidth, sampled [Throughput %]",
};

static void metrics_describe(struct sqlite *sqlite, uint32_t gpu, enum gpu_metric metric)
{
	uint32_t bit = 1u << metric;

	if (sqlite->metrics[gpu] & bit)
		return;
	sqlite->metrics[gpu] |= bit;
	ROW(sqlite->db, TABLE_GPU_METRIC_NAME, CELL(TYPE_OF_GPU(gpu)), CELL(SOURCE),
	    CELL_TEXT("GPU Metrics"), CELL(metric), CELL_TEXT(metrics_names[metric]));
}

static void sqlite_add_metrics(struct sqlite *sqlite, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;

	for (enum gpu_metric i = 0; i < GPU_METRICS && sample->gpu < RUN_GPUS_MAX; i++) {
		bool is_rate = gpu_metric_info(i)->is_rate;
		enum gpu_metric drawn = gpu_metric_drawn(sample, i);

		if (drawn == GPU_METRICS_DRAWN)
			continue;
		metrics_describe(sqlite, sample->gpu, drawn);
		ROW(sqlite->db, TABLE_GPU_METRIC, CELL(since_begin(sqlite, sample->begin_ns)),
		    CELL(TYPE_OF_GPU(sample->gpu)), CELL(drawn),
		    CELL(is_rate ? sample->value[i] : (sample->value[i] + 50) / 100));
	}
}

/* ---- sqlite other -------------------------------------------------------------------------- */

/*
 * Calls that are no CUDA calls: what a thread asked of the kernel, and what hooks of a user's saw.
 * Nsight Systems has a table for calls of the OS runtime, whose reports (osrt_sum) read these.
 */

/* What that table has no column for. */
static void add_details(struct sqlite *sqlite, int64_t id, const struct call *call)
{
	AT_END(description_free) struct description about = { 0 };

	describe(call, &about);
	ROW(sqlite->db, TABLE_OTHER_CALL, CELL(id),
	    CELL_TEXT(api_layer_name(call->function->layer)), CELL_SAFE(call->function->lib),
	    CELL_TEXT(call_has_end(call) ? cuda_error_name(call->function->layer, call->result)
	                                 : NULL),
	    CELL_SAFE(about.words.len ? about.words.data : ""));
}

static void sqlite_add_other_call(struct sqlite *sqlite, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct call *call = event->call;
	int64_t name = database_string(db, call->function->name), id;
	int64_t chain = sqlite_callchain(sqlite, call->stack);

	id = ROW(db, TABLE_OSRT, CELL(since_begin(sqlite, call->begin_ns)),
	         CELL(since_begin(sqlite, call_has_end(call) ? call->end_ns : call->begin_ns)),
	         CELL(NSYS_CLASS_OS_RUNTIME), CELL(global_tid(event)), CELL_NONE, CELL(name),
	         CELL(call_has_end(call) ? call->result : 0), CELL(call->depth), CELL_KNOWN(chain));
	add_details(sqlite, id, call);
}

/* ---- sqlite who ---------------------------------------------------------------------------- */

/* Who processes are: a table of cuscope's own, with a column for each word that there is. */

#define WHO_CELLS 4 /* beside the words */

static void add_own_words(struct buf *text, const struct run_identity *identity)
{
	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i] && identity->own_word >> i & 1)
			buf_printf(text, "%s%s", text->len ? "," : "", run_identity_name(i));
	}
}

static void sqlite_add_who(struct sqlite *sqlite, const struct run_info *run)
{
	const struct run_identity *identity;
	size_t at = 0;

	while ((identity = who_next(&sqlite->who, run, &at))) {
		AT_END(buf_free) struct buf own = { 0 };
		struct cell cells[WHO_CELLS + RUN_IDENTITY_WORDS] = {
			CELL(MACHINE | (int64_t)(identity->pid & LOW_24) << PID_SHIFT),
			CELL(identity->pid), CELL(since_begin(sqlite, identity->since_ns))
		};

		for (int i = 0; i < RUN_IDENTITY_WORDS; i++)
			cells[WHO_CELLS - 1 + i] = CELL_SAFE(identity->words[i]);
		add_own_words(&own, identity);
		cells[WHO_CELLS - 1 + RUN_IDENTITY_WORDS] = CELL_SAFE(own.data);
		database_row(sqlite->db, TABLE_WHO, cells, ARRAY_SIZE(cells));
	}
}

/* ---- sqlite -------------------------------------------------------------------------------- */

/* ---- small things ---------------------------------------------------------------------------- */

static int event_class(const struct function *function)
{
	return function->layer == LAYER_RUNTIME ? NSYS_CLASS_RUNTIME : NSYS_CLASS_DRIVER;
}

/* ---- functions, kernels, results ------------------------------------------------------------- */

static int64_t function_id(struct sqlite *sqlite, const struct function *function)
{
	struct database *db = sqlite->db;
	int64_t *id;

	id = BY_ID(sqlite->functions, sqlite->n_functions, function->id);
	if (*id)
		return *id;
	*id = database_string(db, function->name);
	ROW(db, TABLE_FUNCTION, CELL(*id), CELL(event_class(function)),
	    CELL_TEXT(api_class_name(function->cls)), CELL_SAFE(function->lib));
	return *id;
}

static struct kernel_ids make_kernel_ids(struct database *db, const struct kernel *kernel)
{
	struct kernel_ids ids = { .demangled = database_string(db, kernel->name) };
	size_t len;
	const char *base = kernel_name_base(kernel->name, &len);
	AT_END(at_end_free) char *copy = xstrndup(base, len);

	ids.base = database_string(db, copy);
	if (kernel->mangled)
		ids.mangled = database_string(db, kernel->mangled);
	return ids;
}

/* A name that is still to be found is not kept. */
struct kernel_ids sqlite_kernel_ids(struct sqlite *sqlite, const struct kernel *kernel)
{
	struct kernel_ids *ids;

	if (!kernel->resolved)
		return make_kernel_ids(sqlite->db, kernel);
	ids = BY_ID(sqlite->kernels, sqlite->n_kernels, kernel->id);
	if (!ids->demangled)
		*ids = make_kernel_ids(sqlite->db, kernel);
	return *ids;
}

static void note_result(struct sqlite *sqlite, const struct call *call)
{
	enum api_layer layer = call->function->layer;
	uint32_t code = (uint32_t)call->result;
	uint64_t *word, bit = 1ull << (code % 64);

	if (code >= CODES)
		return;
	word = &sqlite->results[layer][code / 64];
	if (*word & bit)
		return;
	*word |= bit;
	ROW(sqlite->db, TABLE_RESULT, CELL(event_class(call->function)), CELL(call->result),
	    CELL_TEXT(cuda_error_name(layer, call->result)));
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Whether a call's bytes are known, and are not a zero that stands for nothing. */
static bool has_bytes(const struct call *call, uint64_t bytes)
{
	if (call->flags & CALL_SIZE_UNKNOWN)
		return false;
	return call->op == OP_COPY || call->op == OP_SET || call->op == OP_ALLOC || bytes;
}

static int64_t add_runtime(struct sqlite *sqlite, const struct event *event)
{
	const struct call *call = event->call;
	int64_t name = function_id(sqlite, call->function);
	int64_t chain = sqlite_callchain(sqlite, call->stack);

	return ROW(sqlite->db, TABLE_RUNTIME, CELL(since_begin(sqlite, call->begin_ns)),
	           CELL(since_begin(sqlite, call_has_end(call) ? call->end_ns : call->begin_ns)),
	           CELL(event_class(call->function)), CELL(global_tid(event)),
	           CELL_CORRELATION(event->process, call->correlation), CELL(name),
	           CELL(call_has_end(call) ? call->result : 0), CELL_KNOWN(chain));
}

static void add_arguments(struct sqlite *sqlite, int64_t id, const struct event *event)
{
	const struct call *call = event->call;
	const struct api_call *args = &call->args;
	bool launch = call->op == OP_LAUNCH, copy = call->op == OP_COPY;
	bool memory = call->op == OP_ALLOC || call->op == OP_FREE;
	uint64_t bytes = call->op == OP_FREE ? sqlite->memory_bytes : args->bytes;
	int64_t kernel = call->kernel ? sqlite_kernel_ids(sqlite, call->kernel).demangled : 0;

	ROW(sqlite->db, TABLE_CALL, CELL(id), CELL(call->flags), CELL(call->depth),
	    CELL_KNOWN(kernel), CELL_THREE(args->grid, launch), CELL_THREE(args->block, launch),
	    CELL_IF(args->shmem_bytes, launch), CELL_IF(args->stream, call_has_stream(call)),
	    CELL_IF(bytes, has_bytes(call, bytes)),
	    CELL_TEXT(copy && args->direction ? api_direction_name(args->direction) : NULL),
	    CELL_KNOWN(args->address), CELL_IF(args->source, copy),
	    CELL_TEXT(memory ? api_memory_name(api_memory(call->function->api)) : NULL));
}

/*
 * What a call waited for, as CUPTI would number it; 0: nothing. The runtime's functions and the
 * driver's differ by their beginning.
 */
static int sync_type(const struct call *call)
{
	static const struct {
		const char *name;
		int type;
	} waits[] = {
		{ "DeviceSynchronize", NSYS_SYNC_CONTEXT },
		{ "CtxSynchronize", NSYS_SYNC_CONTEXT },
		{ "ThreadSynchronize", NSYS_SYNC_CONTEXT },
		{ "StreamSynchronize", NSYS_SYNC_STREAM },
		{ "EventSynchronize", NSYS_SYNC_EVENT },
		{ "StreamWaitEvent", NSYS_SYNC_STREAM_WAIT },
	};
	const char *name = call->function->name;

	if (call->op != OP_SYNC && call->op != OP_EVENT_WAIT)
		return 0;
	if (strncmp(name, "cu", 2)) /* a damaged file may call it anything */
		return 0;
	name += strncmp(name, "cuda", 4) ? 2 : 4;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		size_t len = strlen(waits[i].name);

		if (!strncmp(name, waits[i].name, len) && (!name[len] || name[len] == '_'))
			return waits[i].type;
	}
	return 0;
}

static void add_sync(struct sqlite *sqlite, const struct event *event)
{
	const struct call *call = event->call;
	struct event_wait on = { 0 };
	int type = sync_type(call);

	if (!type || (call->flags & (CALL_NESTED | CALL_CAPTURED)) || !call_has_end(call))
		return;
	event_waits_find(sqlite->event_waits, event->process, call->correlation, &on);
	sqlite_wait_of_call(sqlite, event, type, on.event);
}

/* ---- events ------------------------------------------------------------------------------- */

static void add_call(struct sqlite *sqlite, const struct event *event)
{
	const struct call *call = event->call;
	int64_t id = add_runtime(sqlite, event);

	if (call_has_end(call))
		note_result(sqlite, call);
	if (call->op != OP_NONE || call->flags || call->args.has_stream)
		add_arguments(sqlite, id, event);
	add_sync(sqlite, event);
	sqlite_add_memory(sqlite, event, id);
}

static void add_process(struct sqlite *sqlite, const struct event *event)
{
	who_note(&sqlite->who, event->process);
	ROW(sqlite->db, TABLE_PROCESS, CELL(global_pid(event->process)), CELL(event->process->pid),
	    CELL_SAFE(event->process->comm));
}

static void add_thread(struct sqlite *sqlite, const struct event *event)
{
	int64_t name = database_string(sqlite->db, event->thread->comm);

	ROW(sqlite->db, TABLE_THREAD, CELL(name), CELL_KNOWN(event->thread->priority),
	    CELL(global_tid(event)));
}

/* ---- the format ------------------------------------------------------------------------------ */

static int sqlite_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sqlite *sqlite = (struct sqlite *)self;

	sqlite->end_ns = run->end_ns ? run->end_ns : UINT64_MAX;
	if (!sqlite->db)
		sqlite->db = database_open(fileno(sqlite->sink.options.out), err);
	return sqlite->db ? 0 : err->code;
}

static int sqlite_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct sqlite *sqlite = (struct sqlite *)self;

	sqlite->n_changes = 0;
	sqlite->memory_bytes = memory_event(sqlite->memory, event);
	event_waits_event(sqlite->event_waits, event);
	if (!sqlite->sink.wanted)
		return 0;
	switch (event->type) {
	case EVENT_CALL:
		add_call(sqlite, event);
		break;
	case EVENT_OTHER_CALL:
		sqlite_add_other_call(sqlite, event);
		break;
	case EVENT_PROCESS:
		add_process(sqlite, event);
		sqlite_add_memory(sqlite, event, 0); /* of what its pid was before */
		break;
	case EVENT_EXIT:
		sqlite_add_memory(sqlite, event, 0);
		break;
	case EVENT_THREAD:
		add_thread(sqlite, event);
		break;
	case EVENT_ACTIVITY:
		sqlite_add_activity(sqlite, event);
		break;
	case EVENT_RANGE:
		sqlite_add_range(sqlite, event);
		break;
	case EVENT_SAMPLE:
		sqlite_add_sample(sqlite, event);
		break;
	case EVENT_METRICS:
		sqlite_add_metrics(sqlite, event);
		break;
	case EVENT_STALL:
	case EVENT_CALL_BEGIN:
		break;
	}
	sqlite->sink.lines.written = database_bytes(sqlite->db);
	return database_failed(sqlite->db, err);
}

static int close_database(struct sqlite *sqlite, bool drop, struct err *err)
{
	struct database *db = sqlite->db;

	sqlite->db = NULL;
	return db ? database_close(db, drop, err) : 0;
}

static int sqlite_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sqlite *sqlite = (struct sqlite *)self;

	if (!sqlite->db)
		return 0;
	sqlite_add_run(sqlite, run);
	sqlite_add_who(sqlite, run);
	sqlite_add_streams(sqlite);
	sqlite_add_waits(sqlite);
	return close_database(sqlite, database_failed(sqlite->db, NULL), err);
}

static void sqlite_free(struct consumer *self)
{
	struct sqlite *sqlite = (struct sqlite *)self;

	close_database(sqlite, true, NULL);
	memory_free(sqlite->memory);
	FREE_ALL(sqlite->changes, sqlite->functions, sqlite->kernels, sqlite->devices,
	         sqlite->frames, sqlite->stacks);
	who_free(&sqlite->who);
	contexts_free(sqlite->contexts);
	event_waits_free(sqlite->event_waits);
	sqlite_free_streams(sqlite);
	sqlite_free_domains(sqlite);
	sqlite_free_waits(sqlite);
	free(sqlite);
}

static const struct consumer_ops sqlite_ops = {
	.metrics = true,
	.begin = sqlite_begin,
	.event = sqlite_event,
	.end = sqlite_end,
	.free = sqlite_free,
};

struct sqlite *sqlite_rows_new(const struct sink_options *options, struct database *db)
{
	struct sqlite *sqlite = xcalloc(1, sizeof(*sqlite));

	sqlite->db = db;
	sqlite->sink.gpu = true;
	sqlite->sink.samples = true;
	sqlite->contexts = contexts_new();
	sqlite->event_waits = event_waits_new();
	sqlite->memory = memory_new();
	memory_tell_changes(sqlite->memory, sqlite_note_change, sqlite);
	sink_init(&sqlite->sink, &sqlite_ops, options);
	return sqlite;
}

struct consumer *sqlite_new(const struct sink_options *options)
{
	return &sqlite_rows_new(options, NULL)->sink.consumer;
}
