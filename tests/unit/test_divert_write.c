// SPDX-License-Identifier: MIT
/* Entries of this process itself: read with few calls, and written by several threads. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "divert/divert_inside.h"

#define PAGE    4096u
#define ENTRIES 1000

static struct divert_target target;
static uint8_t *code;
static pthread_t first;
static atomic_uint writes;

/* Three pages, and nothing behind them. */
static int begin(void **state)
{
	code = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(code + 3 * PAGE, PAGE);
	for (size_t i = 0; i < 3 * PAGE; i++)
		code[i] = (uint8_t)(i * 7 + i / 256);
	target = (struct divert_target){ .pid = getpid(),
		                         .memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC) };
	target.entries = calloc(ENTRIES, sizeof(*target.entries));
	first = pthread_self();
	atomic_store(&writes, 0);
	return target.memory < 0;
}

static int end(void **state)
{
	close(target.memory);
	free(target.entries);
	munmap(code, 3 * PAGE);
	return 0;
}

static void add(uint64_t offset)
{
	target.entries[target.count++].address = (uint64_t)(uintptr_t)code + offset;
}

static void check(const struct divert_code *copy, size_t bytes)
{
	for (uint32_t i = 0; i < target.count; i++) {
		const struct divert_entry *entry = &target.entries[i];
		const uint8_t *now = divert_code_at(copy, &target, entry, bytes);

		assert_non_null(now);
		assert_memory_equal(now, (void *)(uintptr_t)entry->address, bytes);
	}
}

static void test_entries_are_read_by_thread_and_by_memory(void **state)
{
	struct divert_code *copy;

	add(0);
	add(16); /* they overlap */
	add(48);
	add(700); /* farther away */
	add(PAGE - 8);
	add(3 * PAGE - DIVERT_COMPARE);
	copy = divert_code_new(&target);
	divert_code_read(copy, &target, getpid());
	check(copy, DIVERT_COMPARE);
	code[20] ^= 0xff;
	divert_code_read(copy, &target, 0);
	check(copy, DIVERT_COMPARE);
	divert_code_free(copy);
}

static void test_an_entry_at_the_end_of_the_code_is_read_on_its_own(void **state)
{
	struct divert_code *copy;

	add(100);
	add(3 * PAGE - 10);
	copy = divert_code_new(&target);
	divert_code_read(copy, &target, getpid());
	check(copy, 10);
	assert_null(divert_code_at(copy, &target, &target.entries[1], 11));
	divert_code_free(copy);
}

static void test_code_that_is_gone_is_not_there(void **state)
{
	struct divert_code *copy;

	add(0);
	add(PAGE);
	copy = divert_code_new(&target);
	munmap(code + PAGE, PAGE);
	divert_code_read(copy, &target, getpid());
	assert_non_null(divert_code_at(copy, &target, &target.entries[0], 20));
	assert_null(divert_code_at(copy, &target, &target.entries[1], 20));
	divert_code_free(copy);
}

static bool write_once(const struct divert_target *unused, struct divert_entry *entry)
{
	atomic_fetch_add(&writes, 1);
	entry->function++;
	return true;
}

static bool write_as_first_thread(const struct divert_target *unused, struct divert_entry *entry)
{
	if (pthread_self() != first)
		return false;
	entry->function++;
	return true;
}

static bool write_even(const struct divert_target *unused, struct divert_entry *entry)
{
	return (entry->address & 1) == 0;
}

static void test_each_entry_is_written_once(void **state)
{
	struct divert_writers *writers = divert_writers_new();

	for (uint32_t i = 0; i < ENTRIES; i++)
		add(i);
	for (unsigned round = 1; round <= 100; round++) {
		divert_writers_run(writers, &target, write_once);
		assert_int_equal(atomic_load(&writes), round * ENTRIES);
		for (uint32_t i = 0; i < ENTRIES; i++)
			assert_int_equal(target.entries[i].function, round);
	}
}

static struct divert_target other;
static _Atomic(const struct divert_target *) expected;
static atomic_uint strays;

static bool write_expected(const struct divert_target *which, struct divert_entry *entry)
{
	if (which != atomic_load(&expected))
		atomic_fetch_add(&strays, 1);
	atomic_fetch_add(&writes, 1);
	entry->function++;
	return true;
}

/* Modules of a process, one after the other: who is late for a short one leaves the next alone. */
static void test_each_target_is_written_once_by_those_that_come_late(void **state)
{
	struct divert_writers *writers = divert_writers_new();
	unsigned wanted = 0;

	for (uint32_t i = 0; i < ENTRIES; i++)
		add(i);
	other = target;
	for (unsigned round = 0; round < 4000; round++) {
		struct divert_target *now = round % 2 ? &target : &other;

		other.count = 1 + round / 2 % 40;
		atomic_store(&expected, now);
		divert_writers_run(writers, now, write_expected);
		wanted += now->count;
		assert_int_equal(atomic_load(&writes), wanted);
	}
	assert_int_equal(atomic_load(&strays), 0);
}

static void test_what_other_threads_may_not_write_the_first_one_does(void **state)
{
	struct divert_writers *writers = divert_writers_new();

	for (uint32_t i = 0; i < ENTRIES; i++)
		add(i);
	divert_writers_run(writers, &target, write_as_first_thread);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		assert_int_equal(target.entries[i].function, 1);
		assert_true(target.entries[i].written);
	}
}

static void test_what_cannot_be_written_says_so(void **state)
{
	struct divert_writers *writers = divert_writers_new();

	for (uint32_t i = 0; i < ENTRIES; i++)
		add(i);
	divert_writers_run(writers, &target, write_even);
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(target.entries[i].written, !(target.entries[i].address & 1));
	target.count = 0;
	divert_writers_run(writers, &target, write_even);
}

static uint8_t *changes; /* by the program, while the first page is written to */

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at)
{
	if (changes)
		memset(changes, 0xee, 8);
	changes = NULL;
	return __real_pwrite(fd, from, bytes, at);
}

static void test_what_is_copied_ahead_is_not_what_the_program_has_changed(void **state)
{
	uint8_t before[3 * PAGE];

	for (uint64_t page = 0; page < 3; page++) {
		add(page * PAGE + 64);
		target.entries[page].move.bytes = 5;
		memcpy(target.entries[page].file, code + page * PAGE + 64, DIVERT_COMPARE);
	}
	memcpy(before, code, sizeof(before));
	memset(before + PAGE + 64, 0xee, 8);
	changes = code + PAGE + 64;
	target.code = divert_code_new(&target);
	divert_ahead(&target);
	divert_code_free(target.code);
	assert_null(changes);
	assert_memory_equal(code, before, sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_entries_are_read_by_thread_and_by_memory,
		                                begin, end),
		cmocka_unit_test_setup_teardown(
			test_an_entry_at_the_end_of_the_code_is_read_on_its_own, begin, end),
		cmocka_unit_test_setup_teardown(test_code_that_is_gone_is_not_there, begin, end),
		cmocka_unit_test_setup_teardown(test_each_entry_is_written_once, begin, end),
		cmocka_unit_test_setup_teardown(
			test_each_target_is_written_once_by_those_that_come_late, begin, end),
		cmocka_unit_test_setup_teardown(
			test_what_other_threads_may_not_write_the_first_one_does, begin, end),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_written_says_so, begin, end),
		cmocka_unit_test_setup_teardown(
			test_what_is_copied_ahead_is_not_what_the_program_has_changed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
