// SPDX-License-Identifier: MIT
#include "report/gaps/gap_threads.h"

#include <stdlib.h>

#include "analysis/thread_ids.h"
#include "base/xalloc.h"

struct gap_threads {
	struct gap_samples *samples;
	struct stack_places *places;
	struct gap_whos *whos;
	size_t room;     /* for stacks */
	bool any, calls; /* there was a sample; a call with its stack */
	bool waits;      /* what threads waited for */
};

struct gap_threads *gap_threads_new(void)
{
	struct gap_threads *threads = xcalloc(1, sizeof(*threads));

	threads->samples = gap_samples_new();
	threads->places = stack_places_new();
	threads->whos = gap_whos_new();
	threads->room = GAP_STACKS_MOST;
	return threads;
}

void gap_threads_free(struct gap_threads *threads)
{
	if (!threads)
		return;
	gap_samples_free(threads->samples);
	stack_places_free(threads->places);
	gap_whos_free(threads->whos);
	free(threads);
}

/* Two parts: up to when it was woken, and from then on, when it had no CPU. */
static void add_wait(struct gap_threads *threads, uint32_t thread, const struct event *event)
{
	const struct sample *sample = event->sample;
	uint64_t runnable_ns =
		sample->runnable_ns < sample->weight_ns ? sample->runnable_ns : sample->weight_ns;
	struct gap_part blocked = { .end_ns = event->time_ns - runnable_ns,
		                    .ns = sample->weight_ns - runnable_ns,
		                    .stack = sample->stack,
		                    .wait = sample->wait,
		                    .who = gap_whos_number(threads->whos, sample->waker,
		                                           sample->waker_tid) };
	struct gap_part runnable = { .end_ns = event->time_ns,
		                     .ns = runnable_ns,
		                     .stack = sample->stack,
		                     .wait = WAIT_CPU,
		                     .who = gap_whos_number(threads->whos, sample->rival,
		                                            sample->rival_pid) };

	threads->waits = true;
	if (blocked.ns)
		gap_samples_add_part(threads->samples, thread, &blocked);
	if (runnable.ns)
		gap_samples_add_part(threads->samples, thread, &runnable);
}

void gap_threads_sample(struct gap_threads *threads, uint32_t thread, const struct event *event)
{
	const struct sample *sample = event->sample;

	/* what was told for its time alone says nothing of where a thread was */
	threads->any |= sample->stack || (sample_is_placed(sample) && !sample->wait);
	if (thread == THREAD_ID_OTHERS || !sample_is_placed(sample))
		return;
	if (sample->wait && sample->weight_ns <= event->time_ns)
		add_wait(threads, thread, event);
	else
		gap_samples_add(threads->samples, thread, event->time_ns, sample);
}

void gap_threads_ended(struct gap_threads *threads, uint32_t thread, const struct call *call,
                       uint64_t end_ns)
{
	if (threads->waits && thread != THREAD_ID_OTHERS && !(call->flags & CALL_NESTED))
		gap_samples_call(threads->samples, thread, call->begin_ns, end_ns);
}

bool gap_threads_wait(const struct gap_threads *threads)
{
	return threads->waits;
}

const struct gap_whos *gap_threads_whos(const struct gap_threads *threads)
{
	return threads->whos;
}

bool gap_threads_any(const struct gap_threads *threads)
{
	return threads->any;
}

uint64_t gap_threads_due(const struct gap_threads *threads, uint32_t thread)
{
	return thread == THREAD_ID_OTHERS ? 0 : gap_samples_due(threads->samples, thread);
}

void gap_threads_forget(struct gap_threads *threads, uint64_t until_ns)
{
	gap_samples_forget(threads->samples, until_ns);
}

/* ---- one gap ------------------------------------------------------------------------------- */

struct meanwhile {
	uint64_t ns, waiting_ns; /* waiting: blocked, and not in Python */
};

static bool has_python(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		if (stack->frames[i]->kind == FRAME_PYTHON)
			return true;
	}
	return false;
}

static void weigh(void *data, const struct gap_sampled *sampled)
{
	struct meanwhile *meanwhile = data;

	meanwhile->ns += sampled->ns;
	if (sampled->blocked && !has_python(sampled->stack))
		meanwhile->waiting_ns += sampled->ns;
}

/* Whether the thread that asked only waited for another one to give it something to ask for. */
static bool was_given_work(struct gap_threads *threads, const struct gpu_gap *gap)
{
	const struct gap_verdict *verdict = &gap->verdict;
	struct meanwhile own = { 0 }, other = { 0 };

	if (verdict->thread_before == THREAD_ID_OTHERS ||
	    verdict->thread_before == verdict->thread || gap->before.process != gap->after.process)
		return false;
	gap_samples_in(threads->samples, verdict->thread, gap->begin_ns, gap->end_ns, weigh, &own);
	if (own.waiting_ns <= own.ns / 2 && own.ns)
		return false;
	gap_samples_in(threads->samples, verdict->thread_before, gap->begin_ns, gap->end_ns, weigh,
	               &other);
	return other.ns > other.waiting_ns;
}

struct laying {
	struct gap_threads *threads;
	struct gap_stacks *stacks;
};

static void lay(void *data, const struct gap_sampled *sampled)
{
	struct laying *laying = data;

	if (sampled->stack) /* else it does not tell where */
		gap_stacks_add(laying->stacks, &laying->threads->room, sampled);
}

void gap_threads_look(struct gap_threads *threads, const struct gpu_gap *gap,
                      struct gap_stacks *stacks)
{
	const struct gap_verdict *verdict = &gap->verdict;
	struct laying laying = { threads, stacks };
	uint64_t samples = stacks->known.samples;
	bool given;

	stacks->known.gap_ns += gpu_gap_ns(gap);
	if (!threads->any || verdict->thread == THREAD_ID_OTHERS)
		return;
	given = was_given_work(threads, gap);
	gap_samples_in(threads->samples, given ? verdict->thread_before : verdict->thread,
	               gap->begin_ns, gap->end_ns, lay, &laying);
	if (stacks->known.samples > samples)
		gap_sampling_of(&stacks->known, gap->after.process,
		                given ? verdict->tid_before : verdict->tid);
}

/* ---- what it waited for ---------------------------------------------------------------------- */

static void split_part(void *data, const struct gap_sampled *sampled)
{
	gap_split_add(data, sampled);
}

/* Up to the end of the call that asked; of a thread that was given its work all of the gap. */
void gap_threads_split(struct gap_threads *threads, struct gpu_gap *gap, struct gap_waits *waits)
{
	const struct gap_verdict *verdict = &gap->verdict;
	struct gap_split split = { .into = waits, .room = &threads->room };
	uint32_t thread = verdict->thread;

	if (!threads->waits)
		return;
	split.ns = verdict->host_ns + verdict->asking_ns;
	split.cuda_ns = verdict->cuda_ns + verdict->asking_ns;
	if (thread != THREAD_ID_OTHERS && was_given_work(threads, gap)) {
		thread = verdict->thread_before;
		split.ns = gpu_gap_ns(gap);
		split.cuda_ns = 0;
	}
	if (split.ns > gpu_gap_ns(gap))
		split.ns = gpu_gap_ns(gap);
	if (thread == THREAD_ID_OTHERS)
		split.wait_ns[GAP_WAIT_UNKNOWN] = split.ns;
	else
		gap_samples_in(threads->samples, thread, gap->begin_ns, gap->begin_ns + split.ns,
		               split_part, &split);
	gap->wait = gap_split_end(&split, gpu_gap_ns(gap), &gap->wait_ns);
}

void gap_threads_move_waits(struct gap_threads *threads, struct gap_waits *to,
                            struct gap_waits *from)
{
	gap_waits_move(to, from, &threads->room);
}

void gap_threads_call(struct gap_threads *threads, const struct gpu_gap *gap,
                      struct gap_stacks *stacks)
{
	const struct gap_sampled whole = { .stack = gap->verdict.stack, .ns = gpu_gap_ns(gap) };

	stacks->known.gap_ns += whole.ns;
	threads->calls |= whole.stack != NULL;
	if (whole.stack)
		gap_stacks_add(stacks, &threads->room, &whole);
}

void gap_threads_move(struct gap_threads *threads, struct gap_stacks *to, struct gap_stacks *from)
{
	gap_stacks_move(to, from, &threads->room);
}

void gap_threads_keep(struct gap_threads *threads, struct gpu_gap *gap)
{
	uint64_t ns;
	const char *place;

	gap->stacks = xcalloc(1, sizeof(*gap->stacks));
	gap_threads_look(threads, gap, gap->stacks);
	place = gap_stacks_most(gap->stacks, threads->places, &ns);
	if (place) {
		gap->place = place;
		gap->place_ns = ns < gpu_gap_ns(gap) ? ns : gpu_gap_ns(gap);
	}
}

struct stack_places *gap_threads_places(struct gap_threads *threads)
{
	return threads->any || threads->calls ? threads->places : NULL;
}
