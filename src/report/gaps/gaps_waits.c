// SPDX-License-Identifier: MIT
/* What the host waited for in gaps, in a sentence. */
#include "report/gaps/gaps_conclusion.h"

static double gaps_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

#define LINE_MOSTLY 50 /* percent of what has a stack, from which on a line is named */
#define LINE_STACKS 10 /* fewer tell of a line only where they are most of the part's time */

/*
 * The line in which most of it was spent, of which waits have stacks by chance, the likelier the
 * longer they are apart; NULL: too few of them tell. Lives as long as `places`.
 */
static const char *line_of(const struct gap_wait_sum *sum, struct stack_places *places)
{
	const struct gap_stacks *lines = &sum->lines;
	const char *line = NULL;
	struct gap_host host;

	if (!places || (lines->known.samples < LINE_STACKS &&
	                gaps_percent(lines->known.blocked_ns, sum->ns) < LINE_MOSTLY))
		return NULL;
	gap_host_sum_up(&lines, 1, places, &host);
	if (host.n &&
	    gaps_percent(gap_place_ns(&host.places[0]), lines->known.blocked_ns) >= LINE_MOSTLY)
		line = gap_place_label(places, &host.places[0]);
	gap_host_free(&host);
	return line;
}

/* "PID 4242 (cc1)", "thread 4243 (loader)" */
static void add_who(struct buf *out, const struct gap_whos *whos, enum gap_wait wait, uint32_t who)
{
	const struct gap_who *of = gap_whos_at(whos, who);

	if (who < GAP_WHO_FIRST)
		buf_puts(out, of->name);
	else
		buf_printf(out, "%s %u (%s)", wait == GAP_WAIT_CPU ? "PID" : "thread", of->number,
		           of->name);
}

/* The one with most of it, where that is half or more; false: nobody in particular. */
static bool add_most_who(struct buf *out, const struct gap_whos *whos,
                         const struct gap_waits *waits, enum gap_wait wait)
{
	const struct gap_wait_sum *sum = &waits->of[wait];
	struct gap_who_sum most;
	uint64_t rest_ns;

	if (!gap_waits_who(sum, &most, 1, &rest_ns) || most.who < GAP_WHO_FIRST ||
	    most.ns < sum->ns / 2)
		return false;
	add_who(out, whos, wait, most.who);
	return true;
}

void gaps_add_wait(struct buf *out, const struct gap_waits *waits, enum gap_wait wait,
                   const struct gap_whos *whos, struct stack_places *places)
{
	const struct gap_wait_sum *sum = &waits->of[wait];
	struct buf who = { 0 };
	const char *line = line_of(sum, places);

	buf_printf(out, "%s for %.0f %%", gap_wait_text(wait),
	           gaps_percent(sum->ns, waits->host_ns));
	if (add_most_who(&who, whos, waits, wait))
		buf_printf(out, wait == GAP_WAIT_CPU ? ", which mostly %s had" : ", mostly %s",
		           who.data);
	if (line)
		buf_printf(out, ", in %s", line);
	buf_free(&who);
}
