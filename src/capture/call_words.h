/* SPDX-License-Identifier: MIT */
/* One record of a call, without what went before it: its words, and how it ended. */
#ifndef CUSCOPE_CAPTURE_CALL_WORDS_H
#define CUSCOPE_CAPTURE_CALL_WORDS_H

#include "bpf/wire.h"
#include "trace/event.h"

/* The words, at the places that api_decode wants them at. */
void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan);

/* Flags, times, depth and result of a call whose function is set. */
void call_words_result(struct call *call, const struct wire_call *record, bool returns_status);

/* Whether the call has done what it is for. */
bool call_took_effect(const struct call *call);

#endif
