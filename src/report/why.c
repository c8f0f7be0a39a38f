// SPDX-License-Identifier: MIT
/* The answer as text. */
#include "report/why.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/why_inside.h"
#include "report/why_words.h"

#define WHY_LINES          5    /* of an account */
#define WHY_MEASURED       0.95 /* of its time: it is measured all the time */
#define WHY_LINES_LEAST    2
#define WHY_FRAMES         3    /* of a place */
#define WHY_CAUSE          26   /* columns that most causes have */
#define WHY_UNKNOWN        0.1  /* of an account: more, and "nothing is wrong" is not known */
#define WHY_BUSY           0.75 /* less, and it is not said either */
#define WHY_STEPS          0.5  /* less, and what steps cost is not told of the whole */
#define WHY_NEXT           2
#define WHY_MOST           15   /* lines, before they are wrapped */
#define WHY_FACTORS_DIFFER 1.15 /* less is told as one: the larger */
#define WHY_FACTOR_BOUND   1.5  /* of less other things than the GPU are in the way */
#define WHY_FACTOR_MOST    100  /* more is not worth a figure */

#define WHY_START_NS 1000000000

/* The account that is told; NULL: there is none. Without anything to change it is the longest. */
const struct account *why_of(const struct why *why)
{
	const struct accounts *all = &why->accounts;
	size_t longest = 0;

	if (why->answer.n_changes)
		return why->answer.changes[0].account;
	for (size_t i = 1; i < all->n; i++)
		if (all->of[i].ns > all->of[longest].ns)
			longest = i;
	return all->n ? &all->of[longest] : NULL;
}

const struct steps *why_steps(const struct why *why, const struct account *account)
{
	return &why->answer.steps[account - why->accounts.of];
}

/* Where steps that are apart are many, or much of the time, no step is like all: their mean then.
 * So it is where many are short and some are long. */
static bool why_steps_differ(const struct steps *steps)
{
	uint64_t mean_ns = steps_mean_ns(steps);

	return 10 * steps->n_apart > steps->n ||
	       (double)steps->apart_ns > 0.05 * (double)(mean_ns * steps->n) ||
	       (double)mean_ns > 1.1 * (double)steps->median_ns ||
	       (double)steps->median_ns > 1.1 * (double)mean_ns;
}

uint64_t why_step_ns(const struct steps *steps)
{
	return why_steps_differ(steps) ? steps_mean_ns(steps) : steps->median_ns;
}

/* Of the time that the account is of. */
static double why_steps_share(const struct account *account, const struct steps *steps)
{
	double all = (double)(account->end_ns - account->begin_ns);
	size_t n;

	return (double)steps_within(steps, account->begin_ns, account->end_ns, &n) / all;
}

/* What stands still of other users says nothing of this one's. */
bool why_stands(const struct why *why)
{
	const struct account *account = why->accounts.n ? why_of(why) : NULL;

	return account ? standings_are_of(&why->standings, collectives_person(account->process))
	               : why->standings.n;
}

bool why_has_step(const struct why *why, const struct account *account)
{
	const struct steps *steps = why_steps(why, account);

	return steps->how != STEPS_NONE && why_steps_share(account, steps) >= WHY_STEPS;
}

static void why_process(struct why *why, const struct process *process)
{
	const char *rank = why_words_rank(&why->facts, process);
	const char *host = why_words_host(&why->facts, process);

	why_words_name(why->out, why_words_process(&why->facts, process));
	buf_puts(why->out, " (");
	if (host) {
		why_words_name(why->out, host);
		buf_puts(why->out, ", ");
	}
	buf_printf(why->out, "pid %u", process->pid);
	if (rank) {
		buf_puts(why->out, ", rank ");
		why_words_name(why->out, rank);
	}
	buf_putc(why->out, ')');
}

static void why_whose(struct why *why, const struct account *account)
{
	why_process(why, account->process);
	if (account->device != FACTS_NONE)
		buf_printf(why->out, ", GPU %u", account->device);
	else
		buf_printf(why->out, ", thread %u", why->facts.threads[account->thread].tid);
}

/* From the begin of the recording to the first work: of no account. */
uint64_t why_start_ns(const struct why *why, const struct account *account)
{
	return account->first_ns > why->facts.begin_ns ? account->first_ns - why->facts.begin_ns
	                                               : 0;
}

/* A start that is most of a recording is told; shorter ones are usual. */
static void why_start(struct why *why, const struct account *account)
{
	uint64_t start_ns = why_start_ns(why, account);

	if (start_ns < WHY_START_NS || start_ns < (why->facts.end_ns - why->facts.begin_ns) / 2)
		return;
	buf_printf(why->out, ", from its first work on, which came after %s",
	           TEXT_DURATION(start_ns));
}

static void why_head(struct why *why, const struct account *account)
{
	const struct steps *steps = why_steps(why, account);
	struct buf *out = why->out;

	why_whose(why, account);
	if (account->device == FACTS_NONE)
		buf_puts(out, ", without GPU times");
	buf_printf(out, ": %s", TEXT_DURATION(account->ns));
	if (account->ns < WHY_MEASURED * (double)(account->end_ns - account->begin_ns))
		buf_printf(out, " of %s", TEXT_DURATION(account->end_ns - account->begin_ns));
	if (steps->how != STEPS_NONE) {
		buf_printf(out, ", %zu steps of %s%s", steps->n, TEXT_DURATION(why_step_ns(steps)),
		           why_steps_differ(steps) ? " on average" : "");
		if (!why_has_step(why, account))
			buf_printf(out, " (%.0f %% of the time)",
			           100 * why_steps_share(account, steps));
	}
	why_start(why, account);
	buf_putc(out, '\n');
}

/* Tenths of a percent that add up to 1,000: those nearest to the next one are given what is left.
 */
void why_tenths(const struct answer_line *lines, size_t n, double all, unsigned *tenths)
{
	unsigned left = 1000;

	for (size_t i = 0; i < n; i++) {
		double exact = all > 0 ? 1000 * lines[i].ns / all : 0;

		tenths[i] = (unsigned)exact;
		if (tenths[i] > left)
			tenths[i] = left;
		left -= tenths[i];
	}
	for (; n && left; left--) {
		size_t next = 0;
		double most = -1;

		for (size_t i = 0; i < n; i++) {
			double lacks = (all > 0 ? 1000 * lines[i].ns / all : 0) - tenths[i];

			if (lacks > most) {
				most = lacks;
				next = i;
			}
		}
		tenths[next]++;
	}
}

void why_place(const struct why *why, uint32_t chain)
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
		why_process(why, thread->process);
		return;
	}
	buf_puts(why->out, " of thread ");
	why_words_name(why->out, fact_thread_name(thread));
	buf_printf(why->out, " (%u)", thread->tid);
}

static void why_cause(struct why *why, const struct answer_line *line)
{
	buf_puts(why->out, account_cause_text(line->cause));
	if (line->awaited)
		buf_puts(why->out, line->cause == ACCOUNT_KERNELS ? " that a stream waits for"
		                                                  : " between waits");
}

static void why_account(struct why *why, const struct account *account, size_t most)
{
	struct answer_line lines[WHY_LINES];
	unsigned tenths[WHY_LINES];
	size_t n = answer_lines(&why->answer, account, lines, most);

	why_tenths(lines, n, account->ns, tenths);
	for (size_t i = 0; i < n; i++) {
		bool rest = lines[i].cause == ACCOUNT_CAUSES;

		if (rest && !tenths[i])
			break;
		buf_printf(why->out, "  %3u.%u %%  ", tenths[i] / 10, tenths[i] % 10);
		if (rest) {
			buf_puts(why->out, "all else\n");
			continue;
		}
		size_t at = why->out->len;

		why_cause(why, &lines[i]);
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

double why_part(const struct answer_change *change)
{
	return change->gain_ns / change->account->ns;
}

double why_left(const struct answer_change *change)
{
	return change->left_ns / change->account->ns;
}

static double factor_of(double left)
{
	return left > 0.001 ? 1 / left : 1000;
}

double why_factor(const struct answer_change *change)
{
	return factor_of(why_left(change));
}

static double why_least(const struct answer_change *change)
{
	return change->least_ns / change->account->ns;
}

double why_factor_most(const struct answer_change *change)
{
	return factor_of(why_least(change));
}

/* What a step is of the account's time; 1 where there are none. */
static double why_of_all(const struct why *why, const struct answer_change *change)
{
	const struct account *account = change->account;

	return why_has_step(why, account)
	               ? (double)why_step_ns(why_steps(why, account)) / account->ns
	               : 1;
}

static void why_step_part(struct why *why, const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);

	buf_printf(why->out, ": %.0f %% of the time", 100 * why_part(change));
	if (change->account != why_of(why)) {
		buf_puts(why->out, " of ");
		why_whose(why, change->account);
	}
	if (why_has_step(why, change->account))
		buf_printf(why->out, ", %s of a step",
		           TEXT_DURATION(why_part(change) * (double)why_step_ns(steps)));
	if (change->waits) {
		double waits = (double)change->waits * why_of_all(why, change);

		if (waits < 1.5)
			buf_puts(why->out, ", between one wait for the GPU and the next");
		else
			buf_printf(why->out, ", between %.0f waits for the GPU", waits);
		if (change->waits_chain) {
			buf_puts(why->out, " in ");
			why_place(why, change->waits_chain);
		}
	}
}

/* Of the process whose time it is; 1: of none, which no rival is. */
static uint32_t why_pid(const struct why *why, const struct answer_change *change)
{
	return change->thread == FACTS_NONE ? 1 : why->facts.threads[change->thread].process->pid;
}

void why_where(struct why *why, const struct account *account, const struct answer_line *line)
{
	why_cause(why, line);
	if (line->chain) {
		buf_puts(why->out, " in ");
		why_place(why, line->chain);
	}
	why_who(why, account, line->thread);
}

void why_what(struct why *why, const struct answer_change *change)
{
	why_where(why, change->account,
	          &(struct answer_line){ .cause = change->cause,
	                                 .chain = change->chain,
	                                 .thread = change->thread,
	                                 .awaited = change->awaited });
	if (change->alike)
		buf_printf(why->out, " and %u%s like it", change->alike,
		           change->alike < ANSWER_ALIKE ? "" : " or more");
}

/* Who had the CPU meanwhile. */
void why_rival(struct why *why, const struct answer_change *change)
{
	if (change->rival == why_pid(why, change)) {
		buf_puts(why->out, "mostly while its own threads (");
		why_words_name(why->out, change->rival_name);
		buf_puts(why->out, ") had the CPU");
	} else if (change->rival) {
		buf_puts(why->out, "mostly while ");
		why_words_name(why->out, change->rival_name);
		buf_printf(why->out, " (pid %u) had the CPU", change->rival);
	}
}

/* " (40 % in a.py:3 f, 35 % in a.py:7 g)": who is called there and takes the time. */
static void why_within(struct why *why, const struct answer_change *change)
{
	for (size_t i = 0; i < ANSWER_WITHIN && change->within[i].chain; i++) {
		const struct answer_within *within = &change->within[i];

		buf_printf(why->out, "%s%.0f %% in ", i ? ", " : " (", 100 * within->share);
		chains_label_below(why->facts.chains, within->chain, change->chain, why->out);
	}
	if (change->within[0].chain)
		buf_putc(why->out, ')');
}

static void why_change(struct why *why, const struct answer_change *change)
{
	why_what(why, change);
	why_within(why, change);
	why_step_part(why, change);
	if (change->rival)
		buf_puts(why->out, ", ");
	why_rival(why, change);
	buf_puts(why->out, ".\n");
}

/* The waits that lead there, from the GPU on; of several in a row at one place the first. */
void why_through(struct why *why, uint32_t via)
{
	const struct account_via *at = &why->accounts.vias[via];
	const struct account_via *before = &why->accounts.vias[at->before];

	if (at->before)
		why_through(why, at->before);
	if (at->before && at->chain && before->cause == at->cause && before->chain == at->chain)
		return;
	if (at->before)
		buf_puts(why->out, ", there ");
	why_words_wait(at, why->facts.chains, why->out);
}

void why_gain(struct why *why, const struct answer_change *change)
{
	const struct steps *steps = why_steps(why, change->account);
	double most = why_factor_most(change);
	bool differ = most > WHY_FACTORS_DIFFER * why_factor(change);
	double factor = differ ? why_factor(change) : most;
	double left = differ ? why_left(change) : why_least(change);

	if (change->account->device == FACTS_NONE) {
		buf_puts(why->out, "How much faster it would be without it is not known: the GPU "
		                   "may have worked meanwhile.");
		return;
	}
	if (factor < WHY_FACTOR_MOST)
		buf_printf(why->out, "%s %.*f times as fast without it",
		           differ ? "About" : "At most", factor < 10 ? 1 : 0, factor);
	else
		buf_puts(why->out, "Nearly all of the time would be gained");
	if (why_has_step(why, change->account))
		buf_printf(why->out, " (%s to %s a step)", TEXT_DURATION(why_step_ns(steps)),
		           TEXT_DURATION(left * (double)why_step_ns(steps)));
	if (differ && factor >= WHY_FACTOR_BOUND && most < WHY_FACTOR_MOST)
		buf_printf(why->out, ", %.*f at most", most < 10 ? 1 : 0, most);
	buf_printf(why->out, "; then most is: %s.", account_cause_text(change->then));
}

static void why_first(struct why *why, const struct answer_change *change)
{
	const char *hint = why_words_try(change, why->facts.chains);

	buf_puts(why->out, "\nChange first: ");
	why_change(why, change);
	if (change->via) {
		buf_puts(why->out, "  ");
		why_through(why, change->via);
		buf_puts(why->out, ".\n");
	}
	buf_puts(why->out, "  ");
	why_gain(why, change);
	buf_puts(why->out, "\n  ");
	why_words_sure(change, &why->facts, why->out);
	buf_putc(why->out, '\n');
	if (hint)
		buf_printf(why->out, "  Try: %s.\n", hint);
}

/* Of what is not known most: the host's time, or that without any cause. */
static void why_unknown(struct why *why, const struct account *account)
{
	double unknown = answer_unknown(account), host = answer_host(account);

	if (2 * host > unknown)
		buf_printf(why->out,
		           "Not known: what the host did outside of CUDA for %.0f %% of the time "
		           "was not recorded.",
		           100 * host);
	else
		buf_printf(why->out,
		           "Not known: %.0f %% of the time has no cause that was recorded.",
		           100 * unknown);
}

void why_nothing(struct why *why, const struct account *account)
{
	enum account_cause bound = answer_bound(account);

	if (account->ns < ANSWER_LEAST_NS)
		buf_puts(why->out, "Not known: this is too little to judge by; a longer recording "
		                   "tells more.");
	else if (account_cause_is_unknown(bound) || answer_unknown(account) > WHY_UNKNOWN)
		why_unknown(why, account);
	else
		buf_printf(why->out, "%s: most of the time is: %s.",
		           answer_busy(account) < WHY_BUSY ? "Nothing stands out"
		                                           : "Nothing is wrong",
		           account_cause_text(bound));
}

static void why_bounds(struct why *why, const struct account *account)
{
	AT_END(buf_free) struct buf by = { 0 };
	uint32_t gpu;
	size_t n;

	if (account->ns < ANSWER_LEAST_NS || answer_unknown(account) > WHY_UNKNOWN ||
	    answer_bound(account) != ACCOUNT_KERNELS)
		return;
	metrics_use_gpus(why->metrics, &n);
	gpu = why_bound_gpu(why->metrics, why->facts.run, account);
	why_bound_text(why->metrics, gpu, &by);
	why_add_longest(why);
	if (by.len)
		buf_printf(why->out, "  What bounds them: %s.\n", by.data);
	else if (n > 1 && gpu == FACTS_NONE)
		buf_puts(why->out, "  What bounds them is not known: which of the machine's GPUs "
		                   "it was is not.\n");
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

static size_t lines_since(const struct buf *out, size_t from)
{
	size_t n = 0;

	for (size_t i = from; i < out->len; i++)
		n += out->data[i] == '\n';
	return n;
}

/* How much of it is told. */
struct why_room {
	size_t lines, next; /* of the account; of what is next to be changed */
};

static void why_text(struct why *why, const struct why_room *room)
{
	const struct account *account = why_of(why);

	why_add_standing(why);
	if (!why->accounts.n) {
		buf_printf(why->out, "%s.\n", why_words_none(&why->facts, &why->options));
		why_add_persons(why);
		return;
	}
	why_head(why, account);
	why_account(why, account, room->lines);
	why_add_phases(why, account);
	if (why_stands(why)) { /* what is to be changed is said above */
		why_add_persons(why);
		why_not_known(why);
		return;
	}
	why_add_late(why);
	why_add_steps(why);
	why_add_persons(why);
	if (why->answer.n_changes) {
		why_first(why, &why->answer.changes[0]);
	} else {
		buf_putc(why->out, '\n');
		why_nothing(why, account);
		buf_putc(why->out, '\n');
		why_bounds(why, account);
	}
	for (size_t i = 1; i < why->answer.n_changes && i <= room->next; i++) {
		buf_puts(why->out, "Next: ");
		why_change(why, &why->answer.changes[i]);
	}
	why_not_known(why);
}

/* What goes where there is much to say: what is next, but for the first of it, then lines of the
 * account, whose least are added to all else. */
static void why_fit(struct why *why)
{
	struct why_room room = { .lines = WHY_LINES,
		                 .next = why->options.next ? why->options.next : WHY_NEXT };
	size_t from = why->out->len;

	if (why->accounts.n)
		room.lines -= why_has_phases(why, why_of(why));
	why_text(why, &room);
	while (lines_since(why->out, from) > WHY_MOST) {
		if (!why->options.next && room.next > 1)
			room.next--;
		else if (room.lines > WHY_LINES_LEAST)
			room.lines--;
		else
			return;
		why->out->len = from;
		why_text(why, &room);
	}
}

void why_add_text(struct consumer *self, struct buf *out)
{
	struct why *why = (struct why *)self;
	size_t from = out->len;

	why->out = out;
	why_fit(why);
	text_wrap_lines(out, from, why->options.width);
}
