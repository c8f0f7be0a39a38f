/* SPDX-License-Identifier: MIT */
/*
 * How long each GPU, and each stream of it, was busy and idle, and why it was idle. Idle is what
 * no activity covers from the first to the last one; the time between two windows of measuring is
 * neither. All gaps are counted with their causes; those of at least a threshold by themselves,
 * and the longest of them are kept. What a GPU does most of the time, its steady state, is told
 * beside all of it: without the few gaps that are apart (gap_longest.h).
 */
#ifndef CUSCOPE_REPORT_GAPS_GAPS_H
#define CUSCOPE_REPORT_GAPS_GAPS_H

#include "report/gaps/gap_cause.h"
#include "report/gaps/gap_waits.h"

#define GAPS_DEVICES   64   /* that are told apart; */
#define GAPS_PROCESSES 1024 /* on all devices; */
#define GAPS_STREAMS   1024 /* of all processes: what is beyond counts for the others only */

struct work;

struct gaps_options {
	uint64_t threshold_ns;
	size_t longest;    /* gaps kept of GPUs, and as many of streams */
	struct work *work; /* its window, or NULL: see work_share() */
};

struct gap_sum {
	uint64_t count, ns; /* of gaps of at least the threshold */
	uint64_t longest_ns;
	uint64_t short_count, short_ns; /* of all others */
	/* Of all: */
	uint64_t host_ns, cuda_ns;   /* before the host asked, where it was too late; in calls */
	const struct function *most; /* the call that took most of them, NULL: none; of a GPU */
	uint64_t most_ns;
};

struct gpu_gap {
	uint32_t device;
	uint64_t begin_ns, end_ns;
	struct gap_work before, after;
	struct gap_verdict verdict;
	/* With samples, where the cause is the host: */
	const char *place; /* where it was for most of the gap; NULL: not known */
	uint64_t place_ns;
	struct gap_stacks *stacks; /* of this gap alone; NULL: they are with all others */
	/* Where the cause is the host, and it is recorded what threads wait for: */
	enum gap_wait wait;      /* what most of the host's time was, */
	uint64_t wait_ns;        /* and how long; 0: not known */
	struct gap_waits *waits; /* of this gap alone, as stacks */
};

static inline uint64_t gpu_gap_ns(const struct gpu_gap *gap)
{
	return gap->end_ns - gap->begin_ns;
}

/* A GPU, a process on one, or a stream. */
struct gap_line {
	uint32_t device;
	const struct process *process; /* NULL: a GPU */
	uint32_t context, stream;      /* of a stream; else 0 */
	bool knows_handle;
	uint64_t handle; /* how calls name the stream; 0: the default one */
	uint64_t activities, first_ns, last_ns;
	uint64_t busy_ns, idle_ns, not_measured_ns; /* idle_ns: 0 of a process */
	struct gap_sum cause[GAP_CAUSES];
	uint64_t hta_ns[GAP_HTA_COUNT]; /* of a stream */
	/* Of a GPU: */
	struct gap_sum steady[GAP_CAUSES]; /* without the gaps that are apart, and longest_ns 0 */
	const struct gpu_gap *apart;       /* the longest first */
	size_t n_apart;
	uint64_t apart_ns;
	/* By cause: where the host was, without the gaps that are apart, which have their own. */
	const struct gap_stacks *host;
	const struct gap_stacks *calls; /* by the stacks of the calls: see gap_meanwhile.h */
	const struct gap_waits *waits;  /* of all gaps that are due to the host and not apart */
};

/* busy_ns and idle_ns together: what shares are of. */
uint64_t gap_line_span_ns(const struct gap_line *line);

/* What could not be told rightly; all 0: nothing. */
struct gaps_limits {
	uint64_t late;     /* activities that came when the gaps they cover were counted already */
	uint64_t left_out; /* activities of devices, processes or streams beyond those */
	uint64_t no_call;  /* gaps of at least the threshold: the call after them is not known */
};

struct consumer *gaps_new(const struct gaps_options *options);

/* After the last event, before what follows. */
void gaps_finish(struct consumer *gaps);

/* In the order of their numbers; owned by `gaps`.. */
const struct gap_line *const *gaps_devices(struct consumer *gaps, size_t *n);
const struct gap_line *const *gaps_processes(struct consumer *gaps, size_t *n);
const struct gap_line *const *gaps_streams(struct consumer *gaps, size_t *n);

/* The longest first, of equal ones the earlier; owned by `gaps`, until the next call of each. */
struct gpu_gap *gaps_longest(struct consumer *gaps, size_t *n);
struct gpu_gap *gaps_longest_of_streams(struct consumer *gaps, size_t *n);

/* Who had CPUs, or ended waits; NULL: it was not recorded what threads wait for. */
const struct gap_whos *gaps_whos(struct consumer *gaps);

/* What places are called; NULL: there was neither a sample nor a call with its stack. */
struct stack_places *gaps_places(struct consumer *gaps);

struct gaps_limits gaps_limits(const struct consumer *gaps);

#endif
