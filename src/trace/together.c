// SPDX-License-Identifier: MIT
#include "trace/together.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "trace/objects.h"

#define TOGETHER_BYTES (2 * OBJECTS_BYTES_MAX) /* of definitions of all files */

/* ---- which ----------------------------------------------------------------------------------- */

struct together together_of(const struct run_info *run)
{
	struct together together = { .begin_ns = run->begin_ns, .end_ns = run->end_ns, .n = 1 };

	if (run->end_ns > run->begin_ns)
		together.longest_ns = together.shortest_ns = run->end_ns - run->begin_ns;
	snprintf(together.boot, sizeof(together.boot), "%s", run->boot ? run->boot : "");
	return together;
}

enum together_how together_join(struct together *together, const struct run_info *run)
{
	struct together one = together_of(run), both = *together;

	if (!one.boot[0] || !both.boot[0])
		return TOGETHER_NO_CLOCK;
	if (strcmp(one.boot, both.boot) != 0)
		return TOGETHER_OTHER_CLOCK;
	if (one.begin_ns > both.begin_ns)
		both.begin_ns = one.begin_ns;
	if (one.end_ns < both.end_ns)
		both.end_ns = one.end_ns;
	if (one.longest_ns > both.longest_ns)
		both.longest_ns = one.longest_ns;
	if (one.shortest_ns < both.shortest_ns)
		both.shortest_ns = one.shortest_ns;
	if (both.end_ns <= both.begin_ns || both.end_ns - both.begin_ns < both.shortest_ns / 2)
		return TOGETHER_OTHER_TIME;
	if (both.n == TOGETHER_MAX)
		return TOGETHER_TOO_MANY;
	both.n++;
	*together = both;
	return TOGETHER;
}

/* ---- how they went --------------------------------------------------------------------------- */

static void run_add_losses(struct run_info *all, const struct run_info *run)
{
	for (size_t i = 0; i < LOST_COUNT; i++)
		all->lost[i] += run->lost[i];
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++)
		all->stacks.missed[i] += run->stacks.missed[i];
	all->damaged_chunks += run->damaged_chunks;
	all->damaged_events += run->damaged_events;
	all->over_budget += run->over_budget;
	all->identities_left_out += run->identities_left_out;
	all->cut_short |= run->cut_short;
	all->end_damaged |= run->end_damaged;
	all->too_dense |= run->too_dense;
}

/* What one of them has; returns and all calls only what each has. */
static void run_add_asked(struct run_info *all, const struct run_info *run)
{
	all->returns &= run->returns;
	if (!all->chosen)
		all->chosen = run->chosen;
	all->gpu_times |= run->gpu_times;
	if (run->gpu_clock_error_ns > all->gpu_clock_error_ns)
		all->gpu_clock_error_ns = run->gpu_clock_error_ns;
	if (run->estimate_scale > all->estimate_scale)
		all->estimate_scale = run->estimate_scale;
	if (!all->stacks.sample_ns)
		all->stacks.sample_ns = run->stacks.sample_ns;
	all->stacks.calls |= run->stacks.calls;
	all->stacks.blocked |= run->stacks.blocked;
	all->stacks.host_waits |= run->stacks.host_waits;
}

/* `more` elements behind *n that there are. */
static void *run_append(const void *rows, size_t *n, const void *more, size_t n_more, size_t bytes)
{
	char *all = xrealloc((void *)rows, (*n + n_more) * bytes + 1);

	if (n_more)
		memcpy(all + *n * bytes, more, n_more * bytes);
	*n += n_more;
	return all;
}

/* Its rows are to be freed, and what they point at is the files'. */
static void run_add(struct run_info *all, const struct run_info *run)
{
	run_add_losses(all, run);
	run_add_asked(all, run);
	all->misses = run_append(all->misses, &all->n_misses, run->misses, run->n_misses,
	                         sizeof(*run->misses));
	all->identities = run_append(all->identities, &all->n_identities, run->identities,
	                             run->n_identities, sizeof(*run->identities));
}

static struct run_info run_of_all(const struct together *together, struct trace_file *const *files)
{
	struct run_info all = *trace_run(files[0]);

	all.misses = NULL;
	all.identities = NULL;
	all.n_misses = all.n_identities = 0;
	all.damaged_chunks = all.damaged_events = all.over_budget = all.identities_left_out = 0;
	memset(all.lost, 0, sizeof(all.lost));
	memset(all.stacks.missed, 0, sizeof(all.stacks.missed));
	all.begin_ns = together->begin_ns;
	all.end_ns = together->end_ns;
	for (size_t i = 0; i < together->n; i++)
		run_add(&all, trace_run(files[i]));
	return all;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What stands before the consumer: it has one begin and one end. */
struct between {
	struct consumer consumer;
	struct consumer *to;
	bool metrics; /* of this file */
	struct err *err;
	int rc; /* of the consumer */
};

static int between_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct between *between = (struct between *)self;

	(void)err;
	if (event->type == EVENT_METRICS && !between->metrics)
		return 0;
	between->rc = between->to->ops->event(between->to, event, between->err);
	return between->rc;
}

/* Samples of the same GPUs are in each of them, and in containers GPUs have other numbers. */
static bool have_same_gpus(const struct run_info *a, const struct run_info *b)
{
	if (a->n_gpus != b->n_gpus)
		return false;
	for (size_t i = 0; i < a->n_gpus; i++)
		if (strcmp(a->gpus[i].uuid, b->gpus[i].uuid) != 0)
			return false;
	return true;
}

/* The file that tells metrics; `n`: none does. */
static size_t file_of_metrics(struct trace_file *const *files, size_t n)
{
	size_t which = n;

	for (size_t i = n; i-- > 0;) {
		const struct run_info *run = trace_run(files[i]);

		if (!have_same_gpus(run, trace_run(files[0])))
			return n;
		if (run->stretches.interval_ns || (run->metrics.interval_ns && which == n))
			which = i;
	}
	return which;
}

int together_read(const struct together *together, struct trace_file *const *files,
                  struct consumer *consumer, struct err *errs, struct err *err)
{
	const struct consumer_ops ops = { .metrics = consumer->ops->metrics,
		                          .event = between_event };
	struct between between = { { &ops }, consumer, false, err, 0 };
	struct consumer *row[] = { &between.consumer };
	struct objects_numbers numbers = { .bytes = TOGETHER_BYTES / together->n };
	const struct trace_read_options options = { .from_ns = together->begin_ns,
		                                    .to_ns = together->end_ns,
		                                    .cut = true,
		                                    .numbers = &numbers };
	size_t metrics = file_of_metrics(files, together->n);
	struct run_info all = run_of_all(together, files);
	int damage = 0, end;

	if (numbers.bytes > OBJECTS_BYTES_MAX)
		numbers.bytes = OBJECTS_BYTES_MAX;
	if (consumer->ops->begin)
		between.rc = consumer->ops->begin(consumer, &all, err);
	for (size_t i = 0; i < together->n && !between.rc; i++) {
		int rc;

		between.metrics = i == metrics;
		rc = trace_read(files[i], &options, row, 1, &errs[i]);
		if (!damage && !between.rc)
			damage = rc;
	}
	free((void *)all.misses);
	free((void *)all.identities);
	all = run_of_all(together, files);
	if (metrics < together->n)
		all.stretches = trace_run(files[metrics])->stretches;
	end = consumer->ops->end ? consumer->ops->end(consumer, &all, err) : 0;
	free((void *)all.misses);
	free((void *)all.identities);
	return between.rc ? between.rc : end ? end : damage;
}
