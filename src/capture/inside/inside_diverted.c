// SPDX-License-Identifier: MIT
/* What is diverted of a module of a process, and how the programs are told of it. */
#include "capture/inside/inside_private.h"

#include <string.h>

#include "base/xalloc.h"
#include "probe/memory.h"

/* ---- once it is diverted ------------------------------------------------------------------- */

static void number_told(struct inside_module *at)
{
	uint32_t last = 0;

	at->first_id = UINT32_MAX;
	for (size_t i = 0; i < at->count; i++) {
		uint32_t id = at->hooks[i]->id;

		at->first_id = id < at->first_id ? id : at->first_id;
		last = id > last ? id : last;
	}
	at->n_ids = last - at->first_id + 1;
	at->told = xcalloc(at->n_ids / 8 + 1, 1);
	at->met = xcalloc(at->n_ids / 8 + 1, 1);
}

static bool tell_refusals_of(struct inside *inside, const struct module *module)
{
	for (size_t i = 0; i < INSIDE_BITS; i++) {
		if (inside->told_refused[i] == module)
			return false;
		if (!inside->told_refused[i]) {
			inside->told_refused[i] = module;
			return true;
		}
	}
	return false;
}

/* "3 of 307 functions of libcudart.so.13 keep their probes: a jump leads into ... (2 of them)" */
static void tell_refused(struct inside_module *at, const size_t counts[ENTRY_REFUSALS])
{
	size_t most = 1;

	for (size_t i = 1; i < ENTRY_REFUSALS; i++)
		most = counts[i] > counts[most] ? i : most;
	if (!at->n_refused || !tell_refusals_of(at->process->inside, at->module))
		return;
	inside_notice(at->process->inside, "%u of %zu functions of %s keep their probes: %s (%zu)",
	              at->n_refused, at->count, at->module->name,
	              entry_refusal_text((enum entry_refusal)most), counts[most]);
}

/* That of a function which was refused before is divert_look's. */
static unsigned refusal_of(const struct inside_module *at, const struct divert_result *result,
                           size_t i)
{
	unsigned refusal = result->refusals[i];

	if (refusal >= ENTRY_REFUSALS && at->functions[i].refusal != ENTRY_MOVABLE)
		refusal = at->functions[i].refusal;
	return refusal < ENTRY_REFUSALS ? refusal : ENTRY_NOT_READ;
}

void inside_module_cut(struct inside_module *at, const struct divert_result *result)
{
	at->since_ns = result->since_ns;
	number_told(at);
	for (size_t i = 0; i < at->count && i < result->count; i++) {
		uint32_t bit = at->hooks[i]->id - at->first_id;

		if (refusal_of(at, result, i) != ENTRY_MOVABLE)
			continue;
		at->told[bit / 8] |= (uint8_t)(1u << bit % 8);
		at->met[bit / 8] |= (uint8_t)(at->functions[i].met << bit % 8);
		if (!at->n_diverted++)
			at->check_at = at->load + at->functions[i].address;
	}
	inside_module_compare(at);
}

void inside_module_unknown(struct inside_module *at, uint64_t since_ns)
{
	struct inside_process *process = at->process;
	struct inside *inside = process->inside;

	if (at->unknown)
		return;
	at->unknown = true;
	agents_probes_turn(inside->agents, (pid_t)process->pid, at->first_slot, at->n_slots,
	                   AGENT_SLOT_PASSES_ON);
	inside_process_tell_unknown(process, since_ns, "diverted");
}

void inside_module_diverted(struct inside_module *at, const struct divert_result *result)
{
	size_t counts[ENTRY_REFUSALS] = { 0 };

	if (!at->told)
		inside_module_cut(at, result);
	for (size_t i = 0; i < at->count && i < result->count; i++) {
		unsigned refusal = refusal_of(at, result, i);

		counts[refusal]++;
		at->n_refused += refusal != ENTRY_MOVABLE;
	}
	at->state = INSIDE_DIVERTED;
	tell_refused(at, counts);
	inside_flag(at->process);
	inside_module_forget_plan(at);
}

/* The kernel's breakpoint may lie before or behind it. */
static bool jumps_to_area(const struct inside_module *at, const uint8_t *code, size_t bytes)
{
	int32_t distance;

	for (size_t i = 0; i + 5 <= bytes; i++) {
		uint64_t next = at->check_at + i + 5;

		memcpy(&distance, code + i + 1, sizeof(distance));
		if (code[i] == 0xe9 && next + (uint64_t)distance - at->area < at->area_bytes)
			return true;
	}
	return false;
}

bool inside_module_is_there(const struct inside_module *at)
{
	uint32_t pid = at->process->pid;
	uint8_t code[INSIDE_LOOKED_AT];

	if (!at->check_at)
		return true;
	if (!memory_read((pid_t)pid, at->check_at, code, sizeof(code)))
		return !inside_process_has_memory(pid); /* it was, as the process has ended */
	return jumps_to_area(at, code, sizeof(code));
}

bool inside_module_tells(const struct inside_module *at, const struct hook *hook)
{
	uint32_t bit = hook->id - at->first_id;

	return hook->id != HOOK_NO_ID && hook->id >= at->first_id && bit < at->n_ids &&
	       at->told[bit / 8] >> bit % 8 & 1;
}

bool inside_writes_to(struct inside *inside, uint32_t pid, const struct module *module)
{
	const struct inside_process *process = inside_process_find(inside, pid);
	const struct inside_module *at = process ? process->modules : NULL;

	while (at && !(at->module == module && (at->since_ns || at->state == INSIDE_PUTTING)))
		at = at->next;
	return at || inside_child_find(inside, pid);
}

/* ---- what the programs are told ------------------------------------------------------------ */

static unsigned bit_of(struct inside *inside, const struct module *module)
{
	for (unsigned i = 1; i < INSIDE_BITS; i++) {
		if (!inside->bit_of[i])
			inside->bit_of[i] = module;
		if (inside->bit_of[i] == module)
			return i;
	}
	return 0;
}

/*
 * The first process with a module decides which of its functions the programs may leave alone. A
 * process in which one of these is not diverted has all of the module looked at, as before: what
 * is told twice is left out later.
 */
static uint64_t flag_of(const struct inside_module *at)
{
	struct inside *inside = at->process->inside;
	struct wire_state *state = programs_state(inside->options.programs);
	const struct module *module = at->module;
	unsigned bit = bit_of(inside, module);
	bool any = false;

	for (size_t i = 0; bit && i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->id == HOOK_NO_ID || state->inside[hook->id] != bit)
			continue;
		any = true;
		if (!inside_module_tells(at, hook))
			return 0;
	}
	for (size_t i = 0; bit && !any && i < module->n_hooks; i++) {
		if (inside_module_tells(at, &module->hooks[i]))
			state->inside[module->hooks[i].id] = (uint8_t)bit;
	}
	return bit ? 1ull << bit : 0;
}

void inside_flag(struct inside_process *process)
{
	uint64_t modules = process->nesting ? INSIDE_ANY : 0;

	for (const struct inside_module *at = process->modules; at; at = at->next) {
		if (at->state == INSIDE_DIVERTED && at->until_ns == UINT64_MAX)
			modules |= flag_of(at);
	}
	programs_inside_set(process->inside->options.programs, (pid_t)process->pid, modules);
}

/*
 * Sums have no time by which a call that both have seen could be left out. So where calls are
 * summed up, the programs go on to send those of such a process.
 */
void inside_unflag(struct inside_process *process)
{
	const struct inside *inside = process->inside;

	programs_inside_set(inside->options.programs, (pid_t)process->pid,
	                    inside->options.fold && process->nesting ? INSIDE_ANY : 0);
}
