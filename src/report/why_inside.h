/* SPDX-License-Identifier: MIT */
/*
 * What the writers of the answer share: text in why.c, JSON in why_json.c, tables in the folder
 * findings; and why_consumer.c, which reads. Private to them.
 */
#pragma once

#include "account/answer.h"
#include "account/ranks.h"
#include "account/standing.h"
#include "analysis/stalls_use.h"
#include "report/why.h"
#include "report/why_bound.h"

struct why_longest {
	const struct kernel *kernel; /* NULL: none is worth a word */
	double share;                /* of the time of all kernels */
	uint32_t chain;              /* where most of it is asked for */
};

struct why {
	struct consumer consumer; /* first: what callers hold */
	struct consumer feeder;   /* see why_feeder() */
	unsigned owners;
	bool fed; /* by that: not by its owners */
	struct why_options options;
	struct facts facts;
	struct accounts accounts;
	struct answer answer;
	struct standings standings; /* without rows where they are kept for more recordings */
	struct ranks ranks;
	struct why_longest longest;
	struct metrics_use *metrics;
	struct stalls_use *stalls;
	struct buf *out; /* of the text, while it is written */
};

/* The account that is told; NULL: there is none. */
const struct account *why_of(const struct why *why);
const struct steps *why_steps(const struct why *why, const struct account *account);

/* How long a step is, where there are some. */
uint64_t why_step_ns(const struct steps *steps);

/* Steps are so much of the account that what is true of it is so of a step. */
bool why_has_step(const struct why *why, const struct account *account);

/* What else there is than steps: a line of words, where it is much; all for programs. */
bool why_has_phases(const struct why *why, const struct account *account);
void why_add_phases(struct why *why, const struct account *account);
void why_json_phases(const struct why *why, struct json *json, const struct account *account);
void why_json_place(const struct why *why, struct json *json, const char *key, uint32_t chain);
void why_json_comm(struct json *json, uint64_t id);
void why_json_thread(const struct why *why, struct json *json, uint32_t number);

/* Whether the job whose account is told does, so that nothing else of it is judged. */
bool why_stands(const struct why *why);

/* Communicators that stand still: found, with words that outlive the recording; told, where there
 * are some. */
void why_find_standing(struct why *why);
void why_add_standing(const struct why *why);
void why_json_standing(const struct why *why, struct json *json);

/* For whom the others wait in collectives: a line, a member; nothing where there is none. */
void why_add_late(const struct why *why);
void why_json_late(const struct why *why, struct json *json);

/* Ranks of one job have steps of very different lengths: a line, a member; mostly nothing. */
void why_add_steps(const struct why *why);
void why_json_steps(const struct why *why, struct json *json);

/* Whose communicators others say are theirs, and what there was no room for; mostly nothing. */
void why_add_persons(const struct why *why);
void why_json_persons(const struct why *why, struct json *json);

/* Of kernels that most of the time is, the one that takes most of theirs, if it is much: found; a
 * line, a member. */
void why_find_longest(struct why *why);
void why_add_longest(const struct why *why);
void why_json_longest(const struct why *why, struct json *json);

/* A chain, for a person. */
void why_place(const struct why *why, uint32_t chain);

/* From the begin of the recording to the first work: of no account. */
uint64_t why_start_ns(const struct why *why, const struct account *account);

/* Words, appended to `out`: sentences, but for what and where a change is, the waits that lead
 * there, and who had the CPU meanwhile. */
void why_where(struct why *why, const struct account *account, const struct answer_line *line);
void why_what(struct why *why, const struct answer_change *change);
void why_through(struct why *why, uint32_t via);
void why_rival(struct why *why, const struct answer_change *change);
void why_gain(struct why *why, const struct answer_change *change);
void why_nothing(struct why *why, const struct account *account); /* to be changed */

/* Tenths of a percent, that add up to 1,000. */
void why_tenths(const struct answer_line *lines, size_t n, double all, unsigned *tenths);

/* What a change gains at most: of 1, and how many times as fast. */
double why_part(const struct answer_change *change);
double why_factor(const struct answer_change *change);
double why_factor_most(const struct answer_change *change); /* if the host were never late */
double why_left(const struct answer_change *change);        /* of 1: how long it is without it */
