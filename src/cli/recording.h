/* SPDX-License-Identifier: MIT */
/*
 * A recording into a file, for `record` and `why`: what both give the capture, a line that says how
 * it goes, and the sentence at its end.
 */
#pragma once

#include "base/buf.h"
#include "cli/cli.h"
#include "trace/filter.h"
#include "trace/writer.h"

struct recording {
	/* Set by who records: */
	struct cli_attach *attach;
	struct cli_stacks *stacks;
	const struct cli_metrics *metrics;
	struct chosen_options chosen_options;
	const char *chosen_words; /* see struct run_info; NULL: nothing is left out */
	bool held;                /* in memory, for a part of it to be written: the line says so */
	bool from_work;           /* --duration counts from the first work for a GPU */
	bool unnamed;             /* nobody else gets the file: nothing is said of it */
	/*
	 * All is written that will be, and nothing is hooked any more; a command may still run.
	 * `fd` is the recording, the callee's to close; -1: none began. May be NULL.
	 */
	void (*over)(struct recording *recording, int fd);

	struct new_file file;    /* that is being written */
	struct consumer *writer; /* into it, */
	struct consumer *chosen; /* and in front of that */

	/* Its own: */
	const char *path;
	struct consumer closing;
	bool worked;         /* work for a GPU was asked for */
	struct buf missed;   /* missed_brief(), at the end */
	uint64_t shown_ns;   /* when the line was */
	bool shown, settled; /* the line is there; the file is as it stays */
	struct err failure;  /* of settling it */
};

/* Opens recording->file: it is to be a regular one. 0 or a negative errno. */
int recording_open(struct recording *recording, const char *path, bool force, mode_t mode,
                   struct err *err);

/* The capture, with what is the same for all recordings; returns the exit status. */
int recording_capture(struct recording *recording, struct consumer **consumers, size_t count,
                      struct err *err);

/*
 * The same, into recording->file, which ends with it. `path` is its name. It grows under that: a
 * recording that is killed is read up to its last whole chunk.
 */
int recording_take(struct recording *recording, const char *path, struct err *err);

/* A message, in place of the line. For capture_options.notice, too, with the recording as data. */
void recording_notice(void *data, const char *text);

/* "run.cuscope: 26 events in 1.84 KiB, none lost; ..." `missed` NULL: that is not known. */
void recording_say_written(struct recording *recording, const char *name, uint64_t events,
                           uint64_t bytes, const struct buf *missed);
