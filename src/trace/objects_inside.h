/* SPDX-License-Identifier: MIT */
/* The inside of struct objects: shared by objects.c and objects_stacks.c. */
#pragma once

#include "base/budget.h"
#include "trace/objects.h"

struct objects_known_function {
	struct function function;
	struct api *made; /* a row that is not built in */
};

struct waiting_object {
	struct event event;
	struct thread thread;
};

struct objects {
	struct process **processes;
	struct objects_known_function **functions;
	struct kernel **kernels;
	struct stack_frame **frames;
	struct stack **stacks; /* each with its frames behind it */
	uint32_t n_processes, n_functions, n_kernels, n_frames, n_stacks;
	uint32_t n_passed; /* frames that came again after objects_know_frames() */
	char **old_names;  /* of kernels that were defined again: consumers may hold them */
	size_t n_old_names;
	struct waiting_object *waiting; /* from `taken` on */
	size_t n_waiting, taken, waiting_room;
	uint64_t lost;                /* definitions, at most OBJECTS_HOLES_MAX */
	uint64_t holes[OBJECT_KINDS]; /* of each kind, among the numbers that there are */
	struct budget *budget;
	struct budget *ahead; /* of frames, until they are known; else NULL */
	struct objects_numbers numbers;
	uint64_t refused_ahead;
	bool frames_known;
};

#define OBJECTS_HOLES_MAX (1u << 20) /* that damage may leave among the numbers of each kind */

/*
 * Whether `id` is the next number, or one behind what was lost, which makes holes: no more of them
 * in all than were lost, whatever the file says.
 */
bool objects_is_next(const struct objects *objects, enum object_kind kind, uint32_t count,
                     uint64_t id);

/*
 * Takes what a definition needs, with its texts. False where there is no room: it is lost then, as
 * if it were damaged. _next: of a new number, with the hole before it.
 */
bool objects_afford(struct objects *objects, size_t bytes, const struct bytes *body);
bool objects_afford_next(struct objects *objects, enum object_kind kind, uint32_t count,
                         uint64_t id, size_t bytes, const struct bytes *body);

/* The number that consumers know it by. */
static inline uint32_t objects_id(const struct objects *objects, enum object_kind kind, uint64_t id)
{
	return objects->numbers.first[kind] + (uint32_t)id;
}

/* Room for the element `id`, with a hole before it where something was lost. */
void *objects_make_room(void *table, uint32_t *count, uint64_t id);

/* ---- stacks -------------------------------------------------------------------------------- */

/* Bodies of records; false: damaged. */
bool objects_read_frame(struct objects *objects, struct bytes *body);
bool objects_read_parts(struct objects *objects, struct bytes *body);
bool objects_read_stack(struct objects *objects, struct bytes *body);

void objects_free_stacks(struct objects *objects);
