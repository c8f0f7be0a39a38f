/* SPDX-License-Identifier: MIT */
/*
 * How long an account would be without what a change is of.
 *
 * Who is slowest says how long a step is: the GPU, which runs what is left for it one after the
 * other, or the thread that asks for it, which does what is left for it one after the other. What
 * the GPU waits for is of two kinds. Where the host came too late, it is gone as soon as the host
 * is fast enough: a launch that took long does not matter while the GPU has work. Where the host
 * had waited for the GPU, or the GPU's own streams for each other, it stays, however fast the host
 * is: that time is added to the GPU's.
 */
#pragma once

#include "account/gain_host.h"

/* Sets left_ns, least_ns and then. */
void gain_find(struct answer *answer, struct answer_change *change, struct gain_host *host);
