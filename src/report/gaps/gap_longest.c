// SPDX-License-Identifier: MIT
#include "report/gaps/gap_longest.h"

int gap_longer(const void *left, const void *right)
{
	uint64_t a = gpu_gap_ns(left), b = gpu_gap_ns(right);

	return (a < b) - (a > b);
}

size_t gap_longest_apart(const struct gpu_gap *longest, size_t n_longest, uint64_t n_gaps,
                         uint64_t span_ns)
{
	size_t n = 0;

	for (; n < n_longest; n++) {
		uint64_t ns = gpu_gap_ns(&longest[n]);

		if (ns < GAP_APART_NS ||
		    (ns <= GAP_APART_ANY_NS && ns <= span_ns / GAP_APART_SHARE))
			break;
		span_ns -= ns < span_ns ? ns : span_ns;
	}
	return n <= GAP_APART_MOST && n_gaps - n >= GAP_APART_OTHERS ? n : 0;
}
