// SPDX-License-Identifier: MIT
#include "stack/lines/source_lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <uthash.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "probe/helper.h"
#include "probe/person.h"
#include "probe/roots_path.h"
#include "stack/function_name.h"
#include "stack/lines/debug_file.h"
#include "stack/lines/debug_info.h"
#include "stack/lines/reader.h"

#define EACH_BYTES ((size_t)24 << 20)
#define ALL_BYTES  ((size_t)64 << 20)
#define EACH_FILES 256
#define ALL_FILES  1024
#define LOAD_MS    10000        /* for the first look at a file; one of 2 GB takes seconds */
#define FIND_MS    3000         /* for a place, the first of a large unit takes most */
#define SLICE_NS   200000000ull /* then it is another person's turn */
#define NEWS_MAX   32

struct source_lines_person {
	uint64_t id, spent_ns;
	size_t bytes, files;
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
	struct asked_place *next, *next_of_all;
	UT_hash_handle hh;
};

struct source_lines {
	pthread_mutex_t lock;
	pthread_cond_t asked, idle;
	pthread_t thread;
	bool has_thread, stop, busy;
	void (*run)(int socket);
	struct source_lines_person *persons;
	struct source_lines_file *files;
	struct asked_place *by_what, *all;
	size_t bytes, waiting, n_files;
	uint64_t slices;
	struct source_lines_figures figures;
	char *news[NEWS_MAX];
	size_t n_news;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- what is asked for --------------------------------------------------------------------- */

static struct source_lines_person *find_person(struct source_lines *lines, uint64_t id)
{
	struct source_lines_person *person;

	HASH_FIND(hh, lines->persons, &id, sizeof(id), person);
	if (person)
		return person;
	person = xcalloc(1, sizeof(*person));
	person->id = id;
	HASH_ADD(hh, lines->persons, id, sizeof(person->id), person);
	return person;
}

static bool take_bytes(struct source_lines *lines, struct source_lines_person *person, size_t bytes)
{
	if (person->bytes + bytes > EACH_BYTES || lines->bytes + bytes > ALL_BYTES)
		return false;
	person->bytes += bytes;
	lines->bytes += bytes;
	return true;
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

	if (lines->n_files >= ALL_FILES || person->files >= EACH_FILES)
		return NULL;
	fd = helper_dup(place->fd);
	if (fd < 0)
		return NULL;
	file = xcalloc(1, sizeof(*file));
	file->key = *key;
	file->person = person;
	file->fd = fd;
	file->path = xstrdup(place->path);
	file->id_bytes = id_of(place->build_id, file->id);
	file->roots = roots;
	file->others = (struct debug_files){ -1, -1, 0 };
	file->last = &file->first;
	person->files++;
	lines->n_files++;
	HASH_ADD(hh, lines->files, key, sizeof(file->key), file);
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
	HASH_FIND(hh, lines->files, &key, sizeof(key), file);
	return file ? file : make_file(lines, place, &key, &st);
}

static void *work(void *data);

static void begin_thread(struct source_lines *lines)
{
	lines->has_thread = lines->has_thread || !pthread_create(&lines->thread, NULL, work, lines);
}

static void add_place(struct source_lines *lines, struct source_lines_file *file, uint64_t offset,
                      void *what)
{
	struct asked_place *place = xcalloc(1, sizeof(*place));

	place->what = what;
	place->offset = offset;
	place->file = file;
	place->next_of_all = lines->all;
	lines->all = place;
	HASH_ADD_PTR(lines->by_what, what, place);
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
	pthread_mutex_lock(&lines->lock);
	HASH_FIND_PTR(lines->by_what, &what, known);
	if (known && known->file->roots) {
		pthread_mutex_unlock(&lines->lock);
		return;
	}
	file = find_file(lines, place);
	if (known && (!file || !file->roots)) {
		pthread_mutex_unlock(&lines->lock);
		return;
	}
	if (!file || !take_bytes(lines, file->person, sizeof(*known))) {
		lines->figures.refused++;
	} else {
		if (known) {
			HASH_DEL(lines->by_what, known);
			known->what = NULL;
		}
		add_place(lines, file, place->offset, what);
	}
	pthread_mutex_unlock(&lines->lock);
}

/* ---- what comes of it: on the thread, without the lock where it waits ------------------------ */

static void drop_reader(struct source_lines_file *file)
{
	reader_end(&file->reader);
}

/* With the lock. */
static void give_up(struct source_lines *lines, struct source_lines_file *file, const char *why)
{
	const char *slash = strrchr(file->path, '/');
	struct buf text = { 0 };

	file->over = true;
	file->crashes++;
	lines->figures.given_up++;
	if (lines->n_news == NEWS_MAX)
		return;
	text_add_safe(&text, slash ? slash + 1 : file->path);
	buf_printf(&text, ": reading its debug information %s: no more lines of it", why);
	lines->news[lines->n_news++] = text.data;
}

/* With the lock: what was asked has failed, and the process that was asked is gone. */
static void note_failure(struct source_lines *lines, struct source_lines_file *file, int rc)
{
	if (rc == -ETIMEDOUT)
		give_up(lines, file, "takes too long");
	else if (rc == -EBADMSG)
		give_up(lines, file, "gives nonsense");
	else if (rc != -ECANCELED && ++file->crashes == LINES_CRASHES_MAX)
		give_up(lines, file, "ends the process that does it");
}

/* A negative errno, or what the process said, enum lines_status. */
static int load(struct source_lines *lines, struct source_lines_file *file)
{
	struct lines_answer answer;
	int rc;

	if (!file->looked_for_others)
		debug_files_find(file->fd, file->id, file->id_bytes, file->path, &file->others);
	file->looked_for_others = true;
	rc = reader_start(&file->reader, lines->run);
	rc = rc ? rc : reader_send(&file->reader, LINES_MAIN, 0, file->fd);
	if (!rc && file->others.debug >= 0)
		rc = reader_send(&file->reader, LINES_DEBUG, file->others.crc, file->others.debug);
	if (!rc && file->others.alt >= 0)
		rc = reader_send(&file->reader, LINES_ALT, 0, file->others.alt);
	rc = rc ? rc : reader_ask(&file->reader, LINES_READY, 0, LOAD_MS, &lines->stop, &answer);
	if (rc)
		return rc;
	return (int)answer.status;
}

static void make_room(struct source_lines *lines)
{
	struct source_lines_file *file, *next, *oldest = NULL;
	size_t readers = 0;

	HASH_ITER (hh, lines->files, file, next) {
		readers += file->reader.pid != 0;
		if (file->reader.pid && (!oldest || file->used < oldest->used))
			oldest = file;
	}
	if (readers >= LINES_READERS_MAX)
		drop_reader(oldest);
}

static struct found_parts *keep_parts(struct source_lines *lines,
                                      struct source_lines_person *person,
                                      const struct lines_answer *answer)
{
	char *names[LINES_PARTS_MAX];
	struct found_parts *found;
	size_t bytes = sizeof(*found);
	char *at;

	for (size_t i = 0; i < answer->n; i++) {
		const struct lines_part *part = &answer->parts[i];

		names[i] = part->function ? function_name_demangle(part->function) : NULL;
		bytes += sizeof(*part) + (names[i] ? strlen(names[i]) + 1 : 0) +
		         (part->file ? strlen(part->file) + 1 : 0);
	}
	found = take_bytes(lines, person, bytes) ? xmalloc(bytes) : NULL;
	at = found ? (char *)&found->parts[answer->n] : NULL;
	for (size_t i = 0; i < answer->n; i++) {
		if (found) {
			found->parts[i] = answer->parts[i];
			found->parts[i].function = names[i] ? at : NULL;
			at = names[i] ? stpcpy(at, names[i]) + 1 : at;
			found->parts[i].file = answer->parts[i].file ? at : NULL;
			at = answer->parts[i].file ? stpcpy(at, answer->parts[i].file) + 1 : at;
		}
		free(names[i]);
	}
	if (found)
		found->n = answer->n;
	return found;
}

/* With the lock: all that waits for this file is without an answer. */
static void drop_waiting(struct source_lines *lines, struct source_lines_file *file)
{
	for (; file->first; file->first = file->first->next) {
		lines->waiting--;
		lines->figures.unanswered += file->crashes != 0;
	}
	file->last = &file->first;
}

/* With the lock: of one place. */
static void take_answer(struct source_lines *lines, struct source_lines_file *file,
                        struct asked_place *place, int rc, const struct lines_answer *answer)
{
	if (rc == -ECANCELED)
		return;
	file->first = place->next;
	if (!file->first)
		file->last = &file->first;
	lines->waiting--;
	if (rc) {
		lines->figures.unanswered++;
		note_failure(lines, file, rc);
		return;
	}
	if (answer->status != LINES_OK || !answer->n)
		return;
	place->found = keep_parts(lines, file->person, answer);
	lines->figures.found += place->found != NULL;
	lines->figures.refused += place->found == NULL;
}

/* With the lock, which is not held while it waits. True: go on with this file. */
static bool ask_next(struct source_lines *lines, struct source_lines_file *file)
{
	struct asked_place *place = file->first;
	struct lines_answer answer = { 0 };
	int rc;

	pthread_mutex_unlock(&lines->lock);
	rc = reader_ask(&file->reader, LINES_FIND, place->offset, FIND_MS, &lines->stop, &answer);
	pthread_mutex_lock(&lines->lock);
	take_answer(lines, file, place, rc, &answer);
	if (rc)
		drop_reader(file);
	return !rc;
}

static bool make_ready(struct source_lines *lines, struct source_lines_file *file)
{
	int rc;

	if (file->reader.pid)
		return true;
	make_room(lines);
	pthread_mutex_unlock(&lines->lock);
	rc = load(lines, file);
	pthread_mutex_lock(&lines->lock);
	if (rc)
		drop_reader(file);
	if (rc < 0)
		note_failure(lines, file, rc);
	else if (rc)
		file->over = true; /* there is nothing to be had */
	lines->figures.files += !rc;
	lines->figures.rights |= rc == LINES_REFUSED;
	return !rc;
}

/* With the lock. */
static void serve(struct source_lines *lines, struct source_lines_file *file)
{
	uint64_t begin = now_ns();

	file->used = ++lines->slices;
	if (make_ready(lines, file))
		while (file->first && !lines->stop && now_ns() - begin < SLICE_NS)
			if (!ask_next(lines, file))
				break;
	if (file->over)
		drop_waiting(lines, file);
	file->person->spent_ns += now_ns() - begin;
	lines->figures.ns += now_ns() - begin;
}

/* Of who took least time so far. NULL: nobody waits. */
static struct source_lines_file *next_file(struct source_lines *lines)
{
	struct source_lines_file *file, *next, *best = NULL;

	HASH_ITER (hh, lines->files, file, next)
		if (file->first &&
		    (!best || file->person->spent_ns < best->person->spent_ns ||
		     (file->person == best->person && file->reader.pid && !best->reader.pid)))
			best = file;
	return best;
}

static void *work(void *data)
{
	struct source_lines *lines = data;
	struct source_lines_file *file, *next;

	pthread_mutex_lock(&lines->lock);
	while (!lines->stop) {
		file = next_file(lines);
		if (file) {
			serve(lines, file);
			continue;
		}
		pthread_cond_broadcast(&lines->idle);
		pthread_cond_wait(&lines->asked, &lines->lock);
	}
	HASH_ITER (hh, lines->files, file, next)
		drop_reader(file);
	pthread_mutex_unlock(&lines->lock);
	return NULL;
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct source_lines *source_lines_new(void (*run)(int socket))
{
	struct source_lines *lines;
	pthread_condattr_t clock;

	if (!debug_info_version())
		return NULL;
	lines = xcalloc(1, sizeof(*lines));
	lines->run = run;
	pthread_mutex_init(&lines->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&lines->asked, &clock);
	pthread_cond_init(&lines->idle, &clock);
	pthread_condattr_destroy(&clock);
	return lines;
}

static void stop_thread(struct source_lines *lines)
{
	if (!lines->has_thread)
		return;
	pthread_mutex_lock(&lines->lock);
	__atomic_store_n(&lines->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&lines->asked);
	pthread_mutex_unlock(&lines->lock);
	pthread_join(lines->thread, NULL);
	lines->has_thread = false;
}

size_t source_lines_wait(struct source_lines *lines, uint64_t ns)
{
	uint64_t until_ns = now_ns() + ns;
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		                        (long)(until_ns % 1000000000) };
	size_t left;

	if (!lines)
		return 0;
	pthread_mutex_lock(&lines->lock);
	while (lines->waiting && lines->has_thread &&
	       pthread_cond_timedwait(&lines->idle, &lines->lock, &until) != ETIMEDOUT)
		;
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
	close(file->fd);
	free(file->path);
	free(file);
}

void source_lines_free(struct source_lines *lines)
{
	struct source_lines_person *person, *next_person;
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
	HASH_ITER (hh, lines->persons, person, next_person) {
		HASH_DEL(lines->persons, person);
		free(person);
	}
	for (size_t i = 0; i < lines->n_news; i++)
		free(lines->news[i]);
	pthread_cond_destroy(&lines->asked);
	pthread_cond_destroy(&lines->idle);
	pthread_mutex_destroy(&lines->lock);
	free(lines);
}

/* ---- what was found ------------------------------------------------------------------------ */

void source_lines_each(struct source_lines *lines,
                       void (*each)(void *data, void *what, const struct lines_part *parts,
                                    size_t n),
                       void *data)
{
	for (struct asked_place *place = lines ? lines->all : NULL; place;
	     place = place->next_of_all)
		if (place->what && place->found)
			each(data, place->what, place->found->parts, place->found->n);
}

void source_lines_figures(struct source_lines *lines, struct source_lines_figures *figures)
{
	*figures = (struct source_lines_figures){ 0 };
	if (!lines)
		return;
	pthread_mutex_lock(&lines->lock);
	*figures = lines->figures;
	pthread_mutex_unlock(&lines->lock);
}

bool source_lines_news(struct source_lines *lines, char *text, size_t size)
{
	bool any = false;

	if (!lines)
		return false;
	pthread_mutex_lock(&lines->lock);
	if (lines->n_news) {
		snprintf(text, size, "%s", lines->news[0]);
		free(lines->news[0]);
		lines->n_news--;
		memmove(lines->news, lines->news + 1, lines->n_news * sizeof(*lines->news));
		any = true;
	}
	pthread_mutex_unlock(&lines->lock);
	return any;
}
