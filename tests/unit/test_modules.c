// SPDX-License-Identifier: MIT
/*
 * This process is the target: it maps the libraries that it builds. What is attached is not: this
 * file stands in for src/probe/attach.c and programs.c.
 */
#include "elf_build.h"
#include "unit.h"

#include <sys/mman.h>

#include "probe/fold.h"
#include "probe/modules.h"

/* ---- stand-ins ----------------------------------------------------------------------------- */

struct attachment {
	size_t count;
};

static size_t attached; /* hooks, at this moment */
static size_t known_files;
static bool refuse_all;
static struct wire_state state_of_hooks;

int attach(struct programs *programs, int fd, struct attach_point *points, size_t count,
           bool returns, struct attachment **attachment, struct err *err)
{
	if (refuse_all) {
		for (size_t i = 0; i < count; i++)
			points[i].error = -EINVAL;
		return err_set(err, EINVAL, "hooking: refused");
	}
	*attachment = malloc(sizeof(**attachment));
	(*attachment)->count = count;
	attached += count;
	return 0;
}

void attachment_free(struct attachment *attachment)
{
	attached -= attachment ? attachment->count : 0;
	free(attachment);
}

void attachment_free_later(struct attachment *attachment)
{
	attachment_free(attachment);
}

void attachment_drop_returns(struct attachment *attachment)
{
}

struct wire_state *programs_state(struct programs *programs)
{
	return &state_of_hooks;
}

int fold_hook(struct programs *programs, uint16_t hook, const struct api *api)
{
	return 0;
}

void programs_file_known(struct programs *programs, uint32_t dev, uint64_t inode)
{
	known_files++;
}

/* ---- libraries, and this process that maps them -------------------------------------------- */

#define MAPPED_MAX 8

static struct {
	void *at;
	size_t len;
} mapped[MAPPED_MAX];
static size_t n_mapped;

/* As the loader maps the code of a library. */
static void map_library(const char *name)
{
	int fd = open(in_dir(name), O_RDONLY);
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0 && n_mapped < MAPPED_MAX);
	mapped[n_mapped].len = (size_t)st.st_size;
	mapped[n_mapped].at =
		mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(mapped[n_mapped++].at != MAP_FAILED);
	close(fd);
}

static void build_library(const char *name, const char *text, const char *flags)
{
	close(build(text, flags));
	run("mv a.out %s", name);
}

/* More functions than half of those that can have hooks. */
static void build_large_library(void)
{
	run("{ echo '.text'; for name in cuInit cuLaunchKernel $(seq -f 'cuF%%.0f' 8200); do"
	    " printf '.globl %%s\\n.type %%s,@function\\n%%s: ret\\n.size %%s,1\\n'"
	    " $name $name $name $name; done; } >large.s");
	run("gcc -shared -nostdlib -o large.so large.s");
}

static int build_all(void **state)
{
	int fd;

	if (make_dir(state))
		return -1;
	build_library("driver.so", driver, LIBRARY);
	build_library("runtime.so", runtime, LIBRARY);
	build_library("other.so", "int f(void) { return 0; }", LIBRARY);
	run("cp driver.so copy.so && head -c 600 driver.so >cut.so && echo text >text.so");
	/* cudart linked in, in a library with a huge .symtab */
	fd = build(runtime, LIBRARY " -fvisibility=hidden");
	enlarge_strings(fd);
	close(fd);
	run("mv a.out huge.so");
	build_large_library();
	run("cp large.so large-copy.so && cp huge.so huge-copy.so");
	return 0;
}

/* ---- what is tested ------------------------------------------------------------------------ */

static struct modules *modules;
static struct selection selection;

static int make(void **state)
{
	const struct modules_options options = { .selection = &selection, .returns = true };

	memset(&selection, 0, sizeof(selection));
	memset(&state_of_hooks, 0, sizeof(state_of_hooks));
	refuse_all = false;
	attached = known_files = 0;
	modules = modules_new(&options);
	return 0;
}

static int destroy(void **state)
{
	modules_free(modules);
	while (n_mapped) {
		n_mapped--;
		munmap(mapped[n_mapped].at, mapped[n_mapped].len);
	}
	return attached != 0;
}

static struct look_result look(enum look how)
{
	struct look_result result;
	struct err err = { 0 };

	assert_int_equal(modules_look(modules, getpid(), how, 0, &result, &err), 0);
	return result;
}

/* The only miss, or NULL for none. */
static const struct miss *the_miss(void)
{
	const struct miss *misses;
	size_t count = modules_misses(modules, &misses);

	assert_true(count <= 1);
	return count ? misses : NULL;
}

/* ---- looking ------------------------------------------------------------------------------- */

static void a_process_without_modules(void **state)
{
	struct look_result result = look(LOOK_RUNNING);

	assert_int_equal(result.modules, 0);
	assert_int_equal(result.hooked, 0);
	assert_int_equal(modules_count(modules), 0);
	assert_null(the_miss());
}

static void a_module_is_hooked_when_it_is_first_seen(void **state)
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

static void several_copies_are_several_modules(void **state)
{
	map_library("driver.so");
	map_library("copy.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 2);
	assert_int_equal(modules_count(modules), 2);
	assert_string_not_equal(modules_at(modules, 0)->name, modules_at(modules, 1)->name);
}

static void two_mappings_of_a_file_are_one_module(void **state)
{
	map_library("driver.so");
	map_library("driver.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 1);
}

static void every_file_is_read_once(void **state)
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

static void a_process_that_is_gone_is_an_error(void **state)
{
	struct look_result result;
	struct err err = { 0 };

	assert_true(modules_look(modules, 5000001, LOOK_RUNNING, 0, &result, &err) < 0);
	assert_string_not_equal(err.text, "");
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void a_number_leads_to_its_hook(void **state)
{
	const struct module *module = NULL;
	const struct hook *hook;

	map_library("driver.so");
	map_library("copy.so");
	look(LOOK_RUNNING);
	for (size_t m = 0; m < 2; m++) {
		for (size_t i = 0; i < modules_at(modules, m)->n_hooks; i++) {
			hook = &modules_at(modules, m)->hooks[i];
			assert_ptr_equal(modules_hook(modules, hook->id, &module), hook);
			assert_ptr_equal(module, modules_at(modules, m));
		}
	}
	assert_null(modules_hook(modules, WIRE_HOOKS_MAX - 1, &module));
	assert_null(modules_hook(modules, UINT16_MAX, &module));
}

static void when_numbers_run_out_that_is_told(void **state)
{
	map_library("large.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 1);
	map_library("large-copy.so");
	assert_int_equal(look(LOOK_RUNNING).hooked, 0);
	assert_int_equal(modules_count(modules), 1);
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(the_miss()->lib, "large-copy.so"));
	assert_non_null(strstr(the_miss()->why, "functions in all modules"));
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

static void launches_are_hooked_in_the_runtime_until_the_driver_appears(void **state)
{
	map_library("runtime.so");
	look(LOOK_RUNNING);
	assert_true(runtime_launch_is_hooked());
	assert_int_equal(state_of_hooks.driver_tells, 0);
	map_library("driver.so");
	look(LOOK_RUNNING);
	assert_false(runtime_launch_is_hooked());
	assert_int_equal(state_of_hooks.driver_tells, 1);
}

static void with_the_driver_there_they_are_not_hooked_in_the_runtime(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	map_library("runtime.so");
	look(LOOK_RUNNING);
	assert_false(runtime_launch_is_hooked());
}

static void where_the_user_chose_functions_the_driver_does_not_tell_all(void **state)
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

static void a_module_that_runs_already_is_hooked_late(void **state)
{
	map_library("driver.so");
	look(LOOK_LATE);
	assert_non_null(the_miss());
	assert_int_equal(the_miss()->kind, MISS_HOOKED_LATE);
	assert_int_equal(the_miss()->pid, getpid());
	assert_string_equal(the_miss()->lib, "driver.so");
	assert_non_null(strstr(the_miss()->why, "ms after"));
}

static void one_whose_process_waits_is_not(void **state)
{
	map_library("driver.so");
	look(LOOK_HELD);
	assert_null(the_miss());
}

static void functions_that_cannot_be_hooked_are_told(void **state)
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

static void a_corrupt_library_is_told(void **state)
{
	map_library("cut.so");
	look(LOOK_RUNNING);
	assert_non_null(the_miss());
	assert_int_equal(the_miss()->kind, MISS_NOT_HOOKED);
	assert_non_null(strstr(the_miss()->lib, "cut.so"));
}

static void files_that_are_none_of_our_business_are_not_told(void **state)
{
	map_library("text.so");
	map_library("other.so");
	look(LOOK_RUNNING);
	assert_null(the_miss());
}

/* ---- what looks have no time for ----------------------------------------------------------- */

static void a_huge_library_is_decided_when_nobody_waits(void **state)
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

static void huge_libraries_are_decided_one_at_a_time(void **state)
{
	map_library("huge.so");
	map_library("huge-copy.so");
	look(LOOK_HELD);
	assert_true(modules_decide(modules));
	assert_int_equal(modules_count(modules), 1);
	assert_true(modules_decide(modules));
	assert_int_equal(modules_count(modules), 2);
}

static void nothing_is_decided_where_nothing_was_put_off(void **state)
{
	map_library("driver.so");
	look(LOOK_RUNNING);
	assert_false(modules_decide(modules));
}

static void what_was_put_off_may_stay_so(void **state)
{
	map_library("huge.so");
	look(LOOK_HELD);
	look(LOOK_HELD);
	assert_null(the_miss());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_without_modules),
		TEST(a_module_is_hooked_when_it_is_first_seen),
		TEST(several_copies_are_several_modules),
		TEST(two_mappings_of_a_file_are_one_module),
		TEST(every_file_is_read_once),
		TEST(a_process_that_is_gone_is_an_error),
		TEST(a_number_leads_to_its_hook),
		TEST(when_numbers_run_out_that_is_told),
		TEST(launches_are_hooked_in_the_runtime_until_the_driver_appears),
		TEST(with_the_driver_there_they_are_not_hooked_in_the_runtime),
		TEST(where_the_user_chose_functions_the_driver_does_not_tell_all),
		TEST(a_module_that_runs_already_is_hooked_late),
		TEST(one_whose_process_waits_is_not),
		TEST(functions_that_cannot_be_hooked_are_told),
		TEST(a_corrupt_library_is_told),
		TEST(files_that_are_none_of_our_business_are_not_told),
		TEST(a_huge_library_is_decided_when_nobody_waits),
		TEST(huge_libraries_are_decided_one_at_a_time),
		TEST(nothing_is_decided_where_nothing_was_put_off),
		TEST(what_was_put_off_may_stay_so),
	};

	return cmocka_run_group_tests(tests, build_all, remove_dir);
}
