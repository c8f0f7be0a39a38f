// SPDX-License-Identifier: MIT
#include "capture/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void proc_comm(pid_t pid, char comm[16], const char *otherwise)
{
	char path[64];
	FILE *f;

	snprintf(comm, 16, "%s", otherwise ? otherwise : "");
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(comm, 16, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
}

/* Field 18 of /proc/PID/task/TID/stat; the name before it may hold anything. */
int32_t proc_priority(uint32_t pid, uint32_t tid)
{
	char path[64], line[1024];
	const char *after;
	int priority = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	after = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	for (int field = 2; after && field < 18; field++)
		after = strchr(after + 1, ' ');
	if (after)
		priority = atoi(after + 1);
	fclose(f);
	return priority;
}

bool proc_has_open(pid_t pid, const char *path)
{
	char folder[64], target[256];
	struct dirent *entry;
	bool found = false;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	fds = opendir(folder);
	while (fds && !found && (entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		found = n >= (ssize_t)strlen(path) && !strncmp(target, path, strlen(path));
	}
	if (fds)
		closedir(fds);
	return found;
}
