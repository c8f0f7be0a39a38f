// SPDX-License-Identifier: MIT
#include "probe/root_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/mounts.h"

#define GROUPS_MAX 64

/* What the thread had before. */
struct root_file_before {
	uid_t user;
	gid_t group, groups[GROUPS_MAX];
	long n_groups;
	int signal; /* that it gets when its parent ends: the kernel forgets that */
};

/* ---- rights -------------------------------------------------------------------------------- */

/* By system calls: those of libc change the groups of all threads. */
static int become(const struct root_file_rights *rights, struct root_file_before *before)
{
	prctl(PR_GET_PDEATHSIG, &before->signal);
	before->group = (gid_t)setfsgid((gid_t)-1);
	before->user = (uid_t)setfsuid((uid_t)-1);
	before->n_groups = syscall(SYS_getgroups, GROUPS_MAX, before->groups);
	if (before->n_groups < 0 || (before->n_groups && syscall(SYS_setgroups, 0, NULL)))
		return -EPERM;
	setfsgid(rights->group);
	setfsuid(rights->user);
	return (gid_t)setfsgid((gid_t)-1) == rights->group &&
	                       (uid_t)setfsuid((uid_t)-1) == rights->user
	               ? 0
	               : -EPERM;
}

static void become_again(const struct root_file_before *before)
{
	setfsuid(before->user);
	setfsgid(before->group);
	if (before->n_groups > 0)
		syscall(SYS_setgroups, before->n_groups, before->groups);
	prctl(PR_SET_PDEATHSIG, before->signal);
}

/* ---- the file ------------------------------------------------------------------------------ */

static bool is_of_the_kernel(const struct statfs *fs)
{
	return fs->f_type == PROC_SUPER_MAGIC || fs->f_type == SYSFS_MAGIC;
}

/* Before it is opened for reading: opening a FIFO would block, opening a device do anything. */
static int check(pid_t pid, int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) || file_stat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || is_of_the_kernel(&fs))
		return -EINVAL;
	return mount_is_local(&fs) || file_is_on_roots_file_system(pid, fd) ? 0 : -EACCES;
}

static int open_path(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* Without waiting for whoever has a lease on it. */
static ssize_t read_path(int path_fd, char *to, size_t bytes)
{
	char self[64];
	size_t have = 0;
	ssize_t n = 0;
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (have < bytes && (n = read(fd, to + have, bytes - have)) > 0)
		have += (size_t)n;
	n = n < 0 ? -errno : (ssize_t)have;
	close(fd);
	return n;
}

ssize_t root_file_read(pid_t pid, int root, const char *path, const struct root_file_rights *rights,
                       char *to, size_t bytes)
{
	struct root_file_before before;
	ssize_t n = become(rights, &before);
	int fd = n ? -1 : open_path(root, path);

	if (!n && fd < 0)
		n = fd;
	become_again(&before);
	if (fd < 0)
		return n;
	n = check(pid, fd);
	if (!n) {
		n = become(rights, &before);
		n = n ? n : read_path(fd, to, bytes);
		become_again(&before);
	}
	close(fd);
	return n;
}
