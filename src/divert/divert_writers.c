// SPDX-License-Identifier: MIT
#include "divert/divert_writers.h"

#include "divert/divert_inside.h"

#ifdef __x86_64__

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "base/xalloc.h"

#define THREADS 4 /* with the caller's own */
#define PART    16u
#define CLOSED  (1u << 31)

struct divert_writers {
	sem_t go;
	unsigned helpers;
	struct divert_target *target;
	divert_write_fn write;
	atomic_uint next; /* entry; CLOSED: there is nothing to do */
	atomic_uint done;
	atomic_uint busy; /* helpers that may be at it */
};

static void write_some(struct divert_writers *writers)
{
	for (;;) {
		uint32_t first = atomic_fetch_add(&writers->next, PART);
		struct divert_target *target;
		uint32_t end;

		if (first >= CLOSED || first >= writers->target->count)
			return;
		target = writers->target;
		end = first + PART < target->count ? first + PART : target->count;
		for (uint32_t i = first; i < end; i++)
			target->entries[i].written = writers->write(target, &target->entries[i]);
		atomic_fetch_add(&writers->done, end - first);
	}
}

static void *helper(void *arg)
{
	struct divert_writers *writers = arg;

	for (;;)
		if (!sem_wait(&writers->go)) {
			atomic_fetch_add(&writers->busy, 1);
			write_some(writers);
			atomic_fetch_sub(&writers->busy, 1);
		}
	return NULL;
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

struct divert_writers *divert_writers_new(void)
{
	struct divert_writers *writers = xcalloc(1, sizeof(*writers));
	unsigned most = processors();
	pthread_t thread;

	sem_init(&writers->go, 0, 0);
	atomic_init(&writers->next, CLOSED);
	while (writers->helpers + 1 < most && writers->helpers + 1 < THREADS &&
	       !pthread_create(&thread, NULL, helper, writers))
		writers->helpers++;
	return writers;
}

unsigned divert_writers_count(const struct divert_writers *writers)
{
	return writers->helpers + 1;
}

void divert_writers_run(struct divert_writers *writers, struct divert_target *target,
                        divert_write_fn write)
{
	const struct timespec nap = { .tv_nsec = 10000 };

	writers->target = target;
	writers->write = write;
	atomic_store(&writers->done, 0);
	atomic_store(&writers->next, 0);
	for (unsigned i = 0; i < writers->helpers; i++)
		sem_post(&writers->go);
	write_some(writers);
	while (atomic_load(&writers->done) < target->count)
		nanosleep(&nap, NULL); /* another thread has a part */
	atomic_store(&writers->next, CLOSED);
	while (atomic_load(&writers->busy))
		nanosleep(&nap, NULL); /* one that came late is not to meet the next target */
	for (uint32_t i = 0; i < target->count; i++)
		if (!target->entries[i].written)
			target->entries[i].written = write(target, &target->entries[i]);
}

#endif
