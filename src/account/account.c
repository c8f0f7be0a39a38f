// SPDX-License-Identifier: MIT
#include "account/account.h"

#include <stdlib.h>
#include <string.h>

#include "account/account_inside.h"
#include "account/walk.h"
#include "base/order.h"
#include "base/xalloc.h"

bool account_part_is_for_peers(const struct accounts *accounts, const struct account_part *part)
{
	uint32_t via = part->via;

	while (via && accounts->vias[via].before)
		via = accounts->vias[via].before;
	return via && accounts->vias[via].cause == ACCOUNT_COMMUNICATION;
}

/* Parts of a segment that lie in that span, and in no pause of measuring. */
static void segment_measured(const struct maker *maker, struct account *account,
                             const struct gpu_time *gpu, const struct gpu_segment *segment,
                             const struct fact_span *in, struct measured *part)
{
	uint64_t end_ns = facts_min(segment->end_ns, in->end_ns);

	for (part->end_ns = facts_max(segment->begin_ns, in->begin_ns);
	     measured_next(part, end_ns);) {
		struct cut cut = { part->begin_ns, part->end_ns, 0, account };

		if (segment->state == STATE_COMMUNICATION)
			communication_explain(maker, cut, gpu, segment);
		else
			segment_explain(maker, &cut, gpu, segment);
	}
}

/* The thread that asks for most of what a process runs; FACTS_NONE: none is known. */
static uint32_t asking_thread(const struct facts *facts, const struct process *process)
{
	uint32_t most = FACTS_NONE;

	for (uint32_t i = 0; i < facts->n_threads; i++)
		if (facts->threads[i].process == process && facts->threads[i].asks &&
		    (most == FACTS_NONE || facts->threads[i].asks > facts->threads[most].asks))
			most = i;
	return most;
}

/* Of the account that is made next. */
static uint64_t from_of(const struct maker *maker)
{
	return maker->from_ns ? maker->from_ns[maker->accounts->n] : 0;
}

static void account_of_gpu(const struct maker *maker, uint32_t number)
{
	const struct gpu_time *gpu = &maker->gpus[number];
	const struct fact_work *first = &maker->facts->works[gpu->first];
	const struct fact_span all = { from_of(maker), UINT64_MAX, 0 };
	struct account *account = &maker->accounts->of[maker->accounts->n++];
	struct measured part = measured_of(maker->facts, first->process);

	account->process = first->process;
	account->gpu = number;
	account->device = first->device;
	account->thread = asking_thread(maker->facts, first->process);
	account->first_ns = gpu->segments[0].begin_ns;
	account->begin_ns = facts_max(account->first_ns, all.begin_ns);
	account->end_ns = gpu->segments[gpu->n - 1].end_ns;
	account->longest_stream_ns = gpu_longest_stream_ns(maker->facts, gpu);
	for (size_t i = gpu_time_at(maker->gpus + number, all.begin_ns); i < gpu->n;
	     i = spill_next(maker->facts->spill, i))
		segment_measured(maker, account, gpu, &gpu->segments[i], &all, &part);
	account->not_measured_ns = part.not_measured_ns;
	parts_finish(maker->parts, account);
}

/* In those parts of the time in which the process was measured; returns how long the others are. */
static uint64_t thread_walk(const struct walk *walk, const struct process *process, uint32_t number,
                            uint64_t begin_ns, uint64_t end_ns)
{
	struct measured part = measured_of(walk->facts, process);

	for (part.end_ns = begin_ns; measured_next(&part, end_ns);)
		walk_thread(walk, number, part.begin_ns, part.end_ns, 0);
	return part.not_measured_ns;
}

/* Without GPU times: from its first call that asks to its last, or on to the recording's end. */
static void account_of_thread(const struct maker *maker, uint32_t number)
{
	const struct facts *facts = maker->facts;
	const struct fact_thread *thread = &facts->threads[number];
	uint64_t from_ns = from_of(maker);
	struct account *account = &maker->accounts->of[maker->accounts->n++];
	struct walk walk = walk_of(facts, maker->parts, maker->budget);
	size_t first = 0, last = thread->n_calls - 1;

	walk.alone = true;
	while (!thread->calls[first].correlation)
		first++;
	while (!thread->calls[last].correlation)
		last--;
	account->process = thread->process;
	account->gpu = account->device = FACTS_NONE;
	account->thread = number;
	account->first_ns = thread->calls[first].begin_ns;
	account->begin_ns = facts_max(account->first_ns, from_ns);
	account->end_ns = facts_ended(facts, thread->process)
	                          ? thread->calls[last].end_ns
	                          : facts_max(facts->end_ns, thread->calls[last].end_ns);
	account->not_measured_ns =
		thread_walk(&walk, account->process, number, account->begin_ns, account->end_ns);
	parts_finish(maker->parts, account);
}

static void account_of_span(const struct maker *maker, struct account *account,
                            const struct fact_span *span, struct measured *part)
{
	struct walk walk = walk_of(maker->facts, maker->parts, maker->budget);
	struct gpu_time *gpu;

	walk.alone = true;
	if (account->gpu == FACTS_NONE) {
		walk_thread(&walk, account->thread, span->begin_ns, span->end_ns, 0);
		return;
	}
	gpu = &maker->gpus[account->gpu];
	for (size_t i = gpu_time_at(gpu, span->begin_ns);
	     i < gpu->n && gpu->segments[i].begin_ns < span->end_ns; i++)
		segment_measured(maker, account, gpu, &gpu->segments[i], span, part);
}

void account_of_spans(struct account *part, const struct facts *facts, struct gpu_time *gpus,
                      const struct account *of, const struct fact_span *spans, size_t n,
                      uint64_t *budget)
{
	struct measured measured = measured_of(facts, of->process);
	struct maker maker = {
		.facts = facts, .gpus = gpus, .parts = parts_new(facts), .budget = budget
	};

	*part = (struct account){ .process = of->process,
		                  .gpu = of->gpu,
		                  .device = of->device,
		                  .thread = of->thread,
		                  .first_ns = of->first_ns,
		                  .begin_ns = of->begin_ns,
		                  .end_ns = of->end_ns };
	for (size_t i = 0; i < n; i++)
		account_of_span(&maker, part, &spans[i], &measured);
	parts_finish(maker.parts, part);
	parts_free(maker.parts);
}

void account_of_thread_alone(struct account *alone, const struct facts *facts,
                             const struct account *of, uint32_t thread, uint64_t *budget,
                             struct account_via **vias, size_t *n_vias)
{
	struct parts *parts = parts_new(facts);
	struct walk walk = walk_of(facts, parts, budget);

	*alone = (struct account){ .process = of->process,
		                   .gpu = FACTS_NONE,
		                   .device = FACTS_NONE,
		                   .thread = thread,
		                   .begin_ns = of->begin_ns,
		                   .end_ns = of->end_ns };
	alone->not_measured_ns = thread_walk(&walk, of->process, thread, of->begin_ns, of->end_ns);
	parts_finish(parts, alone);
	*vias = parts_take_vias(parts, n_vias);
	parts_free(parts);
}

struct ranked {
	uint32_t number;
	uint64_t most;
};

ORDER_BY(ranked_order, struct ranked, DOWN(most), UP(number));

/* Those with most work, each given to `make`. */
static void accounts_rank(struct maker *maker, struct ranked *ranked, size_t n,
                          void (*make)(const struct maker *maker, uint32_t number))
{
	SORT(ranked, n, ranked_order);
	maker->accounts->left_out = n > ACCOUNTS_MAX ? n - ACCOUNTS_MAX : 0;
	for (size_t i = 0; i < n && i < ACCOUNTS_MAX; i++)
		make(maker, ranked[i].number);
}

static void accounts_make_from(struct accounts *accounts, const struct facts *facts,
                               const uint64_t *from_ns)
{
	uint64_t budget = ACCOUNT_BUDGET;
	struct maker maker = { .facts = facts,
		               .accounts = accounts,
		               .parts = parts_new(facts),
		               .budget = &budget,
		               .from_ns = from_ns };
	size_t most = facts->n_gpus > facts->n_threads ? facts->n_gpus : facts->n_threads;
	struct ranked *ranked = xcalloc(most + 1, sizeof(*ranked));
	size_t n = 0;

	memset(accounts, 0, sizeof(*accounts));
	accounts->of = xcalloc(ACCOUNTS_MAX, sizeof(*accounts->of));
	maker.gpus = gpu_times_of(facts);
	for (uint32_t i = 0; i < facts->n_gpus; i++)
		if (maker.gpus[i].n)
			ranked[n++] =
				(struct ranked){ i, maker.gpus[i].last - maker.gpus[i].first };
	if (n) {
		accounts_rank(&maker, ranked, n, account_of_gpu);
	} else {
		for (uint32_t i = 0; i < facts->n_threads; i++)
			if (facts->threads[i].asks)
				ranked[n++] = (struct ranked){ i, facts->threads[i].asks };
		accounts_rank(&maker, ranked, n, account_of_thread);
	}
	accounts->vias = parts_take_vias(maker.parts, &accounts->n_vias);
	parts_free(maker.parts);
	free(ranked);
}

void accounts_make(struct accounts *accounts, const struct facts *facts)
{
	accounts_make_from(accounts, facts, NULL);
}

void accounts_make_again(struct accounts *accounts, const struct facts *facts,
                         const uint64_t *from_ns)
{
	accounts_clear(accounts);
	accounts_make_from(accounts, facts, from_ns);
}

double account_ns(const struct account *account, enum account_cause first, enum account_cause last)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		if (account->parts[i].cause >= first && account->parts[i].cause <= last)
			ns += account->parts[i].ns;
	return ns;
}

void accounts_clear(struct accounts *accounts)
{
	for (size_t i = 0; i < accounts->n; i++)
		free(accounts->of[i].parts);
	free(accounts->of);
	free(accounts->vias);
	memset(accounts, 0, sizeof(*accounts));
}
