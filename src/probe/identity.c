// SPDX-License-Identifier: MIT
#include "probe/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"

#ifndef CLOSE_RANGE_CLOEXEC /* Linux 5.11 */
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

extern char **environ;

/*
 * Through the name services, since a cluster's users need not be in /etc/passwd. A static program
 * is sure to find those who are; others, where the machine has the services of its own libc.
 */
int identity_find(const char *name, struct identity *identity, struct err *err)
{
	struct passwd *entry;

	memset(identity, 0, sizeof(*identity));
	if (!name)
		return 0;
	entry = getpwnam(name);
	if (!entry)
		return err_set(err, ENOENT, "--user: there is no user '%s'", name);
	identity->change = true;
	identity->uid = entry->pw_uid;
	identity->gid = entry->pw_gid;
	snprintf(identity->name, sizeof(identity->name), "%s", entry->pw_name);
	snprintf(identity->home, sizeof(identity->home), "%s", entry->pw_dir);
	snprintf(identity->shell, sizeof(identity->shell), "%s",
	         entry->pw_shell && *entry->pw_shell ? entry->pw_shell : "/bin/sh");
	return 0;
}

/* What root's shell had open may be files that this user must not read. */
static void close_at_exec(void)
{
	if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	for (int fd = 3; fd < 65536; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/*
 * Who is in a session may read the keys of its keyring, whoever he is by now: passwords of network
 * file systems, tickets. Where there are no keys, or no way to them, that fails and does no harm.
 */
static void leave_keys_behind(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		errno = 0;
}

int identity_become(const struct identity *identity)
{
	if (!identity->change)
		return 0;
	close_at_exec();
	if (initgroups(identity->name, identity->gid) || setgid(identity->gid) ||
	    setuid(identity->uid))
		return errno;
	leave_keys_behind();
	return 0;
}

/* ---- the environment ------------------------------------------------------------------------- */

/* Where programs and their files are, how to write, and which GPU: what sudo's users miss most. */
static const char *const open_names[] = { "PATH",     "TERM",   "COLORTERM", "LANG",
	                                  "LANGUAGE", "LC_*",   "TZ",        "LD_LIBRARY_PATH",
	                                  "NO_COLOR", "CUDA_*", "NVIDIA_*" };

static bool is_named(const char *variable, const char *glob)
{
	char name[256];
	size_t length = strcspn(variable, "=");

	if (length >= sizeof(name))
		return false;
	memcpy(name, variable, length);
	name[length] = '\0';
	return fnmatch(glob, name, 0) == 0;
}

static bool goes_along(const struct identity *identity, const struct environment *from,
                       const char *variable)
{
	bool along = !identity->change || from->keep;

	for (size_t i = 0; !along && i < ARRAY_SIZE(open_names); i++)
		along = is_named(variable, open_names[i]);
	for (size_t i = 0; !along && i < from->n_wanted; i++)
		along = !strchr(from->wanted[i], '=') && is_named(variable, from->wanted[i]);
	return along;
}

/* In place of one of the same name. `variable` is the environment's from then on. */
static void put(char ***environment, size_t *n, char *variable)
{
	size_t length = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < *n; i++) {
		if (strncmp((*environment)[i], variable, length) == 0) {
			free((*environment)[i]);
			(*environment)[i] = variable;
			return;
		}
	}
	*environment = xrealloc(*environment, (*n + 2) * sizeof(**environment));
	(*environment)[(*n)++] = variable;
	(*environment)[*n] = NULL;
}

char **environment_new(const struct identity *identity, const struct environment *from)
{
	char **environment = xcalloc(1, sizeof(*environment));
	size_t n = 0;

	for (char **variable = environ; variable && *variable; variable++) {
		if (strchr(*variable, '=') && goes_along(identity, from, *variable))
			put(&environment, &n, xasprintf("%s", *variable));
	}
	if (identity->change) {
		put(&environment, &n, xasprintf("HOME=%s", identity->home));
		put(&environment, &n, xasprintf("USER=%s", identity->name));
		put(&environment, &n, xasprintf("LOGNAME=%s", identity->name));
		put(&environment, &n, xasprintf("SHELL=%s", identity->shell));
	}
	for (size_t i = 0; i < from->n_wanted; i++) {
		if (strchr(from->wanted[i], '='))
			put(&environment, &n, xasprintf("%s", from->wanted[i]));
	}
	for (char *const *variable = from->set; variable && *variable; variable++)
		put(&environment, &n, xasprintf("%s", *variable));
	return environment;
}

void environment_free(char **environment)
{
	for (char **variable = environment; variable && *variable; variable++)
		free(*variable);
	free(environment);
}

void origin_save(struct origin *origin)
{
	getrlimit(RLIMIT_NOFILE, &origin->files);
	getrlimit(RLIMIT_MEMLOCK, &origin->locked_memory);
	sigaction(SIGPIPE, NULL, &origin->pipe);
	sigaction(SIGCHLD, NULL, &origin->child);
	sigaction(SIGXFSZ, NULL, &origin->file_size);
	sigprocmask(SIG_SETMASK, NULL, &origin->mask);
}

void origin_restore(const struct origin *origin)
{
	setrlimit(RLIMIT_NOFILE, &origin->files);
	setrlimit(RLIMIT_MEMLOCK, &origin->locked_memory);
	sigaction(SIGPIPE, &origin->pipe, NULL);
	sigaction(SIGCHLD, &origin->child, NULL);
	sigaction(SIGXFSZ, &origin->file_size, NULL);
	sigprocmask(SIG_SETMASK, &origin->mask, NULL);
}
