// SPDX-License-Identifier: MIT
/* Calls that agents tell of within those that probes tell of; and commands that wait in cuInit. */
#include "inside_steps.h"

#include <time.h>

#include "base/clock.h"
#include "capture/inside/inside_private.h"

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct wire_call call_of(uint8_t type, uint8_t flags, uint64_t begin_ns, uint64_t end_ns)
{
	return (struct wire_call){ .head = { .type = type,
		                             .flags = flags,
		                             .hook = hooks[REFUSED].id,
		                             .tgid = PROCESS,
		                             .tid = PROCESS,
		                             .time_ns = end_ns },
		                   .begin_ns = begin_ns };
}

static bool is_nested(struct inside *inside, uint64_t begin_ns)
{
	struct wire_call call = call_of(WIRE_CALL, WIRE_BY_AGENT, begin_ns, begin_ns + 1);

	assert_false(inside_nests(inside, &call.head));
	assert_int_equal(call.head.depth, call.head.flags & WIRE_NESTED ? 1 : 0);
	return call.head.flags & WIRE_NESTED;
}

/* One user leaves a quarter of the threads for the next. */
static void test_threads_of_one_user_leave_room(void **state)
{
	struct inside *inside = diverted_process();
	struct wire_call begun = call_of(WIRE_BEGIN, 0, START + 300, START + 300);

	inside_process_find(inside, PROCESS)->owner = 7;
	for (uint32_t tid = 100000; tid < 108192; tid++) {
		begun.head.tid = tid;
		inside_nests(inside, &begun.head);
	}
	assert_int_equal(inside->nesting.taken, 6144);
	inside_process_find(inside, PROCESS)->owner = 8;
	begun.head.tid = 200000;
	inside_nests(inside, &begun.head);
	assert_int_equal(inside->nesting.taken, 6145);
	inside_nesting_forget(inside, PROCESS);

	assert_int_equal(inside->nesting.taken, 0);
	inside_free(inside);
}

static void test_an_agent_s_call_is_nested_in_a_probe_s(void **state)
{
	struct wire_call begun, ended;
	struct inside *inside;

	open_call = call_of(WIRE_CALL, WIRE_UNFINISHED, START + 5, START + 500);
	inside = diverted_process();
	assert_true(is_nested(inside, START + 100)); /* it was looked at before the cut */
	ended = call_of(WIRE_CALL, 0, START + 1, START + 2);
	assert_false(inside_nests(inside, &ended.head)); /* an earlier one, passed on later */
	assert_true(is_nested(inside, START + 101));
	ended = call_of(WIRE_CALL, 0, START + 5, START + 200);
	assert_false(inside_nests(inside, &ended.head));
	assert_false(is_nested(inside, START + 201));
	begun = call_of(WIRE_BEGIN, 0, START + 250, START + 250);
	assert_true(inside_nests(inside, &begun.head)); /* its end is lost */
	begun = call_of(WIRE_BEGIN, 0, START + 300, START + 300);
	assert_true(inside_nests(inside, &begun.head));
	assert_true(is_nested(inside, START + 301));
	ended = call_of(WIRE_CALL, WIRE_BEGUN, START + 300, START + 400);
	assert_false(inside_nests(inside, &ended.head));
	assert_false(is_nested(inside, START + 401));
	open_call.head.type = 0;
	inside_free(inside);
}

/* Else all later calls of the thread would seem to be made by one that is over. */
static void test_a_call_that_is_left_out_is_over_all_the_same(void **state)
{
	struct inside *inside = diverted_process();
	struct wire_call begun = call_of(WIRE_BEGIN, 0, START + MS(11), START + MS(11));
	struct wire_call ended = call_of(WIRE_CALL, WIRE_BEGUN, START + MS(11), START + MS(12));

	in_call = true;
	assert_true(inside_nests(inside, &begun.head)); /* before it was known */
	ended.head.hook = hooks[0].id;
	assert_true(inside_leaves_out(inside, &ended.head));
	inside_nests_no_more(inside, &ended.head);
	assert_false(is_nested(inside, START + MS(13)));
	in_call = false;
	inside_free(inside);
}

static void test_a_call_whose_end_was_lost_is_over_when_its_thread_is_in_none(void **state)
{
	struct inside *inside = diverted_process();
	struct wire_call begun = call_of(WIRE_BEGIN, 0, START + MS(11), START + MS(11));
	uint64_t then = now() + MS(1000);

	in_call = true;
	assert_true(inside_nests(inside, &begun.head));
	inside_turn(inside, START + MS(200));
	assert_true(is_nested(inside, then));
	in_call = false;
	inside_turn(inside, START + MS(299));
	assert_true(is_nested(inside, then));
	inside_turn(inside, START + MS(300));
	assert_true(is_nested(inside, START + MS(12)));
	assert_true(is_nested(inside, START + MS(13))); /* its end may be on the way */
	assert_false(is_nested(inside, then));
	inside_free(inside);
}

#define PLACE 0x7ffc0100u /* on the stack */

static bool is_nested_from(struct inside *inside, uint64_t begin_ns, uint32_t place)
{
	struct wire_call call = call_of(WIRE_CALL, WIRE_BY_AGENT, begin_ns, begin_ns + 1);

	call.place = place;
	assert_false(inside_nests(inside, &call.head));
	assert_int_equal(call.generation, 0);
	return call.head.flags & WIRE_NESTED;
}

static struct inside *in_a_call(struct wire_call *begun)
{
	struct inside *inside = diverted_process();

	*begun = call_of(WIRE_BEGIN, 0, START + MS(11), START + MS(11));
	begun->place = PLACE;
	assert_true(inside_nests(inside, &begun->head));
	begun->head.type = WIRE_CALL;
	in_call = true; /* the programs go on to say so */
	return inside;
}

static void test_a_call_that_longjmp_left_is_over(void **state)
{
	struct wire_call begun;
	struct inside *inside = in_a_call(&begun);

	assert_true(is_nested_from(inside, START + MS(12), PLACE - 8));
	assert_true(is_nested_from(inside, START + MS(12), PLACE | WIRE_MAY_RETURN)); /* a jump */
	assert_true(is_nested_from(inside, START + MS(12), 0));
	assert_false(inside_was_left(inside, &begun));
	assert_false(is_nested_from(inside, START + MS(10), PLACE + 8)); /* before it */
	assert_false(inside_was_left(inside, &begun));
	assert_false(is_nested_from(inside, START + MS(13), PLACE));
	assert_true(inside_was_left(inside, &begun));
	assert_false(is_nested_from(inside, START + MS(14), PLACE - 8));

	/* now the programs tell of it */
	begun.head.flags = WIRE_UNFINISHED;
	begun.head.time_ns = START + MS(15);
	assert_false(inside_nests(inside, &begun.head));
	assert_false(inside_was_left(inside, &begun));
	in_call = false;
	inside_free(inside);
}

static void test_a_call_is_over_for_one_from_above_it(void **state)
{
	struct wire_call begun;
	struct inside *inside = in_a_call(&begun);

	assert_false(is_nested_from(inside, START + MS(12), PLACE + 4096));
	assert_true(inside_was_left(inside, &begun));
	begun.head.tgid = PROCESS + 1; /* another one's, that has the number now */
	assert_false(inside_was_left(inside, &begun));
	in_call = false;
	inside_free(inside);
}

/* ---- the other way round ------------------------------------------------------------------- */

/* What an agent tells of: of a begin too, where it does that at all. */
static void agent_tells(struct inside *inside, uint8_t type, uint8_t flags, uint64_t begin_ns,
                        uint64_t end_ns, uint32_t place)
{
	struct wire_call call = call_of(type, WIRE_BY_AGENT | flags, begin_ns, end_ns);

	call.place = place;
	call.head.depth = flags & WIRE_NESTED ? 1 : 0;
	assert_int_equal(inside_nests(inside, &call.head), type == WIRE_BEGIN);
	assert_int_equal(call.generation, 0);
}

static void agent_begins(struct inside *inside, uint64_t begin_ns, uint32_t place)
{
	agent_tells(inside, WIRE_BEGIN, 0, begin_ns, begin_ns, place);
}

/* The depth of a call that a probe tells of, with its begin told before. */
static uint8_t depth_of_probe_s(struct inside *inside, uint64_t begin_ns, uint32_t place)
{
	struct wire_call begun = call_of(WIRE_BEGIN, 0, begin_ns, begin_ns);
	struct wire_call ended = call_of(WIRE_CALL, WIRE_BEGUN, begin_ns, begin_ns + 5);

	begun.place = place;
	assert_true(inside_nests(inside, &begun.head));
	assert_false(inside_nests(inside, &ended.head));
	assert_int_equal(ended.head.flags & WIRE_NESTED, ended.head.depth ? WIRE_NESTED : 0);
	return ended.head.depth;
}

static void test_a_probe_s_call_is_nested_in_an_agent_s(void **state)
{
	struct inside *inside = diverted_process();
	struct wire_call entry = call_of(WIRE_CALL, WIRE_NO_RETURN, START + 145, START + 145);

	assert_int_equal(depth_of_probe_s(inside, START + 90, PLACE), 0);
	agent_begins(inside, START + 100, PLACE);
	assert_int_equal(depth_of_probe_s(inside, START + 99, PLACE - 64), 0);
	assert_int_equal(depth_of_probe_s(inside, START + 100, PLACE - 64), 1);
	assert_int_equal(depth_of_probe_s(inside, START + 110, PLACE - 64), 1);
	agent_tells(inside, WIRE_BEGIN, WIRE_NESTED, START + 120, START + 120, PLACE - 64);
	assert_int_equal(depth_of_probe_s(inside, START + 130, PLACE - 128), 2);
	agent_tells(inside, WIRE_CALL, WIRE_NESTED | WIRE_BEGUN, START + 120, START + 140,
	            PLACE - 64);
	assert_false(inside_nests(inside, &entry.head));
	assert_int_equal(entry.head.depth, 1);
	agent_tells(inside, WIRE_CALL, WIRE_BEGUN, START + 100, START + 150, PLACE);
	assert_int_equal(depth_of_probe_s(inside, START + 160, PLACE - 64), 0);
	inside_free(inside);
}

/* As of a layer: an agent's, a probe's, an agent's. */
static void test_calls_of_both_kinds_are_nested_in_each_other(void **state)
{
	struct inside *inside = diverted_process();
	struct wire_call layer = call_of(WIRE_BEGIN, 0, START + 110, START + 110);

	in_call = true;
	agent_begins(inside, START + 100, PLACE);
	layer.place = PLACE - 64;
	assert_true(inside_nests(inside, &layer.head));
	assert_true(is_nested_from(inside, START + 120, PLACE - 128));
	layer = call_of(WIRE_CALL, WIRE_BEGUN, START + 110, START + 130);
	assert_false(inside_nests(inside, &layer.head));
	assert_int_equal(layer.head.depth, 1);
	agent_tells(inside, WIRE_CALL, WIRE_BEGUN, START + 100, START + 140, PLACE);
	in_call = false;
	inside_free(inside);
}

/* Else all later calls of the thread would be within it. */
static void test_an_agent_s_call_whose_end_was_lost_is_over(void **state)
{
	struct inside *inside = diverted_process();

	agent_begins(inside, START + 100, PLACE);
	assert_int_equal(depth_of_probe_s(inside, START + 110, PLACE - 64), 1);
	assert_int_equal(depth_of_probe_s(inside, START + 200, PLACE + 64), 0); /* from above it */
	assert_int_equal(depth_of_probe_s(inside, START + 210, PLACE - 64), 0);

	agent_begins(inside, START + 300, PLACE);
	agent_tells(inside, WIRE_CALL, 0, START + 310, START + 320, PLACE - 64); /* in no other */
	assert_int_equal(depth_of_probe_s(inside, START + 330, PLACE - 64), 0);

	agent_begins(inside, START + 400, PLACE);
	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	assert_int_equal(depth_of_probe_s(inside, START + 410, PLACE - 64), 0);
	inside_free(inside);
}

/* The driver's module of the scene has a function that is refused, and so keeps its probe. */
static void test_begins_are_told_where_calls_may_lead_to_probes(void **state)
{
	struct inside *inside = open_inside(0);

	has_runtime = true;
	runtime_hook.api = api_find("cudaMemcpy");
	runtime_hook.layer = LAYER_RUNTIME;
	runtime_hook.group = HOOK_CORE;
	agent_comes(inside, 100);
	answer(0, AREA);
	assert_int_equal(fake.n_slots, 3);
	assert_true(fake.slots[0].begins);
	assert_int_equal(cookie_hook(fake.slots[2].cookie), hooks[LAUNCH].id);
	assert_false(fake.slots[2].begins);
	answer(0, 0);
	diverted(0, START + MS(10));
	inside_turn(inside, START + MS(20));
	answer(0, AREA + 65536);
	assert_int_equal(fake.n_slots, 1);
	assert_int_equal(cookie_hook(fake.slots[0].cookie), runtime_hook.id);
	assert_true(fake.slots[0].begins);
	inside_free(inside);
	has_runtime = false;
}

/* ---- commands ------------------------------------------------------------------------------ */

static struct inside *command(void)
{
	const struct inside_options options = { .target = TARGET_COMMAND, .notice = take_notice };
	struct inside *inside = open_inside_with(&options);

	assert_true(inside_probes(inside).waits);
	return inside;
}

static void test_a_command_goes_on_when_it_is_diverted(void **state)
{
	struct inside *inside = command();

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	inside_turn(inside, START + MS(5));
	assert_int_equal(fake.goes_on, 0);
	diverted(0, START + MS(10));
	inside_turn(inside, START + MS(11));
	assert_int_equal(fake.goes_on, PROCESS);
	fake.goes_on = 0;
	inside_turn(inside, START + MS(12));
	assert_int_equal(fake.goes_on, 0); /* told once */
	inside_free(inside);
}

static void test_a_command_that_keeps_its_probes_goes_on(void **state)
{
	struct inside *inside = command();

	agent_comes(inside, 100);
	answer(-ENOMEM, 0);
	inside_turn(inside, START + MS(5));
	assert_int_equal(fake.goes_on, PROCESS);
	inside_free(inside);
}

static void test_a_command_goes_on_while_it_is_tried_again(void **state)
{
	struct inside *inside = command();

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	diverted(-EAGAIN, 0);
	inside_turn(inside, START + MS(5));
	assert_int_equal(fake.goes_on, PROCESS);
	inside_free(inside);
}

static void test_a_command_that_went_on_by_itself_is_told_of(void **state)
{
	struct inside *inside = command();

	agent_comes(inside, 100);
	answer(0, AREA);
	answer(0, 0);
	inside_turn(inside, START + MS(1990));
	assert_null(strstr(notices, "was not diverted"));
	inside_turn(inside, START + MS(2010));
	assert_non_null(strstr(notices, "was not diverted within 2 s of its start, and goes on"));
	inside_free(inside);
}

/* Processor time that the ends of processes take. */
static uint64_t ends_ns(struct inside *inside)
{
	uint64_t begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
	uint32_t others = PROCESS + 1;

	for (uint32_t i = 0; i < 1000; i++) {
		struct wire_process thread, ended = {
			.head = { .type = WIRE_EXIT, .tgid = others + i, .tid = others + i }
		};

		inside_meets_thread(inside, &ended.head, &thread);
		inside_nesting_agent_ended(inside, others + i);
		inside_nesting_forget(inside, others + i);
	}
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

static void test_the_end_of_a_process_takes_no_longer_where_others_have_many_threads(void **state)
{
	struct inside *inside = diverted_process();
	uint64_t alone_ns = ends_ns(inside);

	for (uint32_t i = 0; i < 16000; i++) {
		struct wire_call begun = call_of(WIRE_BEGIN, WIRE_BY_AGENT, START, START);
		struct wire_process thread;

		begun.head.tid += i;
		inside_nests(inside, &begun.head);
		begun.head.type = WIRE_THREAD;
		inside_meets_thread(inside, &begun.head, &thread);
	}
	assert_true(ends_ns(inside) < alone_ns + 20000000);
	inside_free(inside);
}

/* A command may start as many processes as it likes. */
static void test_of_few_that_went_on_each_is_told(void **state)
{
	struct inside *inside = command();
	unsigned told = 0;

	for (int i = 0; i < 40; i++) {
		notices[0] = '\0';
		agent_comes(inside, 100);
		answer(0, AREA);
		answer(0, 0);
		inside_turn(inside, START + MS(10000) * (uint64_t)i + MS(2010));
		told += strstr(notices, "was not diverted") != NULL;
		inside_exit(inside, (pid_t)PROCESS, START + MS(10000) * (uint64_t)(i + 1));
		inside_turn(inside, START + MS(10000) * (uint64_t)(i + 1));
	}
	assert_int_equal(told, 16);
	inside_free(inside);
}

static void test_others_do_not_wait(void **state)
{
	struct inside *inside = open_inside(0);

	assert_false(inside_probes(inside).waits);
	divert_process(inside);
	inside_turn(inside, START + MS(11));
	assert_int_equal(fake.goes_on, 0);
	inside_free(inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_of_one_user_leave_room),
		cmocka_unit_test(test_an_agent_s_call_is_nested_in_a_probe_s),
		cmocka_unit_test(test_a_call_that_is_left_out_is_over_all_the_same),
		cmocka_unit_test(test_a_call_whose_end_was_lost_is_over_when_its_thread_is_in_none),
		cmocka_unit_test(test_a_call_that_longjmp_left_is_over),
		cmocka_unit_test(test_a_call_is_over_for_one_from_above_it),
		cmocka_unit_test(test_a_probe_s_call_is_nested_in_an_agent_s),
		cmocka_unit_test(test_calls_of_both_kinds_are_nested_in_each_other),
		cmocka_unit_test(test_an_agent_s_call_whose_end_was_lost_is_over),
		cmocka_unit_test(
			test_the_end_of_a_process_takes_no_longer_where_others_have_many_threads),
		cmocka_unit_test(test_begins_are_told_where_calls_may_lead_to_probes),
		cmocka_unit_test(test_a_command_goes_on_when_it_is_diverted),
		cmocka_unit_test(test_a_command_that_keeps_its_probes_goes_on),
		cmocka_unit_test(test_a_command_goes_on_while_it_is_tried_again),
		cmocka_unit_test(test_a_command_that_went_on_by_itself_is_told_of),
		cmocka_unit_test(test_of_few_that_went_on_each_is_told),
		cmocka_unit_test(test_others_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
