/* SPDX-License-Identifier: MIT */
/* As whom a command runs, and what it finds in its environment. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"

struct identity {
	bool change; /* else as cuscope runs */
	uid_t uid;
	gid_t gid;
	char name[64], home[256], shell[256];
};

/* Of the user `name`; NULL: as cuscope runs. */
int identity_find(const char *name, struct identity *identity, struct err *err);

/* In the child. Nothing of ours is left open to it but what it is to have. 0 or an errno. */
int identity_become(const struct identity *identity);

/* What a command's environment is made of, besides ours. */
struct environment {
	const char *const *wanted; /* NAME=VALUE, or a glob of names that are handed on */
	size_t n_wanted;
	bool keep;        /* all of ours, to another user too */
	char *const *set; /* NAME=VALUE, NULL at the end; or NULL: cuscope's own, which win */
};

/*
 * The environment of a command, to be freed by environment_free. To another user only what is said
 * to be wanted and what is nobody's secret goes: see docs/trace.md.
 */
char **environment_new(const struct identity *identity, const struct environment *from);
void environment_free(char **environment);

/*
 * What cuscope changes in its own process and a command inherits by fork and exec: limits, the
 * signal mask, the fate of SIGPIPE, SIGCHLD and SIGXFSZ. Saved before anything is changed and
 * restored in the child, so that the command finds what it would find without cuscope (nohup's
 * ignored SIGHUP, too).
 */

struct origin {
	struct rlimit files, locked_memory;
	struct sigaction pipe, child, file_size;
	sigset_t mask;
};

void origin_save(struct origin *origin);

/* In the child, between fork and exec; async-signal-safe. */
void origin_restore(const struct origin *origin);
