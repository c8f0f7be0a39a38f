// SPDX-License-Identifier: MIT
/* What agents record, and which of the programs' records that replaces. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "capture/inside/inside_private.h"

/* ---- what agents record -------------------------------------------------------------------- */

static uint32_t thread_of(void *data, uint32_t tid)
{
	struct inside_process *process = data;

	return tids_host(process->inside->tids, process->pid, tid, process->inside->now_ns);
}

/* What the programs' shared memory is told by calls that they see. */
static void tell_programs(struct inside *inside, const struct wire_call *call)
{
	struct wire_state *state = programs_state(inside->options.programs);
	const struct hook *hook = modules_hook(inside->options.modules, call->head.hook, NULL);

	if (!hook)
		return;
	if (hook->plan.forgets_kernels)
		__atomic_fetch_add(
			&state->kernels_generation[wire_kernels_slot(state, call->head.tgid)], 1,
			__ATOMIC_RELAXED);
	if (!state->driver_works && hook_proves_driver(hook) && !call->result &&
	    !(call->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED)))
		__atomic_store_n(&state->driver_works, 1, __ATOMIC_RELAXED);
}

static void take(void *data, const struct wire_head *record, size_t bytes)
{
	struct inside_process *process = data;
	struct inside *inside = process->inside;

	if (record->type == WIRE_CALL || record->type == WIRE_BEGIN)
		((struct wire_head *)record)->flags |= WIRE_BY_AGENT; /* probe_records' copy */
	if (record->type == WIRE_CALL) {
		inside->calls++;
		inside->told = (struct correlate_span){
			.pid = record->tgid,
			.tid = record->tid,
			.begin_ns = ((const struct wire_call *)record)->begin_ns,
			.end_ns = record->time_ns,
		};
		if (record->time_ns > process->last_ns)
			process->last_ns = record->time_ns;
		tell_programs(inside, (const struct wire_call *)record);
	}
	call_queue_add(inside->queue, record, bytes);
}

struct probe_records *inside_records_new(struct inside_process *process)
{
	const struct probe_records_options options = { .pid = process->pid,
		                                       .cookies = process->cookies,
		                                       .n_cookies = process->slots,
		                                       .ticks = process->inside->ticks,
		                                       .since_ns = process->since_ns,
		                                       .thread = thread_of,
		                                       .record = take,
		                                       .data = process };

	return probe_records_new(&options);
}

bool inside_record(struct inside *inside, uint32_t pid, const struct agent_head *record,
                   struct correlate_span *call)
{
	struct inside_process *process;
	uint64_t now_ns;

	if (record->type != AGENT_PROBED && record->type != AGENT_PROBE_BEGUN &&
	    record->type != AGENT_PROBE_NAME)
		return false;
	process = inside_process_find(inside, pid);
	now_ns = inside->ticks ? inside->now_ns : clock_now_ns();
	if (!process || !process->records ||
	    probe_records_take(process->records, record, now_ns) != PROBE_RECORD_TAKEN) {
		inside->bad_records++;
	} else if (record->type == AGENT_PROBED) {
		inside_counts_recorded(process, record->lane);
		*call = inside->told;
	}
	return true;
}

/* ---- what programs send -------------------------------------------------------------------- */

static bool is_told(const struct inside_module *at, uint32_t hook, uint64_t begin_ns)
{
	uint32_t bit = hook - at->first_id;

	return at->told && hook >= at->first_id && bit < at->n_ids && begin_ns >= at->since_ns &&
	       begin_ns < at->until_ns && at->told[bit / 8] >> bit % 8 & 1 &&
	       !(at->process->taking && divert_is_taken_back(at->process->inside->divert,
	                                                     (pid_t)at->process->pid, begin_ns));
}

/* A thread may have gone on before the answer comes: its call shows that there is a cut. */
static void look_at_cut(struct inside_module *at, uint64_t begin_ns)
{
	struct divert_result result;

	if (at->state != INSIDE_PUTTING || at->told || at->unknown ||
	    !divert_is_put(at->process->inside->divert, at->plan, begin_ns, &result))
		return;
	if (result.rc)
		inside_module_unknown(at, result.since_ns);
	else
		inside_module_cut(at, &result);
}

/* Of a module of which nobody knows what leads to the agent, what probes tell is all that counts.
 */
static bool is_of_unknown(const struct inside *inside, const struct inside_process *process,
                          uint32_t id)
{
	const struct inside_module *at = process->modules;
	const struct module *module = NULL;

	while (at && !at->unknown)
		at = at->next;
	if (at)
		modules_hook(inside->options.modules, (uint16_t)id, &module);
	while (at && !(at->unknown && at->module == module))
		at = at->next;
	return at;
}

bool inside_meets_probe(struct inside *inside, const struct wire_call *call)
{
	const struct hook *hook = modules_hook(inside->options.modules, call->head.hook, NULL);
	const struct inside_process *process =
		hook && hook->hooked ? inside_process_find(inside, call->head.tgid) : NULL;
	const struct inside_module *at = process ? process->modules : NULL;

	while (at && !(at->met && is_told(at, hook->id, call->begin_ns)))
		at = at->next;
	return at && at->met[(hook->id - at->first_id) / 8] >> (hook->id - at->first_id) % 8 & 1;
}

bool inside_is_sure(const struct inside *inside)
{
	return !inside->unsure;
}

static bool is_unsure(const struct inside *inside)
{
	for (const struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		for (const struct inside_module *at = process->modules; at; at = at->next) {
			if (at->unknown || at->state == INSIDE_PUTTING)
				return true;
		}
	}
	return false;
}

void inside_records_turn(struct inside *inside)
{
	inside->unsure = is_unsure(inside);
	inside_files_turn(inside);
}

bool inside_leaves_out(struct inside *inside, const struct wire_head *record)
{
	const struct wire_call *call = (const struct wire_call *)record;
	struct inside_process *process;

	if (record->type != WIRE_CALL && record->type != WIRE_BEGIN)
		return false;
	process = inside_process_find(inside, record->tgid);
	if (!process)
		return false;
	for (struct inside_module *at = process->modules; at; at = at->next)
		look_at_cut(at, call->begin_ns);
	if (record->flags & WIRE_BY_AGENT)
		return is_of_unknown(inside, process, record->hook);
	for (struct inside_module *at = process->modules; at; at = at->next) {
		if (is_told(at, record->hook, call->begin_ns) ||
		    (at->told && is_told(at, inside_own_hook(at, record->hook), call->begin_ns)))
			return true;
	}
	return false;
}

/* How entries of a process are put back: at the end of a trace, or when its agent ends before. */

#define TOLD_MOST    64 /* sentences */
#define AGENT_CLOSED "its agent has ended, as when a program closes all of its descriptors"

bool inside_process_is_diverted(const struct inside_process *process)
{
	for (const struct inside_module *at = process->modules; at; at = at->next) {
		if (at->state == INSIDE_DIVERTED)
			return true;
	}
	return false;
}

/* Calls that begin from then on are the probes'. */
static void end_told(struct inside_process *process, uint64_t then)
{
	for (struct inside_module *at = process->modules; at; at = at->next) {
		if (at->state == INSIDE_DIVERTED && then < at->until_ns)
			at->until_ns = then;
	}
}

double inside_ms(const struct inside *inside, uint64_t time_ns)
{
	return time_ns > inside->begin_ns ? (double)(time_ns - inside->begin_ns) / 1e6 : 0;
}

/*
 * From the agent's end on its thunks only pass on, and the programs left its calls alone until
 * cuscope saw that. A jump before a probe keeps calls from the probe until it is taken back.
 */
void inside_process_tell_gap(struct inside_process *process, uint64_t until_ns)
{
	struct inside *inside = process->inside;
	uint64_t since_ns = process->last_ns ? process->last_ns : process->ended_ns;
	AT_END(buf_free) struct buf to = { 0 };

	if (!process->ended_ns)
		return;
	process->ended_ns = 0;
	buf_puts(&to, " on");
	if (until_ns) {
		buf_reset(&to);
		buf_printf(&to, " to %.0f ms", inside_ms(inside, until_ns));
	}
	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_UNHOOKED, NULL, NULL, process->pid,
	             "calls from %.0f ms%s: %s", inside_ms(inside, since_ns), to.data,
	             process->ended_why);
	modules_unlock(inside->options.modules);
}

void inside_process_tell_changed(struct inside_process *process, uint64_t since_ns, uint32_t n)
{
	struct inside *inside = process->inside;

	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_UNHOOKED, NULL, NULL, process->pid,
	             "calls of %u function%s from %.0f ms on: others have changed %s, so that %s "
	             "could not be put back",
	             n, n == 1 ? "" : "s", inside_ms(inside, since_ns), n == 1 ? "it" : "them",
	             n == 1 ? "it" : "they");
	modules_unlock(inside->options.modules);
}

void inside_process_tell_unknown(struct inside_process *process, uint64_t since_ns,
                                 const char *what)
{
	struct inside *inside = process->inside;

	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_UNHOOKED, NULL, NULL, process->pid,
	             "calls from %.0f ms on: who wrote to its entries was killed, and which of "
	             "them were %s is not known",
	             inside_ms(inside, since_ns), what);
	modules_unlock(inside->options.modules);
}

/* One that ends closes its sockets when it has none any more. Of a thread that lives: the first may
 * have ended. */
bool inside_process_has_memory(uint32_t pid)
{
	AT_END(process_list_end) DIR *threads = process_list((pid_t)pid);
	char name[64], exe[1];
	bool has = false;
	pid_t tid;

	for (int i = 0; !has && i < PROCESS_THREADS_TRIED && (tid = process_next(threads)); i++) {
		snprintf(name, sizeof(name), "task/%d/exe", tid);
		has = process_look((pid_t)pid, PROCESS_LINK, name, exe, sizeof(exe)) >= 0;
	}
	return has;
}

static bool may_take(struct inside_process *process)
{
	if (!inside_process_has_memory(process->pid))
		return false;
	if (inside_process_let_go(process))
		return true;
	inside_process_hold_again(process);
	return false;
}

/* Calls from now on are seen by both; which of them are whose is known by the cut. */
void inside_process_take_back(struct inside_process *process)
{
	struct inside *inside = process->inside;
	struct err err = { 0 };

	if (process->taking || process->given_up || inside->now_ns < process->take_ns ||
	    (process->current && process->current->state == INSIDE_PUTTING) ||
	    !inside_process_is_diverted(process))
		return;
	inside_unflag(process);
	if (!inside->stopping && !may_take(process)) {
		process->take_ns = inside->now_ns + INSIDE_TAKE_NS;
		return;
	}
	process->taking = true;
	if (divert_take_back(inside->divert, (pid_t)process->pid, &err)) {
		process->taking = false;
		process->given_up = true;
		inside_process_hold_again(process);
	}
}

/*
 * It records no more: what was diverted is put back, and is the probes' from then on. What they
 * tell once the map is cleared is never left out, so the moment is that before. That a process
 * which ends has no agent any more is no loss.
 */
void inside_process_agent_ended(struct inside_process *process, const char *why)
{
	struct inside *inside = process->inside;
	struct inside_module *at = process->current;
	uint64_t now = clock_now_ns();

	process->ready = false;
	process->gone_ns = now;
	inside_counts_read(process);
	inside_nesting_agent_ended(inside, process->pid);
	end_told(process, now);
	inside_unflag(process);
	if (at && at->state != INSIDE_PUTTING)
		inside_module_give_up(at, why ? why : "its agent has ended");
	if (inside->stopping)
		return;
	if ((inside_process_is_diverted(process) || process->current) &&
	    inside_process_has_memory(process->pid)) {
		process->ended_ns = now;
		free(process->ended_why);
		process->ended_why = xstrdup(why ? why : AGENT_CLOSED);
		inside_away_put_back(inside, process);
	}
	if (why)
		inside_process_keeps(process, why);
	inside_process_take_back(process);
}

/* Nothing of it is diverted any more, or never was: the library was unloaded, or refused. */
void inside_process_end_untaken(struct inside_process *process)
{
	bool any = false;

	if (!process->ended_ns || process->current || inside_process_is_diverted(process))
		return;
	for (const struct inside_module *at = process->modules; at; at = at->next)
		any |= at->since_ns != 0;
	if (any)
		inside_process_tell_gap(process, clock_now_ns());
	process->ended_ns = 0;
}

/* ---- what was not ready ---------------------------------------------------------------------- */

static void tell_module(const struct inside_module *at)
{
	struct inside *inside = at->process->inside;
	const char *name = at->module->name;
	uint32_t pid = at->process->pid;

	if (at->why[0])
		inside_notice(inside,
		              "%s of process %u has kept its probes: in vain it was tried %u "
		              "time%s to record it inside, at last as %s",
		              name, pid, at->tries, at->tries == 1 ? "" : "s", at->why);
	else
		inside_notice(inside,
		              "%s of process %u has kept its probes: %s when the trace ended", name,
		              pid,
		              at->state == INSIDE_WANTED    ? "its code was not judged yet"
		              : at->state == INSIDE_PUTTING ? "its entries were being diverted"
		                                            : "its agent had not made room yet");
}

static bool waits(const struct inside_module *at)
{
	return at->state != INSIDE_DIVERTED && at->state != INSIDE_KEPT && at->state != INSIDE_LEFT;
}

/* Of a process of which nothing is diverted, and nothing waits. */
static void tell_nothing(const struct inside_process *process)
{
	const struct inside_module *at = process->modules;

	while (at && !at->since_ns && (at->state == INSIDE_LEFT || !process->ready))
		at = at->next;
	if (at || process->inside->n_told++ >= TOLD_MOST)
		return;
	inside_notice(process->inside, "process %u has kept its probes: %s", process->pid,
	              !process->ready    ? "its agent has ended"
	              : process->modules ? "its libraries were not found in its memory"
	                                 : "none of its libraries is known");
}

static void tell_process(struct inside *inside, const struct inside_process *process)
{
	bool any = false;

	if (process->kept || !process->records)
		return;
	for (const struct inside_module *at = process->modules; at && process->ready;
	     at = at->next) {
		any |= waits(at);
		if (waits(at) && inside->n_told++ < TOLD_MOST)
			tell_module(at);
	}
	if (!any)
		tell_nothing(process);
}

/* CUDA works there, and no agent said that it records. */
static bool tell_target(void *data, pid_t pid)
{
	struct inside *inside = data;
	const struct inside_process *process = inside_process_find(inside, (uint32_t)pid);

	if (process && (process->records || process->kept))
		return true;
	if (inside_process_has_memory((uint32_t)pid) && inside->n_told++ < TOLD_MOST)
		inside_notice(inside, "process %d has kept its probes: %s when the trace ended",
		              pid, agents_stage(inside->agents, pid));
	return true;
}

void inside_tell_waiting(struct inside *inside)
{
	for (const struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		if (inside_process_has_memory(process->pid))
			tell_process(inside, process);
	}
	if (inside->own_agents)
		gpu_targets_all(inside->targets, tell_target, inside);
}
