// SPDX-License-Identifier: MIT
#include "analysis/thread_ids.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"

#define RECENT 64 /* found without hashing; a power of two */

struct thread_id_key {
	uint32_t process, tid;
};

struct thread_id {
	struct thread_id_key key;
	uint32_t id;
	UT_hash_handle hh;
};

struct thread_ids {
	struct thread_id *known;
	struct thread_id *recent[RECENT]; /* by the low bits of the tid */
	struct quota taken;
};

struct thread_ids *thread_ids_new(void)
{
	return xcalloc(1, sizeof(struct thread_ids));
}

static struct thread_id **recent_of(struct thread_ids *ids, struct thread_id_key key)
{
	return &ids->recent[key.tid % RECENT];
}

static struct thread_id *add(struct thread_ids *ids, struct thread_id_key key)
{
	struct thread_id *made = MAP_ADD(ids->known, key, &key);

	made->id = (uint32_t)ids->taken.taken - 1;
	return made;
}

static struct thread_id *look_up(struct thread_ids *ids, struct thread_id_key key)
{
	struct thread_id **recent = recent_of(ids, key), *found = *recent;

	if (found && found->key.tid == key.tid && found->key.process == key.process)
		return found;
	found = MAP_FIND(ids->known, &key);
	if (found)
		*recent = found;
	return found;
}

uint32_t thread_ids_of(struct thread_ids *ids, const struct event *event)
{
	struct thread_id_key key = { event->process->id, event->tid };
	struct thread_id *found = look_up(ids, key);

	if (found)
		return found->id;
	if (!quota_take_beside(&ids->taken, process_shares_with(event->process), THREAD_IDS_MAX))
		return THREAD_ID_OTHERS;
	found = *recent_of(ids, key) = add(ids, key);
	return found->id;
}

uint32_t thread_ids_find(struct thread_ids *ids, const struct event *event)
{
	struct thread_id_key key = { event->process->id, event->tid };
	const struct thread_id *found = look_up(ids, key);

	return found ? found->id : THREAD_ID_OTHERS;
}

void thread_ids_renew(struct thread_ids *ids, const struct event *event)
{
	struct thread_id_key key = { event->process->id, event->tid };
	struct thread_id *found = MAP_FIND(ids->known, &key);

	if (!found)
		return;
	if (*recent_of(ids, key) == found)
		*recent_of(ids, key) = NULL;
	MAP_DROP(ids->known, found);
}

void thread_ids_free(struct thread_ids *ids)
{
	if (!ids)
		return;
	MAP_FREE(ids->known, free);
	quota_free(&ids->taken);
	free(ids);
}
