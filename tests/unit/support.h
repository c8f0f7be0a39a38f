/* SPDX-License-Identifier: MIT */
/*
 * Events made by hand, and what a consumer writes about them. Times are in microseconds after the
 * begin of the run. What the_*() and new_*() return stays until the test program ends; the names
 * that they are given are kept, not copied.
 */
#ifndef TESTS_UNIT_SUPPORT_H
#define TESTS_UNIT_SUPPORT_H

#include "trace/event.h"
#include "unit.h"

#define RUN_BEGIN_NS 5000000000000ull
#define US(n)        (RUN_BEGIN_NS + (uint64_t)((n)*1000.0 + 0.5))

/* ---- things that events point to ----------------------------------------------------------- */

/* The function of that name: in libcuda.so.1, or in libcudart.so.13 where it says cuda. */
static inline const struct function *the_function(const char *name)
{
	static struct function functions[64];
	static uint32_t n;
	bool runtime = strstr(name, "cuda") != NULL;

	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	}
	assert_true(n < 256);
	functions[n] = (struct function){
		.id = n,
		.name = name,
		.lib = runtime ? "libcudart.so.13" : "libcuda.so.1",
		.layer = runtime ? LAYER_RUNTIME : LAYER_DRIVER,
		.cls = api_class(name),
		.api = api_find(name),
	};
	return &functions[n++];
}

static inline const struct process *new_process(uint32_t pid, const char *comm)
{
	static struct process processes[256];
	static uint32_t n;
	struct process *process = &processes[n];

	assert_true(n < 256);
	process->id = n++;
	process->pid = pid;
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	return process;
}

static inline const struct process *the_process(void)
{
	static const struct process *process;

	if (!process)
		process = new_process(4242, "vectorAdd");
	return process;
}

static inline struct kernel *new_kernel(const char *name, bool resolved)
{
	static struct kernel kernels[64];
	static uint32_t n;
	struct kernel *kernel = &kernels[n];

	assert_true(n < 256);
	*kernel = (struct kernel){ .id = n++, .name = name, .resolved = resolved };
	return kernel;
}

/* ---- calls --------------------------------------------------------------------------------- */

static inline struct call call_at(const char *function, double begin_us, double duration_us)
{
	struct call call = { .function = the_function(function) };
	const struct api_arg *args;

	call.begin_ns = US(begin_us);
	call.end_ns = US(begin_us + duration_us);
	if (call.function->api) {
		call.op = api_op(call.function->api);
		call.args.n_args = (uint8_t)api_args(call.function->api, &args);
	}
	return call;
}

static inline void fail_call(struct call *call, int result)
{
	call->flags |= CALL_FAILED;
	call->result = result;
}

static inline void never_ends(struct call *call, uint32_t flag)
{
	call->flags |= flag;
	call->end_ns = 0;
}

/* Sets the argument of that name, which the function must have. */
static inline void set_arg(struct call *call, const char *name, uint64_t value)
{
	const struct api_arg *args;
	size_t n = api_args(call->function->api, &args);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(args[i].name, name)) {
			call->args.arg[i] = value;
			return;
		}
	}
	fail_msg("%s has no argument %s", call->function->name, name);
}

/* Sets every argument that plays one part. */
static inline void set_args_of_type(struct call *call, enum api_type type, uint64_t value)
{
	const struct api_arg *args;
	size_t n = call->function->api ? api_args(call->function->api, &args) : 0;

	for (size_t i = 0; i < n; i++) {
		if (args[i].type == type)
			call->args.arg[i] = value;
	}
}

static inline void set_stream(struct call *call, uint64_t stream)
{
	call->args.has_stream = true;
	call->args.stream = stream;
	set_args_of_type(call, T_STREAM, stream);
}

static inline struct call alloc_at(const char *function, double begin_us, uint64_t address,
                                   uint64_t bytes)
{
	struct call call = call_at(function, begin_us, 10);

	call.args.address = address;
	call.args.bytes = bytes;
	set_args_of_type(&call, T_PTR, address);
	set_args_of_type(&call, T_BYTES, bytes);
	return call;
}

static inline struct call free_at(const char *function, double begin_us, uint64_t address)
{
	return alloc_at(function, begin_us, address, 0);
}

static inline struct call copy_at(const char *function, double begin_us,
                                  enum api_direction direction, uint64_t bytes)
{
	struct call call = call_at(function, begin_us, 10);

	call.args.direction = direction;
	call.args.bytes = bytes;
	call.args.address = 0x7f0000001000;
	call.args.source = 0x5500;
	set_args_of_type(&call, T_DST, call.args.address);
	set_args_of_type(&call, T_SRC, call.args.source);
	set_args_of_type(&call, T_BYTES, bytes);
	return call;
}

static inline struct call launch_at(const char *function, double begin_us,
                                    const struct kernel *kernel)
{
	struct call call = call_at(function, begin_us, 5);

	call.kernel = kernel;
	call.args.handle = 0x55d0;
	set_args_of_type(&call, T_KERNEL, 0x55d0);
	call.args.grid[0] = 196;
	call.args.grid[1] = call.args.grid[2] = 1;
	call.args.block[0] = 256;
	call.args.block[1] = call.args.block[2] = 1;
	set_stream(&call, 0);
	return call;
}

/* ---- events for what is no consumer -------------------------------------------------------- */

static inline struct event call_event(const struct process *process, uint32_t tid,
                                      const struct call *call)
{
	return (struct event){
		.type = EVENT_CALL,
		.time_ns = call->end_ns ? call->end_ns : call->begin_ns,
		.process = process,
		.tid = tid,
		.call = call,
	};
}

static inline struct event process_event(enum event_type type, const struct process *process,
                                         double at_us)
{
	return (struct event){
		.type = type, .time_ns = US(at_us), .process = process, .tid = process->pid
	};
}

static inline struct event activity_event(const struct process *process,
                                          const struct activity *activity)
{
	return (struct event){ .type = EVENT_ACTIVITY,
		               .time_ns = activity->end_ns,
		               .process = process,
		               .activity = activity };
}

/* ---- a run --------------------------------------------------------------------------------- */

/* A consumer that is fed, and the memory stream that it writes to. */
struct run {
	struct run_info info;
	struct consumer *consumer;
	FILE *out;
	char *text;
	size_t len;
};

static inline struct run_info default_run_info(void)
{
	return (struct run_info){
		.begin_ns = RUN_BEGIN_NS,
		.end_ns = US(1500000),
		.realtime_offset_ns = 1800000000000000000 - (int64_t)RUN_BEGIN_NS,
		.estimate_scale = 1,
		.returns = true,
	};
}

/* For what is asked for its rows, and cannot fail. */
static inline void feed(struct consumer *consumer, const struct event *event)
{
	assert_int_equal(consumer->ops->event(consumer, event, NULL), 0);
}

/* Call first; make the consumer with run->out, then begin_run(). */
static inline void open_run(struct run *run)
{
	memset(run, 0, sizeof(*run));
	run->info = default_run_info();
	run->out = open_memstream(&run->text, &run->len);
}

static inline void begin_run(struct run *run, struct consumer *consumer)
{
	struct err err = { 0 };

	run->consumer = consumer;
	assert_int_equal(consumers_begin(&consumer, 1, &run->info, &err), 0);
}

static inline void push(struct run *run, const struct event *event)
{
	struct err err = { 0 };

	assert_int_equal(run->consumer->ops->event(run->consumer, event, &err), 0);
}

static inline void push_call_of(struct run *run, const struct process *process, uint32_t tid,
                                const struct call *call)
{
	struct event event = call_event(process, tid, call);

	push(run, &event);
}

static inline void push_call(struct run *run, struct call call)
{
	push_call_of(run, the_process(), 4243, &call);
}

static inline void push_work(struct run *run, struct activity activity)
{
	struct event event = activity_event(the_process(), &activity);

	push(run, &event);
}

static inline void push_range(struct run *run, uint32_t tid, struct range range)
{
	push(run, &(struct event){ .type = EVENT_RANGE,
	                           .time_ns = range.end_ns,
	                           .process = the_process(),
	                           .tid = tid,
	                           .range = &range });
}

static inline void push_process(struct run *run, const struct process *process, double at_us)
{
	push(run, &(struct event){ .type = EVENT_PROCESS,
	                           .time_ns = US(at_us),
	                           .process = process,
	                           .tid = process->pid });
}

static inline void push_exit(struct run *run, const struct process *process, double at_us)
{
	push(run, &(struct event){ .type = EVENT_EXIT,
	                           .time_ns = US(at_us),
	                           .process = process,
	                           .tid = process->pid });
}

/* Ends the run; run->text is what was written. close_run() frees it. */
static inline void end_run(struct run *run)
{
	struct err err = { 0 };

	assert_int_equal(consumers_end(&run->consumer, 1, &run->info, &err), 0);
	consumer_free(run->consumer);
	run->consumer = NULL;
	fflush(run->out);
}

static inline void close_run(struct run *run)
{
	fclose(run->out);
	free(run->text);
}

/* ---- texts --------------------------------------------------------------------------------- */

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("not there: %s\nin:\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("should not be there: %s\nin:\n%s", part, text);
}

#endif
