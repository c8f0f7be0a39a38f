/* SPDX-License-Identifier: MIT */
/*
 * Calls that agents record inside of processes, as records of bpf/wire.h: what the pipeline makes
 * events of, whoever saw the call. One for each process.
 *
 * A record says which slot it is of, and nothing else of it is believed: the hook, how many words
 * there are and what they mean stand in the cookie that cuscope gave that slot.
 */
#ifndef CUSCOPE_AGENT_PROBE_RECORDS_H
#define CUSCOPE_AGENT_PROBE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/tick_clock.h"
#include "agent/wire.h"
#include "bpf/wire.h"

#define PROBE_NO_COOKIE UINT64_MAX /* a slot that was not handed out */

struct probe_records_options {
	uint32_t pid;
	const uint64_t *cookies; /* by slot; the caller's, and may change while records come */
	size_t n_cookies;
	struct tick_clock *ticks; /* NULL: records are in ns */
	uint64_t since_ns;        /* when the session began: no call can be older */
	/* The thread that the process itself knows as `tid`; 0: it is none of its own. */
	uint32_t (*thread)(void *data, uint32_t tid);
	/* A wire_call or a wire_name, the callee's until it returns. */
	void (*record)(void *data, const struct wire_head *record, size_t bytes);
	void *data;
};

enum probe_record_is {
	PROBE_RECORD_TAKEN,
	PROBE_RECORD_OTHER,     /* of another type: not looked at */
	PROBE_RECORD_BAD,       /* of no slot, or not what its slot records */
	PROBE_RECORD_BAD_TIMES, /* before the session, behind now, or ends before it begins */
	PROBE_RECORD_NO_THREAD,
};

struct probe_records;

struct probe_records *probe_records_new(const struct probe_records_options *options);
void probe_records_free(struct probe_records *records);

/* A record of agent_ring_read; `now_ns` is of after it was read. */
enum probe_record_is probe_records_take(struct probe_records *records,
                                        const struct agent_head *record, uint64_t now_ns);

#endif
