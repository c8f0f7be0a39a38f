/* SPDX-License-Identifier: MIT */
/*
 * The consumer that writes trace files (docs/trace-format.md).
 *
 * What is whole on disk stays readable whatever happens. Chunks are written one after the other, at
 * least one a second. One that could not be written to its end is cut off again. EVENT_CALL_BEGIN
 * is not kept: the call itself comes later and says the same.
 */
#pragma once

#include "trace/event.h"

#include "base/buf.h"
#include "base/err.h"
#include "trace/chunk.h"

/*
 * Writes to `fd`, a regular file, from its begin on; what was in it is gone with the first flush()
 * or chunk. It stays the caller's; `name` is for sentences and is kept, not copied.
 */
struct consumer *writer_new(int fd, const char *name);

/* Keeps only the last part in memory, until it is asked for. */
struct writer_window {
	uint64_t last_ns, last_bytes; /* of events, packed; 0: no limit by that */
	/* Users share last_bytes: who has most of them gives way, see writer_left_out(). */
	bool shared;
	/* Threads whose begins are told, which no window drops: of all, and half of them of a user
	 * but root. Those beyond have no names. 0: any number. */
	size_t threads;
	/*
	 * Opens a file for writing, and says its name, which stays valid until the next call. The
	 * writer closes it. A negative errno with a sentence where there is none.
	 */
	int (*open)(void *data, const char **name, struct err *err);
	/* Adds to a run that is about to be written what its owner has to tell. May be NULL. */
	void (*tell)(void *data, struct run_info *run);
	/* A file is written. May be NULL. */
	void (*written)(void *data, const struct run_info *run, uint64_t events, uint64_t bytes);
	void *data;
};

struct consumer *writer_new_window(const struct writer_window *window);

/*
 * Writes what the window holds to a file of its own, which end() does as well; then it goes on.
 * Not to be called from event(). Only for writers with a window.
 */
int writer_snapshot(struct consumer *writer, const struct run_info *run, struct err *err);

/* From now on these are asked instead of those of writer_new_window(). */
void writer_redirect(struct consumer *writer,
                     int (*open)(void *data, const char **name, struct err *err),
                     void (*written)(void *data, const struct run_info *run, uint64_t events,
                                     uint64_t bytes),
                     void *data);

/* From now on the window is no longer than that. */
void writer_shorten(struct consumer *writer, uint64_t last_ns);

/* What a snapshot does first: packs what waits, and drops what is older than the window then. */
int writer_settle(struct consumer *writer, uint64_t end_ns, struct err *err);

/* Of a user who had most of a shared window: of him less is held than of others. */
struct writer_left_out {
	uint64_t person;   /* probe/person.h */
	uint64_t events;   /* that were left out since the oldest that is held of others */
	uint64_t until_ns; /* the latest of these; all that came later is held */
};

/* Those who left out most, at most so many. How many there are. */
size_t writer_left_out(const struct consumer *writer, struct writer_left_out *left, size_t most);

struct writer_stats {
	uint64_t events;     /* taken so far */
	uint64_t whole;      /* of them in chunks that are written; not with a window */
	uint64_t bytes;      /* written so far; with a window: held in memory */
	uint64_t held;       /* with a window: that, and the definitions, which are never dropped */
	uint64_t defined;    /* bytes of definitions so far, as who reads them unpacks them */
	uint64_t dropped_ns; /* with a window: up to when nothing is held; 0: all is */
	uint64_t left_out;   /* with a shared window: events, ever, by users who had most of it */
	uint64_t unnamed;    /* with a window: threads beyond writer_window.threads */
	bool ended;          /* well */
};

void writer_stats(const struct consumer *writer, struct writer_stats *stats);

/* ---- file out ------------------------------------------------------------------------------ */

/*
 * A trace file as it grows: header, chunks one after the other, index and trailer. After a failure
 * the file ends with the last whole chunk, and nothing more is written.
 */

struct file_out {
	int fd;
	const char *name;
	uint64_t bytes;     /* written, all of them whole chunks */
	struct buf heads;   /* of the chunks, for the index */
	struct err failure; /* the first one */
};

void file_out_init(struct file_out *out, int fd, const char *name);
void file_out_free(struct file_out *out); /* does not close fd */

/* What was in the file before is gone. */
int file_out_begin(struct file_out *out, struct err *err);

/* Head and payload of one chunk, as packer_add() made them. */
int file_out_chunk(struct file_out *out, const void *chunk, size_t bytes, struct err *err);
