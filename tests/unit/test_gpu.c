// SPDX-License-Identifier: MIT
/* GPU times of a run, told by agents that this test plays. */
#include "gpu_scene.h"

/* ---- activities and calls ------------------------------------------------------------------ */

static void test_a_kernel_has_the_number_of_its_launch(void **state)
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

/* Either of the call and its record may come first. */
static void test_a_launch_that_is_recorded_inside_tells_the_number_itself(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	probed_launch(500, 10, 12);
	kernel(500, 25, 40);
	turn(scene, LATER);
	assert_int_equal(last_activity(scene)->correlation, 1);
	probed_launch(501, 20, 22);
	launch(scene, 20);
	kernel(501, 40, 50);
	turn(scene, LATER + MS(1));
	assert_int_equal(n_activities(scene), 2);
	assert_int_equal(last_activity(scene)->correlation, 2);
	assert_int_equal(lost(scene, LOST_GPU_CALLS), 0);
	assert_int_equal(lost(scene, LOST_GPU_RECORDS), 0);
}

static void test_a_launch_inside_that_makes_no_sense_has_no_kernel(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	probed_launch(500, 10, 0);
	probed_launch(0, 10, 12);
	kernel(500, 25, 40);
	turn(scene, MS(6000));
	assert_int_equal(last_activity(scene)->correlation, 0);
	assert_int_equal(lost(scene, LOST_GPU_CALLS), 1);
}

/* Calls of a thread come in the order of their ends. */
static void test_a_launch_inside_that_ends_before_one_that_waits_is_counted(void **state)
{
	struct scene *scene = *state;

	probed_launch(500, 30, 40);
	probed_launch(501, 10, 12);
	turn(scene, LATER);
	assert_int_equal(lost(scene, LOST_GPU_RECORDS), 1);
}

static void test_it_is_the_kernel_of_the_launch_where_that_has_a_name(void **state)
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

static void test_work_whose_call_nobody_told_of_is_counted(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 10);
	agent_launch(500, 10);
	kernel(500, 25, 40);
	kernel(501, 45, 50); /* the record of its launch was lost */
	kernel(0, 55, 60);   /* of no call at all */
	turn(scene, MS(6000));
	assert_int_equal(n_activities(scene), 3);
	assert_int_equal(lost(scene, LOST_GPU_CALLS), 1);
}

static void test_what_an_agent_tells_without_sense_is_counted(void **state)
{
	struct scene *scene = *state;

	kernel(0, 25, 40); /* its shape was not given */
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 0);
	assert_int_equal(lost(scene, LOST_GPU_RECORDS), 1);
}

static void test_activities_wait_for_those_that_ended_before(void **state)
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

static void test_one_that_comes_after_its_place_is_counted(void **state)
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

static void test_several_activities_have_one_call(void **state)
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

static void test_one_whose_call_is_not_told_yet_waits(void **state)
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

/* On a busy machine. */
static void test_one_whose_call_is_seconds_behind_waits_for_it(void **state)
{
	struct scene *scene = *state;

	behind_ns = MUCH;
	shapes();
	agent_launch(500, 10);
	kernel(500, 20, 30);
	agent_launch(501, 40);
	kernel(501, 50, 60);
	turn(scene, MUCH);
	assert_int_equal(n_activities(scene), 0);
	launch(scene, 10);
	turn(scene, MUCH);
	assert_int_equal(n_activities(scene), 1);
	assert_int_equal(last_activity(scene)->correlation, 1);
	turn(scene, MUCH + MS(1100)); /* the other one was not seen */
	assert_int_equal(n_activities(scene), 2);
	assert_int_equal(last_activity(scene)->correlation, 0);
	behind_ns = 0;
}

/* Its thread stood still in the call, which comes by its end: what began later has come long
 * before.
 */
static void test_one_whose_call_lasts_and_is_seconds_behind_waits_for_it(void **state)
{
	struct scene *scene = *state;

	behind_ns = MUCH;
	shapes();
	agent_long_launch(500, 10, 91500);
	kernel(500, 1000, 1004);
	turn(scene, MUCH + MS(50));
	turn(scene, MUCH + MS(60));
	assert_int_equal(n_activities(scene), 0);
	long_launch(scene, 10, 91502);
	turn(scene, MUCH + MS(92));
	assert_int_equal(last_activity(scene)->correlation, 1);
	behind_ns = 0;
}

static void test_one_whose_call_is_behind_by_more_waits_as_well(void **state)
{
	struct scene *scene = *state;

	shapes();
	agent_launch(500, 10);
	kernel(500, 20, 30);
	behind_ns = LATER;
	turn(scene, LATER);
	behind_ns = MS(20000);
	turn(scene, MS(20000));
	assert_int_equal(n_activities(scene), 0);
	launch(scene, 10);
	turn(scene, MS(20000));
	assert_int_equal(last_activity(scene)->correlation, 1);
	behind_ns = 0;
}

/* An agent told of the call, and none came; where all are recorded, that is a loss. */
static void test_one_whose_call_was_announced_and_never_came_is_counted(void **state)
{
	struct scene *scene = *state;

	for (int all = 0; all <= 1; all++) {
		scene->each_launch = all;
		open_gpu(scene, TARGET_PIDS);
		shapes();
		agent_launch(500, 10);
		kernel(500, 20, 30);
		turn(scene, MUCH);
		turn(scene, 2 * MUCH);
		assert_int_equal(last_activity(scene)->correlation, 0);
		assert_int_equal(lost(scene, LOST_GPU_CALLS), all);
	}
}

static void test_one_whose_call_is_never_told_has_none(void **state)
{
	struct scene *scene = *state;

	shapes();
	kernel(500, 20, 30);
	turn(scene, MUCH);
	assert_int_equal(last_activity(scene)->correlation, 0);
}

/* The thread is still in the call around: its number is taken now. */
static void test_a_call_that_has_not_ended_gets_the_number_of_its_copy(void **state)
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

static void test_a_function_that_is_not_hooked_takes_no_number(void **state)
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

/* The GPU's clock is not ours, also where nothing tells how far they lie apart. */
static void test_a_little_before_its_call_is_there_and_tells_of_the_clocks(void **state)
{
	struct scene *scene = *state;
	struct run_info run = { 0 };

	shapes();
	launch(scene, 210);
	agent_launch(500, 210);
	kernel(500, 208, 230);
	kernel(500, 111, 231);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 2);
	assert_int_equal(last_activity(scene)->begin_ns, START + AT(111));
	assert_int_equal(last_activity(scene)->correlation, 1);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 0);
	gpu_fill_run(scene->gpu, &run);
	assert_int_equal(run.gpu_clock_error_ns, 99000);
}

static void test_long_before_its_call_is_impossible(void **state)
{
	struct scene *scene = *state;

	shapes();
	launch(scene, 210);
	agent_launch(500, 210);
	kernel(500, 109, 230);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 0);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
}

static void test_a_clock_error_makes_it_possible(void **state)
{
	struct scene *scene = *state;
	const struct agent_status status = { .pid = PROCESS,
		                             .state = AGENT_RUNNING,
		                             .clock_error_ns = 5000 };
	struct run_info run = { 0 };

	fake.options.state(fake.options.data, &status);
	shapes();
	launch(scene, 210);
	agent_launch(500, 210);
	kernel(500, 106, 230);
	kernel(500, 104, 231);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 1);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
	gpu_fill_run(scene->gpu, &run);
	assert_true(run.gpu_times);
	assert_int_equal(run.gpu_clock_error_ns, 104000);
}

static void test_an_end_in_the_future_is_impossible(void **state)
{
	struct scene *scene = *state;

	shapes();
	turn(scene, MS(1));
	kernel(0, 1000, 3900000);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1);
}

static void test_what_agents_lost_is_added(void **state)
{
	struct scene *scene = *state;

	fake.lost = (struct agents_lost){
		.ring = 1, .buffers = 2, .times = 3, .ranges = 5, .turned_away = 4
	};
	assert_int_equal(lost(scene, LOST_GPU_RING), 1);
	assert_int_equal(lost(scene, LOST_GPU_BUFFERS), 2);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 3);
	assert_int_equal(lost(scene, LOST_TOO_DEEP), 5);
	assert_int_equal(gpu_turned_away(scene->gpu), 4);
}

/* ---- processes that end -------------------------------------------------------------------- */

static void test_activities_come_before_the_exit(void **state)
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
	assert_int_equal(pipeline_flush(scene->feed->pipeline, &(struct err){ 0 }), 0);
	assert_int_equal(last_seen(scene->feed)->type, EVENT_EXIT);
}

/* A user's processes come and go as they like, and say what they like of when their work ends. */
static void test_work_of_others_waits_for_its_call_when_one_ends(void **state)
{
	struct scene *scene = *state;
	union agent_words words[] = { name_words(1, "_Z3addPf"), shape_words(1, 1, 64),
		                      kernel_words(1, 0, 40, 2000000) };
	const uint32_t other = PROCESS + 1;

	shapes();
	agent_launch(500, 5000);
	kernel(500, 5010, 5020);
	words[2].kernel.begin_ns += START;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		fake.options.record(fake.options.data, other, &words[i].head);
	assert_int_equal(gpu_exit(scene->gpu, other, START + AT(100), &(struct err){ 0 }), 0);
	assert_int_equal(n_activities(scene), 0);
	launch(scene, 5000);
	turn(scene, LATER);
	assert_int_equal(last_activity(scene)->correlation, 1);
	turn(scene, MS(4000));
	assert_int_equal(n_activities(scene), 1);
	assert_int_equal(lost(scene, LOST_GPU_TIMES), 1); /* it ended 1.9 s after its process */
	assert_int_equal(lost(scene, LOST_LATE), 0);
}

static void test_a_new_program_keeps_what_it_did(void **state)
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
	gpu_execed(scene->gpu, PROCESS);
	turn(scene, LATER);
	assert_int_equal(n_activities(scene), 2);
	assert_int_not_equal(last_seen(scene->feed)->process.id, old);
}

/* Its agent is heard before its calls are passed on, and it may have ended by then. */
static void test_a_process_has_the_name_that_its_first_record_gives(void **state)
{
	struct scene *scene = *state;
	const struct recorder *recorder = &scene->feed->recorder;

	shapes();
	kernel(0, 20, 30);
	turn(scene, MS(1));
	assert_int_equal(recorder->count, 0);
	feed_process(scene->feed, WIRE_THREAD, PROCESS, THREAD, 0, "app");
	assert_int_equal(recorder->seen[0].type, EVENT_PROCESS);
	assert_string_equal(recorder->seen[0].process.comm, "app");
	turn(scene, LATER);
	assert_int_equal(recorder->count, 3); /* and its thread */
	assert_string_equal(last_seen(scene->feed)->process.comm, "app");
}

static void test_a_process_that_only_worked_on_the_gpu_is_told_of_before_its_work(void **state)
{
	struct scene *scene = *state;
	const struct recorder *recorder = &scene->feed->recorder;

	shapes();
	kernel(0, 20, 30);
	turn(scene, LATER);
	assert_int_equal(recorder->seen[0].type, EVENT_PROCESS);
	assert_int_equal(recorder->seen[0].time_ns, START + AT(30));
	assert_int_equal(last_seen(scene->feed)->type, EVENT_ACTIVITY);
}

static void test_at_the_end_nothing_is_waited_for(void **state)
{
	struct scene *scene = *state;
	unsigned reads;

	shapes();
	kernel(7, 20, 30);
	gpu_stop(scene->gpu);
	assert_true(fake.stopped);
	reads = fake.reads; /* of calls that are read now nobody would be told */
	assert_int_equal(gpu_finish(scene->gpu, &(struct err){ 0 }), 0);
	assert_int_equal(n_activities(scene), 1);
	assert_int_equal(fake.reads, reads);
	assert_true(fake.abandoned);
}

static void test_a_consumer_that_fails_ends_it(void **state)
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

static void test_ranges_are_of_their_thread(void **state)
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

static void test_where_the_times_come_from_is_told_once(void **state)
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

static void test_a_failure_is_told_once_and_missed(void **state)
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

/* An agent that lies comes again and again, with other words each time. */
static void test_so_many_failures_of_a_process_are_told(void **state)
{
	const struct scene *scene = *state;
	char why[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(why, sizeof(why), "no GPU times of process 1: %d", i);
		agent_is(AGENT_FAILED, why);
	}
	assert_int_equal(scene->n_notices, 16);
}

static void test_windows_are_in_what_was_missed(void **state)
{
	struct scene *scene = *state;

	scene->settings.window_ns = MS(1000);
	scene->settings.period_ns = MS(30000);
	open_gpu(scene, TARGET_PIDS);
	assert_string_equal(missed, "GPU times of 1 s in every 30 s only (--gpu-window)");
	assert_int_equal(missed_kind, MISS_GPU_WINDOWS);
}

/* Two launches that no record comes of. How many are told as lost, where windows begin between
 * them, or not. */
static uint64_t unrecorded_of(struct scene *scene, bool windows)
{
	const struct call call = { .op = OP_LAUNCH, .begin_ns = START + MS(20), .correlation = 1 };

	scene->all_launches = true;
	scene->settings.window_ns = MS(1000);
	scene->settings.window_percent = 2;
	open_gpu(scene, TARGET_PIDS);
	agent_is(AGENT_RUNNING, NULL);
	gpu_launched(scene->gpu, PROCESS, &call);
	assert_string_equal(missed, "");
	if (windows)
		fake.options.dear(fake.options.data, PROCESS, 10.5, MS(1000), MS(5750));
	gpu_launched(scene->gpu, PROCESS, &call);
	assert_int_equal(gpu_exit(scene->gpu, PROCESS, START + MS(30), &(struct err){ 0 }), 0);
	return lost(scene, LOST_GPU_UNRECORDED);
}

static void test_launches_are_missed_as_long_as_all_is_measured(void **state)
{
	assert_int_equal(unrecorded_of(*state, false), 2);
	assert_string_equal(missed, "");
}

static void test_windows_for_what_records_cost_are_in_what_was_missed(void **state)
{
	assert_int_equal(unrecorded_of(*state, true), 0);
	assert_string_equal(missed, "GPU times of some 1.0 s in every 5.8 s only, since they cost "
	                            "process 5000001 some 10 % of its time");
	assert_int_equal(missed_kind, MISS_GPU_WINDOWS);
}

/* ---- which processes are entered ----------------------------------------------------------- */

static void test_a_process_is_entered_after_its_first_call_that_worked(void **state)
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

static void test_a_command_brings_its_agent_along(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(100));
	agent_is(AGENT_RUNNING, NULL);
	turn(scene, MS(2000));
	assert_int_equal(fake.n_entered, 0);
}

static void test_a_stranger_is_turned_away(void **state)
{
	open_gpu(*state, TARGET_COMMAND);
	assert_true(fake.options.wanted(fake.options.data, PROCESS));
	assert_false(fake.options.wanted(fake.options.data, CHILD));
}

static void test_one_whose_environment_was_cleaned_is_entered(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(400));
	assert_int_equal(fake.n_entered, 0);
	turn(scene, MS(600));
	assert_int_equal(fake.n_entered, 1);
}

static void test_one_that_is_held_cannot_be_entered(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	gpu_begin(scene->gpu, START, PROCESS, true);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(600));
	assert_int_equal(fake.n_entered, 0);
	assert_non_null(strstr(missed, "With --no-hold cuscope enters it"));
}

static void test_one_that_ended_before_its_agent_could_come_is_told_of(void **state)
{
	struct scene *scene = *state;

	open_gpu(scene, TARGET_COMMAND);
	gpu_begin(scene->gpu, START, PROCESS, true);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(10));
	assert_int_equal(scene->n_notices, 0);
	assert_int_equal(gpu_exit(scene->gpu, PROCESS, START + MS(20), &(struct err){ 0 }), 0);
	assert_non_null(strstr(missed, "has no agent"));
}

static void test_at_the_end_nobody_is_entered(void **state)
{
	struct scene *scene = *state;

	gpu_stop(scene->gpu);
	called(scene, "cuInit", 0, 0);
	turn(scene, MS(1));
	assert_int_equal(fake.n_entered, 0);
}

static void test_a_bad_cupti_is_a_failure(void **state)
{
	struct scene *scene = *state;
	const struct gpu_options options = { .settings = &scene->settings };
	struct err err = { 0 };
	struct gpu_times *gpu;

	scene->settings.cupti = "nowhere";
	assert_int_equal(gpu_open(&options, &gpu, &err), -ENOENT);
	assert_string_equal(err.text, "--cupti: no such file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_kernel_has_the_number_of_its_launch),
		TEST(test_a_launch_that_is_recorded_inside_tells_the_number_itself),
		TEST(test_a_launch_inside_that_makes_no_sense_has_no_kernel),
		TEST(test_a_launch_inside_that_ends_before_one_that_waits_is_counted),
		TEST(test_it_is_the_kernel_of_the_launch_where_that_has_a_name),
		TEST(test_work_whose_call_nobody_told_of_is_counted),
		TEST(test_what_an_agent_tells_without_sense_is_counted),
		TEST(test_activities_wait_for_those_that_ended_before),
		TEST(test_one_that_comes_after_its_place_is_counted),
		TEST(test_several_activities_have_one_call),
		TEST(test_one_whose_call_is_not_told_yet_waits),
		TEST(test_one_whose_call_is_seconds_behind_waits_for_it),
		TEST(test_one_whose_call_lasts_and_is_seconds_behind_waits_for_it),
		TEST(test_one_whose_call_is_behind_by_more_waits_as_well),
		TEST(test_one_whose_call_was_announced_and_never_came_is_counted),
		TEST(test_one_whose_call_is_never_told_has_none),
		TEST(test_a_call_that_has_not_ended_gets_the_number_of_its_copy),
		TEST(test_a_function_that_is_not_hooked_takes_no_number),
		TEST(test_a_little_before_its_call_is_there_and_tells_of_the_clocks),
		TEST(test_long_before_its_call_is_impossible),
		TEST(test_a_clock_error_makes_it_possible),
		TEST(test_an_end_in_the_future_is_impossible),
		TEST(test_what_agents_lost_is_added),
		TEST(test_activities_come_before_the_exit),
		TEST(test_work_of_others_waits_for_its_call_when_one_ends),
		TEST(test_a_new_program_keeps_what_it_did),
		TEST(test_a_process_has_the_name_that_its_first_record_gives),
		TEST(test_a_process_that_only_worked_on_the_gpu_is_told_of_before_its_work),
		TEST(test_at_the_end_nothing_is_waited_for),
		TEST(test_a_consumer_that_fails_ends_it),
		TEST(test_ranges_are_of_their_thread),
		TEST(test_where_the_times_come_from_is_told_once),
		TEST(test_a_failure_is_told_once_and_missed),
		TEST(test_so_many_failures_of_a_process_are_told),
		TEST(test_windows_are_in_what_was_missed),
		TEST(test_launches_are_missed_as_long_as_all_is_measured),
		TEST(test_windows_for_what_records_cost_are_in_what_was_missed),
		TEST(test_a_process_is_entered_after_its_first_call_that_worked),
		TEST(test_a_command_brings_its_agent_along),
		TEST(test_a_stranger_is_turned_away),
		TEST(test_one_whose_environment_was_cleaned_is_entered),
		TEST(test_one_that_is_held_cannot_be_entered),
		TEST(test_one_that_ended_before_its_agent_could_come_is_told_of),
		TEST(test_at_the_end_nobody_is_entered),
		TEST(test_a_bad_cupti_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
