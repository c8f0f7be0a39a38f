/* SPDX-License-Identifier: MIT */
/*
 * Who may have how many hooks. There are 16,384, and files that anyone can write would take them
 * all. So each file has a share, and each user (person.h: who maps the files first, or owns them).
 * All users but root together have one, too; root's files are the system's.
 *
 * A number that was given out stays its owner's when the file is let go (modules_gone.c), until
 * another file takes it: so nobody has more by bringing one file after the other.
 */
#ifndef CUSCOPE_PROBE_SHARES_H
#define CUSCOPE_PROBE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

#define SHARE_FILE 2048 /* libcuda has 680 functions, libcudart 420 */
#define SHARE_USER 8192 /* forty programs with cudart linked in */
#define SHARE_ROOT 4096 /* that nobody else gets */

/* Of the 4,096 files with hooks: a file with one function is as good as any to fill the list. */
#define SHARE_USER_FILES  1024
#define SHARE_USERS_FILES 3072 /* of all but root */

struct shares {
	struct quota hooks, files;
	struct quota live; /* hooks of files that are hooked: those of `hooks` or less */
};

struct shares shares_init(void);

/* One more file of this owner: NULL, or why not (static). */
const char *shares_take_file(struct shares *shares, uint64_t owner);

/*
 * How many of `wanted` hooks a file of this owner gets, and why not more (static; else NULL). It
 * gets none where there is no room for all that a file may have: who has little left would leave
 * others' files with a hook or two.
 */
size_t shares_take(struct shares *shares, uint64_t owner, size_t wanted, const char **why);

/* Why a file that wants so many does not get all; NULL: it may. */
const char *shares_file_limit(size_t wanted);

/* A number of a file that was let go is about to be another's; or it is not, after all. */
void shares_give(struct shares *shares, uint64_t owner);
void shares_keep(struct shares *shares, uint64_t owner);

/* One of its files is let go, which has so many hooks; or it is there after all. */
void shares_file_gone(struct shares *shares, uint64_t owner, size_t hooks);
void shares_file_back(struct shares *shares, uint64_t owner, size_t hooks);

/* Whether half of what this owner's files may have, or of all that he shares, is in use. */
bool shares_are_crowded(const struct shares *shares, uint64_t owner);

void shares_free(struct shares *shares);

#endif
