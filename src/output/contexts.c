// SPDX-License-Identifier: MIT
#include "output/contexts.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/xalloc.h"

#define CONTEXTS_MOST 65536 /* more than a machine's GPUs can hold at a time */

struct context_key {
	uint32_t process, context;
};

struct context {
	struct context_key key;
	uint32_t device;
	UT_hash_handle hh;
};

struct contexts {
	struct context *known;
};

struct contexts *contexts_new(void)
{
	return xcalloc(1, sizeof(struct contexts));
}

void contexts_free(struct contexts *contexts)
{
	if (!contexts)
		return;
	MAP_FREE(contexts->known, free);
	free(contexts);
}

static struct context *find(const struct contexts *contexts, struct context_key key)
{
	return MAP_FIND(contexts->known, &key);
}

void contexts_note(struct contexts *contexts, const struct process *process,
                   const struct activity *activity)
{
	struct context_key key = { process->id, activity->context };
	struct context *found = find(contexts, key);

	if (found || HASH_COUNT(contexts->known) >= CONTEXTS_MOST)
		return;
	found = MAP_ADD(contexts->known, key, &key);
	found->device = activity->device;
}

bool contexts_device(const struct contexts *contexts, const struct process *process,
                     uint32_t context, uint32_t *device)
{
	const struct context *found = find(contexts, (struct context_key){ process->id, context });

	if (found)
		*device = found->device;
	return found != NULL;
}
