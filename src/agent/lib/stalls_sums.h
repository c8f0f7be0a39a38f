/* SPDX-License-Identifier: MIT */
/*
 * The samples of one window, added up by instruction and reason, and written as records. It has
 * room for so many of them; what comes beyond is told by kernel and reason alone, and in the end
 * counted.
 */
#ifndef CUSCOPE_AGENT_LIB_STALLS_SUMS_H
#define CUSCOPE_AGENT_LIB_STALLS_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lib/intern.h"
#include "agent/lib/pcs_abi.h"
#include "agent/lib/ring.h"

struct sums;

struct sums *sums_new(void); /* NULL: no memory */
void sums_free(struct sums *sums);

/* CUPTI's reasons, by their numbers; what they are called stays where it is. */
void sums_reasons(struct sums *sums, size_t n, const uint32_t *index, char *const *names);

/* The kernel's name stays where it is until sums_write. */
void sums_add(struct sums *sums, const struct pcs_pc *pc, const struct pcs_stall *stall);

/* What a call of CUPTI's says of all samples. */
void sums_add_all(struct sums *sums, const struct pcs_data *data);

struct sums_window {
	uint64_t begin_ns, end_ns;
	uint64_t cost_ns; /* that calls of CUPTI's took */
	bool is_rest;     /* of a window that was told of: nothing, where nothing came */
};

/* All of it, which is forgotten then. */
void sums_write(struct sums *sums, struct intern *intern, struct ring *ring,
                const struct sums_window *window);

#endif
