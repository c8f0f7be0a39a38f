// SPDX-License-Identifier: MIT
#include "report/why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/answer.h"
#include "analysis/missed.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "report/why_bound.h"
#include "report/why_words.h"

#define WHY_LINES       5    /* of an account */
#define WHY_FRAMES      3    /* of a place */
#define WHY_CAUSE       26   /* columns that most causes have */
#define WHY_UNKNOWN     0.1  /* of an account: more, and "nothing is wrong" is not known */
#define WHY_BUSY        0.75 /* less, and it is not said either */
#define WHY_NEXT        2
#define WHY_FACTOR_MOST 100 /* more is not worth a figure */

struct why {
	struct consumer consumer; /* first: what callers hold */
	struct why_options options;
	struct facts facts;
	struct accounts accounts;
	struct answer answer;
	struct metrics_use *metrics;
	struct buf *out;
};

/* ---- text ------------------------------------------------------------------------------------ */

static const struct account *why_of(const struct why *why)
{
	return why->answer.n_changes ? why->answer.changes[0].account : why->accounts.of;
}

static const struct steps *why_steps(const struct why *why, const struct account *account)
{
	return &why->answer.steps[account - why->accounts.of];
}

/* Where many steps are apart from the others, none is like most: their mean then. */
static bool why_steps_differ(const struct steps *steps)
{
	return 10 * steps->n_apart > steps->n;
}

static uint64_t why_step_ns(const struct steps *steps)
{
	return why_steps_differ(steps) ? (steps->begin_ns[steps->n] - steps->begin_ns[0]) / steps->n
	                               : steps->median_ns;
}

static void why_head(struct why *why, const struct account *account)
{
	const struct steps *steps = why_steps(why, account);
	struct buf *out = why->out;

	why_words_name(out, why_words_process(&why->facts, account->process));
	buf_printf(out, " (pid %u)", account->process->pid);
	if (account->device != FACTS_NONE)
		buf_printf(out, ", GPU %u", account->device);
	else
		buf_printf(out, ", thread %u, without GPU times",
		           why->facts.threads[account->thread].tid);
	buf_puts(out, ": ");
	buf_duration(out, (unsigned long long)account->ns);
	if (steps->how != STEPS_NONE) {
		buf_printf(out, ", %zu steps of ", steps->n);
		buf_duration(out, why_step_ns(steps));
		if (why_steps_differ(steps))
			buf_puts(out, " on average");
		else if (steps->n_apart)
			buf_printf(out, " (%zu longer ones are %.0f %% of the time)",
			           steps->n_apart, 100.0 * (double)steps->apart_ns / account->ns);
	}
	buf_putc(out, '\n');
}

/* Tenths of a percent that add up to 1,000: those nearest to the next one are given what is left.
 */
static void why_tenths(const struct answer_line *lines, size_t n, double all, unsigned *tenths)
{
	unsigned left = 1000;

	for (size_t i = 0; i < n; i++) {
		double exact = all > 0 ? 1000 * lines[i].ns / all : 0;

		tenths[i] = (unsigned)exact;
		if (tenths[i] > left)
			tenths[i] = left;
		left -= tenths[i];
	}
	for (size_t i = 0; n && left; i = (i + 1) % n, left--)
		tenths[i]++;
}

static void why_place(struct why *why, uint32_t chain)
{
	chains_label(why->facts.chains, chain, WHY_FRAMES, why->out);
}

/* Whose it is, where it is not the thread that asks for the GPU's work. */
static void why_who(struct why *why, const struct account *account, uint32_t number)
{
	const struct fact_thread *thread;

	if (number == FACTS_NONE || number == account->thread)
		return;
	thread = &why->facts.threads[number];
	if (thread->process != account->process) {
		buf_puts(why->out, " of ");
		why_words_name(why->out, thread->process->comm);
		buf_printf(why->out, " (pid %u)", thread->process->pid);
		return;
	}
	buf_puts(why->out, " of thread ");
	why_words_name(why->out, thread->comm[0] ? thread->comm : thread->process->comm);
	buf_printf(why->out, " (%u)", thread->tid);
}

static void why_account(struct why *why, const struct account *account)
{
	struct answer_line lines[WHY_LINES];
	unsigned tenths[WHY_LINES];
	size_t n = answer_lines(&why->answer, account, lines, WHY_LINES);

	why_tenths(lines, n, account->ns, tenths);
	for (size_t i = 0; i < n; i++) {
		bool rest = lines[i].cause == ACCOUNT_CAUSES;

		buf_printf(why->out, "  %3u.%u %%  ", tenths[i] / 10, tenths[i] % 10);
		if (rest) {
			buf_puts(why->out, "all else\n");
			continue;
		}
		size_t at = why->out->len;

		buf_puts(why->out, account_cause_text(lines[i].cause));
		if (lines[i].chain) {
			if (why->out->len - at < WHY_CAUSE)
				buf_fill(why->out, ' ', WHY_CAUSE - (why->out->len - at));
			buf_puts(why->out, "  ");
			why_place(why, lines[i].chain);
		}
		why_who(why, account, lines[i].thread);
		buf_putc(why->out, '\n');
	}
}

static double why_share(const struct answer_change *change)
{
	return change->gain_ns / change->account->ns;
}

static double why_factor(const struct answer_change *change)
{
	double left = change->account->ns - change->gain_ns;

	return left > 0.001 * change->account->ns ? change->account->ns / left : 1000;
}

static void why_step_part(struct why *why, const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);

	buf_printf(why->out, ": %.0f %% of the time", 100 * why_share(change));
	if (steps->how != STEPS_NONE) {
		buf_puts(why->out, ", ");
		buf_duration(why->out,
		             (unsigned long long)(why_share(change) * (double)why_step_ns(steps)));
		buf_puts(why->out, " of a step");
	}
}

/* Of the process whose time it is; 1: of none, which no rival is. */
static uint32_t why_pid(const struct why *why, const struct answer_change *change)
{
	return change->thread == FACTS_NONE ? 1 : why->facts.threads[change->thread].process->pid;
}

static void why_what(struct why *why, const struct answer_change *change)
{
	buf_puts(why->out, account_cause_text(change->cause));
	if (change->chain) {
		buf_puts(why->out, " in ");
		why_place(why, change->chain);
	}
	why_who(why, change->account, change->thread);
	why_step_part(why, change);
	if (change->rival == why_pid(why, change)) {
		buf_puts(why->out, ", mostly while its own threads had the CPUs");
	} else if (change->rival) {
		buf_puts(why->out, ", mostly while ");
		why_words_name(why->out, change->rival_name);
		buf_printf(why->out, " (pid %u) had the CPU", change->rival);
	}
}

/* The waits that lead there, from the GPU on. */
static void why_through(struct why *why, uint32_t via)
{
	const struct account_via *at = &why->accounts.vias[via];

	if (at->before)
		why_through(why, at->before);
	buf_puts(why->out, at->before ? ", there " : "  ");
	why_words_wait(at, why->facts.chains, why->out);
}

static void why_gain(struct why *why, const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);
	double factor = why_factor(change);

	if (factor < WHY_FACTOR_MOST)
		buf_printf(why->out, "  At most %.*f times as fast without it", factor < 10 ? 1 : 0,
		           factor);
	else
		buf_puts(why->out, "  Nearly all of the time would be gained");
	if (steps->how != STEPS_NONE) {
		buf_puts(why->out, " (");
		buf_duration(why->out, why_step_ns(steps));
		buf_puts(why->out, " to ");
		buf_duration(why->out, (unsigned long long)((1 - why_share(change)) *
		                                            (double)why_step_ns(steps)));
		buf_puts(why->out, " a step)");
	}
	buf_printf(why->out, "; then most is: %s.\n", account_cause_text(change->then));
}

static void why_first(struct why *why, const struct answer_change *change)
{
	const char *hint = why_words_try(change, why->facts.chains);

	buf_puts(why->out, "\nChange first: ");
	why_what(why, change);
	buf_puts(why->out, ".\n");
	if (change->via) {
		why_through(why, change->via);
		buf_puts(why->out, ".\n");
	}
	why_gain(why, change);
	buf_puts(why->out, "  ");
	why_words_sure(change, &why->facts, why->out);
	buf_putc(why->out, '\n');
	if (hint)
		buf_printf(why->out, "  Try: %s.\n", hint);
}

static void why_nothing(struct why *why, const struct account *account)
{
	enum account_cause bound = answer_bound(account);
	struct buf by = { 0 };

	if (bound == ACCOUNT_UNKNOWN || answer_unknown(account) > WHY_UNKNOWN) {
		buf_printf(why->out,
		           "\nNot known: %.0f %% of the time has no cause that was recorded.\n",
		           100 * answer_unknown(account));
		return;
	}
	buf_printf(why->out, "\n%s: most of the time is: %s.\n",
	           answer_busy(account) < WHY_BUSY ? "Nothing stands out" : "Nothing is wrong",
	           account_cause_text(bound));
	why_bound_text(why->metrics, account->device, &by);
	if (bound == ACCOUNT_KERNELS && by.len)
		buf_printf(why->out, "  What bounds them: %s.\n", by.data);
	buf_free(&by);
}

static void why_not_known(struct why *why)
{
	const char *const *sentence = why_words_missing(&why->facts, &why->accounts, &why->options);

	if (!*sentence)
		return;
	buf_puts(why->out, "Not known: ");
	for (; *sentence; sentence++) {
		buf_puts(why->out, *sentence);
		buf_puts(why->out, sentence[1] ? "; " : ".\n");
	}
}

static void why_text(struct why *why)
{
	size_t next = why->options.next ? why->options.next : WHY_NEXT;
	const struct account *account = why_of(why);

	if (!why->accounts.n) {
		buf_puts(why->out,
		         "No work of a GPU was seen: no process made a CUDA call that asks "
		         "for some in this time.\n");
		return;
	}
	why_head(why, account);
	why_account(why, account);
	if (!why->answer.n_changes)
		why_nothing(why, account);
	else
		why_first(why, &why->answer.changes[0]);
	for (size_t i = 1; i < why->answer.n_changes && i <= next; i++) {
		buf_puts(why->out, "Next: ");
		why_what(why, &why->answer.changes[i]);
		buf_puts(why->out, ".\n");
	}
	why_not_known(why);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void why_json_place(const struct why *why, struct json *json, uint32_t chain)
{
	uint32_t nodes[16];
	size_t n = chains_told(why->facts.chains, chain, 16, nodes, NULL);

	json_open(json, "place", '[');
	for (size_t i = 0; i < n; i++) {
		const struct stack_frame *frame = chains_frame(why->facts.chains, nodes[i]);

		json_open(json, NULL, '{');
		if (frame->file)
			json_string(json, "file", frame->file);
		if (frame->line)
			json_u64(json, "line", frame->line);
		if (frame->function)
			json_string(json, "function", frame->function);
		if (frame->module)
			json_string(json, "module", frame->module);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void why_json_thread(const struct why *why, struct json *json, uint32_t number)
{
	const struct fact_thread *thread;

	if (number == FACTS_NONE)
		return;
	thread = &why->facts.threads[number];
	json_u64(json, "pid", thread->process->pid);
	json_u64(json, "tid", thread->tid);
	json_string(json, "thread", thread->comm[0] ? thread->comm : thread->process->comm);
}

static void why_json_through(const struct why *why, struct json *json, uint32_t via)
{
	const struct account_via *at = &why->accounts.vias[via];

	if (at->before)
		why_json_through(why, json, at->before);
	json_open(json, NULL, '{');
	json_string(json, "wait", account_cause_name(at->cause));
	why_json_place(why, json, at->chain);
	why_json_thread(why, json, at->thread);
	json_close(json, '}');
}

static void why_json_cause(const struct why *why, struct json *json, enum account_cause cause,
                           const uint32_t chain_thread_via[3], double ns)
{
	json_string(json, "cause", cause == ACCOUNT_CAUSES ? "rest" : account_cause_name(cause));
	json_u64(json, "ns", (uint64_t)ns);
	why_json_place(why, json, chain_thread_via[0]);
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

	json_open(json, NULL, '{');
	if (account->device != FACTS_NONE)
		json_u64(json, "gpu", account->device);
	json_u64(json, "pid", account->process->pid);
	json_string(json, "process", account->process->comm);
	if (account->thread != FACTS_NONE)
		json_u64(json, "tid", why->facts.threads[account->thread].tid);
	json_u64(json, "ns", (uint64_t)account->ns);
	json_u64(json, "not_measured_ns", account->not_measured_ns);
	if (steps->how != STEPS_NONE) {
		json_open(json, "steps", '{');
		json_u64(json, "count", steps->n);
		json_u64(json, "ns", why_step_ns(steps));
		json_u64(json, "apart", steps->n_apart);
		json_u64(json, "apart_ns", steps->apart_ns);
		json_string(json, "found_by", steps_how_name(steps->how));
		json_close(json, '}');
	}
	why_json_account(why, json, account);
	json_close(json, '}');
}

static void why_json_gain(const struct why *why, struct json *json,
                          const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);

	json_open(json, "gain", '{');
	json_fixed(json, "factor", (uint64_t)(100 * why_factor(change)), 2);
	if (steps->how != STEPS_NONE)
		json_u64(json, "step_ns",
		         (uint64_t)((1 - why_share(change)) * (double)why_step_ns(steps)));
	json_string(json, "then", account_cause_name(change->then));
	json_close(json, '}');
}

static void why_json_change(const struct why *why, struct json *json, const char *key,
                            const struct answer_change *change)
{
	static const char *const sure[] = { "yes", "mostly", "no" };
	const struct steps *steps = why_steps(why, change->account);
	const char *hint = why_words_try(change, why->facts.chains);
	struct buf text = { 0 };

	json_open(json, key, '{');
	if (change->account->device != FACTS_NONE)
		json_u64(json, "gpu", change->account->device);
	json_u64(json, "of_pid", change->account->process->pid);
	why_json_cause(why, json, change->cause,
	               (const uint32_t[]){ change->chain, change->thread, change->via },
	               change->ns);
	json_u64(json, "gain_ns", (uint64_t)change->gain_ns);
	if (change->rival)
		json_u64(json, "rival_pid", change->rival);
	if (steps->how != STEPS_NONE)
		json_u64(json, "ns_per_step",
		         (uint64_t)(why_share(change) * (double)why_step_ns(steps)));
	why_json_gain(why, json, change);
	json_string(json, "sure", sure[change->sure]);
	why_words_sure(change, &why->facts, &text);
	json_string(json, "why", text.data);
	if (hint)
		json_string(json, "try", hint);
	buf_free(&text);
	json_close(json, '}');
}

/* What most of the time is; and of kernels what they are bound by, as far as is known. */
static void why_json_bound(const struct why *why, struct json *json)
{
	const struct account *account = why_of(why);
	const char *pipe = why_bound_name(why_bound_of(why->metrics, account->device));

	json_string(json, "bound_by", account_cause_name(answer_bound(account)));
	if (pipe)
		json_string(json, "kernels_bound_by", pipe);
}

static void why_json(struct why *why)
{
	struct json json = { .out = why->out, .lines = 2 };
	const char *const *sentence = why_words_missing(&why->facts, &why->accounts, &why->options);

	json_open(&json, NULL, '{');
	json_string(&json, "schema", "cuscope-why-1");
	json_open(&json, "gpus", '[');
	for (size_t i = 0; i < why->accounts.n; i++)
		why_json_gpu(why, &json, &why->accounts.of[i]);
	json_close(&json, ']');
	if (why->answer.n_changes)
		why_json_change(why, &json, "first", &why->answer.changes[0]);
	else
		json_null(&json, "first");
	json_open(&json, "next", '[');
	for (size_t i = 1; i < why->answer.n_changes; i++)
		why_json_change(why, &json, NULL, &why->answer.changes[i]);
	json_close(&json, ']');
	if (why->accounts.n)
		why_json_bound(why, &json);
	json_open(&json, "not_known", '[');
	for (; *sentence; sentence++)
		json_string(&json, NULL, *sentence);
	json_close(&json, ']');
	json_close(&json, '}');
	buf_putc(why->out, '\n');
}

/* ---- consumer -------------------------------------------------------------------------------- */

static int why_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct why *why = (struct why *)self;

	if (event->type == EVENT_METRICS)
		metrics_use_add(why->metrics, event->metrics);
	else
		facts_event(&why->facts, event);
	return 0;
}

static int why_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct why *why = (struct why *)self;
	struct lines lines;
	int r;

	facts_end(&why->facts, run);
	accounts_make(&why->accounts, &why->facts);
	answer_make(&why->answer, &why->facts, &why->accounts);
	lines_init(&lines, why->options.json ? why->options.json : why->options.text, "the answer");
	why->out = &lines.pending;
	if (why->options.json)
		why_json(why);
	else
		why_text(why);
	if (!why->options.json)
		text_wrap_lines(why->out, 0, why->options.width);
	r = lines_flush(&lines, err);
	lines_free(&lines);
	answer_clear(&why->answer);
	accounts_clear(&why->accounts);
	facts_clear(&why->facts);
	return r;
}

static void why_free(struct consumer *self)
{
	struct why *why = (struct why *)self;

	facts_clear(&why->facts);
	metrics_use_free(why->metrics);
	free(why);
}

static const struct consumer_ops why_ops = { .event = why_event, .end = why_end, .free = why_free };

struct consumer *why_new(const struct why_options *options)
{
	struct why *why = xcalloc(1, sizeof(*why));

	why->consumer.ops = &why_ops;
	why->options = *options;
	facts_init(&why->facts);
	why->metrics = metrics_use_new();
	return &why->consumer;
}
