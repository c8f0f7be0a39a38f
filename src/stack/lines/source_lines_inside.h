/* SPDX-License-Identifier: MIT */
/* The inside of source_lines.h: what is asked for (source_lines.c), the thread that has it looked
 * up (source_lines_work.c), and the one that has debug files fetched (source_lines.c). */
#pragma once

#include <pthread.h>
#include <time.h>

#include "base/hash.h"
#include "base/quota.h"
#include "stack/lines/debug_fetch.h"
#include "stack/lines/debug_file.h"
#include "stack/lines/reader.h"
#include "stack/lines/source_lines.h"

#define NEWS_MAX 32

#define LINES_PERSON_NS    60000000000ull
#define LINES_PERSON_SHARE 10

struct source_lines_person {
	uint64_t id, spent_ns, fetched_ns;
	bool told_slow;
	UT_hash_handle hh;
};

struct source_lines_file_key { /* all of a width: no padding for the hash to read */
	uint64_t dev, inode, size, written_ns;
};

struct source_lines_file {
	struct source_lines_file_key key;
	struct source_lines_person *person;
	int fd;
	char *path;
	uint8_t id[DEBUG_ID_MAX];
	size_t id_bytes;
	bool roots; /* root alone can change it */
	struct debug_files others;
	bool looked_for_others;
	enum {
		FETCH_NOT_ASKED,
		FETCH_WANTED,
		FETCH_UNDER_WAY, /* `others` are the fetching thread's */
		FETCH_OVER,
	} fetch;
	bool over; /* nothing more is asked of it */
	unsigned crashes;
	struct reader reader;
	uint64_t used; /* when, in slices */
	struct asked_place *first, **last;
	UT_hash_handle hh;
};

struct found_parts {
	size_t n;
	struct lines_part parts[];
};

struct asked_place {
	void *what; /* NULL: another file's place was taken for it */
	uint64_t offset;
	struct source_lines_file *file;
	struct found_parts *found;
	bool named;
	bool told; /* by source_lines_each() */
	struct asked_place *next, *next_of_all;
	UT_hash_handle hh;
};

struct source_lines {
	pthread_mutex_t lock;
	pthread_cond_t asked, idle;
	pthread_t thread;
	bool has_thread, stop, busy;
	bool all_held;                /* what waits is of people who had their time */
	uint64_t person_ns, begun_ns; /* what each has beside a share of the time since then */
	void (*run)(int socket);
	struct source_lines_person *persons;
	struct source_lines_file *files;
	struct asked_place *by_what, *all;
	struct quota bytes, of_files;
	size_t waiting;
	uint64_t slices;
	struct source_lines_figures figures;
	char *news[NEWS_MAX];
	size_t n_news;

	struct debug_fetcher *fetcher; /* NULL: nothing is fetched */
	pthread_t fetch_thread;
	pthread_cond_t wanted;
	bool has_fetch_thread, stop_fetching;
	size_t n_fetching; /* files that are wanted or under way */
};

/* All three with the lock. A sentence on a file, which is called by its name without folders. */
void source_lines_tell(struct source_lines *lines, const char *of, const char *text);

/* False where the file is read without debug information that it lacks; else it is to wait. */
bool source_lines_fetch(struct source_lines *lines, struct source_lines_file *file);

/* The thread: of struct source_lines, until its stop. */
void *source_lines_work(void *lines);
