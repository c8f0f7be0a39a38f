// SPDX-License-Identifier: MIT
#include "capture/tids.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "base/owned.h"
#include "base/process.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"

#define AGAIN_NS      1000000ull /* after a look in vain, and twice that after the next */
#define AGAIN_MOST_NS 100000000ull
#define AGAIN_TIMES   10 /* as long as the look has taken, where that is more */
#define THREADS_MAX   16384
#define THREADS_USER  (THREADS_MAX / 5 * 2) /* a user's but root */
#define RECENT        64
/* How long a number is taken for a thread's: it ends, and others' threads have its number. */
#define THERE_NS 5000000000ull
#define GONE_NS  100000000ull /* where it has ended already */

struct tid_key {
	uint32_t pid, tid;
};

struct tid_known {
	struct tid_key key;
	uint32_t host;
	uint64_t person, until_ns; /* until_ns: to be looked at again then */
	struct owned owned;
	UT_hash_handle hh;
};

struct namespace
{
	uint32_t pid;
	bool initial;      /* its tids are the host's */
	uint64_t next_ns;  /* when to look again */
	uint64_t again_ns; /* how long after a look in vain */
	UT_hash_handle hh;
};

struct tids {
	struct tid_known *known;
	struct owner *owners;
	struct namespace *namespaces, *recent;
	struct tid_known *recent_of[RECENT]; /* by tid */
	struct quota shares;                 /* of `known` */
};

struct tids *tids_new(void)
{
	struct tids *tids = xcalloc(1, sizeof(*tids));

	tids->shares.user.most = THREADS_USER;
	return tids;
}

static void known_drop(struct tids *tids, struct tid_known *known)
{
	tids->recent_of[known->key.tid % RECENT] = NULL;
	quota_give(&tids->shares, known->person, 0, 1);
	owned_remove(&tids->owners, &known->owned);
	MAP_DROP(tids->known, known);
}

static void namespace_drop(struct tids *tids, struct namespace *namespace)
{
	tids->recent = NULL;
	MAP_DROP(tids->namespaces, namespace);
}

void tids_free(struct tids *tids)
{
	struct namespace *namespace, *next_namespace;
	struct tid_known *known, *next;

	if (!tids)
		return;
	HASH_ITER (hh, tids->known, known, next) {
		known_drop(tids, known);
	}
	HASH_ITER (hh, tids->namespaces, namespace, next_namespace) {
		namespace_drop(tids, namespace);
	}
	quota_free(&tids->shares);
	free(tids);
}

/* Of who has his share his process's own makes room, if it has any. */
static bool make_room(struct tids *tids, uint32_t pid, uint64_t person)
{
	struct owned *own;

	if (quota_refuses(&tids->shares, person, 0, 1)) {
		own = owned_first(tids->owners, pid);
		if (own)
			known_drop(tids, OWNED_ENTRY(own, struct tid_known));
		return own;
	}
	if (HASH_COUNT(tids->known) >= THREADS_MAX)
		known_drop(tids, tids->known);
	return true;
}

static void learn(struct tids *tids, uint32_t pid, uint32_t tid, uint32_t host, uint64_t until_ns)
{
	struct tid_key key = { pid, tid };
	struct tid_known *known = MAP_FIND(tids->known, &key);
	uint64_t person = helper_person_of((pid_t)pid);

	if (!known && !make_room(tids, pid, person))
		return;
	if (!known) {
		known = MAP_ADD(tids->known, key, &key);
		known->person = person;
		quota_add(&tids->shares, person, 0, 1);
		owned_add(&tids->owners, pid, &known->owned);
	}
	known->host = host;
	known->until_ns = until_ns;
}

/*
 * The number that a process knows a thread of its by. A process can make each of these reads take
 * long, and have tens of thousands of threads. 0: its user has had his part of the time, or the
 * thread is gone.
 */
static uint32_t innermost_of(uint32_t pid, uint32_t tid)
{
	uint64_t person = helper_person_of((pid_t)pid), busy_ns = helper_busy_ns();
	pid_t inner;

	if (look_time_is_over(LOOK_AT_THREADS, person))
		return 0;
	inner = process_own_number((pid_t)pid, (pid_t)tid);
	look_time_charge(LOOK_AT_THREADS, person, helper_busy_ns() - busy_ns);
	return (uint32_t)inner;
}

static void read_threads(struct tids *tids, const struct namespace *namespace, uint64_t now_ns)
{
	AT_END(process_list_end) DIR *threads = process_list((pid_t) namespace->pid);
	uint32_t host, tid;

	while ((host = (uint32_t)process_next(threads))) {
		tid = innermost_of(namespace->pid, host);
		if (tid)
			learn(tids, namespace->pid, tid, host, now_ns + THERE_NS);
	}
}

static struct namespace *namespace_of(struct tids *tids, uint32_t pid)
{
	struct namespace *namespace = tids->recent;
	uint32_t inner;

	if (namespace && namespace->pid == pid)
		return namespace;
	namespace = MAP_FIND(tids->namespaces, &pid);
	if (!namespace) {
		inner = innermost_of(pid, pid);
		namespace = MAP_ADD(tids->namespaces, pid, &pid);
		/* one that is gone by now counted like us, as nearly all do */
		namespace->initial = inner ? inner == pid : process_is_over((pid_t)pid);
	}
	return tids->recent = namespace;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/*
 * Until when the number may be taken for a thread of the process; 0: it is another process's. Of a
 * thread that has ended nobody can tell, and nothing of it can be mixed up, until its number is
 * given to another one. Each such look is on the account of the process's user.
 */
static uint64_t look_until(uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	uint64_t person = helper_person_of((pid_t)pid), busy_ns, until_ns;
	char own[64], any[32];

	if (look_time_is_over(LOOK_INTO_CALLS, person))
		return 0;
	busy_ns = helper_busy_ns();
	snprintf(own, sizeof(own), "/proc/%u/task/%u", pid, tid);
	snprintf(any, sizeof(any), "/proc/%u", tid);
	until_ns = is_there(own) ? now_ns + THERE_NS : is_there(any) ? 0 : now_ns + GONE_NS;
	look_time_charge(LOOK_INTO_CALLS, person, helper_busy_ns() - busy_ns);
	return until_ns;
}

/* It may tell of threads that it never had, of another one in each record. */
static uint32_t check_number(struct tids *tids, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	uint64_t until_ns = look_until(pid, tid, now_ns);

	if (until_ns)
		learn(tids, pid, tid, tid, until_ns);
	return until_ns ? tid : 0;
}

/* 0: it is not known, or is another process's thread by now. */
static uint32_t find(struct tids *tids, struct tid_key key, uint64_t now_ns)
{
	struct tid_known **recent = &tids->recent_of[key.tid % RECENT], *known = *recent;

	if (!known || known->key.pid != key.pid || known->key.tid != key.tid)
		known = MAP_FIND(tids->known, &key);
	if (!known)
		return 0;
	*recent = known;
	if (now_ns >= known->until_ns)
		known->until_ns = look_until(key.pid, known->host, now_ns);
	if (known->until_ns)
		return known->host;
	known_drop(tids, known);
	return 0;
}

uint32_t tids_host(struct tids *tids, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	struct namespace *namespace = namespace_of(tids, pid);
	struct tid_key key = { pid, tid };
	uint64_t took_ns;
	uint32_t host;

	host = find(tids, key, now_ns);
	if (host || now_ns < namespace->next_ns)
		return host;
	if (namespace->initial)
		return check_number(tids, pid, tid, now_ns);
	took_ns = helper_busy_ns();
	read_threads(tids, namespace, now_ns);
	took_ns = helper_busy_ns() - took_ns;
	host = find(tids, key, now_ns);
	if (host) {
		namespace->again_ns = 0;
		return host;
	}
	namespace->again_ns = namespace->again_ns ? 2 * namespace->again_ns : AGAIN_NS;
	if (namespace->again_ns > AGAIN_MOST_NS)
	namespace->again_ns = AGAIN_MOST_NS;
	namespace->next_ns =
		now_ns + (took_ns * AGAIN_TIMES > namespace->again_ns ? took_ns * AGAIN_TIMES
	                                                              : namespace->again_ns);
	return 0;
}

void tids_forget(struct tids *tids, uint32_t pid)
{
	struct owned *owned, *next;
	struct namespace *namespace = MAP_FIND(tids->namespaces, &pid);

	if (!namespace)
		return;
	for (owned = owned_first(tids->owners, pid); owned; owned = next) {
		next = owned_next(owned);
		known_drop(tids, OWNED_ENTRY(owned, struct tid_known));
	}
	namespace_drop(tids, namespace);
}
