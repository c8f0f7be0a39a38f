// SPDX-License-Identifier: MIT
/* Which calls of a Chrome trace are tied to their work; tests/export reads whole files. */
#include "support.h"

#include "analysis/work.h"
#include "output/sink.h"

/* Launches before the first of their kernels is known */
#ifdef __SANITIZE_ADDRESS__
#define MANY 60000
#else
#define MANY 600000
#endif

static struct run run;
static struct consumer *sink;

static int set_up(void **state)
{
	open_run(&run);
	run.info.gpu_times = true;
	sink = sink_format_by_name("chrome")->create(&(struct sink_options){ .out = run.out });
	return 0;
}

static int tear_down(void **state)
{
	close_run(&run);
	return 0;
}

static uint64_t unjoined;

/* As end_run(), but it is asked first what was not joined. */
static void end_and_ask(void)
{
	struct err err = { 0 };

	assert_int_equal(run.consumer->ops->end(run.consumer, &run.info, &err), 0);
	unjoined = sink_unjoined(run.consumer);
	run.consumer->ops->free(run.consumer);
	fflush(run.out);
}

static struct consumer *front; /* of a window that is fed before the sink; NULL: it has its own */

static void push_in_order(const struct event *event)
{
	if (front)
		feed(front, event);
	push(&run, event);
}

static void push_launch(uint64_t correlation)
{
	struct call call = launch_at("cuLaunchKernel", (double)correlation, NULL);
	struct event event = call_event(the_process(), 4243, &call);

	call.correlation = correlation;
	push_in_order(&event);
}

static void push_kernel(uint64_t correlation)
{
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .begin_ns = US(correlation) + 100,
		                     .end_ns = US(correlation) + 200,
		                     .correlation = correlation,
		                     .stream = 7 };
	struct event event = activity_event(the_process(), &activity);

	push_in_order(&event);
}

/* Of every hundredth launch no kernel comes, and of every 99th kernel no launch was seen. */
static bool has_work(uint64_t i)
{
	return i % 100;
}

static bool has_call(uint64_t i)
{
	return i % 99;
}

static void push_all(uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++) {
		if (has_call(i))
			push_launch(i);
	}
	for (uint64_t i = 1; i <= n; i++) {
		if (has_work(i))
			push_kernel(i);
	}
}

/* Not by strstr: AddressSanitizer measures the whole rest of the text at each call of it. */
static unsigned count(const char *text)
{
	size_t length = strlen(text);
	unsigned n = 0;

	for (const char *at = run.text; *at; at++)
		n += *at == *text && !strncmp(at, text, length);
	return n;
}

static unsigned pairs_in(uint64_t n)
{
	unsigned pairs = 0;

	for (uint64_t i = 1; i <= n; i++)
		pairs += has_call(i) && has_work(i);
	return pairs;
}

static unsigned launches_in(uint64_t n)
{
	unsigned launches = 0;

	for (uint64_t i = 1; i <= n; i++)
		launches += has_call(i);
	return launches;
}

static void test_all_are_tied_in_a_file_that_is_exported(void **state)
{
	struct consumer *scout = sink_scout(sink);
	struct err err = { 0 };

	begin_run(&run, scout);
	push_all(MANY);
	assert_int_equal(scout->ops->end(scout, &run.info, &err), 0);
	begin_run(&run, sink);
	push_all(MANY);
	end_and_ask();
	assert_int_equal(count("\"ph\": \"s\""), pairs_in(MANY));
	assert_int_equal(count("\"ph\": \"f\""), pairs_in(MANY));
	assert_int_equal(unjoined, 0);
	assert_null(strstr(run.text, "not_joined"));
}

/* While a program is traced what waits has to be in memory. */
static void test_what_is_not_tied_for_want_of_room_is_counted(void **state)
{
	struct work *window = work_new(1 << 20);
	unsigned tied;

	sink->ops->free(sink);
	sink = sink_format_by_name("chrome")->create(
		&(struct sink_options){ .out = run.out, .work = window });
	begin_run(&run, sink);
	front = work_consumer(window);
	push_all(MANY);
	front = NULL;
	end_and_ask();
	tied = count("\"ph\": \"s\"");
	assert_int_equal(count("\"ph\": \"f\""), tied);
	assert_true(tied > 10000 && tied < pairs_in(MANY));
	assert_int_equal(count("\"cudaLaunchKernel\""), launches_in(MANY)); /* all the same */
	work_free(window);
	assert_int_equal(unjoined, pairs_in(MANY) - tied);
	assert_non_null(strstr(run.text, "\"not_joined\":"));
}

/* As many calls as one likes may lie between a launch and its kernel. */
static void test_a_call_waits_for_its_work_while_others_come_and_go(void **state)
{
	begin_run(&run, sink);
	push_launch(1);
	for (uint64_t i = 2; i <= MANY; i++) {
		push_launch(i);
		push_kernel(i);
	}
	push_kernel(1);
	end_and_ask();
	assert_int_equal(count("\"ph\": \"f\""), MANY);
	assert_int_equal(unjoined, 0);
}

static void test_bytes_that_a_call_does_not_say_are_left_out(void **state)
{
	struct call copy = copy_at("cudaMemcpy", 10, DIRECTION_D2H, 0);

	begin_run(&run, sink);
	push_call(&run, copy);
	copy.flags |= CALL_SIZE_UNKNOWN;
	push_call(&run, copy);
	end_and_ask();
	assert_int_equal(count("\"cudaMemcpy\""), 2);
	assert_int_equal(count("\"bytes\": 0"), 1);
	assert_int_equal(count("\"bytes\":"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_are_tied_in_a_file_that_is_exported,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_not_tied_for_want_of_room_is_counted,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_call_waits_for_its_work_while_others_come_and_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bytes_that_a_call_does_not_say_are_left_out,
		                                set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
