// SPDX-License-Identifier: MIT
#include "capture/call_words.h"

#include <string.h>

#include "base/words.h"
#include "cuda/error.h"

/* Results of either layer with which the end of a capture fails, and ends it all the same. */
#define CAPTURE_INVALIDATED 901
#define CAPTURE_UNJOINED    904

static bool is_out_valid(const struct wire_call *record)
{
	return record->head.type == WIRE_CALL && record->result == 0 &&
	       !(record->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED));
}

static bool is_unreadable(const struct wire_call *record)
{
	return record->head.flags & WIRE_UNREADABLE;
}

/* Of those that the arguments are made of. */
static size_t bytes_of(const struct capture_plan *plan)
{
	size_t words = plan->blob != PLAN_NO_ARG ? WIRE_AT_BLOB + plan->blob_words
	               : plan->stack             ? WIRE_AT_STACK + plan->stack
	                                         : WIRE_AT_REG + plan->regs;

	return words * sizeof(uint64_t);
}

bool call_words_same(const struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan)
{
	return words->kept && words->out_valid == is_out_valid(record) &&
	       words->unreadable == is_unreadable(record) &&
	       !memcmp(words->word, record->word, bytes_of(plan));
}

void call_words_keep(struct call_words *words, const struct wire_call *record,
                     const struct capture_plan *plan)
{
	words->kept = true;
	words->out_valid = is_out_valid(record);
	words->unreadable = is_unreadable(record);
	words_copy(words->word, record->word, bytes_of(plan));
}

void call_words_forget(struct call_words *words)
{
	words->kept = false;
}

void call_words_raw(struct api_raw *raw, const struct wire_call *record,
                    const struct capture_plan *plan)
{
	const uint64_t *word = (const uint64_t *)record->word;

	words_clear(raw, sizeof(*raw));
	memcpy(raw->out, word, sizeof(raw->out));
	words_copy(raw->reg, word + WIRE_AT_REG, plan->regs * sizeof(*word));
	if (plan->stack)
		words_copy(raw->stack, word + WIRE_AT_STACK, plan->stack * sizeof(*word));
	raw->out_valid = is_out_valid(record);
	raw->blob_valid = plan->blob != PLAN_NO_ARG && !is_unreadable(record) &&
	                  (!plan->blob_on_return || raw->out_valid);
	if (raw->blob_valid)
		words_copy(raw->blob, word + WIRE_AT_BLOB, plan->blob_words * sizeof(*word));
}

void call_words_result(struct call *call, const struct wire_call *record, bool returns_status)
{
	uint8_t flags = record->head.flags;

	call->flags = (flags & WIRE_NESTED ? CALL_NESTED : 0) |
	              (flags & WIRE_NO_RETURN ? CALL_NO_RETURN : 0) |
	              (flags & WIRE_UNFINISHED ? CALL_UNFINISHED : 0);
	call->begin_ns = record->begin_ns;
	call->end_ns = call->overhead_ns = call->correlation = 0;
	call->depth = record->head.depth;
	call->result = 0;
	call->kernel = NULL;
	call->stack = NULL;
	call->text = NULL;
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
