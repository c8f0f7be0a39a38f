// SPDX-License-Identifier: MIT
/* What was counted of gaps, as those ask who print it. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "report/gaps/gap_threads.h"
#include "report/gaps/gaps_inside.h"

uint64_t gap_line_span_ns(const struct gap_line *line)
{
	return line->busy_ns + line->idle_ns;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_number(const void *left, const void *right)
{
	const struct gap_line *a = *(const struct gap_line *const *)left;
	const struct gap_line *b = *(const struct gap_line *const *)right;
	int order = compare(a->device, b->device);

	if (!order && a->process)
		order = compare(a->process->id, b->process->id);
	if (!order)
		order = compare(a->context, b->context);
	return order ? order : compare(a->stream, b->stream);
}

static const struct gap_line *const *rows_of(struct gaps *gaps, enum gap_kind kind, size_t *n)
{
	struct gaps_line *line, *next;

	free(gaps->rows[kind]);
	gaps->rows[kind] = xcalloc(gaps->n_lines[kind] + 1, sizeof(struct gap_line *));
	*n = 0;
	HASH_ITER (hh, gaps->lines, line, next) {
		if (line->key.kind == kind)
			gaps->rows[kind][(*n)++] = &line->row;
	}
	qsort(gaps->rows[kind], *n, sizeof(struct gap_line *), by_number);
	return gaps->rows[kind];
}

const struct gap_line *const *gaps_devices(struct consumer *self, size_t *n)
{
	return rows_of((struct gaps *)self, KIND_DEVICE, n);
}

const struct gap_line *const *gaps_processes(struct consumer *self, size_t *n)
{
	return rows_of((struct gaps *)self, KIND_PROCESS, n);
}

const struct gap_line *const *gaps_streams(struct consumer *self, size_t *n)
{
	return rows_of((struct gaps *)self, KIND_STREAM, n);
}

struct gpu_gap *gaps_longest(struct consumer *self, size_t *n)
{
	return longest_rows(&((struct gaps *)self)->of_devices, n);
}

struct gpu_gap *gaps_longest_of_streams(struct consumer *self, size_t *n)
{
	return longest_rows(&((struct gaps *)self)->of_streams, n);
}

const struct gap_whos *gaps_whos(struct consumer *self)
{
	const struct gap_threads *threads = ((struct gaps *)self)->threads;

	return gap_threads_wait(threads) ? gap_threads_whos(threads) : NULL;
}

struct stack_places *gaps_places(struct consumer *self)
{
	return gap_threads_places(((struct gaps *)self)->threads);
}

struct gaps_limits gaps_limits(const struct consumer *self)
{
	return ((const struct gaps *)self)->limits;
}
