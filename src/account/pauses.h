/* SPDX-License-Identifier: MIT */
/*
 * Pauses of GPUs, one by one: when nothing ran, and the account of each of the longest by itself.
 * Waits in kernels of communication are none, though the account may have them as idle.
 */
#pragma once

#include "account/account.h"

struct account_pause {
	uint64_t begin_ns, end_ns;
	const struct fact_work *before, *after; /* NULL: none, or not measured */
	struct account of;                      /* of its time alone */
};

/* Of an account. */
struct account_pause_sum {
	uint64_t count, ns, longest_ns;
	uint64_t short_count, short_ns; /* that are shorter than asked for */
};

struct account_pauses {
	struct account_pause *longest; /* first, of all accounts */
	struct fact_work *works;       /* those before and after them */
	size_t n;
	struct account_pause_sum *sums; /* by the number of the account */
	struct account_via *vias;       /* of these accounts: from 1 on */
	size_t n_vias;
};

/* Those of `least_ns` and more, of which `most` are kept; both live as long as the accounts. */
void account_pauses_make(struct account_pauses *pauses, const struct facts *facts,
                         const struct accounts *accounts, uint64_t least_ns, size_t most);
void account_pauses_clear(struct account_pauses *pauses);
