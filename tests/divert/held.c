// SPDX-License-Identifier: MIT
/*
 * held LIBRARY: cuscope-divert does not read its orders for a while. Nobody waits for it, what it
 * is told stays in bounds, and what was ordered to be put back is put back when it goes on.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "divert/divert.h"
#include "one_target.h"

#define FORKS  20000
#define PUTS   8         /* more than may wait of one process */
#define NOBODY (1 << 30) /* beyond any pid */

static struct one_target target;
static struct divert_plan *plans[PUTS];
static int results, taken_back, put;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_done(void *data, const struct divert_result *result)
{
	results++;
	put += result->plan && !result->rc;
	taken_back += !result->plan && !result->rc;
	if (result->rc)
		printf("  %s\n", result->why);
}

/* cuscope-divert is nobody's child, and so comes to whoever reaps such. */
static pid_t find_divert(void)
{
	FILE *children;
	char path[64];
	pid_t pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	children = fopen(path, "re");
	if (!children || fscanf(children, "%d", &pid) != 1)
		one_target_fail("cuscope-divert", "no such child");
	fclose(children);
	return pid;
}

static void await(struct divert *divert, int wanted)
{
	struct pollfd fd = { .fd = divert_fd(divert), .events = POLLIN };
	double until = now_s() + 30;
	struct err err = { 0 };

	while (results < wanted) {
		poll(&fd, 1, 100);
		if (divert_turn(divert, &err) || now_s() > until)
			one_target_fail("no answer", err.text);
	}
}

/* All of it while cuscope-divert is stopped: each would wait 1 s. */
static void order_much(struct divert *divert)
{
	double begin = now_s();
	struct divert_result result;
	struct err err = { 0 };
	struct rusage use;
	int rc = 0;

	for (int i = 0; i < FORKS; i++)
		divert_forked(divert, target.pid, NOBODY + i);
	for (int i = 0; i < PUTS; i++) {
		rc = divert_put(divert, plans[i], target.area, &target.thunk, &err);
		if (rc)
			divert_plan_free(plans[i]);
	}
	if (rc != -EAGAIN)
		one_target_fail("more orders to divert than may wait", err.text);
	printf("  %s\n", err.text);
	if (divert_take_back(divert, target.pid, &err))
		one_target_fail("divert_take_back", err.text);
	if (divert_is_put(divert, plans[0], UINT64_MAX, &result) ||
	    divert_is_taken_back(divert, target.pid, UINT64_MAX))
		one_target_fail("orders", "a cut is known of what is not begun");
	if (now_s() - begin > 30)
		one_target_fail("orders", "they had to wait");
	getrusage(RUSAGE_SELF, &use);
	printf("  %.1f s, %ld MiB\n", now_s() - begin, use.ru_maxrss >> 10);
}

/* Its agent is another one: nobody asks how that went, and its entry is put back. */
static void forget(struct divert *divert)
{
	struct divert_plan *plan = one_target_look(&target, divert);
	struct err err = { 0 };

	for (put = 0; !put;) {
		if (divert_put(divert, plan, target.area, &target.thunk, &err))
			one_target_fail("divert_put", err.text);
		await(divert, results + 1);
	}
	if (one_target_is_as_in_file(&target))
		one_target_fail("divert_put", "nothing was written");
	divert_forget(divert, target.pid);
	for (int i = 0; !one_target_is_as_in_file(&target); i++) {
		if (i == 10000)
			one_target_fail("divert_forget", "the entry still has a jump");
		usleep(1000);
	}
}

static bool area_is_empty(void)
{
	static const uint8_t zeroes[64];
	uint8_t now[sizeof(zeroes)] = { 1 };
	struct iovec to = { now, sizeof(now) };
	struct iovec from = { (void *)(uintptr_t)target.area, sizeof(now) };

	return process_vm_readv(target.pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof(now) &&
	       !memcmp(now, zeroes, sizeof(now));
}

/* It goes on when cuscope is at its end: nothing more is diverted, and what was is put back. */
static void end_with_orders(const char *library, struct divert *divert, pid_t pid)
{
	struct divert_plan *plan;
	struct err err = { 0 };

	one_target_start(&target, library, NULL);
	plan = one_target_look(&target, divert);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	if (divert_put(divert, plan, target.area, &target.thunk, &err))
		one_target_fail("divert_put", err.text);
	if (fork() == 0) {
		usleep(200000);
		kill(pid, SIGCONT);
		_exit(0);
	}
	divert_free(divert);
	waitpid(pid, NULL, 0);
	if (!area_is_empty())
		one_target_fail("the end", "what was ordered was diverted still");
	one_target_end(&target);
}

int main(int argc, char **argv)
{
	struct divert_plan *plan;
	struct divert *divert;
	struct err err = { 0 };
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		one_target_fail("usage", "held LIBRARY");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (divert_new(on_done, NULL, &divert, &err))
		one_target_fail("divert_new", err.text);
	pid = find_divert();
	one_target_start(&target, argv[1], NULL);
	for (int i = 0; i < PUTS; i++)
		plans[i] = one_target_look(&target, divert);
	plan = one_target_look(&target, divert);
	while (!put) {
		if (divert_put(divert, plan, target.area, &target.thunk, &err))
			one_target_fail("divert_put", err.text);
		await(divert, results + 1);
	}
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	order_much(divert);
	kill(pid, SIGCONT);
	for (results = 0; !taken_back;)
		await(divert, results + 1);
	if (!one_target_is_as_in_file(&target))
		one_target_fail("taken back", "the entry still has a jump");
	forget(divert);
	one_target_end(&target);
	end_with_orders(argv[1], divert, pid);
	printf("done\n");
	return 0;
}
