// SPDX-License-Identifier: MIT
#include "capture/proc.h"

#include <dirent.h>
#include <stdio.h>
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
