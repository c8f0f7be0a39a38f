// SPDX-License-Identifier: MIT
#include "report/why.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/lines.h"
#include "base/xalloc.h"

struct why {
	struct consumer consumer; /* first: what callers hold */
	struct why_options options;
};

static int why_event(struct consumer *self, const struct event *event, struct err *err)
{
	return 0;
}

static int why_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	const struct why *why = (const struct why *)self;
	struct lines lines;
	struct json json = { .out = &lines.pending, .lines = 1 };
	int r;

	lines_init(&lines, why->options.json ? why->options.json : why->options.text, "the answer");
	if (why->options.json) {
		json_open(&json, NULL, '{');
		json_string(&json, "schema", "cuscope-why-1");
		json_open(&json, "gpus", '[');
		json_close(&json, ']');
		json_null(&json, "first");
		json_open(&json, "next", '[');
		json_close(&json, ']');
		json_close(&json, '}');
	} else {
		buf_puts(&lines.pending, "Nothing is known.");
	}
	buf_putc(&lines.pending, '\n');
	r = lines_flush(&lines, err);
	lines_free(&lines);
	return r;
}

static void why_free(struct consumer *self)
{
	free(self);
}

static const struct consumer_ops why_ops = { .event = why_event,
	                                     .end = why_end,
	                                     .free = why_free };

struct consumer *why_new(const struct why_options *options)
{
	struct why *why = xcalloc(1, sizeof(*why));

	why->consumer.ops = &why_ops;
	why->options = *options;
	return &why->consumer;
}
