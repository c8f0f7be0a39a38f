// SPDX-License-Identifier: MIT
#include "stack/lines/source_lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/person.h"
#include "probe/mounts.h"
#include "stack/lines/debug_info.h"
#include "stack/lines/source_lines_inside.h"

/* ---- source lines fetch -------------------------------------------------------------------- */

/* Of source_lines.h: the thread that has debug files fetched. */

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
static void fetch_finish(struct source_lines *lines, struct source_lines_file *file)
{
	file->fetch = FETCH_OVER;
	lines->n_fetching--;
	pthread_cond_signal(&lines->asked);
	pthread_cond_broadcast(&lines->idle);
}

/* With the lock. */
static void fetch_skip(struct source_lines *lines, struct source_lines_file *file)
{
	lines->figures.not_fetched++;
	fetch_finish(lines, file);
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
static void fetch_serve(struct source_lines *lines, struct source_lines_file *file)
{
	uint64_t begin_ns = clock_now_ns(), ns;
	int rc;

	if (file->person->fetched_ns >= EACH_NS || lines->figures.fetch_ns >= ALL_NS) {
		fetch_skip(lines, file);
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
		fetch_skip(lines, file);
		return;
	}
	lines->figures.fetched++;
	fetch_finish(lines, file);
}

static void *fetch_work(void *data)
{
	struct source_lines *lines = data;
	struct source_lines_file *file;

	LOCKED(&lines->lock);
	while (!lines->stop_fetching) {
		file = next_file(lines);
		if (file)
			fetch_serve(lines, file);
		else
			pthread_cond_wait(&lines->wanted, &lines->lock);
	}
	return NULL;
}

bool source_lines_fetch(struct source_lines *lines, struct source_lines_file *file)
{
	if (!lines->fetcher || lines->stop_fetching || !file->others.lacking || !file->id_bytes ||
	    file->fetch != FETCH_NOT_ASKED)
		return false;
	if (!lines->has_fetch_thread &&
	    pthread_create(&lines->fetch_thread, NULL, fetch_work, lines) != 0)
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

/* What is under way is given up. Files do not wait any more. */
static void source_lines_stop_fetching(struct source_lines *lines)
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
			fetch_skip(lines, file);
}

/* ---- source lines -------------------------------------------------------------------------- */

#define EACH_BYTES ((size_t)24 << 20)
#define ALL_BYTES  ((size_t)64 << 20)
#define EACH_FILES 256
#define ALL_FILES  1024
#define FETCH_NS   20000000000ull /* that the end waits for files that are fetched */

/* ---- what is asked for --------------------------------------------------------------------- */

static struct source_lines_person *find_person(struct source_lines *lines, uint64_t id)
{
	return MAP_MAKE(lines->persons, id, &id);
}

static size_t id_of(const char *hex, uint8_t *id)
{
	size_t n = 0;
	unsigned byte;

	for (; hex && n < DEBUG_ID_MAX && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		id[n] = (uint8_t)byte;
	return n;
}

static struct source_lines_file *make_file(struct source_lines *lines,
                                           const struct source_lines_place *place,
                                           const struct source_lines_file_key *key,
                                           const struct stat *st)
{
	bool roots = is_roots(st);
	struct source_lines_person *person =
		find_person(lines, roots ? PERSON_ROOT
	                                 : person_of_file(st->st_uid, helper_mapped_by(place->fd)));
	struct source_lines_file *file;
	int fd;

	if (quota_take(&lines->of_files, person->id, 0, 1))
		return NULL;
	fd = helper_dup(place->fd);
	if (fd < 0) {
		quota_give(&lines->of_files, person->id, 0, 1);
		return NULL;
	}
	file = MAP_ADD(lines->files, key, key);
	file->person = person;
	file->fd = fd;
	file->path = xstrdup(place->path);
	file->id_bytes = id_of(place->build_id, file->id);
	file->roots = roots;
	file->others = (struct debug_files){ .debug = -1, .alt = -1 };
	file->last = &file->first;
	return file;
}

static struct source_lines_file *find_file(struct source_lines *lines,
                                           const struct source_lines_place *place)
{
	struct source_lines_file_key key;
	struct source_lines_file *file;
	struct stat st;

	if (place->fd < 0 || file_stat(place->fd, &st))
		return NULL;
	key = (struct source_lines_file_key){ st.st_dev, st.st_ino, (uint64_t)st.st_size,
		                              (uint64_t)st.st_mtim.tv_sec * 1000000000 +
		                                      (uint64_t)st.st_mtim.tv_nsec };
	file = MAP_FIND(lines->files, &key);
	return file ? file : make_file(lines, place, &key, &st);
}

static void begin_thread(struct source_lines *lines)
{
	lines->has_thread = lines->has_thread ||
	                    !pthread_create(&lines->thread, NULL, source_lines_work, lines);
}

static void add_place(struct source_lines *lines, struct source_lines_file *file,
                      const struct source_lines_place *of, void *what)
{
	struct asked_place *place = MAP_ADD(lines->by_what, what, &what);

	place->offset = of->offset;
	place->named = of->named;
	place->file = file;
	place->next_of_all = lines->all;
	lines->all = place;
	lines->figures.places++;
	if (file->over) {
		lines->figures.unanswered += file->crashes != 0;
		return;
	}
	*file->last = place;
	file->last = &place->next;
	lines->waiting++;
	begin_thread(lines);
	pthread_cond_signal(&lines->asked);
}

void source_lines_want(struct source_lines *lines, const struct source_lines_place *place,
                       void *what)
{
	struct asked_place *known;
	struct source_lines_file *file;

	if (!lines)
		return;
	LOCKED(&lines->lock);
	known = MAP_FIND(lines->by_what, &what);
	if (known && known->file->roots)
		return;
	file = find_file(lines, place);
	if (known && (!file || !file->roots))
		return;
	if (!file || quota_take(&lines->bytes, file->person->id, 0, sizeof(*known))) {
		lines->figures.refused++;
	} else {
		if (known) {
			HASH_DEL(lines->by_what, known);
			known->what = NULL;
		}
		add_place(lines, file, place, what);
	}
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct source_lines *source_lines_new(void (*run)(int socket))
{
	struct source_lines *lines;
	pthread_condattr_t clock;
	const char *why = NULL;

	if (!debug_info_version())
		return NULL;
	lines = xcalloc(1, sizeof(*lines));
	lines->run = run;
	lines->person_ns = LINES_PERSON_NS;
	lines->begun_ns = clock_now_ns();
	lines->bytes =
		(struct quota){ .user = { EACH_BYTES }, .all = { ALL_BYTES }, .root_too = true };
	lines->of_files =
		(struct quota){ .user = { EACH_FILES }, .all = { ALL_FILES }, .root_too = true };
	pthread_mutex_init(&lines->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&lines->asked, &clock);
	pthread_cond_init(&lines->idle, &clock);
	pthread_cond_init(&lines->wanted, NULL);
	pthread_condattr_destroy(&clock);
	if (debug_fetch_is_asked())
		lines->fetcher = debug_fetcher_new(&why);
	if (why)
		source_lines_tell(lines, "debug files are not fetched", why);
	return lines;
}

static void stop_thread(struct source_lines *lines)
{
	if (!lines->has_thread)
		return;
	pthread_mutex_lock(&lines->lock);
	source_lines_stop_fetching(lines);
	__atomic_store_n(&lines->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&lines->asked);
	pthread_mutex_unlock(&lines->lock);
	pthread_join(lines->thread, NULL);
	lines->has_thread = false;
}

/* With the lock: until something has changed, or for so long. False: it is time. */
static bool wait_until(struct source_lines *lines, uint64_t until_ns)
{
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		                        (long)(until_ns % 1000000000) };

	return pthread_cond_timedwait(&lines->idle, &lines->lock, &until) != ETIMEDOUT;
}

/* With the lock. */
static void wait_for_fetched(struct source_lines *lines)
{
	uint64_t until_ns = clock_now_ns() + FETCH_NS;

	while (lines->n_fetching && wait_until(lines, until_ns))
		;
	source_lines_stop_fetching(lines);
}

size_t source_lines_wait(struct source_lines *lines, uint64_t ns)
{
	uint64_t until_ns;
	size_t left;

	if (!lines)
		return 0;
	pthread_mutex_lock(&lines->lock);
	until_ns = clock_now_ns() + ns;
	do {
		if (lines->n_fetching) {
			wait_for_fetched(lines);
			until_ns = clock_now_ns() + ns;
		}
	} while (lines->waiting && !lines->all_held && lines->has_thread &&
	         wait_until(lines, until_ns));
	left = lines->waiting;
	lines->figures.late = left;
	pthread_mutex_unlock(&lines->lock);
	stop_thread(lines);
	return left;
}

static void free_file(struct source_lines_file *file)
{
	if (file->others.debug >= 0)
		close(file->others.debug);
	if (file->others.alt >= 0)
		close(file->others.alt);
	helper_close(file->fd);
	free(file->path);
	free(file);
}

void source_lines_free(struct source_lines *lines)
{
	struct source_lines_file *file, *next_file;

	if (!lines)
		return;
	stop_thread(lines);
	HASH_CLEAR(hh, lines->by_what);
	while (lines->all) {
		struct asked_place *place = lines->all;

		lines->all = place->next_of_all;
		free(place->found);
		free(place);
	}
	HASH_ITER (hh, lines->files, file, next_file) {
		HASH_DEL(lines->files, file);
		free_file(file);
	}
	MAP_FREE(lines->persons, free);
	quota_free(&lines->bytes);
	quota_free(&lines->of_files);
	for (size_t i = 0; i < lines->n_news; i++)
		free(lines->news[i]);
	pthread_cond_destroy(&lines->asked);
	pthread_cond_destroy(&lines->idle);
	pthread_cond_destroy(&lines->wanted);
	debug_fetcher_free(lines->fetcher);
	pthread_mutex_destroy(&lines->lock);
	free(lines);
}

/* ---- what was found ------------------------------------------------------------------------ */

void source_lines_each(struct source_lines *lines,
                       void (*each)(void *data, void *what, const struct lines_part *parts,
                                    size_t n),
                       void *data)
{
	if (!lines)
		return;
	LOCKED(&lines->lock);
	for (struct asked_place *place = lines->all; place; place = place->next_of_all) {
		if (!place->what || !place->found || place->told)
			continue;
		place->told = true;
		each(data, place->what, place->found->parts, place->found->n);
	}
}

void source_lines_figures(struct source_lines *lines, struct source_lines_figures *figures)
{
	*figures = (struct source_lines_figures){ 0 };
	if (!lines)
		return;
	LOCKED(&lines->lock);
	*figures = lines->figures;
}

bool source_lines_news(struct source_lines *lines, char *text, size_t size)
{
	bool any = false;

	if (!lines)
		return false;
	LOCKED(&lines->lock);
	if (lines->n_news) {
		snprintf(text, size, "%s", lines->news[0]);
		free(lines->news[0]);
		lines->n_news--;
		memmove(lines->news, lines->news + 1, lines->n_news * sizeof(*lines->news));
		any = true;
	}
	return any;
}
