// SPDX-License-Identifier: MIT
#include "base/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

bool guarded(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Closes `parent`. */
static int enter(int parent, const char *name, bool all_enter)
{
	int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		fd = errno == ELOOP || errno == ENOTDIR ? -EACCES : -errno;
	if (parent != AT_FDCWD)
		close(parent);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && guarded(&st) && (!all_enter || st.st_mode & S_IXOTH))
		return fd;
	close(fd);
	return -EACCES;
}

int guarded_open(const char *path, bool all_enter)
{
	char copy[PATH_MAX], *save = NULL;
	int fd;

	if (*path != '/' || strlen(path) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, path);
	fd = enter(AT_FDCWD, "/", all_enter);
	for (char *name = strtok_r(copy, "/", &save); name && fd >= 0;
	     name = strtok_r(NULL, "/", &save))
		fd = !strcmp(name, "..") ? -EINVAL : enter(fd, name, all_enter);
	return fd;
}

/* Only what we have just made is changed: a folder that was there is as somebody wants it. */
static int give_mode(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0755) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int guarded_make(int parent, const char *name, bool all_enter)
{
	int rc = 0;

	if (mkdirat(parent, name, 0755) == 0)
		rc = give_mode(parent, name);
	else if (errno != EEXIST)
		rc = -errno;
	if (rc)
		return rc;
	rc = fcntl(parent, F_DUPFD_CLOEXEC, 0);
	return rc < 0 ? -errno : enter(rc, name, all_enter);
}
