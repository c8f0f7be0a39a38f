// SPDX-License-Identifier: MIT
/* How long a step would be without what is to be changed: a shape of overlap in each. */
#include "account_scene.h"

#include "account/answer.h"

#define STEPS  20
#define WORKER 4300
#define UNSEEN 4999 /* nothing is recorded of it */

static struct answer answer;

static int end_scene(void **state)
{
	answer_clear(&answer);
	return close_scene(state);
}

/* The change of a cause at a line, of all that are told. */
static const struct answer_change *change_at(enum account_cause cause, uint32_t line)
{
	for (size_t i = 0; i < answer.n_changes; i++) {
		const struct stack_frame *frame =
			chains_frame(facts.chains, answer.changes[i].chain);

		if (answer.changes[i].cause == cause && frame && frame->line == line)
			return &answer.changes[i];
	}
	tell_account(&accounts.of[0]);
	fail_msg("no change of %s at line %u", account_cause_name(cause), line);
	return NULL;
}

/* What a step is without it. The last is over when its work is. */
static void assert_left(enum account_cause cause, uint32_t line, double us, enum account_cause then)
{
	const struct answer_change *change;
	double left;

	info.stacks.sample_ns = 1000000;
	exited(the_process(), 1e6);
	make_accounts(1e6);
	assert_all_add_up();
	answer_make(&answer, &facts, &accounts);
	change = change_at(cause, line);
	left = change->left_ns / 1000 / STEPS;
	if (left < 0.97 * us || left > 1.03 * us) {
		tell_account(change->account);
		fail_msg("%.3f us are left of a step, not %.3f", left, us);
	}
	assert_string_equal(account_cause_name(change->then), account_cause_name(then));
}

static void sampled_from(uint32_t tid, double begin_us, double end_us, uint32_t line)
{
	for (double at = begin_us + 50; at < end_us; at += 100)
		sampled_in(the_process(), tid, at, line);
}

/* It sleeps so long that it is late with all; what it needs to launch is less than the GPU's time.
 */
static void test_a_host_that_is_no_longer_late_is_hidden_by_the_gpu(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 5400.0 * i;

		ran(launch(at, 30), at + 5, at + 1000);
		waited(WAIT_SLEEP, at + 5, at + 5000, 0, 27);
		sampled_from(MAIN, at + 5000, at + 5400, 28);
	}
	assert_left(ACCOUNT_SLEEP, 27, 995, ACCOUNT_KERNELS);
}

/* What it computes takes longer than what the GPU has to run: that is the step then. */
static void test_the_hosts_own_time_bounds_a_step(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;

		ran(launch(at, 30), at + 5, at + 1005);
		waited(WAIT_SLEEP, at + 5, at + 4000, 0, 27);
		sampled_from(MAIN, at + 4000, at + 6000, 28);
	}
	assert_left(ACCOUNT_SLEEP, 27, 1905, ACCOUNT_COMPUTING);
}

/* It waits for the GPU, and then computes: neither runs beside the other, with the sleep or not. */
static void test_what_follows_a_wait_is_added_to_the_gpus_time(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;

		ran(launch(at, 30), at + 5, at + 1000);
		call_from(at + 10, at + 1000, "cuStreamSynchronize", 31);
		sampled_from(MAIN, at + 1000, at + 1800, 28);
		waited(WAIT_SLEEP, at + 1800, at + 6000, 0, 27);
	}
	assert_left(ACCOUNT_SLEEP, 27, 1800, ACCOUNT_KERNELS);
}

/* The wait finds nothing to wait for, since the host comes late: without the sleep it would. */
static void test_a_wait_that_was_none_becomes_one(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;

		ran(launch(at, 30), at + 5, at + 1000);
		waited(WAIT_SLEEP, at + 20, at + 5200, 0, 27);
		call_from(at + 5200, at + 5202, "cuStreamSynchronize", 31);
		sampled_from(MAIN, at + 5202, at + 6000, 28);
	}
	assert_left(ACCOUNT_SLEEP, 27, 1800, ACCOUNT_KERNELS);
}

/* One of an event of a step before stays none. */
static void test_a_wait_for_an_event_stays_none(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;

		ran(launch(at, 30), at + 5, at + 1000);
		waited(WAIT_SLEEP, at + 20, at + 5200, 0, 27);
		call_from(at + 5200, at + 5202, "cuEventSynchronize", 31);
		sampled_from(MAIN, at + 5202, at + 6000, 28);
	}
	assert_left(ACCOUNT_SLEEP, 27, 1000, ACCOUNT_KERNELS);
}

static void ran_on(uint32_t stream, uint64_t of, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .context = 1,
		                     .stream = stream,
		                     .correlation = of,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	see(activity_event(the_process(), &activity));
}

/* Two streams by turns, each of which waits for the other for a while; the host is a step ahead. */
static void test_streams_that_do_not_wait_run_beside_each_other(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 2400.0 * i;

		ran_on(7, launch(at, 30), at + 2600, at + 3600);
		ran_on(8, launch(at + 10, 30), at + 3800, at + 4800);
		call_from(at + 15, at + 2390, "cuEventSynchronize", 31);
	}
	assert_left(ACCOUNT_STREAM_WAIT, 30, 1000, ACCOUNT_KERNELS);
}

/* Another thread computes what it waits for, and has the CPU when it could go on. */
static void test_a_cpu_that_the_cause_had_is_free(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 5500.0 * i;
		struct sample ready = sample_of(SAMPLE_OFF_CPU, 1500, at_line(26));

		ran(launch(at, 30), at + 5, at + 500);
		waited(WAIT_LOCK, at + 5, at + 4000, WORKER, 26);
		sampled_from(WORKER, at, at + 5500, 40);
		ready.runnable_ns = ready.weight_ns;
		ready.rival_pid = the_process()->pid;
		see(sample_event(the_process(), MAIN, at + 5500, &ready));
	}
	assert_left(ACCOUNT_COMPUTING, 40, 500, ACCOUNT_KERNELS);
}

/* With a CPU of its own it still computes what it does. */
static void test_who_has_a_cpu_still_computes(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;
		struct sample ready = sample_of(SAMPLE_OFF_CPU, 4000, at_line(26));

		ran(launch(at, 30), at + 5, at + 500);
		sampled_from(MAIN, at + 5, at + 2000, 26);
		ready.runnable_ns = ready.weight_ns;
		see(sample_event(the_process(), MAIN, at + 6000, &ready));
	}
	assert_left(ACCOUNT_NO_CPU, 26, 1910, ACCOUNT_COMPUTING);
}

/* Copies that the host waits for are its time, too; both go. */
static void test_a_copy_is_the_gpus_time_and_the_calls(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 3000.0 * i;
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .context = 1,
			                 .stream = 7,
			                 .begin_ns = US(at + 1100),
			                 .end_ns = US(at + 2600) };

		ran(launch(at, 30), at + 5, at + 1000);
		copy.correlation = call_from(at + 1000, at + 3000, "cuMemcpyHtoD_v2", 31);
		see(activity_event(the_process(), &copy));
	}
	assert_left(ACCOUNT_COPIES, 31, 1000, ACCOUNT_KERNELS);
}

/* Line 50 of upload() copies, and line 51 waits for what it copied. */
static const struct stack *in_upload(uint32_t line)
{
	static struct stack_frame frames[2];
	static const struct stack_frame *pointers[2];
	static struct stack stacks[2];
	uint32_t i = line - 50;

	frames[i] = (struct stack_frame){ .id = 80 + i,
		                          .kind = FRAME_PYTHON,
		                          .function = "upload",
		                          .file = "/home/ann/train.py",
		                          .line = line };
	pointers[i] = &frames[i];
	stacks[i] = (struct stack){ .id = 80 + i, .n_frames = 1, .frames = &pointers[i] };
	return &stacks[i];
}

static uint64_t upload_from(double begin_us, double end_us, const char *function, uint32_t line)
{
	struct call call = call_at(function, begin_us, end_us - begin_us);

	call.correlation = ++correlation;
	call.stack = in_upload(line);
	see(call_event(the_process(), MAIN, &call));
	return correlation;
}

/* A copy that is waited for in another line of its function, which does nothing else. */
static void test_the_wait_for_a_copy_goes_with_it(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 3000.0 * i;
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .context = 1,
			                 .stream = 7,
			                 .begin_ns = US(at + 1100),
			                 .end_ns = US(at + 2000) };

		ran(launch(at, 30), at + 5, at + 1000);
		copy.correlation = upload_from(at + 1000, at + 1005, "cuMemcpyHtoDAsync_v2", 50);
		see(activity_event(the_process(), &copy));
		upload_from(at + 1010, at + 3000, "cuStreamSynchronize", 51);
	}
	assert_left(ACCOUNT_COPY_CALL, 51, 1000, ACCOUNT_KERNELS);
}

/* In a function of its own; those of stack_of_line() are lines of one. */
static const struct stack *in_function(uint32_t line)
{
	static struct stack_frame frames[8];
	static const struct stack_frame *pointers[8];
	static struct stack stacks[8];
	static char names[8][16];
	uint32_t i = 0;

	while (i < 8 && frames[i].line && frames[i].line != line)
		i++;
	assert_true(i < 8);
	snprintf(names[i], sizeof(names[i]), "work_%u", line);
	frames[i] = (struct stack_frame){ .id = 64 + i,
		                          .kind = FRAME_PYTHON,
		                          .function = names[i],
		                          .file = "/home/ann/work.py",
		                          .line = line };
	pointers[i] = &frames[i];
	stacks[i] = (struct stack){ .id = 64 + i, .n_frames = 1, .frames = &pointers[i] };
	return &stacks[i];
}

static void worked_from(uint32_t tid, double begin_us, double end_us, uint32_t line)
{
	struct sample sample = sample_of(SAMPLE_CPU, 1000, in_function(line));

	for (double at = begin_us + 50; at < end_us; at += 100)
		see(sample_event(the_process(), tid, at, &sample));
}

/* line 0: without a stack. */
static void waited_by(uint32_t tid, enum wait_kind wait, double begin_us, double end_us,
                      uint32_t waker, uint32_t line)
{
	struct sample sample =
		sample_of(SAMPLE_OFF_CPU, end_us - begin_us, line ? in_function(line) : NULL);

	sample.wait = wait;
	sample.blocked = waker ? BLOCKED_WOKEN : BLOCKED_INTERRUPT;
	sample.waker_tid = waker;
	see(sample_event(the_process(), tid, end_us, &sample));
}

/* It computes at line 40, and `rest_us` at line 41, for what the thread waits for that launches,
 * and itself computes for 600 us. Whoever asks has it wait for that. */
static void compute_for_main(double rest_us, bool asked)
{
	double all_us = 4000 + rest_us + 600;

	for (int i = 0; i < STEPS; i++) {
		double at = all_us * i;

		ran(launch(at, 30), at + 5, at + 300);
		sampled_from(MAIN, at + 5, at + 600, 28);
		if (asked)
			waited_by(WORKER, WAIT_LOCK, at, at + 600, MAIN, 42);
		else
			worked_from(WORKER, at, at + 600, 40);
		worked_from(WORKER, at + 600, at + 4600, 40);
		worked_from(WORKER, at + 4600, at + all_us, 41);
		waited_by(MAIN, WAIT_LOCK, at + 600, at + all_us, WORKER, 26);
	}
}

static void test_who_works_ahead_works_beside(void **state)
{
	compute_for_main(500, false);
	assert_left(ACCOUNT_COMPUTING, 40, 600, ACCOUNT_COMPUTING);
}

static void test_who_works_ahead_and_takes_longer_is_waited_for(void **state)
{
	compute_for_main(1500, false);
	assert_left(ACCOUNT_COMPUTING, 40, 1425, ACCOUNT_COMPUTING);
}

static void test_who_is_asked_is_waited_for(void **state)
{
	compute_for_main(500, true);
	assert_left(ACCOUNT_COMPUTING, 40, 1060, ACCOUNT_COMPUTING);
}

/* Another one sleeps all the time, and computing less is waiting longer for it: though it takes
 * more time, it is not what to change first. */
static void test_what_another_one_works_beside_gains_nothing(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 4000.0 * i;

		ran(launch(at, 30), at + 5, at + 300);
		worked_from(MAIN, at + 5, at + 2600, 40);
		waited_by(MAIN, WAIT_LOCK, at + 2600, at + 4000, WORKER, 26);
		waited_by(WORKER, WAIT_SLEEP, at + 10, at + 3990, 0, 41);
	}
	assert_left(ACCOUNT_COMPUTING, 40, 3815, ACCOUNT_SLEEP);
	assert_ptr_equal(&answer.changes[0], change_at(ACCOUNT_SLEEP, 41));
	assert_true(answer.changes[0].left_ns < 0.7 * answer.changes[1].left_ns);
}

/* The same of a thread of CUDA's own, which is what the GPU does: a moment is waited for it. */
static void test_nobody_works_beside_who_is_cudas(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 3900, cudas_stack(false));

	sample.wait = WAIT_SLEEP;
	sample.blocked = BLOCKED_INTERRUPT;
	for (int i = 0; i < STEPS; i++) {
		double at = 4000.0 * i;

		ran(launch(at, 30), at + 5, at + 300);
		worked_from(MAIN, at + 5, at + 3990, 40);
		waited_by(MAIN, WAIT_LOCK, at + 3990, at + 4000, WORKER, 26);
		see(sample_event(the_process(), WORKER, at + 3950, &sample));
	}
	assert_left(ACCOUNT_COMPUTING, 40, 295, ACCOUNT_KERNELS);
}

/* One that copies memory, as the GPU, is in no line but that of who waits for it. */
static void test_what_cudas_own_thread_computes_is_the_gpus(void **state)
{
	struct sample sample = sample_of(SAMPLE_CPU, 1000, cudas_stack(false));

	for (int i = 0; i < STEPS; i++) {
		double at = 4000.0 * i;
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .context = 1,
			                 .stream = 7,
			                 .begin_ns = US(at + 300),
			                 .end_ns = US(at + 3900) };

		ran(launch(at, 30), at + 5, at + 300);
		copy.correlation = call_from(at + 10, at + 20, "cuMemcpyDtoDAsync_v2", 31);
		see(activity_event(the_process(), &copy));
		for (double k = 350; k < 3900; k += 100)
			see(sample_event(the_process(), WORKER, at + k, &sample));
		waited_by(MAIN, WAIT_LOCK, at + 30, at + 3900, WORKER, 40);
	}
	assert_left(ACCOUNT_COPIES, 31, 395, ACCOUNT_KERNELS);
}

/* It computes in the same function for less than it has no CPU there, by several others. */
static void test_what_goes_along_is_told_under_the_largest_cause(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 300, in_function(40));

	sample.wait = WAIT_CPU;
	sample.blocked = BLOCKED_PREEMPTED;
	for (int i = 0; i < STEPS; i++) {
		double at = 2000.0 * i;

		ran(launch(at, 30), at + 5, at + 300);
		for (unsigned k = 0; k < 4; k++) {
			sample.rival_pid = 61 + k;
			see(sample_event(the_process(), MAIN, at + 900 + 300 * k, &sample));
		}
		worked_from(MAIN, at + 1800, at + 2000, 40);
	}
	assert_left(ACCOUNT_NO_CPU, 40, 795, ACCOUNT_COMPUTING);
	assert_int_equal(answer.changes[0].cause, ACCOUNT_NO_CPU);
}

/* Another one computes while it waits, and so again where nobody knows who ended the wait. */
static void test_a_wait_that_nobody_is_known_to_have_ended_is_like_the_others(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 5000.0 * i;
		bool known = i % 4;

		ran(launch(at, 30), at + 5, at + 300);
		waited_by(WORKER, WAIT_LOCK, at, at + 600, MAIN, 42);
		sampled_from(MAIN, at + 5, at + 600, 28);
		worked_from(WORKER, at + 600, at + 5000, 40);
		waited_by(MAIN, WAIT_LOCK, at + 600, at + 5000, known ? WORKER : UNSEEN, 26);
	}
	assert_left(ACCOUNT_COMPUTING, 40, 595, ACCOUNT_COMPUTING);
}

/* A function asks a server again and again: what that one does goes with the function. */
static void test_what_a_function_waits_for_goes_with_it(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;

		ran(launch(at, 30), at + 5, at + 300);
		sampled_from(MAIN, at + 5, at + 600, 28);
		worked_from(MAIN, at + 600, at + 4600, 26);
		waited_by(WORKER, WAIT_LOCK, at, at + 4600, MAIN, 42);
		worked_from(WORKER, at + 4600, at + 6000, 41);
		waited_by(MAIN, WAIT_LOCK, at + 4600, at + 6000, WORKER, i % 4 ? 26 : 0);
	}
	assert_left(ACCOUNT_COMPUTING, 26, 595, ACCOUNT_COMPUTING);
}

/* They are made for what the host does there with what they bring. */
static void test_copies_to_the_host_go_with_their_function(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 6000.0 * i;
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .direction = DIRECTION_D2H,
			                 .context = 1,
			                 .stream = 7,
			                 .begin_ns = US(at + 1100),
			                 .end_ns = US(at + 2600) };
		struct call call = call_at("cuMemcpyDtoH_v2", at + 1000, 2000);

		ran(launch(at, 30), at + 5, at + 1000);
		call.correlation = copy.correlation = ++correlation;
		call.stack = in_function(31);
		see(call_event(the_process(), MAIN, &call));
		see(activity_event(the_process(), &copy));
		waited_by(MAIN, WAIT_DISK, at + 3000, at + 6000, 0, 31);
	}
	assert_left(ACCOUNT_DISK, 31, 1000, ACCOUNT_KERNELS);
}

/* What the host computes after a copy is beside the GPU's work once it does not wait for that. */
static void test_a_wait_that_goes_has_nothing_after_it(void **state)
{
	for (int i = 0; i < STEPS; i++) {
		double at = 2700.0 * i;
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .direction = DIRECTION_D2H,
			                 .context = 1,
			                 .stream = 7,
			                 .begin_ns = US(at + 550),
			                 .end_ns = US(at + 2050) };

		struct call call = call_at("cuMemcpyDtoH_v2", at + 10, 2090);

		ran(launch(at, 30), at + 5, at + 500);
		call.op = OP_COPY;
		call.args.bytes = 1 << 20;
		call.args.direction = DIRECTION_D2H;
		copy.correlation = call_in(the_process(), MAIN, call, 31);
		see(activity_event(the_process(), &copy));
		worked_from(MAIN, at + 2100, at + 2700, 28);
	}
	assert_left(ACCOUNT_COPIES, 31, 575, ACCOUNT_COMPUTING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, end_scene)
		TEST(test_a_host_that_is_no_longer_late_is_hidden_by_the_gpu),
		TEST(test_the_hosts_own_time_bounds_a_step),
		TEST(test_what_follows_a_wait_is_added_to_the_gpus_time),
		TEST(test_a_wait_that_was_none_becomes_one),
		TEST(test_a_wait_for_an_event_stays_none),
		TEST(test_streams_that_do_not_wait_run_beside_each_other),
		TEST(test_a_cpu_that_the_cause_had_is_free),
		TEST(test_who_has_a_cpu_still_computes),
		TEST(test_a_copy_is_the_gpus_time_and_the_calls),
		TEST(test_the_wait_for_a_copy_goes_with_it),
		TEST(test_who_works_ahead_works_beside),
		TEST(test_who_works_ahead_and_takes_longer_is_waited_for),
		TEST(test_who_is_asked_is_waited_for),
		TEST(test_what_another_one_works_beside_gains_nothing),
		TEST(test_nobody_works_beside_who_is_cudas),
		TEST(test_what_cudas_own_thread_computes_is_the_gpus),
		TEST(test_what_goes_along_is_told_under_the_largest_cause),
		TEST(test_a_wait_that_nobody_is_known_to_have_ended_is_like_the_others),
		TEST(test_what_a_function_waits_for_goes_with_it),
		TEST(test_copies_to_the_host_go_with_their_function),
		TEST(test_a_wait_that_goes_has_nothing_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
