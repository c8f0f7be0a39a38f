// SPDX-License-Identifier: MIT
#include "analysis/busy.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"

#define FETCHED  8 /* pieces ahead: two lines */
#define LATE_FEW 8 /* pieces that are looked at one by one, from the last on */

void busy_free(struct busy *busy)
{
	free(busy->pieces);
}

/* The ring's pieces by age, from 0. */
static inline struct busy_piece *piece_at(const struct busy *busy, size_t i)
{
	return &busy->pieces[(busy->first + i) & (busy->room - 1)];
}

static void count_gone(struct busy *busy, const struct busy_piece *piece)
{
	busy->done_ns += piece->end_ns - piece->begin_ns;
	busy->until_ns = piece->end_ns;
}

static void let_oldest_go(struct busy *busy)
{
	count_gone(busy, piece_at(busy, 0));
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

/* So many pieces from the one on that is `from` are those from `to` on, in as few moves as the ring
 * has ends between them. */
static void move(struct busy *busy, size_t to, size_t from, size_t n)
{
	size_t mask = busy->room - 1, last = to > from; /* of them first, as it is moved upwards */

	while (n) {
		size_t at = (busy->first + from + last * (n - 1)) & mask;
		size_t into = (busy->first + to + last * (n - 1)) & mask;
		size_t most =
			last ? (at < into ? at : into) + 1 : busy->room - (at > into ? at : into);
		size_t part = n < most ? n : most, back = last * (part - 1);

		memmove(&busy->pieces[into - back], &busy->pieces[at - back],
		        part * sizeof(*busy->pieces));
		n -= part;
		from += last ? 0 : part;
		to += last ? 0 : part;
	}
}

/* Either the pieces from `at` on make room for one, or those before it: whichever are fewer. */
static struct busy_piece *make_room(struct busy *busy, size_t at)
{
	if (busy->n == busy->room)
		grow(busy);
	if (at < busy->n / 2) {
		busy->first = (busy->first - 1) & (busy->room - 1);
		move(busy, 0, 1, at);
	} else {
		move(busy, at + 1, at, busy->n - at);
	}
	busy->n++;
	return piece_at(busy, at);
}

static __attribute__((noinline)) void insert(struct busy *busy, size_t most, size_t at,
                                             struct busy_piece piece)
{
	if (busy->n < most) {
		*make_room(busy, at) = piece;
	} else if (at) {
		let_oldest_go(busy);
		*make_room(busy, at - 1) = piece;
	} else {
		count_gone(busy, &piece); /* it is the oldest */
	}
}

/* Those of [from, to), which the piece overlaps or touches, become one with it. */
static void join(struct busy *busy, size_t from, size_t to, struct busy_piece piece)
{
	struct busy_piece *into = piece_at(busy, from);
	size_t gone = to - from - 1;

	if (into->begin_ns < piece.begin_ns)
		piece.begin_ns = into->begin_ns;
	if (piece_at(busy, to - 1)->end_ns > piece.end_ns)
		piece.end_ns = piece_at(busy, to - 1)->end_ns;
	*into = piece;
	if (gone && from < busy->n - to) {
		move(busy, gone, 0, from + 1);
		busy->first = (busy->first + gone) & (busy->room - 1);
	} else if (gone) {
		move(busy, from + 1, to, busy->n - to);
	}
	busy->n -= gone;
}

static void begin_with(struct busy *busy, uint64_t begin_ns)
{
	if (!busy->room || begin_ns < busy->begin_ns)
		busy->begin_ns = begin_ns;
}

/* How many pieces begin no later than then, and how many end before it. Mostly all but a few. */
static size_t begun(const struct busy *busy, uint64_t time_ns)
{
	size_t n = busy->n;

	for (size_t i = 0; i < LATE_FEW && n && piece_at(busy, n - 1)->begin_ns > time_ns; i++)
		n--;
	if (!n || piece_at(busy, n - 1)->begin_ns <= time_ns)
		return n;
	return ARRAY_BEFORE(n, i, piece_at(busy, i)->begin_ns <= time_ns);
}

static size_t ended(const struct busy *busy, size_t n, uint64_t time_ns)
{
	for (size_t i = 0; i < LATE_FEW && n && piece_at(busy, n - 1)->end_ns >= time_ns; i++)
		n--;
	if (!n || piece_at(busy, n - 1)->end_ns < time_ns)
		return n;
	return ARRAY_BEFORE(n, i, piece_at(busy, i)->end_ns < time_ns);
}

/* Pieces before and behind it stay as they are: what comes late fills no gap but its own. */
static __attribute__((noinline)) void place(struct busy *busy, size_t most, struct busy_piece piece)
{
	size_t to = begun(busy, piece.end_ns), from = ended(busy, to, piece.begin_ns);

	begin_with(busy, piece.begin_ns);
	if (from < to)
		join(busy, from, to, piece);
	else
		insert(busy, most, from, piece);
}

/* What lies before pieces that were let go is not counted: a part of it may be already. */
static __attribute__((noinline)) uint64_t cut(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t until_ns = end_ns < busy->until_ns ? end_ns : busy->until_ns;

	begin_with(busy, begin_ns);
	if (begin_ns < until_ns &&
	    __builtin_add_overflow(busy->cut_ns, until_ns - begin_ns, &busy->cut_ns))
		busy->cut_ns = UINT64_MAX;
	return busy->until_ns;
}

/* Mostly the ring is full: the oldest piece makes room for one that overlaps none. */
void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	size_t most = busy->most ? busy->most : BUSY_PIECES;
	struct busy_piece *oldest;

	if (begin_ns < busy->until_ns)
		begin_ns = cut(busy, begin_ns, end_ns);
	if (end_ns <= begin_ns)
		return;
	if (busy->n < most || piece_at(busy, busy->n - 1)->end_ns >= begin_ns) {
		place(busy, most, (struct busy_piece){ begin_ns, end_ns });
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

uint64_t busy_short_ns(const struct busy *busy)
{
	uint64_t idle_ns = busy->until_ns - busy->begin_ns - busy->done_ns;

	if (!busy->cut_ns)
		return 0;
	return busy->cut_ns < idle_ns ? busy->cut_ns : idle_ns;
}
