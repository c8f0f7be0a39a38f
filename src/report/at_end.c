// SPDX-License-Identifier: MIT
#include "report/at_end.h"

#include <stdlib.h>

#include "base/xalloc.h"

static struct at_end *at_end_of(struct consumer *consumer)
{
	return (struct at_end *)consumer;
}

static int at_end_start(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static int at_end_event(struct consumer *self, const struct event *event, struct err *err)
{
	at_end_of(self)->ops->event(at_end_of(self)->analysis, event);
	return 0;
}

static int at_end_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	table_of_run(at_end_of(self)->options.table, run->returns ? REPORT_RETURNS : 0,
	             run->begin_ns);
	return at_end_of(self)->ops->write(at_end_of(self), run, err);
}

static void at_end_free(struct consumer *self)
{
	at_end_of(self)->ops->free(at_end_of(self)->analysis);
	free(self);
}

static const struct consumer_ops at_end_consumer = {
	.begin = at_end_start,
	.event = at_end_event,
	.end = at_end_end,
	.free = at_end_free,
};

struct consumer *at_end_new(const struct report *report, const struct report_options *options,
                            const struct at_end_ops *ops)
{
	struct at_end *self = xcalloc(1, sizeof(*self));

	self->consumer.ops = &at_end_consumer;
	self->report = report;
	self->options = *options;
	self->ops = ops;
	self->analysis = ops->make(options);
	return &self->consumer;
}

void at_end_begin(struct at_end *self, const struct table_column *columns, size_t n)
{

	report_begin(self->report, self->options.table, NULL, columns, n);
}

void at_end_time(struct at_end *self, const struct run_info *run, uint64_t time_ns)
{
	if (time_ns >= run->begin_ns)
		table_u64(self->options.table, time_ns - run->begin_ns);
	else
		table_u64(self->options.table, 0);
}

void at_end_note_counts(struct at_end *self, const struct run_info *run)
{
	report_note_estimated(self->options.table, run);
}

void at_end_note_durations(struct at_end *self, const struct run_info *run)
{
	if (!run->returns)
		table_note(self->options.table,
		           "no durations: this trace was recorded without returns");
}
