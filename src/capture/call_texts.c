// SPDX-License-Identifier: MIT
#include "capture/call_texts.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "probe/account.h"
#include "probe/helper.h"

static bool read_text(pid_t pid, uint64_t address, void *to, size_t size)
{
	return helper_string(pid, address, to, size);
}

/* All the time counts: the capture itself waits, on a busy machine for the helper. */
static bool read_in_time(bool (*read)(pid_t pid, uint64_t address, void *to, size_t bytes),
                         uint32_t pid, uint64_t address, void *to, size_t bytes)
{
	uint64_t person, begin_ns = clock_now_ns();
	bool whole;

	if (kill((pid_t)pid, 0) && errno == ESRCH) /* it is nobody's by now */
		return false;
	person = helper_person_of((pid_t)pid);
	if (look_time_is_over(LOOK_INTO_CALLS, person))
		return false;
	whole = read((pid_t)pid, address, to, bytes);
	look_time_charge(LOOK_INTO_CALLS, person, clock_now_ns() - begin_ns);
	return whole;
}

bool call_memory_read(uint32_t pid, uint64_t address, void *to, size_t bytes)
{
	return read_in_time(helper_memory, pid, address, to, bytes);
}

bool call_text_read(uint32_t pid, uint64_t address, char *to, size_t size)
{
	return read_in_time(read_text, pid, address, to, size);
}
