// SPDX-License-Identifier: MIT
#include "agent/probe_records.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "base/xalloc.h"

#define SAID_FLAGS (WIRE_NO_RETURN | WIRE_UNFINISHED | WIRE_UNREADABLE | WIRE_BEGUN)

#define THREADS    64       /* a power of two */
#define THREADS_NS 20000000 /* until they are asked for again */

struct probe_records {
	struct probe_records_options options;
	/* Threads that were found, by the low bits of their numbers, since then: a number may be
	 * another thread's later. */
	struct {
		uint32_t tid, found;
	} thread[THREADS];
	uint64_t threads_ns;
	struct wire_call call;
	struct wire_name name;
};

struct probe_records *probe_records_new(const struct probe_records_options *options)
{
	struct probe_records *records = xcalloc(1, sizeof(*records));

	records->options = *options;
	return records;
}

void probe_records_free(struct probe_records *records)
{
	free(records);
}

/* ---- what all have ------------------------------------------------------------------------- */

static bool find_cookie(const struct probe_records *records, uint32_t slot, uint64_t *cookie)
{
	if (slot >= records->options.n_cookies)
		return false;
	*cookie = records->options.cookies[slot];
	return *cookie != PROBE_NO_COOKIE && cookie_words(*cookie) <= WIRE_WORDS;
}

static uint32_t find_thread(struct probe_records *records, uint32_t tid, uint64_t now_ns)
{
	uint32_t at = tid % THREADS;

	if (now_ns - records->threads_ns > THREADS_NS) {
		memset(records->thread, 0, sizeof(records->thread));
		records->threads_ns = now_ns;
	}
	if (!tid || records->thread[at].tid != tid) {
		records->thread[at].found = records->options.thread(records->options.data, tid);
		records->thread[at].tid = records->thread[at].found ? tid : 0;
	}
	return records->thread[at].found;
}

/* In ns. One that is later than the last look at the clocks, and not later than now, makes us look
 * again. */
static bool find_time(const struct probe_records *records, uint64_t told, uint64_t now_ns,
                      uint64_t *ns)
{
	struct tick_clock *ticks = records->options.ticks;

	*ns = told;
	if (ticks && !tick_clock_ns(ticks, told, ns)) {
		if (told > tick_clock_ticks())
			return false;
		tick_clock_look(ticks);
		if (!tick_clock_ns(ticks, told, ns))
			return false;
	}
	return *ns >= records->options.since_ns && (ticks || *ns <= now_ns);
}

static struct wire_head head_of(const struct probe_records *records, uint8_t type, uint64_t cookie,
                                uint32_t tid, uint64_t time_ns)
{
	return (struct wire_head){ .type = type,
		                   .hook = (uint16_t)cookie_hook(cookie),
		                   .tgid = records->options.pid,
		                   .tid = tid,
		                   .time_ns = time_ns };
}

/* ---- calls --------------------------------------------------------------------------------- */

/* An entry has no end and no result; a call that was left or is not followed has no result. */
static bool makes_sense(const struct agent_probed *told, uint64_t cookie)
{
	uint32_t words = cookie_words(cookie);

	if (told->head.bytes != sizeof(*told) + words * sizeof(*told->word) ||
	    told->depth >= AGENT_PROBE_DEPTH_MAX ||
	    told->head.flags & ~(uint32_t)(SAID_FLAGS | WIRE_NESTED))
		return false;
	if (told->head.type == AGENT_PROBE_BEGUN)
		return !(told->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED | WIRE_BEGUN));
	return (told->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED)) !=
	       (WIRE_NO_RETURN | WIRE_UNFINISHED);
}

static enum probe_record_is take_call(struct probe_records *records,
                                      const struct agent_probed *told, uint64_t now_ns)
{
	struct wire_call *call = &records->call;
	bool begun = told->head.type == AGENT_PROBE_BEGUN;
	uint64_t cookie, begin_ns, end_ns;
	uint32_t tid;

	if (told->head.bytes < sizeof(*told) || !find_cookie(records, told->head.lane, &cookie) ||
	    !makes_sense(told, cookie))
		return PROBE_RECORD_BAD;
	if (told->end < told->begin || !find_time(records, told->begin, now_ns, &begin_ns) ||
	    !find_time(records, told->end, now_ns, &end_ns))
		return PROBE_RECORD_BAD_TIMES;
	tid = find_thread(records, told->tid, now_ns);
	if (!tid)
		return PROBE_RECORD_NO_THREAD;
	call->head = head_of(records, begun ? WIRE_BEGIN : WIRE_CALL, cookie, tid,
	                     begun ? begin_ns : end_ns);
	call->head.flags = (told->head.flags & SAID_FLAGS) | (told->depth ? WIRE_NESTED : 0);
	call->head.depth = (uint8_t)told->depth;
	call->head.words = (uint8_t)cookie_words(cookie);
	call->begin_ns = begin_ns;
	call->result = begun ? 0 : told->result;
	call->place = told->place;
	words_copy(call->word, told->word, call->head.words * sizeof(*call->word));
	records->options.record(records->options.data, &call->head,
	                        WIRE_CALL_BYTES(call->head.words));
	return PROBE_RECORD_TAKEN;
}

/* ---- texts --------------------------------------------------------------------------------- */

static enum probe_record_is take_name(struct probe_records *records,
                                      const struct agent_probe_name *told, uint64_t now_ns)
{
	struct wire_name *name = &records->name;
	size_t most = told->head.bytes - offsetof(struct agent_probe_name, text), length;
	uint64_t cookie, time_ns;
	uint32_t tid;

	if (told->head.bytes <= sizeof(*told) || !find_cookie(records, told->head.lane, &cookie))
		return PROBE_RECORD_BAD;
	length = strnlen(told->text, most);
	if (length == most || length >= WIRE_STRING_MAX || told->source < NAME_OF_HANDLE ||
	    told->source > NAME_OF_ARGUMENT)
		return PROBE_RECORD_BAD;
	if (!find_time(records, told->begin, now_ns, &time_ns))
		return PROBE_RECORD_BAD_TIMES;
	tid = find_thread(records, told->tid, now_ns);
	if (!tid)
		return PROBE_RECORD_NO_THREAD;
	name->head = head_of(records, WIRE_NAME, cookie, tid, time_ns);
	name->head.flags = told->head.flags & WIRE_TRUNCATED;
	name->head.bytes = (uint16_t)(length ? length + 1 : 0);
	name->key = told->key;
	name->from = told->from;
	name->source = told->source;
	name->reserved = 0;
	memcpy(name->text, told->text, name->head.bytes);
	records->options.record(records->options.data, &name->head,
	                        WIRE_NAME_BYTES(name->head.bytes));
	return PROBE_RECORD_TAKEN;
}

enum probe_record_is probe_records_take(struct probe_records *records,
                                        const struct agent_head *record, uint64_t now_ns)
{
	switch (record->type) {
	case AGENT_PROBED:
	case AGENT_PROBE_BEGUN:
		return take_call(records, (const struct agent_probed *)record, now_ns);
	case AGENT_PROBE_NAME:
		return take_name(records, (const struct agent_probe_name *)record, now_ns);
	default:
		return PROBE_RECORD_OTHER;
	}
}
