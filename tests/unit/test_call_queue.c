// SPDX-License-Identifier: MIT
/* Records that wait beside the rings: their order, and what processes may keep waiting. */
#include "unit.h"

#include "bpf/wire.h"
#include "capture/call_queue.h"

#define MIB (1u << 20)

static bool add(struct call_queue *queue, uint32_t pid, uint64_t time_ns, size_t bytes)
{
	static struct wire_name record;

	record.head = (struct wire_head){ .type = WIRE_NAME, .tgid = pid, .time_ns = time_ns };
	return call_queue_add(queue, &record.head, bytes);
}

static uint64_t next(struct call_queue *queue)
{
	const struct wire_head *record;
	size_t bytes;
	uint64_t time_ns;

	record = call_queue_peek(queue, &bytes);
	if (!record)
		return 0;
	time_ns = record->time_ns;
	call_queue_advance(queue);
	return time_ns;
}

static void test_processes_are_merged_by_time(void **state)
{
	struct call_queue *queue = call_queue_new();

	add(queue, 1, 10, 48);
	add(queue, 1, 30, 49);
	add(queue, 2, 20, 50);
	assert_int_equal(next(queue), 10);
	assert_int_equal(next(queue), 20);
	add(queue, 2, 25, 51);
	assert_int_equal(next(queue), 25);
	assert_int_equal(next(queue), 30);
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

	assert_in_range(first * 4104, 31 * MIB, 32 * MIB);
	assert_in_range(second * 4104, 31 * MIB, 32 * MIB);
	assert_int_equal(fill(queue, 3), 0);
	assert_int_equal(call_queue_refused(queue), 3);
	for (size_t i = 0; i < first; i++)
		next(queue);
	call_queue_free(queue);
}

static void test_room_comes_back_when_records_are_taken(void **state)
{
	struct call_queue *queue = call_queue_new();

	fill(queue, 1);
	while (next(queue)) {
	}
	assert_in_range(fill(queue, 2) * 4104, 31 * MIB, 32 * MIB);
	assert_in_range(fill(queue, 3) * 4104, 31 * MIB, 32 * MIB);
	call_queue_free(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_are_merged_by_time),
		cmocka_unit_test(test_what_a_process_left_is_handed_out_after_its_end),
		cmocka_unit_test(test_one_process_has_a_limit_and_leaves_room_for_another),
		cmocka_unit_test(test_room_comes_back_when_records_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
