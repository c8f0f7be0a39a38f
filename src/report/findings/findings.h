/* SPDX-License-Identifier: MIT */
/*
 * What the report `findings` tells: the changes of the account of time, and facts beside it, which
 * claim no time. Private to it.
 */
#pragma once

#include "analysis/xids.h"
#include "report/why_inside.h"

/* A fact. Its texts but the hint are freed with it. */
struct finding {
	const char *cause; /* "xids" */
	uint32_t pid;      /* 0: of no process */
	uint32_t device;   /* FACTS_NONE: of no GPU that is known */
	uint64_t count;    /* of what, the text says */
	char *title, *seen;
	const char *hint; /* what to try */
};

struct findings {
	struct finding *rows;
	size_t n;
};

/* One that the caller fills in. */
struct finding *findings_add(struct findings *findings, const char *cause);
void findings_clear(struct findings *findings);

/* What the driver said went wrong, and which calls failed of it. */
void findings_add_xids(struct findings *findings, const struct xids *xids,
                       const struct run_info *run);

/* What GPUs that are busy are bound by, as their metrics show it. */
void findings_add_bounds(struct findings *findings, const struct metrics_use *metrics);

/* Copies that could be one. */
void findings_add_small_copies(struct findings *findings, const struct facts *facts);
