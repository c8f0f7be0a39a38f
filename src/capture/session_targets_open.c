// SPDX-License-Identifier: MIT
/* What is traced: a command, or processes that run, and the libraries that they will map. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "capture/session.h"
#include "capture/who_feed.h"
#include "probe/beforehand.h"

#define PASSES_MAX 4 /* over /proc, while processes that match are born */

/* Runs on the holding thread while a thread of the command waits. */
static void look_held(void *data, pid_t pid, bool begins)
{
	struct capture *c = data;
	struct look_result found = { 0 };
	struct wire_file file;
	bool told = programs_held_for(c->programs, pid, &file);

	if (session_keeps_off(c, pid))
		return;
	if (c->who && begins)
		who_feed_held(c->who, pid, capture_now_ns());
	if (c->sampler && !c->options.stacks->if_any)
		sampler_held(c->sampler, pid);
	if (modules_look_held(c->modules, pid, told ? &file : NULL, &found, NULL) == 0 &&
	    found.modules)
		capture_found(c, pid);
}

static enum held ask_held(void *data, pid_t tid)
{
	struct capture *c = data;

	return programs_thread_held(c->programs, tid);
}

static bool is_valgrind(const char *program)
{
	const char *slash = strrchr(program, '/');

	return !strcmp(slash ? slash + 1 : program, "valgrind");
}

static int open_command(struct capture *c, struct err *err)
{
	struct command *command = &c->options.target.command;
	uint32_t flags = c->options.target.follow ? TARGET_FOLLOW : 0;
	int r;

	if (is_valgrind(command->argv[0]))
		return err_set(err, EINVAL,
		               "what runs under valgrind cannot be traced: it takes the probes' "
		               "breakpoints for the program's own and ends it (SIGTRAP); trace the "
		               "program without it");
	command->follow = c->options.target.follow;
	/* without mmap events a hold has nothing to be told by */
	command->hold = command->hold && c->mmap_seen;
	session_environment(c, command);
	r = hold_prepare(command, look_held, ask_held, c, &c->hold, &c->command_pid, &c->held, err);
	if (r)
		return r;
	if (command->hold && !c->held)
		capture_notice(c,
		               "ptrace is refused, so the command is not held while libraries are "
		               "hooked: first calls may be missed");
	return programs_target_add(c->programs, c->command_pid,
	                           flags | (c->held ? TARGET_HOLD : 0));
}

/*
 * By name, until nobody new is found: a process that is born while /proc is read may be overlooked,
 * and its parent, which is found, was no target yet.
 */
static int find_running(struct capture *c, struct err *err)
{
	size_t before;
	int r, passes = 0;

	do {
		before = c->n_target_pids;
		r = target_each(&c->options.target, capture_target_runs, c, err);
	} while (!r && c->options.target.kind == TARGET_NAME && c->n_target_pids > before &&
	         ++passes < PASSES_MAX);
	return r;
}

static void expect_file(void *data, int fd, const char *path)
{
	struct capture *c = data;
	struct err err = { 0 };

	modules_expect(c->modules, fd, path, &err);
}

/* Named by the user, so what cannot be hooked is an error. */
static int expect_library(struct capture *c, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return err_set(err, errno, "--library: cannot open '%s': %s", path,
		               strerror(errno));
	r = modules_expect(c->modules, fd, path, err);
	if (r == 1)
		return err_set(err, ENOEXEC,
		               "--library: '%s' holds no CUDA functions (libcuda.so.1, libcudart "
		               "or a program with cudart linked in)",
		               path);
	return r;
}

int session_expect_libraries(struct capture *c, struct err *err)
{
	const struct target *target = &c->options.target;
	int r = 0;

	for (size_t i = 0; i < target->n_libraries && !r; i++)
		r = expect_library(c, target->libraries[i], err);
	if (!r && target->kind != TARGET_COMMAND && target->kind != TARGET_PIDS)
		beforehand_each(target->kind == TARGET_NAME, expect_file, c);
	return r;
}

int session_open_targets(struct capture *c, struct err *err)
{
	int folder, r;

	if (c->options.target.kind == TARGET_COMMAND)
		return open_command(c, err);
	if (c->options.target.kind == TARGET_CGROUP) {
		folder = target_cgroup_open(&c->options.target, err);
		if (folder < 0)
			return folder;
		r = programs_cgroup_set(c->programs, folder);
		close(folder);
		if (r)
			return err_set(err, r, "--cgroup: %s", strerror(-r));
	}
	return find_running(c, err);
}
