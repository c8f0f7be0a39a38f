// SPDX-License-Identifier: MIT
/* Which functions of a module of a process are to be diverted, and what is asked for that. */
#include "base/order.h"
#include "capture/inside/inside_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/xalloc.h"
#include "bpf/wire_fold.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/maps.h"

#define TOLD_MOST 64 /* sentences */

/* ---- where it is mapped -------------------------------------------------------------------- */

static int want_mapped(const struct mapping *mapping, void *data)
{
	struct inside_process *process = data;
	const struct module *module = modules_of_mapping(process->inside->options.modules, mapping);

	if (module)
		inside_module_want(process, module);
	return 0;
}

/* Those of a user who has no time for that left are found when they are called. */
void inside_modules_find(struct inside_process *process)
{
	uint64_t busy_ns = helper_busy_ns();
	struct err err = { 0 };

	if (look_time_is_over(LOOK_AT_MAPS, process->owner))
		return;
	maps_each((pid_t)process->pid, want_mapped, process, &err);
	look_time_charge(LOOK_AT_MAPS, process->owner, helper_busy_ns() - busy_ns);
}

/* ---- modules of a process ------------------------------------------------------------------ */

static bool is_known(const struct inside_process *process, const struct module *module)
{
	for (const struct inside_module *at = process->modules; at; at = at->next) {
		if (at->module == module && (at->state != INSIDE_LEFT || at->absent))
			return true;
	}
	return false;
}

void inside_module_want(struct inside_process *process, const struct module *module)
{
	struct inside_module *at;

	if (is_known(process, module) || process->n_modules == INSIDE_MODULES_MAX)
		return;
	at = xcalloc(1, sizeof(*at));
	at->process = process;
	at->module = module;
	at->due_ns = process->inside->now_ns;
	at->until_ns = UINT64_MAX;
	at->next = process->modules;
	process->modules = at;
	process->n_modules++;
}

/* All that it was to be diverted by; what is put, or being put, is divert's. */
void inside_module_forget_plan(struct inside_module *at)
{
	if (at->state != INSIDE_PUTTING && at->state != INSIDE_DIVERTED)
		divert_plan_free(at->plan);
	at->plan = NULL;
	free(at->functions);
	free(at->hooks);
	free(at->thunks);
	at->functions = NULL;
	at->hooks = NULL;
	at->thunks = NULL;
	at->count = 0;
}

void inside_module_free(struct inside_module *at)
{
	inside_module_forget_plan(at);
	free(at->told);
	free(at->met);
	free(at);
}

void inside_module_left(struct inside_module *at, uint64_t until_ns)
{
	inside_module_forget_plan(at);
	at->state = INSIDE_LEFT;
	if (until_ns < at->until_ns)
		at->until_ns = until_ns;
}

void inside_module_keeps(struct inside_module *at, const char *why)
{
	struct inside *inside = at->process->inside;

	inside_module_forget_plan(at);
	at->state = INSIDE_KEPT;
	if (inside->stopping || process_is_over((pid_t)at->process->pid))
		return; /* nobody asks why any more */
	if (inside_process_tells(at->process, TOLD_MOST))
		inside_notice(inside, "%s of process %u keeps its probes: %s", at->module->name,
		              at->process->pid, why);
}

/* ---- which functions ----------------------------------------------------------------------- */

/*
 * Of what is summed up, live memory is followed by the programs, which walk the stack of each
 * allocation. They count modules that are unloaded at that moment, too, since handles of kernels
 * mean others from then on.
 */
static unsigned folded_there(const struct inside *inside)
{
	unsigned ops = 1u << OP_MODULE_UNLOAD;

	if (inside->options.fold & FOLD_TOOL_MEMORY)
		ops |= 1u << OP_ALLOC | 1u << OP_FREE | 1u << OP_CONTEXT_DESTROY | 1u << OP_MAP |
		       1u << OP_UNMAP | 1u << OP_RETAIN;
	return inside->options.fold ? ops : 0;
}

static unsigned op_of(const struct hook *hook)
{
	return hook->api ? 1u << api_op(hook->api) : 0;
}

/*
 * A function of the driver that keeps its probe seems to be called by nobody where an agent tells
 * of its caller, and would count twice. So functions of the runtime that do the same keep theirs.
 */
static unsigned kept_by_driver(const struct inside_process *process)
{
	unsigned ops = 0;

	for (const struct inside_module *at = process->modules; at; at = at->next) {
		for (size_t i = 0; at->state == INSIDE_DIVERTED && i < at->module->n_hooks; i++) {
			const struct hook *hook = &at->module->hooks[i];

			if (hook->layer == LAYER_DRIVER && hook->group != HOOK_OFF &&
			    !inside_module_tells(at, hook))
				ops |= op_of(hook);
		}
	}
	return ops;
}

/* Of functions of a driver: one that was to be diverted, or may still be. */
static bool keeps_any(const struct inside_module *at)
{
	if (!at->module->has[LAYER_DRIVER] || at->state == INSIDE_LEFT)
		return false;
	return at->state != INSIDE_DIVERTED || at->n_refused;
}

static bool others_keep(const struct inside_module *at)
{
	for (const struct inside_module *other = at->process->modules; other; other = other->next) {
		if (other != at && keeps_any(other))
			return true;
	}
	return false;
}

/*
 * Whether calls of a module may lead to functions that keep their probes: those of a driver, or of
 * a layer before it that has the driver's functions, too. Their own module's are known before the
 * others are diverted. Where that is so the agent tells of begins, by which such a call is known to
 * be nested: inside_nesting.c.
 */
static bool leads_to_probes(const struct inside_module *at)
{
	return at->leads_on ||
	       (at->module->has[LAYER_DRIVER] && inside_module_movable(at) < at->count);
}

/* By operation, of a layer's functions. */
static unsigned kept_ops(const struct inside_process *process, enum api_layer layer)
{
	unsigned ops = folded_there(process->inside);

	if (process->inside->options.fold && layer == LAYER_RUNTIME)
		ops |= kept_by_driver(process);
	return ops;
}

static bool is_walked(const struct inside_process *process, const struct hook *hook)
{
	return process->inside->options.stack_kinds >> hook_stack_kind(hook) & 1;
}

/* Stacks are walked by the programs, at a probe: of the agent's, or else of the function's. */
static bool keeps_probe(const struct inside_process *process, const struct hook *hook)
{
	return hook->group == HOOK_OFF || (!process->walks && is_walked(process, hook));
}

static bool is_launch(const struct hook *hook)
{
	return hook->group == HOOK_RUNTIME_LAUNCH;
}

/* Of those, one of a kernel: the agent knows by the driver's whether it came there. */
static bool can_be_refused(const struct hook *hook)
{
	return is_launch(hook) && hook->plan.kernel != PLAN_NO_ARG;
}

ORDER_POINTERS_BY(compare_addresses, struct hook, UP(address));

/* By address, each place once: the kernel has one probe there, of the first that was attached. */
static void choose_functions(struct inside_module *at)
{
	const struct module *module = at->module;
	const unsigned kept[] = { [LAYER_DRIVER] = kept_ops(at->process, LAYER_DRIVER),
		                  [LAYER_RUNTIME] = kept_ops(at->process, LAYER_RUNTIME) };
	size_t n = 0;

	/* a launch that comes to the driver is told as that alone: by who tells of both */
	at->leads_on = others_keep(at);
	at->hooks = xcalloc(module->n_hooks + 1, sizeof(struct hook *));
	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (!keeps_probe(at->process, hook) && !(op_of(hook) & kept[hook->layer]) &&
		    !(at->leads_on && is_launch(hook)))
			at->hooks[n++] = hook;
	}
	qsort(at->hooks, n, sizeof(struct hook *), compare_addresses);
	at->functions = xcalloc(n + 1, sizeof(*at->functions));
	for (size_t i = 0; i < n; i++) {
		const struct hook *hook = at->hooks[i];

		if (at->count && at->hooks[at->count - 1]->address == hook->address)
			continue;
		at->hooks[at->count] = hook;
		at->functions[at->count++] =
			(struct divert_function){ .address = hook->address,
			                          .offset = hook->entry,
			                          .size = hook->size,
			                          .probe = hook->placement.skip };
	}
	if (at->count > DIVERT_FUNCTIONS_MAX)
		at->count = DIVERT_FUNCTIONS_MAX;
	at->thunks = xcalloc(at->count + 1, sizeof(*at->thunks));
}

int inside_module_look(struct inside_module *at, struct divert_need *need, struct err *err)
{
	struct divert_module module = { .fd = at->module->fd,
		                        .path = at->module->path,
		                        .dev = at->module->dev,
		                        .inode = at->module->inode,
		                        .owner = at->module->owner };
	int r;

	if (!at->hooks)
		choose_functions(at);
	if (!at->count)
		return err_set(err, ENOENT, "none of its functions is recorded");
	r = divert_may_look(at->process->inside->divert, (pid_t)at->process->pid, &module,
	                    at->functions, at->count, &at->plan, err);
	if (r)
		return r;
	r = divert_look(at->process->inside->divert, (pid_t)at->process->pid, &module,
	                at->functions, at->count, need, &at->plan, err);
	if (!r)
		at->load = need->first - at->functions[0].address;
	if (!r && !need->bytes)
		r = err_set(err, ENOTSUP, "no function of it can be diverted: %s",
		            entry_refusal_text(at->functions[0].refusal));
	return r;
}

static void fill_slot(const struct inside_module *at, size_t i, uint32_t number,
                      struct agent_slot *slot)
{
	const struct hook *hook = at->hooks[i];
	struct inside_process *process = at->process;

	*slot = (struct agent_slot){ .slot = number,
		                     .stack_words = AGENT_STACK_WORDS_UNKNOWN,
		                     .cookie = hook_cookie(hook),
		                     .original = at->area + at->functions[i].original,
		                     .begins = at->begins && !is_launch(hook),
		                     .entry = is_walked(process, hook) ? at->load + hook->address
		                                                       : 0,
		                     .does = at->launches_on || !is_launch(hook) ? AGENT_SLOT_CALL
		                             : can_be_refused(hook)              ? AGENT_SLOT_COUNT
		                                                    : AGENT_SLOT_PASSES_ON };
	process->cookies[number] = slot->cookie;
	/* of one that is only counted it would not be known that it is around others' */
	inside_counts_slot(process, number, hook, at->module, !at->leads_on);
	inside_forks_slot(process, number, hook, at->functions[i].met);
	at->thunks[i] = process->thunks + (uint64_t)number * process->thunk_bytes;
}

uint32_t inside_module_movable(const struct inside_module *at)
{
	uint32_t n = 0;

	for (size_t i = 0; i < at->count; i++)
		n += at->functions[i].refusal == ENTRY_MOVABLE;
	return n;
}

/* The runtime's launches last, since they are turned on and off together: those that it can refuse,
 * then those of graphs. */
struct agent_slot *inside_module_slots(struct inside_module *at, uint32_t first, size_t *n)
{
	struct inside_process *process = at->process;
	struct agent_slot *slots = xcalloc(at->count + 1, sizeof(*slots));

	*n = 0;
	at->first_slot = first;
	at->begins = leads_to_probes(at);
	at->launches_on = wire_runtime_launches(programs_state(process->inside->options.programs));
	for (int launches = 0; launches < 3; launches++) {
		if (launches == 1)
			at->first_launch = at->first_slot + (uint32_t)*n;
		if (launches == 2)
			at->n_refusable = at->first_slot + (uint32_t)*n - at->first_launch;
		for (size_t i = 0; i < at->count; i++) {
			uint32_t number = at->first_slot + (uint32_t)*n;

			if (at->functions[i].refusal != ENTRY_MOVABLE ||
			    is_launch(at->hooks[i]) * 2 - can_be_refused(at->hooks[i]) != launches)
				continue;
			if (number >= process->slots) {
				free(slots);
				return NULL;
			}
			fill_slot(at, i, number, &slots[(*n)++]);
		}
	}
	at->n_slots = (uint32_t)*n;
	at->n_launches = at->first_slot + at->n_slots - at->first_launch;
	return slots;
}
