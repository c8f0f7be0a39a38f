/* SPDX-License-Identifier: MIT */
/*
 * Which call asked for an activity. An activity is known up to seconds after its call, or, where
 * the call waits for it, before the call has returned. Calls that can ask for work are kept in a table
 * of pairs.h, however many were made since, and ASKED_WAITING activities that came before their call.
 */
#ifndef CUSCOPE_ANALYSIS_ASKED_H
#define CUSCOPE_ANALYSIS_ASKED_H

#include "trace/event.h"

#define ASKED_WAITING (1u << 14)

struct asked_call {
	const struct process *process;
	const struct function *function;
	uint64_t correlation; /* 0: an empty place */
	uint64_t begin_ns, end_ns;
	uint64_t stream; /* as call_stream() says */
	uint32_t tid;
	uint8_t op; /* enum api_op */
};

/* 0 where the end is not known. */
static inline uint64_t asked_call_ns(const struct asked_call *call)
{
	return call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0;
}

struct asked_activity {
	const struct process *process;
	struct activity activity;
	/* When all that came before it on its device, of its process, had ended; 0: it is the
	 * first, or something still ran when it began. */
	uint64_t idle_since_ns;
};

/* `call` is NULL where it was not seen. Both are valid during the call only. Activities whose call
 * came later are told when it comes: not in the order of their ends. */
typedef void (*asked_tell)(void *data, const struct asked_activity *activity,
                           const struct asked_call *call);

struct asked;

struct asked *asked_new(asked_tell tell, void *data);
void asked_free(struct asked *asked);

void asked_event(struct asked *asked, const struct event *event);

/* After the last event: tells those that still wait for their call. */
void asked_finish(struct asked *asked);

#endif
