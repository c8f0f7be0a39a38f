// SPDX-License-Identifier: MIT
#include "analysis/busy.h"

#include <stdlib.h>

#include "base/xalloc.h"

#define FETCHED 8 /* pieces ahead: two lines */

void busy_free(struct busy *busy)
{
	free(busy->pieces);
}

/* The ring's pieces by age, from 0. */
static inline struct busy_piece *piece_at(const struct busy *busy, size_t i)
{
	return &busy->pieces[(busy->first + i) & (busy->room - 1)];
}

static void let_oldest_go(struct busy *busy)
{
	const struct busy_piece *piece = piece_at(busy, 0);

	busy->done_ns += piece->end_ns - piece->begin_ns;
	busy->until_ns = piece->end_ns;
	if (busy->gone)
		busy->gone(busy->data, piece->begin_ns, piece->end_ns);
	busy->first = (busy->first + 1) & (busy->room - 1);
	busy->n--;
}

static __attribute__((noinline)) void grow(struct busy *busy)
{
	size_t room = busy->room ? 2 * busy->room : 8;
	struct busy_piece *pieces = xmalloc(room * sizeof(*pieces));

	for (size_t i = 0; i < busy->n; i++)
		pieces[i] = *piece_at(busy, i);
	free(busy->pieces);
	busy->pieces = pieces;
	busy->room = room;
	busy->first = 0;
}

/* What the interval overlaps becomes a part of it; the latest piece does. */
static __attribute__((noinline)) void join(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	struct busy_piece *last = NULL;

	for (; busy->n; busy->n--) {
		struct busy_piece *piece = piece_at(busy, busy->n - 1);

		if (piece->end_ns < begin_ns)
			break;
		last = piece;
		if (last->begin_ns < begin_ns)
			begin_ns = last->begin_ns;
		if (last->end_ns > end_ns)
			end_ns = last->end_ns;
	}
	*last = (struct busy_piece){ begin_ns, end_ns };
	busy->n++;
}

static __attribute__((noinline)) void add(struct busy *busy, size_t most, uint64_t begin_ns,
                                          uint64_t end_ns)
{
	if (busy->n == most)
		let_oldest_go(busy);
	else if (busy->n == busy->room)
		grow(busy);
	*piece_at(busy, busy->n++) = (struct busy_piece){ begin_ns, end_ns };
}

/* Mostly the ring is full: the oldest piece makes room for one that overlaps none. */
void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	size_t most = busy->most ? busy->most : BUSY_PIECES;
	struct busy_piece *oldest;

	if (begin_ns < busy->until_ns)
		begin_ns = busy->until_ns;
	if (end_ns <= begin_ns)
		return;
	if (busy->n && piece_at(busy, busy->n - 1)->end_ns >= begin_ns) {
		join(busy, begin_ns, end_ns);
		return;
	}
	if (busy->n < most || busy->gone) {
		add(busy, most, begin_ns, end_ns);
		return;
	}
	oldest = piece_at(busy, 0);
	__builtin_prefetch(oldest + FETCHED); /* rings of many GPUs do not stay in the caches */
	busy->done_ns += oldest->end_ns - oldest->begin_ns;
	busy->until_ns = oldest->end_ns;
	*piece_at(busy, most) = (struct busy_piece){ begin_ns, end_ns };
	busy->first = (busy->first + 1) & (busy->room - 1);
}

uint64_t busy_ns(const struct busy *busy)
{
	uint64_t sum = busy->done_ns;

	for (size_t i = 0; i < busy->n; i++)
		sum += piece_at(busy, i)->end_ns - piece_at(busy, i)->begin_ns;
	return sum;
}

void busy_finish(struct busy *busy)
{
	while (busy->n)
		let_oldest_go(busy);
}
