// SPDX-License-Identifier: MIT
/* The account of the last ten seconds: of which window it is, who has it, and what is left out. */
#include "stack_events.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "top/top_why.h"

#define MAIN     4242
#define WINDOW   10e6 /* us */
#define STEP     10e3
#define TOO_MANY 1000000

static struct top_why *live;
static struct run_info info;
static struct kernel *gemm;
static uint64_t correlation;

static int set_up_place(enum top_why_place place)
{
	struct err err = { 0 };
	struct consumer *consumer;

	gemm = gemm ? gemm : new_kernel("gemm", true);
	info = default_run_info();
	live = top_why_new(place);
	consumer = top_why_consumer(live);
	return consumers_begin(&consumer, 1, &info, &err);
}

static int set_up(void **state)
{
	return set_up_place(TOP_WHY_ALONE);
}

static int set_up_beside(void **state)
{
	return set_up_place(TOP_WHY_BESIDE);
}

static int tear_down(void **state)
{
	top_why_free(live);
	return 0;
}

static void see(struct event event)
{
	feed(top_why_consumer(live), &event);
}

/* A launch, its kernel of a millisecond, and a sleep in that line until the next step. */
static void step(const struct process *process, double at_us, uint32_t line)
{
	struct call call = launch_at("cuLaunchKernel", at_us, gemm);
	struct activity activity = { .kind = ACTIVITY_KERNEL,
		                     .kernel = gemm,
		                     .context = 1,
		                     .stream = 7,
		                     .correlation = ++correlation,
		                     .begin_ns = US(at_us + 10),
		                     .end_ns = US(at_us + 1000) };
	struct sample sample = sample_of(SAMPLE_OFF_CPU, STEP - 20, stack_of_line(line));

	call.correlation = correlation;
	sample.wait = WAIT_SLEEP;
	sample.blocked = BLOCKED_INTERRUPT;
	see(call_event(process, MAIN, &call));
	see(activity_event(process, &activity));
	see(sample_event(process, MAIN, at_us + STEP - 5, &sample));
}

static void steps(const struct process *process, double from_us, double to_us, uint32_t line)
{
	for (double at_us = from_us; at_us < to_us; at_us += STEP)
		step(process, at_us, line);
}

/* More calls than a process may have in a window, within a second. */
static void flood(const struct process *process, double from_us)
{
	for (int i = 0; i <= TOO_MANY; i++) {
		struct call call = call_at("cuCtxGetCurrent", from_us + i * 0.9, 0.5);

		see(call_event(process, process->pid, &call));
	}
}

static bool turn(double at_us, bool wanted)
{
	return top_why_turn(live, US(at_us), wanted);
}

/* What is shown once the window that ends then is answered. */
static struct top_why_shown answer(double end_us)
{
	uint64_t before = top_why_shown(live).number;

	assert_true(turn(end_us, true));
	info.end_ns = US(end_us);
	top_why_take(live, &info);
	for (int i = 0; i < 2000 && top_why_shown(live).number == before; i++) {
		usleep(10000);
		assert_false(turn(end_us, true));
	}
	assert_int_not_equal(top_why_shown(live).number, before);
	return top_why_shown(live);
}

/* ---- windows ------------------------------------------------------------------------------- */

static void test_each_window_has_an_account_of_its_own(void **state)
{
	struct top_why_shown shown;

	assert_false(turn(0, true));
	assert_has(top_why_shown(live).json, "\"state\":\"recording\"");
	steps(the_process(), 0, WINDOW, 12);
	assert_false(turn(WINDOW - 1, true));
	shown = answer(WINDOW);
	assert_has(shown.line, "Change first: asleep in train.py:12 step: ");
	assert_int_equal(shown.pid, the_process()->pid);
	assert_has(shown.json, "{\"state\":\"answer\",\"from_ns\":0,\"until_ns\":10000000000,"
	                       "\"left_out\":[],\"why\":{\"schema\":\"cuscope-why-1\"");
	assert_has(shown.json, "\"first\":{\"gpu\":0,\"of_pid\":4242,\"cause\":\"sleep\"");
	assert_has(shown.json, "\"text\":\"");
	steps(the_process(), WINDOW, 2 * WINDOW, 13);
	shown = answer(2 * WINDOW);
	assert_has(shown.line, "Change first: asleep in train.py:13 step: ");
	assert_has_not(shown.json, "\"line\":12");
	assert_has(shown.json, "\"from_ns\":10000000000,\"until_ns\":20000000000");
}

static void test_what_was_lost_is_told_of_its_window_alone(void **state)
{
	static const char lost[] = "what was lost while it was recorded";

	turn(0, true);
	steps(the_process(), 0, 2 * WINDOW, 12);
	info.lost[LOST_RING_FULL] = 7;
	assert_has(answer(WINDOW).json, lost);
	assert_has_not(answer(2 * WINDOW).json, lost);
}

static void test_stacks_that_were_lost_are_told_of_their_window_alone(void **state)
{
	static const char lost[] = "stacks that were lost";

	turn(0, true);
	steps(the_process(), 0, 2 * WINDOW, 12);
	info.stacks = (struct run_stacks){ .sample_ns = 1000000, .calls = STACK_CALLS_WORK };
	info.stacks.missed[STACKS_LOST] = 7;
	assert_has(answer(WINDOW).json, lost);
	assert_has_not(answer(2 * WINDOW).json, lost);
}

static void test_nothing_is_held_while_nobody_looks(void **state)
{
	steps(the_process(), 0, WINDOW, 12);
	assert_false(turn(WINDOW, false));
	assert_int_equal(top_why_shown(live).number, 0);
	assert_false(turn(WINDOW, true));
	assert_has(answer(2 * WINDOW).line, "No work of a GPU was seen: no process made");
}

static void test_who_comes_back_sees_no_account_of_long_ago(void **state)
{
	turn(0, true);
	steps(the_process(), 0, WINDOW, 12);
	answer(WINDOW);
	assert_false(turn(WINDOW + 1, false));
	assert_null(top_why_shown(live).json);
	assert_false(turn(3 * WINDOW, true));
	assert_has(top_why_shown(live).json, "\"state\":\"recording\"");
}

static void test_who_leaves_while_it_is_answered_gets_nothing(void **state)
{
	turn(0, true);
	steps(the_process(), 0, WINDOW, 12);
	assert_true(turn(WINDOW, true));
	top_why_take(live, &info);
	assert_false(turn(WINDOW + 1, false));
	assert_false(turn(WINDOW + 2, true));
	usleep(500000);
	assert_false(turn(WINDOW + 3, true));
	assert_has(top_why_shown(live).json, "\"state\":\"recording\"");
}

static void test_a_snapshot_that_nobody_asked_for_is_none(void **state)
{
	uint64_t number;

	turn(0, true);
	number = top_why_shown(live).number;
	top_why_take(live, &info);
	usleep(200000);
	assert_false(turn(1, true));
	assert_int_equal(top_why_shown(live).number, number);
}

/* ---- what is too much ---------------------------------------------------------------------- */

static void test_a_process_with_too_many_events_is_left_out(void **state)
{
	const struct process *loud = new_process(777, "loud");
	struct top_why_shown shown;

	turn(0, true);
	step(loud, 0, 20);
	flood(loud, 1e6);
	steps(the_process(), 2e6, WINDOW, 12);
	step(loud, 9e6, 20);
	shown = answer(WINDOW);
	assert_has(shown.json,
	           "\"left_out\":[\"loud (pid 777): 599 further events, beyond 1,000,000 "
	           "of a process\"]");
	assert_has_not(shown.json, "\"pid\":777");
	assert_has(shown.line, "Change first: asleep in train.py:12 step: ");
}

static void test_the_account_of_one_that_is_alone_ends_with_its_share(void **state)
{
	struct top_why_shown shown = { 0 };
	const char *until = NULL;

	/* a million events are eight seconds' work for sanitizers on a machine that is busy */
	for (int i = 0; i < 3 && !until; i++) {
		tear_down(NULL);
		set_up(NULL);
		turn(0, true);
		steps(the_process(), 0, 4e6, 12);
		flood(the_process(), 4e6);
		steps(the_process(), 5e6, WINDOW, 13);
		shown = answer(WINDOW);
		until = strstr(shown.json, "\"until_ns\":");
	}
	assert_non_null(until);
	assert_in_range(strtoull(until + strlen("\"until_ns\":"), NULL, 10), 4800000000ull,
	                5000000000ull);
	assert_has(shown.json, "\"what came after the first of these\"]");
	assert_has(shown.line, "asleep in train.py:12 step: ");
	assert_has_not(shown.json, "\"line\":13");
}

/* Who is called what is known of so many threads alone; the account goes on, also of their process.
 */
static void test_threads_without_end_end_nothing(void **state)
{
	const struct thread thread = { .comm = "t" };
	struct event event = { .type = EVENT_THREAD, .process = the_process(), .thread = &thread };

	turn(0, true);
	for (uint32_t i = 0; i <= TOO_MANY; i++) {
		event.tid = 5000 + i % 1000;
		event.time_ns = US(i * 0.5);
		see(event);
	}
	steps(the_process(), 1e6, WINDOW, 12);
	assert_has(answer(WINDOW).line, "asleep in train.py:12 step: ");
	steps(the_process(), WINDOW, 2 * WINDOW, 13);
	assert_has(answer(2 * WINDOW).line, "asleep in train.py:13 step: ");
}

/* Of processes that do next to nothing each counts as little. */
static void test_many_small_processes_leave_room(void **state)
{
	static struct process small[4000];

	turn(0, true);
	for (uint32_t i = 0; i < sizeof(small) / sizeof(*small); i++) {
		struct call call = call_at("cuCtxGetCurrent", i * 10, 0.5);

		small[i] = (struct process){ .id = 1000 + i, .pid = 20000 + i, .comm = "small" };
		see(call_event(&small[i], small[i].pid, &call));
	}
	steps(the_process(), 1e6, WINDOW, 12);
	assert_has(answer(WINDOW).line, "asleep in train.py:12 step: ");
	assert_has(top_why_shown(live).json, "\"left_out\":[]");
}

/* Those of this process's group that answer, of the last of which *pid is set. */
static int count_answering(pid_t *pid)
{
	DIR *proc = opendir("/proc");
	int n = 0;

	for (struct dirent *entry; (entry = readdir(proc));) {
		char path[300], stat[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = atoi(entry->d_name) ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fgets(stat, sizeof(stat), file) && strstr(stat, "(cuscope-why) ") &&
		    !strstr(stat, "(cuscope-why) Z") && getpgid(atoi(entry->d_name)) == getpgrp()) {
			*pid = atoi(entry->d_name);
			n++;
		}
		fclose(file);
	}
	closedir(proc);
	return n;
}

/* Another of nobody's processes stops it: so often is tried, as it is done soon. */
static bool is_stopped(double end_us)
{
	uint64_t number;
	pid_t pid;

	steps(the_process(), end_us - WINDOW, end_us, 12);
	assert_true(turn(end_us, true));
	number = top_why_shown(live).number;
	top_why_take(live, &info);
	for (int i = 0; i < 20000 && !count_answering(&pid); i++)
		usleep(10);
	if (!count_answering(&pid) || kill(pid, SIGSTOP))
		return false;
	for (int i = 0; i < 20; i++) {
		usleep(10000);
		turn(end_us + 1, true);
	}
	return top_why_shown(live).number == number;
}

static void test_who_answers_and_does_not_run_is_given_up(void **state)
{
	double end_us = WINDOW;
	pid_t pid;

	setpgid(0, 0);
	turn(0, true);
	while (!is_stopped(end_us) && end_us < 20 * WINDOW)
		end_us += WINDOW;
	assert_int_equal(count_answering(&pid), 1);
	for (int i = 0; i < 400 && !strstr(top_why_shown(live).line, "no account"); i++) {
		usleep(50000);
		turn(end_us + 2, true);
	}
	assert_non_null(strstr(top_why_shown(live).line, "eight were not enough"));
	for (int i = 0; i < 100 && count_answering(&pid); i++)
		usleep(10000);
	assert_int_equal(count_answering(&pid), 0);
}

/* ---- beside a node agent ------------------------------------------------------------------- */

static int oom_score_of(pid_t pid)
{
	char path[64];
	int score = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &score), 1);
	fclose(file);
	return score;
}

static void test_beside_an_agent_an_account_that_took_long_is_followed_by_a_rest(void **state)
{
	double end_us = WINDOW, next_us;
	uint64_t number;
	pid_t pid = 0;

	setpgid(0, 0);
	turn(0, true);
	while (!is_stopped(end_us) && end_us < 20 * WINDOW)
		end_us += WINDOW;
	assert_int_equal(count_answering(&pid), 1);
	assert_true(oom_score_of(pid) >= 500);
	number = top_why_shown(live).number;
	usleep(1500000);
	kill(pid, SIGCONT);
	for (int i = 0; i < 400 && top_why_shown(live).number == number; i++) {
		usleep(10000);
		turn(end_us + 2, true);
	}
	assert_has(top_why_shown(live).json, "\"state\":\"answer\"");
	turn(end_us + 3, false); /* whoever leaves and comes back changes nothing */
	for (next_us = end_us + 4; next_us < end_us + 100e6 && !turn(next_us, true);)
		next_us += 0.5e6;
	assert_in_range(next_us, end_us + 15e6, end_us + 60e6);
}

/* Where its memory were too little for what a window holds, it would be ended. */
static void test_beside_an_agent_a_full_window_has_room(void **state)
{
	const struct process *loud[] = { new_process(777, "loud"), new_process(778, "loud"),
		                         new_process(779, "loud") };

	turn(0, true);
	for (double at_us = 0; at_us < WINDOW; at_us += 50) {
		for (int i = 0; i < 3; i++)
			step(loud[i], at_us + i, 20);
	}
	assert_has(answer(WINDOW).json, "\"state\":\"answer\"");
	assert_has(top_why_shown(live).json, "further events, beyond 1,500,000 of all");
}

/* Each stack that a window ever had is read with every account: another process is to go on. */
static void test_stacks_without_end_are_a_reason_to_begin_anew(void **state)
{
	enum { DEEP = 60, MOST = 400000 };
	const struct process *process = new_process(778, "differs");
	struct stacks *stacks = stacks_new(4 * STACKS_BYTES_MAX);
	const struct stack_frame *frames[DEEP], *known[512];
	const struct stack stack = { .n_frames = DEEP, .frames = frames };
	unsigned n;

	for (uint32_t i = 0; i < 512; i++) {
		const struct stack_frame frame = { .function = "f", .module = "app", .offset = i };

		known[i] = stacks_frame(stacks, &frame);
	}
	turn(0, true);
	for (n = 0; n < MOST && !top_why_is_worn(live); n++) {
		struct sample sample = sample_of(SAMPLE_CPU, 10, NULL);

		for (unsigned i = 0; i < DEEP; i++)
			frames[i] = known[i < 20 ? (n >> i & 1) + 2 * i : 40 + (n * 7 + i) % 472];
		stacks_for(stacks, n / 50000, 0);
		sample.stack = stacks_stack(stacks, &stack);
		assert_non_null(sample.stack);
		see(sample_event(process, process->pid, n * 10.0, &sample));
	}
	assert_in_range(n, 20000, MOST - 1);
	stacks_free(stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_window_has_an_account_of_its_own, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_lost_is_told_of_its_window_alone,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_stacks_that_were_lost_are_told_of_their_window_alone, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_held_while_nobody_looks, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_who_comes_back_sees_no_account_of_long_ago,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_leaves_while_it_is_answered_gets_nothing,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_snapshot_that_nobody_asked_for_is_none,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_process_with_too_many_events_is_left_out,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_account_of_one_that_is_alone_ends_with_its_share, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_threads_without_end_end_nothing, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_many_small_processes_leave_room, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(test_who_answers_and_does_not_run_is_given_up,
		                                set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_beside_an_agent_an_account_that_took_long_is_followed_by_a_rest,
			set_up_beside, tear_down),
		cmocka_unit_test_setup_teardown(test_beside_an_agent_a_full_window_has_room,
		                                set_up_beside, tear_down),
		cmocka_unit_test_setup_teardown(test_stacks_without_end_are_a_reason_to_begin_anew,
		                                set_up_beside, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
