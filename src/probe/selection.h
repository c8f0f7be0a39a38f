/* SPDX-License-Identifier: MIT */
/*
 * Which functions are hooked: the defaults of src/cuda, and what the user asked for. One place, so
 * that `cuscope probes` shows exactly what `cuscope trace` does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cuda/api.h"
#include "probe/elf_image.h"

struct hook_list;

enum layer_choice {
	LAYERS_AUTO, /* launches in the driver only, everything else in both layers */
	LAYERS_DRIVER,
	LAYERS_RUNTIME,
	LAYERS_BOTH,
};

struct selection {
	const char **only; /* globs; a function that one names is always hooked */
	size_t n_only;
	const char **skip;
	size_t n_skip;
	unsigned classes; /* bit per enum api_class; 0: all */
	enum layer_choice layers;
	bool all_calls; /* getters and polls too */
	bool each_call; /* also those that are called all the time, one by one: see inside.h */
	bool failed;    /* failures are asked for: launches that the runtime refuses never reach */
			/* the driver, so they are hooked in both layers */
	bool agents;    /* launches may be told of by agents, and not be hooked meanwhile */
	unsigned fold;  /* enum fold_tool: only what these sum up, and what they need for it */
	bool none;      /* no function at all: samples alone are wanted */
	const struct hook_list *hooks; /* those that the user asked for; NULL: none */
};

enum hook_group {
	HOOK_OFF,            /* not hooked */
	HOOK_CORE,           /* tells much */
	HOOK_LITTLE,         /* tells little: the first that the governor gives up */
	HOOK_RUNTIME_LAUNCH, /* only while no driver library is in sight */
	HOOK_SUPPORT,        /* not shown; needed to understand what is */
	HOOK_LAUNCH,         /* like HOOK_CORE, but only while agents do not tell of these calls */
};

/* The group of a function, and in *why (static, may be NULL) a few words on the reason. */
enum hook_group selection_group(const struct selection *selection, const char *name,
                                enum api_layer layer, const char **why);

/* Whether a glob matches a name, with or without its variant suffixes (_v2, _ptsz, ...). */
bool selection_matches(const char *glob, const char *name);

/*
 * Functions whose returns must not be probed. A return probe puts an address of the kernel's into
 * the place of the return address. Who keeps that, looks for it, or moves the stack that it lies on
 * goes wrong by that, and most such programs end.
 */

#define NO_RETURN_REASONS 4 /* that there are, each one text */

/* Why, as a clause on the function; static. NULL: it may be probed. `symbol` as the linker has it.
 */
const char *no_return_for_symbol(const char *symbol);

/*
 * The same for all functions of a file: one that holds code of Go, which moves its stacks and looks
 * through them for return addresses. C code that Go calls is on a stack of its own, which stays.
 */
const char *no_return_for_file(const struct elf_image *image);
