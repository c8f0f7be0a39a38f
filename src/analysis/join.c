// SPDX-License-Identifier: MIT
#include "analysis/join.h"

#include <stdlib.h>
#include <uthash.h>

#include "analysis/pairs.h"
#include "base/xalloc.h"

struct key {
	uint64_t process, correlation;
};

struct launch_entry {
	struct half half; /* first */
	struct join_launch launch;
};

/* Kernels that wait for one launch: a list, since a graph's launch has many. */
struct kernel_entry {
	struct key key;
	struct activity activity;
	struct kernel_entry *next; /* of the same launch */
	bool first;                /* it is the one in the hash */
	bool used;
	UT_hash_handle hh;
};

struct join {
	join_pair pair;
	void *data;
	struct pairs *launches;
	struct kernel_entry *kernels, *kernel_hash; /* the entries are a ring */
	size_t next_kernel;
	uint64_t waiting, dropped;
};

struct join *join_new(join_pair pair, void *data)
{
	struct join *join = xcalloc(1, sizeof(*join));

	join->pair = pair;
	join->data = data;
	join->launches = pairs_new(sizeof(struct launch_entry), NULL, NULL);
	pairs_expect_late(join->launches, PAIRS_BYTES);
	return join;
}

void join_free(struct join *join)
{
	if (!join)
		return;
	HASH_CLEAR(hh, join->kernel_hash);
	pairs_free(join->launches);
	free(join->kernels);
	free(join);
}

static struct key key_of(const struct event *event, uint64_t correlation)
{
	return (struct key){ event->process->id, correlation };
}

/* ---- launches ------------------------------------------------------------------------------ */

static struct launch_entry *keep_launch(struct join *join, const struct event *event)
{
	const struct call *call = event->call;
	struct launch_entry *entry =
		pairs_add(join->launches, event->process->id, call->correlation, true);

	entry->launch = (struct join_launch){
		.process = event->process,
		.tid = event->tid,
		.function = call->function,
		.correlation = call->correlation,
		.begin_ns = call->begin_ns,
		.end_ns = call_has_end(call) ? call->end_ns : 0,
	};
	return entry;
}

/* ---- kernels that came first --------------------------------------------------------------- */

/* Takes a kernel's whole list out of the hash. */
static void forget_list(struct join *join, struct kernel_entry *first)
{
	HASH_DELETE(hh, join->kernel_hash, first);
	for (struct kernel_entry *entry = first; entry; entry = entry->next) {
		entry->used = entry->first = false;
		join->waiting--;
	}
}

/* The oldest makes room; what waits for the same launch would wait in vain, too. */
static void drop_kernel(struct join *join, struct kernel_entry *entry)
{
	struct kernel_entry *first;
	uint64_t before = join->waiting;

	HASH_FIND(hh, join->kernel_hash, &entry->key, sizeof(entry->key), first);
	forget_list(join, first);
	join->dropped += before - join->waiting;
}

static void keep_kernel(struct join *join, const struct event *event)
{
	struct kernel_entry *entry, *first;

	if (!join->kernels)
		join->kernels = xcalloc(JOIN_KEPT, sizeof(*join->kernels));
	entry = &join->kernels[join->next_kernel];
	join->next_kernel = (join->next_kernel + 1) % JOIN_KEPT;
	if (entry->used)
		drop_kernel(join, entry);
	memset(entry, 0, sizeof(*entry));
	entry->key = key_of(event, event->activity->correlation);
	entry->activity = *event->activity;
	entry->used = true;
	join->waiting++;
	HASH_FIND(hh, join->kernel_hash, &entry->key, sizeof(entry->key), first);
	if (first) {
		entry->next = first->next;
		first->next = entry;
		return;
	}
	entry->first = true;
	HASH_ADD(hh, join->kernel_hash, key, sizeof(entry->key), entry);
}

/* ---- pairs --------------------------------------------------------------------------------- */

static int take_launch(struct join *join, const struct event *event, struct err *err)
{
	struct launch_entry *launch = keep_launch(join, event);
	struct key key = key_of(event, event->call->correlation);
	struct kernel_entry *first;
	int rc = 0;

	if (!join->waiting)
		return 0;
	HASH_FIND(hh, join->kernel_hash, &key, sizeof(key), first);
	if (!first)
		return 0;
	pairs_meet(join->launches, launch);
	forget_list(join, first);
	for (struct kernel_entry *entry = first; entry && !rc; entry = entry->next)
		rc = join->pair(join->data, &launch->launch, &entry->activity, err);
	return rc;
}

static int take_kernel(struct join *join, const struct event *event, struct err *err)
{
	struct key key = key_of(event, event->activity->correlation);
	struct launch_entry *entry;

	if (!key.correlation || !event->activity->kernel) {
		join->dropped++;
		return 0;
	}
	entry = pairs_find(join->launches, event->process->id, key.correlation);
	if (!entry) {
		keep_kernel(join, event);
		return 0;
	}
	pairs_meet(join->launches, entry);
	return join->pair(join->data, &entry->launch, event->activity, err);
}

/* What did not run waits for no kernel. */
static bool has_kernels(const struct call *call)
{
	return (call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH) &&
	       !(call->flags & (CALL_FAILED | CALL_CAPTURED));
}

int join_event(struct join *join, const struct event *event, struct err *err)
{
	if (event->type == EVENT_ACTIVITY && event->activity->kind == ACTIVITY_KERNEL)
		return take_kernel(join, event, err);
	if (event->type == EVENT_CALL && event->call->correlation && has_kernels(event->call))
		return take_launch(join, event, err);
	return 0;
}

uint64_t join_unmatched(const struct join *join)
{
	return join->waiting + join->dropped;
}
