/* SPDX-License-Identifier: MIT */
/*
 * What to change: of the accounts of a recording the causes that cost most, each with its place,
 * and what would be gained by its removal.
 */
#pragma once

#include "account/account.h"
#include "account/steps.h"

#define ANSWER_MOST 8 /* things to change that are told */

/* Of an account's time: below it is nothing to change, or not worth a word beside another. */
#define ANSWER_FIRST  0.10
#define ANSWER_NEXT   0.05 /* of what those before leave, and of all */
#define ANSWER_LITTLE 0.03

/* An account of less has not shown what a program does: a step of training takes longer. */
#define ANSWER_LEAST_NS 1000000

enum answer_sure { ANSWER_YES, ANSWER_MOSTLY, ANSWER_NO };

#define ANSWER_ALIKE  64
#define ANSWER_WITHIN 2

/* A place below that of a change, and how much of its gain is there, of 1. */
struct answer_within {
	uint32_t chain;
	double share;
};

struct answer_change {
	const struct account *account; /* where it costs most */
	enum account_cause cause;
	uint32_t chain;                             /* its place; 0: not known, or in many places */
	struct answer_within within[ANSWER_WITHIN]; /* where most of it is, if that only calls those
	                                               who take it; chain 0: in no others */
	uint32_t thread; /* whose time it is mostly; FACTS_NONE: of no thread */
	uint32_t via;    /* the wait that led there, mostly; 0: none */
	uint32_t alike;  /* other processes of its name that it is of; ANSWER_ALIKE at most */
	double ns;       /* of the account */
	double gain_ns;  /* at most; of the account */
	double of_ns;    /* the longest account's time, by which it is ranked */
	double left_ns; /* what the account would be without it, with the host as it was recorded */
	double least_ns; /* and if the host were never late: what the GPU does by itself */
	const struct account_part *lead; /* its cause, and whose it is */
	bool whole;                      /* see change_is_whole() */
	bool awaited;                    /* see struct account_part */
	uint64_t
		waits; /* ACCOUNT_LAUNCHING between so many for the GPU; 0: not known, or not few */
	uint32_t waits_chain; /* where most of them are, if not in the place itself; 0: not known */
	double joined;  /* of launches: the share that is gone if those between two waits are one */
	size_t turn;    /* of those of its account: what an earlier one has is none of its */
	uint64_t count; /* stretches or samples */
	enum answer_sure sure;
	const struct fact_rest *longest; /* see struct account_part */
	const struct fact_work *work;
	const struct fact_call *call;
	uint32_t rival; /* ACCOUNT_NO_CPU: the process that had the CPU for most of it; 0: none */
	const char *rival_name;
	enum account_cause then; /* what most of what is left is */
};

struct answer_line { /* of an account by causes: each place that has much of it, and the rest */
	enum account_cause cause;
	uint32_t chain, thread, via;
	bool awaited; /* see struct answer_change */
	double ns;
};

enum phase_kind {
	PHASE_STEPS, /* that are usual */
	PHASE_START, /* before the first step, */
	PHASE_WARM_UP,
	PHASE_OTHER,
	PHASE_LONG, /* steps that are apart: see enum step_apart */
	PHASE_END,  /* and after the last */
	PHASE_KINDS
};

struct phase {
	enum phase_kind kind;
	size_t n_steps;          /* of which some is in the account; 0: of no steps */
	uint64_t ns;             /* of the account */
	uint64_t steps_ns;       /* of these steps, whole */
	struct answer_line most; /* what most of it is; ns 0: it was not asked */
};

struct phases { /* together all of the account's time; none without steps */
	struct phase of[PHASE_KINDS];
	size_t n;
};

struct answer {
	const struct facts *facts;
	const struct accounts *accounts;
	struct steps *steps;   /* of each account, */
	struct phases *phases; /* the same */
	double longest_ns;     /* of all accounts */
	uint64_t budget;       /* of what is walked once more, for gains and phases */
	struct answer_change changes[ANSWER_MOST]; /* most gain first */
	size_t n_changes;                          /* 0: nothing is wrong, or nothing is known */
};

/* The accounts may begin later then: with their first step. */
void answer_make(struct answer *answer, const struct facts *facts, struct accounts *accounts);
void answer_clear(struct answer *answer);

/* Its time by cause and place, most first; `most` at most, of which the last can be what is left
 * of all (ACCOUNT_CAUSES). Returns how many. */
size_t answer_lines(const struct answer *answer, const struct account *account,
                    struct answer_line *lines, size_t most);

/* Something that the account needs was lost while it was recorded. */
bool answer_lost_something(const struct run_info *run);
bool answer_lost_stacks(const struct run_info *run);

/* Shares of the account, of 1: of what the GPU runs; of what is not known, and within that of what
 * the host did outside of CUDA. */
double answer_busy(const struct account *account);
double answer_unknown(const struct account *account);
double answer_host(const struct account *account);

/* The cause with the most time of the account: what bounds it. */
enum account_cause answer_bound(const struct account *account);
