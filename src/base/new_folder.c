// SPDX-License-Identifier: MIT
#include "base/new_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES        16

struct new_folder {
	struct new_tree *tree;
	char *parent_name, *name;
	int parent;       /* -1: it was kept, only the name counts */
	int fd;           /* of the folder that is filled */
	char *temporary;  /* its name in the parent */
	bool made_parent; /* for this one */
};

struct new_tree {
	char *path; /* as the user gave it, without slashes at its end */
	struct new_tree_options options;
	int above, fd;
	char *name; /* in the folder above */
	bool made;
	struct new_folder **folders;
	size_t n, n_kept; /* the first ones are kept */
};

/* ---- looking ------------------------------------------------------------------------------- */

static int cannot_make(const struct new_folder *folder, int code, struct err *err)
{
	return err_set(err, code, "cannot write %s/%s/%s: %s", folder->tree->path,
	               folder->parent_name, folder->name, strerror(code > 0 ? code : -code));
}

/* Who may read a file may list its folder. */
static mode_t folder_mode(mode_t mode)
{
	mode = mode ? mode : FILE_MODE;
	return mode | (mode & 0444) >> 2;
}

/* Opens a folder, which is made if it is not there. */
static int open_or_make(int above, const char *name, mode_t mode, bool *made)
{
	int fd;

	*made = !mkdirat(above, name, 0700);
	if (!*made && errno != EEXIST)
		return -errno;
	fd = openat(above, name, FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	if (*made)
		file_hand_over(fd, folder_mode(mode));
	return fd;
}

static bool ends_so(const char *name, const char *ending)
{
	size_t len = strlen(name), least = strlen(ending);

	return len > least && !strcmp(name + len - least, ending);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* The files of a folder to `each`, until it returns something else than 0. */
static int each_name(int folder, int (*each)(void *data, int folder, const char *name), void *data)
{
	int copy = openat(folder, ".", FOLDER_FLAGS), rc = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir) {
		rc = -errno;
		if (copy >= 0)
			close(copy);
		return rc;
	}
	while (!rc && (entry = readdir(dir))) {
		if (!is_dots(entry->d_name))
			rc = each(data, folder, entry->d_name);
	}
	closedir(dir);
	return rc;
}

static int is_ours(void *data, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return S_ISREG(st.st_mode) && ends_so(name, data) ? 0 : -ENOTEMPTY;
}

static int remove_file(void *data, int folder, const char *name)
{
	return !ends_so(name, data) || unlinkat(folder, name, 0) ? -ENOTEMPTY : 0;
}

/* ---- adding -------------------------------------------------------------------------------- */

/* Whether what has the name now may go. */
static int may_replace(const struct new_folder *folder, struct err *err)
{
	const struct new_tree *tree = folder->tree;
	int fd = openat(folder->parent, folder->name, FOLDER_FLAGS), rc;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return cannot_make(folder, errno, err);
	if (!tree->options.replace) {
		close(fd);
		return err_set(err, EEXIST, "%s/%s/%s exists already: --force replaces it",
		               tree->path, folder->parent_name, folder->name);
	}
	rc = each_name(fd, is_ours, (void *)tree->options.ending);
	close(fd);
	return rc ? err_set(err, rc, "%s/%s/%s has more than *%s in it, and is not replaced",
	                    tree->path, folder->parent_name, folder->name, tree->options.ending)
	          : 0;
}

static int make_temporary(struct new_folder *folder)
{
	int rc = -EEXIST;

	for (unsigned i = 0; i < TRIES && rc == -EEXIST; i++) {
		free(folder->temporary);
		folder->temporary = file_temporary_name();
		if (!folder->temporary)
			return -EIO;
		rc = mkdirat(folder->parent, folder->temporary, 0700) ? -errno : 0;
	}
	if (rc) {
		free(folder->temporary);
		folder->temporary = NULL;
		return rc;
	}
	folder->fd = openat(folder->parent, folder->temporary, FOLDER_FLAGS);
	return folder->fd < 0 ? -errno : 0;
}

static int made_before(const struct new_tree *tree, const char *parent, const char *name,
                       struct err *err)
{
	for (size_t i = 0; i < tree->n; i++) {
		if (!strcmp(tree->folders[i]->parent_name, parent) &&
		    !strcmp(tree->folders[i]->name, name))
			return err_set(err, EEXIST,
			               "two of these files would be %s/%s/%s: give them folders of "
			               "their own",
			               tree->path, parent, name);
	}
	return 0;
}

static int begin_folder(struct new_folder *folder, struct err *err)
{
	const struct new_tree *tree = folder->tree;
	int rc;

	folder->parent = open_or_make(tree->fd, folder->parent_name, tree->options.mode,
	                              &folder->made_parent);
	if (folder->parent < 0)
		return cannot_make(folder, folder->parent, err);
	rc = may_replace(folder, err);
	if (rc)
		return rc;
	rc = make_temporary(folder);
	return rc ? cannot_make(folder, rc, err) : 0;
}

static void forget(struct new_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	if (folder->parent >= 0)
		close(folder->parent);
	free(folder->temporary);
	folder->temporary = NULL;
	folder->fd = folder->parent = -1;
}

static void free_folder(struct new_folder *folder)
{
	forget(folder);
	free(folder->parent_name);
	free(folder->name);
	free(folder);
}

/* Without a trace, as far as it is ours. */
static void drop_folder(struct new_folder *folder)
{
	const struct new_tree *tree = folder->tree;

	if (folder->temporary) {
		each_name(folder->fd, remove_file, (void *)tree->options.ending);
		unlinkat(folder->parent, folder->temporary, AT_REMOVEDIR);
	}
	if (folder->made_parent) /* unless others are in it */
		unlinkat(tree->fd, folder->parent_name, AT_REMOVEDIR);
	free_folder(folder);
}

int new_tree_add(struct new_tree *tree, const char *parent, const char *name,
                 struct new_folder **added, struct err *err)
{
	struct new_folder *folder;
	int rc = made_before(tree, parent, name, err);

	if (rc)
		return rc;
	folder = xcalloc(1, sizeof(*folder));
	*folder = (struct new_folder){ .tree = tree,
		                       .parent_name = xstrdup(parent),
		                       .name = xstrdup(name),
		                       .parent = -1,
		                       .fd = -1 };
	rc = begin_folder(folder, err);
	if (rc) {
		drop_folder(folder);
		return rc;
	}
	tree->folders = vec_room(tree->folders, tree->n, sizeof(*tree->folders));
	tree->folders[tree->n++] = *added = folder;
	return 0;
}

int new_folder_file(struct new_folder *folder, const char *name, bool again, struct err *err)
{
	int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (again ? O_APPEND : O_CREAT | O_EXCL);
	int fd = openat(folder->fd, name, flags, 0600);

	if (fd < 0)
		return cannot_make(folder, errno, err);
	if (!again)
		file_hand_over(fd, folder->tree->options.mode);
	return fd;
}

/* ---- keeping ------------------------------------------------------------------------------- */

/* Some file systems know no such flag; there, too, a folder with files in it is not replaced. */
static int rename_new(int folder, const char *from, const char *to)
{
	if (!renameat2(folder, from, folder, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(folder, from, folder, to) ? -errno : 0;
}

static int take_away(struct new_folder *folder, char **old)
{
	*old = file_temporary_name();
	if (!*old)
		return -EIO;
	return rename_new(folder->parent, folder->name, *old);
}

static void remove_old(const struct new_folder *folder, const char *old)
{
	int fd = openat(folder->parent, old, FOLDER_FLAGS);

	if (fd < 0)
		return;
	each_name(fd, remove_file, (void *)folder->tree->options.ending);
	close(fd);
	unlinkat(folder->parent, old, AT_REMOVEDIR);
}

/* What replaces another is on the disk first, lest a crash leave neither. */
static int keep_folder(struct new_folder *folder)
{
	const struct new_tree_options *options = &folder->tree->options;
	char *old = NULL;
	int rc;

	if (options->replace && syncfs(folder->fd))
		return -errno;
	file_hand_over(folder->fd, folder_mode(options->mode));
	rc = rename_new(folder->parent, folder->temporary, folder->name);
	if (rc == -EEXIST && options->replace) {
		rc = take_away(folder, &old);
		if (!rc)
			rc = rename_new(folder->parent, folder->temporary, folder->name);
		if (!rc)
			remove_old(folder, old);
		free(old);
	}
	if (!rc)
		forget(folder);
	return rc;
}

int new_tree_keep(struct new_tree *tree, struct err *err)
{
	for (; tree->n_kept < tree->n; tree->n_kept++) {
		struct new_folder *folder = tree->folders[tree->n_kept];
		int rc = keep_folder(folder);

		if (!rc)
			continue;
		cannot_make(folder, rc, err);
		new_tree_drop(tree);
		return rc;
	}
	return 0;
}

void new_tree_drop(struct new_tree *tree)
{
	while (tree->n > tree->n_kept)
		drop_folder(tree->folders[--tree->n]);
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* "." and the like are folders that are there. */
static bool is_there(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	return is_dots(last) || !*last;
}

/* The folder of whatever is in it. */
static int open_there(struct new_tree *tree, struct err *err)
{
	AT_END(at_end_free) char *within = xasprintf("%s/name", tree->path);
	int rc = tree->above = folder_open(within, &tree->name, err);

	if (rc < 0)
		return rc;
	tree->fd = openat(tree->above, ".", FOLDER_FLAGS);
	return tree->fd < 0
	               ? err_set(err, errno, "cannot write %s: %s", tree->path, strerror(errno))
	               : 0;
}

static int open_tree(struct new_tree *tree, struct err *err)
{
	int rc;

	if (*tree->path && is_there(tree->path))
		return open_there(tree, err);
	rc = tree->above = folder_open(tree->path, &tree->name, err);
	if (rc < 0)
		return rc;
	rc = tree->fd = open_or_make(tree->above, tree->name, tree->options.mode, &tree->made);
	return rc < 0 ? err_set(err, rc, "cannot write %s: %s", tree->path,
	                        rc == -ELOOP || rc == -ENOTDIR
	                                ? "it is no folder, or a link, which is not followed"
	                                : strerror(-rc))
	              : 0;
}

int new_tree_open(struct new_tree **made, const char *path, const struct new_tree_options *options,
                  struct err *err)
{
	struct new_tree *tree = xcalloc(1, sizeof(*tree));
	size_t len = strlen(path);
	int rc;

	while (len > 1 && path[len - 1] == '/')
		len--;
	*tree = (struct new_tree){
		.path = xstrndup(path, len), .options = *options, .above = -1, .fd = -1
	};
	rc = open_tree(tree, err);
	if (rc) {
		new_tree_close(tree);
		return rc;
	}
	*made = tree;
	return 0;
}

void new_tree_close(struct new_tree *tree)
{
	new_tree_drop(tree);
	for (size_t i = 0; i < tree->n; i++)
		free_folder(tree->folders[i]);
	if (tree->fd >= 0)
		close(tree->fd);
	if (tree->made && !tree->n_kept)
		unlinkat(tree->above, tree->name, AT_REMOVEDIR);
	if (tree->above >= 0)
		close(tree->above);
	free(tree->folders);
	free(tree->name);
	free(tree->path);
	free(tree);
}
