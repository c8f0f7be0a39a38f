/* SPDX-License-Identifier: MIT */
/*
 * How long something was busy: the length of the union of intervals, which mostly come in the order
 * of their ends, as activities do. Overlaps count once. A zeroed `struct busy` is empty.
 *
 * A later interval can still join pieces together: a kernel of NCCL that hundreds of others ran
 * beside ends after them. One that comes late finds its place among them. So pieces are kept until
 * there are too many; what begins before those that were let go counts from their end on, and how
 * much that leaves out at most is known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Pieces that are kept where `most` is 0: enough for one stream, whose work seldom overlaps. */
#define BUSY_PIECES 32

/* For a whole GPU: those that are beside one interval of 40 ms, at 10 us each; 64 KiB. */
#define BUSY_PIECES_OF_GPU 4096

struct busy {
	size_t most;                /* pieces that are kept */
	uint64_t done_ns, until_ns; /* of pieces that were let go: their length, the last's end */
	uint64_t begin_ns;          /* of the earliest interval */
	uint64_t cut_ns;            /* parts of intervals that lie before until_ns */
	struct busy_piece {
		uint64_t begin_ns, end_ns;
	} * pieces;            /* a ring */
	size_t first, n, room; /* room: a power of two */
};

void busy_free(struct busy *busy);

void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns);
uint64_t busy_ns(const struct busy *busy);

/* Of intervals that lie before pieces that were let go, busy_ns() lacks this at most. */
uint64_t busy_short_ns(const struct busy *busy);
