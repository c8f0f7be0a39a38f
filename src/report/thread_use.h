/* SPDX-License-Identifier: MIT */
/* What each thread did, and how much of its time CUDA took. */
#pragma once

#include "trace/event.h"

struct thread_use_row {
	const struct process *process;
	uint32_t tid;     /* 0: all threads beyond those that are told apart */
	char comm[16];    /* empty: not known */
	uint64_t calls;   /* that no other call made */
	uint64_t call_ns; /* in them */
	uint64_t sync_ns; /* of that, in calls that wait for the device */
	uint64_t launches, graph_launches, failed;
	uint64_t first_ns, last_ns; /* begin of its first call, end of its last */
	uint64_t longest_ns;
	const struct function *longest; /* NULL: no call had an end */
};

struct consumer *thread_use_new(void);

/* Most time in CUDA first. Owned by `use`, until the next event. */
const struct thread_use_row *thread_use_rows(struct consumer *use, size_t *n);
