// SPDX-License-Identifier: MIT
/* What else there is than steps, in words and for programs. */
#include "account/phases.h"
#include "report/why_inside.h"

#define WHY_PHASE  0.05 /* of an account: what is told in words */
#define WHY_PHASES 2    /* so many of them */

static const struct phases *why_phases(const struct why *why, const struct account *account)
{
	return &why->answer.phases[account - why->accounts.of];
}

static double phase_share(const struct account *account, const struct phase *phase)
{
	return (double)phase->ns / (double)(account->end_ns - account->first_ns);
}

/* "the first 2 steps, 450.000 ms each", "1.200 s before the first step" */
static void phase_what(struct why *why, const struct account *account, const struct phase *phase)
{
	struct buf *out = why->out;
	size_t n;

	if (phase->kind == PHASE_START || phase->kind == PHASE_END) {
		buf_printf(out, "%s %s step", TEXT_DURATION(phase->ns),
		           phase->kind == PHASE_START ? "before the first" : "after the last");
		return;
	}
	steps_within(why_steps(why, account), account->begin_ns, account->end_ns, &n);
	if (phase->kind == PHASE_WARM_UP && phase->n_steps == 1)
		buf_puts(out, "the first step");
	else if (phase->kind == PHASE_WARM_UP)
		buf_printf(out, "the first %zu steps", phase->n_steps);
	else
		buf_printf(out, "%zu of %zu steps", phase->n_steps, n);
	if (phase->kind == PHASE_OTHER)
		buf_puts(out, " with other launches");
	buf_printf(out, ", %s%s", TEXT_DURATION(phase->steps_ns / phase->n_steps),
	           phase->n_steps > 1 ? " each" : "");
}

/* The longest that are none of the usual steps; returns how many. */
static size_t phases_told(const struct why *why, const struct account *account,
                          const struct phase *told[WHY_PHASES])
{
	const struct phases *phases = why_phases(why, account);
	size_t n = 0;

	for (size_t i = 0; i < phases->n; i++) {
		const struct phase *phase = &phases->of[i];
		size_t at = n;

		if (phase->kind == PHASE_STEPS || phase_share(account, phase) < WHY_PHASE)
			continue;
		while (at && told[at - 1]->ns < phase->ns)
			at--;
		if (at == WHY_PHASES)
			continue;
		for (size_t k = n < WHY_PHASES ? n : WHY_PHASES - 1; k > at; k--)
			told[k] = told[k - 1];
		told[at] = phase;
		n += n < WHY_PHASES;
	}
	return n;
}

bool why_has_phases(const struct why *why, const struct account *account)
{
	const struct phase *told[WHY_PHASES];

	return phases_told(why, account, told);
}

void why_add_phases(struct why *why, const struct account *account)
{
	const struct phase *told[WHY_PHASES];
	size_t n = phases_told(why, account, told);

	for (size_t i = 0; i < n; i++) {
		const struct answer_line *most = &told[i]->most;

		buf_puts(why->out, i ? "; " : "Apart: ");
		phase_what(why, account, told[i]);
		buf_printf(why->out, " (%.0f %% of the time)", 100 * phase_share(account, told[i]));
		if (most->ns <= 0)
			continue;
		buf_puts(why->out, ": ");
		why_where(why, account, most);
	}
	if (n)
		buf_puts(why->out, ".\n");
}

void why_json_phases(const struct why *why, struct json *json, const struct account *account)
{
	const struct phases *phases = why_phases(why, account);

	json_open(json, "phases", '[');
	for (size_t i = 0; i < phases->n; i++) {
		const struct phase *phase = &phases->of[i];

		json_open(json, NULL, '{');
		json_string(json, "phase", phase_kind_name(phase->kind));
		json_u64_if(json, "steps", phase->n_steps);
		json_u64(json, "ns", phase->ns);
		json_fixed(json, "percent", (uint64_t)(1000 * phase_share(account, phase) + 0.5),
		           1);
		if (phase->most.ns > 0) {
			json_string(json, "cause", account_cause_name(phase->most.cause));
			why_json_place(why, json, "place", phase->most.chain);
			why_json_thread(why, json, phase->most.thread);
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}
