// SPDX-License-Identifier: MIT
#include "capture/pipeline_inside.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "capture/call_texts.h"
#include "capture/graph_captures.h"
#include "capture/gpu/correlate.h"
#include "capture/kernels.h"
#include "probe/helper.h"
#include "probe/person.h"
#include "trace/event.h"

/* How long the end of a process is not believed yet: see process_exited(). */
#define LINGER_NS  1000000ull  /* in the time of records */
#define OVERDUE_NS 50000000ull /* without records: longer than they wait for their order */

struct pipeline *pipeline_new(const struct pipeline_options *options)
{
	struct pipeline *pipeline = xcalloc(1, sizeof(*pipeline));

	pipeline->options = *options;
	pipeline->places =
		(struct quota){ .user = { .most = USERS_MOST }, .all = { .most = PROCESSES_MAX } };
	TAILQ_INIT(&pipeline->ending);
	pipeline->ended = (struct process){ .id = PROCESSES_MAX + 1,
		                            .comm = "[ended]",
		                            .person = PERSON_UNKNOWN };
	pipeline->kernels = kernels_new(options->budget);
	pipeline->captures = graph_captures_new(options->budget);
	return pipeline;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	pipeline_free_processes(pipeline);
	for (size_t i = 0; i < WIRE_HOOKS_MAX; i++) {
		if (pipeline->functions[i]) {
			free((char *)pipeline->functions[i]->function.name);
			free((char *)pipeline->functions[i]->function.lib);
		}
		free(pipeline->functions[i]);
		free(pipeline->own_functions[i]);
	}
	graph_captures_free(pipeline->captures);
	kernels_free(pipeline->kernels);
	free(pipeline);
}

/* ---- consumers ----------------------------------------------------------------------------- */

int pipeline_push(struct pipeline *pipeline, const struct event *event, struct err *err)
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
	uint64_t until_ns = clock_now_ns();
	int r;

	r = until_ns > OVERDUE_NS ? pipeline_settle_ends(pipeline, until_ns - OVERDUE_NS, err) : 0;
	if (r)
		return r;
	return consumers_flush(pipeline->options.consumers, pipeline->options.n_consumers, err);
}

int pipeline_end(struct pipeline *pipeline, const struct run_info *run, struct err *err)
{
	int r = pipeline_settle_ends(pipeline, UINT64_MAX, err);

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

/* ---- names --------------------------------------------------------------------------------- */

/*
 * The first handle whose name a call gave tells whether handles hold it where we look, in all
 * processes: there is one driver. A user's own library is none, and says nothing of those of
 * others; nor does what another user does to a handle's memory, once somebody's has been found.
 */
static void calibrate(struct pipeline *pipeline, const struct wire_name *name)
{
	struct wire_state *state = pipeline->options.state;
	const struct module *module;
	const struct hook *hook = modules_hook(pipeline->options.modules, name->head.hook, &module);
	struct known_process *process = MAP_FIND(pipeline->processes, &name->head.tgid);
	uint64_t person;

	if (!process || process->calibrated || !hook || hook->layer != LAYER_DRIVER)
		return;
	process->calibrated = true;
	person = helper_person_of((pid_t)name->head.tgid);
	if (module->owner != PERSON_ROOT || (pipeline->calibrated && person != pipeline->by))
		return;
	pipeline->by = person;
	state->name_offset =
		kernels_calibrate(name->head.tgid, name->key, name->text, state->name_offset);
	pipeline->calibrated = state->name_offset != WIRE_NO_OFFSET;
}

/* The text of a name; read from the process where the eBPF side could not wait for its page. */
static bool name_text(const struct wire_name *name, struct wire_name *whole)
{
	memcpy(whole, name, WIRE_NAME_BYTES(name->head.bytes));
	return name->head.bytes ||
	       call_text_read(name->head.tgid, name->from, whole->text, sizeof(whole->text));
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
	thread = pipeline_thread_get(pipeline, name->head.tgid, name->head.tid);
	free(thread->text);
	thread->text = xstrdup(name->text);
	thread->text_hook = name->head.hook;
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct pipeline_known_function *
function_make(struct pipeline *pipeline, const struct hook *hook, const struct module *module)
{
	struct pipeline_known_function *known = xcalloc(1, sizeof(*known));
	struct function *function = &known->function;

	known->returns_status = api_returns_status(hook->name);
	known->per_thread = api_is_per_thread(hook->name);
	known->op = hook->api ? api_op(hook->api) : OP_NONE;
	function->id = pipeline->n_functions++;
	function->name = xstrdup(hook->name); /* it outlives the module */
	function->lib = xstrdup(module->name);
	function->layer = hook->layer;
	function->cls = api_class(hook->name);
	function->api = hook->api;
	known->call.function = function;
	known->call.op = known->op;
	pipeline->functions[hook->id] = known;
	return known;
}

static struct pipeline_known_function *
function_get(struct pipeline *pipeline, const struct hook *hook, const struct module *module)
{
	struct pipeline_known_function *known = pipeline->functions[hook->id];

	return known ? known : function_make(pipeline, hook, module);
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
 * What a call of the runtime does not say, the driver's call within it may. A copy from or to an
 * array counts elements in the one and bytes in the other.
 */
static void find_size(struct pipeline_known_function *known, struct pipeline_known_thread *thread)
{
	struct call *call = &known->call;

	if (!call->args.size_unknown) {
		thread->copied_bytes = call->args.bytes;
		thread->copied_ns = call->begin_ns;
	} else if (thread->copied_ns > call->begin_ns && call->function->layer == LAYER_RUNTIME) {
		call->args.bytes = thread->copied_bytes;
		call->args.size_unknown = false;
		call->args_number = 0; /* they are not what its words say */
		call_words_forget(&known->words);
	} else {
		call->flags |= CALL_SIZE_UNKNOWN;
	}
}

/* The arguments, unless they are those of the function's last call. */
static void decode(struct pipeline *pipeline, struct pipeline_known_function *known,
                   const struct hook *hook, const struct wire_call *record)
{
	struct call *call = &known->call;
	struct api_raw raw;

	if (call_words_same(&known->words, record, &hook->plan))
		return;
	call_words_raw(&raw, record, &hook->plan);
	api_decode(hook->api, ABI_NATIVE, &raw, &call->args);
	if (known->per_thread && call->args.has_stream && !call->args.stream)
		call->args.stream = STREAM_PER_THREAD;
	call->args_number = ++pipeline->args_numbers;
	call_words_keep(&known->words, record, &hook->plan);
}

static void interpret(struct pipeline *pipeline, struct pipeline_known_function *known,
                      const struct hook *hook, const struct wire_call *record,
                      struct pipeline_known_thread *thread)
{
	uint32_t tgid = record->head.tgid, tid = record->head.tid;
	struct call *call = &known->call;

	if (thread->text && thread->text_hook == hook->id)
		call->text = thread->text;
	if (!hook->api)
		return;
	decode(pipeline, known, hook, record);
	if (known->op == OP_LAUNCH)
		find_kernel(pipeline, call, tgid, thread);
	if (known->op == OP_COPY || known->op == OP_SET)
		find_size(known, thread);
	if (record->head.type == WIRE_CALL && known->op != OP_NONE)
		follow_state(pipeline, call, tgid, tid);
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
		.person = process->process->person,
	};
	uint64_t *calls = pipeline_calls_of(pipeline, process), next = *calls + 1, number = next;

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
	struct pipeline_known_function *known;
	struct known_process *process;
	struct pipeline_known_thread *thread;
	struct call *call;
	int r;

	if (!hook)
		return 0; /* cuscope's own calibration */
	r = pipeline_process_get(pipeline, record->head.tgid, NULL, event.time_ns, &process, err);
	if (r)
		return r;
	known = function_get(pipeline, hook, module);
	call = &known->call;
	call_words_result(call, record, known->returns_status);
	thread = pipeline_thread_get(pipeline, record->head.tgid, event.tid);
	interpret(pipeline, known, hook, record, thread);
	if (event.type == EVENT_CALL && pipeline->options.hit)
		pipeline->options.hit(pipeline->options.data, record);
	event.process = process->process;
	event.call = call;
	if (hook->group != HOOK_SUPPORT) {
		pipeline->calls += event.type == EVENT_CALL;
		if (event.type == EVENT_CALL) {
			if (pipeline->options.stack_of && call->depth == 0)
				call->stack = pipeline->options.stack_of(pipeline->options.data,
				                                         event.tid, call->begin_ns);
			call->correlation = number_call(pipeline, process, &record->head, call);
			tell_launch(pipeline, record->head.tgid, call);
		}
		r = pipeline_push(pipeline, &event, err);
	}
	if (call->text && event.type == EVENT_CALL) {
		free(thread->text);
		thread->text = NULL;
	}
	return r;
}

/* ---- what numbers stand for ---------------------------------------------------------------- */

const struct kernel *pipeline_kernel(struct pipeline *pipeline, uint32_t pid, uint64_t handle)
{
	return kernels_find(pipeline->kernels, pid, handle);
}

const struct kernel *pipeline_kernel_unknown(struct pipeline *pipeline, uint64_t handle)
{
	return kernels_unknown(pipeline->kernels, handle);
}

const struct function *pipeline_function(struct pipeline *pipeline, uint16_t id)
{
	const struct module *module;
	const struct hook *hook;

	/* a number is one function's for good; its module may have been let go */
	if (id < WIRE_HOOKS_MAX && pipeline->functions[id])
		return &pipeline->functions[id]->function;
	hook = modules_hook(pipeline->options.modules, id, &module);
	return hook ? &function_get(pipeline, hook, module)->function : NULL;
}

uint32_t pipeline_function_number(struct pipeline *pipeline)
{
	return pipeline->n_functions++;
}

const struct kernel *pipeline_kernel_named(struct pipeline *pipeline, uint32_t pid,
                                           const char *mangled)
{
	return kernels_by_name(pipeline->kernels, pid, mangled);
}

int pipeline_record(struct pipeline *pipeline, const struct wire_head *record, struct err *err)
{
	int r = record->time_ns > LINGER_NS
	                ? pipeline_settle_ends(pipeline, record->time_ns - LINGER_NS, err)
	                : 0;

	if (r)
		return r;
	pipeline->time_ns = record->time_ns;
	switch (record->type) {
	case WIRE_CALL:
	case WIRE_BEGIN:
		return on_call(pipeline, (const struct wire_call *)record, err);
	case WIRE_HOOK:
		return pipeline_on_hook(pipeline, (const struct wire_hook *)record, err);
	case WIRE_NAME:
		on_name(pipeline, (const struct wire_name *)record);
		return 0;
	case WIRE_THREAD:
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
		return pipeline_on_process(pipeline, (const struct wire_process *)record, err);
	default:
		return 0; /* WIRE_MAP is the capture's */
	}
}
