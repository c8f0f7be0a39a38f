// SPDX-License-Identifier: MIT
#include "trace/consumers.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

int consumers_begin(struct consumer *const *consumers, size_t n, const struct run_info *run,
                    struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (consumers[i]->ops->begin)
			r = consumers[i]->ops->begin(consumers[i], run, err);
	}
	return r;
}

int consumers_flush(struct consumer *const *consumers, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (consumers[i]->ops->flush)
			r = consumers[i]->ops->flush(consumers[i], err);
	}
	return r;
}

void consumers_add_failure(struct run_info *told, const struct run_info *run, const char *why)
{
	struct miss *misses = xcalloc(run->n_misses + 1, sizeof(*misses));

	*told = *run;
	if (run->n_misses)
		memcpy(misses, run->misses, run->n_misses * sizeof(*misses));
	misses[told->n_misses++] = (struct miss){ .kind = MISS_FAILED, .why = why };
	told->misses = misses;
}

/* A run that failed itself is told of by that: what is written with it tells the same once more. */
static bool has_failed(const struct run_info *run)
{
	for (size_t i = 0; i < run->n_misses; i++) {
		if (run->misses[i].kind == MISS_FAILED)
			return true;
	}
	return false;
}

int consumers_end(struct consumer *const *consumers, size_t n, const struct run_info *run,
                  struct err *err)
{
	struct run_info failed = { 0 };
	struct err first = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };
		int r = consumers[i]->ops->end ? consumers[i]->ops->end(consumers[i], run, &one)
		                               : 0;

		if (!r || first.code)
			continue;
		first = one;
		first.code = r;
		if (has_failed(run))
			continue;
		consumers_add_failure(&failed, run, first.text);
		run = &failed;
	}
	free((void *)failed.misses);
	if (first.code)
		*err = first;
	return first.code;
}

void consumer_free(struct consumer *consumer)
{
	if (consumer)
		consumer->ops->free(consumer);
}
