// SPDX-License-Identifier: MIT
#include "report/launches/kernel_launches.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/memory.h"
#include "base/map.h"
#include "base/order.h"

/* No padding: it is hashed whole. */
struct kernel_launches_key {
	uint32_t kernel, process, place;
};

/* A kernel of one process, and with places of one of them. */
struct kernel_launches_kept {
	struct kernel_row row;
	size_t last_shape;
	struct kernel_launches_kept *next;
	struct kernel_launches_key key;
	UT_hash_handle hh;
};

struct kernel_launches {
	struct stack_places *places;
	struct kernel_launches_kept *by_key;
	struct kernel_launches_kept **by_kernel; /* by id of the kernel, plus KERNEL_FIRST */
	size_t n_kernels;
	struct calls_of {
		uint64_t first_ns, last_ns; /* of its calls; first 0: none */
	} * processes;                      /* by id */
	size_t n_processes;
	struct kernel_row *rows;
	size_t n_rows;
};

/* Places before the kernels' own. */
enum { KERNEL_GRAPHS, KERNEL_UNKNOWN, KERNEL_FIRST };

struct kernel_launches *kernel_launches_new(struct stack_places *places)
{
	struct kernel_launches *launches = xcalloc(1, sizeof(*launches));

	launches->places = places;
	return launches;
}

/* ---- counting ------------------------------------------------------------------------------ */

static struct kernel_launches_kept *find_kept(const struct kernel_launches *launches,
                                              const struct kernel_launches_key *key)
{
	struct kernel_launches_kept *kept = launches->by_kernel[key->kernel];

	if (kept && !memcmp(&kept->key, key, sizeof(*key))) /* mostly there is one */
		return kept;
	return MAP_FIND(launches->by_key, key);
}

static struct kernel_launches_kept *kept_of(struct kernel_launches *launches,
                                            const struct event *event)
{
	const struct call *call = event->call;
	const struct kernel_launches_key key = {
		.kernel = call->op == OP_GRAPH_LAUNCH ? KERNEL_GRAPHS
		          : call->kernel              ? call->kernel->id + KERNEL_FIRST
		                                      : KERNEL_UNKNOWN,
		.process = event->process->id,
		.place = launches->places ? stack_places_number(launches->places, call->stack) : 0,
	};
	struct kernel_launches_kept *kept;

	launches->by_kernel = by_id_room(launches->by_kernel, &launches->n_kernels,
	                                 sizeof(*launches->by_kernel), key.kernel);
	kept = find_kept(launches, &key);
	if (kept)
		return kept;
	kept = MAP_ADD(launches->by_key, key, &key);
	kept->row.process = event->process;
	kept->row.kernel = call->op == OP_GRAPH_LAUNCH ? NULL : call->kernel;
	kept->row.graphs = call->op == OP_GRAPH_LAUNCH;
	kept->row.place = key.place;
	kept->row.first_ns = call->begin_ns;
	kept->next = launches->by_kernel[key.kernel];
	return launches->by_kernel[key.kernel] = kept;
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
	struct kernel_launches_kept *kept;

	if (event->type != EVENT_CALL || call->flags & CALL_NESTED)
		return;
	see_process(launches, event);
	if ((call->op != OP_LAUNCH && call->op != OP_GRAPH_LAUNCH) ||
	    call->flags & (CALL_FAILED | CALL_UNFINISHED))
		return;
	kept = kept_of(launches, event);
	kept->row.last_ns = event->time_ns;
	if (call->flags & CALL_CAPTURED) {
		kept->row.captured += call_launches(call);
		return;
	}
	kept->row.launches += call_launches(call);
	if (call->op == OP_LAUNCH)
		kept->last_shape = count_shape(&kept->row, kept->last_shape, call->args.grid,
		                               call->args.block, call_launches(call));
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *name_of(const struct kernel_row *row)
{
	return row->graphs ? "(graphs)" : row->kernel ? row->kernel->name : "(unknown)";
}

ORDER_BY(by_name, struct kernel_row, UP(process->id), UP(place), strcmp(name_of(a), name_of(b)));

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

/* Moves what was counted into `rows`. */
static void gather(struct kernel_launches *launches)
{
	size_t room = 1;

	for (size_t i = 0; i < launches->n_kernels; i++) {
		for (struct kernel_launches_kept *kept = launches->by_kernel[i]; kept;
		     kept = kept->next)
			room++;
	}
	HASH_CLEAR(hh, launches->by_key);
	launches->rows = xcalloc(room, sizeof(*launches->rows));
	for (size_t i = 0; i < launches->n_kernels; i++) {
		struct kernel_launches_kept *kept = launches->by_kernel[i], *next;

		for (; kept; kept = next) {
			next = kept->next;
			launches->rows[launches->n_rows++] = kept->row;
			free(kept);
		}
		launches->by_kernel[i] = NULL;
	}
}

const struct kernel_row *kernel_launches_rows(struct kernel_launches *launches, size_t *n)
{
	struct kernel_row *rows;
	size_t count = 0;

	if (!launches->rows) {
		gather(launches);
		rows = launches->rows;
		qsort(rows, launches->n_rows, sizeof(*rows), by_name);
		for (size_t i = 0; i < launches->n_rows; i++) {
			if (count && !by_name(&rows[count - 1], &rows[i]))
				join(&rows[count - 1], &rows[i]);
			else
				rows[count++] = rows[i];
		}
		launches->n_rows = count;
		for (size_t i = 0; i < count; i++) {
			rows[i].per_second = rate_of(launches, &rows[i]);
			if (rows[i].n_shapes)
				qsort(rows[i].shapes, rows[i].n_shapes, sizeof(*rows[i].shapes),
				      by_use);
		}
		qsort(rows, count, sizeof(*rows), by_launches);
	}
	*n = launches->n_rows;
	return launches->rows;
}

void kernel_launches_free(struct kernel_launches *launches)
{
	size_t n;

	if (!launches)
		return;
	kernel_launches_rows(launches, &n);
	for (size_t i = 0; i < n; i++)
		free(launches->rows[i].shapes);
	free(launches->rows);
	free(launches->by_kernel);
	free(launches->processes);
	free(launches);
}
