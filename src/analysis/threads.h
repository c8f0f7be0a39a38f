/* SPDX-License-Identifier: MIT */
/* What the threads of a trace are called. */
#ifndef CUSCOPE_ANALYSIS_THREADS_H
#define CUSCOPE_ANALYSIS_THREADS_H

#include "trace/event.h"

struct threads;

struct threads *threads_new(void);
void threads_free(struct threads *threads);

/* Follows one event of any kind. */
void threads_event(struct threads *threads, const struct event *event);

/* As it was called last; NULL where nothing told, or its process has ended. Until the next event.
 */
const struct thread *threads_find(struct threads *threads, const struct process *process,
                                  uint32_t tid);

#endif
