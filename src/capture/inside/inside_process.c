// SPDX-License-Identifier: MIT
/* How a process gets its functions diverted: one module after the other, one step at a time. */
#include "capture/inside/inside_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "probe/hold.h"
#include "probe/person.h"

#define AGAIN_NS   100000000ull /* until the next try, doubled each time */
#define TRIES_MOST 8
#define LOOK_NS    1000000u /* until it is asked again whether its file was looked at */
/* Until an agent's library is probed for stacks, which takes a moment, and longer where other files
 * are looked at before it. A command may wait meanwhile. */
#define WALKS_NS      1500000000ull
#define WALKS_HELD_NS 500000000ull
/* Of an agent, until the process executes another program: each time all of its libraries are
 * judged. */
#define COMINGS_MOST 8
#define TOLD_MOST    16 /* processes by themselves; of the others the last sentence tells */
#define TOLD_OF_ONE  8  /* sentences of a process, so that it leaves others room */

/* ---- processes ------------------------------------------------------------------------------ */

struct inside_process *inside_process_find(struct inside *inside, uint32_t pid)
{
	struct inside_process *process = inside->recent;

	if (process && process->pid == pid)
		return process;
	process = MAP_FIND(inside->processes, &pid);
	if (process)
		inside->recent = process;
	return process;
}

struct inside_process *inside_process_get(struct inside *inside, uint32_t pid)
{
	struct inside_process *process = inside_process_find(inside, pid);

	if (process)
		return process;
	process = MAP_ADD(inside->processes, pid, &pid);
	process->inside = inside;
	return process;
}

void inside_process_drop(struct inside *inside, struct inside_process *process)
{
	struct inside_module *at, *next;

	inside->recent = NULL;
	inside_nesting_forget(inside, process->pid);
	HASH_DEL(inside->processes, process);
	for (at = process->modules; at; at = next) {
		next = at->next;
		inside_module_free(at);
	}
	probe_records_free(process->records);
	inside_counts_free(process);
	inside_forks_leave(process);
	free(process->cookies);
	free(process->areas);
	inside_files_free(process);
	free(process->ended_why);
	free(process);
}

bool inside_process_tells(struct inside_process *process, uint32_t most)
{
	return process->n_told++ < TOLD_OF_ONE && process->inside->n_told++ < most;
}

void inside_process_keeps(struct inside_process *process, const char *why)
{
	struct inside *inside = process->inside;

	if (process->kept)
		return;
	process->kept = true;
	if (inside_process_tells(process, TOLD_MOST))
		inside_notice(inside, "process %u keeps its probes: %s", process->pid, why);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* Nothing is under way any more: the module has its probes, for now or for good. */
void inside_module_give_up(struct inside_module *at, const char *why)
{
	at->process->current = NULL;
	inside_module_keeps(at, why);
}

static void try_again(struct inside_module *at, const char *why)
{
	if (++at->tries > TRIES_MOST) {
		inside_module_give_up(at, why);
		return;
	}
	at->process->current = NULL;
	snprintf(at->why, sizeof(at->why), "%s", why);
	at->due_ns = at->process->inside->now_ns + (AGAIN_NS << at->tries);
}

static void ask_for_slots(struct inside_module *at, uint64_t area, uint32_t first)
{
	struct inside_process *process = at->process;
	struct agent_slot *slots;
	size_t n;

	at->area = area;
	slots = inside_module_slots(at, first, &n);
	if (!slots) {
		inside_module_give_up(at, "the agent has no room for so many functions");
		return;
	}
	at->state = INSIDE_SLOTS;
	if (first + n > process->n_slots)
		process->n_slots = first + (uint32_t)n;
	at->request = agents_probes_set(process->inside->agents, (pid_t)process->pid, slots, n);
	free(slots);
	if (at->request < 0)
		inside_module_give_up(at, strerror(-at->request));
}

static bool reaches(const struct inside_area *area, const struct divert_need *need)
{
	return area->address + area->bytes <= need->near_start + DIVERT_REACH &&
	       area->address + DIVERT_REACH >= need->near_end;
}

static struct inside_area *earlier_area(struct inside_module *at)
{
	struct inside_process *process = at->process;

	for (size_t i = 0; i < process->n_areas; i++) {
		struct inside_area *area = &process->areas[i];

		if (!area->used && area->bytes == at->area_bytes &&
		    area->n_slots == inside_module_movable(at) && reaches(area, &at->need))
			return area;
	}
	return NULL;
}

/* One of an earlier session if there is one, or processes would run out of them. */
static void ask_for_area(struct inside_module *at)
{
	struct inside_area *area = earlier_area(at);

	at->again = area != NULL;
	if (area) {
		area->used = true;
		ask_for_slots(at, area->address, area->first_slot);
		return;
	}
	at->state = INSIDE_AREA;
	at->request = agents_probes_area(at->process->inside->agents, (pid_t)at->process->pid,
	                                 at->need.near_start +
	                                         (at->need.near_end - at->need.near_start) / 2,
	                                 (uint32_t)at->need.bytes);
	if (at->request < 0)
		inside_module_give_up(at, strerror(-at->request));
}

/* Whether it is to be known yet by whom stacks of its calls are walked. */
static bool awaits_walks(struct inside_process *process)
{
	const struct inside_options *options = &process->inside->options;
	uint64_t most_ns = process->waits ? WALKS_HELD_NS : WALKS_NS;

	if (process->walks_known || !options->stack_kinds || !options->walks)
		return false;
	process->walks = options->walks(options->data, (pid_t)process->pid, false);
	process->walks_known =
		process->walks || process->inside->now_ns - process->came_ns >= most_ns;
	return !process->walks_known;
}

static void begin(struct inside_module *at)
{
	struct err err = { 0 };
	int rc = awaits_walks(at->process) ? -EINPROGRESS : inside_module_look(at, &at->need, &err);

	if (rc == -EINPROGRESS) {
		at->due_ns = at->process->inside->now_ns + LOOK_NS;
		return;
	}
	if (rc == -ENXIO) {
		/* The kernel has one place for both files, and the hook that a call is told by may
		 * be of the other one. */
		inside_module_left(at, at->process->inside->now_ns);
		at->absent = true;
		return;
	}
	at->process->current = at;
	if (rc == -EAGAIN) {
		try_again(at, err.text);
		return;
	}
	if (rc) {
		inside_module_give_up(at, err.text);
		return;
	}
	at->area_bytes = at->need.bytes;
	ask_for_area(at);
}

/* What cuscope holds by ptrace nobody else can stop. First no more of its threads are held. */
bool inside_process_let_go(struct inside_process *process)
{
	struct inside *inside = process->inside;

	if (!inside->hold)
		return true;
	programs_stop_holding_one(inside->options.programs, (pid_t)process->pid);
	return hold_let_go(inside->hold, (pid_t)process->pid) == 0;
}

void inside_process_hold_again(struct inside_process *process)
{
	struct inside *inside = process->inside;
	uint32_t follow = inside->options.follow ? TARGET_FOLLOW : 0;

	if (!inside->hold || inside->stopping)
		return;
	hold_take(inside->hold, (pid_t)process->pid);
	programs_target_add(inside->options.programs, (pid_t)process->pid, follow | TARGET_HOLD);
}

static void put(struct inside_module *at)
{
	struct inside *inside = at->process->inside;
	struct err err = { 0 };

	if (inside->stopping) {
		inside_module_give_up(at, "the trace is over");
		return;
	}
	if (!inside_process_let_go(at->process)) {
		inside_process_hold_again(at->process);
		try_again(at, "its threads could not be let go of in time");
		return;
	}
	if (!at->process->nesting)
		inside_nesting_begins(at->process);
	at->process->nesting = true;
	switch (divert_put(inside->divert, at->plan, at->area, at->thunks, &err)) {
	case 0:
		at->state = INSIDE_PUTTING;
		inside->unsure = true;
		break;
	case -EEXIST: /* an earlier area, of other code */
		if (at->again) {
			ask_for_area(at);
			break;
		}
		/* fall through */
	default:
		inside_process_hold_again(at->process);
		inside_module_give_up(at, err.text);
		break;
	case -EAGAIN: /* others make it wait */
		inside_process_hold_again(at->process);
		try_again(at, err.text);
	}
}

/* ---- answers ------------------------------------------------------------------------------- */

/*
 * It executes another one: when that was, is told later (inside_exec). Or it is the same, and only
 * has an agent anew.
 */
static void forget_program(struct inside_process *process)
{
	struct inside *inside = process->inside;

	divert_forget(inside->divert, (pid_t)process->pid);
	process->current = NULL;
	process->ended_ns = 0;
	inside_away_put_back(inside, process);
	for (struct inside_module *at = process->modules; at; at = at->next)
		inside_module_left(at, inside->now_ns);
}

/* What it says of earlier sessions is tried, and compared before anything leads there. */
static void add_areas(struct inside_process *process, const struct agent_probes_answer *answer)
{
	free(process->areas);
	process->areas = xcalloc(answer->n_areas + 1, sizeof(*process->areas));
	process->n_areas = answer->n_areas;
	for (size_t i = 0; i < answer->n_areas; i++) {
		const struct agent_area *area = &answer->areas[i];

		process->areas[i] = (struct inside_area){ .address = area->address,
			                                  .bytes = area->bytes,
			                                  .first_slot = area->first,
			                                  .n_slots = area->n };
	}
}

static void agent_came(struct inside_process *process, const struct agent_probes_answer *answer)
{
	struct inside *inside = process->inside;

	if (!answer->slots) {
		inside_process_keeps(process,
		                     answer->why ? answer->why : "its agent records no calls");
		return;
	}
	if (++process->comings > COMINGS_MOST) {
		/* the last sentence of it, whatever was said of its earlier ends */
		if (process->comings == COMINGS_MOST + 1) {
			process->n_told = 0;
			process->kept = false;
		}
		inside_process_keeps(process, "its agent came more often than agents do");
		return;
	}
	if (process->records) /* another program's */
		forget_program(process);
	probe_records_free(process->records);
	free(process->cookies);
	process->thunks = answer->thunks;
	process->thunk_bytes = answer->thunk_bytes;
	process->slots = answer->slots;
	process->n_slots = answer->used;
	add_areas(process, answer);
	process->cookies = xmalloc(answer->slots * sizeof(*process->cookies));
	for (uint32_t i = 0; i < answer->slots; i++)
		process->cookies[i] = PROBE_NO_COOKIE;
	process->since_ns = inside->begin_ns;
	process->came_ns = inside->now_ns;
	process->kept = process->given_up = process->taking = false;
	process->walks = process->walks_known = false;
	if (inside->options.stack_kinds && inside->options.walks)
		inside->options.walks(inside->options.data, (pid_t)process->pid, true);
	process->records = inside_records_new(process);
	inside_counts_free(process);
	process->counts = inside->options.counts ? inside_counts_new(process) : NULL;
	inside_forks_leave(process);
	process->owner = person_of_process((pid_t)process->pid);
	process->forks = inside_forks_new(process);
	process->ready = true;
	process->waits = inside->options.target == TARGET_COMMAND;
	/* those of GPU times come where CUDA's device is open, which cuInit does before it is
	 * through */
	process->works = inside->own_agents || inside->options.target == TARGET_COMMAND;
	if (process->works)
		inside_modules_find(process);
}

static void on_answer(struct inside_process *process, const struct agent_probes_answer *answer)
{
	struct inside_module *at = process->current;

	if (!at || at->request != answer->request)
		return;
	if (answer->code && at->again) /* its slots were of other functions */
		ask_for_area(at);
	else if (answer->code)
		inside_module_give_up(at, answer->why ? answer->why : strerror(-answer->code));
	else if (at->state == INSIDE_AREA)
		ask_for_slots(at, answer->area, at->process->n_slots);
	else if (at->state == INSIDE_SLOTS)
		put(at);
}

void inside_on_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	struct inside *inside = data;
	struct inside_process *process = inside_process_get(inside, pid);

	switch (answer->news) {
	case AGENT_PROBES_READY:
		agent_came(process, answer);
		break;
	case AGENT_PROBES_ANSWER:
		on_answer(process, answer);
		break;
	case AGENT_PROBES_ENDED:
		inside_process_agent_ended(process, answer->why);
		break;
	}
}

/* "calls of process 123 are recorded in process from 12 ms on: 307 functions of libcuda.so.1" */
static void tell_diverted(struct inside_module *at, uint64_t stopped_ns)
{
	struct inside *inside = at->process->inside;
	uint64_t since = at->since_ns > inside->begin_ns ? at->since_ns - inside->begin_ns : 0;
	bool first = true;

	for (const struct inside_module *other = at->process->modules; other; other = other->next)
		first &= other == at || !other->since_ns;
	inside->n_processes += first;
	inside->n_functions += at->n_diverted;
	if (inside->n_told++ >= TOLD_MOST)
		return;
	if (stopped_ns)
		inside_notice(inside,
		              "%u functions of %s are recorded inside of process %u from %.0f ms "
		              "on; its threads were stopped for %.1f ms",
		              at->n_diverted, at->module->name, at->process->pid, since / 1e6,
		              stopped_ns / 1e6);
	else
		inside_notice(
			inside,
			"%u functions of %s are recorded inside of process %u from %.0f ms on",
			at->n_diverted, at->module->name, at->process->pid, since / 1e6);
}

static void on_put(struct inside_process *process, const struct divert_result *result)
{
	struct inside_module *at = process->current;

	if (!at || at->plan != result->plan || at->state != INSIDE_PUTTING)
		return;
	inside_process_hold_again(process);
	if (result->rc == -EAGAIN && at->tries < TRIES_MOST && !process->inside->stopping) {
		at->state = INSIDE_SLOTS;
		try_again(at, result->why);
		return;
	}
	if (result->rc == -EEXIST && at->again) {
		ask_for_area(at);
		return;
	}
	if (result->rc) {
		if (result->since_ns)
			inside_module_unknown(at, result->since_ns);
		at->state = INSIDE_SLOTS; /* the plan is ours again */
		inside_module_give_up(at, result->why);
		return;
	}
	process->current = NULL;
	at->plan = NULL;
	if (!process->ready) /* its agent has ended meanwhile, and told of calls until last_ns */
		at->until_ns = process->last_ns > result->since_ns ? process->last_ns + 1
		                                                   : result->since_ns;
	inside_module_diverted(at, result);
	tell_diverted(at, result->stopped_ns);
}

static void on_taken(struct inside_process *process, const struct divert_result *result)
{
	struct inside *inside = process->inside;

	process->taking = false;
	inside_process_hold_again(process);
	if (result->rc == -EAGAIN) {
		process->take_ns = process->inside->now_ns + INSIDE_TAKE_NS;
		return;
	}
	if (result->rc) {
		process->given_up = true;
		/* that it has ended, or executes another program, its record tells */
		if (result->rc == -ESRCH)
			return;
		if (result->since_ns)
			inside_process_tell_unknown(process, result->since_ns, "put back");
		if (inside->n_untaken++ < TOLD_MOST)
			inside_warn(inside, "entries of process %u stay diverted: %s", process->pid,
			            result->why);
		inside_process_tell_gap(process, 0);
		return;
	}
	inside_process_tell_gap(process, result->since_ns);
	if (result->changed && !inside->stopping)
		inside_process_tell_changed(process, result->since_ns, result->changed);
	for (struct inside_module *at = process->modules; at; at = at->next) {
		if (at->state == INSIDE_DIVERTED)
			inside_module_left(at, result->since_ns);
	}
}

void inside_on_diverted(void *data, const struct divert_result *result)
{
	struct inside *inside = data;
	struct inside_process *process = inside_process_find(inside, (uint32_t)result->pid);

	if (result->stopped_ns > inside->longest_stop_ns)
		inside->longest_stop_ns = result->stopped_ns;
	if (!process)
		return;
	if (result->plan)
		on_put(process, result);
	else
		on_taken(process, result);
}

/* ---- turns --------------------------------------------------------------------------------- */

bool inside_process_is_out(const struct inside_process *process)
{
	return process->given_up ||
	       (!process->taking && !inside_process_is_diverted(process) &&
	        (!process->current || process->current->state != INSIDE_PUTTING));
}

static bool turn(struct inside_module *at, uint32_t first, uint32_t n, uint32_t does)
{
	return !n || agents_probes_turn(at->process->inside->agents, (pid_t)at->process->pid, first,
	                                n, does) > 0;
}

/*
 * As many launches of the runtime as the programs look at: see runtime_launches.h. Else those that
 * it refuses: one that comes to the driver is the driver's to tell, and costs what a counted call
 * costs.
 */
static void turn_launches(struct inside_module *at, bool on)
{
	if (at->state != INSIDE_DIVERTED || !at->n_launches || at->launches_on == on)
		return;
	if (turn(at, at->first_launch, at->n_refusable, on ? AGENT_SLOT_CALL : AGENT_SLOT_COUNT) &&
	    turn(at, at->first_launch + at->n_refusable, at->n_launches - at->n_refusable,
	         on ? AGENT_SLOT_CALL : AGENT_SLOT_PASSES_ON))
		at->launches_on = on;
}

/* The next step of a module that was refused for a moment begins where its answer was given. */
static void step(struct inside_module *at)
{
	if (at->state == INSIDE_SLOTS) {
		at->process->current = at;
		put(at);
	} else {
		begin(at);
	}
}

/*
 * The driver's module is first: what it keeps decides what the agent tells of the runtime's calls.
 * Sums are of neither where both would count.
 */
static bool may_begin(struct inside_module *at)
{
	const struct inside_module *other = at->process->modules;

	if (at->module->has[LAYER_DRIVER])
		return true;
	for (; other; other = other->next) {
		if (!other->module->has[LAYER_DRIVER] || other->state == INSIDE_LEFT)
			continue;
		if (other->state == INSIDE_KEPT && at->process->inside->options.fold)
			inside_module_keeps(at, "the driver keeps those that its calls lead to");
		if (at->state == INSIDE_KEPT ||
		    (other->state != INSIDE_DIVERTED && other->state != INSIDE_KEPT))
			return false;
	}
	return true;
}

/* Whether all is diverted that can be now. What is to be tried again nobody waits for. */
static bool is_settled(const struct inside_process *process)
{
	bool settled = !process->current, again = false;

	for (const struct inside_module *at = process->modules; at; at = at->next) {
		bool wanted = at->state == INSIDE_WANTED || at->state == INSIDE_SLOTS;

		again |= wanted && at->tries;
		settled &= !wanted;
	}
	return settled || (again && !process->current);
}

/* A command that is in cuInit. */
static void let_go_on(struct inside_process *process)
{
	struct inside *inside = process->inside;

	if (!process->waits)
		return;
	if (is_settled(process)) {
		process->waits = false;
		agents_probes_go(inside->agents, (pid_t)process->pid);
	} else if (inside->now_ns > process->came_ns + AGENT_WAIT_MS * 1000000ull) {
		process->waits = false;
		if (inside->n_told++ < TOLD_MOST)
			inside_notice(inside,
			              "process %u was not diverted within %d s of its start, and "
			              "goes on: until then probes tell of its calls",
			              process->pid, AGENT_WAIT_MS / 1000);
	}
}

void inside_process_turn(struct inside_process *process)
{
	struct inside *inside = process->inside;
	bool launches = wire_runtime_launches(programs_state(inside->options.programs));

	if (inside->stopping || (process->records && !process->ready)) {
		inside_process_take_back(process);
		inside_process_end_untaken(process);
		return;
	}
	inside_counts_turn(process);
	for (struct inside_module *at = process->modules; at && process->ready; at = at->next) {
		turn_launches(at, launches);
		if (!process->current && at->due_ns <= inside->now_ns &&
		    (at->state == INSIDE_WANTED || at->state == INSIDE_SLOTS) && may_begin(at))
			step(at);
	}
	let_go_on(process);
}
