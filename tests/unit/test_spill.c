// SPDX-License-Identifier: MIT
/* Arrays that lie in files: base/spill.h. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/spill.h"

#define MANY ((size_t)8 << 20) /* of eight bytes: 64 MiB */

#define SLACK ((size_t)4 << 20)

/* The sanitizer keeps much about what was written to. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * The array's mappings come by these. Another thread could have mapped something by then where
 * nothing is mapped, and MAP_FIXED would take it away.
 */
static size_t n_files, n_moves, n_holes, files_most, moves_most;
static bool one_lacks_memory; /* the move after so many, alone */

static bool is_mapped(void *at, size_t bytes)
{
	static unsigned char pages[(64 << 20) / 4096];

	assert_true(bytes / 4096 <= sizeof(pages));
	return mincore(at, bytes, pages) == 0;
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED && flags & MAP_SHARED && n_files++ >= files_most) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (flags & MAP_FIXED)
		n_holes += !is_mapped(at, bytes);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

void *mremap(void *from, size_t before, size_t bytes, int flags, ...)
{
	void *to = NULL;
	va_list ap;

	if (flags & MREMAP_FIXED) {
		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
		n_moves++;
		if (!one_lacks_memory && n_moves > moves_most) {
			errno = EINVAL; /* as Linux before 5.7 */
			return MAP_FAILED;
		}
		if (one_lacks_memory && n_moves == moves_most + 1) {
			munmap(to, bytes); /* it is found out after that */
			errno = ENOMEM;
			return MAP_FAILED;
		}
		n_holes += !is_mapped(to, bytes);
	}
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return (void *)syscall(SYS_mremap, from, before, bytes, flags, to);
}

struct resident {
	size_t memory, files; /* bytes */
};

static struct resident resident(void)
{
	unsigned long long all = 0, files = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	assert_non_null(file);
	assert_int_equal(2, fscanf(file, "%*u %llu %llu", &all, &files));
	fclose(file);
	return (struct resident){ (all - files) * page, files * page };
}

static uint64_t *fill(struct spill *spill, size_t n)
{
	uint64_t *array = NULL;

	for (size_t i = 0; i < n; i++) {
		array = spill_room(spill, array, i, sizeof(*array));
		array[i] = 3 * i;
	}
	return array;
}

static void test_an_array_of_any_size_has_what_was_put_in(void **state)
{
	static const size_t sizes[] = { 1, 9, 4096, 4097, 131071, 131073, 1000000 };
	struct spill *spill = spill_new();

	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		uint64_t *array = fill(spill, sizes[k]);

		for (size_t i = 0; i < sizes[k]; i++)
			assert_int_equal(3 * i, array[i]);
		spill_drop(spill, array);
	}
	spill_free(spill);
}

static void test_a_large_array_takes_little_memory(void **state)
{
	struct resident before = resident(), after;
	struct spill *spill = spill_new();
	uint64_t *array = fill(spill, MANY), *copy = spill_make(spill, MANY * sizeof(*array));

	for (size_t i = 0; i < MANY; i = spill_next(spill, i))
		copy[i] = array[i] + 1;
	after = resident();
	assert_true(SANITIZED || after.memory < before.memory + SLACK);
	assert_true(after.files < (size_t)32 << 20);
	for (size_t i = 0; i < MANY; i = spill_next(spill, i))
		assert_int_equal(3 * i + 1, copy[i]);
	spill_drop(spill, array);
	spill_drop(spill, copy);
	spill_free(spill);
}

/* Up to a bound it is all in memory; beyond it goes to the file, and one that is dropped makes
 * room.
 */
static void test_what_is_kept_is_in_memory(void **state)
{
	const size_t bytes = MANY * sizeof(uint64_t);
	struct resident before = resident(), after;
	struct spill *spill = spill_new();
	uint64_t *array, *other, *made;

	spill_keep(bytes + bytes / 2);
	array = fill(spill, MANY);
	after = resident();
	assert_true(after.memory > before.memory + bytes - SLACK);
	other = fill(spill, MANY);
	after = resident();
	assert_true(SANITIZED || after.memory < before.memory + bytes + bytes / 2 + SLACK);
	for (size_t i = 0; i < MANY; i++)
		assert_true(array[i] == 3 * i && other[i] == 3 * i);
	spill_drop(spill, array);
	made = spill_make(spill, bytes / 2);
	for (size_t i = 0; i < MANY / 2; i++)
		made[i] = i;
	after = resident();
	assert_true(after.memory > before.memory + bytes / 2 - SLACK);
	for (size_t i = 0; i < MANY; i++)
		assert_true(other[i] == 3 * i && (i >= MANY / 2 || made[i] == i));
	spill_drop(spill, other);
	spill_drop(spill, made);
	spill_free(spill);
	spill_keep(0);
}

static void test_what_is_changed_stays_so(void **state)
{
	struct spill *spill = spill_new();
	uint64_t *array = fill(spill, MANY);

	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < MANY; i = spill_next(spill, i))
			array[i] += i % 7;
	for (size_t i = 0; i < MANY; i = spill_next(spill, i))
		assert_int_equal(3 * i + 2 * (i % 7), array[i]);
	spill_drop(spill, array);
	spill_free(spill);
}

/* As on a disk that is full: here files may have no more than four MiB. */
static void test_without_room_in_a_file_it_is_memory(void **state)
{
	struct rlimit all, few;
	struct spill *spill = spill_new();
	uint64_t *array, *made;

	assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &all));
	few = all;
	few.rlim_cur = 4 << 20;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &few));
	array = fill(spill, MANY);
	made = spill_make(spill, (size_t)8 << 20);
	made[0] = made[1000000] = 1;
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &all));
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(3 * i, array[i]);
	spill_drop(spill, array);
	spill_drop(spill, made);
	spill_free(spill);
}

/* Where pieces move, where they cannot, and where that or the mapping of a file fails after a
 * while.
 */
static void test_nothing_is_mapped_where_another_thread_could_have_mapped(void **state)
{
	static const struct {
		size_t files, moves;
		bool one_lacks_memory;
	} most[] = { { SIZE_MAX, SIZE_MAX, false },
		     { SIZE_MAX, 0, false },
		     { 20, SIZE_MAX, false },
		     { 20, 10, false },
		     { SIZE_MAX, 30, true } };

	for (size_t k = 0; k < sizeof(most) / sizeof(*most); k++) {
		struct spill *spill = spill_new();
		uint64_t *array;

		n_files = n_moves = n_holes = 0;
		files_most = most[k].files;
		moves_most = most[k].moves;
		one_lacks_memory = most[k].one_lacks_memory;
		array = fill(spill, MANY);
		files_most = moves_most = SIZE_MAX;
		one_lacks_memory = false;
		assert_true(n_files > 20 && n_moves > 20);
		assert_int_equal(0, n_holes);
		for (size_t i = 0; i < MANY; i++)
			assert_int_equal(3 * i, array[i]);
		spill_drop(spill, array);
		spill_free(spill);
	}
}

int main(void)
{
	spill_keep(0);
	files_most = moves_most = SIZE_MAX;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_array_of_any_size_has_what_was_put_in),
		cmocka_unit_test(test_a_large_array_takes_little_memory),
		cmocka_unit_test(test_what_is_kept_is_in_memory),
		cmocka_unit_test(test_what_is_changed_stays_so),
		cmocka_unit_test(test_without_room_in_a_file_it_is_memory),
		cmocka_unit_test(test_nothing_is_mapped_where_another_thread_could_have_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
