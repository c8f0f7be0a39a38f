// SPDX-License-Identifier: MIT
/* Of the answer what is of ranks: who is waited for, and in jobs that stand still who has not come,
 * and what it does. */
#include "base/lines.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "report/why_inside.h"
#include "report/why_words.h"

#define STEPS_APART 2 /* times as long as another rank's: they are not the same steps */
#define RANKS_TOLD  2 /* of each kind, with what they do */
#define FRAMES      3

/* ---- jobs that stand still ------------------------------------------------------------------- */

static char *words_taken(struct buf *words)
{
	char *text = words->len ? xstrdup(words->data) : NULL;

	words->len = 0;
	return text;
}

/* The machine too, where there are several. */
static void add_process(const struct why *why, const struct process *process, struct buf *out)
{
	const char *host = why_words_host(&why->facts, process);

	why_words_name(out, why_words_process(&why->facts, process));
	if (!host)
		return;
	buf_puts(out, ", ");
	why_words_name(out, host);
}

void why_find_standing(struct why *why)
{
	struct standings *all = why->options.standings ? why->options.standings : &why->standings;
	size_t first = all->n_rows;
	AT_END(buf_free) struct buf words = { 0 };

	standings_add(all, &why->facts);
	for (size_t i = first; i < all->n_rows; i++) {
		struct standing_rank *row = &all->rows[i];

		if (!row->pid)
			continue;
		add_process(why, row->told.process, &words);
		row->name = words_taken(&words);
		if (row->chain)
			chains_label(why->facts.chains, row->chain, FRAMES, &words);
		row->where = words_taken(&words);
		if (row->thread != FACTS_NONE)
			row->thread_name =
				xstrdup(fact_thread_name(&why->facts.threads[row->thread]));
	}
	if (all == &why->standings)
		standings_judge(all);
}

static void add_numbers(const struct standing *standing, bool behind, struct buf *out)
{
	uint32_t n = behind ? standing->n_behind : standing->n_told - standing->n_behind, told = 0;

	n -= behind ? 0 : standing->n_missing;
	buf_puts(out, n > 1 ? "ranks " : "rank ");
	for (uint32_t i = 0; i < standing->n && told < STANDING_RANKS / 8; i++) {
		if (standing->ranks[i]->behind != behind)
			continue;
		if (told++)
			buf_puts(out, told == n ? " and " : ", ");
		buf_printf(out, "%d", standing->ranks[i]->told.number);
	}
	if (told < n)
		buf_printf(out, " and %u more", n - told);
}

void why_words_standing(const struct standing *standing, struct buf *out)
{
	buf_puts(out, "Standing still: ");
	add_numbers(standing, true, out);
	buf_printf(out, "%s not launched %s %lu of communicator ",
	           standing->n_behind > 1 ? " have" : " has", collective_kind_name(standing->kind),
	           standing->number);
	why_words_comm_of(standing->id[0], standing->person, standing->claimed, out);
	buf_puts(out, ", which ");
	add_numbers(standing, false, out);
	buf_printf(out, " %s; none has launched any for %s or more",
	           standing->n_told - standing->n_behind - standing->n_missing > 1 ? "have" : "has",
	           TEXT_DURATION(standing->still_ns));
}

void why_words_does(const struct standing_rank *rank, struct buf *out)
{
	if (rank->does == ACCOUNT_UNKNOWN) {
		buf_puts(out, rank->pid ? "does nothing that was seen" : "is not recorded here");
		return;
	}
	buf_puts(out, account_cause_text(rank->does));
	if (rank->where)
		buf_printf(out, " in %s", rank->where);
}

static void add_rank(const struct standing_rank *rank, struct buf *out)
{
	buf_printf(out, "  Rank %d (", rank->told.number);
	if (rank->pid)
		buf_printf(out, "%s, pid %u", rank->name ? rank->name : "?", rank->pid);
	else
		why_words_name(out, rank->told.host);
	buf_puts(out, ") ");
	if (rank->told.failed)
		buf_puts(out, "has an error of NCCL's, and ");
	if (rank->does != ACCOUNT_UNKNOWN)
		buf_puts(out, "is: ");
	why_words_does(rank, out);
	buf_puts(out, ".\n");
}

static void add_some(const struct standing *standing, bool behind, struct buf *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < standing->n && n < RANKS_TOLD; i++) {
		if (standing->ranks[i]->behind != behind)
			continue;
		n++;
		add_rank(standing->ranks[i], out);
	}
}

static void add_standings(const struct standings *standings, struct buf *out)
{
	for (size_t i = 0; i < standings->n; i++) {
		const struct standing *standing = &standings->of[i];

		why_words_standing(standing, out);
		buf_puts(out, ".\n");
		if (standing->n_missing)
			buf_printf(out, "  Nothing has been heard of %u of its ranks.\n",
			           standing->n_missing);
		add_some(standing, true, out);
		add_some(standing, false, out);
		buf_putc(out, '\n');
	}
	if (standings->n_more)
		buf_printf(out, "%zu more communicators stand still.\n\n", standings->n_more);
	if (standings->n && standings->of_rows.refused)
		buf_printf(out, "There was no room for %lu rows of what was told of ranks.\n\n",
		           standings->of_rows.refused);
}

void why_add_standing(const struct why *why)
{
	add_standings(&why->standings, why->out);
}

/* `why` NULL: the facts are gone, and words tell where it is. */
static void json_rank(const struct why *why, struct json *json, const struct standing *standing,
                      const struct standing_rank *rank)
{
	json_open(json, NULL, '{');
	json_u64(json, "rank", (uint64_t)(rank->told.number < 0 ? 0 : rank->told.number));
	json_string(json, "host", rank->told.host);
	json_bool(json, "behind", rank->behind);
	json_u64(json, "launched", rank->told.counts[standing->kind]);
	if (rank->tid) {
		json_u64(json, "pid", rank->pid);
		json_u64(json, "tid", rank->tid);
		json_string(json, "thread", rank->thread_name);
	}
	if (rank->does != ACCOUNT_UNKNOWN)
		json_string(json, "cause", account_cause_name(rank->does));
	if (why)
		why_json_place(why, json, "place", rank->chain);
	else if (rank->where)
		json_string(json, "where", rank->where);
	json_close(json, '}');
}

static void json_standings(const struct why *why, struct json *json,
                           const struct standings *standings)
{
	json_open(json, "standing", '[');
	for (size_t i = 0; i < standings->n; i++) {
		const struct standing *standing = &standings->of[i];

		json_open(json, NULL, '{');
		why_json_comm(json, standing->id[0]);
		json_string(json, "function", collective_kind_name(standing->kind));
		json_u64(json, "number", standing->number);
		json_u64(json, "still_ns", standing->still_ns);
		json_u64(json, "missing", standing->n_missing);
		json_open(json, "ranks", '[');
		for (uint32_t k = 0; k < standing->n; k++)
			json_rank(why, json, standing, standing->ranks[k]);
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
	json_u64_if(json, "standing_more", standings->n_more);
}

void why_json_standing(const struct why *why, struct json *json)
{
	json_standings(why, json, &why->standings);
}

const struct standings *why_standings(const struct consumer *self)
{
	return &((const struct why *)self)->standings;
}

int why_write_standing(struct standings *standings, const struct why_options *options,
                       struct err *err)
{
	AT_END(lines_free) struct lines lines;

	lines_init(&lines, options->json ? options->json : options->text, "the answer");
	standings_judge(standings);
	if (!standings->n)
		return 0;
	if (options->json) {
		struct json json = { .out = &lines.pending, .lines = 2 };

		json_open(&json, NULL, '{');
		json_string(&json, "schema", "cuscope-why-1");
		json_standings(NULL, &json, standings);
		json_close(&json, '}');
		buf_putc(&lines.pending, '\n');
	} else {
		buf_putc(&lines.pending, '\n');
		add_standings(standings, &lines.pending);
		lines.pending.len--; /* what parts it from an account */
		text_wrap_lines(&lines.pending, 1, options->width);
	}
	return lines_flush(&lines, err);
}

/* ---- late ------------------------------------------------------------------------------------ */

void why_add_late(const struct why *why)
{
	size_t at = why->out->len;

	for (size_t i = 0; i < why->ranks.n_late; i++) {
		const struct rank_row *late = why->ranks.late[i];

		if (standings_are_of(&why->standings, late->rank->person))
			continue;
		why_words_late(&why->facts, late, why->out);
		buf_puts(why->out, ".\n");
		at = why->out->len;
	}
	why_words_clocks(&why->facts, why->out);
	if (why->out->len > at)
		buf_puts(why->out, ".\n");
}

static void json_machines(const struct why *why, struct json *json)
{
	const struct run_info *run = why->facts.run;

	if (run->n_machines < 2)
		return;
	json_open(json, "machines", '[');
	for (size_t i = 0; i < run->n_machines; i++) {
		json_open(json, NULL, '{');
		json_string(json, "host", run->machines[i].hostname);
		json_u64(json, "clock_error_ns", run->machines[i].clock_error_ns);
		json_u64(json, "collectives", run->machines[i].n_collectives);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_late(const struct why *why, struct json *json, const char *key,
                      const struct rank_row *late)
{
	const struct collective_comm *comm = &why->facts.collectives.comms[late->rank->comm];
	const char *host = why_words_host(&why->facts, late->rank->process);
	AT_END(buf_free) struct buf rank = { 0 };

	why_words_rank_of(&why->facts, late->rank, &rank);
	json_open(json, key, '{');
	why_json_comm(json, comm->id[0]);
	if (rank.len)
		json_string(json, "rank", rank.data);
	json_string_if(json, "host", host);
	json_u64(json, "pid", late->rank->process->pid);
	json_u64(json, "collectives", late->n);
	json_u64(json, "late", late->n_late);
	json_u64(json, "late_ns", rank_late_ns(late, 0.5));
	json_u64(json, "others", comm->n_ranks - 1);
	json_fixed(json, "held_percent", (uint64_t)(1000 * rank_held(late)), 1);
	json_close(json, '}');
}

void why_json_late(const struct why *why, struct json *json)
{
	const struct ranks *ranks = &why->ranks;
	size_t n = 0;

	json_machines(why, json);
	for (size_t i = 0; i < ranks->n_late; i++) {
		if (standings_are_of(&why->standings, ranks->late[i]->rank->person))
			continue;
		if (n == 1)
			json_open(json, "late_too", '[');
		json_late(why, json, n ? NULL : "late", ranks->late[i]);
		n++;
	}
	if (n > 1)
		json_close(json, ']');
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The account whose steps are shortest of a communicator's, and the one whose are longest. */
struct steps_apart {
	const struct account *least, *most;
	uint64_t least_ns, most_ns;
};

/* In which communicator a process calls most; COLLECTIVES_NONE: in none that is known. */
static uint32_t comm_of_process(const struct why *why, const struct process *process)
{
	const struct collectives *of = &why->facts.collectives;
	const struct collective_rank *most = NULL;

	for (size_t i = 0; i < of->n_ranks; i++)
		if (of->ranks[i].process == process && of->ranks[i].comm != COLLECTIVES_NONE &&
		    (!most || of->ranks[i].n_calls > most->n_calls))
			most = &of->ranks[i];
	return most ? most->comm : COLLECTIVES_NONE;
}

/* The first of which they are so far apart that no step of one can be a step of the other. */
static bool steps_are_apart(const struct why *why, struct steps_apart *apart)
{
	const struct accounts *accounts = &why->accounts;
	AT_END(at_end_free) uint32_t *comms = xcalloc(accounts->n + 1, sizeof(*comms));

	for (size_t i = 0; i < accounts->n; i++)
		comms[i] = comm_of_process(why, accounts->of[i].process);
	for (size_t i = 0; i < accounts->n; i++) {
		*apart = (struct steps_apart){ .least_ns = UINT64_MAX };
		for (size_t k = 0; k < accounts->n && comms[i] != COLLECTIVES_NONE; k++) {
			const struct steps *steps = why_steps(why, &accounts->of[k]);
			uint64_t ns;

			if (comms[k] != comms[i] || steps->how == STEPS_NONE)
				continue;
			ns = steps_mean_ns(steps);
			if (ns < apart->least_ns)
				apart->least = &accounts->of[k];
			if (ns > apart->most_ns)
				apart->most = &accounts->of[k];
			apart->least_ns = facts_min(apart->least_ns, ns);
			apart->most_ns = facts_max(apart->most_ns, ns);
		}
		if (apart->least && apart->most_ns / STEPS_APART >= apart->least_ns)
			return true;
	}
	return false;
}

void why_add_steps(const struct why *why)
{
	struct steps_apart apart;

	if (!steps_are_apart(why, &apart))
		return;
	buf_printf(
		why->out,
		"Steps of ranks of one job differ: %s in pid %u, %s in pid %u: a part of a step, "
		"or several, were taken for one, so what is said of a step is of that rank's "
		"alone.\n",
		TEXT_DURATION(apart.least_ns), apart.least->process->pid,
		TEXT_DURATION(apart.most_ns), apart.most->process->pid);
}

void why_json_steps(const struct why *why, struct json *json)
{
	struct steps_apart apart;

	if (!steps_are_apart(why, &apart))
		return;
	json_open(json, "steps_differ", '{');
	json_u64(json, "least_pid", apart.least->process->pid);
	json_u64(json, "least_ns", apart.least_ns);
	json_u64(json, "most_pid", apart.most->process->pid);
	json_u64(json, "most_ns", apart.most_ns);
	json_close(json, '}');
}
