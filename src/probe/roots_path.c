// SPDX-License-Identifier: MIT
#include "probe/roots_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/mounts.h"

#define LINKS_MAX 40 /* as the kernel has it */

struct roots_path_walk {
	int fd;     /* of the folder so far, which is root's */
	char *rest; /* of the path */
	unsigned links;
	dev_t mount; /* that is root's, as far as it was asked */
};

bool is_roots(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Without asking a server: its answers would not be believed either. */
static int check(struct roots_path_walk *walk, int fd, struct stat *st)
{
	if (file_stat(fd, st))
		return -errno;
	if (st->st_dev != walk->mount && !file_is_on_roots_mount(fd))
		return -EACCES;
	walk->mount = st->st_dev;
	if (S_ISLNK(st->st_mode))
		return st->st_uid ? -EACCES : 0;
	return is_roots(st) ? 0 : -EACCES;
}

static int begin(struct roots_path_walk *walk)
{
	struct stat st;

	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->fd < 0 ? -errno : check(walk, walk->fd, &st);
}

/* Puts what a link says before the rest. */
static int follow(struct roots_path_walk *walk, int link)
{
	char target[PATH_MAX], *rest;
	ssize_t len = readlinkat(link, "", target, sizeof(target));

	if (len <= 0 || len == sizeof(target) || ++walk->links > LINKS_MAX)
		return len < 0 ? -errno : -ELOOP;
	rest = xasprintf("%.*s/%s", (int)len, target, walk->rest);
	free(walk->rest);
	walk->rest = rest;
	return rest[0] == '/' ? begin(walk) : 0;
}

static int step(struct roots_path_walk *walk, const char *part)
{
	int fd = openat(walk->fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = check(walk, fd, &st);
	if (!rc && S_ISLNK(st.st_mode)) {
		rc = follow(walk, fd);
	} else if (!rc) {
		close(walk->fd);
		walk->fd = fd;
		return 0;
	}
	close(fd);
	return rc;
}

/* Takes the first part off the rest; NULL: there is none. */
static char *next_part(struct roots_path_walk *walk)
{
	char *at = walk->rest + strspn(walk->rest, "/"), *part, *rest;
	size_t len = strcspn(at, "/");

	if (!len)
		return NULL;
	part = xstrndup(at, len);
	rest = xstrdup(at + len);
	free(walk->rest);
	walk->rest = rest;
	return part;
}

int roots_path_open(const char *path)
{
	struct roots_path_walk walk = { .fd = -1, .rest = xstrdup(path), .mount = (dev_t)-1 };
	int rc = path[0] == '/' ? begin(&walk) : -EINVAL;
	char *part;

	while (!rc && (part = next_part(&walk))) {
		rc = step(&walk, part);
		free(part);
	}
	free(walk.rest);
	if (rc && walk.fd >= 0)
		close(walk.fd);
	return rc ? rc : walk.fd;
}

char *roots_path_real(int fd)
{
	char self[64], path[PATH_MAX];
	ssize_t len;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	len = readlink(self, path, sizeof(path));
	return len > 0 && len < (ssize_t)sizeof(path) ? xstrndup(path, (size_t)len) : NULL;
}

/* ---- glob ---------------------------------------------------------------------------------- */

static void *open_folder(const char *path)
{
	int folder = roots_path_open(path), fd;
	DIR *dir;

	if (folder < 0) {
		errno = -folder;
		return NULL;
	}
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(folder);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int stat_of(const char *path, struct stat *st)
{
	int fd = roots_path_open(path), rc;

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	rc = file_stat(fd, st);
	close(fd);
	return rc;
}

static struct dirent *read_folder(void *dir)
{
	return readdir(dir);
}

static void close_folder(void *dir)
{
	closedir(dir);
}

int roots_path_glob(const char *pattern, glob_t *found)
{
	*found = (glob_t){ .gl_opendir = open_folder,
		           .gl_readdir = read_folder,
		           .gl_closedir = close_folder,
		           .gl_lstat = stat_of,
		           .gl_stat = stat_of };
	return glob(pattern, GLOB_ALTDIRFUNC, NULL, found);
}
