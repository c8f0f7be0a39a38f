// SPDX-License-Identifier: MIT
#include "output/svg/memory_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"

#define FIRST_WIDTH_NS 1024

struct memory_plot *memory_plot_new(uint64_t zero_ns)
{
	struct memory_plot *plot = xcalloc(1, sizeof(*plot));

	plot->zero_ns = zero_ns;
	plot->begin_ns = zero_ns;
	plot->width_ns = FIRST_WIDTH_NS;
	plot->now.time_ns = zero_ns;
	plot->peak.time_ns = zero_ns;
	plot->buckets = xcalloc(HISTORY_BUCKETS, sizeof(*plot->buckets));
	return plot;
}

void memory_plot_free(struct memory_plot *plot)
{
	if (!plot)
		return;
	MAP_FREE(plot->holders, free);
	free(plot->buckets);
	free(plot);
}

/* ---- buckets --------------------------------------------------------------------------------- */

static void merge_failures(struct failure *into, const struct failure *from)
{
	uint64_t count = into->count + from->count;

	if (!into->count || (from->count && from->bytes > into->bytes))
		*into = *from;
	into->count = count;
}

static void merge_bucket(struct bucket *into, const struct bucket *from)
{
	struct failure failure = into->failure;

	merge_failures(&failure, &from->failure);
	if (!into->used) {
		*into = *from;
	} else if (from->used) {
		if (from->low.total < into->low.total)
			into->low = from->low;
		if (from->high.total > into->high.total)
			into->high = from->high;
		into->last = from->last;
	}
	into->failure = failure;
}

/* Twice the time in the same number of buckets. */
static void widen(struct memory_plot *plot)
{
	struct bucket *b = plot->buckets;

	for (size_t i = 0; i < HISTORY_BUCKETS / 2; i++) {
		if (i)
			b[i] = b[2 * i];
		merge_bucket(&b[i], &b[2 * i + 1]);
	}
	memset(b + HISTORY_BUCKETS / 2, 0, HISTORY_BUCKETS / 2 * sizeof(*b));
	plot->width_ns *= 2;
}

static struct bucket *bucket_at(struct memory_plot *plot, uint64_t time_ns)
{
	while ((time_ns - plot->begin_ns) / plot->width_ns >= HISTORY_BUCKETS)
		widen(plot);
	return &plot->buckets[(time_ns - plot->begin_ns) / plot->width_ns];
}

void history_settle(struct memory_plot *plot)
{
	struct bucket *bucket = bucket_at(plot, plot->now.time_ns);

	if (!bucket->used || plot->now.total < bucket->low.total)
		bucket->low = plot->now;
	if (!bucket->used || plot->now.total > bucket->high.total)
		bucket->high = plot->now;
	bucket->last = plot->now;
	bucket->used = true;
	if (plot->now.total > plot->peak.total)
		plot->peak = plot->now;
	for (size_t i = 0; i < MEMORY_COUNT; i++) {
		if (plot->now.live[ROW_KINDS + i] > plot->kind_peak[i])
			plot->kind_peak[i] = plot->now.live[ROW_KINDS + i];
	}
}

/* What happens at the same time is one moment: a context that ends takes all kinds with it. */
static void advance(struct memory_plot *plot, uint64_t time_ns)
{
	bool later = time_ns > plot->now.time_ns;

	if (later && plot->any)
		history_settle(plot);
	else if (later)
		plot->begin_ns = time_ns;
	plot->any = true;
	if (later)
		plot->now.time_ns = time_ns;
}

size_t history_moments(const struct memory_plot *plot, const struct moment **moments)
{
	size_t n = 0;

	for (size_t i = 0; i < HISTORY_BUCKETS; i++) {
		const struct bucket *bucket = &plot->buckets[i];
		bool rises = bucket->low.time_ns <= bucket->high.time_ns;

		if (!bucket->used)
			continue;
		moments[n++] = rises ? &bucket->low : &bucket->high;
		moments[n++] = rises ? &bucket->high : &bucket->low;
		moments[n++] = &bucket->last;
	}
	return n;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void move_to_others(struct moment *moment, unsigned row)
{
	moment->live[ROW_OTHERS] += moment->live[row];
	moment->live[row] = 0;
}

/* The process that never held much loses its row. */
static unsigned make_room(struct memory_plot *plot)
{
	struct holder *holder;
	unsigned row = 0;

	for (unsigned i = 1; i < HISTORY_PROCESSES; i++) {
		if (plot->owners[i].peak < plot->owners[row].peak)
			row = i;
	}
	for (size_t i = 0; i < HISTORY_BUCKETS; i++) {
		move_to_others(&plot->buckets[i].low, row);
		move_to_others(&plot->buckets[i].high, row);
		move_to_others(&plot->buckets[i].last, row);
	}
	move_to_others(&plot->now, row);
	move_to_others(&plot->peak, row);
	holder = MAP_FIND(plot->holders, &plot->owners[row].id);
	if (holder)
		holder->row = ROW_OTHERS;
	plot->merged++;
	return row;
}

static void name_process(char name[40], const struct process *process)
{
	snprintf(name, 40, "%.*s (%u)", (int)sizeof(process->comm), process->comm, process->pid);
}

static unsigned row_of(struct memory_plot *plot, const struct process *process)
{
	unsigned row = HISTORY_PROCESSES;

	for (unsigned i = 0; i < HISTORY_PROCESSES; i++) {
		if (plot->owners[i].used && plot->owners[i].id == process->id)
			return i;
		if (!plot->owners[i].used && row == HISTORY_PROCESSES)
			row = i;
	}
	if (row == HISTORY_PROCESSES)
		row = make_room(plot);
	plot->owners[row] = (struct row_owner){ .used = true, .id = process->id };
	name_process(plot->owners[row].name, process);
	return row;
}

static struct holder *holder_of(struct memory_plot *plot, const struct process *process, bool make)
{
	struct holder *holder = MAP_FIND(plot->holders, &process->id);

	if (holder || !make)
		return holder;
	holder = MAP_ADD(plot->holders, id, &process->id);
	holder->row = row_of(plot, process);
	return holder;
}

static void forget_if_empty(struct memory_plot *plot, struct holder *holder)
{
	for (size_t i = 0; i < MEMORY_COUNT; i++) {
		if (holder->live[i])
			return;
	}
	MAP_DROP(plot->holders, holder);
}

/* ---- samples --------------------------------------------------------------------------------- */

void memory_plot_sample(struct memory_plot *plot, uint64_t time_ns, const struct process *process,
                        enum api_memory kind, uint64_t live_bytes)
{
	struct holder *holder = holder_of(plot, process, live_bytes > 0);
	uint64_t more; /* wraps around where it is less */

	if (!holder || holder->live[kind] == live_bytes)
		return;
	advance(plot, time_ns);
	more = live_bytes - holder->live[kind];
	holder->live[kind] = live_bytes;
	plot->now.total += more;
	plot->now.live[ROW_KINDS + kind] += more;
	plot->now.live[holder->row] += more;
	if (holder->row < HISTORY_PROCESSES &&
	    plot->now.live[holder->row] > plot->owners[holder->row].peak)
		plot->owners[holder->row].peak = plot->now.live[holder->row];
	if (!live_bytes)
		forget_if_empty(plot, holder);
}

void memory_plot_failure(struct memory_plot *plot, uint64_t time_ns, const struct process *process,
                         enum api_memory kind, uint64_t bytes)
{
	struct failure failure = { .count = 1, .bytes = bytes, .kind = kind };

	advance(plot, time_ns);
	failure.time_ns = plot->now.time_ns;
	name_process(failure.process, process);
	merge_failures(&bucket_at(plot, failure.time_ns)->failure, &failure);
	plot->failures++;
}
