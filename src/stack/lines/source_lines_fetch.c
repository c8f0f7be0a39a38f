// SPDX-License-Identifier: MIT
/* Of source_lines.h: the thread that has debug files fetched. */
#include "stack/lines/source_lines_inside.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define EACH_NS 60000000000ull  /* for files of a person */
#define ALL_NS  120000000000ull /* for all */

static bool is_waiting(const struct source_lines_file *file)
{
	return file->fetch == FETCH_WANTED;
}

/* With the lock. Of who took least time so far; NULL: nobody wants one. */
static struct source_lines_file *next_file(struct source_lines *lines)
{
	struct source_lines_file *file, *next, *best = NULL;

	HASH_ITER (hh, lines->files, file, next)
		if (is_waiting(file) &&
		    (!best || file->person->fetched_ns < best->person->fetched_ns))
			best = file;
	return best;
}

/* With the lock. */
static void finish(struct source_lines *lines, struct source_lines_file *file)
{
	file->fetch = FETCH_OVER;
	lines->n_fetching--;
	pthread_cond_signal(&lines->asked);
	pthread_cond_broadcast(&lines->idle);
}

/* With the lock. */
static void skip(struct source_lines *lines, struct source_lines_file *file)
{
	lines->figures.not_fetched++;
	finish(lines, file);
}

/* Without the lock: nobody else looks at the file meanwhile. */
static int fetch(struct source_lines *lines, struct source_lines_file *file)
{
	int debug = debug_fetch(lines->fetcher, file->id, file->id_bytes, DEBUG_FETCH_MS,
	                        &lines->stop_fetching);
	struct debug_files *found = &file->others;

	if (debug < 0)
		return debug;
	debug_files_take(found, debug);
	if (found->alt < 0 && found->alt_id_bytes)
		found->alt = debug_fetch(lines->fetcher, found->alt_id, found->alt_id_bytes,
		                         DEBUG_FETCH_MS, &lines->stop_fetching);
	if (found->alt < 0)
		found->alt = -1;
	return 0;
}

/* With the lock. */
static void serve(struct source_lines *lines, struct source_lines_file *file)
{
	uint64_t begin_ns = clock_now_ns(), ns;
	int rc;

	if (file->person->fetched_ns >= EACH_NS || lines->figures.fetch_ns >= ALL_NS) {
		skip(lines, file);
		return;
	}
	file->fetch = FETCH_UNDER_WAY;
	pthread_mutex_unlock(&lines->lock);
	rc = fetch(lines, file);
	pthread_mutex_lock(&lines->lock);
	ns = clock_now_ns() - begin_ns;
	file->person->fetched_ns += ns;
	lines->figures.fetch_ns += ns;
	if (rc == -ETIMEDOUT)
		source_lines_tell(lines, file->path,
		                  ": fetching its debug information takes too long");
	else if (rc == -EBADMSG)
		source_lines_tell(lines, file->path,
		                  ": the debug information that was fetched is not of this file");
	if (rc) {
		skip(lines, file);
		return;
	}
	lines->figures.fetched++;
	finish(lines, file);
}

static void *work(void *data)
{
	struct source_lines *lines = data;
	struct source_lines_file *file;

	pthread_mutex_lock(&lines->lock);
	while (!lines->stop_fetching) {
		file = next_file(lines);
		if (file)
			serve(lines, file);
		else
			pthread_cond_wait(&lines->wanted, &lines->lock);
	}
	pthread_mutex_unlock(&lines->lock);
	return NULL;
}

bool source_lines_fetch(struct source_lines *lines, struct source_lines_file *file)
{
	if (!lines->fetcher || lines->stop_fetching || !file->others.lacking || !file->id_bytes ||
	    file->fetch != FETCH_NOT_ASKED)
		return false;
	if (!lines->has_fetch_thread &&
	    pthread_create(&lines->fetch_thread, NULL, work, lines) != 0)
		return false;
	if (!lines->has_fetch_thread)
		source_lines_tell(lines, "debug files",
		                  " that this machine lacks are asked for (DEBUGINFOD_URLS); the "
		                  "end may wait 20 s for them");
	lines->has_fetch_thread = true;
	file->fetch = FETCH_WANTED;
	lines->n_fetching++;
	pthread_cond_signal(&lines->wanted);
	return true;
}

void source_lines_stop_fetching(struct source_lines *lines)
{
	struct source_lines_file *file, *next;

	__atomic_store_n(&lines->stop_fetching, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&lines->wanted);
	if (lines->has_fetch_thread) {
		pthread_mutex_unlock(&lines->lock);
		pthread_join(lines->fetch_thread, NULL);
		pthread_mutex_lock(&lines->lock);
	}
	lines->has_fetch_thread = false;
	HASH_ITER (hh, lines->files, file, next)
		if (is_waiting(file))
			skip(lines, file);
}
