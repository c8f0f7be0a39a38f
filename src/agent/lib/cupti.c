// SPDX-License-Identifier: MIT
#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/lib/activities.h"
#include "agent/lib/calls.h"
#include "agent/lib/clock.h"
#include "agent/lib/cubins.h"
#include "agent/lib/cupti.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/find.h"
#include "agent/lib/gate.h"
#include "agent/lib/leave.h"
#include "agent/lib/pcs_abi.h"
#include "agent/lib/stalls.h"
#include "agent/lib/stalls_contexts.h"
#include "agent/lib/walks.h"
#include "agent/lib/writer.h"
#include "base/array.h"

#define VERSION_LEAVABLE 24 /* 12.6 */
#define ON_THEIR_WAY_MS  2  /* a graph launch takes microseconds */

/* CUPTI's functions; those that an old one lacks are NULL. */
static struct functions {
#define FUNCTION(name, since, arguments) uint32_t(*name) arguments;
	CUPTI_FUNCTIONS(FUNCTION)
	CUPTI_FUNCTIONS_V2(FUNCTION)
#undef FUNCTION
} f;

static struct found found; /* once found, it stays */
static cupti_subscriber subscriber;
static bool entered, two_clocks;
/* Beside other tools: all that has a _v2 is called by it. So it stays until the next subscription,
 * since buffers may still come back, and one call without it spoils CUPTI for the others. */
static bool several;
static bool graphs_matter; /* kinds are on, or about to be */
static uint32_t enabled;   /* enum agent_kind */

/* In which order kinds are asked for. A graph as a whole suppresses its nodes. */
static const struct {
	uint32_t wanted; /* enum agent_kind */
	uint32_t kind;   /* enum cupti_kind */
} kinds_of[] = {
	{ AGENT_WANT_KERNELS, CUPTI_KIND_KERNEL },
	{ AGENT_WANT_COPIES, CUPTI_KIND_MEMCPY },
	{ AGENT_WANT_COPIES, CUPTI_KIND_MEMCPY_PEER },
	{ AGENT_WANT_SETS, CUPTI_KIND_MEMSET },
	{ AGENT_WANT_SYNC, CUPTI_KIND_SYNCHRONIZATION },
	{ AGENT_WANT_OVERHEAD, CUPTI_KIND_OVERHEAD },
	{ AGENT_WANT_GRAPHS, CUPTI_KIND_GRAPH_TRACE },
};

/* ---- called by CUPTI ----------------------------------------------------------------------- */

/* A node of a graph: made by the call that this thread is in, or a copy of another. Copies are told
 * of as made as well. */
static void on_node(uint32_t id, const struct cupti_resource_data *data)
{
	const struct cupti_graph_data *graph = data->graph;
	uint64_t node = 0, original = 0;

	if (!graph || !graph->node || f.cuptiGetGraphNodeId(graph->node, &node))
		return;
	if (id == CUPTI_RESOURCE_GRAPHNODE_CREATED)
		cuscope_agent_walk(node, STACK_OF_NODE, 0, 0, 0);
	else if (graph->original_node && !f.cuptiGetGraphNodeId(graph->original_node, &original))
		calls_node(node, original);
}

static void on_resource(uint32_t id, const struct cupti_resource_data *data)
{
	switch (id) {
	case CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING:
		contexts_end(data->context);
		break;
	case CUPTI_RESOURCE_MODULE_LOADED:
	case CUPTI_RESOURCE_MODULE_PROFILED:
		if (data->module)
			cubins_loaded(data->module->module, data->module->cubin,
			              data->module->bytes);
		break;
	case CUPTI_RESOURCE_GRAPHNODE_CREATED:
	case CUPTI_RESOURCE_GRAPHNODE_CLONED:
		on_node(id, data);
	}
}

static void on_driver_call(uint32_t id, const struct cupti_callback_data *data)
{
	if (gate_graph_begins(id, data))
		contexts_await(data->context);
	if (gate_call(id, data))
		contexts_note(data->context);
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	bool graphs = __atomic_load_n(&graphs_matter, __ATOMIC_RELAXED);

	if (domain == CUPTI_DOMAIN_RESOURCE) {
		on_resource(id, data);
		return;
	}
	if (gate_counts() && domain == CUPTI_DOMAIN_DRIVER)
		on_driver_call(id, data);
	if (writer_kinds(~WRITER_OPEN)) {
		calls_callback(domain, id, data, graphs);
		return;
	}
	if (graphs)
		calls_notice_graphs(domain, id);
	if (leave_wanted())
		leave_callback(domain, data);
}

/* Records that CUPTI had no buffer for. */
static void count_lost(uint64_t n)
{
	struct ring *ring = writer_hold(WRITER_OPEN);

	if (!ring)
		return;
	ring_count(&ring->shared->lost_buffers, n);
	writer_release();
}

static uint32_t next_record(uint8_t *buffer, size_t valid_bytes, struct cupti_record **record)
{
	if (several && !subscriber)
		return CUPTI_MAX_LIMIT_REACHED;
	return several ? f.cuptiActivityGetNextRecord_v2(subscriber, buffer, valid_bytes, record)
	               : f.cuptiActivityGetNextRecord(buffer, valid_bytes, record);
}

static void on_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*buffer = buffers_take(bytes, found.version < CUPTI_VERSION_NO_BUFFER);
	*max_records = 0;
}

static void on_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                size_t valid_bytes)
{
	if (buffers_is_scrap(buffer))
		count_lost((valid_bytes + CUPTI_KERNEL10_BYTES - 1) / CUPTI_KERNEL10_BYTES);
	else if (valid_bytes)
		activities_write(buffer, valid_bytes, next_record);
	buffers_return(buffer);
}

static void on_buffer_requested_v2(uint8_t **buffer, size_t *bytes, size_t *max_records, void *info)
{
	on_buffer_requested(buffer, bytes, max_records);
}

static void on_buffer_completed_v2(uint8_t *buffer, size_t bytes, size_t valid_bytes, void *info)
{
	on_buffer_completed(NULL, 0, buffer, bytes, valid_bytes);
}

/* ---- by either interface ------------------------------------------------------------------- */

static uint32_t timestamp(uint64_t *ns)
{
	return several ? f.cuptiGetTimestamp_v2(subscriber, ns) : f.cuptiGetTimestamp(ns);
}

static uint32_t register_buffers(void)
{
	return several ? f.cuptiActivityRegisterCallbacks_v2(subscriber, on_buffer_requested_v2,
	                                                     on_buffer_completed_v2)
	               : f.cuptiActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
}

static uint32_t enable_kind(uint32_t kind)
{
	return several ? f.cuptiActivityEnable_v2(subscriber, kind, NULL)
	               : f.cuptiActivityEnable(kind);
}

static void disable_kind(uint32_t kind)
{
	if (several)
		f.cuptiActivityDisable_v2(subscriber, kind, NULL);
	else
		f.cuptiActivityDisable(kind);
}

/* ---- entering ------------------------------------------------------------------------------ */

static int error_of(struct failure *failure, const char *function, uint32_t result)
{
	switch (result) {
	case CUPTI_OK:
		return 0;
	case CUPTI_MULTIPLE_SUBSCRIBERS:
	case CUPTI_OLD_PROFILER_INITIALIZED:
		failure_set(failure, AGENT_CUPTI_BUSY, (int32_t)result, "");
		find_profiler(failure);
		return -1;
	default:
		return failure_set(failure, AGENT_CUPTI_ERROR, (int32_t)result, function);
	}
}

static int resolve(struct failure *failure)
{
#define FUNCTION(name, since, arguments)                                                           \
	f.name = (uint32_t(*) arguments)dlsym(found.library, #name);                               \
	if (!f.name && !(since))                                                                   \
		return failure_set(failure, AGENT_CUPTI_FOREIGN, 0, #name);
	CUPTI_FUNCTIONS(FUNCTION)
	CUPTI_FUNCTIONS_V2(FUNCTION)
#undef FUNCTION
	return 0;
}

static int find(int given, struct failure *failure)
{
	struct agent_shared *shared = writer_shared();

	shared->driver_version = find_driver_version();
	if (!shared->driver_version)
		return failure_set(failure, AGENT_NO_CUDA, 0, "libcuda is not loaded");
	if (!found.library) {
		if (find_cupti(given, shared->driver_version, &found, failure))
			return -1;
		if (resolve(failure)) {
			found.library = NULL;
			return -1;
		}
	}
	shared->cupti_version = found.version;
	snprintf(shared->cupti_path, sizeof(shared->cupti_path), "%s", found.path);
	return 0;
}

static bool has_several(void)
{
	return found.version >= CUPTI_VERSION_SEVERAL && f.cuptiSubscribe_v2 &&
	       f.cuptiGetTimestamp_v2 && f.cuptiActivityRegisterCallbacks_v2 &&
	       f.cuptiActivityEnable_v2 && f.cuptiActivityDisable_v2 &&
	       f.cuptiActivityGetNextRecord_v2 && f.cuptiActivityGetNumDroppedRecords_v2 &&
	       f.cuptiActivitySetAttribute_v2;
}

/* What the driver does not support yet, or refuses for any other reason, is asked for without. */
static uint32_t subscribe_v2(struct cupti_subscriber_params *params)
{
	uint32_t result = f.cuptiSubscribe_v2(&subscriber, on_call, NULL, params);
	uint64_t now;

	if (result != CUPTI_OK)
		return result;
	if (f.cuptiGetTimestamp_v2(subscriber, &now) == CUPTI_OK) {
		several = true;
		return CUPTI_OK;
	}
	f.cuptiUnsubscribe(subscriber);
	return CUPTI_NOT_SUPPORTED;
}

/* Only asks who has CUPTI: whoever has left by now lets us in. */
static uint32_t ask_who(struct cupti_subscriber_params *params)
{
	params->struct_bytes = CUPTI_PARAMS_BYTES_13_0;
	if (!f.cuptiSubscribe_v2 ||
	    f.cuptiSubscribe_v2(&subscriber, on_call, NULL, params) != CUPTI_OK)
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	f.cuptiUnsubscribe(subscriber);
	return f.cuptiSubscribe(&subscriber, on_call, NULL);
}

static int subscribe(struct failure *failure)
{
	char other[CUPTI_OTHER_BYTES + 1] = "";
	struct cupti_subscriber_params params = { .struct_bytes = sizeof(params),
		                                  .name = "cuscope",
		                                  .other = other,
		                                  .other_bytes = CUPTI_OTHER_BYTES,
		                                  .several = 1 };
	uint32_t result;

	several = false;
	result = has_several() ? subscribe_v2(&params) : CUPTI_NOT_SUPPORTED;

	if (result != CUPTI_OK && result != CUPTI_MULTIPLE_SUBSCRIBERS) {
		result = f.cuptiSubscribe(&subscriber, on_call, NULL);
		if (result == CUPTI_MULTIPLE_SUBSCRIBERS)
			result = ask_who(&params);
	}
	if (!error_of(failure, "cuptiSubscribe", result))
		return 0;
	subscriber = NULL;
	if (*other && failure->what == AGENT_CUPTI_BUSY)
		snprintf(failure->text, sizeof(failure->text), "%s", other);
	return -1;
}

/* Our clock, which must be CUPTI's before it writes its first record; else the two compared, as
 * beside other tools: before 13.4 CUPTI takes no clock then. */
static int set_clock(struct failure *failure)
{
	uint64_t error = 0;

	two_clocks = several || !f.cuptiActivityRegisterTimestampCallback ||
	             f.cuptiActivityRegisterTimestampCallback(clock_now) != CUPTI_OK;
	if (two_clocks)
		error = clock_compare(timestamp);
	else
		clock_shared();
	if (error == UINT64_MAX)
		return failure_set(failure, AGENT_CUPTI_ERROR, 0, "cuptiGetTimestamp");
	activities_clock_error(error);
	writer_shared()->clock_error_ns = error;
	return 0;
}

/*
 * CUPTI of CUDA 13.0 fills a buffer for each thread, and holds them until it is asked for them: 200
 * threads held 200, and where it was refused any beyond 32 it dropped 84 % of the records. Told not
 * to, it held three at most, and a launch took no longer (H100, driver 580). One that does not know
 * this has shared buffers anyway, or those of activities.h have to do. Before callbacks are there.
 */
static void share_buffers(void)
{
	uint8_t per_thread = 0;
	size_t bytes = sizeof(per_thread);

	if (!entered && several)
		f.cuptiActivitySetAttribute_v2(subscriber, CUPTI_ATTRIBUTE_PER_THREAD, &bytes,
		                               &per_thread);
	else if (!entered && f.cuptiActivitySetAttribute)
		f.cuptiActivitySetAttribute(CUPTI_ATTRIBUTE_PER_THREAD, &bytes, &per_thread);
}

static int enable_kinds(uint32_t kinds, struct failure *failure)
{
	enabled = 0;
	activities_configure(kinds, found.version, clock_now());
	for (size_t i = 0; i < ARRAY_SIZE(kinds_of); i++) {
		uint32_t result;

		if (!(kinds_of[i].wanted & kinds))
			continue;
		result = enable_kind(kinds_of[i].kind);
		/* An old CUPTI knows no graphs as wholes; its records of nodes still come. */
		if (result && kinds_of[i].kind == CUPTI_KIND_GRAPH_TRACE)
			continue;
		if (error_of(failure, "cuptiActivityEnable", result))
			return -1;
		enabled |= kinds_of[i].wanted;
	}
	return 0;
}

static const struct {
	uint32_t wanted; /* enum agent_kind */
	uint32_t id;     /* enum cupti_resource_id */
	bool of_graph;   /* where CUPTI tells nodes' numbers */
} resources[] = {
	{ AGENT_WANT_STALLS, CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING, false },
	{ AGENT_WANT_STALLS, CUPTI_RESOURCE_MODULE_LOADED, false },
	{ AGENT_WANT_NODES, CUPTI_RESOURCE_GRAPHNODE_CREATED, true },
	{ AGENT_WANT_NODES, CUPTI_RESOURCE_GRAPHNODE_CLONED, true },
};

/* Functions that this CUPTI is too old to know are refused, and never called either. */
static void enable_callbacks(uint32_t kinds)
{
	if (gate_counts())
		f.cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER);
	for (uint32_t domain = CUPTI_DOMAIN_DRIVER; domain <= CUPTI_DOMAIN_RUNTIME; domain++) {
		unsigned at = 0;
		uint32_t id;

		while ((id = calls_next(domain, kinds, &at)))
			f.cuptiEnableCallback(1, subscriber, domain, id);
	}
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		if (resources[i].wanted & kinds &&
		    (f.cuptiGetGraphNodeId || !resources[i].of_graph))
			f.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE,
			                      resources[i].id);
	}
}

static bool modules_are_told;

void cupti_tell_launched_modules(bool on)
{
	if (on != modules_are_told)
		f.cuptiEnableCallback(on, subscriber, CUPTI_DOMAIN_RESOURCE,
		                      CUPTI_RESOURCE_MODULE_PROFILED);
	modules_are_told = on;
}

void cupti_spare(void)
{
	uint32_t id;

	while (gate_counts() && (id = gate_spare()))
		f.cuptiEnableCallback(0, subscriber, CUPTI_DOMAIN_DRIVER, id);
}

int cupti_begin(uint32_t kinds, int given, bool calls_are_open, struct failure *failure)
{
	struct agent_shared *shared = writer_shared();

	memset(failure, 0, sizeof(*failure));
	if (find(given, failure))
		return -1;
	if (buffers_open())
		return failure_set(failure, AGENT_NO_MEMORY, 0, "buffers for CUPTI");
	calls_prepare();
	/* First of all: it tells whether another profiler is here, whom we must not disturb. */
	if (!subscriber && subscribe(failure))
		return -1;
	share_buffers();
	entered = true;
	if (set_clock(failure) ||
	    error_of(failure, "cuptiActivityRegisterCallbacks", register_buffers()))
		return -1;
	__atomic_store_n(&shared->active_since_ns, clock_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&shared->active_until_ns, 0, __ATOMIC_RELAXED);
	/* No graph may be launched unseen while kinds are on: those that were on their way before
	 * the callbacks came are let by. */
	__atomic_store_n(&graphs_matter, true, __ATOMIC_RELAXED);
	if (kinds & AGENT_WANT_STALLS) { /* modules may be loaded from then on */
		cubins_open(found.library);
		if (found.version >= CUPTI_VERSION_STALLS)
			gate_begin();
	}
	modules_are_told = false;
	enable_callbacks(kinds);
	clock_pause_ms(ON_THEIR_WAY_MS);
	if (enable_kinds(kinds, failure))
		return -1;
	if (kinds & AGENT_WANT_STALLS)
		stalls_open(found.library, found.version, calls_are_open);
	writer_measure(kinds);
	__atomic_store_n(&shared->active_since_ns, clock_now(), __ATOMIC_RELAXED);
	return 0;
}

bool cupti_entered(void)
{
	return entered;
}

/* ---- while it runs ------------------------------------------------------------------------- */

static void count_dropped(void)
{
	size_t dropped = 0;

	uint32_t result;

	if (!writer_kinds(WRITER_OPEN))
		return;
	result = several ? f.cuptiActivityGetNumDroppedRecords_v2(subscriber, NULL, 0, &dropped)
	                 : f.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
	if (result == CUPTI_OK)
		count_lost(dropped);
}

void cupti_flush(bool all)
{
	f.cuptiActivityFlushAll(all ? CUPTI_FLUSH_FORCED : 0);
	count_dropped();
}

void cupti_clock(void)
{
	uint64_t error;

	if (!two_clocks)
		return;
	error = clock_compare(timestamp);
	if (error == UINT64_MAX)
		return;
	activities_clock_error(error);
	if (error > writer_shared()->clock_error_ns)
		writer_shared()->clock_error_ns = error;
}

/* ---- leaving ------------------------------------------------------------------------------- */

void cupti_disable(void)
{
	stalls_close(false);
	cupti_tell_launched_modules(false);
	cubins_close();
	for (size_t i = 0; i < ARRAY_SIZE(kinds_of); i++) {
		if (kinds_of[i].wanted & enabled)
			disable_kind(kinds_of[i].kind);
	}
	enabled = 0;
}

void cupti_mute(void)
{
	__atomic_store_n(&graphs_matter, false, __ATOMIC_RELAXED);
	f.cuptiEnableDomain(0, subscriber, CUPTI_DOMAIN_DRIVER);
	f.cuptiEnableDomain(0, subscriber, CUPTI_DOMAIN_RUNTIME);
	f.cuptiEnableDomain(0, subscriber, CUPTI_DOMAIN_RESOURCE);
}

bool cupti_leavable(void)
{
	return found.version >= VERSION_LEAVABLE && !calls_saw_graphs() && !several &&
	       !stalls_are_left();
}

bool cupti_is_shared(void)
{
	return several;
}

void cupti_unsubscribe(void)
{
	f.cuptiUnsubscribe(subscriber);
	subscriber = NULL;
	entered = false;
}

void cupti_call_back_always(void)
{
	f.cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER);
	f.cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_RUNTIME);
}

void cupti_leave(void)
{
	f.cuptiFinalize();
	__atomic_store_n(&graphs_matter, false, __ATOMIC_RELAXED);
	subscriber = NULL;
	entered = false;
}
