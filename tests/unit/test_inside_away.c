// SPDX-License-Identifier: MIT
/* When the probes of a module go, because all who have it mapped are recorded inside, and when they
 * come back. */
#include "inside_steps.h"

#include "capture/inside/inside_away.h"

#define SETTLED MS(300)

/* ---- when ---------------------------------------------------------------------------------- */

static void test_probes_go_when_nothing_changed_for_a_while(void **state)
{
	struct away away;

	away_begin(&away, START);
	assert_int_equal(away_next(&away, true, START + SETTLED - 1), AWAY_NOTHING);
	assert_int_equal(away_next(&away, true, START + SETTLED), AWAY_WATCH);
	away_watched(&away, START + SETTLED);
	assert_int_equal(away_next(&away, true, START + SETTLED + MS(49)), AWAY_NOTHING);
	assert_int_equal(away_next(&away, true, START + SETTLED + MS(50)), AWAY_LOOK);
	assert_int_equal(away_next(&away, true, START + SETTLED + MS(99)), AWAY_NOTHING);
	assert_int_equal(away_next(&away, true, START + SETTLED + MS(100)), AWAY_LOOK);
	away_gone(&away, START + SETTLED + MS(100));
	assert_int_equal(away_next(&away, true, START + MS(9000)), AWAY_NOTHING);
}

static void test_who_is_in_a_call_for_long_is_looked_at_less_and_less(void **state)
{
	struct away away;
	uint64_t at = START + SETTLED + MS(50);

	away_begin(&away, START);
	away_watched(&away, START + SETTLED);
	for (uint64_t every = MS(100); every < MS(20000); every *= 2) {
		uint64_t wait = every > MS(1600) ? MS(1600) : every;

		assert_int_equal(away_next(&away, true, at), AWAY_LOOK);
		away_busy(&away, at);
		assert_int_equal(away_next(&away, true, at + wait - 1), AWAY_NOTHING);
		at += wait;
	}
	away_watched(&away, at);
	assert_int_equal(away_next(&away, true, at + MS(50)), AWAY_LOOK);
}

static void test_what_is_not_covered_has_its_probes_back_at_once(void **state)
{
	struct away away;

	away_begin(&away, START);
	assert_int_equal(away_next(&away, false, START + MS(200)), AWAY_NOTHING);
	assert_int_equal(away_next(&away, true, START + MS(200) + SETTLED - 1), AWAY_NOTHING);
	assert_int_equal(away_next(&away, true, START + MS(200) + SETTLED), AWAY_WATCH);
	away_watched(&away, START + MS(500));
	assert_int_equal(away_next(&away, false, START + MS(510)), AWAY_RETURN);
	away_gone(&away, START + MS(600));
	assert_int_equal(away_next(&away, false, START + MS(601)), AWAY_RETURN);
}

static void test_probes_that_were_away_for_a_moment_wait_longer_the_next_time(void **state)
{
	struct away away;
	uint64_t settle = SETTLED;

	away_begin(&away, START);
	for (int i = 0; i < 10; i++) {
		away_gone(&away, START);
		away_returned(&away, START + MS(4999));
		settle = 2 * settle > MS(10000) ? MS(10000) : 2 * settle;
		assert_int_equal(away.settle_ns, settle);
	}
	away_gone(&away, START);
	away_returned(&away, START + MS(5000));
	assert_int_equal(away.settle_ns, SETTLED);
}

/* ---- a process, and another one -------------------------------------------------------------- */

static struct inside *covered_process(void)
{
	const struct inside_options options = { .target = TARGET_NAME,
		                                .takes_away = true,
		                                .notice = take_notice };

	memset(&probes, 0, sizeof(probes));
	memset(&open_call, 0, sizeof(open_call));
	module.probes = PROBES_THERE;
	return divert_process(open_inside_with(&options));
}

/* The session's turns. */
static void turns(struct inside *inside, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t ms = from_ms; ms < to_ms; ms += 20)
		inside_turn(inside, START + MS(ms));
}

static void end(struct inside *inside)
{
	inside_free(inside);
	module.probes = PROBES_THERE;
}

static void test_probes_of_a_covered_module_go_but_for_what_is_not_diverted(void **state)
{
	struct inside *inside = covered_process();

	turns(inside, 20, 300);
	assert_int_equal(module.probes, PROBES_THERE);
	turns(inside, 300, 600);
	assert_int_equal(module.probes, PROBES_AWAY);
	assert_int_equal(probes.n_moved, 1);
	assert_true(probes.moved[REFUSED]);
	assert_non_null(strstr(notices, "libcuda.so.1 needs no probes from"));
	turns(inside, 600, 3000);
	assert_int_equal(probes.watched, 1);
	end(inside);
}

static void test_they_stay_while_another_target_has_it_mapped(void **state)
{
	struct inside *inside = covered_process();

	probes.other = probes.other_mapped = true;
	turns(inside, 20, 3000);
	assert_int_equal(module.probes, PROBES_THERE);
	assert_true(probes.watched > 0);
	probes.other_mapped = false;
	turns(inside, 3000, 14000);
	assert_int_equal(module.probes, PROBES_AWAY);
	end(inside);
}

/* The module as a runtime, and the other one as a driver that comes later. */
static struct inside *beside_a_launcher(bool driver)
{
	struct inside *inside = covered_process();

	module.has[LAYER_DRIVER] = false;
	probes.other = probes.other_mapped = true;
	runtime_module.has[LAYER_DRIVER] = runtime_module.attached = true;
	runtime_module.probes = PROBES_THERE;
	has_runtime = driver;
	turns(inside, 20, 1000);
	return inside;
}

static void end_launcher(struct inside *inside)
{
	end(inside);
	has_runtime = runtime_module.has[LAYER_DRIVER] = runtime_module.attached = false;
	module.has[LAYER_DRIVER] = true;
}

static void test_a_process_with_a_runtime_and_no_driver_does_not_need_them(void **state)
{
	struct inside *inside = beside_a_launcher(false);

	assert_int_equal(module.probes, PROBES_AWAY);
	has_runtime = true; /* a driver of which the programs do not tell */
	turns(inside, 1000, 1040);
	assert_int_equal(module.probes, PROBES_THERE);
	end_launcher(inside);
}

static void test_a_process_with_a_runtime_and_a_driver_does_need_them(void **state)
{
	struct inside *inside = beside_a_launcher(true);

	assert_int_equal(module.probes, PROBES_THERE);
	runtime_module.probes = PROBES_AWAY;
	turns(inside, 1000, 20000);
	assert_int_equal(module.probes, PROBES_THERE);
	end_launcher(inside);
}

static void test_a_child_of_fork_does_not_need_them(void **state)
{
	struct inside *inside = covered_process();

	probes.other = probes.other_mapped = true;
	inside_forked(inside, (pid_t)PROCESS, (pid_t)OTHER, START + MS(15));
	turns(inside, 20, 1000);
	assert_int_equal(module.probes, PROBES_AWAY);
	end(inside);
}

static void test_a_child_does_need_them_that_was_forked_before_executes_or_loads(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct inside *inside = covered_process();

		probes.other = probes.other_mapped = true;
		inside_forked(inside, (pid_t)PROCESS, (pid_t)OTHER,
		              how ? START + MS(15) : START - 1);
		if (how == 1)
			inside_exec(inside, (pid_t)OTHER, START + MS(16));
		else if (how == 2)
			inside_loaded(inside, (pid_t)OTHER);
		turns(inside, 20, 1000);
		assert_int_equal(module.probes, PROBES_THERE);
		end(inside);
	}
}

/* Nobody counts its calls: it has no jumps. */
static void
test_a_child_does_need_them_that_was_forked_before_the_library_was_diverted(void **state)
{
	struct inside *inside = covered_process();

	probes.other = probes.other_mapped = true;
	inside_forked(inside, (pid_t)PROCESS, (pid_t)OTHER, START + MS(5));
	turns(inside, 20, 1000);
	assert_int_equal(module.probes, PROBES_THERE);
	end(inside);
}

static void open_call_of(uint32_t pid, size_t hook, uint64_t begin_ns)
{
	open_call = (struct wire_call){
		.head = { .type = WIRE_CALL, .hook = hooks[hook].id, .tgid = pid, .tid = pid },
		.begin_ns = begin_ns
	};
}

static void test_they_wait_for_a_call_that_they_have_to_tell_of(void **state)
{
	struct inside *inside = covered_process();

	open_call_of(PROCESS, 0, START + MS(9)); /* before the cut */
	turns(inside, 20, 3000);
	assert_int_equal(module.probes, PROBES_WATCHED);
	open_call_of(PROCESS, 0, START + MS(10)); /* told by the agent */
	turns(inside, 3000, 4700);
	assert_int_equal(module.probes, PROBES_AWAY);
	end(inside);
}

static void test_a_call_of_what_stays_is_waited_for_if_it_began_by_the_old_link(void **state)
{
	struct inside *inside = covered_process();

	open_call_of(PROCESS, REFUSED, START + MS(100));
	turns(inside, 20, 1000);
	assert_int_equal(module.probes, PROBES_WATCHED);
	open_call_of(PROCESS, REFUSED, UINT64_MAX);
	turns(inside, 1000, 2000);
	assert_int_equal(module.probes, PROBES_AWAY);
	end(inside);
}

/* ---- putting back --------------------------------------------------------------------------- */

static struct inside *away(void)
{
	struct inside *inside = covered_process();

	turns(inside, 20, 600);
	assert_int_equal(module.probes, PROBES_AWAY);
	return inside;
}

static void test_they_are_back_when_an_agent_ends_before_its_entries_are(void **state)
{
	struct inside *inside = away();

	news((struct agent_probes_answer){ .news = AGENT_PROBES_ENDED });
	assert_int_equal(module.probes, PROBES_THERE);
	assert_int_equal(probes.back, 1);
	end(inside);
}

static void test_they_go_again_later_after_a_process_came_that_is_covered_by_then(void **state)
{
	struct inside *inside = away();

	module.probes = PROBES_THERE; /* as who holds a process does */
	turns(inside, 600, 1100);
	assert_int_equal(module.probes, PROBES_THERE);
	turns(inside, 1100, 1500);
	assert_int_equal(module.probes, PROBES_AWAY);
	end(inside);
}

static void test_they_are_back_when_records_of_processes_were_lost(void **state)
{
	struct inside *inside = away();

	programs_memory.lost[LOST_RECORDS]++;
	turns(inside, 600, 620);
	assert_int_equal(module.probes, PROBES_THERE);
	end(inside);
}

static void test_they_are_back_when_the_last_process_has_gone(void **state)
{
	struct inside *inside = away();

	inside_exit(inside, (pid_t)PROCESS, START + MS(600));
	turns(inside, 600, 620);
	assert_int_equal(module.probes, PROBES_THERE);
	end(inside);
}

static void test_they_are_back_before_the_trace_ends(void **state)
{
	struct inside *inside = away();

	inside_stop(inside);
	assert_int_equal(module.probes, PROBES_THERE);
	turns(inside, 600, 2000);
	assert_int_equal(module.probes, PROBES_THERE);
	end(inside);
}

static void test_they_stay_where_that_was_not_asked_for_or_not_possible(void **state)
{
	struct inside *inside = covered_process();

	probes.refuses = true;
	turns(inside, 20, 3000);
	assert_int_equal(module.probes, PROBES_THERE);
	end(inside);
	inside = diverted_process();
	turns(inside, 20, 3000);
	assert_int_equal(module.probes, PROBES_THERE);
	inside_free(inside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probes_go_when_nothing_changed_for_a_while),
		cmocka_unit_test(test_who_is_in_a_call_for_long_is_looked_at_less_and_less),
		cmocka_unit_test(test_what_is_not_covered_has_its_probes_back_at_once),
		cmocka_unit_test(test_probes_that_were_away_for_a_moment_wait_longer_the_next_time),
		cmocka_unit_test(test_probes_of_a_covered_module_go_but_for_what_is_not_diverted),
		cmocka_unit_test(test_they_stay_while_another_target_has_it_mapped),
		cmocka_unit_test(test_a_process_with_a_runtime_and_no_driver_does_not_need_them),
		cmocka_unit_test(test_a_process_with_a_runtime_and_a_driver_does_need_them),
		cmocka_unit_test(test_a_child_of_fork_does_not_need_them),
		cmocka_unit_test(
			test_a_child_does_need_them_that_was_forked_before_the_library_was_diverted),
		cmocka_unit_test(
			test_a_child_does_need_them_that_was_forked_before_executes_or_loads),
		cmocka_unit_test(test_they_wait_for_a_call_that_they_have_to_tell_of),
		cmocka_unit_test(
			test_a_call_of_what_stays_is_waited_for_if_it_began_by_the_old_link),
		cmocka_unit_test(test_they_are_back_when_an_agent_ends_before_its_entries_are),
		cmocka_unit_test(
			test_they_go_again_later_after_a_process_came_that_is_covered_by_then),
		cmocka_unit_test(test_they_are_back_when_records_of_processes_were_lost),
		cmocka_unit_test(test_they_are_back_when_the_last_process_has_gone),
		cmocka_unit_test(test_they_are_back_before_the_trace_ends),
		cmocka_unit_test(test_they_stay_where_that_was_not_asked_for_or_not_possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
