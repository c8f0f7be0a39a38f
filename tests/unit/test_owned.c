// SPDX-License-Identifier: MIT
/* Entries by the process that they belong to; and tables whose owners end in a loop. */
#include "unit.h"

#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/owned.h"
#include "capture/gpu/correlate.h"
#include "capture/tids.h"

struct row {
	int number;
	struct owned owned;
};

static int sum_of(const struct owner *owners, uint32_t pid)
{
	int sum = 0;

	for (struct owned *owned = owned_first(owners, pid); owned; owned = owned_next(owned))
		sum += OWNED_ENTRY(owned, struct row)->number;
	return sum;
}

static void test_entries_are_found_by_their_owner(void **state)
{
	struct owner *owners = NULL;
	struct row rows[] = { { 1 }, { 2 }, { 4 }, { 8 } };

	owned_remove(&owners, &rows[3].owned); /* of nobody */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		owned_add(&owners, i % 2 ? 7 : 8, &rows[i].owned);
	assert_int_equal(sum_of(owners, 8), 5);
	assert_int_equal(sum_of(owners, 7), 10);
	assert_int_equal(sum_of(owners, 9), 0);
	owned_remove(&owners, &rows[0].owned);
	owned_remove(&owners, &rows[0].owned);
	assert_int_equal(sum_of(owners, 8), 4);
	owned_add(&owners, 7, &rows[0].owned);
	assert_int_equal(sum_of(owners, 7), 11);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		owned_remove(&owners, &rows[i].owned);
	assert_null(owners);
}

#define ENDS 50000

/* A process becomes another program, with a call in each, and others have filled the table. */
static void test_calls_of_others_are_not_looked_at(void **state)
{
	struct correlate *correlate = correlate_new();
	struct correlate_span span = { .pid = 1, .begin_ns = 10, .end_ns = 20 };
	uint64_t begin_ns;

	for (span.tid = 1; span.tid < 4000; span.tid++)
		correlate_call(correlate, &span, 1);
	span.pid = span.tid = 5000;
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ENDS; i++) {
		correlate_call(correlate, &span, 1);
		correlate_forget(correlate, span.pid, UINT64_MAX);
	}
	assert_true(clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < 500000000);
	correlate_free(correlate);
}

static void test_threads_of_others_are_not_looked_at(void **state)
{
	struct tids *tids = tids_new();
	uint32_t pid = (uint32_t)getpid();
	uint64_t begin_ns, forgetting_ns = 0;

	for (uint32_t i = 0; i < 16000; i++) /* there are none of such numbers */
		assert_int_equal(tids_host(tids, pid, 5000000 + i, 1), 5000000 + i);
	for (int i = 0; i < 2000; i++) {
		tids_host(tids, 4999999, 4999999, 1);
		begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
		tids_forget(tids, 4999999);
		forgetting_ns += clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	}
	assert_true(forgetting_ns < 20000000); /* 57 ms where all were gone through */
	assert_int_equal(tids_host(tids, pid, 5000001, 2), 5000001);
	tids_free(tids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_are_found_by_their_owner),
		cmocka_unit_test(test_calls_of_others_are_not_looked_at),
		cmocka_unit_test(test_threads_of_others_are_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
