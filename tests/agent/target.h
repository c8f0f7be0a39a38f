/* SPDX-License-Identifier: MIT */
/* A program of tests/programs on the simulated driver, as a process that agents go into. */
#ifndef CUSCOPE_TESTS_TARGET_H
#define CUSCOPE_TESTS_TARGET_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/unit.h"

#define SECOND 1000000000ull

/* Where all is that is built: build/tests/agent has the test program. */
static inline const char *build_folder(void)
{
	static char folder[256];

	if (!*folder) {
		assert_true(readlink("/proc/self/exe", folder, sizeof(folder) - 1) > 0);
		for (int i = 0; i < 3; i++)
			*strrchr(folder, '/') = '\0';
	}
	return folder;
}

struct target {
	pid_t pid;
	int input;  /* closed: it is to end */
	int output; /* its own */
	char counts[64];
};

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Runs in the child. `environment`: "NAME=value" ..., NULL; may be NULL. */
static inline void target_exec(const char *program, const char *const *words,
                               char *const *environment, const char *more)
{
	char path[512], libraries[1024];
	char *argv[8] = { path };

	snprintf(path, sizeof(path), "%s/programs/%s", build_folder(), program);
	snprintf(libraries, sizeof(libraries), "%s/simcuda/push:%s/simcuda", build_folder(),
	         build_folder());
	for (int i = 0; i < 6 && words && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	setenv("LD_LIBRARY_PATH", libraries, 1);
	setenv("SIMCUDA_TIME_SCALE", "0", 1);
	for (; environment && *environment; environment++)
		putenv(*environment);
	if (more)
		putenv((char *)more);
	execv(path, argv);
	_exit(127);
}

static inline void target_start(struct target *target, const char *program,
                                const char *const *words, char *const *environment,
                                const char *more)
{
	int input[2], output[2];

	snprintf(target->counts, sizeof(target->counts), "/tmp/cuscope-counts.XXXXXX");
	close(mkstemp(target->counts));
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	target->pid = fork();
	assert_true(target->pid >= 0);
	if (!target->pid) {
		dup2(input[0], 0);
		dup2(output[1], 1);
		setenv("SAMPLE_COUNTS", target->counts, 1);
		target_exec(program, words, environment, more);
	}
	close(input[0]);
	close(output[1]);
	target->input = input[1];
	target->output = output[0];
}

/* It has made its first calls. */
static inline void target_ready(struct target *target)
{
	struct pollfd ready = { .fd = target->output, .events = POLLIN };
	char line[64];

	assert_int_equal(poll(&ready, 1, 20000), 1);
	assert_true(read(target->output, line, sizeof(line)) > 0);
}

static inline void target_let_end(struct target *target)
{
	close(target->input);
	target->input = -1;
}

/* Waits for it; its status as wait(2) gives it. */
static inline int target_end(struct target *target)
{
	uint64_t limit = now_ns() + 20 * SECOND;
	int status = -1;

	if (target->input >= 0)
		target_let_end(target);
	while (waitpid(target->pid, &status, WNOHANG) == 0) {
		if (now_ns() > limit) {
			kill(target->pid, SIGKILL);
			fail_msg("process %d does not end", target->pid);
		}
		usleep(1000);
	}
	close(target->output);
	return status;
}

/* The launches that it counted itself. Only after its end; once. */
static inline size_t target_launches(const struct target *target)
{
	static char text[65536];
	FILE *file = fopen(target->counts, "r");
	size_t bytes = fread(text, 1, sizeof(text) - 1, file), sum = 0;
	char *at, *end;

	fclose(file);
	unlink(target->counts);
	text[bytes] = '\0';
	at = strstr(text, "\"launches\": {");
	assert_non_null(at);
	end = strchr(at, '}');
	while ((at = strstr(at, "\": ")) && at < end) {
		at += 3;
		if (*at != '{')
			sum += strtoul(at, NULL, 10);
	}
	return sum;
}

#endif
