// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 22 numbers and a name of at most 64 bytes are shorter; what follows them is not needed. */
#define STAT_BYTES 1024

/* The name may hold anything, brackets too: the fields begin behind the last one. */
bool process_stat_parse(const char *text, struct process_stat *stat)
{
	const char *behind = strrchr(text, ')');

	return behind &&
	       sscanf(behind,
	              ") %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %d "
	              "%*d %*d %*d %" SCNu64,
	              &stat->state, &stat->flags, &stat->priority, &stat->start_time) == 4;
}

bool process_stat_read(pid_t pid, pid_t tid, struct process_stat *stat)
{
	char path[64], text[STAT_BYTES];
	ssize_t n;
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return process_stat_parse(text, stat);
}

uint64_t process_start_time(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, 0, &stat) ? stat.start_time : 0;
}

pid_t process_living_thread(pid_t pid)
{
	const struct dirent *entry;
	struct process_stat stat;
	char path[64];
	pid_t tid = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !tid && (entry = readdir(tasks))) {
		tid = atoi(entry->d_name);
		if (tid &&
		    (!process_stat_read(pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X'))
			tid = 0;
	}
	if (tasks)
		closedir(tasks);
	return tid;
}
