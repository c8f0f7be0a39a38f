// SPDX-License-Identifier: MIT
#include "probe/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/mounts.h"

#ifndef BCACHEFS_SUPER_MAGIC /* Linux 6.7 */
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

/* ---- one line -------------------------------------------------------------------------------- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* A number and the character after it; strtoull would take signs, spaces and 0x as well. */
static bool take_number(char **at, unsigned base, char after, uint64_t *value)
{
	char *p = *at;

	*value = 0;
	for (; (unsigned)digit_of(*p) < base; p++) {
		if (*value > (UINT64_MAX - (unsigned)digit_of(*p)) / base)
			return false;
		*value = *value * base + (unsigned)digit_of(*p);
	}
	if (p == *at || *p != after)
		return false;
	*at = p + 1;
	return true;
}

/* "r-xp " */
static bool take_permissions(char **at, struct mapping *mapping)
{
	const char *p = *at;

	if ((p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') ||
	    (p[2] != 'x' && p[2] != '-') || (p[3] != 'p' && p[3] != 's') || p[4] != ' ')
		return false;
	mapping->readable = p[0] == 'r';
	mapping->writable = p[1] == 'w';
	mapping->executable = p[2] == 'x';
	mapping->private = p[3] == 'p';
	*at += 5;
	return true;
}

/* The inode is the last number: a path follows it after spaces, or nothing at all. */
static bool take_inode(char **at, struct mapping *mapping)
{
	size_t digits = strspn(*at, "0123456789");
	char after = (*at)[digits];

	if ((after && after != ' ') || !take_number(at, 10, after, &mapping->inode))
		return false;
	if (!after)
		(*at)--;
	*at += strspn(*at, " ");
	return true;
}

int mapping_parse(char *line, struct mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_len = sizeof(deleted) - 1;
	uint64_t major_number, minor_number;
	char *at = line;
	size_t len = strlen(line);

	memset(mapping, 0, sizeof(*mapping));
	if (len && line[len - 1] == '\n')
		line[--len] = '\0';
	if (!take_number(&at, 16, '-', &mapping->start) ||
	    !take_number(&at, 16, ' ', &mapping->end) || !take_permissions(&at, mapping) ||
	    !take_number(&at, 16, ' ', &mapping->offset) ||
	    !take_number(&at, 16, ':', &major_number) ||
	    !take_number(&at, 16, ' ', &minor_number) || !take_inode(&at, mapping) ||
	    mapping->start > mapping->end || major_number > UINT_MAX || minor_number > UINT_MAX)
		return -EINVAL;
	mapping->dev = makedev((unsigned)major_number, (unsigned)minor_number);
	len = strlen(at);
	if (len > deleted_len && strcmp(at + len - deleted_len, deleted) == 0) {
		mapping->deleted = true;
		at[len - deleted_len] = '\0';
	}
	mapping->path = at;
	return 0;
}

/* ---- all lines of a process ------------------------------------------------------------------ */

static int read_error(pid_t pid, int code, struct err *err)
{
	if (code == ETIMEDOUT)
		return err_set(
			err, code,
			"process %d was given up: reading its memory or its files did not end",
			pid);
	if (code == ENOENT || code == ESRCH)
		return err_set(err, ESRCH, "no process has the pid %d", pid);
	if (code == E2BIG)
		return err_set(err, code,
		               "process %d has so much mapped that its list has more than %u MiB",
		               pid, HELPER_MAPS_BYTES >> 20);
	if (code == EACCES || code == EPERM)
		return err_set(err, code,
		               "cannot read the memory map of process %d: %s; run as root or with "
		               "CAP_SYS_PTRACE",
		               pid, strerror(code));
	return err_set(err, code, "cannot read the memory map of process %d: %s", pid,
	               strerror(code));
}

/* Lines longer than this are cut: a path of 4,096 characters, each of them a newline. */
#define LINE_MAX_BYTES (4 * PATH_MAX + 256)

/* What came of the text of maps, a line at a time. */
struct maps_text {
	bool files_only;
	int (*each)(const struct mapping *mapping, void *data);
	void *data;
	int stopped;       /* by `each`, with this */
	uint64_t until_ns; /* as helper_busy_ns() has it; 0: without a limit */
	size_t len;
	char line[LINE_MAX_BYTES];
};

static int end_line(struct maps_text *lines)
{
	struct mapping mapping;

	lines->line[lines->len] = '\0';
	lines->len = 0;
	/* A line of a shape that only a later kernel knows is no reason to give up. */
	if (mapping_parse(lines->line, &mapping) || !mapping.executable ||
	    (lines->files_only && !mapping.inode))
		return 0;
	return lines->stopped = lines->each(&mapping, lines->data);
}

static int take_text(const char *text, size_t len, void *data)
{
	struct maps_text *lines = data;
	int rc = 0;

	if (lines->until_ns && helper_busy_ns() > lines->until_ns)
		return -ETIME;
	for (size_t i = 0; i < len && !rc; i++) {
		if (text[i] == '\n')
			rc = end_line(lines);
		else if (lines->len < sizeof(lines->line) - 1)
			lines->line[lines->len++] = text[i];
	}
	return rc;
}

static int each_executable(pid_t pid, bool files_only, uint64_t most_ns,
                           int (*each)(const struct mapping *mapping, void *data), void *data,
                           struct err *err)
{
	AT_END(at_end_free) struct maps_text *lines = xmalloc(sizeof(*lines));
	int rc, stopped;

	lines->files_only = files_only;
	lines->each = each;
	lines->data = data;
	lines->stopped = 0;
	lines->until_ns = most_ns ? helper_busy_ns() + most_ns : 0;
	lines->len = 0;
	rc = helper_maps(pid, take_text, lines);
	stopped = lines->stopped;
	return stopped || rc >= 0 ? rc : read_error(pid, -rc, err);
}

int maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
              struct err *err)
{
	return each_executable(pid, true, 0, each, data, err);
}

int maps_each_code(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                   struct err *err)
{
	return each_executable(pid, false, 0, each, data, err);
}

int maps_each_code_within(pid_t pid, uint64_t most_ns,
                          int (*each)(const struct mapping *mapping, void *data), void *data,
                          struct err *err)
{
	return each_executable(pid, false, most_ns, each, data, err);
}

/* ---- opening what is mapped ------------------------------------------------------------------ */

/* Whether files have one device in maps and another in stat: anonymous ones for each subvolume or
 * layer. */
static bool has_two_devices(const struct statfs *fs)
{
	return fs->f_type == OVERLAYFS_SUPER_MAGIC || fs->f_type == BTRFS_SUPER_MAGIC ||
	       (uint32_t)fs->f_type == BCACHEFS_SUPER_MAGIC;
}

/*
 * Whether an open file is the mapped one. The inode must agree. The device must as well when the
 * file was found by its path, but for file systems where it never does:
 * - overlayfs, where maps showed device and inode of the layer below until the kernel learned to
 *   show the overlay's (and whose "xino" option puts the layer's number into the top bits of the
 *   inode that stat gives);
 * - btrfs and bcachefs, where maps shows the device of the whole and stat that of the subvolume.
 *
 * On these, a file with the same path and inode number in another layer would be taken for the
 * mapped one. That is possible, but not likely. By map_files, only a mapping that was replaced
 * since maps was read can be the wrong one, and then its inode differs.
 */
static bool is_same_file(int fd, const struct statfs *fs, const struct mapping *mapping,
                         bool by_path)
{
	uint64_t differs;
	struct stat st;

	if (file_stat(fd, &st) < 0)
		return false;
	differs = (uint64_t)st.st_ino ^ mapping->inode;
	if (fs->f_type == OVERLAYFS_SUPER_MAGIC)
		differs <<= 16;
	return !differs && (!by_path || st.st_dev == mapping->dev || has_two_devices(fs));
}

/*
 * A file of an untrusted process is looked at before it is opened for reading: opening a FIFO would
 * block, opening a device may do anything. Where `is_path` is given, one that somebody serves is
 * not opened at all: closing it again would wait for the server, in the kernel and for good. Nor is
 * one that a user can write to: who punches a hole into it, or cuts it, keeps all who read pages
 * that are not in memory waiting until the kernel has freed what was there, 50 s for 300,000
 * pieces.
 */
static bool is_users_to_write(int fd)
{
	struct stat st;

	return file_stat(fd, &st) || st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH);
}

static int open_for_reading(int path_fd, const struct statfs *fs, bool *is_path)
{
	char self[64];
	int fd;

	if (is_path && (!mount_is_local(fs) || is_users_to_write(path_fd))) {
		*is_path = true;
		return path_fd;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(path_fd);
	return fd;
}

static int open_checked(int path_fd, const struct mapping *mapping, bool by_path, bool *is_path)
{
	struct statfs fs;
	struct stat st;

	if (path_fd < 0)
		return -errno;
	if (file_stat(path_fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		close(path_fd);
		return -ENODEV; /* a device's memory, which holds no program */
	}
	if (fstatfs(path_fd, &fs) == 0 && is_same_file(path_fd, &fs, mapping, by_path))
		return open_for_reading(path_fd, &fs, is_path);
	close(path_fd);
	return -ESTALE;
}

static int open_map_file(pid_t pid, const struct mapping *mapping, bool *is_path)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, mapping->start,
	         mapping->end);
	return open_checked(open(path, O_PATH | O_CLOEXEC), mapping, false, is_path);
}

/*
 * The root of the mount namespace that this process is in. In a chroot it has another one, until it
 * enters the namespace once more. For a helper: the folder that it is in becomes the root.
 */
static int open_namespace_root(void)
{
	AT_END(at_end_close) int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int here = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), root = -EPERM;

	if (own >= 0 && here >= 0 && setns(own, CLONE_NEWNS) == 0) {
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fchdir(here) || chroot("."))
			abort(); /* both are what entering took */
	}
	close(here);
	return root;
}

static int open_root(pid_t pid)
{
	char root[64];
	int fd;

	if (pid == MAPPING_OF_NAMESPACE)
		return open_namespace_root();
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A path under the root of the process, which no link in it may leave; O_PATH. */
static int path_under_root(pid_t pid, const char *path, int flags)
{
	int root_fd = open_root(pid), fd;

	if (root_fd < 0)
		return root_fd;
	fd = root_path_open(root_fd, path, flags);
	close(root_fd);
	return fd;
}

static int open_under_root(pid_t pid, const struct mapping *mapping, const char *path,
                           bool *is_path)
{
	int fd = path_under_root(pid, path, 0);

	return fd < 0 ? fd : open_checked(fd, mapping, true, is_path);
}

int path_open_here(pid_t pid, const char *path, bool *is_path)
{
	int fd = path_under_root(pid, path, O_NOFOLLOW);
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) == 0 && file_stat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    !mount_is_kernels(&fs))
		return open_for_reading(fd, &fs, is_path);
	close(fd);
	return -EINVAL;
}

/* Undoes what maps does to a newline in a path, the only character it writes otherwise. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		bool newline = strncmp(from, "\\012", 4) == 0;

		*to = newline ? '\n' : *from;
		from += newline ? 4 : 1;
	}
	*to = '\0';
}

/*
 * maps leaves a backslash as it is, so "\012" may be meant literally, and " (deleted)" may be the
 * end of a name. The inode tells which file is the one.
 */
static int open_by_path(pid_t pid, const struct mapping *mapping, bool *is_path)
{
	char path[PATH_MAX];
	int fd;

	if (mapping->path[0] != '/' ||
	    snprintf(path, sizeof(path) - 10, "%s", mapping->path) >= (int)sizeof(path) - 10)
		return -ENOENT;
	fd = open_under_root(pid, mapping, path, is_path);
	if (fd < 0 && strstr(path, "\\012")) {
		unescape(path);
		fd = open_under_root(pid, mapping, path, is_path);
	}
	if (fd < 0 && mapping->deleted) {
		strcat(path, " (deleted)");
		fd = open_under_root(pid, mapping, path, is_path);
	}
	return fd;
}

int mapping_open_here(pid_t pid, const struct mapping *mapping, bool *is_path, int *by_map)
{
	*by_map = open_map_file(pid, mapping, is_path);
	if (*by_map >= 0)
		return *by_map;
	if (pid == MAPPING_OF_NAMESPACE && !is_path)
		return -EPERM; /* it would leave its folder, too */
	return open_by_path(pid, mapping, is_path);
}

int mapping_open(pid_t pid, const struct mapping *mapping, struct err *err)
{
	int by_map = -EIO, fd = helper_open_mapping(pid, mapping, &by_map);

	if (fd >= 0)
		return fd;
	if (by_map >= 0) /* it was opened, and did not get here */
		by_map = fd;
	if (fd == -ETIMEDOUT)
		return err_set(err, fd,
		               "cannot open %s, which process %d has mapped: opening it did not "
		               "end, and the process was given up",
		               mapping->path, pid);
	if (by_map == -EPERM || by_map == -EACCES)
		return err_set(err, by_map,
		               "cannot open %s, which process %d has mapped: %s; run as root or "
		               "with CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE",
		               mapping->path, pid, strerror(-by_map));
	if (by_map == -ENOENT || by_map == -ESTALE)
		return err_set(err, by_map,
		               "process %d has %s no longer mapped at 0x%lx, and the file at its "
		               "path is another one",
		               pid, mapping->path, mapping->start);
	return err_set(err, by_map, "cannot open %s, which process %d has mapped: %s",
	               mapping->path, pid, strerror(-by_map));
}

int mapping_open_gone(pid_t parent, uint64_t person, const struct mapping *mapping)
{
	const pid_t under[] = { parent, getpid(), MAPPING_OF_NAMESPACE };
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(under); i++)
		fd = helper_open_gone(under[i], person, mapping);
	return fd;
}
