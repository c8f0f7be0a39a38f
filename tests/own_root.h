/* SPDX-License-Identifier: MIT */
/*
 * A mount namespace of a process's own, whose root is what the process has as `/`, and whose
 * mounts are nobody else's. `unshare --mount` gives the same, but not in a chroot: `/` is no mount
 * there, so that nothing can be made private, and a user namespace is refused.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> cannot be included together with every C library. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);

/* `root` bound over itself, and this process in it. */
static int own_root_bind(int root)
{
	int copy = (int)syscall(SYS_open_tree, root, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE);

	if (copy < 0 || syscall(SYS_move_mount, copy, "", root, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
		return -1;
	return fchdir(copy) || close(copy) ? -1 : 0;
}

/* -1 with errno where it cannot be; the folder that the process is in stays. */
static int own_root(void)
{
	char folder[PATH_MAX];
	struct stat here, whole;
	int root, own;

	if (!getcwd(folder, sizeof(folder)) || unshare(CLONE_NEWNS))
		return -1;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	...
}
