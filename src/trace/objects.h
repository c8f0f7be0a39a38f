/* SPDX-License-Identifier: MIT */
/*
 * The reader's side of definitions: the processes, functions, kernels and stacks of a file by their
 * numbers, and the events that stand among the definitions. A file of some kilobytes can define any
 * number of them, so what is kept has a bound, and so have the events that wait.
 */
#pragma once

#include "trace/chunk.h"
#include "trace/event.h"

/* Of definitions, each with its texts and what reports keep of it: 140,000 kernels of 1.3 KiB. */
#define OBJECTS_BYTES_MAX ((size_t)256 << 20)

/* Of frames that are read ahead: the others have the other half in any case. */
#define OBJECTS_BYTES_AHEAD (OBJECTS_BYTES_MAX / 2)

/* A writer announces no more than half of this with one chunk of definitions. */
#define OBJECTS_WAITING_MAX (128u << 10)

struct objects;

struct objects *objects_new(void);

/*
 * Of one of several files whose events one consumer is given: numbers begin behind those of the
 * others, and each has a part of the room. Before anything is read.
 */
struct objects_numbers;
void objects_number(struct objects *objects, const struct objects_numbers *numbers);

/* Moves on behind those of this file, for the next. */
void objects_numbers_pass(struct objects_numbers *numbers, const struct objects *objects);
void objects_free(struct objects *objects);

/*
 * Reads the payload of a definition chunk up to its end, or until as many events wait as may: some
 * have to be taken then, and it be called again. False where it is damaged.
 */
bool objects_read(struct objects *objects, struct bytes *in);

/*
 * Of the payload of a definition chunk only the frames and their parts, which a file has behind the
 * stacks that need them. False where it is damaged. All chunks are looked at, then
 * objects_know_frames() is called, then objects_read(), from the first chunk on: stacks have parts
 * in the place of their frames.
 */
bool objects_look_ahead(struct objects *objects, struct bytes *in);
void objects_know_frames(struct objects *objects);

/* NULL where the file has not defined that number. They live as long as `objects`. */
const struct process *objects_process(const struct objects *objects, uint64_t id);
const struct function *objects_function(const struct objects *objects, uint64_t id);
const struct kernel *objects_kernel(const struct objects *objects, uint64_t id);
const struct stack *objects_stack(const struct objects *objects, uint64_t id);

/*
 * A chunk with so many definitions could not be read. Numbers that are not there may be of those
 * from then on; the next chunk goes on behind them.
 */
void objects_lose(struct objects *objects, uint64_t definitions);

/* Whether a number that is not defined may be one of those. */
enum object_kind {
	OBJECT_PROCESS,
	OBJECT_FUNCTION,
	OBJECT_KERNEL,
	OBJECT_FRAME,
	OBJECT_STACK,
	OBJECT_KINDS
};

struct objects_numbers {
	uint32_t first[OBJECT_KINDS];
	uint32_t file, machine; /* of its processes */
	size_t bytes;           /* of OBJECTS_BYTES_MAX, its part */
};
bool objects_lost(const struct objects *objects, enum object_kind kind, uint64_t id);
bool objects_lost_any(const struct objects *objects);

/* Definitions that there was no room for: they are lost in the same way. */
uint64_t objects_over_budget(const struct objects *objects);

/*
 * Events that were read and not yet taken, oldest first; `thread` is for event->thread. One whose
 * process was lost has none.
 */
size_t objects_waiting(const struct objects *objects);
bool objects_take(struct objects *objects, struct event *event, struct thread *thread);

/* ---- records ------------------------------------------------------------------------------- */

/* The next record: its tag, and its body. False at the end; then in->bad tells of damage. */
bool record_next(struct bytes *in, uint64_t *tag, struct bytes *body);

/* A string; the caller frees it. "" where it is damaged. */
char *record_string(struct bytes *body);

/* The same, of what outputs have again with each event: no longer than TEXT_NAME_MAX. */
char *record_name(struct bytes *body);
