// SPDX-License-Identifier: MIT
#include "capture/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/order.h"
#include "base/process.h"
#include "base/vec.h"
#include "probe/name_glob.h"

/* ---- target family ------------------------------------------------------------------------- */

/* The processes below others: what these have started, and what that has. Private to target.c. */

#define PASSES_MAX 4
#define SWEEPS_MAX 64

struct family_relative {
	pid_t pid, parent;
	bool below; /* one of those that are asked for */
};

struct family {
	struct family_relative *all; /* by pid */
	size_t n;
};

ORDER_BY(by_pid, struct family_relative, UP(pid));

static struct family_relative *family_find(const struct family *family, pid_t pid)
{
	const struct family_relative key = { .pid = pid };

	return family->n ? bsearch(&key, family->all, family->n, sizeof(key), by_pid) : NULL;
}

static void family_add(struct family *family, pid_t pid)
{
	struct process_stat stat;

	if (pid == getpid() || !process_stat_read(pid, 0, &stat))
		return;
	family->all = vec_room(family->all, family->n, sizeof(*family->all));
	family->all[family->n++] = (struct family_relative){ .pid = pid, .parent = stat.parent };
}

static bool is_asked(const pid_t *pids, size_t n_pids, pid_t pid)
{
	for (size_t i = 0; i < n_pids; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/*
 * Whether more of them are below `pids` than was known. A child mostly has a higher pid than its
 * parent, so one sweep finds all levels; it takes one more for each time that pids began anew.
 */
static bool family_sweep(struct family *family, const pid_t *pids, size_t n_pids)
{
	bool more = false;

	for (size_t i = 0; i < family->n; i++) {
		struct family_relative *relative = &family->all[i], *parent;

		if (relative->below)
			continue;
		parent = family_find(family, relative->parent);
		relative->below =
			is_asked(pids, n_pids, relative->parent) || (parent && parent->below);
		more |= relative->below;
	}
	return more;
}

/* All processes, and which of them are below `pids`. */
static int family_look(const pid_t *pids, size_t n_pids, struct family *family, struct err *err)
{
	DIR *processes = process_list(0);
	pid_t pid;

	*family = (struct family){ 0 };
	if (!processes)
		return err_set(err, errno, "reading /proc: %s", strerror(errno));
	while ((pid = process_next(processes)))
		family_add(family, pid);
	process_list_end(&processes);
	if (family->n)
		qsort(family->all, family->n, sizeof(*family->all), by_pid);
	for (int i = 0; i < SWEEPS_MAX && family_sweep(family, pids, n_pids); i++)
		;
	return 0;
}

/*
 * Calls `each` once for every process below one of `pids` that is there, but not for this program
 * and what is below it. It looks again while it finds more: what a process forks before `each` was
 * called for it may come while it is looked for.
 */
static int target_each_below(const pid_t *pids, size_t n_pids, int (*each)(void *data, pid_t pid),
                             void *data, struct err *err)
{
	struct family before = { 0 }, now;
	bool more = true;
	int r = 0;

	for (int pass = 0; !r && more && pass < PASSES_MAX; pass++) {
		more = false;
		r = family_look(pids, n_pids, &now, err);
		for (size_t i = 0; i < now.n && !r; i++) {
			const struct family_relative *old = family_find(&before, now.all[i].pid);

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

/* ---- target -------------------------------------------------------------------------------- */

static bool glob_matches_program(const struct wire_glob *glob, pid_t pid)
{
	static const char deleted[] = " (deleted)"; /* as the kernel says it in the link */
	char file[PATH_MAX];
	ssize_t n = process_look(pid, PROCESS_LINK, "exe", file, sizeof(file) - 1);
	const char *slash;

	if (n <= 0)
		return false;
	file[n] = '\0';
	if (n >= (ssize_t)sizeof(deleted) && !strcmp(file + n - strlen(deleted), deleted))
		file[n - strlen(deleted)] = '\0';
	slash = strrchr(file, '/');
	return name_glob_matches(glob, slash ? slash + 1 : file);
}

int target_glob(const struct target *target, struct wire_glob *glob, struct err *err)
{
	return name_glob_compile(target->glob, glob)
	               ? 0
	               : err_set(err, EINVAL, "--name: '%.40s...' is longer than any name",
	                         target->glob);
}

bool target_name_matches(const struct target *target, pid_t pid)
{
	struct wire_glob glob;
	char name[64];

	if (target_glob(target, &glob, NULL))
		return false;
	if (process_comm(pid, 0, name, sizeof(name)) && name_glob_matches(&glob, name))
		return true;
	return glob_matches_program(&glob, pid);
}

int target_seccomp_mode(pid_t pid)
{
	int mode = 0;

	process_status(pid, 0, "Seccomp: %d", &mode);
	return mode;
}

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

static bool is_of_kernel(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, 0, &stat) && stat.flags & PF_KTHREAD;
}

bool target_is_valgrind(pid_t pid)
{
	char file[PATH_MAX];
	const char *slash;
	ssize_t n = process_look(pid, PROCESS_LINK, "exe", file, sizeof(file) - 1);

	if (n <= 0)
		return false;
	file[n] = '\0';
	slash = strrchr(file, '/'); /* /usr/libexec/valgrind/memcheck-amd64-linux */
	return slash && slash - file >= 9 && !strncmp(slash - 9, "/valgrind", 9) &&
	       fnmatch("*-*-linux", slash + 1, 0) == 0;
}

/* ---- enumerating --------------------------------------------------------------------------- */

static int check_pid(pid_t pid, struct err *err)
{
	pid_t process = pid;

	if (kill(pid, 0) && errno == ESRCH)
		return err_set(err, ESRCH, "there is no process %d", pid);
	/* what kill and /proc/PID take for a process may be one of its threads */
	process_status(pid, 0, "Tgid: %d", &process);
	if (process != pid)
		return err_set(err, EINVAL,
		               "%d is a thread of process %d, and whole processes are "
		               "traced: -p %d",
		               pid, process, process);
	if (is_of_kernel(pid))
		return err_set(err, EINVAL, "%d is a thread of the kernel, and those use no CUDA",
		               pid);
	if (process_is_over(pid))
		return err_set(err, ESRCH, "process %d has ended (a zombie)", pid);
	return target_is_valgrind(pid) ? err_set(err, EINVAL, TARGET_VALGRIND, pid) : 0;
}

static int each_pid(const struct target *target, int (*each)(void *data, pid_t pid), void *data,
                    struct err *err)
{
	struct err why = { 0 };
	bool any = false;
	int passed = 0;

	for (size_t i = 0; i < target->n_pids; i++) {
		int rc = check_pid(target->pids[i], &why);

		if (rc && !target->pass)
			return err_set(err, rc, "%s", why.text);
		if (rc) {
			target->pass(why.text);
			passed = rc;
			continue;
		}
		any = true;
		rc = each(data, target->pids[i]);
		if (rc)
			return rc;
	}
	return any || !passed ? 0 : err_set(err, passed, "%s", why.text);
}

static int each_process(const struct target *target, int (*each)(void *data, pid_t pid), void *data,
                        struct err *err)
{
	AT_END(process_list_end) DIR *processes = process_list(0);
	pid_t pid;
	int r = 0;

	if (!processes)
		return err_set(err, errno, "reading /proc: %s", strerror(errno));
	while (!r && (pid = process_next(processes))) {
		if (pid == getpid())
			continue;
		if (target->kind == TARGET_ALL || target_name_matches(target, pid))
			r = each(data, pid);
	}
	return r;
}

/* ---- by cgroup ----------------------------------------------------------------------------- */

/* The cgroups within one, by name; those from `at` on were not looked into yet. */
struct cgroup_level {
	struct buf names;
	size_t at;
};

struct cgroup_walk {
	int folder; /* where it is */
	struct cgroup_level *levels;
	size_t n_levels;
};

/* The processes of the cgroup where the walk is, and the names of those within it. */
static int cgroup_enter(struct cgroup_walk *walk, int (*each)(void *data, pid_t pid), void *data)
{
	int procs = openat(walk->folder, "cgroup.procs", O_RDONLY | O_CLOEXEC), r = 0, pid;
	int copy = openat(walk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FILE *f = procs < 0 ? NULL : fdopen(procs, "r");
	DIR *within = copy < 0 ? NULL : fdopendir(copy);
	struct cgroup_level *level;
	struct dirent *entry;

	while (f && !r && fscanf(f, "%d", &pid) == 1)
		r = pid > 0 ? each(data, pid) : 0;
	if (f)
		fclose(f);
	walk->levels = vec_room(walk->levels, walk->n_levels, sizeof(*walk->levels));
	level = &walk->levels[walk->n_levels++];
	*level = (struct cgroup_level){ 0 };
	while (within && !r && (entry = readdir(within))) {
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			buf_add(&level->names, entry->d_name, strlen(entry->d_name) + 1);
	}
	if (within)
		closedir(within);
	return r;
}

static bool cgroup_goes_to(struct cgroup_walk *walk, const char *name)
{
	int to = openat(walk->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (to < 0)
		return false;
	close(walk->folder);
	walk->folder = to;
	return true;
}

/*
 * The processes of one cgroup and of those below it. A user may have made them in each other as
 * deep as it liked: one is open at a time, and none is on the stack.
 */
static int each_in_cgroup(int folder, int (*each)(void *data, pid_t pid), void *data,
                          struct err *err)
{
	struct cgroup_walk walk = { .folder = folder };
	int r = cgroup_enter(&walk, each, data);

	while (walk.n_levels) {
		struct cgroup_level *level = &walk.levels[walk.n_levels - 1];

		if (!r && level->at < level->names.len) {
			const char *name = level->names.data + level->at;

			level->at += strlen(name) + 1;
			if (cgroup_goes_to(&walk, name)) /* else it is gone */
				r = cgroup_enter(&walk, each, data);
			continue;
		}
		buf_free(&level->names);
		if (--walk.n_levels && !r && !cgroup_goes_to(&walk, ".."))
			r = err_set(err, errno, "--cgroup: looking for processes: %s",
			            strerror(errno));
	}
	close(walk.folder);
	free(walk.levels);
	return r;
}

int target_cgroup_open(const struct target *target, struct err *err)
{
	static const char *const roots[] = { "", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/" };
	char path[PATH_MAX];
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s%s", roots[i], target->cgroup);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
		    faccessat(fd, "cgroup.procs", R_OK, 0) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return err_set(err, ENOENT,
	               "--cgroup: '%s' is no cgroup (give its folder, as in "
	               "/sys/fs/cgroup/system.slice/my.service; cgroup2 only)",
	               target->cgroup);
}

int target_each(const struct target *target, int (*each)(void *data, pid_t pid), void *data,
                struct err *err)
{
	int folder, r;

	switch (target->kind) {
	case TARGET_PIDS:
		r = each_pid(target, each, data, err);
		if (!r && target->family)
			r = target_each_below(target->pids, target->n_pids, each, data, err);
		return r;
	case TARGET_NAME:
	case TARGET_ALL:
		return each_process(target, each, data, err);
	case TARGET_CGROUP:
		folder = target_cgroup_open(target, err);
		if (folder < 0)
			return folder;
		return each_in_cgroup(folder, each, data, err);
	case TARGET_COMMAND:
		break;
	}
	return 0;
}
