// SPDX-License-Identifier: MIT
#include "probe/memory.h"

#include <string.h>

#include "probe/helper.h"

#define PAGE 4096u /* a step that never leaves a page, whatever the page size */

bool memory_read(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	return helper_memory(pid, address, to, bytes);
}

bool memory_read_string(pid_t pid, uint64_t address, char *to, size_t size)
{
	size_t have = 0;

	while (have < size) {
		size_t step = PAGE - (address + have) % PAGE;

		if (step > size - have)
			step = size - have;
		if (!memory_read(pid, address + have, to + have, step))
			return false;
		if (memchr(to + have, '\0', step))
			return true;
		have += step;
	}
	return false;
}
