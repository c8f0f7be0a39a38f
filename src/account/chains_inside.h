/* SPDX-License-Identifier: MIT */
/* The tree of chains, for those who go through it. */
#pragma once

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
	uint32_t line;    /* and 1; 0: not asked yet */
	uint8_t rank;     /* the same */
	uint8_t compiler; /* enum place_compiler; 0: not asked yet */
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
