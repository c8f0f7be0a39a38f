// SPDX-License-Identifier: MIT
#include "capture/stacks/wakers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/person.h"

/* ---- wait of ------------------------------------------------------------------------------- */

/* Later than some headers. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* Of these what they wait for is known by their number alone; of all others by their file. */
static const struct {
	int call;
	enum wait_kind wait;
} of_calls[] = {
	{ SYS_futex, WAIT_LOCK },
	{ SYS_futex_waitv, WAIT_LOCK },
	{ SYS_futex_wait, WAIT_LOCK },
	{ SYS_semop, WAIT_LOCK }, /* these have an identifier, which is no file's */
	{ SYS_semtimedop, WAIT_LOCK },
	{ SYS_msgrcv, WAIT_PIPE },
	{ SYS_msgsnd, WAIT_PIPE },
	{ SYS_mq_timedreceive, WAIT_PIPE }, /* their queue is a regular file */
	{ SYS_mq_timedsend, WAIT_PIPE },
	{ SYS_nanosleep, WAIT_SLEEP },
	{ SYS_clock_nanosleep, WAIT_SLEEP },
	{ SYS_wait4, WAIT_CHILD },
	{ SYS_waitid, WAIT_CHILD },
	{ SYS_epoll_pwait, WAIT_EVENTS },
	{ SYS_epoll_pwait2, WAIT_EVENTS },
	{ SYS_pselect6, WAIT_EVENTS },
	/* a signal of another process, or of a timer */
	{ SYS_rt_sigtimedwait, WAIT_EVENTS },
	{ SYS_rt_sigsuspend, WAIT_EVENTS },
#ifdef SYS_pause
	{ SYS_pause, WAIT_EVENTS },
#endif
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, WAIT_EVENTS },
#endif
#ifdef SYS_select
	{ SYS_select, WAIT_EVENTS },
#endif
	{ SYS_sync, WAIT_DISK },
	{ SYS_io_getevents, WAIT_DISK },
	/* Their first argument is no file. */
	{ SYS_mmap, WAIT_CALL },
	{ SYS_munmap, WAIT_CALL },
	{ SYS_mprotect, WAIT_CALL },
	{ SYS_brk, WAIT_CALL },
	{ SYS_madvise, WAIT_CALL },
	{ SYS_exit_group, WAIT_CALL },
	{ SYS_exit, WAIT_CALL },
	{ SYS_membarrier, WAIT_CALL },
	{ SYS_sched_setaffinity, WAIT_CALL },
	{ SYS_sched_yield, WAIT_CALL },
	{ SYS_kill, WAIT_CALL },
	{ SYS_tgkill, WAIT_CALL },
};

static bool is_poll(int call)
{
#ifdef SYS_poll
	if (call == SYS_poll)
		return true;
#endif
	return call == SYS_ppoll;
}

static enum wait_kind of_file(const struct wire_wait *wait)
{
	if (!(wait->flags & WIRE_WAIT_FILE))
		return is_poll(wait->call) ? WAIT_EVENTS : WAIT_CALL;
	switch (wait->mode & S_IFMT) {
	case S_IFSOCK:
		return WAIT_NETWORK;
	case S_IFIFO:
		return WAIT_PIPE;
	case S_IFCHR:
		return WAIT_DEVICE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return WAIT_DISK;
	}
	return WAIT_EVENTS; /* eventfd, timerfd and the like have no type */
}

/* A page that comes back from where it was swapped out to: the kernel's function says so. */
static bool is_swapped(const struct stack *stack)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *frame = stack->frames[i];

		if (frame->kind != FRAME_KERNEL_MODE)
			return false; /* the kernel's are the innermost */
		if (frame->function && !strcmp(frame->function, "do_swap_page"))
			return true;
	}
	return false;
}

/*
 * By the call and its file. One whose limit was over has waited for that; but one for a lock stays
 * it, since Python's is asked for again and again with a limit.
 */
static enum wait_kind of_call(const struct wire_wait *wait)
{
	enum wait_kind kind = of_file(wait);

	for (size_t i = 0; i < ARRAY_SIZE(of_calls); i++) {
		if (of_calls[i].call == wait->call)
			kind = of_calls[i].wait;
	}
	if (wait->flags & WIRE_WAIT_TIMED_OUT &&
	    (kind == WAIT_EVENTS || kind == WAIT_NETWORK || kind == WAIT_PIPE))
		return WAIT_SLEEP;
	return kind;
}

enum wait_kind wait_of(const struct wire_blocked *record, const struct stack *stack)
{
	const struct wire_wait *wait = &record->wait;

	if (record->how == WIRE_BLOCKED_PREEMPTED || wait->flags & WIRE_WAIT_CPU)
		return WAIT_CPU;
	if (!(wait->flags & WIRE_WAIT_KNOWN))
		return WAIT_UNKNOWN;
	if (wait->flags & WIRE_WAIT_STOPPED)
		return WAIT_STOP;
	if (wait->call < 0)
		return is_swapped(stack) ? WAIT_SWAP : WAIT_FAULT;
	if (is_swapped(stack))
		return WAIT_SWAP;
	if (wait->flags & WIRE_WAIT_IO)
		return WAIT_DISK;
	if (wait->flags & WIRE_WAIT_NO_FILES)
		return WAIT_SLEEP;
	return of_call(wait);
}

/* ---- wakers -------------------------------------------------------------------------------- */

#define SEEN_MAX   64             /* processes that something was waited for */
#define AGAIN_NS   1000000000ull  /* until one is judged once more, or looked at */
#define IDLE_NS    10000000000ull /* not waited for: it makes room */
#define JUDGED_MAX 64             /* in a second: files of /proc are read */
#define TOLD_MAX   4              /* sentences of either kind */

struct waker {
	pid_t pid;    /* 0: none */
	pid_t target; /* that has waited for it, by others or not */
	pid_t woke;   /* whose sight counts */
	unsigned depth;
	bool sampled, told, no_room;
	uint64_t window_ns, waited_ns; /* since when, and for how long then */
	uint64_t waited_for_ns;        /* when last */
	uint64_t judged_ns;
	struct sight sight, whose; /* its own, and of whom it woke */
	char comm[17];
};

struct wakers {
	struct wakers_options options;
	struct waker of[SEEN_MAX];
	size_t n_sampled;
	unsigned told, refused_told;
	uint64_t without_room, looked_ns;
	uint64_t judging_ns; /* the second in which so many were judged: */
	unsigned judged;
};

struct wakers *wakers_new(const struct wakers_options *options)
{
	struct wakers *w = xcalloc(1, sizeof(*w));

	w->options = *options;
	return w;
}

void wakers_free(struct wakers *w)
{
	free(w);
}

uint64_t wakers_without_room(const struct wakers *w)
{
	return w->without_room;
}

static struct waker *find(struct wakers *w, uint32_t pid)
{
	for (size_t i = 0; i < SEEN_MAX; i++) {
		if (w->of[i].pid == (pid_t)pid)
			return &w->of[i];
	}
	return NULL;
}

/* In the place of nobody, or of whom was waited for longest ago. */
static struct waker *add(struct wakers *w, uint32_t pid)
{
	struct waker *place = NULL;

	for (size_t i = 0; i < SEEN_MAX; i++) {
		struct waker *at = &w->of[i];

		if (!at->sampled && (!place || at->waited_for_ns < place->waited_for_ns))
			place = at;
	}
	*place = (struct waker){ .pid = (pid_t)pid, .depth = WAKERS_DEPTH + 1 };
	return place;
}

_Static_assert(SEEN_MAX > WAKERS_MAX, "there is always a place of one that is not sampled");

/* ---- room --------------------------------------------------------------------------------------
 */

static void let_go(struct wakers *w, struct waker *waker)
{
	programs_waker_remove(w->options.programs, waker->pid, --w->n_sampled);
	waker->sampled = false;
}

static size_t sampled_for(const struct wakers *w, pid_t target)
{
	size_t n = 0;

	for (size_t i = 0; i < SEEN_MAX; i++)
		n += w->of[i].sampled && w->of[i].target == target;
	return n;
}

/* Whether one makes room for another: it is idle, further away, or of a target that has more. */
static bool makes_room(const struct wakers *w, const struct waker *one, const struct waker *other)
{
	size_t has = sampled_for(w, one->target), others = sampled_for(w, other->target);

	return other->waited_for_ns > one->waited_for_ns + IDLE_NS || has > others + 1 ||
	       (one->depth > other->depth && has >= others);
}

static bool make_room(struct wakers *w, const struct waker *waker)
{
	struct waker *longest = NULL;

	if (w->n_sampled < WAKERS_MAX)
		return true;
	for (size_t i = 0; i < SEEN_MAX; i++) {
		struct waker *at = &w->of[i];

		if (at->sampled && makes_room(w, at, waker) &&
		    (!longest || at->waited_for_ns < longest->waited_for_ns))
			longest = at;
	}
	if (longest)
		let_go(w, longest);
	return longest;
}

/* ---- who is sampled ----------------------------------------------------------------------------
 */

static void tell(struct wakers *w, struct waker *waker, unsigned *told, const char *what)
{
	char text[256], name[64];

	if (waker->told || *told > TOLD_MAX)
		return;
	waker->told = true;
	if ((*told)++ == TOLD_MAX) {
		snprintf(text, sizeof(text), "further processes that targets wait for are %s",
		         what);
	} else {
		snprintf(name, sizeof(name), "%s", waker->comm);
		text_make_safe(name, sizeof(name));
		snprintf(text, sizeof(text), "process %d (%s), which process %d waits for, is %s",
		         waker->pid, name, waker->woke, what);
	}
	w->options.notice(w->options.data, text);
}

/* False also where its user has had his part of the time for such looks: a process can make them
 * take long. */
static bool see(pid_t pid, pid_t tid, struct sight *sight)
{
	uint64_t person = helper_person_of(pid), busy_ns = helper_busy_ns();
	bool seen;

	if (look_time_is_over(LOOK_AT_THREADS, person))
		return false;
	seen = sight_read(pid, tid, sight);
	look_time_charge(LOOK_AT_THREADS, person, helper_busy_ns() - busy_ns);
	return seen;
}

/* It may have become another program before the programs in the kernel would have noticed. */
static bool still_is(struct waker *waker)
{
	struct sight now;

	return see(waker->pid, 0, &now) && now.start_time == waker->sight.start_time &&
	       sight_covers(&waker->whose, &now);
}

static void take(struct wakers *w, struct waker *waker)
{
	if (!make_room(w, waker)) {
		w->without_room += !waker->no_room;
		waker->no_room = true;
		return;
	}
	if (programs_waker_add(w->options.programs, waker->pid, w->n_sampled + 1))
		return;
	w->n_sampled++;
	waker->sampled = true;
	if (!still_is(waker)) {
		let_go(w, waker);
		return;
	}
	tell(w, waker, &w->told, "sampled, too");
}

static bool may_judge(struct wakers *w, uint64_t now_ns)
{
	if (now_ns - w->judging_ns > AGAIN_NS) {
		w->judging_ns = now_ns;
		w->judged = 0;
	}
	return w->judged++ < JUDGED_MAX;
}

/*
 * One of this process's own: by its parent, or, where that has ended (base/worker.h), by the file
 * that it runs, which may be one in memory. The link is read and nothing is opened: who calls a
 * file of his own so is not sampled, and no more. Of one that is ending, or cannot be looked at in
 * time, nobody can tell whether it is our own.
 */
static bool may_be_own(const struct waker *waker)
{
	char exe[4097] = "", own[4097] = "";
	ssize_t n;

	if (waker->sight.parent == getpid())
		return true;
	n = process_look(waker->pid, PROCESS_LINK, "exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return true;
	return !strncmp(exe, "/memfd:cuscope", 14) ||
	       (readlink("/proc/self/exe", own, sizeof(own) - 1) > 0 && !strcmp(exe, own));
}

static void judge(struct wakers *w, struct waker *waker, pid_t tid)
{
	if (w->options.is_target(w->options.data, waker->pid) ||
	    !see(waker->pid, tid, &waker->sight) || waker->sight.of_kernel || may_be_own(waker) ||
	    !see(waker->woke, 0, &waker->whose))
		return;
	if (sight_covers(&waker->whose, &waker->sight))
		take(w, waker);
	else
		tell(w, waker, &w->refused_told, "not sampled: that process may not look into it");
}

/* ---- records -----------------------------------------------------------------------------------
 */

/* By the shortest way from a target. */
static void belongs_to(struct waker *waker, const struct wire_blocked *record,
                       const struct waker *woken)
{
	unsigned depth = woken ? woken->depth + 1 : 1;

	if (depth > waker->depth)
		return;
	waker->depth = depth;
	waker->woke = (pid_t)record->head.tgid;
	waker->target = woken ? woken->target : waker->woke;
}

static void woken_by(struct wakers *w, const struct wire_blocked *record)
{
	const struct waker *woken = find(w, record->head.tgid);
	struct waker *waker;
	uint64_t now = record->head.time_ns;

	if (woken && (!woken->sampled || woken->depth >= WAKERS_DEPTH))
		return;
	waker = find(w, record->waker_tgid);
	if (!waker)
		waker = add(w, record->waker_tgid);
	belongs_to(waker, record, woken);
	if (now - waker->window_ns > WAKERS_WINDOW_NS) {
		waker->window_ns = now;
		waker->waited_ns = 0;
	}
	waker->waited_ns += record->weight_ns - record->runnable_ns;
	waker->waited_for_ns = now;
	if (waker->sampled || waker->waited_ns < WAKERS_WAITED_NS ||
	    (waker->judged_ns && now - waker->judged_ns < AGAIN_NS) || !may_judge(w, now))
		return;
	waker->judged_ns = now;
	memcpy(waker->comm, record->waker, sizeof(record->waker));
	judge(w, waker, (pid_t)record->waker_tid);
}

static void ended(struct wakers *w, uint32_t pid)
{
	struct waker *waker = find(w, pid);

	if (!waker)
		return;
	if (waker->sampled)
		let_go(w, waker);
	*waker = (struct waker){ 0 };
}

/* Who ends a stop, a debugger, has not worked for it meanwhile. */
static bool tells_of_another(const struct wire_blocked *record)
{
	return record->how == WIRE_BLOCKED_WOKEN && record->waker_tgid &&
	       record->waker_tgid != record->head.tgid &&
	       record->waker_tgid != (uint32_t)getpid() &&
	       !(record->wait.flags & WIRE_WAIT_STOPPED);
}

void wakers_record(struct wakers *w, const struct wire_head *record)
{
	const struct wire_blocked *blocked = (const struct wire_blocked *)record;

	if (record->type == WIRE_EXIT)
		ended(w, record->tgid);
	else if (record->type == WIRE_BLOCKED && tells_of_another(blocked))
		woken_by(w, blocked);
}

void wakers_turn(struct wakers *w, uint64_t now_ns)
{
	if (!w->n_sampled || now_ns - w->looked_ns < AGAIN_NS)
		return;
	w->looked_ns = now_ns;
	for (size_t i = 0; i < SEEN_MAX; i++) {
		struct waker *waker = &w->of[i];

		if (waker->sampled &&
		    (!programs_waker_has(w->options.programs, waker->pid) ||
		     w->options.is_target(w->options.data, waker->pid) || !still_is(waker)))
			let_go(w, waker);
	}
}
