// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 22 numbers and a name of at most 64 bytes are shorter; what follows them is not needed. */
#define STAT_BYTES 1024

/* The number of the machine's time namespace: PROC_TIME_INIT_INO of the kernel. */
#define TIME_INITIAL 0xEFFFFFFAu

/* The name may hold anything, brackets too: the fields begin behind the last one. */
bool process_stat_parse(const char *text, struct process_stat *stat)
{
	const char *behind = strrchr(text, ')');

	return behind && sscanf(behind,
	                        ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %d "
	                        "%*d %*d %*d %" SCNu64,
	                        &stat->state, &stat->parent, &stat->flags, &stat->priority,
	                        &stat->start_time) == 5;
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

/* The number of a namespace: "time" of the process itself, "time_for_children". 0: not known. */
static ino_t namespace_of(pid_t pid, const char *name)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	return stat(path, &st) ? 0 : st.st_ino;
}

bool process_clock_offset(pid_t pid, int64_t *offset_ns)
{
	ino_t own = namespace_of(pid, "time");
	int64_t seconds = 0, ns = 0;
	char path[64];
	FILE *file;
	bool found;

	*offset_ns = 0;
	if (!own) /* kernels before 5.6 have none */
		return !namespace_of(getpid(), "time");
	if (own == TIME_INITIAL)
		return true;
	if (own != namespace_of(pid, "time_for_children")) /* whose offsets the file tells */
		return false;
	snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
	file = fopen(path, "re");
	found = file && fscanf(file, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2;
	if (file)
		fclose(file);
	*offset_ns = found ? -(seconds * 1000000000 + ns) : 0;
	return found;
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
