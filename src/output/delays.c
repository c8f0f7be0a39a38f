// SPDX-License-Identifier: MIT
#include "output/delays.h"

#include "analysis/work.h"

struct delay delay_of(const struct sink *sink, const struct event *event)
{
	const struct work_call *call = work_now(sink->work)->call;
	const struct activity *activity = event->activity;

	if (!call)
		return (struct delay){ .tid = event->tid };
	if (activity && activity->begin_ns < call->begin_ns)
		return (struct delay){ .tid = call->tid,
			               .early_ns = call->begin_ns - activity->begin_ns };
	if (!activity || !call->end_ns || activity->begin_ns < call->end_ns)
		return (struct delay){ .tid = call->tid };
	return (struct delay){ .queued = true,
		               .queue_ns = activity->begin_ns - call->end_ns,
		               .tid = call->tid };
}
