// SPDX-License-Identifier: MIT
#include "table/longest.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct longest_slot {
	uint64_t seen; /* how many had come before it */
	size_t at;     /* of its row */
};

void longest_init(struct longest *longest, size_t row_bytes, size_t most,
                  int (*order)(const void *a, const void *b))
{
	*longest = (struct longest){ .row_bytes = row_bytes, .most = most, .order = order };
	longest->heap = xcalloc(most + 1, sizeof(*longest->heap));
	longest->rows = xcalloc(most + 1, row_bytes); /* the last one: what went */
}

void longest_free(struct longest *longest)
{
	free(longest->heap);
	free(longest->rows);
	free(longest->sorted);
}

static char *row_at(const struct longest *longest, size_t at)
{
	return longest->rows + at * longest->row_bytes;
}

static bool goes_first(const struct longest *longest, const struct longest_slot *a,
                       const struct longest_slot *b)
{
	int order = longest->order(row_at(longest, a->at), row_at(longest, b->at));

	return order ? order > 0 : a->seen > b->seen;
}

static void swap(struct longest_slot *a, struct longest_slot *b)
{
	struct longest_slot old = *a;

	*a = *b;
	*b = old;
}

static void sift_up(struct longest *longest, size_t at)
{
	struct longest_slot *heap = longest->heap;

	for (; at && goes_first(longest, &heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(struct longest *longest, size_t at)
{
	struct longest_slot *heap = longest->heap;

	for (size_t child; (child = 2 * at + 1) < longest->n; at = child) {
		if (child + 1 < longest->n && goes_first(longest, &heap[child + 1], &heap[child]))
			child++;
		if (!goes_first(longest, &heap[child], &heap[at]))
			return;
		swap(&heap[at], &heap[child]);
	}
}

const void *longest_last(const struct longest *longest)
{
	return longest->most && longest->n == longest->most ? row_at(longest, longest->heap[0].at)
	                                                    : NULL;
}

bool longest_wants(const struct longest *longest, const void *row)
{
	if (longest->n < longest->most)
		return true;
	return longest->most && longest->order(row, row_at(longest, longest->heap[0].at)) < 0;
}

const void *longest_keep(struct longest *longest, const void *row)
{
	struct longest_slot *slot = &longest->heap[longest->n];
	char *gone = row_at(longest, longest->most);

	longest->seen++;
	if (!longest_wants(longest, row))
		return NULL;
	if (longest->n < longest->most) {
		*slot = (struct longest_slot){ longest->seen, longest->n };
		memcpy(row_at(longest, slot->at), row, longest->row_bytes);
		sift_up(longest, longest->n++);
		return NULL;
	}
	slot = &longest->heap[0];
	memcpy(gone, row_at(longest, slot->at), longest->row_bytes);
	memcpy(row_at(longest, slot->at), row, longest->row_bytes);
	slot->seen = longest->seen;
	sift_down(longest, 0);
	return gone;
}

void *longest_rows(struct longest *longest, size_t *n)
{
	struct longest_slot *heap = longest->heap;
	size_t all = longest->n;

	free(longest->sorted);
	longest->sorted = xcalloc(all + 1, longest->row_bytes);
	while (longest->n) {
		memcpy(longest->sorted + (longest->n - 1) * longest->row_bytes,
		       row_at(longest, heap[0].at), longest->row_bytes);
		swap(&heap[0], &heap[--longest->n]);
		sift_down(longest, 0);
	}
	for (size_t i = 0; i < all / 2; i++) /* what goes first is the root again */
		swap(&heap[i], &heap[all - 1 - i]);
	*n = longest->n = all;
	return longest->sorted;
}

size_t longest_group(void *rows, size_t n, size_t row_bytes,
                     bool (*alike)(const void *a, const void *b), uint64_t *counts)
{
	size_t groups = 0;

	for (size_t i = 0; i < n; i++) {
		const char *row = (const char *)rows + i * row_bytes;
		size_t looked_at = groups < LONGEST_GROUPED ? groups : LONGEST_GROUPED, group = 0;

		while (group < looked_at && !alike((const char *)rows + group * row_bytes, row))
			group++;
		if (group == looked_at) {
			group = groups;
			memmove((char *)rows + groups * row_bytes, row, row_bytes);
			counts[groups++] = 0;
		}
		counts[group]++;
	}
	return groups;
}

bool longest_all_single(const uint64_t *counts, size_t n)
{
	while (n && counts[n - 1] == 1)
		n--;
	return !n;
}
