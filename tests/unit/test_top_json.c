// SPDX-License-Identifier: MIT
/* The JSON of `cuscope top` in a bound: what is left out of it, and that it is told. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "top/top.h"

#define MANY       3000
#define MOST_BYTES (250u << 10)
#define ROWS       400

static struct top_process processes[MANY];
static struct top_item items[64][TOP_KINDS][ROWS];
static struct top_snapshot snapshot;
static const struct top_page page = { .snapshot = &snapshot, .target = "all", .hooks = true };
static struct buf text;

static void set_count(struct top_count *count, double rate)
{
	*count = (struct top_count){ .total = (uint64_t)rate, .rate = rate };
}

/* The one with number i makes i calls a second, and its name is anybody's. */
static void add_processes(size_t n)
{
	static struct process made[MANY];

	memset(&snapshot, 0, sizeof(snapshot));
	snapshot = (struct top_snapshot){ .processes = processes, .n_processes = n };
	for (size_t i = 0; i < n; i++) {
		made[i] = (struct process){ .id = (uint32_t)i, .pid = 1000 + (uint32_t)i };
		memcpy(made[i].comm, "\001\002\003\004\005\006\"\\<>", 11);
		processes[i] =
			(struct top_process){ .process = &made[i], .threads = 1, .gpu_share = -1 };
		set_count(&processes[i].numbers[TOP_COUNT_CALLS], (double)i);
		snapshot.total.numbers[TOP_COUNT_CALLS].rate += (double)i;
	}
}

/* Item number i took i us. */
static void add_items(struct top_process *process, struct top_item of[TOP_KINDS][ROWS],
                      const struct kernel *kernel)
{
	for (size_t kind = 0; kind < TOP_KINDS; kind++) {
		for (size_t i = 0; i < ROWS; i++) {
			of[kind][i] = (struct top_item){ .name = "cuLaunchKernel",
				                         .kernel = kernel,
				                         .time_ns = 1000 * i };
			of[kind][i].calls.total = i;
		}
		process->items[kind] = (struct top_items){ of[kind], ROWS };
	}
}

static const char *render(size_t most_bytes)
{
	struct run_info run = { .estimate_scale = 1 };

	buf_reset(&text);
	top_json(&page, &run, most_bytes, &text);
	return text.data;
}

static size_t times(const char *part)
{
	size_t n = 0;

	for (const char *at = text.data; (at = strstr(at, part)); at++)
		n++;
	return n;
}

static uint64_t left_out(const char *what)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s_left_out\": ", what);
	at = strstr(text.data, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void test_of_many_processes_those_with_most_calls_are_there(void **state)
{
	add_processes(MANY);
	render(MOST_BYTES);
	assert_in_range(text.len, MOST_BYTES / 2, MOST_BYTES);
	assert_in_range(times("\"pid\": "), 200, MANY - 1);
	assert_int_equal(times("\"pid\": ") + left_out("processes"), MANY);
	assert_non_null(strstr(text.data, "\"pid\": 3999"));
	assert_null(strstr(text.data, "\"pid\": 1000,"));
	assert_non_null(strstr(text.data, "\"total\": {"));
}

static void test_those_that_use_gpus_or_hold_memory_are_there_as_well(void **state)
{
	add_processes(MANY);
	processes[0].gpu_share = 0.9;
	processes[1].memory[MEMORY_NONE].bytes = snapshot.total.memory[MEMORY_NONE].bytes = 1 << 30;
	render(MOST_BYTES);
	assert_non_null(strstr(text.data, "\"pid\": 1000,"));
	assert_non_null(strstr(text.data, "\"pid\": 1001,"));
	assert_null(strstr(text.data, "\"pid\": 1002,"));
}

static void test_rows_of_a_process_are_those_with_most_time(void **state)
{
	add_processes(1);
	add_items(&processes[0], items[0], new_kernel("tick()", true));
	render(MOST_BYTES);
	assert_int_equal(left_out("functions"), ROWS - 64);
	assert_int_equal(left_out("streams"), ROWS - 64);
	assert_int_equal(left_out("hooks"), ROWS - 64);
	assert_non_null(strstr(text.data, "\"time_ns\": 399000"));
	assert_null(strstr(text.data, "\"time_ns\": 335000"));
}

static void test_names_of_any_length_have_no_more_room(void **state)
{
	const struct kernel *kernels[2];
	char *name = malloc(100001);

	memset(name, '\001', 100000);
	name[100000] = '\0';
	kernels[0] = new_kernel(name, true);
	kernels[1] = new_kernel("short", true);
	add_processes(64);
	for (size_t i = 0; i < 64; i++)
		add_items(&processes[i], items[i], kernels[i % 2]);
	render(MOST_BYTES);
	assert_in_range(text.len, 1, MOST_BYTES);
	assert_int_equal(times("\"pid\": "), 64);
	assert_int_equal(left_out("processes"), 0);
	assert_non_null(strstr(text.data, "\"name\": \"short\""));
	free(name);
}

static void test_without_a_bound_all_is_there(void **state)
{
	add_processes(MANY);
	render(0);
	assert_int_equal(times("\"pid\": "), MANY);
	assert_int_equal(times("_left_out\""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_many_processes_those_with_most_calls_are_there),
		cmocka_unit_test(test_those_that_use_gpus_or_hold_memory_are_there_as_well),
		cmocka_unit_test(test_rows_of_a_process_are_those_with_most_time),
		cmocka_unit_test(test_names_of_any_length_have_no_more_room),
		cmocka_unit_test(test_without_a_bound_all_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
