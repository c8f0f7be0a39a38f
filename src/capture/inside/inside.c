// SPDX-License-Identifier: MIT
/* Opening, turns and the end of recording inside of processes. */
#include "capture/inside/inside_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "probe/hold.h"

/* An agent writes what three programs' rings would take: a call of six words each 0.3 us. */
#define RING_BYTES (32u << 20)

static void say(const struct inside *inside, const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	inside->options.notice(inside->options.data, text);
}

void inside_notice(struct inside *inside, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!inside->options.quiet)
		say(inside, fmt, ap);
	va_end(ap);
}

void inside_warn(struct inside *inside, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(inside, fmt, ap);
	va_end(ap);
}

/* ---- opening and closing ------------------------------------------------------------------- */

int inside_new(struct inside **result, struct err *err)
{
	struct inside *inside = xcalloc(1, sizeof(*inside));
	int r = divert_new(inside_on_diverted, inside, &inside->divert, err);

	if (r) {
		free(inside);
		return r;
	}
	inside_forks_init(inside);
	inside->queue = call_queue_new();
	inside->tids = tids_new();
	if (tick_clock_is_usable())
		inside->ticks = tick_clock_new();
	*result = inside;
	return 0;
}

void inside_free(struct inside *inside)
{
	struct inside_process *process, *next;

	if (!inside)
		return;
	HASH_ITER (hh, inside->processes, process, next) {
		inside_process_drop(inside, process);
	}
	inside_forks_free(inside);
	divert_free(inside->divert); /* first: until then agents are needed */
	if (inside->own_agents)
		agents_free(inside->agents);
	gpu_targets_free(inside->targets);
	inside_away_free(inside);
	inside_nesting_free(inside);
	inside_totals_free(inside);
	free(inside->counted_left);
	call_queue_free(inside->queue);
	tids_free(inside->tids);
	tick_clock_free(inside->ticks);
	free(inside);
}

struct agents_probes inside_probes(const struct inside *inside)
{
	return (struct agents_probes){ .wanted = true,
		                       .begins = inside->options.begins,
		                       .waits = inside->options.target == TARGET_COMMAND,
		                       .clock = inside->ticks ? AGENT_CLOCK_TICKS : AGENT_CLOCK_NS,
		                       .due = inside->options.due,
		                       .news = inside_on_news };
}

/* ---- agents of its own --------------------------------------------------------------------- */

static bool is_wanted(void *data, pid_t pid)
{
	struct inside *inside = data;
	bool wanted = programs_target_has(inside->options.programs, pid);

	if (wanted) /* it waits for an answer: later it may be gone, and nobody knows its name */
		pipeline_process(inside->options.pipeline, (uint32_t)pid);
	return wanted;
}

static void on_record(void *data, uint32_t pid, const struct agent_head *record)
{
	struct inside *inside = data;
	struct correlate_span call;

	/* what loading took is told whatever was asked for; no other GPU time was */
	if (!inside_record(inside, pid, record, &call) && record->type != AGENT_OVERHEAD)
		inside->bad_records++;
}

/* How an agent is that is not its own. */
static void inside_agent_is(struct inside *inside, const struct agent_status *status)
{
	if (status->state == AGENT_FAILED && status->why)
		inside_process_keeps(inside_process_get(inside, status->pid), status->why);
}

static void on_state(void *data, const struct agent_status *status)
{
	struct inside *inside = data;

	gpu_targets_came(inside->targets, (pid_t)status->pid);
	inside_agent_is(inside, status);
}

static void enter(void *data, pid_t pid)
{
	struct inside *inside = data;

	if (inside->hold)
		inside_process_keeps(inside_process_get(inside, (uint32_t)pid),
		                     "it uses CUDA, but has no agent; was its environment cleaned "
		                     "(env -i, sudo)? With --no-hold cuscope enters it");
	else
		agents_enter(inside->agents, pid);
}

int inside_open(struct inside *inside, const struct inside_options *options, bool own_agents,
                struct err *err)
{
	struct agents_options agents = {
		.ring_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES,
		.record = on_record,
		.state = on_state,
		.wanted = is_wanted,
		.data = inside,
	};

	inside->options = *options;
	if (!own_agents)
		return 0;
	inside->own_agents = true;
	inside->targets = gpu_targets_new(options->target == TARGET_COMMAND, enter, inside);
	agents.probes = inside_probes(inside);
	agents.probes.waits = false; /* it would be in the duration of cuInit */
	return agents_new(&agents, &inside->agents, err);
}

void inside_use_agents(struct inside *inside, struct agents *agents)
{
	inside->agents = agents;
}

struct order_source inside_source(struct inside *inside)
{
	return (struct order_source){ call_queue_take, call_queue_release, inside->queue };
}

int inside_environment(struct inside *inside, char *const **environment, struct err *err)
{
	return agents_environment(inside->agents, environment, err);
}

void inside_begin(struct inside *inside, uint64_t now_ns, pid_t command, struct hold *hold)
{
	inside->begin_ns = inside->now_ns = now_ns;
	inside->command = command;
	inside->hold = hold;
}

int inside_agents_fd(const struct inside *inside)
{
	return inside->own_agents ? agents_fd(inside->agents) : -1;
}

int inside_divert_fd(const struct inside *inside)
{
	return inside->divert_gone ? -1 : divert_fd(inside->divert);
}

/* ---- what is seen of processes ------------------------------------------------------------- */

bool inside_tells_refused(struct inside *inside, const struct wire_call *call)
{
	const struct inside_process *process = inside_process_find(inside, call->head.tgid);
	bool tells = call->head.flags & WIRE_BY_AGENT; /* it may have ended meanwhile */

	for (const struct inside_module *at = process ? process->modules : NULL; at;
	     at = at->next) {
		if (!at->module->has[LAYER_RUNTIME] || at->state == INSIDE_LEFT)
			continue;
		if (at->state != INSIDE_DIVERTED || !at->n_launches)
			return false;
		tells = true;
	}
	return tells;
}

void inside_called(struct inside *inside, const struct wire_call *call)
{
	const struct module *module = NULL;
	const struct hook *hook;
	struct inside_process *process;

	if (call->head.flags & WIRE_BY_AGENT) /* it has its agent, and nothing to be found out */
		return;
	hook = modules_hook(inside->options.modules, call->head.hook, &module);
	if (inside->own_agents)
		gpu_targets_called(inside->targets, call, hook, module, inside->now_ns);
	if (!module)
		return;
	process = inside_process_find(inside, call->head.tgid);
	if (!process)
		inside_told_child(inside, call, hook, module);
	if (!process || !process->ready)
		return;
	if (!process->works && gpu_shows_cuda(call, hook)) {
		process->works = true;
		inside_modules_find(process);
	}
	if (process->works) /* it was loaded after the agent came */
		inside_module_want(process, module);
}

void inside_mapped(struct inside *inside, pid_t pid, uint64_t time_ns)
{
	struct inside_process *process = inside_process_find(inside, (uint32_t)pid);

	if (!process)
		return;
	inside_files_forget(process);
	inside_modules_still_there(process, time_ns);
	if (!process->taking && !inside->stopping)
		inside_flag(process);
}

void inside_loaded(struct inside *inside, pid_t pid)
{
	inside_child_loads(inside, (uint32_t)pid);
}

void inside_forked(struct inside *inside, pid_t parent, pid_t child, uint64_t time_ns)
{
	inside_forked_child(inside, (uint32_t)parent, (uint32_t)child, time_ns);
	divert_forked(inside->divert, parent, child);
}

/* What the program before had diverted is gone; the new one's agent may have come already. */
void inside_exec(struct inside *inside, pid_t pid, uint64_t time_ns)
{
	struct inside_process *process = inside_process_find(inside, (uint32_t)pid);

	inside_no_child(inside, (uint32_t)pid);
	if (inside->own_agents)
		agents_turn_of(inside->agents, pid, inside->now_ns);
	if (!process) {
		divert_gone(inside->divert, pid); /* a child that had its parent's */
		return;
	}
	/* its agent ended before that: it closed its descriptors */
	if (process->ended_ns && process->ended_ns < time_ns)
		inside_process_tell_gap(process, time_ns);
	if (process->came_ns > time_ns) {
		process->comings = 1;
		inside_files_forget(process);
		for (struct inside_module *at = process->modules; at; at = at->next) {
			if (at->since_ns && at->since_ns < time_ns)
				inside_module_left(at, time_ns);
		}
		return;
	}
	divert_gone(inside->divert, pid);
	tids_forget(inside->tids, (uint32_t)pid);
	if (inside->own_agents)
		gpu_targets_forget(inside->targets, pid);
	inside_process_drop(inside, process);
}

void inside_exit(struct inside *inside, pid_t pid, uint64_t time_ns)
{
	struct inside_process *process;

	inside_no_child(inside, (uint32_t)pid);
	if (inside->own_agents) {
		agents_gone(inside->agents, pid);
		gpu_targets_forget(inside->targets, pid);
	}
	process = inside_process_find(inside, (uint32_t)pid);
	if (process)
		inside_process_tell_gap(process, time_ns);
	divert_gone(inside->divert, pid);
	if (!process)
		return;
	inside_counts_read(process);
	programs_inside_set(inside->options.programs, pid, 0);
	tids_forget(inside->tids, (uint32_t)pid);
	call_queue_forget(inside->queue, (uint32_t)pid);
	inside_process_drop(inside, process);
}

/* ---- turns --------------------------------------------------------------------------------- */

static void turn_divert(struct inside *inside)
{
	struct inside_process *process, *next;
	struct err err = { 0 };

	if (inside->divert_gone || !divert_turn(inside->divert, &err))
		return;
	inside->divert_gone = true;
	inside_warn(inside,
	            "%s: no more functions are recorded inside of processes, and those "
	            "that are stay so until the processes end",
	            err.text);
	HASH_ITER (hh, inside->processes, process, next) {
		process->given_up = true;
	}
}

/* Where names of kernels are found: the pipeline may find that they are elsewhere. */
static void tell_name_offset(struct inside *inside)
{
	uint64_t offset = programs_state(inside->options.programs)->name_offset;

	if (offset == WIRE_NO_OFFSET)
		offset = 0;
	if (offset != inside->name_offset)
		agents_probes_names(inside->agents, offset);
	inside->name_offset = offset;
}

static bool all_are_out(const struct inside *inside)
{
	for (const struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		if (!inside_process_is_out(process))
			return false;
	}
	return true;
}

void inside_turn(struct inside *inside, uint64_t now_ns)
{
	struct inside_process *process, *next;

	inside->now_ns = now_ns;
	tell_name_offset(inside);
	if (inside->ticks)
		tick_clock_look(inside->ticks);
	if (inside->own_agents)
		agents_turn(inside->agents, now_ns);
	turn_divert(inside);
	if (inside->own_agents && !inside->stopping)
		gpu_targets_turn(inside->targets, now_ns);
	HASH_ITER (hh, inside->processes, process, next) {
		inside_process_turn(process);
	}
	inside_records_turn(inside);
	inside_forks_turn(inside);
	if (!inside->stopping)
		inside_away_turn(inside);
	if (inside->stopping && inside->own_agents && !inside->agents_told && all_are_out(inside)) {
		inside->agents_told = true;
		agents_stop(inside->agents);
	}
}

/* ---- the end ------------------------------------------------------------------------------- */

void inside_stop(struct inside *inside)
{
	if (!inside->stopping)
		inside_tell_waiting(inside);
	inside_away_stop(inside);
	inside->stopping = true;
}

bool inside_stopped(const struct inside *inside)
{
	return all_are_out(inside) &&
	       (!inside->own_agents || (inside->agents_told && agents_stopped(inside->agents)));
}

void inside_read_rest(struct inside *inside, uint64_t now_ns)
{
	inside->now_ns = now_ns;
	if (!inside->own_agents)
		return;
	if (!inside->agents_told)
		agents_stop(inside->agents);
	inside->agents_told = true;
	agents_turn(inside->agents, inside->now_ns);
}

static void tell_all(struct inside *inside)
{
	char stopped[64] = "";

	if (inside->longest_stop_ns) /* nobody knows where who stopped them was killed */
		snprintf(stopped, sizeof(stopped), "; threads were stopped for %.1f ms at most",
		         inside->longest_stop_ns / 1e6);
	inside_notice(inside, "%lu calls of %u functions were recorded inside of %u process%s%s",
	              inside->calls, inside->n_functions, inside->n_processes,
	              inside->n_processes == 1 ? "" : "es", stopped);
}

void inside_finish(struct inside *inside)
{
	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		inside_process_tell_gap(process, clock_now_ns());
		inside_counts_read(process);
	}
	modules_lock(inside->options.modules);
	inside_forks_read(inside);
	inside_forks_tell(inside);
	modules_unlock(inside->options.modules);
	if (inside->own_agents && !agents_stopped(inside->agents))
		agents_abandon(inside->agents);
	if (divert_refused_children(inside->divert))
		inside_warn(inside,
		            "%lu children of processes that are recorded inside keep their "
		            "jumps, as there was no room for more: functions with the jump "
		            "before the probe are not told of in them",
		            divert_refused_children(inside->divert));
	if (!inside->n_processes)
		inside_notice(inside, "no calls were recorded inside of processes: probes told of "
		                      "all");
	else
		tell_all(inside);
	if (inside->counted)
		inside_notice(inside,
		              "%lu more calls of functions that are called all the time were "
		              "counted, and not recorded one by one (--all-calls=each does that)",
		              inside->counted);
	if (inside->in_children)
		inside_notice(inside,
		              "%lu call%s counted in children of fork, in which CUDA does not "
		              "work, and not recorded",
		              inside->in_children, inside->in_children == 1 ? " was" : "s were");
}

uint64_t inside_stacks_too_fast(const struct inside *inside)
{
	struct agents_lost agents;

	agents_lost(inside->agents, &agents);
	return agents.probes[AGENT_PROBE_TOO_FAST];
}

void inside_fill_lost(const struct inside *inside, uint64_t lost[LOST_COUNT])
{
	static const enum lost_reason reasons[AGENT_PROBE_LOSTS] = {
		[AGENT_PROBE_RING] = LOST_RING_FULL, [AGENT_PROBE_THREADS] = LOST_THREADS_FULL,
		[AGENT_PROBE_DEPTH] = LOST_TOO_DEEP, [AGENT_PROBE_REENTRY] = LOST_NOT_RUN,
		[AGENT_PROBE_ENTRY] = LOST_NO_ENTRY, [AGENT_PROBE_UNREADABLE] = LOST_UNREADABLE,
		[AGENT_PROBE_TEXT] = LOST_TEXTS,     [AGENT_PROBE_STUCK] = LOST_NOT_RUN,
	};
	struct agents_lost agents;

	agents_lost(inside->agents, &agents);
	for (size_t i = 0; i < AGENT_PROBE_LOSTS; i++) {
		if (i != AGENT_PROBE_TOO_FAST)
			lost[reasons[i]] += agents.probes[i];
	}
	lost[LOST_GPU_RECORDS] += inside->bad_records;
	lost[LOST_QUEUE] += call_queue_refused(inside->queue);
	lost[LOST_OVER_BUDGET] += inside->counted_lost;
}
