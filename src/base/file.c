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

int file_open_special(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EEXIST;
}

static int write_in_place(const char *path, const struct buf *text)
{
	int fd = file_open_special(path);

	return fd < 0 ? fd : write_and_close(fd, text);
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

/* ---- what is written piece by piece -------------------------------------------------------- */

static int cannot_write(const char *path, int code, struct err *err)
{
	return err_set(err, code, "cannot write %s: %s", path, strerror(code));
}

/* Without O_CREAT and O_TRUNC: a pipe or a device is somebody else's. */
static int open_in_place(struct new_file *file, bool named, struct err *err)
{
	int fd;

	if (named)
		return err_set(err, EINVAL, "cannot write %s: it is no ordinary file", file->path);
	fd = file_open_special(file->path);
	if (fd < 0)
		return cannot_write(file->path, -fd, err);
	file->out = fdopen(fd, "w");
	return 0;
}

static int open_beside(struct new_file *file, bool named, struct err *err)
{
	int fd;

	file->temporary = xasprintf("%s.%d.tmp", file->path, getpid());
	unlink(file->temporary); /* of a process of the same number that was killed here */
	if (named)
		return file_can_replace(file->path, err);
	fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return cannot_write(file->path, errno, err);
	file->out = fdopen(fd, "w");
	return 0;
}

static int open_new(struct new_file *file, bool fresh, bool named, struct err *err)
{
	struct stat st;
	bool there = !stat(file->path, &st);

	if (there && S_ISDIR(st.st_mode))
		return cannot_write(file->path, EISDIR, err);
	if (there && !S_ISREG(st.st_mode))
		return open_in_place(file, named, err);
	if (there && fresh)
		return err_set(err, EEXIST, "%s exists already: --force overwrites it", file->path);
	return open_beside(file, named, err);
}

int new_file_open(struct new_file *file, const char *path, bool fresh, bool named, struct err *err)
{
	int rc;

	*file = (struct new_file){ .path = xstrdup(path) };
	rc = open_new(file, fresh, named, err);
	if (rc)
		new_file_drop(file);
	return rc;
}

const char *new_file_path(const struct new_file *file)
{
	return file->temporary ? file->temporary : file->path;
}

int new_file_keep(struct new_file *file, struct err *err)
{
	int code = file->out && fclose(file->out) ? errno : 0;

	file->out = NULL;
	if (!code && file->temporary && rename(file->temporary, file->path))
		code = errno;
	if (code)
		cannot_write(file->path, code, err);
	new_file_drop(file); /* what is in its place has no temporary name any more */
	return -code;
}

void new_file_drop(struct new_file *file)
{
	if (file->out)
		fclose(file->out);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	*file = (struct new_file){ 0 };
}
