// SPDX-License-Identifier: MIT
/* What each nanosecond of a GPU's time is put down to. */
#include "account_scene.h"

static const struct account *the_account(double end_us)
{
	exited(the_process(), end_us);
	make_accounts(end_us);
	assert_int_equal(accounts.n, 1);
	assert_all_add_up();
	return &accounts.of[0];
}

/* ---- what runs ----------------------------------------------------------------------------- */

static void test_a_gpu_that_is_busy_is_busy_with_its_kernels(void **state)
{
	const struct account *account;

	for (int i = 0; i < 10; i++)
		ran(launch(50.0 * i, 30), 100.0 * (i + 1), 100.0 * (i + 2));
	account = the_account(2000);
	assert_int_equal(account->n_parts, 1);
	assert_us(account, ACCOUNT_KERNELS, 30, 1000);
	assert_int_equal(tid_of(account->thread), MAIN);
}

static void test_copies_are_told_where_no_kernel_runs(void **state)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .context = 1,
		                 .stream = 14,
		                 .begin_ns = US(150),
		                 .end_ns = US(400) };
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	copy.correlation = call_from(120, 130, "cuMemcpyHtoDAsync_v2", 31);
	see(activity_event(the_process(), &copy));
	account = the_account(1000);
	assert_us(account, ACCOUNT_KERNELS, 30, 100);
	assert_us(account, ACCOUNT_COPIES, 31, 200);
}

/* ---- what the host did in a pause ---------------------------------------------------------- */

static void test_a_sleep(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 210, 900, 0, 27);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 690);
	assert_us(account, ACCOUNT_COMPUTING, 30, 60);
	assert_us(account, ACCOUNT_LAUNCHING, 30, 5);
	assert_us(account, ACCOUNT_KERNELS, ANY, 200);
	assert_gain(account, ACCOUNT_SLEEP, 27, 690);
}

static void test_computing_is_where_the_samples_are(void **state)
{
	const struct account *account;

	sampled(300, 11);
	sampled(500, 12);
	sampled(700, 11);
	sampled(1100, 13); /* the GPU runs */
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 11, 500);
	assert_us(account, ACCOUNT_COMPUTING, 12, 250);
	assert_us(account, ACCOUNT_COMPUTING, 13, 0);
	assert_true(account->sampled_ns > 749000 && account->unsampled_ns < 1);
}

static void test_computing_without_samples_is_before_the_next_call(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 10, 20, 0, 27); /* what threads do was recorded */
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 30, 750);
	assert_true(account->unsampled_ns > 749000 && account->sampled_ns < 1);
}

static void test_what_was_not_recorded_is_the_hosts(void **state)
{
	pause_until(950);
	assert_us(the_account(2000), ACCOUNT_HOST, 0, 750);
}

static void test_between_launches_is_launching(void **state)
{
	const struct account *account;

	sampled(250, 11);
	pause_until(280);
	account = the_account(2000);
	assert_us(account, ACCOUNT_LAUNCHING, ANY, 85);
	assert_true(us_of(account, ACCOUNT_LAUNCHING, 11) > 80);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

/* It does it from 91 on, the GPU works until 1000, and the next launch comes 300 later: what it did
 * last is where the pause is, and what it did most made it late. */
static void test_what_is_done_while_the_gpu_works_makes_it_late_too(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	for (int i = 1; i < 10; i++)
		sampled(100 * i, 11);
	sampled(1100, 12);
	sampled(1200, 12);
	ran(launch(1295, 30), 1300, 2200);
	account = the_account(2200);
	assert_us(account, ACCOUNT_KERNELS, ANY, 1800);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 11) > 200);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 12) > 20);
}

/* The same with a wait for the GPU before its end: until that it had time. */
static void test_what_is_done_before_a_wait_makes_nothing_late(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	for (int i = 1; i < 9; i++)
		sampled(100 * i, 11);
	call_from(850, 950, "cuStreamSynchronize", 20);
	sampled(1100, 12);
	sampled(1200, 12);
	ran(launch(1295, 30), 1300, 2200);
	account = the_account(2200);
	assert_us(account, ACCOUNT_COMPUTING, 11, 0);
}

static void test_faults_that_samples_see_add_up_with_all_else(void **state)
{
	static struct stack_frame fault = { .id = 70,
		                            .kind = FRAME_KERNEL_MODE,
		                            .function = "handle_mm_fault" };
	static struct stack_frame line = { .id = 71,
		                           .kind = FRAME_PYTHON,
		                           .function = "read",
		                           .file = "/home/ann/train.py",
		                           .line = 60 };
	static const struct stack_frame *const frames[] = { &fault, &line };
	static const struct stack stack = { .id = 70, .n_frames = 2, .frames = frames };
	struct sample sample = sample_of(SAMPLE_CPU, 1000, &stack);
	const struct account *account;

	/* in a short pause, and in a long one */
	ran(launch(90, 30), 100, 200);
	see(sample_event(the_process(), MAIN, 240, &sample));
	ran(launch(260, 30), 265, 300);
	see(sample_event(the_process(), MAIN, 400, &sample));
	see(sample_event(the_process(), MAIN, 500, &sample));
	sampled(600, 11);
	ran(launch(900, 30), 905, 1000);
	account = the_account(2000);
	assert_us(account, ACCOUNT_FAULT, 60, 60 + 400 + 3.452); /* the launches have less */
	assert_us(account, ACCOUNT_COMPUTING, 11, 200);
}

static void test_stretches_without_a_stack_are_where_the_others_are(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 210, 510, 0, 27);
	waited(WAIT_SLEEP, 520, 620, 0, 28);
	waited(WAIT_SLEEP, 700, 900, 0, 0);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 450);
	assert_us(account, ACCOUNT_SLEEP, 28, 150);
	assert_us(account, ACCOUNT_SLEEP, 0, 0);
}

static void test_a_stretch_without_a_stack_alone_stays(void **state)
{
	waited(WAIT_SLEEP, 210, 900, 0, 0);
	pause_until(950);
	assert_us(the_account(2000), ACCOUNT_SLEEP, 0, 690);
}

static void test_ready_without_a_cpu(void **state)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, 600, at_line(27));
	const struct account *account;

	/* blocked for 200, then ready for 400 */
	sample.wait = WAIT_DISK;
	sample.blocked = BLOCKED_INTERRUPT;
	sample.runnable_ns = 400000;
	see(sample_event(the_process(), MAIN, 810, &sample));
	/* it would have run on, and where is seen as it does */
	sample = sample_of(SAMPLE_OFF_CPU, 50, NULL);
	sample.blocked = BLOCKED_PREEMPTED;
	see(sample_event(the_process(), MAIN, 900, &sample));
	sampled(910, 12);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_DISK, 27, 200);
	assert_us(account, ACCOUNT_NO_CPU, 27, 400);
	assert_us(account, ACCOUNT_NO_CPU, 12, 50);
}

static void test_calls_are_what_they_do(void **state)
{
	const struct account *account;

	call_from(210, 310, "cudaMalloc", 40);
	call_from(310, 410, "cudaFree", 41);
	call_from(410, 450, "cudaMemcpy", 42);
	call_from(450, 470, "cudaGetDevice", 43);
	call_from(470, 950, "cudaDeviceSynchronize", 44);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_ALLOCATION, 40, 100);
	assert_us(account, ACCOUNT_ALLOCATION, 41, 100);
	assert_us(account, ACCOUNT_COPY_CALL, 42, 40);
	assert_us(account, ACCOUNT_DRIVER, 43, 20);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 480);
}

static void test_calls_within_calls_are_theirs(void **state)
{
	struct call call = call_at("cuMemAlloc_v2", 220, 50);
	const struct account *account;

	call.flags = CALL_NESTED;
	call.correlation = 77;
	see(call_event(the_process(), MAIN, &call));
	call_from(210, 310, "cudaMalloc", 40);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_ALLOCATION, 40, 100);
}

/* ---- asked for already --------------------------------------------------------------------- */

static void test_what_was_asked_for_takes_a_moment(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	ran(launch(110, 31), 240, 300);
	account = the_account(1000);
	assert_us(account, ACCOUNT_TURNAROUND, 31, 40);
	assert_us(account, ACCOUNT_STREAM_WAIT, ANY, 0);
}

static void test_waits_that_are_told_as_a_sum_are_like_those_that_were_told(void **state)
{
	const struct account *account;

	pause_until(1000);
	waited(WAIT_SLEEP, 300, 400, 0, 27);
	/* of 795 us that nothing else is known of, without the launch, 600 of them in the pause */
	waited_sum(BLOCKED_BRIEF, WAIT_UNKNOWN, 900, 300);
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 900, 100);
	waited_sum(BLOCKED_BRIEF, WAIT_CPU, 900, 80);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 100 + 400 * 600 / 795.0);
	assert_us(account, ACCOUNT_NO_CPU, ANY, 80 * 600 / 795.0);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 800 - 100 - 480 * 600 / 795.0);
	assert_int_equal(part_of(account, ACCOUNT_SLEEP, 27)->count, 1); /* that is known */
}

static void test_waits_of_which_none_was_told_have_no_place(void **state)
{
	const struct account *account;

	pause_until(1000);
	waited(WAIT_SLEEP, 10, 20, 0, 27);
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 30, 0.01);
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 1030, 500);
	account = the_account(2000);
	/* of 990 us without two launches, 800 of them in the pause */
	assert_us(account, ACCOUNT_OTHER_WAIT, 0, 500 * 800 / 990.0);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 800 - 500 * 800 / 990.0);
}

/* More than there can be: nothing is told twice. */
static void test_a_sum_is_no_more_than_its_time(void **state)
{
	const struct account *account;

	pause_until(1000);
	waited(WAIT_SLEEP, 300, 400, 0, 27);
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 1000, 1e9);
	waited_sum(BLOCKED_BRIEF, WAIT_CPU, 1000, 1e9);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 800);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

static void test_what_was_asked_for_and_does_not_begin_waits(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	ran(launch(110, 31), 260, 300);
	account = the_account(1000);
	assert_us(account, ACCOUNT_STREAM_WAIT, 31, 60);
	assert_us(account, ACCOUNT_TURNAROUND, ANY, 0);
}

/* ---- waits for the GPU --------------------------------------------------------------------- */

static void test_a_wait_for_the_gpu_answers_for_the_pause_after_it(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 10, 20, 0, 27);
	ran(launch(90, 30), 100, 1000);
	call_from(150, 1010, "cudaDeviceSynchronize", 44);
	ran(launch(1300, 30), 1305, 1400);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 305);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
	assert_gain(account, ACCOUNT_SYNCHRONISATION, 44, 305);
	assert_gain(account, ACCOUNT_COMPUTING, 30, 290);
	assert_int_equal(part_of(account, ACCOUNT_SYNCHRONISATION, 44)->call->end_ns, US(1010));
}

/* Without the wait the host would have been ahead by 59 only. */
static void test_a_wait_answers_for_as_long_as_it_waited(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 10, 20, 0, 27);
	ran(launch(90, 30), 100, 1000);
	call_from(941, 1010, "cudaDeviceSynchronize", 44);
	ran(launch(1300, 30), 1305, 1400);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 10 + 59);
	assert_us(account, ACCOUNT_COMPUTING, 30, 290.0 * (295 - 59) / 295);
	assert_gain(account, ACCOUNT_SYNCHRONISATION, 44, 10 + 59);
	assert_gain(account, ACCOUNT_COMPUTING, 30, 290);
}

static void test_shared_time_without_stacks_adds_up(void **state)
{
	const struct account *account;

	/* half of a pause is a wait's, and what the host did then has no stack; */
	ran(launch(90, 30), 100, 1000);
	call_from(900, 1010, "cudaDeviceSynchronize", 44);
	waited(WAIT_SLEEP, 1010, 1205, 0, 0);
	ran(launch(1205, 30), 1210, 1300);
	/* of another one nothing is, and it has */
	waited(WAIT_SLEEP, 1310, 1700, 0, 27);
	ran(launch(1700, 30), 1705, 1800);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 195.0 / 2 + 390);
	assert_gain(account, ACCOUNT_SLEEP, 27, 195 + 390);
}

static void test_a_wait_that_was_over_before_answers_for_nothing(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 10, 20, 0, 27);
	call_from(30, 80, "cudaDeviceSynchronize", 44);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SYNCHRONISATION, ANY, 0);
	assert_us(account, ACCOUNT_COMPUTING, 30, 750);
}

/* ---- given on to who was waited for -------------------------------------------------------- */

static const struct account_via *via_of(const struct account_part *part)
{
	assert_true(part->via && part->via < accounts.n_vias);
	return &accounts.vias[part->via];
}

static void test_a_wait_is_what_the_waker_did(void **state)
{
	const struct account *account;
	const struct account_part *part;

	waited(WAIT_PIPE, 200, 950, 51, 27);
	sampled_in(the_process(), 51, 300, 71);
	sampled_in(the_process(), 51, 990, 72);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 71, 750);
	assert_us(account, ACCOUNT_PIPE, ANY, 0);
	part = part_of(account, ACCOUNT_COMPUTING, 71);
	assert_int_equal(tid_of(part->thread), 51);
	assert_int_equal(via_of(part)->cause, ACCOUNT_PIPE);
	assert_int_equal(tid_of(via_of(part)->thread), MAIN);
	assert_int_equal(chains_frame(facts.chains, via_of(part)->chain)->line, 27);
	assert_int_equal(via_of(part)->before, 0);
}

static void test_waits_are_given_on_through_processes(void **state)
{
	static const struct process *worker;
	const struct account *account;
	const struct account_part *part;

	worker = worker ? worker : new_process(700, "worker");
	waited(WAIT_PIPE, 200, 950, 700, 27);
	waited_in(worker, 700, WAIT_LOCK, 150, 850, 701, 71);
	waited_in(worker, 701, WAIT_DISK, 150, 800, 0, 72);
	sampled_in(worker, 700, 900, 73);
	sampled_in(worker, 701, 820, 74);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_DISK, 72, 600);
	assert_us(account, ACCOUNT_COMPUTING, 74, 50);
	assert_us(account, ACCOUNT_COMPUTING, 73, 100);
	part = part_of(account, ACCOUNT_DISK, 72);
	assert_int_equal(tid_of(part->thread), 701);
	assert_int_equal(via_of(part)->cause, ACCOUNT_LOCK);
	assert_int_equal(tid_of(via_of(part)->thread), 700);
	assert_int_equal(accounts.vias[via_of(part)->before].cause, ACCOUNT_PIPE);
	assert_int_equal(tid_of(accounts.vias[via_of(part)->before].thread), MAIN);
}

static void test_threads_that_wait_for_each_other_end_somewhere(void **state)
{
	const struct account *account;

	waited(WAIT_LOCK, 200, 950, 51, 27);
	waited_in(the_process(), 51, WAIT_LOCK, 100, 940, MAIN, 71);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_LOCK, 71, 740);
	assert_int_equal(tid_of(part_of(account, ACCOUNT_LOCK, 71)->thread), 51);
}

static void test_a_waker_that_is_not_known_leaves_the_wait(void **state)
{
	const struct account *account;

	waited(WAIT_NETWORK, 200, 500, 0, 27);
	waited(WAIT_NETWORK, 500, 950, 99, 28); /* nothing was recorded of it */
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_NETWORK, 27, 300);
	assert_us(account, ACCOUNT_NETWORK, 28, 450);
}

static void test_a_sleep_is_not_given_on(void **state)
{
	waited(WAIT_SLEEP, 200, 950, 51, 27);
	sampled_in(the_process(), 51, 300, 71);
	pause_until(950);
	assert_us(the_account(2000), ACCOUNT_SLEEP, 27, 750);
}

static void test_waits_are_given_on_eight_times(void **state)
{
	const struct account *account;
	const struct account_part *part;
	uint32_t via, n = 0;

	waited(WAIT_PIPE, 200, 950, 51, 27);
	for (uint32_t tid = 51; tid < 71; tid++)
		waited_in(the_process(), tid, WAIT_PIPE, 100, 990, tid + 1, 28);
	sampled_in(the_process(), 71, 300, 71);
	pause_until(950);
	account = the_account(2000);
	part = part_of(account, ACCOUNT_PIPE, 28);
	assert_us(account, ACCOUNT_PIPE, 28, 750);
	assert_int_equal(tid_of(part->thread), 58);
	for (via = part->via; via; via = accounts.vias[via].before)
		n++;
	assert_int_equal(n, 8);
}

/* A number of a thread can be given again: it is who had it then. */
static void test_the_waker_is_who_had_the_number_then(void **state)
{
	static const struct process *first, *second;
	const struct account *account;

	first = first ? first : new_process(800, "first");
	second = second ? second : new_process(801, "second");
	sampled_in(first, 90, 210, 71);
	waited(WAIT_PIPE, 200, 950, 90, 27);
	sampled_in(second, 90, 1200, 72);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 71, 750);
}

/* ---- functions of the host ----------------------------------------------------------------- */

static void cuda_rested(double begin_us, double end_us, bool in_function)
{
	struct sample sample =
		sample_of(SAMPLE_OFF_CPU, end_us - begin_us, cudas_stack(in_function));

	sample.wait = in_function ? WAIT_SLEEP : WAIT_LOCK;
	sample.blocked = in_function ? BLOCKED_INTERRUPT : BLOCKED_WOKEN;
	sample.waker_tid = in_function ? 0 : MAIN;
	see(sample_event(the_process(), 51, end_us, &sample));
}

/* Two kernels that were asked for at once, the second of which begins late; others compute. */
static const struct account *stream_held_up(void)
{
	call_from(5, 6, "cuLaunchHostFunc", 30);
	ran(launch(10, 30), 20, 100);
	ran(launch(30, 31), 950, 990);
	for (int i = 0; i < 20; i++)
		sampled_in(the_process(), 52, 50 + 45 * i, 88);
	return the_account(1000);
}

static void test_a_function_of_the_host_that_sleeps_holds_its_stream_up(void **state)
{
	const struct account *account;
	const struct account_part *part;

	cuda_rested(100, 950, true);
	account = stream_held_up();
	assert_us(account, ACCOUNT_SLEEP, 91, 850);
	part = part_of(account, ACCOUNT_SLEEP, 91);
	assert_int_equal(tid_of(part->thread), 51);
	assert_int_equal(via_of(part)->cause, ACCOUNT_STREAM_WAIT);
}

/* CUDA's thread has nothing to run then: whoever else runs is taken for it. */
static void test_a_thread_of_cudas_that_waits_holds_nothing_up(void **state)
{
	cuda_rested(0, 15, true);
	cuda_rested(15, 990, false);
	assert_us(stream_held_up(), ACCOUNT_COMPUTING, 88, 850);
}

/* ---- Python's lock ------------------------------------------------------------------------- */

static const struct stack *gil_stack(void)
{
	static struct stack_frame wait = { .id = 80,
		                           .kind = FRAME_NATIVE,
		                           .function = "pthread_cond_timedwait",
		                           .module = "libc.so.6" };
	static struct stack_frame take = {
		.id = 81, .kind = FRAME_NATIVE, .function = "take_gil", .module = "python3.11"
	};
	static struct stack_frame line = { .id = 82,
		                           .kind = FRAME_PYTHON,
		                           .function = "train",
		                           .file = "/home/ann/train.py",
		                           .line = 29 };
	static const struct stack_frame *const frames[] = { &wait, &take, &line };
	static const struct stack stack = { .id = 80, .n_frames = 3, .frames = frames };

	return &stack;
}

static void waited_for_gil(double begin_us, double end_us, uint32_t waker)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, end_us - begin_us, gil_stack());

	sample.wait = WAIT_LOCK;
	sample.blocked = waker ? BLOCKED_WOKEN : BLOCKED_INTERRUPT;
	sample.waker_tid = waker;
	see(sample_event(the_process(), MAIN, end_us, &sample));
}

static void test_the_gil_is_its_holders(void **state)
{
	const struct account *account;
	const struct account_part *part;

	waited_for_gil(200, 5200, 0);
	waited_for_gil(5210, 10210, 0);
	waited_for_gil(10220, 12000, 51);
	for (int i = 0; i < 20; i++)
		sampled_in(the_process(), 51, 300 + 500 * i, 88);
	pause_until(12000);
	account = the_account(20000);
	assert_us(account, ACCOUNT_GIL, 88, 5000 + 5000 + 1780);
	part = part_of(account, ACCOUNT_GIL, 88);
	assert_int_equal(tid_of(part->thread), 51);
	assert_int_equal(via_of(part)->cause, ACCOUNT_GIL);
	assert_int_equal(tid_of(via_of(part)->thread), MAIN);
}

/* Who goes on in between is not who waits again: then nobody is known to have had it. */
static void test_time_outs_that_are_far_apart_are_not_one_wait(void **state)
{
	const struct account *account;

	waited_for_gil(200, 5200, 0);
	waited_for_gil(6000, 8000, 51);
	sampled(5500, 30);
	for (int i = 0; i < 20; i++)
		sampled_in(the_process(), 51, 6050 + 90 * i, 88);
	pause_until(8000);
	account = the_account(20000);
	assert_us(account, ACCOUNT_GIL, 29, 5000);
	assert_us(account, ACCOUNT_GIL, 88, 2000);
	assert_us(account, ACCOUNT_COMPUTING, 30, 800);
}

/* A time-out says nothing; who was on a CPU of the same process does. */
static void test_who_runs_while_the_gil_is_waited_for_has_it(void **state)
{
	static const struct process *other;
	const struct account *account;

	other = other ? other : new_process(810, "other");
	waited_for_gil(200, 5200, 0);
	for (int i = 0; i < 20; i++) {
		sampled_in(the_process(), 51, 205 + 249 * i, 88);
		sampled_in(other, 810, 205 + 249 * i, 89);
	}
	pause_until(5200);
	account = the_account(20000);
	assert_us(account, ACCOUNT_GIL, 88, 5000);
}

/* Not all stacks are walked: one that lasts as long as those of which they are is for the same, and
 * a longer one for a time. */
static void test_a_wait_without_a_stack_is_for_the_gil_where_others_are(void **state)
{
	const struct account *account;

	for (int i = 0; i < 20; i++)
		sampled_in(the_process(), 51, 205 + 1180 * i, 88);
	waited_for_gil(200, 5200, 0);
	waited(WAIT_LOCK, 6000, 11000, 0, 0);
	waited(WAIT_LOCK, 11010, 13000, 51, 0);
	waited(WAIT_LOCK, 14000, 23000, 0, 0);
	pause_until(24000);
	account = the_account(25000);
	assert_us(account, ACCOUNT_GIL, 88, 5000 + 5000);
	assert_us(account, ACCOUNT_SLEEP, ANY, 9000);
}

static void test_another_lock_is_a_lock(void **state)
{
	waited(WAIT_LOCK, 200, 950, 99, 27); /* nothing was recorded of it */
	pause_until(950);
	assert_us(the_account(2000), ACCOUNT_LOCK, 27, 750);
}

/* No thread let go of it: the time that it was waited for at most was over. */
static void test_a_lock_that_is_waited_for_in_vain_is_a_sleep(void **state)
{
	const struct account *account;

	waited(WAIT_LOCK, 200, 500, 0, 27);
	waited(WAIT_PIPE, 600, 950, 0, 28);
	sampled(550, 30);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_SLEEP, 27, 300);
	assert_us(account, ACCOUNT_SLEEP, 28, 350);
}

/* In one place again and again: for whoever ended the last of these waits. */
static void test_a_wait_with_a_limit_is_for_who_ended_it(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 200, 400, 0, 27); /* a poll whose limit was over */
	waited(WAIT_SLEEP, 405, 600, 0, 27);
	waited(WAIT_PIPE, 605, 950, 51, 27);
	for (int i = 0; i < 20; i++)
		sampled_in(the_process(), 51, 205 + 40 * i, 88);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 88, 200 + 195 + 345);
	assert_us(account, ACCOUNT_SLEEP, ANY, 0);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static const struct process *rank(uint32_t n)
{
	static const struct process *ranks[4];

	if (!ranks[n])
		ranks[n] = new_process(900 + n, "rank");
	return ranks[n];
}

static const struct kernel *sum_kernel(void)
{
	static const struct kernel *kernel;

	if (!kernel)
		kernel = new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", true);
	return kernel;
}

/* Rank 0 is there at 200, rank 1 at late_us; both end at late_us and 100. */
static void sum_of_ranks(double late_us, double launched_us)
{
	ran_in(rank(0), NULL, launch_in(rank(0), 900, 90, 30), 100, 200);
	ran_in(rank(0), sum_kernel(), launch_in(rank(0), 900, 110, 31), 200, late_us + 100);
	ran_in(rank(1), sum_kernel(), launch_in(rank(1), 901, launched_us, 31), late_us,
	       late_us + 100);
	for (uint32_t i = 0; i < 2; i++)
		exited(rank(i), late_us + 200);
	make_accounts(late_us + 500);
	assert_int_equal(accounts.n, 2);
	assert_all_add_up();
}

static void test_a_rank_waits_for_one_that_sleeps(void **state)
{
	const struct account *account;
	const struct account_part *part;

	ran_in(rank(1), NULL, launch_in(rank(1), 901, 90, 30), 100, 200);
	waited_in(rank(1), 901, WAIT_SLEEP, 200, 900, 0, 27);
	sum_of_ranks(905, 900);
	account = account_of(rank(0));
	assert_us(account, ACCOUNT_SLEEP, 27, 700);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 100);
	part = part_of(account, ACCOUNT_SLEEP, 27);
	assert_int_equal(tid_of(part->thread), 901);
	assert_int_equal(via_of(part)->cause, ACCOUNT_COMMUNICATION);
	assert_int_equal(via_of(part)->thread, FACTS_NONE);
	/* the late one's own account says the same, and waits for nobody */
	account = account_of(rank(1));
	assert_us(account, ACCOUNT_SLEEP, 27, 700);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 100);
	assert_int_equal(part_of(account, ACCOUNT_SLEEP, 27)->via, 0);
}

static void test_a_rank_waits_for_one_whose_gpu_computes(void **state)
{
	const struct account *account;
	const struct account_part *part;

	ran_in(rank(1), NULL, launch_in(rank(1), 901, 90, 37), 100, 900);
	sum_of_ranks(900, 110);
	account = account_of(rank(0));
	assert_us(account, ACCOUNT_KERNELS, 37, 700);
	assert_us(account, ACCOUNT_KERNELS, 30, 100);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 100);
	part = part_of(account, ACCOUNT_KERNELS, 37);
	assert_int_equal(via_of(part)->cause, ACCOUNT_COMMUNICATION);
}

static void communicates(uint32_t n, double asked_us, double begin_us, double end_us)
{
	ran_in(rank(n), sum_kernel(), launch_in(rank(n), 900 + n, asked_us, 31), begin_us, end_us);
}

static const struct account *account_of_waiting_rank(double end_us)
{
	for (uint32_t i = 0; i < 2; i++)
		exited(rank(i), end_us);
	make_accounts(end_us);
	assert_all_add_up();
	return account_of(rank(0));
}

/* Gradients are reduced while the next ones are made. */
static void test_a_rank_is_there_as_soon_as_it_communicates_beside_its_kernels(void **state)
{
	const struct account *account;

	ran_in(rank(1), NULL, launch_in(rank(1), 901, 90, 37), 100, 900);
	communicates(0, 110, 200, 600);
	communicates(1, 110, 500, 600);
	account = account_of_waiting_rank(1000);
	assert_us(account, ACCOUNT_KERNELS, 37, 300);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 100);
}

/* Rank 0 leaves the first sum 10 us before rank 1 does, and waits for it in the second one. */
static void test_a_rank_that_leaves_late_is_not_there_for_the_next(void **state)
{
	const struct account *account;

	communicates(0, 90, 200, 300);
	communicates(1, 90, 200, 310);
	ran_in(rank(1), NULL, launch_in(rank(1), 901, 100, 37), 310, 800);
	communicates(0, 110, 304, 900);
	communicates(1, 110, 800, 900);
	account = account_of_waiting_rank(1000);
	assert_us(account, ACCOUNT_KERNELS, 37, 490);
}

static void test_a_rank_that_comes_after_the_end_is_not_waited_for(void **state)
{
	const struct account *account;

	ran_in(rank(1), NULL, launch_in(rank(1), 901, 90, 37), 300, 900);
	communicates(0, 110, 200, 340);
	communicates(1, 110, 200, 300);
	communicates(1, 120, 900, 950);
	account = account_of_waiting_rank(1000);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 140);
}

/* Its first work is what is waited for. */
static void test_a_rank_waits_for_one_that_has_not_begun(void **state)
{
	const struct account *account;

	waited_in(rank(1), 901, WAIT_DISK, 10, 900, 0, 27);
	sum_of_ranks(905, 900);
	account = account_of(rank(0));
	assert_us(account, ACCOUNT_DISK, 27, 700);
	assert_us(account, ACCOUNT_COMMUNICATION, ANY, 100);
}

static void test_ranks_that_are_all_there_communicate(void **state)
{
	ran_in(rank(1), NULL, launch_in(rank(1), 901, 90, 30), 100, 200);
	sum_of_ranks(200, 110);
	assert_us(account_of(rank(0)), ACCOUNT_COMMUNICATION, ANY, 100);
	assert_us(account_of(rank(1)), ACCOUNT_COMMUNICATION, ANY, 100);
}

/* ---- what was not measured ----------------------------------------------------------------- */

static void test_what_was_not_measured_is_apart(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 200, 950, 0, 27);
	not_measured(the_process(), 300, 500);
	not_measured(the_process(), 400, 600);
	not_measured(the_process(), 700, 710);
	pause_until(950);
	account = the_account(2000);
	assert_int_equal(account->not_measured_ns, 310000);
	assert_us(account, ACCOUNT_SLEEP, 27, 440);
}

static void test_windows_are_of_their_process_alone(void **state)
{
	const struct account *account;

	waited(WAIT_SLEEP, 200, 950, 0, 27);
	not_measured(rank(0), 100, 300);
	not_measured(the_process(), 300, 500);
	not_measured(rank(1), 600, 700);
	pause_until(950);
	account = the_account(2000);
	assert_int_equal(account->not_measured_ns, 200000);
	assert_us(account, ACCOUNT_SLEEP, 27, 550);
}

static void test_time_after_the_last_work_is_its_threads(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	waited(WAIT_DISK, 200, 1000, 0, 27);
	make_accounts(1000);
	assert_all_add_up();
	account = &accounts.of[0];
	assert_us(account, ACCOUNT_DISK, 27, 800);
}

static void ran_on_gpu(uint32_t device, uint64_t of, double begin_us, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .device = device,
		                     .context = 1 + device,
		                     .stream = 7,
		                     .correlation = of,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	see(activity_event(the_process(), &activity));
}

/* Its thread goes on with another GPU; what it asks for in the end is in no record. */
static void test_time_after_the_last_work_goes_on_while_any_work_is_recorded(void **state)
{
	ran_on_gpu(0, launch(90, 30), 100, 200);
	for (int i = 0; i < 8; i++)
		ran_on_gpu(1, launch(300 + 100 * i, 31), 310 + 100 * i, 400 + 100 * i);
	launch(1100, 31);
	launch(1200, 31);
	make_accounts(2000);
	assert_all_add_up();
	for (size_t i = 0; i < accounts.n; i++)
		assert_int_equal(accounts.of[i].end_ns, US(1100));
}

static void test_time_after_a_process_ended_is_nobodys(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	account = the_account(1000);
	assert_int_equal(account->end_ns, US(200));
}

static void test_work_that_no_call_asked_for_ends_time_that_is_not_known(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	waited(WAIT_SLEEP, 200, 500, 0, 27);
	ran(4711, 500, 600);
	ran(0, 700, 800);
	account = the_account(1000);
	assert_us(account, ACCOUNT_UNKNOWN, 0, 400);
	assert_us(account, ACCOUNT_KERNELS, ANY, 300);
}

/* ---- without GPU times --------------------------------------------------------------------- */

static void test_without_gpu_times_a_thread_has_an_account(void **state)
{
	const struct account *account;

	launch(100, 30);
	waited(WAIT_SLEEP, 105, 905, 0, 27);
	launch(905, 30);
	exited(the_process(), 1500);
	launch_in(the_process(), 51, 300, 40); /* two of another thread */
	launch_in(the_process(), 51, 310, 40);
	launch(910, 30);
	make_accounts(2000);
	assert_int_equal(accounts.n, 2);
	assert_all_add_up();
	account = &accounts.of[0];
	assert_int_equal(account->gpu, FACTS_NONE);
	assert_int_equal(tid_of(account->thread), MAIN);
	assert_int_equal(account->begin_ns, US(100));
	assert_int_equal(account->end_ns, US(915));
	assert_us(account, ACCOUNT_SLEEP, 27, 800);
	assert_us(account, ACCOUNT_LAUNCHING, 30, 15);
}

static void test_a_recording_of_nothing_has_no_account(void **state)
{
	make_accounts(1000);
	assert_int_equal(accounts.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_gpu_that_is_busy_is_busy_with_its_kernels),
		TEST(test_copies_are_told_where_no_kernel_runs),
		TEST(test_a_sleep),
		TEST(test_computing_is_where_the_samples_are),
		TEST(test_computing_without_samples_is_before_the_next_call),
		TEST(test_what_was_not_recorded_is_the_hosts),
		TEST(test_between_launches_is_launching),
		TEST(test_what_is_done_while_the_gpu_works_makes_it_late_too),
		TEST(test_what_is_done_before_a_wait_makes_nothing_late),
		TEST(test_faults_that_samples_see_add_up_with_all_else),
		TEST(test_stretches_without_a_stack_are_where_the_others_are),
		TEST(test_a_stretch_without_a_stack_alone_stays),
		TEST(test_ready_without_a_cpu),
		TEST(test_calls_are_what_they_do),
		TEST(test_calls_within_calls_are_theirs),
		TEST(test_what_was_asked_for_takes_a_moment),
		TEST(test_waits_that_are_told_as_a_sum_are_like_those_that_were_told),
		TEST(test_waits_of_which_none_was_told_have_no_place),
		TEST(test_a_sum_is_no_more_than_its_time),
		TEST(test_what_was_asked_for_and_does_not_begin_waits),
		TEST(test_a_wait_for_the_gpu_answers_for_the_pause_after_it),
		TEST(test_a_wait_answers_for_as_long_as_it_waited),
		TEST(test_shared_time_without_stacks_adds_up),
		TEST(test_a_wait_that_was_over_before_answers_for_nothing),
		TEST(test_a_wait_is_what_the_waker_did),
		TEST(test_waits_are_given_on_through_processes),
		TEST(test_threads_that_wait_for_each_other_end_somewhere),
		TEST(test_a_waker_that_is_not_known_leaves_the_wait),
		TEST(test_a_sleep_is_not_given_on),
		TEST(test_waits_are_given_on_eight_times),
		TEST(test_the_waker_is_who_had_the_number_then),
		TEST(test_the_gil_is_its_holders),
		TEST(test_time_outs_that_are_far_apart_are_not_one_wait),
		TEST(test_who_runs_while_the_gil_is_waited_for_has_it),
		TEST(test_a_wait_without_a_stack_is_for_the_gil_where_others_are),
		TEST(test_a_function_of_the_host_that_sleeps_holds_its_stream_up),
		TEST(test_a_thread_of_cudas_that_waits_holds_nothing_up),
		TEST(test_another_lock_is_a_lock),
		TEST(test_a_lock_that_is_waited_for_in_vain_is_a_sleep),
		TEST(test_a_wait_with_a_limit_is_for_who_ended_it),
		TEST(test_a_rank_waits_for_one_that_sleeps),
		TEST(test_a_rank_waits_for_one_whose_gpu_computes),
		TEST(test_a_rank_is_there_as_soon_as_it_communicates_beside_its_kernels),
		TEST(test_a_rank_that_leaves_late_is_not_there_for_the_next),
		TEST(test_a_rank_that_comes_after_the_end_is_not_waited_for),
		TEST(test_a_rank_waits_for_one_that_has_not_begun),
		TEST(test_ranks_that_are_all_there_communicate),
		TEST(test_what_was_not_measured_is_apart),
		TEST(test_windows_are_of_their_process_alone),
		TEST(test_time_after_the_last_work_is_its_threads),
		TEST(test_time_after_the_last_work_goes_on_while_any_work_is_recorded),
		TEST(test_time_after_a_process_ended_is_nobodys),
		TEST(test_work_that_no_call_asked_for_ends_time_that_is_not_known),
		TEST(test_without_gpu_times_a_thread_has_an_account),
		TEST(test_a_recording_of_nothing_has_no_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
