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
static const char *const metrics_names[GPU_METRICS] = {
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
};

static void metrics_describe(struct sqlite *sqlite, uint32_t gpu, enum gpu_metric metric)
{
	struct database *db = sqlite->db;
	uint32_t bit = 1u << metric;

	if (sqlite->metrics[gpu] & bit)
		return;
	sqlite->metrics[gpu] |= bit;
	row_begin(db, TABLE_GPU_METRIC_NAME);
	row_int(db, TYPE_OF_GPU(gpu));
	row_int(db, SOURCE);
	row_static(db, "GPU Metrics");
	row_int(db, metric);
	row_static(db, metrics_names[metric]);
	row_end(db);
}

static void sqlite_add_metrics(struct sqlite *sqlite, const struct event *event)
{
	const struct gpu_metrics_sample *sample = event->metrics;
	struct database *db = sqlite->db;

	for (enum gpu_metric i = 0; i < GPU_METRICS && sample->gpu < RUN_GPUS_MAX; i++) {
		bool is_rate = gpu_metric_info(i)->is_rate;

		if (!gpu_metric_is_drawn(sample, i))
			continue;
		metrics_describe(sqlite, sample->gpu, i);
		row_begin(db, TABLE_GPU_METRIC);
		row_int(db, since_begin(sqlite, sample->begin_ns));
		row_int(db, TYPE_OF_GPU(sample->gpu));
		row_int(db, i);
		row_int(db, is_rate ? sample->value[i] : (sample->value[i] + 50) / 100);
		row_end(db);
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
	struct database *db = sqlite->db;
	struct description about = { 0 };

	describe(call, &about);
	row_begin(db, TABLE_OTHER_CALL);
	row_int(db, id);
	row_static(db, api_layer_name(call->function->layer));
	row_text(db, call->function->lib);
	row_static(db, call_has_end(call) ? cuda_error_name(call->function->layer, call->result)
	                                  : NULL);
	row_text(db, about.words.len ? about.words.data : "");
	row_end(db);
	description_free(&about);
}

static void sqlite_add_other_call(struct sqlite *sqlite, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct call *call = event->call;
	int64_t name = database_string(db, call->function->name), id;
	int64_t chain = sqlite_callchain(sqlite, call->stack);

	row_begin(db, TABLE_OSRT);
	row_int(db, since_begin(sqlite, call->begin_ns));
	row_int(db, since_begin(sqlite, call_has_end(call) ? call->end_ns : call->begin_ns));
	row_int(db, NSYS_CLASS_OS_RUNTIME);
	row_int(db, global_tid(event));
	row_null(db);
	row_int(db, name);
	row_int(db, call_has_end(call) ? call->result : 0);
	row_int(db, call->depth);
	add_or_null(db, (uint64_t)chain, chain);
	id = row_end(db);
	add_details(sqlite, id, call);
}

/* ---- sqlite who ---------------------------------------------------------------------------- */

/* Who processes are: a table of cuscope's own, with a column for each word that there is. */

static void add_own_words(struct database *db, const struct run_identity *identity)
{
	struct buf text = { 0 };

	for (int i = 0; i < RUN_IDENTITY_WORDS; i++) {
		if (identity->words[i] && identity->own_word >> i & 1)
			buf_printf(&text, "%s%s", text.len ? "," : "", run_identity_name(i));
	}
	row_text(db, text.data);
	buf_free(&text);
}

static void sqlite_add_who(struct sqlite *sqlite, const struct run_info *run)
{
	struct database *db = sqlite->db;
	const struct run_identity *identity;
	size_t at = 0;

	while ((identity = who_next(&sqlite->who, run, &at))) {
		row_begin(db, TABLE_WHO);
		row_int(db, MACHINE | (int64_t)(identity->pid & LOW_24) << PID_SHIFT);
		row_int(db, identity->pid);
		row_int(db, since_begin(sqlite, identity->since_ns));
		for (int i = 0; i < RUN_IDENTITY_WORDS; i++)
			row_text(db, identity->words[i]);
		add_own_words(db, identity);
		row_end(db);
	}
}

/* ---- sqlite -------------------------------------------------------------------------------- */

static struct sqlite *sqlite_of(struct consumer *self)
{
	return (struct sqlite *)self;
}

/* ---- small things ---------------------------------------------------------------------------- */

static int event_class(const struct function *function)
{
	return function->layer == LAYER_RUNTIME ? NSYS_CLASS_RUNTIME : NSYS_CLASS_DRIVER;
}

/*
 * A correlation is a number within its process. Many queries join by it alone, so it is made
 * unique here; the first process, mostly the only one, keeps its numbers.
 */
void add_correlation(struct database *db, const struct process *process, uint64_t number)
{
	if (number)
		row_int(db, (int64_t)((uint64_t)process->id << 40 | number));
	else
		row_null(db);
}

void add_three(struct database *db, const uint32_t dims[3], bool known)
{
	for (int i = 0; i < 3; i++) {
		if (known)
			row_int(db, dims[i]);
		else
			row_null(db);
	}
}

void add_or_null(struct database *db, uint64_t value, bool known)
{
	if (known)
		row_int(db, (int64_t)value);
	else
		row_null(db);
}

/* ---- functions, kernels, results ------------------------------------------------------------- */

static int64_t function_id(struct sqlite *sqlite, const struct function *function)
{
	struct database *db = sqlite->db;
	int64_t *id;

	sqlite->functions = by_id_room(sqlite->functions, &sqlite->n_functions,
	                               sizeof(*sqlite->functions), function->id);
	id = &sqlite->functions[function->id];
	if (*id)
		return *id;
	*id = database_string(db, function->name);
	row_begin(db, TABLE_FUNCTION);
	row_int(db, *id);
	row_int(db, event_class(function));
	row_static(db, api_class_name(function->cls));
	row_text(db, function->lib);
	row_end(db);
	return *id;
}

static struct kernel_ids make_kernel_ids(struct database *db, const struct kernel *kernel)
{
	struct kernel_ids ids = { .demangled = database_string(db, kernel->name) };
	size_t len;
	const char *base = kernel_name_base(kernel->name, &len);
	char *copy = xstrndup(base, len);

	ids.base = database_string(db, copy);
	if (kernel->mangled)
		ids.mangled = database_string(db, kernel->mangled);
	free(copy);
	return ids;
}

/* A name that is still to be found is not kept. */
struct kernel_ids sqlite_kernel_ids(struct sqlite *sqlite, const struct kernel *kernel)
{
	struct kernel_ids *ids;

	if (!kernel->resolved)
		return make_kernel_ids(sqlite->db, kernel);
	sqlite->kernels = by_id_room(sqlite->kernels, &sqlite->n_kernels, sizeof(*sqlite->kernels),
	                             kernel->id);
	ids = &sqlite->kernels[kernel->id];
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
	row_begin(sqlite->db, TABLE_RESULT);
	row_int(sqlite->db, event_class(call->function));
	row_int(sqlite->db, call->result);
	row_static(sqlite->db, cuda_error_name(layer, call->result));
	row_end(sqlite->db);
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
	struct database *db = sqlite->db;
	const struct call *call = event->call;
	int64_t name = function_id(sqlite, call->function);
	int64_t chain = sqlite_callchain(sqlite, call->stack);

	row_begin(db, TABLE_RUNTIME);
	row_int(db, since_begin(sqlite, call->begin_ns));
	row_int(db, since_begin(sqlite, call_has_end(call) ? call->end_ns : call->begin_ns));
	row_int(db, event_class(call->function));
	row_int(db, global_tid(event));
	add_correlation(db, event->process, call->correlation);
	row_int(db, name);
	row_int(db, call_has_end(call) ? call->result : 0);
	add_or_null(db, (uint64_t)chain, chain);
	return row_end(db);
}

static void add_arguments(struct sqlite *sqlite, int64_t id, const struct event *event)
{
	struct database *db = sqlite->db;
	const struct call *call = event->call;
	const struct api_call *args = &call->args;
	bool launch = call->op == OP_LAUNCH, copy = call->op == OP_COPY;
	bool memory = call->op == OP_ALLOC || call->op == OP_FREE;
	uint64_t bytes = call->op == OP_FREE ? sqlite->memory_bytes : args->bytes;
	int64_t kernel = call->kernel ? sqlite_kernel_ids(sqlite, call->kernel).demangled : 0;

	row_begin(db, TABLE_CALL);
	row_int(db, id);
	row_int(db, call->flags);
	row_int(db, call->depth);
	add_or_null(db, (uint64_t)kernel, kernel);
	add_three(db, args->grid, launch);
	add_three(db, args->block, launch);
	add_or_null(db, args->shmem_bytes, launch);
	add_or_null(db, args->stream, call_has_stream(call));
	add_or_null(db, bytes, has_bytes(call, bytes));
	row_static(db, copy && args->direction ? api_direction_name(args->direction) : NULL);
	add_or_null(db, args->address, args->address);
	add_or_null(db, args->source, copy);
	row_static(db, memory ? api_memory_name(api_memory(call->function->api)) : NULL);
	row_end(db);
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

static void add_sync(struct sqlite *sqlite, int64_t id, const struct event *event)
{
	const struct call *call = event->call;
	struct event_wait on = { 0 };
	int type = sync_type(call);

	if (!type || (call->flags & (CALL_NESTED | CALL_CAPTURED)) || !call_has_end(call))
		return;
	event_waits_find(sqlite->event_waits, event->process, call->correlation, &on);
	row_begin(sqlite->db, TABLE_SYNC_CALL);
	row_int(sqlite->db, id);
	row_int(sqlite->db, type);
	add_or_null(sqlite->db, on.event, on.event);
	row_end(sqlite->db);
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
	add_sync(sqlite, id, event);
	sqlite_add_memory(sqlite, event, id);
}

static void add_process(struct sqlite *sqlite, const struct event *event)
{
	who_note(&sqlite->who, event->process);
	row_begin(sqlite->db, TABLE_PROCESS);
	row_int(sqlite->db, global_pid(event->process));
	row_int(sqlite->db, event->process->pid);
	row_text(sqlite->db, event->process->comm);
	row_end(sqlite->db);
}

static void add_thread(struct sqlite *sqlite, const struct event *event)
{
	int64_t name = database_string(sqlite->db, event->thread->comm);

	row_begin(sqlite->db, TABLE_THREAD);
	row_int(sqlite->db, name);
	add_or_null(sqlite->db, (uint64_t)event->thread->priority, event->thread->priority);
	row_int(sqlite->db, global_tid(event));
	row_end(sqlite->db);
}

/* ---- the format ------------------------------------------------------------------------------ */

static int sqlite_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct sqlite *sqlite = sqlite_of(self);

	sqlite->db = database_open(fileno(sqlite->sink.options.out), err);
	return sqlite->db ? 0 : err->code;
}

static int sqlite_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct sqlite *sqlite = sqlite_of(self);

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
	struct sqlite *sqlite = sqlite_of(self);

	if (!sqlite->db)
		return 0;
	sqlite_add_run(sqlite, run);
	sqlite_add_who(sqlite, run);
	sqlite_add_streams(sqlite);
	sqlite_add_sampling(sqlite);
	return close_database(sqlite, database_failed(sqlite->db, NULL), err);
}

static void sqlite_free(struct consumer *self)
{
	struct sqlite *sqlite = sqlite_of(self);

	close_database(sqlite, true, NULL);
	memory_free(sqlite->memory);
	free(sqlite->changes);
	free(sqlite->functions);
	free(sqlite->kernels);
	free(sqlite->devices);
	free(sqlite->frames);
	free(sqlite->stacks);
	who_free(&sqlite->who);
	contexts_free(sqlite->contexts);
	event_waits_free(sqlite->event_waits);
	sqlite_free_streams(sqlite);
	sqlite_free_domains(sqlite);
	free(sqlite);
}

static const struct consumer_ops sqlite_ops = {
	.metrics = true,
	.begin = sqlite_begin,
	.event = sqlite_event,
	.end = sqlite_end,
	.free = sqlite_free,
};

struct consumer *sqlite_new(const struct sink_options *options)
{
	struct sqlite *sqlite = xcalloc(1, sizeof(*sqlite));

	sqlite->sink.gpu = true;
	sqlite->sink.samples = true;
	sqlite->contexts = contexts_new();
	sqlite->event_waits = event_waits_new();
	sqlite->memory = memory_new();
	memory_tell_changes(sqlite->memory, sqlite_note_change, sqlite);
	return sink_init(&sqlite->sink, &sqlite_ops, options);
}
