/* SPDX-License-Identifier: MIT */
/* Of the spool: names of its files, and the list of those that are there. */
#ifndef CUSCOPE_NODE_SPOOL_NAMES_H
#define CUSCOPE_NODE_SPOOL_NAMES_H

#include <stddef.h>

#include "node/spool.h"

#define SPOOL_ENTRIES_MAX   65536           /* in the folder, whatever they are; more is refused */
#define SPOOL_NUMBER_MAX    999999999999ull /* of a name; a file with a larger one is not ours */
#define SPOOL_TEMPORARY_MAX 256             /* that are cleaned at once */

/* "20270115T080000Z-slow_step-000017.cuscope" */
void spool_name(char name[SPOOL_NAME_MAX], time_t now, const char *rule, uint64_t number);

/* ".recording-000000012345" */
void spool_temporary_name(char name[SPOOL_NAME_MAX], uint64_t number);

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
	uint64_t number; /* the largest; 0: there is no file */
};

/* 0 or a negative errno. Only regular files of ours count: all else is left alone. */
int spool_list_read(struct spool_list *list, int folder);
void spool_list_free(struct spool_list *list);

#endif
