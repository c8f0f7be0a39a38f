// SPDX-License-Identifier: MIT
#include "capture/target_family.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define PASSES_MAX 4
#define LEVELS_MAX 64 /* from a process up to one that is asked for */

struct relative {
	pid_t pid, parent;
	bool below; /* one of those that are asked for */
};

struct family {
	struct relative *all; /* by pid */
	size_t n;
};

static int by_pid(const void *a, const void *b)
{
	const struct relative *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct relative *find(const struct family *family, pid_t pid)
{
	const struct relative key = { .pid = pid };

	return family->n ? bsearch(&key, family->all, family->n, sizeof(key), by_pid) : NULL;
}

static void add(struct family *family, pid_t pid)
{
	struct process_stat stat;

	if (pid == getpid() || !process_stat_read(pid, 0, &stat))
		return;
	family->all = vec_room(family->all, family->n, sizeof(*family->all));
	family->all[family->n++] = (struct relative){ .pid = pid, .parent = stat.parent };
}

static bool is_asked(const pid_t *pids, size_t n_pids, pid_t pid)
{
	for (size_t i = 0; i < n_pids; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* All processes, and which of them are below `pids`. */
static int look(const pid_t *pids, size_t n_pids, struct family *family, struct err *err)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	*family = (struct family){ 0 };
	if (!proc)
		return err_set(err, errno, "reading /proc: %s", strerror(errno));
	while ((entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add(family, atoi(entry->d_name));
	closedir(proc);
	if (family->n)
		qsort(family->all, family->n, sizeof(*family->all), by_pid);
	for (size_t i = 0; i < family->n; i++) {
		struct relative *above = &family->all[i];

		for (int level = 0; above && !family->all[i].below && level < LEVELS_MAX; level++) {
			family->all[i].below = is_asked(pids, n_pids, above->parent);
			above = find(family, above->parent);
		}
	}
	return 0;
}

int target_each_below(const pid_t *pids, size_t n_pids, int (*each)(void *data, pid_t pid),
                      void *data, struct err *err)
{
	struct family before = { 0 }, now;
	bool more = true;
	int r = 0;

	for (int pass = 0; !r && more && pass < PASSES_MAX; pass++) {
		more = false;
		r = look(pids, n_pids, &now, err);
		for (size_t i = 0; i < now.n && !r; i++) {
			const struct relative *old = find(&before, now.all[i].pid);

			if (!now.all[i].below || is_asked(pids, n_pids, now.all[i].pid))
				continue;
			if (old && old->below)
				continue;
			more = true;
			r = each(data, now.all[i].pid);
		}
		free(before.all);
		before = now;
	}
	free(before.all);
	return r;
}
