// SPDX-License-Identifier: MIT
#include "trace/consumers.h"

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

int consumers_end(struct consumer *const *consumers, size_t n, const struct run_info *run,
                  struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };
		int r = consumers[i]->ops->end ? consumers[i]->ops->end(consumers[i], run, &one)
		                               : 0;

		if (r && !result) {
			result = r;
			*err = one;
		}
	}
	return result;
}

void consumer_free(struct consumer *consumer)
{
	if (consumer)
		consumer->ops->free(consumer);
}
