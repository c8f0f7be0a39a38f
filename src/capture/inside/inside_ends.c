// SPDX-License-Identifier: MIT
/* How entries of a process are put back: at the end of a trace, or when its agent ends before. */
#include "capture/inside/inside_private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/xalloc.h"

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
		snprintf(path, sizeof(path), "/proc/%u/task/%.16s/exe", pid, thread->d_name);
		has = *thread->d_name != '.' && readlink(path, exe, sizeof(exe)) >= 0;
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
	process->asked_ns = inside_clock_ns();
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
	uint64_t now = inside_clock_ns();

	process->ready = false;
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
		inside_process_tell_gap(process, inside_clock_ns());
	process->ended_ns = 0;
}
