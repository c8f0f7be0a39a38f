/* SPDX-License-Identifier: MIT */
/* The tree of chains, for those who go through it. */
#pragma once

#include <string.h>

#include "account/chains.h"
#include "account/keyed.h"

#define CHAINS_NONE UINT32_MAX

/* What is told with the same words. */
struct chains_line {
	const struct stack_frame *frame; /* the first that was */
	uint32_t function;
};

struct chains_node {
	uint32_t parent, line;
	uint32_t child, sibling; /* the last child, and the one before this; 0: none */
	uint32_t depth : 29;     /* CHAINS_DEPTH_MAX at most */
	uint32_t jax : 1;        /* see chains_has_jax() */
	uint32_t users : 1;      /* see chains_is_users() */
	uint32_t own : 1;        /* a line of Python of the user's own */
};

struct known_frame {
	uint32_t line;            /* and 1; 0: not asked yet */
	const char *package_file; /* that its package was asked of; NULL: not yet */
	uint32_t package;         /* where its name begins in the file's, */
	uint8_t package_letters;  /* and how long it is; 0: none */
	uint8_t rank;             /* and 1; 0: not asked yet */
	uint8_t compiler;         /* enum place_compiler; 0: not asked yet */
};

/* What a node has with all that it calls. */
struct chains_sum {
	uint64_t ns;
	uint32_t child, sibling; /* as of a node, of those that have some time */
};

/*
 * What is zero between two calls: clearing all of it each time would cost more than what is asked.
 */
struct chains_scratch {
	struct chains_sum *sums; /* by node */
	size_t n_sums;
	uint64_t *by_function;
	size_t n_by_function;
	uint32_t *group, *inner;
};

struct chains {
	/*
	 * Keys are numbers. Of texts it is their hash: that two of a million are one, by a hash
	 * with a secret, happens to one recording of thirty million.
	 */
	struct keyed nodes_by, lines_by, functions_by;
	struct chains_node *nodes; /* the root is the first */
	size_t n_nodes;
	struct chains_line *lines;
	size_t n_lines;
	struct known_frame *by_frame; /* by the frame's id */
	size_t n_by_frame;
	struct known_stack {
		uint32_t node : 31;    /* and 1; 0: not looked at yet */
		uint32_t compiles : 1; /* see chains_compile() */
	} * by_stack;                  /* by the stack's id */
	size_t n_by_stack;
	const struct stack_frame **parted; /* the frames of the stack that is looked at */
	size_t room_parted;
	uint64_t cut, refused;
	struct buf text;
	struct chains_scratch *scratch; /* of chains_heaviest() */
};

/* ---- whose frames they are ------------------------------------------------------------------- */

/* Which frames of a stack are the user's, by its ranks. */
struct chains_users {
	bool python;      /* it has frames of Python */
	size_t innermost; /* the innermost of the user's Python; n where there is none */
	size_t called; /* from here to there: what that calls, without a library's Python between */
	const char *package; /* that has its loop; NULL: it has its own */
	size_t package_length;
};

static inline bool chains_is_native(const struct stack_frame *frame)
{
	return frame->kind != FRAME_PYTHON;
}

/* Of a program, or of a module. */
static inline bool chains_begins(const struct stack_frame *frame)
{
	return frame->function &&
	       !strcmp(frame->function, chains_is_native(frame) ? "main" : "<module>");
}

struct known_frame *chains_known(struct chains *chains, const struct stack_frame *frame);

/* Of a stack, whose frames are `n`, the innermost first. */
struct chains_users chains_users_find(struct chains *chains,
                                      const struct stack_frame *const *frames, size_t n);

/* Frame `i` of it is one of the user's. */
bool chains_users_has(struct chains *chains, const struct chains_users *users,
                      const struct stack_frame *frame, size_t i);

/* The innermost frame that needed a compiler: a line of a library's that the user calls. NULL: none
 * did, or the user's own line does. */
const struct stack_frame *chains_users_compiled(struct chains *chains,
                                                const struct chains_users *users,
                                                const struct stack_frame *const *frames,
                                                bool *compiles);
