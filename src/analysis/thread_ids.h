/* SPDX-License-Identifier: MIT */
/*
 * Dense ids of threads, for arrays with something of each. A process that makes threads without
 * end does not make these grow without end: THREAD_IDS_MAX get an id of their own, the rest share
 * THREAD_ID_OTHERS.
 */
#pragma once

#include "trace/event.h"

#define THREAD_IDS_MAX   16384u
#define THREAD_ID_OTHERS THREAD_IDS_MAX

struct thread_ids;

struct thread_ids *thread_ids_new(void);
void thread_ids_free(struct thread_ids *ids);

/* The id of the thread that an event is of. */
uint32_t thread_ids_of(struct thread_ids *ids, const struct event *event);

/* The same, but THREAD_ID_OTHERS of a thread that has no id yet: it is given none. */
uint32_t thread_ids_find(struct thread_ids *ids, const struct event *event);

/* The tid was given to another thread: the next thread_ids_of() gives it a new id. */
void thread_ids_renew(struct thread_ids *ids, const struct event *event);
