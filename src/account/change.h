/* SPDX-License-Identifier: MIT */
/* Which parts of an account a change is of. Private to those who choose and judge changes. */
#pragma once

#include "account/answer.h"

/* Whether a chain leads through the function at the end of another one, at the same depth. */
bool chain_is_below(const struct chains *chains, uint32_t chain, uint32_t node);

/* Of a chain, how deep its functions are those of another one. */
size_t chain_shared_depth(const struct chains *chains, uint32_t chain, uint32_t other);

bool parts_are_alike(const struct facts *facts, const struct account_part *a,
                     const struct account_part *b);

/* All that its function does is changed, for it asks for nothing on the GPU. */
bool change_is_whole(const struct facts *facts, const struct answer_change *change);

/* Of the change's account, or of its host's (account_of_thread_alone()). */
bool change_has(const struct facts *facts, const struct answer_change *change,
                const struct account_part *part);
