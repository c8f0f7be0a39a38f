/* SPDX-License-Identifier: MIT */
/* Time that gaps have by function: which one has most. A zeroed one is empty. */
#ifndef CUSCOPE_REPORT_GAPS_GAP_FUNCTIONS_H
#define CUSCOPE_REPORT_GAPS_GAP_FUNCTIONS_H

#include "trace/event.h"

struct gap_function {
	const struct function *function;
	uint64_t ns;
};

struct gap_functions {
	struct gap_function *all; /* by id; function NULL: none of that id */
	size_t n;
};

void gap_functions_free(struct gap_functions *functions);
void gap_functions_add(struct gap_functions *functions, const struct function *function,
                       uint64_t ns);

/* Takes back what was added. */
void gap_functions_take(struct gap_functions *functions, const struct function *function,
                        uint64_t ns);

/* function NULL: there is no time at all. */
struct gap_function gap_functions_most(const struct gap_functions *functions);

#endif
