// SPDX-License-Identifier: MIT
/* Looking at processes, and hooking what they have mapped. */
#include "modules_scene.h"

#include "base/later.h"

#include <sys/resource.h>
#include <sys/sysmacros.h>

/* The only miss, or NULL for none. */
static const struct miss *the_miss(void)
{
	const struct miss *misses;
	size_t count = modules_misses(modules, &misses);

	assert_true(count <= 1);
	return count ? misses : NULL;
}

/* ---- looking ------------------------------------------------------------------------------- */

static void test_a_process_without_modules(void **state)
{
	struct look_result result = look(LOOK_RUNNING);

	assert_int_equal(result.modules, 0);
	assert_int_equal(result.hooked, 0);
	assert_int_equal(modules_count(modules), 0);
	assert_null(the_miss());
}

static void test_a_module_is_hooked_when_it_is_first_seen(void **state)
{
	struct look_result result;

	map_library("driver.so");
	result = look(LOOK_RUNNING);
	assert_int_equal(result.modules, 1);
	assert_int_equal(result.hooked, 1);
	assert_int_equal(attached, modules_hooked(modules));
	assert_true(attached >= 3);
	result = look(LOOK_RUNNING);
	assert_int_equal(result.modules, 1);
	assert_int_equal(result.hooked, 0);
	assert_int_equal(modules_count(modules), 1);
}

static void test_several_copies_are_several_modules(void **state)
{
	map_library("driver.so");
	map_library("copy.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 2);
	assert_int_equal(modules_count(modules), 2);
	assert_string_not_equal(modules_at(modules, 0)->name, modules_at(modules, 1)->name);
}

static void test_two_mappings_of_a_file_are_one_module(void **state)
{
	map_library("driver.so");
	map_library("driver.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 1);
}

static void test_every_file_is_read_once(void **state)
{
	size_t first;

	map_library("driver.so");
	map_library("other.so");
	look(LOOK_RUNNING);
	first = known_files;
	assert_true(first >= 2);
	look(LOOK_RUNNING);
	assert_int_equal(known_files, first);
}

static void test_a_process_that_is_gone_is_an_error(void **state)
{
	struct look_result result;
	struct err err = { 0 };

	assert_true(modules_look(modules, 5000001, LOOK_RUNNING, 0, &result, &err) < 0);
	assert_string_not_equal(err.text, "");
}

static void test_near_the_end_files_are_left_and_told(void **state)
{
	struct look_result result;
	const struct miss *misses;
	size_t n, told = 0;

	map_library("driver.so");
	end_set_near(true);
	modules_look(modules, getpid(), LOOK_RUNNING, 0, &result, NULL);
	end_set_near(false);
	n = modules_misses(modules, &misses);
	for (size_t i = 0; i < n; i++)
		told += misses[i].kind == MISS_NOT_HOOKED &&
		        strstr(misses[i].why, "ended before") != NULL;
	assert_int_equal(attached, 0);
	assert_int_equal(told, 1);
	assert_int_equal(look(LOOK_RUNNING).modules, 1);
}

static size_t hooks_that_are_double(const struct module *module)
{
	size_t n = 0;

	for (size_t i = 0; i < module->n_hooks; i++) {
		if (module->hooks[i].id != HOOK_NO_ID)
			n += !!(state_of_hooks.mode[module->hooks[i].id] & HOOK_DOUBLE);
	}
	return n;
}

/* As two overlays on one file are. What costs each call something is done for no others. */
static void test_only_of_modules_that_are_alike_traps_are_compared(void **state)
{
	struct module *one, *runtime_module;

	map_library("driver.so");
	look(LOOK_RUNNING);
	map_library("runtime.so");
	look(LOOK_RUNNING);
	one = modules_at(modules, 0);
	runtime_module = modules_at(modules, 1);
	assert_int_equal(hooks_that_are_double(one), 0);
	map_library("copy.so");
	look(LOOK_RUNNING);
	assert_int_equal(hooks_that_are_double(one), module_wants(one));
	assert_int_equal(hooks_that_are_double(modules_at(modules, 2)), module_wants(one));
	assert_int_equal(hooks_that_are_double(runtime_module), 0);
	module_ignore_launches(one, false); /* it keeps what it was told */
	assert_int_equal(hooks_that_are_double(one), module_wants(one));
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void test_a_number_leads_to_its_hook(void **state)
{
	const struct module *module = NULL;
	const struct hook *hook;

	map_library("driver.so");
	map_library("copy.so");
	look(LOOK_RUNNING);
	for (size_t m = 0; m < 2; m++) {
		for (size_t i = 0; i < modules_at(modules, m)->n_hooks; i++) {
			hook = &modules_at(modules, m)->hooks[i];
			if (hook->group == HOOK_OFF)
				continue;
			assert_ptr_equal(modules_hook(modules, hook->id, &module), hook);
			assert_ptr_equal(module, modules_at(modules, m));
		}
	}
	assert_null(modules_hook(modules, WIRE_HOOKS_MAX - 1, &module));
	assert_null(modules_hook(modules, UINT16_MAX, &module));
}

/* Its user shall not take what others need. */
static void test_a_file_has_no_more_hooks_than_its_share(void **state)
{
	map_library("large.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 1);
	assert_int_equal(attached, SHARE_FILE);
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_string_equal(the_miss()->lib, "large.so");
	assert_non_null(strstr(the_miss()->why, "6154 of its 8202 functions: one file has"));
}

static void test_functions_that_are_known_have_hooks_first(void **state)
{
	map_library("large.so");
	look(LOOK_RUNNING);
	for (size_t i = 0; i < modules_at(modules, 0)->n_hooks; i++) {
		const struct hook *hook = &modules_at(modules, 0)->hooks[i];

		if (hook->api)
			assert_true(hook->hooked);
	}
}

/* ---- launches ------------------------------------------------------------------------------ */

static bool runtime_launch_is_hooked(void)
{
	for (size_t m = 0; m < modules_count(modules); m++) {
		const struct module *module = modules_at(modules, m);

		for (size_t i = 0; i < module->n_hooks; i++) {
			if (!strcmp(module->hooks[i].name, "cudaLaunchKernel"))
				return module->hooks[i].hooked;
		}
	}
	fail_msg("there is no cudaLaunchKernel");
	return false;
}

static void test_launches_are_hooked_in_the_runtime_until_the_driver_appears(void **state)
{
	map_library("runtime.so");
	look(LOOK_RUNNING);
	assert_true(runtime_launch_is_hooked());
	assert_int_equal(state_of_hooks.driver_tells, 0);
	map_library("driver.so");
	look(LOOK_RUNNING);
	assert_false(wire_runtime_launches(&state_of_hooks)); /* the session takes them away */
	assert_int_equal(state_of_hooks.driver_tells, 1);
}

static void test_of_a_new_process_the_first_call_tells_whether_the_driver_works(void **state)
{
	modules_free(modules);
	modules =
		modules_new(&(struct modules_options){ .selection = &selection, .returns = true });
	map_library("driver.so");
	look(LOOK_HELD);
	assert_true(wire_runtime_launches(&state_of_hooks));
	map_library("runtime.so");
	look(LOOK_HELD);
	assert_true(runtime_launch_is_hooked());
}

static void test_with_the_driver_there_they_are_not_hooked_in_the_runtime(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	map_library("runtime.so");
	look(LOOK_RUNNING);
	assert_false(runtime_launch_is_hooked());
}

static void test_where_the_user_chose_functions_the_driver_does_not_tell_all(void **state)
{
	const char *only[] = { "cudaLaunchKernel" };

	selection.only = only;
	selection.n_only = 1;
	map_library("runtime.so");
	map_library("driver.so");
	look(LOOK_RUNNING);
	assert_true(runtime_launch_is_hooked());
	assert_int_equal(state_of_hooks.driver_tells, 0);
}

/* ---- misses -------------------------------------------------------------------------------- */

static void test_a_module_that_runs_already_is_hooked_late(void **state)
{
	map_library("driver.so");
	look(LOOK_LATE);
	assert_non_null(the_miss());
	assert_int_equal(the_miss()->kind, MISS_HOOKED_LATE);
	assert_int_equal(the_miss()->pid, getpid());
	assert_string_equal(the_miss()->lib, "driver.so");
	assert_non_null(strstr(the_miss()->why, "ms after"));
}

static void test_one_whose_process_waits_is_not(void **state)
{
	map_library("driver.so");
	look(LOOK_HELD);
	assert_null(the_miss());
}

static void test_calls_that_were_counted_and_are_told_in_the_end_are_not_missed(void **state)
{
	struct modules_counted counted = { .in_children = 1, .parents = 1 };
	size_t slot = 0;

	modules_counted(modules, &slot, "cuCtxSynchronize", "libcuda.so.1", &counted);
	assert_int_equal(the_miss()->calls, 1);
	counted.in_children = 0;
	modules_counted(modules, &slot, "cuCtxSynchronize", "libcuda.so.1", &counted);
	assert_null(the_miss());
	counted.in_children = 2;
	modules_counted(modules, &slot, "cuCtxSynchronize", "libcuda.so.1", &counted);
	assert_int_equal(the_miss()->calls, 2);
}

static void test_functions_that_cannot_be_hooked_are_told(void **state)
{
	const struct miss *misses;
	size_t count, functions = 0;

	map_library("driver.so");
	refuse_all = true;
	look(LOOK_RUNNING);
	count = modules_misses(modules, &misses);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(misses[i].kind, MISS_NOT_HOOKED);
		functions += misses[i].name && !strcmp(misses[i].lib, "driver.so");
	}
	assert_true(functions >= 3);
	assert_int_equal(modules_hooked(modules), 0);
}

static void test_a_corrupt_library_is_told(void **state)
{
	map_library("cut.so");
	look(LOOK_RUNNING);
	assert_non_null(the_miss());
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(the_miss()->lib, "cut.so"));
}

static void test_files_that_are_none_of_our_business_are_not_told(void **state)
{
	map_library("text.so");
	map_library("other.so");
	look(LOOK_RUNNING);
	assert_null(the_miss());
}

/* ---- what looks have no time for ----------------------------------------------------------- */

static void test_a_huge_library_is_decided_when_nobody_waits(void **state)
{
	map_library("huge.so");
	assert_int_equal(look(LOOK_HELD).modules, 0);
	assert_true(modules_decide(modules));
	assert_int_equal(modules_count(modules), 1);
	assert_string_equal(modules_at(modules, 0)->name, "huge.so");
	assert_true(runtime_launch_is_hooked());
	assert_int_equal(the_miss()->kind, MISS_HOOKED_LATE);
	assert_int_equal(the_miss()->pid, getpid());
	assert_false(modules_decide(modules));
	assert_int_equal(look(LOOK_RUNNING).modules, 1);
	assert_true(fcntl(modules_at(modules, 0)->fd, F_GETFD) >= 0); /* still its own */
}

static void test_huge_libraries_are_decided_one_at_a_time(void **state)
{
	map_library("huge.so");
	map_library("huge-copy.so");
	look(LOOK_HELD);
	assert_true(modules_decide(modules));
	assert_int_equal(modules_count(modules), 1);
	assert_true(modules_decide(modules));
	assert_int_equal(modules_count(modules), 2);
}

static void test_nothing_is_decided_where_nothing_was_put_off(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	assert_false(modules_decide(modules));
}

static void test_what_was_put_off_may_stay_so(void **state)
{
	map_library("huge.so");
	look(LOOK_HELD);
	look(LOOK_HELD);
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED); /* if the trace ended now */
	assert_non_null(strstr(the_miss()->why, "1 file with a large symbol table was not read"));
	assert_true(modules_decide(modules));
	assert_int_equal(the_miss()->kind, MISS_HOOKED_LATE);
}

static void test_what_there_is_no_room_to_put_off_is_told(void **state)
{
	map_library("huge-copy.so");
	modules->n_undecided = 64;
	look(LOOK_HELD);
	look(LOOK_HELD);
	modules->n_undecided = 0;
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(the_miss()->lib, "huge-copy.so"));
	assert_non_null(strstr(the_miss()->why, "symbol table is large"));
}

/* ---- what is told to be mapped -------------------------------------------------------------- */

#define GONE 5000001 /* no process */

/* What the kernel tells of a file: the identity that it has now, and its path. */
static struct wire_map_path *told(const char *name, uint32_t pid)
{
	static struct wire_map_path record;
	char *path = realpath(in_dir(name), NULL), *slash;
	struct stat st;

	assert_non_null(path);
	assert_int_equal(stat(path, &st), 0);
	memset(&record, 0, sizeof(record));
	record.map.head.tgid = pid;
	record.map.head.time_ns = 1;
	record.map.parent = (uint32_t)getpid();
	record.map.file = (struct wire_file){
		.inode = st.st_ino,
		.dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev),
		.stamp = wire_file_stamp((uint64_t)st.st_size, (uint64_t)st.st_ctim.tv_sec,
		                         (uint64_t)st.st_ctim.tv_nsec),
	};
	while ((slash = strrchr(path, '/'))) {
		char *to = record.names + record.map.head.bytes;

		record.map.head.bytes += (uint16_t)sprintf(to, "%s", slash + 1) + 1;
		*slash = '\0';
	}
	free(path);
	return &record;
}

static struct look_result mapped_by(const struct wire_map_path *record)
{
	struct look_result result;

	modules_mapped(modules, &record->map, &result);
	return result;
}

static void test_a_file_of_a_process_that_is_gone_is_found_by_its_path(void **state)
{
	assert_int_equal(mapped_by(told("driver.so", GONE)).modules, 1);
	assert_int_equal(modules_count(modules), 1);
	assert_int_equal(the_miss()->kind, MISS_HOOKED_LATE);
	assert_int_equal(the_miss()->pid, GONE);
	assert_int_equal(last_known.stamp, told("driver.so", GONE)->map.file.stamp);
}

static void test_another_file_at_its_path_is_not_taken_for_it(void **state)
{
	struct wire_map_path *record = told("driver.so", GONE);

	record->map.file.inode++;
	assert_int_equal(mapped_by(record).modules, 0);
	record->map.file.inode--;
	record->map.file.stamp++; /* the same number, used again */
	assert_int_equal(mapped_by(record).modules, 0);
	assert_int_equal(modules_count(modules), 0);
}

static void test_processes_whose_files_nobody_saw_are_counted_once_each(void **state)
{
	struct wire_map_path *record = told("driver.so", GONE);

	record->map.file.stamp++;
	for (uint32_t pid = GONE; pid < GONE + 40; pid++) {
		record->map.head.tgid = pid;
		for (int file = 0; file < 3; file++) {
			record->map.file.inode++;
			mapped_by(record);
		}
		record->map.file.inode -= 3;
	}
	assert_int_equal(the_miss()->kind, MISS_UNSEEN);
	assert_int_equal(the_miss()->processes, 40);
	assert_non_null(strstr(the_miss()->why, "40 processes ended before"));
	assert_non_null(strstr(the_miss()->why, "driver.so"));
	assert_int_equal(the_miss()->processes, 40); /* asked twice */
}

static void test_those_that_were_too_early_are_late_when_the_file_is_read(void **state)
{
	struct wire_map_path *record = told("huge.so", GONE);
	const struct miss *misses;

	mapped_by(record); /* put off */
	for (uint32_t pid = GONE + 1; pid < GONE + 20; pid++) {
		record->map.head.tgid = pid;
		mapped_by(record);
	}
	assert_true(modules_decide(modules));
	assert_int_equal(modules_misses(modules, &misses), 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(misses[i].kind, MISS_HOOKED_LATE);
	assert_int_equal(misses[8].processes, 12);
	record->map.head.tgid = GONE + 30;
	record->map.head.time_ns = UINT64_MAX;
	mapped_by(record); /* in time */
	modules_misses(modules, &misses);
	assert_int_equal(misses[8].processes, 12);
}

static void test_what_has_no_functions_of_cuda_concerns_nobody(void **state)
{
	mapped_by(told("other.so", GONE));
	mapped_by(told("text.so", GONE));
	assert_null(the_miss());
}

/* A number that was of no module is a module's now. */
static void test_a_number_that_is_used_again_is_looked_at_again(void **state)
{
	run("cp other.so reused.so && sleep 1.1");
	map_library("reused.so");
	assert_int_equal(look(LOOK_RUNNING).modules, 0);
	run("cat driver.so >reused.so");
	assert_int_equal(mapped_by(told("reused.so", (uint32_t)getpid())).modules, 1);
	assert_int_equal(modules_count(modules), 1);
	run("rm reused.so");
}

static void *tell_often(void *argument)
{
	const struct wire_map_path *record = argument;
	struct look_result result;

	for (int i = 0; i < 300; i++)
		modules_mapped(modules, &record->map, &result);
	return NULL;
}

/* Each forgets what the other has just found: a young file may be another each time. */
static void test_a_file_may_be_forgotten_by_another_thread_meanwhile(void **state)
{
	struct wire_map_path *record;
	pthread_t other;

	run("cp other.so young.so");
	map_library("young.so");
	map_library("driver.so");
	record = told("young.so", (uint32_t)getpid());
	record->map.file.stamp++;
	assert_int_equal(pthread_create(&other, NULL, tell_often, record), 0);
	tell_often(record);
	pthread_join(other, NULL);
	assert_int_equal(modules_count(modules), 1);
	run("rm young.so");
}

/* As a process can make and map them for hours. */
static void test_of_files_without_number_the_oldest_are_forgotten(void **state)
{
	run("mkdir many && cd many && seq %u | xargs touch", SEEN_FILES_MAX + 50);
	mapped_by(told("driver.so", GONE));
	for (unsigned i = 1; i <= SEEN_FILES_MAX + 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many/%u", i);
		mapped_by(told(name, GONE));
	}
	assert_int_equal(HASH_COUNT(modules->files), SEEN_FILES_MAX);
	assert_int_equal(mapped_by(told("driver.so", GONE)).modules, 1);
	assert_int_equal(modules_count(modules), 1); /* not read again */
	run("rm -r many");
}

static void test_a_library_that_is_written_anew_is_hooked_anew(void **state)
{
	const struct miss *misses;

	run("cp driver.so updated.so");
	map_library("updated.so");
	look(LOOK_RUNNING);
	run("touch updated.so && chmod 700 updated.so");
	modules_check_files(modules);
	assert_int_equal(modules_count(modules), 2); /* touched: it may be another */
	modules_check_files(modules);
	run("chmod 755 updated.so");
	modules_check_files(modules);
	assert_int_equal(modules_count(modules), 2);
	run("cat runtime.so >updated.so");
	modules_check_files(modules);
	assert_int_equal(modules_count(modules), 3);
	assert_int_equal(modules_at(modules, 2)->has[LAYER_RUNTIME], true);
	assert_int_equal(attached, modules_hooked(modules));
	assert_int_equal(modules_misses(modules, &misses), 2);
	assert_non_null(strstr(misses[1].why, "written anew while it was hooked"));
	run("rm updated.so");
}

/* A user of the machine can do that all the time, and others' files wait meanwhile. */
static void test_a_file_that_changes_all_the_time_is_read_in_its_users_time(void **state)
{
	const struct miss *misses;

	run("cp driver.so updated.so");
	map_library("updated.so");
	look(LOOK_RUNNING);
	modules_at(modules, 0)->owner = 1234;
	look_time_charge(LOOK_INTO_FILES, 1234, ACCOUNT_MOST_NS);
	run("cat runtime.so >updated.so");
	for (int i = 0; i < 2; i++)
		modules_check_files(modules);
	assert_int_equal(modules_count(modules), 1);
	assert_int_equal(modules_misses(modules, &misses), 1);
	assert_non_null(strstr(misses[0].why, "has taken too long"));
	modules_at(modules, 0)->owner = 1235;
	modules_check_files(modules);
	assert_int_equal(modules_count(modules), 2);
	run("rm updated.so");
}

/* ---- what cannot be looked into ------------------------------------------------------------- */

static void test_of_too_many_misses_it_is_told_how_many_were_left_out(void **state)
{
	struct wire_map_path *record;
	const struct miss *misses;

	for (int i = 0; i < 4096 + 10; i++)
		modules_miss(modules, MISS_ENTRY_ONLY, NULL, NULL, 0, "refused");
	for (int i = 0; i < 2; i++)
		assert_int_equal(modules_misses(modules, &misses), 4097);
	assert_int_equal(misses[4096].kind, MISS_ENTRY_ONLY);
	assert_non_null(strstr(misses[4096].why, "10 more such things were missed"));
	/* and processes that nobody saw are counted all the same */
	record = told("driver.so", GONE);
	record->map.file.stamp++;
	mapped_by(record);
	assert_int_equal(modules_misses(modules, &misses), 4098);
	assert_int_equal(misses[4096].kind, MISS_UNSEEN);
}

/* A file of anybody's has thousands of functions that cannot be hooked. */
static void test_functions_do_not_push_out_what_is_missed_of_others(void **state)
{
	const struct miss *misses;
	size_t count;

	for (int i = 0; i < 5000; i++)
		modules_miss(modules, MISS_NOT_HOOKED, "cuSomething", "bad.so", 0, "refused");
	modules_miss(modules, MISS_HOOKED_LATE, NULL, "good.so", 4242, "5 ms after it was loaded");
	for (uint32_t pid = 1; pid <= 3000; pid++)
		modules_miss(modules, MISS_ENTRY_ONLY, NULL, NULL, pid, "refused");
	count = modules_misses(modules, &misses);
	assert_int_equal(count, 4096 + 2);
	assert_string_equal(misses[2048].lib, "good.so");
	/* of each kind how many there were is known */
	assert_int_equal(misses[4096].kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(misses[4096].why, "2952 more such things"));
	assert_int_equal(misses[4097].kind, MISS_ENTRY_ONLY);
	assert_non_null(strstr(misses[4097].why, "953 more such things"));
}

static void test_processes_over_the_budget_that_are_not_named_are_counted(void **state)
{
	const struct miss *misses;

	modules_more(modules, MISS_OVER_BUDGET, 7);
	modules_more(modules, MISS_OVER_BUDGET, 9);
	assert_int_equal(modules_misses(modules, &misses), 1);
	assert_int_equal(misses[0].kind, MISS_OVER_BUDGET);
	assert_int_equal(misses[0].processes, 9);
}

/* Room for one descriptor: for maps, and not for a file that is looked at before it is opened. */
static void leave_one_descriptor(struct rlimit *before)
{
	int free_one = dup(0);
	struct rlimit limit;

	close(free_one);
	getrlimit(RLIMIT_NOFILE, before);
	limit = *before;
	limit.rlim_cur = (rlim_t)free_one + 1;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* How many misses say that driver.so was not opened. */
static size_t not_opened(void)
{
	const struct miss *misses;
	size_t count = modules_misses(modules, &misses), n = 0;

	for (size_t i = 0; i < count; i++)
		n += misses[i].kind == MISS_NOT_HOOKED && misses[i].pid == (uint32_t)getpid() &&
		     strstr(misses[i].lib, "driver.so") &&
		     strstr(misses[i].why, "Too many open files");
	return n;
}

static void test_a_mapped_file_that_cannot_be_opened_is_told_once(void **state)
{
	struct rlimit before;

	map_library("driver.so");
	leave_one_descriptor(&before);
	look(LOOK_RUNNING);
	look(LOOK_LATE);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(modules_count(modules), 0);
	assert_int_equal(not_opened(), 1);
	assert_int_equal(look(LOOK_LATE).hooked, 1); /* and tried again */
}

static void test_of_a_process_that_is_there_it_is_not_said_that_it_ended(void **state)
{
	struct wire_map_path *record = told("driver.so", (uint32_t)getpid());
	const struct miss *misses;
	struct rlimit before;
	size_t count;

	map_library("driver.so");
	leave_one_descriptor(&before);
	mapped_by(record);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(not_opened(), 1);
	count = modules_misses(modules, &misses);
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(misses[i].kind, MISS_UNSEEN);
}

static void test_maps_that_cannot_be_read_are_told(void **state)
{
	struct look_result result;
	struct err err = { 0 };
	struct rlimit before, none;

	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	map_library("driver.so");
	setrlimit(RLIMIT_NOFILE, &none);
	assert_true(modules_look(modules, getpid(), LOOK_RUNNING, 0, &result, &err) < 0);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(the_miss()->why, "cannot read the memory map"));
}

static void test_a_device_that_is_mapped_is_no_library(void **state)
{
	int fd = open("/dev/zero", O_RDONLY);

	mapped[n_mapped].len = 4096;
	mapped[n_mapped].at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(mapped[n_mapped++].at != MAP_FAILED);
	close(fd);
	look(LOOK_RUNNING);
	assert_null(the_miss());
}

/* ---- before anything is mapped ------------------------------------------------------------- */

static void expect(const char *name)
{
	struct err err = { 0 };

	assert_int_equal(modules_expect(modules, open(in_dir(name), O_RDONLY), name, &err), 0);
}

static void test_what_is_known_beforehand_is_hooked_and_waits_for_a_user(void **state)
{
	expect("runtime.so");
	expect("driver.so");
	assert_true(attached >= 3);
	assert_true(runtime_launch_is_hooked()); /* nobody has the driver yet */
	assert_int_equal(state_of_hooks.driver_tells, 0);
	assert_int_equal(last_flags, KNOWN_TELL | KNOWN_CUDA);
	map_library("driver.so");
	assert_true(mapped_by(told("driver.so", (uint32_t)getpid())).driver);
	assert_int_equal(state_of_hooks.driver_tells, 1);
	assert_int_equal(last_flags, KNOWN_CUDA);
}

static void test_its_first_user_is_not_late(void **state)
{
	struct wire_map_path *record;

	expect("driver.so");
	record = told("driver.so", GONE);
	record->map.known = 1;
	record->map.head.time_ns = UINT64_MAX;
	assert_int_equal(mapped_by(record).modules, 1);
	assert_null(the_miss());
}

static size_t misses_of(uint32_t pid)
{
	const struct miss *misses;
	size_t count = modules_misses(modules, &misses), its = 0;

	for (size_t i = 0; i < count; i++)
		its += misses[i].pid == pid;
	return its;
}

/* As one does that loads a library again and again, or a person's processes one after the other. */
static void test_neither_a_process_nor_a_person_fills_the_list(void **state)
{
	const uint32_t own = (uint32_t)getpid();
	const struct miss *misses;
	size_t count;

	for (int i = 0; i < 5000; i++)
		modules_miss(modules, MISS_UNHOOKED, NULL, "driver.so", own, "calls of %d ms", i);
	assert_int_equal(misses_of(own), 64);
	for (uint32_t i = 0; i < 5000; i++) /* of nobody knows whom */
		modules_miss(modules, MISS_UNHOOKED, NULL, "driver.so", GONE - i, "calls");
	modules_miss(modules, MISS_HOOKED_LATE, NULL, "driver.so", 1, "1.0 ms after it was loaded");
	assert_int_equal(misses_of(1), 1);
	count = modules_misses(modules, &misses);
	assert_int_equal(count, 64 + 2048 + 1 + 1);
	assert_string_equal(misses[count - 1].why,
	                    "7888 more such things were missed and are not listed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_process_without_modules),
		TEST(test_a_module_is_hooked_when_it_is_first_seen),
		TEST(test_several_copies_are_several_modules),
		TEST(test_two_mappings_of_a_file_are_one_module),
		TEST(test_every_file_is_read_once),
		TEST(test_a_process_that_is_gone_is_an_error),
		TEST(test_near_the_end_files_are_left_and_told),
		TEST(test_only_of_modules_that_are_alike_traps_are_compared),
		TEST(test_a_number_leads_to_its_hook),
		TEST(test_a_file_has_no_more_hooks_than_its_share),
		TEST(test_functions_that_are_known_have_hooks_first),
		TEST(test_launches_are_hooked_in_the_runtime_until_the_driver_appears),
		TEST(test_of_a_new_process_the_first_call_tells_whether_the_driver_works),
		TEST(test_with_the_driver_there_they_are_not_hooked_in_the_runtime),
		TEST(test_where_the_user_chose_functions_the_driver_does_not_tell_all),
		TEST(test_a_module_that_runs_already_is_hooked_late),
		TEST(test_one_whose_process_waits_is_not),
		TEST(test_calls_that_were_counted_and_are_told_in_the_end_are_not_missed),
		TEST(test_functions_that_cannot_be_hooked_are_told),
		TEST(test_a_corrupt_library_is_told),
		TEST(test_files_that_are_none_of_our_business_are_not_told),
		TEST(test_of_too_many_misses_it_is_told_how_many_were_left_out),
		TEST(test_functions_do_not_push_out_what_is_missed_of_others),
		TEST(test_processes_over_the_budget_that_are_not_named_are_counted),
		TEST(test_a_mapped_file_that_cannot_be_opened_is_told_once),
		TEST(test_of_a_process_that_is_there_it_is_not_said_that_it_ended),
		TEST(test_maps_that_cannot_be_read_are_told),
		TEST(test_a_device_that_is_mapped_is_no_library),
		TEST(test_a_huge_library_is_decided_when_nobody_waits),
		TEST(test_huge_libraries_are_decided_one_at_a_time),
		TEST(test_nothing_is_decided_where_nothing_was_put_off),
		TEST(test_what_was_put_off_may_stay_so),
		TEST(test_what_there_is_no_room_to_put_off_is_told),
		TEST(test_a_file_of_a_process_that_is_gone_is_found_by_its_path),
		TEST(test_another_file_at_its_path_is_not_taken_for_it),
		TEST(test_processes_whose_files_nobody_saw_are_counted_once_each),
		TEST(test_those_that_were_too_early_are_late_when_the_file_is_read),
		TEST(test_what_has_no_functions_of_cuda_concerns_nobody),
		TEST(test_a_number_that_is_used_again_is_looked_at_again),
		TEST(test_a_file_may_be_forgotten_by_another_thread_meanwhile),
		TEST(test_of_files_without_number_the_oldest_are_forgotten),
		TEST(test_a_library_that_is_written_anew_is_hooked_anew),
		TEST(test_a_file_that_changes_all_the_time_is_read_in_its_users_time),
		TEST(test_what_is_known_beforehand_is_hooked_and_waits_for_a_user),
		TEST(test_its_first_user_is_not_late),
		TEST(test_neither_a_process_nor_a_person_fills_the_list),
	};

	return cmocka_run_group_tests(tests, build_all, remove_dir);
}
