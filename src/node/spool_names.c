// SPDX-License-Identifier: MIT
#include "node/spool_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/xalloc.h"

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

void spool_temporary_name(char name[SPOOL_NAME_MAX], uint64_t number)
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
	if (number > list->number)
		list->number = number;
}

static void take(struct spool_list *list, const char *name)
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

static int compare(const void *a, const void *b)
{
	const struct spool_entry *one = a, *other = b;

	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	return strcmp(one->name, other->name);
}

static int read_all(struct spool_list *list, DIR *folder)
{
	const struct dirent *entry;
	size_t seen = 0;

	for (errno = 0; (entry = readdir(folder)); errno = 0) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (++seen > SPOOL_ENTRIES_MAX)
			return -E2BIG;
		take(list, entry->d_name);
	}
	return -errno;
}

int spool_list_read(struct spool_list *list, int folder)
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
	else if (list->n)
		qsort(list->entries, list->n, sizeof(*list->entries), compare);
	return rc;
}

void spool_list_free(struct spool_list *list)
{
	free(list->entries);
	list->entries = NULL;
	list->n = 0;
}
