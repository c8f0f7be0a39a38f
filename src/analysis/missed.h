/* SPDX-License-Identifier: MIT */
/* What a run did not see, for people and for programs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stack_counts.h"
#include "base/json.h"
#include "trace/event.h"
#include "trace/writer.h"

/* Events that were made and not delivered, or not whole; LOST_LATE is about order only. */
uint64_t missed_events(const uint64_t lost[LOST_COUNT]);

/* Of them: */
enum missed_of {
	MISSED_FOR_RINGS = 1 << 0, /* a larger ring would have kept these */
	MISSED_GPU_WORK = 1 << 1,  /* these ran on a GPU, or may have: it was less idle than told */
};

uint64_t missed_of(const uint64_t lost[LOST_COUNT], enum missed_of of);

/*
 * Whether every event was delivered, whole, in its place and unscaled, of every function that was
 * to be hooked, from its first call on. What was not asked for (filters, windows of time, calls
 * that are left alone by default) is not missed.
 */
bool missed_nothing(const struct run_info *run);

/* What was not asked for, and is told all the same. */
bool missed_by_choice(enum miss_kind kind);

/* Of a run without GPU times (run_info.gpu_times): whether they were wanted, and did not come. */
bool missed_gpu_times(const struct run_info *run);

/* What was missed of functions, by their names: all misses are gone through once, to make it. */
struct missed_functions;

struct missed_functions *missed_functions_new(const struct run_info *run);
void missed_functions_free(struct missed_functions *missed);

struct missed_function {
	/* Of its calls, that were counted inside of processes, and not recorded one by one. */
	uint64_t counted;
	/* It was unhooked while it was called, or some of its calls were only counted: what is
	 * known of its calls one by one is of the others. */
	bool partly;
};

struct missed_function missed_of_function(struct missed_functions *missed,
                                          const struct function *function);

/*
 * Appends what was missed while it was recorded, in a few words for a line that says other things
 * as well: "4660 lost, 3 left out"; "not all was seen", where no number tells it. False, and
 * nothing, where missed_nothing() is true but for what is wrong with the file.
 */
bool missed_brief(struct buf *out, const struct run_info *run);

/*
 * Appends what of a trace file could not be read, in a sentence without its full stop: "the trace
 * file was cut short: ...". False, and nothing, where it is whole.
 */
bool missed_of_file(const struct run_info *run, struct buf *out);

/* "ring_full", "not_hooked": the words for programs. */
const char *missed_lost_key(enum lost_reason reason);
const char *
missed_lost_word(enum lost_reason reason); /* "lost", "incomplete", "late": for people */
const char *missed_kind_key(enum miss_kind kind);
const char *missed_stacks_key(enum stacks_missed missed);

/*
 * Appends "complete", "lost" and "hooks" to an open object; "stacks" where some are missed, and of
 * a file that is not whole why.
 */
void missed_json(struct json *json, const struct run_info *run);

/* The same, and in "stacks" how many are whole and why the others are not, where there are any. */
void missed_json_and_stacks(struct json *json, const struct run_info *run,
                            const struct stack_counts *counts);

/* Appends what was missed, a line each and indented; "nothing was lost" where that is so. */
void missed_text(struct buf *out, const struct run_info *run);

/*
 * Of a window that users share (trace/writer.h): adds to the run how much less it has of those who
 * had most of it, and threads without names. What that takes is freed later; zeroes at first.
 */
#define MISSED_LEFT_OUT 8 /* users that are named */

struct missed_left_out {
	struct miss *misses;
	char *words[MISSED_LEFT_OUT + 2];
	size_t n;
};

void missed_left_out_add(struct missed_left_out *told, const struct consumer *writer,
                         struct run_info *run);
void missed_left_out_free(struct missed_left_out *told);
