/* SPDX-License-Identifier: MIT */
/*
 * GPU times with agents that are made up: what they tell and how they are is said by the tests. For
 * gpu.c; this file stands in for src/agent/agents.c and parts of src/probe.
 */
#ifndef TESTS_UNIT_GPU_SCENE_H
#define TESTS_UNIT_GPU_SCENE_H

#include "records.h"

#include "agent_words.h"
#include "capture/gpu/gpu.h"

#include <errno.h>

#include "agent/agents.h"

#define MS(n)  ((uint64_t)(n)*1000000)
#define START  MS(1000)
#define LATER  MS(1600) /* all that ended before is passed on */
#define MUCH   MS(2700) /* nothing is waited for any longer */
#define HANDLE 0x1234560

/* ---- agents that are none ------------------------------------------------------------------ */

static struct agents {
	struct agents_options options;
	pid_t entered[8];
	size_t n_entered;
	pid_t gone;
	bool stopped, abandoned, begins;
	unsigned reads;
	struct agents_lost lost;
} fake;

int agents_new(const struct agents_options *options, struct agents **agents, struct err *err)
{
	if (options->cupti)
		return err_set(err, ENOENT, "--cupti: no such file");
	memset(&fake, 0, sizeof(fake));
	fake.options = *options;
	*agents = &fake;
	return 0;
}

void agents_free(struct agents *agents)
{
}

int agents_environment(struct agents *agents, char *const **environment, struct err *err)
{
	static char *none[] = { NULL };

	*environment = none;
	return 0;
}

void agents_enter(struct agents *agents, pid_t pid)
{
	assert_true(agents->n_entered < 8);
	agents->entered[agents->n_entered++] = pid;
}

int agents_fd(const struct agents *agents)
{
	return -1;
}

void agents_turn(struct agents *agents, uint64_t now_ns)
{
	agents->reads++;
}

void agents_turn_of(struct agents *agents, pid_t pid, uint64_t now_ns)
{
	agents_turn(agents, now_ns);
}

void agents_gone(struct agents *agents, pid_t pid)
{
	agents->gone = pid;
}

void agents_stop(struct agents *agents)
{
	agents->stopped = true;
}

bool agents_stopped(const struct agents *agents)
{
	return false;
}

bool agents_any_begins(const struct agents *agents)
{
	return agents->begins;
}

void agents_abandon(struct agents *agents)
{
	agents->abandoned = true;
}

void agents_lost(const struct agents *agents, struct agents_lost *lost)
{
	*lost = agents->lost;
}

/* ---- what else a capture has --------------------------------------------------------------- */

static struct {
	uint32_t tid;
	uint64_t begin_ns;
} in_call;

bool programs_thread_in_call(const struct programs *programs, pid_t tid, uint64_t *begin_ns)
{
	*begin_ns = in_call.begin_ns;
	return in_call.tid == (uint32_t)tid;
}

bool programs_target_has(struct programs *programs, pid_t tgid)
{
	return tgid == (pid_t)PROCESS;
}

static enum miss_kind missed_kind;
static char missed[512];

void modules_lock(struct modules *modules)
{
}

void modules_unlock(struct modules *modules)
{
}

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...)
{
	va_list ap;

	assert_true(kind == MISS_GPU_TIMES || kind == MISS_GPU_WINDOWS || kind == MISS_STALLS ||
	            kind == MISS_NOT_HOOKED);
	missed_kind = kind;
	va_start(ap, fmt);
	vsnprintf(missed, sizeof(missed), fmt, ap);
	va_end(ap);
}

void modules_tell_unhooked(struct modules *modules, struct module *module)
{
}

/* ---- probes on launches -------------------------------------------------------------------- */

static struct {
	bool ignored, hooked;
	bool someone_launches;
	bool fail; /* they cannot be put back */
} probes;

static struct wire_state programs_memory;

struct wire_state *programs_state(struct programs *programs)
{
	return &programs_memory;
}

int programs_map(const struct programs *programs, const char *name)
{
	return -1;
}

void programs_open_calls(struct programs *programs, programs_record_fn each, void *data)
{
	const struct wire_head record = { .hook = hook_of("cuLaunchKernel") };

	if (probes.someone_launches)
		each(data, &record, sizeof(record));
}

size_t modules_count(const struct modules *modules)
{
	return 1;
}

struct module *modules_at(const struct modules *modules, size_t index)
{
	return &libraries[LAYER_DRIVER];
}

void module_ignore_launches(struct module *module, bool ignore)
{
	probes.ignored = ignore;
}

int module_hook_group(struct module *module, enum hook_group group, bool hook, struct err *err)
{
	if (hook && probes.fail)
		return err_set(err, ENOMEM, "no memory");
	probes.hooked = hook;
	return 0;
}

uint64_t hook_cookie(const struct hook *hook)
{
	return cookie_with_words(WIRE_AT_STACK + hook->plan.stack);
}

struct scene {
	struct feed *feed;
	struct correlate *correlate;
	struct gpu_times *gpu;
	struct capture_gpu settings;
	bool launches; /* agents may tell of them */
	bool each_launch, all_launches;
	char notices[1024];
	size_t n_notices;
};

static inline void take_notice(void *data, const char *text)
{
	struct scene *scene = data;

	scene->n_notices++;
	snprintf(scene->notices, sizeof(scene->notices), "%s", text);
}

/* What records calls inside: it takes those that have an end. */
static inline bool take_probed_call(void *data, uint32_t pid, const struct agent_head *record,
                                    struct correlate_span *call)
{
	const struct agent_probed *probed = (const struct agent_probed *)record;

	if (record->type != AGENT_PROBED)
		return false;
	if (probed->end)
		*call = (struct correlate_span){ .pid = pid,
			                         .tid = probed->tid,
			                         .begin_ns = probed->begin,
			                         .end_ns = probed->end };
	return true;
}

static inline void open_gpu(struct scene *scene, enum target_kind target)
{
	const struct gpu_options options = {
		.settings = &scene->settings,
		.target = target,
		.follow = true,
		.pipeline = scene->feed->pipeline,
		.programs = (struct programs *)scene, /* the fake above does not look */
		.correlate = scene->correlate,
		.launches = scene->launches,
		.each_launch = scene->each_launch,
		.all_launches = scene->all_launches,
		.probed = take_probed_call,
		.notice = take_notice,
		.data = scene,
	};

	gpu_free(scene->gpu);
	assert_int_equal(gpu_open(&options, &scene->gpu, &(struct err){ 0 }), 0);
	gpu_begin(scene->gpu, START, 0, false);
}

static inline int make(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct pipeline_options options;

	feed_open((void **)&scene->feed);
	pipeline_free(scene->feed->pipeline);
	scene->correlate = correlate_new();
	options = (struct pipeline_options){ .state = &scene->feed->state,
		                             .consumers = scene->feed->consumers,
		                             .n_consumers = 1,
		                             .correlate = scene->correlate };
	scene->feed->pipeline = pipeline_new(&options);
	scene->settings.kinds = AGENT_WANT_KERNELS;
	memset(&in_call, 0, sizeof(in_call));
	missed[0] = '\0';
	open_gpu(scene, TARGET_PIDS);
	*state = scene;
	return 0;
}

static inline int destroy(void **state)
{
	struct scene *scene = *state;

	gpu_free(scene->gpu);
	feed_close((void **)&scene->feed);
	correlate_free(scene->correlate);
	free(scene);
	return 0;
}

/* ---- what happens -------------------------------------------------------------------------- */

static inline void tell(union agent_words words)
{
	fake.options.record(fake.options.data, PROCESS, &words.head);
}

/* A launch that lasts, and what its agent says of it. Times are in us after START. */
static inline void long_launch(struct scene *scene, uint64_t at_us, uint64_t lasts_us)
{
	struct wire_call call = launch_of(scene->feed, HANDLE, 0);

	call.begin_ns = START + AT(at_us);
	call.head.time_ns = START + AT(at_us + lasts_us);
	feed_record(scene->feed, &call);
}

static inline void agent_long_launch(uint32_t correlation, uint64_t at_us, uint64_t lasts_us)
{
	union agent_words words = call_words(correlation, THREAD, 0, 0);

	words.call.begin_ns = START + AT(at_us);
	words.call.end_ns = START + AT(at_us + lasts_us);
	tell(words);
}

static inline void launch(struct scene *scene, uint64_t at_us)
{
	long_launch(scene, at_us, 2);
}

static inline void agent_launch(uint32_t correlation, uint64_t at_us)
{
	agent_long_launch(correlation, at_us, 1);
}

/* The same by an agent that records it inside; an end of 0: what it says makes no sense. */
static inline void probed_launch(uint32_t correlation, uint64_t at_us, uint64_t end_us)
{
	union agent_words words = { .probed = { .head = { .bytes = sizeof(words.probed),
		                                          .type = AGENT_PROBED },
		                                .begin = START + AT(at_us),
		                                .end = end_us ? START + AT(end_us) : 0,
		                                .tid = THREAD,
		                                .correlation = correlation } };

	tell(words);
}

static inline void shapes(void)
{
	tell(name_words(1, "_Z3addPf"));
	tell(shape_words(1, 1, 64));
}

static inline void kernel(uint32_t correlation, uint64_t begin_us, uint64_t end_us)
{
	union agent_words words = kernel_words(1, correlation, begin_us, end_us);

	words.kernel.begin_ns += START;
	tell(words);
}

static uint64_t behind_ns; /* calls are passed on that much later */

static inline void turn(struct scene *scene, uint64_t after_ns)
{
	correlate_passed(scene->correlate, START + after_ns - behind_ns);
	assert_int_equal(gpu_turn(scene->gpu, START + after_ns, &(struct err){ 0 }), 0);
}

static inline void agent_is(enum agent_state state, const char *why)
{
	const struct agent_status status = {
		.pid = PROCESS,
		.state = state,
		.why = why,
		.cupti = "/usr/lib/libcupti.so.13",
		.driver_version = 13000,
		.active_since_ns = START + MS(12),
		.stopped_ns = 800000,
	};

	fake.options.state(fake.options.data, &status);
}

static inline size_t n_activities(const struct scene *scene)
{
	size_t n = 0;

	for (size_t i = 0; i < scene->feed->recorder.count; i++)
		n += scene->feed->recorder.seen[i].type == EVENT_ACTIVITY;
	return n;
}

static inline const struct activity *last_activity(const struct scene *scene)
{
	assert_int_equal(last_seen(scene->feed)->type, EVENT_ACTIVITY);
	return &last_seen(scene->feed)->activity;
}

static inline uint64_t lost(const struct scene *scene, enum lost_reason reason)
{
	uint64_t counts[LOST_COUNT] = { 0 };

	gpu_fill_lost(scene->gpu, counts);
	return counts[reason];
}

static inline void called(struct scene *scene, const char *function, int32_t result, uint8_t flags)
{
	struct wire_call call = call_of(scene->feed, function);

	call.result = result;
	call.head.flags = flags;
	gpu_called(scene->gpu, &call);
}

#endif
