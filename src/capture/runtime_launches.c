// SPDX-License-Identifier: MIT
#include "capture/runtime_launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

#define LOOK_NS 50000000ull /* between looks at who is still in a launch */

struct runtime_launches {
	struct runtime_launches_options options;
	bool may_put_back;
	bool may_overlook, overlooked, told; /* launches that the runtime refuses */
	bool refused;                        /* a call failed as launches would */
	uint64_t look_ns;                    /* when to look next; 0: nothing is to go */
	char text[224];
};

struct runtime_launches *runtime_launches_new(const struct runtime_launches_options *options)
{
	struct runtime_launches *l = xcalloc(1, sizeof(*l));
	const struct selection *s = options->selection;

	l->options = *options;
	/* what agents tell of launches stands beside a runtime's call, not within it */
	l->may_put_back = options->returns && s->layers == LAYERS_AUTO && !s->n_only && !s->fold &&
	                  !s->agents && !s->failed;
	l->may_overlook = options->returns && s->layers == LAYERS_AUTO && !s->n_only && !s->fold &&
	                  !s->failed;
	return l;
}

void runtime_launches_free(struct runtime_launches *l)
{
	free(l);
}

/*
 * Errors, the same in both layers, after which the runtime refuses launches by itself. Those that a
 * program may well get while it tries what there is (a device that does not exist, an image that is
 * none, CUDA that is not initialised yet) are not among them.
 */
static bool launches_will_fail(int result)
{
	static const int codes[] = {
		9,   /* invalid configuration: of a launch */
		34,  /* a stub library */
		35,  /* the driver is too old */
		46,  /* devices unavailable */
		98,  /* invalid device function */
		100, /* no device */
		102, /* no license */
		209, /* no kernel image for this device */
		222, /* PTX of a newer toolkit */
		701, /* too many resources for a launch */
		802, /* system not ready */
		803, /* driver and library do not match */
		804, /* compatibility mode not supported here */
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		if (codes[i] == result)
			return true;
	}
	return false;
}

/*
 * The error that a program asks the words for: those that check their launches do, and only when
 * one was refused, so that looking costs nobody else anything. 0: it does not.
 */
static int error_asked_for(const struct hook *hook, const struct wire_call *call)
{
	bool asks = !strcmp(hook->name, "cudaGetErrorString") ||
	            !strcmp(hook->name, "cudaGetErrorName");

	return asks && hook->plan.regs ? (int)call->word[WIRE_AT_REG] : 0;
}

void runtime_launches_called(struct runtime_launches *l, const struct wire_call *call)
{
	struct wire_state *state = programs_state(l->options.programs);
	const struct hook *hook;

	if (call->head.flags & WIRE_UNFINISHED)
		return;
	if (state->driver_works && (!call->result || !l->may_put_back || l->refused))
		return;
	hook = modules_hook(l->options.modules, call->head.hook, NULL);
	if (!hook)
		return;
	if (!call->result && hook->layer == LAYER_DRIVER && hook->api &&
	    api_op(hook->api) == OP_LAUNCH) /* its first call may have come before the probes */
		state->driver_works = 1;
	else if (state->driver_works)
		l->refused = launches_will_fail(api_returns_status(hook->name)
		                                        ? call->result
		                                        : error_asked_for(hook, call));
}

/* One within a call of the runtime that is told was looked at there. */
bool runtime_launches_overlook(const struct runtime_launches *l, const struct wire_call *call)
{
	const struct hook *hook;

	if (!l->may_overlook || l->overlooked || call->head.depth ||
	    call->head.flags & (WIRE_NESTED | WIRE_UNFINISHED) ||
	    wire_runtime_launches(programs_state(l->options.programs)))
		return false;
	hook = modules_hook(l->options.modules, call->head.hook, NULL);
	return hook && hook->layer == LAYER_DRIVER && hook->api && api_op(hook->api) == OP_LAUNCH;
}

void runtime_launches_overlooked(struct runtime_launches *l)
{
	l->overlooked = true;
}

/* Programs that use the driver alone have none. */
void runtime_launches_tell(struct runtime_launches *l)
{
	struct modules *modules = l->options.modules;
	bool any = false;

	for (size_t i = 0; i < modules_count(modules) && l->overlooked && !l->told; i++)
		any |= modules_at(modules, i)->has[LAYER_RUNTIME];
	l->told |= any;
	if (any)
		modules_miss(modules, MISS_NOT_LOOKED, "cudaLaunchKernel and its like", NULL, 0,
		             "launches that the runtime refuses, as they do not reach the driver "
		             "(--failed looks at them)");
}

void launches_hook(struct modules *modules, enum hook_group group, bool hook)
{
	bool runtime = group == HOOK_RUNTIME_LAUNCH;

	modules_lock(modules);
	for (size_t i = 0; i < modules_count(modules); i++) {
		struct module *module = modules_at(modules, i);
		struct err err = { 0 };

		if (module_hook_group(module, group, hook, &err))
			modules_miss(modules, MISS_NOT_HOOKED,
			             runtime ? "cudaLaunchKernel and its like"
			                     : "cuLaunchKernel and its like",
			             module->name, 0, "%s%s",
			             runtime ? "" : "probes that were away could not be put back: ",
			             err.text);
		modules_tell_unhooked(modules, module);
	}
	modules_unlock(modules);
}

static void put_back(struct runtime_launches *l)
{
	struct modules *modules = l->options.modules;

	programs_state(l->options.programs)->launches_refused = 1;
	launches_hook(modules, HOOK_RUNTIME_LAUNCH, true);
	modules_lock(modules);
	modules_miss(
		modules, MISS_HOOKED_LATE, "cudaLaunchKernel and its like", NULL, 0,
		"after a call had failed with an error that launches would get, too, or its words "
		"were asked for; launches that the runtime refused before are not known (--failed "
		"hooks them from the start)");
	modules_unlock(modules);
}

/* ---- taking away --------------------------------------------------------------------------- */

struct launches_search {
	const struct modules *modules;
	enum hook_group group;
	bool found;
};

static void look_at_call(void *data, const struct wire_head *record, size_t bytes)
{
	struct launches_search *search = data;
	const struct hook *hook = modules_hook(search->modules, record->hook, NULL);

	search->found |= hook && hook->group == search->group;
}

bool launches_are_open(const struct modules *modules, struct programs *programs,
                       enum hook_group group)
{
	struct launches_search search = { modules, group, false };

	programs_open_calls(programs, look_at_call, &search);
	return search.found;
}

static bool any_hooked(const struct runtime_launches *l)
{
	for (size_t i = 0; i < modules_count(l->options.modules); i++) {
		if (modules_at(l->options.modules, i)->links[HOOK_RUNTIME_LAUNCH])
			return true;
	}
	return false;
}

static void take_away(struct runtime_launches *l, uint64_t now_ns)
{
	if (!any_hooked(l))
		return;
	if (!l->look_ns || now_ns < l->look_ns) { /* entries that are not through yet */
		l->look_ns = l->look_ns ? l->look_ns : now_ns + LOOK_NS;
		return;
	}
	l->look_ns = now_ns + LOOK_NS;
	if (launches_are_open(l->options.modules, l->options.programs, HOOK_RUNTIME_LAUNCH))
		return;
	l->look_ns = 0;
	launches_hook(l->options.modules, HOOK_RUNTIME_LAUNCH, false);
}

const char *runtime_launches_turn(struct runtime_launches *l, uint64_t now_ns)
{
	const struct wire_state *state = programs_state(l->options.programs);

	if (l->refused && !state->launches_refused) {
		put_back(l);
		snprintf(l->text, sizeof(l->text),
		         "a call failed with an error that launches get, or its words were asked "
		         "for; "
		         "launches that the runtime refuses do not reach the driver, so they are "
		         "hooked in the runtime as well from now on");
		return l->text;
	}
	if (!wire_runtime_launches(state))
		take_away(l, now_ns);
	return NULL;
}
