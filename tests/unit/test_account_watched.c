// SPDX-License-Identifier: MIT
/* Where watching itself shows: calls that come after it has ended, and stops that it needs. */
#include "account_scene.h"

static void still_waits(const struct process *process, enum wait_kind wait, double begin_us,
                        double end_us, uint32_t line)
{
	struct sample sample = sample_of(SAMPLE_OFF_CPU, end_us - begin_us, at_line(line));

	sample.wait = wait;
	sample.blocked = BLOCKED_STILL;
	see(sample_event(process, MAIN, end_us, &sample));
}

/* Computes until 500, waits to be told until 600, goes on unseen, and is asked for at 2,000. */
static void go_on_unseen(void)
{
	ran(launch(90, 30), 100, 200);
	for (double at = 210; at < 500; at += 10)
		sampled(at, 28);
	waited(WAIT_DISK, 500, 600, 0, 27);
	ran(launch(1000, 30), 1005, 1105);
	ran(launch(1800, 30), 1805, 1905);
	still_waits(the_process(), WAIT_LOCK, 900, 2000, 31);
}

static void test_who_calls_does_not_wait_any_more(void **state)
{
	const struct account *account;

	go_on_unseen();
	make_accounts(3000);
	assert_all_add_up();
	account = account_of(the_process());
	assert_us(account, ACCOUNT_LOCK, ANY, 0);
	assert_us(account, ACCOUNT_DISK, 27, 100);
	assert_us(account, ACCOUNT_COMPUTING, 28, 300);
	assert_int_equal(account->not_measured_ns, US(3000) - US(600));
}

static void test_who_still_waits_has_waited(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	still_waits(the_process(), WAIT_LOCK, 300, 2000, 31);
	make_accounts(3000);
	assert_all_add_up();
	account = account_of(the_process());
	assert_us(account, ACCOUNT_LOCK, 31, 1700);
	assert_int_equal(account->not_measured_ns, US(3000) - US(2000));
}

/* A call that had begun before is what it waits in. */
static void test_who_waits_in_a_call_still_waits(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	call_from(250, 2500, "cuStreamSynchronize", 31);
	still_waits(the_process(), WAIT_DEVICE, 300, 2000, 31);
	make_accounts(2000);
	assert_all_add_up();
	account = account_of(the_process());
	assert_int_equal(account->not_measured_ns, 0);
	assert_us(account, ACCOUNT_SYNCHRONISATION, 31, 1750);
}

/* The first work of the second window was asked for as soon as that began, and came much later. */
static void test_what_a_gpu_runs_from_before_a_window_is_not_measured(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	not_measured(the_process(), 1000, 5000);
	ran(launch(5010, 30), 5500, 6000);
	ran(launch(6100, 30), 6110, 6200);
	make_accounts(6200);
	assert_all_add_up();
	account = account_of(the_process());
	assert_int_equal(account->not_measured_ns, US(5500) - US(1000));
	assert_us(account, ACCOUNT_KERNELS, ANY, 1490);
}

/* It began as soon as it was asked for: the GPU had nothing else to do then. */
static void test_a_gpu_that_idles_as_a_window_begins_is_measured_from_then_on(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 1000);
	not_measured(the_process(), 1000, 5000);
	ran(launch(5400, 30), 5410, 6000);
	ran(launch(6100, 30), 6110, 6200);
	make_accounts(6200);
	assert_all_add_up();
	account = account_of(the_process());
	assert_int_equal(account->not_measured_ns, US(5000) - US(1000));
}

static void test_other_processes_were_watched_on(void **state)
{
	const struct process *other = new_process(900, "other");

	go_on_unseen();
	ran_in(other, NULL, launch_in(other, 900, 90, 30), 100, 200);
	waited_in(other, 900, WAIT_SLEEP, 200, 2500, 0, 27);
	make_accounts(2500);
	assert_all_add_up();
	assert_int_equal(account_of(other)->not_measured_ns, 0);
	assert_us(account_of(other), ACCOUNT_SLEEP, 27, 2300);
}

static void test_without_gpu_times_too(void **state)
{
	launch(100, 30);
	waited(WAIT_SLEEP, 105, 505, 0, 27);
	launch(505, 30);
	launch(900, 30);
	still_waits(the_process(), WAIT_LOCK, 510, 1000, 31);
	make_accounts(1000);
	assert_all_add_up();
	assert_us(&accounts.of[0], ACCOUNT_LOCK, ANY, 0);
	assert_us(&accounts.of[0], ACCOUNT_SLEEP, 27, 400);
}

/* A debugger, or cuscope: the thread is let go on, and waits for what it waited for. */
static void test_a_stop_does_not_end_a_wait(void **state)
{
	const struct account *account;

	ran(launch(90, 30), 100, 200);
	waited(WAIT_LOCK, 200, 500, 77, 26);
	waited(WAIT_STOP, 510, 520, 77, 33);
	waited(WAIT_CALL, 530, 900, 51, 34);
	for (double at = 205; at < 900; at += 10)
		sampled_in(the_process(), 51, at, 40);
	ran(launch(900, 30), 905, 1005);
	exited(the_process(), 1100);
	make_accounts(1100);
	assert_all_add_up();
	account = account_of(the_process());
	assert_us(account, ACCOUNT_COMPUTING, 40, 300 + 370);
	assert_us(account, ACCOUNT_LOCK, ANY, 0);
	assert_us(account, ACCOUNT_OTHER_WAIT, 33, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
		TEST(test_who_calls_does_not_wait_any_more),
		TEST(test_who_still_waits_has_waited),
		TEST(test_who_waits_in_a_call_still_waits),
		TEST(test_what_a_gpu_runs_from_before_a_window_is_not_measured),
		TEST(test_a_gpu_that_idles_as_a_window_begins_is_measured_from_then_on),
		TEST(test_other_processes_were_watched_on),
		TEST(test_without_gpu_times_too),
		TEST(test_a_stop_does_not_end_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
