/* SPDX-License-Identifier: MIT */
/*
 * What is to be written into one module of one process: which functions, where in the area their
 * pads and moved code lie, and the bytes.
 */
#pragma once

#include "divert/divert.h"
#include "divert/divert_inside.h"
#include "divert/divert_queue.h"
#include "divert/entry_file.h"

/* ---- judged files --------------------------------------------------------------------------- */

struct judged_files;

struct judged_files *judged_files_new(void);

/* Does not wait for the other thread, which ends by itself. */
void judged_files_free(struct judged_files *files);

/*
 * Whether judged_files_get will answer at once, or has to be asked all the same. False: another
 * thread is at work; ask again in a few milliseconds.
 */
bool judged_files_ready(struct judged_files *files, const struct divert_module *module,
                        const struct divert_function *functions, size_t count);

/*
 * The answers for functions of a module, in their order, with the code of those that can be moved.
 * They stay until judged_files_get is called again. 0, or a negative errno as entry_file_judge.
 */
int judged_files_get(struct judged_files *files, const struct divert_module *module,
                     const struct divert_function *functions, size_t count,
                     const struct entry_function **judged, struct err *err);

enum plan_state { PLAN_IDLE, PLAN_PUTTING, PLAN_DIVERTED };

struct plan_function {
	struct entry_code code; /* its bytes are the plan's, and as the file has them */
	uint32_t pad, moved;    /* offsets in the area */
	uint32_t function;
	uint64_t offset; /* of its entry, in the file */
};

struct divert_plan {
	struct divert_plan *next; /* those that were put */
	enum plan_state state;
	pid_t pid, tid; /* a thread that lived then: by it memory is found */
	uint64_t start_time;
	struct divert_person person;
	uint64_t owner;               /* probe/person.h */
	struct divert_shares *shares; /* of which it has a place, */
	uint32_t entries;             /* and so many */
	dev_t dev;
	uint64_t inode;
	struct plan_function *functions; /* that can be diverted, by address */
	uint32_t count;
	uint32_t asked; /* functions, with those that cannot */
	size_t area_bytes;
	uint64_t near_start, near_end;
	uint64_t first; /* where the first function that was asked for is */
	/* once it was put */
	uint64_t number, area;
	uint32_t place; /* of its cut */
	uint64_t *thunks;
	uint8_t *found; /* refusals, where the process's memory had to tell; NULL: it was not asked
	                 */
	bool not_found; /* and it did not */
};

/*
 * An empty plan for so many functions. Until divert_plan_free its owner's share is taken; where
 * there is none left, -ENOSPC.
 */
int divert_plan_new(struct divert_shares *shares, pid_t pid, const struct divert_module *module,
                    size_t count, struct divert_plan **plan, struct err *err);

/*
 * Judges the functions of a module by its file and by the memory of the process. 0, or a negative
 * errno as divert_look.
 */
int divert_plan_make(struct divert_plan *plan, struct judged_files *files,
                     const struct divert_module *module, struct divert_function *functions,
                     struct err *err);

/*
 * A descriptor of a file of struct divert_entry, *count of them, for an area at `area`; or a
 * negative errno. Functions without a thunk are left out.
 */
int divert_plan_write(struct divert_plan *plan, uint64_t area, const uint64_t *thunks,
                      uint32_t *count, struct err *err);

/*
 * Fills in plan->found: which of the jumps that were to be written are there. For where nobody is
 * left who could tell. The memory is read once.
 */
void divert_plan_find(struct divert_plan *plan);
