/* SPDX-License-Identifier: MIT */
/*
 * Who is behind a process or a file. A uid does not tell: by a user namespace one user has 65,536
 * of them (/etc/subuid), and would have as many shares of what each user has a share of. So a
 * process counts for the owner of its outermost user namespace but ours, and a uid of /etc/subuid
 * for the user whom the range was given to.
 *
 * A namespace that root has made, for a container, is a person of its own: what runs there is not
 * trusted like root. So is a range that was given to root, or to somebody unknown.
 */
#ifndef CUSCOPE_PROBE_PERSON_H
#define CUSCOPE_PROBE_PERSON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/quota.h"

#define PERSON_ROOT    QUOTA_ROOT
#define PERSON_UNKNOWN UINT64_MAX /* of a process that is gone */

/* A uid below 2^32, or one of the two other kinds. */
#define PERSON_NAMESPACE (1ull << 40) /* and the inode number */
#define PERSON_RANGE     (1ull << 41) /* and the first uid */

uint64_t person_of_uid(uid_t uid);

/* Waits for nobody: neither memory nor files of the process are asked. */
uint64_t person_of_process(pid_t pid);

/* Of the hooks in a file: who maps it, if that is known and not root, else who owns it. */
uint64_t person_of_file(uid_t owner, uint64_t mapped_by);

/* Whether the mounts that a process sees were made with the rights of this system's root. */
bool person_mounts_are_roots(pid_t pid);

/* For tests, instead of /etc/subuid and /etc/passwd; NULL: these. */
void person_files(const char *ranges, const char *users);

#endif
