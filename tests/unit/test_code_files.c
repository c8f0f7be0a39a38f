// SPDX-License-Identifier: MIT
/* Files that processes run: how many of them are kept open. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/maps.h"
#include "stack/code_files.h"

#define OF_A_USER 1024

uint64_t __wrap_helper_person_of(pid_t pid);

static uint64_t person;

uint64_t __wrap_helper_person_of(pid_t pid)
{
	return pid == getpid() ? person : 1;
}

/* As if a process had mapped another file, of that number. */
static struct code_file *hold(struct code_files *files, const char *folder, int number)
{
	struct mapping mapping = { .start = 4096, .end = 8192 };
	char path[128];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%d", folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	mapping.path = path;
	mapping.dev = st.st_dev;
	mapping.inode = st.st_ino;
	return code_files_hold(files, getpid(), &mapping);
}

/* So who maps files without end leaves descriptors for those of others. */
static void test_a_user_has_a_share_of_the_descriptors(void **state)
{
	const struct rlimit most = { 5000, 5000 };
	char folder[] = "/tmp/cuscope-unit-XXXXXX", path[128];
	struct code_files *files = code_files_new();
	struct code_file *first = NULL, *file;

	setrlimit(RLIMIT_NOFILE, &most);
	assert_non_null(mkdtemp(folder));
	person = 1001;
	for (int i = 0; i <= OF_A_USER; i++) {
		file = hold(files, folder, i);
		first = first ? first : file;
		assert_int_equal(code_file_fd(file) >= 0, i < OF_A_USER);
	}
	person = 1002;
	assert_true(code_file_fd(hold(files, folder, OF_A_USER + 1)) >= 0);
	person = 1001;
	code_files_drop(files, first);
	assert_true(code_file_fd(hold(files, folder, OF_A_USER + 2)) >= 0);
	code_files_free(files);
	for (int i = 0; i <= OF_A_USER + 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_has_a_share_of_the_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
