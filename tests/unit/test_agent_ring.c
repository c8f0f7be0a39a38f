// SPDX-License-Identifier: MIT
/* Reading an agent's ring, whatever is written into it. */
#include "agent/agent_ring.h"

#include <fcntl.h>

#include "base/array.h"
#include "fake_agent.h"

struct ring_test {
	struct agent_ring *ring;
	struct fake_agent agent;
	struct err err;
	size_t records;
	uint32_t sum; /* of kernels' correlations */
	union {
		struct agent_head head;
		_Alignas(8) char bytes[AGENT_RECORD_MAX];
	} last;
};

static int open_ring(void **state)
{
	struct ring_test *test = calloc(1, sizeof(*test));

	test->agent = (struct fake_agent){ .socket = -1, .cupti = -1 };
	assert_int_equal(agent_ring_new(0, &test->ring, &test->agent.memfd, NULL), 0);
	fake_agent_map(&test->agent);
	*state = test;
	return 0;
}

static int close_ring(void **state)
{
	struct ring_test *test = *state;

	fake_agent_die(&test->agent);
	agent_ring_free(test->ring);
	free(test);
	return 0;
}

static void take(void *data, const struct agent_head *record)
{
	struct ring_test *test = data;

	test->records++;
	memcpy(&test->last, record, record->bytes);
	if (record->type == AGENT_KERNEL)
		test->sum += ((const struct agent_kernel *)record)->correlation;
}

static int64_t read_all(struct ring_test *test)
{
	return agent_ring_read(test->ring, take, test, &test->err);
}

static void test_an_empty_ring_has_no_records(void **state)
{
	struct ring_test *test = *state;

	assert_int_equal(read_all(test), 0);
	assert_int_equal(test->records, 0);
	assert_false(agent_ring_waits(test->ring));
}

static void test_sizes_are_powers_of_two(void **state)
{
	struct agent_ring *ring;
	struct stat st;
	int memfd;

	assert_int_equal(agent_ring_new(100000, &ring, &memfd, NULL), 0);
	assert_int_equal(fstat(memfd, &st), 0);
	assert_int_equal(st.st_size, AGENT_RING_AT + 131072);
	agent_ring_free(ring);
	close(memfd);
}

static void test_the_memory_cannot_be_cut_short(void **state)
{
	struct ring_test *test = *state;

	assert_int_not_equal(ftruncate(test->agent.memfd, 0), 0);
	assert_int_not_equal(ftruncate(test->agent.memfd, 1 << 30), 0);
	assert_int_not_equal(fcntl(test->agent.memfd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

static void test_a_record_is_read_once(void **state)
{
	struct ring_test *test = *state;

	assert_true(fake_agent_kernel(&test->agent, 5));
	assert_true(agent_ring_waits(test->ring));
	assert_int_equal(read_all(test), sizeof(struct agent_kernel));
	assert_int_equal(read_all(test), 0);
	assert_int_equal(test->records, 1);
	assert_int_equal(test->sum, 5);
	assert_int_equal(test->last.head.bytes, sizeof(struct agent_kernel));
}

static void test_records_go_round_the_ring(void **state)
{
	struct ring_test *test = *state;
	struct agent_kernel_long record = { .kernel = a_kernel(1) };
	size_t written = 0;

	/* 56 bytes: no divisor of the ring's size, so some lie across its end */
	record.kernel.head.flags = AGENT_KERNEL_LONG;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 500; i++)
			written += fake_agent_write(&test->agent, &record, sizeof(record));
		assert_int_equal(read_all(test), 500 * sizeof(record));
	}
	assert_int_equal(test->records, written);
	assert_int_equal(test->sum, written);
	assert_true(test->agent.shared->head > test->agent.bytes);
}

static void test_a_full_ring_is_read_whole_and_has_room_again(void **state)
{
	struct ring_test *test = *state;
	size_t n = 0;

	while (fake_agent_kernel(&test->agent, 1))
		n++;
	assert_int_equal(n, test->agent.bytes / sizeof(struct agent_kernel));
	assert_int_equal(read_all(test), test->agent.bytes);
	assert_int_equal(test->records, n);
	assert_true(fake_agent_kernel(&test->agent, 1));
}

static void test_what_was_read_is_zeroed(void **state)
{
	struct ring_test *test = *state;

	fake_agent_kernel(&test->agent, 0xffffffff);
	read_all(test);
	for (size_t i = 0; i < test->agent.bytes; i++)
		assert_int_equal(test->agent.ring[i], 0);
}

static void test_a_record_that_is_being_written_holds_up_those_after_it(void **state)
{
	struct ring_test *test = *state;
	struct agent_kernel late = a_kernel(1);
	char *at = fake_agent_reserve(&test->agent, sizeof(late));

	fake_agent_kernel(&test->agent, 2);
	assert_int_equal(read_all(test), 0);
	assert_true(agent_ring_waits(test->ring));
	memcpy(at, &late, sizeof(late));
	assert_int_equal(read_all(test), 2 * sizeof(late));
	assert_int_equal(test->records, 2);
}

static void test_padding_is_skipped(void **state)
{
	struct ring_test *test = *state;
	struct agent_head pad[3] = { { .type = AGENT_PAD } };

	fake_agent_write(&test->agent, pad, sizeof(pad));
	fake_agent_kernel(&test->agent, 3);
	assert_true(read_all(test) > 0);
	assert_int_equal(test->records, 1);
	assert_int_equal(test->sum, 3);
}

static void test_every_type_of_record_is_passed_on_at_its_smallest(void **state)
{
	static const struct {
		uint8_t type, flags;
		size_t bytes;
	} types[] = {
		{ AGENT_NAME, 0, 16 },
		{ AGENT_SHAPE, 0, sizeof(struct agent_shape) },
		{ AGENT_LANE, 0, sizeof(struct agent_lane) },
		{ AGENT_CALL, 0, sizeof(struct agent_call) },
		{ AGENT_KERNEL, 0, sizeof(struct agent_kernel) },
		{ AGENT_KERNEL, AGENT_KERNEL_LONG, sizeof(struct agent_kernel_long) },
		{ AGENT_COPY, 0, sizeof(struct agent_copy) },
		{ AGENT_SET, 0, sizeof(struct agent_copy) },
		{ AGENT_GRAPH, 0, sizeof(struct agent_graph) },
		{ AGENT_SYNC, 0, sizeof(struct agent_wait) },
		{ AGENT_OVERHEAD, 0, sizeof(struct agent_wait) },
		{ AGENT_NVTX, 0, sizeof(struct agent_nvtx) },
		{ AGENT_NODE, 0, sizeof(struct agent_node) },
		{ AGENT_STALL, 0, sizeof(struct agent_stall) },
		{ AGENT_STALL_WINDOW, 0, sizeof(struct agent_stall_window) },
		{ AGENT_STALLS_TOLD, 0, sizeof(struct agent_stalls_told) },
	};
	struct ring_test *test = *state;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct agent_head record[16] = { { .type = types[i].type,
			                           .flags = types[i].flags } };

		assert_true(fake_agent_write(&test->agent, record, types[i].bytes));
		assert_int_equal(read_all(test), types[i].bytes);
		assert_int_equal(test->records, i + 1);
		assert_int_equal(test->last.head.type, types[i].type);
		assert_int_equal(types[i].bytes % 8, 0);
	}
}

static void test_a_call_brings_its_words(void **state)
{
	struct ring_test *test = *state;
	uint64_t memory[sizeof(struct agent_call) / 8 + 3] = { 0 };
	struct agent_call *call = (struct agent_call *)memory;

	call->head.type = AGENT_CALL;
	call->arguments = 2;
	call->blob = 1;
	call->word[2] = 77;
	fake_agent_write(&test->agent, call, sizeof(memory));
	assert_true(read_all(test) > 0);
	assert_int_equal(((struct agent_call *)&test->last)->word[2], 77);
}

/* ---- what breaks it -------------------------------------------------------------------------- */

static void assert_broken(struct ring_test *test, const char *why)
{
	assert_int_equal(read_all(test), -EBADMSG);
	assert_int_equal(test->records, 0);
	if (!strstr(test->err.text, why))
		fail_msg("'%s' does not say '%s'", test->err.text, why);
}

static void test_a_head_ahead_of_the_ring_breaks_it(void **state)
{
	struct ring_test *test = *state;

	test->agent.shared->head = test->agent.bytes + 8;
	assert_broken(test, "head");
}

static void test_a_head_behind_the_tail_breaks_it(void **state)
{
	struct ring_test *test = *state;

	test->agent.shared->head = (uint64_t)-8;
	assert_broken(test, "head");
}

static void test_a_head_within_a_word_breaks_it(void **state)
{
	struct ring_test *test = *state;

	test->agent.shared->head = 36;
	assert_broken(test, "head");
}

static void test_a_tail_that_the_agent_moved_changes_nothing(void **state)
{
	struct ring_test *test = *state;

	fake_agent_kernel(&test->agent, 4);
	test->agent.shared->tail = 1 << 20;
	assert_int_equal(read_all(test), sizeof(struct agent_kernel));
	assert_int_equal(test->sum, 4);
}

static void test_lengths_that_cannot_be_break_it(void **state)
{
	static const uint32_t lengths[] = { 1, 7, 33, 40, AGENT_RECORD_MAX + 8, 0x80000000, ~0u };
	struct ring_test *test = *state;

	fake_agent_kernel(&test->agent, 1);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		memcpy(test->agent.ring, &lengths[i], sizeof(*lengths));
		assert_broken(test, "bytes, where 32 were reserved");
	}
}

static void test_a_long_record_breaks_it_even_where_there_is_room(void **state)
{
	struct ring_test *test = *state;
	uint32_t bytes = AGENT_RECORD_MAX + 8;

	fake_agent_reserve(&test->agent, 8192);
	memcpy(test->agent.ring, &bytes, sizeof(bytes));
	assert_broken(test, "4168 bytes");
}

static void test_types_that_there_are_not_break_it(void **state)
{
	static const uint8_t types[] = { 0, AGENT_RECORD_TYPES, 255 };

	for (size_t i = 0; i < sizeof(types); i++) {
		struct ring_test *test = *state;

		test->agent.shared->head = test->agent.shared->tail;
		fake_agent_kernel(&test->agent, 1);
		((struct agent_head *)test->agent.ring)->type = types[i];
		assert_broken(test, "type");
		test->agent.shared->head = test->agent.shared->tail;
	}
}

static void test_a_record_shorter_than_its_type_breaks_it(void **state)
{
	for (uint8_t type = AGENT_NAME; type < AGENT_RECORD_TYPES; type++) {
		struct ring_test *test;
		struct agent_head record = { .type = type };
		void *fresh;

		open_ring(&fresh);
		test = fresh;
		fake_agent_write(&test->agent, &record, sizeof(record));
		assert_broken(test, "only 8 bytes");
		close_ring(&fresh);
	}
}

static void test_a_long_kernel_has_its_second_half(void **state)
{
	struct ring_test *test = *state;
	struct agent_kernel record = a_kernel(1);

	record.head.flags = AGENT_KERNEL_LONG;
	fake_agent_write(&test->agent, &record, sizeof(record));
	assert_broken(test, "only 32 bytes");
}

static void test_a_text_without_an_end_breaks_it(void **state)
{
	struct ring_test *test = *state;
	union {
		struct agent_name name;
		char bytes[24];
	} record;

	memset(&record, 'x', sizeof(record));
	record.name.head.type = AGENT_NAME;
	fake_agent_write(&test->agent, &record, sizeof(record));
	assert_broken(test, "without an end");
}

static void test_a_range_without_an_end_of_its_name_breaks_it(void **state)
{
	struct ring_test *test = *state;
	union {
		struct agent_nvtx range;
		char bytes[sizeof(struct agent_nvtx) + 8];
	} record;

	memset(&record, 'x', sizeof(record));
	record.range.head.type = AGENT_NVTX;
	fake_agent_write(&test->agent, &record, sizeof(record));
	assert_broken(test, "without an end");
}

static void test_arguments_that_are_not_there_break_it(void **state)
{
	static const uint32_t counts[][2] = {
		{ 2, 0 }, { 0, 2 }, { 1, 1 }, { ~0u, 2 }, { 1, ~0u }
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		uint64_t memory[sizeof(struct agent_call) / 8 + 1] = { 0 };
		struct agent_call *call = (struct agent_call *)memory;
		struct ring_test *test;
		void *fresh;

		open_ring(&fresh);
		test = fresh;
		call->head.type = AGENT_CALL;
		call->arguments = counts[i][0];
		call->blob = counts[i][1];
		fake_agent_write(&test->agent, call, sizeof(memory));
		assert_broken(test, "more arguments");
		close_ring(&fresh);
	}
}

/* ---- what it says of itself ------------------------------------------------------------------ */

static void test_texts_in_the_first_page_are_ended(void **state)
{
	struct ring_test *test = *state;
	struct agent_shared copy;

	memset(test->agent.shared->text, 'x', sizeof(copy.text));
	memset(test->agent.shared->cupti_path, 'y', sizeof(copy.cupti_path));
	agent_ring_shared(test->ring, &copy);
	assert_int_equal(strlen(copy.text), sizeof(copy.text) - 1);
	assert_int_equal(strlen(copy.cupti_path), sizeof(copy.cupti_path) - 1);
}

#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(test_an_empty_ring_has_no_records),
		RING_TEST(test_sizes_are_powers_of_two),
		RING_TEST(test_the_memory_cannot_be_cut_short),
		RING_TEST(test_a_record_is_read_once),
		RING_TEST(test_records_go_round_the_ring),
		RING_TEST(test_a_full_ring_is_read_whole_and_has_room_again),
		RING_TEST(test_what_was_read_is_zeroed),
		RING_TEST(test_a_record_that_is_being_written_holds_up_those_after_it),
		RING_TEST(test_padding_is_skipped),
		RING_TEST(test_every_type_of_record_is_passed_on_at_its_smallest),
		RING_TEST(test_a_call_brings_its_words),
		RING_TEST(test_a_head_ahead_of_the_ring_breaks_it),
		RING_TEST(test_a_head_behind_the_tail_breaks_it),
		RING_TEST(test_a_head_within_a_word_breaks_it),
		RING_TEST(test_a_tail_that_the_agent_moved_changes_nothing),
		RING_TEST(test_lengths_that_cannot_be_break_it),
		RING_TEST(test_a_long_record_breaks_it_even_where_there_is_room),
		RING_TEST(test_types_that_there_are_not_break_it),
		RING_TEST(test_a_record_shorter_than_its_type_breaks_it),
		RING_TEST(test_a_long_kernel_has_its_second_half),
		RING_TEST(test_a_text_without_an_end_breaks_it),
		RING_TEST(test_a_range_without_an_end_of_its_name_breaks_it),
		RING_TEST(test_arguments_that_are_not_there_break_it),
		RING_TEST(test_texts_in_the_first_page_are_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
