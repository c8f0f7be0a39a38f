// SPDX-License-Identifier: MIT
/*
 * Findings about streams: work that the legacy default stream puts one after the other. It waits
 * for all streams of its context that were not created with cudaStreamNonBlocking, and they wait
 * for it; and all threads share it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "report/findings/findings_rules.h"
#include "analysis/streams.h"
#include "analysis/thread_ids.h"

#define STREAM_NON_BLOCKING 1 /* the flag of both layers */
#define DEVICES             8 /* of a process that are told apart: by number, modulo this */
#define THREADS             64

enum stream_class {
	STREAM_OTHER,       /* waits for nobody, or is not known */
	STREAM_OF_ALL,      /* the legacy default stream */
	STREAM_WAITS_FOR_IT /* created without the flag */
};

struct known_stream {
	uint64_t handle;
	UT_hash_handle hh;
};

/* When what ran last on a device of a process ended. */
struct ends {
	uint64_t default_ns, blocking_ns;
	uint32_t default_tid;        /* that asked for it */
	uint64_t thread_ns[THREADS]; /* on the default stream, by tid modulo this */
};

struct default_process {
	struct known_stream *blocking;
	enum stream_class last;
	uint32_t last_tid; /* on the default stream */
	uint64_t gpu;      /* a device or context that was made current; another one: several */
	bool several_gpus;
	struct finding_loop works, streams, threads; /* threads, streams: changes */
	struct finding_cases waits;
	struct ends *ends; /* by device */
};

struct default_stream {
	struct default_process *processes;
	size_t n;
};

static void *make_default(void)
{
	return xcalloc(1, sizeof(struct default_stream));
}

static void free_default(void *state)
{
	struct default_stream *all = state;

	for (size_t i = 0; i < all->n; i++) {
		struct known_stream *stream, *next;

		HASH_ITER (hh, all->processes[i].blocking, stream, next) {
			HASH_DELETE(hh, all->processes[i].blocking, stream);
			free(stream);
		}
		free(all->processes[i].ends);
	}
	free(all->processes);
	free(all);
}

/* ---- streams ------------------------------------------------------------------------------- */

static struct known_stream *find(struct default_process *process, uint64_t handle)
{
	struct known_stream *found;

	HASH_FIND(hh, process->blocking, &handle, sizeof(handle), found);
	return found;
}

static void see_stream(struct default_process *process, const struct call *call)
{
	uint64_t handle = call->args.stream;
	const struct api_arg *args;
	struct known_stream *stream;
	uint64_t flags = 0;
	size_t n = api_args(call->function->api, &args);

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == T_STREAM)
			handle = call->args.arg[i];
		else if (args[i].type == T_HEX)
			flags = call->args.arg[i];
	}
	stream = find(process, handle);
	if (stream && (call->op == OP_STREAM_DESTROY || flags & STREAM_NON_BLOCKING)) {
		HASH_DELETE(hh, process->blocking, stream);
		free(stream);
	}
	if (stream || call->op == OP_STREAM_DESTROY || flags & STREAM_NON_BLOCKING || !handle ||
	    HASH_COUNT(process->blocking) >= STREAMS_MAX)
		return;
	stream = xcalloc(1, sizeof(*stream));
	stream->handle = handle;
	HASH_ADD(hh, process->blocking, handle, sizeof(stream->handle), stream);
}

static enum stream_class class_of(struct default_process *process, uint64_t stream)
{
	if (!stream || stream == STREAM_LEGACY)
		return STREAM_OF_ALL;
	if (stream == STREAM_PER_THREAD || (process->blocking && find(process, stream)))
		return STREAM_WAITS_FOR_IT;
	return STREAM_OTHER;
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool is_work(const struct finding_call *call)
{
	enum api_op op = call->call->op;

	return call->launch ||
	       ((op == OP_COPY || op == OP_SET) && api_is_async(call->call->function->api));
}

/* Default streams of two devices have nothing to do with each other. */
static void see_gpu(struct default_process *process, const struct call *call)
{
	const struct api_arg *args;
	uint64_t gpu;

	if (strcmp(call->function->name, "cudaSetDevice") &&
	    strcmp(call->function->name, "cuCtxSetCurrent"))
		return;
	if (!api_args(call->function->api, &args) ||
	    (args[0].type == T_CONTEXT && !call->args.arg[0]))
		return;
	gpu = call->args.arg[0] + (args[0].type == T_DEVICE); /* not 0 */
	if (args[0].type == T_CONTEXT)
		gpu |= (uint64_t)1 << 63;
	if (process->gpu && (process->gpu ^ gpu) >> 63 == 0 && process->gpu != gpu)
		process->several_gpus = true;
	process->gpu = gpu;
}

static void default_call(void *state, const struct finding_call *call)
{
	enum api_op op = call->call->op;
	struct default_stream *all = state;
	struct default_process *process;
	struct finding_example example;
	enum stream_class class;

	process = FINDING_AT(all->processes, all->n, call->process->id);
	if (op == OP_STREAM_CREATE || op == OP_STREAM_DESTROY)
		see_stream(process, call->call);
	else if (call->call->function->api && call->call->function->cls == CLASS_DEVICE)
		see_gpu(process, call->call);
	if (!is_work(call))
		return;
	example = finding_example_of(call);
	finding_case(finding_loop_at(&process->works, call->octave), &example);
	class = class_of(process, call_stream(call->call));
	if (class == STREAM_OTHER)
		return;
	if (process->last && process->last != class)
		finding_case(finding_loop_at(&process->streams, call->octave), &example);
	process->last = class;
	if (class != STREAM_OF_ALL)
		return;
	if (process->last_tid && process->last_tid != call->tid)
		finding_case(finding_loop_at(&process->threads, call->octave), &example);
	process->last_tid = call->tid;
}

/* ---- activities ---------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When it could have begun, and when what it had to let pass ended. */
static void default_times(const struct ends *ends, const struct work_call *call, uint64_t *ready,
                          uint64_t *passed)
{
	*ready = later(call->end_ns, ends->thread_ns[call->tid % THREADS]);
	*passed = ends->blocking_ns;
	if (ends->default_tid != call->tid)
		*passed = later(*passed, ends->default_ns);
}

static void default_asked(void *state, const struct work_done *done, const struct work_call *call,
                          const struct stack *stack)
{
	const struct activity *activity = done->activity;
	uint64_t ready = 0, passed = 0, end_ns = activity->end_ns;
	struct default_stream *all = state;
	struct default_process *process = FINDING_AT(all->processes, all->n, call->process->id);
	enum stream_class class = class_of(process, call->stream);
	struct ends *ends;

	if (class == STREAM_OTHER || !call->function->api || !api_is_async(call->function->api))
		return;
	if (!process->ends)
		process->ends = xcalloc(DEVICES, sizeof(*process->ends));
	ends = &process->ends[activity->device % DEVICES];
	if (class == STREAM_OF_ALL) {
		default_times(ends, call, &ready, &passed);
		if (end_ns >= ends->default_ns)
			ends->default_tid = call->tid;
		ends->default_ns = later(ends->default_ns, end_ns);
		ends->thread_ns[call->tid % THREADS] = end_ns;
	} else {
		ready = later(call->end_ns, ends->blocking_ns);
		passed = ends->default_ns;
		ends->blocking_ns = later(ends->blocking_ns, end_ns);
	}
	if (passed > activity->begin_ns)
		passed = activity->begin_ns;
	if (call->end_ns && passed > ready)
		finding_case(&process->waits,
		             &(struct finding_example){ .function = call->function,
		                                        .kernel = activity->kernel,
		                                        .tid = call->tid,
		                                        .begin_ns = call->begin_ns,
		                                        .duration_ns = work_call_ns(call),
		                                        .bytes = activity->bytes,
		                                        .cost_ns = passed - ready,
		                                        .stack = stack });
}

/* ---- the verdict --------------------------------------------------------------------------- */

static bool changes_often(uint64_t changes, uint64_t works)
{
	return changes >= 2 * LIMIT_LOOP_ROUNDS &&
	       (double)changes >= LIMIT_CHANGES_SHARE * (double)works;
}

static void say_changes(struct buf *text, uint64_t works, uint64_t streams, uint64_t threads)
{
	buf_printf(text, "in the steady part of the run, %llu launches, copies and sets",
	           (unsigned long long)works);
	if (changes_often(streams, works))
		buf_printf(text,
		           ", with %llu changes between the legacy default stream and streams "
		           "that wait for it",
		           (unsigned long long)streams);
	if (changes_often(threads, works))
		buf_printf(text,
		           ", with %llu changes of the thread that uses the legacy default "
		           "stream",
		           (unsigned long long)threads);
}

static void add_finding(const struct default_process *state, const struct finding_rule *rule,
                        const struct finding_verdicts *verdicts,
                        const struct finding_process *process)
{
	struct finding_cases works = finding_loop_end(&state->works, process->octave);
	struct finding_cases streams = finding_loop_end(&state->streams, process->octave);
	struct finding_cases threads = finding_loop_end(&state->threads, process->octave);
	const struct finding_cases *changes = &streams;
	struct buf text = { 0 };
	struct finding *finding;

	if (!changes_often(streams.count, works.count))
		changes = &threads;
	if (!changes_often(changes->count, works.count))
		return;
	if (process->gpu_times ? !finding_is_worth(process, state->waits.cost_ns)
	                       : state->several_gpus)
		return;
	finding = findings_add(verdicts, rule, process);
	say_changes(&text, works.count, streams.count, threads.count);
	if (process->gpu_times) {
		finding_set_cases(verdicts, finding, &state->waits);
		buf_printf(&text, "; %llu times work was ready and stood behind the other's",
		           (unsigned long long)state->waits.count);
		finding->estimate = "the time that this work stood ready; how much of it would be "
				    "saved depends on how much of the GPU one kernel fills. Work "
				    "that depends on each other has to wait anyway";
	} else {
		finding_set_cases(verdicts, finding, changes);
		finding->lost_ns = 0;
		finding->lost_known = false;
		finding->estimate = "not known without GPU times (--gpu); work that depends on "
				    "each other has to wait anyway";
	}
	finding_say(finding, &text);
	finding->suggestion = "streams created with cudaStreamNonBlocking for what is independent, "
			      "or nvcc --default-stream per-thread";
}

static void judge_default(void *state, const struct finding_rule *rule,
                          const struct finding_verdicts *verdicts)
{
	struct default_stream *all = state;

	for (size_t i = 0; i < all->n; i++) {
		const struct finding_process *process = finding_process(verdicts, i);

		if (process && process->launches >= LIMIT_LOOP_LAUNCHES)
			add_finding(&all->processes[i], rule, verdicts, process);
	}
}

const struct finding_rule rule_default_stream = {
	.name = "default_stream",
	.title = "work that the default stream puts one after the other",
	.create = make_default,
	.call = default_call,
	.asked = default_asked,
	.judge = judge_default,
	.free = free_default,
};
