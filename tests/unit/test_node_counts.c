// SPDX-License-Identifier: MIT
/*
 * What processes did, over pages in which they come, go, end and change places: totals only grow,
 * and each call is in exactly one series.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "node/counts.h"

#define SECOND    1000000000ull
#define PROCESSES 64
#define SERIES    8192

static struct process processes[PROCESSES];
static struct kernel kernel = { .id = 1 };
static struct watch_kernel rows[PROCESSES + 1];
static const struct process merged = { .id = 1u << 20, .comm = "[ended]" };

/* A page on which each row is what a process launched by then. */
static void take(struct counts *counts, const struct counts_options *options, uint64_t second,
                 size_t n)
{
	const struct watch_launches launches = { rows, n };
	struct watch_page page = { .number = second,
		                   .time_ns = second * SECOND,
		                   .before_ns = (second - 1) * SECOND,
		                   .launches = &launches };

	counts_take(counts, options, &page);
}

static void row(size_t i, uint32_t id, uint32_t pid, uint64_t launches, bool ended)
{
	processes[i] = (struct process){ .id = id, .pid = pid, .comm = "train" };
	rows[i] = (struct watch_kernel){
		.process = &processes[i], .kernel = &kernel, .count = launches, .ended = ended
	};
}

static const struct counted_process *series_of(const struct counts *counts, uint32_t pid)
{
	const struct counted_process *const *shown;
	size_t n = counts_shown(counts, &shown);

	for (size_t i = 0; i < n; i++) {
		if (shown[i]->process->pid == pid)
			return shown[i];
	}
	return NULL;
}

static uint64_t launches_of(const struct counts *counts, uint32_t pid)
{
	const struct counted_process *series = series_of(counts, pid);

	return series ? series->counts[COUNT_LAUNCHES] : 0;
}

static uint64_t other(const struct counts *counts)
{
	return counts_other(counts)->counts[COUNT_LAUNCHES];
}

static uint64_t total(const struct counts *counts)
{
	return counts_totals(counts)[COUNT_LAUNCHES];
}

static void test_a_process_waits_and_then_has_all_that_it_did(void **state)
{
	const struct counts_options options = { .top = 2, .age_ns = 3 * SECOND };
	struct counts *counts = counts_new(0);

	for (uint64_t s = 1; s <= 2; s++) {
		row(0, 0, 7, 10 * s, false);
		take(counts, &options, s, 1);
		assert_null(series_of(counts, 7));
		assert_int_equal(0, other(counts));
		assert_int_equal(10 * s, total(counts));
	}
	row(0, 0, 7, 30, false);
	take(counts, &options, 3, 1);
	assert_int_equal(30, launches_of(counts, 7));
	assert_int_equal(0, series_of(counts, 7)->since_ns);
	counts_free(counts);
}

static void test_who_ends_young_is_one_of_the_others(void **state)
{
	const struct counts_options options = { .top = 2, .age_ns = 3 * SECOND };
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 10, false);
	take(counts, &options, 1, 1);
	row(0, 0, 7, 12, true);
	take(counts, &options, 2, 1);
	assert_null(series_of(counts, 7));
	assert_int_equal(12, other(counts));
	take(counts, &options, 3, 1);
	assert_int_equal(12, other(counts));
	counts_free(counts);
}

static void test_who_is_displaced_moves_nothing(void **state)
{
	const struct counts_options options = { .top = 1, .age_ns = 0 };
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 100, false);
	row(1, 1, 8, 1, false);
	take(counts, &options, 1, 2);
	assert_int_equal(100, launches_of(counts, 7));
	assert_int_equal(1, other(counts));
	row(0, 0, 7, 101, false);
	row(1, 1, 8, 5001, false);
	take(counts, &options, 2, 2);
	assert_null(series_of(counts, 7));
	assert_int_equal(2, other(counts)); /* the last of 7; its 100 are in no series any more */
	assert_int_equal(5000, launches_of(counts, 8)); /* the first of 8 is in `other` already */
	assert_int_equal(SECOND * 2, series_of(counts, 8)->since_ns);
	assert_int_equal(5102, total(counts));
	counts_free(counts);
}

static void test_an_ended_process_keeps_its_series_for_a_while(void **state)
{
	const struct counts_options options = { .top = 1, .age_ns = 0 };
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 100, false);
	take(counts, &options, 1, 1);
	row(0, 0, 7, 105, true);
	take(counts, &options, 2, 1);
	assert_int_equal(105, launches_of(counts, 7));
	assert_true(series_of(counts, 7)->ended);
	take(counts, &options, 61, 1);
	assert_non_null(series_of(counts, 7));
	take(counts, &options, 63, 1);
	assert_null(series_of(counts, 7));
	assert_int_equal(0, other(counts));
	assert_int_equal(105, total(counts));
	counts_free(counts);
}

/* The watch makes those one that ended longest ago, where many end: a series has its time. */
static void test_an_ended_process_keeps_its_series_though_it_is_merged(void **state)
{
	const struct counts_options options = { .top = 2, .age_ns = 0 };
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 100, false);
	take(counts, &options, 1, 1);
	row(0, 0, 7, 105, true);
	take(counts, &options, 2, 1);
	processes[0] = (struct process){ .id = 5, .pid = 5 }; /* given back */
	rows[0] = (struct watch_kernel){
		.process = &merged, .kernel = &kernel, .count = 1105, .ended = true
	};
	for (uint64_t s = 3; s <= 61; s += 29) {
		take(counts, &options, s, 1);
		assert_int_equal(105, launches_of(counts, 7));
		assert_string_equal("train", series_of(counts, 7)->process->comm);
		assert_true(series_of(counts, 7)->ended);
		assert_int_equal(0, other(counts));
		assert_int_equal(1105, total(counts));
		assert_int_equal(0, counts_running(counts));
	}
	take(counts, &options, 63, 1);
	assert_null(series_of(counts, 7));
	assert_int_equal(0, other(counts));
	assert_int_equal(1105, total(counts));
	counts_free(counts);
}

/* The same number and the same name: two series of one name would be a mistake. */
static void test_an_exec_and_a_reused_pid_are_one_series_at_a_time(void **state)
{
	const struct counts_options options = { .top = 5, .age_ns = 0 };
	const struct counted_process *const *shown;
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 100, false);
	take(counts, &options, 1, 1);
	row(0, 0, 7, 100, true);
	row(1, 1, 7, 3, false);
	take(counts, &options, 2, 2);
	assert_int_equal(1, counts_shown(counts, &shown));
	assert_int_equal(3, launches_of(counts, 7));
	assert_int_equal(103, total(counts));
	counts_free(counts);
}

static void test_what_is_merged_stays_in_the_total(void **state)
{
	const struct counts_options options = { .top = 5, .age_ns = 0 };
	struct counts *counts = counts_new(0);

	row(0, 0, 7, 100, true);
	row(1, 1, 8, 50, false);
	take(counts, &options, 1, 2);
	row(0, 1, 8, 60, false);
	rows[1] = (struct watch_kernel){
		.process = &merged, .kernel = &kernel, .count = 100, .ended = true
	};
	take(counts, &options, 2, 2);
	assert_int_equal(160, total(counts));
	assert_int_equal(1, counts_running(counts));
	assert_int_equal(100, other(counts));
	assert_int_equal(60, launches_of(counts, 8));
	counts_free(counts);
}

/* Of process 7, and of those that are not told apart any more. */
static void fill_results(struct watch_result results[6])
{
	const struct function *wait = the_function("cuStreamSynchronize");
	const struct function *alloc = the_function("cuMemAlloc_v2");
	const struct process *of = &processes[0];

	results[0] = (struct watch_result){ .process = of, .function = wait, .count = 3, .ns = 30 };
	results[1] = (struct watch_result){
		.process = of, .function = wait, .result = 719, .count = 1, .ns = 5
	};
	results[2] =
		(struct watch_result){ .process = of, .function = alloc, .result = 2, .count = 10 };
	results[3] = (struct watch_result){ /* not ready: no error */
		                            .process = of,
		                            .function = alloc,
		                            .result = 600,
		                            .count = 100
	};
	results[4] = (struct watch_result){ /* shut down: none either */
		                            .process = of,
		                            .function = alloc,
		                            .result = 4,
		                            .count = 1000
	};
	results[5] = (struct watch_result){
		.process = &merged, .ended = true, .result = 65536, .count = 10000
	};
}

static void take_all_kinds(struct counts *counts)
{
	const struct counts_options options = { .top = 5 };
	const struct process *of = &processes[0];
	struct watch_kernel kernels[] = {
		{ .process = of, .kernel = &kernel, .count = 4, .ns = 40 },
		{ .process = of, .count = 2, .ns = 7 }, /* a graph */
	};
	struct watch_copies_row copies[] = {
		{ .process = of, .direction = DIRECTION_D2H, .calls = 5, .bytes = 50, .ns = 500 },
		{ .process = of, .set = true, .calls = 6, .bytes = 60, .ns = 600 },
	};
	struct watch_memory_totals totals[] = {
		{ .process = of,
		  .kind = MEMORY_DEVICE,
		  .allocated = { 8, 80 },
		  .freed = { 7, 70 },
		  .live = { 1, 10 } },
		{ .process = &merged, .ended = true, .kind = MEMORY_HOST, .allocated = { 9, 90 } },
	};
	struct watch_process_memory memories[] = { { .process = of, .peak_bytes = 33 } };
	struct watch_result results[6];
	struct watch_page page = {
		.time_ns = 2 * SECOND,
		.before_ns = SECOND,
		.launches = &(struct watch_launches){ kernels, 2 },
		.copies = &(struct watch_copies){ copies, 2 },
		.memory = &(struct watch_memory){ .totals = totals,
		                                  .n_totals = 2,
		                                  .processes = memories,
		                                  .n_processes = 1 },
		.results = &(struct watch_results){ results, 6 },
	};

	fill_results(results);
	counts_take(counts, &options, &page);
}

static void test_each_kind_of_row_is_counted_as_what_it_is(void **state)
{
	struct counts *counts = counts_new(0);
	const uint64_t *totals = counts_totals(counts);
	const struct counted_process *series;

	row(0, 0, 7, 0, false);
	take_all_kinds(counts);
	series = series_of(counts, 7);
	assert_int_equal(series->counts[COUNT_LAUNCHES], 4);
	assert_int_equal(series->counts[COUNT_GRAPH_LAUNCHES], 2);
	assert_int_equal(series->counts[COUNT_LAUNCH_NS], 47);
	assert_int_equal(series->counts[COUNT_COPIES + DIRECTION_D2H], 5);
	assert_int_equal(series->counts[COUNT_COPY_BYTES + DIRECTION_D2H], 50);
	assert_int_equal(series->counts[COUNT_COPY_NS + DIRECTION_D2H], 500);
	assert_int_equal(series->counts[COUNT_SETS], 6);
	assert_int_equal(series->counts[COUNT_SET_BYTES], 60);
	assert_int_equal(series->counts[COUNT_ALLOCATIONS + MEMORY_DEVICE], 8);
	assert_int_equal(series->counts[COUNT_ALLOCATED_BYTES + MEMORY_DEVICE], 80);
	assert_int_equal(series->counts[COUNT_FREES + MEMORY_DEVICE], 7);
	assert_int_equal(series->counts[COUNT_SYNCS], 4);
	assert_int_equal(series->counts[COUNT_SYNC_NS], 35);
	assert_int_equal(series->counts[COUNT_ERRORS], 11);
	assert_int_equal(series->memory.live[MEMORY_DEVICE], 10);
	assert_int_equal(series->memory.peak, 33);
	assert_int_equal(counts_memory(counts)->live[MEMORY_DEVICE], 10);
	assert_int_equal(counts_peaks(counts)[MEMORY_DEVICE], 10);
	assert_int_equal(totals[COUNT_ERRORS], 10011);
	assert_int_equal(totals[COUNT_ALLOCATIONS + MEMORY_HOST], 9);
	assert_int_equal(counts_running(counts), 1);
	counts_free(counts);
}

/* Sizes are what a process says: what others do has to be seen after a sum ran over. */
static void test_sizes_that_are_made_up_hide_nothing_for_long(void **state)
{
	const struct counts_options options = { .top = 5, .age_ns = 0 };
	struct counts *counts = counts_new(0);
	struct watch_copies_row copies[] = { { .process = &processes[0], .calls = 1 },
		                             { .process = &processes[1], .calls = 1 } };
	const struct watch_copies all = { .rows = copies, .n_rows = 2 };
	struct watch_page page = { .copies = &all };
	uint64_t before = 0;

	row(0, 0, 7, 0, false);
	row(1, 1, 8, 0, false);
	for (uint64_t s = 1; s <= 10; s++) {
		const uint64_t *totals = counts_totals(counts);

		page.number = s;
		page.before_ns = page.time_ns;
		page.time_ns = s * SECOND;
		copies[0].bytes = s < 3 ? 1ull << 63 : 1;
		copies[1].bytes = 1000 * s;
		before = totals[COUNT_COPY_BYTES];
		counts_take(counts, &options, &page);
		if (s > 3)
			assert_int_equal(1000, totals[COUNT_COPY_BYTES] - before);
	}
	copies[1].bytes -= 10; /* mended */
	before = counts_totals(counts)[COUNT_COPY_BYTES];
	counts_take(counts, &options, &page);
	assert_int_equal(before, counts_totals(counts)[COUNT_COPY_BYTES]);
	counts_free(counts);
}

/* What rate() would make of it: what each series grew by, and where it begins anew its value. */
static uint64_t grown(const struct counts *counts, uint64_t before[SERIES], uint64_t begun[SERIES])
{
	const struct counted_process *const *shown;
	size_t n = counts_shown(counts, &shown);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t pid = shown[i]->process->pid;
		uint64_t now = shown[i]->counts[COUNT_LAUNCHES];

		if (begun[pid] != shown[i]->since_ns + 1)
			before[pid] = 0;
		assert_true(now >= before[pid]);
		sum += now - before[pid];
		before[pid] = now;
		begun[pid] = shown[i]->since_ns + 1;
	}
	assert_true(other(counts) >= before[0]);
	sum += other(counts) - before[0];
	before[0] = other(counts);
	return sum;
}

struct crowd {
	uint64_t done[PROCESSES], gone; /* gone: of those that were replaced */
	bool ended[PROCESSES];
	uint32_t ids[PROCESSES], next;
};

/* One second of it. */
static void step(struct crowd *crowd, bool last)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (crowd->ended[i] && random() % 8 == 0 && !last) {
			crowd->gone += crowd->done[i];
			crowd->ids[i] = crowd->next++;
			crowd->done[i] = 0;
			crowd->ended[i] = false;
		}
		if (!crowd->ended[i])
			crowd->done[i] += (uint64_t)random() % (1u << random() % 14);
		crowd->ended[i] |= last || random() % 40 == 0;
		row(i, crowd->ids[i], 1 + crowd->ids[i], crowd->done[i], crowd->ended[i]);
	}
	rows[PROCESSES] = (struct watch_kernel){
		.process = &merged, .kernel = &kernel, .count = crowd->gone, .ended = true
	};
}

static void test_every_call_is_in_one_series_whatever_happens(void **state)
{
	const struct counts_options options = { .top = 6, .age_ns = 2 * SECOND };
	static uint64_t before[SERIES], begun[SERIES];
	static struct crowd crowd = { .next = PROCESSES };
	struct counts *counts = counts_new(0);
	uint64_t told = 0, calls = 0;

	srandom(4);
	for (uint32_t i = 0; i < PROCESSES; i++)
		crowd.ids[i] = i;
	for (uint64_t s = 1; s <= 600; s++) {
		uint64_t now = 0;

		step(&crowd, s > 590);
		for (size_t i = 0; i < PROCESSES; i++)
			now += crowd.done[i];
		take(counts, &options, s, PROCESSES + 1);
		told += grown(counts, before, begun);
		calls = now + crowd.gone;
		assert_int_equal(calls, total(counts));
		assert_true(told <= calls);
		assert_true(crowd.next < SERIES - 2);
	}
	assert_int_equal(calls, told);
	counts_free(counts);
}

/* 8 is another user's than all the rest. */
static uint64_t person_by_number(pid_t pid)
{
	return pid == 8 ? 1008 : 1007;
}

static void test_one_user_leaves_room_for_others(void **state)
{
	const struct counts_options options = { .top = 5, .person = person_by_number };
	struct counts *counts = counts_new(0);

	for (uint64_t s = 1; s <= 3; s++) {
		row(0, 0, 8, s, false);
		for (uint32_t i = 1; i < PROCESSES; i++)
			row(i, i, 100 + i, 1000 * s, false);
		take(counts, &options, s, PROCESSES);
		assert_int_equal(s, launches_of(counts, 8));
		assert_int_equal(1, counts_over_share(counts));
	}
	assert_int_equal(1008, counts_person(counts, &processes[0]));
	assert_int_equal(4,
	                 counts_shown(counts, &(const struct counted_process *const *){ 0 }) - 1);
	row(0, 0, 8, 4, true);
	take(counts, &options, 4, PROCESSES);
	assert_int_equal(4, launches_of(counts, 8)); /* his last figures are to be read */
	take(counts, &options, 65, PROCESSES);
	assert_null(series_of(counts, 8));
	assert_int_equal(0, counts_over_share(counts));
	counts_free(counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_waits_and_then_has_all_that_it_did),
		cmocka_unit_test(test_who_ends_young_is_one_of_the_others),
		cmocka_unit_test(test_who_is_displaced_moves_nothing),
		cmocka_unit_test(test_an_ended_process_keeps_its_series_for_a_while),
		cmocka_unit_test(test_an_ended_process_keeps_its_series_though_it_is_merged),
		cmocka_unit_test(test_an_exec_and_a_reused_pid_are_one_series_at_a_time),
		cmocka_unit_test(test_what_is_merged_stays_in_the_total),
		cmocka_unit_test(test_each_kind_of_row_is_counted_as_what_it_is),
		cmocka_unit_test(test_sizes_that_are_made_up_hide_nothing_for_long),
		cmocka_unit_test(test_one_user_leaves_room_for_others),
		cmocka_unit_test(test_every_call_is_in_one_series_whatever_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
