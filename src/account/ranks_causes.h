/* SPDX-License-Identifier: MIT */
/* Why a rank is late. Of ranks.c. */
#pragma once

#include "account/ranks.h"

/*
 * Fills in `why` of each row that came last to a collective; rows lie by communicator. All ranks of
 * a step begin it together and do the same: so it is what one does for longer than the others on
 * average, whether they wait at that moment or are busy with their own part yet. Where no other has
 * an account, it is what it does while others wait.
 */
void ranks_explain(struct ranks *ranks, const struct facts *facts, const struct accounts *accounts);
