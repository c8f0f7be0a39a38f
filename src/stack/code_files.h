/* SPDX-License-Identifier: MIT */
/*
 * The files that processes run, by device and inode, each open as long as somebody holds it and
 * its functions read when they are first asked for. See symbols.h for the bounds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/maps.h"

struct code_files;
struct code_file;

struct code_files *code_files_new(void);
void code_files_free(struct code_files *files);

/* The file of a mapping, opened if it is new. Never NULL; one that cannot be opened has
 * no names. */
struct code_file *code_files_hold(struct code_files *files, pid_t pid,
                                  const struct mapping *mapping);
/* The same of one that is held. */
void code_files_hold_again(struct code_file *file); /* NULL is allowed */
void code_files_drop(struct code_files *files, struct code_file *file);

/*
 * The name, as linked, of the function at a file offset; NULL where there is none, or *late: it is
 * not known, since reading what the user behind `pid` wants to know of files has taken too long
 * (probe/account.h), or what that file holds, and may be later. Valid until the next call of any
 * of these.
 */
const char *code_file_function(struct code_files *files, struct code_file *file, pid_t pid,
                               uint64_t offset, uint64_t *into_bytes, bool *late);

/* Descriptor of it, or -1; by path only where somebody serves it (probe/helper.h). */
int code_file_fd(const struct code_file *file);

/* In hexadecimal; NULL where it has none, or no function of it was asked for. As long as it is
 * held. */
const char *code_file_build_id(const struct code_file *file);
