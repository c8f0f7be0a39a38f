// SPDX-License-Identifier: MIT
#include "probe/rings.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"

/*
 * A record of a call has some 72 bytes: 8 MiB are 116,000 of them. A ring that is an eighth full is
 * looked at more often, since its reader may have stopped.
 */
#define LOOK_IDLE_NS 50000000
#define LOOK_BUSY_NS 10000000
#define BUSY_PART    8 /* of a ring */
#define KEEP_PART    4
#define KEEP_BYTES   ((size_t)512 << 10) /* at once, with the lock held */

struct rings {
	struct ring *ring[WIRE_RINGS_MAX];
	size_t count, most;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the end */
	pthread_t thread;
	bool watched, ends;
};

struct rings *rings_new(void)
{
	struct rings *rings = xcalloc(1, sizeof(*rings));
	pthread_condattr_t attr;

	pthread_mutex_init(&rings->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rings->wake, &attr);
	pthread_condattr_destroy(&attr);
	return rings;
}

void rings_free(struct rings *rings)
{
	if (!rings)
		return;
	if (rings->watched) {
		rings_enter(rings);
		rings->ends = true;
		pthread_cond_signal(&rings->wake);
		rings_leave(rings);
		pthread_join(rings->thread, NULL);
	}
	pthread_cond_destroy(&rings->wake);
	pthread_mutex_destroy(&rings->lock);
	free(rings);
}

void rings_add(struct rings *rings, struct ring *ring)
{
	rings->ring[rings->count++] = ring;
}

size_t rings_count(const struct rings *rings)
{
	return rings->count;
}

struct ring *rings_at(const struct rings *rings, size_t index)
{
	return rings->ring[index];
}

void rings_enter(struct rings *rings)
{
	pthread_mutex_lock(&rings->lock);
}

void rings_leave(struct rings *rings)
{
	pthread_mutex_unlock(&rings->lock);
}

/* ---- the thread, with the lock held -------------------------------------------------------- */

/* What more may be kept at once. */
static size_t rings_room(const struct rings *rings)
{
	size_t kept = 0;

	for (size_t i = 0; i < rings->count; i++)
		kept += ring_kept(rings->ring[i]);
	if (kept >= rings->most)
		return 0;
	return rings->most - kept < KEEP_BYTES ? rings->most - kept : KEEP_BYTES;
}

/* Keeps a piece of what is in the ring where that is a quarter of it. Whether it was one. */
static bool rings_keep_piece(struct rings *rings, struct ring *ring)
{
	return ring_used(ring) > ring_bytes(ring) / KEEP_PART &&
	       ring_keep(ring, rings_room(rings)) > 0;
}

static void rings_wait(struct rings *rings, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	while (!rings->ends && pthread_cond_timedwait(&rings->wake, &rings->lock, &until) == 0)
		;
}

static void *rings_work(void *data)
{
	struct rings *rings = data;

	rings_enter(rings);
	while (!rings->ends) {
		bool busy = false;

		for (size_t i = 0; i < rings->count && !rings->ends; i++) {
			busy |= ring_used(rings->ring[i]) > ring_bytes(rings->ring[i]) / BUSY_PART;
			while (!rings->ends && rings_keep_piece(rings, rings->ring[i])) {
				rings_leave(rings); /* the reader's turn */
				rings_enter(rings);
			}
		}
		rings_wait(rings, busy ? LOOK_BUSY_NS : LOOK_IDLE_NS);
	}
	rings_leave(rings);
	return NULL;
}

void rings_watch(struct rings *rings, size_t most)
{
	sigset_t all, before;

	rings->most = most;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rings->watched = !pthread_create(&rings->thread, NULL, rings_work, rings);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
