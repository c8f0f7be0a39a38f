// SPDX-License-Identifier: MIT
#include "account/phases.h"

#include <stdlib.h>

#include "account/gpu_time.h"
#include "base/xalloc.h"

#define PHASE_EDGE  2    /* times a step's length, from which on it is none */
#define PHASE_BUSY  0.9  /* of its time its GPU works, as it does for steps before */
#define PHASE_RUNS  10   /* times as long as most is one launch of a run on average */
#define PHASE_ASKED 0.01 /* of the account: what a shorter one consists of is not asked */

/* One that is looked at. */
struct looker {
	struct answer *answer;
	const struct account *account;
	struct steps *steps;
	struct fact_span *spans;
	size_t n_spans;
};

const char *phase_kind_name(enum phase_kind kind)
{
	static const char *const names[PHASE_KINDS] = {
		[PHASE_STEPS] = "steps", [PHASE_START] = "start", [PHASE_WARM_UP] = "warm_up",
		[PHASE_OTHER] = "other", [PHASE_LONG] = "long",   [PHASE_END] = "end",
	};

	return names[kind];
}

/* What of it lies in the account; it goes on where the one before ends. Returns its length. */
static uint64_t span_add(struct looker *looker, uint64_t begin_ns, uint64_t end_ns)
{
	const struct account *account = looker->account;

	begin_ns = facts_max(begin_ns, account->first_ns);
	end_ns = facts_min(end_ns, account->end_ns);
	if (end_ns <= begin_ns)
		return 0;
	looker->spans[looker->n_spans++] = (struct fact_span){ begin_ns, end_ns, 0 };
	return end_ns - begin_ns;
}

/* Before the first step or after the last: what is as short as steps are is one of them, whose
 * begin or end was not seen. */
static void edge_add(struct looker *looker, struct phase *phase, enum phase_kind edge,
                     uint64_t begin_ns, uint64_t end_ns)
{
	size_t n = looker->n_spans;
	uint64_t ns = span_add(looker, begin_ns, end_ns);
	bool step = ns / PHASE_EDGE <=
	            facts_max(looker->steps->median_ns, steps_mean_ns(looker->steps));

	if (step == (phase->kind == PHASE_STEPS) && (step || phase->kind == edge))
		phase->ns += ns;
	else
		looker->n_spans = n;
}

/* How long it is also counts what of it is not in the account. */
static void step_add(struct looker *looker, struct phase *phase, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t ns = span_add(looker, begin_ns, end_ns);

	if (!ns)
		return;
	phase->n_steps++;
	phase->ns += ns;
	phase->steps_ns += end_ns - begin_ns;
}

static void phase_gather(struct looker *looker, struct phase *phase)
{
	static const enum step_apart apart[PHASE_KINDS] = { [PHASE_STEPS] = STEP_USUAL,
		                                            [PHASE_WARM_UP] = STEP_WARM_UP,
		                                            [PHASE_OTHER] = STEP_OTHER,
		                                            [PHASE_LONG] = STEP_LONG };
	const struct steps *steps = looker->steps;

	looker->n_spans = 0;
	if (phase->kind == PHASE_START || phase->kind == PHASE_STEPS)
		edge_add(looker, phase, PHASE_START, 0, steps->begin_ns[0]);
	for (size_t i = 0; i < steps->n; i++)
		if (phase->kind != PHASE_START && phase->kind != PHASE_END &&
		    steps->apart[i] == apart[phase->kind])
			step_add(looker, phase, steps->begin_ns[i], steps->begin_ns[i + 1]);
	if (phase->kind == PHASE_END || phase->kind == PHASE_STEPS)
		edge_add(looker, phase, PHASE_END, steps->begin_ns[steps->n], UINT64_MAX);
}

/* Of its parts, which the caller frees. */
static struct account phase_account(struct looker *looker)
{
	const struct facts *facts = looker->answer->facts;
	struct account part;

	account_of_spans(&part, facts, gpu_times_of(facts), looker->account, looker->spans,
	                 looker->n_spans, &looker->answer->budget);
	return part;
}

/*
 * A host that is ahead of its GPU is quick for some steps, and then waits in one for all of them.
 * Steps are told apart by its calls; so if the GPU works in the long ones as in all others, these
 * only wait for what the others have asked for.
 */
static void join_queued(struct looker *looker)
{
	struct phase phase = { .kind = PHASE_LONG };
	struct account part;
	double busy_ns;

	phase_gather(looker, &phase);
	if (!phase.ns)
		return;
	part = phase_account(looker);
	busy_ns = account_ns(&part, ACCOUNT_KERNELS, ACCOUNT_TURNAROUND);
	if (part.ns > 0 && busy_ns >= PHASE_BUSY * part.ns)
		steps_join(looker->steps, STEP_LONG);
	free(part.parts);
}

/*
 * Launches that come in runs, with pauses between these at random that are most of the time: a
 * launch is no step then, and nothing tells how many of them are.
 */
static bool steps_are_runs(const struct steps *steps)
{
	uint64_t all_ns = steps->begin_ns[steps->n] - steps->begin_ns[0], long_ns = 0;

	for (size_t i = 0; i < steps->n; i++)
		if (steps->apart[i] == STEP_LONG)
			long_ns += steps->begin_ns[i + 1] - steps->begin_ns[i];
	return steps->how == STEPS_LAUNCHES && steps->period == 1 && long_ns > all_ns / 2 &&
	       steps_mean_ns(steps) / PHASE_RUNS > steps->median_ns;
}

/* What most of it is. */
static void phase_ask(struct looker *looker, struct phase *phase)
{
	struct answer_line lines[2];
	struct account part = phase_account(looker);

	if (answer_lines(looker->answer, &part, lines, 2) && lines[0].cause < ACCOUNT_CAUSES)
		phase->most = lines[0];
	free(part.parts);
}

static void phases_look_at(struct looker *looker, struct phases *phases)
{
	double all = (double)(looker->account->end_ns - looker->account->first_ns);

	looker->spans = xcalloc(looker->steps->n + 2, sizeof(*looker->spans));
	join_queued(looker);
	if (steps_are_runs(looker->steps))
		steps_clear(looker->steps);
	for (int kind = 0; looker->steps->how != STEPS_NONE && kind < PHASE_KINDS; kind++) {
		struct phase phase = { .kind = (enum phase_kind)kind };

		phase_gather(looker, &phase);
		if (!phase.ns)
			continue;
		if (kind != PHASE_STEPS && (double)phase.ns >= PHASE_ASKED * all)
			phase_ask(looker, &phase);
		phases->of[phases->n++] = phase;
	}
	free(looker->spans);
}

void phases_make(struct answer *answer)
{
	struct looker looker = { .answer = answer };

	answer->phases = xcalloc(answer->accounts->n + 1, sizeof(*answer->phases));
	for (size_t i = 0; i < answer->accounts->n; i++) {
		looker.account = &answer->accounts->of[i];
		looker.steps = &answer->steps[i];
		if (looker.steps->how != STEPS_NONE)
			phases_look_at(&looker, &answer->phases[i]);
	}
}
