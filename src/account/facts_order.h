/* SPDX-License-Identifier: MIT */
/*
 * Rows of a recording, all there, put in order: each thread's one after the other, wakers as
 * threads, and calls by what work names them. (What facts.h finds is found here.)
 */
#pragma once

#include "account/facts.h"

/* Once; facts->run is set. */
void facts_order(struct facts *facts);
