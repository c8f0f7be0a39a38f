// SPDX-License-Identifier: MIT
#include "report/gaps/gap_cause.h"

#include <string.h>

#include "analysis/thread_ids.h"

/*
 * A call that returned this long before its work began had only just been made. On an H200 that had
 * nothing to do a kernel began 1.8 us after its launch had returned; several in a row, and graphs,
 * take longer.
 */
#define JUST_ASKED_NS 20000
/* One that was made in the gap, and whose work came later than this after it, was not why. */
#define LATENCY_MOST_NS 100000
/* From the return of a wait to the first work after it: not a slow launch of its own. */
#define AFTER_WAIT_NS 50000
/* A wait that ended this long before the GPU had nothing to do still is why. */
#define BEFORE_GAP_NS 20000
/*
 * Without the wait the host could have asked for more meanwhile. A queue holds 1024 launches, of
 * some 10 us each in a framework, so it takes at most that long to fill. A host that was away for
 * longer after its wait would have let the GPU run out of work all the same.
 */
#define WAIT_EXPLAINS_NS 10000000
/* Calls of one gap that are looked at: a loop of polls can be longer. */
#define CALLS_MOST 65536
#define TOLD_APART 8

static const struct {
	const char *name, *text;
} causes[GAP_CAUSES] = {
	[GAP_HOST] = { "host", "the host had not asked for the next work yet" },
	[GAP_SYNC] = { "synchronisation", "the host waited for the GPU before it asked for more" },
	[GAP_COPY] = { "copy", "the host, or the stream, waited for a copy" },
	[GAP_LATENCY] = { "launch latency",
	                  "the next work's call was running, or had just returned" },
	[GAP_WAITING] = { "waiting",
	                  "the stream waited for an event, another stream or a graph node" },
	[GAP_TURNAROUND] = { "turnaround",
	                     "the next work was queued: the GPU's own pause between two" },
	[GAP_OTHER_WORK] = { "other work",
	                     "the next work was asked for, but other streams had the GPU" },
	[GAP_UNKNOWN] = { "unknown", "nothing that was recorded explains it" },
};

const char *gap_cause_name(enum gap_cause cause)
{
	return causes[cause].name;
}

const char *gap_cause_text(enum gap_cause cause)
{
	return causes[cause].text;
}

static bool is_transfer(enum api_op op)
{
	return op == OP_COPY || op == OP_SET;
}

/* ---- what the thread did ------------------------------------------------------------------- */

struct meanwhile {
	struct {
		uint32_t function;
		const struct gap_call_kept *call;
		uint64_t ns;
	} part[TOLD_APART];
	size_t n;
	uint64_t cuda_ns;
};

static void count_call(struct meanwhile *meanwhile, const struct gap_call_kept *call, uint64_t ns)
{
	size_t i = 0;

	meanwhile->cuda_ns += ns;
	while (i < meanwhile->n && meanwhile->part[i].function != call->function)
		i++;
	if (i == TOLD_APART)
		return;
	if (i == meanwhile->n) {
		meanwhile->part[meanwhile->n++].function = call->function;
		meanwhile->part[i].call = call;
		meanwhile->part[i].ns = 0;
	}
	meanwhile->part[i].ns += ns;
}

/* cudaFree waits, too; cudaMemset only where it fills memory of the host. */
static bool waits(const struct gap_call_kept *call)
{
	return call->op == OP_SYNC ||
	       (!call->async && (call->op == OP_FREE || call->op == OP_COPY));
}

/*
 * Whether the host could not ask for more before this call let it. One that waits for the GPU held
 * it if the GPU ran out of work meanwhile, or just after: nobody looks further back. A copy did if
 * it lasted that long, one that should not wait if it was the last work, too: so does
 * cudaMemcpyAsync with memory that is not pinned.
 */
static bool held_the_host(const struct gap_call_kept *call, uint64_t begin_ns,
                          const struct gap_work *before)
{
	if (call->begin_ns >= begin_ns || call->end_ns == call->begin_ns)
		return false;
	if (!is_transfer((enum api_op)call->op))
		return waits(call);
	if (call->end_ns < begin_ns)
		return false;
	return waits(call) || (call->number && call->number == before->ask);
}

/* Back from the call that asked, to the begin of the gap. The call that held the host, or NULL. */
static const struct gap_call_kept *look_back(const struct gap_calls *calls,
                                             const struct gap_call_kept *ask, uint64_t begin_ns,
                                             const struct gap_work *before,
                                             struct meanwhile *meanwhile)
{
	const struct gap_call_kept *held = NULL, *call = ask;
	uint64_t until_ns = ask->begin_ns;

	for (size_t i = 0; i < CALLS_MOST; i++) {
		uint64_t from_ns, to_ns;

		call = gap_calls_before(calls, call);
		if (!call || call->end_ns + BEFORE_GAP_NS < begin_ns)
			break;
		if (!held && held_the_host(call, begin_ns, before))
			held = call;
		from_ns = call->begin_ns > begin_ns ? call->begin_ns : begin_ns;
		to_ns = call->end_ns < until_ns ? call->end_ns : until_ns;
		if (to_ns > from_ns) {
			count_call(meanwhile, call, to_ns - from_ns);
			until_ns =
				from_ns; /* no time counts twice, whatever a damaged trace says */
		}
	}
	return held;
}

/* Whether the host came back so long after what held it that this is not why it was late. */
static bool was_long_ago(const struct gap_call_kept *held, uint64_t begin_ns, uint64_t asked_ns)
{
	uint64_t from_ns = held->end_ns > begin_ns ? held->end_ns : begin_ns;

	if (asked_ns <= from_ns)
		return false;
	return asked_ns - from_ns > WAIT_EXPLAINS_NS &&
	       asked_ns - from_ns > (asked_ns - begin_ns) / 2;
}

/* The call that held the host: it waited for something else for more than half of the time. */
static const struct gap_call_kept *tell_meanwhile(const struct gap_calls *calls,
                                                  const struct meanwhile *meanwhile,
                                                  struct gap_verdict *verdict)
{
	const struct gap_call_kept *longest = NULL;

	verdict->cuda_ns = meanwhile->cuda_ns;
	for (size_t i = 0; i < meanwhile->n; i++) {
		if (meanwhile->part[i].ns <= verdict->longest_ns)
			continue;
		verdict->longest_ns = meanwhile->part[i].ns;
		longest = meanwhile->part[i].call;
	}
	verdict->longest = longest ? gap_call_function(calls, longest) : NULL;
	if (!longest || !waits(longest) || longest->op == OP_FREE) /* which can be slow by itself */
		return NULL;
	return verdict->longest_ns > verdict->host_ns / 2 ? longest : NULL;
}

/* ---- the verdict --------------------------------------------------------------------------- */

/* It was asked for in time: what kept it? */
static enum gap_cause cause_on_the_gpu(const struct gap_calls *calls,
                                       const struct gap_call_kept *ask, uint64_t begin_ns,
                                       const struct gap_work *next, unsigned release,
                                       struct gap_verdict *verdict)
{
	uint64_t end_ns = next->begin_ns, most_ns = JUST_ASKED_NS;

	verdict->by = gap_call_waited(calls, ask);
	if (verdict->by || verdict->in_graph || release & GAP_RELEASE_DEFAULT)
		return release & GAP_RELEASE_COPY ? GAP_COPY : GAP_WAITING;
	/* Memory that is not pinned goes through a buffer, which the host fills first. */
	if (is_transfer((enum api_op)ask->op) && ask->end_ns >= end_ns)
		return GAP_COPY;
	if (ask->end_ns >= begin_ns)
		most_ns = LATENCY_MOST_NS;
	if (ask->end_ns >= end_ns || end_ns - ask->end_ns <= most_ns)
		return GAP_LATENCY;
	if (release)
		return GAP_OTHER_WORK;
	return end_ns - begin_ns < GAP_HTA_KERNEL_NS ? GAP_TURNAROUND : GAP_UNKNOWN;
}

static enum gap_hta hta_of(const struct gap_call_kept *ask, uint64_t begin_ns,
                           const struct gap_work *next)
{
	if (ask && ask->begin_ns > begin_ns)
		return GAP_HTA_HOST_WAIT;
	return next->begin_ns - begin_ns < GAP_HTA_KERNEL_NS ? GAP_HTA_KERNEL_WAIT : GAP_HTA_OTHER;
}

static uint64_t time_in(const struct gap_call_kept *call, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from_ns = call->begin_ns > begin_ns ? call->begin_ns : begin_ns;
	uint64_t to_ns = call->end_ns < end_ns ? call->end_ns : end_ns;

	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static bool of_one_call(const struct gap_work *a, const struct gap_work *b)
{
	return a->correlation == b->correlation && a->process == b->process;
}

static void tell_threads(const struct gap_calls *calls, const struct gap_call_kept *ask,
                         const struct gap_work *before, struct gap_verdict *verdict)
{
	const struct gap_call_kept *earlier = gap_calls_find(calls, before->ask);

	verdict->tid = ask->tid;
	verdict->thread = ask->thread;
	verdict->thread_before = earlier ? earlier->thread : THREAD_ID_OTHERS;
	verdict->tid_before = earlier ? earlier->tid : 0;
}

bool gap_judge(const struct gap_calls *calls, uint64_t begin_ns, const struct gap_work *before,
               const struct gap_work *next, unsigned release, struct gap_verdict *verdict)
{
	const struct gap_call_kept *held = NULL, *longest, *ask;
	struct meanwhile meanwhile = { 0 };
	uint64_t late_ns, asked_ns;

	memset(verdict, 0, sizeof(*verdict));
	ask = gap_calls_find(calls, next->ask);
	verdict->hta = hta_of(ask, begin_ns, next);
	verdict->cause = GAP_UNKNOWN;
	if (!ask)
		return false;
	verdict->asked = true;
	tell_threads(calls, ask, before, verdict);
	verdict->ask = gap_call_function(calls, ask);
	verdict->asking_ns = time_in(ask, begin_ns, next->begin_ns);
	verdict->in_graph = ask->op == OP_GRAPH_LAUNCH && of_one_call(before, next);
	asked_ns = ask->begin_ns < next->begin_ns ? ask->begin_ns : next->begin_ns;
	if (asked_ns > begin_ns) {
		verdict->host_ns = asked_ns - begin_ns;
		held = look_back(calls, ask, begin_ns, before, &meanwhile);
		longest = tell_meanwhile(calls, &meanwhile, verdict);
		if (held && was_long_ago(held, begin_ns, asked_ns))
			held = NULL;
		held = held ? held : longest;
	}
	/* What took the larger part is the cause; after a wait it has to be much larger. */
	late_ns = next->begin_ns - begin_ns - verdict->host_ns;
	if (!verdict->host_ns ||
	    (late_ns > verdict->host_ns && !(held && late_ns <= AFTER_WAIT_NS))) {
		verdict->stack = ask->stack;
		verdict->cause = cause_on_the_gpu(calls, ask, begin_ns, next, release, verdict);
		return true;
	}
	verdict->late = true;
	if (!held)
		verdict->cause = GAP_HOST;
	else
		verdict->cause = is_transfer((enum api_op)held->op) ? GAP_COPY : GAP_SYNC;
	verdict->by = held ? gap_call_function(calls, held) : NULL;
	verdict->stack = held ? held->stack : ask->stack;
	return true;
}
