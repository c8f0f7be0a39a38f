/* SPDX-License-Identifier: MIT */
/*
 * Names of users by their uids, from the machine's file of users. Names are kept for some minutes,
 * those of a bounded number of uids. A uid of a range that a user was given (/etc/subuid), as the
 * processes of his containers have, counts as that user.
 *
 * Not for several threads at a time.
 */
#ifndef CUSCOPE_IDENTITY_PROCESS_USERS_H
#define CUSCOPE_IDENTITY_PROCESS_USERS_H

#include <stddef.h>
#include <stdint.h>

#define PROCESS_USERS_MAX 1024 /* whose names are kept */

struct process_users;

/* `passwd`: instead of the machine's, for tests; NULL: that. */
struct process_users *process_users_new(const char *passwd);
void process_users_free(struct process_users *users);

/* The number itself where there is no name. `now_ns`: CLOCK_MONOTONIC. */
void process_users_name(struct process_users *users, uint32_t uid, uint64_t now_ns, char *name,
                        size_t room);

#endif
