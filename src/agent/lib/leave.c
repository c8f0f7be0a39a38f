// SPDX-License-Identifier: MIT
#include "agent/lib/leave.h"

#include <errno.h>
#include <unistd.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/find.h"
#include "agent/lib/writer.h"

enum phase { LEAVE_NOT, LEAVE_WANTED, LEAVE_NOW, LEAVE_DONE };

#define MANY UINT32_MAX

static uint32_t phase, round_number;
static uint32_t graph_thread; /* the tid of the one that launches graphs; 0: none, or MANY */
static bool anywhere;         /* not only on that thread */
static uint64_t took_ns;
static int wake_fd = -1;

/* How deep a thread is in calls whose entry was seen since leaving began. */
static __thread uint32_t depth, depth_in_round;

void leave_begin(int wake)
{
	wake_fd = wake;
	__atomic_store_n(&anywhere, false, __ATOMIC_RELAXED);
	__atomic_fetch_add(&round_number, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&phase, LEAVE_WANTED, __ATOMIC_RELEASE);
}

bool leave_wanted(void)
{
	return __atomic_load_n(&phase, __ATOMIC_ACQUIRE) == LEAVE_WANTED;
}

bool leave_done(void)
{
	return __atomic_load_n(&phase, __ATOMIC_ACQUIRE) == LEAVE_DONE;
}

uint64_t leave_took_ns(void)
{
	return took_ns;
}

void leave_saw_graph(void)
{
	uint32_t tid = writer_tid(), before = __atomic_load_n(&graph_thread, __ATOMIC_RELAXED);

	if (before == tid || before == MANY)
		return;
	if (before || !__atomic_compare_exchange_n(&graph_thread, &before, tid, false,
	                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&graph_thread, MANY, __ATOMIC_RELAXED);
}

bool leave_possible(void)
{
	return __atomic_load_n(&graph_thread, __ATOMIC_RELAXED) != MANY;
}

void leave_anywhere(void)
{
	__atomic_store_n(&anywhere, true, __ATOMIC_RELAXED);
}

bool leave_cancel(void)
{
	uint32_t wanted = LEAVE_WANTED;

	return __atomic_compare_exchange_n(&phase, &wanted, LEAVE_NOT, false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_RELAXED);
}

/* Whether graphs allow it on this thread. */
static bool is_place(void)
{
	uint32_t thread = __atomic_load_n(&graph_thread, __ATOMIC_RELAXED);

	return thread != MANY &&
	       (!thread || thread == writer_tid() || __atomic_load_n(&anywhere, __ATOMIC_RELAXED));
}

static void leave_here(void)
{
	uint32_t wanted = LEAVE_WANTED;
	uint64_t begin = clock_now(), one = 1;
	int error = errno, wake = wake_fd;

	if (!is_place() || !__atomic_compare_exchange_n(&phase, &wanted, LEAVE_NOW, false,
	                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	cupti_leave();
	__atomic_store_n(&graph_thread, 0, __ATOMIC_RELAXED);
	took_ns = clock_now() - begin;
	__atomic_store_n(&phase, LEAVE_DONE, __ATOMIC_RELEASE);
	if (write(wake, &one, sizeof(one)) < 0) { /* it looks by itself, a little later */
	}
	errno = error;
}

void leave_callback(uint32_t domain, const void *callback_data)
{
	const struct cupti_callback_data *data = callback_data;
	uint32_t round = __atomic_load_n(&round_number, __ATOMIC_RELAXED);

	if (domain != CUPTI_DOMAIN_DRIVER && domain != CUPTI_DOMAIN_RUNTIME)
		return;
	if (depth_in_round != round) {
		depth_in_round = round;
		depth = 0;
	}
	if (data->site == CUPTI_ENTER)
		depth++;
	else if (depth && --depth == 0)
		leave_here();
}

void leave_by_own_call(void)
{
	find_driver_version();
}

void leave_forked(void)
{
	phase = LEAVE_NOT;
	graph_thread = 0;
}
