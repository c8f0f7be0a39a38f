// SPDX-License-Identifier: MIT
/* The file that CUDA_INJECTION64_PATH names, and what else a command's environment says. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "../programs/own_root.h"
#include "agent/agent_library.h"
#include "agents_scene.h"
#include "base/array.h"
#include "base/xalloc.h"
#include "elf_build.h"
#include "fake_library.h"

#define NAME "libcuscope-agent.so"
#define MADE "/cuscope/agent-616e206964206f662032302062797465732e2e00/" NAME /* by its build id */

/* ---- files ----------------------------------------------------------------------------------- */

static void write_bytes(const char *path, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

/* A copy of this program, that says where it finds the library, with `library` beside it. */
static const char *path_found_beside(const char *where, const struct fake_library *library,
                                     mode_t mode)
{
	static char path[512];
	FILE *pipe;
	char command[256];

	run("rm -rf bin lib && mkdir -p bin lib/cuscope && chmod 755 . bin lib lib/cuscope");
	run("cp /proc/%d/exe bin/cuscope", getpid());
	if (library)
		write_bytes(in_dir(where), library, sizeof(*library), mode);
	snprintf(command, sizeof(command), "%s --where", in_dir("bin/cuscope"));
	pipe = popen(command, "r");
	assert_non_null(fgets(path, sizeof(path), pipe));
	assert_int_equal(pclose(pipe), 0);
	return path;
}

static void test_the_library_beside_the_program_is_used(void **state)
{
	static const char beside[] = "bin/" NAME;

	assert_string_equal(path_found_beside(beside, &embedded_agent, 0644), in_dir(beside));
}

static void test_the_library_of_an_installation_is_used(void **state)
{
	static const char installed[] = "lib/cuscope/" NAME;

	assert_string_equal(path_found_beside(installed, &embedded_agent, 0644), in_dir(installed));
}

static void assert_not_used(const char *path)
{
	if (!strncmp(path, dir, strlen(dir)))
		fail_msg("%s was used", path);
	assert_non_null(strstr(path, MADE));
}

static void test_a_library_of_another_build_is_not_used(void **state)
{
	struct fake_library other = embedded_agent;

	other.notes[1].id[19]++;
	assert_not_used(path_found_beside("bin/" NAME, &other, 0644));
}

static void test_a_library_that_others_may_write_to_is_not_used(void **state)
{
	assert_not_used(path_found_beside("bin/" NAME, &embedded_agent, 0666));
	assert_not_used(path_found_beside("bin/" NAME, &embedded_agent, 0664));
}

static void test_a_library_that_others_cannot_read_is_not_used(void **state)
{
	assert_not_used(path_found_beside("bin/" NAME, &embedded_agent, 0600));
}

static void test_a_library_where_others_cannot_come_is_not_used(void **state)
{
	const char *path;

	run("mkdir -p shut && chmod 700 shut");
	run("cp /proc/%d/exe shut/cuscope", getpid());
	write_bytes(in_dir("shut/" NAME), &embedded_agent, sizeof(embedded_agent), 0644);
	run("./shut/cuscope --where > found");
	run("! grep shut found");
	path = path_found_beside("bin/" NAME, NULL, 0);
	assert_not_used(path);
}

static void test_a_library_in_a_folder_that_others_may_write_to_is_not_used(void **state)
{
	const char *path;

	path_found_beside("bin/" NAME, &embedded_agent, 0644);
	run("chmod 777 bin && bin/cuscope --where >found && ! grep bin/ found");
	run("chmod 1777 bin && bin/cuscope --where >found && ! grep bin/ found");
	run("chmod 775 bin && bin/cuscope --where >found && ! grep bin/ found");
	run("chmod 755 bin && bin/cuscope --where >found && grep -q bin/ found");
	run("chown 1 bin && bin/cuscope --where >found && ! grep bin/ found");
	run("chown 0 bin && chmod 1777 . && bin/cuscope --where >found && ! grep bin/ found");
	path = path_found_beside("bin/" NAME, &embedded_agent, 0644);
	assert_string_equal(path, in_dir("bin/" NAME));
}

static void assert_like_embedded(const char *path)
{
	struct fake_library copy = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, &copy, sizeof(copy)), sizeof(copy));
	close(fd);
	assert_memory_equal(&copy, &embedded_agent, sizeof(copy));
}

static char *folder_of(const char *path)
{
	return xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);
}

/* Nobody but root can put anything else there, from "/" on. */
static void assert_only_root_changes(const char *path)
{
	char *above = xasprintf("%s", path), *slash;
	struct stat st;

	while ((slash = strrchr(above, '/'))) {
		assert_int_equal(lstat(*above ? above : "/", &st), 0);
		assert_false(S_ISLNK(st.st_mode));
		assert_int_equal(st.st_uid, 0);
		assert_int_equal(st.st_mode & (S_IWGRP | S_IWOTH), 0);
		*slash = '\0';
	}
	free(above);
}

static void test_without_one_a_file_is_made_and_kept(void **state)
{
	struct agent_library *library;
	char *path, *folder;

	umask(077);
	assert_int_equal(agent_library_open(&library, NULL), 0);
	path = xasprintf("%s", agent_library_path(library));
	folder = folder_of(path);
	assert_non_null(strstr(path, MADE));
	assert_int_equal(mode_of(path), 0644);
	assert_int_equal(mode_of(folder), 0755);
	assert_only_root_changes(path);
	assert_true(agent_library_is_at(path));
	assert_like_embedded(path);
	agent_library_free(library); /* a process that is started later may load it */
	assert_like_embedded(path);
	free(folder);
	free(path);
}

static void test_tmpdir_says_nothing(void **state)
{
	struct agent_library *library;

	setenv("TMPDIR", dir, 1);
	assert_int_equal(agent_library_open(&library, NULL), 0);
	assert_not_used(agent_library_path(library));
	agent_library_free(library);
	unsetenv("TMPDIR");
}

static void test_a_file_that_is_not_the_library_is_replaced(void **state)
{
	struct fake_library cut = embedded_agent;
	struct agent_library *library;
	char *path, *folder;

	assert_int_equal(agent_library_open(&library, NULL), 0);
	path = xasprintf("%s", agent_library_path(library));
	folder = folder_of(path);
	agent_library_free(library);
	cut.notes[0].id[0]++; /* its build id is the same */
	write_bytes(path, &cut, sizeof(cut), 0644);
	assert_int_equal(agent_library_open(&library, NULL), 0);
	assert_like_embedded(path);
	agent_library_free(library);
	write_bytes(path, &embedded_agent, sizeof(embedded_agent), 0666);
	assert_int_equal(agent_library_open(&library, NULL), 0);
	assert_int_equal(mode_of(path), 0644);
	agent_library_free(library);
	unlink(path);
	assert_int_equal(symlink(in_dir("elsewhere"), path), 0);
	assert_int_equal(agent_library_open(&library, NULL), 0);
	assert_like_embedded(path);
	agent_library_free(library);
	free(folder);
	free(path);
}

/* Namespaces of its own: /run is what `mount` says there. */
static void assert_where(const char *mount, const char *found)
{
	char command[1024];

	run("rm -rf bin && mkdir bin");
	run("cp /proc/%d/exe bin/cuscope", getpid());
	snprintf(command, sizeof(command),
	         "unshare -m sh -c '%s; %s/bin/cuscope --where' >%s 2>&1; grep -q \"%s\" %s || "
	         "{ cat %s; false; }",
	         mount, dir, in_dir("found"), found, in_dir("found"), in_dir("found"));
	assert_int_equal(system(command), 0);
}

static void test_where_run_is_mounted_noexec_it_is_in_var_lib(void **state)
{
	char mount[512];

	/* this folder is in /run itself */
	snprintf(mount, sizeof(mount),
	         "mount -o bind,noexec /run /run; mount --bind %s %s; mount -o "
	         "remount,bind,exec %s; mount -t tmpfs t /var/lib -o mode=755",
	         dir, dir, dir);
	assert_where(mount, "^/var/lib/cuscope/agent-");
}

static void test_without_such_a_place_it_is_refused(void **state)
{
	char mount[512];

	snprintf(mount, sizeof(mount),
	         "mount -o bind,noexec /run /run; mount --bind %s %s; mount -o "
	         "remount,bind,exec %s; mount -t tmpfs t /var/lib -o mode=1777",
	         dir, dir, dir);
	assert_where(mount, "/run is mounted noexec, /var/lib is not only root.s to change");
}

static void test_files_that_are_no_libraries_are_not_it(void **state)
{
	static const char *const paths[] = { "/nowhere", "/proc/self/exe", "/", "/dev/null" };
	struct fake_library cut = embedded_agent;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_false(agent_library_is_at(paths[i]));
	write_bytes(in_dir("short"), &cut, 100, 0644);
	assert_false(agent_library_is_at(in_dir("short")));
	cut.header.e_phoff = UINT64_MAX - 8;
	write_bytes(in_dir("far"), &cut, sizeof(cut), 0644);
	assert_false(agent_library_is_at(in_dir("far")));
	cut = embedded_agent;
	cut.notes[0].head.n_descsz = UINT32_MAX;
	write_bytes(in_dir("note"), &cut, sizeof(cut), 0644);
	assert_false(agent_library_is_at(in_dir("note")));
	write_bytes(in_dir("good"), &embedded_agent, sizeof(embedded_agent), 0644);
	assert_true(agent_library_is_at(in_dir("good")));
}

/* ---- the environment ------------------------------------------------------------------------- */

static int clean_environment(void **state)
{
	unsetenv("CUDA_INJECTION64_PATH");
	unsetenv(AGENT_ENV_NEXT);
	unsetenv("NVTX_INJECTION64_PATH");
	return scene_new(state);
}

static void test_a_command_is_told_where_library_and_socket_are(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	assert_true(agent_library_is_at(scene_variable(scene, "CUDA_INJECTION64_PATH")));
	assert_int_equal(atoi(scene_variable(scene, AGENT_ENV)), AGENT_ABI);
	assert_non_null(strstr(scene_variable(scene, AGENT_ENV), ":cuscope-"));
	assert_string_equal(scene_variable(scene, AGENT_ENV_NEXT), "");
	assert_null(scene_variable(scene, "NVTX_INJECTION64_PATH"));
}

static void test_what_was_to_be_injected_is_passed_on_to(void **state)
{
	struct scene *scene = *state;

	setenv("CUDA_INJECTION64_PATH", "/opt/other.so", 1);
	scene_open(scene);
	assert_string_equal(scene_variable(scene, AGENT_ENV_NEXT), "/opt/other.so");
}

static void test_it_does_not_pass_on_to_itself(void **state)
{
	struct scene *scene = *state;
	struct agent_library *library;

	assert_int_equal(agent_library_open(&library, NULL), 0);
	setenv("CUDA_INJECTION64_PATH", agent_library_path(library), 1);
	scene_open(scene);
	assert_string_equal(scene_variable(scene, AGENT_ENV_NEXT), "");
	agent_library_free(library);
}

static void test_a_cuscope_in_a_cuscope_keeps_what_was_before_both(void **state)
{
	struct scene *scene = *state;
	struct agent_library *library;

	assert_int_equal(agent_library_open(&library, NULL), 0);
	setenv("CUDA_INJECTION64_PATH", agent_library_path(library), 1);
	setenv(AGENT_ENV_NEXT, "/opt/other.so", 1);
	scene_open(scene);
	assert_string_equal(scene_variable(scene, AGENT_ENV_NEXT), "/opt/other.so");
	agent_library_free(library);
}

static void test_ranges_come_by_a_variable_of_their_own(void **state)
{
	struct scene *scene = *state;

	scene->options.kinds |= AGENT_WANT_NVTX;
	scene_open(scene);
	assert_string_equal(scene_variable(scene, "NVTX_INJECTION64_PATH"),
	                    scene_variable(scene, "CUDA_INJECTION64_PATH"));
}

static void test_somebody_else_s_ranges_are_left_alone(void **state)
{
	struct scene *scene = *state;

	setenv("NVTX_INJECTION64_PATH", "/opt/other.so", 1);
	scene->options.kinds |= AGENT_WANT_NVTX;
	scene_open(scene);
	assert_null(scene_variable(scene, "NVTX_INJECTION64_PATH"));
}

/* ---- --cupti --------------------------------------------------------------------------------- */

static void assert_refused(struct scene *scene, const char *cupti, const char *why)
{
	scene->options.cupti = cupti;
	assert_true(agents_new(&scene->options, &scene->agents, &scene->err) < 0);
	assert_null(scene->agents);
	if (!strstr(scene->err.text, why))
		fail_msg("'%s' does not say '%s'", scene->err.text, why);
}

static void test_a_cupti_that_cannot_be_used_is_refused(void **state)
{
	struct scene *scene = *state;

	assert_refused(scene, "/nowhere/libcupti.so", "cannot open /nowhere/libcupti.so");
	assert_refused(scene, "/etc/passwd", "is no ELF file");
	assert_refused(scene, "/", "is no regular file");
	write_file(in_dir("none.c"), "int cuptiGetVersion(void) { return 1; }");
	run("gcc -shared -fPIC -o none.so none.c");
	assert_refused(scene, in_dir("none.so"), "it has no function cuptiSubscribe");
}

static void test_a_cupti_is_sent_along(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct stat sent, named;

	write_file(in_dir("cupti.c"), "int cuptiSubscribe(void) { return 1; }");
	run("gcc -shared -fPIC -o cupti.so cupti.c");
	scene->options.cupti = in_dir("cupti.so");
	assert_int_equal(stat(scene->options.cupti, &named), 0);
	scene_arrive(scene, &agent);
	assert_int_equal(agent.hello.cupti, 1);
	assert_int_equal(fstat(agent.cupti, &sent), 0);
	assert_int_equal(sent.st_ino, named.st_ino);
	assert_int_equal(fcntl(agent.cupti, F_GETFL) & O_ACCMODE, O_RDONLY);
	fake_agent_die(&agent);
}

static int say_where(void)
{
	struct agent_library *library;
	struct err err = { 0 };

	if (agent_library_open(&library, &err)) {
		printf("%s", err.text);
		return 1;
	}
	printf("%s", agent_library_path(library));
	agent_library_free(library);
	return 0;
}

static void test_another_cuscope_is_not_passed_on_to(void **state)
{
	struct scene *scene = *state;

	setenv("CUDA_INJECTION64_PATH", "/opt/older/lib/cuscope/" NAME, 1);
	scene_open(scene);
	assert_string_equal(scene_variable(scene, AGENT_ENV_NEXT), "");
}

#define IN_CLEAN(test) cmocka_unit_test_setup_teardown(test, clean_environment, scene_free)

/* A folder for this process and its children: the same test may run twice at once. */
static int own_run_cuscope(void)
{
	if (own_root())
		return -1;
	if (mkdir("/run/cuscope", 0755) && errno != EEXIST)
		return -1;
	return mount("own", "/run/cuscope", "tmpfs", 0, "mode=755");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_library_beside_the_program_is_used),
		cmocka_unit_test(test_the_library_of_an_installation_is_used),
		cmocka_unit_test(test_a_library_of_another_build_is_not_used),
		cmocka_unit_test(test_a_library_that_others_may_write_to_is_not_used),
		cmocka_unit_test(test_a_library_that_others_cannot_read_is_not_used),
		cmocka_unit_test(test_a_library_where_others_cannot_come_is_not_used),
		cmocka_unit_test(test_a_library_in_a_folder_that_others_may_write_to_is_not_used),
		cmocka_unit_test(test_without_one_a_file_is_made_and_kept),
		cmocka_unit_test(test_tmpdir_says_nothing),
		cmocka_unit_test(test_a_file_that_is_not_the_library_is_replaced),
		cmocka_unit_test(test_where_run_is_mounted_noexec_it_is_in_var_lib),
		cmocka_unit_test(test_without_such_a_place_it_is_refused),
		cmocka_unit_test(test_files_that_are_no_libraries_are_not_it),
		IN_CLEAN(test_a_command_is_told_where_library_and_socket_are),
		IN_CLEAN(test_what_was_to_be_injected_is_passed_on_to),
		IN_CLEAN(test_it_does_not_pass_on_to_itself),
		IN_CLEAN(test_another_cuscope_is_not_passed_on_to),
		IN_CLEAN(test_a_cuscope_in_a_cuscope_keeps_what_was_before_both),
		IN_CLEAN(test_ranges_come_by_a_variable_of_their_own),
		IN_CLEAN(test_somebody_else_s_ranges_are_left_alone),
		IN_CLEAN(test_a_cupti_that_cannot_be_used_is_refused),
		IN_CLEAN(test_a_cupti_is_sent_along),
	};

	if (argc > 1)
		return say_where();
	if (geteuid() != 0) {
		printf("test_agent_library: needs root, whose library it is\n");
		return 1;
	}
	if (own_run_cuscope()) {
		printf("test_agent_library: no /run/cuscope of its own: %s\n", strerror(errno));
		return 1;
	}
	strcpy(dir, "/run/test_agentlib.XXXXXX"); /* not in /tmp, where nothing is used */
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
