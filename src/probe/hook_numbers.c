// SPDX-License-Identifier: MIT
#include "probe/hook_numbers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "bpf/wire.h"

#define HOOKS_MAX (WIRE_HOOKS_MAX - 1) /* the last number is cost.c's */

struct shares shares_init(void)
{
	static const struct quota hooks = {
		.user = { SHARE_USER, "the files of one user can have 8,192 hooks at most" },
		.others = { HOOKS_MAX - SHARE_ROOT,
		            "files of users other than root can have 12,287 hooks at most" },
		.all = { HOOKS_MAX, "there are 16,384 hooks in all" },
	};

	return (struct shares){
		.hooks = hooks,
		.live = hooks,
		.files = { .user = { SHARE_USER_FILES,
		                     "of one user, 1,024 CUDA libraries and programs can be hooked "
		                     "at most" },
		           .others = { SHARE_USERS_FILES, "of users other than root, 3,072 CUDA "
		                                          "libraries and programs "
		                                          "can be hooked at most" } },
	};
}

const char *shares_file_limit(size_t wanted)
{
	return wanted > SHARE_FILE ? "one file has 2,048 hooks at most" : NULL;
}

size_t shares_take(struct shares *shares, uint64_t owner, size_t wanted, const char **why)
{
	const char *limit = shares_file_limit(wanted);
	size_t get = limit ? SHARE_FILE : wanted;

	*why = quota_take(&shares->hooks, owner, 0, get);
	if (*why)
		return 0;
	quota_add(&shares->live, owner, 0, get);
	*why = limit;
	return get;
}

/* A number of a file that was let go is about to be another's; or it is not, after all. */
static void shares_give(struct shares *shares, uint64_t owner)
{
	quota_give(&shares->hooks, owner, 0, 1);
}

static void shares_keep(struct shares *shares, uint64_t owner)
{
	quota_add(&shares->hooks, owner, 0, 1);
}

const char *shares_take_file(struct shares *shares, uint64_t owner)
{
	return quota_take(&shares->files, owner, 0, 1);
}

void shares_file_gone(struct shares *shares, uint64_t owner, size_t hooks)
{
	quota_give(&shares->live, owner, 0, hooks);
	quota_give(&shares->files, owner, 0, 1);
}

void shares_file_back(struct shares *shares, uint64_t owner, size_t hooks)
{
	quota_add(&shares->live, owner, 0, hooks);
	quota_add(&shares->files, owner, 0, 1);
}

bool shares_are_crowded(const struct shares *shares, uint64_t owner)
{
	return quota_is_crowded(&shares->live, owner) || quota_is_crowded(&shares->files, owner);
}

void shares_free(struct shares *shares)
{
	quota_free(&shares->hooks);
	quota_free(&shares->files);
	quota_free(&shares->live);
}

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
	AT_END(at_end_free) char *key;
	struct spare_numbers *spare = find(numbers, module, hook, &key);

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
