// SPDX-License-Identifier: MIT
#include "report/gaps/gap_waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/hash.h"
#include "base/xalloc.h"

static const struct {
	const char *name, *text;
} waits_told[GAP_WAITS] = {
	[GAP_WAIT_PROGRAM] = { "program", "ran code of the program" },
	[GAP_WAIT_CPU] = { "cpu", "waited for a CPU" },
	[GAP_WAIT_DISK] = { "disk", "waited for the disk" },
	[GAP_WAIT_NETWORK] = { "network", "waited for the network" },
	[GAP_WAIT_MEMORY] = { "memory", "waited for pages of memory" },
	[GAP_WAIT_LOCK] = { "lock", "waited for another thread" },
	[GAP_WAIT_SLEEP] = { "sleep", "slept on purpose" },
	[GAP_WAIT_PROCESS] = { "process", "waited for a pipe, an event or a child" },
	[GAP_WAIT_DRIVER] = { "driver", "was in calls of CUDA" },
	[GAP_WAIT_OTHER] = { "other", "was stopped, or blocked in other system calls" },
	[GAP_WAIT_UNKNOWN] = { "unknown", "did what was not recorded" },
};

const char *gap_wait_name(enum gap_wait wait)
{
	return waits_told[wait].name;
}

const char *gap_wait_text(enum gap_wait wait)
{
	return waits_told[wait].text;
}

enum gap_wait gap_wait_of(enum wait_kind kind)
{
	switch (kind) {
	case WAIT_CPU:
		return GAP_WAIT_CPU;
	case WAIT_DISK:
		return GAP_WAIT_DISK;
	case WAIT_NETWORK:
		return GAP_WAIT_NETWORK;
	case WAIT_FAULT:
	case WAIT_SWAP:
		return GAP_WAIT_MEMORY;
	case WAIT_LOCK:
		return GAP_WAIT_LOCK;
	case WAIT_SLEEP:
		return GAP_WAIT_SLEEP;
	case WAIT_PIPE:
	case WAIT_EVENTS:
	case WAIT_CHILD:
		return GAP_WAIT_PROCESS;
	case WAIT_DEVICE:
		return GAP_WAIT_DRIVER;
	case WAIT_STOP:
	case WAIT_CALL:
		return GAP_WAIT_OTHER;
	case WAIT_UNKNOWN:
	case WAIT_COUNT:
		break;
	}
	return GAP_WAIT_UNKNOWN;
}

/* ---- who ----------------------------------------------------------------------------------- */

struct kept_who {
	struct gap_who who; /* the key */
	uint32_t number;
	UT_hash_handle hh;
};

struct gap_whos {
	struct kept_who *by_name;
	struct kept_who *at[GAP_WHO_MOST];
	uint32_t n;
};

struct gap_whos *gap_whos_new(void)
{
	struct gap_whos *whos = xcalloc(1, sizeof(*whos));

	whos->n = GAP_WHO_FIRST;
	return whos;
}

void gap_whos_free(struct gap_whos *whos)
{
	struct kept_who *who, *next;

	if (!whos)
		return;
	HASH_ITER (hh, whos->by_name, who, next) {
		HASH_DEL(whos->by_name, who);
		free(who);
	}
	free(whos);
}

uint32_t gap_whos_number(struct gap_whos *whos, const char *name, uint32_t number)
{
	struct gap_who key = { .number = number };
	struct kept_who *kept;

	if (!name)
		return GAP_WHO_NOBODY;
	snprintf(key.name, sizeof(key.name), "%s", name);
	HASH_FIND(hh, whos->by_name, &key, sizeof(key), kept);
	if (kept)
		return kept->number;
	if (whos->n == GAP_WHO_MOST)
		return GAP_WHO_OTHERS;
	kept = xcalloc(1, sizeof(*kept));
	kept->who = key;
	kept->number = whos->n;
	whos->at[whos->n++] = kept;
	HASH_ADD(hh, whos->by_name, who, sizeof(kept->who), kept);
	return kept->number;
}

const struct gap_who *gap_whos_at(const struct gap_whos *whos, uint32_t who)
{
	static const struct gap_who nobody = { .name = "(nobody)" },
				    others = { .name = "(others)" };

	if (who == GAP_WHO_NOBODY)
		return &nobody;
	return who < whos->n && whos->at[who] ? &whos->at[who]->who : &others;
}

static void add_who(struct gap_wait_sum *sum, uint32_t who, uint64_t ns, uint64_t count)
{
	size_t n_counts = sum->n_who;

	sum->who_ns = by_id_room(sum->who_ns, &sum->n_who, sizeof(*sum->who_ns), who);
	sum->who_count = by_id_room(sum->who_count, &n_counts, sizeof(*sum->who_count), who);
	sum->who_ns[who] += ns;
	sum->who_count[who] += count;
}

/* ---- one gap ------------------------------------------------------------------------------- */

/*
 * In a call of CUDA a disk, memory or a CPU that is not there is what it waited for; all else that
 * the call waits for is the call's own way to wait for the GPU or the driver.
 */
static bool is_the_call(enum gap_wait wait)
{
	return wait != GAP_WAIT_CPU && wait != GAP_WAIT_DISK && wait != GAP_WAIT_MEMORY;
}

void gap_split_add(struct gap_split *split, const struct gap_sampled *sampled)
{
	enum gap_wait wait = gap_wait_of(sampled->wait);
	struct gap_wait_sum *sum;

	if (!sampled->blocked)
		return;
	if (sampled->in_call) {
		if (is_the_call(wait))
			return;
		split->in_calls += sampled->ns;
	}
	split->wait_ns[wait] += sampled->ns;
	sum = &split->into->of[wait];
	sum->count++;
	if (sampled->ns > sum->longest_ns)
		sum->longest_ns = sampled->ns;
	if (gap_wait_has_who(wait))
		add_who(sum, sampled->who, sampled->ns, 1);
	if (sampled->stack)
		gap_stacks_add(&sum->lines, split->room, sampled);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What is left of the time when waits, which were measured, are taken off. */
static void share_rest(struct gap_split *split)
{
	uint64_t waited_ns = 0, left_ns, driver_ns;

	for (size_t i = 0; i < GAP_WAITS; i++) { /* they do not overlap, but in a damaged trace */
		split->wait_ns[i] = lesser(split->wait_ns[i], split->ns - waited_ns);
		waited_ns += split->wait_ns[i];
	}
	left_ns = split->ns - waited_ns;
	driver_ns = split->cuda_ns - lesser(split->in_calls, split->cuda_ns);
	driver_ns = lesser(driver_ns, left_ns);
	split->wait_ns[GAP_WAIT_DRIVER] += driver_ns;
	split->wait_ns[GAP_WAIT_PROGRAM] += left_ns - driver_ns;
}

enum gap_wait gap_split_end(struct gap_split *split, uint64_t gap_ns, uint64_t *most_ns)
{
	enum gap_wait most = GAP_WAIT_PROGRAM;

	share_rest(split);
	split->into->gap_ns += gap_ns;
	split->into->host_ns += split->ns;
	for (size_t i = 0; i < GAP_WAITS; i++) {
		split->into->of[i].ns += split->wait_ns[i];
		if (split->wait_ns[i] > split->wait_ns[most])
			most = (enum gap_wait)i;
	}
	*most_ns = split->wait_ns[most];
	return most;
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void free_sum(struct gap_wait_sum *sum)
{
	gap_stacks_free(&sum->lines);
	free(sum->who_ns);
	free(sum->who_count);
	memset(sum, 0, sizeof(*sum));
}

void gap_waits_free(struct gap_waits *waits)
{
	for (size_t i = 0; i < GAP_WAITS; i++)
		free_sum(&waits->of[i]);
}

static void move_sum(struct gap_wait_sum *to, struct gap_wait_sum *from, size_t *room)
{
	to->ns += from->ns;
	to->count += from->count;
	if (from->longest_ns > to->longest_ns)
		to->longest_ns = from->longest_ns;
	for (size_t i = 0; i < from->n_who; i++) {
		if (from->who_count[i])
			add_who(to, (uint32_t)i, from->who_ns[i], from->who_count[i]);
	}
	gap_stacks_move(&to->lines, &from->lines, room);
	free_sum(from);
}

void gap_waits_move(struct gap_waits *to, struct gap_waits *from, size_t *room)
{
	to->gap_ns += from->gap_ns;
	to->host_ns += from->host_ns;
	for (size_t i = 0; i < GAP_WAITS; i++)
		move_sum(&to->of[i], &from->of[i], room);
	memset(from, 0, sizeof(*from));
}

size_t gap_waits_who(const struct gap_wait_sum *sum, struct gap_who_sum *rows, size_t most,
                     uint64_t *rest_ns)
{
	uint64_t told_ns = 0, all_ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < sum->n_who; i++) {
		const struct gap_who_sum row = { (uint32_t)i, sum->who_ns[i], sum->who_count[i] };
		size_t at = n;

		all_ns += row.ns;
		if (!row.count || (n == most && (!most || rows[n - 1].ns >= row.ns)))
			continue;
		at = n == most ? n - 1 : n++;
		for (; at && rows[at - 1].ns < row.ns; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
	for (size_t i = 0; i < n; i++)
		told_ns += rows[i].ns;
	*rest_ns = all_ns - told_ns;
	return n;
}

size_t gap_waits_order(const struct gap_waits *waits, enum gap_wait order[GAP_WAITS])
{
	size_t n = 0;

	for (size_t i = 0; i < GAP_WAITS; i++) {
		size_t at = n;

		if (!waits->of[i].ns)
			continue;
		for (; at && waits->of[order[at - 1]].ns < waits->of[i].ns; at--)
			order[at] = order[at - 1];
		order[at] = (enum gap_wait)i;
		n++;
	}
	return n;
}
