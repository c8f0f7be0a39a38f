// SPDX-License-Identifier: MIT
#include "capture/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "agent/agents.h"
#include "base/xalloc.h"
#include "capture/gpu_order.h"
#include "capture/gpu_records.h"
#include "capture/gpu_targets.h"
#include "capture/tids.h"

#define HOLD_NS   1300000000ull /* agents ask CUPTI for records every second */
#define WAIT_NS   500000000ull  /* longer, for what is told of a call later than of its work */
#define FUTURE_NS 1000000000ull /* an end that lies further ahead is none */

/* A process that has an agent, or had one. */
struct gpu_process {
	uint32_t pid;
	uint32_t agent; /* number of the agent, and of its times with CUPTI */
	struct gpu_records *records;
	bool told_running;
	uint64_t clock_error_ns;
	char *told; /* the last sentence on what went wrong */
	UT_hash_handle hh;
};

struct gpu {
	struct gpu_options options;
	struct agents *agents;
	struct gpu_targets *targets;
	struct gpu_order *order;
	struct tids *tids;
	struct gpu_process *processes, *recent;
	uint64_t begin_ns, now_ns;
	pid_t command;
	bool held;         /* the command is */
	uint32_t n_agents; /* ever */
	bool measured;     /* an agent did */
	bool stopping;
	const struct process *exec_from; /* between gpu_exec and gpu_execed */
	uint64_t exec_ns;
	uint64_t clock_error_ns;
	uint64_t late, bad_times;
	struct err failure; /* of a consumer, while agents were read */
};

/* ---- processes ----------------------------------------------------------------------------- */

static const struct kernel *kernel_named(void *data, const char *mangled)
{
	struct gpu *gpu = data;

	return stream_kernel_named(gpu->options.stream, mangled);
}

static struct gpu_process *process_get(struct gpu *gpu, uint32_t pid)
{
	struct gpu_process *process = gpu->recent;

	if (process && process->pid == pid)
		return process;
	HASH_FIND_INT(gpu->processes, &pid, process);
	if (!process) {
		process = xcalloc(1, sizeof(*process));
		process->pid = pid;
		process->agent = ++gpu->n_agents;
		process->records = gpu_records_new(kernel_named, gpu);
		HASH_ADD_INT(gpu->processes, pid, process);
	}
	return gpu->recent = process;
}

static void process_drop(struct gpu *gpu, struct gpu_process *process)
{
	gpu->recent = NULL;
	HASH_DEL(gpu->processes, process);
	gpu_records_free(process->records);
	free(process->told);
	free(process);
}

/* Its numbers of names and shapes are those of an agent that is no more. */
static void records_renew(struct gpu *gpu, struct gpu_process *process)
{
	gpu_records_free(process->records);
	process->records = gpu_records_new(kernel_named, gpu);
	process->agent = ++gpu->n_agents;
}

/* ---- passing on ---------------------------------------------------------------------------- */

static struct correlate_id id_of(const struct gpu_item *item)
{
	return (struct correlate_id){ item->agent, item->correlation };
}

/* Of a thread that is in a call around it, the number is taken before the call has ended. */
static bool is_in_call(const struct gpu *gpu, const struct gpu_item *item)
{
	uint64_t begin_ns, open_ns;
	uint32_t tid;

	return gpu->options.programs &&
	       correlate_waits(gpu->options.correlate, id_of(item), &tid, &begin_ns) &&
	       programs_thread_in_call(gpu->options.programs, (pid_t)tid, &open_ns) &&
	       open_ns <= begin_ns;
}

static bool may_pass(const struct gpu *gpu, const struct gpu_item *item)
{
	uint64_t number, begin_ns;

	if (gpu->now_ns < item->end_ns + HOLD_NS)
		return false;
	if (!item->correlation || gpu->now_ns >= item->arrived_ns + HOLD_NS + WAIT_NS)
		return true;
	switch (correlate_find(gpu->options.correlate, id_of(item), &number, &begin_ns)) {
	case CORRELATE_KNOWN:
	case CORRELATE_NONE:
		return true;
	case CORRELATE_WAITS:
		return is_in_call(gpu, item);
	case CORRELATE_UNKNOWN:
		break;
	}
	return false;
}

/* The number of its call, 0 for none; *begin_ns: when that began, 0 where it is not known. */
static uint64_t number_of(struct gpu *gpu, const struct gpu_item *item, uint64_t *begin_ns)
{
	struct correlate *correlate = gpu->options.correlate;
	uint64_t number = 0, next = 0;

	*begin_ns = 0;
	if (!item->correlation ||
	    correlate_find(correlate, id_of(item), &number, begin_ns) != CORRELATE_WAITS)
		return number;
	if (is_in_call(gpu, item))
		next = stream_next_call(gpu->options.stream, item->pid);
	if (correlate_reserve(correlate, id_of(item), next, &number))
		stream_take_number(gpu->options.stream, item->pid);
	return number;
}

static uint64_t error_of(const struct gpu *gpu, uint32_t pid)
{
	const struct gpu_process *process;

	HASH_FIND_INT(gpu->processes, &pid, process);
	return process ? process->clock_error_ns : gpu->clock_error_ns;
}

static int pass_activity(struct gpu *gpu, const struct gpu_item *item, struct event *event,
                         struct err *err)
{
	struct activity activity;
	uint64_t begin_ns, number = number_of(gpu, item, &begin_ns);

	if (item->begin_ns + error_of(gpu, item->pid) < begin_ns) {
		gpu->bad_times++;
		return 0;
	}
	gpu_item_activity(item, &activity);
	activity.correlation = number;
	event->type = EVENT_ACTIVITY;
	event->activity = &activity;
	return stream_pass(gpu->options.stream, event, err);
}

static int pass_range(struct gpu *gpu, const struct gpu_item *item, struct event *event,
                      struct err *err)
{
	struct range range;
	uint64_t begin_ns;

	gpu_item_range(item, &range);
	range.correlation = number_of(gpu, item, &begin_ns);
	event->type = EVENT_RANGE;
	event->range = &range;
	return stream_pass(gpu->options.stream, event, err);
}

static int pass_first(struct gpu *gpu, struct err *err)
{
	struct event event = { 0 };
	struct gpu_item item;
	int r;

	gpu->late += gpu_order_take(gpu->order, &item);
	event.time_ns = item.end_ns;
	event.process = item.process;
	event.tid = item.tid;
	r = item.is_range ? pass_range(gpu, &item, &event, err)
	                  : pass_activity(gpu, &item, &event, err);
	gpu_item_free(&item);
	return r;
}

static int pass_until(struct gpu *gpu, uint64_t end_ns, struct err *err)
{
	const struct gpu_item *first;
	int r = 0;

	while (!r && (first = gpu_order_first(gpu->order)) && first->end_ns <= end_ns)
		r = pass_first(gpu, err);
	return r;
}

/* ---- what agents tell ---------------------------------------------------------------------- */

static void note_failure(struct gpu *gpu, int r)
{
	if (r && !gpu->failure.code)
		err_set(&gpu->failure, r, "passing GPU times on");
}

static void take_item(struct gpu *gpu, struct gpu_process *process, struct gpu_item *item)
{
	struct err *err = &gpu->failure;

	if (item->end_ns > gpu->now_ns + FUTURE_NS) {
		gpu->bad_times += !item->is_range;
		gpu_item_free(item);
		return;
	}
	item->pid = process->pid;
	item->agent = process->agent;
	item->arrived_ns = gpu->now_ns;
	if (item->tid)
		item->tid = tids_host(gpu->tids, item->pid, item->tid, gpu->now_ns);
	note_failure(gpu,
	             stream_known_process(gpu->options.stream, item->pid, &item->process, err));
	if (gpu_order_count(gpu->order) >= GPU_ORDER_MAX)
		note_failure(gpu, pass_first(gpu, err));
	gpu_order_add(gpu->order, item);
}

static void on_unmeasured(void *data, uint32_t pid, uint64_t from_ns, uint64_t until_ns)
{
	struct gpu *gpu = data;
	struct gpu_item item = { .is_range = true,
		                 .kind = RANGE_NOT_MEASURED,
		                 .begin_ns = from_ns,
		                 .end_ns = until_ns,
		                 .range.name = xstrdup("not measured") };

	process_get(gpu, pid)->agent = ++gpu->n_agents;
	take_item(gpu, process_get(gpu, pid), &item);
}

static void take_call(struct gpu *gpu, const struct gpu_process *process,
                      const struct agent_call *record)
{
	const struct correlate_span call = {
		.pid = process->pid,
		.tid = tids_host(gpu->tids, process->pid, record->tid, gpu->now_ns),
		.begin_ns = record->begin_ns,
		.end_ns = record->end_ns,
	};

	if (call.tid)
		correlate_agent_call(gpu->options.correlate, &call,
		                     (struct correlate_id){ process->agent, record->correlation });
}

static void on_record(void *data, uint32_t pid, const struct agent_head *record)
{
	struct gpu *gpu = data;
	struct gpu_process *process = process_get(gpu, pid);
	struct gpu_item item;

	if (gpu->failure.code) /* the capture ends */
		return;
	switch (gpu_records_take(process->records, record, &item)) {
	case GPU_RECORD_CALL:
		take_call(gpu, process, (const struct agent_call *)record);
		break;
	case GPU_RECORD_ITEM:
		take_item(gpu, process, &item);
		break;
	case GPU_RECORD_BAD_TIMES:
		gpu->bad_times++;
		break;
	case GPU_RECORD_NOTHING:
		break;
	}
}

/* ---- how agents are ------------------------------------------------------------------------ */

static void notice(struct gpu *gpu, const char *text)
{
	gpu->options.notice(gpu->options.data, text);
}

/* "GPU times of process 123 by /usr/lib/libcupti.so.13 (CUDA 13.0), from 12 ms on; ..." */
static void tell_running(struct gpu *gpu, struct gpu_process *process,
                         const struct agent_status *status)
{
	const char *cupti =
		gpu->options.settings->cupti ? gpu->options.settings->cupti : status->cupti;
	uint64_t since = status->active_since_ns;
	char stopped[64] = "", text[512];

	if (process->told_running)
		return;
	process->told_running = true;
	if (status->stopped_ns)
		snprintf(stopped, sizeof(stopped), "; it was stopped for %.1f ms",
		         status->stopped_ns / 1e6);
	snprintf(text, sizeof(text),
	         "GPU times of process %u by %.300s (CUDA %u.%u), from %.0f ms on%s", status->pid,
	         cupti ? cupti : "a libcupti that has no path", status->driver_version / 1000,
	         status->driver_version % 1000 / 10,
	         since > gpu->begin_ns ? (since - gpu->begin_ns) / 1e6 : 0, stopped);
	notice(gpu, text);
}

static void tell_trouble(struct gpu *gpu, struct gpu_process *process, const char *why, bool missed)
{
	if (process->told && !strcmp(process->told, why))
		return;
	free(process->told);
	process->told = xstrdup(why);
	notice(gpu, why);
	if (!missed)
		return;
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_GPU_TIMES, NULL, NULL, process->pid, "%s", why);
	modules_unlock(gpu->options.modules);
}

static void on_state(void *data, const struct agent_status *status)
{
	struct gpu *gpu = data;
	struct gpu_process *process = process_get(gpu, status->pid);

	gpu_targets_came(gpu->targets, (pid_t)status->pid);
	process->clock_error_ns = status->clock_error_ns;
	if (status->clock_error_ns > gpu->clock_error_ns)
		gpu->clock_error_ns = status->clock_error_ns;
	if (status->state == AGENT_RUNNING) {
		gpu->measured = true;
		tell_running(gpu, process, status);
	}
	if (status->why)
		tell_trouble(gpu, process, status->why, status->state == AGENT_FAILED);
	if (status->state == AGENT_OFF || status->state == AGENT_FAILED)
		records_renew(gpu, process);
}

/* Whether a process that brings its agent along is a target. */
/*
 * The name of the socket is no secret (/proc/net/unix): a stranger's process that connects is to be
 * turned away, not believed.
 */
static bool is_wanted(void *data, pid_t pid)
{
	const struct gpu *gpu = data;

	if (gpu->options.programs)
		return programs_target_has(gpu->options.programs, pid);
	return gpu->options.follow || pid == gpu->command;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void enter(void *data, pid_t pid)
{
	struct gpu *gpu = data;
	char text[256];

	if (!gpu->held) {
		agents_enter(gpu->agents, pid);
		return;
	}
	snprintf(text, sizeof(text),
	         "no GPU times of process %d: it uses CUDA, but no agent came along: was its "
	         "environment cleaned (env -i, sudo)? With --no-hold it is entered",
	         pid);
	tell_trouble(gpu, process_get(gpu, (uint32_t)pid), text, true);
}

static void note_windows(struct gpu *gpu)
{
	const struct capture_gpu *settings = gpu->options.settings;

	if (!settings->window_ns)
		return;
	modules_lock(gpu->options.modules);
	modules_miss(gpu->options.modules, MISS_GPU_TIMES, NULL, NULL, 0,
	             "GPU times of %g s in every %g s only (--gpu-window)",
	             settings->window_ns / 1e9, settings->period_ns / 1e9);
	modules_unlock(gpu->options.modules);
}

int gpu_open(const struct gpu_options *options, struct gpu **result, struct err *err)
{
	const struct capture_gpu *settings = options->settings;
	struct gpu *gpu = xcalloc(1, sizeof(*gpu));
	const struct agents_options agents = {
		.kinds = settings->kinds,
		.window_ns = settings->window_ns,
		.period_ns = settings->period_ns,
		.cupti = settings->cupti,
		.record = on_record,
		.state = on_state,
		.unmeasured = on_unmeasured,
		.wanted = is_wanted,
		.data = gpu,
	};
	int r;

	gpu->options = *options;
	gpu->order = gpu_order_new();
	gpu->tids = tids_new();
	gpu->targets = gpu_targets_new(options->target == TARGET_COMMAND, enter, gpu);
	r = agents_new(&agents, &gpu->agents, err);
	if (r) {
		gpu->agents = NULL;
		gpu_free(gpu);
		return r;
	}
	note_windows(gpu);
	*result = gpu;
	return 0;
}

void gpu_free(struct gpu *gpu)
{
	struct gpu_process *process, *next;

	if (!gpu)
		return;
	agents_free(gpu->agents);
	gpu_targets_free(gpu->targets);
	gpu_order_free(gpu->order);
	tids_free(gpu->tids);
	HASH_ITER (hh, gpu->processes, process, next) {
		process_drop(gpu, process);
	}
	free(gpu);
}

int gpu_environment(struct gpu *gpu, char *const **environment, struct err *err)
{
	return agents_environment(gpu->agents, environment, err);
}

void gpu_begin(struct gpu *gpu, uint64_t now_ns, pid_t command, bool held)
{
	gpu->held = held;
	gpu->begin_ns = gpu->now_ns = now_ns;
	gpu->command = command;
}

int gpu_fd(const struct gpu *gpu)
{
	return agents_fd(gpu->agents);
}

void gpu_running(struct gpu *gpu, pid_t pid)
{
	gpu_targets_running(gpu->targets, pid, gpu->now_ns);
}

void gpu_called(struct gpu *gpu, const struct wire_call *call)
{
	if (!gpu->stopping)
		gpu_targets_called(gpu->targets, call,
		                   modules_hook(gpu->options.modules, call->head.hook, NULL),
		                   gpu->now_ns);
}

/* ---- turns --------------------------------------------------------------------------------- */

/* What a consumer said while agents were read. */
static int failed(const struct gpu *gpu, struct err *err)
{
	if (gpu->failure.code)
		*err = gpu->failure;
	return gpu->failure.code;
}

int gpu_turn(struct gpu *gpu, uint64_t now_ns, struct err *err)
{
	const struct gpu_item *first;
	int r;

	gpu->now_ns = now_ns;
	agents_turn(gpu->agents, now_ns);
	r = failed(gpu, err);
	while (!r && (first = gpu_order_first(gpu->order)) && may_pass(gpu, first))
		r = pass_first(gpu, err);
	if (!gpu->stopping)
		gpu_targets_turn(gpu->targets, now_ns);
	return r;
}

/* What a program had before this time, passed on; and that it had been there, forgotten. */
static int settle(struct gpu *gpu, pid_t pid, uint64_t time_ns, struct err *err)
{
	const struct process *process;
	int r = failed(gpu, err);

	if (!r && gpu_order_count(gpu->order))
		r = stream_known_process(gpu->options.stream, (uint32_t)pid, &process, err);
	if (!r && gpu_order_count(gpu->order))
		r = pass_until(gpu, gpu_order_last_of(gpu->order, process, time_ns), err);
	correlate_forget(gpu->options.correlate, (uint32_t)pid, time_ns);
	tids_forget(gpu->tids, (uint32_t)pid);
	gpu_targets_forget(gpu->targets, pid);
	return r;
}

static struct gpu_process *process_find(const struct gpu *gpu, pid_t pid)
{
	struct gpu_process *process;

	HASH_FIND_INT(gpu->processes, &pid, process);
	return process;
}

int gpu_exit(struct gpu *gpu, pid_t pid, uint64_t time_ns, struct err *err)
{
	struct gpu_process *process = process_find(gpu, pid);
	int r;

	agents_gone(gpu->agents, pid);
	if (!process && !(process = process_find(gpu, pid))) {
		gpu_targets_forget(gpu->targets, pid);
		return 0;
	}
	r = settle(gpu, pid, UINT64_MAX, err);
	process_drop(gpu, process);
	return r;
}

int gpu_exec(struct gpu *gpu, pid_t pid, uint64_t time_ns, struct err *err)
{
	int r = 0;

	agents_turn(gpu->agents, gpu->now_ns); /* what the program before wrote last */
	if (!process_find(gpu, pid)) {
		gpu_targets_forget(gpu->targets, pid);
		return 0;
	}
	if (gpu_order_count(gpu->order)) {
		r = stream_known_process(gpu->options.stream, (uint32_t)pid, &gpu->exec_from, err);
		gpu->exec_ns = time_ns;
	}
	return r ? r : settle(gpu, pid, time_ns, err);
}

int gpu_execed(struct gpu *gpu, pid_t pid, struct err *err)
{
	const struct process *to;
	int r;

	if (!gpu->exec_from)
		return 0;
	r = stream_known_process(gpu->options.stream, (uint32_t)pid, &to, err);
	gpu_order_move(gpu->order, gpu->exec_from, gpu->exec_ns, to);
	gpu->exec_from = NULL;
	return r;
}

/* ---- the end ------------------------------------------------------------------------------- */

void gpu_stop(struct gpu *gpu)
{
	gpu->stopping = true;
	agents_stop(gpu->agents);
}

bool gpu_stopped(const struct gpu *gpu)
{
	return agents_stopped(gpu->agents);
}

int gpu_finish(struct gpu *gpu, struct err *err)
{
	int r;

	agents_turn(gpu->agents, gpu->now_ns);
	if (!agents_stopped(gpu->agents))
		agents_abandon(gpu->agents);
	r = failed(gpu, err);
	return r ? r : pass_until(gpu, UINT64_MAX, err);
}

void gpu_fill_lost(const struct gpu *gpu, uint64_t lost[LOST_COUNT])
{
	struct agents_lost agents;

	agents_lost(gpu->agents, &agents);
	lost[LOST_LATE] += gpu->late;
	lost[LOST_GPU_RING] = agents.ring;
	lost[LOST_GPU_BUFFERS] = agents.buffers;
	lost[LOST_GPU_TIMES] = agents.times + gpu->bad_times;
}

void gpu_fill_run(const struct gpu *gpu, struct run_info *run)
{
	run->gpu_times = gpu->measured;
	run->gpu_clock_error_ns = gpu->clock_error_ns;
}
