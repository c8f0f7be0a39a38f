/* SPDX-License-Identifier: MIT */
/*
 * Who may have how many hooks. There are 16,384, and files that anyone can write would take them
 * all. So each file has a share, and each user (person.h: who maps the files first, or owns them).
 * All users but root together have one, too; root's files are the system's.
 */
#ifndef CUSCOPE_PROBE_SHARES_H
#define CUSCOPE_PROBE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define SHARE_FILE 2048 /* libcuda has 680 functions, libcudart 420 */
#define SHARE_USER 8192 /* forty programs with cudart linked in */
#define SHARE_ROOT 4096 /* that nobody else gets */

/* Of the 4,096 files with hooks: a file with one function is as good as any to fill the list. */
#define SHARE_USER_FILES  1024
#define SHARE_USERS_FILES 3072 /* of all but root */

struct shares {
	struct share {
		uint64_t owner;
		size_t taken, files;
	} * users;
	size_t n_users;
	size_t taken, taken_by_users; /* in all; by all but root */
	size_t files_of_users;
};

/* One more file of this owner: NULL, or why not (static). */
const char *shares_take_file(struct shares *shares, uint64_t owner);

/*
 * How many of `wanted` hooks a file of this owner gets, and why not more (static; else NULL). It
 * gets none where there is no room for all that a file may have.
 */
size_t shares_take(struct shares *shares, uint64_t owner, size_t wanted, const char **why);

void shares_free(struct shares *shares);

#endif
