/* SPDX-License-Identifier: MIT */
/*
 * Files that processes were seen to map, and that nobody has looked into yet: because there was no
 * time so far, or because the process ended first. What becomes of each is asked at the end. A file
 * that is read after all is taken out, and those that had it mapped are told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "bpf/wire.h"

struct unseen;

struct unseen_user {
	uint32_t pid;
	uint64_t born_ns; /* with it, a name that is not used again */
	uint64_t time_ns; /* when it mapped the file; UINT64_MAX: until the file is hooked */
};

struct unseen *unseen_new(void);
void unseen_free(struct unseen *unseen);

/* `name` is the last part of the file's path, "" where it is not known. */
void unseen_add(struct unseen *unseen, const struct wire_file *file, const char *name,
                const struct unseen_user *user);

/*
 * The file was read: takes it out, after `each` was called for those that had it mapped. Returns
 * how often others mapped it, whom there was no room to tell apart.
 */
uint64_t unseen_settle(struct unseen *unseen, const struct wire_file *file,
                       void (*each)(void *data, const struct unseen_user *user), void *data);

/*
 * Processes that had mapped files which nobody could look into: those whose name is one of a CUDA
 * library (`cuda`), or all others. Appends the names of a few of the files.
 */
uint64_t unseen_processes(const struct unseen *unseen, bool cuda, struct buf *names);
