// SPDX-License-Identifier: MIT
#include "node/steps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/order.h"
#include "base/quota.h"
#include "base/xalloc.h"

#define SURE         16 /* how sure one can be of a marker: as often it kept its distance, */
#define SURE_ENOUGH  8  /* from which on it is one */
#define DOUBT        2  /* and what one other distance takes from that */
#define MEDIAN_EVERY 8  /* it is made anew after so many steps */

/* A kernel that may mark steps. */
struct marker {
	uint64_t what;
	uint64_t at;  /* the number of its last launch in its thread */
	uint64_t ns;  /* and when */
	uint64_t gap; /* launches from one to the next, as it was mostly */
	int sure;
};

struct step_thread {
	uint32_t tid; /* the key */
	uint32_t pid;
	uint64_t person;
	uint64_t launches;
	struct marker markers[STEPS_MARKERS];
	size_t n_markers;
	size_t chosen; /* of markers; STEPS_MARKERS: none */
	uint64_t lengths[STEPS_KEPT];
	uint64_t n; /* lengths ever */
	uint64_t median_ns;
	bool told; /* the step that has not ended */
	TAILQ_ENTRY(step_thread) order;
	UT_hash_handle hh;
};

TAILQ_HEAD(step_threads, step_thread);

struct steps {
	struct steps_options options;
	struct step_thread *threads;
	struct step_threads order; /* whose last launch or range is the oldest is the first */
	struct quota shares;
	uint64_t forgotten;
};

struct steps *steps_new(const struct steps_options *options)
{
	struct steps *steps = xcalloc(1, sizeof(*steps));

	steps->options = *options;
	steps->shares.user.most = STEPS_USER_MAX;
	TAILQ_INIT(&steps->order);
	return steps;
}

static void forget(struct steps *steps, struct step_thread *thread)
{
	quota_give(&steps->shares, thread->person, 0, 1);
	HASH_DEL(steps->threads, thread);
	TAILQ_REMOVE(&steps->order, thread, order);
	free(thread);
}

void steps_free(struct steps *steps)
{
	struct step_thread *thread, *next;

	if (!steps)
		return;
	HASH_ITER (hh, steps->threads, thread, next)
		forget(steps, thread);
	quota_free(&steps->shares);
	free(steps);
}

/* The one that was idle for the longest time: of this user, where he has as many as he may have. */
static void make_room(struct steps *steps, uint64_t person)
{
	bool own = quota_refuses(&steps->shares, person, 0, 1);
	struct step_thread *thread = TAILQ_FIRST(&steps->order);

	if (!own && HASH_COUNT(steps->threads) < STEPS_THREADS_MAX)
		return;
	while (own && thread->person != person)
		thread = TAILQ_NEXT(thread, order);
	steps->forgotten++;
	forget(steps, thread);
}

/* A number that was another process's thread before is a new one. */
static struct step_thread *thread_of(struct steps *steps, const struct process *process,
                                     uint32_t tid)
{
	struct step_thread *thread = MAP_FIND(steps->threads, &tid);

	if (thread && thread->pid == process->pid && thread->person == process->person) {
		TAILQ_REMOVE(&steps->order, thread, order);
		TAILQ_INSERT_TAIL(&steps->order, thread, order);
		return thread;
	}
	if (thread)
		forget(steps, thread);
	make_room(steps, process->person);
	thread = MAP_ADD(steps->threads, tid, &tid);
	thread->pid = process->pid;
	thread->person = process->person;
	quota_add(&steps->shares, process->person, 0, 1);
	thread->chosen = STEPS_MARKERS;
	TAILQ_INSERT_TAIL(&steps->order, thread, order);
	return thread;
}

/* ---- lengths ------------------------------------------------------------------------------- */

ORDER_BY(compare, uint64_t, ORDER_OF(*a, *b));

static void renew_median(struct step_thread *thread)
{
	size_t n = thread->n < STEPS_KEPT ? thread->n : STEPS_KEPT;
	uint64_t sorted[STEPS_KEPT];

	memcpy(sorted, thread->lengths, n * sizeof(*sorted));
	SORT(sorted, n, compare);
	thread->median_ns = sorted[n / 2];
}

static bool is_slow(const struct steps *steps, const struct step_thread *thread, uint64_t ns)
{
	return thread->n >= STEPS_BEFORE && thread->median_ns >= steps->options.least_ns &&
	       (double)ns > steps->options.times * (double)thread->median_ns;
}

static void tell(const struct step_thread *thread, uint64_t ns, bool ended, struct slow_step *slow)
{
	*slow = (struct slow_step){ .pid = thread->pid,
		                    .person = thread->person,
		                    .tid = thread->tid,
		                    .ns = ns,
		                    .median_ns = thread->median_ns,
		                    .ended = ended };
	if (thread->chosen < STEPS_MARKERS)
		slow->launches = thread->markers[thread->chosen].gap;
}

static bool take_length(const struct steps *steps, struct step_thread *thread, uint64_t ns,
                        struct slow_step *slow)
{
	bool is = is_slow(steps, thread, ns);

	if (is)
		tell(thread, ns, true, slow);
	thread->lengths[thread->n++ % STEPS_KEPT] = ns;
	if (thread->n % MEDIAN_EVERY == 0)
		renew_median(thread);
	return is;
}

/* ---- markers ------------------------------------------------------------------------------- */

static void forget_lengths(struct step_thread *thread)
{
	thread->n = thread->median_ns = 0;
	thread->told = false;
}

/* Of those that are sure the one with the longest way to itself. */
static void choose(struct step_thread *thread)
{
	size_t best = STEPS_MARKERS;

	for (size_t i = 0; i < thread->n_markers; i++) {
		const struct marker *marker = &thread->markers[i];

		if (marker->sure >= SURE_ENOUGH &&
		    (best == STEPS_MARKERS || marker->gap > thread->markers[best].gap))
			best = i;
	}
	if (best == thread->chosen)
		return;
	/* one as long as the other mark the same steps */
	if (best < STEPS_MARKERS && thread->chosen < STEPS_MARKERS &&
	    thread->markers[thread->chosen].sure >= SURE_ENOUGH &&
	    thread->markers[thread->chosen].gap == thread->markers[best].gap)
		return;
	thread->chosen = best;
	forget_lengths(thread);
}

/* The one of `what`; where there is no room it takes the place of the least sure. */
static struct marker *marker_of(struct step_thread *thread, uint64_t what)
{
	struct marker *least = NULL;

	for (size_t i = 0; i < thread->n_markers; i++) {
		struct marker *marker = &thread->markers[i];

		if (marker->what == what)
			return marker;
		if (i != thread->chosen && (!least || marker->sure < least->sure))
			least = marker;
	}
	if (thread->n_markers < STEPS_MARKERS)
		least = &thread->markers[thread->n_markers++];
	else if (least->sure > 0) {
		least->sure--;
		return NULL;
	}
	*least = (struct marker){ .what = what };
	return least;
}

/* What it knows of its distance. Returns whether that was the usual one. */
static bool learn(struct step_thread *thread, struct marker *marker, uint64_t gap)
{
	int before = marker->sure;
	bool usual = marker->gap == gap;

	if (usual) {
		marker->sure += marker->sure < SURE;
	} else if (marker->sure > DOUBT) {
		marker->sure -= DOUBT;
	} else {
		marker->gap = gap;
		marker->sure = 1;
	}
	if ((before >= SURE_ENOUGH) != (marker->sure >= SURE_ENOUGH))
		choose(thread);
	return usual;
}

bool steps_launch(struct steps *steps, const struct process *process, uint32_t tid, uint64_t what,
                  uint64_t now_ns, struct slow_step *slow)
{
	struct step_thread *thread = thread_of(steps, process, tid);
	struct marker *marker;
	uint64_t ns;
	bool usual, is = false;

	thread->launches++;
	marker = marker_of(thread, what);
	if (!marker)
		return false;
	if (marker->at) {
		ns = now_ns > marker->ns ? now_ns - marker->ns : 0;
		usual = learn(thread, marker, thread->launches - marker->at);
		if (thread->chosen < STEPS_MARKERS && marker == &thread->markers[thread->chosen]) {
			is = usual && take_length(steps, thread, ns, slow) && !thread->told;
			thread->told = false;
		}
	}
	marker->at = thread->launches;
	marker->ns = now_ns;
	return is;
}

bool steps_range(struct steps *steps, const struct process *process, uint32_t tid,
                 uint64_t begin_ns, uint64_t end_ns, struct slow_step *slow)
{
	struct step_thread *thread = thread_of(steps, process, tid);

	return take_length(steps, thread, end_ns > begin_ns ? end_ns - begin_ns : 0, slow);
}

/* A step with more launches than usual is another kind of step. */
static bool is_unended(const struct steps *steps, const struct step_thread *thread, uint64_t now_ns,
                       uint64_t *ns)
{
	const struct marker *marker;

	if (thread->told || thread->chosen == STEPS_MARKERS)
		return false;
	marker = &thread->markers[thread->chosen];
	*ns = now_ns > marker->ns ? now_ns - marker->ns : 0;
	return *ns >= steps->options.unended_ns && thread->launches - marker->at < marker->gap &&
	       is_slow(steps, thread, *ns);
}

bool steps_unended(struct steps *steps, uint64_t now_ns, struct slow_step *slow)
{
	struct step_thread *thread, *next;
	uint64_t ns;

	HASH_ITER (hh, steps->threads, thread, next) {
		if (!is_unended(steps, thread, now_ns, &ns))
			continue;
		thread->told = true;
		tell(thread, ns, false, slow);
		return true;
	}
	return false;
}

void steps_exit(struct steps *steps, uint32_t pid)
{
	struct step_thread *thread, *next;

	HASH_ITER (hh, steps->threads, thread, next)
		if (thread->pid == pid)
			forget(steps, thread);
}

void steps_figures(const struct steps *steps, uint64_t *judged, uint64_t *forgotten)
{
	const struct step_thread *thread, *next;

	*judged = 0;
	*forgotten = steps->forgotten;
	HASH_ITER (hh, steps->threads, thread, next)
		*judged += thread->n >= STEPS_BEFORE;
}
