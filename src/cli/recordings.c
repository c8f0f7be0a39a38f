// SPDX-License-Identifier: MIT
/* The files that a command is to read: named one by one, or all of a folder. */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "base/xalloc.h"

#define SUFFIX ".cuscope"

static int recording_is(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return n > suffix && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - suffix, SUFFIX);
}

static void recording_add(struct cli_recordings *all, char *path)
{
	*VEC_ADD(all->paths, all->n) = path;
}

int cli_recordings_add(struct cli_recordings *all, const char *path, struct err *err)
{
	struct dirent **found;
	struct stat st;
	int n;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		recording_add(all, xstrdup(path));
		return 0;
	}
	n = scandir(path, &found, recording_is, alphasort);
	if (n < 0)
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *file = NULL;

		if (asprintf(&file, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/",
		             found[i]->d_name) < 0)
			abort();
		recording_add(all, file);
		free(found[i]);
	}
	free(found);
	return n ? 0 : err_set(err, ENOENT, "no recording (*%s) in %s", SUFFIX, path);
}

void cli_recordings_free(struct cli_recordings *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->paths[i]);
	free(all->paths);
	*all = (struct cli_recordings){ 0 };
}
