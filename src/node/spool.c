// SPDX-License-Identifier: MIT
#include "node/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

/* ---- spool names --------------------------------------------------------------------------- */

#define ENDING       ".cuscope"
#define TEMPORARY    ".recording-"
#define TIME_LETTERS 16 /* "20270115T080000Z" */
#define DIGITS_MAX   12 /* of SPOOL_NUMBER_MAX */

/* ---- names --------------------------------------------------------------------------------- */

void spool_name(char name[SPOOL_NAME_MAX], time_t now, const char *rule, uint64_t number)
{
	char when[32] = "00000000T000000Z";
	struct tm tm;

	/* a clock that is off by millennia has years of more digits */
	if (now >= 0 && gmtime_r(&now, &tm) && tm.tm_year < 8000)
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, SPOOL_NAME_MAX, "%s-%.32s-%06llu" ENDING, when, rule,
	         (unsigned long long)number);
}

/* ".recording-000000012345" */
static void spool_temporary_name(char name[SPOOL_NAME_MAX], uint64_t number)
{
	snprintf(name, SPOOL_NAME_MAX, TEMPORARY "%012llu",
	         (unsigned long long)(number % (SPOOL_NUMBER_MAX + 1)));
}

/* `length` digits at `text`. */
static bool read_digits(const char *text, size_t length, uint64_t *number)
{
	if (!length || length > DIGITS_MAX || strspn(text, "0123456789") < length)
		return false;
	*number = strtoull(text, NULL, 10);
	return true;
}

static bool is_time(const char *text)
{
	return strspn(text, "0123456789") == 8 && text[8] == 'T' &&
	       strspn(text + 9, "0123456789") == 6 && text[15] == 'Z' && text[16] == '-';
}

bool spool_name_read(const char *name, uint64_t *number)
{
	size_t length = strlen(name), ending = sizeof(ENDING) - 1, digits;
	const char *rule = name + TIME_LETTERS + 1, *dash;

	if (length >= SPOOL_NAME_MAX || length <= TIME_LETTERS + 1 + ending || !is_time(name) ||
	    strcmp(name + length - ending, ENDING))
		return false;
	dash = rule + strspn(rule, "abcdefghijklmnopqrstuvwxyz_");
	if (dash == rule || *dash != '-')
		return false;
	digits = strspn(dash + 1, "0123456789");
	return dash + 1 + digits == name + length - ending && read_digits(dash + 1, digits, number);
}

static bool spool_temporary_read(const char *name, uint64_t *number)
{
	const char *digits = name + sizeof(TEMPORARY) - 1;

	return !strncmp(name, TEMPORARY, sizeof(TEMPORARY) - 1) && strlen(digits) == DIGITS_MAX &&
	       read_digits(digits, DIGITS_MAX, number);
}

/* ---- the list ------------------------------------------------------------------------------ */

static void add_entry(struct spool_list *list, const char *name, uint64_t number, uint64_t bytes)
{
	struct spool_entry *entry;

	list->entries = vec_room(list->entries, list->n, sizeof(*list->entries));
	entry = &list->entries[list->n++];
	entry->number = number;
	entry->bytes = bytes;
	memcpy(entry->name, name, strlen(name) + 1); /* it is shorter: spool_name_read() */
	list->use.files++;
	list->use.bytes += bytes;
}

static void names_take(struct spool_list *list, const char *name)
{
	uint64_t number;
	struct stat st;
	bool whole = spool_name_read(name, &number);

	if (!whole && !spool_temporary_read(name, &number)) {
		list->use.others++;
		return;
	}
	if (fstatat(list->folder, name, &st, AT_SYMLINK_NOFOLLOW)) /* removed meanwhile */
		return;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		list->use.others++;
	else if (whole)
		add_entry(list, name, number, (uint64_t)st.st_size);
	else if (list->n_temporary < SPOOL_TEMPORARY_MAX)
		list->temporary[list->n_temporary++] = number;
}

ORDER_BY(names_compare, struct spool_entry, UP(number), BY_TEXT(name));

static int read_all(struct spool_list *list, DIR *folder)
{
	const struct dirent *entry;
	size_t seen = 0;

	for (errno = 0; (entry = readdir(folder)); errno = 0) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (++seen > SPOOL_ENTRIES_MAX)
			return -E2BIG;
		names_take(list, entry->d_name);
	}
	return -errno;
}

/* After the last number comes the first. */
static uint64_t number_after(uint64_t number, uint64_t steps)
{
	return (number + steps) % (SPOOL_NUMBER_MAX + 1);
}

/*
 * The oldest first. Numbers go round, so it is the one behind the largest gap: a file that somebody
 * has put here, and that has one of the last numbers, is the oldest rather than the end of all.
 */
static void sort_entries(struct spool_list *list)
{
	AT_END(at_end_free) struct spool_entry *sorted = NULL;
	uint64_t widest = 0, gap;
	size_t oldest = 0;

	if (!list->n)
		return;
	SORT(list->entries, list->n, names_compare);
	for (size_t i = 0; i < list->n; i++) {
		const struct spool_entry *before = &list->entries[(i ? i : list->n) - 1];

		gap = number_after(list->entries[i].number, SPOOL_NUMBER_MAX + 1 - before->number);
		if (gap > widest) {
			widest = gap;
			oldest = i;
		}
	}
	sorted = xmalloc(list->n * sizeof(*sorted));
	for (size_t i = 0; i < list->n; i++)
		sorted[i] = list->entries[(oldest + i) % list->n];
	memcpy(list->entries, sorted, list->n * sizeof(*sorted));
	list->number = sorted[list->n - 1].number;
}

static void spool_list_free(struct spool_list *list);

/* 0 or a negative errno. Only regular files of ours count: all else is left alone. */
static int spool_list_read(struct spool_list *list, int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	memset(list, 0, sizeof(*list));
	list->folder = folder;
	if (!entries) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = read_all(list, entries);
	closedir(entries);
	if (rc)
		spool_list_free(list);
	else
		sort_entries(list);
	return rc;
}

static void spool_list_free(struct spool_list *list)
{
	free(list->entries);
	list->entries = NULL;
	list->n = 0;
}

/* ---- spool --------------------------------------------------------------------------------- */

#define NAMES_TRIED 64 /* another program may have taken a few */

static const char *const why_names[SPOOL_WHY_COUNT] = {
	[SPOOL_OK] = "ok",
	[SPOOL_FULL] = "full",
	[SPOOL_NO_SPACE] = "no_space",
	[SPOOL_TOO_LARGE] = "too_large",
	[SPOOL_UNWRITABLE] = "unwritable",
};

const char *spool_why_name(enum spool_why why)
{
	return why_names[why];
}

enum spool_why spool_why_of(int code)
{
	switch (code < 0 ? -code : code) {
	case 0:
		return SPOOL_OK;
	case ENOSPC:
	case EDQUOT:
		return SPOOL_NO_SPACE;
	case EFBIG:
		return SPOOL_TOO_LARGE;
	}
	return SPOOL_UNWRITABLE;
}

/* ---- the folder ---------------------------------------------------------------------------- */

static int check(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(err, errno, "the spool %s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return err_set(
			err, EPERM,
			"the spool %s belongs to user %u, who could change what is in it: it "
			"has to be of user %u",
			path, (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, EPERM,
		               "others than its owner may write to the spool %s (mode %03o): chmod "
		               "700 it",
		               path, (unsigned)st.st_mode & 0777);
	return 0;
}

static int open_last(int parent, const char *name, const char *path, struct err *err)
{
	int fd;

	if (mkdirat(parent, name, 0700) && errno != EEXIST)
		return err_set(err, errno, "cannot make the spool %s: %s", path, strerror(errno));
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, errno,
		               "the spool %s is no folder, or a link to one: give the "
		               "folder's own name",
		               path);
	if (fd < 0)
		return err_set(err, errno, "cannot open the spool %s: %s", path, strerror(errno));
	return fd;
}

int spool_open(const char *path, struct err *err)
{
	char *name = NULL;
	int parent = folder_open(path, &name, err), fd, rc;

	if (parent < 0)
		return parent;
	fd = open_last(parent, name, path, err);
	free(name);
	close(parent);
	if (fd < 0)
		return fd;
	rc = check(fd, path, err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Whoever writes it holds a lock on it, which ends with the process. */
static bool is_left_over(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool left;

	if (fd < 0)
		return false;
	left = !flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return left;
}

unsigned spool_clean(int folder)
{
	struct spool_list list;
	unsigned n = 0;

	if (spool_list_read(&list, folder))
		return 0;
	for (size_t i = 0; i < list.n_temporary; i++) {
		char name[SPOOL_NAME_MAX];

		spool_temporary_name(name, list.temporary[i]);
		if (is_left_over(folder, name) && !unlinkat(folder, name, 0))
			n++;
	}
	spool_list_free(&list);
	return n;
}

int spool_look(int folder, struct spool_use *use)
{
	struct spool_list list;
	int rc = spool_list_read(&list, folder);

	if (rc)
		return rc;
	*use = list.use;
	spool_list_free(&list);
	return 0;
}

/* ---- room ---------------------------------------------------------------------------------- */

static bool fits(const struct spool_use *use, const struct spool_limits *limits, uint64_t bytes)
{
	return use->files < limits->files && use->bytes <= limits->bytes &&
	       bytes <= limits->bytes - use->bytes;
}

/* The oldest go until there is room; their list is in the order of their numbers. */
static int make_room(struct spool_list *list, const struct spool_limits *limits, uint64_t bytes,
                     struct err *err)
{
	for (size_t i = 0; i < list->n && !fits(&list->use, limits, bytes); i++) {
		if (unlinkat(list->folder, list->entries[i].name, 0) && errno != ENOENT)
			return err_set(err, errno, "cannot remove %s from the spool: %s",
			               list->entries[i].name, strerror(errno));
		list->use.files--;
		list->use.bytes -= list->entries[i].bytes;
	}
	return 0;
}

static int free_space(int folder, uint64_t *bytes, struct err *err)
{
	struct statvfs st;

	if (fstatvfs(folder, &st))
		return err_set(err, errno, "the spool: %s", strerror(errno));
	*bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return 0;
}

/* What the disk has beyond what is to stay free; before anything is removed for it. */
static int check_disk(int folder, const struct spool_limits *limits, uint64_t bytes,
                      struct spool_file *file, enum spool_why *why, struct err *err)
{
	uint64_t space = 0;
	int rc = free_space(folder, &space, err);

	if (rc)
		return rc;
	file->room = space > limits->keep_free_bytes ? space - limits->keep_free_bytes : 0;
	if (bytes < file->room)
		return 0;
	*why = SPOOL_NO_SPACE;
	return err_set(err, ENOSPC,
	               "the spool's disk has %llu MiB left, of which %llu MiB are to stay free",
	               (unsigned long long)(space >> 20),
	               (unsigned long long)(limits->keep_free_bytes >> 20));
}

static int check_limits(struct spool_list *list, const struct spool_limits *limits, uint64_t bytes,
                        enum spool_why *why, struct err *err)
{
	if (bytes > limits->bytes || !limits->files) {
		*why = SPOOL_TOO_LARGE;
		return err_set(err, EFBIG,
		               "a recording of %llu MiB is more than the spool may hold",
		               (unsigned long long)(bytes >> 20));
	}
	if (!limits->refuse || fits(&list->use, limits, bytes))
		return make_room(list, limits, bytes, err);
	*why = SPOOL_FULL;
	return err_set(err, ENOSPC, "the spool is full: %llu files with %llu MiB",
	               (unsigned long long)list->use.files,
	               (unsigned long long)(list->use.bytes >> 20));
}

/* ---- a file -------------------------------------------------------------------------------- */

static int open_new(struct spool_file *file, struct err *err)
{
	for (unsigned i = 0; i < NAMES_TRIED; i++) {
		spool_temporary_name(file->temporary, (uint64_t)getpid() * NAMES_TRIED + i);
		file->fd = openat(file->folder, file->temporary,
		                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	if (file->fd < 0)
		return err_set(err, errno, "cannot write to the spool: %s", strerror(errno));
	flock(file->fd, LOCK_EX | LOCK_NB);
	return 0;
}

int spool_begin(int folder, const struct spool_limits *limits, uint64_t bytes,
                struct spool_file *file, enum spool_why *why, struct err *err)
{
	struct spool_list list;
	int rc = spool_list_read(&list, folder);

	*file = (struct spool_file){ .folder = folder, .fd = -1 };
	*why = SPOOL_UNWRITABLE;
	if (rc)
		return err_set(err, rc, "cannot read the spool: %s", strerror(-rc));
	rc = check_disk(folder, limits, bytes, file, why, err);
	if (!rc)
		rc = check_limits(&list, limits, bytes, why, err);
	if (!rc && limits->bytes - list.use.bytes < file->room)
		file->room = limits->bytes - list.use.bytes;
	file->number = number_after(list.number, 1);
	spool_list_free(&list);
	if (rc)
		return rc;
	rc = open_new(file, err);
	*why = spool_why_of(rc);
	return rc;
}

/* Not every file system can rename without replacing: then by a second name. */
static int give_name(const struct spool_file *file, const char *name)
{
	if (!renameat2(file->folder, file->temporary, file->folder, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(file->folder, file->temporary, file->folder, name, 0))
		return -errno;
	unlinkat(file->folder, file->temporary, 0);
	return 0;
}

int spool_keep(struct spool_file *file, const char *rule, time_t now, char name[SPOOL_NAME_MAX],
               struct err *err)
{
	int rc = fsync(file->fd) ? -errno : -EEXIST;

	for (unsigned i = 0; rc == -EEXIST && i < NAMES_TRIED; i++) {
		spool_name(name, now, rule, number_after(file->number, i));
		rc = give_name(file, name);
	}
	if (rc) {
		spool_drop(file);
		return err_set(err, rc, "cannot finish a file in the spool: %s", strerror(-rc));
	}
	fsync(file->folder); /* the name; where that fails the file is there all the same */
	close(file->fd);
	file->fd = -1;
	return 0;
}

void spool_drop(struct spool_file *file)
{
	if (file->fd < 0)
		return;
	unlinkat(file->folder, file->temporary, 0);
	close(file->fd);
	file->fd = -1;
}
