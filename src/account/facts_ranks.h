/* SPDX-License-Identifier: MIT */
/* Which kernels of communication are one collective's. */
#pragma once

#include "account/facts.h"

/* After facts_order(). */
void facts_ranks(struct facts *facts);

/* The collective that a work is a rank's part of; NULL: it is none's, or not known. */
const struct collective *facts_collective_of(const struct facts *facts, size_t work);

/* The work of a call of facts->collectives; FACTS_NONE: not known. */
uint32_t facts_work_of_call(const struct facts *facts, uint32_t call);
