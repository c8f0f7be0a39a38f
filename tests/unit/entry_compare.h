/* SPDX-License-Identifier: MIT */
/*
 * Whether moved code is the original: both are decoded, and every instruction compared operand by
 * operand, with what is relative as absolute addresses. It shares nothing with src/divert.
 */
#ifndef CUSCOPE_TESTS_ENTRY_COMPARE_H
#define CUSCOPE_TESTS_ENTRY_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "divert/entry_move.h"

struct compared {
	ZydisDecodedInstruction raw;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t address;
};

static inline bool compare_decode(const uint8_t *bytes, size_t len, uint64_t address,
                                  struct compared *one)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	one->address = address;
	/* Branches of another encoding are those of the first Xeon Phi: no instructions elsewhere.
	 */
	return ZYAN_SUCCESS(
		       ZydisDecoderDecodeFull(&decoder, bytes, len, &one->raw, one->operand)) &&
	       (one->raw.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE ||
	        one->raw.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY);
}

static inline uint64_t compare_absolute(const struct compared *one, size_t i)
{
	uint64_t address = 0;

	ZydisCalcAbsoluteAddress(&one->raw, &one->operand[i], one->address, &address);
	return address;
}

static inline bool compare_branches(const struct compared *one)
{
	return one->operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       one->operand[0].imm.is_relative;
}

static inline const char *compare_operands(const struct compared *a, const struct compared *b)
{
	for (size_t i = 0; i < a->raw.operand_count; i++) {
		const ZydisDecodedOperand *x = &a->operand[i], *y = &b->operand[i];

		if (x->type != y->type || x->size != y->size || x->actions != y->actions)
			return "another kind of operand";
		if (x->type == ZYDIS_OPERAND_TYPE_REGISTER && x->reg.value != y->reg.value)
			return "another register";
		if (x->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && x->imm.value.u != y->imm.value.u)
			return "another immediate";
		if (x->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (x->mem.base != y->mem.base || x->mem.index != y->mem.index ||
		    x->mem.scale != y->mem.scale || x->mem.segment != y->mem.segment)
			return "memory by other registers";
		if (x->mem.base == ZYDIS_REGISTER_RIP
		            ? compare_absolute(a, i) != compare_absolute(b, i)
		            : x->mem.disp.value != y->mem.disp.value)
			return "memory elsewhere";
	}
	return NULL;
}

/*
 * Prefixes that mean something. That of MPX, which short jumps do not take and long ones do, is of
 * processors for which Linux 5.6 dropped it.
 */
#define COMPARED_ATTRIBUTES                                                                        \
	(ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |                    \
	 ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_NOTRACK | ZYDIS_ATTRIB_HAS_SEGMENT)

/* The loop instructions become three: itself over the next one, a jump on, and one to the target.
 */
static inline const char *compare_loop(const struct entry_move *move, size_t *at, uint64_t base,
                                       const struct compared *original,
                                       const struct compared *moved)
{
	uint64_t over, on, target;
	struct compared next;

	over = compare_absolute(moved, 0);
	*at += moved->raw.length;
	if (!compare_decode(move->moved + *at, move->moved_bytes - *at, base + *at, &next) ||
	    next.raw.mnemonic != ZYDIS_MNEMONIC_JMP || !compare_branches(&next))
		return "no jump behind a loop";
	on = compare_absolute(&next, 0);
	*at += next.raw.length;
	if (over != base + *at ||
	    !compare_decode(move->moved + *at, move->moved_bytes - *at, base + *at, &next) ||
	    next.raw.mnemonic != ZYDIS_MNEMONIC_JMP || !compare_branches(&next))
		return "a loop leads elsewhere";
	target = compare_absolute(&next, 0);
	*at += next.raw.length;
	return on == base + *at && target == compare_absolute(original, 0)
	               ? NULL
	               : "a loop leads elsewhere";
}

static inline const char *compare_one(const struct entry_move *move, size_t *at, uint64_t base,
                                      const struct compared *original)
{
	struct compared moved;

	if (!compare_decode(move->moved + *at, move->moved_bytes - *at, base + *at, &moved))
		return "the moved code does not decode";
	if (moved.raw.mnemonic != original->raw.mnemonic ||
	    moved.raw.operand_count != original->raw.operand_count ||
	    (moved.raw.attributes ^ original->raw.attributes) & COMPARED_ATTRIBUTES)
		return "another instruction";
	if (compare_branches(original)) {
		if (original->raw.meta.category == ZYDIS_CATEGORY_COND_BR &&
		    original->raw.opcode >= 0xe0 && original->raw.opcode <= 0xe3)
			return compare_loop(move, at, base, original, &moved);
		*at += moved.raw.length;
		return compare_branches(&moved) &&
		                       compare_absolute(&moved, 0) == compare_absolute(original, 0)
		               ? NULL
		               : "a branch leads elsewhere";
	}
	*at += moved.raw.length;
	return compare_operands(original, &moved);
}

static inline const char *compare_written(const struct entry_code *code,
                                          const struct entry_places *places,
                                          const struct entry_move *move)
{
	struct compared jump;

	if (move->bytes < ENTRY_JUMP_BYTES || move->bytes > ENTRY_WRITTEN_MAX ||
	    move->skip + move->bytes > code->bytes)
		return "too few or too many bytes are written";
	if (!compare_decode(move->written, move->bytes, code->address + move->skip, &jump) ||
	    jump.raw.mnemonic != ZYDIS_MNEMONIC_JMP || !compare_branches(&jump) ||
	    compare_absolute(&jump, 0) != places->pad)
		return "the entry does not jump to the pad";
	for (size_t i = jump.raw.length; i < move->bytes; i++)
		if (move->written[i] != 0x90)
			return "no padding behind the jump";
	return NULL;
}

/* The probe's instruction is whole, and the jump on the right side of it. */
static inline const char *compare_probe(const struct entry_code *code,
                                        const struct entry_move *move)
{
	struct compared probed;

	if (!code->probed)
		return move->jump == JUMP_AT_ENTRY ? NULL : "a jump for a probe that is none";
	if (!compare_decode(code->file + code->probe, code->size - code->probe,
	                    code->address + code->probe, &probed))
		return "the probed instruction does not decode";
	if (move->jump == JUMP_BEFORE_PROBE)
		return move->skip + move->bytes <= code->probe ? NULL : "the probe is written over";
	if (move->jump != JUMP_BEHIND_PROBE || move->skip < code->probe + probed.raw.length)
		return "the probe is written over";
	return NULL;
}

/* NULL, or what is wrong with a move that was made. */
static inline const char *entry_compare(const struct entry_code *code,
                                        const struct entry_places *places,
                                        const struct entry_move *move)
{
	size_t end = move->skip + move->bytes, at = 0, moved_at;
	struct compared original = { 0 }, back;
	const char *why = compare_written(code, places, move);

	if (!why)
		why = compare_probe(code, move);
	if (code->size >= 4 && !memcmp(code->file, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	moved_at = at;
	if (!why && memcmp(move->moved, code->file, at) != 0)
		why = "no endbr64 before the moved code";
	while (!why && at < code->size &&
	       (at < end || (move->jump == JUMP_BEFORE_PROBE && at <= move->probe))) {
		uint32_t forward = UINT32_MAX;
		int64_t backward = -1;

		entry_move_step(move, at, &forward);
		if ((at >= move->skip && at < end && forward == UINT32_MAX) ||
		    (forward != UINT32_MAX && forward != moved_at) ||
		    !entry_move_backward(move, (uint32_t)moved_at, &backward) ||
		    backward != (int64_t)at)
			return "the table of places is wrong";
		if (!compare_decode(code->file + at, code->size - at, code->address + at,
		                    &original))
			return "what was moved does not decode";
		at += original.raw.length;
		why = compare_one(move, &moved_at, places->moved, &original);
	}
	if (why)
		return why;
	if (at < end && at != code->size)
		return "an instruction is cut";
	if (original.raw.meta.category == ZYDIS_CATEGORY_RET ||
	    original.raw.mnemonic == ZYDIS_MNEMONIC_JMP)
		return moved_at == move->moved_bytes ? NULL : "more than was moved";
	if (at < end ||
	    !compare_decode(move->moved + moved_at, move->moved_bytes - moved_at,
	                    places->moved + moved_at, &back) ||
	    back.raw.mnemonic != ZYDIS_MNEMONIC_JMP || !compare_branches(&back) ||
	    compare_absolute(&back, 0) != code->address + at ||
	    moved_at + back.raw.length != move->moved_bytes)
		return "no jump back";
	return NULL;
}

#endif
