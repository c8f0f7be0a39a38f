/* SPDX-License-Identifier: MIT */
/*
 * How long something was busy: the length of the union of intervals that come in the order of
 * their ends, as activities do. Overlaps count once. A zeroed `struct busy` is empty.
 */
#ifndef CUSCOPE_ANALYSIS_BUSY_H
#define CUSCOPE_ANALYSIS_BUSY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Pieces that a later interval may still join together. One that begins before more than these
 * counts its overlap with the oldest twice, which takes as many gaps inside of one interval.
 */
#define BUSY_PIECES 32

struct busy {
	uint64_t done_ns; /* of pieces that were let go */
	struct {
		uint64_t begin_ns, end_ns;
	} piece[BUSY_PIECES];
	size_t n;
	/* Told of every piece that no later interval can join, in order of time; NULL: nobody. */
	void (*gone)(void *data, uint64_t begin_ns, uint64_t end_ns);
	void *data;
};

void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns);
uint64_t busy_ns(const struct busy *busy);

/* After the last interval: gone() is told of what is left. */
void busy_finish(struct busy *busy);

#endif
