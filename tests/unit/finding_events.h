/* SPDX-License-Identifier: MIT */
/* For tests of the findings: events of one process, and the finding of one rule. */
#ifndef TESTS_UNIT_FINDING_EVENTS_H
#define TESTS_UNIT_FINDING_EVENTS_H

#include "support.h"

#include "report/findings/findings.h"

static struct consumer *findings;
static struct run_info info;
static uint64_t correlation;

static inline int set_up(void **state)
{
	findings = findings_new(NULL);
	info = default_run_info();
	correlation = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	consumer_free(findings);
	return 0;
}

/* ---- events -------------------------------------------------------------------------------- */

/* The number that activities of this call have. */
static inline uint64_t see_in(uint32_t tid, struct call call)
{
	struct event event;

	call.correlation = ++correlation;
	event = call_event(the_process(), tid, &call);
	feed(findings, &event);
	return correlation;
}

static inline uint64_t see(struct call call)
{
	return see_in(1, call);
}

static inline struct call lasting(struct call call, double duration_us)
{
	call.end_ns = call.begin_ns + (uint64_t)(duration_us * 1000 + 0.5);
	return call;
}

static inline struct call on(struct call call, uint64_t stream)
{
	set_stream(&call, stream);
	return call;
}

static inline void ran(struct activity activity, uint64_t of, double begin_us, double duration_us)
{
	struct event event;

	activity.correlation = of;
	activity.begin_ns = US(begin_us);
	activity.end_ns = US(begin_us + duration_us);
	event = activity_event(the_process(), &activity);
	feed(findings, &event);
}

static inline struct activity kernel_of(const struct kernel *kernel)
{
	return (struct activity){
		.kind = ACTIVITY_KERNEL, .kernel = kernel, .context = 1, .stream = 7
	};
}

static inline struct activity copy_of(enum api_direction direction, enum activity_memory host,
                                      uint64_t bytes)
{
	bool in = direction == DIRECTION_H2D;

	return (struct activity){ .kind = ACTIVITY_COPY,
		                  .context = 1,
		                  .stream = 7,
		                  .bytes = bytes,
		                  .direction = direction,
		                  .source = in ? host : ACTIVITY_MEMORY_DEVICE,
		                  .destination = in ? ACTIVITY_MEMORY_DEVICE : host };
}

static inline const struct kernel *the_kernel(void)
{
	static const struct kernel *kernel;

	if (!kernel)
		kernel = new_kernel("vectorAdd(float*)", true);
	return kernel;
}

/* A loop: 200 launches, one every 100 us, each 5 us long. */
#define ROUNDS        200
#define ROUND_US      100.0
#define STEADY_ROUNDS 137 /* of them from the last but one power of two on: 64 to 200 */

static inline void launch_round(unsigned round)
{
	see(launch_at("cuLaunchKernel", round * ROUND_US, the_kernel()));
}

/* ---- what was found ------------------------------------------------------------------------ */

/* NULL: the rule says nothing. */
static inline const struct finding *found(const char *rule)
{
	const struct finding *rows;
	size_t n;

	rows = findings_rows(findings, &info, &n);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(rows[i].rule, rule))
			return &rows[i];
	}
	return NULL;
}

static inline const char *why_not_judged(const char *rule)
{
	const struct finding_unjudged *rows;
	const struct finding *none;
	size_t n;

	none = findings_rows(findings, &info, &n);
	(void)none;
	rows = findings_unjudged(findings, &n);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(rows[i].rule, rule))
			return rows[i].why;
	}
	return NULL;
}

#endif
