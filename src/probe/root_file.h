/* SPDX-License-Identifier: MIT */
/*
 * Reads a file as a process sees it, and with no more rights than the process has. Who has a mount
 * namespace of his own can put any file that he may see under any name. Root must not read for him
 * what he may not.
 */
#ifndef CUSCOPE_PROBE_ROOT_FILE_H
#define CUSCOPE_PROBE_ROOT_FILE_H

#include <stddef.h>
#include <sys/types.h>

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

#endif
