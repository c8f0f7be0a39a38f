// SPDX-License-Identifier: MIT
#include "trace/cut.h"

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
