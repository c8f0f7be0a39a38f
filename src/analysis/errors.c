// SPDX-License-Identifier: MIT
#include "analysis/errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "cuda/error.h"

struct error_key_here {
	uint64_t function; /* id; as wide as it is so that there is no padding to hash */
	int64_t code;
};

struct error_kept {
	struct error_key_here key;
	struct error_row row;
	UT_hash_handle hh;
};

struct errors {
	struct consumer consumer; /* first: what callers hold */
	struct error_kept *kept;
	struct error_row *rows;
};

static struct error_kept *make(struct errors *errors, const struct event *event,
                               struct error_key_here key)
{
	struct error_kept *made = MAP_ADD(errors->kept, key, &key);

	made->row = (struct error_row){
		.function = event->call->function,
		.code = (int32_t)key.code,
		.first_ns = event->time_ns,
		.process = event->process,
		.tid = event->tid,
	};
	return made;
}

static int errors_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct errors *errors = (struct errors *)self;
	struct error_kept *kept;
	struct error_key_here key;

	if (event->type != EVENT_CALL ||
	    (event->call->flags & (CALL_FAILED | CALL_NESTED)) != CALL_FAILED)
		return 0;
	key = (struct error_key_here){ event->call->function->id, event->call->result };
	kept = MAP_FIND(errors->kept, &key);
	if (!kept && HASH_COUNT(errors->kept) >= ERRORS_MAX) {
		key.code = INT32_MAX;
		kept = MAP_FIND(errors->kept, &key);
	}
	if (!kept)
		kept = make(errors, event, key);
	kept->row.count++;
	kept->row.last_ns = event->time_ns;
	recurrence_note(&kept->row.seen, event->time_ns);
	return 0;
}

ORDER_BY(by_name, struct error_row, BY_TEXT(function->name), UP(code), UP(first_ns));

static int came_after_shutdown(const struct error_row *row)
{
	return cuda_error_is_shutdown(row->function->layer, row->code);
}

/* What is harmless comes last. */
ORDER_BY(by_count, struct error_row, UP_OF(came_after_shutdown), DOWN(count), OR_ELSE(by_name));

/* Two copies of a library have functions of one name, which are one row: neighbours by name. */
static size_t join(struct error_row *rows, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		struct error_row *last = to ? &rows[to - 1] : NULL;

		if (!last || last->code != rows[i].code ||
		    strcmp(last->function->name, rows[i].function->name)) {
			rows[to++] = rows[i];
			continue;
		}
		last->count += rows[i].count;
		if (rows[i].last_ns > last->last_ns)
			last->last_ns = rows[i].last_ns;
		if (rows[i].seen.times > last->seen.times)
			last->seen = rows[i].seen;
	}
	return to;
}

const struct error_row *errors_rows(struct consumer *self, size_t *n)
{
	struct errors *errors = (struct errors *)self;
	struct error_kept *kept, *next;
	size_t count = 0;

	free(errors->rows);
	errors->rows = xcalloc(HASH_COUNT(errors->kept) + 1, sizeof(*errors->rows));
	HASH_ITER (hh, errors->kept, kept, next)
		errors->rows[count++] = kept->row;
	SORT(errors->rows, count, by_name);
	*n = join(errors->rows, count);
	SORT(errors->rows, *n, by_count);
	return errors->rows;
}

static void errors_free(struct consumer *self)
{
	struct errors *errors = (struct errors *)self;

	MAP_FREE(errors->kept, free);
	free(errors->rows);
	free(errors);
}

static const struct consumer_ops errors_ops = { .event = errors_event, .free = errors_free };

struct consumer *errors_new(void)
{
	struct errors *errors = xcalloc(1, sizeof(*errors));

	errors->consumer.ops = &errors_ops;
	return &errors->consumer;
}
