/* SPDX-License-Identifier: MIT */
/* Consumers as a source sees them: a row of them, each given the same events. */
#ifndef CUSCOPE_TRACE_CONSUMERS_H
#define CUSCOPE_TRACE_CONSUMERS_H

#include "trace/event.h"

/* Each stops at the first consumer that fails and returns what it returned. */
int consumers_begin(struct consumer *const *consumers, size_t n, const struct run_info *run,
                    struct err *err);
int consumers_flush(struct consumer *const *consumers, size_t n, struct err *err);
static inline int consumers_event(struct consumer *const *consumers, size_t n,
                                  const struct event *event, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (event->type != EVENT_METRICS || consumers[i]->ops->metrics)
			r = consumers[i]->ops->event(consumers[i], event, err);
	}
	return r;
}

/*
 * Every consumer gets its end, also after one has failed: the first failure is returned, and those
 * that come later are told of it by a miss, so that none says of a run that nothing is missing
 * where something could not be written. They keep no pointer to the run.
 */
int consumers_end(struct consumer *const *consumers, size_t n, const struct run_info *run,
                  struct err *err);

/* `told` is the run with such a miss; its misses, but not their words, are the caller's to free. */
void consumers_add_failure(struct run_info *told, const struct run_info *run, const char *why);

void consumer_free(struct consumer *consumer); /* nothing of NULL */

#endif
