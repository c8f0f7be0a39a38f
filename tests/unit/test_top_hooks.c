// SPDX-License-Identifier: MIT
/* What `cuscope top` counts of functions that users hook. */
#include "support.h"

#include <math.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "table/table.h"
#include "top/top_counts.h"

#define SECOND 1000000.0 /* in the microseconds of support.h */

static struct run run;
static struct top_counts *counts;
static struct top_snapshot snapshot;
static struct api *sized;

static int set_up(void **state)
{
	open_run(&run);
	counts = top_counts_new();
	begin_run(&run, top_counts_consumer(counts));
	if (!sized)
		api_from_text(
			&(struct api_text){ .name = "f", .spec = "count:u64 bytes:size more:size" },
			&sized);
	return 0;
}

/* Functions with names of their own, which are freed at the end of all, as those of a capture. */
static struct function **made;
static size_t n_made;

static void free_functions(void)
{
	while (n_made) {
		free((char *)made[--n_made]->name);
		free(made[n_made]);
	}
	free(made);
	made = NULL;
}

static int tear_down(void **state)
{
	top_snapshot_free(&snapshot);
	end_run(&run);
	close_run(&run);
	free_functions();
	return 0;
}

static const struct function *hooked(const char *name, const struct api *api)
{
	struct function *function = xcalloc(1, sizeof(*function));

	made = xrealloc(made, (n_made + 1) * sizeof(*made));
	made[n_made++] = function;
	*function = (struct function){ .name = xstrdup(name),
		                       .lib = "libx.so",
		                       .layer = LAYER_HOOK,
		                       .cls = CLASS_OTHER,
		                       .api = api };
	return function;
}

static struct call hit(const struct function *function, double begin_us, double us)
{
	return (struct call){ .function = function,
		              .begin_ns = US(begin_us),
		              .end_ns = US(begin_us + us) };
}

static void push_hit(const struct process *process, struct call call)
{
	push(&run, &(struct event){ .type = call_event_type(&call),
	                            .time_ns = call.end_ns ? call.end_ns : call.begin_ns,
	                            .process = process,
	                            .tid = process->pid,
	                            .call = &call });
}

static const struct top_process *look_at(double us)
{
	top_counts_tick(counts, US(us));
	top_snapshot_free(&snapshot);
	top_counts_snapshot(counts, false, &snapshot);
	return snapshot.n_processes ? &snapshot.processes[0] : NULL;
}

static void test_hooks_have_calls_rates_and_times_and_are_no_calls(void **state)
{
	const struct function *f = hooked("nccl.f", NULL);
	const struct top_process *process;

	push_hit(the_process(), hit(f, 10, 5));
	push_hit(the_process(), hit(f, 20, 15));
	process = look_at(2 * SECOND);
	assert_int_equal(process->items[TOP_KIND_HOOK].n, 1);
	assert_string_equal(process->items[TOP_KIND_HOOK].all[0].name, "nccl.f");
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].calls.total, 2);
	assert_float_equal(process->items[TOP_KIND_HOOK].all[0].calls.rate, 1, 1e-6);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].time_ns, 20000);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].mean_ns, 10000);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].max_ns, 15000);
	assert_true(process->items[TOP_KIND_HOOK].all[0].bytes.total == TABLE_NOT_KNOWN);
	assert_true(isnan(process->items[TOP_KIND_HOOK].all[0].bytes.rate));
	assert_int_equal(process->numbers[TOP_COUNT_CALLS].total, 0);
	assert_int_equal(process->threads, 0);
	assert_float_equal(look_at(3 * SECOND)->items[TOP_KIND_HOOK].all[0].calls.rate, 0, 1e-6);
}

static void test_the_first_argument_that_is_a_size_is_added_up(void **state)
{
	const struct function *f = hooked("f", sized);
	const struct top_process *process;
	struct call call = hit(f, 10, 5);

	call.args = (struct api_call){ .n_args = 3, .arg = { 7, 4096, 1 } };
	push_hit(the_process(), call);
	push_hit(the_process(), call);
	process = look_at(2 * SECOND);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].bytes.total, 8192);
	assert_float_equal(process->items[TOP_KIND_HOOK].all[0].bytes.rate, 4096, 1e-6);
	call.args.arg[1] = UINT64_MAX; /* as a program may say: the sum stays */
	push_hit(the_process(), call);
	push_hit(the_process(), call);
	assert_true(look_at(3 * SECOND)->items[TOP_KIND_HOOK].all[0].bytes.total == UINT64_MAX - 1);
}

static void test_calls_without_an_end_have_no_time(void **state)
{
	struct call call = hit(hooked("f", NULL), 10, 5);
	const struct top_process *process;

	call.end_ns = 0;
	call.flags = CALL_UNFINISHED;
	push_hit(the_process(), call);
	process = look_at(SECOND);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[0].calls.total, 1);
	assert_true(process->items[TOP_KIND_HOOK].all[0].mean_ns == TABLE_NOT_KNOWN);
}

static void test_two_files_with_one_name_are_one_row(void **state)
{
	push_hit(the_process(), hit(hooked("f", NULL), 10, 5));
	push_hit(the_process(), hit(hooked("f", NULL), 20, 5));
	assert_int_equal(look_at(SECOND)->items[TOP_KIND_HOOK].n, 1);
	assert_int_equal(snapshot.processes[0].items[TOP_KIND_HOOK].all[0].calls.total, 2);
}

static void test_calls_to_the_driver_are_no_hooks(void **state)
{
	struct function driver = { .name = "RM_ALLOC", .lib = "nvidia", .layer = LAYER_KERNEL };

	push_hit(the_process(), hit(&driver, 10, 5));
	assert_null(look_at(SECOND));
}

static void test_hooks_beyond_the_limit_are_one_row(void **state)
{
	const struct top_process *process;
	char name[32];

	for (int i = 0; i < TOP_HOOKS_MAX + 50; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		push_hit(the_process(), hit(hooked(name, i % 2 ? sized : NULL), i, 1));
	}
	process = look_at(SECOND);
	assert_int_equal(process->items[TOP_KIND_HOOK].n, TOP_HOOKS_MAX + 1);
	assert_string_equal(process->items[TOP_KIND_HOOK].all[TOP_HOOKS_MAX].name, "(others)");
	assert_int_equal(process->items[TOP_KIND_HOOK].all[TOP_HOOKS_MAX].calls.total, 50);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[TOP_HOOKS_MAX].time_ns, 50000);
	assert_int_equal(process->items[TOP_KIND_HOOK].all[TOP_HOOKS_MAX].bytes.total, 0);
}

/* As many processes as come to the limit, and two more, from the number `first` on. */
#define MANY (TOP_HOOKS_ALL / TOP_HOOKS_MAX + 2)

static struct process many[MANY + 1];
static const struct function *functions[TOP_HOOKS_MAX];

static void make_functions(void)
{
	char name[32];

	for (int i = 0; i < TOP_HOOKS_MAX; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		functions[i] = hooked(name, NULL);
	}
}

static void hit_all(uint32_t p, double us)
{
	many[p] = (struct process){ .id = 1000 + p, .pid = 5000 + p };
	for (int i = 0; i < TOP_HOOKS_MAX; i++)
		push_hit(&many[p], hit(functions[i], us + i, 1));
}

/* Rows by name, and calls that are in none. */
static void count_rows(const struct top_process *process, size_t *rows, size_t *others)
{
	for (size_t i = 0; i < process->items[TOP_KIND_HOOK].n; i++) {
		const struct top_item *hook = &process->items[TOP_KIND_HOOK].all[i];

		*rows += !hook->others;
		*others += hook->others ? hook->calls.total : 0;
	}
}

static void test_all_processes_together_have_a_limit(void **state)
{
	size_t rows = 0, others = 0;

	make_functions();
	for (uint32_t p = 0; p < MANY; p++)
		hit_all(p, 0);
	look_at(SECOND);
	for (size_t p = 0; p < snapshot.n_processes; p++)
		count_rows(&snapshot.processes[p], &rows, &others);
	assert_int_equal(rows, TOP_HOOKS_ALL);
	assert_int_equal(others, 2 * TOP_HOOKS_MAX);
}

static void test_rows_of_processes_that_are_gone_are_of_the_limit(void **state)
{
	size_t rows = 0, others = 0;

	make_functions();
	hit_all(MANY, 0);
	push_exit(&run, &many[MANY], 2000);
	look_at(SECOND);
	look_at(7 * SECOND);
	count_rows(&snapshot.gone, &rows, &others);
	assert_int_equal(rows, TOP_HOOKS_MAX);
	for (uint32_t p = 0; p < MANY; p++)
		hit_all(p, 8 * SECOND);
	look_at(9 * SECOND);
	for (size_t p = 0; p < snapshot.n_processes; p++)
		count_rows(&snapshot.processes[p], &rows, &others);
	assert_int_equal(rows, TOP_HOOKS_ALL);
	assert_int_equal(others, 3 * TOP_HOOKS_MAX);
}

static void test_hooks_of_processes_that_are_gone_stay(void **state)
{
	const struct function *f = hooked("f", NULL);
	const struct process *other = new_process(600, "other");

	push_hit(the_process(), hit(f, 10, 5));
	push_hit(other, hit(f, 20, 15));
	push_exit(&run, the_process(), 100);
	push_exit(&run, other, 100);
	look_at(SECOND);
	assert_null(look_at(7 * SECOND));
	assert_int_equal(snapshot.gone.items[TOP_KIND_HOOK].n, 1);
	assert_int_equal(snapshot.gone.items[TOP_KIND_HOOK].all[0].calls.total, 2);
	assert_int_equal(snapshot.gone.items[TOP_KIND_HOOK].all[0].time_ns, 20000);
	assert_int_equal(snapshot.gone.items[TOP_KIND_HOOK].all[0].max_ns, 15000);
	assert_float_equal(snapshot.gone.items[TOP_KIND_HOOK].all[0].calls.rate, 0, 1e-6);
	top_counts_reset(counts, US(8 * SECOND));
	look_at(9 * SECOND);
	assert_int_equal(snapshot.gone.items[TOP_KIND_HOOK].n, 0);
}

static void test_a_reset_begins_anew(void **state)
{
	const struct function *f = hooked("f", NULL);

	push_hit(the_process(), hit(f, 10, 5));
	look_at(SECOND);
	top_counts_reset(counts, US(1.5 * SECOND));
	assert_int_equal(look_at(2 * SECOND)->items[TOP_KIND_HOOK].n, 0);
	push_hit(the_process(), hit(f, 2.1 * SECOND, 7));
	assert_int_equal(look_at(3 * SECOND)->items[TOP_KIND_HOOK].all[0].max_ns, 7000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hooks_have_calls_rates_and_times_and_are_no_calls),
		TEST(test_the_first_argument_that_is_a_size_is_added_up),
		TEST(test_calls_without_an_end_have_no_time),
		TEST(test_two_files_with_one_name_are_one_row),
		TEST(test_calls_to_the_driver_are_no_hooks),
		TEST(test_hooks_beyond_the_limit_are_one_row),
		TEST(test_all_processes_together_have_a_limit),
		TEST(test_rows_of_processes_that_are_gone_are_of_the_limit),
		TEST(test_hooks_of_processes_that_are_gone_stay),
		TEST(test_a_reset_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
