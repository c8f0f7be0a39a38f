/* SPDX-License-Identifier: MIT */
/*
 * Folders full of files that appear whole or not at all, two levels below one folder:
 * TREE/PARENT/NAME. Files are written to a folder beside it whose name nobody can know, which then
 * takes that name. Everything is looked up once and held by descriptor, and no link is followed.
 *
 *     new_tree_open(&tree, "runs", &options, &err);
 *     new_tree_add(tree, "host=a", "rank=0", &folder, &err);
 *     fd = new_folder_file(folder, "StringIds.parquet", false, &err);
 *     ...
 *     new_tree_keep(tree, &err);
 *     new_tree_close(tree);
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct new_tree_options {
	bool replace; /* a folder of this name; nothing else, and only if it has nothing but */
	const char *ending; /* files whose names end so */
	mode_t mode; /* of files; 0: FILE_MODE. Who may read these may look into the folders, too */
};

struct new_tree;
struct new_folder;

/* Makes the folder `path`, if it is not there. A link is not followed. 0 or a negative errno. */
int new_tree_open(struct new_tree **tree, const char *path, const struct new_tree_options *options,
                  struct err *err);

/*
 * A folder to fill, the tree's, until it is kept or dropped. The names are single ones. -EEXIST
 * where there is one that is not to be replaced, or that this tree has made itself.
 */
int new_tree_add(struct new_tree *tree, const char *parent, const char *name,
                 struct new_folder **folder, struct err *err);

/* A new file in it, or with `again` one that is there, to write at its end. A descriptor or a
 * negative errno. */
int new_folder_file(struct new_folder *folder, const char *name, bool again, struct err *err);

/* Those that were added take their names; or are gone, with the folders that were made for them. */
int new_tree_keep(struct new_tree *tree, struct err *err);
void new_tree_drop(struct new_tree *tree);

/* Drops what was not kept. */
void new_tree_close(struct new_tree *tree);
