/* SPDX-License-Identifier: MIT */
/*
 * The account of time: every nanosecond of the measured time of each GPU, or where GPU times were
 * not recorded of each thread that launches, has one cause.
 *
 * What a GPU runs is a cause by itself; so is waiting in kernels of communication for a peer, whose
 * own time then says why. What it does not run is walked back from the work that ended the pause:
 * was it asked for already, else what did the thread do that asked for it too late, in the pause
 * or, where that is short, since it had asked for something before? Time in which
 * a thread was blocked is given on to the thread that woke it, in any process of the recording, and
 * so on: in the end somebody ran, slept, or waited for a device. Causes are added up by time.
 */
#pragma once

#include "account/facts.h"

enum account_cause {
	ACCOUNT_UNKNOWN,
	ACCOUNT_HOST, /* the host outside of CUDA: whether it ran or waited was not recorded */
	/* What runs on the GPU: */
	ACCOUNT_KERNELS,
	ACCOUNT_COPIES,
	ACCOUNT_COMMUNICATION, /* kernels of communication, all ranks that are known in one */
	ACCOUNT_GPU_WAIT,      /* without GPU times: the host waits for what it runs */
	/* It was asked for, and did not begin: */
	ACCOUNT_TURNAROUND,  /* what a GPU takes from one piece of work to the next */
	ACCOUNT_STREAM_WAIT, /* for an event, a host function, another stream */
	/* It was asked for too late. The host was in calls of CUDA: */
	ACCOUNT_LAUNCHING, /* and between launches that follow on each other */
	ACCOUNT_SYNCHRONISATION,
	ACCOUNT_ALLOCATION,
	ACCOUNT_COPY_CALL,
	ACCOUNT_DRIVER,
	/* it was not: */
	ACCOUNT_COMPUTING,
	ACCOUNT_COMPILING, /* a compiler runs, of kernels mostly */
	ACCOUNT_GIL,       /* another thread had it, and ran there */
	ACCOUNT_NO_CPU,
	ACCOUNT_SLEEP,
	ACCOUNT_DISK,
	ACCOUNT_NETWORK,
	ACCOUNT_PIPE,
	ACCOUNT_LOCK,
	ACCOUNT_CHILD,
	ACCOUNT_FAULT,
	ACCOUNT_SWAP,
	ACCOUNT_OTHER_WAIT, /* events of several files, a device, another system call */
	ACCOUNT_CAUSES,
};

const char *account_cause_name(enum account_cause cause);  /* "sleep": a word, for programs */
const char *account_cause_text(enum account_cause cause);  /* "asleep": half a line */
const char *account_cause_about(enum account_cause cause); /* what it means: a sentence */

/* What a thread waits for that is blocked so. */
enum account_cause account_cause_of_rest(const struct fact_rest *rest);

/* Nothing can be changed by it but what is recorded. */
static inline bool account_cause_is_unknown(enum account_cause cause)
{
	return cause <= ACCOUNT_HOST;
}

/* A thread runs on a CPU, outside of CUDA. */
static inline bool account_cause_computes(enum account_cause cause)
{
	return cause == ACCOUNT_COMPUTING || cause == ACCOUNT_COMPILING;
}

/* A wait on the way from the GPU's pause to its cause. Numbers; 0: none. */
struct account_via {
	uint32_t before;          /* the wait that this one is in; 0: none */
	enum account_cause cause; /* what was waited for: pipe, lock, gil, communication */
	uint32_t thread;          /* that waited; FACTS_NONE: a GPU did */
	uint32_t chain;
};

struct accounts;
struct account_part;

/* Of a GPU in kernels of communication, for others that were not there yet: that is the others'
 * matter, however fast its own process is. */
bool account_part_is_for_peers(const struct accounts *accounts, const struct account_part *part);

/* Time of one cause, place and thread. */
struct account_part {
	enum account_cause cause;
	uint32_t chain;
	uint32_t thread; /* whose time it was; FACTS_NONE: of no thread */
	uint32_t via;
	uint32_t rival; /* ACCOUNT_NO_CPU: the process that had the CPU; 0: not known */
	bool awaited;   /* ACCOUNT_LAUNCHING: see struct fact_call; ACCOUNT_KERNELS: another stream
	                   waits for them, see gpu_awaited_since() */
	double ns;      /* parts of an account add up to its time */
	double gain_ns; /* of the critical path, whatever else it would have been hidden by */
	uint64_t count; /* stretches, or samples */
	const struct fact_rest *longest; /* of stretches of blocked time; NULL: none */
	const struct fact_work *work;    /* of work of the GPU its longest; NULL: none */
	const struct fact_call *call;    /* of calls the longest; NULL: none */
	uint64_t call_ns;                /* and how long that is */
};

struct account {
	const struct process *process;
	uint32_t gpu, device; /* FACTS_NONE: of a thread */
	uint32_t thread;      /* that asks for most of its work */
	uint64_t begin_ns, end_ns;
	uint64_t first_ns;        /* its first work: before begin_ns where it starts for long */
	uint64_t not_measured_ns; /* within */
	double ns;                /* that have causes: what parts add up to */
	struct account_part *parts;
	size_t n_parts;
	bool no_room;                    /* for all of its places */
	double longest_stream_ns;        /* of a GPU: of the stream that had most to run */
	double sampled_ns, unsampled_ns; /* of time on a CPU: with places by samples, and by calls
	                                    alone */
};

/* Of the causes from one to another, of their numbers. */
double account_ns(const struct account *account, enum account_cause first, enum account_cause last);

#define ACCOUNTS_MAX 64 /* those with most work; the rest is counted */

struct accounts {
	struct account *of;
	size_t n, left_out;
	struct account_via *vias; /* from 1 on */
	size_t n_vias;
};

/* After facts_end(); both live as long as the facts, and the source's objects. */
void accounts_make(struct accounts *accounts, const struct facts *facts);
void accounts_clear(struct accounts *accounts);

/* The same accounts again, each from a time on; 0: from its first work. */
void accounts_make_again(struct accounts *accounts, const struct facts *facts,
                         const uint64_t *from_ns);

#define ACCOUNT_BUDGET                                                                             \
	(1u << 28) /* stretches, of all accounts: no recording that is one needs it */

/* Of those spans of an account, in their order; of the budget each stretch takes one. */
struct gpu_time;
void account_of_spans(struct account *part, const struct facts *facts, struct gpu_time *gpus,
                      const struct account *of, const struct fact_span *spans, size_t n,
                      uint64_t *budget);

/* The time of a thread in that of an account, while the GPU was busy, too: what the host has to do
 * by itself. Numbers of waits are its own ones; those, and its parts, are the caller's. */
void account_of_thread_alone(struct account *alone, const struct facts *facts,
                             const struct account *of, uint32_t thread, uint64_t *budget,
                             struct account_via **vias, size_t *n_vias);
