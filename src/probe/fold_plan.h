/* SPDX-License-Identifier: MIT */
/* Which functions a sum needs, and what a call of each adds to it: see fold.h. */
#pragma once

#include "bpf/wire_fold.h"
#include "cuda/api.h"

/* Bit per enum api_op of the functions that must be hooked, and per enum api_memory of those among
 * them that allocate or free. */
unsigned fold_ops(unsigned tools);
unsigned fold_memories(unsigned tools, enum api_op op);

/* What a call of this function adds up to; FOLD_SEND for what no sum wants. */
void fold_plan(const struct api *api, enum api_abi abi, struct fold_plan *plan);
