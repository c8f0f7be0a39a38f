// SPDX-License-Identifier: MIT
/* Of session.h: processes that are no targets, but that targets wait for. */
#include "capture/session.h"

#include <unistd.h>

#include "base/process.h"
#include "capture/proc.h"
#include "capture/wakers.h"

/* A thread of the kernel has no code of a user; what cuscope has started is not the target's. */
static bool is_nobodys(pid_t pid)
{
	struct process_stat stat;

	return pid <= 1 || pid == getpid() || !process_stat_read(pid, 0, &stat) ||
	       target_is_of_kernel(pid) || stat.parent == getpid();
}

bool session_is_joined(const struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_joined; i++)
		if (c->joined[i] == pid)
			return true;
	return false;
}

void session_unjoin(struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_joined; i++)
		if (c->joined[i] == pid)
			c->joined[i] = c->joined[--c->n_joined];
}

/* Its stacks and waits are told of, and calls of libraries that are hooked; it is not entered. */
static void join(struct capture *c, pid_t pid)
{
	char comm[16];

	if (c->n_joined == JOINED_MAX) {
		if (!c->told_unjoined)
			capture_notice(c,
			               "targets wait for more processes than the %d that are "
			               "sampled, too: of others it is not known what they do",
			               JOINED_MAX);
		c->told_unjoined = true;
		return;
	}
	if (programs_target_add(c->programs, pid, 0))
		return;
	c->joined[c->n_joined++] = pid;
	sampler_join(c->sampler, pid);
	proc_comm(pid, comm, "?");
	capture_notice(c, "process %d (%.16s) is sampled, too: targets wait for it", pid, comm);
}

void session_woken(void *data, uint32_t tid, uint64_t blocked_ns)
{
	struct capture *c = data;
	pid_t pid;

	if (!wakers_note(c->wakers, tid, blocked_ns))
		return;
	pid = target_process_of((pid_t)tid);
	if (pid > 0 && !is_nobodys(pid) && !programs_target_has(c->programs, pid))
		join(c, pid);
}
