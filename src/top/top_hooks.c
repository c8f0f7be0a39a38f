// SPDX-License-Identifier: MIT
#include "top/top_hooks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "table/table.h"
#include "top/top_rows.h"

struct hook_row {
	const struct function *function; /* the first of that name; NULL: the others */
	size_t sized;                    /* 1 and the index of its first argument that is a size */
	bool any_sized;                  /* of the others: one of them is */
	struct top_count calls, bytes;
	uint64_t timed, time_ns, max_ns;
	UT_hash_handle hh;
};

/* Of what programs say nothing is believed: a sum stays at the most rather than begin anew. */
static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX - 1;
}

static size_t sized_argument(const struct function *function)
{
	const struct api_arg *args;
	size_t n = function->api ? api_args(function->api, &args) : 0;

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_SIZE)
			return i + 1;
	}
	return 0;
}

static struct hook_row *others(struct hook_rows *rows)
{
	if (!rows->others)
		rows->others = xcalloc(1, sizeof(*rows->others));
	return rows->others;
}

static struct hook_row *find(struct hook_rows *rows, const struct function *function, bool room,
                             bool *made)
{
	struct hook_row *row = MAP_FIND_TEXT(rows->rows, function->name);

	if (row)
		return row;
	if (!room || HASH_COUNT(rows->rows) >= TOP_HOOKS_MAX)
		return others(rows);
	row = xcalloc(1, sizeof(*row));
	row->function = function;
	row->sized = sized_argument(function);
	row->any_sized = row->sized > 0;
	HASH_ADD_KEYPTR(hh, rows->rows, function->name, strlen(function->name), row);
	*made = true;
	return row;
}

bool hook_rows_count(struct hook_rows *rows, const struct call *call, bool room)
{
	struct hook_row *row = rows->last;
	bool made = false;
	size_t sized;

	if (!row || row->function != call->function)
		row = find(rows, call->function, room, &made);
	if (row->function)
		rows->last = row;
	row->calls.total++;
	sized = row->function ? row->sized : sized_argument(call->function);
	row->any_sized |= sized > 0;
	if (sized && sized <= call->args.n_args)
		add(&row->bytes.total, call->args.arg[sized - 1]);
	if (call_has_end(call)) {
		uint64_t ns = call_duration_ns(call);

		row->timed++;
		add(&row->time_ns, ns);
		row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	}
	return made;
}

static void tick(struct hook_row *row, double seconds)
{
	count_tick(&row->calls, seconds);
	count_tick(&row->bytes, seconds);
}

void hook_rows_tick(struct hook_rows *rows, double seconds)
{
	struct hook_row *row, *next;

	HASH_ITER (hh, rows->rows, row, next)
		tick(row, seconds);
	if (rows->others)
		tick(rows->others, seconds);
}

static void add_count(struct top_count *into, const struct top_count *from)
{
	add(&into->total, from->total);
	add(&into->before, from->before);
	into->rate += from->rate;
}

static void add_row(struct hook_row *into, const struct hook_row *from)
{
	add_count(&into->calls, &from->calls);
	add_count(&into->bytes, &from->bytes);
	into->any_sized |= from->any_sized;
	into->timed += from->timed;
	add(&into->time_ns, from->time_ns);
	into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
}

size_t hook_rows_merge(struct hook_rows *into, const struct hook_rows *from, size_t room)
{
	const struct hook_row *row, *next;
	size_t n = 0;

	HASH_ITER (hh, from->rows, row, next) {
		bool made = false;

		add_row(find(into, row->function, n < room, &made), row);
		n += made;
	}
	if (from->others)
		add_row(others(into), from->others);
	return n;
}

size_t hook_rows_forget(struct hook_rows *rows)
{
	size_t n = HASH_COUNT(rows->rows);

	MAP_FREE(rows->rows, free);
	free(rows->others);
	memset(rows, 0, sizeof(*rows));
	return n;
}

static void copy(const struct hook_row *row, struct top_hook *into)
{
	*into = (struct top_hook){ .name = row->function ? row->function->name : "(others)",
		                   .calls = row->calls,
		                   .bytes = row->bytes,
		                   .time_ns = row->time_ns,
		                   .max_ns = row->max_ns };
	if (!row->any_sized) {
		into->bytes.total = TABLE_NOT_KNOWN;
		into->bytes.rate = NAN;
	}
	if (row->timed)
		into->mean_ns = row->time_ns / row->timed;
	else
		into->time_ns = into->mean_ns = into->max_ns = TABLE_NOT_KNOWN;
}

void hook_rows_copy(const struct hook_rows *rows, struct top_process *into)
{
	const struct hook_row *row, *next;

	into->n_hooks = 0;
	into->hooks = xcalloc(HASH_COUNT(rows->rows) + 1, sizeof(*into->hooks));
	HASH_ITER (hh, rows->rows, row, next)
		copy(row, &into->hooks[into->n_hooks++]);
	if (rows->others)
		copy(rows->others, &into->hooks[into->n_hooks++]);
}
