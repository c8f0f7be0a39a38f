// SPDX-License-Identifier: MIT
/* Of a session: which processes are targets, and what was found in them. */
#include "capture/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/later.h"
#include "base/process.h"
#include "base/vec.h"
#include "capture/who_feed.h"
#include "probe/libraries.h"
#include "probe/fold.h"

/* ---- session targets open ------------------------------------------------------------------ */

/* What is traced: a command, or processes that run, and the libraries that they will map. */

#define PASSES_MAX 4 /* over /proc, while processes that match are born */

static void capture_found(struct capture *c, pid_t pid);

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

static int capture_target_runs(void *capture, pid_t pid);

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
		c->n_left_out = 0; /* the same ones again */
		r = target_each(&c->options.target, capture_target_runs, c, err);
	} while (!r && c->options.target.kind == TARGET_NAME && c->n_target_pids > before &&
	         ++passes < PASSES_MAX);
	__atomic_fetch_add(&programs_state(c->programs)->lost[LOST_TARGETS_FULL], c->n_left_out,
	                   __ATOMIC_RELAXED);
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

/* ---- session targets ----------------------------------------------------------------------- */

#define LOOK_NS  100000000  /* at /proc, where mappings are not reported */
#define COUNT_NS 1000000000 /* how often targets are counted */
#define ALL_NS   1000000000 /* at /proc of all processes there are, or those of a cgroup */
#define SWEEP_NS 5000000000 /* at those that are summed up: has one ended unnoticed? */

static void target_add(struct capture *c, pid_t pid)
{
	c->target_pids = vec_room(c->target_pids, c->n_target_pids, sizeof(*c->target_pids));
	c->target_pids[c->n_target_pids++] = pid;
}

static void remove_pid(pid_t *pids, size_t *n, pid_t pid)
{
	for (size_t i = 0; i < *n; i++) {
		if (pids[i] == pid) {
			pids[i] = pids[--*n];
			return;
		}
	}
}

static void target_remove(struct capture *c, pid_t pid)
{
	remove_pid(c->target_pids, &c->n_target_pids, pid);
	remove_pid(c->ended_pids, &c->n_ended_pids, pid);
}

static bool is_target(const struct capture *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_target_pids; i++) {
		if (c->target_pids[i] == pid)
			return true;
	}
	return false;
}

#define TOLD_MAX 64 /* processes, each by itself; one more sentence for all others */

/* Whether a process is to be told of; false if it was, or is one of those beyond. */
static bool tell_of(struct told_processes *told, pid_t pid, bool *first_beyond)
{
	*first_beyond = false;
	for (size_t i = 0; i < told->n; i++) {
		if (told->pids[i] == pid)
			return false;
	}
	if (told->n == TOLD_MAX) { /* whoever starts thousands */
		*first_beyond = !told->more;
		told->more = true;
		return false;
	}
	told->pids = vec_room(told->pids, told->n, sizeof(*told->pids));
	told->pids[told->n++] = pid;
	return true;
}

static void say_seccomp(struct capture *c, pid_t pid)
{
	bool beyond, tell = tell_of(&c->told_seccomp, pid, &beyond);

	if (!tell && !beyond)
		return;
	modules_lock(c->modules);
	if (beyond)
		modules_miss(c->modules, MISS_ENTRY_ONLY, NULL, NULL, 0,
		             "more processes than these are under seccomp: no durations and "
		             "results of theirs");
	if (tell)
		modules_miss(c->modules, MISS_ENTRY_ONLY, NULL, NULL, pid,
		             "the process is under seccomp and this kernel's return probes would "
		             "kill it: no durations and results");
	modules_unlock(c->modules);
	if (tell)
		capture_notice(c,
		               "process %d is under seccomp: only entries are hooked for it (no "
		               "durations and results), since this kernel's return probes would "
		               "kill it",
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
	    !(programs_state(c->programs)->mode[record->hook & (WIRE_HOOKS_MAX - 1)] &
	      HOOK_GIVEN_UP))
		say_seccomp(c, record->tgid);
}

/* A process that has CUDA was looked into; on any thread. */
static void capture_found(struct capture *c, pid_t pid)
{
	atomic_store(&c->cuda_seen, true);
}

bool session_keeps_off(void *data, pid_t pid)
{
	struct capture *c = data;
	bool beyond, tell;

	if (!target_is_valgrind(pid))
		return false;
	modules_lock(c->modules);
	tell = tell_of(&c->told_valgrind, pid, &beyond);
	if (beyond)
		modules_miss(c->modules, MISS_NOT_HOOKED, NULL, NULL, 0,
		             "more processes than these run under valgrind, which breakpoints "
		             "would end");
	if (tell)
		modules_miss(c->modules, MISS_NOT_HOOKED, NULL, NULL, pid,
		             "the process runs under valgrind, which breakpoints would end");
	modules_unlock(c->modules);
	if (tell)
		capture_notice(c, TARGET_VALGRIND, pid);
	return true;
}

/*
 * Found by a look, and not by a file that the programs know: so they are told that it is one whose
 * end they have to tell of.
 */
static void uses_cuda(struct capture *c, pid_t pid)
{
	if (!c->cuda_only || is_target(c, pid))
		return;
	fold_process_born(c->programs, (uint32_t)pid, capture_now_ns());
	target_add(c, pid); /* one that ended before that is found again by drop_dead() */
	if (c->sampler)
		sampler_expect(c->sampler, pid);
}

/* Processes of such a program may come and go without an end. */
static void say_foreign(struct capture *c, pid_t pid)
{
	bool beyond, tell = tell_of(&c->told_foreign, pid, &beyond);

	if (tell)
		capture_notice(c,
		               "process %d runs a program of another architecture (32-bit?): "
		               "cuscope traces 64-bit programs of this machine only",
		               pid);
	if (beyond)
		capture_notice(c, "more processes than these run programs of another architecture");
}

static void on_found(struct capture *c, pid_t pid, const struct look_result *found)
{
	if (found->modules)
		capture_found(c, pid);
	if (found->modules)
		uses_cuda(c, pid);
	if (found->foreign)
		say_foreign(c, pid);
}

static void look(struct capture *c, pid_t pid, enum look how, uint64_t since_ns)
{
	struct look_result found;

	if (modules_look(c->modules, pid, how, since_ns, &found, NULL))
		return; /* gone in the meantime */
	on_found(c, pid, &found);
	if (found.driver && how == LOOK_RUNNING)
		session_runs(c, pid);
	if (found.driver && how == LOOK_RUNNING && c->driver_events)
		driver_events_runs(c->driver_events, pid);
}

/* A process that has become a target: what it had mapped was nobody's business before. */
static void look_joined(struct capture *c, pid_t pid, uint64_t since_ns)
{
	struct look_result found;

	if (modules_look_joined(c->modules, pid, since_ns, &found, NULL) == 0)
		on_found(c, pid, &found);
}

/* Takes a process that already runs for a target; for target_each. */
static int capture_target_runs(void *data, pid_t pid)
{
	struct capture *c = data;
	enum target_kind kind = c->options.target.kind;
	uint32_t flags = c->options.target.follow ? TARGET_FOLLOW : 0;
	int r = 0;

	if (end_is_near())
		return -EINTR;
	if (is_target(c, pid))
		return 0;
	if (kind == TARGET_NAME && !programs_target_found(c->programs, pid, flags)) {
		c->n_left_out++;
		return 0;
	}
	if (kind == TARGET_PIDS)
		r = programs_target_add(c->programs, pid, flags);
	if (kind == TARGET_PIDS || kind == TARGET_NAME)
		target_add(c, pid);
	if (process_is_over(pid)) { /* its end was seen before this: its pid may be used again */
		programs_target_remove(c->programs, pid);
		target_remove(c, pid);
		return r;
	}
	if (c->sampler && !c->cuda_only)
		sampler_expect(c->sampler, pid);
	check_seccomp(c, pid);
	look(c, pid, LOOK_RUNNING, 0);
	return r;
}

/* Where the kernel reports mappings, what is late is known by them. */
static enum look look_late(const struct capture *c)
{
	return c->mmap_seen ? LOOK_AGAIN : LOOK_LATE;
}

/* The programs have made it a target by then, if its name does. */
static void on_exec(struct capture *c, const struct wire_process *record)
{
	pid_t pid = (pid_t)record->head.tgid;

	if (record->named && !is_target(c, pid))
		target_add(c, pid);
	if (!c->held)
		look(c, pid, look_late(c), record->head.time_ns);
	check_seccomp(c, pid);
}

static void on_joined(struct capture *c, const struct wire_head *record)
{
	pid_t pid = (pid_t)record->tgid;

	if (record->type == WIRE_NAMED && !is_target(c, pid))
		target_add(c, pid);
	check_seccomp(c, pid);
	look_joined(c, pid, record->time_ns);
}

static void on_map(struct capture *c, const struct wire_map *map)
{
	struct look_result found;

	modules_mapped(c->modules, map, &found);
	if (found.told && c->inside)
		inside_loaded(c->inside, (pid_t)map->head.tgid);
	on_found(c, (pid_t)map->head.tgid, &found);
}

static void before_stream(struct capture *c, const struct wire_head *record)
{
	switch (record->type) {
	case WIRE_MAP:
		on_map(c, (const struct wire_map *)record);
		break;
	case WIRE_NAMED:
	case WIRE_MOVED:
		on_joined(c, record);
		break;
	case WIRE_EXEC:
		on_exec(c, (const struct wire_process *)record);
		break;
	case WIRE_FORK:
		if (c->options.target.kind == TARGET_PIDS ||
		    c->options.target.kind == TARGET_NAME || !c->mmap_seen)
			target_add(c, ((const struct wire_process *)record)->other);
		break;
	case WIRE_EXIT:
		target_remove(c, record->tgid);
		break;
	}
}

/*
 * The end of a process was lost in a full ring. Nothing else would ever end it: its memory would be
 * live, and it would be in the way, for as long as the watch goes on.
 */
static void end_unnoticed(struct capture *c, uint32_t pid, uint64_t time_ns)
{
	const struct wire_process record = {
		.head = { .type = WIRE_EXIT, .tgid = pid, .tid = pid, .time_ns = time_ns }
	};

	capture_record(c, &record.head);
}

/* A first call by a number that another one has. */
static void end_the_one_before(struct capture *c, const struct wire_head *record)
{
	uint64_t born_ns = ((const struct wire_process *)record)->born_ns;

	if (c->cuda_only && record->type == WIRE_THREAD &&
	    watcher_runs_before(c->watcher, record->tgid, born_ns))
		end_unnoticed(c, record->tgid, born_ns - 1);
}

static void end_if_gone(void *data, uint32_t pid)
{
	struct capture *c = data;

	if (kill((pid_t)pid, 0) && errno == ESRCH)
		end_unnoticed(c, pid, order_passed_ns(c->order));
}

static void sweep(struct capture *c, uint64_t now)
{
	if (!c->cuda_only || now - c->swept_ns < SWEEP_NS)
		return;
	c->swept_ns = now;
	watcher_each_running(c->watcher, end_if_gone, c);
}

void session_before_record(struct capture *c, const struct wire_head *record)
{
	end_the_one_before(c, record);
	before_stream(c, record);
	note_no_return(c, record);
}

/*
 * Their records have all been read by now. Where the number is another's already, the programs took
 * away what they knew when the first one ended; what they know now is of the other.
 */
static void forget_ended(struct capture *c)
{
	while (c->n_ended_pids) {
		pid_t pid = c->ended_pids[--c->n_ended_pids];

		if (process_is_over(pid))
			fold_process_over(c->programs, (uint32_t)pid);
		if (c->sampler)
			sampler_forget(c->sampler, pid);
	}
}

static void note_ended(struct capture *c, pid_t pid)
{
	if (!c->cuda_only)
		return;
	c->ended_pids = vec_room(c->ended_pids, c->n_ended_pids, sizeof(*c->ended_pids));
	c->ended_pids[c->n_ended_pids++] = pid;
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
	forget_ended(c);
	for (size_t i = c->n_target_pids; i-- > 0;) {
		pid_t pid = c->target_pids[i];

		if (!process_is_over(pid))
			continue;
		c->target_pids[i] = c->target_pids[--c->n_target_pids];
		note_ended(c, pid);
	}
}

static int look_unreported(void *data, pid_t pid)
{
	struct capture *c = data;

	look(c, pid, LOOK_LATE, c->looked_ns ? c->looked_ns : c->begin_ns);
	return 0;
}

/* Where the kernel does not report mappings: targets' maps are read again and again. */
static void look_where_unreported(struct capture *c, uint64_t now)
{
	bool all = c->options.target.kind == TARGET_ALL || c->options.target.kind == TARGET_CGROUP;

	if (c->mmap_seen || now - c->looked_ns < (all ? ALL_NS : LOOK_NS))
		return;
	if (all) /* a folder of /proc or of the cgroup that is gone is no reason to end */
		target_each(&c->options.target, look_unreported, c, NULL);
	for (size_t i = 0; i < c->n_target_pids; i++)
		look(c, c->target_pids[i], LOOK_LATE, c->looked_ns ? c->looked_ns : now);
	if (c->command_pid)
		look(c, c->command_pid, LOOK_LATE, c->looked_ns ? c->looked_ns : now);
	c->looked_ns = now;
}

static void name_number(void *data, uint16_t id)
{
	struct capture *c = data;

	pipeline_function(c->pipeline, id);
}

static void look_for_refused(void *data, pid_t pid)
{
	look(data, pid, LOOK_LATE, capture_now_ns());
}

void session_let_go(struct capture *c, uint64_t now)
{
	const struct modules_gone gone = { name_number, look_for_refused, c };

	modules_let_go(c->modules, now, &gone);
}

void session_look_again(struct capture *c, uint64_t now)
{
	look_where_unreported(c, now);
	drop_dead(c, now);
	sweep(c, now);
	session_hook_kernel_again(c, now);
	if (c->wakers)
		wakers_turn(c->wakers, now);
}
