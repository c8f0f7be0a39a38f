// SPDX-License-Identifier: MIT
/*
 * odd LIBRARY: processes of kinds that are seldom. Each is diverted and put back, while it calls
 * the function. What cannot be made here is said.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../programs/own_root.h"
#include "base/array.h"
#include "one_target.h"

static struct divert *divert;
static struct divert_result last;
static char why[256];
static int results;

/* ---- what they are --------------------------------------------------------------------------- */

static _Noreturn void *call(void *data)
{
	struct one_shared *shared = data;

	for (;;) {
		int version = -1;

		if (shared->function(&version) || version < 0)
			shared->wrong++;
		shared->calls++;
		usleep(200);
	}
}

static void run(struct one_shared *shared)
{
	call(shared);
}

static void without_a_first_thread(struct one_shared *shared)
{
	pthread_t thread;

	pthread_create(&thread, NULL, (void *(*)(void *))call, shared);
	pthread_exit(NULL);
}

static void in_a_user_namespace(struct one_shared *shared)
{
	if (own_root() || unshare(CLONE_NEWUSER))
		_exit(2);
}

static void in_a_pid_namespace(struct one_shared *shared)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		_exit(2);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	shared->pid = pid;
	waitpid(pid, NULL, 0);
	_exit(0);
}

static void of_another_user(struct one_shared *shared)
{
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(2);
}

static void that_is_stopped(struct one_shared *shared)
{
	raise(SIGSTOP);
	call(shared);
}

/* A thread of the kernel's polls for it, as one of the process: SQPOLL. */
static void with_io_uring(struct one_shared *shared)
{
	struct {
		uint32_t entries, completions, flags, cpu, idle_ms, rest[25];
	} ring = { .flags = 1 << 1, .idle_ms = 100000 };

	if (syscall(425, 8, &ring) < 0) /* io_uring_setup */
		printf("  io_uring cannot be used here: %s\n", strerror(errno));
	call(shared);
}

/* ---- diverting them -------------------------------------------------------------------------- */

static void on_done(void *data, const struct divert_result *result)
{
	results++;
	last = *result;
	snprintf(why, sizeof(why), "%s", result->rc ? result->why : "");
}

static void await(void)
{
	struct pollfd fd = { .fd = divert_fd(divert), .events = POLLIN };
	struct err err = { 0 };

	for (int wanted = results + 1; results < wanted;)
		if (poll(&fd, 1, 10000) <= 0 || divert_turn(divert, &err))
			one_target_fail("no answer", err.text);
}

static void await_calls(const struct one_target *target, const atomic_ulong *calls)
{
	unsigned long before = *calls;

	for (int i = 0; *calls < before + 10; i++) {
		if (i == 10000)
			one_target_fail("the target", "it does not go on");
		usleep(1000);
	}
	if (target->shared->wrong)
		one_target_fail("the target", "a call went wrong");
}

static void try_one(struct one_target *target)
{
	struct divert_plan *plan = one_target_look(target, divert);
	struct err err = { 0 };

	do {
		if (divert_put(divert, plan, target->area, &target->thunk, &err))
			one_target_fail("divert_put", err.text);
		await();
	} while (last.rc == -EAGAIN);
	printf("  %u threads\n", last.threads);
	if (last.rc)
		one_target_fail("divert_put", why);
	kill(target->pid, SIGCONT);
	await_calls(target, &target->shared->thunks);
	do {
		if (divert_take_back(divert, target->pid, &err))
			one_target_fail("divert_take_back", err.text);
		await();
	} while (last.rc == -EAGAIN);
	if (last.rc)
		one_target_fail("divert_take_back", why);
	await_calls(target, &target->shared->calls);
}

static const struct odd {
	const char *name;
	void (*first)(struct one_shared *), (*body)(struct one_shared *);
} kinds[] = {
	{ "an ordinary process", NULL, run },
	{ "one without a first thread", NULL, without_a_first_thread },
	{ "one in a user namespace", in_a_user_namespace, run },
	{ "one in a pid namespace", in_a_pid_namespace, run },
	{ "one of another user", of_another_user, run },
	{ "one that is stopped", NULL, that_is_stopped },
	{ "one with a thread of io_uring", NULL, with_io_uring },
};

int main(int argc, char **argv)
{
	struct one_target target;
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		one_target_fail("usage", "odd LIBRARY");
	if (divert_new(on_done, NULL, &divert, &err))
		one_target_fail("divert_new", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		printf("%s\n", kinds[i].name);
		one_target_start_as(&target, argv[1], kinds[i].first, kinds[i].body);
		usleep(100000); /* it becomes what it is to be */
		try_one(&target);
		one_target_end(&target);
	}
	divert_free(divert);
	return 0;
}
