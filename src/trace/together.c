// SPDX-License-Identifier: MIT
#include "trace/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/xalloc.h"
#include "trace/objects.h"

#define TOGETHER_BYTES (2 * OBJECTS_BYTES_MAX) /* of definitions of all files */

/* ---- which ----------------------------------------------------------------------------------- */

struct together together_of(const struct run_info *run, const struct trace_file *file,
                            const struct together_clock *clock)
{
	struct together together = { .begin_ns = run->begin_ns,
		                     .end_ns = run->end_ns,
		                     .begins_ns = { run->begin_ns },
		                     .files = { file },
		                     .n = 1 };

	if (clock) {
		together.clocks[0] = *clock;
		together.begin_ns = clock_map_ns(&clock->map, run->begin_ns);
		together.end_ns = clock_map_ns(&clock->map, run->end_ns);
	}
	if (together.end_ns > together.begin_ns)
		together.longest_ns = together.shortest_ns = together.end_ns - together.begin_ns;
	snprintf(together.boot, sizeof(together.boot), "%s", run->boot ? run->boot : "");
	return together;
}

/* Two of one machine do not begin in the same nanosecond, but any file can say that it did: only
 * what is in them tells that nothing is missed without the second. */
static enum together_how together_has(const struct together *together, const struct together *one)
{
	enum together_how how = TOGETHER;

	for (size_t i = 0; i < together->n; i++) {
		const struct trace_file *there = together->files[i], *file = one->files[0];

		if (together->clocks[i].machine != one->clocks[0].machine ||
		    together->begins_ns[i] != one->begins_ns[0])
			continue;
		if (there && file && trace_begins_as(there, file))
			return TOGETHER_SAME;
		how = TOGETHER_TWIN;
	}
	return how;
}

enum together_how together_join(struct together *together, const struct run_info *run,
                                const struct trace_file *file, const struct together_clock *clock)
{
	struct together one = together_of(run, file, clock), both = *together;
	enum together_how has;

	if (!one.boot[0] || !both.boot[0])
		return TOGETHER_NO_CLOCK;
	if (clock ? clock->of != both.clocks[0].of : strcmp(one.boot, both.boot) != 0)
		return TOGETHER_OTHER_CLOCK;
	has = together_has(together, &one);
	if (has != TOGETHER)
		return has;
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
	both.clocks[both.n] = one.clocks[0];
	both.files[both.n] = file;
	both.begins_ns[both.n++] = run->begin_ns;
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

/* Who processes are: their numbers are the machine's, and times its clock's. */
static void run_add_identities(struct run_info *all, const struct run_info *run,
                               const struct together_clock *clock)
{
	size_t n = all->n_identities;
	struct run_identity *rows = run_append(all->identities, &all->n_identities, run->identities,
	                                       run->n_identities, sizeof(*run->identities));

	for (; n < all->n_identities; n++) {
		rows[n].machine = clock->machine;
		rows[n].since_ns = clock_map_ns(&clock->map, rows[n].since_ns);
		for (size_t i = 0; i < RUN_MEMORIES && rows[n].memory[i].time_ns; i++)
			rows[n].memory[i].time_ns =
				clock_map_ns(&clock->map, rows[n].memory[i].time_ns);
	}
	all->identities = rows;
}

static void run_add_machine(struct run_info *all, const struct run_info *run,
                            const struct together_clock *clock)
{
	struct run_machine *machines = (struct run_machine *)all->machines;

	for (; all->n_machines <= clock->machine; all->n_machines++) {
		machines = vec_room(machines, all->n_machines, sizeof(*machines));
		machines[all->n_machines] = (struct run_machine){ 0 };
	}
	machines[clock->machine] = (struct run_machine){ run->hostname, clock->error_ns, clock->n };
	all->machines = machines;
}

/* Its rows are to be freed, and what they point at is the files'. */
static void run_add(struct run_info *all, const struct run_info *run,
                    const struct together_clock *clock)
{
	run_add_losses(all, run);
	run_add_asked(all, run);
	run_add_identities(all, run, clock);
	run_add_machine(all, run, clock);
	all->misses = run_append(all->misses, &all->n_misses, run->misses, run->n_misses,
	                         sizeof(*run->misses));
}

static void run_free_rows(struct run_info *all)
{
	free((void *)all->misses);
	free((void *)all->identities);
	free((void *)all->machines);
}

static struct run_info run_of_all(const struct together *together, struct trace_file *const *files)
{
	struct run_info all = *trace_run(files[0]);

	all.misses = NULL;
	all.identities = NULL;
	all.machines = NULL;
	all.n_misses = all.n_identities = all.n_machines = 0;
	all.damaged_chunks = all.damaged_events = all.over_budget = all.identities_left_out = 0;
	memset(all.lost, 0, sizeof(all.lost));
	memset(all.stacks.missed, 0, sizeof(all.stacks.missed));
	all.begin_ns = together->begin_ns;
	all.end_ns = together->end_ns;
	for (size_t i = 0; i < together->n; i++)
		run_add(&all, trace_run(files[i]), &together->clocks[i]);
	return all;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What stands before the consumer: it has one begin and one end. */
struct between {
	struct consumer consumer;
	struct consumer *to;
	const struct together_clock *clock; /* of this file */
	bool metrics;                       /* it tells them */
	struct err *err;
	int rc; /* of the consumer */
};

static int between_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct between *between = (struct between *)self;
	struct mapped_event mapped;

	(void)err;
	if (event->type == EVENT_METRICS && !between->metrics)
		return 0;
	event = clock_map_event(&between->clock->map, event, &mapped);
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

/* The file that tells metrics; `n`: none does. Of several machines none has all GPUs. */
static size_t file_of_metrics(const struct together *together, struct trace_file *const *files)
{
	size_t n = together->n, which = n;

	for (size_t i = 1; i < n; i++)
		if (together->clocks[i].machine != together->clocks[0].machine)
			return n;

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
		                          .stalls = consumer->ops->stalls,
		                          .event = between_event };
	struct between between = { { &ops }, consumer, NULL, false, err, 0 };
	struct consumer *row[] = { &between.consumer };
	struct objects_numbers numbers = { .bytes = TOGETHER_BYTES / together->n };
	struct trace_read_options options = { .cut = true,
		                              .hooks_whole = true,
		                              .numbers = &numbers };
	size_t metrics = file_of_metrics(together, files);
	struct run_info all = run_of_all(together, files);
	int damage = 0, end;

	if (numbers.bytes > OBJECTS_BYTES_MAX)
		numbers.bytes = OBJECTS_BYTES_MAX;
	if (consumer->ops->begin)
		between.rc = consumer->ops->begin(consumer, &all, err);
	for (size_t i = 0; i < together->n && !between.rc; i++) {
		int rc;

		between.metrics = i == metrics;
		between.clock = &together->clocks[i];
		numbers.machine = between.clock->machine;
		options.from_ns = clock_map_own_ns(&between.clock->map, together->begin_ns);
		options.to_ns = clock_map_own_ns(&between.clock->map, together->end_ns);
		rc = trace_read(files[i], &options, row, 1, &errs[i]);
		if (!damage && !between.rc)
			damage = rc;
	}
	run_free_rows(&all);
	all = run_of_all(together, files);
	if (metrics < together->n)
		all.stretches = trace_run(files[metrics])->stretches;
	end = consumer->ops->end ? consumer->ops->end(consumer, &all, err) : 0;
	run_free_rows(&all);
	return between.rc ? between.rc : end ? end : damage;
}
