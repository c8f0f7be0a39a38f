// SPDX-License-Identifier: MIT
/* What the process that records tells the agent of ranks, when RAS is asked anew, and the rule. */
#include "capture/capture.h"

static int scene_tell(struct capture *capture, const struct event *event, struct err *err);
static uint32_t scene_number(struct capture *capture);

#define capture_tell            scene_tell /* instead of a capture */
#define capture_function_number scene_number
#include "../../src/node/flight_ranks.c"

#include "nccl_scene.h"

#include <sys/socket.h>
#include <unistd.h>

static struct flight_ranks *flight;
static struct recorder_settings settings;
static struct recorder_state told_state;
static struct recorder_rank sums[RANKS];
static unsigned n_parts, n_fired;
static char fired_why[RULES_TEXT_MAX];
static int pair[2];

static void scene_event(const struct event *event)
{
	flight_ranks_event(flight, event);
}

static void fired(void *data, enum rule rule, uint64_t person, const char *why)
{
	assert_int_equal(rule, RULE_LATE_RANK);
	n_fired++;
	snprintf(fired_why, sizeof(fired_why), "%s", why);
}

static int set_up(void **state)
{
	int small = 1; /* the kernel's least */

	settings = (struct recorder_settings){ .enabled = true, .ranks = true };
	settings.rules.late_rank = 20;
	n_parts = n_fired = 0;
	memset(sums, 0, sizeof(sums));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	flight = flight_ranks_new(&settings, fired, NULL);
	return 0;
}

static int tear_down(void **state)
{
	flight_ranks_free(flight);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void reduce(uint32_t rank, double at_us)
{
	struct call call = nccl("ncclAllReduce", at_us, at_us + 8);

	set_arg(&call, "comm", 0x5500 + rank);
	set_arg(&call, "bytes", 4096);
	see(rank, call);
}

/* Steps of 10 ms, of which one rank is late for 4. */
static void steps(unsigned first, unsigned n)
{
	for (unsigned step = first; step < first + n; step++)
		for (uint32_t i = 0; i < 2; i++)
			reduce(i, 10000 * step + 4000 * i);
}

static void turn_after(double at_us, uint64_t lost)
{
	struct capture_state capture = { .lost = { [LOST_RING_FULL] = lost } };

	flight_ranks_turn(flight, &capture, US(at_us), pair[0], &told_state);
}

static void hear(void)
{
	struct recorder_message message;

	while (!recorder_receive(pair[1], &message)) {
		assert_int_equal(message.kind, RECORDER_RANKS);
		n_parts++;
		for (uint32_t i = 0; i < message.ranks.n; i++) {
			const struct recorder_rank *rank = &message.ranks.of[i];

			assert_in_range(rank->number, 0, RANKS - 1);
			sums[rank->number].n += rank->n;
			sums[rank->number].late_ns += rank->late_ns;
			sums[rank->number].waited_ns += rank->waited_ns;
		}
	}
}

static void test_sums_are_told_once(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77ull << 32);
	steps(0, 100);
	turn_after(4e6, 0);
	hear();
	assert_int_equal(sums[1].n, 100);
	assert_int_equal(sums[1].late_ns, US(400000) - US(0));
	assert_int_equal(sums[0].waited_ns, sums[1].late_ns);
	turn_after(5e6, 0);
	hear();
	assert_int_equal(n_parts, 1);
}

static void test_what_there_was_no_room_for_is_told_later(void **state)
{
	const struct recorder_message notice = { .kind = RECORDER_NOTICE };
	struct recorder_message got;

	for (uint32_t i = 0; i < 2; i++)
		init(i, 77ull << 32);
	while (!recorder_send(pair[0], &notice))
		;
	steps(0, 100);
	turn_after(4e6, 0);
	while (!recorder_receive(pair[1], &got))
		assert_int_equal(got.kind, RECORDER_NOTICE);
	steps(400, 100);
	turn_after(8e6, 0);
	hear();
	assert_int_equal(sums[1].n, 200);
	assert_int_equal(sums[1].late_ns, US(800000) - US(0));
}

static void test_the_rule_fires_once_for_a_late_rank(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77ull << 32);
	for (unsigned second = 0; second < 40; second++) {
		steps(100 * second, 100);
		turn_after(1e6 * (second + 1), 0);
		hear();
	}
	assert_int_equal(n_fired, 1);
	assert_non_null(strstr(fired_why, "rank 1 of communicator 0000004d"));
	assert_non_null(strstr(fired_why, "up to 40 % of 10.0 s"));
}

static void test_the_rule_fires_for_a_rank_that_does_not_come(void **state)
{
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77ull << 32);
	steps(0, 10);
	reduce(0, 200000);
	for (unsigned second = 3; second < 30; second++)
		turn_after(1e6 * second, 0);
	assert_int_equal(n_fired, 1);
	assert_non_null(strstr(fired_why, "has not called for 1"));
}

static void test_ras_is_asked_soon_after_a_loss_and_seldom_else(void **state)
{
	assert_false(flight_ranks_want_ras(flight, US(1e6)));
	steps(0, 100); /* of a communicator that was there before */
	turn_after(2e6, 0);
	assert_false(flight_ranks_want_ras(flight, US(2e6)));
	assert_false(flight_ranks_want_ras(flight, US(30e6)));
	steps(5900, 100);
	assert_true(flight_ranks_want_ras(flight, US(62e6)));
	assert_false(flight_ranks_want_ras(flight, US(63e6)));
	turn_after(200e6, 1);
	steps(20000, 100);
	assert_false(flight_ranks_want_ras(flight, US(201e6)));
	for (unsigned i = 2; i < 6; i++) /* further losses do not put it off */
		turn_after(200e6 + 1e6 * i, i);
	steps(20600, 100);
	assert_true(flight_ranks_want_ras(flight, US(206e6)));
	assert_int_equal(told_state.unmatched[RECORDER_CALLS_LOST] > 0, 1);
}

static uint64_t missing[RANKS];
static bool ended[RANKS];

static void hear_missing(void)
{
	struct recorder_message message;

	while (!recorder_receive(pair[1], &message))
		for (uint32_t i = 0; i < message.ranks.n; i++) {
			missing[message.ranks.of[i].number] = message.ranks.of[i].missing_ns;
			ended[message.ranks.of[i].number] = message.ranks.of[i].ended;
		}
}

/* It hangs since before anybody looked: RAS alone says so. */
static void hung_before(void)
{
	memset(missing, 0, sizeof(missing));
	memset(ended, 0, sizeof(ended));
	for (uint32_t i = 0; i < RANKS; i++)
		known(i, 10);
	for (double at = 1e6; at < 5e6; at += 3e6)
		for (uint32_t i = 0; i < RANKS; i++)
			counted(i, at, at + 100, i == 2 ? 99 : 100);
	turn_after(5e6, 0);
	hear_missing();
	assert_int_equal(missing[2], US(5e6) - US(1e6));
}

static void test_a_rank_that_hung_before_and_is_killed_is_missing_no_more(void **state)
{
	hung_before();
	for (uint32_t i = 0; i < RANKS; i++) {
		struct event event = { .type = EVENT_EXIT,
			               .time_ns = US(6e6),
			               .process = ranks[i] };

		scene_event(&event);
	}
	for (double at = 7e6; at < 100e6; at += 1e6)
		turn_after(at, 0);
	hear_missing();
	assert_int_equal(missing[2], 0);
	assert_true(ended[2]);
}

static void test_a_rank_that_hung_before_and_comes_is_missing_no_more(void **state)
{
	hung_before();
	reduce(2, 6e6);
	for (unsigned step = 0; step < 100; step++)
		for (uint32_t i = 0; i < RANKS; i++)
			reduce(i, 6e6 + 1e5 * (step + 1));
	for (double at = 7e6; at < 50e6; at += 1e6)
		turn_after(at, 0);
	hear_missing();
	assert_int_equal(missing[2], 0);
}

#define MANY 600 /* communicators of one user */

static unsigned n_reminders, n_of_two;
static bool reminded[MANY];

static int scene_tell(struct capture *capture, const struct event *event, struct err *err)
{
	uint64_t handle = event->call->args.arg[0];

	n_reminders++;
	n_of_two += event->process->person == 1001;
	if (handle >= 0x10000)
		reminded[handle - 0x10000] = true;
	return 0;
}

static uint32_t scene_number(struct capture *capture)
{
	return 63;
}

static void test_all_ranks_are_reminded_of_by_turns_and_nobodys_for_anothers(void **state)
{
	struct err err = { 0 };
	size_t left = 0, n = 0;

	for (uint32_t i = 0; i < RANKS; i++)
		belong(i, i < 2 ? 1001 : 1002);
	for (uint32_t i = 0; i < 2; i++)
		init(i, 77ull << 32);
	for (unsigned i = 0; i < MANY; i++) {
		struct call call = nccl("ncclCommInitRank", 0, 10);

		set_arg(&call, "comm", 0x10000 + i);
		set_arg(&call, "ranks", 2);
		set_arg(&call, "id", 1000 + i);
		see(2, call);
	}
	assert_int_equal(flight_ranks_remind(flight, NULL, &left, &err), 0);
	assert_int_equal(n_reminders, FLIGHT_RANKS_TOLD);
	assert_int_equal(n_of_two, 2);
	assert_int_equal(left, MANY + 2 - FLIGHT_RANKS_TOLD);
	assert_int_equal(flight_ranks_remind(flight, NULL, &left, &err), 0);
	assert_int_equal(n_of_two, 4);
	for (size_t i = 0; i < MANY; i++)
		n += reminded[i];
	assert_int_equal(n, MANY);
	for (uint32_t i = 0; i < RANKS; i++)
		belong(i, 0);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCENE(test_a_rank_that_hung_before_and_is_killed_is_missing_no_more),
		IN_SCENE(test_a_rank_that_hung_before_and_comes_is_missing_no_more),
		IN_SCENE(test_all_ranks_are_reminded_of_by_turns_and_nobodys_for_anothers),
		IN_SCENE(test_sums_are_told_once),
		IN_SCENE(test_what_there_was_no_room_for_is_told_later),
		IN_SCENE(test_the_rule_fires_once_for_a_late_rank),
		IN_SCENE(test_the_rule_fires_for_a_rank_that_does_not_come),
		IN_SCENE(test_ras_is_asked_soon_after_a_loss_and_seldom_else),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
