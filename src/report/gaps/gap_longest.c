// SPDX-License-Identifier: MIT
#include "report/gaps/gap_longest.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void gap_longest_init(struct gap_longest *longest, size_t most)
{
	longest->gaps = xcalloc(most + 1, sizeof(*longest->gaps));
	longest->n = 0;
	longest->most = most;
}

void gap_longest_free(struct gap_longest *longest)
{
	free(longest->gaps);
}

void gap_longest_keep(struct gap_longest *longest, const struct gpu_gap *gap)
{
	size_t at = longest->n;

	while (at && gpu_gap_ns(gap) > gpu_gap_ns(&longest->gaps[at - 1]))
		at--;
	if (at == longest->most)
		return;
	if (longest->n < longest->most)
		longest->n++;
	memmove(&longest->gaps[at + 1], &longest->gaps[at],
	        (longest->n - at - 1) * sizeof(*longest->gaps));
	longest->gaps[at] = *gap;
}

size_t gap_longest_apart(const struct gap_longest *longest, uint64_t n_gaps, uint64_t span_ns)
{
	size_t n = 0;

	for (; n < longest->n; n++) {
		uint64_t ns = gpu_gap_ns(&longest->gaps[n]);

		if (ns < GAP_APART_NS ||
		    (ns <= GAP_APART_ANY_NS && ns <= span_ns / GAP_APART_SHARE))
			break;
		span_ns -= ns < span_ns ? ns : span_ns;
	}
	return n <= GAP_APART_MOST && n_gaps - n >= GAP_APART_OTHERS ? n : 0;
}
