// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

/* 22 numbers and a name of at most 64 bytes are shorter; what follows them is not needed. */
#define STAT_BYTES 1024

#define FDS_MAX 65536

#define DEADLINE_PRIORITY (-101) /* as the kernel shows it */

/* The number of the machine's time namespace: PROC_TIME_INIT_INO of the kernel. */
#define TIME_INITIAL 0xEFFFFFFAu

/* The name may hold anything, brackets too: the fields begin behind the last one. */
bool process_stat_parse(const char *text, struct process_stat *stat)
{
	const char *behind = strrchr(text, ')');

	return behind && sscanf(behind,
	                        ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	                        "%*d %*d %*d %" SCNu64,
	                        &stat->state, &stat->parent, &stat->flags, &stat->start_time) == 4;
}

/* ---- looking ------------------------------------------------------------------------------- */

static ssize_t read_text(const char *path, char *to, size_t bytes)
{
	AT_END(at_end_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, to, bytes);
	return n < 0 ? -errno : n;
}

/* Takes what is known of the file rather than ask its file system. */
static ssize_t read_file(const char *path, struct process_file *file)
{
	struct statx x;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &x))
		return -errno;
	file->device = makedev(x.stx_dev_major, x.stx_dev_minor);
	file->inode = x.stx_ino;
	return sizeof(*file);
}

static ssize_t find_descriptors(pid_t pid, const char *text, int32_t *to, size_t room)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	size_t n = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	if (!folder)
		return -errno;
	for (int i = 0; i < FDS_MAX && n < room && (entry = readdir(folder)); i++) {
		ssize_t len = readlinkat(dirfd(folder), entry->d_name, path, sizeof(path) - 1);

		path[len > 0 ? len : 0] = '\0';
		if (len > 0 && strstr(path, text))
			to[n++] = atoi(entry->d_name);
	}
	closedir(folder);
	return (ssize_t)(n * sizeof(*to));
}

ssize_t process_look_here(pid_t pid, enum process_look how, const char *name, void *to,
                          size_t bytes)
{
	char path[128];
	ssize_t n;

	if (how == PROCESS_FDS)
		return find_descriptors(pid, name, to, bytes / sizeof(int32_t));
	if (snprintf(path, sizeof(path), "/proc/%d/%s", pid, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (how == PROCESS_TEXT)
		return read_text(path, to, bytes);
	if (how == PROCESS_FILE)
		return read_file(path, to);
	n = readlink(path, to, bytes);
	return n < 0 ? -errno : n;
}

static ssize_t (*look_by)(pid_t, enum process_look, const char *, void *,
                          size_t) = process_look_here;

void process_look_by(ssize_t (*look)(pid_t, enum process_look, const char *, void *, size_t))
{
	look_by = look;
}

ssize_t process_look(pid_t pid, enum process_look how, const char *name, void *to, size_t bytes)
{
	return look_by(pid, how, name, to, bytes);
}

/* ---- what is seen -------------------------------------------------------------------------- */

bool process_stat_read(pid_t pid, pid_t tid, struct process_stat *stat)
{
	char name[32] = "stat", text[STAT_BYTES];
	ssize_t n;

	if (tid)
		snprintf(name, sizeof(name), "task/%d/stat", tid);
	n = process_look(pid, PROCESS_TEXT, name, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return process_stat_parse(text, stat);
}

bool process_is_ending(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return !process_stat_read(pid, tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

uint64_t process_start_time(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, 0, &stat) ? stat.start_time : 0;
}

/*
 * Its stat alone would tell, but waits for an exec. "0 0 0 ...": it has no memory any more, so it
 * is in none. The links of the folder of its threads are two more than these.
 */
bool process_is_over(pid_t pid)
{
	char path[64], memory[2] = "";
	struct process_stat ended;
	struct stat threads;
	ssize_t n;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	n = read_text(path, memory, sizeof(memory));
	if (n != sizeof(memory) || memory[0] != '0' || memory[1] != ' ')
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return !stat(path, &threads) && threads.st_nlink <= 2 + 1 &&
	       process_stat_read(pid, 0, &ended) && ended.state == 'Z';
}

bool process_comm(pid_t pid, pid_t tid, char *comm, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	if (!tid)
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return file_line(path, comm, size);
}

bool process_status(pid_t pid, pid_t tid, const char *format, void *value)
{
	char path[64], line[256];
	bool found = false;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	if (!tid)
		snprintf(path, sizeof(path), pid ? "/proc/%d/status" : "/proc/self/status", pid);
	status = fopen(path, "re");
	while (status && !found && fgets(line, sizeof(line), status))
		found = sscanf(line, format, value) == 1;
	if (status)
		fclose(status);
	return found;
}

/* The last of "NSpid:\t4711\t12\t7", which 33 namespaces have room for. */
pid_t process_own_number(pid_t pid, pid_t tid)
{
	static const char name[] = "NSpid:";
	char path[64], line[512];
	pid_t own = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	status = fopen(path, "re");
	while (status && !own && fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)))
			own = atoi(strrchr(line, '\t') ? strrchr(line, '\t') : line + strlen(name));
	if (status)
		fclose(status);
	return own;
}

/* The number of a namespace: "time" of the process itself, "time_for_children". 0: not known. */
static uint64_t namespace_of(pid_t pid, const char *name)
{
	struct process_file file;
	char path[32];

	snprintf(path, sizeof(path), "ns/%s", name);
	return process_look(pid, PROCESS_FILE, path, &file, sizeof(file)) < 0 ? 0 : file.inode;
}

bool process_clock_offset(pid_t pid, int64_t *offset_ns)
{
	uint64_t own = namespace_of(pid, "time");
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

int process_priority(pid_t pid, pid_t tid)
{
	struct sched_param real_time = { 0 };
	int policy, nice;

	if (syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH)
		return 0;
	policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		return sched_getparam(tid, &real_time) ? 0 : -1 - real_time.sched_priority;
	if (policy == SCHED_DEADLINE)
		return DEADLINE_PRIORITY;
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)tid);
	return errno ? 0 : 20 + nice;
}

pid_t process_living_thread(pid_t pid)
{
	AT_END(process_list_end) DIR *threads = process_list(pid);
	pid_t tid, living = 0;

	for (int i = 0; !living && i < PROCESS_THREADS_TRIED && (tid = process_next(threads)); i++)
		if (!process_is_ending(pid, tid))
			living = tid;
	return living;
}

/* ---- all of them --------------------------------------------------------------------------- */

DIR *process_list(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return opendir(pid ? path : "/proc");
}

pid_t process_next(DIR *list)
{
	const struct dirent *entry;
	pid_t number = 0;

	while (list && !number && (entry = readdir(list)))
		number = atoi(entry->d_name);
	return number;
}

void process_list_end(DIR **list)
{
	if (*list)
		closedir(*list);
}
