// SPDX-License-Identifier: MIT
/*
 * Facts of several recordings of the same time (trace/together.h). A process that several have is
 * told by the one that has most of it: one of them traced it, in others it is what is waited for.
 */
#include "account/facts_inside.h"

#include <stdlib.h>

#include "base/order.h"
#include "base/xalloc.h"

/* What one of several files has of a process. */
struct fact_copy {
	uint64_t pid; /* machine_pid() */
	uint32_t file;
	uint64_t works, asks, rows;
	bool told;
};

ORDER_BY(copy_order, struct fact_copy, UP(pid), UP(file));

static struct fact_copy *copy_of(struct fact_copy *copies, size_t n, const struct process *process)
{
	const struct fact_copy key = { .pid = machine_pid(process), .file = process->file };

	return bsearch(&key, copies, n, sizeof(key), copy_order);
}

/* A pid is in several files where one has what is waited for in another. */
static bool copy_has_more(const struct fact_copy *a, const struct fact_copy *b)
{
	if (a->works != b->works)
		return a->works > b->works;
	return a->asks != b->asks ? a->asks > b->asks : a->rows > b->rows;
}

/* One for each process and file; those that have most of a process are told. */
static struct fact_copy *copies_find(const struct facts *facts, size_t *n)
{
	struct fact_copy *copies = xcalloc(facts->n_threads + 1, sizeof(*copies)), *copy;
	size_t all = 0, most = 0;

	for (size_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process)
			copies[all++] =
				(struct fact_copy){ .pid = machine_pid(facts->threads[i].process),
				                    .file = facts->threads[i].process->file };
	SORT(copies, all, copy_order);
	*n = 0;
	for (size_t i = 0; i < all; i++)
		if (!i || copy_order(&copies[i], &copies[*n - 1]))
			copies[(*n)++] = copies[i];
	for (size_t i = 0; i < facts->n_threads; i++) {
		const struct fact_thread *thread = &facts->threads[i];

		copy = thread->process ? copy_of(copies, *n, thread->process) : NULL;
		if (!copy)
			continue;
		copy->asks += thread->asks;
		copy->rows += thread->n_calls + thread->n_samples + thread->n_rests;
	}
	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i))
		if ((copy = copy_of(copies, *n, facts->works[i].process)))
			copy->works++;
	for (size_t i = 0; i < *n; i++) {
		if (!i || copies[i].pid != copies[i - 1].pid)
			most = i;
		else if (copy_has_more(&copies[i], &copies[most]))
			most = i;
		copies[most].told = i + 1 == *n || copies[i + 1].pid != copies[i].pid;
	}
	return copies;
}

static void thread_forget(struct fact_thread *thread)
{
	thread->n_calls = thread->n_samples = thread->n_rests = thread->n_sums = 0;
	thread->asks = thread->polls = 0;
	thread->tid = 0; /* nobody's waker */
}

void facts_tell_once(struct facts *facts)
{
	size_t n, works = 0, ranges = 0;
	struct fact_copy *copies = copies_find(facts, &n), *copy;

	for (size_t i = 0; i < facts->n_works; i = spill_next(facts->spill, i)) {
		copy = copy_of(copies, n, facts->works[i].process);
		if (!copy || copy->told)
			facts->works[works++] = facts->works[i];
	}
	for (size_t i = 0; i < facts->n_ranges; i = spill_next(facts->spill, i)) {
		copy = copy_of(copies, n, facts->threads[facts->ranges[i].thread].process);
		if (!copy || copy->told)
			facts->ranges[ranges++] = facts->ranges[i];
	}
	facts->n_works = works;
	facts->n_ranges = ranges;
	for (size_t i = 0; i < facts->n_threads; i++) {
		struct fact_thread *thread = &facts->threads[i];

		copy = thread->process ? copy_of(copies, n, thread->process) : NULL;
		if (copy && !copy->told)
			thread_forget(thread);
	}
	free(copies);
}
