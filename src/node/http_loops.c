// SPDX-License-Identifier: MIT
#include "node/http_loops.h"

#define HANGS_NS 5000000000ull

static const struct loop_row {
	const char *name;
	struct metric_family age;
} rows[LOOPS] = {
	[LOOP_AGENT] = { "the agent",
	                 { "cuscope_agent_loop_age_seconds", METRIC_GAUGE, "seconds",
	                   "Time since the loop that counts turned last; a tenth of a second where "
	                   "it does" } },
	[LOOP_RECORDER] = { "the flight recorder",
	                    { "cuscope_recorder_loop_age_seconds", METRIC_GAUGE, "seconds",
	                      "Time since its loop last said that it turns; a second at most where "
	                      "it "
	                      "does" } },
};

static uint64_t age_ns(const struct http_loops *loops, int loop)
{
	uint64_t turned_ns = loops->turned_ns[loop];

	return turned_ns && loops->now_ns > turned_ns ? loops->now_ns - turned_ns : 0;
}

bool http_loops_hang(const struct http_loops *loops, struct buf *out)
{
	bool any = false;

	for (int loop = 0; loop < LOOPS; loop++) {
		uint64_t hangs_ns = age_ns(loops, loop);

		if (hangs_ns <= HANGS_NS)
			continue;
		buf_printf(out, "%s hangs ", rows[loop].name);
		buf_fixed(out, hangs_ns / 1000000, 3);
		buf_puts(out, " s\n");
		any = true;
	}
	return any;
}

void http_loops_write(const struct http_loops *loops, enum metrics_format format, struct buf *out)
{
	struct metrics *metrics = metrics_new();

	for (int loop = 0; loop < LOOPS; loop++) {
		if (!loops->turned_ns[loop])
			continue;
		metrics_family(metrics, &rows[loop].age);
		metrics_add(metrics, 0, age_ns(loops, loop), 9, 0);
	}
	metrics_write_part(metrics, format, out);
	metrics_free(metrics);
}
