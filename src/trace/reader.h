/* SPDX-License-Identifier: MIT */
/*
 * A trace file as a source: feeds consumers what a live capture would have fed them. The format
 * is described in docs/trace-format.md.
 */
#pragma once

#include "trace/event.h"

struct trace_file;
struct filter;
struct objects_numbers;

/*
 * Opens and checks a file. A failure's sentence says what is wrong with it: empty, not a trace,
 * made by a newer cuscope, damaged at its very beginning. What a crash cut short opens.
 */
int trace_open(const char *path, struct trace_file **file, struct err *err);
void trace_close(struct trace_file *file);

/* The same of a file that is open for reading, which is closed with it, or where it fails. */
int trace_open_fd(int fd, const char *called, struct trace_file **file, struct err *err);

/* As the writer left it; of a file that was cut short, as far as is known. Owned by the file. */
const struct run_info *trace_run(const struct trace_file *file);

uint64_t trace_events(const struct trace_file *file); /* 0: not known before all is read */

/* Whether `part` has nothing that is not at the begin of `whole`: a copy, or one that was cut.
 * Reads both; false also where one has so many holes that this has no end. */
bool trace_begins_as(const struct trace_file *whole, const struct trace_file *part);

/* What the file is like, apart from what is in it. */
struct trace_shape {
	unsigned major, minor; /* of the format */
	const char *writer;    /* the program that wrote it; NULL: not known */
	uint64_t bytes;
	uint64_t raw_bytes; /* of the event chunks, unpacked */
	uint64_t event_chunks, other_chunks;
};

void trace_shape(const struct trace_file *file, struct trace_shape *shape);

struct trace_read_options {
	/* Of CLOCK_MONOTONIC; 0: from the first, to the last. Events whose time is outside are not
	 * passed on; EVENT_PROCESS and EVENT_THREAD are, of what began before `to_ns`. */
	uint64_t from_ns, to_ns;
	/* What lies across a border is passed on as far as it is inside (trace/filter.h), and what
	 * ended after `to_ns` too. The file is read to its end for that. */
	bool cut;
	/* Calls of hooks are passed on whatever their time is: of some all have to be known, as
	 * they are told apart by their numbers (analysis/collectives.h). */
	bool hooks_whole;
	const uint32_t *pids;  /* only events of these */
	size_t n_pids;         /* 0: of all */
	struct filter *filter; /* trace/filter.h: NULL for none */
	struct objects_numbers
		*numbers; /* of files that are read together: moved on; NULL: from 0 */
	/* Told now and then of the share of the file that was read, 0 to 1; may be NULL. False ends
	 * the reading as if the file ended there. */
	bool (*progress)(void *data, double share);
	void *data;
};

/*
 * begin, every event in order of time, end. Memory does not grow with the file, but for functions,
 * kernels, processes and strings, of which so much is kept (objects.h, decode.h): what is beyond is
 * left out like what is damaged. A chunk that is damaged is left out, and so is what refers to
 * definitions in it. All else is read. Consumers get their end, with what was left out in the
 * run_info. Then -EBADMSG and a sentence are returned. Can be called again: processes, functions
 * and kernels have the same numbers then, but the objects of the reading before are gone.
 */
int trace_read(struct trace_file *file, const struct trace_read_options *options,
               struct consumer *const *consumers, size_t n_consumers, struct err *err);
