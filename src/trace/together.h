/* SPDX-License-Identifier: MIT */
/*
 * Recordings that were made at the same time, as one source: ranks of a training, each recorded by
 * itself, in its container perhaps. Times of all are those of one clock, the first file's
 * machine's; those of other machines are mapped to it (analysis/machines.h finds out how). Numbers
 * of processes and threads are those of a machine's initial namespace: processes say of which
 * machine they are.
 */
#pragma once

#include "trace/clock_map.h"
#include "trace/reader.h"

#define TOGETHER_MAX 16 /* files: ranks that a machine has GPUs for */

/* The clock of a file. */
struct together_clock {
	uint32_t of;      /* those of files that have the same here go by one, */
	uint32_t machine; /* and this one is the machine's with this number: from 0, below
	                     TOGETHER_MAX; files of one machine have one clock */
	struct clock_map map;
	uint64_t error_ns; /* of the map */
	uint64_t n;        /* collectives that it was made of; 0: it is the one clock */
};

/* Of files that may be read together: when all were recorded, and how long each was. */
struct together {
	char boot[64]; /* of the machine's clock; "": not known */
	uint64_t begin_ns, end_ns, longest_ns, shortest_ns;
	struct together_clock clocks[TOGETHER_MAX];
	uint64_t begins_ns[TOGETHER_MAX]; /* of each by its own clock */
	const struct trace_file *files[TOGETHER_MAX];
	size_t n;
};

enum together_how {
	TOGETHER,
	TOGETHER_NO_CLOCK,    /* which clock one of them has is not known */
	TOGETHER_OTHER_CLOCK, /* of another machine, or from before it was started anew, and it is
	                         not known how that goes by the first one's */
	TOGETHER_SAME,        /* one of them once more, or a copy, or the begin of it */
	TOGETHER_TWIN,        /* it says that it began when one of them did, and is not that one */
	TOGETHER_OTHER_TIME,  /* less than half of the shortest is in all of them */
	TOGETHER_TOO_MANY,
};

/* `clock` NULL: that of the machine that the run says it is of. `file`: whose run it is, as long as
 * others are to join; NULL: it is nobody's copy. */
struct together together_of(const struct run_info *run, const struct trace_file *file,
                            const struct together_clock *clock);

/* Takes one more in, unless it says why not. */
enum together_how together_join(struct together *together, const struct run_info *run,
                                const struct trace_file *file, const struct together_clock *clock);

/*
 * Their events, as far as they lie in the time of all, to one consumer: one file's after the
 * other's, so it is not in order of time. Numbers of all objects are the consumer's alone, and
 * processes say of which file they are: one that is in several is told by each. Metrics of GPUs are
 * told by one. Consumers get their end once, with a run that has what each of them has; objects
 * live as long as the files. Damage does not end it: errs[i] says it of the i-th; the first such
 * code is returned, or that of the consumer, with `err`.
 */
int together_read(const struct together *together, struct trace_file *const *files,
                  struct consumer *consumer, struct err *errs, struct err *err);
