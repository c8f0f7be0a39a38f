// SPDX-License-Identifier: MIT
/*
 * attach PID LIBRARY FUNCTION [LIMIT_MS [TIMES [KILL_US [OLDER]]]]
 *
 * Injects, and says for each time "ok STOPPED_US ANSWER", with what came through the socket, or
 * "error CODE SENTENCE". Ends with the number of failures, at most 100. With KILL_US the process
 * that attaches is killed at a random moment within that time. OLDER: one is meant that began so
 * many ticks before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/inject.h"
#include "base/process.h"

static void answer_of(int socket, char *answer, size_t size)
{
	struct pollfd fd = { .fd = socket, .events = POLLIN };
	ssize_t n = poll(&fd, 1, 5000) == 1 ? recv(socket, answer, size - 1, 0) : -1;

	answer[n > 0 ? n : 0] = '\0';
}

/* Others may attach on this machine at the same time: theirs are other programs. */
static bool is_ours(pid_t pid)
{
	char path[64], theirs[4096], ours[4096];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/exe", ours, sizeof(ours));
	return n > 0 && n == m && memcmp(theirs, ours, (size_t)n) == 0;
}

/* Pids are given in turn: it is among the youngest. 0 when it has ended, or has no name yet. */
static pid_t find_attacher(void)
{
	char path[64], comm[32];
	int youngest = 0;
	FILE *file = fopen("/proc/loadavg", "re");

	if (file && fscanf(file, "%*f %*f %*f %*s %d", &youngest) != 1)
		youngest = 0;
	if (file)
		fclose(file);
	for (int pid = youngest; pid > youngest - 30 && pid > 0; pid--) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file = fopen(path, "re");
		comm[0] = '\0';
		if (file && !fgets(comm, sizeof(comm), file))
			comm[0] = '\0';
		if (file)
			fclose(file);
		if (strcmp(comm, "cuscope-attach\n") == 0 && is_ours(pid))
			return pid;
	}
	return 0;
}

static void kill_attacher(unsigned within_us)
{
	pid_t pid = 0;

	for (int i = 0; i < 50 && !pid; i++)
		pid = find_attacher();
	usleep((unsigned)rand() % within_us);
	if (pid)
		kill(pid, SIGKILL);
}

static int once(const struct inject_options *options, unsigned kill_us)
{
	struct inject_result result;
	struct inject *inject;
	struct err err = { 0 };
	char answer[256];
	int rc = inject_begin(options, &inject, &err);

	if (!rc) {
		struct pollfd fd = { .fd = inject_fd(inject), .events = POLLIN };

		if (kill_us)
			kill_attacher(kill_us);
		poll(&fd, 1, -1);
		rc = inject_result(inject, &result, &err);
		inject_free(inject);
	}
	if (rc) {
		printf("error %d %s\n", rc, err.text);
	} else {
		answer_of(result.socket, answer, sizeof(answer));
		printf("ok %.1f %s\n", (double)result.stopped_ns / 1e3, answer);
		close(result.socket);
	}
	fflush(stdout);
	return rc != 0;
}

int main(int argc, char **argv)
{
	struct inject_options options = { .name = "cuscope-test" };
	int times = argc > 5 ? atoi(argv[5]) : 1, failures = 0, fd;
	unsigned kill_us = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
	struct stat st;

	srand((unsigned)getpid());
	if (argc < 4)
		return 101;
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return 102;
	options.pid = atoi(argv[1]);
	if (argc > 7)
		options.start_time = process_start_time(options.pid) - strtoul(argv[7], NULL, 10);
	options.bytes = (size_t)st.st_size;
	options.library = mmap(NULL, options.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	options.function = argv[3];
	options.limit_ns = (argc > 4 ? (uint64_t)atoi(argv[4]) : 5000) * 1000000u;
	for (int i = 0; i < times; i++)
		failures += once(&options, kill_us);
	return failures < 100 ? failures : 100;
}
