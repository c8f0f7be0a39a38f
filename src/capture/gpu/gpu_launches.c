// SPDX-License-Identifier: MIT
#include "capture/gpu/gpu_launches.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define SETTLED_NS      300000000ull   /* all have agents, and nothing changed: probes may go */
#define SETTLED_MOST_NS 10000000000ull /* where processes are born all the time */
#define WORTH_NS        5000000000ull  /* probes that were away for less were not worth it */
#define QUIET_NS        50000000ull    /* between looks at who is still in a launch */
#define OVERLAP_NS      50000000ull    /* both tell, after the probes are back */

enum gpu_launches_state {
	HOOKED,
	IGNORED, /* the probes are there for launches that began before */
	UNHOOKED,
};

struct gpu_launches {
	struct modules *modules;
	struct programs *programs;
	bool returns;
	enum gpu_launches_state state;
	uint64_t unsettled_ns;      /* when something changed last */
	uint64_t settle_ns;         /* how long after that probes may go */
	uint64_t look_ns;           /* when to look at who is in a launch */
	uint64_t from_ns, until_ns; /* agents tell of what began between */
};

struct gpu_launches *gpu_launches_new(struct modules *modules, struct programs *programs,
                                      bool returns)
{
	struct gpu_launches *l = xcalloc(1, sizeof(*l));

	l->modules = modules;
	l->programs = programs;
	l->returns = returns;
	l->settle_ns = SETTLED_NS;
	return l;
}

void gpu_launches_free(struct gpu_launches *l)
{
	free(l);
}

bool gpu_launches_are_told(const struct gpu_launches *l, uint64_t begin_ns)
{
	return begin_ns >= l->from_ns && begin_ns < l->until_ns;
}

static void ignore(struct gpu_launches *l, bool yes)
{
	for (size_t i = 0; i < modules_count(l->modules); i++)
		module_ignore_launches(modules_at(l->modules, i), l->programs, yes);
}

static void hook(struct gpu_launches *l, bool yes)
{
	modules_lock(l->modules);
	for (size_t i = 0; i < modules_count(l->modules); i++) {
		struct module *module = modules_at(l->modules, i);
		struct err err = { 0 };

		if (module_hook_launches(module, l->programs, l->returns, yes, &err))
			modules_miss(l->modules, MISS_NOT_HOOKED, "cuLaunchKernel and its like",
			             module->name, 0,
			             "probes that were away could not be put back: %s", err.text);
		modules_tell_unhooked(l->modules, module);
	}
	modules_unlock(l->modules);
}

/* ---- taking away --------------------------------------------------------------------------- */

struct gpu_launches_search {
	const struct gpu_launches *launches;
	bool found;
};

static void look_at_call(void *data, const struct wire_head *record, size_t bytes)
{
	struct gpu_launches_search *search = data;
	const struct hook *called = modules_hook(search->launches->modules, record->hook, NULL);

	search->found |= called && called->group == HOOK_LAUNCH;
}

/* Its return would be lost with the probe. */
static bool someone_launches(const struct gpu_launches *l)
{
	struct gpu_launches_search search = { l, false };

	programs_open_calls(l->programs, look_at_call, &search);
	return search.found;
}

static void begin_ignoring(struct gpu_launches *l, uint64_t now_ns)
{
	l->from_ns = now_ns;
	l->until_ns = UINT64_MAX;
	l->state = IGNORED;
	l->look_ns = now_ns + QUIET_NS;
	ignore(l, true);
}

static void try_unhook(struct gpu_launches *l, uint64_t now_ns)
{
	if (now_ns < l->look_ns)
		return;
	l->look_ns = now_ns + QUIET_NS;
	if (someone_launches(l))
		return;
	hook(l, false);
	l->state = UNHOOKED;
}

/* ---- putting back -------------------------------------------------------------------------- */

void gpu_launches_put_back(struct gpu_launches *l, uint64_t now_ns)
{
	if (l->state == HOOKED)
		return;
	ignore(l, false);
	if (l->state == UNHOOKED)
		hook(l, true);
	l->settle_ns = now_ns - l->from_ns >= WORTH_NS ? SETTLED_NS : 2 * l->settle_ns;
	if (l->settle_ns > SETTLED_MOST_NS)
		l->settle_ns = SETTLED_MOST_NS;
	l->state = HOOKED;
	l->until_ns = clock_now_ns() + OVERLAP_NS; /* hooking took a while */
	l->unsettled_ns = now_ns;
}

void gpu_launches_unsettle(struct gpu_launches *l, uint64_t now_ns)
{
	l->unsettled_ns = now_ns;
	gpu_launches_put_back(l, now_ns);
}

void gpu_launches_turn(struct gpu_launches *l, bool covered, uint64_t now_ns)
{
	if (!covered) {
		gpu_launches_unsettle(l, now_ns);
	} else if (l->state == HOOKED && now_ns - l->unsettled_ns >= l->settle_ns) {
		begin_ignoring(l, now_ns);
	} else if (l->state == IGNORED) {
		try_unhook(l, now_ns);
	}
}
