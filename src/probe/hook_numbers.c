// SPDX-License-Identifier: MIT
#include "probe/hook_numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"

struct spare_numbers {
	char *function; /* its layer, its name, and the name of its file where that counts */
	uint16_t *ids;
	size_t n;
	UT_hash_handle hh;
};

static struct spare_numbers *find(const struct hook_numbers *numbers, const struct module *module,
                                  const struct hook *hook, char **key)
{
	const char *file = numbers->by_file ? module->name : "";
	size_t len = strlen(hook->name) + strlen(file) + 3;

	*key = xmalloc(len);
	snprintf(*key, len, "%c%s/%s", hook->layer == LAYER_DRIVER ? 'd' : 'r', hook->name, file);
	return MAP_FIND_TEXT(numbers->spare, *key);
}

static void put(struct hook_numbers *numbers, const struct module *module, const struct hook *hook)
{
	char *key;
	struct spare_numbers *spare = find(numbers, module, hook, &key);

	if (spare) {
		free(key);
	} else {
		spare = xcalloc(1, sizeof(*spare));
		spare->function = key;
		HASH_ADD_KEYPTR(hh, numbers->spare, spare->function, strlen(spare->function),
		                spare);
	}
	spare->ids = vec_room(spare->ids, spare->n, sizeof(*spare->ids));
	spare->ids[spare->n++] = hook->id;
}

/* HOOK_NO_ID: there is none. */
static uint16_t get(struct hook_numbers *numbers, const struct module *module,
                    const struct hook *hook)
{
	char *key;
	struct spare_numbers *spare = find(numbers, module, hook, &key);

	free(key);
	return spare && spare->n ? spare->ids[--spare->n] : HOOK_NO_ID;
}

static void take_back(struct hook_numbers *numbers, struct shares *shares, struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (hook->id == HOOK_NO_ID)
			continue;
		shares_keep(shares, numbers->owners[hook->id]);
		put(numbers, module, hook);
		hook->id = HOOK_NO_ID;
	}
}

int hook_numbers_take(struct hook_numbers *numbers, struct shares *shares, struct module *module,
                      void (*reused)(void *data, uint16_t id), void *data, const char **why)
{
	size_t wants = module_wants(module);

	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		hook->id = hook->group == HOOK_OFF ? HOOK_NO_ID : get(numbers, module, hook);
		if (hook->id != HOOK_NO_ID)
			shares_give(shares, numbers->owners[hook->id]);
	}
	if (shares_take(shares, module->owner, wants, why) < wants) {
		take_back(numbers, shares, module);
		return -ENOSPC;
	}
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (hook->group == HOOK_OFF)
			continue;
		if (hook->id == HOOK_NO_ID)
			hook->id = (uint16_t)numbers->next++;
		else
			reused(data, hook->id);
		numbers->owners[hook->id] = module->owner;
	}
	return 0;
}

void hook_numbers_give_back(struct hook_numbers *numbers, const struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (module->hooks[i].id != HOOK_NO_ID)
			put(numbers, module, &module->hooks[i]);
	}
}

void hook_numbers_free(struct hook_numbers *numbers)
{
	struct spare_numbers *spare, *next;

	HASH_ITER (hh, numbers->spare, spare, next) {
		HASH_DEL(numbers->spare, spare);
		free(spare->function);
		free(spare->ids);
		free(spare);
	}
}
