// SPDX-License-Identifier: MIT
#include "agent/lib/leave.h"

#include <errno.h>
#include <unistd.h>

#include "agent/lib/clock.h"
#include "agent/lib/cupti.h"
#include "agent/lib/cupti_abi.h"
#include "agent/lib/find.h"
#include "agent/lib/channel.h"
#include "agent/lib/writer.h"

enum phase { LEAVE_NOT, LEAVE_WANTED, LEAVE_NOW, LEAVE_DONE };

static uint32_t phase, round_number;
static uint64_t took_ns;

/* How deep a thread is in calls whose entry was seen since leaving began. */
static __thread uint32_t depth, depth_in_round;

void leave_begin(void)
{
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

bool leave_cancel(void)
{
	uint32_t wanted = LEAVE_WANTED;

	return __atomic_compare_exchange_n(&phase, &wanted, LEAVE_NOT, false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_RELAXED);
}

static void leave_here(void)
{
	uint32_t wanted = LEAVE_WANTED;
	uint64_t begin = clock_now();
	int error = errno;

	/* A graph may have come since. */
	if (!cupti_leavable() || !__atomic_compare_exchange_n(&phase, &wanted, LEAVE_NOW, false,
	                                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	cupti_leave();
	took_ns = clock_now() - begin;
	writer_own_time(AGENT_OWN_LEAVING, begin); /* the session ends only after this */
	__atomic_store_n(&phase, LEAVE_DONE, __ATOMIC_RELEASE);
	wake_up();
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
}
