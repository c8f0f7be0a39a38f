// SPDX-License-Identifier: MIT
#include "capture/tids.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "base/owned.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"

#define AGAIN_NS      1000000ull /* after a look in vain, and twice that after the next */
#define AGAIN_MOST_NS 100000000ull
#define AGAIN_TIMES   10 /* as long as the look has taken, where that is more */
#define THREADS_MAX   16384
#define RECENT        64

struct tid_key {
	uint32_t pid, tid;
};

struct tid_known {
	struct tid_key key;
	uint32_t host;
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
};

struct tids *tids_new(void)
{
	return xcalloc(1, sizeof(struct tids));
}

static void known_drop(struct tids *tids, struct tid_known *known)
{
	tids->recent_of[known->key.tid % RECENT] = NULL;
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
	free(tids);
}

static void learn(struct tids *tids, uint32_t pid, uint32_t tid, uint32_t host)
{
	struct tid_key key = { pid, tid };
	struct tid_known *known = MAP_FIND(tids->known, &key);

	if (!known) {
		if (HASH_COUNT(tids->known) >= THREADS_MAX)
			known_drop(tids, tids->known);
		known = MAP_ADD(tids->known, key, &key);
		owned_add(&tids->owners, pid, &known->owned);
	}
	known->host = host;
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

static void read_threads(struct tids *tids, const struct namespace *namespace)
{
	AT_END(process_list_end) DIR *threads = process_list((pid_t) namespace->pid);
	uint32_t host, tid;

	while ((host = (uint32_t)process_next(threads))) {
		tid = innermost_of(namespace->pid, host);
		if (tid)
			learn(tids, namespace->pid, tid, host);
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

/* Of a thread that has ended nobody can tell, and nothing of it can be mixed up. */
static bool is_another_process(uint32_t pid, uint32_t tid)
{
	char own[64], any[32];

	snprintf(own, sizeof(own), "/proc/%u/task/%u", pid, tid);
	snprintf(any, sizeof(any), "/proc/%u", tid);
	return !is_there(own) && is_there(any);
}

/*
 * It may tell of threads that it never had, of another one in each record: each such number is
 * asked for on the account of its user. 0: that is used up, or it is another process's thread.
 */
static uint32_t check_number(struct tids *tids, uint32_t pid, uint32_t tid)
{
	uint64_t person = helper_person_of((pid_t)pid), busy_ns;
	bool its;

	if (look_time_is_over(LOOK_INTO_CALLS, person))
		return 0;
	busy_ns = helper_busy_ns();
	its = !is_another_process(pid, tid);
	if (its)
		learn(tids, pid, tid, tid);
	look_time_charge(LOOK_INTO_CALLS, person, helper_busy_ns() - busy_ns);
	return its ? tid : 0;
}

static uint32_t find(struct tids *tids, struct tid_key key)
{
	struct tid_known **recent = &tids->recent_of[key.tid % RECENT], *known = *recent;

	if (known && known->key.pid == key.pid && known->key.tid == key.tid)
		return known->host;
	known = MAP_FIND(tids->known, &key);
	if (known)
		*recent = known;
	return known ? known->host : 0;
}

uint32_t tids_host(struct tids *tids, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	struct namespace *namespace = namespace_of(tids, pid);
	struct tid_key key = { pid, tid };
	uint64_t took_ns;
	uint32_t host;

	host = find(tids, key);
	if (host || now_ns < namespace->next_ns)
		return host;
	if (namespace->initial)
		return check_number(tids, pid, tid);
	took_ns = helper_busy_ns();
	read_threads(tids, namespace);
	took_ns = helper_busy_ns() - took_ns;
	host = find(tids, key);
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
