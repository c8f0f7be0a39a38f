/* SPDX-License-Identifier: MIT */
/*
 * The account of the last ten seconds, while they go by: what `why` says, of one window of ten
 * seconds after the other.
 *
 * A consumer: what a window needs is held packed, as the flight recorder holds it. When a window is
 * over, and GPU times of it have come, a process that is forked from this one reads it as `why`
 * reads a recording, without rights, and sends what it says. So the loop that calls this waits for
 * nothing but the fork; an answer that takes longer than eight seconds is given up, and whoever
 * makes it ended after nine, also where it was stopped. While nobody wants to see the account,
 * nothing is held and nothing is asked.
 *
 * A window has 48 MiB, and 3,000,000 events; one user's but root's 2,000,000, of a process
 * 1,000,000. Further events of a process are left out until the window ends. Then the account is of
 * the other processes; where none of those asked for work, it ends when the first one had too many.
 * Either is said with it.
 *
 * Of the node agent a window has half of that, and who answers 192 MiB rather than 768. There an
 * account that takes a while is followed by none for nine times as long, so that however many ask,
 * a tenth of one processor goes to it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct top_why;

/* Of whose memory and processor it is. */
enum top_why_place {
	TOP_WHY_ALONE,  /* of who asked for it, */
	TOP_WHY_BESIDE, /* or the node agent's, whoever asks: with less */
};

struct top_why *top_why_new(enum top_why_place place);
void top_why_free(struct top_why *why); /* NULL is allowed */

/* Is freed by top_why_free(). */
struct consumer *top_why_consumer(struct top_why *why);

/*
 * At each turn; `wanted`: somebody sees what there is. True: top_why_take() is to be called, with
 * the run as it is then, when all that is known late of the time until now has come.
 */
bool top_why_turn(struct top_why *why, uint64_t now_ns, bool wanted);
void top_why_take(struct top_why *why, const struct run_info *run);

/* What there is to see: another number, something else. */
struct top_why_shown {
	uint64_t number;  /* 0: nobody wants to see it */
	const char *json; /* an object in one line, see docs/top.md */
	const char *line; /* what to change first, in why's words, or why there is no account */
	uint32_t pid;     /* of the process that the line is of; 0: of none */
};

struct top_why_shown top_why_shown(const struct top_why *why);

/*
 * What windows are of (stacks above all) is held as long as this is, whatever they still need of
 * it, and each account reads all of that: true where it has come to a quarter of a window.
 */
bool top_why_is_worn(const struct top_why *why);

/* Of a CPU, that the processes that answered have taken; 0 of NULL. */
uint64_t top_why_cpu_ns(const struct top_why *why);
