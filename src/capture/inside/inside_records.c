// SPDX-License-Identifier: MIT
/* What agents record, and which of the programs' records that replaces. */
#include "capture/inside/inside_private.h"

#include "base/clock.h"

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
		__atomic_fetch_add(&state->kernels_generation, 1, __ATOMIC_RELAXED);
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

bool inside_record(struct inside *inside, uint32_t pid, const struct agent_head *record)
{
	struct inside_process *process;
	uint64_t now_ns;

	if (record->type != AGENT_PROBED && record->type != AGENT_PROBE_BEGUN &&
	    record->type != AGENT_PROBE_NAME)
		return false;
	process = inside_process_find(inside, pid);
	now_ns = inside->ticks ? inside->now_ns : clock_now_ns();
	if (!process || !process->records ||
	    probe_records_take(process->records, record, now_ns) != PROBE_RECORD_TAKEN)
		inside->bad_records++;
	else if (record->type == AGENT_PROBED)
		inside_counts_recorded(process, record->lane);
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

static bool is_alike(struct inside_module *at, const struct module *module)
{
	unsigned i = 0;

	if (at->module->n_hooks != module->n_hooks) /* most are not, and none takes a place */
		return false;
	while (i < INSIDE_OTHERS && at->others[i].module != module)
		i++;
	if (i < INSIDE_OTHERS)
		return at->others[i].is_alike;
	i = at->next_other++ % INSIDE_OTHERS;
	at->others[i].module = module;
	at->others[i].is_alike = module_is_alike(at->module, module) &&
	                         !inside_module_may_be_mapped(at->process, module);
	return at->others[i].is_alike;
}

/* While the process is there: when its calls come to be looked at, it may have ended. */
void inside_module_compare(struct inside_module *at)
{
	struct modules *modules = at->process->inside->options.modules;

	for (size_t i = 0; i < modules_count(modules); i++) {
		const struct module *module = modules_at(modules, i);

		if (module != at->module && module->attached)
			is_alike(at, module);
	}
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

/* Files that are hooked later are compared then. */
void inside_records_turn(struct inside *inside)
{
	const struct modules *modules = inside->options.modules;
	size_t mark = 0;

	inside->unsure = is_unsure(inside);

	/* which, not how many: one may go as another comes */
	for (size_t i = 0; i < modules_count(modules); i++)
		mark = 31 * mark + 1 + modules_at(modules, i)->attached;
	if (mark == inside->compared)
		return;
	inside->compared = mark;
	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		for (struct inside_module *at = process->modules; at; at = at->next) {
			if (at->state == INSIDE_DIVERTED)
				inside_module_compare(at);
		}
	}
}

/*
 * Two files may be one to the kernel, as those of two containers of one image: then each call meets
 * the probes of both, and is told by the hook of either. The number of the hook that the process's
 * own file has for it; HOOK_NO_ID: it has none. A file that the process has mapped as well, a
 * second copy of the library, is none of these: its calls meet its own probes alone.
 */
static uint32_t own_hook(const struct inside *inside, struct inside_module *at, uint32_t id)
{
	const struct module *module = NULL;
	const struct hook *hook = modules_hook(inside->options.modules, (uint16_t)id, &module);

	if (!hook || module == at->module)
		return HOOK_NO_ID;
	return is_alike(at, module) ? at->module->hooks[hook - module->hooks].id : HOOK_NO_ID;
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
		    (at->told && is_told(at, own_hook(inside, at, record->hook), call->begin_ns)))
			return true;
	}
	return false;
}
