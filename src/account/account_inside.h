/* SPDX-License-Identifier: MIT */
/* What account.c, pauses.c and segments.c share. Private to them. */
#pragma once

#include "account/account.h"
#include "account/gpu_time.h"
#include "account/parts.h"

struct maker {
	const struct facts *facts;
	struct accounts *accounts;
	struct gpu_time *gpus;
	struct parts *parts;
	uint64_t *budget;        /* see struct walk */
	const uint64_t *from_ns; /* of each account; NULL: 0 */
};

/* A part of a segment, whose causes are wanted, in one account. */
struct cut {
	uint64_t begin_ns, end_ns;
	uint32_t via;
	const struct account *account; /* its thread is asked where no work tells whose turn it was
	                                */
};

/* Of a segment of that GPU's that is no wait for a peer. */
void segment_explain(const struct maker *maker, const struct cut *cut, const struct gpu_time *gpu,
                     const struct gpu_segment *segment);

/* Of one in which it runs a kernel of communication. */
void communication_explain(const struct maker *maker, struct cut cut, const struct gpu_time *self,
                           const struct gpu_segment *segment);
