/* SPDX-License-Identifier: MIT */
/*
 * Folders and files that nobody but root and we can change: each folder above them up to "/" is
 * root's or ours, and writable for its owner alone, which with an ACL the group's bits tell as
 * well. The sticky bit is not enough: what is removed from /tmp, by a cleaner or its owner, is
 * anybody's to make anew. Folders are opened one in the other, so what was looked at is what is
 * used.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* By its owner and mode alone. */
bool guarded(const struct stat *st);

/*
 * The folder at `path`, absolute and without links or "..", as realpath gives it. A descriptor
 * (O_PATH), or -EACCES: others can change it or, if `all_enter`, not everybody may pass through it;
 * or another negative errno.
 */
int guarded_open(const char *path, bool all_enter);

/*
 * The folder `name` in the guarded folder `parent`, made with mode 0755, whatever the umask is, if
 * it is not there. As guarded_open; `parent` stays open.
 */
int guarded_make(int parent, const char *name, bool all_enter);
