// SPDX-License-Identifier: MIT
/* Modules that nobody has mapped any more, and the numbers of their hooks. */
#include "modules_scene.h"

#include <sys/resource.h>

#include "base/clock.h"

#define SECOND  1000000000ull
#define MINUTES (20 * 60 * SECOND) /* longer than what is not used stays */

/* This process can be read, and other ones if they are to be. */
static bool refuse_maps;
static bool slow_maps; /* of this one */

int __real_maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                     struct err *err);
int __wrap_maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                     struct err *err);

int __wrap_maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                     struct err *err)
{
	if (refuse_maps && pid != getpid())
		return err_set(err, EACCES, "refused");
	if (slow_maps && pid == getpid())
		usleep(200000);
	return __real_maps_each(pid, each, data, err);
}

static void unmap_last(void)
{
	n_mapped--;
	munmap(mapped[n_mapped].at, mapped[n_mapped].len);
}

static void unmap_first(void)
{
	munmap(mapped[0].at, mapped[0].len);
	n_mapped--;
	memmove(mapped, mapped + 1, n_mapped * sizeof(*mapped));
}

static size_t numbers_told, looked_again;

static void note_number(void *data, uint16_t id)
{
	assert_non_null(modules_hook(modules, id, NULL));
	numbers_told++;
}

static void look_again(void *data, pid_t pid)
{
	assert_int_equal(pid, getpid());
	looked_again++;
	look(LOOK_LATE);
}

static void let_go(void)
{
	modules_let_go(modules, UINT64_MAX,
	               &(struct modules_gone){ note_number, look_again, NULL });
}

static void let_go_after(uint64_t ns)
{
	modules_look_for_gone(modules, clock_now_ns() + ns);
	let_go();
}

static uint16_t number_of(const char *lib, const char *function)
{
	for (size_t m = 0; m < modules_count(modules); m++) {
		const struct module *module = modules_at(modules, m);

		for (size_t i = 0; i < module->n_hooks && strstr(module->path, lib); i++) {
			if (!strcmp(module->hooks[i].name, function))
				return module->hooks[i].id;
		}
	}
	return HOOK_NO_ID;
}

static int make_anew(void **state)
{
	numbers_told = looked_again = 0;
	lets_go = true;
	refuse_maps = slow_maps = uses_cuda = false;
	return make(state);
}

/* Calls are summed up. */
static int make_sums(void **state)
{
	int r = make_anew(state);

	selection.fold = FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES;
	return r;
}

/* ---- what goes, and what stays ------------------------------------------------------------- */

static void test_what_nobody_maps_is_let_go_and_the_next_has_its_numbers(void **state)
{
	size_t hooks, known = forgotten_files;
	uint16_t number;

	map_library("driver.so");
	look(LOOK_RUNNING);
	hooks = attached;
	number = number_of("driver.so", "cuLaunchKernel");
	state_of_hooks.mode[number] = HOOK_ENTRY_ONLY;
	unmap_last();
	let_go_after(MINUTES);
	assert_int_equal(modules_count(modules), 0);
	assert_int_equal(attached, 0);
	assert_int_equal(numbers_told, hooks);
	assert_int_equal(forgotten_files, known + 1);
	assert_null(modules_hook(modules, number, NULL));
	map_library("copy.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 1);
	assert_int_equal(number_of("copy.so", "cuLaunchKernel"), number);
	assert_int_equal(state_of_hooks.mode[number], 0);
	assert_int_equal(modules->numbers.next, hooks);
}

static void test_a_number_is_of_one_function_only(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	unmap_last();
	let_go_after(MINUTES);
	map_library("runtime.so");
	look(LOOK_RUNNING);
	for (size_t i = 0; i < modules_at(modules, 0)->n_hooks; i++)
		assert_true(modules_at(modules, 0)->hooks[i].id >= numbers_told);
}

static void test_what_is_mapped_or_was_used_a_moment_ago_stays(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	let_go_after(MINUTES);
	assert_int_equal(modules_count(modules), 1);
	unmap_last();
	let_go_after(60 * SECOND);
	assert_int_equal(modules_count(modules), 1);
}

static void test_what_is_mapped_again_before_it_goes_stays(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	unmap_last();
	modules_look_for_gone(modules, clock_now_ns() + MINUTES);
	assert_int_equal(modules->n_leaving, 1);
	map_library("driver.so");
	look(LOOK_RUNNING);
	let_go();
	assert_int_equal(modules_count(modules), 1);
	assert_int_equal(modules->shares.live.taken, attached);
}

static void test_what_is_on_its_way_still_finds_its_hook(void **state)
{
	static const struct modules_gone gone = { note_number, look_again, NULL };
	uint64_t now_ns = clock_now_ns() + MINUTES;
	uint16_t number;

	map_library("driver.so");
	look(LOOK_RUNNING);
	number = number_of("driver.so", "cuInit");
	unmap_last();
	modules_look_for_gone(modules, now_ns);
	modules_let_go(modules, now_ns + SECOND, &gone);
	assert_non_null(modules_hook(modules, number, NULL));
	assert_int_equal(looked_again, 0);
	modules_let_go(modules, now_ns + 4 * SECOND, &gone);
	assert_null(modules_hook(modules, number, NULL));
}

static void test_what_is_hooked_beforehand_stays_until_its_file_is_removed(void **state)
{
	run("cp driver.so ahead.so");
	modules_expect(modules, open(in_dir("ahead.so"), O_RDONLY), in_dir("ahead.so"), NULL);
	let_go_after(MINUTES);
	assert_int_equal(modules_count(modules), 1);
	run("rm ahead.so");
	let_go_after(2 * MINUTES);
	assert_int_equal(modules_count(modules), 0);
}

static void test_whoever_cannot_be_read_may_have_anything_but_for_an_hour(void **state)
{
	const struct miss *misses;
	size_t n;

	map_library("driver.so");
	look(LOOK_RUNNING);
	unmap_last();
	refuse_maps = uses_cuda = true;
	let_go_after(MINUTES);
	assert_int_equal(modules_count(modules), 1);
	let_go_after(61 * 60 * SECOND);
	assert_int_equal(modules_count(modules), 0);
	n = modules_misses(modules, &misses);
	assert_int_equal(n, 1); /* that is told */
}

/* As many descriptors as there are, and some more. What was allowed before. */
static struct rlimit leave_descriptors(int more)
{
	struct rlimit limit, less;
	int next = dup(0);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	less = (struct rlimit){ (rlim_t)(next + more), limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
	return limit;
}

static void test_without_descriptors_nothing_is_known_of_anybody(void **state)
{
	for (int more = 0; more < 2; more++) { /* for no list of processes; of no threads */
		struct rlimit limit;

		map_library("driver.so");
		look(LOOK_RUNNING);
		unmap_last();
		refuse_maps = more > 0;
		limit = leave_descriptors(more);
		modules_look_for_gone(modules, clock_now_ns() + (more ? 2 : 1) * MINUTES);
		setrlimit(RLIMIT_NOFILE, &limit);
		let_go();
		assert_int_equal(modules_count(modules), 1);
	}
}

static void test_where_calls_are_told_a_number_is_of_a_file_of_that_name(void **state)
{
	uint16_t number;

	map_library("driver.so");
	look(LOOK_RUNNING);
	number = number_of("driver.so", "cuInit");
	unmap_last();
	let_go_after(MINUTES);
	map_library("copy.so");
	look(LOOK_RUNNING);
	assert_int_not_equal(number_of("copy.so", "cuInit"), number);
	unmap_last();
	run("cp driver.so again.so && mkdir -p other && cp driver.so other/driver.so");
	map_library("other/driver.so");
	look(LOOK_RUNNING);
	assert_int_equal(number_of("other/driver.so", "cuInit"), number);
}

static void test_who_does_not_use_cuda_need_not_be_read(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	unmap_last();
	refuse_maps = true;
	let_go_after(11 * 60 * SECOND);
	assert_int_equal(modules_count(modules), 0);
}

static void test_where_they_are_not_to_go_they_stay(void **state)
{
	modules->options.lets_go = false;
	map_library("driver.so");
	look(LOOK_RUNNING);
	unmap_last();
	let_go_after(MINUTES);
	assert_int_equal(modules_count(modules), 1);
}

/* ---- where there is no room ---------------------------------------------------------------- */

static void map_large(int from, int to)
{
	for (int i = from; i <= to; i++) {
		char name[32];

		snprintf(name, sizeof(name), "large-%d/large.so", i);
		run("mkdir -p large-%d && cp large.so %s", i, name);
		map_library(name);
		look(LOOK_RUNNING);
	}
}

static void test_in_a_crowd_the_one_that_was_used_longest_ago_goes_first(void **state)
{
	for (int i = 1; i <= 5; i++) { /* 10,240 of 16,383 */
		map_large(i, i);
		unmap_last();
	}
	for (size_t i = 0; i < modules_count(modules); i++) /* however long that took */
		modules->list[i]->used_ns = clock_now_ns() + i;
	let_go_after(SECOND);
	assert_int_equal(modules_count(modules), 5);
	let_go_after(10 * SECOND);
	assert_int_equal(modules_count(modules), 3);
	assert_int_equal(number_of("large-1/", "cuInit"), HOOK_NO_ID);
	assert_int_equal(number_of("large-2/", "cuInit"), HOOK_NO_ID);
	assert_int_not_equal(number_of("large-3/", "cuInit"), HOOK_NO_ID);
}

static void test_looks_that_take_long_are_rare(void **state)
{
	uint64_t now_ns;

	slow_maps = true;
	map_large(1, 6);
	unmap_first();
	now_ns = clock_now_ns() + 10 * SECOND;
	modules_look_for_gone(modules, now_ns); /* 0.4 s */
	let_go();
	assert_int_equal(modules_count(modules), 5);
	unmap_first();
	modules_look_for_gone(modules, now_ns + 5 * SECOND);
	let_go();
	assert_int_equal(modules_count(modules), 5);
	modules_look_for_gone(modules, now_ns + 200 * SECOND);
	let_go();
	assert_int_equal(modules_count(modules), 4);
}

static void test_what_was_refused_is_hooked_when_there_is_room(void **state)
{
	struct modules_figures figures;

	map_large(1, 8);
	assert_int_equal(modules_count(modules), 7);
	unmap_first();
	let_go_after(10 * SECOND);
	assert_int_equal(looked_again, 1);
	assert_int_equal(modules_count(modules), 7);
	assert_int_not_equal(number_of("large-8/", "cuInit"), HOOK_NO_ID);
	modules_figures(modules, &figures);
	assert_int_equal(figures.modules, 7);
	assert_int_equal(figures.let_go, 1);
	assert_int_equal(figures.refused, 1);
}

#define TURNS 10 /* there are numbers for seven such files */

static void test_files_that_come_one_after_the_other_take_no_more_numbers(void **state)
{
	for (int i = 0; i < TURNS; i++) {
		map_library("large.so");
		assert_int_equal(look(LOOK_RUNNING).hooked, 1);
		unmap_last();
		let_go_after((1 + (uint64_t)i) * MINUTES);
		assert_int_equal(modules_count(modules), 0);
	}
	assert_int_equal(modules->numbers.next, SHARE_FILE);
	assert_int_equal(modules->shares.hooks.taken, SHARE_FILE);
	assert_int_equal(modules->shares.live.taken, 0);
}

#define SUMS(name) cmocka_unit_test_setup_teardown(name, make_sums, destroy)
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_anew, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SUMS(test_what_nobody_maps_is_let_go_and_the_next_has_its_numbers),
		TEST(test_a_number_is_of_one_function_only),
		TEST(test_what_is_mapped_or_was_used_a_moment_ago_stays),
		TEST(test_what_is_mapped_again_before_it_goes_stays),
		TEST(test_what_is_on_its_way_still_finds_its_hook),
		TEST(test_what_is_hooked_beforehand_stays_until_its_file_is_removed),
		TEST(test_whoever_cannot_be_read_may_have_anything_but_for_an_hour),
		TEST(test_without_descriptors_nothing_is_known_of_anybody),
		TEST(test_where_calls_are_told_a_number_is_of_a_file_of_that_name),
		TEST(test_who_does_not_use_cuda_need_not_be_read),
		TEST(test_where_they_are_not_to_go_they_stay),
		TEST(test_in_a_crowd_the_one_that_was_used_longest_ago_goes_first),
		TEST(test_looks_that_take_long_are_rare),
		TEST(test_what_was_refused_is_hooked_when_there_is_room),
		TEST(test_files_that_come_one_after_the_other_take_no_more_numbers),
	};

	return cmocka_run_group_tests(tests, build_all, remove_dir);
}
