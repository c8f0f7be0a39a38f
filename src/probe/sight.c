// SPDX-License-Identifier: MIT
#include "probe/sight.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* Text of a file below /proc/PID; false where it cannot be read. */
static bool read_text(int folder, const char *name, char *text, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n >= 0;
}

static bool read_ids(const char *text, const char *name, uint32_t ids[3])
{
	const char *line = strstr(text, name); /* a name of a process has no line of its own */

	return line && sscanf(line + strlen(name), "%u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
}

static bool read_status(int folder, const char *name, struct sight *sight)
{
	static const char rights[] = "\nCapPrm:\t";
	char text[4096];
	unsigned long long bits;
	const char *line;

	if (!read_text(folder, name, text, sizeof(text)))
		return false;
	line = strstr(text, rights);
	if (!line || sscanf(line + strlen(rights), "%llx", &bits) != 1)
		return false;
	sight->rights = bits;
	return read_ids(text, "\nUid:\t", sight->uid) && read_ids(text, "\nGid:\t", sight->gid);
}

static bool read_namespace(pid_t pid, const char *name, uint64_t *number)
{
	struct process_file namespace;

	if (process_look(pid, PROCESS_FILE, name, &namespace, sizeof(namespace)) < 0)
		return false;
	*number = namespace.inode;
	return true;
}

/* The kernel gives the files of who lets nobody look to root. Root's look the same either way. */
static bool read_closed(int folder, struct sight *sight)
{
	struct stat st;

	if (fstatat(folder, "status", &st, 0))
		return false;
	sight->closed = st.st_uid != sight->uid[1];
	return true;
}

static bool read_all(int folder, pid_t pid, pid_t tid, struct sight *sight)
{
	struct process_stat stat;
	char name[64];

	if (!process_stat_read(pid, 0, &stat))
		return false;
	sight->start_time = stat.start_time;
	sight->parent = stat.parent;
	sight->of_kernel = stat.flags & PF_KTHREAD;
	read_text(folder, "attr/current", sight->label, sizeof(sight->label));
	/* by its number, which is not another's: it is still there when that has been looked at */
	if (!read_namespace(pid, "ns/user", &sight->user_namespace) ||
	    !read_namespace(pid, "ns/pid", &sight->pid_namespace) ||
	    !read_status(folder, "status", sight) || !read_closed(folder, sight))
		return false;
	snprintf(name, sizeof(name), "task/%d/status", tid);
	return !tid || tid == pid || faccessat(folder, name, F_OK, 0) ||
	       read_status(folder, name, sight);
}

bool sight_read(pid_t pid, pid_t tid, struct sight *sight)
{
	char path[32];
	bool read;
	int folder;

	memset(sight, 0, sizeof(*sight));
	snprintf(path, sizeof(path), "/proc/%d", pid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return false;
	read = read_all(folder, pid, tid, sight);
	close(folder);
	return read;
}

static bool all_are(const uint32_t ids[3], uint32_t id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id;
}

bool sight_covers(const struct sight *who, const struct sight *whom)
{
	return !whom->of_kernel && !whom->closed && all_are(whom->uid, who->uid[0]) &&
	       all_are(whom->gid, who->gid[0]) && !(whom->rights & ~who->rights) &&
	       whom->user_namespace == who->user_namespace &&
	       whom->pid_namespace == who->pid_namespace && !strcmp(whom->label, who->label);
}
