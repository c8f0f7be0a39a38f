// SPDX-License-Identifier: MIT
/* How many modules and children of processes that are diverted each user can have. */
#include "unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/process.h"
#include "divert/divert_plan.h"
#include "divert/divert_queue.h"
#include "probe/helper.h"
#include "probe/maps.h"

#define ANN  1000
#define BOB  1001
#define ROOT 0
#define DEAD (1 << 30) /* beyond any pid */

static struct divert_shares shares;

static int begin(void **state)
{
	shares = divert_shares_init();
	return 0;
}

static int end(void **state)
{
	divert_shares_free(&shares);
	return 0;
}

static void test_a_user_has_a_part_of_the_modules_and_root_all(void **state)
{
	int ann = 0, root = 0;

	while (!shares_put(&shares, ANN, 10))
		ann++;
	assert_int_equal(ann, SHARE_USER_PLACES);
	assert_null(shares_put(&shares, BOB, 10));
	while (!shares_put(&shares, ROOT, 10))
		root++;
	assert_int_equal(root, SHARE_PLACES - SHARE_USER_PLACES - 1);
	assert_non_null(shares_put(&shares, BOB, 10));
	shares_put_free(&shares, ANN, 10);
	assert_null(shares_put(&shares, ANN, 10));
}

static void test_functions_count_as_well(void **state)
{
	int ann = 0;

	while (!shares_put(&shares, ANN, 4096))
		ann++;
	assert_int_equal(ann, SHARE_USER_ENTRIES / 4096);
	assert_non_null(shares_put(&shares, ANN, 1));
	assert_null(shares_put(&shares, BOB, 4096));
}

static void test_children_of_one_user_take_no_room_of_others(void **state)
{
	uint64_t owner = 0;

	for (pid_t pid = 1; pid <= SHARE_USER_CHILDREN / 2; pid++)
		assert_true(shares_child(&shares, ANN, DEAD + pid, 2));
	assert_false(shares_child(&shares, ANN, DEAD, 1));
	assert_int_equal(shares.of_children.refused, 1);
	assert_true(shares_child(&shares, BOB, DEAD, 2));
	assert_int_equal(shares_child_has(&shares, DEAD, &owner), 2);
	assert_int_equal(owner, BOB);
	assert_true(shares_child_free(&shares, DEAD + 1));
	assert_false(shares_child_free(&shares, DEAD + 1));
	assert_null(quota_refuses(&shares.of_children, ANN, 0, 2));
}

static void test_children_whose_end_was_not_told_make_room(void **state)
{
	for (pid_t pid = 0; pid < 100; pid++)
		assert_true(shares_child(&shares, ANN, DEAD + pid, 1));
	assert_true(shares_child(&shares, ANN, getpid(), 1));
	assert_int_equal(shares_sweep(&shares, 1ull << 40), 100);
	assert_int_equal(shares.of_children.taken, 1);
	assert_true(shares_child(&shares, ANN, DEAD, 1));
	assert_int_equal(shares_sweep(&shares, (1ull << 40) + 1), 0); /* that was a moment ago */
}

static size_t looks;

static ssize_t count_look(pid_t pid, enum process_look how, const char *name, void *to,
                          size_t bytes)
{
	looks++;
	return -ESRCH;
}

static void no_answer(void *data, const struct divert_result *result)
{
}

/* Of programs that start others in a loop; who would be asked is a helper. */
static void test_nothing_is_asked_about_children_of_others(void **state)
{
	struct divert *divert;
	struct err err = { 0 };

	if (divert_new(no_answer, NULL, &divert, &err) == -ENOTSUP)
		SKIP("functions are not diverted on this machine");
	process_look_by(count_look);
	for (pid_t pid = 0; pid < 100; pid++) {
		divert_forked(divert, getpid(), DEAD + pid);
		divert_gone(divert, DEAD + pid);
	}
	process_look_by(process_look_here);
	assert_int_equal(looks, 0);
	divert_free(divert);
}

/* ---- plans ----------------------------------------------------------------------------------- */

#define FUNCTIONS 4

static struct entry_function judged[FUNCTIONS];

int __wrap_judged_files_get(struct judged_files *files, const struct divert_module *module,
                            const struct divert_function *functions, size_t count,
                            const struct entry_function **out, struct err *err);
int __wrap_judged_files_get(struct judged_files *files, const struct divert_module *module,
                            const struct divert_function *functions, size_t count,
                            const struct entry_function **out, struct err *err)
{
	*out = judged;
	return 0;
}

static uint64_t maps_take_ns;
static uint64_t person;

uint64_t __wrap_person_of_process(pid_t pid);
uint64_t __wrap_person_of_process(pid_t pid)
{
	return person;
}

int __wrap_maps_each_code(pid_t pid, int (*each)(const struct mapping *mapping, void *data),
                          void *data, struct err *err);
int __wrap_maps_each_code(pid_t pid, int (*each)(const struct mapping *mapping, void *data),
                          void *data, struct err *err)
{
	const struct mapping mapping = { .start = 0x10000,
		                         .end = 0x20000,
		                         .dev = 5,
		                         .inode = 7,
		                         .executable = true,
		                         .private = true,
		                         .path = "/lib/libcuda.so.1" };
	uint64_t until_ns = helper_busy_ns() + maps_take_ns;

	while (helper_busy_ns() < until_ns)
		;
	each(&mapping, data);
	return 0;
}

static const struct divert_module module = {
	.fd = -1, .path = "/lib/libcuda.so.1", .dev = 5, .inode = 7
};

/* Those that are never put as well: their process's agent may answer nothing. */
static void test_a_plan_has_its_user_s_share_until_it_is_freed(void **state)
{
	static struct divert_plan *plans[SHARE_PLACES + 1];
	struct err err = { 0 };
	int n = 0;

	person = ANN;
	while (!divert_plan_new(&shares, getpid(), &module, FUNCTIONS, &plans[n], &err))
		n++;
	assert_int_equal(err.code, -ENOSPC);
	assert_int_equal(n, SHARE_USER_PLACES);
	divert_plan_free(plans[--n]);
	assert_int_equal(divert_plan_new(&shares, getpid(), &module, FUNCTIONS, &plans[n], &err),
	                 0);
	for (int i = 0; i <= n; i++)
		divert_plan_free(plans[i]);
	assert_int_equal(shares.places.taken, 0);
	assert_int_equal(shares.entries.taken, 0);
}

static void test_long_functions_count_as_several(void **state)
{
	struct divert_function functions[FUNCTIONS] = { 0 };
	struct divert_plan *plan = NULL;
	struct err err = { 0 };

	judged[1].code_bytes = judged[2].code_bytes = 3072;
	assert_int_equal(divert_plan_new(&shares, getpid(), &module, FUNCTIONS, &plan, &err), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(divert_plan_make(plan, NULL, &module, functions, &err), 0);
		assert_int_equal(shares.entries.taken, FUNCTIONS + 6);
	}
	judged[1].code_bytes = (size_t)SHARE_ENTRIES << 10;
	assert_int_equal(divert_plan_make(plan, NULL, &module, functions, &err), -ENOSPC);
	divert_plan_free(plan);
	assert_int_equal(shares.entries.taken, 0);
}

/* Which go through all that it has mapped. */
static void test_looks_at_a_process_are_its_user_s_time(void **state)
{
	struct divert_function functions[FUNCTIONS] = { 0 };
	struct divert_plan *plan = NULL;
	struct err err = { 0 };

	person = BOB;
	memset(judged, 0, sizeof(judged));
	maps_take_ns = 600000000;
	assert_int_equal(divert_plan_new(&shares, getpid(), &module, FUNCTIONS, &plan, &err), 0);
	assert_int_equal(divert_plan_make(plan, NULL, &module, functions, &err), 0);
	assert_int_equal(divert_plan_make(plan, NULL, &module, functions, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "time for looks"));
	divert_plan_free(plan);
	maps_take_ns = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_user_has_a_part_of_the_modules_and_root_all),
		TEST(test_functions_count_as_well),
		TEST(test_children_of_one_user_take_no_room_of_others),
		TEST(test_children_whose_end_was_not_told_make_room),
		TEST(test_nothing_is_asked_about_children_of_others),
		TEST(test_a_plan_has_its_user_s_share_until_it_is_freed),
		TEST(test_long_functions_count_as_several),
		TEST(test_looks_at_a_process_are_its_user_s_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
