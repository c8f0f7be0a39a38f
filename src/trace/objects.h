/* SPDX-License-Identifier: MIT */
/*
 * The reader's side of definitions: the processes, functions and kernels of a file by their
 * numbers, and the events that stand among the definitions.
 */
#ifndef CUSCOPE_TRACE_OBJECTS_H
#define CUSCOPE_TRACE_OBJECTS_H

#include "trace/bytes.h"
#include "trace/event.h"

struct objects;

struct objects *objects_new(void);
void objects_free(struct objects *objects);

/* Reads the payload of a definition chunk. False where it is damaged. */
bool objects_read(struct objects *objects, const uint8_t *raw, size_t bytes);

/* NULL where the file has not defined that number. They live as long as `objects`. */
const struct process *objects_process(const struct objects *objects, uint64_t id);
const struct function *objects_function(const struct objects *objects, uint64_t id);
const struct kernel *objects_kernel(const struct objects *objects, uint64_t id);

uint32_t objects_processes(const struct objects *objects); /* how many */
uint32_t objects_functions(const struct objects *objects);
uint32_t objects_kernels(const struct objects *objects);

/* Events that were read and not yet taken, oldest first; `thread` is for event->thread. */
size_t objects_waiting(const struct objects *objects);
bool objects_take(struct objects *objects, struct event *event, struct thread *thread);

/* ---- records ------------------------------------------------------------------------------- */

/* The next record: its tag, and its body. False at the end; then in->bad tells of damage. */
bool record_next(struct bytes *in, uint64_t *tag, struct bytes *body);

/* A string; the caller frees it. "" where it is damaged. */
char *record_string(struct bytes *body);

#endif
