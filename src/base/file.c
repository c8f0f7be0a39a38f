// SPDX-License-Identifier: MIT
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

static int write_all(int fd, const struct buf *text)
{
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->data + done, text->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? n : 0;
	}
	return 0;
}

static int write_and_close(int fd, const struct buf *text)
{
	int rc = write_all(fd, text);

	if (close(fd) && !rc) /* where a network file system tells that its disk is full */
		rc = -errno;
	return rc;
}

static int write_in_place(const char *path, const struct buf *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : write_and_close(fd, text);
}

static int write_beside(const char *path, const struct buf *text)
{
	char *temporary = xasprintf("%s.%d.tmp", path, getpid());
	int fd, rc;

	unlink(temporary); /* of a process of the same number that was killed here */
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	rc = fd < 0 ? -errno : write_and_close(fd, text);
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc && fd >= 0)
		unlink(temporary);
	free(temporary);
	return rc;
}

int file_replace(const char *path, const struct buf *text, struct err *err)
{
	struct stat st;
	bool in_place = !stat(path, &st) && !S_ISREG(st.st_mode);
	int rc = in_place ? write_in_place(path, text) : write_beside(path, text);

	return rc ? err_set(err, rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

/* What an attempt would fail with: the folder for a new file, the thing itself for what is none. */
static int why_not_replace(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	char *folder;
	int code;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return EISDIR;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return access(path, W_OK) ? errno : 0;
	folder = slash ? xasprintf("%.*s", (int)(slash - path + 1), path) : xstrdup(".");
	code = access(folder, W_OK | X_OK) ? errno : 0;
	free(folder);
	return code;
}

int file_can_replace(const char *path, struct err *err)
{
	int code = why_not_replace(path);

	return code ? err_set(err, code, "cannot write %s: %s", path, strerror(code)) : 0;
}
