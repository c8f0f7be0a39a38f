// SPDX-License-Identifier: MIT
#include "divert/divert_peers.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "divert/divert_stop.h"

#define NEW_MOST 1024 /* a microsecond each, while threads are stopped */

static long compare(pid_t pid, pid_t other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);
}

/* The last pid, of a process or a thread, that the system has given. 0: it does not say. */
static pid_t last_pid(void)
{
	FILE *file = fopen("/proc/loadavg", "re");
	pid_t last = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %*s %*s %*s %d", &last) != 1)
		last = 0;
	fclose(file);
	return last;
}

/* A thread of `other` that shows that it has the memory of `tid`; 0: it has not. A first thread
 * that has ended has none. */
static pid_t same_memory(pid_t tid, pid_t other)
{
	struct process_stat stat;
	long order = compare(tid, other);

	if (order <= 0)
		return order ? 0 : other;
	if (!process_stat_read(other, other, &stat) || stat.state != 'Z')
		return 0;
	other = process_living_thread(other);
	return other && compare(tid, other) == 0 ? other : 0;
}

static void look_at_all(struct peers *peers, pid_t tid, DIR *processes)
{
	const struct dirent *entry;

	while (peers->count < PEERS_MAX && (entry = readdir(processes))) {
		pid_t other = atoi(entry->d_name);
		pid_t shows = other > 0 && other != peers->pid ? same_memory(tid, other) : 0;

		if (!shows)
			continue;
		peers->tids[peers->count] = shows;
		peers->pids[peers->count++] = other;
	}
}

void peers_find(struct peers *peers, pid_t pid)
{
	/* one that has no memory any more would be like all that have none: threads of the kernel
	 */
	pid_t tid = process_living_thread(pid);
	DIR *processes;

	*peers = (struct peers){ .pid = pid, .last = last_pid() };
	peers->known = tid && compare(tid, tid) == 0;
	processes = peers->known ? opendir("/proc") : NULL;
	if (!processes)
		return;
	look_at_all(peers, tid, processes);
	closedir(processes);
}

static bool is_stopped(const struct stop *stop, pid_t tid)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->threads[i].tid == tid)
			return true;
	return false;
}

/* A peer that was stopped may be another process by now, which has nothing to do with it. */
static bool are_peers_still(const struct peers *peers, pid_t tid)
{
	for (size_t i = 0; i < peers->count; i++)
		if (compare(tid, peers->tids[i]) > 0)
			return false;
	return true;
}

enum peers_since peers_since(const struct peers *peers, const struct stop *stop)
{
	pid_t last, tid = stop_one(stop);

	if (!peers->known || !tid)
		return PEERS_NONE;
	if (!are_peers_still(peers, tid))
		return PEERS_NEW;
	last = last_pid();
	if (!last || last < peers->last || last - peers->last > NEW_MOST)
		return PEERS_MANY;
	for (pid_t other = peers->last + 1; other <= last; other++)
		if (compare(tid, other) == 0 && !is_stopped(stop, other))
			return PEERS_NEW;
	return PEERS_NONE;
}
