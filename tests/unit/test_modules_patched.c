// SPDX-License-Identifier: MIT
/* Who has written code of his own over a probe that is there: this process, in its copy. */
#include "modules_scene.h"

#define SECOND 1000000000ull

static const struct miss *misses;

static size_t n_misses(void)
{
	return modules_misses(modules, &misses);
}

/* The first hooked function of the library that was mapped last. */
static const struct hook *a_hook(void)
{
	const struct module *module = modules_at(modules, modules_count(modules) - 1);

	for (size_t i = 0; i < module->n_hooks; i++) {
		if (module->hooks[i].hooked)
			return &module->hooks[i];
	}
	fail_msg("nothing is hooked");
	return NULL;
}

static void write_at(uint64_t entry)
{
	uint8_t *code = mapped[n_mapped - 1].at;
	size_t len = mapped[n_mapped - 1].len;

	assert_int_equal(mprotect(code, len, PROT_READ | PROT_WRITE), 0);
	code[entry] = 0xe8;
	assert_int_equal(mprotect(code, len, PROT_READ | PROT_EXEC), 0);
}

static const struct hook *hook_and_write_over(void)
{
	const struct hook *hook;

	uses_cuda = true;
	map_library("driver.so");
	look(LOOK_RUNNING);
	hook = a_hook();
	write_at(hook->entry);
	return hook;
}

static void test_who_writes_over_a_probe_is_told_of_once(void **state)
{
	const struct hook *hook = hook_and_write_over();

	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 1);
	assert_int_equal(misses[0].kind, MISS_NOT_HOOKED);
	assert_string_equal(misses[0].name, hook->name);
	assert_int_equal(misses[0].pid, getpid());
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 1);
}

static void test_who_writes_elsewhere_is_not(void **state)
{
	uses_cuda = true;
	map_library("driver.so");
	look(LOOK_RUNNING);
	modules_check_patched(modules, MODULES_LAST_LOOK);
	write_at(0);
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 0);
}

static void test_who_is_no_target_is_not(void **state)
{
	hook_and_write_over();
	uses_cuda = false;
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 0);
}

static void test_a_function_that_is_not_hooked_is_not(void **state)
{
	((struct hook *)hook_and_write_over())->hooked = false;
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 0);
}

static void test_while_nothing_is_hooked_nobody_looks(void **state)
{
	hook_and_write_over();
	modules_pause(modules, true);
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 0);
	modules_pause(modules, false);
	modules_check_patched(modules, MODULES_LAST_LOOK);
	assert_int_equal(n_misses(), 1);
}

/* Half a second after a library has come, and then after twice as long each time. */
static void test_looks_are_soon_and_then_rare(void **state)
{
	hook_and_write_over();
	modules_check_patched(modules, SECOND); /* it is new */
	modules_check_patched(modules, SECOND + SECOND / 2 - 1);
	assert_int_equal(n_misses(), 0);
	modules_check_patched(modules, SECOND + SECOND / 2);
	assert_int_equal(n_misses(), 1);
	((struct hook *)a_hook())->written_over = 0;
	modules_check_patched(modules, 2 * SECOND + SECOND / 2 - 1);
	assert_int_equal(n_misses(), 1);
	modules_check_patched(modules, 2 * SECOND + SECOND / 2);
	assert_int_equal(n_misses(), 2);
	map_library("copy.so");
	look(LOOK_RUNNING);
	write_at(a_hook()->entry);
	modules_check_patched(modules, 3 * SECOND);
	modules_check_patched(modules, 3 * SECOND + SECOND / 2);
	assert_int_equal(n_misses(), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_writes_over_a_probe_is_told_of_once),
		TEST(test_who_writes_elsewhere_is_not),
		TEST(test_who_is_no_target_is_not),
		TEST(test_a_function_that_is_not_hooked_is_not),
		TEST(test_while_nothing_is_hooked_nobody_looks),
		TEST(test_looks_are_soon_and_then_rare),
	};

	return cmocka_run_group_tests_name("modules_patched", tests, build_all, remove_dir);
}
