// SPDX-License-Identifier: MIT
/* Kinds, and how work, waits and calls become records. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti.h"

/* Work that was told and has not ended. */
struct trace {
	struct trace *next, **link;
	size_t n;
	struct traced {
		struct slot *slot;  /* NULL: no record of it */
		const char *kernel; /* NULL: it is none, or none is sampled */
		uint32_t context;
		uint64_t made_ns; /* of its graph; 0: of none */
	} of[];
};

static atomic_bool enabled[KINDS];
static struct trace *traces; /* guarded by cupti_lock; those of former sessions as well */
static atomic_int thread_id_type;

static uint64_t (*_Atomic timestamp)(void);
static _Atomic int64_t clock_offset; /* what records' clock is ahead of CLOCK_MONOTONIC */

static atomic_bool graphs_measured;

bool kind_is_enabled(enum kind kind)
{
	return atomic_load(&enabled[kind]);
}

static uint32_t thread_id(void)
{
	if (atomic_load(&thread_id_type) == THREAD_ID_SYSTEM)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t)(uintptr_t)pthread_self();
}

/* ---- the clock ------------------------------------------------------------------------------- */

uint64_t timestamp_now(void)
{
	uint64_t (*registered)(void) = atomic_load(&timestamp);
	if (registered) {
		client_enter();
		uint64_t now = registered();
		client_leave();
		return now;
	}
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t timestamp_of(uint64_t monotonic_ns)
{
	return monotonic_ns + (uint64_t)atomic_load(&clock_offset);
}

/* The offset where two looks at our clock were closest together around one at the other. */
static void compare_clocks(void)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;
	for (int i = 0; i < 30; i++) {
		uint64_t before = clock_ns(), other = timestamp_now(), after = clock_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)(other - (before + best / 2));
	}
	/* Within what can be measured it is the same clock. */
	if ((uint64_t)llabs(offset) <= best)
		offset = 0;
	atomic_store(&clock_offset, offset);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static bool kernels_are_measured(void)
{
	return kind_is_enabled(KIND_CONCURRENT_KERNEL) || kind_is_enabled(KIND_KERNEL) ||
	       kind_is_enabled(KIND_GRAPH_TRACE);
}

void graph_instantiated(void)
{
	if (kernels_are_measured())
		atomic_store(&graphs_measured, true);
}

bool graphs_were_measured(void)
{
	return atomic_load(&graphs_measured);
}

/* ---- work ------------------------------------------------------------------------------------ */

static enum sim_memory plain(enum sim_memory memory)
{
	return memory == SIM_STATIC || memory == SIM_MANAGED ? SIM_DEVICE : memory;
}

static uint8_t copy_kind(const struct sim_work *work)
{
	static const uint8_t kinds[3][3] = {
		{ COPY_HTOH, COPY_HTOD, COPY_HTOA },
		{ COPY_DTOH, COPY_DTOD, COPY_DTOA },
		{ COPY_ATOH, COPY_ATOD, COPY_ATOA },
	};
	int side[2];
	for (int i = 0; i < 2; i++) {
		enum sim_memory memory = plain(i ? work->copy.to : work->copy.from);
		side[i] = memory == SIM_DEVICE ? 1 : memory == SIM_ARRAY ? 2 : 0;
	}
	return work->copy.peer ? COPY_PTOP : kinds[side[0]][side[1]];
}

static void kernel_record(const struct sim_work *work, union any_record *record)
{
	static _Atomic int64_t grids;
	record->kernel = (struct kernel_record){
		.kind = kind_is_enabled(KIND_CONCURRENT_KERNEL) ? KIND_CONCURRENT_KERNEL
		                                                : KIND_KERNEL,
		.registers = (uint16_t)work->kernel.registers,
		.device = work->device,
		.context = work->context,
		.stream = work->stream,
		.shared_dynamic = (int32_t)work->kernel.shared_bytes,
		.correlation = correlation_current(),
		.grid_id = atomic_fetch_add(&grids, 1) + 1,
		.name = work->kernel.name,
		.launch_type = work->kernel.cooperative ? LAUNCH_COOPERATIVE : LAUNCH_REGULAR,
		.graph_node = work->graph_node,
		.graph = work->graph,
		.channel_type = CHANNEL_COMPUTE,
	};
	for (int i = 0; i < 3; i++) {
		record->kernel.grid[i] = (int32_t)work->kernel.grid[i];
		record->kernel.block[i] = (int32_t)work->kernel.block[i];
	}
}

static void copy_record(const struct sim_work *work, union any_record *record)
{
	record->copy = (struct copy_record){
		.kind = KIND_MEMCPY,
		.copy_kind = copy_kind(work),
		.from = (uint8_t)work->copy.from,
		.to = (uint8_t)work->copy.to,
		.flags = work->copy.async ? FLAG_ASYNC : 0,
		.bytes = work->copy.bytes,
		.device = work->device,
		.context = work->context,
		.stream = work->stream,
		.correlation = correlation_current(),
		.graph_node = work->graph_node,
		.graph = work->graph,
		.channel_type = CHANNEL_COPY,
		.copies = 1,
	};
}

static void peer_record(const struct sim_work *work, union any_record *record)
{
	record->peer = (struct peer_record){
		.kind = KIND_MEMCPY2,
		.copy_kind = COPY_PTOP,
		.from = (uint8_t)work->copy.from,
		.to = (uint8_t)work->copy.to,
		.flags = work->copy.async ? FLAG_ASYNC : 0,
		.bytes = work->copy.bytes,
		.device = work->device,
		.context = work->context,
		.stream = work->stream,
		.from_device = work->copy.from_device,
		.from_context = work->copy.from_context,
		.to_device = work->copy.to_device,
		.to_context = work->copy.to_context,
		.correlation = correlation_current(),
		.graph_node = work->graph_node,
		.graph = work->graph,
		.channel_type = CHANNEL_COPY,
	};
}

static void set_record(const struct sim_work *work, union any_record *record)
{
	record->set = (struct set_record){
		.kind = KIND_MEMSET,
		.value = work->set.value,
		.bytes = work->set.bytes,
		.device = work->device,
		.context = work->context,
		.stream = work->stream,
		.correlation = correlation_current(),
		.flags = work->set.async ? FLAG_ASYNC : 0,
		.to = (uint16_t)work->set.to,
		.graph_node = work->graph_node,
		.graph = work->graph,
		.channel_type = CHANNEL_COMPUTE,
	};
}

static void graph_record(const struct sim_work *work, union any_record *record)
{
	record->graph = (struct graph_record){
		.kind = KIND_GRAPH_TRACE,
		.correlation = correlation_current(),
		.device = work->device,
		.graph = work->graph,
		.context = work->context,
		.stream = work->stream,
		.end_device = work->device,
		.end_context = work->context,
	};
}

static void work_record(const struct sim_work *work, union any_record *record)
{
	switch (work->kind) {
	case SIM_KERNEL:
		kernel_record(work, record);
		break;
	case SIM_COPY:
		if (work->copy.peer)
			peer_record(work, record);
		else
			copy_record(work, record);
		break;
	case SIM_SET:
		set_record(work, record);
		break;
	case SIM_GRAPH:
		graph_record(work, record);
		break;
	}
}

void *work_submit(const struct sim_work *work, size_t n)
{
	several_count(work, n);
	/* The trace of a graph hides its nodes. */
	bool whole = work[0].kind == SIM_GRAPH && kind_is_enabled(KIND_GRAPH_TRACE);
	if (whole && work[0].made_before)
		misuse("cuGraphLaunch", "the trace of graphs is enabled, and this one was "
		                        "instantiated before CUPTI came");
	if (work[0].kind == SIM_GRAPH && kernels_are_measured())
		atomic_store(&graphs_measured, true);
	struct trace *trace = calloc(1, sizeof(*trace) + n * sizeof(trace->of[0]));
	bool any = false;
	if (!trace)
		return NULL;
	trace->n = n;
	for (size_t i = 0; i < (whole ? 1 : n); i++) {
		union any_record record = { 0 };
		work_record(&work[i], &record);
		if (kind_is_enabled((enum kind)record.kind))
			trace->of[i].slot = slot_reserve(&record);
		if (work[i].kind == SIM_KERNEL && pcs_is_on())
			trace->of[i].kernel = work[i].kernel.name;
		if (work[0].kind == SIM_GRAPH)
			trace->of[i].made_ns = work[0].made_ns;
		trace->of[i].context = work[i].context;
		any |= trace->of[i].slot || trace->of[i].kernel;
	}
	if (!any) {
		free(trace);
		return NULL;
	}
	pthread_mutex_lock(&cupti_lock);
	trace->next = traces;
	trace->link = &traces;
	if (traces)
		traces->link = &trace->next;
	traces = trace;
	pthread_mutex_unlock(&cupti_lock);
	return trace;
}

static void trace_free(struct trace *trace)
{
	pthread_mutex_lock(&cupti_lock);
	*trace->link = trace->next;
	if (trace->next)
		trace->next->link = trace->link;
	pthread_mutex_unlock(&cupti_lock);
	free(trace);
}

void work_ended(void *data, const struct sim_span *span, size_t n)
{
	struct trace *trace = data;
	for (size_t i = 0; i < trace->n && i < n; i++) {
		if (trace->of[i].slot)
			slot_finish(trace->of[i].slot, SLOT_DONE, span[i].begin_ns, span[i].end_ns);
		if (trace->of[i].kernel)
			pcs_ran(trace->of[i].context, trace->of[i].kernel, trace->of[i].made_ns,
			        span[i].begin_ns, span[i].end_ns);
	}
	trace_free(trace);
}

void work_cancelled(void *data)
{
	struct trace *trace = data;
	for (size_t i = 0; i < trace->n; i++) {
		if (trace->of[i].slot)
			slot_finish(trace->of[i].slot, SLOT_VOID, 0, 0);
	}
	trace_free(trace);
}

/* ---- what threads do ------------------------------------------------------------------------- */

static void add_now(const union any_record *record, uint64_t begin_ns, uint64_t end_ns)
{
	struct slot *slot = slot_reserve(record);
	if (slot)
		slot_finish(slot, SLOT_DONE, begin_ns, end_ns);
}

void work_waited(const struct sim_wait *wait)
{
	if (!kind_is_enabled(KIND_SYNCHRONIZATION))
		return;
	union any_record record = {
		.wait = { .kind = KIND_SYNCHRONIZATION,
		          .type = wait->kind,
		          .correlation = correlation_current(),
		          .context = wait->context,
		          .stream = wait->stream,
		          .event = wait->event,
		          .event_record = wait->event == SIM_NONE ? UINT64_MAX : wait->event,
		          .result = wait->result },
	};
	add_now(&record, wait->span.begin_ns, wait->span.end_ns);
}

void overhead_add(uint32_t overhead_kind, uint64_t begin_ns, uint64_t end_ns)
{
	if (!kind_is_enabled(KIND_OVERHEAD))
		return;
	union any_record record = {
		.overhead = { .kind = KIND_OVERHEAD,
		              .overhead_kind = overhead_kind,
		              .object_kind = OBJECT_THREAD,
		              .process = (uint32_t)getpid(),
		              .thread = thread_id(),
		              .correlation = correlation_current() },
	};
	add_now(&record, begin_ns, end_ns);
}

static enum kind call_kind(enum sim_layer layer)
{
	return layer == SIM_DRIVER ? KIND_DRIVER : KIND_RUNTIME;
}

bool calls_are_recorded(enum sim_layer layer)
{
	return kind_is_enabled(call_kind(layer));
}

void call_record(const struct sim_call *call, uint32_t site)
{
	union any_record record = {
		.api = { .kind = call_kind(call->site->layer),
		         .site = site,
		         .process = (uint32_t)getpid(),
		         .thread = thread_id(),
		         .correlation = call->correlation,
		         .result = *(const uint32_t *)call->result },
	};
	if (calls_are_recorded(call->site->layer))
		add_now(&record, call->begin_ns, clock_ns());
}

/* ---- the program's side ---------------------------------------------------------------------- */

bool any_kind_is_enabled(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		if (kind_is_enabled((enum kind)kind))
			return true;
	}
	return false;
}

void kinds_forget(void)
{
	for (int kind = 0; kind < KINDS; kind++)
		atomic_store(&enabled[kind], false);
}

/* Slots of work that still runs belong to no buffer any more; `traces` keeps them. */
void activity_forget(void)
{
	kinds_forget();
	atomic_store(&timestamp, NULL);
	atomic_store(&graphs_measured, false);
}

enum result cuptiActivityEnable(uint32_t kind)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (kind == 0 || kind >= KINDS)
		return RESULT_INVALID_KIND;
	if (record_bytes(kind) == 0)
		return kind == KIND_GRAPH_TRACE ? RESULT_INVALID_KIND : RESULT_NOT_SUPPORTED;
	uint64_t begin = clock_ns();
	enum result result = session_begin();
	if (result != RESULT_SUCCESS)
		return result;
	bool first = !any_kind_is_enabled();
	if (first)
		compare_clocks();
	atomic_store(&enabled[kind], true);
	if (first)
		overhead_add(OVERHEAD_RESOURCE, begin, clock_ns());
	return RESULT_SUCCESS;
}

enum result cuptiActivityDisable(uint32_t kind)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	session_need(__func__);
	if (kind == 0 || kind >= KINDS)
		return RESULT_INVALID_KIND;
	atomic_store(&enabled[kind], false);
	return RESULT_SUCCESS;
}

enum result cuptiGetTimestamp(uint64_t *ns)
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (!ns)
		return RESULT_INVALID_PARAMETER;
	*ns = timestamp_now();
	return RESULT_SUCCESS;
}

#if CUPTI_RELEASE >= 11060
CUPTI_API enum result cuptiActivityRegisterTimestampCallback(uint64_t (*function)(void));
enum result cuptiActivityRegisterTimestampCallback(uint64_t (*function)(void))
{
	FAIL_ON_DEMAND();
	NOT_BY_V2();
	if (!function)
		return RESULT_INVALID_PARAMETER;
	if (any_kind_is_enabled())
		return RESULT_INVALID_OPERATION;
	atomic_store(&timestamp, function);
	return RESULT_SUCCESS;
}
#endif

CUPTI_API enum result cuptiSetThreadIdType(uint32_t type);
enum result cuptiSetThreadIdType(uint32_t type)
{
	FAIL_ON_DEMAND();
	if (type > THREAD_ID_SYSTEM)
		return RESULT_NOT_SUPPORTED;
	atomic_store(&thread_id_type, (int)type);
	return RESULT_SUCCESS;
}

CUPTI_API enum result cuptiGetThreadIdType(uint32_t *type);
enum result cuptiGetThreadIdType(uint32_t *type)
{
	if (!type)
		return RESULT_INVALID_PARAMETER;
	*type = (uint32_t)atomic_load(&thread_id_type);
	return RESULT_SUCCESS;
}
