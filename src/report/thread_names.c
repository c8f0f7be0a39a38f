// SPDX-License-Identifier: MIT
#include "report/thread_names.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/xalloc.h"

struct named_thread {
	uint64_t key; /* process id and tid */
	struct thread thread;
	UT_hash_handle hh;
};

struct thread_names {
	struct named_thread *entries;
	const struct named_thread *last; /* found: most calls follow one of their own thread */
};

static uint64_t key_of(const struct process *process, uint32_t tid)
{
	return (uint64_t)process->id << 32 | tid;
}

static struct named_thread *find(struct thread_names *threads, uint64_t key)
{
	struct named_thread *entry;

	HASH_FIND(hh, threads->entries, &key, sizeof(key), entry);
	return entry;
}

struct thread_names *thread_names_new(void)
{
	return xcalloc(1, sizeof(struct thread_names));
}

/* Of one process, or of all where it is NULL. */
static void forget(struct thread_names *threads, const struct process *process)
{
	struct named_thread *entry, *next;

	threads->last = NULL;
	HASH_ITER (hh, threads->entries, entry, next) {
		if (process && entry->key >> 32 != process->id)
			continue;
		HASH_DELETE(hh, threads->entries, entry);
		free(entry);
	}
}

void thread_names_free(struct thread_names *threads)
{
	if (!threads)
		return;
	forget(threads, NULL);
	free(threads);
}

void thread_names_event(struct thread_names *threads, const struct event *event)
{
	struct named_thread *entry;
	uint64_t key;

	if (event->type == EVENT_EXIT)
		forget(threads, event->process);
	if (event->type != EVENT_THREAD)
		return;
	key = key_of(event->process, event->tid);
	entry = find(threads, key);
	if (!entry) {
		entry = xcalloc(1, sizeof(*entry));
		entry->key = key;
		HASH_ADD(hh, threads->entries, key, sizeof(key), entry);
	}
	entry->thread = *event->thread;
}

const struct thread *thread_names_find(struct thread_names *threads, const struct process *process,
                                       uint32_t tid)
{
	uint64_t key = key_of(process, tid);

	if (!threads->last || threads->last->key != key) {
		const struct named_thread *entry = find(threads, key);

		if (!entry)
			return NULL;
		threads->last = entry;
	}
	return &threads->last->thread;
}
