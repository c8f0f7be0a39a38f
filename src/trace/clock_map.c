// SPDX-License-Identifier: MIT
#include "trace/clock_map.h"

static bool is_one(const struct clock_map *map)
{
	return !map->offset_ns && !(map->drift < 0 || map->drift > 0);
}

static uint64_t add_ns(uint64_t ns, int64_t more_ns)
{
	uint64_t less_ns = 0 - (uint64_t)more_ns;

	if (more_ns < 0)
		return ns > less_ns ? ns - less_ns : 1;
	return ns > UINT64_MAX - (uint64_t)more_ns ? UINT64_MAX : ns + (uint64_t)more_ns;
}

/* Since `at_ns`, as far as there is room. */
static double since_ns(const struct clock_map *map, uint64_t ns)
{
	return ns > map->at_ns ? (double)(ns - map->at_ns) : -(double)(map->at_ns - ns);
}

uint64_t clock_map_ns(const struct clock_map *map, uint64_t own_ns)
{
	if (!own_ns || own_ns == UINT64_MAX || is_one(map))
		return own_ns;
	return add_ns(add_ns(own_ns, map->offset_ns),
	              (int64_t)(map->drift * since_ns(map, own_ns)));
}

uint64_t clock_map_own_ns(const struct clock_map *map, uint64_t other_ns)
{
	uint64_t own_ns;

	if (!other_ns || other_ns == UINT64_MAX || is_one(map))
		return other_ns;
	own_ns = add_ns(other_ns, -map->offset_ns);
	return add_ns(own_ns, -(int64_t)(map->drift / (1 + map->drift) * since_ns(map, own_ns)));
}

const struct event *clock_map_event(const struct clock_map *map, const struct event *event,
                                    struct mapped_event *into)
{
	if (is_one(map))
		return event;
	into->event = *event;
	into->event.time_ns = clock_map_ns(map, event->time_ns);
	if (event->call) {
		into->call = *event->call;
		into->call.begin_ns = clock_map_ns(map, event->call->begin_ns);
		into->call.end_ns = clock_map_ns(map, event->call->end_ns);
		into->event.call = &into->call;
	} else if (event->activity) {
		into->activity = *event->activity;
		into->activity.begin_ns = clock_map_ns(map, event->activity->begin_ns);
		into->activity.end_ns = clock_map_ns(map, event->activity->end_ns);
		into->event.activity = &into->activity;
	} else if (event->range) {
		into->range = *event->range;
		into->range.begin_ns = clock_map_ns(map, event->range->begin_ns);
		into->range.end_ns = clock_map_ns(map, event->range->end_ns);
		into->event.range = &into->range;
	} else if (event->stall) {
		into->stall = *event->stall;
		into->stall.begin_ns = clock_map_ns(map, event->stall->begin_ns);
		into->stall.end_ns = clock_map_ns(map, event->stall->end_ns);
		into->event.stall = &into->stall;
	}
	return &into->event;
}
