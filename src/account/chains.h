/* SPDX-License-Identifier: MIT */
/*
 * Chains of the user's own frames: of a stack what its author would recognise, from the outside on
 * ("train.py:91 loop > train.py:27 decode"). All chains of a recording are one tree, whose nodes
 * are numbers; times are added up by node.
 *
 * The user's are frames of Python that are not in folders of libraries, and inside of them native
 * ones whose line is known; in a stack without Python all native ones that are neither CUDA's, nor
 * a framework's, nor the system's (analysis/place.h). A stack that has none of them is one frame:
 * its place. A package that has the program's loop, a trainer's or a server's, is the user's, too,
 * where its user calls it from the program's begin alone, or is not there. Where a compiler runs,
 * the library's line that needed it is told within the user's: it says what was compiled. A
 * function that calls itself is one frame, at its innermost line, and one with its comprehensions
 * and generator expressions is, too. Frames that would be told with the same words are one.
 *
 * Frames belong to the source, so chains are asked and told until its end() has returned. What a
 * frame was in its source can come until then (struct stack_frame): what is asked in end() has all.
 */
#pragma once

#include "analysis/place.h"
#include "base/buf.h"
#include "trace/stack.h"

#define CHAINS_NODES_MAX (1u << 20) /* beyond: the nearest node that there is, and counted */
#define CHAINS_DEPTH_MAX 64u        /* beyond: the innermost so many, and counted */

struct chains;

struct chains *chains_new(void);
void chains_free(struct chains *chains);

/* The node of a stack's chain; each stack is looked at once. 0, the root: NULL, or no frame that
 * has anything to be told by. */
uint32_t chains_of(struct chains *chains, const struct stack *stack);

/* Its innermost frame of Python, or a caller of that, is the user's. */
bool chains_is_users(const struct chains *chains, uint32_t node);

/* A compiler runs in it. */
bool chains_compile(struct chains *chains, const struct stack *stack);

/* Nodes are the numbers below it; a parent's is less than its children's. */
size_t chains_count(const struct chains *chains);
uint32_t chains_parent(const struct chains *chains, uint32_t node); /* 0 of the root too */
size_t chains_depth(const struct chains *chains, uint32_t node);    /* 0 of the root */
const struct stack_frame *chains_frame(const struct chains *chains, uint32_t node); /* NULL of it */

/* place_rank(), which reads all of a name, once for each frame. */
enum place_rank chains_rank(struct chains *chains, const struct stack_frame *frame);

/* Of code without lines within a line of the user's what that line calls: a library's own
 * functions are nothing that the user can change. Else the node. */
uint32_t chains_called(const struct chains *chains, uint32_t node);

/* A number that nodes have in common which are lines of one function. */
uint32_t chains_function(const struct chains *chains, uint32_t node);

/* JAX is in one of the stacks that have it in their chains. */
bool chains_has_jax(const struct chains *chains, uint32_t node);

uint64_t chains_cut(const struct chains *chains);     /* stacks that were deeper */
uint64_t chains_refused(const struct chains *chains); /* stacks whose nodes had no room */

/*
 * The nodes of a chain that are worth telling, the outermost first, `most` (at least 1) at most:
 * the innermost, and those nearest to it. Begins of programs (main, <module>) are told only where
 * they are one of the two innermost. *left_out, unless NULL: others are missing at the outside.
 */
size_t chains_told(const struct chains *chains, uint32_t node, size_t most, uint32_t *nodes,
                   bool *left_out);

/*
 * Appends them: "train.py:91 loop > train.py:27 decode", "... > a.py:7 f" where some were left out,
 * PLACE_NO_STACK for the root. A terminal obeys nothing of it.
 */
void chains_label(const struct chains *chains, uint32_t node, size_t most, struct buf *out);

/* Of those that are below a caller of the node's the outermost and the innermost. */
void chains_label_below(const struct chains *chains, uint32_t node, uint32_t caller,
                        struct buf *out);

/* Own time of a node; one that is in a list several times has the sum. */
struct chains_weight {
	uint32_t node;
	uint64_t ns;
};

/*
 * The node that stands for what to change: from the root down as long as one function holds `share`
 * (of 1) of what its callers have, and half of all, by all of its lines. Of the last one the line
 * with the most is returned; *subtree_ns is the time of all its lines there and of what they call.
 * 0: it is spread out from the root on. What it takes grows with n and the chains' depth, however
 * many others there are.
 */
uint32_t chains_heaviest(const struct chains *chains, const struct chains_weight *weights, size_t n,
                         double share, uint64_t *subtree_ns);
