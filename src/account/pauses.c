// SPDX-License-Identifier: MIT
#include "account/pauses.h"

#include <stdlib.h>
#include <string.h>

#include "account/account_inside.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "table/longest.h"

/* What is kept of a pause until it is among the longest. */
struct found {
	uint64_t begin_ns, end_ns;
	const struct account *account;
	const struct gpu_segment *segment, *before; /* NULL: none */
};

ORDER_BY(found_order, struct found, ORDER_OF(b->end_ns - b->begin_ns, a->end_ns - a->begin_ns),
         UP(begin_ns));

static void pause_count(struct account_pause_sum *sum, uint64_t ns, uint64_t least_ns)
{
	if (ns < least_ns) {
		sum->short_count++;
		sum->short_ns += ns;
		return;
	}
	sum->count++;
	sum->ns += ns;
	if (ns > sum->longest_ns)
		sum->longest_ns = ns;
}

static void pauses_of(const struct facts *facts, const struct gpu_time *gpu,
                      const struct account *account, uint64_t least_ns,
                      struct account_pause_sum *sum, struct longest *longest)
{
	struct measured part = measured_of(facts, account->process);

	for (size_t i = 0; i < gpu->n; i = spill_next(facts->spill, i)) {
		const struct gpu_segment *segment = &gpu->segments[i];

		/* the account may begin after a long start */
		if (segment->state != STATE_IDLE || segment->end_ns <= account->begin_ns)
			continue;
		for (part.end_ns = facts_max(segment->begin_ns, account->begin_ns);
		     measured_next(&part, segment->end_ns);) {
			bool first = part.begin_ns == segment->begin_ns;
			struct found found = { part.begin_ns, part.end_ns, account, segment,
				               first && i ? segment - 1 : NULL };

			pause_count(sum, part.end_ns - part.begin_ns, least_ns);
			if (part.end_ns - part.begin_ns >= least_ns)
				longest_keep(longest, &found);
		}
	}
}

static const struct fact_work *pause_work(const struct facts *facts,
                                          const struct gpu_segment *segment)
{
	return segment && segment->work < facts->n_works ? &facts->works[segment->work] : NULL;
}

static void pause_explain(const struct maker *maker, const struct found *found,
                          struct account_pause *pause)
{
	const struct account *account = found->account;
	struct cut cut = { found->begin_ns, found->end_ns, 0, &pause->of };
	bool ends = found->end_ns == found->segment->end_ns;

	pause->begin_ns = found->begin_ns;
	pause->end_ns = found->end_ns;
	pause->before = pause_work(maker->facts, found->before);
	pause->after = ends ? pause_work(maker->facts, found->segment) : NULL;
	pause->of = (struct account){ .process = account->process,
		                      .gpu = account->gpu,
		                      .device = account->device,
		                      .thread = account->thread,
		                      .begin_ns = found->begin_ns,
		                      .end_ns = found->end_ns };
	segment_explain(maker, &cut, &maker->gpus[account->gpu], found->segment);
	parts_finish(maker->parts, &pause->of);
}

/* They are anywhere among all works, and are asked for again and again. */
static void pause_keep_works(struct account_pause *pause, struct fact_work *to)
{
	if (pause->before)
		to[0] = *pause->before;
	if (pause->after)
		to[1] = *pause->after;
	pause->before = pause->before ? &to[0] : NULL;
	pause->after = pause->after ? &to[1] : NULL;
}

void account_pauses_make(struct account_pauses *pauses, const struct facts *facts,
                         const struct accounts *accounts, uint64_t least_ns, size_t most)
{
	uint64_t budget = ACCOUNT_BUDGET;
	struct maker maker = { .facts = facts,
		               .gpus = gpu_times_of(facts),
		               .parts = parts_new(facts),
		               .budget = &budget };
	struct longest longest = { 0 };
	const struct found *found;

	memset(pauses, 0, sizeof(*pauses));
	pauses->sums = xcalloc(accounts->n + 1, sizeof(*pauses->sums));
	longest_init(&longest, sizeof(*found), most, found_order);
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->of[i].gpu != FACTS_NONE)
			pauses_of(facts, &maker.gpus[accounts->of[i].gpu], &accounts->of[i],
			          least_ns, &pauses->sums[i], &longest);
	found = longest_rows(&longest, &pauses->n);
	pauses->longest = xcalloc(pauses->n + 1, sizeof(*pauses->longest));
	pauses->works = xcalloc(2 * pauses->n + 1, sizeof(*pauses->works));
	for (size_t i = 0; i < pauses->n; i++) {
		spill_look(facts->spill); /* they are anywhere: 64 KiB are mapped around each */
		pause_explain(&maker, &found[i], &pauses->longest[i]);
		pause_keep_works(&pauses->longest[i], &pauses->works[2 * i]);
	}
	pauses->vias = parts_take_vias(maker.parts, &pauses->n_vias);
	parts_free(maker.parts);
	longest_free(&longest);
}

void account_pauses_clear(struct account_pauses *pauses)
{
	for (size_t i = 0; i < pauses->n; i++)
		free(pauses->longest[i].of.parts);
	FREE_ALL(pauses->longest, pauses->works, pauses->sums, pauses->vias);
	memset(pauses, 0, sizeof(*pauses));
}
