/* SPDX-License-Identifier: MIT */
/*
 * Work on GPUs that one thread asked for, sorted by when it did. It comes in any order: that of
 * its end, and in a foreign file one that was thought out. So the pieces lie in blocks, and to add
 * one moves those of a block at most.
 */
#ifndef CUSCOPE_REPORT_NVTX_PIECES_H
#define CUSCOPE_REPORT_NVTX_PIECES_H

#include <stddef.h>
#include <stdint.h>

/* Of one activity. */
struct piece {
	uint64_t asked_ns; /* when its call began */
	uint64_t begin_ns, end_ns;
	const struct kernel *kernel;
};

/* Zeros: there are none. */
struct pieces {
	struct piece_block **blocks; /* none is empty */
	size_t n_blocks, room;
	size_t n; /* pieces */
};

/* Behind those that were asked for at the same time. */
void pieces_add(struct pieces *pieces, const struct piece *piece);

/* Lets the first `n` go, which there are; n > 0. Returns when the last of them was asked for. */
uint64_t pieces_drop(struct pieces *pieces, size_t n);

void pieces_free(struct pieces *pieces);

struct piece_place {
	const struct pieces *pieces;
	size_t block, at;
};

/* The place of the first that was asked for then or later. */
struct piece_place pieces_from(const struct pieces *pieces, uint64_t time_ns);

/* The piece there, and the place goes on to the next one; NULL: there is none. */
const struct piece *pieces_next(struct piece_place *place);

#endif
