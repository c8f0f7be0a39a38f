/* SPDX-License-Identifier: MIT */
/*
 * Whether a process could look into another one by itself: what the kernel asks for that (ptrace),
 * of processes in one container, and without the right to look into all of them. cuscope may, as
 * root. Where somebody else has it look, that is to be no more than he could see.
 */
#ifndef CUSCOPE_PROBE_SIGHT_H
#define CUSCOPE_PROBE_SIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
