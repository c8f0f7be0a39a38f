// SPDX-License-Identifier: MIT
#include "identity/process_identities.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/person.h"

#define STALE_NS  30000000000ull /* who was not asked for so long gives way to another */
#define TRIES_MAX 3              /* for an environment that cannot be read */
#define READ_NS   10000000ull    /* that lie between two reads on average */
#define BURST_NS  1000000000ull  /* so that 100 may follow each other at once */

struct process_place_key {
	uint64_t incarnation, pid;
};

struct process_place {
	struct process_place_key key;
	uint64_t latest; /* who has begun later is another process; in clock ticks since boot */
	uint64_t asked_ns, looked_ns, hash;
	bool known, ended, waits, under_way, again;
	unsigned tries;
	uint64_t person; /* in whose share it is, where it is in one */
	bool in_share;
	struct process_identity identity;
	TAILQ_ENTRY(process_place) waiting, asked, looked;
	UT_hash_handle hh;
};

TAILQ_HEAD(process_places, process_place);

struct process_identities {
	struct process_identities_options options;
	struct process_reader *reader; /* of the thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake, settled;
	bool stop, busy, chosen;      /* chosen: the reader is to be told */
	struct process_place *places; /* by key */
	struct quota shares;          /* of places by process_identities_expect */
	struct process_places waiting;
	struct process_places asked;  /* who has ended, then who was asked for longest ago */
	struct process_places looked; /* who was looked at longest ago is the first */
	uint64_t next_read_ns;        /* at the average rate */
	struct process_identities_counts counts;
};

/* ---- places, with the lock held ------------------------------------------------------------ */

static struct process_place *find(struct process_identities *identities, pid_t pid,
                                  uint64_t incarnation)
{
	const struct process_place_key key = { incarnation, (uint64_t)pid };

	return MAP_FIND(identities->places, &key);
}

static void no_longer_waits(struct process_identities *identities, struct process_place *place)
{
	if (!place->waits)
		return;
	TAILQ_REMOVE(&identities->waiting, place, waiting);
	identities->counts.waiting--;
	place->waits = false;
}

static void give_back_share(struct process_identities *identities, struct process_place *place)
{
	if (place->in_share)
		quota_give(&identities->shares, place->person, 0, 1);
	place->in_share = false;
}

static void forget(struct process_identities *identities, struct process_place *place)
{
	give_back_share(identities, place);
	no_longer_waits(identities, place);
	TAILQ_REMOVE(&identities->asked, place, asked);
	TAILQ_REMOVE(&identities->looked, place, looked);
	MAP_DROP(identities->places, place);
}

static void want(struct process_identities *identities, struct process_place *place)
{
	if (place->under_way)
		place->again = true; /* what is being read is the old one */
	if (place->waits || place->under_way)
		return;
	place->waits = true;
	TAILQ_INSERT_TAIL(&identities->waiting, place, waiting);
	identities->counts.waiting++;
	pthread_cond_signal(&identities->wake);
}

/* Who has ended is the next to give way. */
static void has_ended(struct process_identities *identities, struct process_place *place)
{
	place->ended = true;
	TAILQ_REMOVE(&identities->asked, place, asked);
	TAILQ_INSERT_HEAD(&identities->asked, place, asked);
}

static bool make_room(struct process_identities *identities, uint64_t now)
{
	struct process_place *first = TAILQ_FIRST(&identities->asked);

	if (HASH_COUNT(identities->places) < identities->options.most)
		return true;
	if (first->under_way || (!first->ended && now - first->asked_ns < STALE_NS))
		return false;
	forget(identities, first);
	return true;
}

static uint64_t ticks_since_boot(void)
{
	uint64_t a_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * a_second + (uint64_t)now.tv_nsec * a_second / 1000000000 + 1;
}

static struct process_place *make(struct process_identities *identities, pid_t pid,
                                  uint64_t incarnation, uint64_t now)
{
	struct process_place *place;

	if (!make_room(identities, now)) {
		identities->counts.refused++;
		return NULL;
	}
	place = xcalloc(1, sizeof(*place));
	place->key = (struct process_place_key){ incarnation, (uint64_t)pid };
	place->latest = ticks_since_boot();
	place->looked_ns = now;
	HASH_ADD(hh, identities->places, key, sizeof(place->key), place);
	TAILQ_INSERT_TAIL(&identities->asked, place, asked);
	TAILQ_INSERT_TAIL(&identities->looked, place, looked);
	want(identities, place);
	return place;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void store(struct process_identities *identities, struct process_place *place, bool found,
                  const struct process_identity *identity, uint64_t hash)
{
	identities->counts.reads++;
	identities->counts.gone += !found;
	pthread_cond_broadcast(&identities->settled);
	if (place->again) { /* that was another's, or an old one */
		place->again = false;
		want(identities, place);
		return;
	}
	if (!found) {
		has_ended(identities, place);
		return;
	}
	place->hash = hash;
	place->identity = *identity;
	place->known = true;
	place->tries++;
	identities->counts.unread += !identity->environment_read;
}

/* Without the lock while it reads. A place that is under way is not taken away. */
static void read_one(struct process_identities *identities, struct process_place *place)
{
	uint64_t latest = place->latest, hash = 0;
	struct process_identity identity;
	bool found;

	no_longer_waits(identities, place);
	place->under_way = true;
	if (identities->chosen)
		process_reader_choose(identities->reader, &identities->options.reader.choice);
	identities->chosen = false;
	pthread_mutex_unlock(&identities->lock);
	found = process_reader_look(identities->reader, (pid_t)place->key.pid, latest, &hash) &&
	        process_reader_read(identities->reader, (pid_t)place->key.pid, latest, &identity);
	pthread_mutex_lock(&identities->lock);
	place->under_way = false;
	store(identities, place, found, &identity, hash);
}

/* Whether name or cgroups have changed, or there is something to be tried again. */
static void look_at(struct process_identities *identities, struct process_place *place)
{
	uint64_t latest = place->latest, hash = 0;
	bool found;

	place->under_way = true;
	pthread_mutex_unlock(&identities->lock);
	found = process_reader_look(identities->reader, (pid_t)place->key.pid, latest, &hash);
	pthread_mutex_lock(&identities->lock);
	place->under_way = false;
	if (place->again || (found && hash != place->hash) ||
	    (found && !place->identity.environment_read && place->tries < TRIES_MAX))
		want(identities, place);
	else if (!found)
		has_ended(identities, place);
	place->again = false;
}

/* The next to be looked at again; NULL: none is due. */
static struct process_place *next_due(struct process_identities *identities, uint64_t now)
{
	uint64_t after_ns = (uint64_t)identities->options.again_ms * 1000000;
	struct process_place *place;

	while ((place = TAILQ_FIRST(&identities->looked)) && now - place->looked_ns >= after_ns) {
		TAILQ_REMOVE(&identities->looked, place, looked);
		TAILQ_INSERT_TAIL(&identities->looked, place, looked);
		place->looked_ns = now;
		if (place->known && !place->ended && !place->waits)
			return place;
	}
	return NULL;
}

/*
 * Reads that are asked for in masses wait for each other: a thousand processes a second that come
 * and go are to cost no more than a hundred.
 */
static bool may_read(struct process_identities *identities, uint64_t now)
{
	uint64_t least = now > BURST_NS ? now - BURST_NS : 0;

	if (identities->next_read_ns < least)
		identities->next_read_ns = least;
	if (identities->next_read_ns > now)
		return false;
	identities->next_read_ns += READ_NS;
	return true;
}

static void wait_some(struct process_identities *identities, uint64_t ns)
{
	struct timespec until = clock_timespec(clock_now_ns() + ns);

	identities->busy = false;
	pthread_cond_broadcast(&identities->settled);
	pthread_cond_timedwait(&identities->wake, &identities->lock, &until);
	identities->busy = true;
}

static void *work(void *data)
{
	struct process_identities *identities = data;

	LOCKED(&identities->lock);
	identities->busy = true;
	while (!identities->stop) {
		struct process_place *place = TAILQ_FIRST(&identities->waiting);
		uint64_t now = clock_now_ns(),
			 look_ns = (uint64_t)identities->options.again_ms * 100000;

		if (place && may_read(identities, now))
			read_one(identities, place);
		else if ((place = next_due(identities, now)))
			look_at(identities, place);
		else
			wait_some(identities, identities->counts.waiting ? READ_NS : look_ns);
	}
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void begin_waits(struct process_identities *identities)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&identities->lock, NULL);
	pthread_cond_init(&identities->wake, &attributes);
	pthread_cond_init(&identities->settled, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void end_waits(struct process_identities *identities)
{
	pthread_cond_destroy(&identities->settled);
	pthread_cond_destroy(&identities->wake);
	pthread_mutex_destroy(&identities->lock);
}

struct process_identities *process_identities_new(const struct process_identities_options *options,
                                                  struct err *err)
{
	struct process_identities *identities = xcalloc(1, sizeof(*identities));
	sigset_t all, old;
	int rc = 0;

	identities->options = *options;
	if (!options->most)
		identities->options.most = PROCESS_IDENTITIES_MAX;
	if (!options->again_ms)
		identities->options.again_ms = PROCESS_AGAIN_MS;
	TAILQ_INIT(&identities->waiting);
	TAILQ_INIT(&identities->asked);
	TAILQ_INIT(&identities->looked);
	begin_waits(identities);
	identities->reader = process_reader_new(&identities->options.reader);
	if (!identities->reader)
		rc = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the main thread */
	if (!rc)
		rc = pthread_create(&identities->thread, NULL, work, identities);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return identities;
	err_set(err, rc, "cannot begin to read who processes are: %s", strerror(rc));
	process_reader_free(identities->reader);
	end_waits(identities);
	free(identities);
	return NULL;
}

void process_identities_free(struct process_identities *identities)
{
	if (!identities)
		return;
	pthread_mutex_lock(&identities->lock);
	identities->stop = true;
	pthread_cond_signal(&identities->wake);
	pthread_mutex_unlock(&identities->lock);
	pthread_join(identities->thread, NULL);
	while (identities->places)
		forget(identities, identities->places);
	quota_free(&identities->shares);
	process_reader_free(identities->reader);
	end_waits(identities);
	free(identities);
}

/* ---- questions ----------------------------------------------------------------------------- */

static void was_asked(struct process_identities *identities, struct process_place *place,
                      uint64_t now)
{
	place->asked_ns = now;
	if (place->ended)
		return;
	TAILQ_REMOVE(&identities->asked, place, asked);
	TAILQ_INSERT_TAIL(&identities->asked, place, asked);
}

bool process_identities_get(struct process_identities *identities, pid_t pid, uint64_t incarnation,
                            struct process_identity *identity)
{
	struct process_place *place;
	bool known = false;
	uint64_t now;

	LOCKED(&identities->lock);
	now = clock_now_ns();
	place = find(identities, pid, incarnation);
	if (!place)
		place = make(identities, pid, incarnation, now);
	if (place) {
		was_asked(identities, place, now);
		known = place->known;
	}
	if (known)
		*identity = place->identity;
	return known;
}

/* Known, or found to be gone, or forgotten meanwhile. */
static bool is_over(const struct process_place *place)
{
	return !place || place->known || place->ended;
}

bool process_identities_get_soon(struct process_identities *identities, pid_t pid,
                                 uint64_t incarnation, unsigned ms,
                                 struct process_identity *identity)
{
	uint64_t now = clock_now_ns();
	struct timespec until = clock_timespec(now + (uint64_t)ms * 1000000);
	struct process_place *place;
	bool known = false;
	int rc = 0;

	LOCKED(&identities->lock);
	place = identities->counts.waiting || identities->next_read_ns > now
	                ? NULL
	                : make(identities, pid, incarnation, now);
	while (!rc && !is_over(place)) {
		rc = pthread_cond_timedwait(&identities->settled, &identities->lock, &until);
		place = find(identities, pid, incarnation);
	}
	known = place && place->known;
	if (known)
		*identity = place->identity;
	if (place && !place->ended)
		has_ended(identities, place);
	return known;
}

/* The share is taken now, since another place of the same person may be the one to go. */
static bool make_expected(struct process_identities *identities, pid_t pid, uint64_t incarnation,
                          uint64_t person)
{
	struct process_place *place;

	if (quota_take(&identities->shares, person, 0, 1)) {
		identities->counts.over_share++;
		return false;
	}
	place = make(identities, pid, incarnation, clock_now_ns());
	if (!place) {
		quota_give(&identities->shares, person, 0, 1);
		return false;
	}
	place->person = person;
	place->in_share = true;
	place->asked_ns = clock_now_ns();
	return true;
}

bool process_identities_expect(struct process_identities *identities, pid_t pid,
                               uint64_t incarnation, uint64_t person, unsigned share)
{
	struct process_place *place;
	bool has_room = true;

	LOCKED(&identities->lock);
	identities->shares.user.most = share;
	place = find(identities, pid, incarnation);
	if (place)
		was_asked(identities, place, clock_now_ns());
	else
		has_room = make_expected(identities, pid, incarnation, person);
	return has_room;
}

bool process_identities_end(struct process_identities *identities, pid_t pid, uint64_t incarnation,
                            struct process_identity *identity)
{
	struct process_place *place;
	bool known = false;

	LOCKED(&identities->lock);
	place = find(identities, pid, incarnation);
	if (place && !place->ended)
		has_ended(identities, place);
	known = place && place->known;
	if (known)
		*identity = place->identity;
	return known;
}

void process_identities_choose(struct process_identities *identities,
                               const struct process_label_choice *choice)
{
	struct process_place *place, *next;

	LOCKED(&identities->lock);
	identities->options.reader.choice = *choice;
	identities->chosen = true;
	HASH_ITER (hh, identities->places, place, next) {
		memset(place->identity.chosen, 0, sizeof(place->identity.chosen));
		if (!place->ended)
			want(identities, place);
	}
}

void process_identities_count(struct process_identities *identities,
                              struct process_identities_counts *counts)
{
	LOCKED(&identities->lock);
	*counts = identities->counts;
	counts->kept = HASH_COUNT(identities->places);
}

bool process_identities_settle(struct process_identities *identities, unsigned ms)
{
	struct timespec until = clock_timespec(clock_now_ns() + (uint64_t)ms * 1000000);
	int rc = 0;

	LOCKED(&identities->lock);
	while (!rc && (identities->busy || identities->counts.waiting))
		rc = pthread_cond_timedwait(&identities->settled, &identities->lock, &until);
	return !identities->busy && !identities->counts.waiting;
}
