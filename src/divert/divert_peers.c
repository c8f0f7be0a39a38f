// SPDX-License-Identifier: MIT
#include "divert/divert_peers.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "divert/divert_inside.h"
#include "divert/divert_stop.h"

#define NEW_MOST   1024 /* a microsecond each, two where there is one, while threads are stopped */
#define SIZE_SLACK 64   /* pages */

/* Pages that a process or thread has mapped: the kernel tells that even of one that executes a
 * program just now. 0: it has none. */
static uint64_t mapped_pages(pid_t tid)
{
	char path[32], text[32];

	snprintf(path, sizeof(path), "/proc/%d/statm", tid);
	file_line(path, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

/* A thread of it that has memory: a first thread that has ended has none. 0: it has none at all. */
static pid_t thread_with_memory(pid_t pid)
{
	DIR *threads;
	pid_t tid;

	if (mapped_pages(pid))
		return pid;
	threads = process_list(pid);
	while ((tid = process_next(threads)) && !mapped_pages(tid))
		;
	process_list_end(&threads);
	return tid;
}

/*
 * Whether a thread has the memory of another one, of so many pages. kcmp waits for an exec that is
 * under way in either, which anybody can hold up for good. What such a process has are the
 * arguments of its new program: by its size it is not asked. What the same memory grew by between
 * two looks is little.
 */
static bool has_memory(pid_t tid, uint64_t pages, pid_t other)
{
	uint64_t slack = pages / 8 + SIZE_SLACK, others = mapped_pages(other);

	return others + slack >= pages && others <= pages + slack &&
	       syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0) == 0;
}

static bool kernel_compares(void)
{
	return syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) == 0;
}

/* The last pid, of a process or a thread, that the system has given. 0: it does not say. */
static pid_t last_pid(void)
{
	char line[128];
	pid_t last = 0;

	file_line("/proc/loadavg", line, sizeof(line));
	return sscanf(line, "%*s %*s %*s %*s %d", &last) == 1 ? last : 0;
}

static void look_at_all(struct peers *peers, pid_t tid, DIR *processes)
{
	uint64_t pages = mapped_pages(tid);
	pid_t other;

	while (peers->count < PEERS_MAX && (other = process_next(processes))) {
		pid_t shows = other != peers->pid ? thread_with_memory(other) : 0;

		if (!shows || !has_memory(tid, pages, shows))
			continue;
		peers->tids[peers->count] = shows;
		peers->pids[peers->count++] = other;
	}
}

void peers_find(struct peers *peers, pid_t pid)
{
	/* one that has no memory any more would be like all that have none: threads of the kernel
	 */
	pid_t tid = thread_with_memory(pid);
	AT_END(process_list_end) DIR *processes;

	*peers = (struct peers){ .pid = pid, .last = last_pid() };
	peers->known = tid && kernel_compares();
	processes = peers->known ? process_list(0) : NULL;
	look_at_all(peers, tid, processes);
}

static bool is_stopped(const struct stop *stop, pid_t tid)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->threads[i].tid == tid)
			return true;
	return false;
}

/* A peer that was stopped may be another process by now, which has nothing to do with it. */
static bool are_peers_still(const struct peers *peers, pid_t tid, uint64_t pages)
{
	for (size_t i = 0; i < peers->count; i++)
		if (mapped_pages(peers->tids[i]) && !has_memory(tid, pages, peers->tids[i]))
			return false;
	return true;
}

enum peers_since peers_since(const struct peers *peers, const struct stop *stop)
{
	pid_t last, tid = stop_one(stop);
	uint64_t pages;

	if (!peers->known || !tid)
		return PEERS_NONE;
	pages = mapped_pages(tid);
	if (!are_peers_still(peers, tid, pages))
		return PEERS_NEW;
	last = last_pid();
	if (!last || last < peers->last || last - peers->last > NEW_MOST)
		return PEERS_MANY;
	for (pid_t other = peers->last + 1; other <= last; other++)
		if (has_memory(tid, pages, other) && !is_stopped(stop, other))
			return PEERS_NEW;
	return PEERS_NONE;
}

#ifdef __x86_64__

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "base/xalloc.h"

#define THREADS 4 /* with the caller's own */
#define PART    16u
#define CLOSED  (1u << 31)

struct divert_writers {
	sem_t go;
	unsigned helpers;
	struct divert_target *target;
	divert_write_fn write;
	atomic_uint next; /* entry; CLOSED: there is nothing to do */
	atomic_uint done;
	atomic_uint busy; /* helpers that may be at it */
};

static void write_some(struct divert_writers *writers)
{
	for (;;) {
		uint32_t first = atomic_fetch_add(&writers->next, PART);
		struct divert_target *target;
		uint32_t end;

		if (first >= CLOSED || first >= writers->target->count)
			return;
		target = writers->target;
		end = first + PART < target->count ? first + PART : target->count;
		for (uint32_t i = first; i < end; i++)
			target->entries[i].written = writers->write(target, &target->entries[i]);
		atomic_fetch_add(&writers->done, end - first);
	}
}

static void *helper(void *arg)
{
	struct divert_writers *writers = arg;

	for (;;)
		if (!sem_wait(&writers->go)) {
			atomic_fetch_add(&writers->busy, 1);
			write_some(writers);
			atomic_fetch_sub(&writers->busy, 1);
		}
	return NULL;
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

struct divert_writers *divert_writers_new(void)
{
	struct divert_writers *writers = xcalloc(1, sizeof(*writers));
	unsigned most = processors();
	pthread_t thread;

	sem_init(&writers->go, 0, 0);
	atomic_init(&writers->next, CLOSED);
	while (writers->helpers + 1 < most && writers->helpers + 1 < THREADS &&
	       !pthread_create(&thread, NULL, helper, writers))
		writers->helpers++;
	return writers;
}

unsigned divert_writers_count(const struct divert_writers *writers)
{
	return writers->helpers + 1;
}

void divert_writers_run(struct divert_writers *writers, struct divert_target *target,
                        divert_write_fn write)
{
	const struct timespec nap = { .tv_nsec = 10000 };

	writers->target = target;
	writers->write = write;
	atomic_store(&writers->done, 0);
	atomic_store(&writers->next, 0);
	for (unsigned i = 0; i < writers->helpers; i++)
		sem_post(&writers->go);
	write_some(writers);
	while (atomic_load(&writers->done) < target->count)
		nanosleep(&nap, NULL); /* another thread has a part */
	atomic_store(&writers->next, CLOSED);
	while (atomic_load(&writers->busy))
		nanosleep(&nap, NULL); /* one that came late is not to meet the next target */
	for (uint32_t i = 0; i < target->count; i++)
		if (!target->entries[i].written)
			target->entries[i].written = write(target, &target->entries[i]);
}

#endif
