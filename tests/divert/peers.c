// SPDX-License-Identifier: MIT
/*
 * peers LIBRARY: a process that shares its memory with others which are no threads of it, and run
 * the function all the time. Where one is there the function is not diverted; where one comes later
 * it is stopped too when the entry is put back.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "one_target.h"

#define ROUNDS 40

enum act { ALONE, WITH_A_PEER, WITH_A_HEADLESS_ONE, MAKES_PEERS, AT_VFORK };

static struct one_target target;
static struct divert *divert;
static struct divert_result last;
static char why[256];
static int results;

/* ---- the target ------------------------------------------------------------------------------ */

static void call(struct one_shared *shared)
{
	int version = -1;

	if (shared->function(&version) || version < 0)
		shared->wrong++;
	shared->calls++;
}

static int made_for; /* what the peer is to do */
static volatile int begun;

/* Until what is to be done changes, which may be before it begins. */
static int peer(void *data)
{
	struct one_shared *shared = data;
	int act = made_for;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	begun = 1;
	for (int i = 0; shared->go == act && (act != MAKES_PEERS || i < 1000000); i++)
		call(shared);
	return 0;
}

/* Its first thread ends, and the other one goes on. */
static int headless(void *data)
{
	static char stack[256 << 10] __attribute__((aligned(64)));

	if (clone(peer, stack + sizeof(stack),
	          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	          data) < 0)
		_exit(2);
	syscall(SYS_exit, 0);
	return 0;
}

static void make_peer(struct one_shared *shared)
{
	static char stack[256 << 10] __attribute__((aligned(64)));
	int act = made_for = shared->go;
	pid_t pid;

	begun = 0;
	pid = clone(act == WITH_A_HEADLESS_ONE ? headless : peer, stack + sizeof(stack),
	            CLONE_VM | SIGCHLD, shared);

	if (pid < 0)
		_exit(2);
	while (act != MAKES_PEERS && !begun)
		usleep(100);
	while (act != MAKES_PEERS && shared->go == act)
		call(shared);
	waitpid(pid, NULL, 0);
}

static void stay_in_vfork(struct one_shared *shared)
{
	pid_t pid = vfork();

	if (pid == 0) {
		while (shared->go == AT_VFORK)
			usleep(1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void run(struct one_shared *shared)
{
	for (;;) {
		switch (shared->go) {
		case ALONE:
			call(shared);
			break;
		case AT_VFORK:
			stay_in_vfork(shared);
			break;
		default:
			make_peer(shared);
		}
	}
}

/* ---- diverting it ---------------------------------------------------------------------------- */

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

static int put(struct divert_plan *plan)
{
	struct err err = { 0 };

	if (divert_put(divert, plan, target.area, &target.thunk, &err))
		one_target_fail("divert_put", err.text);
	await();
	return last.rc;
}

static void take_back(void)
{
	struct err err = { 0 };

	for (int i = 0; i == 0 || last.rc == -EAGAIN; i++) {
		if (i == 100 || divert_take_back(divert, target.pid, &err))
			one_target_fail("divert_take_back", why);
		await();
	}
	if (last.rc || !one_target_is_as_in_file(&target))
		one_target_fail("divert_take_back", why);
}

static void change(enum act act)
{
	unsigned long calls = target.shared->calls;

	target.shared->go = act;
	for (int i = 0; target.shared->calls < calls + 3000 && i < 500; i++)
		usleep(1000);
	if (target.shared->wrong || kill(target.pid, 0) || waitpid(target.pid, NULL, WNOHANG))
		one_target_fail("the target", "a call went wrong");
}

static struct divert_plan *put_at_last(struct divert_plan *plan)
{
	for (int i = 0; put(plan); i++)
		if (last.rc != -EAGAIN || i == 100)
			one_target_fail("divert_put", why);
	return NULL;
}

static void refuse(struct divert_plan *plan, enum act act, const char *name, const char *expected)
{
	change(act);
	printf("%s\n", name);
	if (put(plan) != -EAGAIN || !strstr(why, expected))
		one_target_fail(name, last.rc ? why : "was diverted");
	printf("  %s\n", why);
}

/* It comes when the function is diverted: it is stopped when the entry is put back. */
static void come_later(struct divert_plan *plan, enum act act, uint32_t threads)
{
	printf("a peer that comes later\n");
	change(ALONE);
	put_at_last(plan);
	change(act);
	take_back();
	if (last.threads != threads)
		one_target_fail("a peer", "was not stopped");
}

static void come_and_go(void)
{
	int refused = 0;

	printf("peers that come and go\n");
	for (int i = 0; i < ROUNDS; i++) {
		struct divert_plan *plan = one_target_look(&target, divert);

		change(i % 2 ? MAKES_PEERS : ALONE);
		if (put(plan)) {
			if (last.rc != -EAGAIN)
				one_target_fail("divert_put", why);
			refused++;
			divert_plan_free(plan);
			continue;
		}
		change(MAKES_PEERS);
		take_back();
	}
	printf("  %d of %d times refused\n", refused, ROUNDS);
	if (!refused)
		one_target_fail("peers", "they were not seen");
}

int main(int argc, char **argv)
{
	struct divert_plan *plan;
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		one_target_fail("usage", "peers LIBRARY");
	if (divert_new(on_done, NULL, &divert, &err))
		one_target_fail("divert_new", err.text);
	one_target_start(&target, argv[1], run);
	plan = one_target_look(&target, divert);
	refuse(plan, WITH_A_PEER, "a peer that is there", "shares its memory with process");
	refuse(plan, WITH_A_HEADLESS_ONE, "a peer without a first thread",
	       "shares its memory with process");
	refuse(plan, AT_VFORK, "a child of vfork", "shares its memory with process");
	come_later(plan, WITH_A_PEER, 2);
	come_later(one_target_look(&target, divert), WITH_A_HEADLESS_ONE, 3);
	come_and_go();
	change(ALONE);
	printf("%lu calls, %lu by the thunk\n", target.shared->calls, target.shared->thunks);
	one_target_end(&target);
	divert_free(divert);
	return 0;
}
