/* SPDX-License-Identifier: MIT */
/*
 * A mount namespace of a process's own: its root is what the process had as `/`, and its mounts are
 * seen by nobody else. `unshare --mount` does that too, but not in a chroot: there `/` is no mount,
 * so it cannot be made private, and the kernel lets nobody in a chroot make a user namespace.
 */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Binds this folder over itself, and makes it the only root of the namespace. */
static int own_root_here(void)
{
	int copy = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (copy < 0 || move_mount(copy, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) ||
	    fchdir(copy))
		return -1;
	/* The old root is then upon the new one, and this path leads to it. */
	return syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ? -1 : 0;
}

static int own_root_of(int root, int own)
{
	struct stat chosen, real;

	/* Who enters a mount namespace leaves a chroot. */
	if (root < 0 || own < 0 || setns(own, CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	if (fstat(root, &chosen) || stat("/", &real))
		return -1;
	if (chosen.st_dev == real.st_dev && chosen.st_ino == real.st_ino)
		return 0;
	return fchdir(root) || own_root_here() ? -1 : 0;
}

/* 0, with the process in the folder that it was in; -1 with errno where there can be no such
 * namespace. */
static int own_root(void)
{
	char folder[PATH_MAX];
	int root, own, failed;

	if (!getcwd(folder, sizeof(folder)) || unshare(CLONE_NEWNS))
		return -1;
	root = open("/", O_PATH | O_CLOEXEC);
	own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	failed = own_root_of(root, own) || chdir(folder);
	close(root);
	close(own);
	return failed ? -1 : 0;
}
