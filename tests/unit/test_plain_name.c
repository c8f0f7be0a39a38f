// SPDX-License-Identifier: MIT
/* Names as people read them: of all kinds, and those that a demangler does not get through. */
#include "unit.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "cuda/kernel_name.h"
#include "hostile_names.h"
#include "probe/plain_name.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "probe/person.h"

/* Each has an account. What is waited on a machine that is busy is put in as well, so that whose
 * names take for ever has none for others. */
#define SOMEBODY 1000
#define ANOTHER  1001
#define VICTIM   1002
#define SLOW     1003
#define LATE     1004

static int begin(void **state)
{
	struct err err = { 0 };

	return helper_begin(&err);
}

static int end(void **state)
{
	helper_end();
	return 0;
}

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check_kernel_of(uint64_t person, const char *mangled, const char *plain)
{
	char *name = plain_kernel_name(mangled, person);

	assert_string_equal(name, plain);
	free(name);
}

static void check_kernel(const char *mangled, const char *plain)
{
	check_kernel_of(SOMEBODY, mangled, plain);
}

static void check_function_of(uint64_t person, const char *linked, const char *plain)
{
	char *name = plain_function_name(linked, person);

	assert_string_equal(name, plain);
	free(name);
}

static void check_function(const char *linked, const char *plain)
{
	check_function_of(SOMEBODY, linked, plain);
}

static void test_names_of_all_kinds_are_read(void **state)
{
	check_kernel("_Z9vectorAddPKfPfi", "vectorAdd(float const*, float*, int)");
	check_kernel("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
	check_kernel("_Z29__device_stub__Z9vectorAddPfiPfi", "vectorAdd(float*, int)");
	check_kernel("__device_stub__Z9vectorAddPfi", "vectorAdd(float*, int)");
	check_kernel("triton_poi_fused_add", "triton_poi_fused_add");
	check_function("_ZN5leaky5Model10grow_cacheEi", "leaky::Model::grow_cache(int)");
	check_function("_ZN5leaky5ModelC2Ev.cold", "leaky::Model::Model()");
	check_function("_ZNSt6vectorIiSaIiEE9push_backEOi.isra.0",
	               "std::vector<int, std::allocator<int> >::push_back(int&&)");
	check_function("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	check_function("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	check_function("main", "main");
	check_function("", "");
}

/* Whoever reads one of them here would be at it for an hour. */
static void test_a_name_that_takes_for_ever_stays_as_it_is_linked(void **state)
{
	struct buf hostile = { 0 }, stub = { 0 };
	double begin = now();

	hostile_name(&hostile, 40);
	check_kernel_of(SLOW, hostile.data, hostile.data);
	check_function_of(SLOW, hostile.data, hostile.data);
	buf_printf(&stub, "_Z%zu__device_stub_%sv", hostile.len + strlen(KERNEL_NAME_STUB),
	           hostile.data);
	check_kernel_of(SLOW, stub.data, stub.data);
	assert_true(now() - begin < 2);
	check_kernel("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
	buf_free(&hostile);
	buf_free(&stub);
}

static void test_a_user_has_a_second_and_others_have_theirs(void **state)
{
	struct buf hostile = { 0 };
	double begin = now();
	char *name;

	hostile_name(&hostile, 40);
	for (int i = 0; i < 1000; i++) {
		buf_putc(&hostile, 'i');
		name = plain_kernel_name(hostile.data, ANOTHER);
		assert_string_equal(name, hostile.data);
		free(name);
	}
	assert_true(now() - begin < 5);
	name = plain_kernel_name("_Z4tmplIfEvPT_i", ANOTHER);
	assert_string_equal(name, "_Z4tmplIfEvPT_i");
	free(name);
	check_kernel("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
	buf_free(&hostile);
}

static void test_a_process_that_is_late_says_so(void **state)
{
	struct plain_name_ends before = plain_name_ends(), after;
	struct buf hostile = { 0 };

	hostile_name(&hostile, 40);
	check_kernel_of(LATE, hostile.data, hostile.data);
	after = plain_name_ends();
	assert_int_equal(after.late, before.late + 1);
	assert_int_equal(after.crashed, before.crashed);
	buf_free(&hostile);
}

/* False: it is no process that reads names. */
static bool parent_of(pid_t pid, int *parent)
{
	char path[64], name[32] = "", state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%31[^)]) %c %d", name, &state, parent) != 3)
		*parent = 0;
	fclose(file);
	return state != 'Z' && !strcmp(name, "cuscope-names");
}

/* Of ours: the one that makes helpers has made it too. */
static pid_t names_process(void)
{
	glob_t found;
	pid_t pid = 0;
	int maker = 0;
	char byte;

	helper_memory(getpid(), (uint64_t)(uintptr_t)&byte, &byte, 1);
	parent_of(helper_now(), &maker);
	assert_int_equal(glob("/proc/[0-9]*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc && !pid; i++) {
		int at = atoi(found.gl_pathv[i] + strlen("/proc/")), parent = 0;

		if (parent_of(at, &parent) && parent == maker)
			pid = at;
	}
	globfree(&found);
	return pid;
}

/* What it said last is the name of something else. */
static void test_a_process_that_is_stopped_or_killed_says_nothing(void **state)
{
	const int signals[] = { SIGKILL, SIGSTOP };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct plain_name_ends before;
		pid_t pid;

		check_kernel("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
		pid = names_process();
		assert_true(pid > 0);
		before = plain_name_ends();
		kill(pid, signals[i]);
		while (signals[i] == SIGKILL && names_process())
			usleep(1000);
		check_kernel_of(VICTIM, "_Z4tmplIdEvPT_i", "_Z4tmplIdEvPT_i");
		assert_int_equal(plain_name_ends().late, before.late + (signals[i] == SIGSTOP));
		check_kernel("_Z4tmplIdEvPT_i", "void tmpl<double>(double*, int)");
	}
}

static void test_a_child_reads_only_what_is_simple(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		char *simple = plain_kernel_name("_Z9vectorAddPKfPfi", SOMEBODY);
		char *other = plain_kernel_name("_Z4tmplIfEvPT_i", SOMEBODY);

		_exit(strcmp(simple, "vectorAdd(float const*, float*, int)") ||
		      strcmp(other, "_Z4tmplIfEvPT_i"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	check_kernel("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
}

static void test_names_without_end_are_not_asked_for(void **state)
{
	size_t len = 200000;
	char *name = malloc(len + 1);

	memset(name, 'v', len);
	memcpy(name, "_Z1fISt", 7);
	name[len] = '\0';
	check_kernel(name, name);
	check_function(name, name);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_all_kinds_are_read),
		cmocka_unit_test(test_a_name_that_takes_for_ever_stays_as_it_is_linked),
		cmocka_unit_test(test_a_process_that_is_late_says_so),
		cmocka_unit_test(test_a_user_has_a_second_and_others_have_theirs),
		cmocka_unit_test(test_a_process_that_is_stopped_or_killed_says_nothing),
		cmocka_unit_test(test_a_child_reads_only_what_is_simple),
		cmocka_unit_test(test_names_without_end_are_not_asked_for),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
