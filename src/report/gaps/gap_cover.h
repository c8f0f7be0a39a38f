/* SPDX-License-Identifier: MIT */
/*
 * What is busy and what is idle: the union of intervals that come in the order of their ends, as
 * activities do, and the gaps between its pieces. No time counts twice.
 *
 * A later interval can still cover a gap: an NCCL kernel that others ran beside ends after them.
 * So a piece, with the gap before it, is settled only when there are too many; what begins before
 * that counts from there on. Intervals out of order find their place among what is not settled.
 */
#ifndef CUSCOPE_REPORT_GAPS_GAP_COVER_H
#define CUSCOPE_REPORT_GAPS_GAP_COVER_H

#include "report/gaps/gap_cause.h"

struct gap_piece {
	uint64_t begin_ns, end_ns;
	struct gap_work first, last; /* that began first and ended last of it */
	/* Of the gap before it, once somebody has found them out: */
	unsigned release; /* enum gap_release */
	bool judged;
	bool not_measured; /* at least a part of it */
	struct gap_verdict verdict;
};

struct gap_cover {
	struct gap_piece *pieces; /* a ring of `room` */
	size_t head, n, room, most;
	bool begun;              /* something was settled: */
	struct gap_work settled; /* the last of it, */
	uint64_t settled_ns;     /* and its end */
	uint64_t busy_ns;        /* settled */
	uint64_t first_ns, last_ns;
	uint64_t count; /* intervals */
	uint64_t late;  /* of them, begun before what was settled */
};

/* At most `most` pieces are not settled. */
void gap_cover_init(struct gap_cover *cover, size_t most);
void gap_cover_free(struct gap_cover *cover);

/* Adds an interval. The piece that it made or became a part of, NULL: all of it was settled. */
struct gap_piece *gap_cover_add(struct gap_cover *cover, const struct gap_work *work);

/* The one at that place among those that are not settled, and the gap before it. */
struct gap_piece *gap_cover_piece(const struct gap_cover *cover, size_t i);
bool gap_cover_gap(const struct gap_cover *cover, size_t i, uint64_t *begin_ns,
                   const struct gap_work **before);

/* The number of the call of a work that was added is known: gap_work's `ask`. */
void gap_cover_learn(struct gap_cover *cover, const struct process *process,
                     const struct activity *activity, uint64_t ask);

/* The index of a piece. */
size_t gap_cover_index(const struct gap_cover *cover, const struct gap_piece *piece);

static inline bool gap_cover_is_full(const struct gap_cover *cover)
{
	return cover->n >= cover->most;
}

/* Settles the earliest piece. */
void gap_cover_settle(struct gap_cover *cover);

#endif
