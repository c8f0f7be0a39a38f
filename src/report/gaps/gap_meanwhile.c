// SPDX-License-Identifier: MIT
#include "report/gaps/gap_meanwhile.h"

#include <stdlib.h>

#include "base/xalloc.h"

struct gap_meanwhile *gap_meanwhile_new(void)
{
	struct gap_meanwhile *meanwhile = xcalloc(1, sizeof(*meanwhile));

	longest_init(&meanwhile->giants, sizeof(struct gpu_gap), GAP_APART_MOST + 1, gap_longer);
	return meanwhile;
}

void gap_meanwhile_free(struct gap_meanwhile *meanwhile)
{
	struct gpu_gap *giants;
	size_t n;

	if (!meanwhile)
		return;
	giants = longest_rows(&meanwhile->giants, &n);
	for (size_t i = 0; i < n; i++) {
		if (giants[i].stacks)
			gap_stacks_free(giants[i].stacks);
		free(giants[i].stacks);
		if (giants[i].waits)
			gap_waits_free(giants[i].waits);
		free(giants[i].waits);
	}
	longest_free(&meanwhile->giants);
	gap_waits_free(&meanwhile->waits);
	for (size_t i = 0; i < GAP_CAUSES; i++) {
		gap_stacks_free(&meanwhile->stacks[i]);
		gap_stacks_free(&meanwhile->calls[i]);
	}
	free(meanwhile);
}

static void join(struct gap_meanwhile *meanwhile, struct gap_threads *threads,
                 const struct gpu_gap *gap)
{
	if (gap->stacks)
		gap_threads_move(threads, &meanwhile->stacks[gap->verdict.cause], gap->stacks);
	if (gap->waits)
		gap_threads_move_waits(threads, &meanwhile->waits, gap->waits);
	if (gap_cause_is_host(gap->verdict.cause))
		gap_threads_call(threads, gap, &meanwhile->calls[gap->verdict.cause]);
}

/* A giant keeps it for itself. */
static void split(struct gap_meanwhile *meanwhile, struct gap_threads *threads, struct gpu_gap *gap,
                  bool giant)
{
	if (giant && gap_threads_wait(threads))
		gap->waits = xcalloc(1, sizeof(*gap->waits));
	gap_threads_split(threads, gap, giant ? gap->waits : &meanwhile->waits);
}

void gap_meanwhile_count(struct gap_meanwhile *meanwhile, struct gap_threads *threads,
                         struct gpu_gap *gap, bool told)
{
	bool giant = gpu_gap_ns(gap) >= GAP_APART_NS && longest_wants(&meanwhile->giants, gap);
	const struct gpu_gap *left;

	if (gap_cause_is_host(gap->verdict.cause)) {
		split(meanwhile, threads, gap, giant);
		if (giant || (told && gap_threads_any(threads)))
			gap_threads_keep(threads, gap);
		else
			gap_threads_look(threads, gap, &meanwhile->stacks[gap->verdict.cause]);
	}
	left = giant ? longest_keep(&meanwhile->giants, gap) : gap;
	if (!left)
		return;
	join(meanwhile, threads, left);
	free(left->stacks);
	free(left->waits);
	if (!giant)
		gap->stacks = NULL;
}

const struct gpu_gap *gap_meanwhile_giants(struct gap_meanwhile *meanwhile, size_t *n)
{
	return longest_rows(&meanwhile->giants, n);
}

void gap_meanwhile_join(struct gap_meanwhile *meanwhile, struct gap_threads *threads,
                        const struct gpu_gap *giants, size_t n)
{
	for (size_t i = 0; i < n; i++)
		join(meanwhile, threads, &giants[i]);
}
