// SPDX-License-Identifier: MIT
#include "agent/agent_reads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MOST 1024 /* one takes some 20 us; a process with more may not */

struct filters {
	unsigned mode;
	unsigned count; /* 0: before Linux 5.9, or there are none */
};

/* False: the thread is gone. */
static bool read_filters(pid_t pid, const char *tid, struct filters *filters)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	*filters = (struct filters){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		found |= sscanf(line, "Seccomp: %u", &filters->mode) == 1;
		sscanf(line, "Seccomp_filters: %u", &filters->count);
	}
	if (file)
		fclose(file);
	return found;
}

bool agent_may_read(pid_t pid, bool asked)
{
	unsigned threads = 0, count = 0;
	struct dirent *entry;
	bool may = true;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	while (folder && may && (entry = readdir(folder))) {
		struct filters filters;

		if (entry->d_name[0] == '.' || !read_filters(pid, entry->d_name, &filters))
			continue;
		may = ++threads <= THREADS_MOST;
		if (!filters.mode)
			continue;
		may &= asked && filters.count && (!count || filters.count == count);
		count = filters.count;
	}
	if (folder)
		closedir(folder);
	return may && threads;
}
