// SPDX-License-Identifier: MIT
/* What is read until it can be answered: of one report, or once for several of a pass. */
#include "report/why.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/lines.h"
#include "base/xalloc.h"
#include "report/why_inside.h"
#include "report/why_words.h"

static void why_see(struct why *why, const struct event *event)
{
	if (event->type == EVENT_METRICS)
		metrics_use_add(why->metrics, event->metrics);
	if (event->type == EVENT_STALL) {
		stalls_use_add(why->stalls, event);
		return;
	}
	facts_event(&why->facts, event);
}

static int why_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct why *why = (struct why *)self;

	if (!why->fed)
		why_see(why, event);
	return 0;
}

int why_write(struct consumer *self, FILE *out, bool as_json, struct err *err)
{
	AT_END(lines_free) struct lines lines;

	lines_init(&lines, out, "the answer");
	if (as_json) {
		struct json json = { .out = &lines.pending, .lines = 2 };

		why_add_json(self, &json, NULL);
		buf_putc(&lines.pending, '\n');
	} else {
		why_add_text(self, &lines.pending);
	}
	return lines_flush(&lines, err);
}

void why_forget(struct consumer *self)
{
	struct why *why = (struct why *)self;

	if (!why->accounts.n)
		return;
	facts_forget(&why->facts);
	why->longest.kernel = NULL; /* is the recording's */
}

static void why_conclude(struct why *why, const struct run_info *run)
{
	facts_end(&why->facts, run);
	if (run->chosen)
		why->options.chosen = true;
	if (!why_words_unknown(&why->facts, &why->options))
		accounts_make(&why->accounts, &why->facts);
	why_find_standing(why);
	answer_make(&why->answer, &why->facts, &why->accounts);
	ranks_make(&why->ranks, &why->facts, &why->accounts);
	if (why->options.brief)
		why_forget(&why->consumer);
	else
		why_find_longest(why);
}

static int why_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct why *why = (struct why *)self;

	if (!why->fed)
		why_conclude(why, run);
	if (why->options.json)
		return why_write(self, why->options.json, true, err);
	return why->options.text ? why_write(self, why->options.text, false, err) : 0;
}

static void why_free(struct consumer *self)
{
	struct why *why = (struct why *)self;

	if (--why->owners)
		return;
	answer_clear(&why->answer);
	standings_clear(&why->standings);
	ranks_clear(&why->ranks);
	accounts_clear(&why->accounts);
	facts_clear(&why->facts);
	metrics_use_free(why->metrics);
	stalls_use_free(why->stalls);
	free(why);
}

static const struct consumer_ops why_ops = {
	.metrics = true, .stalls = true, .event = why_event, .end = why_end, .free = why_free
};

/* ---- several reports ------------------------------------------------------------------------- */

static struct why *why_of_feeder(struct consumer *self)
{
	return (struct why *)((char *)self - offsetof(struct why, feeder));
}

static int feeder_event(struct consumer *self, const struct event *event, struct err *err)
{
	why_see(why_of_feeder(self), event);
	return 0;
}

static int feeder_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	why_conclude(why_of_feeder(self), run);
	return 0;
}

static const struct consumer_ops feeder_ops = {
	.metrics = true, .stalls = true, .event = feeder_event, .end = feeder_end
};

struct consumer *why_feeder(struct consumer *self)
{
	struct why *why = (struct why *)self;

	why->fed = true;
	why->feeder.ops = &feeder_ops;
	return &why->feeder;
}

struct consumer *why_share(struct consumer *self)
{
	((struct why *)self)->owners++;
	return self;
}

bool why_is_shared(const struct consumer *self)
{
	return ((const struct why *)self)->owners > 1;
}

const struct answer *why_answer(const struct consumer *self)
{
	return &((const struct why *)self)->answer;
}

const char *why_none(const struct consumer *self)
{
	const struct why *why = (const struct why *)self;

	return why->accounts.n ? NULL : why_words_none(&why->facts, &why->options);
}

struct consumer *why_new(const struct why_options *options)
{
	struct why *why = xcalloc(1, sizeof(*why));

	why->consumer.ops = &why_ops;
	why->owners = 1;
	why->options = *options;
	facts_init(&why->facts);
	why->metrics = metrics_use_new();
	why->stalls = stalls_use_new();
	why->facts.from_ns = options->from_ns;
	why->facts.to_ns = options->to_ns;
	return &why->consumer;
}
