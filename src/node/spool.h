/* SPDX-License-Identifier: MIT */
/*
 * The folder that the flight recorder writes to. It is bounded in bytes and files, and a part of
 * the disk is left free. It is opened once and then only used by its descriptor, so nobody can lead
 * what is written elsewhere. It has to belong to who runs this, and nobody else may write there.
 *
 *   spool_begin   room is made, a file with a name of its own is there, and is locked
 *   (it is written)
 *   spool_keep    it is on the disk, and gets its name: TIME-RULE-NUMBER.cuscope
 *   spool_drop    or it is gone
 *
 * What stands in the folder is looked at anew each time: people remove files, and no count can
 * drift. The number in a name grows, and by it is known which file is the oldest, whatever clocks
 * do. All these may wait for the disk, so they are for a process that nobody waits for.
 */
#ifndef CUSCOPE_NODE_SPOOL_H
#define CUSCOPE_NODE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"

#define SPOOL_NAME_MAX 96

struct spool_limits {
	uint64_t bytes;
	uint64_t files;
	uint64_t keep_free_bytes; /* of the file system, for others */
	bool refuse;              /* when it is full; else the oldest file goes */
};

struct spool_use {
	uint64_t bytes, files;
	uint64_t others; /* entries that are none of ours: left alone, and in no count */
};

/* Why nothing was written; the words are labels of a metric. */
enum spool_why {
	SPOOL_OK,
	SPOOL_FULL,       /* and the oldest are to stay */
	SPOOL_NO_SPACE,   /* the disk is full, or would be */
	SPOOL_TOO_LARGE,  /* for the whole spool */
	SPOOL_UNWRITABLE, /* all else that a file system refuses */
	SPOOL_WHY_COUNT,
};

const char *spool_why_name(enum spool_why why);

/* Why writing failed with that errno. */
enum spool_why spool_why_of(int code);

/*
 * The folder's descriptor, or a negative errno. It is made where only its last part is missing.
 * Refused: a link, a folder of another user, one that group or others may write to.
 */
int spool_open(const char *path, struct err *err);

/* Removes what writers that were killed have left behind. Returns how many files that were. */
unsigned spool_clean(int folder);

/* 0 or a negative errno. */
int spool_look(int folder, struct spool_use *use);

struct spool_file {
	int folder, fd; /* fd -1: none */
	char temporary[SPOOL_NAME_MAX];
	uint64_t number; /* of its name */
	uint64_t room;   /* bytes that it may have */
};

/* `bytes`: about as large as it will be. On failure *why says which kind it is of. */
int spool_begin(int folder, const struct spool_limits *limits, uint64_t bytes,
                struct spool_file *file, enum spool_why *why, struct err *err);

/*
 * Each ends it. `rule`: small letters and '_' only. `name` is told the name in the folder. A file
 * that exists is never replaced.
 */
int spool_keep(struct spool_file *file, const char *rule, time_t now, char name[SPOOL_NAME_MAX],
               struct err *err);
void spool_drop(struct spool_file *file);

/* ---- spool names --------------------------------------------------------------------------- */

/* Of the spool: names of its files, and the list of those that are there. */

#define SPOOL_ENTRIES_MAX   65536           /* in the folder, whatever they are; more is refused */
#define SPOOL_NUMBER_MAX    999999999999ull /* of a name; a file with a larger one is not ours */
#define SPOOL_TEMPORARY_MAX 256             /* that are cleaned at once */

/* "20270115T080000Z-slow_step-000017.cuscope" */
void spool_name(char name[SPOOL_NAME_MAX], time_t now, const char *rule, uint64_t number);

/* False: it is no such name. */
bool spool_name_read(const char *name, uint64_t *number);

struct spool_entry {
	uint64_t number, bytes;
	char name[SPOOL_NAME_MAX];
};

struct spool_list {
	int folder;
	struct spool_entry *entries; /* the oldest first */
	size_t n;
	uint64_t temporary[SPOOL_TEMPORARY_MAX]; /* numbers of names, of regular files of ours */
	size_t n_temporary;
	struct spool_use use;
	uint64_t number; /* of the newest; 0: there is no file */
};

#endif
