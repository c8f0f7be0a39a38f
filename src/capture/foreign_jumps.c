// SPDX-License-Identifier: MIT
#include "capture/foreign_jumps.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/patched.h"

#define JUMP_BYTES 5           /* a probe that is nearer to the entry has no jump before it */
#define LEAST_NS   100000000u  /* between two looks, */
#define PART_OF    100u        /* of which each costs one part in so many, */
#define TURN_NS    10000000u   /* of a look in one turn */
#define FINISH_NS  500000000ul /* of the last one */
#define TOLD_MOST  4096        /* processes and their libraries that are remembered */

struct told_jumps {
	struct told_key {
		uint64_t module, pid;
	} key;
	uint64_t look; /* that it was met in last */
	UT_hash_handle hh;
};

struct foreign_jumps {
	struct modules *modules;
	struct programs *programs;
	const uint64_t *begin_ns;
	struct told_jumps *told;
	uint32_t *pids; /* of the look that is under way; NULL: none is */
	size_t n, at;
	uint64_t spent_ns; /* of a processor: on a busy machine a look lasts, and costs no more */
	uint64_t due_ns, look;
	uint64_t found; /* ever */
};

struct foreign_jumps *foreign_jumps_new(struct modules *modules, struct programs *programs,
                                        const uint64_t *begin_ns)
{
	struct foreign_jumps *jumps = xcalloc(1, sizeof(*jumps));

	jumps->modules = modules;
	jumps->programs = programs;
	jumps->begin_ns = begin_ns;
	return jumps;
}

static void drop_look(struct foreign_jumps *jumps)
{
	free(jumps->pids);
	jumps->pids = NULL;
	jumps->n = jumps->at = 0;
	jumps->spent_ns = 0;
}

void foreign_jumps_free(struct foreign_jumps *jumps)
{
	if (!jumps)
		return;
	MAP_FREE(jumps->told, free);
	drop_look(jumps);
	free(jumps);
}

/* ---- telling ------------------------------------------------------------------------------- */

static struct told_key key_of(const struct module *module, uint32_t pid)
{
	return (struct told_key){ .module = module->inode ^ (uint64_t)module->dev << 32,
		                  .pid = pid };
}

static bool was_told(struct foreign_jumps *jumps, const struct module *module, uint32_t pid)
{
	const struct told_key key = key_of(module, pid);
	struct told_jumps *told = MAP_FIND(jumps->told, &key);

	if (told)
		told->look = jumps->look;
	return told;
}

/* Of processes that are no more. */
static void forget_others(struct foreign_jumps *jumps)
{
	struct told_jumps *told, *next;

	HASH_ITER (hh, jumps->told, told, next) {
		if (told->look == jumps->look)
			continue;
		MAP_DROP(jumps->told, told);
	}
}

static void tell(struct foreign_jumps *jumps, const struct module *module, uint32_t pid, size_t n,
                 const char *first)
{
	struct told_jumps *told;

	if (HASH_COUNT(jumps->told) >= TOLD_MOST)
		return; /* the trace is known not to be complete */
	told = xcalloc(1, sizeof(*told));
	told->key = key_of(module, pid);
	told->look = jumps->look;
	jumps->found++;
	HASH_ADD(hh, jumps->told, key, sizeof(told->key), told);
	modules_lock(jumps->modules);
	modules_miss(jumps->modules, MISS_UNHOOKED, NULL, module->name, pid,
	             "calls of %zu functions (%s), seen at %.0f ms: there are jumps before their "
	             "probes, as of another cuscope that records inside of the process",
	             n, first, (double)(clock_now_ns() - *jumps->begin_ns) / 1e6);
	modules_unlock(jumps->modules);
}

/* ---- looking ------------------------------------------------------------------------------- */

static bool may_have_jump(const struct hook *hook)
{
	return hook->hooked && hook->placement.skip >= JUMP_BYTES;
}

static void look_at_module(struct foreign_jumps *jumps, const struct module *module, uint32_t pid)
{
	struct patch_point *points = xcalloc(module->n_hooks + 1, sizeof(*points));
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (may_have_jump(hook))
			points[i] = (struct patch_point){
				.entry = hook->entry,
				.probe = hook->placement.skip,
				.bytes = hook->placement.skip + hook->placement.length,
			};
	}
	patched_jumps(module->fd, points, module->n_hooks, (pid_t)pid);
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (points[i].pid && !n++)
			first = module->hooks[i].name;
	}
	if (n)
		tell(jumps, module, pid, n, first);
	free(points);
}

static bool may_have_any(const struct module *module)
{
	if (!module->attached || module->probes == PROBES_AWAY)
		return false;
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (may_have_jump(&module->hooks[i]))
			return true;
	}
	return false;
}

static void look_at_process(struct foreign_jumps *jumps, struct inside *inside, uint32_t pid)
{
	for (size_t i = 0; i < modules_count(jumps->modules); i++) {
		const struct module *module = modules_at(jumps->modules, i);

		if (may_have_any(module) && !was_told(jumps, module, pid) &&
		    !(inside && inside_writes_to(inside, pid, module)))
			look_at_module(jumps, module, pid);
	}
}

static bool any_module(const struct foreign_jumps *jumps)
{
	for (size_t i = 0; i < modules_count(jumps->modules); i++) {
		if (may_have_any(modules_at(jumps->modules, i)))
			return true;
	}
	return false;
}

/* Whether it is through. */
static bool go_on(struct foreign_jumps *jumps, struct inside *inside, uint64_t most_ns)
{
	uint64_t begin_ns = clock_now_ns(), now_ns = begin_ns;
	uint64_t busy_ns = helper_busy_ns();

	while (jumps->at < jumps->n && now_ns - begin_ns < most_ns) {
		look_at_process(jumps, inside, jumps->pids[jumps->at++]);
		now_ns = clock_now_ns();
	}
	jumps->spent_ns += helper_busy_ns() - busy_ns;
	return jumps->at == jumps->n;
}

static void begin(struct foreign_jumps *jumps)
{
	drop_look(jumps);
	jumps->look++;
	if (any_module(jumps))
		jumps->pids = programs_targets(jumps->programs, &jumps->n);
	if (!jumps->pids)
		jumps->n = 0;
}

void foreign_jumps_turn(struct foreign_jumps *jumps, struct inside *inside)
{
	uint64_t now_ns = clock_now_ns();

	if (!jumps->pids && now_ns >= jumps->due_ns)
		begin(jumps);
	else if (!jumps->pids)
		return;
	if (!go_on(jumps, inside, TURN_NS))
		return;
	forget_others(jumps);
	now_ns += jumps->spent_ns * PART_OF;
	jumps->due_ns = now_ns + LEAST_NS;
	drop_look(jumps);
}

uint64_t foreign_jumps_found(const struct foreign_jumps *jumps)
{
	return jumps->found;
}

void foreign_jumps_finish(struct foreign_jumps *jumps, struct inside *inside)
{
	begin(jumps);
	go_on(jumps, inside, FINISH_NS);
	drop_look(jumps);
}
