// SPDX-License-Identifier: MIT
#include "stack/code_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/account.h"
#include "stack/function_table.h"
#include "stack/lines/debug_file.h"

#define TABLES_BYTES ((size_t)64 << 20)
#define NAMES_BYTES  ((size_t)16 << 20) /* of these, in all tables together */
#define LONG_NAME    1024
#define OPEN_MAX     4096
#define OPEN_USER    1024
#define FREE_NS      200000000ull

struct code_file_key {
	uint64_t dev, inode; /* as wide as each other: no padding for the hash to read */
};

struct code_file {
	struct code_file_key key;
	size_t holders;
	int fd;          /* -1: not opened */
	uint64_t person; /* for whom it was */
	struct function_table *table;
	bool unreadable;
	char build_id[2 * BUILD_ID_MAX + 1];
	off_t size;                  /* of the file when its table was read */
	struct timespec written;     /* and its time */
	uint64_t first_ns, spent_ns; /* when it was first read, and how long that took in all */
	uint64_t used;               /* when, in calls */
	UT_hash_handle hh;
};

struct code_files {
	struct code_file *files;
	struct quota open;                /* descriptors */
	size_t tables_bytes, names_bytes; /* the second: of the first */
	uint64_t calls;
};

struct code_files *code_files_new(void)
{
	struct code_files *files = xcalloc(1, sizeof(*files));

	files->open = (struct quota){ .user = { OPEN_USER },
		                      .others = { OPEN_MAX - OPEN_USER },
		                      .all = { OPEN_MAX } };
	return files;
}

/* ---- holding files ------------------------------------------------------------------------- */

static void drop_table(struct code_files *files, struct code_file *file)
{
	if (file->table) {
		files->tables_bytes -= function_table_bytes(file->table);
		files->names_bytes -= function_table_names_bytes(file->table);
	}
	function_table_free(file->table);
	file->table = NULL;
	file->unreadable = false;
}

static void free_file(struct code_files *files, struct code_file *file)
{
	HASH_DEL(files->files, file);
	drop_table(files, file);
	if (file->fd >= 0) {
		helper_close(file->fd);
		quota_give(&files->open, file->person, 0, 1);
	}
	free(file);
}

void code_files_free(struct code_files *files)
{
	struct code_file *file, *next;

	if (!files)
		return;
	HASH_ITER (hh, files->files, file, next)
		free_file(files, file);
	quota_free(&files->open);
	free(files);
}

static void open_file(struct code_files *files, struct code_file *file, pid_t pid,
                      const struct mapping *mapping)
{
	file->person = helper_person_of(pid);
	if (quota_take(&files->open, file->person, 0, 1))
		return;
	file->fd = mapping_open(pid, mapping, NULL);
	if (file->fd < 0)
		quota_give(&files->open, file->person, 0, 1);
}

struct code_file *code_files_hold(struct code_files *files, pid_t pid,
                                  const struct mapping *mapping)
{
	struct code_file_key key = { mapping->dev, mapping->inode };
	struct code_file *file = MAP_FIND(files->files, &key);

	if (!file) {
		file = MAP_ADD(files->files, key, &key);
		file->fd = -1;
	}
	if (file->fd < 0)
		open_file(files, file, pid, mapping);
	file->holders++;
	return file;
}

void code_files_hold_again(struct code_file *file)
{
	if (file)
		file->holders++;
}

void code_files_drop(struct code_files *files, struct code_file *file)
{
	if (file && !--file->holders)
		free_file(files, file);
}

/* ---- their functions ----------------------------------------------------------------------- */

static void hexadecimal(const uint8_t *id, size_t len, char *text)
{
	*text = '\0';
	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

static void make_room(struct code_files *files)
{
	struct code_file *file, *next, *oldest;

	while (files->tables_bytes > TABLES_BYTES) {
		oldest = NULL;
		HASH_ITER (hh, files->files, file, next)
			if (file->table && (!oldest || file->used < oldest->used))
				oldest = file;
		if (!oldest || oldest->used == files->calls)
			return; /* the one just asked about stays, whatever its size */
		drop_table(files, oldest);
	}
}

/* A file that was written to since (cp over a library) has other functions. */
static bool is_as_read(const struct code_file *file, const struct stat *st)
{
	return st->st_size == file->size && st->st_mtim.tv_sec == file->written.tv_sec &&
	       st->st_mtim.tv_nsec == file->written.tv_nsec;
}

/*
 * A program that writes to a file of its code all the time shall not keep us busy, nor one that
 * asks about files in turn that have no room beside each other: beyond FREE_NS, reading that file
 * may take a tenth of the time.
 */
static bool is_dear(const struct code_file *file, uint64_t now)
{
	return file->spent_ns > FREE_NS && file->spent_ns > (now - file->first_ns) / 10;
}

/* False: there is no table, and no time to read it. */
static bool read_table(struct code_files *files, struct code_file *file, pid_t pid)
{
	uint64_t begin_ns = clock_now_ns(), busy_ns = helper_busy_ns(), person;
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;
	struct stat st;

	if (file_stat(file->fd, &st) < 0 ||
	    ((file->table || file->unreadable) && is_as_read(file, &st)))
		return true;
	person = helper_person_of(pid);
	if (is_dear(file, begin_ns) || look_time_is_over(LOOK_AT_SYMBOLS, person))
		return file->table != NULL;
	drop_table(files, file);
	file->size = st.st_size;
	file->written = st.st_mtim;
	file->unreadable =
		function_table_open(file->fd, "the file", debug_file_open, &file->table, NULL) != 0;
	if (file->table) {
		files->tables_bytes += function_table_bytes(file->table);
		id_len = function_table_build_id(file->table, id);
		hexadecimal(id, id_len, file->build_id);
	}
	make_room(files);
	file->first_ns = file->first_ns ? file->first_ns : begin_ns;
	file->spent_ns += clock_now_ns() - begin_ns;
	look_time_charge(LOOK_AT_SYMBOLS, person, helper_busy_ns() - busy_ns);
	return true;
}

/* They are copied by who asks for them, and a file of 60 KiB can have 16 MiB of them. */
static void forget_names(struct code_files *files)
{
	struct code_file *file, *next;

	HASH_ITER (hh, files->files, file, next)
		if (file->table)
			files->tables_bytes -= function_table_forget_names(file->table);
	files->names_bytes = 0;
}

/*
 * Reading a name takes as long as its file's owner makes it long. Those of honest programs are
 * short, but for a few, and tens of thousands, in files that another process reads: they cost him
 * nothing.
 */
static int find(struct code_files *files, struct code_file *file, pid_t pid, uint64_t offset,
                struct function_found *found)
{
	size_t before = function_table_bytes(file->table), grown;
	uint64_t busy_ns = helper_busy_ns();
	int rc;

	rc = function_table_find(file->table, offset, found);
	grown = function_table_bytes(file->table) - before;
	files->tables_bytes += grown;
	files->names_bytes += grown;
	if (grown > LONG_NAME)
		look_time_charge(LOOK_AT_SYMBOLS, helper_person_of(pid),
		                 helper_busy_ns() - busy_ns);
	return rc;
}

const char *code_file_function(struct code_files *files, struct code_file *file, pid_t pid,
                               uint64_t offset, uint64_t *into_bytes, bool *late)
{
	struct function_found found;

	*late = false;
	if (file->fd < 0)
		return NULL;
	file->used = ++files->calls;
	*late = !read_table(files, file, pid);
	if (!file->table)
		return NULL;
	if (look_time_was_over(LOOK_AT_SYMBOLS) &&
	    look_time_is_over(LOOK_AT_SYMBOLS, helper_person_of(pid))) {
		*late = true;
		return NULL;
	}
	if (files->names_bytes > NAMES_BYTES)
		forget_names(files);
	if (find(files, file, pid, offset, &found))
		return NULL;
	*into_bytes = found.into_bytes;
	return found.name;
}

const char *code_file_build_id(const struct code_file *file)
{
	return *file->build_id ? file->build_id : NULL;
}

int code_file_fd(const struct code_file *file)
{
	return file->fd;
}
