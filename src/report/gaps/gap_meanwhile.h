/* SPDX-License-Identifier: MIT */
/*
 * What the host did in the gaps of one GPU, by their causes. The longest gaps keep it for
 * themselves until it is known which of them are apart (gap_longest.h).
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_MEANWHILE_H
#define CUSCOPE_REPORT_GAPS_GAP_MEANWHILE_H

#include "report/gaps/gap_longest.h"
#include "report/gaps/gap_threads.h"

struct gap_meanwhile {
	struct longest giants;
	struct gap_stacks stacks[GAP_CAUSES];
	/* The gaps by the stacks of their calls: that the host waited in, else that asked late. */
	struct gap_stacks calls[GAP_CAUSES];
	struct gap_waits waits; /* of all causes that are the host's */
};

struct gap_meanwhile *gap_meanwhile_new(void);
void gap_meanwhile_free(struct gap_meanwhile *meanwhile);

/* `told`: the gap is one to be told by itself, and needs to know its place. */
void gap_meanwhile_count(struct gap_meanwhile *meanwhile, struct gap_threads *threads,
                         struct gpu_gap *gap, bool told);

/* The longest, from GAP_APART_NS on, until the next call of this. */
const struct gpu_gap *gap_meanwhile_giants(struct gap_meanwhile *meanwhile, size_t *n);

/* Of `n` of them that are not apart: they are as all gaps. */
void gap_meanwhile_join(struct gap_meanwhile *meanwhile, struct gap_threads *threads,
                        const struct gpu_gap *giants, size_t n);

#endif
