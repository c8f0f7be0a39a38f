// SPDX-License-Identifier: MIT
/* How entries of a process are put back: at the end of a trace, or when its agent ends before. */
#include "capture/inside/inside_private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/xalloc.h"

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

static double ms_of(const struct inside *inside, uint64_t time_ns)
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
	struct buf to = { 0 };

	if (!process->ended_ns)
		return;
	process->ended_ns = 0;
	buf_puts(&to, " on");
	if (until_ns) {
		buf_reset(&to);
		buf_printf(&to, " to %.0f ms", ms_of(inside, until_ns));
	}
	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_UNHOOKED, NULL, NULL, process->pid,
	             "calls from %.0f ms%s: %s", ms_of(inside, since_ns), to.data,
	             process->ended_why);
	buf_free(&to);
	modules_unlock(inside->options.modules);
}

void inside_process_tell_changed(struct inside_process *process, uint64_t since_ns, uint32_t n)
{
	struct inside *inside = process->inside;

	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_UNHOOKED, NULL, NULL, process->pid,
	             "calls of %u function%s from %.0f ms on: others have changed %s, so that %s "
	             "could not be put back",
	             n, n == 1 ? "" : "s", ms_of(inside, since_ns), n == 1 ? "it" : "them",
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
	             ms_of(inside, since_ns), what);
	modules_unlock(inside->options.modules);
}

/* One that ends closes its sockets when it has none any more. Of a thread that lives: the first may
 * have ended. */
bool inside_process_has_memory(uint32_t pid)
{
	char path[64], exe[1];
	const struct dirent *thread;
	bool has = false;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	threads = opendir(path);
	while (threads && !has && (thread = readdir(threads))) {
		snprintf(path, sizeof(path), "task/%.16s/exe", thread->d_name);
		has = *thread->d_name != '.' &&
		      process_look((pid_t)pid, PROCESS_LINK, path, exe, sizeof(exe)) >= 0;
	}
	if (threads)
		closedir(threads);
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
