/* SPDX-License-Identifier: MIT */
/* The metrics that are counts: of the machine, and of a process under a name of its own. */
#ifndef CUSCOPE_NODE_COUNT_FAMILIES_H
#define CUSCOPE_NODE_COUNT_FAMILIES_H

#include "node/counts.h"
#include "node/metrics.h"

struct count_family {
	struct metric_family machine, process; /* machine.name NULL: another source has it */
	enum count first;
	size_t n;                          /* places from there; 1: no label */
	const char *label;                 /* that tells them apart */
	const char *(*word)(size_t place); /* NULL: there is no such place */
	unsigned decimals;
};

extern const struct count_family count_families[];
extern const size_t n_count_families;

const char *count_kind(size_t kind);

#endif
