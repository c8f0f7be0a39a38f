// SPDX-License-Identifier: MIT
/* Launches that agents tell of, and the probes that are away meanwhile. */
#include "gpu_scene.h"

#include "capture/gpu/gpu_targets.h"

/* A process with an agent that measures, long enough ago; its launches are hooked as they
 * may be. */
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
	size_t n = 0;

	while ((record = source.take(source.data, UINT64_MAX))) {
		n += record->type == WIRE_CALL;
		assert_false(gpu_is_double(scene->gpu, record));
		feed_record(scene->feed, record);
		source.release(source.data, record);
	}
	return n;
}

static void test_a_launch_that_an_agent_tells_of_is_a_call(void **state)
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

static unsigned reads;

bool __wrap_call_memory_read(uint32_t pid, uint64_t address, void *to, size_t bytes);
bool __wrap_call_memory_read(uint32_t pid, uint64_t address, void *to, size_t bytes)
{
	reads++;
	memset(to, 1, bytes);
	return true;
}

/* Kernels are named again when their own process unloads a module, and no other. */
static void test_names_stay_known_when_another_process_unloads(void **state)
{
	struct scene *scene = *state;
	struct wire_state *programs = &programs_memory;

	programs->kernels_mix = 0x9e3779b1;
	open_told(scene);
	agents_tell_from(scene, MS(400));
	reads = 0;
	agent_tells(500000);
	programs->kernels_generation[wire_kernels_slot(programs, PROCESS + 1)]++;
	agent_tells(500010);
	assert_int_equal(reads, 1);
	programs->kernels_generation[wire_kernels_slot(programs, PROCESS)]++;
	agent_tells(500020);
	assert_int_equal(reads, 2);
	assert_int_equal(fetch(scene), 3);
}

static void test_before_all_have_agents_probes_tell(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	turn(scene, MS(100));
	agent_tells(110000);
	assert_int_equal(fetch(scene), 0);
	assert_false(probes.ignored);
}

static void test_probes_go_when_nobody_is_in_a_launch(void **state)
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

static void test_what_both_saw_is_one_call(void **state)
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

/* A thread of the program that is held up while it writes into the ring holds up what is behind. */
static void test_an_agent_that_is_late_tells_of_nothing_anew(void **state)
{
	struct scene *scene = *state;
	struct wire_call seen = launch_of(scene->feed, HANDLE, 0);
	struct order_source source;
	const struct wire_head *record = NULL;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	seen.begin_ns = START + AT(499999);
	seen.head.time_ns = START + AT(500002);
	assert_false(gpu_is_double(scene->gpu, &seen.head));
	agent_tells(500000);
	agent_tells(500003);
	source = gpu_source(scene->gpu);
	while ((record = source.take(source.data, UINT64_MAX)) && record->type != WIRE_CALL)
		source.release(source.data, record);
	assert_true(gpu_is_double(scene->gpu, record));
	source.release(source.data, record);
	assert_int_equal(fetch(scene), 1);
}

static bool next_told_is_double(struct scene *scene)
{
	struct order_source source = gpu_source(scene->gpu);
	const struct wire_head *record;
	bool is;

	while ((record = source.take(source.data, UINT64_MAX)) && record->type != WIRE_CALL)
		source.release(source.data, record);
	assert_non_null(record);
	is = gpu_is_double(scene->gpu, record);
	source.release(source.data, record);
	return is;
}

/* One that comes late and is alone stands between the two of another launch. */
static void test_what_is_late_hides_no_double(void **state)
{
	struct scene *scene = *state;
	struct wire_call seen = launch_of(scene->feed, HANDLE, 0);

	open_told(scene);
	agents_tell_from(scene, MS(400));
	seen.begin_ns = START + AT(500103);
	seen.head.time_ns = START + AT(500106);
	assert_false(gpu_is_double(scene->gpu, &seen.head));
	agent_tells(499000);
	assert_false(next_told_is_double(scene));
	agent_tells(500104);
	assert_true(next_told_is_double(scene));
}

/* More threads than are remembered, of which one launches, and then another for the first time. */
static void test_what_both_saw_is_one_call_beside_many_threads(void **state)
{
	struct scene *scene = *state;
	struct wire_call seen = launch_of(scene->feed, HANDLE, 0), other = seen;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_tells(410000);
	assert_int_equal(fetch(scene), 1);
	for (uint32_t i = 1; i < 1024; i++) {
		other.head.tid = THREAD + 100000 + i;
		assert_false(gpu_is_double(scene->gpu, &other.head));
	}
	agent_tells(500000);
	assert_int_equal(fetch(scene), 1);
	other.head.tid = THREAD + 200000;
	assert_false(gpu_is_double(scene->gpu, &other.head));
	seen.begin_ns = START + AT(499999);
	seen.head.time_ns = START + AT(500002);
	assert_true(gpu_is_double(scene->gpu, &seen.head));
}

static void test_a_new_process_brings_the_probes_back(void **state)
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

static void test_probes_that_cannot_come_back_are_missed(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	assert_string_equal(missed, "");
	probes.fail = true;
	gpu_forked(scene->gpu);
	assert_non_null(strstr(missed, "no memory"));
}

static bool is_the_first(void *data, pid_t pid)
{
	return pid == (pid_t)PROCESS;
}

static void enter_nobody(void *data, pid_t pid)
{
}

/* It has the device open; its next call may be a launch, which nobody else would tell of. */
static void test_a_process_that_has_a_gpu_is_to_have_an_agent_before_its_first_call(void **state)
{
	struct gpu_targets *targets = gpu_targets_new(false, enter_nobody, NULL);

	gpu_targets_running(targets, PROCESS, MS(1));
	assert_true(gpu_targets_all(targets, is_the_first, NULL));
	gpu_targets_running(targets, PROCESS + 1, MS(1));
	assert_false(gpu_targets_all(targets, is_the_first, NULL));
	gpu_targets_forget(targets, PROCESS + 1);
	assert_true(gpu_targets_all(targets, is_the_first, NULL));
	gpu_targets_free(targets);
}

/* Taking them away and putting them back takes its time, too. */
static void test_probes_that_were_away_for_a_moment_stay_longer(void **state)
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

static void test_an_agent_that_fails_brings_the_probes_back(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	agent_is(AGENT_FAILED, "it failed");
	turn(scene, MS(510));
	assert_true(probes.hooked);
}

static void test_at_the_end_the_probes_are_back(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	turn(scene, MS(500));
	gpu_stop(scene->gpu);
	assert_true(probes.hooked);
}

static void test_a_launch_in_the_future_is_none(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_tells(3500000);
	assert_int_equal(fetch(scene), 0);
}

static void test_without_arguments_nothing_is_made_up(void **state)
{
	struct scene *scene = *state;

	open_told(scene);
	agents_tell_from(scene, MS(400));
	agent_launch(7, 500000);
	assert_int_equal(fetch(scene), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_launch_that_an_agent_tells_of_is_a_call),
		TEST(test_names_stay_known_when_another_process_unloads),
		TEST(test_before_all_have_agents_probes_tell),
		TEST(test_probes_go_when_nobody_is_in_a_launch),
		TEST(test_what_both_saw_is_one_call),
		TEST(test_an_agent_that_is_late_tells_of_nothing_anew),
		TEST(test_what_is_late_hides_no_double),
		TEST(test_what_both_saw_is_one_call_beside_many_threads),
		TEST(test_a_new_process_brings_the_probes_back),
		TEST(test_probes_that_cannot_come_back_are_missed),
		TEST(test_a_process_that_has_a_gpu_is_to_have_an_agent_before_its_first_call),
		TEST(test_probes_that_were_away_for_a_moment_stay_longer),
		TEST(test_an_agent_that_fails_brings_the_probes_back),
		TEST(test_at_the_end_the_probes_are_back),
		TEST(test_a_launch_in_the_future_is_none),
		TEST(test_without_arguments_nothing_is_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
