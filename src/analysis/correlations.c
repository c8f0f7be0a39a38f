// SPDX-License-Identifier: MIT
#include "analysis/correlations.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/xalloc.h"

/* A page has the marks of 256 correlations in a row; the table is full to three quarters. */
#define PAGE_SHIFT 8
#define PAGE_BYTES (1u << (PAGE_SHIFT - 1))
#define PAGES      (1u << 8)
#define PAGES_MOST (1u << 18) /* 38 MB: of 50 million correlations */

struct page {
	uint64_t first; /* correlation of its first mark, above PAGE_SHIFT bits, and 1: 0 is free */
	uint32_t process;
	uint8_t marks[PAGE_BYTES];
};

struct correlations {
	struct page *pages;
	size_t n, used; /* n: a power of two */
	struct page *last;
};

struct correlations *correlations_new(void)
{
	struct correlations *set = xcalloc(1, sizeof(*set));

	set->n = PAGES;
	set->pages = xcalloc(set->n, sizeof(*set->pages));
	return set;
}

void correlations_free(struct correlations *set)
{
	if (!set)
		return;
	free(set->pages);
	free(set);
}

static bool is_page(const struct page *page, uint32_t process, uint64_t first)
{
	return page->first == first && page->process == process;
}

/* Its page, or the free one where it would be. */
static struct page *page_of(const struct correlations *set, uint32_t process, uint64_t first)
{
	const uint64_t key[] = { first, process };
	size_t at = hash_long(key, sizeof(key)) & (set->n - 1);

	while (set->pages[at].first && !is_page(&set->pages[at], process, first))
		at = (at + 1) & (set->n - 1);
	return &set->pages[at];
}

static void grow(struct correlations *set)
{
	struct page *old = set->pages;
	size_t n = set->n;

	set->n *= 2;
	set->pages = xcalloc(set->n, sizeof(*set->pages));
	set->last = NULL;
	for (size_t i = 0; i < n; i++) {
		if (old[i].first)
			*page_of(set, old[i].process, old[i].first) = old[i];
	}
	free(old);
}

static struct page *find(struct correlations *set, uint32_t process, uint64_t correlation)
{
	uint64_t first = (correlation >> PAGE_SHIFT) + 1;

	if (!set->last || !is_page(set->last, process, first))
		set->last = page_of(set, process, first);
	return set->last;
}

static struct page *new_page(struct correlations *set, uint32_t process, uint64_t correlation)
{
	struct page *page;

	if (set->used + 1 > set->n / 4 * 3) {
		if (set->n >= PAGES_MOST)
			return NULL;
		grow(set);
	}
	page = find(set, process, correlation);
	page->first = (correlation >> PAGE_SHIFT) + 1;
	page->process = process;
	set->used++;
	return page;
}

static unsigned shift_of(uint64_t correlation)
{
	return correlation & 1 ? 4 : 0;
}

static size_t byte_of(uint64_t correlation)
{
	return (correlation >> 1) % PAGE_BYTES;
}

bool correlations_mark(struct correlations *set, uint32_t process, uint64_t correlation,
                       enum correlation_mark mark)
{
	struct page *page = find(set, process, correlation);

	if (!page->first)
		page = new_page(set, process, correlation);
	if (!page)
		return false;
	page->marks[byte_of(correlation)] |= (uint8_t)(mark << shift_of(correlation));
	return true;
}

unsigned correlations_marks(struct correlations *set, uint32_t process, uint64_t correlation)
{
	const struct page *page = find(set, process, correlation);

	return page->first ? page->marks[byte_of(correlation)] >> shift_of(correlation) & 15 : 0;
}
