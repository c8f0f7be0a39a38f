// SPDX-License-Identifier: MIT
/* What an agent tells of itself and of its calls: notices, and launches in place of the probes. */
#include "capture/gpu/gpu_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define NAMES_MAX 4096 /* functions have the first numbers */
/* An end that lies further ahead is none; our own time is that at which the turn began. */
#define FUTURE_NS 3000000000ull

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

	if (item->end_ns > gpu->now_ns + FUTURE_NS) {
		gpu->bad_times++;
		gpu_item_free(item);
		return;
	}
	item->pid = process->pid;
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
	if (gpu_order_is_full(gpu->order))
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

/* The hook of a launch that agents tell of, by the number of its name. */
static const struct hook *hook_of(struct gpu_times *gpu, struct gpu_times_process *process,
                                  uint32_t number)
{
	const struct module *driver = gpu_targets_driver(gpu->targets, (pid_t)process->pid);
	const char *name = gpu_records_name(process->records, number);

	if (!driver || !name || number >= NAMES_MAX)
		return NULL;
	if (number >= process->n_hooks) {
		process->hooks = xrealloc(process->hooks, (number + 1) * sizeof(void *));
		for (uint32_t i = process->n_hooks; i <= number; i++)
			process->hooks[i] = NULL;
		process->n_hooks = number + 1;
	}
	if (!process->hooks[number])
		process->hooks[number] = gpu_calls_hook(driver, name);
	return process->hooks[number];
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
	};

	if (!call.tid || call.end_ns > gpu->now_ns + FUTURE_NS) {
		gpu->bad_records++;
		return;
	}
	tell_launch(gpu, process, call.tid, record);
	correlate_agent_call(gpu->options.correlate, &call,
	                     (struct correlate_id){ process->agent, record->correlation });
}

void gpu_on_record(void *data, uint32_t pid, const struct agent_head *record)
{
	struct gpu_times *gpu = data;
	struct gpu_times_process *process;
	struct gpu_item item;

	if (gpu->options.probed && gpu->options.probed(gpu->options.probes_data, pid, record))
		return;
	process = gpu_process_get(gpu, pid);
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
	case GPU_RECORD_BAD:
		gpu->bad_records++;
		break;
	case GPU_RECORD_NOTHING:
		break;
	}
}

/* ---- how agents are ------------------------------------------------------------------------ */

static void notice(struct gpu_times *gpu, const char *text)
{
	gpu->options.notice(gpu->options.data, text);
}

/* "GPU times of process 123 by /usr/lib/libcupti.so.13 (CUDA 13.0), from 12 ms on; ..." */
static void tell_running(struct gpu_times *gpu, struct gpu_times_process *process,
                         const struct agent_status *status)
{
	const char *cupti = status->cupti; /* whatever was asked for: the first one stays */
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

void gpu_tell_trouble(struct gpu_times *gpu, struct gpu_times_process *process, const char *why,
                      bool missed)
{
	if (process->told && !strcmp(process->told, why))
		return;
	notice(gpu, why);
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
