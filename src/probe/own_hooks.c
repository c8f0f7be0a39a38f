// SPDX-License-Identifier: MIT
#include "probe/own_hooks_inside.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "probe/bpf_call.h"

/* ---- own hooks open ------------------------------------------------------------------------ */

/* Calls that are under way in functions of --hook when the trace ends. */

#define CALLS_MAX (2 * WIRE_HOOK_FRAMES) /* a key that goes away makes the map begin anew */

void own_hooks_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	int map = programs_map(programs, "hook_frames");
	size_t n;
	uint64_t *keys = bpf_map_keys(map, sizeof(*keys), CALLS_MAX, &n), now_ns = clock_now_ns();
	struct wire_hook_frame frame;

	for (size_t i = 0; i < n; i++) {
		struct wire_hook *hook = &frame.hook;

		/* one that cannot be taken away has returned meanwhile, or was told of already */
		if (bpf_map_lookup_elem(map, &keys[i], &frame) ||
		    bpf_map_delete_elem(map, &keys[i]) || hook->begin_ns > now_ns)
			continue;
		hook->head.flags |= WIRE_UNFINISHED;
		hook->head.time_ns = now_ns;
		each(data, &hook->head, sizeof(*hook));
	}
	free(keys);
}

/* ---- own hooks ----------------------------------------------------------------------------- */

#define NO_PLAN UINT16_MAX

struct own_hooks *own_hooks_new(const struct hook_list *list, struct programs *programs,
                                bool returns)
{
	struct own_hooks *own = xcalloc(1, sizeof(*own));

	own->list = list;
	own->programs = programs;
	own->plans_map = programs_map(programs, "hook_plans");
	own->tables_map = programs_map(programs, "fold_hook_tables");
	own->returns = returns;
	own->plans = xcalloc(2 * list->n + 1, sizeof(*own->plans));
	own->found = xcalloc(list->n + 1, sizeof(bool));
	own->missing = xcalloc(list->n + 1, sizeof(char *));
	for (size_t i = 0; i < 2 * list->n; i++)
		own->plans[i] = NO_PLAN;
	pthread_mutex_init(&own->lock, NULL);
	return own;
}

static void hook_free(struct own_hook *hook)
{
	if (hook->own_spec) {
		spec_free(hook->own_spec);
		free(hook->own_spec);
	}
	api_free(hook->made);
	free(hook->name);
	free(hook->lib);
	free(hook);
}

void own_hooks_free(struct own_hooks *own)
{
	if (!own)
		return;
	for (size_t i = 0; i < own->n_hooks; i++)
		hook_free(own->hooks[i]);
	pthread_mutex_destroy(&own->lock);
	for (size_t i = 0; i < own->list->n; i++)
		free(own->missing[i]);
	free(own->plans);
	free(own->found);
	free(own->missing);
	free(own);
}

unsigned own_hooks_kinds(const struct hook_list *list)
{
	unsigned kinds = 0;

	for (size_t i = 0; list && i < list->n; i++)
		kinds |= list->spec[i]->kind == SPEC_TRACEPOINT ? OWN_HOOKS_TRACE
		         : spec_is_kernel(list->spec[i])        ? OWN_HOOKS_KERNEL
		                                                : OWN_HOOKS_USER;
	return kinds;
}

const struct hook_list *own_hooks_list(const struct own_hooks *own)
{
	return own->list;
}

struct programs *own_hooks_programs(const struct own_hooks *own)
{
	return own->programs;
}

bool own_hooks_returns(const struct own_hooks *own)
{
	return own->returns;
}

const struct own_hook *own_hooks_get(const struct own_hooks *own, uint16_t id)
{
	return own && id < WIRE_HOOKS_MAX ? atomic_load(&own->hooks[id]) : NULL;
}

uint64_t own_hook_cookie(const struct own_hook *hook)
{
	return HOOK_COOKIE(hook->id, hook->plan);
}

/* ---- one more ------------------------------------------------------------------------------ */

/* What trace files allow in names, so that every output can write them as they are. */
static char *plain_name(const struct hook_spec *spec, const char *name)
{
	char *plain = spec->as[0] ? xasprintf("%s.%s", spec->as, name) : xstrdup(name);

	for (char *at = plain; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr(" _.:/+-#@()[]", *at))
			*at = '?';
	}
	return plain;
}

static char *plain_lib(const char *lib)
{
	char *plain = xstrdup(lib);

	for (char *at = plain; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	return plain;
}

static int tell_plan(const struct own_hooks *own, const struct hook_spec *spec, uint32_t number,
                     struct wire_hook_plan *plan)
{
	struct wire_hook_table table;

	if (own->tables_map >= 0 && own_plan_sum(spec, plan, &table) &&
	    bpf_map_update_elem(own->tables_map, &number, &table, BPF_ANY))
		return -errno;
	return bpf_map_update_elem(own->plans_map, &number, plan, BPF_ANY) ? -errno : 0;
}

/* The number of the plan, which hooks of one spec share where all their places are alike. */
static int give_plan(struct own_hooks *own, struct own_hook *hook, size_t spec,
                     const struct own_place *places, size_t n, struct err *err)
{
	struct hook_mistake mistake;
	struct wire_hook_plan plan;
	uint32_t number = own->n_plans;
	uint16_t *shared = &own->plans[2 * spec + hook->returns];
	int r;

	if (!places && *shared != NO_PLAN) {
		hook->plan = *shared;
		return 0;
	}
	if (number == WIRE_HOOK_PLANS)
		return err_set(err, ENOSPC, "there are more than %d tracepoints, markers and hooks",
		               WIRE_HOOK_PLANS);
	if (!own_plan_make(hook->spec, places, n, &plan, &mistake))
		return err_set(err, EINVAL, "%s", mistake.says);
	if (!hook->returns)
		plan.flags &= (uint8_t)~PLAN_RETURNS;
	r = tell_plan(own, hook->spec, number, &plan);
	if (r)
		return err_set(err, r, "telling the eBPF programs: %s", strerror(-r));
	own->n_plans++;
	hook->plan = (uint16_t)number;
	if (!places)
		*shared = hook->plan;
	return 0;
}

/* A tracepoint's fields have types of their own. */
static void take_fields(struct own_hook *hook, const struct own_place *places, size_t n)
{
	struct hook_spec *mine;

	if (hook->spec->kind != SPEC_TRACEPOINT)
		return;
	mine = xcalloc(1, sizeof(*mine));
	if (hook->spec->listed) {
		*mine = *hook->spec;
		mine->text = xstrdup(hook->spec->text);
	} else {
		own_plan_all_fields(hook->spec, places, n, mine);
	}
	own_plan_take_types(mine, places, n);
	hook->spec = hook->own_spec = mine;
}

struct own_hook *own_hooks_add(struct own_hooks *own, size_t spec, const char *name,
                               const char *lib, const struct own_place *places, size_t n,
                               bool returns, struct err *err)
{
	struct own_hook *hook = xcalloc(1, sizeof(*hook));
	int r = 0;

	hook->spec = own->list->spec[spec];
	hook->name = plain_name(hook->spec, name);
	hook->lib = plain_lib(lib);
	hook->returns = returns && own->returns;
	take_fields(hook, places, n);
	hook->api = own_plan_row(hook->spec, hook->name, &hook->made);
	pthread_mutex_lock(&own->lock);
	if (own->n_hooks == WIRE_HOOKS_MAX)
		r = err_set(err, ENOSPC, "there are %d hooks in all", WIRE_HOOKS_MAX);
	else
		r = give_plan(own, hook, spec, places, n, err);
	if (!r) {
		hook->id = own->n_hooks++;
		atomic_store(&own->hooks[hook->id], hook);
	}
	pthread_mutex_unlock(&own->lock);
	if (!r)
		return hook;
	hook_free(hook);
	return NULL;
}
