// SPDX-License-Identifier: MIT
#include "analysis/busy.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void busy_free(struct busy *busy)
{
	free(busy->pieces);
}

static void let_oldest_go(struct busy *busy)
{
	const struct busy_piece *piece = &busy->pieces[busy->first];

	busy->done_ns += piece->end_ns - piece->begin_ns;
	busy->until_ns = piece->end_ns;
	if (busy->gone)
		busy->gone(busy->data, piece->begin_ns, piece->end_ns);
	busy->first++;
	busy->n--;
}

static void make_room(struct busy *busy)
{
	if (busy->n == (busy->most ? busy->most : BUSY_PIECES))
		let_oldest_go(busy);
	if (busy->first + busy->n < busy->room)
		return;
	if (busy->first > busy->room / 2) {
		memmove(busy->pieces, busy->pieces + busy->first, busy->n * sizeof(*busy->pieces));
		busy->first = 0;
		return;
	}
	busy->room = busy->room ? 2 * busy->room : 8;
	busy->pieces = xrealloc(busy->pieces, busy->room * sizeof(*busy->pieces));
}

void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	struct busy_piece *last;

	if (begin_ns < busy->until_ns)
		begin_ns = busy->until_ns;
	if (end_ns <= begin_ns)
		return;
	for (; busy->n; busy->n--) {
		last = &busy->pieces[busy->first + busy->n - 1];
		if (last->end_ns < begin_ns)
			break;
		if (last->begin_ns < begin_ns)
			begin_ns = last->begin_ns;
		if (last->end_ns > end_ns)
			end_ns = last->end_ns;
	}
	make_room(busy);
	busy->pieces[busy->first + busy->n++] = (struct busy_piece){ begin_ns, end_ns };
}

uint64_t busy_ns(const struct busy *busy)
{
	uint64_t sum = busy->done_ns;

	for (size_t i = busy->first; i < busy->first + busy->n; i++)
		sum += busy->pieces[i].end_ns - busy->pieces[i].begin_ns;
	return sum;
}

void busy_finish(struct busy *busy)
{
	while (busy->n)
		let_oldest_go(busy);
}
