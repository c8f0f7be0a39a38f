/* SPDX-License-Identifier: MIT */
/*
 * The table of counters: rows by a key, which begins with the process, and what each counter was at
 * the page before. A ledger is fed by one map of the kernel's sums, read now and then, and by
 * events (fold_inside.h): both add to the same rows. A row outlives its entry in the map: that is
 * taken out once its process has ended, so that the map has room for others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "probe/programs.h"

/* A process as the programs know it: see wire_fold.h. */
struct ledger_process {
	uint64_t born_ns;
	uint64_t tgid;
};

#define LEDGER_KEY_BYTES 64 /* of a key, at most */

struct ledger_row {
	const void *key;
	uint64_t *now;    /* the counters when they were last read, and what was added here */
	uint64_t *before; /* when ledger_turn was last called */
	uint64_t *map;    /* of `now`, what the map said; NULL: it has no such row */
	bool here;        /* it is added to here */
	bool ended;       /* its process */
	const void *of;   /* the reader's own */
	UT_hash_handle hh;
};

struct ledger_layout {
	const char *map;
	size_t key_bytes, words;
	size_t own;     /* of the words, at their end: the map lacks them */
	size_t tgid_at; /* in the key, of 32 bits; born_ns, of 64, is at its begin */
	size_t max_at;  /* the word that is a maximum rather than a sum; 0: none */
	size_t room;    /* for rows of processes that go on and are added to here */
};

struct ledger;

/* Whether a process is one of those that are meant. */
typedef bool (*ledger_is_fn)(void *data, struct ledger_process process);

struct ledger *ledger_new(struct programs *programs, const struct ledger_layout *layout);
void ledger_free(struct ledger *ledger);

/* 0 or a negative errno. */
int ledger_read(struct ledger *ledger);

/* What is now becomes what was before: after a page. */
void ledger_turn(struct ledger *ledger);

/* Reads the rows of processes that have ended for the last time. If the map cannot be read, the
 * next ledger_read says so. */
void ledger_settle(struct ledger *ledger, ledger_is_fn is, void *data);

size_t ledger_count(const struct ledger *ledger);
struct ledger_row *ledger_first(struct ledger *ledger); /* and on by hh.next */

/* Adds a row to that of another key, which no call is counted in, and takes it out of the map. */
struct ledger_row *ledger_merge(struct ledger *ledger, struct ledger_row *row, const void *key);

/* The same for all rows of some processes: they become those of `as`. What more of their keys is
 * not told apart any more is taken out by `key_of`, which may be NULL. */
void ledger_merge_all(struct ledger *ledger, ledger_is_fn is, void *data, struct ledger_process as,
                      void (*key_of)(const struct ledger *ledger, void *key));

/* A row by its key; made, with zeroes, where there is none. */
struct ledger_row *ledger_row(struct ledger *ledger, const void *key);

/* The counters to add to, which stay where they are until the row is merged; NULL: not made yet. */
uint64_t *ledger_here(struct ledger *ledger, const void *key);
bool ledger_make_here(struct ledger *ledger, const void *key); /* false: there is no room */

struct ledger_process ledger_process_of(const struct ledger *ledger, const void *key);
