// SPDX-License-Identifier: MIT
#include "base/secure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/xalloc.h"

/* ---- temporary ----------------------------------------------------------------------------- */

/* For a file system that has no O_TMPFILE. */
static int open_in_tmp(void)
{
	FILE *file = tmpfile();
	int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;

	if (file)
		fclose(file);
	return fd;
}

int temporary_open(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	folder = folder && *folder ? folder : "/var/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open_in_tmp();
	if (fd < 0)
		return err_set(err, errno,
		               "cannot make a temporary file in %s: %s (TMPDIR chooses another "
		               "place)",
		               folder, strerror(errno));
	return fd;
}

/* ---- secure file --------------------------------------------------------------------------- */

#define LINKS_MAX 8

static int check_folder(const char *path, int folder, struct err *err)
{
	struct stat st;

	if (fstat(folder, &st))
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!folder_trusts(st.st_uid))
		return err_set(err, EPERM,
		               "%s: its folder belongs to user %u, who could exchange the file; it "
		               "has to be root's",
		               path, (unsigned)st.st_uid);
	if (st.st_mode & 022 && !(st.st_mode & S_ISVTX))
		return err_set(err, EPERM,
		               "%s: others may write its folder, and could exchange the file "
		               "(chmod go-w)",
		               path);
	return 0;
}

static int check_file(const char *path, int fd, enum secure_file kind, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is no regular file", path);
	if (!folder_trusts(st.st_uid))
		return err_set(err, EPERM, "%s belongs to user %u; it has to be root's", path,
		               (unsigned)st.st_uid);
	if (kind == SECURE_FILE_SECRET && st.st_mode & 077)
		return err_set(err, EPERM,
		               "%s is secret, and others than its owner may use it (mode %04o); "
		               "chmod 600",
		               path, (unsigned)st.st_mode & 07777);
	if (st.st_mode & 022)
		return err_set(err, EPERM,
		               "%s: others than its owner may write it (mode %04o); chmod go-w",
		               path, (unsigned)st.st_mode & 07777);
	return 0;
}

static int read_all(const char *path, int fd, struct buf *out, struct err *err)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		if (out->len + (size_t)n > SECURE_FILE_MOST)
			return err_set(err, EFBIG, "%s is larger than 64 KiB", path);
		buf_add(out, piece, (size_t)n);
	}
	if (n < 0)
		return err_set(err, errno, "reading %s: %s", path, strerror(errno));
	buf_puts(out, "");
	return 0;
}

/* Where a link of that name leads, seen from `path`; NULL: it is none. -EPERM: somebody else's. */
static int link_read(const char *path, int folder, const char *name, char **to, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char target[4096];
	struct stat st;
	ssize_t len = readlinkat(folder, name, target, sizeof(target) - 1);

	*to = NULL;
	if (len < 0)
		return 0;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !folder_trusts(st.st_uid))
		return err_set(err, EPERM,
		               "%s is a link of another user, who can point it anywhere", path);
	target[len] = '\0';
	*to = target[0] == '/' || !slash
	              ? xstrdup(target)
	              : xasprintf("%.*s%s", (int)(slash + 1 - path), path, target);
	return 0;
}

/* Each link on the way is followed here, so that its folder is looked at as the first one is. */
static int open_file(const char *path, unsigned links, struct err *err)
{
	int folder, fd = -1, r;
	char *name, *to = NULL;

	folder = folder_open(path, &name, err);
	if (folder < 0)
		return folder;
	r = check_folder(path, folder, err);
	if (!r)
		r = link_read(path, folder, name, &to, err);
	if (!r && to && links == LINKS_MAX)
		r = err_set(err, ELOOP, "cannot open %s: %s", path, strerror(ELOOP));
	/* not to hang in a pipe */
	if (!r && !to) {
		fd = openat(folder, name,
		            O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
		if (fd < 0)
			r = err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	}
	close(folder);
	free(name);
	if (!r && to)
		fd = r = open_file(to, links + 1, err);
	free(to);
	return r < 0 ? r : fd;
}

int secure_file_read(const char *path, enum secure_file kind, struct buf *out, struct err *err)
{
	int fd = open_file(path, 0, err), r = fd < 0 ? fd : 0;

	if (!r)
		r = check_file(path, fd, kind, err);
	if (!r)
		r = read_all(path, fd, out, err);
	if (fd >= 0)
		close(fd);
	return r;
}
