// SPDX-License-Identifier: MIT
#include "probe/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

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
	if (code == ENOENT || code == ESRCH)
		return err_set(err, ESRCH, "no process has the pid %d", pid);
	if (code == EACCES || code == EPERM)
		return err_set(err, code,
		               "cannot read the memory map of process %d: %s; run as root or with "
		               "CAP_SYS_PTRACE",
		               pid, strerror(code));
	return err_set(err, code, "cannot read the memory map of process %d: %s", pid,
	               strerror(code));
}

static int each_executable(pid_t pid, bool files_only,
                           int (*each)(const struct mapping *mapping, void *data), void *data,
                           struct err *err)
{
	struct mapping mapping;
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return read_error(pid, errno, err);
	errno = 0;
	while (!rc && getline(&line, &room, maps) >= 0) {
		/* A line of a shape that only a later kernel knows is no reason to give up. */
		if (mapping_parse(line, &mapping) == 0 && mapping.executable &&
		    (mapping.inode || !files_only))
			rc = each(&mapping, data);
		errno = 0;
	}
	if (!rc && ferror(maps))
		rc = read_error(pid, errno ? errno : EIO, err);
	free(line);
	fclose(maps);
	return rc;
}

int maps_each(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
              struct err *err)
{
	return each_executable(pid, true, each, data, err);
}

int maps_each_code(pid_t pid, int (*each)(const struct mapping *mapping, void *data), void *data,
                   struct err *err)
{
	return each_executable(pid, false, each, data, err);
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
 * There another file with the same path and inode number in another layer would be taken for the
 * mapped one, which is possible and not likely. By map_files, only a mapping that was replaced
 * since maps was read can be the wrong one, and then its inode differs.
 */
static bool is_same_file(int fd, const struct mapping *mapping, bool by_path)
{
	uint64_t differs;
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) < 0)
		return false;
	differs = (uint64_t)st.st_ino ^ mapping->inode;
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC)
		differs <<= 16;
	return !differs && (!by_path || st.st_dev == mapping->dev || has_two_devices(&fs));
}

/*
 * A file of an untrusted process is looked at before it is opened for reading: opening a FIFO would
 * block, opening a device may do anything.
 */
static int open_checked(int path_fd, const struct mapping *mapping, bool by_path)
{
	char self[64];
	int fd;

	if (path_fd < 0)
		return -errno;
	if (is_same_file(path_fd, mapping, by_path)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		fd = open(self, O_RDONLY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	} else {
		fd = -ESTALE;
	}
	close(path_fd);
	return fd;
}

static int open_map_file(pid_t pid, const struct mapping *mapping)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid,
	         (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	return open_checked(open(path, O_PATH | O_CLOEXEC), mapping, false);
}

/* Under the root of the process, which no link in the path may leave. */
static int open_under_root(pid_t pid, const struct mapping *mapping, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char root[64];
	int root_fd, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	fd = open_checked(fd, mapping, true);
	close(root_fd);
	return fd;
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
static int open_by_path(pid_t pid, const struct mapping *mapping)
{
	char path[PATH_MAX];
	int fd;

	if (mapping->path[0] != '/' ||
	    snprintf(path, sizeof(path) - 10, "%s", mapping->path) >= (int)sizeof(path) - 10)
		return -ENOENT;
	fd = open_under_root(pid, mapping, path);
	if (fd < 0 && strstr(path, "\\012")) {
		unescape(path);
		fd = open_under_root(pid, mapping, path);
	}
	if (fd < 0 && mapping->deleted) {
		strcat(path, " (deleted)");
		fd = open_under_root(pid, mapping, path);
	}
	return fd;
}

int mapping_open(pid_t pid, const struct mapping *mapping, struct err *err)
{
	int by_map = open_map_file(pid, mapping), by_path;

	if (by_map >= 0)
		return by_map;
	by_path = open_by_path(pid, mapping);
	if (by_path >= 0)
		return by_path;
	if (by_map == -EPERM || by_map == -EACCES)
		return err_set(err, by_map,
		               "cannot open %s as process %d has it mapped: %s; run as root or "
		               "with CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE",
		               mapping->path, pid, strerror(-by_map));
	if (by_map == -ENOENT || by_map == -ESTALE)
		return err_set(err, by_map,
		               "process %d has %s no longer mapped at 0x%llx, and the file at its "
		               "path is another one",
		               pid, mapping->path, (unsigned long long)mapping->start);
	return err_set(err, by_map, "cannot open %s as process %d has it mapped: %s", mapping->path,
	               pid, strerror(-by_map));
}
