// SPDX-License-Identifier: MIT
#include "divert/entry_body.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* ---- entry decode -------------------------------------------------------------------------- */

void entry_decoder_init(ZydisDecoder *decoder)
{
	ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static enum entry_flow flow_of(const ZydisDecodedInstruction *raw)
{
	bool direct = raw->raw.imm[0].is_relative;

	switch (raw->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return direct ? FLOW_JUMPS : FLOW_BY_VALUE;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return FLOW_ENDS;
	default:
		break;
	}
	switch (raw->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return FLOW_ENDS;
	case ZYDIS_CATEGORY_CALL:
		return FLOW_CALLS;
	default:
		return direct ? FLOW_BRANCHES : FLOW_ON;
	}
}

/* The last byte of an instruction is that of its last immediate or displacement. */
static int64_t decode_distance(const ZydisDecodedInstruction *raw)
{
	return raw->raw.imm[0].is_relative ? raw->raw.imm[0].value.s : raw->raw.disp.value;
}

bool entry_decode(const ZydisDecoder *decoder, const uint8_t *code, size_t bytes, size_t at,
                  struct entry_instruction *instruction)
{
	ZydisDecodedInstruction *raw = &instruction->raw;

	if (at >= bytes ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code + at, bytes - at, raw)))
		return false;
	/* jkzd and jknzd, which Zydis knows of the first Xeon Phi: no other processor takes them.
	 */
	if (raw->raw.imm[0].is_relative && raw->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	instruction->at = at;
	instruction->flow = flow_of(raw);
	instruction->has_target = raw->raw.imm[0].is_relative;
	instruction->has_operand =
		!instruction->has_target && raw->attributes & ZYDIS_ATTRIB_IS_RELATIVE;
	/* Intel's processors ignore the prefix, AMD's cut the target to 16 bits. With REX.W both
	 * ignore it, and so calls of __tls_get_addr are written. */
	instruction->unclear = instruction->has_target &&
	                       raw->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE &&
	                       !(raw->attributes & ZYDIS_ATTRIB_HAS_REX && raw->raw.rex.W);
	instruction->target = (int64_t)at + raw->length + decode_distance(raw);
	return true;
}

/* ---- entry body ---------------------------------------------------------------------------- */

#define HISTORY 16 /* instructions in which a register is looked for that is jumped to */
#define LISTED  1  /* begins an instruction, read from one end to the other */
#define REACHED 2  /* read along branches */

struct entry_body {
	ZydisDecoder decoder;
	const uint8_t *code;
	size_t size;
	int64_t skip, taken;
	uint8_t *seen;     /* a byte for each of the code: LISTED, REACHED */
	uint32_t *waiting; /* where the flow goes on; each offset once at most */
	size_t n_waiting;
	uint32_t history[HISTORY]; /* offsets of the instructions listed last */
	size_t n_history;
	uint32_t at; /* of the instruction that is looked at */
};

/* ---- jumps to what a register or memory says ------------------------------------------------- */

static bool is_same_register(ZydisRegister a, ZydisRegister b)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, a) ==
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, b);
}

static bool writes(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operands,
                   ZydisRegister reg)
{
	for (size_t i = 0; i < instruction->operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    is_same_register(operands[i].reg.value, reg))
			return true;
	return false;
}

/* A pointer that lies somewhere; a table is what an index chooses from. */
static bool is_pointer(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.index == ZYDIS_REGISTER_NONE && operand->size == 64;
}

/*
 * Whether the register had its value from a pointer, by the instructions listed before. Only that
 * is a call in the end of a function: a sum, or what was chosen by an index, is a jump by table.
 */
static bool holds_pointer(const struct entry_body *body, ZydisRegister reg)
{
	size_t n = body->n_history < HISTORY ? body->n_history : HISTORY;

	for (size_t i = 1; i <= n; i++) {
		uint32_t at = body->history[(body->n_history - i) % HISTORY];
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction instruction;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&body->decoder, body->code + at,
		                                         body->size - at, &instruction, operands)))
			return false;
		if (writes(&instruction, operands, reg)) {
			if (instruction.mnemonic != ZYDIS_MNEMONIC_MOV)
				return false;
			if (operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
				return is_pointer(&operands[1]);
			reg = operands[1].reg.value;
		} else if (instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
		           instruction.meta.category != ZYDIS_CATEGORY_COND_BR) {
			return false;
		}
	}
	return false;
}

static bool is_table_jump(const struct entry_body *body, const struct entry_instruction *jump,
                          bool listed)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction instruction;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&body->decoder, body->code + jump->at,
	                                         body->size - jump->at, &instruction, operands)))
		return true;
	if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		return !listed || !holds_pointer(body, operands[0].reg.value);
	return !is_pointer(&operands[0]);
}

/* ---- one instruction ------------------------------------------------------------------------- */

/* How many bytes it uses in memory: 64 at most, but for states of the processor. */
static int64_t operand_bytes(const struct entry_body *body,
                             const struct entry_instruction *instruction)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction raw;
	int64_t bytes = 1;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&body->decoder, body->code + instruction->at,
	                                         body->size - instruction->at, &raw, operands)))
		return INT32_MAX;
	for (size_t i = 0; i < raw.operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].size / 8 > bytes)
			bytes = operands[i].size / 8;
	return bytes;
}

/* Whether an operand reaches into the first bytes, or their address is taken. */
static bool uses_itself(const struct entry_body *body, const struct entry_instruction *instruction)
{
	bool address_only = instruction->raw.mnemonic == ZYDIS_MNEMONIC_LEA;

	if (instruction->target >= body->taken || (address_only && instruction->target <= 0))
		return false; /* 0: a pointer to the function */
	return instruction->target >= 0 ||
	       instruction->target + operand_bytes(body, instruction) > 0;
}

static bool leads_inside(const struct entry_body *body, const struct entry_instruction *instruction)
{
	if (instruction->target < 0 || instruction->target >= body->taken)
		return false;
	return instruction->flow != FLOW_CALLS ||
	       (instruction->target != 0 && instruction->target != body->skip);
}

static enum entry_refusal judge(struct entry_body *body,
                                const struct entry_instruction *instruction, bool listed)
{
	body->at = (uint32_t)instruction->at;
	if (instruction->has_operand && uses_itself(body, instruction))
		return ENTRY_READS_ITSELF;
	if (instruction->has_target && leads_inside(body, instruction))
		return ENTRY_JUMPED_INTO;
	if (instruction->unclear && !listed)
		return ENTRY_UNDECODABLE;
	if (instruction->flow == FLOW_BY_VALUE && is_table_jump(body, instruction, listed))
		return ENTRY_TABLE_JUMP;
	return ENTRY_MOVABLE;
}

/* ---- from one end to the other --------------------------------------------------------------- */

/* Bytes that are no instruction are data between the code, and skipped one by one. */
static enum entry_refusal list(struct entry_body *body)
{
	struct entry_instruction instruction;
	enum entry_refusal refusal;
	size_t at = 0;

	while (at < body->size) {
		if (!entry_decode(&body->decoder, body->code, body->size, at, &instruction)) {
			at++;
			continue;
		}
		body->seen[at] |= LISTED;
		refusal = judge(body, &instruction, true);
		if (refusal)
			return refusal;
		body->history[body->n_history++ % HISTORY] = (uint32_t)at;
		at += instruction.raw.length;
	}
	return ENTRY_MOVABLE;
}

/* ---- along branches -------------------------------------------------------------------------- */

static void go_on(struct entry_body *body, int64_t at)
{
	if (at < 0 || at >= (int64_t)body->size || body->seen[at] & REACHED)
		return;
	body->seen[at] |= REACHED;
	body->waiting[body->n_waiting++] = (uint32_t)at;
}

static enum entry_refusal follow(struct entry_body *body)
{
	struct entry_instruction instruction;
	enum entry_refusal refusal;

	go_on(body, 0);
	while (body->n_waiting) {
		uint32_t at = body->waiting[--body->n_waiting];

		body->at = at;
		if (!entry_decode(&body->decoder, body->code, body->size, at, &instruction))
			return ENTRY_UNDECODABLE;
		/* What was listed was judged then, with what came before it. */
		if (instruction.unclear || !(body->seen[at] & LISTED)) {
			refusal = judge(body, &instruction, false);
			if (refusal)
				return refusal;
		}
		if (instruction.has_target)
			go_on(body, instruction.target);
		if (instruction.flow <= FLOW_BRANCHES || instruction.flow == FLOW_CALLS)
			go_on(body, (int64_t)at + instruction.raw.length);
	}
	return ENTRY_MOVABLE;
}

enum entry_refusal entry_body_check(const uint8_t *code, size_t size, uint32_t skip, uint32_t taken,
                                    uint32_t *at)
{
	struct entry_body body = { .code = code, .size = size, .skip = skip, .taken = taken };
	enum entry_refusal refusal;

	entry_decoder_init(&body.decoder);
	body.seen = xcalloc(size, 1);
	body.waiting = xmalloc(size * sizeof(*body.waiting));
	refusal = list(&body);
	if (!refusal)
		refusal = follow(&body);
	*at = body.at;
	free(body.seen);
	free(body.waiting);
	return refusal;
}
