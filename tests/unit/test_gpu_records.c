// SPDX-License-Identifier: MIT
/* An agent's records become activities and ranges, or are counted as bad. */
#include "agent_words.h"

#include <malloc.h>

#include "capture/gpu/gpu_records.h"

struct fixture {
	struct gpu_records *records;
	struct kernel kernels[4];
	size_t n_kernels;
	struct gpu_item item;
	bool holds;
};

static const struct kernel *kernel_named(void *data, const char *mangled)
{
	struct fixture *f = data;

	for (size_t i = 0; i < f->n_kernels; i++) {
		if (!strcmp(f->kernels[i].name, mangled))
			return &f->kernels[i];
	}
	assert_true(f->n_kernels < 4);
	f->kernels[f->n_kernels].name = strdup(mangled);
	return &f->kernels[f->n_kernels++];
}

static int make(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->records =
		gpu_records_new(&(struct gpu_records_options){ .kernel = kernel_named, .data = f });
	*state = f;
	return 0;
}

static int destroy(void **state)
{
	struct fixture *f = *state;

	if (f->holds)
		gpu_item_free(&f->item);
	gpu_records_free(f->records);
	for (size_t i = 0; i < f->n_kernels; i++)
		free((char *)f->kernels[i].name);
	free(f);
	return 0;
}

static enum gpu_record_is take(struct fixture *f, union agent_words words)
{
	struct gpu_item item;
	enum gpu_record_is is = gpu_records_take(f->records, &words.head, &item);

	if (is != GPU_RECORD_ITEM)
		return is;
	if (f->holds)
		gpu_item_free(&f->item);
	f->item = item;
	f->holds = true;
	return is;
}

static struct activity taken(struct fixture *f, union agent_words words)
{
	struct activity activity;

	assert_int_equal(take(f, words), GPU_RECORD_ITEM);
	assert_false(f->item.is_range);
	gpu_item_activity(&f->item, &activity);
	return activity;
}

static struct range taken_range(struct fixture *f, union agent_words words)
{
	struct range range;

	assert_int_equal(take(f, words), GPU_RECORD_ITEM);
	assert_true(f->item.is_range);
	gpu_item_range(&f->item, &range);
	return range;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_a_kernel_has_its_name_shape_and_place(void **state)
{
	union agent_words words = kernel_words(5, 77, 100, 130);
	struct activity activity;

	take(*state, name_words(3, "_Z3fooi"));
	take(*state, shape_words(5, 3, 196));
	take(*state, lane_words(2, 1, 13));
	words.head.lane = 2;
	activity = taken(*state, words);
	assert_int_equal(activity.kind, ACTIVITY_KERNEL);
	assert_string_equal(activity.kernel->name, "_Z3fooi");
	assert_int_equal(activity.begin_ns, AT(100));
	assert_int_equal(activity.end_ns, AT(130));
	assert_int_equal(activity.device, 1);
	assert_int_equal(activity.context, 1);
	assert_int_equal(activity.stream, 13);
	assert_int_equal(activity.grid[0], 196);
	assert_int_equal(activity.block[0], 256);
	assert_int_equal(activity.registers, 32);
	assert_int_equal(activity.shmem_static, 1024);
	assert_int_equal(activity.shmem_dynamic, 2048);
	assert_int_equal(((struct fixture *)*state)->item.correlation, 77);
}

static void test_a_long_kernel_of_a_graph(void **state)
{
	union agent_words words = kernel_words(1, 77, 100, 100);
	struct activity activity;

	take(*state, name_words(1, "k"));
	take(*state, shape_words(1, 1, 1));
	words.head.bytes = sizeof(struct agent_kernel_long);
	words.head.flags = AGENT_KERNEL_LONG;
	words.longer.end_ns = AT(9000000);
	words.longer.graph = 4;
	words.longer.graph_node = 12;
	activity = taken(*state, words);
	assert_int_equal(activity.end_ns, AT(9000000));
	assert_int_equal(activity.graph, 4);
	assert_int_equal(activity.graph_node, 12);
}

static void test_a_shape_number_may_be_given_anew(void **state)
{
	struct fixture *f = *state;
	struct activity old;

	take(f, name_words(1, "k"));
	take(f, shape_words(1, 1, 10));
	assert_int_equal(take(f, kernel_words(1, 1, 100, 101)), GPU_RECORD_ITEM);
	take(f, shape_words(1, 1, 20));
	gpu_item_activity(&f->item, &old);
	assert_int_equal(old.grid[0], 10);
	assert_int_equal(taken(f, kernel_words(1, 2, 102, 103)).grid[0], 20);
}

static void test_an_item_outlives_the_records(void **state)
{
	struct fixture *f = *state;
	struct activity activity;

	take(f, name_words(1, "k"));
	take(f, shape_words(1, 1, 10));
	take(f, kernel_words(1, 1, 100, 101));
	gpu_records_free(f->records);
	f->records = NULL;
	gpu_item_activity(&f->item, &activity);
	assert_int_equal(activity.grid[0], 10);
}

static void test_copies_have_bytes_direction_and_memories(void **state)
{
	union agent_words words = copy_words(1, 4096, 9, 10, 20);
	struct activity activity;

	words.copy.source = ACTIVITY_MEMORY_PINNED;
	words.copy.destination = ACTIVITY_MEMORY_DEVICE;
	activity = taken(*state, words);
	assert_int_equal(activity.kind, ACTIVITY_COPY);
	assert_int_equal(activity.bytes, 4096);
	assert_int_equal(activity.direction, DIRECTION_H2D);
	assert_int_equal(activity.source, ACTIVITY_MEMORY_PINNED);
	assert_int_equal(activity.destination, ACTIVITY_MEMORY_DEVICE);
	assert_int_equal(taken(*state, copy_words(2, 1, 9, 10, 20)).direction, DIRECTION_D2H);
	assert_int_equal(taken(*state, copy_words(8, 1, 9, 10, 20)).direction, DIRECTION_D2D);
	assert_int_equal(taken(*state, copy_words(10, 1, 9, 10, 20)).direction, DIRECTION_P2P);
	assert_int_equal(taken(*state, copy_words(200, 1, 9, 10, 20)).direction, DIRECTION_NONE);
}

static void test_a_set_has_no_direction(void **state)
{
	union agent_words words = copy_words(1, 4096, 9, 10, 20);
	struct activity activity;

	words.head.type = AGENT_SET;
	words.copy.destination = ACTIVITY_MEMORY_DEVICE;
	activity = taken(*state, words);
	assert_int_equal(activity.kind, ACTIVITY_SET);
	assert_int_equal(activity.direction, DIRECTION_NONE);
	assert_int_equal(activity.destination, ACTIVITY_MEMORY_DEVICE);
}

static void test_a_graph_run(void **state)
{
	union agent_words words = words_of(AGENT_GRAPH, sizeof(struct agent_graph));
	struct activity activity;

	words.graph.begin_ns = AT(1);
	words.graph.end_ns = AT(2);
	words.graph.graph = 6;
	activity = taken(*state, words);
	assert_int_equal(activity.kind, ACTIVITY_GRAPH_RUN);
	assert_int_equal(activity.graph, 6);
}

static void test_waits_and_overhead_are_ranges_by_name(void **state)
{
	union agent_words words = words_of(AGENT_SYNC, sizeof(struct agent_wait));

	words.wait.begin_ns = AT(1);
	words.wait.end_ns = AT(2);
	words.wait.kind = 3;
	words.wait.stream = 7;
	words.wait.correlation = 5;
	assert_string_equal(taken_range(*state, words).name, "Stream Sync");
	assert_int_equal(taken_range(*state, words).stream, 7);
	assert_int_equal(((struct fixture *)*state)->item.correlation, 5);
	words.head.type = AGENT_OVERHEAD;
	words.wait.kind = 1 << 16;
	assert_string_equal(taken_range(*state, words).name, "Buffer Flush");
	assert_int_equal(((struct fixture *)*state)->item.correlation, 0);
	words.wait.kind = 0x7fffffff;
	assert_string_equal(taken_range(*state, words).name, "Overhead");
}

static void test_ranges_of_nvtx_have_name_domain_and_depth(void **state)
{
	union agent_words words = nvtx_words(AGENT_NVTX_PUSHPOP, "forward", 10, 20);
	struct range range;

	take(*state, name_words(4, "torch"));
	words.nvtx.domain = 4;
	words.nvtx.depth = 2;
	words.nvtx.category = 7;
	words.nvtx.color = 0xff00ff80;
	range = taken_range(*state, words);
	assert_int_equal(range.category, 7);
	assert_int_equal(range.color, 0xff00ff80);
	assert_int_equal(range.kind, RANGE_PUSHPOP);
	assert_string_equal(range.name, "forward");
	assert_string_equal(range.domain, "torch");
	assert_int_equal(range.depth, 2);
	range = taken_range(*state, nvtx_words(AGENT_NVTX_MARK, "here", 30, 30));
	assert_int_equal(range.kind, RANGE_MARK);
	assert_null(range.domain);
}

/* The agent cuts texts; whoever writes longer ones is none. */
static void test_long_texts_of_nvtx_are_cut(void **state)
{
	char text[420];
	union agent_words words;
	struct range range;

	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	take(*state, name_words(4, text));
	words = nvtx_words(AGENT_NVTX_PUSHPOP, text, 10, 20);
	words.nvtx.domain = 4;
	range = taken_range(*state, words);
	assert_int_equal(strlen(range.name), AGENT_NVTX_TEXT - 1);
	assert_int_equal(strlen(range.domain), AGENT_NVTX_TEXT - 1);
	assert_int_equal(((struct fixture *)*state)->item.range.text_bytes, 2 * AGENT_NVTX_TEXT);
}

static void test_names_and_shapes_are_taken_from_the_budget(void **state)
{
	struct fixture *f = *state;
	struct budget *budget = budget_new(1 << 20, 4 << 20);
	struct gpu_records_options options = {
		.kernel = kernel_named, .data = f, .budget = budget, .owner = 7
	};
	struct gpu_records *records = gpu_records_new(&options);
	size_t before = mallinfo2().uordblks;
	struct gpu_item item;

	for (uint32_t i = 1; i < 200000; i++) {
		union agent_words name = name_words(i, "a name that is not very long"),
				  shape = shape_words(i % 30000, 1, 1);

		gpu_records_take(records, &name.head, &item);
		gpu_records_take(records, &shape.head, &item);
	}
	assert_true(mallinfo2().uordblks - before < 2 << 20);
	assert_true(budget_used(budget) <= 1 << 20);
	assert_true(budget_refused(budget) > 100000);
	assert_non_null(gpu_records_name(records, 1));
	assert_null(gpu_records_name(records, 199999));
	gpu_records_free(records);
	assert_int_equal(budget_used(budget), 0);
	budget_free(budget);
}

/* ---- what makes no sense ------------------------------------------------------------------- */

static void test_a_text_without_its_end_is_cut(void **state)
{
	union agent_words words = name_words(1, "abcdefghijkl"), range;

	words.head.bytes = offsetof(struct agent_name, text) + 4;
	take(*state, words);
	assert_string_equal(gpu_records_name(((struct fixture *)*state)->records, 1), "abcd");
	range = nvtx_words(AGENT_NVTX_MARK, "abcdefghijkl", 1, 2);
	range.head.bytes = offsetof(struct agent_nvtx, text) + 4;
	assert_string_equal(taken_range(*state, range).name, "abcd");
}

static void test_too_short_a_record_is_left_out(void **state)
{
	for (int type = 0; type < 256; type++) {
		union agent_words words = words_of(type, sizeof(struct agent_head));

		assert_int_equal(take(*state, words), GPU_RECORD_BAD);
	}
}

static void test_numbers_that_were_not_given(void **state)
{
	union agent_words words = copy_words(1, 1, 1, 10, 20);

	assert_int_equal(take(*state, kernel_words(9, 1, 10, 20)), GPU_RECORD_BAD);
	assert_int_equal(take(*state, shape_words(UINT32_MAX, 1, 1)), GPU_RECORD_NOTHING);
	assert_int_equal(take(*state, kernel_words(UINT32_MAX, 1, 10, 20)), GPU_RECORD_BAD);
	take(*state, name_words(UINT32_MAX, "x"));
	assert_null(gpu_records_name(((struct fixture *)*state)->records, UINT32_MAX));
	words.head.lane = 60000;
	assert_int_equal(taken(*state, words).stream, 0);
	take(*state, shape_words(1, 12345, 1));
	assert_string_equal(taken(*state, kernel_words(1, 1, 10, 20)).kernel->name,
	                    "unknown_kernel");
}

static void test_impossible_times_are_told(void **state)
{
	assert_int_equal(take(*state, copy_words(1, 1, 1, 20, 10)), GPU_RECORD_BAD_TIMES);
	assert_int_equal(take(*state, copy_words(1, 1, 1, 0, 10)), GPU_RECORD_BAD_TIMES);
	assert_int_equal(take(*state, nvtx_words(AGENT_NVTX_MARK, "x", 20, 10)),
	                 GPU_RECORD_BAD_TIMES);
}

static void test_a_call_with_more_words_than_it_has_is_left_out(void **state)
{
	union agent_words words = call_words(1, 2, 10, 20);

	assert_int_equal(take(*state, words), GPU_RECORD_CALL);
	words.call.arguments = 1;
	assert_int_equal(take(*state, words), GPU_RECORD_BAD);
	words.head.bytes += 16;
	assert_int_equal(take(*state, words), GPU_RECORD_CALL);
	words.call.blob = UINT32_MAX;
	assert_int_equal(take(*state, words), GPU_RECORD_BAD);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_kernel_has_its_name_shape_and_place),
		TEST(test_a_long_kernel_of_a_graph),
		TEST(test_a_shape_number_may_be_given_anew),
		TEST(test_an_item_outlives_the_records),
		TEST(test_copies_have_bytes_direction_and_memories),
		TEST(test_a_set_has_no_direction),
		TEST(test_a_graph_run),
		TEST(test_waits_and_overhead_are_ranges_by_name),
		TEST(test_ranges_of_nvtx_have_name_domain_and_depth),
		TEST(test_a_text_without_its_end_is_cut),
		TEST(test_too_short_a_record_is_left_out),
		TEST(test_numbers_that_were_not_given),
		TEST(test_impossible_times_are_told),
		TEST(test_a_call_with_more_words_than_it_has_is_left_out),
		TEST(test_long_texts_of_nvtx_are_cut),
		TEST(test_names_and_shapes_are_taken_from_the_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
