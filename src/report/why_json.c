// SPDX-License-Identifier: MIT
/* The answer for programs. */
#include <math.h>

#include "report/why_inside.h"
#include "report/why_words.h"

void why_json_place(const struct why *why, struct json *json, const char *key, uint32_t chain)
{
	uint32_t nodes[16];
	size_t n = chains_told(why->facts.chains, chain, 16, nodes, NULL);

	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		const struct stack_frame *frame = chains_frame(why->facts.chains, nodes[i]);

		json_open(json, NULL, '{');
		json_string_if(json, "file", frame->file);
		json_u64_if(json, "line", frame->line);
		json_string_if(json, "function", frame->function);
		json_string_if(json, "module", frame->module);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void why_json_thread(const struct why *why, struct json *json, uint32_t number)
{
	const struct fact_thread *thread;

	if (number == FACTS_NONE)
		return;
	thread = &why->facts.threads[number];
	json_u64(json, "pid", thread->process->pid);
	json_u64(json, "tid", thread->tid);
	json_string(json, "thread", fact_thread_name(thread));
}

static void why_json_through(const struct why *why, struct json *json, uint32_t via)
{
	const struct account_via *at = &why->accounts.vias[via];

	if (at->before)
		why_json_through(why, json, at->before);
	json_open(json, NULL, '{');
	json_string(json, "wait", account_cause_name(at->cause));
	why_json_place(why, json, "place", at->chain);
	why_json_thread(why, json, at->thread);
	json_close(json, '}');
}

static void why_json_cause(const struct why *why, struct json *json, enum account_cause cause,
                           const uint32_t chain_thread_via[3], double ns)
{
	json_string(json, "cause", cause == ACCOUNT_CAUSES ? "rest" : account_cause_name(cause));
	json_u64(json, "ns", (uint64_t)llround(ns));
	why_json_place(why, json, "place", chain_thread_via[0]);
	why_json_thread(why, json, chain_thread_via[1]);
	json_open(json, "through", '[');
	if (chain_thread_via[2])
		why_json_through(why, json, chain_thread_via[2]);
	json_close(json, ']');
}

static void why_json_account(const struct why *why, struct json *json,
                             const struct account *account)
{
	struct answer_line lines[4 * ACCOUNT_CAUSES];
	unsigned tenths[4 * ACCOUNT_CAUSES];
	size_t n = answer_lines(&why->answer, account, lines, 4 * ACCOUNT_CAUSES);

	why_tenths(lines, n, account->ns, tenths);
	json_open(json, "account", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '{');
		json_fixed(json, "percent", tenths[i], 1);
		why_json_cause(why, json, lines[i].cause,
		               (const uint32_t[]){ lines[i].chain, lines[i].thread, lines[i].via },
		               lines[i].ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void why_json_gpu(const struct why *why, struct json *json, const struct account *account)
{
	const struct steps *steps = why_steps(why, account);
	uint32_t machine_gpu = why_bound_used(why->facts.run, account->process);

	json_open(json, NULL, '{');
	if (account->device != FACTS_NONE)
		json_u64(json, "gpu", account->device);
	if (account->device != FACTS_NONE && machine_gpu != FACTS_NONE)
		json_u64(json, "machine_gpu", machine_gpu);
	json_u64(json, "pid", account->process->pid);
	json_string(json, "process", account->process->comm);
	if (account->thread != FACTS_NONE)
		json_u64(json, "tid", why->facts.threads[account->thread].tid);
	json_u64(json, "start_ns", why_start_ns(why, account));
	json_u64(json, "ns", (uint64_t)llround(account->ns));
	json_u64(json, "not_measured_ns", account->not_measured_ns);
	if (steps->how != STEPS_NONE) {
		json_open(json, "steps", '{');
		json_u64(json, "count", steps->n);
		json_u64(json, "ns", why_step_ns(steps));
		json_u64(json, "apart", steps->n_apart);
		json_u64(json, "apart_ns", steps->apart_ns);
		json_string(json, "found_by", steps_how_name(steps->how));
		json_close(json, '}');
		why_json_phases(why, json, account);
	}
	why_json_account(why, json, account);
	json_close(json, '}');
}

static void why_json_gain(const struct why *why, struct json *json,
                          const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);

	if (change->account->device == FACTS_NONE) { /* the GPU may have worked meanwhile */
		json_null(json, "gain");
		return;
	}
	json_open(json, "gain", '{');
	json_fixed(json, "factor", (uint64_t)(100 * why_factor(change)), 2);
	json_fixed(json, "at_most", (uint64_t)(100 * why_factor_most(change)), 2);
	if (why_has_step(why, change->account))
		json_u64(json, "step_ns",
		         (uint64_t)(why_left(change) * (double)why_step_ns(steps)));
	json_string(json, "then", account_cause_name(change->then));
	json_close(json, '}');
}

static void why_json_within(const struct why *why, struct json *json,
                            const struct answer_change *change)
{
	json_open(json, "within", '[');
	for (size_t i = 0; i < ANSWER_WITHIN && change->within[i].chain; i++) {
		json_open(json, NULL, '{');
		json_fixed(json, "percent", (uint64_t)llround(1000 * change->within[i].share), 1);
		why_json_place(why, json, "place", change->within[i].chain);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void why_json_change(const struct why *why, struct json *json, const char *key,
                            const struct answer_change *change)
{
	static const char *const sure[] = { "yes", "mostly", "no" };
	const struct steps *steps = why_steps(why, change->account);
	const char *hint = why_words_try(change, why->facts.chains);
	AT_END(buf_free) struct buf text = { 0 };

	json_open(json, key, '{');
	if (change->account->device != FACTS_NONE)
		json_u64(json, "gpu", change->account->device);
	json_u64(json, "of_pid", change->account->process->pid);
	why_json_cause(why, json, change->cause,
	               (const uint32_t[]){ change->chain, change->thread, change->via },
	               change->ns);
	if (change->within[0].chain)
		why_json_within(why, json, change);
	if (change->cause == ACCOUNT_LAUNCHING && (change->awaited || change->waits))
		json_u64(json, "waits", change->waits);
	if (change->waits_chain)
		why_json_place(why, json, "waits_place", change->waits_chain);
	json_u64_if(json, "alike", change->alike);
	json_u64(json, "gain_ns", (uint64_t)change->gain_ns);
	json_u64_if(json, "rival_pid", change->rival);
	if (why_has_step(why, change->account))
		json_u64(json, "ns_per_step",
		         (uint64_t)(why_part(change) * (double)why_step_ns(steps)));
	why_json_gain(why, json, change);
	json_string(json, "sure", sure[change->sure]);
	why_words_sure(change, &why->facts, &text);
	json_string(json, "why", text.data);
	json_string_if(json, "try", hint);
	json_close(json, '}');
}

/* What most of the time is; and of kernels what they are bound by, as far as is known. */
static void why_json_bound(const struct why *why, struct json *json)
{
	const struct account *account = why_of(why);
	uint32_t gpu = why_bound_gpu(why->metrics, why->facts.run, account);
	const char *pipe = why_bound_name(why_bound_of(why->metrics, gpu));

	json_string(json, "bound_by", account_cause_name(answer_bound(account)));
	json_string_if(json, "kernels_bound_by", pipe);
	why_json_longest(why, json);
}

void why_add_json(const struct consumer *self, struct json *json, const char *key)
{
	const struct why *why = (const struct why *)self;
	const char *const *sentence = why_words_missing(&why->facts, &why->accounts, &why->options);

	json_open(json, key, '{');
	json_string(json, "schema", "cuscope-why-1");
	if (why->options.n_files) {
		json_open(json, "recordings", '[');
		for (size_t i = 0; i < why->options.n_files; i++)
			json_string(json, NULL, why->options.files[i]);
		json_close(json, ']');
	}
	json_string(json, "gpu_times",
	            !why->facts.n_works        ? "none"
	            : why->facts.resolution_ns ? "samples"
	                                       : "records");
	if (why->standings.n)
		why_json_standing(why, json);
	why_json_late(why, json);
	why_json_steps(why, json);
	why_json_persons(why, json);
	json_open(json, "gpus", '[');
	for (size_t i = 0; i < why->accounts.n; i++)
		why_json_gpu(why, json, &why->accounts.of[i]);
	json_close(json, ']');
	if (why->answer.n_changes && !why_stands(why))
		why_json_change(why, json, "first", &why->answer.changes[0]);
	else
		json_null(json, "first");
	json_open(json, "next", '[');
	for (size_t i = 1; i < why->answer.n_changes && !why_stands(why); i++)
		why_json_change(why, json, NULL, &why->answer.changes[i]);
	json_close(json, ']');
	if (why->accounts.n)
		why_json_bound(why, json);
	json_open(json, "not_known", '[');
	if (!why->accounts.n)
		json_string(json, NULL, why_words_none(&why->facts, &why->options));
	for (; *sentence; sentence++)
		json_string(json, NULL, *sentence);
	json_close(json, ']');
	json_close(json, '}');
}
