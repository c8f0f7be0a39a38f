/* SPDX-License-Identifier: MIT */
/*
 * Which parts of an account are one thing to change, and in which place. A part leads: all parts of
 * its cause and process, or of its kin, that are at their heaviest place are one change, with what
 * goes along (change.h). Private to answer.c.
 */
#pragma once

#include "account/answer.h"

#define ANSWER_SHARE 0.6 /* of its callers' time that a function has which is told */

/* Scratch of one account. */
struct chooser {
	const struct answer *answer;
	const struct account *account;
	struct chains_weight *weights; /* of the parts of one kind */
	size_t n_weights;
	bool *taken;                    /* by part */
	const struct account_part **of; /* those of one change */
	size_t n_of;
};

void chooser_init(struct chooser *chooser, const struct answer *answer,
                  const struct account *account);
void chooser_clear(struct chooser *chooser);

void chooser_weigh(struct chooser *chooser, uint32_t chain, double ns);

/* The place that has so much of what was weighed, which is forgotten; *subtree: its ns. */
uint32_t chooser_heaviest(struct chooser *chooser, double share, uint64_t *subtree);

/* By its lead, or what is the larger cause then: false, and the lead may still be left. Its parts
 * are taken. */
bool change_choose(struct chooser *chooser, const struct account_part *of,
                   struct answer_change *change);

/* The cause that has most of the time, but for these parts. */
enum account_cause account_most_but(const struct account *account,
                                    const struct account_part *const *but, size_t n);
