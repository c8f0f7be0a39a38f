// SPDX-License-Identifier: MIT
/* Libraries that are known beforehand: only those that root alone can change. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/libraries.h"
#include "probe/mounts.h"

/* ---- the loader's cache -------------------------------------------------------------------- */

struct entry {
	int32_t flags;
	uint32_t name, path, version;
	uint64_t hardware;
};

static char cache[512];
static size_t cache_bytes;

/* Entries of a name and a path each; `before`: bytes of an older format. */
static void write_cache(size_t before, const char *const (*entries)[2], uint32_t n)
{
	char *head = cache + before;
	uint32_t at = 48 + n * (uint32_t)sizeof(struct entry);

	memset(cache, 'x', sizeof(cache));
	memset(head, 0, sizeof(cache) - before);
	memcpy(head, "glibc-ld.so.cache1.1", 20);
	memcpy(head + 20, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++) {
		struct entry entry = { .name = at };

		at += (uint32_t)sprintf(head + at, "%s", entries[i][0]) + 1;
		entry.path = at;
		at += (uint32_t)sprintf(head + at, "%s", entries[i][1]) + 1;
		memcpy(head + 48 + i * sizeof(entry), &entry, sizeof(entry));
	}
	cache_bytes = before + at;
}

static void add_path(void *data, const char *path)
{
	strcat(strcat(data, path), " ");
}

static const char *paths(size_t bytes)
{
	static char all[512];

	all[0] = '\0';
	beforehand_cache(cache, bytes, add_path, all);
	return all;
}

static const char *const some[][2] = { { "libc.so.6", "/lib/libc.so.6" },
	                               { "libcuda.so.1", "/usr/lib/libcuda.so.1" },
	                               { "libcudart.so.13", "/opt/libcudart.so.13" } };

static void test_cuda_libraries_of_the_cache_are_found(void **state)
{
	write_cache(0, some, 3);
	assert_string_equal(paths(cache_bytes), "/usr/lib/libcuda.so.1 /opt/libcudart.so.13 ");
	write_cache(24, some, 3);
	assert_string_equal(paths(cache_bytes), "/usr/lib/libcuda.so.1 /opt/libcudart.so.13 ");
}

static void test_a_cache_that_is_cut_or_damaged_does_no_harm(void **state)
{
	uint32_t many = UINT32_MAX;

	write_cache(0, some, 3);
	for (size_t bytes = 0; bytes < cache_bytes; bytes++)
		paths(bytes);
	for (size_t at = 20; at < 120; at++) {
		write_cache(0, some, 3);
		cache[at] = (char)0xff;
		paths(cache_bytes);
	}
	memcpy(cache + 20, &many, sizeof(many));
	assert_string_equal(paths(cache_bytes), "");
}

/* ---- who may change it --------------------------------------------------------------------- */

static void test_files_of_root_are_opened(void **state)
{
	int fd = beforehand_open("/bin/sh");

	assert_true(fd >= 0);
	close(fd);
}

/* The mount that a chroot's folder lies on is in no list that a process there can read. */
static void test_files_of_root_are_opened_in_a_chroot(void **state)
{
	char folder[] = "/run/beforehand-XXXXXX", path[64];
	int fd, status;
	pid_t child;

	if (geteuid() || !mkdtemp(folder))
		SKIP("it needs root, and a folder %s", folder);
	assert_int_equal(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	close(fd);
	child = fork();
	if (!child) {
		if (chroot(folder) || chdir("/"))
			_exit(2);
		_exit(roots_path_open("/libcuda.so.1") < 0); /* there is no /proc */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	unlink(path);
	rmdir(folder);
}

static void test_files_that_others_can_change_or_replace_are_not(void **state)
{
	char folder[] = "/tmp/beforehand-XXXXXX", path[64];
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(beforehand_open(path), -EACCES); /* /tmp is everyone's */
	assert_true(beforehand_open("/nonexistent/libcuda.so.1") < 0);
	assert_int_equal(beforehand_open("/usr"), -EACCES);
	assert_int_equal(beforehand_open("/dev/null"), -EACCES);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuda_libraries_of_the_cache_are_found),
		cmocka_unit_test(test_a_cache_that_is_cut_or_damaged_does_no_harm),
		cmocka_unit_test(test_files_of_root_are_opened),
		cmocka_unit_test(test_files_of_root_are_opened_in_a_chroot),
		cmocka_unit_test(test_files_that_others_can_change_or_replace_are_not),
	};

	return cmocka_run_group_tests_name("beforehand", tests, NULL, NULL);
}
