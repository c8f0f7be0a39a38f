// SPDX-License-Identifier: MIT
/* Agents' records as events, each with its call and in its place in time. */
#include "capture/gpu/gpu_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"

/* ---- gpu arrival --------------------------------------------------------------------------- */

/* What an agent tells of itself and of its calls: notices, and launches in place of the probes. */

#define NAMES_MAX 4096 /* functions have the first numbers */
/* An end that lies further ahead is none; our own time is that at which the turn began. */
#define FUTURE_NS 3000000000ull
#define TURN_NS   10000000ull /* what has ended in this one */

/* ---- what agents tell ---------------------------------------------------------------------- */

static void note_failure(struct gpu_times *gpu, int r)
{
	if (r && !gpu->failure.code)
		err_set(&gpu->failure, r, "passing GPU times on");
}

static void take_item(struct gpu_times *gpu, struct gpu_times_process *process,
                      struct gpu_item *item)
{
	struct err *err = &gpu->failure;
	enum gpu_order_room room;

	if (item->end_ns > gpu->now_ns + FUTURE_NS) {
		gpu->bad_times++;
		gpu_item_free(item);
		return;
	}
	room = gpu_order_room(gpu->order, process->person, gpu->now_ns + TURN_NS);
	if (room == GPU_ORDER_REFUSED) {
		gpu->crowded++;
		gpu_item_free(item);
		return;
	}
	item->pid = process->pid;
	item->person = process->person;
	item->agent = process->agent;
	item->arrived_ns = gpu->now_ns;
	if (item->tid)
		item->tid = tids_host(gpu->tids, item->pid, item->tid, gpu->now_ns);
	if (item->own) /* before its call: that is not over yet */
		correlate_own_time(gpu->options.correlate,
		                   &(struct correlate_span){ .pid = item->pid,
		                                             .tid = item->tid,
		                                             .begin_ns = item->begin_ns,
		                                             .end_ns = item->end_ns });
	item->process = pipeline_process(gpu->options.pipeline, item->pid);
	gpu_find_call(gpu, item);
	if (room == GPU_ORDER_FULL)
		note_failure(gpu, gpu_pass_first(gpu, err));
	gpu_order_add(gpu->order, item);
}

void gpu_on_unmeasured(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns)
{
	struct gpu_times *gpu = data;
	struct gpu_item item = { .is_range = true,
		                 .kind = RANGE_NOT_MEASURED,
		                 .begin_ns = from_ns,
		                 .end_ns = until_ns,
		                 .range.name = xstrdup("not measured") };

	gpu_process_get(gpu, pid)->agent = ++gpu->n_agents;
	take_item(gpu, gpu_process_get(gpu, pid), &item);
}

/* The hook of a launch that agents tell of, by the number of its name. That there is none is kept
 * as well: each of its calls would look through all hooks of the driver. */
static const struct hook *hook_of(struct gpu_times *gpu, struct gpu_times_process *process,
                                  uint32_t number)
{
	const struct module *driver = gpu_targets_driver(gpu->targets, (pid_t)process->pid);
	const char *name = gpu_records_name(process->records, number);
	static const struct hook none;

	if (!driver || !name || number >= NAMES_MAX)
		return NULL;
	if (number >= process->n_hooks) {
		process->hooks = xrealloc(process->hooks, (number + 1) * sizeof(void *));
		for (uint32_t i = process->n_hooks; i <= number; i++)
			process->hooks[i] = NULL;
		process->n_hooks = number + 1;
	}
	if (!process->hooks[number]) {
		process->hooks[number] = gpu_calls_hook(driver, name);
		if (!process->hooks[number])
			process->hooks[number] = &none;
	}
	return process->hooks[number] == &none ? NULL : process->hooks[number];
}

/* Where no probe is, it becomes a call as if one had been. */
static void tell_launch(struct gpu_times *gpu, struct gpu_times_process *process, uint32_t tid,
                        const struct agent_call *record)
{
	const struct hook *hook;

	if (!gpu->launches || record->head.flags & AGENT_CALL_RUNTIME || !record->arguments ||
	    !gpu_launches_are_told(gpu->launches, record->begin_ns))
		return;
	if (!gpu_records_name(process->records, record->name)) {
		gpu->bad_records++;
		return;
	}
	hook = hook_of(gpu, process, record->name);
	if (hook)
		gpu_calls_add(gpu->calls, process->pid, tid, hook, record);
}

static void take_call(struct gpu_times *gpu, struct gpu_times_process *process,
                      const struct agent_call *record)
{
	const struct correlate_span call = {
		.pid = process->pid,
		.tid = tids_host(gpu->tids, process->pid, record->tid, gpu->now_ns),
		.begin_ns = record->begin_ns,
		.end_ns = record->end_ns,
		.person = process->person,
	};

	if (!call.tid || call.end_ns > gpu->now_ns + FUTURE_NS ||
	    !correlate_agent_call(gpu->options.correlate, &call,
	                          (struct correlate_id){ process->agent, record->correlation })) {
		gpu->bad_records++;
		return;
	}
	tell_launch(gpu, process, call.tid, record);
}

/* A launch that is recorded inside, and knows CUPTI's number of its kernel. */
static void take_probed(struct gpu_times *gpu, uint32_t pid, const struct agent_head *record,
                        struct correlate_span *call)
{
	const struct agent_probed *probed = (const struct agent_probed *)record;
	struct gpu_times_process *process;

	if (record->type != AGENT_PROBED || !probed->correlation || !call->end_ns)
		return;
	process = gpu_process_get(gpu, pid);
	call->person = process->person;
	if (!gpu->failure.code && !process->too_late &&
	    !correlate_agent_call(gpu->options.correlate, call,
	                          (struct correlate_id){ process->agent, probed->correlation }))
		gpu->bad_records++;
}

void gpu_on_record(void *data, uint32_t pid, const struct agent_head *record)
{
	struct gpu_times *gpu = data;
	struct gpu_times_process *process;
	const struct agent_node *node;
	struct correlate_span call = { .end_ns = 0 };
	struct gpu_item item;

	if (gpu->options.probed &&
	    gpu->options.probed(gpu->options.probes_data, pid, record, &call)) {
		take_probed(gpu, pid, record, &call);
		return;
	}
	process = gpu_process_get(gpu, pid);
	if (gpu->failure.code || process->too_late) /* the capture ends */
		return;
	switch (gpu_records_take(process->records, record, &item)) {
	case GPU_RECORD_CALL:
		take_call(gpu, process, (const struct agent_call *)record);
		break;
	case GPU_RECORD_NODE:
		node = (const struct agent_node *)record;
		gpu_nodes_copied(gpu_process_nodes(process), node->node, node->original);
		break;
	case GPU_RECORD_STALLS:
		gpu->bad_records += !gpu_take_stalls(gpu, process, record);
		break;
	case GPU_RECORD_ITEM:
		take_item(gpu, process, &item);
		break;
	case GPU_RECORD_BAD_TIMES:
		gpu->bad_times++;
		break;
	case GPU_RECORD_BAD:
		gpu->bad_records++;
		break;
	case GPU_RECORD_NOTHING:
		break;
	}
}

/* ---- how agents are ------------------------------------------------------------------------ */

static void arrival_notice(struct gpu_times *gpu, const char *text)
{
	gpu->options.notice(gpu->options.data, text);
}

#define STOPPED_LONG_NS 5000000u

/* "; it was stopped for 0.8 ms", and where that is long with what. */
static void add_stopped(struct buf *out, const struct agent_status *status)
{
	static const char *const parts[INJECT_PARTS] = {
		[INJECT_LOOK] = "its stack",         [INJECT_OPEN] = "memory and sockets",
		[INJECT_FILL] = "the agent's bytes", [INJECT_LOAD] = "its loader",
		[INJECT_CALL] = "the agent's begin",
	};

	if (!status->stopped_ns)
		return;
	buf_printf(out, "; it was stopped for %.1f ms", status->stopped_ns / 1e6);
	for (size_t i = 0;
	     i < INJECT_PARTS && status->stopped_parts && status->stopped_ns >= STOPPED_LONG_NS;
	     i++)
		buf_printf(out, "%s%s %.1f", i ? ", " : " (", parts[i],
		           status->stopped_parts[i] / 1e6);
	if (status->stopped_parts && status->stopped_ns >= STOPPED_LONG_NS)
		buf_putc(out, ')');
}

/* "GPU times of process 123 by /usr/lib/libcupti.so.13 (CUDA 13.0), from 12 ms on; ..." */
static void tell_running(struct gpu_times *gpu, struct gpu_times_process *process,
                         const struct agent_status *status)
{
	const char *cupti = status->cupti; /* whatever was asked for: the first one stays */
	uint64_t since = status->active_since_ns;
	AT_END(buf_free) struct buf stopped = { 0 };
	char text[640];

	if (process->told_running)
		return;
	process->told_running = true;
	add_stopped(&stopped, status);
	snprintf(text, sizeof(text),
	         "GPU times of process %u by %.300s (CUDA %u.%u), from %.0f ms on%s", status->pid,
	         cupti ? cupti : "a libcupti that has no path", status->driver_version / 1000,
	         status->driver_version % 1000 / 10,
	         since > gpu->begin_ns ? (since - gpu->begin_ns) / 1e6 : 0,
	         stopped.data ? stopped.data : "");
	arrival_notice(gpu, text);
}

/* Sentences have words and numbers of an agent's in them, and it can come again and again: a user
 * is told so many of a process, of which a few are what happens. */
#define TROUBLES_MOST 16

void gpu_tell_trouble(struct gpu_times *gpu, struct gpu_times_process *process, const char *why,
                      bool missed)
{
	if (process->told && !strcmp(process->told, why))
		return;
	if (process->n_told < TROUBLES_MOST) {
		process->n_told++;
		arrival_notice(gpu, why);
	}
	if (missed)
		gpu_tell_missed(gpu, process, why);
	free(process->told);
	process->told = xstrdup(why);
}

void gpu_tell_missed(struct gpu_times *gpu, struct gpu_times_process *process, const char *why)
{
	free(process->told);
	process->told = xstrdup(why);
	gpu->missed = true;
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_GPU_TIMES, NULL, NULL, process->pid, "%s", why);
	modules_unlock(gpu->options.modules);
}

void gpu_tell_stalls(struct gpu_times *gpu, struct gpu_times_process *process, const char *why)
{
	gpu_tell_trouble(gpu, process, why, false);
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_STALLS, NULL, NULL, process->pid, "%s", why);
	modules_unlock(gpu->options.modules);
}

void gpu_on_state(void *data, const struct agent_status *status)
{
	struct gpu_times *gpu = data;
	struct gpu_times_process *process = gpu_process_get(gpu, status->pid);

	gpu_targets_came(gpu->targets, (pid_t)status->pid);
	process->running = status->state == AGENT_RUNNING;
	if (status->state != AGENT_OFF)
		process->state_ns = gpu->now_ns;
	process->clock_error_ns = status->clock_error_ns;
	process->since_ns = status->active_since_ns;
	process->until_ns = status->active_until_ns;
	if (status->clock_error_ns > gpu->clock_error_ns)
		gpu->clock_error_ns = status->clock_error_ns;
	if (status->state == AGENT_RUNNING && !gpu->stopping) {
		gpu->measured = process->measured = true;
		tell_running(gpu, process, status);
	}
	if (status->why)
		gpu_tell_trouble(gpu, process, status->why, status->state == AGENT_FAILED);
	if (status->state == AGENT_OFF || status->state == AGENT_FAILED)
		gpu_records_renew(gpu, process);
}

/* ---- gpu release --------------------------------------------------------------------------- */

#define HOLD_NS 1500000000ull /* agents ask CUPTI for records every second */
#define WAIT_NS 500000000ull  /* longer, for what is told of a call later than of its work */

static struct correlate_id id_of(const struct gpu_item *item)
{
	return (struct correlate_id){ item->agent, item->correlation };
}

/* Of a thread that is in a call around it, the number is taken before the call has ended. */
static bool is_in_call(const struct gpu_times *gpu, const struct gpu_item *item)
{
	uint64_t begin_ns, open_ns;
	uint32_t tid;

	return gpu->options.programs &&
	       correlate_waits(gpu->options.correlate, id_of(item), &tid, &begin_ns) &&
	       programs_thread_in_call(gpu->options.programs, (pid_t)tid, &open_ns) &&
	       open_ns <= begin_ns;
}

void gpu_find_call(void *data, struct gpu_item *item)
{
	const struct gpu_times *gpu = data;
	uint64_t number, begin_ns;

	if (!item->number && item->correlation &&
	    correlate_find(gpu->options.correlate, id_of(item), &number, &begin_ns) ==
	            CORRELATE_KNOWN) {
		item->number = number;
		item->call_ns = begin_ns;
	}
}

/* Of work whose call has not come. On a busy machine calls are seconds behind: they wait until it
 * is known who tells of them, and what agents say of them is read at once. However long that is,
 * there is room for so much work. */
static bool is_awaited(const struct gpu_times *gpu, const struct gpu_item *item)
{
	uint64_t waited_ns = gpu->now_ns - item->arrived_ns;

	if (is_in_call(gpu, item))
		return false;
	return waited_ns < HOLD_NS + WAIT_NS ||
	       correlate_may_come(gpu->options.correlate, id_of(item));
}

bool gpu_may_pass(const struct gpu_times *gpu, const struct gpu_item *item)
{
	uint64_t number, begin_ns;

	if (gpu->now_ns < item->end_ns + HOLD_NS)
		return false;
	if (!item->correlation || item->number)
		return true;
	switch (correlate_find(gpu->options.correlate, id_of(item), &number, &begin_ns)) {
	case CORRELATE_KNOWN:
	case CORRELATE_NONE:
		return true;
	case CORRELATE_WAITS:
		return !is_awaited(gpu, item);
	case CORRELATE_UNKNOWN:
		break;
	}
	return gpu->now_ns >= item->arrived_ns + HOLD_NS + WAIT_NS;
}

/* The number of its call, 0 for none; *begin_ns: when that began, 0 where it is not known. */
static uint64_t number_of(struct gpu_times *gpu, const struct gpu_item *item, uint64_t *begin_ns)
{
	struct correlate *correlate = gpu->options.correlate;
	uint64_t number = item->number, next = 0;

	*begin_ns = item->call_ns;
	if (number)
		return number;
	if (!item->correlation ||
	    correlate_find(correlate, id_of(item), &number, begin_ns) != CORRELATE_WAITS)
		return number;
	if (is_in_call(gpu, item))
		next = pipeline_next_call(gpu->options.pipeline, item->pid);
	if (correlate_reserve(correlate, id_of(item), next, &number))
		pipeline_take_number(gpu->options.pipeline, item->pid);
	return number;
}

static uint64_t error_of(const struct gpu_times *gpu, uint32_t pid)
{
	const struct gpu_times_process *process = gpu_process_find(gpu, pid);

	return process ? process->clock_error_ns : gpu->clock_error_ns;
}

/* Copies and sets may be of calls of their own, but a graph may consist of them. */
static void note_told(const struct gpu_times *gpu, const struct gpu_item *item, uint64_t number)
{
	struct gpu_times_process *process = gpu_process_find(gpu, item->pid);

	if (process && (number || item->kind == ACTIVITY_KERNEL))
		unrecorded_told(&process->unrecorded, number);
}

/*
 * The GPU's clock is not ours: CUPTI reckons its times, and they are off by some microseconds, also
 * where it takes them "from our clock". On GPUs kernels began 0.5 to 10 us before their launch. Ten
 * times that is believed; what lies further off is of no such reckoning, and would stand among
 * other calls than its own: in 100 us a thread makes ten launches and more.
 */
#define CLOCKS_NS 100000u

/*
 * Whether its times can be, which are the GPU's clock as CUPTI reckons it: one that seems to begin
 * a little before its call is there, and tells how far the clocks lie apart.
 */
static bool is_possible(struct gpu_times *gpu, const struct gpu_item *item, uint64_t call_ns)
{
	uint64_t early_ns = item->begin_ns < call_ns ? call_ns - item->begin_ns : 0;

	if (early_ns > error_of(gpu, item->pid) + CLOCKS_NS)
		return false;
	if (early_ns > gpu->early_ns)
		gpu->early_ns = early_ns;
	return true;
}

/* Whether that is a loss: nobody told of such a call, or each launch was to be recorded. */
static bool lacks_call(const struct gpu_times *gpu, const struct gpu_item *item, uint64_t number,
                       uint64_t begin_ns)
{
	return item->correlation && (!begin_ns || (!number && item->kind == ACTIVITY_KERNEL &&
	                                           gpu->options.each_launch));
}

/* Where the node was captured that this is a run of; NULL: it is none, or that is not known. */
static const struct stack *node_stack(const struct gpu_times *gpu, const struct gpu_item *item)
{
	const struct gpu_times_process *process =
		item->graph_node ? gpu_process_find(gpu, item->pid) : NULL;

	return process && process->nodes ? gpu_nodes_stack(process->nodes, item->graph_node) : NULL;
}

static int pass_activity(struct gpu_times *gpu, const struct gpu_item *item, struct event *event,
                         struct err *err)
{
	struct activity activity;
	uint64_t begin_ns, number = number_of(gpu, item, &begin_ns);

	note_told(gpu, item, number);
	if (!is_possible(gpu, item, begin_ns)) {
		gpu->bad_times++;
		return 0;
	}
	gpu_item_activity(item, &activity);
	activity.correlation = number;
	activity.stack = node_stack(gpu, item);
	gpu->no_call += lacks_call(gpu, item, number, begin_ns);
	event->type = EVENT_ACTIVITY;
	event->activity = &activity;
	return pipeline_pass(gpu->options.pipeline, event, err);
}

static int pass_range(struct gpu_times *gpu, const struct gpu_item *item, struct event *event,
                      struct err *err)
{
	struct range range;
	uint64_t begin_ns;

	gpu_item_range(item, &range);
	range.correlation = number_of(gpu, item, &begin_ns);
	event->type = EVENT_RANGE;
	event->range = &range;
	return pipeline_pass(gpu->options.pipeline, event, err);
}

int gpu_pass_first(struct gpu_times *gpu, struct err *err)
{
	struct event event = { 0 };
	struct gpu_item item;
	int r;

	gpu->late += gpu_order_take(gpu->order, &item);
	if (!item.process) { /* it had ended before */
		gpu->bad_times++;
		gpu_item_free(&item);
		return 0;
	}
	event.time_ns = item.end_ns;
	event.process = item.process;
	event.tid = item.tid;
	r = item.is_range ? pass_range(gpu, &item, &event, err)
	                  : pass_activity(gpu, &item, &event, err);
	gpu_item_free(&item);
	return r;
}

int gpu_pass_until(struct gpu_times *gpu, uint64_t end_ns, struct err *err)
{
	const struct gpu_item *first;
	int r = 0;

	while (!r && (first = gpu_order_first(gpu->order)) && first->end_ns <= end_ns)
		r = gpu_pass_first(gpu, err);
	return r;
}
