/* SPDX-License-Identifier: MIT */
/*
 * Recordings that were made at the same time on one machine, as one source: ranks of a training,
 * each recorded by itself, in its container perhaps. Times of all are those of the machine's one
 * clock, and numbers of processes and threads those of its initial namespace.
 */
#ifndef CUSCOPE_TRACE_TOGETHER_H
#define CUSCOPE_TRACE_TOGETHER_H

#include "trace/reader.h"

#define TOGETHER_MAX 16 /* files: ranks that a machine has GPUs for */

/* Of files that may be read together: when all were recorded, and how long each was. */
struct together {
	char boot[64]; /* of the machine's clock; "": not known */
	uint64_t begin_ns, end_ns, longest_ns, shortest_ns;
	size_t n;
};

enum together_how {
	TOGETHER,
	TOGETHER_NO_CLOCK,    /* which clock one of them has is not known */
	TOGETHER_OTHER_CLOCK, /* of another machine, or from before it was started anew */
	TOGETHER_OTHER_TIME,  /* less than half of the shortest is in all of them */
	TOGETHER_TOO_MANY,
};

struct together together_of(const struct run_info *run);

/* Takes one more in, unless it says why not. */
enum together_how together_join(struct together *together, const struct run_info *run);

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

#endif
