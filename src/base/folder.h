/* SPDX-License-Identifier: MIT */
/*
 * The folder that a path leads to, as a descriptor: what is done there by name afterwards cannot be
 * led elsewhere by who exchanges a part of the path.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Opens the folder of `path` and gives the last part of the path as `name`, which the caller frees.
 * Root follows no link on the way that belongs to somebody who could not have run cuscope: it may
 * have been put there to lead root's files elsewhere. A descriptor (O_PATH) or a negative errno.
 */
int folder_open(const char *path, char **name, struct err *err);

/* Whether what belongs to that user was made by root, by us, or by who called sudo. */
bool folder_trusts(uid_t user);

/* Who called sudo, if that is how we were started. */
bool folder_sudo_user(uid_t *user, gid_t *group);
