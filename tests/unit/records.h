/* SPDX-License-Identifier: MIT */
/*
 * Records made by hand, as the eBPF programs would send them, and a consumer that remembers what
 * became of them. Hooks are made up from the names of functions: this file stands in for
 * src/probe/modules.c.
 */
#ifndef TESTS_UNIT_RECORDS_H
#define TESTS_UNIT_RECORDS_H

#include "base/array.h"
#include "capture/pipeline.h"
#include "probe/modules.h"
#include "unit.h"

/* Beyond the largest pid that Linux gives out: of these /proc knows no name. */
#define PROCESS 5000001u
#define CHILD   5000002u
#define THREAD  5000011u

/* ---- hooks --------------------------------------------------------------------------------- */

#define HOOKS_MAX 64
#define NO_HOOK   HOOKS_MAX

static struct hook hooks[HOOKS_MAX];
static uint16_t n_hooks;

/* The number of a function's hook. */
static inline uint16_t hook_of(const char *name)
{
	struct hook *hook = hooks;

	for (; hook < hooks + n_hooks; hook++) {
		if (!strcmp(hook->name, name))
			return hook->id;
	}
	assert_true(n_hooks < HOOKS_MAX);
	hook->id = n_hooks++;
	hook->name = name;
	hook->layer = strstr(name, "cuda") ? LAYER_RUNTIME : LAYER_DRIVER;
	hook->group = HOOK_CORE;
	hook->api = api_find(name);
	if (hook->api)
		api_plan(hook->api, ABI_NATIVE, &hook->plan);
	return hook->id;
}

static struct module libraries[] = { { .name = "libcuda.so.1" }, { .name = "libcudart.so.13" } };

const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **module)
{
	if (id >= n_hooks)
		return NULL;
	if (module)
		*module = &libraries[hooks[id].layer];
	return &hooks[id];
}

/* ---- what consumers saw -------------------------------------------------------------------- */

struct seen {
	enum event_type type;
	uint64_t time_ns;
	struct process process;
	uint32_t tid;
	struct call call;
	char text[64];   /* "" for none */
	char kernel[64]; /* "" for none */
	struct activity activity;
	struct range range;
};

struct recorder {
	struct consumer consumer; /* first: the stream knows no more */
	struct seen seen[64];
	size_t count;
	unsigned begun, flushed, ended;
	int fail; /* what event() and end() return */
};

static inline int recorder_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	((struct recorder *)self)->begun++;
	return 0;
}

static inline int recorder_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct recorder *recorder = (struct recorder *)self;
	struct seen *seen = &recorder->seen[recorder->count++];

	assert_true(recorder->count < ARRAY_SIZE(recorder->seen));
	*seen = (struct seen){ .type = event->type,
		               .time_ns = event->time_ns,
		               .process = *event->process,
		               .tid = event->tid };
	if (event->call) {
		seen->call = *event->call;
		snprintf(seen->text, sizeof(seen->text), "%s",
		         event->call->text ? event->call->text : "");
		snprintf(seen->kernel, sizeof(seen->kernel), "%s",
		         event->call->kernel ? event->call->kernel->name : "");
	}
	if (event->activity)
		seen->activity = *event->activity;
	if (event->range)
		seen->range = *event->range;
	return recorder->fail ? err_set(err, recorder->fail, "event") : 0;
}

static inline int recorder_flush(struct consumer *self, struct err *err)
{
	((struct recorder *)self)->flushed++;
	return 0;
}

static inline int recorder_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	struct recorder *recorder = (struct recorder *)self;

	recorder->ended++;
	return recorder->fail ? err_set(err, recorder->fail, "end %d", recorder->fail) : 0;
}

static const struct consumer_ops recorder_ops = { .begin = recorder_begin,
	                                          .event = recorder_event,
	                                          .flush = recorder_flush,
	                                          .end = recorder_end };

/* ---- a stream with its records ------------------------------------------------------------- */

struct feed {
	struct pipeline *pipeline;
	struct recorder recorder;
	struct consumer *consumers[2];
	struct wire_state state;
	uint64_t now_ns;
	size_t hits;
};

static inline void count_hit(void *data, const struct wire_call *call)
{
	((struct feed *)data)->hits++;
}

static inline int feed_open(void **state)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	struct pipeline_options options = { .state = &feed->state,
		                            .consumers = feed->consumers,
		                            .n_consumers = 1,
		                            .hit = count_hit,
		                            .data = feed };

	n_hooks = 0;
	memset(hooks, 0, sizeof(hooks));
	feed->recorder.consumer.ops = &recorder_ops;
	feed->consumers[0] = &feed->recorder.consumer;
	feed->now_ns = 1000;
	feed->pipeline = pipeline_new(&options);
	*state = feed;
	return 0;
}

static inline int feed_close(void **state)
{
	struct feed *feed = *state;

	pipeline_free(feed->pipeline);
	free(feed);
	return 0;
}

static inline void feed_record(struct feed *feed, const void *record)
{
	struct err err = { 0 };

	assert_int_equal(pipeline_record(feed->pipeline, record, &err), 0);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A call that took 100 ns and returned 0; its first register arguments may follow. */
static inline struct wire_call call_of(struct feed *feed, const char *function)
{
	feed->now_ns += 1000;
	return (struct wire_call){ .head = { .type = WIRE_CALL,
		                             .hook = hook_of(function),
		                             .tgid = PROCESS,
		                             .tid = THREAD,
		                             .time_ns = feed->now_ns + 100 },
		                   .begin_ns = feed->now_ns };
}

static inline void set_reg(struct wire_call *call, unsigned index, uint64_t value)
{
	assert_true(index < WIRE_REGS);
	call->word[WIRE_AT_REG + index] = value;
}

/* A call with its first two arguments. */
static inline struct wire_call call_with(struct feed *feed, const char *function, uint64_t first,
                                         uint64_t second)
{
	struct wire_call call = call_of(feed, function);

	set_reg(&call, 0, first);
	set_reg(&call, 1, second);
	return call;
}

static inline void feed_call(struct feed *feed, const char *function, uint64_t first,
                             uint64_t second)
{
	struct wire_call call = call_with(feed, function, first, second);

	feed_record(feed, &call);
}

static inline void nest(struct wire_call *call, uint8_t depth)
{
	call->head.depth = depth;
	call->head.flags |= WIRE_NESTED;
}

/* cuLaunchKernel(handle, ..., stream, ...) */
static inline struct wire_call launch_of(struct feed *feed, uint64_t handle, uint64_t stream)
{
	struct wire_call call = call_with(feed, "cuLaunchKernel", handle, 196);

	/* the ninth argument */
	call.word[WIRE_AT_STACK + 8 - WIRE_REGS] = stream;
	return call;
}

static inline void feed_launch(struct feed *feed, uint64_t handle, uint64_t stream)
{
	struct wire_call call = launch_of(feed, handle, stream);

	feed_record(feed, &call);
}

/* ---- names and processes ------------------------------------------------------------------- */

static inline void feed_name(struct feed *feed, const char *function, enum wire_name_source source,
                             uint64_t key, const char *text)
{
	static struct wire_name name;

	name.head = (struct wire_head){ .type = WIRE_NAME,
		                        .hook = hook_of(function),
		                        .tgid = PROCESS,
		                        .tid = THREAD,
		                        .time_ns = ++feed->now_ns };
	name.key = key;
	name.source = source;
	name.head.bytes = (uint16_t)(snprintf(name.text, sizeof(name.text), "%s", text) + 1);
	feed_record(feed, &name);
}

static inline void feed_process(struct feed *feed, enum wire_type type, uint32_t tgid, uint32_t tid,
                                uint32_t other, const char *comm)
{
	struct wire_process record = { .head = { .type = (uint8_t)type,
		                                 .tgid = tgid,
		                                 .tid = tid,
		                                 .time_ns = ++feed->now_ns },
		                       .other = other };

	snprintf(record.comm, sizeof(record.comm), "%s", comm);
	feed_record(feed, &record);
}

/* ---- asking -------------------------------------------------------------------------------- */

static inline const struct seen *last_seen(const struct feed *feed)
{
	assert_true(feed->recorder.count > 0);
	return &feed->recorder.seen[feed->recorder.count - 1];
}

static inline const struct call *last_call(const struct feed *feed)
{
	assert_non_null(last_seen(feed)->call.function);
	return &last_seen(feed)->call;
}

/* What consumers saw, in short: "process exit call(cudaMalloc) begin(cudaMalloc)". */
static inline void assert_seen(const struct feed *feed, const char *expected)
{
	char text[4096] = "";
	size_t len = 0;

	for (size_t i = 0; i < feed->recorder.count; i++) {
		const struct seen *seen = &feed->recorder.seen[i];
		const char *gap = i ? " " : "";

		if (seen->call.function)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s(%s)", gap,
			                        seen->type == EVENT_CALL ? "call" : "begin",
			                        seen->call.function->name);
		else
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", gap,
			                        seen->type == EVENT_PROCESS  ? "process"
			                        : seen->type == EVENT_THREAD ? "thread"
			                                                     : "exit");
	}
	assert_string_equal(text, expected);
}

#endif
