// SPDX-License-Identifier: MIT
/*
 * Targets that write code of their own over a probe while it is there. They go on as they want to,
 * and their calls of that function are not seen any more: that is told. Most do so soon after they
 * have loaded a library, so processes are looked at soon, and then ever less often.
 */
#include "probe/modules_inside.h"

#include <stdlib.h>

#include "base/clock.h"
#include "probe/patched.h"

#define FIRST_NS 500000000ull
#define LAST_NS  60000000000ull

/* What one look may take, and the last, which the end waits for: there can be any number of
 * processes, with as many mappings as they like. */
#define LOOK_NS 1500000000ull
#define END_NS  2500000000ull

static bool is_target(void *data, pid_t pid)
{
	return modules_calls_cuda(data, pid);
}

/* Lets go of the lock meanwhile: a module that is busy stays where it is. Whether there was time
 * for all processes. */
static bool check_module(struct modules *modules, struct module *module, uint64_t until_ns)
{
	struct patch_point *points = module_patch_points(module, true);
	bool all;

	pthread_mutex_unlock(&modules->lock);
	all = patched_find(module->fd, points, module->n_hooks, is_target,
	                   modules->options.programs, until_ns);
	pthread_mutex_lock(&modules->lock);
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (!points[i].pid || !hook->hooked || hook->written_over == points[i].pid)
			continue;
		hook->written_over = points[i].pid;
		modules_miss(modules, MISS_NOT_HOOKED, hook->name, module->name,
		             (uint32_t)points[i].pid,
		             "the process has written code of its own over the probe: its calls "
		             "since then are not seen");
	}
	free(points);
	return all;
}

static bool is_due(struct modules *modules, uint64_t now_ns)
{
	if (now_ns == MODULES_LAST_LOOK)
		return true;
	if (modules->count != modules->patched_count) { /* a new one: as at the begin */
		modules->patched_count = modules->count;
		modules->patched_gap_ns = FIRST_NS;
		modules->patched_ns = now_ns;
		return false;
	}
	if (now_ns < modules->patched_ns + modules->patched_gap_ns)
		return false;
	modules->patched_ns = now_ns;
	modules->patched_gap_ns *= modules->patched_gap_ns < LAST_NS ? 2 : 1;
	return true;
}

void modules_check_patched(struct modules *modules, uint64_t now_ns)
{
	bool last = now_ns == MODULES_LAST_LOOK, all = true;
	uint64_t until_ns = clock_now_ns() + (last ? END_NS : LOOK_NS);

	pthread_mutex_lock(&modules->lock);
	if (!modules->paused && is_due(modules, now_ns)) {
		for (size_t i = 0; i < modules->count && all; i++) {
			struct module *module = modules->list[i];

			if (!module->attached || module->rewritten || module->expected ||
			    module->probes != PROBES_THERE)
				continue;
			module->busy = true;
			all = check_module(modules, module, until_ns);
			module->busy = false;
		}
	}
	if (last && !all)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, NULL, 0,
		             "in the end there was no time to look at all processes for code of "
		             "their own over probes: calls past that are not seen");
	pthread_mutex_unlock(&modules->lock);
}
