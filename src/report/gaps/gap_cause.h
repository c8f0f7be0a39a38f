/* SPDX-License-Identifier: MIT */
/*
 * Why nothing ran: the cause of one gap, from the work before and after it and the calls that
 * asked for them.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_CAUSE_H
#define CUSCOPE_REPORT_GAPS_GAP_CAUSE_H

#include "report/gaps/gap_calls.h"

/* Each is explained where it is decided, and for users in docs/report.md. */
enum gap_cause {
	GAP_HOST,       /* the host had not asked yet */
	GAP_SYNC,       /* it had not, because it had waited for the GPU */
	GAP_COPY,       /* it was in a copy that it waits for; a stream: a copy had to end first */
	GAP_LATENCY,    /* it was asking, or just had: the way from the call to the GPU */
	GAP_WAITING,    /* a stream waited for an event, a host function, another stream or node */
	GAP_TURNAROUND, /* the next was queued: what the GPU takes from one to the next */
	GAP_OTHER_WORK, /* a stream only: other streams had the GPU, nothing says that it waited */
	GAP_UNKNOWN,
	GAP_CAUSES,
};

const char *gap_cause_name(enum gap_cause cause); /* "host", "synchronisation", ... */
const char *gap_cause_text(enum gap_cause cause); /* half a line */

/* What a thread of the host did then is why: the GPU waited for it. */
static inline bool gap_cause_is_host(enum gap_cause cause)
{
	return cause <= GAP_LATENCY;
}

/* The three of Holistic Trace Analysis, by its rule and names. */
enum gap_hta { GAP_HTA_HOST_WAIT, GAP_HTA_KERNEL_WAIT, GAP_HTA_OTHER, GAP_HTA_COUNT };

/* Its default for kernels that follow on each other; its text says ns, its data are in us. */
#define GAP_HTA_KERNEL_NS 30000

/* What ran before or after a gap. */
struct gap_work {
	const struct process *process;
	const struct kernel *kernel; /* NULL: none, or none that is known */
	uint64_t begin_ns, end_ns;
	uint64_t correlation;
	uint64_t ask; /* number of its call, see work.h; 0: not known (yet) */
	uint32_t context, stream;
	enum activity_kind kind;
	enum api_direction direction;
};

/* What of other streams of the device ended when a stream's gap did; 0: nothing, or it is not a */
/* stream's gap. */
enum gap_release {
	GAP_RELEASE_WORK = 1 << 0,    /* anything */
	GAP_RELEASE_COPY = 1 << 1,    /* it was a copy or a set */
	GAP_RELEASE_DEFAULT = 1 << 2, /* it, or what followed, is on the default stream */
};

struct gap_verdict {
	enum gap_cause cause;
	enum gap_hta hta;
	bool asked;             /* the call that asked for the next work is known: */
	bool late;              /* too late: what happened on the host is the cause */
	bool in_graph;          /* both are of one launch of a graph */
	uint32_t tid;           /* its thread, */
	uint32_t thread;        /* the same as a dense id, */
	uint32_t thread_before; /* that of the work before (THREAD_ID_OTHERS: not known), */
	uint32_t tid_before;
	const struct function *ask; /* and what it was */
	const struct function *by; /* the call that the host or the stream waited in or for; NULL */
	const struct stack *stack; /* of that call, else of the one that asked; NULL: not known */
	uint64_t host_ns;          /* of the gap until that call began; of these: */
	uint64_t cuda_ns;          /* in calls of that thread */
	uint64_t asking_ns;        /* of the gap in the call that asked */
	const struct function *longest; /* of those the one that took most; NULL: there was none */
	uint64_t longest_ns;
};

/* `begin_ns` of the gap, whose end is the begin of `next`. False: the call is not known (yet). */
bool gap_judge(const struct gap_calls *calls, uint64_t begin_ns, const struct gap_work *before,
               const struct gap_work *next, unsigned release, struct gap_verdict *verdict);

#endif
