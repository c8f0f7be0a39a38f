// SPDX-License-Identifier: MIT
/* The order in which activities are passed on. */
#include "unit.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/quota.h"
#include "capture/gpu/gpu_order.h"

static int make(void **state)
{
	*state = gpu_order_new();
	return 0;
}

static int destroy(void **state)
{
	gpu_order_free(*state);
	return 0;
}

static void add(struct gpu_order *order, uint64_t end_ns, uint32_t number)
{
	const struct gpu_item item = {
		.kind = ACTIVITY_COPY, .begin_ns = end_ns, .end_ns = end_ns, .correlation = number
	};

	gpu_order_add(order, &item);
}

static void assert_next(struct gpu_order *order, uint32_t number, bool late)
{
	struct gpu_item item;

	assert_int_equal(gpu_order_take(order, &item), late);
	assert_int_equal(item.correlation, number);
}

static void test_they_come_in_order_of_their_ends(void **state)
{
	add(*state, 30, 3);
	add(*state, 10, 1);
	add(*state, 20, 2);
	assert_int_equal(gpu_order_first(*state)->correlation, 1);
	assert_next(*state, 1, false);
	assert_next(*state, 2, false);
	assert_next(*state, 3, false);
	assert_null(gpu_order_first(*state));
}

static void test_those_that_end_together_keep_their_order(void **state)
{
	for (uint32_t i = 0; i < 100; i++)
		add(*state, 10, i);
	for (uint32_t i = 0; i < 100; i++)
		assert_next(*state, i, false);
}

static void test_one_that_comes_too_late_is_told(void **state)
{
	add(*state, 20, 2);
	assert_next(*state, 2, false);
	add(*state, 10, 1);
	add(*state, 30, 3);
	assert_next(*state, 1, true);
	assert_next(*state, 3, false);
}

static void test_many_in_any_order(void **state)
{
	uint64_t seed = 1, last = 0;
	struct gpu_item item;

	for (int i = 0; i < 10000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		add(*state, seed >> 40, 0);
	}
	assert_int_equal(gpu_order_count(*state), 10000);
	for (int i = 0; i < 10000; i++) {
		assert_false(gpu_order_take(*state, &item));
		assert_true(item.end_ns >= last);
		last = item.end_ns;
	}
}

/* In each stream nearly in order, and taken while others come: as streams of a busy program are. */
static void test_many_of_many_streams(void **state)
{
	uint64_t seed = 1, last_ns = 0;
	uint32_t last_number = 0;
	struct gpu_item item = { .kind = ACTIVITY_COPY };
	int taken = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		item.stream = (uint32_t)(seed >> 33) % 300;
		item.end_ns = 1000000 + 10 * i + (seed >> 60 ? 0 : (seed >> 40) % 5000);
		item.correlation = i + 1;
		gpu_order_add(*state, &item);
	}
	while (gpu_order_count(*state)) {
		assert_false(gpu_order_take(*state, &item));
		assert_true(item.end_ns > last_ns ||
		            (item.end_ns == last_ns && item.correlation > last_number));
		last_ns = item.end_ns;
		last_number = item.correlation;
		if (++taken % 3 == 0 && taken < 20000) { /* slots are used again */
			item.end_ns += 777;
			item.correlation = 20000 + (uint32_t)taken;
			gpu_order_add(*state, &item);
		}
	}
	assert_true(taken > 26000);
}

static void count(void *data, struct gpu_item *item)
{
	uint32_t *sum = data;

	*sum = *sum * 10 + item->correlation;
}

static void test_each_is_looked_at_once_after_a_while(void **state)
{
	struct gpu_item item = { .kind = ACTIVITY_COPY, .arrived_ns = 10, .correlation = 1 };
	uint32_t seen = 0;

	gpu_order_add(*state, &item);
	item.correlation = 2;
	gpu_order_add(*state, &item);
	item.correlation = 3;
	item.arrived_ns = 20;
	gpu_order_add(*state, &item);
	assert_next(*state, 1, false);
	gpu_order_each_new(*state, 15, count, &seen);
	assert_int_equal(seen, 2);
	gpu_order_each_new(*state, 25, count, &seen);
	gpu_order_each_new(*state, 35, count, &seen);
	assert_int_equal(seen, 23);
}

static void test_the_last_of_a_process(void **state)
{
	const struct process mine = { 0 }, other = { .id = 1 };
	struct gpu_item item = { .kind = ACTIVITY_COPY, .process = &mine };

	for (uint64_t end = 10; end <= 30; end += 10) {
		item.begin_ns = item.end_ns = end;
		gpu_order_add(*state, &item);
	}
	item.process = &other;
	item.begin_ns = item.end_ns = 90;
	gpu_order_add(*state, &item);
	assert_int_equal(gpu_order_last_of(*state, &mine, UINT64_MAX), 30);
	assert_int_equal(gpu_order_last_of(*state, &mine, 25), 20);
	assert_int_equal(gpu_order_last_of(*state, NULL, UINT64_MAX), 0);
	gpu_order_move(*state, &mine, 25, &other);
	assert_int_equal(gpu_order_last_of(*state, &mine, UINT64_MAX), 20);
	assert_int_equal(gpu_order_last_of(*state, &other, 85), 30);
	gpu_order_orphan(*state, &mine, 15);
	assert_int_equal(gpu_order_last_of(*state, &mine, UINT64_MAX), 20);
	assert_int_equal(gpu_order_last_of(*state, NULL, UINT64_MAX), 10);
	for (int i = 0; i < 4; i++) {
		gpu_order_take(*state, &item);
		assert_ptr_equal(item.process, i == 0 ? NULL : i == 1 ? &mine : &other);
	}
	assert_int_equal(gpu_order_last_of(*state, &other, UINT64_MAX), 0);
}

/* A process can be another program a thousand times a second, and others' work fill the order. */
static void test_an_end_does_not_look_at_others_work(void **state)
{
	static struct process others[300];
	const struct process mine = { .id = 1000 };
	struct gpu_item item = { .kind = ACTIVITY_COPY, .begin_ns = 1 };
	uint64_t begin_ns;

	for (size_t i = 0; gpu_order_room(*state, QUOTA_ROOT, UINT64_MAX) == GPU_ORDER_ROOM; i++) {
		item.process = &others[i % ARRAY_SIZE(others)];
		item.end_ns = 10 + i;
		gpu_order_add(*state, &item);
	}
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(gpu_order_last_of(*state, &mine, UINT64_MAX), 0);
		gpu_order_orphan(*state, &mine, UINT64_MAX);
		gpu_order_move(*state, &mine, 0, &others[0]);
	}
	assert_true(clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < 1000000000);
}

/* An agent can tell of work that begins seconds later: programs that its process executes until
 * then have all of it, one after the other. What no program is left for is nobody's. */
static void test_a_process_that_becomes_others_hands_its_work_on_a_few_times(void **state)
{
	static struct process programs[2000];
	struct gpu_item item = { .kind = ACTIVITY_COPY, .process = programs };
	uint64_t begin_ns, before_ns;
	size_t n = 0;

	for (; gpu_order_room(*state, QUOTA_ROOT, UINT64_MAX) == GPU_ORDER_ROOM; n++) {
		item.begin_ns = item.end_ns = 1000000 + n;
		gpu_order_add(*state, &item);
	}
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(programs); i++) {
		before_ns = 1000 + i;
		assert_int_equal(gpu_order_last_of(*state, &programs[i], before_ns), 0);
		gpu_order_orphan(*state, &programs[i], before_ns);
		gpu_order_move(*state, &programs[i], before_ns, &programs[i + 1]);
		if (i + 1 == GPU_ORDER_LOOKS)
			assert_ptr_equal(gpu_order_first(*state)->process, &programs[i + 1]);
	}
	assert_true(clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < 2000000000);
	assert_int_equal(gpu_order_count(*state), n);
	assert_null(gpu_order_first(*state)->process);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

static void test_texts_fill_it_as_items_do(void **state)
{
	struct gpu_item item = { .is_range = true, .kind = RANGE_MARK };
	const uint32_t bytes = 300;
	uint32_t n = 0;

	while (gpu_order_room(*state, QUOTA_ROOT, UINT64_MAX) == GPU_ORDER_ROOM) {
		item.end_ns = 1000 + n++;
		item.range.name = calloc(1, bytes);
		item.range.domain = NULL;
		item.range.text_bytes = bytes;
		gpu_order_add(*state, &item);
	}
	assert_true(n <= GPU_ORDER_TEXTS_MAX / bytes + 1);
	gpu_order_take(*state, &item);
	gpu_item_free(&item);
	assert_int_equal(gpu_order_room(*state, QUOTA_ROOT, UINT64_MAX), GPU_ORDER_ROOM);
}

#define ANN 1001
#define EVE 1003

/* What one user tells ends seconds ahead: it fills two fifths, and nobody else's goes on for it. */
static void test_who_tells_of_any_number_pushes_nobody_on(void **state)
{
	struct gpu_item eve = { .kind = ACTIVITY_COPY, .person = EVE, .end_ns = 3000000000 };
	struct gpu_item ann = { .kind = ACTIVITY_COPY, .person = ANN, .end_ns = 1000 };
	const uint64_t now_ns = 10000;
	size_t n = 0;

	gpu_order_add(*state, &ann);
	for (; gpu_order_room(*state, EVE, now_ns) == GPU_ORDER_ROOM; n++)
		gpu_order_add(*state, &eve);
	assert_int_equal(n, GPU_ORDER_SHARE(GPU_ORDER_MAX));
	assert_int_equal(gpu_order_room(*state, EVE, now_ns), GPU_ORDER_REFUSED);
	for (n = 1; gpu_order_room(*state, ANN, now_ns) == GPU_ORDER_ROOM; n++)
		gpu_order_add(*state, &ann);
	assert_int_equal(n, GPU_ORDER_SHARE(GPU_ORDER_MAX));
	assert_int_equal(gpu_order_room(*state, ANN, now_ns), GPU_ORDER_FULL); /* his own first */
	assert_int_equal(gpu_order_room(*state, QUOTA_ROOT, now_ns), GPU_ORDER_ROOM);
	assert_next(*state, 0, false);
	assert_int_equal(gpu_order_room(*state, ANN, now_ns), GPU_ORDER_ROOM);
}

static void test_who_is_alone_has_all_of_it(void **state)
{
	struct gpu_item item = { .kind = ACTIVITY_COPY, .person = EVE, .end_ns = 3000000000 };
	size_t n = 0;

	for (; gpu_order_room(*state, EVE, 0) == GPU_ORDER_ROOM; n++)
		gpu_order_add(*state, &item);
	assert_int_equal(n, GPU_ORDER_MAX);
	assert_int_equal(gpu_order_room(*state, EVE, 0), GPU_ORDER_REFUSED); /* it has not ended */
	assert_int_equal(gpu_order_room(*state, EVE, 3000000000), GPU_ORDER_FULL);
	assert_int_equal(gpu_order_room(*state, ANN, 0), GPU_ORDER_FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_they_come_in_order_of_their_ends),
		TEST(test_those_that_end_together_keep_their_order),
		TEST(test_one_that_comes_too_late_is_told),
		TEST(test_many_in_any_order),
		TEST(test_many_of_many_streams),
		TEST(test_each_is_looked_at_once_after_a_while),
		TEST(test_the_last_of_a_process),
		TEST(test_an_end_does_not_look_at_others_work),
		TEST(test_a_process_that_becomes_others_hands_its_work_on_a_few_times),
		TEST(test_texts_fill_it_as_items_do),
		TEST(test_who_tells_of_any_number_pushes_nobody_on),
		TEST(test_who_is_alone_has_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
