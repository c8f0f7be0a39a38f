// SPDX-License-Identifier: MIT
#include "profile/estimate.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/map.h"
#include "base/xalloc.h"

#define FIRST_LAUNCHES 16 /* of a stream, that there is room for at once */

/* A stream with launches that nobody has waited for, in the order of their ends. */
struct queue {
	uint64_t stream;
	struct estimate_launch *at;
	size_t n, cap;
	UT_hash_handle hh;
};

/* A process with such streams. */
struct launcher {
	uint32_t pid;
	struct queue *queues;
	UT_hash_handle hh;
};

/* Of a stream that is new. */
#define NEW_BYTES                                                                                  \
	(sizeof(struct launcher) + sizeof(struct queue) +                                          \
	 FIRST_LAUNCHES * sizeof(struct estimate_launch))

struct estimate {
	struct launcher *launchers;
	struct budget *budget;
	struct estimate_figures figures; /* not_waited: of processes that ended */
	uint64_t waiting;
};

struct estimate *estimate_new(void)
{
	struct estimate *estimate = xcalloc(1, sizeof(*estimate));

	estimate->budget = budget_new(ESTIMATE_EACH_BYTES, ESTIMATE_ALL_BYTES);
	return estimate;
}

/* ---- what waits ---------------------------------------------------------------------------- */

static struct launcher *find_launcher(const struct estimate *estimate, uint32_t pid)
{
	return MAP_FIND(estimate->launchers, &pid);
}

static struct queue *find_queue(const struct launcher *launcher, uint64_t stream)
{
	return MAP_FIND(launcher->queues, &stream);
}

static void drop_queue(struct estimate *estimate, struct launcher *launcher, struct queue *queue)
{
	budget_give(estimate->budget, launcher->pid,
	            NEW_BYTES + (queue->cap - FIRST_LAUNCHES) * sizeof(*queue->at));
	HASH_DEL(launcher->queues, queue);
	free(queue->at);
	free(queue);
}

static void drop_launcher(struct estimate *estimate, struct launcher *launcher)
{
	struct queue *queue, *next;

	HASH_ITER (hh, launcher->queues, queue, next)
		drop_queue(estimate, launcher, queue);
	MAP_DROP(estimate->launchers, launcher);
}

void estimate_free(struct estimate *estimate)
{
	if (!estimate)
		return;
	while (estimate->launchers)
		drop_launcher(estimate, estimate->launchers);
	budget_free(estimate->budget);
	free(estimate);
}

static struct queue *queue_of(struct estimate *estimate, uint32_t pid, uint64_t stream)
{
	struct launcher *launcher = find_launcher(estimate, pid);
	struct queue *queue = launcher ? find_queue(launcher, stream) : NULL;

	if (queue || !budget_take(estimate->budget, pid, NEW_BYTES))
		return queue;
	if (!launcher)
		launcher = MAP_ADD(estimate->launchers, pid, &pid);
	queue = MAP_ADD(launcher->queues, stream, &stream);
	queue->cap = FIRST_LAUNCHES;
	queue->at = xcalloc(queue->cap, sizeof(*queue->at));
	return queue;
}

static bool has_room(struct estimate *estimate, uint32_t pid, struct queue *queue)
{
	if (queue->n < queue->cap)
		return true;
	if (!budget_take(estimate->budget, pid, queue->cap * sizeof(*queue->at)))
		return false;
	queue->cap *= 2;
	queue->at = xrealloc(queue->at, queue->cap * sizeof(*queue->at));
	return true;
}

bool estimate_add(struct estimate *estimate, uint64_t stream, const struct estimate_launch *launch)
{
	const uint32_t pid = launch->process->pid;
	struct queue *queue = queue_of(estimate, pid, stream);

	if (!queue || !has_room(estimate, pid, queue)) {
		if (!estimate->figures.refused++)
			estimate->figures.refused_pid = pid;
		return false;
	}
	queue->at[queue->n++] = *launch;
	estimate->waiting++;
	return true;
}

/* ---- what a wait has ended ------------------------------------------------------------------ */

/* Launches of a stream without a pause between them, found from the last one on. */
struct burst {
	size_t end; /* behind its last launch */
	size_t n;
	uint64_t begin_ns, end_ns; /* of its work */
	uint64_t longest_ns;       /* of the calls, the wait included */
};

struct waited {
	const struct estimate_wait *wait;
	uint64_t last_ns;   /* the begin of the last launch that it was for, on any stream */
	uint64_t behind_ns; /* how far the GPU was: 0 where the wait returned at once */
	estimate_fn each;
	void *data;
};

/* Another thread may have launched since the wait began: that is for the next one. */
static bool is_for(const struct waited *waited, const struct estimate_launch *launch)
{
	return launch->begin_ns <= waited->wait->begin_ns;
}

static void tell_burst(const struct waited *waited, const struct queue *queue,
                       const struct burst *burst, size_t first)
{
	uint64_t ns = burst->n && burst->end_ns > burst->begin_ns
	                      ? (burst->end_ns - burst->begin_ns) / burst->n
	                      : 0;

	for (size_t i = first; i < burst->end; i++) {
		if (is_for(waited, &queue->at[i]))
			waited->each(waited->data, &queue->at[i], ns);
	}
}

/* Before any launch is found: what is on other streams, and the wait. */
static struct burst burst_of_wait(const struct waited *waited, const struct queue *queue)
{
	const struct estimate_wait *wait = waited->wait;

	return (struct burst){ .end = queue->n,
		               .begin_ns = waited->behind_ns ? waited->last_ns : wait->end_ns,
		               .end_ns = wait->end_ns,
		               .longest_ns = waited->behind_ns };
}

static bool was_idle(const struct waited *waited, const struct burst *after, uint64_t pause_ns)
{
	if (!after->n && !waited->behind_ns)
		return true;
	return pause_ns >= ESTIMATE_PAUSE_NS &&
	       after->end_ns - after->begin_ns <= pause_ns / ESTIMATE_AFTER_SHARE &&
	       after->longest_ns <= pause_ns / ESTIMATE_CALL_SHARE;
}

/* The burst that ends with `launch`, and then there was a pause. */
static struct burst burst_before(const struct waited *waited, const struct burst *after,
                                 const struct estimate_launch *launch, size_t end)
{
	struct burst burst = { .end = end,
		               .begin_ns = UINT64_MAX,
		               .end_ns = launch->end_ns + waited->behind_ns,
		               .longest_ns = waited->behind_ns };

	if (burst.end_ns > after->begin_ns)
		burst.end_ns = after->begin_ns;
	return burst;
}

static void burst_add(struct burst *burst, const struct estimate_launch *launch)
{
	const uint64_t ns = launch->end_ns - launch->begin_ns;

	if (launch->begin_ns < burst->begin_ns)
		burst->begin_ns = launch->begin_ns;
	if (ns > burst->longest_ns)
		burst->longest_ns = ns;
	burst->n++;
}

/* Returns what is left out. */
static uint64_t tell_bursts(const struct waited *waited, const struct queue *queue)
{
	struct burst burst = burst_of_wait(waited, queue), before;
	uint64_t left_out_ns = 0, ns;

	for (size_t i = queue->n; i-- > 0;) {
		const struct estimate_launch *launch = &queue->at[i];

		if (!is_for(waited, launch))
			continue;
		ns = burst.begin_ns > launch->end_ns ? burst.begin_ns - launch->end_ns : 0;
		if (was_idle(waited, &burst, ns)) {
			before = burst_before(waited, &burst, launch, i + 1);
			left_out_ns += ns >= ESTIMATE_PAUSE_NS ? burst.begin_ns - before.end_ns : 0;
			tell_burst(waited, queue, &burst, i + 1);
			burst = before;
		}
		burst_add(&burst, launch);
	}
	tell_burst(waited, queue, &burst, 0);
	return left_out_ns;
}

static void end_queue(struct estimate *estimate, struct launcher *launcher, struct queue *queue,
                      const struct waited *waited)
{
	size_t left = 0;

	estimate->figures.left_out_ns += tell_bursts(waited, queue);
	for (size_t i = 0; i < queue->n; i++) {
		if (!is_for(waited, &queue->at[i]))
			queue->at[left++] = queue->at[i];
	}
	estimate->waiting -= queue->n - left;
	queue->n = left;
	if (!left)
		drop_queue(estimate, launcher, queue);
}

static void see_last_launch(struct waited *waited, const struct queue *queue)
{
	for (size_t i = 0; i < queue->n; i++) {
		if (is_for(waited, &queue->at[i]) && queue->at[i].begin_ns > waited->last_ns)
			waited->last_ns = queue->at[i].begin_ns;
	}
}

static void end_queues(struct estimate *estimate, struct launcher *launcher, struct waited *waited)
{
	struct queue *queue, *next;

	if (!waited->wait->all) {
		queue = find_queue(launcher, waited->wait->stream);
		if (!queue)
			return;
		see_last_launch(waited, queue);
		end_queue(estimate, launcher, queue, waited);
		return;
	}
	HASH_ITER (hh, launcher->queues, queue, next)
		see_last_launch(waited, queue);
	HASH_ITER (hh, launcher->queues, queue, next)
		end_queue(estimate, launcher, queue, waited);
}

void estimate_waited(struct estimate *estimate, const struct estimate_wait *wait, estimate_fn each,
                     void *data)
{
	struct launcher *launcher = find_launcher(estimate, wait->process->pid);
	struct waited waited = { .wait = wait, .each = each, .data = data };

	if (wait->end_ns >= wait->begin_ns + ESTIMATE_WAIT_NS)
		waited.behind_ns = wait->end_ns - wait->begin_ns;
	if (!launcher)
		return;
	end_queues(estimate, launcher, &waited);
	if (!launcher->queues)
		drop_launcher(estimate, launcher);
}

void estimate_ended(struct estimate *estimate, uint32_t pid)
{
	struct launcher *launcher = find_launcher(estimate, pid);
	struct queue *queue, *next;

	if (launcher) {
		HASH_ITER (hh, launcher->queues, queue, next) {
			estimate->figures.not_waited += queue->n;
			estimate->waiting -= queue->n;
		}
		drop_launcher(estimate, launcher);
	}
	budget_end(estimate->budget, pid);
}

void estimate_figures(const struct estimate *estimate, struct estimate_figures *figures)
{
	*figures = estimate->figures;
	figures->not_waited += estimate->waiting;
}
