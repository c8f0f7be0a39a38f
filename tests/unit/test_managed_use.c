// SPDX-License-Identifier: MIT
/* Which managed allocations faults and migrations hit. */
#include "support.h"

#include <time.h>

#include "analysis/managed_use.h"

#define KIB 1024ull
#define A   0x7f0000000000ull

#ifdef __SANITIZE_ADDRESS__
#define SECONDS_MOST 60
#else
#define SECONDS_MOST 3
#endif

static struct consumer *use;
static struct api *made;
static struct function sums;

static int set_up(void **state)
{
	static const struct api_text text = { .name = "sum of CPU fault (read)",
		                              .cls = CLASS_OTHER,
		                              .spec = "count:u64 bytes:size first:addr last:addr "
		                                      "time_ns:u64 sizes:string" };

	use = managed_use_new();
	sums = (struct function){ .id = 200,
		                  .name = text.name,
		                  .lib = "nvidia-uvm",
		                  .layer = LAYER_KERNEL,
		                  .api = api_from_text(&text, &made) };
	return 0;
}

static int tear_down(void **state)
{
	use->ops->free(use);
	api_free(made);
	return 0;
}

static void give(struct call call)
{
	struct event event = call_event(the_process(), 1, &call);

	event.type = call_event_type(&call);
	feed(use, &event);
}

/* Faults of the CPU at addresses of this process. */
static void faults(uint64_t first, uint64_t last, uint64_t n)
{
	struct call call = { .function = &sums, .begin_ns = US(1), .end_ns = US(2) };

	call.args.n_args = 6;
	call.args.arg[0] = n;
	call.args.arg[2] = first;
	call.args.arg[3] = last;
	give(call);
}

static void managed(double at_us, uint64_t address, uint64_t bytes)
{
	give(alloc_at("cudaMallocManaged", at_us, address, bytes));
}

/* Of the row at this address, and whether it is an allocation's; 0: there is no row. */
static uint64_t faults_at(uint64_t address, bool known)
{
	size_t n;
	const struct managed_allocation *all = managed_use_allocations(use, &n);

	for (size_t i = 0; i < n; i++)
		if (all[i].address == address && (all[i].function != NULL) == known)
			return all[i].cpu_faults;
	return 0;
}

static void test_a_fault_is_of_the_allocation_that_is_there(void **state)
{
	managed(0, A, 4 * KIB);
	managed(20, A + 64 * KIB, 64 * KIB);
	managed(40, A + 16 * KIB, 4 * KIB);
	faults(A - KIB, A + 200 * KIB, 16); /* of several the first */
	faults(A + KIB, A + KIB, 1);
	faults(A + 70 * KIB, A + 80 * KIB, 2);
	faults(A + 8 * KIB, A + 17 * KIB, 4); /* begins where nothing is */
	faults(A + 8 * KIB, A + 9 * KIB, 8);
	assert_int_equal(faults_at(A, true), 17);
	assert_int_equal(faults_at(A + 64 * KIB, true), 2);
	assert_int_equal(faults_at(A + 16 * KIB, true), 4);
	assert_int_equal(faults_at(0, false), 8);
}

static void test_a_live_allocation_is_meant_before_one_that_was_freed(void **state)
{
	managed(0, A, 8 * KIB);
	faults(A, A, 1);
	give(free_at("cudaFree", 20, A));
	faults(A + KIB, A + KIB, 2);
	managed(40, A + KIB, 4 * KIB);
	faults(A + KIB, A + KIB, 4);
	assert_int_equal(faults_at(A, true), 3);
	assert_int_equal(faults_at(A + KIB, true), 4);
}

/* One that was hit after its end keeps its place; others give theirs. */
static void test_places_are_of_those_that_are_live_or_were_hit(void **state)
{
	managed(0, A, KIB);
	give(free_at("cudaFree", 20, A));
	faults(A, A, 1);
	for (int i = 0; i < 3 * MANAGED_ALLOCATIONS; i++) {
		managed(40 + 40 * i, A + KIB, KIB);
		give(free_at("cudaFree", 60 + 40 * i, A + KIB));
	}
	managed(1e6, A + 2 * KIB, KIB);
	faults(A + 2 * KIB, A + 2 * KIB, 2);
	assert_int_equal(faults_at(A, true), 1);
	assert_int_equal(faults_at(A + 2 * KIB, true), 2);
	assert_int_equal(managed_use_dropped(use), 0);
}

#define MANY 600000

/* Each fault of nobody's memory went through all allocations, as did each end of one: 8 us. */
static void test_what_is_nowhere_is_not_looked_for_again_and_again(void **state)
{
	struct timespec begin, end;

	for (uint64_t i = 0; i < MANAGED_ALLOCATIONS; i++) {
		managed(0, A + i * KIB, KIB);
		faults(A + i * KIB, A + i * KIB, 1);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < MANY; i++)
		faults(1, 1, 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - begin.tv_sec < SECONDS_MOST);
	assert_int_equal(managed_use_dropped(use), MANY);
	faults(A, A, 1);
	assert_int_equal(faults_at(A, true), 2);
}

/* As of a process that had all its memory before it was recorded. */
static void test_what_is_nowhere_has_its_row_without_a_look(void **state)
{
	faults(1, 1, 1);
	for (uint64_t i = 0; i < MANAGED_ALLOCATIONS - 1; i++) {
		managed(0, A + i * KIB, KIB);
		faults(A + i * KIB, A + i * KIB, 1);
	}
	for (int i = 1; i < MANY; i++)
		faults(1, 1, 1);
	assert_int_equal(managed_use_dropped(use), 0);
	assert_int_equal(faults_at(0, false), MANY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_fault_is_of_the_allocation_that_is_there),
		TEST(test_a_live_allocation_is_meant_before_one_that_was_freed),
		TEST(test_places_are_of_those_that_are_live_or_were_hit),
		TEST(test_what_is_nowhere_is_not_looked_for_again_and_again),
		TEST(test_what_is_nowhere_has_its_row_without_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
