// SPDX-License-Identifier: MIT
/* Agents are made up: what they tell and how they are is said by the tests. */
#include "records.h"

#include "agent_words.h"
#include "capture/gpu.h"

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
	bool stopped, abandoned;
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

	assert_int_equal(kind, MISS_GPU_TIMES);
	va_start(ap, fmt);
	vsnprintf(missed, sizeof(missed), fmt, ap);
	va_end(ap);
}

/* ---- probes on launches -------------------------------------------------------------------- */

static struct {
	bool ignored, hooked;
	bool someone_launches;
} probes;

static struct wire_state programs_memory;

struct wire_state *programs_state(struct programs *programs)
{
	return &programs_memory;
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

void module_ignore_launches(struct module *module, struct programs *programs, bool ignore)
{
	probes.ignored = ignore;
}

void module_hook_launches(struct module *module, struct programs *programs, bool returns, bool hook)
{
	probes.hooked = hook;
}

uint64_t hook_cookie(const struct hook *hook)
{
	return cookie_with_words(WIRE_AT_STACK + hook->plan.stack);
}

struct scene {
	struct feed *feed;
	struct correlate *correlate;
	struct gpu *gpu;
	struct capture_gpu settings;
	bool launches; /* agents may tell of them */
	char notices[1024];
	size_t n_notices;
};

static void take_notice(void *data, const char *text)
{
	struct scene *scene = data;

	scene->n_notices++;
	snprintf(scene->notices, sizeof(scene->notices), "%s", text);
}

static void open_gpu(struct scene *scene, enum target_kind target)
{
	const struct gpu_options options = {
		.settings = &scene->settings,
		.target = target,
		.follow = true,
		.stream = scene->feed->stream,
		.programs = (struct programs *)scene, /* the fake above does not look */
		.correlate = scene->correlate,
		.launches = scene->launches,
		.notice = take_notice,
		.data = scene,
	};

	gpu_free(scene->gpu);
	assert_int_equal(gpu_open(&options, &scene->gpu, &(struct err){ 0 }), 0);
	gpu_begin(scene->gpu, START, 0, false);
}

static int make(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct stream_options options;

	feed_open((void **)&scene->feed);
	stream_free(scene->feed->stream);
	scene->correlate = correlate_new();
	options = (struct stream_options){ .state = &scene->feed->state,
		                           .consumers = scene->feed->consumers,
		                           .n_consumers = 1,
		                           .correlate = scene->correlate };
	scene->feed->stream = stream_new(&options);
	scene->settings.kinds = AGENT_WANT_KERNELS;
	memset(&in_call, 0, sizeof(in_call));
	missed[0] = '\0';
	open_gpu(scene, TARGET_PIDS);
	*state = scene;
	return 0;
}

static int destroy(void **state)
{
	struct scene *scene = *state;

	gpu_free(scene->gpu);
	feed_close((void **)&scene->feed);
	correlate_free(scene->correlate);
	free(scene);
	return 0;
}

/* ---- what happens -------------------------------------------------------------------------- */

static void tell(union agent_words words)
{
	fake.options.record(fake.options.data, PROCESS, &words.head);
}

/* A launch that took 2 us, and its kernel's record. Times are in us after START. */
static void launch(struct scene *scene, uint64_t at_us)
{
	struct wire_call call = launch_of(scene->feed, HANDLE, 0);

	call.begin_ns = START + AT(at_us);
	call.head.time_ns = START + AT(at_us + 2);
	feed_record(scene->feed, &call);
}

static void agent_launch(uint32_t correlation, uint64_t at_us)
{
	union agent_words words = call_words(correlation, THREAD, 0, 0);

	words.call.begin_ns = START + AT(at_us);
	words.call.end_ns = START + AT(at_us + 1);
	tell(words);
}

static void shapes(void)
{
	tell(name_words(1, "_Z3addPf"));
	tell(shape_words(1, 1, 64));
}

static void kernel(uint32_t correlation, uint64_t begin_us, uint64_t end_us)
{
	union agent_words words = kernel_words(1, correlation, begin_us, end_us);

	words.kernel.begin_ns += START;
	tell(words);
}

static void turn(struct scene *scene, uint64_t after_ns)
{
	assert_int_equal(gpu_turn(scene->gpu, START + after_ns, &(struct err){ 0 }), 0);
}

static void agent_is(enum agent_state state, const char *why)
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

static size_t n_activities(const struct scene *scene)
{
	size_t n = 0;

	for (size_t i = 0; i < scene->feed->recorder.count; i++)
		n += scene->feed->recorder.seen[i].type == EVENT_ACTIVITY;
	return n;
}

static const struct activity *last_activity(const struct scene *scene)
{
	assert_int_equal(last_seen(scene->feed)->type, EVENT_ACTIVITY);
	return &last_seen(scene->feed)->activity;
}

static uint64_t lost(const struct scene *scene, enum lost_reason reason)
{
	uint64_t counts[LOST_COUNT] = { 0 };

	gpu_fill_lost(scene->gpu, counts);
	return counts[reason];
}

/* ---- activities and calls ------------------------------------------------------------------ */

static void a_kernel_has_the_number_of_its_launch(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	launch(scene, 20);
	agent_launch(500, 20);
	kernel(500, 25, 40);
	turn(scene, LATER);
	assert_int_equal(last_activity(scene)->correlation, 2);
	assert_int_equal(last_seen(scene->feed)->time_ns, START + AT(40));
	assert_int_equal(last_seen(scene->feed)->process.pid, PROCESS);
	assert_string_equal(last_activity(scene)->kernel->mangled, "_Z3addPf");
}

static void it_is_the_kernel_of_the_launch_where_that_has_a_name(void **state)
{
	struct scene *scene = *state;
	const struct kernel *launched;

	feed_name(scene->feed, "cuLaunchKernel", NAME_OF_HANDLE, HANDLE, "_Z3addPf");
	launch(scene, 10);
	launched = last_call(scene->feed)->kernel;
	shapes();
	kernel(0, 25, 40);
	turn(scene, LATER);
	assert_ptr_equal(last_activity(scene)->kernel, launched);
}

static void activities_wait_for_those_that_ended_before(void **state)
{
	struct scene *scene = *state;

	shapes();
	kernel(0, 25, 40);
	turn(scene, MS(1400));
	assert_int_equal(n_activities(scene), 0);
	kernel(0, 15, 20);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 2);
	assert_int_equal(last_activity(scene)->begin_ns, START + AT(25));
	assert_int_equal(lost(scene, LOST_LATE), 0);
}

static void one_that_comes_after_its_place_is_counted(void **state)
{
	struct scene *scene = *state;

	shapes();
	kernel(0, 25, 40);
	turn(scene, LATER);
	kernel(0, 15, 20);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 2);
	assert_int_equal(lost(scene, LOST_LATE), 1);
}

static void several_activities_have_one_call(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	agent_launch(500, 10);
	for (uint64_t i = 0; i < 5; i++)
		kernel(500, 20 + 10 * i, 25 + 10 * i);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 5);
	assert_int_equal(last_activity(scene)->correlation, 1);
}

static void one_whose_call_is_not_told_yet_waits(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	turn(scene, MS(1));
	kernel(500, 20, 30);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 0);
	agent_launch(500, 10);
	turn(scene, LATER);
	assert_int_equal(last_activity(scene)->correlation, 1);
}

static void one_whose_call_is_never_told_has_none(void **state)
{
	struct scene *scene = *state;

	shapes();
	kernel(500, 20, 30);
	turn(scene, MUCH);
	assert_int_equal(last_activity(scene)->correlation, 0);
}

/* The thread is still in the call around: its number is taken now. */
static void a_call_that_has_not_ended_gets_the_number_of_its_copy(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 1);
	agent_launch(500, 10);
	kernel(500, 20, 30);
	in_call.tid = THREAD;
	in_call.begin_ns = START + AT(9);
	turn(scene, LATER);
	assert_int_equal(last_activity(scene)->correlation, 2);
	launch(scene, 9); /* which ends at 11 */
	assert_int_equal(last_call(scene->feed)->correlation, 2);
	launch(scene, 50);
	assert_int_equal(last_call(scene->feed)->correlation, 3);
}

static void a_function_that_is_not_hooked_takes_no_number(void **state)
{
	struct scene *scene = *state;

	shapes();
	agent_launch(500, 10);
	kernel(500, 20, 30);
	turn(scene, MUCH);
	assert_int_equal(last_activity(scene)->correlation, 0);
	launch(scene, 50);
	assert_int_equal(last_call(scene->feed)->correlation, 1);
}

/* ---- times that cannot be ------------------------------------------------------------------ */

static void before_its_call_is_impossible(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	agent_launch(500, 10);
	kernel(500, 9, 30);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 0);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
}

static void a_clock_error_makes_it_possible(void **state)
{
	struct scene *scene = *state;
	const struct agent_status status = { .pid = PROCESS,
		                             .state = AGENT_RUNNING,
		                             .clock_error_ns = 5000 };
	struct run_info run = { 0 };

	fake.options.state(fake.options.data, &status);
	shapes();
	launch(scene, 10);
	agent_launch(500, 10);
	kernel(500, 6, 30);
	kernel(500, 4, 31);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 1);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
	gpu_fill_run(scene->gpu, &run);
	assert_true(run.gpu_times);
	assert_int_equal(run.gpu_clock_error_ns, 5000);
}

static void an_end_in_the_future_is_impossible(void **state)
{
	struct scene *scene = *state;

	shapes();
	turn(scene, MS(1));
	kernel(0, 1000, 3000000);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
}

static void what_agents_lost_is_added(void **state)
{
	struct scene *scene = *state;

	fake.lost = (struct agents_lost){ 1, 2, 3 };
	assert_int_equal(lost(scene, LOST_GPU_RING), 1);
	assert_int_equal(lost(scene, LOST_GPU_BUFFERS), 2);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 3);
}

/* ---- processes that end -------------------------------------------------------------------- */

static void activities_come_before_the_exit(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	agent_launch(500, 10);
	kernel(500, 20, 30);
	assert_int_equal(gpu_exit(scene->gpu, PROCESS, START + AT(100), &(struct err){ 0 }), 0);
	assert_int_equal(last_activity(scene)->correlation, 1);
	assert_int_equal(fake.gone, PROCESS);
	feed_process(scene->feed, WIRE_EXIT, PROCESS, PROCESS, 0, "app");
	assert_int_equal(last_seen(scene->feed)->type, EVENT_EXIT);
}

static void a_new_program_keeps_what_it_did(void **state)
{
	struct scene *scene = *state;
	uint32_t old;

	shapes();
	kernel(0, 20, 30);
	kernel(0, 60, 70);
	assert_int_equal(gpu_exec(scene->gpu, PROCESS, START + AT(50), &(struct err){ 0 }), 0);
	assert_int_equal(n_activities(scene), 1);
	old = last_seen(scene->feed)->process.id;
	feed_process(scene->feed, WIRE_EXEC, PROCESS, PROCESS, PROCESS, "new");
	assert_int_equal(gpu_execed(scene->gpu, PROCESS, &(struct err){ 0 }), 0);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 2);
	assert_int_not_equal(last_seen(scene->feed)->process.id, old);
}

static void at_the_end_nothing_is_waited_for(void **state)
{
	struct scene *scene = *state;

	shapes();
	kernel(7, 20, 30);
	gpu_stop(scene->gpu);
	assert_true(fake.stopped);
	assert_int_equal(gpu_finish(scene->gpu, &(struct err){ 0 }), 0);
	assert_int_equal(n_activities(scene), 1);
	assert_true(fake.abandoned);
}

static void a_consumer_that_fails_ends_it(void **state)
{
	struct scene *scene = *state;
	struct err err = { 0 };

	shapes();
	launch(scene, 1);
	kernel(0, 20, 30);
	scene->feed->recorder.fail = -5;
	assert_int_not_equal(gpu_turn(scene->gpu, START + LATER, &err), 0);
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void ranges_are_of_their_thread(void **state)
{
	struct scene *scene = *state;
	union agent_words words = nvtx_words(AGENT_NVTX_PUSHPOP, "step", 20, 30);

	words.nvtx.begin_ns += START;
	words.nvtx.end_ns += START;
	words.nvtx.tid = THREAD;
	tell(words);
	turn(scene, LATER);
	assert_int_equal(last_seen(scene->feed)->type, EVENT_RANGE);
	assert_int_equal(last_seen(scene->feed)->tid, THREAD);
	assert_int_equal(last_seen(scene->feed)->range.kind, RANGE_PUSHPOP);
}

/* ---- how agents are ------------------------------------------------------------------------ */

static void where_the_times_come_from_is_told_once(void **state)
{
	struct scene *scene = *state;
	char expected[256];

	snprintf(expected, sizeof(expected),
	         "GPU times of process %u by /usr/lib/libcupti.so.13 (CUDA 13.0), from 12 ms on; "
	         "it was stopped for 0.8 ms",
	         PROCESS);
	agent_is(AGENT_RUNNING, NULL);
	assert_string_equal(scene->notices, expected);
	agent_is(AGENT_PAUSED, NULL);
	agent_is(AGENT_RUNNING, NULL);
	assert_int_equal(scene->n_notices, 1);
}

static void a_failure_is_told_once_and_missed(void **state)
{
	struct scene *scene = *state;
	struct run_info run = { 0 };

	agent_is(AGENT_FAILED, "no GPU times of process 1: no libcupti");
	agent_is(AGENT_FAILED, "no GPU times of process 1: no libcupti");
	assert_int_equal(scene->n_notices, 1);
	assert_string_equal(missed, "no GPU times of process 1: no libcupti");
	gpu_fill_run(scene->gpu, &run);
	assert_false(run.gpu_times);
}

static void windows_are_in_what_was_missed(void **state)
{
	struct scene *scene = *state;

	scene->settings.window_ns = MS(1000);
	scene->settings.period_ns = MS(30000);
	open_gpu(scene, TARGET_PIDS);
	assert_string_equal(missed, "GPU times of 1 s in every 30 s only (--gpu-window)");
}

static void called(struct scene *scene, const char *function, int32_t result, uint8_t flags)
{
	struct wire_call call = call_of(scene->feed, function);

	call.result = result;
	call.head.flags = flags;
	gpu_called(scene->gpu, &call);
}

/* ---- launches that agents tell of ---------------------------------------------------------- */

/* A process with an agent that measures, long enough ago; its launches are hooked as they may be.
 */
static void open_told(struct scene *scene)
{
	hooks[hook_of("cuLaunchKernel")].group = HOOK_LAUNCH;
	hook_of("cuInit");
	memset(&probes, 0, sizeof(probes));
	probes.hooked = true;
	scene->launches = true;
	open_gpu(scene, TARGET_PIDS);
	called(scene, "cuInit", 0, 0);
	libraries[LAYER_DRIVER].hooks = hooks;
	libraries[LAYER_DRIVER].n_hooks = n_hooks;
	turn(scene, MS(1));
	agent_is(AGENT_RUNNING, NULL);
	tell(name_words(9, "cuLaunchKernel"));
	turn(scene, MS(2));
}

static void agents_tell_from(struct scene *scene, uint64_t after_ns)
{
	turn(scene, after_ns);
	assert_true(probes.ignored);
}

static void agent_tells(uint64_t at_us)
{
	union agent_words words = words_of(AGENT_CALL, sizeof(struct agent_call) + 11 * 8);

	words.call.correlation = (uint32_t)at_us;
	words.call.tid = THREAD;
	words.call.begin_ns = START + AT(at_us);
	words.call.end_ns = START + AT(at_us + 1);
	words.call.name = 9;
	words.call.arguments = 11;
	for (uint64_t i = 0; i < 11; i++)
		words.call.word[i] = i == 0 ? HANDLE : 100 + i;
	tell(words);
}

/* Feeds the stream as order.c does. Returns how many. */
static size_t fetch(struct scene *scene)
{
	struct order_source source = gpu_source(scene->gpu);
	const struct wire_head *record;
	size_t bytes, n = 0;

	while ((record = source.peek(source.data, &bytes))) {
		n += record->type == WIRE_CALL;
		assert_false(gpu_is_double(scene->gpu, record));
		feed_record(scene->feed, record);
		source.advance(source.data);
	}
	return n;
}

static void a_launch_that_an_agent_tells_of_is_a_call(void **state)
{
	struct scene *scene = *state;
	const struct call *call;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_tells(500000);
	assert_int_equal(fetch(scene), 1);
	call = last_call(scene->feed);
	assert_string_equal(call->function->name, "cuLaunchKernel");
	assert_int_equal(call->begin_ns, START + AT(500000));
	assert_int_equal(call->end_ns, START + AT(500001));
	assert_int_equal(call->args.handle, HANDLE);
	assert_int_equal(call->args.grid[0], 101);
	assert_int_equal(call->args.block[2], 106);
	assert_int_equal(call->args.shmem_bytes, 107);
	assert_int_equal(call->args.stream, 108);
	shapes();
	kernel(500000, 500005, 500009);
	turn(scene, MUCH);
	assert_int_equal(last_activity(scene)->correlation, call->correlation);
}

static void before_all_have_agents_probes_tell(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	turn(scene, MS(100));
	agent_tells(110000);
	assert_int_equal(fetch(scene), 0);
	assert_false(probes.ignored);
}

static void probes_go_when_nobody_is_in_a_launch(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	probes.someone_launches = true;
	turn(scene, MS(500));
	assert_true(probes.hooked);
	probes.someone_launches = false;
	turn(scene, MS(600));
	assert_false(probes.hooked);
}

static void what_both_saw_is_one_call(void **state)
{
	struct scene *scene = *state;
	struct wire_call seen = launch_of(scene->feed, HANDLE, 0), other;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_tells(500000);
	assert_int_equal(fetch(scene), 1);
	seen.begin_ns = START + AT(499999);
	seen.head.time_ns = START + AT(500002);
	assert_true(gpu_is_double(scene->gpu, &seen.head));
	other = seen;
	other.begin_ns = START + AT(500003);
	other.head.time_ns = START + AT(500005);
	assert_false(gpu_is_double(scene->gpu, &other.head));
	other = seen;
	other.head.hook = hook_of("cuMemAlloc_v2");
	assert_false(gpu_is_double(scene->gpu, &other.head));
}

static void a_new_process_brings_the_probes_back(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	assert_false(probes.hooked);
	gpu_forked(scene->gpu);
	assert_true(probes.hooked);
	assert_false(probes.ignored);
}

/* Taking them away and putting them back takes its time, too. */
static void probes_that_were_away_for_a_moment_stay_longer(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	gpu_forked(scene->gpu);
	turn(scene, MS(900));
	assert_false(probes.ignored);
	turn(scene, MS(1150));
	assert_true(probes.ignored);
	turn(scene, MS(1250));
	turn(scene, MS(7250));
	gpu_forked(scene->gpu);
	turn(scene, MS(7600));
	assert_true(probes.ignored);
}

static void an_agent_that_fails_brings_the_probes_back(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	agent_is(AGENT_FAILED, "it failed");
	turn(scene, MS(510));
	assert_true(probes.hooked);
}

static void at_the_end_the_probes_are_back(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	gpu_stop(scene->gpu);
	assert_true(probes.hooked);
}

static void a_launch_in_the_future_is_none(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_tells(1500000);
	assert_int_equal(fetch(scene), 0);
}

static void without_arguments_nothing_is_made_up(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_launch(7, 500000);
	assert_int_equal(fetch(scene), 0);
}

/* ---- which processes are entered ----------------------------------------------------------- */

static void a_process_is_entered_after_its_first_call_that_worked(void **state)
{
	struct scene *scene = *state;

	called(scene, "__cudaRegisterFunction", 0, 0);
	called(scene, "cuDriverGetVersion", 0, 0);
	called(scene, "cuMemAlloc_v2", 3, 0);
	called(scene, "cuInit", 0, WIRE_NO_RETURN);
	turn(scene, MS(1));
	assert_int_equal(fake.n_entered, 0);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(2));
	assert_int_equal(fake.n_entered, 1);
	assert_int_equal(fake.entered[0], PROCESS);
	called(scene, "cuMemAlloc_v2", 0, 0);
	turn(scene, MS(3));
	assert_int_equal(fake.n_entered, 1);
}

static void a_command_brings_its_agent_along(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(100));
	agent_is(AGENT_RUNNING, NULL);
	turn(scene, MS(2000));
	assert_int_equal(fake.n_entered, 0);
}

static void a_stranger_is_turned_away(void **state)
{
	open_gpu(*state, TARGET_COMMAND);
	assert_true(fake.options.wanted(fake.options.data, PROCESS));
	assert_false(fake.options.wanted(fake.options.data, CHILD));
}

static void one_whose_environment_was_cleaned_is_entered(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(400));
	assert_int_equal(fake.n_entered, 0);
	turn(scene, MS(600));
	assert_int_equal(fake.n_entered, 1);
}

static void one_that_is_held_cannot_be_entered(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	gpu_begin(scene->gpu, START, PROCESS, true);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(600));
	assert_int_equal(fake.n_entered, 0);
	assert_non_null(strstr(missed, "With --no-hold it is entered"));
}

static void at_the_end_nobody_is_entered(void **state)
{
	struct scene *scene = *state;

	gpu_stop(scene->gpu);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(1));
	assert_int_equal(fake.n_entered, 0);
}

static void a_bad_cupti_is_a_failure(void **state)
{
	struct scene *scene = *state;
	const struct gpu_options options = { .settings = &scene->settings };
	struct err err = { 0 };
	struct gpu *gpu;

	scene->settings.cupti = "nowhere";
	assert_int_equal(gpu_open(&options, &gpu, &err), -ENOENT);
	assert_string_equal(err.text, "--cupti: no such file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_has_the_number_of_its_launch),
		TEST(it_is_the_kernel_of_the_launch_where_that_has_a_name),
		TEST(activities_wait_for_those_that_ended_before),
		TEST(one_that_comes_after_its_place_is_counted),
		TEST(several_activities_have_one_call),
		TEST(one_whose_call_is_not_told_yet_waits),
		TEST(one_whose_call_is_never_told_has_none),
		TEST(a_call_that_has_not_ended_gets_the_number_of_its_copy),
		TEST(a_function_that_is_not_hooked_takes_no_number),
		TEST(before_its_call_is_impossible),
		TEST(a_clock_error_makes_it_possible),
		TEST(an_end_in_the_future_is_impossible),
		TEST(what_agents_lost_is_added),
		TEST(activities_come_before_the_exit),
		TEST(a_new_program_keeps_what_it_did),
		TEST(at_the_end_nothing_is_waited_for),
		TEST(a_consumer_that_fails_ends_it),
		TEST(ranges_are_of_their_thread),
		TEST(where_the_times_come_from_is_told_once),
		TEST(a_failure_is_told_once_and_missed),
		TEST(windows_are_in_what_was_missed),
		TEST(a_launch_that_an_agent_tells_of_is_a_call),
		TEST(before_all_have_agents_probes_tell),
		TEST(probes_go_when_nobody_is_in_a_launch),
		TEST(what_both_saw_is_one_call),
		TEST(a_new_process_brings_the_probes_back),
		TEST(probes_that_were_away_for_a_moment_stay_longer),
		TEST(an_agent_that_fails_brings_the_probes_back),
		TEST(at_the_end_the_probes_are_back),
		TEST(a_launch_in_the_future_is_none),
		TEST(without_arguments_nothing_is_made_up),
		TEST(a_process_is_entered_after_its_first_call_that_worked),
		TEST(a_command_brings_its_agent_along),
		TEST(a_stranger_is_turned_away),
		TEST(one_whose_environment_was_cleaned_is_entered),
		TEST(one_that_is_held_cannot_be_entered),
		TEST(at_the_end_nobody_is_entered),
		TEST(a_bad_cupti_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
