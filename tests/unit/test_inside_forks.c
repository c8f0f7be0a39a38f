// SPDX-License-Identifier: MIT
/* Calls of children of fork, which nobody records: which of them are told as missed. */
#include "inside_steps.h"

#include "capture/inside/inside_private.h"
#include "probe/person.h"

#define SLOT  1 /* of hooks[1] */
#define CHILD (PROCESS + 1)

static uint64_t ms; /* of the scene's clock */

static struct inside *process_with(bool met)
{
	const struct inside_options options = { .target = TARGET_PIDS,
		                                .follow = true,
		                                .notice = take_notice };
	struct inside *inside = open_inside_with(&options);

	memset(says_children, 0, sizeof(says_children));
	memset(&told_all, 0, sizeof(told_all));
	children_maps = 0;
	ms = 100;
	probes_meet = met;
	return divert_process(inside);
}

static void turn(struct inside *inside)
{
	ms += 300;
	inside_turn(inside, START + MS(ms));
}

static uint64_t lost_records(struct inside *inside)
{
	uint64_t lost[LOST_COUNT] = { 0 };

	inside_fill_lost(inside, lost);
	return lost[LOST_GPU_RECORDS];
}

static void test_calls_are_told_where_the_jump_lies_before_the_probe(void **state)
{
	struct inside *inside = process_with(false);

	says_children[SLOT] = 3; /* nobody has forked */
	turn(inside);
	assert_int_equal(told_all.in_children, 0);
	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
	turn(inside);
	says_children[SLOT] = 10;
	turn(inside);
	assert_int_equal(told_all.in_children, 10);
	assert_int_equal(told_all.parents, 1);
	assert_int_equal(told_all.calls, 0);
	inside_finish(inside);
	assert_non_null(strstr(notices, "10 calls were counted in children of fork"));
	inside_free(inside);
	assert_int_equal(children_maps, 0);
}

static void probe_tells(struct inside *inside, int calls)
{
	const struct wire_call call = {
		.head = { .type = WIRE_CALL, .hook = hooks[1].id, .tgid = CHILD, .tid = CHILD }
	};

	for (int i = 0; i < calls; i++)
		inside_called(inside, &call);
}

static void test_calls_are_not_told_that_probes_tell_of(void **state)
{
	struct inside *inside = process_with(true);

	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
	says_children[SLOT] = 10;
	probe_tells(inside, 10);
	turn(inside);
	assert_int_equal(told_all.in_children, 0);
	says_children[SLOT] = 15; /* they were taken away */
	turn(inside);
	assert_int_equal(told_all.in_children, 5);
	says_children[SLOT] = 19; /* and came back */
	turn(inside);
	assert_int_equal(told_all.in_children, 9);
	probe_tells(inside, 4);
	turn(inside);
	assert_int_equal(told_all.in_children, 5);
	inside_free(inside);
}

static void test_calls_of_a_child_without_jumps_are_nobody_else_s(void **state)
{
	struct inside *inside = process_with(true);

	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(5));
	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD + 1, START + MS(50));
	probe_tells(inside, 10);
	says_children[SLOT] = 10;
	turn(inside);
	assert_int_equal(told_all.in_children, 10);
	inside_free(inside);
}

static void test_what_meets_its_probe_is_known(void **state)
{
	struct wire_call call = { .head = { .tgid = PROCESS }, .begin_ns = START + MS(20) };

	for (int met = 0; met < 2; met++) {
		struct inside *inside = process_with(met);

		call.head.hook = hooks[1].id;

		assert_false(inside_meets_probe(inside, &call));
		hooks[1].hooked = true;
		assert_int_equal(inside_meets_probe(inside, &call), met);
		inside_free(inside);
	}
}

static void test_children_go_on_when_their_parent_has_ended(void **state)
{
	struct inside *inside = process_with(false);

	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
	inside_exit(inside, (pid_t)PROCESS, START + MS(60));
	assert_int_equal(children_maps, 1);
	says_children[SLOT] = 4;
	turn(inside);
	assert_int_equal(told_all.in_children, 4);
	inside_free(inside);
	assert_int_equal(children_maps, 0);
}

static void test_what_is_kept_of_children_goes_with_the_last_of_them(void **state)
{
	struct inside *inside = process_with(false);

	for (int i = 0; i < 3; i++)
		inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD + i, START + MS(50));
	inside_forked(inside, (pid_t)CHILD + 2, (pid_t)CHILD + 3, START + MS(51)); /* its own */
	inside_exit(inside, (pid_t)CHILD, START + MS(55));
	inside_exit(inside, (pid_t)PROCESS, START + MS(60));
	inside_exec(inside, (pid_t)CHILD + 1, START + MS(61));
	inside_exit(inside, (pid_t)CHILD + 2, START + MS(62));
	assert_int_equal(children_maps, 1);
	says_children[SLOT] = 4;
	inside_exit(inside, (pid_t)CHILD + 3, START + MS(63));
	assert_int_equal(children_maps, 0);
	turn(inside);
	assert_int_equal(told_all.in_children, 4);
	inside_free(inside);
}

static void test_what_is_kept_of_children_is_kept_where_their_end_may_not_be_told(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct inside *inside = process_with(false);

		inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
		inside_exit(inside, (pid_t)PROCESS, START + MS(60));
		if (how)
			inside_loaded(inside, (pid_t)CHILD); /* a library that its parent had not */
		else
			inside_children_forget(inside); /* records were lost */
		inside_exit(inside, (pid_t)CHILD, START + MS(61));
		assert_int_equal(children_maps, 1);
		inside_free(inside);
		assert_int_equal(children_maps, 0);
	}
}

static void test_processes_that_ended_have_a_share(void **state)
{
	static const struct {
		uint64_t person;
		int most;
	} kinds[] = { { PERSON_ROOT, 256 }, { 1000, 64 } };

	for (int i = 0; i < 2; i++) {
		struct inside *inside = process_with(false);

		person = kinds[i].person;
		for (int n = 0; n < kinds[i].most + 2; n++) {
			assert_int_equal(strstr(missed, "after its own end are not counted") !=
			                         NULL,
			                 n > kinds[i].most);
			agent_comes(inside, 100);
			inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD + n, START + MS(50));
			inside_exit(inside, (pid_t)PROCESS, START + MS(60));
		}
		assert_int_equal(children_maps, kinds[i].most);
		person = PERSON_ROOT; /* has a share of its own */
		agent_comes(inside, 100);
		inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD + 500, START + MS(50));
		inside_exit(inside, (pid_t)PROCESS, START + MS(60));
		assert_int_equal(children_maps, i ? 65 : 256);
		/* of whom nothing is kept, too */
		inside_exit(inside, (pid_t)CHILD + 500, START + MS(61));
		inside_exit(inside, (pid_t)CHILD + kinds[i].most + 1, START + MS(61));
		inside_free(inside);
		assert_int_equal(children_maps, 0);
	}
}

static void test_children_have_a_share(void **state)
{
	for (int more = 0; more < 2; more++) {
		struct inside *inside = process_with(true);

		person = 1000;
		inside_exit(inside, (pid_t)PROCESS, START + MS(20));
		divert_process(inside);
		for (int n = 0; n < 2048 + more; n++)
			inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD + n, START + MS(50));
		assert_null(inside_child_find(inside, CHILD + 2048));
		person = PERSON_ROOT;
		inside_finish(inside);
		assert_int_equal(
			strstr(missed, "1 children of processes that are recorded inside") != NULL,
			more);
		inside_free(inside);
	}
}

static void test_numbers_that_cannot_be_are_not_taken(void **state)
{
	static const uint64_t numbers[] = { 99, 1ull << 60, UINT64_MAX };

	for (size_t i = 0; i < 3; i++) {
		struct inside *inside = process_with(false);

		inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
		says_children[SLOT] = 100;
		turn(inside);
		says_children[SLOT] = numbers[i];
		turn(inside);
		assert_int_equal(lost_records(inside), 1);
		says_children[SLOT] = 200;
		turn(inside);
		assert_int_equal(told_all.in_children, 100);
		assert_int_equal(lost_records(inside), 1);
		inside_free(inside);
	}
}

static void test_children_that_are_no_targets_are_not_told_of(void **state)
{
	struct inside *inside = open_inside(0);

	memset(&told_all, 0, sizeof(told_all));
	children_maps = 0;
	divert_process(inside);
	inside_forked(inside, (pid_t)PROCESS, (pid_t)CHILD, START + MS(50));
	says_children[SLOT] = 4;
	inside_turn(inside, START + MS(500));
	assert_int_equal(told_all.in_children, 0);
	assert_int_equal(children_maps, 0);
	inside_free(inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_told_where_the_jump_lies_before_the_probe),
		cmocka_unit_test(test_calls_are_not_told_that_probes_tell_of),
		cmocka_unit_test(test_calls_of_a_child_without_jumps_are_nobody_else_s),
		cmocka_unit_test(test_what_meets_its_probe_is_known),
		cmocka_unit_test(test_children_go_on_when_their_parent_has_ended),
		cmocka_unit_test(test_what_is_kept_of_children_goes_with_the_last_of_them),
		cmocka_unit_test(
			test_what_is_kept_of_children_is_kept_where_their_end_may_not_be_told),
		cmocka_unit_test(test_processes_that_ended_have_a_share),
		cmocka_unit_test(test_children_have_a_share),
		cmocka_unit_test(test_numbers_that_cannot_be_are_not_taken),
		cmocka_unit_test(test_children_that_are_no_targets_are_not_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
