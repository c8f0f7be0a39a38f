/* SPDX-License-Identifier: MIT */
/*
 * The places of facts: chains of the user's frames, made of stacks when all is known of them. What
 * a thread does in which no frame is the user's is at the place of the thread that waits for it: a
 * framework runs the backward half of a training on a thread of its own.
 *
 * And who the peer of a socket of this machine is: a wake-up by the network has no thread that made
 * it, but comes while the sender has the CPU. So it is the process of the recording that runs as
 * the waits of a thread at one place end, and does not run as often between them.
 */
#pragma once

#include "account/facts.h"

/* Once, after facts_order(). */
void facts_place(struct facts *facts);
