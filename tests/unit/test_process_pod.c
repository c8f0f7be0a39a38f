// SPDX-License-Identifier: MIT
/* Names of pods by their own files and variables, in a made /proc. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "made_proc.h"
#include "identity/process_identity.h"
#include "identity/process_read.h"
#include "probe/mounts.h"

#define CGROUP  "0::/kubepods/burstable/pod0a1b2c3d-1111-2222-3333-444455556666/x\n"
#define ACCOUNT "42/root/var/run/secrets/kubernetes.io/serviceaccount/"

static struct process_reader_options options;
static char users[160], proc[128];

static int begin(void **state)
{
	snprintf(proc, sizeof(proc), "%s", made_proc_begin());
	snprintf(users, sizeof(users), "%s/passwd", proc);
	options = (struct process_reader_options){ .made_proc = proc, .made_users = users };
	return 0;
}

static int end(void **state)
{
	made_proc_end();
	return 0;
}

static void write_text(const char *path, const char *text)
{
	made_proc_write(path, text, strlen(text));
}

static void make_link(const char *to, const char *path)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s/%s", proc, path);
	unlink(whole);
	assert_int_equal(symlink(to, whole), 0);
}

static struct process_identity look(const char *cgroup, const char *environ)
{
	struct process_reader *reader = process_reader_new(&options);
	struct process_identity who;

	made_proc_add(&(struct made_process){ .pid = 42,
	                                      .start_time = 7,
	                                      .uid = geteuid(),
	                                      .cgroup = cgroup,
	                                      .environ = environ });
	assert_non_null(reader);
	assert_true(process_reader_read(reader, 42, 7, &who));
	process_reader_free(reader);
	return who;
}

static void check(const char *environ, const char *pod, const char *namespace)
{
	struct process_identity who = look(CGROUP, environ);

	assert_string_equal(who.pod, pod);
	assert_string_equal(who.namespace, namespace);
	assert_int_equal(who.pod_by, pod[0] || namespace[0] ? IDENTITY_OWN_WORD : IDENTITY_UNKNOWN);
	assert_string_equal(who.pod_uid, "0a1b2c3d-1111-2222-3333-444455556666");
	assert_int_equal(who.pod_uid_by, IDENTITY_CGROUP);
}

/* As the kubelet lays them out: "namespace" leads to "..data/namespace", that to a dated folder. */
static void make_pod_files(void)
{
	write_text(ACCOUNT "..2026/namespace", "team-a\n");
	make_link("..2026", ACCOUNT "..data");
	make_link("..data/namespace", ACCOUNT "namespace");
	write_text("42/root/etc/hostname", "trainer-0\n");
}

static void test_files_of_a_pod(void **state)
{
	make_pod_files();
	check("PATH=/bin", "trainer-0", "team-a");
}

static void test_variables_come_first(void **state)
{
	make_pod_files();
	check("POD_NAME=trainer-1|POD_NAMESPACE=team-b|HOSTNAME=other", "trainer-1", "team-b");
}

static void test_what_there_is_when_files_are_not(void **state)
{
	check("HOSTNAME=trainer-2", "trainer-2", "");
	check("", "", "");
	write_text("42/root/etc/podinfo/..data/name", "trainer-3");
	write_text("42/root/etc/podinfo/..data/namespace", "team-c");
	check("HOSTNAME=trainer-2", "trainer-3", "team-c");
}

static void test_no_files_are_read_of_what_is_in_no_pod(void **state)
{
	struct process_identity who;

	make_pod_files();
	who = look("0::/\n", "POD_NAME=trainer-1");
	assert_string_equal(who.pod, "");
	assert_string_equal(who.namespace, "");
}

static ssize_t no_file(void *data, const char *path, char *to, size_t bytes)
{
	return -ENOENT;
}

/* With the node's network a pod has the node's name. */
static void test_the_nodes_name_is_no_pods(void **state)
{
	struct process_pod_words words = { .hostname = "node7" };
	struct process_identity who = { 0 };

	process_pod_find(&words, &(struct process_pod_files){ no_file, NULL }, "node7", &who);
	assert_string_equal(who.pod, "");
	process_pod_find(&words, &(struct process_pod_files){ no_file, NULL }, "node8", &who);
	assert_string_equal(who.pod, "node7");
}

static void test_names_that_are_none(void **state)
{
	static const char *const wrong[] = { "A",
		                             "a b",
		                             "a\nb",
		                             "a\"",
		                             "-a",
		                             "a-",
		                             "a/b",
		                             "a_b",
		                             "\xc3\xa4",
		                             ".a",
		                             "root:x:0:0::/:/bin/sh",
		                             "" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_text("42/root/etc/hostname", wrong[i]);
		check("PATH=/bin", "", "");
	}
	assert_true(process_pod_is_name("a.b", 253, true));
	assert_false(process_pod_is_name("a.b", 63, false));
	assert_false(process_pod_is_name("aa", 1, false));
}

static void test_links_stay_under_the_root(void **state)
{
	write_text("secret", "secret");
	write_text("42/root/etc/x", "x");
	make_link("../../../../../../../../../../../../secret", "42/root/etc/hostname");
	check("PATH=/bin", "", "");
	write_text("42/root/secrets/namespace", "inside");
	write_text(ACCOUNT "x", "x");
	make_link("../../../../../../../../../../secrets", ACCOUNT "..data");
	check("PATH=/bin", "", "inside"); /* of its own root, wherever that link would lead */
}

static ssize_t read_hostname(void)
{
	struct root_file_rights rights = { geteuid(), getegid() };
	char path[256], text[64];
	ssize_t n;
	int root;

	snprintf(path, sizeof(path), "%s/42/root", proc);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	n = root_file_read(getpid(), root, "/etc/hostname", &rights, text, sizeof(text));
	close(root);
	return n;
}

static void test_what_is_no_file_is_not_opened(void **state)
{
	char path[256], *big = malloc(1 << 20);

	write_text("42/root/etc/x", "x");
	snprintf(path, sizeof(path), "%s/42/root/etc/hostname", proc);
	assert_int_equal(mkfifo(path, 0644), 0);
	check("PATH=/bin", "", "");
	assert_int_equal(read_hostname(), -EINVAL);
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0);
	check("PATH=/bin", "", "");
	rmdir(path);
	memset(big, 'a', 1 << 20);
	made_proc_write("42/root/etc/hostname", big, 1 << 20);
	check("PATH=/bin", "", "");
	made_proc_write("42/root/etc/hostname", "a\0b\n", 4);
	check("PATH=/bin", "", "");
	free(big);
}

/* A user with a mount namespace can put any file under this name, also what root alone may read. */
static void test_files_are_read_with_the_rights_of_the_process(void **state)
{
	struct root_file_rights rights = { 65534, 65534 };
	char path[256], text[64];
	int root;

	if (geteuid())
		SKIP(NEEDS_ROOT);
	write_text("42/root/etc/hostname", "secret");
	snprintf(path, sizeof(path), "%s/42/root", proc);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/42/root/etc/hostname", proc);
	assert_int_equal(root_file_read(getpid(), root, "/etc/hostname", &rights, text, 64), 6);
	chmod(path, 0640);
	assert_int_equal(root_file_read(getpid(), root, "/etc/hostname", &rights, text, 64),
	                 -EACCES);
	rights = (struct root_file_rights){ 0, 0 };
	assert_int_equal(root_file_read(getpid(), root, "/etc/hostname", &rights, text, 64), 6);
	chmod(path, 0644);
	*strrchr(path, '/') = '\0';
	chmod(path, 0700);
	rights = (struct root_file_rights){ 65534, 65534 };
	assert_int_equal(root_file_read(getpid(), root, "/etc/hostname", &rights, text, 64),
	                 -EACCES);
	assert_int_equal(setfsuid((uid_t)-1), 0); /* and we have ours again */
	assert_int_equal(setfsgid((gid_t)-1), 0);
	close(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_of_a_pod),
		TEST(test_variables_come_first),
		TEST(test_what_there_is_when_files_are_not),
		TEST(test_no_files_are_read_of_what_is_in_no_pod),
		TEST(test_the_nodes_name_is_no_pods),
		TEST(test_names_that_are_none),
		TEST(test_links_stay_under_the_root),
		TEST(test_what_is_no_file_is_not_opened),
		TEST(test_files_are_read_with_the_rights_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
