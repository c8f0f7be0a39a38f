// SPDX-License-Identifier: MIT
#include "probe/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/person.h"

#ifndef FUSE_SUPER_MAGIC /* not in the headers of Linux 5.15 */
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#ifndef BCACHEFS_SUPER_MAGIC /* Linux 6.7 */
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1 /* not the kernel's own */

/* Not overlayfs: it hands on to file systems below, which in a user's namespace may be any. */
bool mount_is_local(const struct statfs *fs)
{
	static const uint32_t types[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,    TMPFS_MAGIC,
		RAMFS_MAGIC,      F2FS_SUPER_MAGIC,     BCACHEFS_SUPER_MAGIC, SQUASHFS_MAGIC,
		ZFS_SUPER_MAGIC,  EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC,    HUGETLBFS_MAGIC,
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((uint32_t)fs->f_type == types[i])
			return true;
	return false;
}

/* What a process's list of mounts says of one. */
enum mounted { NOT_LISTED, BY_ROOT, BY_USER };

/* "36 35 0:52 / /mnt rw - fuse sshfs rw,user_id=1000,...": a user chooses what stands for "sshfs",
 * which has no spaces. */
static enum mounted mounted_by(const char *line)
{
	const char *type = strstr(line, " - fuse"), *options = strrchr(line, ' ');

	return type && !strstr(options, ",user_id=0,") ? BY_USER : BY_ROOT;
}

/* By its number, or where that is 0 by its device. */
static enum mounted find_mount(pid_t pid, uint64_t number, const struct statx *x)
{
	char path[64], device[32], *line = NULL;
	enum mounted mounted = NOT_LISTED;
	size_t room = 0;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	snprintf(device, sizeof(device), "%u:%u ", x->stx_dev_major, x->stx_dev_minor);
	list = fopen(path, "re");
	while (list && !mounted && getline(&line, &room, list) >= 0) {
		char *at = line;
		bool same = strtoull(at, &at, 10) == number;

		strtoull(at, &at, 10); /* the parent */
		if (!number)
			same = !strncmp(at + (*at == ' '), device, strlen(device));
		if (same)
			mounted = mounted_by(line);
	}
	free(line);
	if (list)
		fclose(list);
	return mounted;
}

/*
 * Whether root has mounted what a file lies on. The mounts of this process are root's, but for FUSE
 * of a user's; so are those that another sees, if its mounts are not those of a user's namespace:
 * there a FUSE has "user_id=0" as well, and an overlay may lie on one.
 */
static bool is_mounted_by_root(pid_t pid, int fd, const struct statfs *fs)
{
	enum mounted mounted;
	struct statx x;

	if (fs->f_type != FUSE_SUPER_MAGIC && fs->f_type != OVERLAYFS_SUPER_MAGIC)
		return true; /* of others a user can mount only what waits for nobody */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x))
		return false;
	mounted = find_mount(getpid(), 0, &x);
	if (!mounted && (x.stx_mask & STATX_MNT_ID) && person_mounts_are_roots(pid)) /* Linux 5.8 */
		mounted = find_mount(pid, x.stx_mnt_id, &x);
	return mounted == BY_ROOT;
}

bool file_is_on_roots_file_system(pid_t pid, int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && is_mounted_by_root(pid, fd, &fs);
}

/*
 * No list has the mount that a chroot's folder lies on, unless the folder is one itself. It is who
 * called chroot() that had it mounted, where it is of a kind that no user can mount.
 */
static bool is_own_root(const struct statx *x)
{
	struct statfs fs;
	struct statx root;

	return !statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &root) &&
	       (root.stx_mask & STATX_MNT_ID) && root.stx_mnt_id == x->stx_mnt_id &&
	       !statfs("/", &fs) && mount_is_local(&fs);
}

/* Whether a file was found in a mount of this process that is root's. Asks nobody. */
static bool file_is_on_roots_mount(int fd)
{
	enum mounted mounted;
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x) ||
	    !(x.stx_mask & STATX_MNT_ID))
		return false;
	mounted = find_mount(getpid(), x.stx_mnt_id, &x);
	return mounted == BY_ROOT || (mounted == NOT_LISTED && is_own_root(&x));
}

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

bool mount_is_kernels(const struct statfs *fs)
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
	if (!S_ISREG(st.st_mode) || mount_is_kernels(&fs))
		return -EINVAL;
	return mount_is_local(&fs) || file_is_on_roots_file_system(pid, fd) ? 0 : -EACCES;
}

int root_path_open(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
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
	AT_END(at_end_close) int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (have < bytes && (n = read(fd, to + have, bytes - have)) > 0)
		have += (size_t)n;
	return n < 0 ? -errno : (ssize_t)have;
}

ssize_t root_file_read(pid_t pid, int root, const char *path, const struct root_file_rights *rights,
                       char *to, size_t bytes)
{
	struct root_file_before before;
	ssize_t n = become(rights, &before);
	AT_END(at_end_close) int fd = n ? -1 : root_path_open(root, path, O_NOFOLLOW);

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
	return n;
}

#define LINKS_MAX 40 /* as the kernel has it */

struct roots_path_walk {
	int fd;     /* of the folder so far, which is root's */
	char *rest; /* of the path */
	unsigned links;
	dev_t mount; /* that is root's, as far as it was asked */
};

bool is_roots(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Without asking a server: its answers would not be believed either. */
static int path_check(struct roots_path_walk *walk, int fd, struct stat *st)
{
	if (file_stat(fd, st))
		return -errno;
	if (st->st_dev != walk->mount && !file_is_on_roots_mount(fd))
		return -EACCES;
	walk->mount = st->st_dev;
	if (S_ISLNK(st->st_mode))
		return st->st_uid ? -EACCES : 0;
	return is_roots(st) ? 0 : -EACCES;
}

static int begin(struct roots_path_walk *walk)
{
	struct stat st;

	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->fd < 0 ? -errno : path_check(walk, walk->fd, &st);
}

/* Puts what a link says before the rest. */
static int follow(struct roots_path_walk *walk, int link)
{
	char target[PATH_MAX], *rest;
	ssize_t len = readlinkat(link, "", target, sizeof(target));

	if (len <= 0 || len == sizeof(target) || ++walk->links > LINKS_MAX)
		return len < 0 ? -errno : -ELOOP;
	rest = xasprintf("%.*s/%s", (int)len, target, walk->rest);
	free(walk->rest);
	walk->rest = rest;
	return rest[0] == '/' ? begin(walk) : 0;
}

static int step(struct roots_path_walk *walk, const char *part)
{
	int fd = openat(walk->fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = path_check(walk, fd, &st);
	if (!rc && S_ISLNK(st.st_mode)) {
		rc = follow(walk, fd);
	} else if (!rc) {
		close(walk->fd);
		walk->fd = fd;
		return 0;
	}
	close(fd);
	return rc;
}

/* Takes the first part off the rest; NULL: there is none. */
static char *next_part(struct roots_path_walk *walk)
{
	char *at = walk->rest + strspn(walk->rest, "/"), *part, *rest;
	size_t len = strcspn(at, "/");

	if (!len)
		return NULL;
	part = xstrndup(at, len);
	rest = xstrdup(at + len);
	free(walk->rest);
	walk->rest = rest;
	return part;
}

int roots_path_open(const char *path)
{
	struct roots_path_walk walk = { .fd = -1, .rest = xstrdup(path), .mount = (dev_t)-1 };
	int rc = path[0] == '/' ? begin(&walk) : -EINVAL;
	char *part;

	while (!rc && (part = next_part(&walk))) {
		rc = step(&walk, part);
		free(part);
	}
	free(walk.rest);
	if (rc && walk.fd >= 0)
		close(walk.fd);
	return rc ? rc : walk.fd;
}

char *roots_path_real(int fd)
{
	char self[64], path[PATH_MAX];
	ssize_t len;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	len = readlink(self, path, sizeof(path));
	return len > 0 && len < (ssize_t)sizeof(path) ? xstrndup(path, (size_t)len) : NULL;
}

/* ---- glob ---------------------------------------------------------------------------------- */

static void *open_folder(const char *path)
{
	int folder = roots_path_open(path), fd;
	DIR *dir;

	if (folder < 0) {
		errno = -folder;
		return NULL;
	}
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(folder);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int stat_of(const char *path, struct stat *st)
{
	int fd = roots_path_open(path), rc;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	rc = file_stat(fd, st);
	close(fd);
	return rc;
}

static struct dirent *read_folder(void *dir)
{
	return readdir(dir);
}

static void close_folder(void *dir)
{
	closedir(dir);
}

int roots_path_glob(const char *pattern, glob_t *found)
{
	*found = (glob_t){ .gl_opendir = open_folder,
		           .gl_readdir = read_folder,
		           .gl_closedir = close_folder,
		           .gl_lstat = stat_of,
		           .gl_stat = stat_of };
	return glob(pattern, GLOB_ALTDIRFUNC, NULL, found);
}
