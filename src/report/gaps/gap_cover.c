// SPDX-License-Identifier: MIT
#include "report/gaps/gap_cover.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void gap_cover_init(struct gap_cover *cover, size_t most)
{
	memset(cover, 0, sizeof(*cover));
	cover->most = most;
}

void gap_cover_free(struct gap_cover *cover)
{
	free(cover->pieces);
}

struct gap_piece *gap_cover_piece(const struct gap_cover *cover, size_t i)
{
	return &cover->pieces[(cover->head + i) & (cover->room - 1)];
}

size_t gap_cover_index(const struct gap_cover *cover, const struct gap_piece *piece)
{
	return ((size_t)(piece - cover->pieces) - cover->head) & (cover->room - 1);
}

bool gap_cover_gap(const struct gap_cover *cover, size_t i, uint64_t *begin_ns,
                   const struct gap_work **before)
{
	const struct gap_piece *left;

	if (!i) {
		*begin_ns = cover->settled_ns;
		*before = &cover->settled;
		return cover->begun && gap_cover_piece(cover, 0)->begin_ns > cover->settled_ns;
	}
	left = gap_cover_piece(cover, i - 1);
	*begin_ns = left->end_ns;
	*before = &left->last;
	return true;
}

static void learn(struct gap_work *work, const struct process *process,
                  const struct activity *activity, uint64_t ask)
{
	if (work->begin_ns == activity->begin_ns && work->correlation == activity->correlation &&
	    work->process == process)
		work->ask = ask;
}

void gap_cover_learn(struct gap_cover *cover, const struct process *process,
                     const struct activity *activity, uint64_t ask)
{
	size_t low = 0, high = cover->n;

	learn(&cover->settled, process, activity, ask);
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (gap_cover_piece(cover, middle)->begin_ns > activity->begin_ns)
			high = middle;
		else
			low = middle;
	}
	if (low < high) {
		learn(&gap_cover_piece(cover, low)->first, process, activity, ask);
		learn(&gap_cover_piece(cover, low)->last, process, activity, ask);
	}
}

static void grow(struct gap_cover *cover)
{
	size_t room = cover->room ? 2 * cover->room : 16;
	struct gap_piece *pieces = xmalloc(room * sizeof(*pieces));

	for (size_t i = 0; i < cover->n; i++)
		pieces[i] = *gap_cover_piece(cover, i);
	free(cover->pieces);
	cover->pieces = pieces;
	cover->room = room;
	cover->head = 0;
}

/* A new piece at that place; those after it move up. */
static struct gap_piece *insert(struct gap_cover *cover, size_t at, uint64_t begin_ns,
                                uint64_t end_ns, const struct gap_work *work)
{
	struct gap_piece *piece;

	if (cover->n == cover->room)
		grow(cover);
	cover->n++;
	for (size_t i = cover->n - 1; i > at; i--)
		*gap_cover_piece(cover, i) = *gap_cover_piece(cover, i - 1);
	if (at + 1 < cover->n)
		gap_cover_piece(cover, at + 1)->judged = false; /* another is before it now */
	piece = gap_cover_piece(cover, at);
	memset(piece, 0, sizeof(*piece));
	piece->begin_ns = begin_ns;
	piece->end_ns = end_ns;
	piece->first = piece->last = *work;
	return piece;
}

/* Of the pieces [from, to) one is left, which is all of them. */
static void join(struct gap_cover *cover, size_t from, size_t to)
{
	struct gap_piece *into = gap_cover_piece(cover, from);
	const struct gap_piece *last = gap_cover_piece(cover, to - 1);
	size_t gone = to - from - 1;

	if (!gone)
		return;
	if (last->end_ns > into->end_ns) {
		into->end_ns = last->end_ns;
		into->last = last->last;
	}
	for (size_t i = from + 1; i + gone < cover->n; i++)
		*gap_cover_piece(cover, i) = *gap_cover_piece(cover, i + gone);
	cover->n -= gone;
}

/* Pieces [from, to) are those that the interval touches: it becomes a part of one that is all. */
static struct gap_piece *merge(struct gap_cover *cover, size_t from, size_t to, uint64_t begin_ns,
                               uint64_t end_ns, const struct gap_work *work)
{
	struct gap_piece *piece;

	join(cover, from, to);
	piece = gap_cover_piece(cover, from);
	if (begin_ns < piece->begin_ns) {
		piece->begin_ns = begin_ns;
		piece->first = *work;
		piece->judged = false;
	}
	if (end_ns > piece->end_ns) {
		piece->end_ns = end_ns;
		piece->last = *work;
		if (from + 1 < cover->n)
			gap_cover_piece(cover, from + 1)->judged = false;
	}
	return piece;
}

struct gap_piece *gap_cover_add(struct gap_cover *cover, const struct gap_work *work)
{
	uint64_t begin_ns = work->begin_ns, end_ns = work->end_ns;
	size_t from, to = cover->n;

	if (!cover->count || begin_ns < cover->first_ns)
		cover->first_ns = begin_ns;
	if (!cover->count || end_ns > cover->last_ns)
		cover->last_ns = end_ns;
	cover->count++;
	if (cover->begun && begin_ns < cover->settled_ns) {
		cover->late++;
		begin_ns = cover->settled_ns;
		if (end_ns <= begin_ns)
			return NULL;
	}
	while (to && gap_cover_piece(cover, to - 1)->begin_ns > end_ns)
		to--;
	for (from = to; from && gap_cover_piece(cover, from - 1)->end_ns >= begin_ns;)
		from--;
	if (from == to)
		return insert(cover, to, begin_ns, end_ns, work);
	return merge(cover, from, to, begin_ns, end_ns, work);
}

void gap_cover_settle(struct gap_cover *cover)
{
	const struct gap_piece *piece = gap_cover_piece(cover, 0);

	cover->busy_ns += piece->end_ns - piece->begin_ns;
	cover->settled_ns = piece->end_ns;
	cover->settled = piece->last;
	cover->begun = true;
	cover->head = (cover->head + 1) & (cover->room - 1);
	cover->n--;
}
