// SPDX-License-Identifier: MIT
#include "capture/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uthash.h>

#include "base/budget.h"
#include "base/xalloc.h"
#include "capture/call_words.h"
#include "capture/graph_captures.h"
#include "capture/gpu/correlate.h"
#include "capture/kernels.h"
#include "capture/proc.h"
#include "probe/memory.h"
#include "trace/consumers.h"

#define RECENT        64          /* a power of two */
#define THREADS_MAX   16384       /* beyond, the one that came first is forgotten */
#define LINGER_NS     1000000ull  /* see process_exited(); in the time of records */
#define OVERDUE_NS    50000000ull /* without records: longer than they wait for their order */
#define PROCESSES_MAX 32768       /* ever; beyond, all that come are one: see others() */

struct known_process {
	uint32_t pid;
	struct process *process;
	bool announced;   /* consumers know of it */
	bool calibrated;  /* its first named handle was compared with what the handle leads to */
	uint64_t calls;   /* correlation of its last one */
	uint64_t exit_ns; /* its end was told of, but maybe not by its last thread; else 0 */
	UT_hash_handle hh;
};

/* One function, with what is asked about it at every call. */
struct pipeline_known_function {
	struct function function;
	bool returns_status;
	bool per_thread; /* its stream 0 is the thread's own */
};

struct pipeline_known_thread {
	uint32_t tid, tgid;
	char *text; /* a string argument that waits for its call */
	uint16_t text_hook;
	const struct kernel *launched; /* by the last launch, which began at: */
	uint64_t launched_ns;
	uint64_t copied_bytes; /* by the last copy whose call says how many, which began at: */
	uint64_t copied_ns;
	UT_hash_handle hh;
};

struct pipeline {
	struct pipeline_options options;
	struct known_process *processes;
	struct pipeline_known_thread *threads;
	/* the last ones met, by their numbers' low bits: a look-up at every call costs more */
	struct known_process *recent_process[RECENT];
	struct pipeline_known_thread *recent_thread[RECENT];
	struct process **all; /* every process ever, for freeing */
	size_t n_all, n_ending;
	struct process ended;
	struct process *others; /* NULL until there are more than PROCESSES_MAX */
	bool others_announced;
	uint64_t others_calls, n_others;
	struct pipeline_known_function *functions[WIRE_HOOKS_MAX];
	uint32_t n_functions;
	struct kernels *kernels;
	struct graph_captures *captures;
	uint64_t calls, time_ns; /* time of the last record */
	uint64_t lost_texts;
	struct wire_name name; /* the one being read: too large for the stack of a deep caller */
};

struct pipeline *pipeline_new(const struct pipeline_options *options)
{
	struct pipeline *pipeline = xcalloc(1, sizeof(*pipeline));

	pipeline->options = *options;
	pipeline->ended = (struct process){ .id = PROCESSES_MAX + 1, .comm = "[ended]" };
	pipeline->kernels = kernels_new(options->budget);
	pipeline->captures = graph_captures_new();
	return pipeline;
}

static void thread_drop(struct pipeline *pipeline, struct pipeline_known_thread *thread)
{
	pipeline->recent_thread[thread->tid % RECENT] = NULL;
	HASH_DEL(pipeline->threads, thread);
	free(thread->text);
	free(thread);
}

void pipeline_free(struct pipeline *pipeline)
{
	struct known_process *process, *next_process;
	struct pipeline_known_thread *thread, *next_thread;

	if (!pipeline)
		return;
	HASH_ITER (hh, pipeline->threads, thread, next_thread) {
		thread_drop(pipeline, thread);
	}
	HASH_ITER (hh, pipeline->processes, process, next_process) {
		HASH_DEL(pipeline->processes, process);
		free(process);
	}
	for (size_t i = 0; i < pipeline->n_all; i++)
		free(pipeline->all[i]);
	free(pipeline->others);
	for (size_t i = 0; i < WIRE_HOOKS_MAX; i++)
		free(pipeline->functions[i]);
	free(pipeline->all);
	graph_captures_free(pipeline->captures);
	kernels_free(pipeline->kernels);
	free(pipeline);
}

static int settle_ends(struct pipeline *pipeline, uint64_t until_ns, struct err *err);

/* ---- consumers ----------------------------------------------------------------------------- */

static int push(struct pipeline *pipeline, const struct event *event, struct err *err)
{
	return consumers_event(pipeline->options.consumers, pipeline->options.n_consumers, event,
	                       err);
}

int pipeline_begin(struct pipeline *pipeline, const struct run_info *run, struct err *err)
{
	return consumers_begin(pipeline->options.consumers, pipeline->options.n_consumers, run,
	                       err);
}

int pipeline_flush(struct pipeline *pipeline, struct err *err)
{
	struct timespec now;
	uint64_t until_ns;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	r = until_ns > OVERDUE_NS ? settle_ends(pipeline, until_ns - OVERDUE_NS, err) : 0;
	if (r)
		return r;
	return consumers_flush(pipeline->options.consumers, pipeline->options.n_consumers, err);
}

int pipeline_end(struct pipeline *pipeline, const struct run_info *run, struct err *err)
{
	int r = settle_ends(pipeline, UINT64_MAX, err);

	if (r)
		return r;
	return consumers_end(pipeline->options.consumers, pipeline->options.n_consumers, run, err);
}

uint64_t pipeline_calls(const struct pipeline *pipeline)
{
	return pipeline->calls;
}

uint64_t pipeline_lost_texts(const struct pipeline *pipeline)
{
	return pipeline->lost_texts;
}

/* ---- processes and threads ----------------------------------------------------------------- */

static int announce(struct pipeline *pipeline, enum event_type type, const struct process *process,
                    uint64_t now_ns, struct err *err)
{
	const struct event event = {
		.type = type, .time_ns = now_ns, .process = process, .tid = process->pid
	};

	return push(pipeline, &event, err);
}

/*
 * Consumers keep what they know of a process to the end, so there is a limit to how many they are
 * told of. The processes that come after share one, which never ends, and its numbers of calls.
 */
static struct process *others(struct pipeline *pipeline)
{
	pipeline->n_others++;
	if (!pipeline->others) {
		pipeline->others = xcalloc(1, sizeof(*pipeline->others));
		pipeline->others->id = PROCESSES_MAX;
		snprintf(pipeline->others->comm, sizeof(pipeline->others->comm), "[others]");
	}
	return pipeline->others;
}

const struct process *pipeline_ended(const struct pipeline *pipeline)
{
	return &pipeline->ended;
}

uint64_t pipeline_other_processes(const struct pipeline *pipeline)
{
	return pipeline->n_others;
}

/* A new incarnation: at its first sight, and after exec. */
static struct known_process *process_make(struct pipeline *pipeline, uint32_t pid, const char *comm)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (!known) {
		known = xcalloc(1, sizeof(*known));
		known->pid = pid;
		HASH_ADD(hh, pipeline->processes, pid, sizeof(known->pid), known);
	}
	known->announced = false;
	known->calibrated = false;
	known->calls = 0;
	if (pipeline->n_all >= PROCESSES_MAX) {
		known->process = others(pipeline);
		return known;
	}
	known->process = xcalloc(1, sizeof(*known->process));
	known->process->id = (uint32_t)pipeline->n_all;
	known->process->pid = pid;
	proc_comm(pid, known->process->comm, comm);
	pipeline->all = xrealloc(pipeline->all, (pipeline->n_all + 1) * sizeof(*pipeline->all));
	pipeline->all[pipeline->n_all++] = known->process;
	return known;
}

/* Consumers learn of a process with the first of its events: what names it may come before that. */
static int process_announce(struct pipeline *pipeline, struct known_process *known,
                            const char *comm, uint64_t now_ns, struct err *err)
{
	if (known->announced)
		return 0;
	known->announced = true;
	if (known->process == pipeline->others) {
		if (pipeline->others_announced)
			return 0;
		pipeline->others_announced = true;
	}
	if (comm && !known->process->comm[0])
		snprintf(known->process->comm, sizeof(known->process->comm), "%.15s", comm);
	return announce(pipeline, EVENT_PROCESS, known->process, now_ns, err);
}

static int process_get(struct pipeline *pipeline, uint32_t pid, const char *comm, uint64_t now_ns,
                       struct known_process **process, struct err *err)
{
	struct known_process **recent = &pipeline->recent_process[pid % RECENT];

	if (*recent && (*recent)->pid == pid) {
		*process = *recent;
		return 0;
	}
	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), *process);
	if (!*process)
		*process = process_make(pipeline, pid, comm);
	*recent = *process;
	return process_announce(pipeline, *process, comm, now_ns, err);
}

static int process_gone(struct pipeline *pipeline, uint32_t pid, uint64_t now_ns, struct err *err)
{
	struct pipeline_known_thread *thread, *next;
	struct known_process *known;
	int r;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (!known)
		return 0;
	r = known->announced && known->process != pipeline->others
	            ? announce(pipeline, EVENT_EXIT, known->process, now_ns, err)
	            : 0;
	pipeline->recent_process[pid % RECENT] = NULL;
	pipeline->n_ending -= known->exit_ns != 0;
	HASH_DEL(pipeline->processes, known);
	free(known);
	kernels_forget(pipeline->kernels, pid);
	graph_captures_forget(pipeline->captures, pid);
	budget_end(pipeline->options.budget, pid);
	HASH_ITER (hh, pipeline->threads, thread, next) {
		if (thread->tgid == pid)
			thread_drop(pipeline, thread);
	}
	return r;
}

/* ---- ends that are told of twice ----------------------------------------------------------- */

/*
 * Of threads that exit at the same time several find themselves the last one, and the later of them
 * may yet tell of a call that it was in. So the end of a process with more threads is believed a
 * little later, or when it is told of again, and comes once, behind everything of it.
 */
static bool has_other_threads(const struct pipeline *pipeline, uint32_t pid, uint32_t tid)
{
	const struct pipeline_known_thread *thread;

	for (thread = pipeline->threads; thread; thread = thread->hh.next)
		if (thread->tgid == pid && thread->tid != tid)
			return true;
	return false;
}

static int process_exited(struct pipeline *pipeline, const struct wire_head *head, struct err *err)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &head->tgid, sizeof(head->tgid), known);
	if (!known)
		return 0;
	if (known->exit_ns || !has_other_threads(pipeline, head->tgid, head->tid))
		return process_gone(pipeline, head->tgid, head->time_ns, err);
	known->exit_ns = head->time_ns;
	pipeline->n_ending++;
	return 0;
}

/* Believes the ends that were told of before `until_ns`; they come in order of time. */
static int settle_ends(struct pipeline *pipeline, uint64_t until_ns, struct err *err)
{
	struct known_process *known, *next;
	int r = 0;

	if (!pipeline->n_ending)
		return 0;
	HASH_ITER (hh, pipeline->processes, known, next) {
		uint64_t at =
			known->exit_ns > pipeline->time_ns ? known->exit_ns : pipeline->time_ns;

		if (!r && known->exit_ns && known->exit_ns < until_ns)
			r = process_gone(pipeline, known->pid, at, err);
	}
	return r;
}

/* A pid that is given out again. */
static int settle_end_of(struct pipeline *pipeline, uint32_t pid, uint64_t now_ns, struct err *err)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return known && known->exit_ns ? process_gone(pipeline, pid, now_ns, err) : 0;
}

static int on_thread(struct pipeline *pipeline, const struct wire_process *record, struct err *err)
{
	const struct wire_head *head = &record->head;
	struct known_process *process;
	struct pipeline_known_thread *known;
	struct thread thread = { 0 };
	struct event event = { .type = EVENT_THREAD, .time_ns = head->time_ns, .tid = head->tid };
	int r;

	HASH_FIND(hh, pipeline->threads, &head->tid, sizeof(head->tid), known);
	if (known) /* a reused tid starts afresh */
		thread_drop(pipeline, known);
	r = process_get(pipeline, head->tgid, record->comm, head->time_ns, &process, err);
	if (r)
		return r;
	snprintf(thread.comm, sizeof(thread.comm), "%.15s", record->comm);
	thread.priority = proc_priority(head->tgid, head->tid);
	event.process = process->process;
	event.thread = &thread;
	return push(pipeline, &event, err);
}

static int on_process(struct pipeline *pipeline, const struct wire_process *record, struct err *err)
{
	const struct wire_head *head = &record->head;
	struct known_process *process;
	int r;

	switch (head->type) {
	case WIRE_FORK:
		r = settle_end_of(pipeline, record->other, head->time_ns, err);
		return r ? r
		         : process_get(pipeline, record->other, record->comm, head->time_ns,
		                       &process, err);
	case WIRE_EXIT:
		return process_exited(pipeline, head, err);
	case WIRE_EXEC:
		/* what the old program held is gone: for the consumers it ends here */
		HASH_FIND(hh, pipeline->processes, &head->tgid, sizeof(head->tgid), process);
		if (!process)
			return 0; /* no target yet: the capture decides (--name) */
		r = process_gone(pipeline, head->tgid, head->time_ns, err);
		return r ? r
		         : process_get(pipeline, head->tgid, record->comm, head->time_ns, &process,
		                       err);
	default: /* WIRE_THREAD */
		return on_thread(pipeline, record, err);
	}
}

static struct pipeline_known_thread *thread_get(struct pipeline *pipeline, uint32_t tgid,
                                                uint32_t tid)
{
	struct pipeline_known_thread **recent = &pipeline->recent_thread[tid % RECENT];
	struct pipeline_known_thread *thread = *recent;

	if (thread && thread->tid == tid)
		return thread;
	HASH_FIND(hh, pipeline->threads, &tid, sizeof(tid), thread);
	if (thread) {
		*recent = thread;
		return thread;
	}
	if (HASH_COUNT(pipeline->threads) >= THREADS_MAX)
		thread_drop(pipeline, pipeline->threads);
	thread = xcalloc(1, sizeof(*thread));
	thread->tid = tid;
	thread->tgid = tgid;
	HASH_ADD(hh, pipeline->threads, tid, sizeof(thread->tid), thread);
	return thread;
}

/* ---- names --------------------------------------------------------------------------------- */

/* The first handle whose name a call gave tells whether handles hold it where we look. */
static void calibrate(struct pipeline *pipeline, const struct wire_name *name)
{
	struct known_process *process;
	struct wire_state *state = pipeline->options.state;
	const struct module *module;
	const struct hook *hook = modules_hook(pipeline->options.modules, name->head.hook, &module);

	HASH_FIND(hh, pipeline->processes, &name->head.tgid, sizeof(name->head.tgid), process);
	if (!process || process->calibrated || !hook || hook->layer != LAYER_DRIVER)
		return;
	process->calibrated = true;
	state->name_offset =
		kernels_calibrate(name->head.tgid, name->key, name->text, state->name_offset);
}

/* The text of a name; read from the process where the eBPF side could not wait for its page. */
static bool name_text(const struct wire_name *name, struct wire_name *whole)
{
	memcpy(whole, name, WIRE_NAME_BYTES(name->head.bytes));
	return name->head.bytes ||
	       memory_read_string(name->head.tgid, name->from, whole->text, sizeof(whole->text));
}

static void on_name(struct pipeline *pipeline, const struct wire_name *record)
{
	const struct hook *hook = modules_hook(pipeline->options.modules, record->head.hook, NULL);
	struct wire_name *name = &pipeline->name;
	struct pipeline_known_thread *thread;

	if (!name_text(record, name)) {
		/* a launch's own name is asked for again by the next, and else not resolved */
		pipeline->lost_texts += record->source != NAME_OF_HANDLE;
		return;
	}
	if (name->source == NAME_OF_HANDLE) {
		kernels_named(pipeline->kernels, name);
		return;
	}
	if (hook && hook->api && api_op(hook->api) == OP_NAME_KERNEL) {
		if (name->source == NAME_OF_CALL)
			calibrate(pipeline, name);
		kernels_named(pipeline->kernels, name);
	}
	thread = thread_get(pipeline, name->head.tgid, name->head.tid);
	free(thread->text);
	thread->text = xstrdup(name->text);
	thread->text_hook = name->head.hook;
}

/* ---- calls --------------------------------------------------------------------------------- */

static const struct pipeline_known_function *
function_get(struct pipeline *pipeline, const struct hook *hook, const struct module *module)
{
	struct pipeline_known_function *known = pipeline->functions[hook->id];
	struct function *function;

	if (known)
		return known;
	known = xcalloc(1, sizeof(*known));
	known->returns_status = api_returns_status(hook->name);
	known->per_thread = api_is_per_thread(hook->name);
	function = &known->function;
	function->id = pipeline->n_functions++;
	function->name = hook->name;
	function->lib = module->name;
	function->layer = hook->layer;
	function->cls = api_class(hook->name);
	function->api = hook->api;
	pipeline->functions[hook->id] = known;
	return known;
}

/* The kernel of a launch; an outer launch without a name takes the one of the call inside it. */
static void find_kernel(struct pipeline *pipeline, struct call *call, uint32_t tgid,
                        struct pipeline_known_thread *thread)
{
	call->kernel = kernels_find(pipeline->kernels, tgid, call->args.handle);
	if (!call->kernel->resolved && thread->launched && thread->launched->resolved &&
	    thread->launched_ns > call->begin_ns)
		call->kernel = thread->launched;
	thread->launched = call->kernel;
	thread->launched_ns = call->begin_ns;
}

/* cuKernelGetFunction, __cudaGetKernel: a new handle for a kernel that is known by another. */
static void alias_kernel(struct pipeline *pipeline, const struct call *call, uint32_t tgid)
{
	const struct api_arg *args;
	size_t count = api_args(call->function->api, &args);
	uint64_t made = 0, known = 0;

	for (size_t i = 0; i < count; i++) {
		if (args[i].type != T_KERNEL && args[i].type != T_HOSTFUN)
			continue;
		if (args[i].out)
			made = call->args.arg[i];
		else
			known = call->args.arg[i];
	}
	kernels_alias(pipeline->kernels, tgid, made, known);
}

static void follow_state(struct pipeline *pipeline, struct call *call, uint32_t tgid, uint32_t tid)
{
	if ((call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH || call->op == OP_COPY ||
	     call->op == OP_SET || call->op == OP_HOST_LAUNCH) &&
	    graph_captures_stream(pipeline->captures, tgid, tid, call->args.stream))
		call->flags |= CALL_CAPTURED;
	if (!call_took_effect(call))
		return;
	graph_captures_follow(pipeline->captures, tgid, tid, call);
	if (call->op == OP_NAME_KERNEL)
		alias_kernel(pipeline, call, tgid);
	else if (call->op == OP_MODULE_UNLOAD)
		kernels_expire(pipeline->kernels, tgid);
}

/*
 * What a call of the runtime does not say, the driver's call within it may: a copy from or to an
 * array counts elements in the one and bytes in the other.
 */
static void find_size(struct pipeline_known_thread *thread, struct call *call)
{
	if (call->op != OP_COPY && call->op != OP_SET)
		return;
	if (!call->args.size_unknown) {
		thread->copied_bytes = call->args.bytes;
		thread->copied_ns = call->begin_ns;
	} else if (thread->copied_ns > call->begin_ns && call->function->layer == LAYER_RUNTIME) {
		call->args.bytes = thread->copied_bytes;
		call->args.size_unknown = false;
	} else {
		call->flags |= CALL_SIZE_UNKNOWN;
	}
}

static void interpret(struct pipeline *pipeline, struct call *call, const struct hook *hook,
                      bool per_thread, const struct wire_call *record,
                      struct pipeline_known_thread *thread)
{
	uint32_t tgid = record->head.tgid, tid = record->head.tid;
	struct api_raw raw;

	if (thread->text && thread->text_hook == hook->id)
		call->text = thread->text;
	if (!hook->api)
		return;
	call_words_raw(&raw, record, &hook->plan);
	api_decode(hook->api, ABI_NATIVE, &raw, &call->args);
	call->op = api_op(hook->api);
	if (per_thread && call->args.has_stream && !call->args.stream)
		call->args.stream = STREAM_PER_THREAD;
	if (call->op == OP_LAUNCH)
		find_kernel(pipeline, call, tgid, thread);
	find_size(thread, call);
	if (record->head.type == WIRE_CALL)
		follow_state(pipeline, call, tgid, tid);
}

static uint64_t *calls_of(struct pipeline *pipeline, struct known_process *process)
{
	return process->process == pipeline->others ? &pipeline->others_calls : &process->calls;
}

/*
 * The number of a call in its process; one that an activity asked for already keeps it. And what of
 * its time was the agent's.
 */
static uint64_t number_call(struct pipeline *pipeline, struct known_process *process,
                            const struct wire_head *head, struct call *call)
{
	const struct correlate_span span = {
		.pid = head->tgid,
		.tid = head->tid,
		.begin_ns = call->begin_ns,
		.end_ns = call->flags & CALL_UNFINISHED ? head->time_ns : call->end_ns,
		.work = call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH ||
		        call->op == OP_COPY || call->op == OP_SET,
	};
	uint64_t *calls = calls_of(pipeline, process), next = *calls + 1, number = next;

	if (pipeline->options.correlate && call_has_end(call))
		call->overhead_ns = correlate_own_ns(pipeline->options.correlate, &span);
	if (pipeline->options.correlate && !(call->flags & CALL_NESTED))
		number = correlate_call(pipeline->options.correlate, &span, next);
	if (number == next)
		*calls = next;
	return number;
}

static void tell_launch(struct pipeline *pipeline, uint32_t pid, const struct call *call)
{
	const uint32_t none =
		CALL_NESTED | CALL_NO_RETURN | CALL_UNFINISHED | CALL_CAPTURED | CALL_FAILED;

	if (pipeline->options.launched && !(call->flags & none) &&
	    (call->op == OP_LAUNCH || call->op == OP_GRAPH_LAUNCH))
		pipeline->options.launched(pipeline->options.data, pid, call);
}

static int on_call(struct pipeline *pipeline, const struct wire_call *record, struct err *err)
{
	const struct module *module;
	const struct hook *hook =
		modules_hook(pipeline->options.modules, record->head.hook, &module);
	struct event event = { .type = record->head.type == WIRE_BEGIN ? EVENT_CALL_BEGIN
		                                                       : EVENT_CALL,
		               .time_ns = record->head.time_ns,
		               .tid = record->head.tid };
	const struct pipeline_known_function *function;
	struct known_process *process;
	struct pipeline_known_thread *thread;
	struct call call = { 0 };
	int r;

	if (!hook)
		return 0; /* cuscope's own calibration */
	r = process_get(pipeline, record->head.tgid, NULL, event.time_ns, &process, err);
	if (r)
		return r;
	function = function_get(pipeline, hook, module);
	call.function = &function->function;
	call_words_result(&call, record, function->returns_status);
	thread = thread_get(pipeline, record->head.tgid, event.tid);
	interpret(pipeline, &call, hook, function->per_thread, record, thread);
	if (event.type == EVENT_CALL && pipeline->options.hit)
		pipeline->options.hit(pipeline->options.data, record);
	event.process = process->process;
	event.call = &call;
	if (hook->group != HOOK_SUPPORT) {
		pipeline->calls += event.type == EVENT_CALL;
		if (event.type == EVENT_CALL) {
			call.correlation = number_call(pipeline, process, &record->head, &call);
			tell_launch(pipeline, record->head.tgid, &call);
		}
		r = push(pipeline, &event, err);
	}
	if (call.text && event.type == EVENT_CALL) {
		free(thread->text);
		thread->text = NULL;
	}
	return r;
}

/* ---- what numbers stand for ---------------------------------------------------------------- */

const struct process *pipeline_process(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return (known ? known : process_make(pipeline, pid, NULL))->process;
}

const struct kernel *pipeline_kernel(struct pipeline *pipeline, uint32_t pid, uint64_t handle)
{
	return kernels_find(pipeline->kernels, pid, handle);
}

const struct function *pipeline_function(struct pipeline *pipeline, uint16_t id)
{
	const struct module *module;
	const struct hook *hook = modules_hook(pipeline->options.modules, id, &module);

	return hook ? &function_get(pipeline, hook, module)->function : NULL;
}

const struct kernel *pipeline_kernel_named(struct pipeline *pipeline, uint32_t pid,
                                           const char *mangled)
{
	return kernels_by_name(pipeline->kernels, pid, mangled);
}

uint64_t pipeline_next_call(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	return known ? *calls_of(pipeline, known) + 1 : 0;
}

void pipeline_take_number(struct pipeline *pipeline, uint32_t pid)
{
	struct known_process *known;

	HASH_FIND(hh, pipeline->processes, &pid, sizeof(pid), known);
	if (known)
		++*calls_of(pipeline, known);
}

int pipeline_pass(struct pipeline *pipeline, const struct event *event, struct err *err)
{
	struct known_process *known;
	int r = 0;

	HASH_FIND(hh, pipeline->processes, &event->process->pid, sizeof(known->pid), known);
	if (known && known->process == event->process)
		r = process_announce(pipeline, known, NULL, event->time_ns, err);
	return r ? r : push(pipeline, event, err);
}

int pipeline_record(struct pipeline *pipeline, const struct wire_head *record, struct err *err)
{
	int r = record->time_ns > LINGER_NS
	                ? settle_ends(pipeline, record->time_ns - LINGER_NS, err)
	                : 0;

	if (r)
		return r;
	pipeline->time_ns = record->time_ns;
	switch (record->type) {
	case WIRE_CALL:
	case WIRE_BEGIN:
		return on_call(pipeline, (const struct wire_call *)record, err);
	case WIRE_NAME:
		on_name(pipeline, (const struct wire_name *)record);
		return 0;
	case WIRE_THREAD:
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
		return on_process(pipeline, (const struct wire_process *)record, err);
	default:
		return 0; /* WIRE_MAP is the capture's */
	}
}
