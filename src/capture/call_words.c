// SPDX-License-Identifier: MIT
#include "capture/call_words.h"

#include <string.h>

#include "cuda/error.h"

/* Results of either layer with which the end of a capture fails, and ends it all the same. */
#define CAPTURE_INVALIDATED 901
#define CAPTURE_UNJOINED    904

void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan)
{
	const uint64_t *word = (const uint64_t *)record->word;

	memset(raw, 0, sizeof(*raw));
	memcpy(raw->out, word, sizeof(raw->out));
	memcpy(raw->reg, word + WIRE_AT_REG, plan->regs * sizeof(*word));
	memcpy(raw->stack, word + WIRE_AT_STACK, plan->stack * sizeof(*word));
	raw->out_valid = record->head.type == WIRE_CALL && record->result == 0 &&
	                 !(record->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED));
	raw->blob_valid = plan->blob != PLAN_NO_ARG && !(record->head.flags & WIRE_UNREADABLE) &&
	                  (!plan->blob_on_return || raw->out_valid);
	if (raw->blob_valid)
		memcpy(raw->blob, word + WIRE_AT_BLOB, plan->blob_words * sizeof(*word));
}

void call_words_result(struct call *call, const struct wire_call *record, bool returns_status)
{
	uint8_t flags = record->head.flags;

	call->flags = (flags & WIRE_NESTED ? CALL_NESTED : 0) |
	              (flags & WIRE_NO_RETURN ? CALL_NO_RETURN : 0) |
	              (flags & WIRE_UNFINISHED ? CALL_UNFINISHED : 0);
	call->begin_ns = record->begin_ns;
	call->depth = record->head.depth;
	if (!call_has_end(call) || record->head.type == WIRE_BEGIN)
		return;
	call->end_ns = record->head.time_ns;
	if (!returns_status)
		return;
	call->result = record->result;
	if (call->result && !cuda_error_is_status(call->function->layer, call->result))
		call->flags |= CALL_FAILED;
}

bool call_took_effect(const struct call *call)
{
	if (call->flags & CALL_UNFINISHED)
		return false;
	/* success is assumed, but for a nested call: the one around it tells */
	if (call->flags & CALL_NO_RETURN)
		return !(call->flags & CALL_NESTED);
	/* the end of a capture that was broken (CUDA programming guide, "Invalidation") */
	return !(call->flags & CALL_FAILED) ||
	       (call->op == OP_CAPTURE_END &&
	        (call->result == CAPTURE_INVALIDATED || call->result == CAPTURE_UNJOINED));
}
