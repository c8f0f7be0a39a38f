// SPDX-License-Identifier: MIT
/* Clocks of machines by each other: from collectives of their recordings alone. */
#include "../golden/kernel.h"

#include <math.h>

#include "analysis/machines.h"

#define RANKS 2 /* of a machine */
#define JOB   0x5eedc0ffee123456

/* A machine, and what is recorded there of a training that runs at a thousand steps a second. */
struct made {
	const char *boot;
	double ahead_us, drift; /* of its clock */
	double jitter_us;       /* of the ends of its kernels */
	uint64_t job;
	uint32_t steps, first;
	bool no_gpu_times, lost;
	uint64_t person;
};

static const struct kernel *reduce;
static uint32_t chance;

static int set_up(void **state)
{
	reduce = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", true);
	chance = 1;
	return 0;
}

/* From 0 to 1. */
static double by_chance(void)
{
	chance = chance * 1664525 + 1013904223;
	return (double)(chance >> 8) / (1 << 24);
}

static double clock_us(const struct made *made, double us)
{
	return us + made->ahead_us + us * made->drift;
}

static void keep_call(struct kept_list *list, const struct process *process, struct call *call)
{
	struct event event = call_event(process, process->pid, call);

	event.type = call->function->layer == LAYER_HOOK ? EVENT_OTHER_CALL : EVENT_CALL;
	event.time_ns = call->end_ns;
	keep_event(list, &event);
}

static void keep_made(struct kept_list *list, const struct made *made,
                      const struct process *process, uint32_t rank)
{
	struct event event = { .type = EVENT_PROCESS,
		               .time_ns = US(clock_us(made, 10)),
		               .process = process,
		               .tid = process->pid };
	struct call call =
		other_call(other_function(LAYER_HOOK, "nccl.ncclCommInitRank", "libnccl.so.2",
	                                  "ranks:int rank:int id:hex comm:addr"),
	                   clock_us(made, 20), 10, 2 * RANKS, rank);

	keep_event(list, &event);
	call.args.arg[2] = made->job;
	call.args.arg[3] = 0x5500 + rank;
	keep_call(list, process, &call);
}

static void keep_reduce(struct kept_list *list, const struct made *made,
                        const struct process *process, uint32_t rank, uint32_t step)
{
	double at_us = clock_us(made, 1000.0 * step + 7 * rank);
	double end_us = clock_us(made, 1000.0 * step + 500 + made->jitter_us * by_chance());
	struct call launch = launch_at("cuLaunchKernel", at_us + 2, reduce),
		    call = other_call(other_function(LAYER_HOOK, "nccl.ncclAllReduce",
	                                             "libnccl.so.2", "bytes:size comm:addr"),
	                              at_us, 9, 1 << 20, 0x5500 + rank);
	struct activity run = { .kind = ACTIVITY_KERNEL,
		                .kernel = reduce,
		                .begin_ns = US(at_us + 20),
		                .end_ns = US(end_us),
		                .stream = 7 };
	struct event ran = activity_event(process, &run);

	launch.correlation = run.correlation = step + 1;
	ran.time_ns = run.end_ns;
	keep_call(list, process, &launch);
	keep_call(list, process, &call);
	if (!made->no_gpu_times)
		keep_event(list, &ran);
}

static struct trace_file *record(const struct made *made, uint32_t first_rank)
{
	struct run_info run = default_run_info();
	const struct process *processes[RANKS];
	struct kept_list list = { 0 };
	struct trace_file *file;
	struct err err = { 0 };
	int fd = memory_file();

	for (uint32_t i = 0; i < RANKS; i++) {
		processes[i] = new_process(100 + i, "train"); /* the same on all machines */
		((struct process *)processes[i])->id = i;
		((struct process *)processes[i])->person = made->person;
		keep_made(&list, made, processes[i], first_rank + i);
	}
	for (uint32_t step = 1; step <= made->steps; step++)
		for (uint32_t i = 0; i < RANKS; i++)
			keep_reduce(&list, made, processes[i], first_rank + i, step);
	run.boot = made->boot;
	run.begin_ns = US(clock_us(made, 0));
	run.end_ns = US(clock_us(made, 1000.0 * made->steps + 1000));
	run.gpu_times = true;
	if (made->lost)
		run.lost[LOST_RING_FULL] = 1;
	write_list(fd, &run, &list);
	free(list.at);
	assert_int_equal(trace_open(path_of(fd), &file, &err), 0);
	return file;
}

#define MADE_FILES (TOGETHER_MAX + 1)

/* The last one is of the first's ranks where there are two. */
static struct machines align(const struct made *made, size_t n)
{
	struct trace_file *files[MADE_FILES];
	struct machines machines;

	for (size_t i = 0; i < n; i++)
		files[i] = record(&made[i], (uint32_t)i * RANKS);
	machines_align(&machines, files, n);
	for (size_t i = 0; i < n; i++)
		trace_close(files[i]);
	return machines;
}

/* By how much a time of the clock is wrong by what was found out, at that time of the first. */
static double wrong_us(const struct machines *machines, const struct made *made, size_t i,
                       double us)
{
	uint64_t ns = clock_map_ns(&machines->of[i].clock.map, US(clock_us(&made[i], us)));

	return ((double)ns - (double)US(clock_us(&made[0], us))) / 1000;
}

static void test_a_clock_an_hour_ahead(void **state)
{
	const struct made made[] = { { .boot = "a", .job = JOB, .steps = 40 },
		                     { .boot = "b", .job = JOB, .steps = 40, .ahead_us = 3600e6 } };
	struct machines machines = align(made, 2);

	assert_int_equal(machines.n, 2);
	assert_int_equal(machines.of[1].clock.of, 0);
	assert_int_equal(machines.of[1].clock.n, 40);
	assert_true(fabs(wrong_us(&machines, made, 1, 20000)) < 0.1);
	assert_true(machines.of[1].clock.error_ns <= 100);
	machines_clear(&machines);
}

static void test_a_clock_that_began_later_and_drifts(void **state)
{
	const struct made made[] = {
		{ .boot = "a", .job = JOB, .steps = 2000, .ahead_us = 3600e6, .jitter_us = 10 },
		{ .boot = "b", .job = JOB, .steps = 2000, .drift = 50e-6, .jitter_us = 10 }
	};
	struct machines machines = align(made, 2);

	for (double us = 0; us <= 2e6; us += 1e6)
		assert_true(fabs(wrong_us(&machines, made, 1, us)) < 3);
	assert_true(machines.of[1].clock.error_ns > 4000); /* 100 us without the drift */
	assert_true(machines.of[1].clock.error_ns < 20000);
	machines_clear(&machines);
}

static void test_a_third_one_by_the_second(void **state)
{
	const struct made made[] = {
		{ .boot = "a", .job = JOB, .steps = 40 },
		{ .boot = "b", .job = JOB, .steps = 40, .ahead_us = 700, .jitter_us = 4 },
		{ .boot = "c", .job = JOB, .steps = 30, .ahead_us = 5e6, .jitter_us = 4 },
	};
	struct machines machines = align(made, 3);

	assert_int_equal(machines.of[2].clock.of, 0);
	assert_int_equal(machines.of[2].clock.n, 30);
	assert_true(fabs(wrong_us(&machines, made, 2, 20000)) < 4);
	assert_true(machines.of[2].clock.error_ns >= machines.of[1].clock.error_ns);
	machines_clear(&machines);
}

static void check_apart(struct made first, struct made second, enum machine_how how)
{
	const struct made made[] = { first, second };
	struct machines machines = align(made, 2);

	assert_int_equal(machines.of[1].how, how);
	assert_int_equal(machines.of[1].clock.of, how == MACHINE_ALIGNED ? 0 : 1);
	assert_non_null(machines_why(&machines, 1));
	machines_clear(&machines);
}

static void test_what_no_clock_can_be_compared_by_is_said(void **state)
{
	const struct made made = { .boot = "a", .job = JOB, .steps = 40 };
	struct made other = made;

	other.boot = "b";
	check_apart(made, other, MACHINE_ALIGNED);
	other.no_gpu_times = true;
	check_apart(made, other, MACHINE_NO_GPU_TIMES);
	other.no_gpu_times = false;
	other.job = JOB + 1;
	check_apart(made, other, MACHINE_OTHER_JOB);
	other.job = JOB;
	other.person = 1001;
	check_apart(made, other, MACHINE_OTHER_USER);
	other.person = 0;
	other.steps = MACHINES_LEAST - 1;
	check_apart(made, other, MACHINE_FEW);
	other.steps = 40;
	other.lost = true;
	check_apart(made, other, MACHINE_LOST);
	other.lost = false;
	other.job = 0;
	check_apart(made, other, MACHINE_NO_CALLS);
}

/* Jobs of so many users on both machines, of whom the last has many more collectives than all
 * others, and says that they end 5 ms later on the second. */
static struct machines align_users(size_t users)
{
	struct made made[6];

	for (size_t i = 0; i < 2 * users; i++) {
		bool hostile = i / 2 + 1 == users;

		made[i] = (struct made){ .boot = i % 2 ? "b" : "a",
			                 .job = JOB + (i / 2 << 32),
			                 .steps = hostile ? 600 : 20,
			                 .ahead_us = i % 2 ? 700 : 0,
			                 .person = 1001 + i / 2 };
		if (hostile && i % 2)
			made[i].ahead_us += 5000;
	}
	return align(made, 2 * users);
}

static void test_no_user_alone_puts_a_clock_off(void **state)
{
	struct machines machines = align_users(3);

	assert_int_equal(machines.n, 2);
	assert_int_equal(machines.of[1].clock.n, 640);
	assert_true(llabs(machines.of[1].clock.map.offset_ns + 700000) < 1000);
	assert_true(machines.of[1].clock.error_ns < 1000);
	machines_clear(&machines);
}

static void test_of_two_users_who_do_not_agree_neither_is_right(void **state)
{
	struct machines machines = align_users(2);

	assert_int_equal(machines.of[1].clock.n, 620);
	assert_true(machines.of[1].clock.error_ns >= 2500000);
	machines_clear(&machines);
}

/* Times of a file can be any. */
static void test_a_clock_of_any_time(void **state)
{
	const struct made made[] = {
		{ .boot = "a", .job = JOB, .steps = 40 },
		{ .boot = "b", .job = JOB, .steps = 40, .ahead_us = 4e15, .drift = -1e-3 }
	};
	struct machines machines = align(made, 2);

	assert_int_equal(machines.n, 2);
	machines_clear(&machines);
}

/* More files are compared than machines are told together. */
static void test_a_machine_that_there_is_no_room_for_has_a_reason(void **state)
{
	char boots[MADE_FILES][4];
	struct made made[MADE_FILES];
	struct machines machines;

	for (size_t i = 0; i < MADE_FILES; i++) {
		snprintf(boots[i], sizeof(boots[i]), "b%zu", i);
		made[i] = (struct made){ .boot = boots[i], .job = JOB, .steps = 10 };
	}
	machines = align(made, MADE_FILES);
	assert_null(machines_clock(&machines, TOGETHER_MAX));
	assert_string_equal(machines_why(&machines, TOGETHER_MAX),
	                    "there are more machines than are compared");
	machines_clear(&machines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_clock_an_hour_ahead),
		cmocka_unit_test(test_a_clock_that_began_later_and_drifts),
		cmocka_unit_test(test_a_third_one_by_the_second),
		cmocka_unit_test(test_what_no_clock_can_be_compared_by_is_said),
		cmocka_unit_test(test_no_user_alone_puts_a_clock_off),
		cmocka_unit_test(test_of_two_users_who_do_not_agree_neither_is_right),
		cmocka_unit_test(test_a_clock_of_any_time),
		cmocka_unit_test(test_a_machine_that_there_is_no_room_for_has_a_reason),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
