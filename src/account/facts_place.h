/* SPDX-License-Identifier: MIT */
/*
 * The places of facts: chains of the user's frames, made of stacks when all is known of them. What
 * a thread does in which no frame is the user's is at the place of the thread that waits for it: a
 * framework runs the backward half of a training on a thread of its own.
 */
#ifndef CUSCOPE_ACCOUNT_FACTS_PLACE_H
#define CUSCOPE_ACCOUNT_FACTS_PLACE_H

#include "account/facts.h"

/* Once, after facts_order(). */
void facts_place(struct facts *facts);

#endif
