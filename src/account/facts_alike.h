/* SPDX-License-Identifier: MIT */
/*
 * Where calls are that have no stack: where those of the same thread are that are alike, by what
 * they ask for, on which stream, and after which calls. Few stacks of launches are walked and none
 * of those that are recorded inside of processes, so that most have their places from samples,
 * which a thread that mostly sleeps has few of. All of the recording counts, also the time between
 * windows of GPU times: a line stays where it is.
 */
#pragma once

#include "account/facts.h"

/* Of each thread, once its stacks are chains, and its samples have told of calls. */
void facts_alike(struct facts *facts);
