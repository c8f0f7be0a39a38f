// SPDX-License-Identifier: MIT
#include "capture/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "probe/account.h"
#include "probe/helper.h"

#define TRIES_MAX 64 /* descriptors of files whose names have it in them */

ssize_t proc_descriptors(pid_t pid, const char *name, int32_t *numbers, size_t bytes)
{
	uint64_t person = helper_person_of(pid), busy_ns = helper_busy_ns();
	ssize_t found;

	if (look_time_is_over(LOOK_AT_THREADS, person))
		return -ETIME;
	found = process_look(pid, PROCESS_FDS, name, numbers, bytes);
	look_time_charge(LOOK_AT_THREADS, person, helper_busy_ns() - busy_ns);
	return found;
}

bool proc_has_open(pid_t pid, const char *path)
{
	int32_t numbers[TRIES_MAX];
	char name[32], target[256];
	ssize_t found = proc_descriptors(pid, path, numbers, sizeof(numbers));

	for (ssize_t i = 0; i < found / (ssize_t)sizeof(*numbers); i++) {
		ssize_t n;

		snprintf(name, sizeof(name), "fd/%d", numbers[i]);
		n = process_look(pid, PROCESS_LINK, name, target, sizeof(target));
		if (n >= (ssize_t)strlen(path) && !strncmp(target, path, strlen(path)))
			return true;
	}
	return false;
}
