// SPDX-License-Identifier: MIT
#include "capture/inside/away.h"

#define SETTLED_NS      300000000ull
#define SETTLED_MOST_NS 10000000000ull
#define WORTH_NS        5000000000ull /* probes that were away for less were not worth it */
#define LOOK_NS         50000000ull   /* between looks at who is still in a call, at first */
#define LOOK_MOST_NS    1600000000ull /* 8,000 threads take some 30 ms */

void away_begin(struct away *away, uint64_t now_ns)
{
	*away = (struct away){ .unsettled_ns = now_ns, .settle_ns = SETTLED_NS };
}

enum away_step away_next(struct away *away, bool covered, uint64_t now_ns)
{
	if (!covered) {
		away->unsettled_ns = now_ns;
		return away->state == AWAY_THERE ? AWAY_NOTHING : AWAY_RETURN;
	}
	if (away->state == AWAY_THERE && now_ns - away->unsettled_ns >= away->settle_ns)
		return AWAY_WATCH;
	if (away->state != AWAY_WATCHED || now_ns < away->look_ns)
		return AWAY_NOTHING;
	away->look_ns = now_ns + away->every_ns;
	return AWAY_LOOK;
}

void away_busy(struct away *away, uint64_t now_ns)
{
	away->every_ns = away->every_ns >= LOOK_MOST_NS / 2 ? LOOK_MOST_NS : 2 * away->every_ns;
	away->look_ns = now_ns + away->every_ns;
}

/* Who was about to map it then, and was not told of, has done so by the first look. */
void away_watched(struct away *away, uint64_t now_ns)
{
	away->state = AWAY_WATCHED;
	away->every_ns = LOOK_NS;
	away->look_ns = now_ns + LOOK_NS;
}

void away_gone(struct away *away, uint64_t now_ns)
{
	away->state = AWAY_GONE;
	away->gone_ns = now_ns;
}

void away_returned(struct away *away, uint64_t now_ns)
{
	bool worth = away->state == AWAY_GONE && now_ns - away->gone_ns >= WORTH_NS;

	away->settle_ns = worth ? SETTLED_NS : 2 * away->settle_ns;
	if (away->settle_ns > SETTLED_MOST_NS)
		away->settle_ns = SETTLED_MOST_NS;
	away->state = AWAY_THERE;
	away->unsettled_ns = now_ns;
}
