// SPDX-License-Identifier: MIT
/* Of a session: which processes are watched, and what was found in them. */
#include "capture/session.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define LOOK_NS  100000000  /* at /proc, where mappings are not reported */
#define COUNT_NS 1000000000 /* how often watched processes are counted */

static void watched_add(struct capture *c, pid_t pid)
{
	c->watched = xrealloc(c->watched, (c->n_watched + 1) * sizeof(*c->watched));
	c->watched[c->n_watched++] = pid;
}

static bool watched_remove(struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_watched; i++) {
		if (c->watched[i] == pid) {
			c->watched[i] = c->watched[--c->n_watched];
			return true;
		}
	}
	return false;
}

static void say_seccomp(struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_told_seccomp; i++) {
		if (c->told_seccomp[i] == pid)
			return;
	}
	c->told_seccomp =
		xrealloc(c->told_seccomp, (c->n_told_seccomp + 1) * sizeof(*c->told_seccomp));
	c->told_seccomp[c->n_told_seccomp++] = pid;
	modules_lock(c->modules);
	modules_miss(c->modules, MISS_ENTRY_ONLY, NULL, NULL, pid,
	             "the process is under seccomp and this kernel's return probes would kill it: "
	             "no durations and results");
	modules_unlock(c->modules);
	capture_notice(c,
	               "process %d is under seccomp: only entries are hooked for it (no durations "
	               "and results), since this kernel's return probes would kill it",
	               pid);
}

/* Under seccomp a return probe could kill the process on some kernels: entries only. */
static void check_seccomp(struct capture *c, pid_t pid)
{
	if (!c->seccomp_safe && c->options.returns && target_seccomp_mode(pid) == 2)
		say_seccomp(c, pid);
}

/* A process that put itself under seccomp later: its calls come without returns from then on. */
static void note_no_return(struct capture *c, const struct wire_head *record)
{
	if (c->seccomp_safe || !c->options.returns || record->type != WIRE_CALL)
		return;
	if ((record->flags & (WIRE_NO_RETURN | WIRE_NESTED)) == WIRE_NO_RETURN &&
	    !programs_state(c->programs)->mode[record->hook & (WIRE_HOOKS_MAX - 1)])
		say_seccomp(c, record->tgid);
}

void capture_found(struct capture *c, pid_t pid)
{
	const struct watch_options *options = c->options.watch;

	atomic_store(&c->cuda_seen, true);
	if (options && options->look)
		options->look(options->data, (uint32_t)pid);
}

static void look(struct capture *c, pid_t pid, enum look how, uint64_t since_ns)
{
	struct look_result found = { 0 };

	if (modules_look(c->modules, pid, how, since_ns, &found, NULL))
		return; /* gone in the meantime */
	if (found.modules)
		capture_found(c, pid);
	if (found.driver && how == LOOK_RUNNING && c->gpu)
		gpu_running(c->gpu, pid);
	if (found.foreign)
		capture_notice(c,
		               "process %d runs a program of another architecture (32-bit?): "
		               "cuscope traces 64-bit programs of this machine only",
		               pid);
}

static int watch(struct capture *c, pid_t pid, enum look how, uint64_t since_ns)
{
	enum target_kind kind = c->options.target.kind;
	uint32_t flags = c->options.target.follow ? TARGET_FOLLOW : 0;
	int r = 0;

	if (kind == TARGET_PIDS || kind == TARGET_NAME) {
		r = programs_target_add(c->programs, pid, flags);
		watched_add(c, pid);
	}
	check_seccomp(c, pid);
	look(c, pid, how, since_ns);
	return r;
}

int capture_watch_running(void *data, pid_t pid)
{
	return watch(data, pid, LOOK_RUNNING, 0);
}

static void on_exec(struct capture *c, const struct wire_process *record)
{
	pid_t pid = record->head.tgid;
	bool known = c->options.target.kind != TARGET_NAME;

	for (size_t i = 0; i < c->n_watched; i++)
		known |= c->watched[i] == pid;
	if (!known && target_name_matches(&c->options.target, pid))
		watch(c, pid, LOOK_LATE, record->head.time_ns);
	else if (known && !c->held)
		look(c, pid, LOOK_LATE, record->head.time_ns);
	if (known)
		check_seccomp(c, pid);
}

static void before_stream(struct capture *c, const struct wire_head *record)
{
	const struct wire_map *map = (const struct wire_map *)record;

	switch (record->type) {
	case WIRE_MAP:
		if (!map->held)
			look(c, record->tgid, LOOK_LATE, record->time_ns);
		break;
	case WIRE_EXEC:
		on_exec(c, (const struct wire_process *)record);
		break;
	case WIRE_FORK:
		if (c->options.target.kind == TARGET_PIDS || c->options.target.kind == TARGET_NAME)
			watched_add(c, ((const struct wire_process *)record)->other);
		break;
	case WIRE_EXIT:
		watched_remove(c, record->tgid);
		break;
	}
}

void session_before_record(struct capture *c, const struct wire_head *record)
{
	before_stream(c, record);
	note_no_return(c, record);
}

/*
 * A pid that is gone all the same: its end was lost in a full ring, or it came before the pid was
 * made a target.
 */
static void drop_dead(struct capture *c, uint64_t now)
{
	if (now - c->counted_ns < COUNT_NS)
		return;
	c->counted_ns = now;
	for (size_t i = c->n_watched; i-- > 0;) {
		if (target_is_gone(c->watched[i]))
			c->watched[i] = c->watched[--c->n_watched];
	}
}

/* Where the kernel does not report mappings: targets' maps are read again and again. */
static void look_where_unreported(struct capture *c, uint64_t now)
{
	if (c->mmap_seen || now - c->looked_ns < LOOK_NS)
		return;
	for (size_t i = 0; i < c->n_watched; i++)
		look(c, c->watched[i], LOOK_LATE, c->looked_ns ? c->looked_ns : now);
	if (c->command_pid)
		look(c, c->command_pid, LOOK_LATE, c->looked_ns ? c->looked_ns : now);
	c->looked_ns = now;
}

void session_look_again(struct capture *c, uint64_t now)
{
	look_where_unreported(c, now);
	drop_dead(c, now);
}
