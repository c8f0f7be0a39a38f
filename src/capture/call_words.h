/* SPDX-License-Identifier: MIT */
/* One record of a call, without what went before it: its words, and how it ended. */
#ifndef CUSCOPE_CAPTURE_CALL_WORDS_H
#define CUSCOPE_CAPTURE_CALL_WORDS_H

#include "bpf/wire.h"
#include "trace/event.h"

/* The words, at the places that api_decode wants them at. */
void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan);

/* What the arguments of a call were decoded from: that of another that has the same need not be. */
struct call_words {
	bool kept, out_valid, unreadable;
	uint64_t word[WIRE_WORDS];
};

/* Of calls of one function, whose plan it is. */
bool call_words_same(const struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan);
void call_words_keep(struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan);
void call_words_forget(struct call_words *words);

/* Flags, times, depth and result of a call whose function is set. All but its arguments is as if it
 * had been empty. */
void call_words_result(struct call *call, const struct wire_call *record, bool returns_status);

/* Whether the call has done what it is for. */
bool call_took_effect(const struct call *call);

#endif
