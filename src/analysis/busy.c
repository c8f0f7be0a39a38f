// SPDX-License-Identifier: MIT
#include "analysis/busy.h"

#include <string.h>

static void let_oldest_go(struct busy *busy)
{
	busy->done_ns += busy->piece[0].end_ns - busy->piece[0].begin_ns;
	if (busy->gone)
		busy->gone(busy->data, busy->piece[0].begin_ns, busy->piece[0].end_ns);
	memmove(busy->piece, busy->piece + 1, --busy->n * sizeof(*busy->piece));
}

void busy_add(struct busy *busy, uint64_t begin_ns, uint64_t end_ns)
{
	if (end_ns <= begin_ns)
		return;
	while (busy->n && busy->piece[busy->n - 1].end_ns >= begin_ns) {
		if (busy->piece[busy->n - 1].begin_ns < begin_ns)
			begin_ns = busy->piece[busy->n - 1].begin_ns;
		if (busy->piece[busy->n - 1].end_ns > end_ns)
			end_ns = busy->piece[busy->n - 1].end_ns;
		busy->n--;
	}
	if (busy->n == BUSY_PIECES)
		let_oldest_go(busy);
	busy->piece[busy->n].begin_ns = begin_ns;
	busy->piece[busy->n++].end_ns = end_ns;
}

uint64_t busy_ns(const struct busy *busy)
{
	uint64_t sum = busy->done_ns;

	for (size_t i = 0; i < busy->n; i++)
		sum += busy->piece[i].end_ns - busy->piece[i].begin_ns;
	return sum;
}

void busy_finish(struct busy *busy)
{
	while (busy->n)
		let_oldest_go(busy);
}
