// SPDX-License-Identifier: MIT
/* What pauses of a GPU owe to waits of the host for it, and streams to each other. */
#include <math.h>

#include "account_scene.h"

static const struct account *the_account(double end_us)
{
	exited(the_process(), end_us);
	make_accounts(end_us);
	assert_int_equal(accounts.n, 1);
	assert_all_add_up();
	return &accounts.of[0];
}

/* The GPU is busy until 1,000, and the host waits for it for the last `waited_us`. */
static void wait_for_the_gpu(double waited_us)
{
	ran(launch(90, 30), 100, 1000);
	call_from(1000 - waited_us, 1000, "cudaStreamSynchronize", 44);
}

/* Kernels of 2 us, of which each is launched 100 us after the one before; ends at 1,100, 1,200 and
 * so on. */
static void small_kernels(double from_us, int n)
{
	for (int i = 0; i < n; i++) {
		double ends_us = from_us + 100 * (i + 1);

		ran(launch(ends_us - 7, 31), ends_us - 2, ends_us);
	}
}

static void test_a_wait_answers_for_all_pauses_that_it_would_have_hidden(void **state)
{
	const struct account *account;

	wait_for_the_gpu(800);
	small_kernels(1000, 5);
	account = the_account(1600);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 5 * 98);
	assert_us(account, ACCOUNT_LAUNCHING, ANY, 0);
	assert_gain(account, ACCOUNT_SYNCHRONISATION, 44, 5 * 98);
}

static void test_and_for_no_more_than_it_waited(void **state)
{
	const struct account *account;

	wait_for_the_gpu(98 + 49);
	small_kernels(1000, 5);
	account = the_account(1600);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 98 + 49);
	assert_us(account, ACCOUNT_LAUNCHING, ANY, 3 * 98 + 49);
}

/* It is ahead again by as much as it was when it began to wait. */
static void test_a_host_that_is_ahead_again_owes_nothing(void **state)
{
	const struct account *account;

	wait_for_the_gpu(400);
	ran(launch(1093, 30), 1098, 2000);
	ran(launch(1110, 31), 2000, 2100); /* ahead by 885 */
	small_kernels(2100, 2);
	account = the_account(2400);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 98);
}

static void test_a_host_that_is_a_little_ahead_owes_the_rest(void **state)
{
	const struct account *account;

	wait_for_the_gpu(400);
	ran(launch(1093, 30), 1098, 1200);
	ran(launch(1100, 31), 1200, 1300); /* ahead by 95, and of the 400 could be by 302 more */
	small_kernels(1300, 4);
	account = the_account(1800);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 98 + 302);
}

static void test_a_wait_is_owed_once(void **state)
{
	const struct account *account;

	/* over just before the GPU has nothing to do, again and again */
	wait_for_the_gpu(20);
	for (int i = 0; i < 4; i++) {
		double at_us = 1000 + 20 * i;

		ran(launch(at_us + 3, 31), at_us + 8, at_us + 10);
		ran(launch(at_us + 13, 31), at_us + 18, at_us + 20);
	}
	account = the_account(1100);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 44, 20);
}

static void test_short_waits_leave_what_a_long_one_has_taken(void **state)
{
	const struct account *account;

	wait_for_the_gpu(800);
	for (int i = 0; i < 5; i++) {
		double at_us = 1000 + 100 * i;

		ran(launch(at_us + 80, 31), at_us + 90, at_us + 95);
		call_from(at_us + 88, at_us + 100, "cudaStreamSynchronize", 45);
	}
	ran(launch(1580, 31), 1585, 1600);
	account = the_account(1700);
	assert_us(account, ACCOUNT_LAUNCHING, ANY, 0);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 45, 5 * 5);
}

static void test_a_wait_of_another_thread_is_none(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	call_in(the_process(), 51, call_at("cudaStreamSynchronize", 200, 800), 44);
	small_kernels(1000, 3);
	account = the_account(1400);
	assert_us(account, ACCOUNT_SYNCHRONISATION, ANY, 0);
}

/* ---- calls that wait beside what they do --------------------------------------------------- */

static uint64_t copy_from(double begin_us, double end_us, const char *function, uint64_t bytes)
{
	struct call call = call_at(function, begin_us, end_us - begin_us);

	call.op = OP_COPY;
	call.args.bytes = bytes;
	call.args.direction = DIRECTION_D2H;
	return call_in(the_process(), MAIN, call, 44);
}

static void copied(uint64_t of, double begin_us, double end_us, enum activity_memory to)
{
	struct activity copy = { .kind = ACTIVITY_COPY,
		                 .context = 1,
		                 .stream = 7,
		                 .direction = DIRECTION_D2H,
		                 .destination = to,
		                 .correlation = of,
		                 .begin_ns = US(begin_us),
		                 .end_ns = US(end_us) };

	see(activity_event(the_process(), &copy));
}

static const struct account *account_of_copy(uint64_t bytes, enum activity_memory to)
{
	ran(launch(90, 30), 100, 150);
	copied(copy_from(110, 160, "cudaMemcpyAsync", bytes), 150, 152, to);
	small_kernels(160, 1);
	return the_account(1000);
}

static void test_a_small_copy_into_memory_that_is_not_pinned_is_a_wait(void **state)
{
	assert_us(account_of_copy(4, ACTIVITY_MEMORY_PAGEABLE), ACCOUNT_SYNCHRONISATION, 44, 50);
}

static void test_a_large_one_is_a_copy(void **state)
{
	assert_us(account_of_copy(1 << 20, ACTIVITY_MEMORY_PAGEABLE), ACCOUNT_COPY_CALL, 44, 50);
}

static void test_one_into_pinned_memory_is_asked_for_like_a_kernel(void **state)
{
	assert_us(account_of_copy(4, ACTIVITY_MEMORY_PINNED), ACCOUNT_LAUNCHING, 44, 8);
}

/* Its call copies to memory that is pinned, however short it is; so do pauses between such. */
static const struct account *account_of_upload(enum activity_memory from)
{
	ran(launch(90, 30), 100, 150);
	for (int i = 0; i < 2; i++) {
		struct activity copy = { .kind = ACTIVITY_COPY,
			                 .context = 1,
			                 .stream = 7,
			                 .direction = DIRECTION_H2D,
			                 .source = from,
			                 .begin_ns = US(200 + 20 * i),
			                 .end_ns = US(201 + 20 * i) };

		copy.correlation =
			call_from(190 + 20 * i, 199 + 20 * i, "cuMemcpyHtoDAsync_v2", 44);
		see(activity_event(the_process(), &copy));
	}
	make_accounts(221);
	return account_of(the_process());
}

static void test_one_from_memory_that_is_not_pinned_is_no_launch(void **state)
{
	const struct account *account = account_of_upload(ACTIVITY_MEMORY_PAGEABLE);

	assert_us(account, ACCOUNT_LAUNCHING, ANY, 0);
	assert_true(us_of(account, ACCOUNT_COPY_CALL, 44) > 50);
}

static void test_one_from_pinned_memory_is(void **state)
{
	assert_us(account_of_upload(ACTIVITY_MEMORY_PINNED), ACCOUNT_COPY_CALL, ANY, 0);
}

/* The host waits for a copy, and then computes. */
static const struct account *account_of_computing(uint64_t bytes)
{
	ran(launch(90, 30), 100, 1000);
	copied(copy_from(110, 1010, "cudaMemcpy", bytes), 1000, 1005, ACTIVITY_MEMORY_PAGEABLE);
	for (double at = 1100; at < 1900; at += 100)
		sampled(at, 33);
	ran(launch(1900, 30), 1905, 1910);
	small_kernels(1910, 1);
	return the_account(2100);
}

static void test_what_is_computed_of_data_is_not_owed_to_their_copy(void **state)
{
	const struct account *account = account_of_computing(1 << 20);

	assert_us(account, ACCOUNT_COMPUTING, 33, 890);
	assert_us(account, ACCOUNT_COPY_CALL, 44, 5 + 5);
}

/* Of one number there is little to compute. */
static void test_of_a_number_it_is_the_waits(void **state)
{
	const struct account *account = account_of_computing(4);

	assert_true(us_of(account, ACCOUNT_SYNCHRONISATION, 44) > 890);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 33) < 10);
}

/* A copy on that stream, and 2 us after its call a wait of 5 us for the other stream. */
static const struct account *copy_and_wait(enum api_direction direction, uint64_t copies,
                                           uint64_t waits)
{
	struct call copy = call_at("cudaMemcpyAsync", 1040, 8);
	struct call wait = call_at("cudaStreamSynchronize", 1050, 5);

	copy.op = OP_COPY;
	copy.args = (struct api_call){ .bytes = 4, .direction = direction, .stream = copies };
	wait.op = OP_SYNC;
	wait.args.stream = waits;
	ran(launch(90, 30), 100, 1000);
	launch(1020, 30);
	copied(call_in(the_process(), MAIN, copy, 44), 1047, 1048, ACTIVITY_MEMORY_PINNED);
	call_in(the_process(), MAIN, wait, 45);
	ran(launch(1070, 31), 1076, 1100);
	return the_account(1200);
}

/* With the way to it, and from it to the wait: 1025 to 1055, but for what runs; and what follows is
 * owed to it for a part. */
static void test_a_copy_that_is_waited_for_at_once_is_a_copy_that_waits(void **state)
{
	assert_us(copy_and_wait(DIRECTION_H2D, 7, 7), ACCOUNT_COPY_CALL, ANY, 22 + 7 + 6);
	assert_us(&accounts.of[0], ACCOUNT_SYNCHRONISATION, ANY, 0);
}

static void test_of_a_few_bytes_from_the_gpu_it_is_a_wait(void **state)
{
	assert_us(copy_and_wait(DIRECTION_D2H, 7, 7), ACCOUNT_SYNCHRONISATION, ANY, 22 + 7 + 6);
}

static void test_a_wait_for_another_stream_is_not_for_the_copy(void **state)
{
	assert_us(copy_and_wait(DIRECTION_H2D, 7, 9), ACCOUNT_COPY_CALL, ANY, 0);
}

/* Freeing waits for the GPU, and what comes after it is owed to that; other calls of its kind are
 * it themselves, and are gained once. */
static void test_memory_that_is_freed_is_waited_for(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	call_from(400, 1000, "cudaFree", 44);
	call_from(1000, 1100, "cudaFree", 44);
	call_from(1100, 1200, "cudaMalloc", 45);
	ran(launch(1290, 30), 1300, 1400);
	small_kernels(1400, 1);
	account = the_account(1600);
	assert_us(account, ACCOUNT_ALLOCATION, 44, 100 + 100 + 98);
	assert_us(account, ACCOUNT_ALLOCATION, 45, 100);
	assert_gain(account, ACCOUNT_ALLOCATION, ANY, 300 + 98);
}

/* ---- launches between waits ---------------------------------------------------------------- */

/* Ten times so many launches, each of a kernel of 2 us, and after them a wait until the GPU is dry
 * that lasts 10 us. */
static const struct account *launches_between_waits(unsigned each)
{
	double at_us = 0;

	for (unsigned i = 0; i < 10; i++, at_us += 20) {
		for (unsigned k = 0; k < each; k++, at_us += 30)
			ran(launch(at_us, 30), at_us + 6, at_us + (k + 1 < each ? 8 : 17));
		call_from(at_us - 23, at_us - 12, "cudaStreamSynchronize", 44);
	}
	return the_account(at_us);
}

static const struct account_part *launching_at(uint32_t line)
{
	return part_of(&accounts.of[0], ACCOUNT_LAUNCHING, line);
}

static void test_launches_between_waits_are_known(void **state)
{
	launches_between_waits(3);
	assert_true(launching_at(30)->awaited);
}

static void test_many_launches_and_a_wait_are_not_between_waits(void **state)
{
	launches_between_waits(40);
	assert_false(launching_at(30)->awaited);
}

/* What is owed to the wait is not gained by the launch that follows it, as long as that waits. */
static void test_a_launch_that_is_waited_for_gains_what_is_its_own(void **state)
{
	const struct account *account = launches_between_waits(1);

	assert_gain(account, ACCOUNT_LAUNCHING, 30, us_of(account, ACCOUNT_LAUNCHING, 30));
	assert_true(us_of(account, ACCOUNT_LAUNCHING, 30) > 9 * 20);
}

/* ---- waits that are no calls --------------------------------------------------------------- */

/* The thread waits for another one, from 400 until the GPU's end is told to that at `told_us`. */
static const struct account *wait_to_be_told(const char *function, double told_us)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	call_from(100, 101, function, 30);
	sampled_in(the_process(), 51, told_us - 1, 71);
	waited(WAIT_LOCK, 400, told_us, 51, 27);
	small_kernels(1300, 1);
	account = the_account(1500);
	return account;
}

static void test_who_is_told_by_a_function_of_the_host_waited_for_the_gpu(void **state)
{
	const struct account *account = wait_to_be_told("cuLaunchHostFunc", 1020);

	assert_us(account, ACCOUNT_SYNCHRONISATION, 27, 398);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

/* From its end to when that was told, too, though the wait began only meanwhile. */
static void test_until_it_is_told_it_waits_for_the_gpu(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	call_from(100, 101, "cuLaunchHostFunc", 30);
	waited_in(the_process(), 51, WAIT_EVENTS, 300, 1040, 0, 70);
	waited(WAIT_LOCK, 1010, 1060, 51, 27);
	small_kernels(1300, 1);
	account = the_account(1500);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 27, 50);
	assert_us(account, ACCOUNT_OTHER_WAIT, ANY, 0);
}

/* Of twenty such waits ten are told by themselves, the others as a sum. */
static void test_waits_of_a_sum_are_in_pauses_without_a_wait(void **state)
{
	const struct account *account;

	for (unsigned i = 0; i < 20; i++) {
		double at_us = 100.0 * i;

		ran(launch(at_us, 30), at_us + 6, at_us + 20);
		call_from(at_us + 5, at_us + 6, "cuLaunchHostFunc", 30);
		if (i % 2)
			waited(WAIT_LOCK, at_us + 10, at_us + 60, 51, 27);
		sampled_in(the_process(), 51, at_us + 70, 71);
	}
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 2000, 10 * 50);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_SYNCHRONISATION, 27) > 20 * 40 * 0.8);
}

/* The GPU is done at 40, and that is told at 60; an event is recorded shortly before it is. */
static void test_waits_of_a_sum_take_the_hosts_lead_like_those_with_a_row(void **state)
{
	const struct account *account;
	double own_us = 0;

	for (unsigned i = 0; i < 40; i++) {
		double at_us = 100.0 * i;

		ran(launch(at_us, 30), at_us + 6, at_us + 40);
		call_from(at_us + 5, at_us + 6, "cuLaunchHostFunc", 30);
		call_from(at_us + 7, at_us + 8, "cuEventRecord", 30);
		if (i % 2)
			waited(WAIT_LOCK, at_us + 10, at_us + 60, 51, 27);
		sampled_in(the_process(), 51, at_us + 70, 71);
	}
	waited_sum(BLOCKED_SKIPPED, WAIT_UNKNOWN, 4000, 20 * 50);
	account = the_account(4000);
	assert_all_add_up();
	assert_true(us_of(account, ACCOUNT_SYNCHRONISATION, ANY) > 39 * 46);
	for (size_t i = 0; i < account->n_parts; i++)
		if (account->parts[i].cause == ACCOUNT_LAUNCHING && !account->parts[i].awaited)
			own_us += account->parts[i].ns / 1000;
	assert_true(own_us < 0.1 * us_of(account, ACCOUNT_LAUNCHING, ANY));
}

static void test_without_such_functions_another_thread_was_waited_for(void **state)
{
	assert_us(wait_to_be_told("cuEventRecord", 1020), ACCOUNT_SYNCHRONISATION, ANY, 0);
}

static void test_who_waits_for_longer_waits_for_something_else(void **state)
{
	const struct account *account = wait_to_be_told("cuLaunchHostFunc", 1290);

	assert_us(account, ACCOUNT_SYNCHRONISATION, ANY, 0);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 71) > 240);
}

/* The other thread hands work on: it asks for some itself, which no function of the host may. */
static void test_who_waits_for_one_that_asks_for_work_waits_for_that(void **state)
{
	const struct account *account;

	launch_in(the_process(), 51, 50, 71);
	account = wait_to_be_told("cuLaunchHostFunc", 1020);
	assert_us(account, ACCOUNT_SYNCHRONISATION, ANY, 0);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 71) > 19);
}

/* A server answers in so short rounds that its waits to be asked are told as a sum. */
static void test_in_rounds_who_asks_has_the_time(void **state)
{
	struct sample sum = sample_of(SAMPLE_OFF_CPU, 1500, NULL);
	const struct account *account;

	sum.blocked = BLOCKED_SKIPPED;
	waited_in(the_process(), 51, WAIT_NETWORK, 1500, 1600, MAIN, 71);
	see(sample_event(the_process(), 51, 2000, &sum));
	waited(WAIT_NETWORK, 205, 910, 51, 27);
	pause_until(950);
	account = the_account(2000);
	assert_all_add_up();
	assert_true(us_of(account, ACCOUNT_NETWORK, 27) > 400);
	assert_us(account, ACCOUNT_NETWORK, 71, 0);
}

/* ---- streams that take turns --------------------------------------------------------------- */

static uint32_t blocks; /* of all kernels; 0: not known */

static void ran_on(uint32_t stream, const char *name, double asked_us, double begin_us,
                   double end_us)
{
	static struct kernel kernel = { .id = 1 };
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .context = 1,
		                     .stream = stream,
		                     .grid = { blocks, 1, 1 },
		                     .correlation = launch(asked_us, 30),
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(end_us) };

	kernel.name = name;
	activity.kernel = name ? &kernel : NULL;
	see(activity_event(the_process(), &activity));
}

/* Ten kernels of 98 us, all asked for at the begin, on two streams in turn. */
static const struct account *turns(const char *name, uint32_t other)
{
	for (int i = 0; i < 10; i++)
		ran_on(i % 2 ? other : 13, name, 6.0 * i, 100 + 100 * i, 198 + 100 * i);
	return the_account(1100);
}

static void test_streams_that_take_turns_could_run_side_by_side(void **state)
{
	const struct account *account = turns(NULL, 14);

	assert_us(account, ACCOUNT_STREAM_WAIT, 30, 9 * 2);
	assert_gain(account, ACCOUNT_STREAM_WAIT, 30, 9 * (2 + 98.0 / 2));
}

/* Four kernels of 98 us in each turn, asked for at the begin. */
static void test_a_turn_is_all_that_a_stream_runs_before_the_other(void **state)
{
	const struct account *account;

	for (int i = 0; i < 12; i++)
		ran_on(i / 4 % 2 ? 14 : 13, NULL, 6.0 * i, 100 + 100 * i, 198 + 100 * i);
	account = the_account(1300);
	assert_us(account, ACCOUNT_STREAM_WAIT, 30, 2 * 2);
	assert_gain(account, ACCOUNT_STREAM_WAIT, 30, 2 * (2 + 4 * 98.0 / 2));
}

/* Of the second stream's four kernels two were asked for when its turn had begun; of the first
 * one's the last two ran when the second had something to do. */
static void test_of_a_turn_counts_what_was_there_for_the_other(void **state)
{
	const struct account *account;

	for (int i = 0; i < 4; i++)
		ran_on(13, NULL, 6.0 * i, 100 + 100 * i, 198 + 100 * i);
	for (int i = 4; i < 8; i++)
		ran_on(14, NULL, i < 6 ? 250 + 6.0 * i : 505 + 6.0 * i, 100 + 100 * i,
		       198 + 100 * i);
	account = the_account(900);
	assert_us(account, ACCOUNT_STREAM_WAIT, 30, 2);
	assert_gain(account, ACCOUNT_STREAM_WAIT, 30, 2 + 2 * 98.0 / 2);
}

static void test_of_one_stream_the_next_is_no_turn(void **state)
{
	const struct account *account = turns(NULL, 13);

	assert_us(account, ACCOUNT_STREAM_WAIT, ANY, 0);
	assert_gain(account, ACCOUNT_TURNAROUND, 30, 9 * 2);
}

static void test_communication_takes_no_turns(void **state)
{
	assert_us(turns("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 14), ACCOUNT_STREAM_WAIT, ANY,
	          0);
}

/* The second was asked for while the first ran: it came when the host had it. */
static void test_what_is_asked_for_meanwhile_is_no_turn(void **state)
{
	const struct account *account;

	for (int i = 0; i < 10; i++)
		ran_on(i % 2 ? 14 : 13, NULL, 50 + 100.0 * i, 100 + 100 * i, 198 + 100 * i);
	account = the_account(1100);
	assert_us(account, ACCOUNT_STREAM_WAIT, ANY, 0);
}

/* ---- kernels of few blocks ----------------------------------------------------------------- */

/* Of so many blocks from 100 to 1000 us; another stream runs from 110 to 300, and once more at 1005
 * for what was asked for then. */
static const struct account *runs_beside(uint32_t of_blocks, double asked_us)
{
	blocks = of_blocks;
	ran_on(14, NULL, 10, 100, 1000);
	blocks = 1000;
	ran_on(13, NULL, 20, 110, 300);
	ran_on(13, NULL, asked_us, 1005, 1105);
	blocks = 0;
	return the_account(1200);
}

static double awaited_us(const struct account *account)
{
	double ns = 0;

	for (size_t i = 0; i < account->n_parts; i++)
		ns += account->parts[i].cause == ACCOUNT_KERNELS && account->parts[i].awaited
		              ? account->parts[i].ns
		              : 0;
	return ns / 1000;
}

/* In which the rest of the GPU has nothing to do. */
static void test_a_kernel_of_few_blocks_that_a_stream_waits_for_is_told(void **state)
{
	const struct account *account = runs_beside(1, 30);

	assert_true(fabs(awaited_us(account) - 700) < 0.01);
	assert_us(account, ACCOUNT_KERNELS, ANY, 1000);
}

static void test_one_that_fills_the_gpu_is_awaited_as_kernels_are(void **state)
{
	assert_true(awaited_us(runs_beside(200, 30)) == 0);
}

static void test_what_is_asked_for_at_its_end_did_not_wait_for_it(void **state)
{
	assert_true(awaited_us(runs_beside(1, 970)) == 0);
	assert_us(&accounts.of[0], ACCOUNT_KERNELS, ANY, 1000);
}

static void test_what_was_asked_for_meanwhile_waits_from_then_on(void **state)
{
	assert_true(fabs(awaited_us(runs_beside(1, 595)) - 400) < 0.01);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_wait_answers_for_all_pauses_that_it_would_have_hidden),
		TEST(test_and_for_no_more_than_it_waited),
		TEST(test_a_host_that_is_ahead_again_owes_nothing),
		TEST(test_a_host_that_is_a_little_ahead_owes_the_rest),
		TEST(test_a_wait_is_owed_once),
		TEST(test_short_waits_leave_what_a_long_one_has_taken),
		TEST(test_a_wait_of_another_thread_is_none),
		TEST(test_a_small_copy_into_memory_that_is_not_pinned_is_a_wait),
		TEST(test_a_large_one_is_a_copy),
		TEST(test_one_into_pinned_memory_is_asked_for_like_a_kernel),
		TEST(test_one_from_memory_that_is_not_pinned_is_no_launch),
		TEST(test_one_from_pinned_memory_is),
		TEST(test_what_is_computed_of_data_is_not_owed_to_their_copy),
		TEST(test_of_a_number_it_is_the_waits),
		TEST(test_a_copy_that_is_waited_for_at_once_is_a_copy_that_waits),
		TEST(test_of_a_few_bytes_from_the_gpu_it_is_a_wait),
		TEST(test_a_wait_for_another_stream_is_not_for_the_copy),
		TEST(test_memory_that_is_freed_is_waited_for),
		TEST(test_launches_between_waits_are_known),
		TEST(test_many_launches_and_a_wait_are_not_between_waits),
		TEST(test_a_launch_that_is_waited_for_gains_what_is_its_own),
		TEST(test_who_is_told_by_a_function_of_the_host_waited_for_the_gpu),
		TEST(test_until_it_is_told_it_waits_for_the_gpu),
		TEST(test_waits_of_a_sum_are_in_pauses_without_a_wait),
		TEST(test_waits_of_a_sum_take_the_hosts_lead_like_those_with_a_row),
		TEST(test_without_such_functions_another_thread_was_waited_for),
		TEST(test_who_waits_for_longer_waits_for_something_else),
		TEST(test_who_waits_for_one_that_asks_for_work_waits_for_that),
		TEST(test_in_rounds_who_asks_has_the_time),
		TEST(test_streams_that_take_turns_could_run_side_by_side),
		TEST(test_a_turn_is_all_that_a_stream_runs_before_the_other),
		TEST(test_of_a_turn_counts_what_was_there_for_the_other),
		TEST(test_of_one_stream_the_next_is_no_turn),
		TEST(test_communication_takes_no_turns),
		TEST(test_what_is_asked_for_meanwhile_is_no_turn),
		TEST(test_a_kernel_of_few_blocks_that_a_stream_waits_for_is_told),
		TEST(test_one_that_fills_the_gpu_is_awaited_as_kernels_are),
		TEST(test_what_is_asked_for_at_its_end_did_not_wait_for_it),
		TEST(test_what_was_asked_for_meanwhile_waits_from_then_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
