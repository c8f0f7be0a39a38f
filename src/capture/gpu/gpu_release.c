// SPDX-License-Identifier: MIT
/* Agents' records as events, each with its call and in its place in time. */
#include "capture/gpu/gpu_private.h"

#include "base/map.h"

#define HOLD_NS 1500000000ull /* agents ask CUPTI for records every second */
#define WAIT_NS 500000000ull  /* longer, for what is told of a call later than of its work */

static struct correlate_id id_of(const struct gpu_item *item)
{
	return (struct correlate_id){ item->agent, item->correlation };
}

/* Of a thread that is in a call around it, the number is taken before the call has ended. */
static bool is_in_call(const struct gpu_times *gpu, const struct gpu_item *item)
{
	uint64_t begin_ns, open_ns;
	uint32_t tid;

	return gpu->options.programs &&
	       correlate_waits(gpu->options.correlate, id_of(item), &tid, &begin_ns) &&
	       programs_thread_in_call(gpu->options.programs, (pid_t)tid, &open_ns) &&
	       open_ns <= begin_ns;
}

void gpu_find_call(void *data, struct gpu_item *item)
{
	const struct gpu_times *gpu = data;
	uint64_t number, begin_ns;

	if (!item->number && item->correlation &&
	    correlate_find(gpu->options.correlate, id_of(item), &number, &begin_ns) ==
	            CORRELATE_KNOWN) {
		item->number = number;
		item->call_ns = begin_ns;
	}
}

/* Of work whose call has not come. On a busy machine calls are seconds behind: they wait until it
 * is known who tells of them, and what agents say of them is read at once. However long that is,
 * there is room for so much work. */
static bool is_awaited(const struct gpu_times *gpu, const struct gpu_item *item, uint64_t begin_ns)
{
	uint64_t waited_ns = gpu->now_ns - item->arrived_ns;

	if (is_in_call(gpu, item))
		return false;
	return waited_ns < HOLD_NS + WAIT_NS ||
	       begin_ns >= correlate_passed_ns(gpu->options.correlate);
}

bool gpu_may_pass(const struct gpu_times *gpu, const struct gpu_item *item)
{
	uint64_t number, begin_ns;

	if (gpu->now_ns < item->end_ns + HOLD_NS)
		return false;
	if (!item->correlation || item->number)
		return true;
	switch (correlate_find(gpu->options.correlate, id_of(item), &number, &begin_ns)) {
	case CORRELATE_KNOWN:
	case CORRELATE_NONE:
		return true;
	case CORRELATE_WAITS:
		return !is_awaited(gpu, item, begin_ns);
	case CORRELATE_UNKNOWN:
		break;
	}
	return gpu->now_ns >= item->arrived_ns + HOLD_NS + WAIT_NS;
}

/* The number of its call, 0 for none; *begin_ns: when that began, 0 where it is not known. */
static uint64_t number_of(struct gpu_times *gpu, const struct gpu_item *item, uint64_t *begin_ns)
{
	struct correlate *correlate = gpu->options.correlate;
	uint64_t number = item->number, next = 0;

	*begin_ns = item->call_ns;
	if (number)
		return number;
	if (!item->correlation ||
	    correlate_find(correlate, id_of(item), &number, begin_ns) != CORRELATE_WAITS)
		return number;
	if (is_in_call(gpu, item))
		next = pipeline_next_call(gpu->options.pipeline, item->pid);
	if (correlate_reserve(correlate, id_of(item), next, &number))
		pipeline_take_number(gpu->options.pipeline, item->pid);
	return number;
}

static uint64_t error_of(const struct gpu_times *gpu, uint32_t pid)
{
	const struct gpu_times_process *process = MAP_FIND(gpu->processes, &pid);

	return process ? process->clock_error_ns : gpu->clock_error_ns;
}

/* Copies and sets may be of calls of their own, but a graph may consist of them. */
static void note_told(const struct gpu_times *gpu, const struct gpu_item *item, uint64_t number)
{
	struct gpu_times_process *process = MAP_FIND(gpu->processes, &item->pid);

	if (process && (number || item->kind == ACTIVITY_KERNEL))
		unrecorded_told(&process->unrecorded, number);
}

/*
 * The GPU's clock is not ours: CUPTI reckons its times, and they are off by some microseconds, also
 * where it takes them "from our clock". On GPUs kernels began 0.5 to 10 us before their launch. Ten
 * times that is believed; what lies further off is of no such reckoning, and would stand among
 * other calls than its own: in 100 us a thread makes ten launches and more.
 */
#define CLOCKS_NS 100000u

/*
 * Whether its times can be, which are the GPU's clock as CUPTI reckons it: one that seems to begin
 * a little before its call is there, and tells how far the clocks lie apart.
 */
static bool is_possible(struct gpu_times *gpu, const struct gpu_item *item, uint64_t call_ns)
{
	uint64_t early_ns = item->begin_ns < call_ns ? call_ns - item->begin_ns : 0;

	if (early_ns > error_of(gpu, item->pid) + CLOCKS_NS)
		return false;
	if (early_ns > gpu->early_ns)
		gpu->early_ns = early_ns;
	return true;
}

/* Whether that is a loss: nobody told of such a call, or each launch was to be recorded. */
static bool lacks_call(const struct gpu_times *gpu, const struct gpu_item *item, uint64_t number,
                       uint64_t begin_ns)
{
	return item->correlation && (!begin_ns || (!number && item->kind == ACTIVITY_KERNEL &&
	                                           gpu->options.each_launch));
}

static int pass_activity(struct gpu_times *gpu, const struct gpu_item *item, struct event *event,
                         struct err *err)
{
	struct activity activity;
	uint64_t begin_ns, number = number_of(gpu, item, &begin_ns);

	note_told(gpu, item, number);
	if (!is_possible(gpu, item, begin_ns)) {
		gpu->bad_times++;
		return 0;
	}
	gpu_item_activity(item, &activity);
	activity.correlation = number;
	gpu->no_call += lacks_call(gpu, item, number, begin_ns);
	event->type = EVENT_ACTIVITY;
	event->activity = &activity;
	return pipeline_pass(gpu->options.pipeline, event, err);
}

static int pass_range(struct gpu_times *gpu, const struct gpu_item *item, struct event *event,
                      struct err *err)
{
	struct range range;
	uint64_t begin_ns;

	gpu_item_range(item, &range);
	range.correlation = number_of(gpu, item, &begin_ns);
	event->type = EVENT_RANGE;
	event->range = &range;
	return pipeline_pass(gpu->options.pipeline, event, err);
}

int gpu_pass_first(struct gpu_times *gpu, struct err *err)
{
	struct event event = { 0 };
	struct gpu_item item;
	int r;

	gpu->late += gpu_order_take(gpu->order, &item);
	event.time_ns = item.end_ns;
	event.process = item.process;
	event.tid = item.tid;
	r = item.is_range ? pass_range(gpu, &item, &event, err)
	                  : pass_activity(gpu, &item, &event, err);
	gpu_item_free(&item);
	return r;
}

int gpu_pass_until(struct gpu_times *gpu, uint64_t end_ns, struct err *err)
{
	const struct gpu_item *first;
	int r = 0;

	while (!r && (first = gpu_order_first(gpu->order)) && first->end_ns <= end_ns)
		r = gpu_pass_first(gpu, err);
	return r;
}
