// SPDX-License-Identifier: MIT
/* Where the links of a file that a program made may lead. */
#include "elf_build.h"

#include "base/xalloc.h"
#include "stack/lines/debug_file.h"

#define FLAGS "-nostdlib -Wl,-e,start"

static void test_sections_that_name_other_files(void **state)
{
	const char *name;
	const uint8_t *id;
	size_t bytes;
	uint32_t crc;

	assert_true(debug_link_read("a.debug\0\1\2\3\4", 12, &name, &crc));
	assert_string_equal(name, "a.debug");
	assert_int_equal(crc, 0x04030201);
	assert_true(debug_link_read("a.d\0\1\2\3\4", 8, &name, &crc));
	assert_false(debug_link_read("a.debug\0\1\2\3", 11, &name, &crc));
	assert_false(debug_link_read("a.debug", 7, &name, &crc));
	assert_false(debug_link_read("\0\0\0\0\1\2\3\4", 8, &name, &crc));
	assert_false(debug_link_read("../a\0\0\0\0\1\2\3\4", 12, &name, &crc));
	assert_false(debug_link_read("..\0\0\1\2\3\4", 8, &name, &crc));
	assert_true(debug_alt_link_read("/d\0\1\2\3", 6, &name, &id, &bytes));
	assert_int_equal(bytes, 3);
	assert_false(debug_alt_link_read("/d\0\1", 4, &name, &id, &bytes));
	assert_false(debug_alt_link_read("/d", 2, &name, &id, &bytes));
}

/* What the file's links lead to when it is mapped by that path. */
static struct debug_files links_of(int fd, const char *path)
{
	struct debug_files found;

	debug_files_find(fd, NULL, 0, path, &found);
	if (found.debug >= 0)
		close(found.debug);
	if (found.alt >= 0)
		close(found.alt);
	return found;
}

static int build_linked(const char *name)
{
	close(build("void start(void) {}", FLAGS));
	run("printf '%s\\0' >link; truncate -s %%4 link; printf 'sums' >>link; "
	    "objcopy --add-section .gnu_debuglink=link a.out",
	    name);
	return reopen();
}

static void expect_linked(const char *name, const char *path, bool expected)
{
	int fd = build_linked(name);

	assert_int_equal(links_of(fd, path).debug >= 0, expected);
	close(fd);
}

/* A program chooses the name and, in mounts of its own, the path. */
static void test_links_lead_to_regular_files_that_all_may_read(void **state)
{
	char folder[] = "/run/cuscope-links.XXXXXX", *path;

	if (geteuid() || !mkdtemp(folder))
		SKIP("it needs root, and a folder %s", folder);
	path = xasprintf("%s/mapped", folder);
	run("chmod 755 %s; cd %s; echo text >text; echo text >secret; : >empty; mkfifo fifo; "
	    "mkdir folder; chmod 644 text empty fifo; chmod 640 secret",
	    folder, folder);
	expect_linked("text", path, true);
	expect_linked("secret", path, false);
	expect_linked("empty", path, false);
	expect_linked("fifo", path, false);
	expect_linked("folder", path, false);
	free(path);
	path = xasprintf("%s/folder/../mapped", folder);
	expect_linked("text", path, false);
	free(path);
	run("rm -r %s", folder);
}

static void expect_alt(const char *path, bool expected)
{
	int fd;

	close(build("void start(void) {}", FLAGS));
	run("printf '%s\\0id' >link; objcopy --add-section .gnu_debugaltlink=link a.out", path);
	fd = reopen();
	assert_int_equal(links_of(fd, in_dir("a.out")).alt >= 0, expected);
	close(fd);
}

static void test_alternative_links_stay_in_the_folder_of_debug_files(void **state)
{
	char folder[] = "/usr/lib/debug/cuscope-links.XXXXXX", *path;

	if (geteuid() || !mkdtemp(folder))
		SKIP("it needs root, and a folder %s", folder);
	run("chmod 755 %s; echo text >%s/text; chmod 644 %s/text", folder, folder, folder);
	path = xasprintf("%s/text", folder);
	expect_alt(path, true);
	free(path);
	path = xasprintf("%s/../%s/text", folder, strrchr(folder, '/') + 1);
	expect_alt(path, false);
	free(path);
	expect_alt("/usr/lib/debug/../../../etc/passwd", false);
	run("rm -r %s", folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections_that_name_other_files),
		cmocka_unit_test(test_links_lead_to_regular_files_that_all_may_read),
		cmocka_unit_test(test_alternative_links_stay_in_the_folder_of_debug_files),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
