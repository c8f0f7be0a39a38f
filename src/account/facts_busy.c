// SPDX-License-Identifier: MIT
/*
 * What GPUs ran, where no work was recorded but when a GPU was busy (GPU_METRICS_STRETCHES): each
 * stretch becomes a work, of the call that it can be of.
 */
#include "account/facts_inside.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "gpus/gpu_metrics.h"

#define BUSY_EDGES         4096 /* by which clocks are compared */
#define BUSY_START_NS      10000 /* a kernel that nothing is in the way of begins so soon, or sooner */
#define BUSY_SLACK_MOST_NS 20000000ull /* whatever a file says */
#define BUSY_TRIES         256         /* calls that are looked at for one stretch */
#define BUSY_GROUPS        64          /* works of a stretch in which a GPU was busy for a part */

/* A call that asks for work. */
struct ask {
	uint64_t begin_ns, end_ns;
	uint32_t thread, call; /* the row */
	const struct process *process;
	bool copy, waits; /* a copy or a set; one that returns when it is done */
};

struct maker {
	struct facts *facts;
	struct ask *asks; /* of all threads, by begin */
	size_t n_asks;
	size_t next;       /* the first that no stretch has had in which the GPU was partly busy */
	uint64_t slack_ns; /* that times of stretches can be wrong by */
	uint32_t gpu;      /* the facts' number */
};

/* ---- calls ----------------------------------------------------------------------------------- */

ORDER_BY(ask_order, struct ask, UP(begin_ns), UP(thread), UP(call));

static void asks_collect(struct maker *maker)
{
	const struct facts *facts = maker->facts;

	for (uint32_t i = 0; i < facts->n_threads; i++)
		maker->n_asks += facts->threads[i].asks;
	maker->asks = spill_make(facts->spill, (maker->n_asks + 1) * sizeof(*maker->asks));
	maker->n_asks = 0;
	for (uint32_t i = 0; i < facts->n_threads; i++) {
		const struct fact_thread *thread = &facts->threads[i];

		for (uint32_t k = 0; k < thread->n_calls;
		     k = (uint32_t)spill_next(facts->spill, k)) {
			const struct fact_call *call = &thread->calls[k];

			if (!call->correlation)
				continue;
			maker->asks[maker->n_asks++] = (struct ask){
				.begin_ns = call->begin_ns,
				.end_ns = call->end_ns,
				.thread = i,
				.call = k,
				.process = thread->process,
				.copy = call->op == OP_COPY || call->op == OP_SET,
				.waits = call->blocking,
			};
		}
	}
	SORT(maker->asks, maker->n_asks, ask_order);
}

/* The first that begins then or later. */
static size_t asks_at(const struct maker *maker, uint64_t time_ns)
{
	return ARRAY_BEFORE(maker->n_asks, i, maker->asks[i].begin_ns < time_ns);
}

static uint64_t before(uint64_t time_ns, uint64_t ns)
{
	return time_ns > ns ? time_ns - ns : 0;
}

/*
 * What began at `begin_ns`, after the GPU had done nothing since `idle_ns`: all that was asked for
 * until then had been run, so it is the first thing that was asked for since. Where there is none,
 * the last before: it waited for something. A copy that the host waits for is none of kernels.
 */
static const struct ask *ask_of(const struct maker *maker, uint64_t idle_ns, uint64_t begin_ns,
                                bool copies)
{
	size_t end = asks_at(maker, begin_ns + maker->slack_ns);

	for (size_t i = asks_at(maker, before(idle_ns, maker->slack_ns)), tries = 0;
	     i < end && tries < BUSY_TRIES; i++, tries++)
		if (copies ? maker->asks[i].copy : !maker->asks[i].waits)
			return &maker->asks[i];
	for (size_t i = end, tries = 0; i-- > 0 && tries < BUSY_TRIES; tries++)
		if (copies ? maker->asks[i].copy : !maker->asks[i].waits)
			return &maker->asks[i];
	return end ? &maker->asks[end - 1] : NULL; /* of before the recording */
}

/* ---- works ----------------------------------------------------------------------------------- */

static void work_add(struct maker *maker, uint64_t begin_ns, uint64_t end_ns, const struct ask *ask,
                     enum fact_class class, uint32_t device)
{
	struct facts *facts = maker->facts;

	if (end_ns <= begin_ns)
		return;
	if ((facts->n_works + 1) * sizeof(*facts->works) > FACTS_BYTES / 2) {
		facts->left_out++;
		return;
	}
	*SPILL_ADD(facts->spill, facts->works, facts->n_works) = (struct fact_work){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.thread = ask ? ask->thread : FACTS_NONE,
		.call = ask ? ask->call : FACTS_NONE,
		.process = ask ? ask->process : maker->asks[0].process,
		.gpu = maker->gpu,
		.device = device,
		.class = (uint8_t) class,
		.sampled = true,
	};
}

/*
 * Kernels ran for a part of the time, each of the calls in it asked for as long a one as the
 * others: one after the other, none before its call, all before the end.
 */
static void works_of_part(struct maker *maker, const struct fact_busy *busy)
{
	uint64_t all =
		(uint64_t)((double)(busy->end_ns - busy->begin_ns) * busy->busy / GPU_SHARE_WHOLE);
	size_t first = asks_at(maker, before(busy->begin_ns, maker->slack_ns / 2));
	size_t end = asks_at(maker, busy->end_ns);
	size_t n, step, groups;
	uint64_t now = busy->begin_ns;
	const struct ask *ask;

	if (first < maker->next) /* it is of the stretch before */
		first = maker->next;
	n = end > first ? end - first : 0;
	step = n / BUSY_GROUPS + 1;
	groups = (n + step - 1) / step;
	if (!n) {
		ask = ask_of(maker, busy->begin_ns, busy->begin_ns, false);
		now += (busy->end_ns - busy->begin_ns - all) / 2;
		work_add(maker, now, now + all, ask, FACT_KERNEL, busy->gpu);
		return;
	}
	maker->next = end;
	for (size_t i = 0; i < groups; i++) {
		uint64_t each = all / (groups - i), last = busy->end_ns - all;

		ask = &maker->asks[first + i * step];
		if (ask->end_ns > now)
			now = ask->end_ns < last ? ask->end_ns : last;
		work_add(maker, now, now + each, ask, FACT_KERNEL, busy->gpu);
		now += each;
		all -= each;
	}
}

static void works_of(struct maker *maker, const struct fact_busy *busy, uint64_t idle_ns)
{
	if (busy->copies) {
		work_add(maker, busy->begin_ns, busy->end_ns,
		         ask_of(maker, idle_ns, busy->begin_ns, true), FACT_COPY, busy->gpu);
	} else if (busy->busy == GPU_SHARE_WHOLE) {
		work_add(maker, busy->begin_ns, busy->end_ns,
		         ask_of(maker, idle_ns, busy->begin_ns, false), FACT_KERNEL, busy->gpu);
	} else if (busy->busy) {
		works_of_part(maker, busy);
	}
}

/* ---- clocks ---------------------------------------------------------------------------------- */

ORDER_BY(distance_order, int64_t, ORDER_OF(*a, *b));

/*
 * How much later stretches are told than calls, as far as it can be seen: kernels that nothing is
 * in the way of begin a few microseconds after the begin of their call, and some are such. What the
 * clocks can be wrong by bounds it.
 */
static int64_t stretches_late_ns(const struct maker *maker, const struct fact_busy *busy, size_t n)
{
	int64_t *late = xcalloc(BUSY_EDGES, sizeof(*late)), is = 0;
	size_t edges = 0;

	for (size_t i = 1; i < n && edges < BUSY_EDGES; i++) {
		const struct fact_busy *idle = &busy[i - 1];
		size_t at = asks_at(maker, before(idle->begin_ns, maker->slack_ns));

		if (idle->busy || idle->copies || !busy[i].busy ||
		    idle->end_ns - idle->begin_ns < 2 * maker->slack_ns)
			continue;
		for (int tries = 0;
		     tries < BUSY_TRIES && at < maker->n_asks && maker->asks[at].waits; tries++)
			at++;
		if (at < maker->n_asks &&
		    maker->asks[at].begin_ns < busy[i].begin_ns + maker->slack_ns)
			late[edges++] = (int64_t)(busy[i].begin_ns - maker->asks[at].begin_ns);
	}
	SORT(late, edges, distance_order);
	if (edges)
		is = late[edges / 10];
	free(late);
	is = is > BUSY_START_NS ? is - BUSY_START_NS : is < 0 ? is - BUSY_START_NS / 2 : 0;
	if (is > (int64_t)maker->slack_ns)
		return (int64_t)maker->slack_ns;
	return is < -(int64_t)maker->slack_ns ? -(int64_t)maker->slack_ns : is;
}

static uint64_t earlier(uint64_t time_ns, int64_t late_ns)
{
	return late_ns > 0 ? before(time_ns, (uint64_t)late_ns)
	                   : facts_time(time_ns + (uint64_t)-late_ns);
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* What lies between two stretches is not known. */
static void hole_add(struct facts *facts, uint64_t begin_ns, uint64_t end_ns)
{
	*SPILL_ADD(facts->spill, facts->unmeasured, facts->n_unmeasured) =
		(struct fact_span){ begin_ns, end_ns, 0 };
}

static void gpu_make_works(struct maker *maker, struct fact_busy *busy, size_t n)
{
	struct facts *facts = maker->facts;
	int64_t late_ns = stretches_late_ns(maker, busy, n);
	uint64_t idle_ns = 0; /* since when it has done nothing */

	for (size_t i = 0; i < n; i++) {
		struct fact_busy *now = &busy[i];

		now->begin_ns = earlier(now->begin_ns, late_ns);
		now->end_ns = earlier(now->end_ns, late_ns);
		if (i && now->begin_ns > now[-1].end_ns)
			hole_add(facts, now[-1].end_ns, now->begin_ns);
		if (!i || now->begin_ns > now[-1].end_ns || now[-1].busy || now[-1].copies)
			idle_ns = now->begin_ns;
		works_of(maker, now, idle_ns);
	}
	if (!facts->n_works) /* all that it was busy for is too short: there is no account */
		facts->n_unmeasured = 0;
	for (size_t i = 0; i < facts->n_unmeasured; i++) /* whose account it is */
		facts->unmeasured[i].process = facts->works[0].process->id;
	if (busy[n - 1].end_ns > facts->sampled_ns)
		facts->sampled_ns = busy[n - 1].end_ns;
}

ORDER_BY(busy_order, struct fact_busy, UP(gpu), UP(begin_ns));

/* Stretches that overlap are cut: a file can say anything. */
static void busy_cut(struct facts *facts)
{
	for (size_t i = 0; i + 1 < facts->n_busy; i++) {
		struct fact_busy *busy = &facts->busy[i];

		if (busy->gpu == busy[1].gpu && busy->end_ns > busy[1].begin_ns)
			busy->end_ns = busy[1].begin_ns;
		if (busy->end_ns < busy->begin_ns)
			busy->end_ns = busy->begin_ns;
	}
}

static size_t gpu_end(const struct facts *facts, size_t first)
{
	size_t end = first;

	while (end < facts->n_busy && facts->busy[end].gpu == facts->busy[first].gpu)
		end++;
	return end;
}

static bool gpu_was_busy(const struct facts *facts, size_t first, size_t end)
{
	for (; first < end; first++)
		if (facts->busy[first].busy || facts->busy[first].copies)
			return true;
	return false;
}

void facts_busy_make_works(struct facts *facts)
{
	struct maker maker = { .facts = facts };
	uint64_t interval_ns = facts->run->stretches.interval_ns;
	uint32_t used = 0;
	size_t first = 0;

	if (facts->n_works || !facts->n_busy)
		return;
	SORT(facts->busy, facts->n_busy, busy_order);
	busy_cut(facts);
	for (size_t i = 0; i < facts->n_busy; i = gpu_end(facts, i)) {
		if (!gpu_was_busy(facts, i, gpu_end(facts, i)))
			continue;
		used++;
		first = i;
	}
	facts->gpus_busy = used;
	maker.slack_ns = interval_ns + facts->run->stretches.clock_error_ns;
	if (maker.slack_ns > BUSY_SLACK_MOST_NS)
		maker.slack_ns = BUSY_SLACK_MOST_NS;
	asks_collect(&maker);
	if (used == 1 && maker.n_asks) { /* of several it is not known who used which */
		facts->resolution_ns =
			interval_ns < BUSY_SLACK_MOST_NS ? interval_ns : BUSY_SLACK_MOST_NS;
		facts->n_gpus = 1;
		facts->n_unmeasured = 0; /* pauses of records, of which there are none */
		gpu_make_works(&maker, &facts->busy[first], gpu_end(facts, first) - first);
	}
	spill_drop(facts->spill, maker.asks);
}
