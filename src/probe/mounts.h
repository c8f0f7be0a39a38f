/* SPDX-License-Identifier: MIT */
/* Who stands behind a file system: this machine, root, or a user by FUSE. */
#ifndef CUSCOPE_PROBE_MOUNTS_H
#define CUSCOPE_PROBE_MOUNTS_H

#include <stdbool.h>
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

/* Whether a file was found in a mount of this process that is root's. Asks nobody. */
bool file_is_on_roots_mount(int fd);

#endif
