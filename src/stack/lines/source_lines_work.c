// SPDX-License-Identifier: MIT
/* Of source_lines.h: the thread that has places looked up, and the processes that it asks. */
#include "stack/lines/source_lines_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "probe/person.h"
#include "probe/plain_name.h"

#define LOAD_MS  10000        /* for the first look at a file; one of 2 GB takes seconds */
#define FIND_MS  3000         /* for a place, the first of a large unit takes most */
#define SLICE_NS 200000000ull /* then it is another person's turn */

/* With the lock, but not while it waits for the end of the process. */
static void drop_reader(struct source_lines *lines, struct source_lines_file *file)
{
	pthread_mutex_unlock(&lines->lock);
	reader_end(&file->reader);
	pthread_mutex_lock(&lines->lock);
}

/* With the lock. */
void source_lines_tell(struct source_lines *lines, const char *of, const char *text)
{
	const char *slash = strrchr(of, '/');
	struct buf sentence = { 0 };

	if (lines->n_news == NEWS_MAX)
		return;
	text_add_safe(&sentence, slash ? slash + 1 : of);
	buf_puts(&sentence, text);
	lines->news[lines->n_news++] = sentence.data;
}

/* With the lock. */
static void give_up(struct source_lines *lines, struct source_lines_file *file, const char *why)
{
	file->over = true;
	file->crashes++;
	lines->figures.given_up++;
	source_lines_tell(lines, file->path, why);
}

/* With the lock: what was asked has failed, and the process that was asked is gone. */
static void note_failure(struct source_lines *lines, struct source_lines_file *file, int rc)
{
	if (rc == -ETIMEDOUT)
		give_up(lines, file,
		        ": reading its debug information takes too long: no more lines of it");
	else if (rc == -EBADMSG)
		give_up(lines, file,
		        ": reading its debug information gives nonsense: no more lines of it");
	else if (rc != -ECANCELED && ++file->crashes == LINES_CRASHES_MAX)
		give_up(lines, file,
		        ": reading its debug information ends the process that does it: no more "
		        "lines of it");
}

/* A negative errno, or what the process said, enum lines_status. */
static int load(struct source_lines *lines, struct source_lines_file *file)
{
	struct lines_answer answer;
	int rc;

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
		readers += file->reader.worker.pid != 0;
		if (file->reader.worker.pid && (!oldest || file->used < oldest->used))
			oldest = file;
	}
	if (readers >= LINES_READERS_MAX)
		drop_reader(lines, oldest);
}

/* Their functions as people read them, in memory of their own. */
static void make_plain(struct lines_answer *answer, uint64_t person)
{
	for (size_t i = 0; i < answer->n; i++) {
		struct lines_part *part = &answer->parts[i];

		if (part->function)
			part->function = plain_function_name(part->function, person);
	}
}

static void free_plain(const struct lines_answer *answer)
{
	for (size_t i = 0; i < answer->n; i++)
		free((char *)answer->parts[i].function);
}

static struct found_parts *keep_parts(struct source_lines *lines,
                                      struct source_lines_person *person,
                                      const struct lines_answer *answer)
{
	struct found_parts *found;
	size_t bytes = sizeof(*found);
	char *at;

	for (size_t i = 0; i < answer->n; i++) {
		const struct lines_part *part = &answer->parts[i];

		bytes += sizeof(*part) + (part->function ? strlen(part->function) + 1 : 0) +
		         (part->file ? strlen(part->file) + 1 : 0);
	}
	if (quota_take(&lines->bytes, person->id, 0, bytes))
		return NULL;
	found = xmalloc(bytes);
	found->n = answer->n;
	at = (char *)&found->parts[answer->n];
	for (size_t i = 0; i < answer->n; i++) {
		const struct lines_part *part = &answer->parts[i];

		found->parts[i] = *part;
		found->parts[i].function = part->function ? at : NULL;
		at = part->function ? stpcpy(at, part->function) + 1 : at;
		found->parts[i].file = part->file ? at : NULL;
		at = part->file ? stpcpy(at, part->file) + 1 : at;
	}
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
	rc = reader_ask(&file->reader, place->named ? LINES_FIND_NAMED : LINES_FIND, place->offset,
	                FIND_MS, &lines->stop, &answer);
	answer.n = rc ? 0 : answer.n;
	make_plain(&answer, file->person->id);
	pthread_mutex_lock(&lines->lock);
	take_answer(lines, file, place, rc, &answer);
	free_plain(&answer);
	if (rc)
		drop_reader(lines, file);
	return !rc;
}

/* With the lock, which is not held while it looks. False: the file is to wait. */
static bool has_others(struct source_lines *lines, struct source_lines_file *file)
{
	if (file->looked_for_others)
		return true;
	pthread_mutex_unlock(&lines->lock);
	debug_files_find(file->fd, file->id, file->id_bytes, file->path, &file->others);
	pthread_mutex_lock(&lines->lock);
	file->looked_for_others = true;
	return !source_lines_fetch(lines, file);
}

static bool make_ready(struct source_lines *lines, struct source_lines_file *file)
{
	int rc;

	if (file->reader.worker.pid)
		return true;
	if (!has_others(lines, file))
		return false;
	file->over = file->others.lacking && !file->others.packed;
	if (file->over)
		return false;
	make_room(lines);
	pthread_mutex_unlock(&lines->lock);
	rc = load(lines, file);
	pthread_mutex_lock(&lines->lock);
	if (rc)
		drop_reader(lines, file);
	if (rc < 0)
		note_failure(lines, file, rc);
	else if (rc)
		file->over = true; /* there is nothing to be had */
	lines->figures.files += !rc;
	if (rc == LINES_REFUSED && !lines->figures.rights) {
		lines->figures.rights = true;
		source_lines_tell(lines, "no lines of native code",
		                  ": the process that is to read debug information cannot give up "
		                  "its rights");
	}
	return !rc;
}

/* When files of a person are read again: of 256 each may take ten seconds, and three a place. */
static uint64_t held_until_ns(const struct source_lines *lines,
                              const struct source_lines_person *person)
{
	if (person->id == PERSON_ROOT || person->spent_ns <= lines->person_ns)
		return 0;
	return lines->begun_ns + (person->spent_ns - lines->person_ns) * LINES_PERSON_SHARE;
}

/* With the lock. */
static void serve(struct source_lines *lines, struct source_lines_file *file)
{
	uint64_t begin = clock_now_ns();

	file->used = ++lines->slices;
	if (make_ready(lines, file))
		while (file->first && !lines->stop && clock_now_ns() - begin < SLICE_NS)
			if (!ask_next(lines, file))
				break;
	if (file->over)
		drop_waiting(lines, file);
	file->person->spent_ns += clock_now_ns() - begin;
	lines->figures.ns += clock_now_ns() - begin;
	if (!file->first || file->person->told_slow || !held_until_ns(lines, file->person))
		return;
	file->person->told_slow = true;
	source_lines_tell(lines, file->path,
	                  " and other files of its user: reading their debug information has "
	                  "taken a minute, and has a tenth of the time from now on");
}

static bool is_fetched_now(const struct source_lines_file *file)
{
	return file->fetch == FETCH_WANTED || file->fetch == FETCH_UNDER_WAY;
}

/*
 * Of who took least time so far. NULL: nobody waits, but for what is fetched, and until *held_ns;
 * 0: for nothing.
 */
static struct source_lines_file *next_file(struct source_lines *lines, uint64_t *held_ns)
{
	struct source_lines_file *file, *next, *best = NULL;
	uint64_t now_ns = clock_now_ns(), until_ns;

	*held_ns = 0;
	HASH_ITER (hh, lines->files, file, next) {
		if (!file->first || is_fetched_now(file))
			continue;
		until_ns = held_until_ns(lines, file->person);
		if (until_ns > now_ns)
			*held_ns = !*held_ns || until_ns < *held_ns ? until_ns : *held_ns;
		else if (!best || file->person->spent_ns < best->person->spent_ns ||
		         (file->person == best->person && file->reader.worker.pid &&
		          !best->reader.worker.pid))
			best = file;
	}
	return best;
}

/* With the lock: until something is asked for, or some people's time has come again. */
static void wait_for_work(struct source_lines *lines, uint64_t held_ns)
{
	const struct timespec until = clock_timespec(held_ns);

	lines->all_held = held_ns;
	pthread_cond_broadcast(&lines->idle);
	if (held_ns)
		pthread_cond_timedwait(&lines->asked, &lines->lock, &until);
	else
		pthread_cond_wait(&lines->asked, &lines->lock);
	lines->all_held = false;
}

void *source_lines_work(void *data)
{
	struct source_lines *lines = data;
	struct source_lines_file *file, *next;
	uint64_t held_ns;

	LOCKED(&lines->lock);
	while (!lines->stop) {
		file = next_file(lines, &held_ns);
		if (file)
			serve(lines, file);
		else
			wait_for_work(lines, held_ns);
	}
	HASH_ITER (hh, lines->files, file, next) /* nobody asks for more files by now */
		drop_reader(lines, file);
	return NULL;
}
