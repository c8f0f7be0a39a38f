// SPDX-License-Identifier: MIT
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/folder.h"
#include "base/parse.h"
#include "base/secure_file.h"
#include "base/xalloc.h"

#define TRIES 16 /* of names that nobody else has */

static int cannot_write(const char *path, int code, struct err *err)
{
	return err_set(err, code, "cannot write %s: %s", path, strerror(code > 0 ? code : -code));
}

static int exists_already(const char *path, const struct stat *st, struct err *err)
{
	return err_set(
		err, EEXIST,
		S_ISLNK(st->st_mode)
			? "%s is a symbolic link, which is not followed: give the name of the "
			  "file itself (--force replaces the link)"
			: "%s exists already: --force overwrites it",
		path);
}

static void init(struct new_file *file, const char *path)
{
	*file = (struct new_file){ .path = xstrdup(path), .folder = -1 };
}

/* ---- what is no regular file ----------------------------------------------------------------- */

/* The descriptor that a path stands for, -1: none. */
static int standing_for(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t fd;

	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		size_t len = strlen(folders[i]);

		if (!strncmp(path, folders[i], len) && parse_number(path + len, INT32_MAX, &fd))
			return (int)fd;
	}
	return -1;
}

static int open_standing(struct new_file *file, int fd, struct err *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy < 0)
		return cannot_write(file->path, errno, err);
	file->out = fdopen(copy, "w");
	return 0;
}

/* Without O_CREAT and O_TRUNC; in between it may have been exchanged for a file. */
static int open_special(struct new_file *file, const struct stat *st, struct err *err)
{
	int fd = openat(file->folder, file->name, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	struct stat now;

	if (fd < 0)
		return cannot_write(file->path, errno, err);
	if (fstat(fd, &now) || S_ISREG(now.st_mode) || now.st_uid != st->st_uid) {
		close(fd);
		return cannot_write(file->path, EEXIST, err);
	}
	free(file->name);
	file->name = NULL;
	file->out = fdopen(fd, "w");
	return 0;
}

/* ---- new files ------------------------------------------------------------------------------- */

void file_hand_over(int fd, mode_t mode)
{
	uid_t user;
	gid_t group;

	/* where that is refused (a file system without owners) it stays root's */
	if (folder_sudo_user(&user, &group) && fchown(fd, user, group))
		errno = 0;
	if (fchmod(fd, mode ? mode : FILE_MODE))
		errno = 0;
}

static int create(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* What was left by one that was killed has another. */
char *file_temporary_name(void)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return NULL;
	return xasprintf(".cuscope-%016lx.tmp", random);
}

static int make_name(struct new_file *file)
{
	free(file->temporary);
	file->temporary = file_temporary_name();
	return file->temporary ? 0 : -EIO;
}

static int create_temporary(struct new_file *file)
{
	int fd = -EEXIST;

	for (unsigned i = 0; i < TRIES && fd == -EEXIST; i++) {
		fd = make_name(file);
		if (!fd)
			fd = create(file->folder, file->temporary);
	}
	if (fd < 0) {
		free(file->temporary);
		file->temporary = NULL;
	}
	return fd;
}

/* Without any name, where the file system can: then nothing is left behind by kill -9. */
static int create_unseen(struct new_file *file)
{
	int fd = openat(file->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? create_temporary(file) : fd;
}

static int create_new(struct new_file *file, bool there, const struct new_file_options *options)
{
	int fd;

	if (!options->grows)
		return create_unseen(file);
	if (there)
		return create_temporary(file);
	fd = create(file->folder, file->name);
	file->placed = fd >= 0;
	return fd;
}

static int open_regular(struct new_file *file, bool there, const struct new_file_options *options,
                        struct err *err)
{
	int fd = create_new(file, there, options);

	if (fd == -EEXIST && options->replace) /* it came just now */
		fd = create_temporary(file);
	if (fd == -EEXIST)
		return err_set(err, EEXIST, "%s exists already: --force overwrites it", file->path);
	if (fd < 0)
		return cannot_write(file->path, fd, err);
	file_hand_over(fd, options->mode);
	file->replace = options->replace;
	file->out = fdopen(fd, "w");
	return 0;
}

static bool is_special(const struct stat *st)
{
	return !S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode);
}

/*
 * A pipe, socket or terminal of somebody else's would hand him what is written, or never take it,
 * in whichever folder it lies. /dev/null has an owner that is not known in a user's namespace.
 */
static bool is_anothers(const struct stat *st)
{
	return is_special(st) && !folder_trusts(st->st_uid) &&
	       !(S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

/* What has the name: 0 and whether there is something, or why there can be nothing. */
static int look(const struct new_file *file, bool replace, struct stat *st, bool *there,
                struct err *err)
{
	*there = !fstatat(file->folder, file->name, st, AT_SYMLINK_NOFOLLOW);
	if (!*there && errno != ENOENT)
		return cannot_write(file->path, errno, err);
	if (!*there)
		return 0;
	if (S_ISDIR(st->st_mode))
		return cannot_write(file->path, EISDIR, err);
	if (is_anothers(st))
		return err_set(err, EACCES,
		               "cannot write %s: it is no ordinary file and belongs to user %u; "
		               "give another name, or write to - and redirect that to it",
		               file->path, (unsigned)st->st_uid);
	if ((S_ISREG(st->st_mode) || S_ISLNK(st->st_mode)) && !replace)
		return exists_already(file->path, st, err);
	return 0;
}

static int not_ordinary(const struct new_file *file, struct err *err)
{
	return err_set(err, EINVAL, "cannot write %s: it is no ordinary file", file->path);
}

static int open_in_folder(struct new_file *file, const struct new_file_options *options,
                          struct err *err)
{
	struct stat st;
	bool there;
	int rc = look(file, options->replace, &st, &there, err);

	if (rc)
		return rc;
	if (there && is_special(&st))
		return options->regular ? not_ordinary(file, err) : open_special(file, &st, err);
	return open_regular(file, there, options, err);
}

int new_file_open(struct new_file *file, const char *path, const struct new_file_options *options,
                  struct err *err)
{
	int standing = standing_for(path), rc;

	init(file, path);
	if (standing >= 0) {
		rc = options->regular ? not_ordinary(file, err)
		                      : open_standing(file, standing, err);
	} else {
		rc = file->folder = folder_open(path, &file->name, err);
		if (rc >= 0)
			rc = open_in_folder(file, options, err);
	}
	if (rc < 0)
		new_file_drop(file);
	return rc;
}

int new_file_unnamed(struct new_file *file, const char *called, struct err *err)
{
	int fd = temporary_open(err);

	if (fd < 0)
		return fd;
	init(file, called);
	file->out = fdopen(fd, "w+");
	return 0;
}

/* ---- taking its place ------------------------------------------------------------------------ */

static int link_as(const struct new_file *file, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(file->out));
	return linkat(AT_FDCWD, self, file->folder, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* From no name at all. A link cannot replace, so it gets a name of its own first. */
static int give_name(struct new_file *file)
{
	int rc = link_as(file, file->name);

	if (rc != -EEXIST || !file->replace)
		return rc;
	for (unsigned i = 0; i < TRIES && rc == -EEXIST; i++) {
		rc = make_name(file);
		if (!rc)
			rc = link_as(file, file->temporary);
	}
	if (rc)
		return rc;
	return renameat(file->folder, file->temporary, file->folder, file->name) ? -errno : 0;
}

/* Some file systems cannot rename without replacing, nor link: then what is there is looked at. */
static int rename_to_place(struct new_file *file)
{
	struct stat st;

	if (!file->replace &&
	    !renameat2(file->folder, file->temporary, file->folder, file->name, RENAME_NOREPLACE))
		return 0;
	if (!file->replace && errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!file->replace && !fstatat(file->folder, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(file->folder, file->temporary, file->folder, file->name) ? -errno : 0;
}

static int take_place(struct new_file *file)
{
	int rc = file->temporary ? rename_to_place(file) : give_name(file);

	if (rc)
		return rc;
	free(file->temporary);
	file->temporary = NULL;
	file->placed = true;
	return 0;
}

int new_file_place(struct new_file *file, struct err *err)
{
	int rc = file->name && !file->placed ? take_place(file) : 0;

	file->begun = true;
	return rc ? cannot_write(file->path, rc, err) : 0;
}

/* What replaces another is on the disk first, lest a crash leave neither. */
static int finish(struct new_file *file)
{
	if (file->out && fflush(file->out))
		return -errno;
	if (file->name && !file->placed && file->replace && fdatasync(fileno(file->out)))
		return -errno;
	if (file->name && !file->placed)
		return take_place(file);
	return 0;
}

static void forget(struct new_file *file)
{
	if (!file->path) /* none */
		return;
	if (file->out)
		fclose(file->out);
	if (file->folder >= 0)
		close(file->folder);
	free(file->temporary);
	free(file->name);
	free(file->path);
	*file = (struct new_file){ .folder = -1 };
}

int new_file_keep(struct new_file *file, struct err *err)
{
	int rc = finish(file);

	if (rc) {
		cannot_write(file->path, rc, err);
		if (file->placed) /* what came so far is there to be read */
			forget(file);
		else
			new_file_drop(file);
		return rc;
	}
	if (file->out && fclose(file->out)) /* where a network file system tells of a full disk */
		rc = cannot_write(file->path, errno, err);
	file->out = NULL;
	forget(file);
	return rc;
}

/* What has the name now may be somebody else's. */
static bool is_ours(const struct new_file *file)
{
	struct stat there, ours;

	return !fstatat(file->folder, file->name, &there, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(fileno(file->out), &ours) && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino;
}

void new_file_drop(struct new_file *file)
{
	if (file->temporary)
		unlinkat(file->folder, file->temporary, 0);
	else if (file->placed && file->out && is_ours(file))
		unlinkat(file->folder, file->name, 0);
	forget(file);
}

/* ---- texts ----------------------------------------------------------------------------------- */

int file_replace(const char *path, mode_t mode, const struct buf *text, struct err *err)
{
	const struct new_file_options options = { .replace = true, .mode = mode };
	struct new_file file;
	int rc = new_file_open(&file, path, &options, err);

	if (rc)
		return rc;
	if (fwrite(text->data, 1, text->len, file.out) == text->len && !fflush(file.out))
		return new_file_keep(&file, err);
	rc = cannot_write(path, errno, err);
	new_file_drop(&file);
	return rc;
}

int file_can_replace(const char *path, bool replace, struct err *err)
{
	struct new_file file;
	struct stat st;
	bool there = false;
	int rc;

	if (standing_for(path) >= 0)
		return 0;
	init(&file, path);
	rc = file.folder = folder_open(path, &file.name, err);
	if (rc >= 0)
		rc = look(&file, replace, &st, &there, err);
	if (!rc && !(there && is_special(&st)) &&
	    faccessat(file.folder, ".", W_OK | X_OK, AT_EACCESS))
		rc = cannot_write(path, errno, err);
	forget(&file);
	return rc;
}

/* By one read: what such a file says is made when it is read. */
bool file_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return n > 0;
}
