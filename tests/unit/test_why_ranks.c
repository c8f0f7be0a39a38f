// SPDX-License-Identifier: MIT
/* What `why` says of ranks of one job, and of those of several users. */
#include "../golden/kernel.h"
#include "why_scene.h"

#include "report/why_inside.h"

static struct process two[2] = { { .id = 200, .pid = 7000, .comm = "rank0" },
	                         { .id = 201, .pid = 7001, .comm = "rank1" } };

static void made(const struct process *process, uint64_t job)
{
	struct call call =
		other_call(other_function(LAYER_HOOK, "nccl.ncclCommInitRank", "libnccl.so.2",
	                                  "ranks:int rank:int id:hex comm:addr"),
	                   1, 1, 2, process->pid - 7000);
	struct event event;

	call.args.arg[2] = job;
	call.args.arg[3] = 0x5500;
	event = call_event(process, process->pid, &call);
	event.type = EVENT_OTHER_CALL;
	see(event);
}

/* Of so many us each, of which a tenth is a kernel's. */
static void steps_of(const struct process *process, unsigned n, double step_us)
{
	for (unsigned i = 0; i < n; i++) {
		double at_us = 10 + i * step_us;
		struct call call = call_at("cuLaunchKernel", at_us, 5);
		struct activity activity = { .kind = ACTIVITY_KERNEL,
			                     .device = process->pid - 7000,
			                     .context = 1,
			                     .stream = 7,
			                     .correlation = ++correlation,
			                     .begin_ns = US(at_us + 10),
			                     .end_ns = US(at_us + 10 + step_us / 10) };

		call.correlation = correlation;
		see(call_event(process, process->pid, &call));
		see(activity_event(process, &activity));
	}
}

static void two_of_a_job(double least_us, double most_us)
{
	for (int i = 0; i < 2; i++) {
		two[i].person = 1001;
		made(&two[i], 77ull << 32);
	}
	steps_of(&two[0], (unsigned)(200000 / least_us), least_us);
	steps_of(&two[1], (unsigned)(200000 / most_us), most_us);
	conclude(200000);
}

static void test_steps_of_ranks_that_differ_tenfold_are_said_to(void **state)
{
	two_of_a_job(1000, 10000);
	assert_said("Steps of ranks of one job differ: 1.000 ms in pid 7000, 10.000 ms in pid "
	            "7001: a part of a step");
}

static void test_steps_of_ranks_that_are_nearly_alike_are_not_said_to_differ(void **state)
{
	two_of_a_job(9000, 10000);
	assert_said(" steps of ");
	assert_not_said("differ");
}

static void test_a_communicator_of_two_users_is_said_to_be(void **state)
{
	for (int i = 0; i < 2; i++) {
		two[i].person = i ? 1ull << 40 | 4026532000u : 0;
		made(&two[i], 0x5eedc0ffull << 32);
	}
	steps_of(&two[0], 20, 10000);
	conclude(200000);
	assert_said("Communicator 5eedc0ff is said to be theirs by processes of root and the "
	            "container with the user namespace 4026532000: anybody can say that, so "
	            "ranks of each are matched among themselves.\n");
}

static void ras_told(const struct process *process, uint32_t number, uint64_t reduces)
{
	for (double at_us = 1; at_us < 10e6; at_us += 9e6) {
		struct call call = other_call(
			other_function(LAYER_HOOK, "ras.rank", "",
		                       "id:addr rank:int ranks:int pid:int AllReduce:u64"),
			at_us, 1, 0x77ull << 32, number);
		struct event event;

		call.args.arg[2] = 2;
		call.args.arg[3] = process->pid;
		call.args.arg[4] = reduces;
		event = call_event(process, process->pid, &call);
		event.type = EVENT_OTHER_CALL;
		see(event);
	}
}

/* RAS of another user says that a job of his stands still: that is no reason to judge nothing. */
static void stands_beside(uint64_t person)
{
	two[1].person = 1002;
	two[0].person = person;
	for (uint32_t i = 0; i < 2; i++)
		ras_told(&two[1], i, 100 + i);
	for (unsigned i = 0; i < 40; i++) {
		struct sample one = sample_of(SAMPLE_CPU, 9000, stack_of_line(31));

		see(sample_event(&two[0], two[0].pid, 10000 * i + 9500, &one));
	}
	steps_of(&two[0], 40, 10000);
	conclude(10e6);
	assert_said("Standing still: rank 0 has not launched AllReduce 101");
}

static size_t lines_said(void)
{
	size_t n = 0;

	for (const char *at = text.data; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

/* Lines of the account go, the least first, and what is next; both stay where there is room. */
static void test_what_is_said_of_jobs_beside_takes_the_room_of_what_is_less(void **state)
{
	two[0].person = 1001;
	two[1].person = 1002;
	for (uint32_t i = 0; i < 2; i++)
		ras_told(&two[1], i, 100 + i);
	for (unsigned i = 0; i < 400; i++) { /* 1 ms each */
		static const char *const calls[] = { "cuMemAlloc", "cuMemFree",
			                             "cuStreamSynchronize", "cuMemcpyDtoH_v2" };

		for (unsigned k = 0; k < ARRAY_SIZE(calls); k++) {
			struct call call = call_at(calls[k], 1000 * i + 120 + 200 * k, 150 - k);

			see(call_event(&two[0], two[0].pid, &call));
		}
	}
	steps_of(&two[0], 400, 1000);
	conclude(400e3);
	assert_said("Standing still: ");
	assert_said("all else");
	assert_said("Next: ");
	assert_int_equal(lines_said(), 15);
}

static void test_what_stands_still_of_another_user_hides_no_answer(void **state)
{
	stands_beside(1001);
	assert_said("Change first: ");
}

static void test_what_stands_still_is_all_that_is_said_of_its_user(void **state)
{
	stands_beside(1002);
	assert_not_said("Change first: ");
}

/* No communicator of theirs is known; the second's kernel of communication comes 3 ms later. */
static void talk(uint64_t person)
{
	static struct kernel *reduces;

	reduces = reduces ? reduces : new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", true);
	two[0].person = 1001;
	two[1].person = person;
	for (unsigned step = 0; step < 40; step++)
		for (int i = 0; i < 2; i++) {
			double at_us = 10000 * step + 1000 + 3000 * i;
			struct call call = call_at("cuLaunchKernel", at_us - 20, 5);
			struct activity activity = { .kind = ACTIVITY_KERNEL,
				                     .device = (uint32_t)i,
				                     .context = 1,
				                     .stream = 7,
				                     .kernel = reduces,
				                     .correlation = ++correlation,
				                     .begin_ns = US(at_us),
				                     .end_ns = US(10000 * step + 5000) };

			call.correlation = correlation;
			see(call_event(&two[i], two[i].pid, &call));
			see(activity_event(&two[i], &activity));
		}
	conclude(400000);
}

static void test_who_communicates_at_that_time_may_be_waited_for(void **state)
{
	talk(1001);
	assert_said("of rank1 (pid 7001)");
}

static void test_who_is_another_user_is_not_waited_for_in_a_collective(void **state)
{
	talk(1002);
	assert_said("GPUs communicate");
	assert_not_said("of rank1 (pid 7001)");
}

static void ask_for(const struct process *process, struct kernel *kernel, uint32_t stream,
                    double begin_us, double end_us, double asked_us)
{
	struct call call = call_at("cuLaunchKernel", asked_us, 5);
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .device = process->pid - 7000,
		                     .context = 1,
		                     .stream = stream,
		                     .kernel = kernel,
		                     .correlation = ++correlation,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	call.correlation = correlation;
	see(call_event(process, process->pid, &call));
	see(activity_event(process, &activity));
}

/* The second's sum comes 3 ms later than the first's, which computes beside it for so long. */
static void sum_up(double beside_us)
{
	static struct kernel *reduces;

	reduces = reduces ? reduces : new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", true);
	for (int i = 0; i < 2; i++) {
		two[i].person = 1001;
		made(&two[i], 77ull << 32);
	}
	for (unsigned step = 0; step < 40; step++)
		for (int i = 0; i < 2; i++) {
			double at_us = 10000 * step + 1000, sum_us = at_us + 3000 * i;
			struct call call = other_call(
				other_function(LAYER_HOOK, "nccl.ncclAllReduce", "libnccl.so.2",
			                       "comm:addr count:u64 type:int"),
				sum_us - 40, 30, 0x5500, 1 << 20);
			struct event event = call_event(&two[i], two[i].pid, &call);

			ask_for(&two[i], NULL, 7, at_us, sum_us + (i ? 0 : beside_us), at_us - 60);
			ask_for(&two[i], reduces, 8, sum_us, at_us + 4000, sum_us - 30);
			event.type = EVENT_OTHER_CALL;
			see(event);
		}
	conclude(400000);
}

static void test_who_others_wait_for_beside_their_own_work_is_not_late(void **state)
{
	sum_up(2900);
	assert_not_said("comes late");
	assert_not_said("Change first: GPU runs kernels of rank1");
}

static void test_who_others_wait_for_with_nothing_else_to_do_is_late(void **state)
{
	sum_up(1000);
	assert_said("Rank 1 (pid 7001) comes late to 90 % of 40 collectives, by 2.000 ms on "
	            "average; 1 other waits for it, 20 % of the time.\n");
}

static void test_what_there_was_no_room_for_is_said_with_whose_it_was(void **state)
{
	two[0].person = 1001;
	for (uint64_t i = 0; i < 4099; i++)
		made(&two[0], i + 1);
	steps_of(&two[0], 20, 10000);
	conclude(200000);
	assert_said("Left out, as there was no room for more: of user 1001 3 communicators in "
	            "processes.\n");
}

static void test_an_older_recording_of_several_users_is_said_to_mix_them(void **state)
{
	char *words[2][RUN_IDENTITY_WORDS] = { { "ann" }, { "bob" } };
	struct run_identity who[2] = { { .pid = 7000 }, { .pid = 7001 } };

	for (int i = 0; i < 2; i++) {
		memcpy(who[i].words, words[i], sizeof(words[i]));
		two[i].person = PROCESS_UNTOLD;
		made(&two[i], 77);
	}
	info.identities = who;
	info.n_identities = 2;
	steps_of(&two[0], 20, 10000);
	conclude(200000);
	assert_said("The recording is older than ranks of users are told apart");
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCENE(test_steps_of_ranks_that_differ_tenfold_are_said_to),
		IN_SCENE(test_steps_of_ranks_that_are_nearly_alike_are_not_said_to_differ),
		IN_SCENE(test_a_communicator_of_two_users_is_said_to_be),
		IN_SCENE(test_what_is_said_of_jobs_beside_takes_the_room_of_what_is_less),
		IN_SCENE(test_what_stands_still_of_another_user_hides_no_answer),
		IN_SCENE(test_what_stands_still_is_all_that_is_said_of_its_user),
		IN_SCENE(test_who_communicates_at_that_time_may_be_waited_for),
		IN_SCENE(test_who_is_another_user_is_not_waited_for_in_a_collective),
		IN_SCENE(test_who_others_wait_for_beside_their_own_work_is_not_late),
		IN_SCENE(test_who_others_wait_for_with_nothing_else_to_do_is_late),
		IN_SCENE(test_what_there_was_no_room_for_is_said_with_whose_it_was),
		IN_SCENE(test_an_older_recording_of_several_users_is_said_to_mix_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
