// SPDX-License-Identifier: MIT
/*
 * execs FILE: executes another program, with FILE open, which is closed by that. Of a file system
 * whose server does not answer then, the exec is never over.
 *
 * execs FILE wakers N: a process that uses CUDA and waits for N others of its user, one after the
 * other, each of which does the same some milliseconds after it was waited for. They have so many
 * groups that it takes as long to tell who they are.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define USER        1234
#define GROUPS      65000
#define WAKERS_MOST 64
#define WORK_MS     15 /* that is waited for each */
#define FIRST_MS    50 /* until its exec, and of the next ones ever less */
#define LESS_MS     2
#define BETWEEN_MS  400

struct other {
	pid_t pid;
	int socket;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void pass(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void become(size_t n_groups)
{
	gid_t *groups = calloc(n_groups + 1, sizeof(*groups));

	for (size_t i = 0; i < n_groups; i++)
		groups[i] = (gid_t)(4000000000 + i);
	if (setgroups(n_groups, groups) || setresgid(USER, USER, USER) ||
	    setresuid(USER, USER, USER) || prctl(PR_SET_DUMPABLE, 1))
		fail("user");
	free(groups);
}

static void executes(const char *file)
{
	if (open(file, O_RDONLY | O_CLOEXEC) < 0)
		fail(file);
}

static void sleeps(void)
{
	execl("/bin/sleep", "sleep", "100", (char *)NULL);
	fail("execs");
}

static struct other start(const char *file, long ms)
{
	struct other other;
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		fail("socketpair");
	other.pid = fork();
	other.socket = pair[0];
	if (other.pid) {
		close(pair[1]);
		return other;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	become(GROUPS);
	executes(file);
	if (read(pair[1], &byte, 1) != 1)
		exit(1);
	pass(WORK_MS);
	if (write(pair[1], &byte, 1) != 1)
		exit(1);
	pass(ms);
	sleeps();
	return other;
}

static void wait_for_others(const char *file, long n)
{
	struct other others[WAKERS_MOST];
	int (*init)(unsigned flags);
	void *driver;
	char byte = 0;

	for (long i = 0; i < n; i++)
		others[i] = start(file, FIRST_MS > i * LESS_MS ? FIRST_MS - i * LESS_MS : 0);
	become(0);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	init = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
	if (!init || init(0))
		fail("libcuda");
	printf("ready\n");
	fflush(stdout);
	getchar();
	for (long i = 0; i < n; i++) {
		if (init(0) || write(others[i].socket, &byte, 1) != 1 ||
		    read(others[i].socket, &byte, 1) != 1)
			fail("another one");
		pass(BETWEEN_MS);
		kill(others[i].pid, SIGKILL);
	}
}

int main(int argc, char **argv)
{
	long n = argc == 4 ? atol(argv[3]) : 0;

	if ((argc != 2 && argc != 4) || n < 0 || n > WAKERS_MOST)
		return 2;
	if (argc == 4) {
		wait_for_others(argv[1], n);
		return 0;
	}
	executes(argv[1]);
	sleeps();
}
