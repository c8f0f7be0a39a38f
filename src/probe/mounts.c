// SPDX-License-Identifier: MIT
#include "probe/mounts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
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

bool file_is_on_roots_mount(int fd)
{
	enum mounted mounted;
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x) ||
	    !(x.stx_mask & STATX_MNT_ID))
		return false;
	mounted = find_mount(getpid(), x.stx_mnt_id, &x);
	return mounted == BY_ROOT || (mounted == NOT_LISTED && is_own_root(&x));
}
