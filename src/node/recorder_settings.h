/* SPDX-License-Identifier: MIT */
/* What the flight recorder is told: without pointers, since a part of it is another process. */
#ifndef CUSCOPE_NODE_RECORDER_SETTINGS_H
#define CUSCOPE_NODE_RECORDER_SETTINGS_H

#include "node/rules.h"
#include "node/config.h"
#include "node/spool.h"

struct recorder_settings {
	bool enabled;
	uint64_t last_ns;       /* of calls, that are held */
	uint64_t memory_bytes;  /* of them, packed; fewer seconds are held where they are more */
	uint64_t after_ns;      /* between what fired a rule and the writing */
	double max_overhead;    /* percent of the busiest thread, as --max-overhead; 0: none */
	uint64_t gpu_window_ns; /* how long GPU times are measured after a rule fired; 0: not */
	bool gpu_times;         /* of a process that does that and nothing else: recorder.c */
	struct spool_limits spool;
	struct rules_settings rules;
};

/* All 0 before it is filled, so that two of them can be compared by their bytes. */
void recorder_settings_make(struct recorder_settings *settings, const struct node_settings *node);

#endif
