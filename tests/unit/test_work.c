// SPDX-License-Identifier: MIT
/* The window in which calls and what ran for them find each other. */
#include "analysis/work.h"

#include "support.h"

static struct work *work;
static unsigned with_call, without_call;
static uint64_t last_correlation, last_begin_ns;
static const struct work_call *last_call;

static int set_up(void **state)
{
	work = work_share(NULL);
	with_call = without_call = 0;
	return 0;
}

static int tear_down(void **state)
{
	work_free(work);
	return 0;
}

static void use_window_of(size_t bytes)
{
	work_free(work);
	work = work_new(bytes);
}

static void see(void *data, const struct work_done *done, const struct work_call *call)
{
	assert_ptr_equal(data, &with_call);
	with_call += call != NULL;
	without_call += call == NULL;
	last_call = call;
	last_correlation = done->activity->correlation;
	last_begin_ns = done->activity->begin_ns;
	if (call) {
		assert_int_equal(call->correlation, last_correlation);
		assert_ptr_equal(call->process, done->process);
	}
}

static void ask_of(const struct process *process, const char *function, uint64_t correlation)
{
	struct call call = launch_at(function, (double)correlation, NULL);
	struct event event;

	call.correlation = correlation;
	event = call_event(process, 7, &call);
	work_join(work, &event, see, &with_call);
}

static void ask(uint64_t correlation)
{
	ask_of(the_process(), "cuLaunchKernel", correlation);
}

static void answer_of(const struct process *process, uint64_t correlation, double begin_us)
{
	struct activity activity = { .correlation = correlation,
		                     .begin_ns = US(begin_us),
		                     .end_ns = US(begin_us + 1) };
	struct event event = activity_event(process, &activity);

	work_join(work, &event, see, &with_call);
}

static void answer(uint64_t correlation)
{
	answer_of(the_process(), correlation, 1);
}

static void assert_told(unsigned with, unsigned without)
{
	assert_int_equal(with_call, with);
	assert_int_equal(without_call, without);
}

/* ---- order ---------------------------------------------------------------------------------- */

static void test_work_finds_the_call_that_came_before(void **state)
{
	ask(5);
	ask(6);
	answer(5);
	assert_told(1, 0);
	assert_int_equal(last_call->begin_ns, US(5));
	assert_int_equal(last_call->end_ns, US(10));
	assert_int_equal(last_call->tid, 7);
	assert_int_equal(last_call->number, 1);
	assert_int_equal(last_call->op, OP_LAUNCH);
}

static void test_work_waits_for_the_call_that_comes_after(void **state)
{
	answer_of(the_process(), 5, 10); /* two of one call, and one of another between them */
	assert_true(work_now(work)->waits && work_now(work)->first);
	answer(6);
	answer_of(the_process(), 5, 20);
	assert_true(work_now(work)->waits && !work_now(work)->first);
	assert_told(0, 0);
	ask(5);
	assert_true(work_now(work)->early);
	assert_told(2, 0);
	assert_int_equal(last_begin_ns, US(20)); /* in the order in which they came */
	ask(6);
	assert_told(3, 0);
	answer(6);
	assert_false(work_now(work)->first);
	assert_told(4, 0);
	work_tell_rest(work, see, &with_call);
	assert_told(4, 0);
}

static void test_the_first_work_of_a_call_is_known(void **state)
{
	ask(1);
	answer(1);
	assert_true(work_now(work)->first);
	answer(1);
	assert_false(work_now(work)->first);
	assert_told(2, 0);
}

static void test_work_without_a_number_waits_for_nothing(void **state)
{
	answer(0);
	assert_told(0, 1);
	answer(4);
	assert_told(0, 1);
	work_tell_rest(work, see, &with_call);
	assert_told(0, 2);
}

static void test_the_same_number_is_another_call_in_another_process(void **state)
{
	const struct process *other = new_process(50, "other");

	ask(5);
	answer_of(other, 5, 1);
	assert_told(0, 0);
	ask_of(other, "cuLaunchKernel", 5);
	assert_told(1, 0);
	assert_ptr_equal(last_call->process, other);
	answer(5);
	assert_told(2, 0);
}

static void test_a_number_that_comes_again_is_the_later_call(void **state)
{
	ask(5);
	ask(5);
	assert_int_equal(work_now(work)->left->number, 1);
	answer(5);
	assert_int_equal(last_call->number, 2);
}

static void test_work_finds_its_call_in_whatever_order_it_comes(void **state)
{
	const unsigned n = 4099; /* a prime: steps of any length reach all */
	unsigned told = 0;

	for (unsigned step = 1; step < 2000; step += 333) {
		for (unsigned i = 1; i <= n; i++)
			ask(i); /* the same numbers as in the round before */
		for (unsigned i = 0; i < n; i++) {
			answer(1 + i * step % n);
			assert_true(work_now(work)->first);
			assert_int_equal(last_call->correlation, last_correlation);
		}
		assert_told(told += n, 0);
	}
	assert_int_equal(work_unjoined(work), 0);
}

static void test_calls_whose_work_never_comes_hide_no_others(void **state)
{
	for (uint64_t i = 1; i <= 3000; i++)
		ask(i);
	for (uint64_t i = 1; i <= 3000; i++) {
		if (i % 10 > 2)
			answer(i);
	}
	assert_told(2100, 0);
	answer(10); /* after all */
	assert_told(2101, 0);
}

static void test_a_wait_finds_who_waited(void **state)
{
	struct call call = call_at("cudaDeviceSynchronize", 0, 5);
	struct range range = { .kind = RANGE_SYNC, .correlation = 9, .name = "" };
	struct event wait = { .type = EVENT_RANGE, .process = the_process(), .range = &range };
	struct event event;

	call.correlation = 9;
	event = call_event(the_process(), 11, &call);
	work_event(work, &event);
	work_event(work, &wait);
	assert_int_equal(work_now(work)->call->tid, 11);
	answer(9); /* but nothing ran for it */
	assert_told(0, 0);
	range.correlation = 10;
	work_event(work, &wait);
	assert_null(work_now(work)->call);
}

/* ---- lateness ------------------------------------------------------------------------------- */

/* Seen of a program whose records came when its buffers were full. */
static void test_kernels_come_hundreds_of_thousands_of_calls_late(void **state)
{
	const uint64_t n = 542848, late = 266522;

	for (uint64_t i = 1; i <= n + late; i++) {
		if (i <= n)
			ask(i);
		if (i > late)
			answer(i - late);
	}
	assert_told(n, 0);
	assert_int_equal(work_unjoined(work), 0);
}

static void test_eight_processes_are_that_late_at_once(void **state)
{
	const struct process *ranks[8];
	const uint64_t late = 266522;

	for (unsigned rank = 0; rank < 8; rank++)
		ranks[rank] = new_process(100 + rank, "rank");
	for (uint64_t i = 1; i <= 2 * late; i++) {
		for (unsigned rank = 0; rank < 8; rank++) {
			if (i <= late)
				ask_of(ranks[rank], "cuLaunchKernel", i);
			else
				answer_of(ranks[rank], i - late, 1);
		}
	}
	assert_told(8 * late, 0);
	assert_int_equal(work_unjoined(work), 0);
}

static void test_a_call_waits_however_many_others_come_and_go(void **state)
{
	use_window_of(1 << 20);
	ask(1);
	for (uint64_t i = 2; i <= 700000; i++) {
		ask(i);
		answer(i);
	}
	answer(1);
	assert_told(700000, 0);
	assert_int_equal(work_unjoined(work), 0);
}

/* ---- room ----------------------------------------------------------------------------------- */

static void test_what_had_to_leave_is_counted_exactly(void **state)
{
	const uint64_t n = 100000;
	uint64_t left = 0;

	use_window_of(1 << 20);
	for (uint64_t i = 1; i <= n; i++) {
		ask(i);
		left += work_now(work)->left != NULL;
	}
	assert_true(left > 0);
	assert_int_equal(work_unjoined(work), 0); /* nothing may ever come for them */
	for (uint64_t i = 1; i <= n; i++)
		answer(i);
	work_tell_rest(work, see, &with_call);
	assert_told((unsigned)(n - left), (unsigned)left);
	assert_int_equal(work_unjoined(work), left);
	answer(n + 5); /* never seen */
	assert_int_equal(work_unjoined(work), left);
}

static void test_no_more_is_kept_than_the_window_has_bytes_for(void **state)
{
	const size_t bytes = 1 << 20;
	const uint64_t n = 100000;

	use_window_of(bytes);
	for (uint64_t i = 1; i <= n; i++)
		ask(i);
	for (uint64_t i = n; i; i--)
		answer(i);
	assert_true(with_call * sizeof(struct work_call) <= bytes);
	assert_true(with_call * sizeof(struct work_call) > bytes / 2);
}

static void test_a_process_cannot_take_the_room_of_another(void **state)
{
	const struct process *little = new_process(60, "little");

	use_window_of(1 << 20);
	for (uint64_t i = 1; i <= 5000; i++)
		ask_of(little, "cuLaunchKernel", i);
	for (uint64_t i = 1; i <= 100000; i++)
		ask(i);
	for (uint64_t i = 1; i <= 5000; i++)
		answer_of(little, i, 1);
	assert_told(5000, 0);
	assert_int_equal(work_unjoined(work), 0);
}

static void test_waits_do_not_take_the_room_of_calls(void **state)
{
	use_window_of(1 << 20);
	for (uint64_t i = 1; i <= 9000; i++)
		ask(i);
	for (uint64_t i = 1; i <= 100000; i++)
		ask_of(the_process(), "cudaDeviceSynchronize", 9000 + i);
	for (uint64_t i = 1; i <= 9000; i++)
		answer(i);
	assert_told(9000, 0);
}

static void test_work_that_came_early_and_had_to_leave_is_counted(void **state)
{
	for (uint64_t i = 1; i <= WORK_EARLY + 10; i++)
		answer(i);
	assert_told(0, 10);
	assert_int_equal(last_correlation, 10); /* the oldest leave */
	ask(1);
	ask(11);
	assert_told(1, 10);
	assert_int_equal(work_unjoined(work), 1);
	work_tell_rest(work, see, &with_call);
	assert_told(1, WORK_EARLY + 9);
}

/* ---- who feeds it --------------------------------------------------------------------------- */

static void test_those_who_share_a_window_are_told_the_same(void **state)
{
	struct call call = launch_at("cuLaunchKernel", 0, NULL);
	struct consumer *front = work_consumer(work);
	struct work *shared = work_share(work);
	struct activity activity = { .correlation = 5 };
	struct event event, ran = activity_event(the_process(), &activity);
	struct err err = { 0 };

	call.correlation = 5;
	event = call_event(the_process(), 7, &call);
	assert_int_equal(front->ops->event(front, &event, &err), 0);
	work_join(work, &event, see, &with_call);
	work_join(shared, &event, see, &with_call);
	assert_int_equal(front->ops->event(front, &ran, &err), 0);
	work_join(work, &ran, see, &with_call);
	assert_true(work_now(shared)->first);
	work_join(shared, &ran, see, &with_call);
	assert_told(2, 0);
	work_free(shared);
}

/* As a format that joins does, of which its reports are told. */
static void test_one_of_those_who_share_a_window_feeds_it_for_all(void **state)
{
	struct activity early = { .correlation = 9, .end_ns = US(1) };
	struct event event = activity_event(the_process(), &early);
	struct work *other = work_share(work);

	for (int i = 0; i < 2; i++) {
		work_feed(work, &event);
		work_join(other, &event, see, &with_call);
		assert_true(work_now(work)->waits);
		assert_int_equal(work_now(work)->first, !i);
	}
	assert_told(0, 0);
	ask(9);
	assert_told(0, 0); /* nobody has fed it */
	work_free(other);
}

static void test_few_are_kept_where_nothing_should_come(void **state)
{
	struct run_info run = default_run_info();

	run.gpu_times = false;
	work_begin(work, &run);
	for (uint64_t i = 1; i <= 10000; i++)
		ask(i);
	answer(5000);
	assert_told(0, 0); /* it is not known any more */
	answer(9990);      /* but something comes */
	assert_told(1, 0);
	for (uint64_t i = 10001; i <= 30000; i++)
		ask(i);
	answer(10001);
	assert_told(2, 0);
}

/* ---- which calls ---------------------------------------------------------------------------- */

static void test_calls_that_ask_for_work(void **state)
{
	struct function named = { .name = "cuLaunchAnew", .cls = CLASS_LAUNCH };
	struct call call = launch_at("cuLaunchKernel", 0, NULL), other;

	assert_false(call_asks_for_work(&call)); /* without a number nothing can be its work */
	call.correlation = 1;
	assert_true(call_asks_for_work(&call));
	for (uint32_t flag = CALL_NESTED; flag <= CALL_FAILED; flag <<= 1) {
		other = call;
		other.flags = flag;
		assert_int_equal(call_asks_for_work(&other),
		                 flag == CALL_NO_RETURN || flag == CALL_UNFINISHED);
	}
	other = alloc_at("cudaMalloc", 0, 1, 1);
	other.correlation = 1;
	assert_false(call_asks_for_work(&other));
	other.function = &named; /* of a CUDA that is newer than cuscope */
	other.op = OP_NONE;
	assert_true(call_asks_for_work(&other));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(work_finds_the_call_that_came_before),
		TEST(work_waits_for_the_call_that_comes_after),
		TEST(the_first_work_of_a_call_is_known),
		TEST(work_without_a_number_waits_for_nothing),
		TEST(the_same_number_is_another_call_in_another_process),
		TEST(a_number_that_comes_again_is_the_later_call),
		TEST(work_finds_its_call_in_whatever_order_it_comes),
		TEST(calls_whose_work_never_comes_hide_no_others),
		TEST(a_wait_finds_who_waited),
		TEST(kernels_come_hundreds_of_thousands_of_calls_late),
		TEST(eight_processes_are_that_late_at_once),
		TEST(a_call_waits_however_many_others_come_and_go),
		TEST(what_had_to_leave_is_counted_exactly),
		TEST(no_more_is_kept_than_the_window_has_bytes_for),
		TEST(a_process_cannot_take_the_room_of_another),
		TEST(waits_do_not_take_the_room_of_calls),
		TEST(work_that_came_early_and_had_to_leave_is_counted),
		TEST(those_who_share_a_window_are_told_the_same),
		TEST(one_of_those_who_share_a_window_feeds_it_for_all),
		TEST(few_are_kept_where_nothing_should_come),
		TEST(calls_that_ask_for_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
