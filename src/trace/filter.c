// SPDX-License-Identifier: MIT
#include "trace/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "cuda/kernel_name.h"
#include "trace/event.h"

/* ---- chosen -------------------------------------------------------------------------------- */

struct chosen {
	struct consumer consumer; /* first: what callers hold */
	struct consumer *next;
	struct chosen_options options;
	uint64_t calls;
};

bool chosen_enough(const struct consumer *self)
{
	const struct chosen *chosen = (const struct chosen *)self;

	return chosen->options.max_calls && chosen->calls >= chosen->options.max_calls;
}

static bool call_is(const struct chosen *chosen, const struct call *call)
{
	const struct chosen_options *o = &chosen->options;

	if (chosen_enough(&chosen->consumer) || (o->failed && !(call->flags & CALL_FAILED)))
		return false;
	return !o->min_duration_ns ||
	       (call_has_end(call) && call_duration_ns(call) >= o->min_duration_ns);
}

static bool event_is(const struct chosen *chosen, const struct event *event)
{
	const struct chosen_options *o = &chosen->options;

	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		return call_is(chosen, event->call);
	case EVENT_ACTIVITY:
		return !o->failed && activity_duration_ns(event->activity) >= o->min_duration_ns;
	case EVENT_RANGE:
		return !o->failed && range_duration_ns(event->range) >= o->min_duration_ns;
	case EVENT_SAMPLE:
	case EVENT_METRICS:
	case EVENT_STALL:
		return !o->failed;
	default:
		return true;
	}
}

/* One that ended before it was to begin has no length. */
static struct run_info chosen_run(const struct chosen *chosen, const struct run_info *run)
{
	uint64_t from_ns = chosen->options.from_ns;
	struct run_info told = *run;

	if (from_ns > told.begin_ns)
		told.begin_ns = told.end_ns && told.end_ns < from_ns ? told.end_ns : from_ns;
	return told;
}

static int chosen_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct chosen *chosen = (struct chosen *)self;
	struct run_info told = chosen_run(chosen, run);

	return consumers_begin(&chosen->next, 1, &told, err);
}

/* What of an event is of the time that is asked for; what processes and threads there are always
 * is. NULL: nothing. */
static const struct event *event_since(const struct event *event, uint64_t from_ns,
                                       struct cut_event *cut)
{
	switch (event->type) {
	case EVENT_PROCESS:
	case EVENT_THREAD:
	case EVENT_EXIT:
		return event;
	case EVENT_ACTIVITY:
	case EVENT_SAMPLE:
		return event->time_ns <= from_ns ? NULL
		                                 : cut_to_part(event, from_ns, UINT64_MAX, cut);
	default:
		return event->time_ns <= from_ns ? NULL : event;
	}
}

static int chosen_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct chosen *chosen = (struct chosen *)self;
	struct cut_event cut;

	if (chosen->options.from_ns)
		event = event_since(event, chosen->options.from_ns, &cut);
	if (!event || !event_is(chosen, event))
		return 0;
	chosen->calls += event_is_counted(event, false);
	return consumers_event(&chosen->next, 1, event, err);
}

static int chosen_flush(struct consumer *self, struct err *err)
{
	return consumers_flush(&((struct chosen *)self)->next, 1, err);
}

static int chosen_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct chosen *chosen = (struct chosen *)self;
	struct run_info told = chosen_run(chosen, run);

	return consumers_end(&chosen->next, 1, &told, err);
}

static void chosen_free(struct consumer *self)
{
	free(self);
}

static const struct consumer_ops chosen_ops = {
	.begin = chosen_begin,
	.metrics = true,
	.stalls = true,
	.event = chosen_event,
	.flush = chosen_flush,
	.end = chosen_end,
	.free = chosen_free,
};

struct consumer *chosen_new(struct consumer *next, const struct chosen_options *options)
{
	struct chosen *chosen = xcalloc(1, sizeof(*chosen));

	chosen->consumer.ops = &chosen_ops;
	chosen->next = next;
	chosen->options = *options;
	return &chosen->consumer;
}

/* ---- filter -------------------------------------------------------------------------------- */

/* What a glob said of a name, by the id of the function or the kernel: asked once each. */
struct answers {
	enum answer { NOT_ASKED, NO, YES } * of;
	size_t n;
};

struct filter {
	struct filter_choice choice;
	struct answers functions, kernels;
	uint64_t calls, last_ns; /* counted: see event_is_counted(); the end of the last of them */
};

bool filter_is_any(const struct filter_choice *choice)
{
	return choice->failed || choice->function || choice->kernel || choice->max_calls;
}

struct filter *filter_new(const struct filter_choice *choice)
{
	struct filter *filter = xcalloc(1, sizeof(*filter));

	filter->choice = *choice;
	return filter;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	free(filter->functions.of);
	free(filter->kernels.of);
	free(filter);
}

static enum answer *answer_of(struct answers *answers, uint32_t id)
{
	if (id >= answers->n) {
		size_t n = 2 * (size_t)id + 64;

		answers->of = xrealloc(answers->of, n * sizeof(*answers->of));
		memset(answers->of + answers->n, 0, (n - answers->n) * sizeof(*answers->of));
		answers->n = n;
	}
	return &answers->of[id];
}

static bool is_function(struct filter *filter, const struct function *function)
{
	enum answer *answer;

	if (!filter->choice.function)
		return true;
	answer = answer_of(&filter->functions, function->id);
	if (*answer == NOT_ASKED)
		*answer = name_match_function(filter->choice.function, function->name) ? YES : NO;
	return *answer == YES;
}

/* A kernel that is not resolved yet gets another name later. */
static bool is_kernel(struct filter *filter, const struct kernel *kernel)
{
	enum answer *answer;

	if (!filter->choice.kernel)
		return true;
	if (!kernel)
		return false;
	answer = answer_of(&filter->kernels, kernel->id);
	if (*answer == NOT_ASKED || !kernel->resolved)
		*answer = name_match_kernel(filter->choice.kernel, kernel->name, kernel->mangled)
		                  ? YES
		                  : NO;
	return *answer == YES;
}

static bool wants_call(struct filter *filter, const struct event *event)
{
	const struct filter_choice *choice = &filter->choice;
	const struct call *call = event->call;

	if ((choice->max_calls && filter->calls >= choice->max_calls) ||
	    (choice->failed && !(call->flags & CALL_FAILED)) ||
	    !is_function(filter, call->function) || !is_kernel(filter, call->kernel))
		return false;
	if (!event_is_counted(event, choice->function != NULL))
		return true;
	filter->calls++;
	filter->last_ns = event->time_ns;
	return true;
}

/* What is known late belongs to the calls that are passed on if it began before the last ended. */
static bool in_time(const struct filter *filter, uint64_t begin_ns)
{
	return !filter->choice.max_calls || filter->calls < filter->choice.max_calls ||
	       begin_ns <= filter->last_ns;
}

bool filter_wants(struct filter *filter, const struct event *event)
{
	const struct filter_choice *choice = &filter->choice;
	bool calls_only = choice->failed || choice->function;

	switch (event->type) {
	case EVENT_CALL:
	case EVENT_OTHER_CALL:
		return wants_call(filter, event);
	case EVENT_ACTIVITY:
		return !calls_only && in_time(filter, event->activity->begin_ns) &&
		       is_kernel(filter, event->activity->kernel);
	case EVENT_RANGE:
		return !calls_only && !choice->kernel && in_time(filter, event->range->begin_ns);
	case EVENT_METRICS:
		return !calls_only && in_time(filter, event->metrics->begin_ns);
	case EVENT_STALL:
		return !calls_only && in_time(filter, event->stall->begin_ns) &&
		       is_kernel(filter, event->stall->kernel);
	case EVENT_SAMPLE:
		return !calls_only && !choice->kernel && in_time(filter, event->time_ns);
	default:
		return true;
	}
}

static bool is_stretch(const struct event *event)
{
	return event->type == EVENT_SAMPLE &&
	       (sample_is_stretch(event->sample) || event->sample->blocked == BLOCKED_BEFORE);
}

uint64_t cut_begin_ns(const struct event *event)
{
	uint64_t ns = event->time_ns;

	if (event->type == EVENT_ACTIVITY)
		return event->activity->begin_ns;
	if (is_stretch(event))
		return event->sample->weight_ns < ns ? ns - event->sample->weight_ns : 0;
	return ns;
}

/* What is left of the part at the end of a stretch in which only a CPU was waited for. */
static uint64_t cut_runnable_ns(const struct event *stretch, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t runnable_ns = stretch->sample->runnable_ns;
	uint64_t from_ns = runnable_ns < stretch->time_ns ? stretch->time_ns - runnable_ns : 0;

	from_ns = from_ns > begin_ns ? from_ns : begin_ns;
	return from_ns < end_ns ? end_ns - from_ns : 0;
}

const struct event *cut_to_part(const struct event *event, uint64_t from_ns, uint64_t to_ns,
                                struct cut_event *cut)
{
	uint64_t begin_ns = cut_begin_ns(event), end_ns = event->time_ns;

	if (begin_ns >= from_ns && end_ns <= to_ns)
		return event;
	begin_ns = begin_ns > from_ns ? begin_ns : from_ns;
	end_ns = end_ns < to_ns ? end_ns : to_ns;
	if (begin_ns >= end_ns)
		return NULL;
	cut->event = *event;
	cut->event.time_ns = end_ns;
	if (event->type == EVENT_ACTIVITY) {
		cut->activity = *event->activity;
		cut->activity.begin_ns = begin_ns;
		cut->activity.end_ns = end_ns;
		cut->event.activity = &cut->activity;
	} else {
		cut->sample = *event->sample;
		cut->sample.weight_ns = end_ns - begin_ns;
		cut->sample.runnable_ns = cut_runnable_ns(event, begin_ns, end_ns);
		cut->event.sample = &cut->sample;
	}
	return &cut->event;
}
