// SPDX-License-Identifier: MIT
/*
 * The report `copies`: the bandwidth that copies and sets really had, from their bytes and their
 * time on the GPU, by direction and by the kinds of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "account/keyed.h"
#include "analysis/spread.h"
#include "base/number.h"
#include "base/order.h"
#include "output/describe.h"
#include "report/who_columns.h"
#include "report/reports.h"

struct copy_group_key {
	uint32_t process, device, kind, direction, source, destination;
};

struct copy_group {
	struct copy_group_key key;
	const struct process *process;
	const char *operation;
	uint64_t count, bytes, ns;
	struct spread rates; /* bytes a second; one for each that took any time */
};

struct copies {
	struct report_writer writer; /* first: what callers hold */
	struct keyed groups;
};

static void clear_copies(void *self)
{
	struct copies *copies = self;

	for (size_t i = 0; i < copies->groups.n; i++)
		spread_free(&((struct copy_group *)keyed_at(&copies->groups, i))->rates);
	keyed_free(&copies->groups);
}

static struct copy_group *group_of(struct copies *copies, const struct event *event)
{
	const struct activity *activity = event->activity;
	bool copy = activity->kind == ACTIVITY_COPY;
	struct copy_group_key key = { event->process->id,
		                      activity->device,
		                      activity->kind,
		                      copy ? activity->direction : 0,
		                      copy ? activity->source : 0,
		                      activity->destination };
	struct copy_group *group = keyed_row(&copies->groups, &key, SIZE_MAX);

	if (!group->process) {
		group->process = event->process;
		group->operation = operation_name(activity);
	}
	return group;
}

static void see_copies(void *self, const struct event *event)
{
	struct copies *copies = self;
	const struct activity *activity = event->activity;
	struct copy_group *group;
	uint64_t ns;

	if (event->type != EVENT_ACTIVITY || !activity_is_transfer(activity))
		return;
	group = group_of(copies, event);
	ns = activity_duration_ns(activity);
	group->count++;
	group->bytes += activity->bytes;
	group->ns += ns;
	if (ns)
		spread_add(&group->rates,
		           number_rounded((double)activity->bytes * 1e9 / (double)ns));
}

/* ---- the table ----------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{ "PID", TABLE_NUMBER },    { "Device", TABLE_NUMBER },     { "Count", TABLE_NUMBER },
	{ "Bytes", TABLE_BYTES },   { "GPU Time", TABLE_DURATION }, { "Bandwidth", TABLE_RATE },
	{ "Min", TABLE_RATE },      { "Med", TABLE_RATE },          { "Max", TABLE_RATE },
	{ "Src Kind", TABLE_TEXT }, { "Dst Kind", TABLE_TEXT },     { "Operation", TABLE_TEXT },
};

ORDER_BY(by_bytes, struct copy_group, DOWN(bytes), DOWN(count), BY_BYTES(key));

static void write_rates(struct table *table, struct copy_group *group)
{
	if (!group->rates.count) {
		for (int i = 0; i < 4; i++)
			table_unknown(table);
		return;
	}
	TABLE_CELLS(table, (double)group->bytes * 1e9 / (double)group->ns, group->rates.min,
	            spread_median(&group->rates), group->rates.max);
}

static void write_group(struct table *table, struct copy_group *group)
{
	TABLE_CELLS(table, group->process->pid, group->key.device, group->count, group->bytes,
	            group->ns);
	write_rates(table, group);
	TABLE_LAST(table,
	           group->key.kind == ACTIVITY_COPY ? activity_memory_name(group->key.source)
	                                            : NULL,
	           activity_memory_name(group->key.destination), group->operation);
}

static void write_copies(void *self, struct table *table, const struct run_info *run)
{
	struct copies *copies = self;
	struct copy_group *rows = (void *)copies->groups.rows;
	bool exact = true;

	keyed_sort(&copies->groups, by_bytes);
	for (size_t i = 0; i < copies->groups.n; i++) {
		exact = exact && spread_is_exact(&rows[i].rates);
		write_group(table, &rows[i]);
	}
	if (!exact)
		report_note_median(table);
	if (copies->groups.n)
		table_note(table,
		           "Bandwidth: all bytes by all time on the GPU; Min, Med and Max of "
		           "single ones: small ones are slow, whatever the link can do");
	else if (copies->writer.ran)
		table_note(table, "nothing was copied or set");
	else
		report_note_no_gpu_times(table, copies->writer.options.part, run);
}

static void init_copies(void *self)
{
	((struct copies *)self)->groups =
		(struct keyed){ .row_bytes = sizeof(struct copy_group),
		                .key_bytes = sizeof(struct copy_group_key) };
}

const struct report_kind copies_report = {
	.bytes = sizeof(struct copies),
	.init = init_copies,
	.event = see_copies,
	.clear = clear_copies,
	.parts = { { NULL, NULL, TABLE_COLUMNS(columns), write_copies } },
};
