/* SPDX-License-Identifier: MIT */
/* Giving up rights, in processes that run code or read files of strangers. Never to be had back. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define RIGHTS_NOBODY      65534
#define RIGHTS_NOBODY_ELSE 65533

/* 0, or a negative errno: the process is to end then. These use nothing that a fork may break. */
int rights_limit(int which, uint64_t most); /* as setrlimit */

/* Becomes that user where it was root, without other groups, and loses all capabilities. */
int rights_become(uid_t user, gid_t group);

/*
 * The same, and its real user is another: for a process that is to begin another program, which
 * takes back what rights_close() did. Whoever is nobody as well may look into neither then.
 */
int rights_become_unseen(void);

/* Nobody's processes may not look into it, and it ends with the thread that started it. */
int rights_close(void);

/*
 * All of it, for a process that has what it needs and only computes from now on: it is nobody, has
 * so many bytes of address space, and may by seccomp ask the kernel for nothing but to read, to
 * answer, to have memory, and the time.
 */
int rights_give_up(uint64_t bytes);
