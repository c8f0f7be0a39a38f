// SPDX-License-Identifier: MIT
/*
 * forks LIBRARY: children of a process whose function is diverted have its jumps. They are put
 * back, with children of theirs; and however many there were, others find room.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "one_target.h"

#define CHILDREN 100 /* each with one of its own */
#define ENDED    20000
#define NOBODY   (1 << 30) /* beyond any pid */

static struct family {
	pid_t child, grandchild;
} * families;
static struct divert *divert;
static struct divert_result last;
static char why[256];
static int results;

static void live(struct family *family)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	family->child = getpid();
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		family->grandchild = getpid();
	}
	for (;;)
		pause();
}

static void run(struct one_shared *shared)
{
	while (!shared->go)
		usleep(1000);
	for (int i = 0; i < CHILDREN; i++)
		if (fork() == 0)
			live(&families[i]);
	for (;;)
		pause();
}

static void on_done(void *data, const struct divert_result *result)
{
	results++;
	last = *result;
	snprintf(why, sizeof(why), "%s", result->rc ? result->why : "");
}

static void put(struct one_target *target)
{
	struct divert_plan *plan = one_target_look(target, divert);
	struct pollfd fd = { .fd = divert_fd(divert), .events = POLLIN };
	struct err err = { 0 };

	do {
		int wanted = results + 1;

		if (divert_put(divert, plan, target->area, &target->thunk, &err))
			one_target_fail("divert_put", err.text);
		for (int i = 0; results < wanted; i++) {
			poll(&fd, 1, 10);
			if (i == 3000 || divert_turn(divert, &err))
				one_target_fail("no answer", err.text);
		}
	} while (last.rc == -EAGAIN);
	if (last.rc)
		one_target_fail("divert_put", why);
}

static void tell_of_children(const struct one_target *target)
{
	for (int i = 0; i < CHILDREN; i++) {
		for (int k = 0; !families[i].grandchild && k < 30000; k++)
			usleep(1000);
		divert_forked(divert, target->pid, families[i].child);
		divert_forked(divert, families[i].child, families[i].grandchild);
	}
	for (int i = 0; i < ENDED; i++) {
		divert_forked(divert, target->pid, NOBODY + i);
		if (i % 100 == 0) /* it is not held up here: see `held` */
			usleep(1000);
	}
	printf("%lu of %d found no room\n", (unsigned long)divert_refused_children(divert), ENDED);
}

static bool is_put_back(const struct one_target *target, pid_t pid)
{
	struct one_target child = *target;

	child.pid = pid;
	return one_target_is_as_in_file(&child);
}

int main(int argc, char **argv)
{
	struct one_target target, other;
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		one_target_fail("usage", "forks LIBRARY");
	families = mmap(NULL, CHILDREN * sizeof(*families), PROT_READ | PROT_WRITE,
	                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (divert_new(on_done, NULL, &divert, &err))
		one_target_fail("divert_new", err.text);
	one_target_start(&target, argv[1], run);
	one_target_start(&other, argv[1], NULL);
	put(&target);
	target.shared->go = 1;
	tell_of_children(&target);
	put(&other);
	for (int i = 0; i < CHILDREN; i++)
		if (is_put_back(&target, families[i].grandchild))
			one_target_fail("a child", "has no jump, so nothing is tested");
	divert_free(divert);
	for (int k = 0, left = 1; left; k++, usleep(10000)) {
		left = !is_put_back(&target, target.pid) + !is_put_back(&other, other.pid);
		for (int i = 0; i < CHILDREN; i++)
			left += !is_put_back(&target, families[i].child) +
			        !is_put_back(&target, families[i].grandchild);
		if (left && k == 2000) {
			printf("%d are left\n", left);
			one_target_fail("the end", "not all was put back");
		}
	}
	one_target_end(&other);
	one_target_end(&target);
	return 0;
}
