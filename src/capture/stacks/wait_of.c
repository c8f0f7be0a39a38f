// SPDX-License-Identifier: MIT
#include "capture/stacks/wait_of.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/array.h"

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
} calls[] = {
	{ SYS_futex, WAIT_LOCK },
	{ SYS_futex_waitv, WAIT_LOCK },
	{ SYS_futex_wait, WAIT_LOCK },
	{ SYS_nanosleep, WAIT_SLEEP },
	{ SYS_clock_nanosleep, WAIT_SLEEP },
	{ SYS_rt_sigtimedwait, WAIT_SLEEP },
	{ SYS_rt_sigsuspend, WAIT_SLEEP },
	{ SYS_wait4, WAIT_CHILD },
	{ SYS_waitid, WAIT_CHILD },
	{ SYS_epoll_pwait, WAIT_EVENTS },
	{ SYS_epoll_pwait2, WAIT_EVENTS },
	{ SYS_pselect6, WAIT_EVENTS },
#ifdef SYS_pause
	{ SYS_pause, WAIT_SLEEP },
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
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].call == wait->call)
			return calls[i].wait;
	}
	return of_file(wait);
}
