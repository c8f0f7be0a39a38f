/* SPDX-License-Identifier: MIT */
/* What the threads of a trace are called. */
#ifndef CUSCOPE_REPORT_THREAD_NAMES_H
#define CUSCOPE_REPORT_THREAD_NAMES_H

#include "trace/event.h"

struct thread_names;

struct thread_names *thread_names_new(void);
void thread_names_free(struct thread_names *threads);

/* Follows one event of any kind. */
void thread_names_event(struct thread_names *threads, const struct event *event);

/* As it was called last; NULL where nothing told, or its process has ended. Until the
 * next event. */
const struct thread *thread_names_find(struct thread_names *threads, const struct process *process,
                                       uint32_t tid);

#endif
