// SPDX-License-Identifier: MIT
#include "report/launches/kernel_launches.h"

#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "base/order.h"

struct kernel_launches {
	struct stack_places *places;
	struct keyed rows;            /* struct kernel_row */
	struct keyed_last of_kernels; /* by id of the kernel, plus KERNEL_FIRST */
	struct calls_of {
		uint64_t first_ns, last_ns; /* of its calls; first 0: none */
	} * processes;                      /* by id */
	size_t n_processes;
	bool joined;
};

/* Places before the kernels' own. */
enum { KERNEL_GRAPHS, KERNEL_UNKNOWN, KERNEL_FIRST };

struct kernel_launches *kernel_launches_new(struct stack_places *places)
{
	struct kernel_launches *launches = xcalloc(1, sizeof(*launches));

	launches->places = places;
	launches->rows = (struct keyed){ .row_bytes = sizeof(struct kernel_row),
		                         .key_bytes = sizeof(struct kernel_row_key) };
	return launches;
}

/* ---- counting ------------------------------------------------------------------------------ */

/* A kernel of one process, and with places of one of them. */
static struct kernel_row *row_of(struct kernel_launches *launches, const struct event *event)
{
	const struct call *call = event->call;
	const struct kernel_row_key key = {
		.kernel = call->op == OP_GRAPH_LAUNCH ? KERNEL_GRAPHS
		          : call->kernel              ? call->kernel->id + KERNEL_FIRST
		                                      : KERNEL_UNKNOWN,
		.process = event->process->id,
		.place = launches->places ? stack_places_number(launches->places, call->stack) : 0,
	};
	struct kernel_row *row =
		keyed_row_of(&launches->rows, &launches->of_kernels, key.kernel, &key);

	if (!row->process) {
		row->process = event->process;
		row->kernel = call->op == OP_GRAPH_LAUNCH ? NULL : call->kernel;
		row->graphs = call->op == OP_GRAPH_LAUNCH;
		row->first_ns = call->begin_ns;
	}
	return row;
}

static bool same_shape(const struct launch_shape *shape, const uint32_t grid[3],
                       const uint32_t block[3])
{
	return !memcmp(shape->grid, grid, sizeof(shape->grid)) &&
	       !memcmp(shape->block, block, sizeof(shape->block));
}

/* The index of a shape, n_shapes where it has no place. */
static size_t find_shape(const struct kernel_row *row, size_t guess, const uint32_t grid[3],
                         const uint32_t block[3])
{
	if (guess < row->n_shapes && same_shape(&row->shapes[guess], grid, block))
		return guess;
	for (size_t i = 0; i < row->n_shapes; i++) {
		if (same_shape(&row->shapes[i], grid, block))
			return i;
	}
	return row->n_shapes;
}

static size_t count_shape(struct kernel_row *row, size_t guess, const uint32_t grid[3],
                          const uint32_t block[3], uint64_t launches)
{
	size_t at = find_shape(row, guess, grid, block);

	if (at == SHAPES_MAX) {
		row->other_shapes += launches;
		return guess;
	}
	if (at == row->n_shapes) {
		if (!row->shapes)
			row->shapes = xcalloc(SHAPES_MAX, sizeof(*row->shapes));
		memcpy(row->shapes[at].grid, grid, sizeof(row->shapes[at].grid));
		memcpy(row->shapes[at].block, block, sizeof(row->shapes[at].block));
		row->n_shapes++;
	}
	row->shapes[at].launches += launches;
	return at;
}

static void see_process(struct kernel_launches *launches, const struct event *event)
{
	struct calls_of *of = BY_ID(launches->processes, launches->n_processes, event->process->id);

	if (!of->first_ns || event->call->begin_ns < of->first_ns)
		of->first_ns = event->call->begin_ns;
	of->last_ns = event->time_ns;
}

void kernel_launches_event(struct kernel_launches *launches, const struct event *event)
{
	const struct call *call = event->call;
	struct kernel_row *row;

	if (event->type != EVENT_CALL || call->flags & CALL_NESTED)
		return;
	see_process(launches, event);
	if ((call->op != OP_LAUNCH && call->op != OP_GRAPH_LAUNCH) ||
	    call->flags & (CALL_FAILED | CALL_UNFINISHED))
		return;
	row = row_of(launches, event);
	row->last_ns = event->time_ns;
	if (call->flags & CALL_CAPTURED) {
		row->captured += call_launches(call);
		return;
	}
	row->launches += call_launches(call);
	if (call->op == OP_LAUNCH)
		row->last_shape = count_shape(row, row->last_shape, call->args.grid,
		                              call->args.block, call_launches(call));
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *name_of(const struct kernel_row *row)
{
	return row->graphs ? "(graphs)" : row->kernel ? row->kernel->name : "(unknown)";
}

ORDER_BY(by_name, struct kernel_row, UP(process->id), UP(key.place),
         strcmp(name_of(a), name_of(b)));

ORDER_BY(by_launches, struct kernel_row, DOWN(launches), DOWN(captured), OR_ELSE(by_name));

ORDER_BY(by_use, struct launch_shape, DOWN(launches),
         memcmp(a, b, sizeof(a->grid) + sizeof(a->block)));

static void join(struct kernel_row *into, struct kernel_row *row)
{
	into->launches += row->launches;
	into->captured += row->captured;
	into->other_shapes += row->other_shapes;
	if (row->first_ns < into->first_ns)
		into->first_ns = row->first_ns;
	if (row->last_ns > into->last_ns)
		into->last_ns = row->last_ns;
	for (size_t i = 0; i < row->n_shapes; i++)
		count_shape(into, 0, row->shapes[i].grid, row->shapes[i].block,
		            row->shapes[i].launches);
	free(row->shapes);
}

static double rate_of(const struct kernel_launches *launches, const struct kernel_row *row)
{
	uint64_t first = launches->processes[row->process->id].first_ns;
	uint64_t last = launches->processes[row->process->id].last_ns;

	return last > first ? (double)row->launches * 1e9 / (double)(last - first) : 0;
}

/* Kernels of one name in a process become one row. */
static void join_rows(struct kernel_launches *launches)
{
	struct kernel_row *rows = (void *)launches->rows.rows;
	size_t n = 0;

	keyed_sort(&launches->rows, by_name);
	for (size_t i = 0; i < launches->rows.n; i++) {
		if (n && !by_name(&rows[n - 1], &rows[i]))
			join(&rows[n - 1], &rows[i]);
		else
			rows[n++] = rows[i];
	}
	launches->rows.n = n;
	for (size_t i = 0; i < n; i++) {
		rows[i].per_second = rate_of(launches, &rows[i]);
		SORT(rows[i].shapes, rows[i].n_shapes, by_use);
	}
	keyed_sort(&launches->rows, by_launches);
	launches->joined = true;
}

const struct kernel_row *kernel_launches_rows(struct kernel_launches *launches, size_t *n)
{
	if (!launches->joined)
		join_rows(launches);
	*n = launches->rows.n;
	return (void *)launches->rows.rows;
}

void kernel_launches_free(struct kernel_launches *launches)
{
	if (!launches)
		return;
	for (size_t i = 0; i < launches->rows.n; i++)
		free(((struct kernel_row *)keyed_at(&launches->rows, i))->shapes);
	keyed_free(&launches->rows);
	FREE_ALL(launches->of_kernels.row, launches->processes, launches);
}
