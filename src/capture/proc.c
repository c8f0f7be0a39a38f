// SPDX-License-Identifier: MIT
#include "capture/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_comm(const char *path, char comm[16])
{
	FILE *f = fopen(path, "re");
	bool read;

	if (!f)
		return false;
	read = fgets(comm, 16, f) != NULL;
	comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
	return read;
}

void proc_comm(pid_t pid, char comm[16], const char *otherwise)
{
	char path[64];

	snprintf(comm, 16, "%s", otherwise ? otherwise : "");
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	read_comm(path, comm);
}

void proc_thread_comm(pid_t pid, pid_t tid, char comm[16])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	comm[0] = '\0';
	if (!read_comm(path, comm))
		proc_comm(pid, comm, NULL);
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
