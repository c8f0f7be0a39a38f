/* SPDX-License-Identifier: MIT */
/* What the gaps of a GPU come to: how busy it is, why not more, what the host did, what to try. */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_CONCLUSION_H
#define CUSCOPE_REPORT_GAPS_GAPS_CONCLUSION_H

#include "base/buf.h"
#include "report/gaps/gaps.h"

/* A GPU that has to wait until the host has asked, and until it has been heard, lacks the same. */
enum gaps_reason {
	GAPS_HOST,
	GAPS_SYNC,
	GAPS_COPY,
	GAPS_WAITING,
	GAPS_TURNAROUND,
	GAPS_UNKNOWN,
	GAPS_REASONS,
	GAPS_BUSY = GAPS_REASONS, /* it is not idle for long */
	GAPS_SINGLE               /* a single activity has no gaps */
};

/* Phrases without full stops; one that is empty has nothing to say. */
struct gaps_conclusion {
	const char *verdict; /* "launch-bound" */
	bool mostly;         /* there are other reasons, which are more together */
	struct buf busy;     /* how busy, and what for it was idle */
	struct buf apart;    /* the gaps that were left out of all of this */
	struct buf why;
	struct buf where; /* the places of the host meanwhile, and how far to believe that */
	const char *try;  /* what to do; NULL: nothing */
	/* The same for programs: */
	enum gaps_reason reason;
	uint64_t steady_ns, idle_ns; /* without the gaps that are apart */
	uint64_t reason_ns;          /* of idle_ns */
	bool asking;                 /* GAPS_HOST: for most of it, the host was asking */
	bool launches;               /* GAPS_HOST: that, or all gaps are short */
	uint64_t count;              /* of the gaps of this reason */
	const struct function *call; /* that took most of it; NULL: none stands out */
	bool has_samples;
	struct gap_host host;  /* where the host was in the gaps of this reason, by samples, */
	struct gap_host calls; /* and which calls it waited in, or asked too late with */
};

/* Of one GPU. `begin_ns`: of the trace. `places`: NULL where there were no samples. */
void gaps_conclude(const struct gap_line *gpu, uint64_t begin_ns, struct stack_places *places,
                   struct gaps_conclusion *conclusion);
void gaps_conclusion_free(struct gaps_conclusion *conclusion);

/* "41 % in load (train.py:88), blocked; 12 % in step (train.py:90), on a CPU" */
#define GAPS_PLACES_TOLD 3
void gaps_add_places(struct buf *out, const struct gap_host *host,
                     const struct stack_places *places, size_t most);

/* "100 % in train (train.py:95)": of calls, see gap_meanwhile.h */
void gaps_add_calls(struct buf *out, const struct gap_host *calls,
                    const struct stack_places *places, size_t most);

/* ", blocked", ", on a CPU", ", blocked for 40 % of it" */
void gaps_add_state(struct buf *out, const struct gap_place *place);

/* "sure: 312 samples cover 96 %" */
void gaps_add_trust(struct buf *out, const struct gap_sampling *known);

/* "too few samples to tell: 2 cover 3 % of it, most in load (train.py:88)" */
void gaps_add_doubt(struct buf *out, const struct gap_host *host,
                    const struct stack_places *places);

/* "in its gaps the host waited for the disk for 61 %, in load (train.py:88); it slept ..." */
void gaps_add_waits(struct buf *out, const struct gap_waits *waits, const struct gap_whos *whos,
                    struct stack_places *places);

/* "waited for the disk for 61 %, in load (train.py:88)" */
void gaps_add_wait(struct buf *out, const struct gap_waits *waits, enum gap_wait wait,
                   const struct gap_whos *whos, struct stack_places *places);

/* Where the host was in the steady gaps of these causes, bits of 1 << enum gap_cause. */
void gaps_host_of(const struct gap_line *gpu, unsigned causes, struct stack_places *places,
                  struct gap_host *host);

void gaps_calls_of(const struct gap_line *gpu, unsigned causes, struct stack_places *places,
                   struct gap_host *calls);

/* Without the gaps that are apart. */
uint64_t gaps_steady_ns(const struct gap_line *gpu);

bool gaps_is_busy(const struct gap_line *gpu); /* for 90 % of that or more */

/* 31.4 for 314 of 1000, 0 of 0. */
double gaps_percent(uint64_t part, uint64_t whole);

#endif
