// SPDX-License-Identifier: MIT
/* Files are judged once for all processes that map them, and by another thread. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "divert/divert_plan.h"
#include "probe/elf_file.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"

#define MOST 64

#define SLOW 0x3000 /* a function whose file is not read to its end before that is allowed */

static atomic_int slow;   /* it is not allowed yet */
static uint64_t later_ns; /* that it is said to be */
static struct judged_files *files;
static struct divert_module module;
static struct divert_function functions[MOST];
static size_t count;
static char path[] = "/tmp/test_judged_files.XXXXXX";

static int compare_addresses(const void *left, const void *right)
{
	const struct divert_function *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

int __real_entry_file_judge(int fd, const char *what, struct entry_function *asked, size_t n,
                            struct err *err);
int __wrap_entry_file_judge(int fd, const char *what, struct entry_function *asked, size_t n,
                            struct err *err);
int __wrap_entry_file_judge(int fd, const char *what, struct entry_function *asked, size_t n,
                            struct err *err)
{
	while (asked[0].address == SLOW && atomic_load(&slow))
		usleep(1000);
	return __real_entry_file_judge(fd, what, asked, n, err);
}

uint64_t __real_stop_now_ns(void);
uint64_t __wrap_stop_now_ns(void);
uint64_t __wrap_stop_now_ns(void)
{
	return __real_stop_now_ns() + later_ns;
}

/* A copy of this program, which is a file with functions. */
static int begin(void **state)
{
	static uint8_t bytes[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	struct stat st;
	ssize_t n;

	strcpy(strrchr(path, '.') + 1, "XXXXXX");
	to = mkostemp(path, O_CLOEXEC);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			return -1;
	close(from);
	fstat(to, &st);
	module = (struct divert_module){
		.fd = to, .path = path, .dev = st.st_dev, .inode = st.st_ino
	};
	files = judged_files_new();
	return 0;
}

static int end(void **state)
{
	judged_files_free(files);
	close(module.fd);
	unlink(path);
	return 0;
}

/* Places in the code of the program: as good as functions. */
static void choose(uint64_t first)
{
	for (count = 0; count < MOST; count++)
		functions[count] = (struct divert_function){ .address = first + count * 64,
			                                     .offset = first + count * 64,
			                                     .size = 64 };
	qsort(functions, count, sizeof(*functions), compare_addresses);
}

static void wait_until_ready(void)
{
	for (int i = 0; !judged_files_ready(files, &module, functions, count); i++) {
		assert_true(i < 5000);
		usleep(1000);
	}
}

static const struct entry_function *get(void)
{
	const struct entry_function *judged = NULL;
	struct err err = { 0 };

	assert_int_equal(judged_files_get(files, &module, functions, count, &judged, &err), 0);
	return judged;
}

static void test_another_thread_judges_as_the_asker_would(void **state)
{
	const struct entry_function *judged;
	struct entry_function by_thread[MOST];
	struct judged_files *others = judged_files_new();
	struct err err = { 0 };

	choose(0x2000);
	assert_false(judged_files_ready(files, &module, functions, count));
	wait_until_ready();
	memcpy(by_thread, get(), sizeof(by_thread));
	assert_int_equal(judged_files_get(others, &module, functions, count, &judged, &err), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(judged[i].refusal, by_thread[i].refusal);
		assert_int_equal(judged[i].code_bytes, by_thread[i].code_bytes);
		assert_int_equal(!judged[i].code, judged[i].refusal != ENTRY_MOVABLE);
	}
	judged_files_free(others);
}

static void test_what_was_judged_is_kept(void **state)
{
	const struct entry_function *judged;

	choose(0x2000);
	judged = get();
	assert_ptr_equal(get(), judged);
	assert_true(judged_files_ready(files, &module, functions, count));
}

static void test_other_functions_are_judged_anew(void **state)
{
	const struct entry_function *judged;

	choose(0x2000);
	judged = get();
	functions[3].probe = 4;
	assert_ptr_not_equal(get(), judged);
	choose(0x2000);
	count--;
	assert_ptr_not_equal(get(), judged);
	choose(0x2000);
	assert_ptr_equal(get(), judged);
}

static void test_a_file_that_was_written_is_judged_anew(void **state)
{
	const struct entry_function *judged;

	choose(0x2000);
	judged = get();
	usleep(20000); /* the clock of files goes by jiffies */
	assert_int_equal(pwrite(module.fd, "\xc3", 1, 0x2000), 1);
	assert_false(judged_files_ready(files, &module, functions, count));
	wait_until_ready();
	assert_ptr_not_equal(get(), judged);
}

static void test_no_more_than_some_are_kept(void **state)
{
	const struct entry_function *first;

	choose(0x2000);
	first = get();
	for (uint64_t i = 1; i <= 40; i++) {
		choose(0x2000 + i);
		get();
		if (i < 16) {
			choose(0x2000);
			assert_ptr_equal(get(), first);
		}
	}
	choose(0x2000);
	assert_false(judged_files_ready(files, &module, functions, count));
	wait_until_ready();
}

static void test_a_file_that_cannot_be_judged_says_why(void **state)
{
	const struct entry_function *judged;
	struct err err = { 0 };

	choose(0x2000);
	assert_int_equal(ftruncate(module.fd, 10), 0);
	assert_false(judged_files_ready(files, &module, functions, count));
	wait_until_ready();
	assert_true(judged_files_get(files, &module, functions, count, &judged, &err) < 0);
	assert_true(strlen(err.text) > 0);
}

/* An overlay's, or a server's: its descriptor is of O_PATH, and each read is a helper's. */
static void test_a_file_that_is_read_aside_is_judged_by_the_thread_as_well(void **state)
{
	struct err err = { 0 };

	close(module.fd);
	module.fd = open(path, O_PATH | O_CLOEXEC);
	assert_int_equal(helper_begin(&err), 0);
	helper_note(module.fd, getpid(), 1234);
	choose(0x2000);
	assert_false(judged_files_ready(files, &module, functions, count));
	wait_until_ready();
	assert_true(judged_files_ready(files, &module, functions, count)); /* it is kept */
	helper_end();
}

static void test_a_file_that_takes_long_makes_only_its_owner_wait(void **state)
{
	atomic_store(&slow, 1);
	module.owner = 1001;
	choose(SLOW);
	assert_false(judged_files_ready(files, &module, functions, count));
	choose(0x2000);
	for (int i = 0; i < 50; i++) {
		assert_false(judged_files_ready(files, &module, functions, count));
		usleep(1000);
	}
	module.owner = 1002;
	for (int i = 0; !judged_files_ready(files, &module, functions, count); i++) {
		assert_true(i < 2000); /* less than one waits for another's */
		usleep(1000);
	}
	get();
	module.owner = 1001;
	assert_true(judged_files_ready(files, &module, functions, count)); /* it is kept */
	later_ns = 60000000000;
	choose(0x2001); /* whoever asks would judge it, and make all others wait */
	assert_false(judged_files_ready(files, &module, functions, count));
	later_ns = 0;
	choose(SLOW);
	assert_false(judged_files_ready(files, &module, functions, count));
	atomic_store(&slow, 0);
	wait_until_ready();
}

/* Of four owners at a time; the fifth waits. */
static void test_no_more_than_some_are_judged_at_a_time(void **state)
{
	atomic_store(&slow, 1);
	choose(SLOW);
	for (uint64_t owner = 1; owner <= 4; owner++) {
		module.owner = owner;
		functions[1].probe = (uint32_t)owner;
		assert_false(judged_files_ready(files, &module, functions, count));
	}
	module.owner = 5;
	choose(0x2000);
	for (int i = 0; i < 50; i++) {
		assert_false(judged_files_ready(files, &module, functions, count));
		usleep(1000);
	}
	atomic_store(&slow, 0);
	wait_until_ready();
}

static void test_it_can_be_left_while_a_thread_is_at_work(void **state)
{
	choose(0x2000);
	for (int i = 0; i < 50; i++) {
		struct judged_files *others = judged_files_new();

		assert_false(judged_files_ready(others, &module, functions, count));
		judged_files_free(others);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_another_thread_judges_as_the_asker_would),
		TEST(test_what_was_judged_is_kept),
		TEST(test_other_functions_are_judged_anew),
		TEST(test_a_file_that_was_written_is_judged_anew),
		TEST(test_no_more_than_some_are_kept),
		TEST(test_a_file_that_cannot_be_judged_says_why),
		TEST(test_a_file_that_is_read_aside_is_judged_by_the_thread_as_well),
		TEST(test_a_file_that_takes_long_makes_only_its_owner_wait),
		TEST(test_no_more_than_some_are_judged_at_a_time),
		TEST(test_it_can_be_left_while_a_thread_is_at_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
