/* SPDX-License-Identifier: MIT */
/*
 * The numbers of hooks, which records and sums carry. A number belongs to one function of one layer
 * for good, whichever file that is in. So what still carries it when its file was let go, is told
 * under the right name, and need not be waited for: the next file with this function takes it.
 * Those of functions that no file has any more stay unused. They are few: an owner has no more of
 * them than his files had at once (hook_numbers.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"
#include "bpf/wire.h"
#include "probe/module.h"

/*
 * Who may have how many hooks. There are 16,384, and files that anyone can write would take them
 * all. So each file has a share, and each user (person.h: who maps the files first, or owns them).
 * All users but root together have one, too; root's files are the system's.
 *
 * A number that was given out stays its owner's when the file is let go (modules_gone.c), until
 * another file takes it: so nobody has more by bringing one file after the other.
 */

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

/* One of its files is let go, which has so many hooks; or it is there after all. */
void shares_file_gone(struct shares *shares, uint64_t owner, size_t hooks);
void shares_file_back(struct shares *shares, uint64_t owner, size_t hooks);

/* Whether half of what this owner's files may have, or of all that he shares, is in use. */
bool shares_are_crowded(const struct shares *shares, uint64_t owner);

void shares_free(struct shares *shares);

struct hook_numbers {
	struct spare_numbers *spare; /* of each function */
	bool by_file;
	uint64_t owners[WIRE_HOOKS_MAX]; /* of those below `next` */
	size_t next;
};

/*
 * Numbers for all hooks of a module that are not off, as far as its owner's share goes: 0, or
 * -ENOSPC, and why (static). `reused` is called for each that another file had. Where calls are
 * told one by one, with the name of their file, a number is one of that name as well (`by_file`).
 */
int hook_numbers_take(struct hook_numbers *numbers, struct shares *shares, struct module *module,
                      void (*reused)(void *data, uint16_t id), void *data, const char **why);

/* They may be another file's. They keep their owner. */
void hook_numbers_give_back(struct hook_numbers *numbers, const struct module *module);

void hook_numbers_free(struct hook_numbers *numbers);
