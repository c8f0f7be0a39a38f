/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with how a program uses its GPU, in at most five sentences: what the GPU waited
 * for, in which line of code, how sure that is, what to try, and what else matters most. Rules that
 * are asked in order make it (diagnosis_rules.c), from gaps, findings, calls and samples. Where
 * less was recorded less is said, and what to record to know more.
 */
#ifndef CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_H
#define CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_H

#include "base/buf.h"
#include "report/gaps/gap_stacks.h"
#include "report/summary/tally.h"

#define DIAGNOSIS_SENTENCES 5

/* The same for programs. */
struct diagnosis_row {
	const char *rule; /* "host" */
	bool judged;      /* enough is known to tell whether */
	bool healthy;     /* nothing is wrong */
	bool of_gpu;      /* device, idle and reason are known */
	uint32_t device;
	uint64_t time_ns;    /* that it is about */
	double idle, reason; /* percent of it: the GPU was idle; of that for this reason */
	const char *place;   /* the line with most of the reason's time; NULL: not known */
	double place_share;  /* percent of that time */
	const char *state;   /* "blocked", "on a CPU"; NULL: it is a call's */
	struct gap_sampling known;
	enum gap_trust trust;
	const char *hint; /* NULL: nothing */
};

struct diagnosis {
	struct buf sentence[DIAGNOSIS_SENTENCES];
	size_t n;
	struct diagnosis_row *rows; /* one of each GPU, or one without GPU times */
	size_t n_rows;
};

/* What else is known of the run. */
struct diagnosis_run {
	const struct run_info *run;
	const struct tally *tally;
	uint64_t duration_ns; /* of what was read */
	uint64_t begin_ns;    /* of it */
	bool part;            /* of the trace, or of its processes, was read */
	bool chosen;          /* that, but for times: some calls or processes, and not the others */
};

struct diagnoser;
struct work;

struct diagnoser *diagnoser_new(struct work *work); /* its window, or NULL: see work_share() */
void diagnoser_free(struct diagnoser *diagnoser);

/* Optional: what a trace without GPU times has need not be kept. */
void diagnoser_begin(struct diagnoser *diagnoser, const struct run_info *run);
int diagnoser_event(struct diagnoser *diagnoser, const struct event *event, struct err *err);

/* After the last event. What `diagnosis` points to is the diagnoser's; diagnosis_free(). */
void diagnoser_conclude(struct diagnoser *diagnoser, const struct diagnosis_run *run,
                        struct diagnosis *diagnosis);
void diagnosis_free(struct diagnosis *diagnosis);

#endif
