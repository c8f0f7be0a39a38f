// SPDX-License-Identifier: MIT
/* Who may look into whom: each thing that the kernel asks for, and that processes tell of it. */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../programs/own_root.h"
#include "base/process.h"
#include "probe/person.h"

static struct sight user(uint32_t id)
{
	return (struct sight){ .uid = { id, id, id },
		               .gid = { id, id, id },
		               .user_namespace = 1,
		               .pid_namespace = 2,
		               .label = "unconfined\n" };
}

static void test_a_user_sees_his_own_processes(void **state)
{
	const struct sight ann = user(1000), other = user(1001), root = user(0);

	assert_true(sight_covers(&ann, &ann));
	assert_false(sight_covers(&ann, &other));
	assert_false(sight_covers(&ann, &root));
	assert_false(sight_covers(&root, &ann)); /* nor does root's target here */
}

static void test_each_id_counts(void **state)
{
	const struct sight ann = user(1000);

	for (int i = 0; i < 3; i++) {
		struct sight of_uid = user(1000), of_gid = user(1000);

		of_uid.uid[i] = 0;
		of_gid.gid[i] = 0;
		assert_false(sight_covers(&ann, &of_uid));
		assert_false(sight_covers(&ann, &of_gid));
	}
}

static void test_so_does_all_else(void **state)
{
	const struct sight ann = user(1000);
	struct sight other = ann;

	other.rights = 1;
	assert_false(sight_covers(&ann, &other));
	assert_true(sight_covers(&other, &ann));
	other = ann;
	other.closed = true;
	assert_false(sight_covers(&ann, &other));
	other = ann;
	other.of_kernel = true;
	assert_false(sight_covers(&ann, &other));
	other = ann;
	other.user_namespace++;
	assert_false(sight_covers(&ann, &other));
	other = ann;
	other.pid_namespace++;
	assert_false(sight_covers(&ann, &other));
	other = ann;
	strcpy(other.label, "sshd (enforce)\n");
	assert_false(sight_covers(&ann, &other));
}

/* ---- processes ------------------------------------------------------------------------------- */

enum { PLAIN, CLOSED, NAMESPACE };

/* A child that is this user, and what else; its parent reads when it is so. */
static pid_t start(uid_t uid, int what)
{
	int ready[2];
	char ok = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ok = setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
		ok &= what != NAMESPACE || unshare(CLONE_NEWUSER) == 0;
		prctl(PR_SET_DUMPABLE, what != CLOSED);
		if (write(ready[1], &ok, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &ok, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (ok)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

static bool covers(pid_t who, pid_t whom)
{
	struct sight a, b;

	assert_true(sight_read(who, 0, &a));
	assert_true(sight_read(whom, 0, &b));
	return sight_covers(&a, &b);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_what_processes_tell(void **state)
{
	pid_t ann, twin, closed, apart, other;

	if (geteuid())
		SKIP(NEEDS_ROOT);
	ann = start(1234, PLAIN);
	twin = start(1234, PLAIN);
	closed = start(1234, CLOSED);
	apart = start(1234, NAMESPACE);
	other = start(4321, PLAIN);
	assert_true(covers(getpid(), getpid()));
	assert_true(covers(ann, twin));
	assert_false(covers(ann, closed));
	assert_false(covers(ann, other));
	assert_false(covers(ann, getpid()));
	if (apart)
		assert_false(covers(ann, apart));
	end(ann);
	end(twin);
	end(closed);
	end(other);
	if (apart)
		end(apart);
}

static bool label_asked;

static ssize_t note_look(pid_t pid, enum process_look how, const char *name, void *to, size_t bytes)
{
	label_asked |= !strcmp(name, "attr/current");
	return process_look_here(pid, how, name, to, bytes);
}

/* The kernel tells it only when no exec is under way: whoever has processes for that is asked. */
static void test_its_label_is_not_waited_for(void **state)
{
	struct sight sight;

	process_look_by(note_look);
	assert_true(sight_read(getpid(), 0, &sight));
	process_look_by(process_look_here);
	assert_true(label_asked);
}

static void test_who_is_gone_has_none(void **state)
{
	struct sight sight;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_false(sight_read(pid, 0, &sight));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_sees_his_own_processes),
		cmocka_unit_test(test_each_id_counts),
		cmocka_unit_test(test_so_does_all_else),
		cmocka_unit_test(test_what_processes_tell),
		cmocka_unit_test(test_its_label_is_not_waited_for),
		cmocka_unit_test(test_who_is_gone_has_none),
	};

	if (geteuid() == 0)
		own_root(); /* in a chroot nobody can make a user namespace */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
