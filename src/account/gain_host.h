/* SPDX-License-Identifier: MIT */
/*
 * What the thread that asks for an account's work has to do by itself, and what is left of that
 * without a change.
 *
 * A thread that it waits for works on its behalf, a server that has nothing to do until it is
 * asked: that is time of its own. Or it works ahead, and has the next piece ready as soon as it
 * can: a worker with a queue. Then the two work side by side, and who needs longer for all pieces
 * says how long they take. Which of the two it is shows in the time in which the one does not wait
 * for the other: does this one wait to be asked then?
 */
#pragma once

#include "account/answer.h"

/* The waits of an account, and which of them go with a change. */
struct gain_waits {
	struct account_via *vias; /* [0] is none */
	size_t n;
	bool *gone;
};

struct gain_host {
	bool made, known; /* whether there is one whose time is known */
	struct account account;
	struct gain_waits waits; /* its own numbers */
};

/* What is left of each cause, and in all. */
struct gain_left {
	double ns[ACCOUNT_CAUSES], all_ns;
};

void gain_left_add(struct gain_left *left, const struct account_part *part, double share);

/* Sets which go: those of a function that is changed as a whole, with all that others do
 * meanwhile. Waits without a place are where most are that have one. */
void gain_waits_make(struct gain_waits *waits, const struct answer *answer,
                     const struct answer_change *change, const struct account *account);

/* That part goes with the change, and with no other one before it. */
bool gain_has(const struct answer *answer, const struct answer_change *change,
              const struct gain_waits *waits, const struct account_part *part);

/* Once it is wanted. */
void gain_host_make(struct gain_host *host, struct answer *answer, const struct account *account);
void gain_host_clear(struct gain_host *host);

/* What the host does between a wait for all that the GPU has to do, that is left, and the next work
 * that it asks for: the GPU has nothing to do then, though the host may have come so late that it
 * did not wait. */
double gain_host_after_waits(const struct facts *facts, const struct answer_change *change);

/* Of the thread, or of one that works ahead of it and takes longer: without waits for the GPU. */
void gain_host_left(struct answer *answer, const struct answer_change *change,
                    struct gain_host *host, struct gain_left *left);

/* Of those that the thread waits for, that work ahead of it and have as much to do as before: of
 * the one that needs longest; nothing where there is none. */
void gain_host_beside(struct answer *answer, const struct answer_change *change,
                      struct gain_host *host, struct gain_left *left);
