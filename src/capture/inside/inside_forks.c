// SPDX-License-Identifier: MIT
/*
 * Calls of children of fork. Such a child has its parent's memory, and with it the jumps, but no
 * agent that records: CUDA does not work there, since the parent has used it. What is called all
 * the same (getters, and what fails) its thunks count, in memory that parent, children and cuscope
 * share. Told as missed are those that no probe has told of, where it is met before the jump.
 *
 * A child can say any number. What is less than before, or more than a machine could call, is not
 * taken, nor what that function says later. Who forks without end has a share of what is kept of
 * children, and takes it from nobody else.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "capture/inside/inside_private.h"
#include "probe/account.h"
#include "probe/helper.h"

#define INTERVAL_NS   200000000ull
#define ORPHANS_MOST  256 /* 130 KiB each */
#define ORPHANS_USER  64  /* of a user but root */
#define CHILDREN_MOST 8192
#define CHILDREN_USER 2048

struct fork_slot {
	uint16_t hook;
	bool counts; /* it is one that records */
	bool met;    /* a probe lies before the jump */
	bool bad;
	struct inside_total *total; /* NULL: children have not called it */
	uint64_t calls;
};

/* Of a process; and of one that ended, for as long as its children may go on. */
struct inside_forks {
	struct inside_process *process; /* NULL: it ended */
	uint64_t owner;                 /* probe/person.h */
	const uint64_t *counts;         /* by slot */
	struct fork_slot *slots;
	uint32_t n;
	uint64_t read_ns;
	bool any;        /* children */
	bool unknown;    /* of some it is not known when they end */
	size_t children; /* of the others, those that have not ended */
	struct inside_forks *next;
};

void inside_forks_init(struct inside *inside)
{
	inside->of_orphans = (struct quota){ .user = { ORPHANS_USER }, .all = { ORPHANS_MOST } };
	inside->of_children = (struct quota){ .user = { CHILDREN_USER }, .all = { CHILDREN_MOST } };
}

struct inside_forks *inside_forks_new(struct inside_process *process)
{
	struct inside *inside = process->inside;
	struct inside_forks *forks;

	if (!inside->options.follow)
		return NULL; /* children are no targets */
	forks = xcalloc(1, sizeof(*forks));
	forks->process = process;
	forks->owner = process->owner;
	forks->counts = agents_probes_children(inside->agents, (pid_t)process->pid);
	forks->read_ns = clock_now_ns();
	return forks;
}

static void free_forks(struct inside_forks *forks)
{
	agents_probes_children_free(forks->counts);
	free(forks->slots);
	free(forks);
}

void inside_forks_slot(struct inside_process *process, uint32_t slot, const struct hook *hook,
                       bool met)
{
	struct inside_forks *forks = process->forks;

	if (!forks || slot >= AGENT_SLOTS_MOST)
		return;
	if (slot >= forks->n) {
		forks->slots = xrealloc(forks->slots, (slot + 1) * sizeof(*forks->slots));
		for (uint32_t i = forks->n; i <= slot; i++)
			forks->slots[i] = (struct fork_slot){ 0 };
		forks->n = slot + 1;
	}
	forks->slots[slot] = (struct fork_slot){ .hook = hook->id, .counts = true, .met = met };
}

static void inside_forks_begin(struct inside_process *process)
{
	if (process->forks)
		process->forks->any = true;
}

/* ---- what they have called ------------------------------------------------------------------- */

static void read_slot(struct inside *inside, struct fork_slot *at, uint64_t calls, uint64_t most)
{
	const struct module *module = NULL;
	const struct hook *hook = modules_hook(inside->options.modules, at->hook, &module);
	uint64_t more = calls - at->calls;

	if (!hook || calls == at->calls)
		return;
	if (calls < at->calls || more > most) {
		at->bad = true;
		inside->bad_records++;
		return;
	}
	at->calls = calls;
	/* sums are made in the kernel, and its probes stay */
	if (at->met && inside->options.fold)
		return;
	inside_total_add_children(inside, &at->total, hook, module, more);
}

static void read_forks(struct inside *inside, struct inside_forks *forks)
{
	uint64_t now_ns = clock_now_ns(), most = inside_calls_most(forks->read_ns, now_ns);

	for (uint32_t i = 0; forks->any && forks->counts && i < forks->n; i++) {
		struct fork_slot *at = &forks->slots[i];

		if (at->counts && !at->bad)
			read_slot(inside, at, __atomic_load_n(&forks->counts[i], __ATOMIC_RELAXED),
			          most);
	}
	forks->read_ns = now_ns;
}

void inside_forks_read(struct inside *inside)
{
	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		if (process->forks)
			read_forks(inside, process->forks);
	}
	for (struct inside_forks *forks = inside->orphans; forks; forks = forks->next)
		read_forks(inside, forks);
	inside->forks_ns = inside->now_ns;
	inside_totals_tell(inside);
}

void inside_forks_turn(struct inside *inside)
{
	if (inside->now_ns - inside->forks_ns < INTERVAL_NS)
		return;
	modules_lock(inside->options.modules);
	inside_forks_read(inside);
	modules_unlock(inside->options.modules);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void read_once_more(struct inside *inside, struct inside_forks *forks)
{
	modules_lock(inside->options.modules);
	read_forks(inside, forks);
	modules_unlock(inside->options.modules);
}

static bool may_go_on(const struct inside_forks *forks)
{
	return forks->any && forks->counts && (forks->children || forks->unknown);
}

/* Its children may go on. */
static void forget_forks(struct inside *inside, struct inside_forks *forks)
{
	for (struct inside_child *child = inside->children; child && forks->children;
	     child = child->hh.next) {
		if (child->forks == forks)
			child->forks = NULL;
	}
	free_forks(forks);
}

/* Those that were forked without a mapping are among those there was no room for. */
static void tell_dropped(struct inside *inside, const struct inside_process *process)
{
	modules_lock(inside->options.modules);
	modules_miss(inside->options.modules, MISS_OVER_BUDGET, NULL, NULL, process->pid,
	             "calls of its children after its own end are not counted: that is done for "
	             "%d processes that ended, and for %d of one user's",
	             ORPHANS_MOST, ORPHANS_USER);
	modules_unlock(inside->options.modules);
}

void inside_forks_leave(struct inside_process *process)
{
	struct inside *inside = process->inside;
	struct inside_forks *forks = process->forks;

	process->forks = NULL;
	if (!forks)
		return;
	forks->process = NULL;
	read_once_more(inside, forks);
	if (may_go_on(forks) && !quota_take(&inside->of_orphans, forks->owner, 0, 1)) {
		forks->next = inside->orphans;
		inside->orphans = forks;
		return;
	}
	if (forks->any && (!forks->counts || may_go_on(forks)))
		tell_dropped(inside, process);
	forget_forks(inside, forks);
}

/* Its last child has ended. */
static void leave_orphan(struct inside *inside, struct inside_forks *forks)
{
	struct inside_forks **at = &inside->orphans;

	read_once_more(inside, forks);
	while (*at != forks)
		at = &(*at)->next;
	*at = forks->next;
	quota_give(&inside->of_orphans, forks->owner, 0, 1);
	free_forks(forks);
}

void inside_forks_free(struct inside *inside)
{
	struct inside_forks *forks;

	inside_children_forget(inside);
	while ((forks = inside->orphans)) {
		inside->orphans = forks->next;
		free_forks(forks);
	}
	quota_free(&inside->of_orphans);
}

void inside_forks_tell(struct inside *inside)
{
	if (inside->of_children.refused)
		modules_miss(inside->options.modules, MISS_OVER_BUDGET, NULL, NULL, 0,
		             "%" PRIu64
		             " children of processes that are recorded inside were more than are "
		             "kept (%d, and %d of one user's): calls of theirs that probes told of "
		             "may be among those that were counted",
		             inside->of_children.refused, CHILDREN_MOST, CHILDREN_USER);
}

/* ---- who the children are ---------------------------------------------------------------------
 */

static struct inside_child *child_find(const struct inside *inside, uint32_t pid)
{
	return MAP_FIND(inside->children, &pid);
}

const struct inside_child *inside_child_find(const struct inside *inside, uint32_t pid)
{
	return inside->children ? child_find(inside, pid) : NULL;
}

/* Then: by now the process may have ended. */
static bool had_agent(const struct inside_process *process, uint64_t time_ns)
{
	return process && process->records && process->came_ns <= time_ns &&
	       (process->ready || time_ns < process->gone_ns);
}

/* NULL: there is no room. */
static struct inside_child *new_child(struct inside *inside, uint32_t pid, uint64_t owner)
{
	struct inside_child *child;

	if (quota_take(&inside->of_children, owner, 0, 1))
		return NULL;
	child = MAP_ADD(inside->children, pid, &pid);
	child->owner = owner;
	return child;
}

void inside_forked_child(struct inside *inside, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	struct inside_process *process = inside_process_find(inside, parent);
	const struct inside_child *of = child_find(inside, parent);
	struct inside_forks *forks = of ? of->forks : process ? process->forks : NULL;
	struct inside_child *new;

	if (process)
		inside_forks_begin(process);
	if (child_find(inside, child))
		return;
	new = of || had_agent(process, time_ns)
	              ? new_child(inside, child, of ? of->owner : process->owner)
	              : NULL;
	if (forks && !new)
		forks->unknown = true;
	if (!new)
		return;
	new->root = of ? of->root : parent;
	new->forked_ns = of ? of->forked_ns : time_ns;
	new->forks = forks;
	if (forks)
		forks->children++;
}

static void drop_child(struct inside *inside, struct inside_child *child)
{
	struct inside_forks *forks = child->forks;

	quota_give(&inside->of_children, child->owner, 0, 1);
	MAP_DROP(inside->children, child);
	if (forks && !--forks->children && !forks->process && !forks->unknown)
		leave_orphan(inside, forks);
}

/* It ended, executes another program, or loads what its parent had not. */
void inside_no_child(struct inside *inside, uint32_t pid)
{
	struct inside_child *child = child_find(inside, pid);

	if (child)
		drop_child(inside, child);
}

/* Its thunks go on to count. */
void inside_child_loads(struct inside *inside, uint32_t pid)
{
	struct inside_child *child = child_find(inside, pid);

	if (child && child->forks)
		child->forks->unknown = true;
	inside_no_child(inside, pid);
}

/* Whether its thunks count a function's calls: it has the jumps of that moment. */
static bool child_counts(const struct inside *inside, const struct inside_child *child,
                         const struct hook *hook, const struct module *module)
{
	const struct inside_process *root =
		inside_process_find((struct inside *)inside, child->root);
	const struct inside_module *at = root ? root->modules : NULL;

	while (at && !(at->module == module && at->told && inside_module_tells(at, hook) &&
	               at->since_ns <= child->forked_ns))
		at = at->next;
	return at || !root;
}

void inside_told_child(struct inside *inside, const struct wire_call *call, const struct hook *hook,
                       const struct module *module)
{
	const struct inside_child *child = inside_child_find(inside, call->head.tgid);

	if (child && child_counts(inside, child, hook, module))
		inside_total_told_child(inside, hook, module);
}

void inside_children_forget(struct inside *inside)
{
	struct inside_child *child, *next;

	HASH_ITER (hh, inside->children, child, next) {
		if (child->forks)
			child->forks->unknown = true;
		drop_child(inside, child);
	}
}

/* What is diverted of a module of a process, and how the programs are told of it. */

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

/* Whether its entries still lead to the agent. */
static bool is_there(const struct inside_module *at)
{
	uint32_t pid = at->process->pid;
	uint8_t code[INSIDE_LOOKED_AT];

	if (!at->check_at)
		return true;
	if (!helper_memory((pid_t)pid, at->check_at, code, sizeof(code)))
		return !inside_process_has_memory(pid); /* it was, as the process has ended */
	return jumps_to_area(at, code, sizeof(code));
}

static void tell_unseen(struct inside_process *process, const struct inside_module *at,
                        uint64_t then_ns)
{
	struct inside *inside = process->inside;

	if (process->unseen)
		return;
	process->unseen = true;
	modules_lock(inside->options.modules);
	modules_miss(
		inside->options.modules, MISS_OVER_BUDGET, NULL, at->module->name, process->pid,
		"calls from %.0f ms on may be missing: whether it was loaded anew is not known, "
		"as its user's time for looks at what processes have mapped is used up",
		inside_ms(inside, then_ns));
	modules_unlock(inside->options.modules);
}

/* On its user's account: a process can map files without end. */
void inside_modules_still_there(struct inside_process *process, uint64_t then_ns)
{
	bool over = look_time_is_over(LOOK_AT_MAPS, process->owner);
	uint64_t busy_ns = helper_busy_ns();

	for (struct inside_module *at = process->modules; at; at = at->next) {
		at->absent = false;
		if (at->state != INSIDE_DIVERTED)
			continue;
		if (over)
			tell_unseen(process, at, then_ns);
		else if (!is_there(at))
			inside_module_left(at, then_ns);
	}
	look_time_charge(LOOK_AT_MAPS, process->owner, helper_busy_ns() - busy_ns);
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
