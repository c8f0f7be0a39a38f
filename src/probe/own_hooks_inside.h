/* SPDX-License-Identifier: MIT */
/* The inside of struct own_hooks: own_hooks.c gives numbers and plans, own_module.c hooks files. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "probe/own_hooks.h"

struct own_hooks {
	const struct hook_list *list;
	struct programs *programs;
	int plans_map;
	int tables_map; /* negative: calls are sent, and not summed up */
	bool returns;
	pthread_mutex_t lock;
	uint16_t *plans; /* of each of the list, two: without its returns, and with them; NO_PLAN:
	                  * none yet, or one for each place */
	uint16_t n_hooks, n_plans;
	bool *found;    /* of each of the list: in a file */
	char **missing; /* of each: which file that it is for lacks it */
	_Atomic(struct own_hook *) hooks[WIRE_HOOKS_MAX];
};
