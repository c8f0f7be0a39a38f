/* SPDX-License-Identifier: MIT */
/* Who stands behind a file system: this machine, root, or a user by FUSE. */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

/* Whether reading a file waits for nothing but this machine's own devices. */
bool mount_is_local(const struct statfs *fs);

/*
 * Whether a file that the process has open or mapped is of a file system that root has, so that who
 * makes it slow is none of its users. Else it may be served by a user's program: of a FUSE, or of
 * an overlay in a user's namespace, which can lie on one. Asks the file system's server.
 */
bool file_is_on_roots_file_system(pid_t pid, int fd);

/* Whether a file is one of /proc or /sys: some have another process's memory in them, and some do
 * something when root reads them. A user can mount them over any file of his own. */
bool mount_is_kernels(const struct statfs *fs);

/* A path under a folder, which no link in it leaves, by O_PATH: a descriptor or a negative errno.
 */
int root_path_open(int root, const char *path, int flags);

/*
 * Reads a file as a process sees it, and with no more rights than the process has. Who has a mount
 * namespace of his own can put any file that he may see under any name. Root must not read for him
 * what he may not.
 */

struct root_file_rights {
	uid_t user; /* the process's for files, fourth of "Uid:" in /proc/PID/status */
	gid_t group;
};

/*
 * The first bytes of a regular file at `path` under `root`, the folder /proc/PID/root, which no
 * link leaves. Bytes, or a negative errno: -EACCES where a user may serve the file (FUSE), -EINVAL
 * where it is no regular file or one of the kernel's, -EPERM where we cannot give up our rights.
 *
 * For the time of it the thread has those rights. Looking for the path may wait for who serves a
 * folder of it.
 */
ssize_t root_file_read(pid_t pid, int root, const char *path, const struct root_file_rights *rights,
                       char *to, size_t bytes);

/*
 * Paths on which every folder and every link is root's, so that they lead where root wants. They
 * are gone part by part. Nothing is looked for in a folder of somebody else, or of a file system
 * that a user serves (FUSE): that could wait for ever.
 */

/* Whether root alone can change it. */
bool is_roots(const struct stat *st);

/* A descriptor by path only (O_PATH) of a file or folder of root's, or a negative errno. */
int roots_path_open(const char *path);

/* glob(3) that finds such paths only. What it returns; globfree. */
int roots_path_glob(const char *pattern, glob_t *found);

/* Where a descriptor lies, which the caller frees; NULL: nowhere. */
char *roots_path_real(int fd);
