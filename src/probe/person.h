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
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/quota.h"

#define PERSON_ROOT    QUOTA_ROOT
#define PERSON_UNKNOWN UINT64_MAX /* of a process that is gone */

/* A uid below 2^32, or one of the two other kinds. */
#define PERSON_NAMESPACE (1ull << 40) /* and the inode number */
#define PERSON_RANGE     (1ull << 41) /* and the first uid */

uint64_t person_of_uid(uid_t uid);

/* The ranges that users were given, from a uid on. */
void person_ranges(void (*each)(void *data, uint64_t first, uint64_t count, uint64_t person),
                   void *data);

/* Waits for nobody: neither memory nor files of the process are asked. */
uint64_t person_of_process(pid_t pid);

/* In a sentence: "user 1001". Of several machines as well (collectives_person()). */
void person_add(uint64_t person, struct buf *out);

/* Of the hooks in a file: who maps it, if that is known and not root, else who owns it. */
uint64_t person_of_file(uid_t owner, uint64_t mapped_by);

/* Whether the mounts that a process sees were made with the rights of this system's root. */
bool person_mounts_are_roots(pid_t pid);

/* For tests, instead of /etc/subuid and /etc/passwd; NULL: these. */
void person_files(const char *ranges, const char *users);

/*
 * Whether a process could look into another one by itself: what the kernel asks for that (ptrace),
 * of processes in one container, and without the right to look into all of them. cuscope may, as
 * root. Where somebody else has it look, that is to be no more than he could see.
 */

struct sight {
	uint32_t uid[3], gid[3]; /* real, effective, saved */
	uint64_t rights;         /* capabilities that it has or may take */
	uint64_t user_namespace, pid_namespace;
	char label[128]; /* of a security module; empty: there is none */
	bool closed;     /* it lets nobody look (PR_SET_DUMPABLE) */
	bool of_kernel;
	pid_t parent;
	uint64_t start_time; /* by which it is told from another one with its number */
};

/*
 * Of a process; where `tid` is not 0 and that thread is there, of the thread where the two differ
 * in users and rights. False: it is gone.
 */
bool sight_read(pid_t pid, pid_t tid, struct sight *sight);

/* Whether who has this sight could look into the other. */
bool sight_covers(const struct sight *who, const struct sight *whom);
