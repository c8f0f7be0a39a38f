// SPDX-License-Identifier: MIT
/* Records that wait beside the rings: their order, and what processes may keep waiting. */
#include "unit.h"

#include <time.h>

#include "bpf/wire.h"
#include "capture/call_queue.h"
#include "probe/person.h"

#define MIB (1u << 20)

#define USER 1000000 /* and the pids from there on are one user's; others are one's each */

#define GONE 2000000 /* and those from there on have ended, */
#define LOST 3000000 /* from there on before anybody asked whose they are */

#define ANYBODY 999999 /* whose this is changes */

static uint64_t anybody;

uint64_t __wrap_person_of_process(pid_t pid);
uint64_t __wrap_person_of_process(pid_t pid)
{
	if (pid == ANYBODY)
		return anybody;
	return pid < USER ? (uint64_t)pid : pid < GONE ? USER : PERSON_UNKNOWN;
}

uint64_t __wrap_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid)
{
	return pid >= GONE && pid < LOST ? USER : __wrap_person_of_process(pid);
}

static bool add(struct call_queue *queue, uint32_t pid, uint64_t time_ns, size_t bytes)
{
	static struct wire_name record;

	record.head = (struct wire_head){ .type = WIRE_NAME, .tgid = pid, .time_ns = time_ns };
	return call_queue_add(queue, &record.head, bytes);
}

static uint64_t next(struct call_queue *queue)
{
	const struct wire_head *record = call_queue_take(queue, UINT64_MAX);
	uint64_t time_ns;

	if (!record)
		return 0;
	time_ns = record->time_ns;
	call_queue_release(queue, record);
	return time_ns;
}

static void test_processes_are_merged_by_time(void **state)
{
	struct call_queue *queue = call_queue_new();

	add(queue, 1, 10, 48);
	add(queue, 1, 30, 49);
	add(queue, 2, 20, 50);
	assert_null(call_queue_take(queue, 9));
	assert_int_equal(next(queue), 10);
	assert_int_equal(next(queue), 20);
	add(queue, 2, 25, 51);
	assert_int_equal(next(queue), 25);
	assert_int_equal(next(queue), 30);
	add(queue, 1, 40, 48);
	add(queue, 1, 50, 48);
	add(queue, 2, 60, 48);
	assert_int_equal(next(queue), 40);
	add(queue, 2, 45, 48);
	assert_int_equal(next(queue), 45);
	assert_int_equal(next(queue), 50);
	assert_int_equal(next(queue), 60);
	assert_int_equal(next(queue), 0);
	call_queue_free(queue);
}

static void test_what_a_process_left_is_handed_out_after_its_end(void **state)
{
	struct call_queue *queue = call_queue_new();

	add(queue, 1, 10, 48);
	call_queue_forget(queue, 1);
	call_queue_forget(queue, 2);
	assert_int_equal(next(queue), 10);
	assert_int_equal(next(queue), 0);
	call_queue_free(queue);
}

/* Until it says no. */
static size_t fill(struct call_queue *queue, uint32_t pid)
{
	size_t n = 0;

	while (n < 1000000 && add(queue, pid, n + 1, 4096))
		n++;
	return n;
}

static void test_one_process_has_a_limit_and_leaves_room_for_another(void **state)
{
	struct call_queue *queue = call_queue_new();
	size_t first = fill(queue, 1), second = fill(queue, 2);

	assert_in_range(first * 4104, 74 * MIB, 80 * MIB);
	assert_in_range(second * 4104, 74 * MIB, 80 * MIB);
	assert_int_equal(fill(queue, 3), 0);
	assert_int_equal(call_queue_refused(queue), 3);
	for (size_t i = 0; i < first; i++)
		next(queue);
	call_queue_free(queue);
}

static void test_one_user_has_a_limit_and_leaves_room_for_another(void **state)
{
	struct call_queue *queue = call_queue_new();
	size_t one = 0;

	for (uint32_t pid = USER; pid < USER + 4; pid++)
		one += fill(queue, pid);
	assert_in_range(one * 4104, 110 * MIB, 120 * MIB);
	assert_in_range(fill(queue, 1) * 4104, 35 * MIB, 40 * MIB);
	call_queue_free(queue);
}

static void test_processes_that_have_ended_are_their_users(void **state)
{
	struct call_queue *queue = call_queue_new();
	size_t one = fill(queue, USER) + fill(queue, GONE) + fill(queue, GONE + 1), lost = 0;

	assert_in_range(one * 4104, 110 * MIB, 120 * MIB);
	for (uint32_t pid = LOST; pid < LOST + 4; pid++)
		lost += fill(queue, pid);
	assert_in_range(lost * 4104, 15 * MIB, 20 * MIB);
	assert_in_range(fill(queue, 1) * 4104, 15 * MIB, 20 * MIB);
	call_queue_free(queue);
}

static void test_who_has_a_number_next_pays_for_what_it_tells(void **state)
{
	struct call_queue *queue = call_queue_new();

	anybody = 4;
	add(queue, ANYBODY, 1, 4096);
	fill(queue, USER);
	fill(queue, USER + 1);
	call_queue_forget(queue, ANYBODY);
	anybody = USER;
	assert_in_range(fill(queue, ANYBODY) * 4104, 0, MIB);
	call_queue_free(queue);
}

static void test_room_comes_back_when_records_are_taken(void **state)
{
	struct call_queue *queue = call_queue_new();

	fill(queue, 1);
	while (next(queue)) {
	}
	assert_in_range(fill(queue, 2) * 4104, 74 * MIB, 80 * MIB);
	assert_in_range(fill(queue, 3) * 4104, 74 * MIB, 80 * MIB);
	call_queue_free(queue);
}

/* Of threads that overtake each other, and of clocks that go as they like. */
static void test_whatever_the_order_of_arrival_they_come_in_order_of_time(void **state)
{
	struct call_queue *queue = call_queue_new();
	uint64_t seed = 1, last = 0, n = 0, at;

	for (uint64_t i = 0; i < 20000; i++) {
		uint64_t back = i % 7 == 3 ? 30 : 0;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (i % 100 == 50)
			back = (seed >> 33) % 90000;
		add(queue, 1 + i % 3 / 2, 100000 + 10 * i - back, 48 + i % 5);
	}
	while ((at = next(queue))) {
		assert_true(at >= last);
		last = at;
		n++;
	}
	assert_int_equal(n, 20000);
	call_queue_free(queue);
}

static void test_of_one_time_the_first_to_come_is_the_first_to_go(void **state)
{
	static const uint64_t times[] = { 50, 50, 20, 50, 20 };
	static const uint32_t threads[] = { 3, 5, 1, 2, 4 };
	struct wire_call call = { .head = { .type = WIRE_CALL, .tgid = 1 } };
	struct call_queue *queue = call_queue_new();
	char came[16] = "";

	for (int i = 0; i < 40; i++) { /* behind so many it is in the heap */
		add(queue, 1, 60, 48);
		call.head.time_ns = times[i % 5];
		call.head.tid = threads[i % 5];
		if (i < 5 || i >= 35)
			call_queue_add(queue, &call.head, WIRE_CALL_BYTES(0));
	}
	for (int i = 0; i < 10; i++) {
		const struct wire_head *record = call_queue_take(queue, UINT64_MAX);

		came[i] = (char)('0' + record->tid);
		call_queue_release(queue, record);
	}
	assert_string_equal(came, "1414352352");
	call_queue_free(queue);
}

/* What is passed on may bring others, and the end of its process. */
static void test_a_record_that_was_taken_stays_until_it_is_released(void **state)
{
	struct call_queue *queue = call_queue_new();
	const struct wire_head *record;

	add(queue, 1, 10, 4000);
	record = call_queue_take(queue, UINT64_MAX);
	for (uint64_t i = 0; i < 1000; i++) {
		add(queue, 1, 5 + i, 4000);
		next(queue);
	}
	call_queue_forget(queue, 1);
	assert_int_equal(record->time_ns, 10);
	assert_int_equal(record->tgid, 1);
	call_queue_release(queue, record);
	assert_int_equal(next(queue), 0);
	assert_true(add(queue, 1, 20, 48));
	call_queue_free(queue);
}

static void test_a_clock_that_runs_backwards_takes_no_longer(void **state)
{
	struct call_queue *queue = call_queue_new();
	const uint64_t count = 200000;
	clock_t begin = clock();

	for (uint64_t i = 0; i < count; i++)
		assert_true(add(queue, 1, 10 * count - i, 48));
	for (uint64_t i = count; i--;)
		assert_int_equal(next(queue), 10 * count - i);
	assert_true(clock() - begin < 4 * CLOCKS_PER_SEC);
	call_queue_free(queue);
}

/* Each record is another's of them. */
static void test_many_processes_take_no_longer_than_one(void **state)
{
	const uint32_t processes = 2000, rounds = 100;
	struct call_queue *queue = call_queue_new();
	uint64_t last = 0, n = 0, at;
	clock_t begin = clock();

	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t pid = 1; pid <= processes; pid++)
			assert_true(add(queue, pid,
			                1 + (uint64_t)i * processes + pid * 7919ull % processes,
			                48));
	}
	while ((at = next(queue))) {
		assert_true(at > last);
		last = at;
		n++;
	}
	assert_int_equal(n, processes * rounds);
	assert_true(clock() - begin < CLOCKS_PER_SEC);
	call_queue_free(queue);
}

static uint64_t any(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

/* Adds, takes and ends at random, of times that repeat and of the last there is. */
static void test_the_oldest_of_all_is_found_whoever_comes_and_goes(void **state)
{
	struct call_queue *queue = call_queue_new();
	static uint64_t waiting[4096];
	size_t n = 0;

	for (int i = 0; i < 200000; i++) {
		if (any() % 2 && n < 4096) {
			waiting[n] = any() % 64 ? 1 + any() % 500 : UINT64_MAX;
			assert_true(add(queue, (uint32_t)(any() % 40), waiting[n++], 48));
		} else if (any() % 8) {
			size_t first = 0;

			for (size_t k = 1; k < n; k++)
				first = waiting[k] < waiting[first] ? k : first;
			assert_int_equal(next(queue), n ? waiting[first] : 0);
			if (n)
				waiting[first] = waiting[--n];
		} else {
			call_queue_forget(queue, (uint32_t)(any() % 40));
		}
	}
	call_queue_free(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_are_merged_by_time),
		cmocka_unit_test(test_what_a_process_left_is_handed_out_after_its_end),
		cmocka_unit_test(test_one_process_has_a_limit_and_leaves_room_for_another),
		cmocka_unit_test(test_one_user_has_a_limit_and_leaves_room_for_another),
		cmocka_unit_test(test_processes_that_have_ended_are_their_users),
		cmocka_unit_test(test_who_has_a_number_next_pays_for_what_it_tells),
		cmocka_unit_test(test_room_comes_back_when_records_are_taken),
		cmocka_unit_test(test_whatever_the_order_of_arrival_they_come_in_order_of_time),
		cmocka_unit_test(test_of_one_time_the_first_to_come_is_the_first_to_go),
		cmocka_unit_test(test_a_record_that_was_taken_stays_until_it_is_released),
		cmocka_unit_test(test_a_clock_that_runs_backwards_takes_no_longer),
		cmocka_unit_test(test_many_processes_take_no_longer_than_one),
		cmocka_unit_test(test_the_oldest_of_all_is_found_whoever_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
