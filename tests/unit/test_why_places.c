// SPDX-License-Identifier: MIT
/* Places that `why` tells of a cause that is in several functions, or threads. */
#include "why_scene.h"

/* What a stack of in_callee() is where its callee calls `inner`. */
static const struct stack *in_inner(uint32_t id, const char *inner, uint32_t line,
                                    const struct stack *callee)
{
	static struct stack_frame frames[8];
	static const struct stack_frame *pointers[8][3];
	static struct stack stacks[8];

	frames[id] = (struct stack_frame){ .id = 300 + id,
		                           .kind = FRAME_PYTHON,
		                           .function = inner,
		                           .file = "/home/ann/train.py",
		                           .line = line };
	pointers[id][0] = &frames[id];
	pointers[id][1] = callee->frames[0];
	pointers[id][2] = callee->frames[1];
	stacks[id] = (struct stack){ .id = 300 + id, .n_frames = 3, .frames = pointers[id] };
	return &stacks[id];
}

/* step() of line 20 or so, that calls `callee` of line 40 or so. */
static const struct stack *in_callee(uint32_t id, const char *callee, uint32_t line)
{
	static struct stack_frame frames[8][2];
	static const struct stack_frame *pointers[8][2];
	static struct stack stacks[8];

	frames[id][0] = (struct stack_frame){ .id = 200 + 2 * id,
		                              .kind = FRAME_PYTHON,
		                              .function = callee,
		                              .file = "/home/ann/train.py",
		                              .line = line };
	frames[id][1] = (struct stack_frame){ .id = 201 + 2 * id,
		                              .kind = FRAME_PYTHON,
		                              .function = "step",
		                              .file = "/home/ann/train.py",
		                              .line = 20 + id };
	pointers[id][0] = &frames[id][0];
	pointers[id][1] = &frames[id][1];
	stacks[id] = (struct stack){ .id = 200 + id, .n_frames = 2, .frames = pointers[id] };
	return &stacks[id];
}

static void ask_in(const char *function, double at_us, double us, const struct stack *stack)
{
	struct call call = call_at(function, at_us, us);

	call.stack = stack;
	see(call_event(the_process(), the_process()->pid, &call));
}

/* Half of it is in a callee, and nearly half in another one. */
static void test_of_a_cause_in_two_callees_both_are_told(void **state)
{
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		ask_in("cudaMalloc", now_us + 2100, 3500, in_callee(0, "take", 41));
		ask_in("cudaFree", now_us + 5700, 4000, in_callee(1, "release", 43));
	}
	conclude(now_us);
	assert_said("Change first: allocating GPU memory in train.py:2");
	assert_said(" step (53 % in train.py:43 release, 47 % in train.py:41 take): 75 % of the "
	            "time");
}

/* The one with the most has it in many of its own callees, of which none has a third of all. */
static void test_of_a_callee_whose_own_ones_share_it_that_is_told(void **state)
{
	static const char *const inner[] = { "first", "second", "third", "fourth" };

	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		for (unsigned k = 0; k < 4; k++)
			ask_in("cudaMalloc", now_us + 2100 + (k ? 600 + 1000 * k : 0),
			       k ? 950 : 1550,
			       in_inner(k, inner[k], 61 + k, in_callee(0, "take", 41)));
		ask_in("cudaFree", now_us + 6700, 3200, in_callee(1, "release", 43));
	}
	conclude(now_us);
	assert_said(" in train.py:41 take, ");
	assert_said(" in train.py:43 release): ");
}

static void test_of_a_cause_in_one_callee_its_place_is_told(void **state)
{
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		ask_in("cudaMalloc", now_us + 2100, 1000, in_callee(0, "take", 41));
		ask_in("cudaFree", now_us + 5700, 4000, in_callee(1, "release", 43));
	}
	conclude(now_us);
	assert_said(
		"Change first: allocating GPU memory in train.py:21 step > train.py:43 release: "
		"40 % of the time");
	assert_not_said("% in train.py");
}

/* Of each step the thread that asks lacks a CPU, and so does the one that it waits for. */
static void lack_a_cpu(void)
{
	struct sample ready = sample_of(SAMPLE_OFF_CPU, 3500, in_callee(0, "augment", 41));
	struct sample waits = sample_of(SAMPLE_OFF_CPU, 4000, stack_of_line(32));
	struct sample other = sample_of(SAMPLE_OFF_CPU, 3900, in_callee(1, "backward", 51));

	ready.wait = other.wait = WAIT_CPU;
	ready.blocked = other.blocked = BLOCKED_PREEMPTED;
	ready.rival_pid = other.rival_pid = the_process()->pid;
	ready.rival = other.rival = "statistics";
	waits.wait = WAIT_LOCK;
	waits.blocked = BLOCKED_WOKEN;
	waits.waker_tid = 51;
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		see(sample_event(the_process(), the_process()->pid, now_us + 5600, &ready));
		see(sample_event(the_process(), 51, now_us + 9550, &other));
		see(sample_event(the_process(), the_process()->pid, now_us + 9600, &waits));
	}
}

static void test_what_threads_lack_of_cpus_is_one_thing(void **state)
{
	lack_a_cpu();
	conclude(now_us);
	assert_said("Change first: ready, without a CPU in train.py:21 step");
	assert_said(" (53 % in train.py:51 backward, 47 % in train.py:41 augment): 74 % of the "
	            "time");
	assert_said("mostly while its own threads (statistics) had the CPU.");
	assert_not_said("Not sure");
	assert_not_said("Next: ready");
}

/* rounds() of format() of a handler of logs, in another thread with a function more around it. */
static const struct stack *in_handler(bool of_thread)
{
	static const char *const functions[] = { "rounds", "format", "handle", "step", "run" };
	static struct stack_frame frames[5];
	static const struct stack_frame *pointers[2][5];
	static struct stack stacks[2];
	size_t n = 0;

	for (uint32_t i = 0; i < 5; i++) {
		frames[i] = (struct stack_frame){ .id = 400 + i,
			                          .kind = FRAME_PYTHON,
			                          .function = functions[i],
			                          .file = "/home/ann/train.py",
			                          .line = 80 + i };
		if (i != (of_thread ? 3 : 4))
			pointers[of_thread][n++] = &frames[i];
	}
	stacks[of_thread] = (struct stack){ .id = 400 + of_thread,
		                            .n_frames = (uint32_t)n,
		                            .frames = pointers[of_thread] };
	return &stacks[of_thread];
}

/* In turn with another thread, for which it waits for as long. */
static void test_what_two_threads_compute_is_one_thing(void **state)
{
	struct sample own = sample_of(SAMPLE_CPU, 1000, in_handler(false));
	struct sample other = sample_of(SAMPLE_CPU, 1000, in_handler(true));
	struct sample waits = sample_of(SAMPLE_OFF_CPU, 4000, stack_of_line(32));

	waits.wait = WAIT_LOCK;
	waits.blocked = BLOCKED_WOKEN;
	waits.waker_tid = 51;
	for (unsigned i = 0; i < 20; i++, now_us += 10000) {
		kernel_on(0, ask("cuLaunchKernel", now_us, 5, 0), now_us + 10, 2000);
		for (unsigned k = 0; k < 4; k++) {
			see(sample_event(the_process(), 51, now_us + 2100 + 1000 * k, &other));
			see(sample_event(the_process(), the_process()->pid,
			                 now_us + 6100 + 1000 * k, &own));
		}
		see(sample_event(the_process(), the_process()->pid, now_us + 6000, &waits));
	}
	conclude(now_us);
	assert_said("Change first: computing in ... > train.py:82 handle > train.py:81 format > "
	            "train.py:80 rounds: 80 % of the time");
	assert_not_said("Next: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_of_a_cause_in_two_callees_both_are_told),
		TEST(test_of_a_callee_whose_own_ones_share_it_that_is_told),
		TEST(test_of_a_cause_in_one_callee_its_place_is_told),
		TEST(test_what_threads_lack_of_cpus_is_one_thing),
		TEST(test_what_two_threads_compute_is_one_thing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
