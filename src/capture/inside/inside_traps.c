// SPDX-License-Identifier: MIT
/*
 * The kernel's breakpoints on entries that an agent records: taken out of the process, each with
 * the byte of the file, or they would cost what a probe costs. The probes stay attached: all other
 * processes have theirs, and who maps the file anew gets them again. The kernel knows its probes by
 * file and offset, and takes one away that is not there without a word.
 */
#include "capture/inside/inside_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "probe/helper.h"

#define BREAKPOINT 0xcc /* of x86-64, where functions can be diverted */

/* Of the process in which the entries were written: a pid may be another's by now. */
static int open_memory(const struct inside_module *at)
{
	uint8_t code[INSIDE_LOOKED_AT];
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%u/mem", at->process->pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return -1;
	if (pread(memory, code, sizeof(code), (off_t)at->check_at) == sizeof(code) &&
	    inside_jumps_to_area(at, code, sizeof(code)))
		return memory;
	close(memory);
	return -1;
}

static bool take_out(const struct inside_module *at, const struct hook *hook, int memory)
{
	uint64_t offset = hook->entry + hook->placement.skip;
	off_t address = (off_t)(at->load + hook->address + hook->placement.skip);
	uint8_t now, whole;

	if (pread(memory, &now, 1, address) != 1 || now != BREAKPOINT)
		return false;
	if (helper_pread(at->module->fd, &whole, 1, offset) != 1 || whole == BREAKPOINT)
		return false;
	return pwrite(memory, &whole, 1, address) == 1;
}

uint32_t inside_module_take_traps(const struct inside_module *at)
{
	int memory = at->check_at ? open_memory(at) : -1;
	uint32_t n = 0;

	for (size_t i = 0; memory >= 0 && i < at->count; i++) {
		if (inside_module_tells(at, at->hooks[i]))
			n += take_out(at, at->hooks[i], memory);
	}
	if (memory >= 0)
		close(memory);
	return n;
}
