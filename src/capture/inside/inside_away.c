// SPDX-License-Identifier: MIT
#include "capture/inside/inside_away.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "capture/inside/inside_private.h"
#include "probe/maps.h"

#define SETTLED_NS      300000000ull
#define SETTLED_MOST_NS 10000000000ull
#define WORTH_NS        5000000000ull /* probes that were away for less were not worth it */
#define LOOK_NS         50000000ull   /* between looks at who is still in a call, at first */
#define LOOK_MOST_NS    1600000000ull /* 8,000 threads take some 30 ms */

void away_begin(struct away *away, uint64_t now_ns)
{
	*away = (struct away){ .unsettled_ns = now_ns, .settle_ns = SETTLED_NS };
}

enum away_step away_next(struct away *away, bool covered, uint64_t now_ns)
{
	if (!covered) {
		away->unsettled_ns = now_ns;
		return away->state == AWAY_THERE ? AWAY_NOTHING : AWAY_RETURN;
	}
	if (away->state == AWAY_THERE && now_ns - away->unsettled_ns >= away->settle_ns)
		return AWAY_WATCH;
	if (away->state != AWAY_WATCHED || now_ns < away->look_ns)
		return AWAY_NOTHING;
	away->look_ns = now_ns + away->every_ns;
	return AWAY_LOOK;
}

void away_busy(struct away *away, uint64_t now_ns)
{
	away->every_ns = away->every_ns >= LOOK_MOST_NS / 2 ? LOOK_MOST_NS : 2 * away->every_ns;
	away->look_ns = now_ns + away->every_ns;
}

/* Who was about to map it then, and was not told of, has done so by the first look. */
void away_watched(struct away *away, uint64_t now_ns)
{
	away->state = AWAY_WATCHED;
	away->every_ns = LOOK_NS;
	away->look_ns = now_ns + LOOK_NS;
}

void away_gone(struct away *away, uint64_t now_ns)
{
	away->state = AWAY_GONE;
	away->gone_ns = now_ns;
}

void away_returned(struct away *away, uint64_t now_ns)
{
	bool worth = away->state == AWAY_GONE && now_ns - away->gone_ns >= WORTH_NS;

	away->settle_ns = worth ? SETTLED_NS : 2 * away->settle_ns;
	if (away->settle_ns > SETTLED_MOST_NS)
		away->settle_ns = SETTLED_MOST_NS;
	away->state = AWAY_THERE;
	away->unsettled_ns = now_ns;
}

#define SWEEP_NS      10000000ull   /* of a turn */
#define SWEEP_MOST_NS 1000000000ull /* in all: of thousands of processes, or huge ones */

/* ---- modules -------------------------------------------------------------------------------- */

struct inside_away {
	struct module *module;
	struct away away;
	unsigned n_inside; /* processes that are recorded inside */
	bool others;       /* some with it are not, as far as is known */
	bool in_sweep, elsewhere, swept;
	bool leans;    /* processes have it that have no driver: see judge_lean */
	bool maybe;    /* the process that is looked at is one */
	bool open;     /* somebody is in a call that its probes are to tell of */
	bool launches; /* of the runtime were looked at when it was swept */
	bool told;
	uint64_t moved_ns; /* what stays has links of its own since then */
	UT_hash_handle hh; /* by module */
};

static struct inside_away *away_of(const struct inside *inside, const struct module *module)
{
	return MAP_FIND(inside->away, &module);
}

static void meet_modules(struct inside *inside)
{
	for (size_t i = HASH_COUNT(inside->away); i < modules_count(inside->options.modules); i++) {
		struct inside_away *it = xcalloc(1, sizeof(*it));

		it->module = modules_at(inside->options.modules, i);
		away_begin(&it->away, inside->now_ns);
		HASH_ADD_PTR(inside->away, module, it);
	}
}

static bool tells(const struct inside_module *at)
{
	return at->state == INSIDE_DIVERTED && at->until_ns == UINT64_MAX && at->process->ready &&
	       !at->process->taking;
}

/* An agent that is gone where nobody said that its process goes on: that has ended. */
static bool needs_probes(const struct inside_module *at)
{
	return at->state != INSIDE_LEFT && (at->process->ready || at->process->ended_ns);
}

static void count_processes(struct inside *inside)
{
	struct inside_away *it, *next;

	HASH_ITER (hh, inside->away, it, next) {
		it->n_inside = 0;
		it->others = false;
	}
	for (struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		for (const struct inside_module *at = process->modules; at; at = at->next) {
			it = away_of(inside, at->module);
			if (it && tells(at))
				it->n_inside++;
			else if (it && needs_probes(at))
				it->others = true;
		}
	}
}

static void return_one(struct inside *inside, struct inside_away *it)
{
	modules_put_back(inside->options.modules, it->module);
	away_returned(&it->away, inside->now_ns);
	it->in_sweep = it->elsewhere = it->swept = it->leans = false;
}

/* Who maps a driver is told of no more, so what leans on that comes back, too. */
static void put_back(struct inside *inside, struct inside_away *it)
{
	struct inside_away *other, *next;

	return_one(inside, it);
	if (!it->module->has[LAYER_DRIVER])
		return;
	HASH_ITER (hh, inside->away, other, next) {
		if (other->leans && other->away.state != AWAY_THERE)
			return_one(inside, other);
	}
}

/* With the modules' lock. */
static void put_all_back(struct inside *inside)
{
	struct inside_away *it, *next;

	HASH_ITER (hh, inside->away, it, next) {
		if (it->away.state != AWAY_THERE)
			put_back(inside, it);
	}
}

void inside_away_put_back(struct inside *inside, const struct inside_process *process)
{
	modules_lock(inside->options.modules);
	for (const struct inside_module *at = process->modules; at; at = at->next) {
		struct inside_away *it = away_of(inside, at->module);

		if (it && it->away.state != AWAY_THERE && at->state != INSIDE_LEFT)
			put_back(inside, it);
	}
	modules_unlock(inside->options.modules);
}

/* ---- who else has it mapped ----------------------------------------------------------------- */

struct inside_sweep {
	uint32_t *pids;
	size_t n, at;
	uint64_t spent_ns;
	bool drivers_told; /* since it began */
};

struct inside_sweep_of {
	struct inside *inside;
	const struct inside_process *process;               /* NULL: it has no agent */
	const struct inside_child *child;                   /* of that process; or NULL */
	const struct inside_away *seen[INSIDE_MODULES_MAX]; /* that hold a first function */
	size_t n_seen;
	bool driver; /* it has one mapped */
};

/* In how many places the process has it. Another one than is diverted has entries of its own. */
static bool is_second(struct inside_sweep_of *of, const struct inside_away *it,
                      const struct mapping *mapping)
{
	uint64_t entry = it->module->n_hooks ? it->module->hooks[0].entry : 0;

	if (entry < mapping->offset || entry - mapping->offset >= mapping->end - mapping->start)
		return false;
	for (size_t i = 0; i < of->n_seen; i++) {
		if (of->seen[i] == it)
			return true;
	}
	if (of->n_seen == INSIDE_MODULES_MAX)
		return true;
	of->seen[of->n_seen++] = it;
	return false;
}

static bool is_recorded(const struct inside_sweep_of *of, const struct module *module)
{
	const struct inside_module *at = of->process ? of->process->modules : NULL;

	while (at && (at->module != module || !tells(at)))
		at = at->next;
	return at && (!of->child || at->since_ns <= of->child->forked_ns);
}

static int look_at_mapping(const struct mapping *mapping, void *data)
{
	struct inside_sweep_of *of = data;
	const struct module *module = modules_of_mapping(of->inside->options.modules, mapping);
	struct inside_away *it = module ? away_of(of->inside, module) : NULL;

	of->driver |= module && module->has[LAYER_DRIVER];
	if (!it || !it->in_sweep)
		return 0;
	if (is_recorded(of, module))
		it->elsewhere |= is_second(of, it, mapping);
	else if (of->process || of->child || module->has[LAYER_DRIVER])
		it->elsewhere = true;
	else
		it->maybe = true;
	return 0;
}

/*
 * A runtime without a driver, as in the launcher of a training, calls nothing. Its first call loads
 * the driver, and of that is told where the probes of all drivers are watched. Then its probes come
 * back (modules_look.c).
 */
static void judge_lean(const struct inside_sweep_of *of)
{
	bool may_lean = !of->driver && of->inside->sweep->drivers_told;
	struct inside_away *it, *next;

	HASH_ITER (hh, of->inside->away, it, next) {
		it->leans |= it->maybe && may_lean;
		it->elsewhere |= it->maybe && !may_lean;
		it->maybe = false;
	}
}

/* Whether the programs tell of each process that maps a driver. */
static bool drivers_are_told(const struct inside *inside)
{
	for (size_t i = 0; i < modules_count(inside->options.modules); i++) {
		const struct module *module = modules_at(inside->options.modules, i);

		if (module->has[LAYER_DRIVER] && module->attached &&
		    module->probes == PROBES_THERE && !module->expected)
			return false;
	}
	return true;
}

static void set_elsewhere(struct inside *inside)
{
	struct inside_away *it, *next;

	HASH_ITER (hh, inside->away, it, next) {
		it->elsewhere |= it->in_sweep;
	}
}

static void sweep_process(struct inside *inside, uint32_t pid)
{
	const struct inside_child *child = inside_child_find(inside, pid);
	struct inside_sweep_of of = {
		.inside = inside,
		.process = inside_process_find(inside, child ? child->root : pid),
		.child = child,
	};
	struct err err = { 0 };
	int r;

	r = maps_each((pid_t)pid, look_at_mapping, &of, &err);
	judge_lean(&of);
	if (r && r != -ESRCH) /* nobody knows */
		set_elsewhere(inside);
}

/* Of all modules that wait for it. */
static void begin_sweep(struct inside *inside)
{
	struct inside_away *it, *next;
	bool due = false;

	HASH_ITER (hh, inside->away, it, next) {
		it->in_sweep = it->away.state == AWAY_WATCHED && !it->swept &&
		               inside->now_ns >= it->away.look_ns;
		it->elsewhere = false;
		it->leans = it->leans && !it->in_sweep;
		due |= it->in_sweep;
	}
	if (!due)
		return;
	inside->sweep = xcalloc(1, sizeof(*inside->sweep));
	inside->sweep->drivers_told = drivers_are_told(inside);
	inside->sweep->pids = programs_targets(inside->options.programs, &inside->sweep->n);
	if (!inside->sweep->pids) {
		inside->sweep->n = 0;
		set_elsewhere(inside);
	}
}

static void drop_sweep(struct inside *inside)
{
	if (inside->sweep)
		free(inside->sweep->pids);
	free(inside->sweep);
	inside->sweep = NULL;
}

/* A part of it, and what it has found by then. */
static void go_on_sweeping(struct inside *inside)
{
	struct inside_sweep *sweep = inside->sweep;
	uint64_t begin_ns = clock_now_ns(), now_ns = begin_ns;
	struct inside_away *it, *next;

	while (sweep->at < sweep->n && now_ns < begin_ns + SWEEP_NS) {
		sweep_process(inside, sweep->pids[sweep->at++]);
		now_ns = clock_now_ns();
	}
	sweep->spent_ns += now_ns - begin_ns;
	if (sweep->spent_ns > SWEEP_MOST_NS) {
		set_elsewhere(inside);
		sweep->at = sweep->n;
	}
	if (sweep->at < sweep->n)
		return;
	HASH_ITER (hh, inside->away, it, next) {
		it->swept |= it->in_sweep && !it->elsewhere;
		it->in_sweep = false;
	}
	drop_sweep(inside);
}

/* ---- who is in a call ----------------------------------------------------------------------- */

static void look_at_call(void *data, const struct wire_head *record, size_t bytes)
{
	struct inside *inside = data;
	const struct wire_call *call = (const struct wire_call *)record;
	const struct module *module = NULL;
	const struct hook *hook = modules_hook(inside->options.modules, record->hook, &module);
	struct inside_away *it = hook ? away_of(inside, module) : NULL;

	if (it && !it->open && !(hook->moved && call->begin_ns >= it->moved_ns) &&
	    !inside_leaves_out(inside, record) && !inside_was_left(inside, call) &&
	    !inside_child_find(inside, record->tgid))
		it->open = true;
}

static bool any_swept(struct inside *inside)
{
	struct inside_away *it, *next;
	bool any = false;

	HASH_ITER (hh, inside->away, it, next) {
		it->open = false;
		any |= it->swept && it->away.state == AWAY_WATCHED &&
		       inside->now_ns >= it->away.look_ns;
	}
	return any;
}

/* ---- taking away ---------------------------------------------------------------------------- */

struct inside_stays {
	const struct inside *inside;
	const struct module *module;
};

/* What is not diverted in one of the processes. */
static bool stays(void *data, const struct hook *hook)
{
	const struct inside_stays *of = data;

	for (const struct inside_process *process = of->inside->processes; process;
	     process = process->hh.next) {
		for (const struct inside_module *at = process->modules; at; at = at->next) {
			if (at->module == of->module && tells(at) && !inside_module_tells(at, hook))
				return true;
		}
	}
	return false;
}

static size_t n_that_stay(const struct module *module)
{
	size_t n = 0;

	for (size_t i = 0; i < module->n_hooks; i++)
		n += module->hooks[i].hooked;
	return n;
}

/* "libcuda.so.1 needs no probes from 709 ms on, but for 3 functions: they were taken away" */
static void tell_gone(struct inside *inside, struct inside_away *it)
{
	size_t stay = n_that_stay(it->module);
	char but[64] = "";

	if (it->told)
		return;
	it->told = true;
	if (stay)
		snprintf(but, sizeof(but), ", but for %zu function%s", stay, stay == 1 ? "" : "s");
	inside_notice(inside, "%s needs no probes from %.0f ms on%s: they were taken away",
	              it->module->name, (double)(inside->now_ns - inside->begin_ns) / 1e6, but);
}

/* What is to stay gets links of its own, once; then calls that began before have to be over. */
static void look(struct inside *inside, struct inside_away *it)
{
	struct inside_stays of = { inside, it->module };
	struct err err = { 0 };

	if (!it->moved_ns) {
		if (module_move_hooks(it->module, stays, &of, &err))
			put_back(inside, it);
		it->moved_ns = clock_now_ns();
	} else if (!it->open) {
		module_take_away(it->module);
		away_gone(&it->away, inside->now_ns);
		tell_gone(inside, it);
	} else {
		away_busy(&it->away, inside->now_ns);
	}
}

static void begin_watching(struct inside *inside, struct inside_away *it)
{
	it->swept = it->in_sweep = it->elsewhere = false;
	it->moved_ns = 0;
	it->launches = wire_runtime_launches(programs_state(inside->options.programs));
	if (modules_watch(inside->options.modules, it->module))
		away_watched(&it->away, inside->now_ns);
	else
		away_returned(&it->away, inside->now_ns);
}

/* The probes will be there in time for whoever maps the module next. */
static bool nobody_comes_unheld(const struct inside *inside)
{
	return inside->hold || (inside->options.target == TARGET_PIDS && !inside->options.follow);
}

/* With the modules' lock: it may be that its probes were put back on the thread that holds. */
static void turn_module(struct inside *inside, struct inside_away *it)
{
	bool launches = wire_runtime_launches(programs_state(inside->options.programs));
	bool covered = it->n_inside && !it->others;

	if (it->away.state != AWAY_THERE && it->module->probes == PROBES_THERE) {
		put_back(inside, it);
		return;
	}
	if (it->away.state != AWAY_THERE) {
		covered |= !it->n_inside && !it->others && nobody_comes_unheld(inside);
		covered &= !it->elsewhere && it->launches == launches && !it->module->rewritten;
		covered &= !it->leans || drivers_are_told(inside);
	}
	switch (away_next(&it->away, covered, inside->now_ns)) {
	case AWAY_NOTHING:
		break;
	case AWAY_WATCH:
		begin_watching(inside, it);
		break;
	case AWAY_LOOK:
		if (it->swept)
			look(inside, it);
		break;
	case AWAY_RETURN:
		put_back(inside, it);
		break;
	}
}

/* What told of processes and their files may be among what was lost. */
static bool has_lost_records(struct inside *inside)
{
	const struct wire_state *state = programs_state(inside->options.programs);
	uint64_t lost = state->lost[LOST_RECORDS] + state->lost[LOST_TARGETS_FULL];
	bool more = lost != inside->lost_records;

	inside->lost_records = lost;
	return more;
}

void inside_away_turn(struct inside *inside)
{
	struct inside_away *it, *next;

	if (!inside->options.takes_away)
		return;
	meet_modules(inside);
	count_processes(inside);
	if (inside->sweep)
		go_on_sweeping(inside);
	else
		begin_sweep(inside);
	if (any_swept(inside))
		programs_open_calls(inside->options.programs, look_at_call, inside);
	modules_lock(inside->options.modules);
	if (has_lost_records(inside)) {
		inside_children_forget(inside);
		put_all_back(inside);
	}
	HASH_ITER (hh, inside->away, it, next)
		turn_module(inside, it);
	modules_unlock(inside->options.modules);
}

/* The probes tell of what comes after the entries were put back; where all have ended, of nothing.
 */
void inside_away_stop(struct inside *inside)
{
	drop_sweep(inside);
	for (const struct inside_process *process = inside->processes; process;
	     process = process->hh.next) {
		if (inside_process_has_memory(process->pid))
			inside_away_put_back(inside, process);
	}
}

void inside_away_free(struct inside *inside)
{
	drop_sweep(inside);
	inside_children_forget(inside);
	MAP_FREE(inside->away, free);
}
