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

/* Of those that a call may change, and that carry no argument. rax counts vector registers for
 * functions with `...`: one that sets it does not ask. 0: another register. */
static unsigned scratch_bit(ZydisRegister reg)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
	case ZYDIS_REGISTER_RAX:
		return 1;
	case ZYDIS_REGISTER_R10:
		return 2;
	case ZYDIS_REGISTER_R11:
		return 4;
	default:
		return 0;
	}
}

static bool is_whole(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_GPR32 ||
	        ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_GPR64);
}

static void note_reads(struct entry_undo *undo, const ZydisDecodedOperand *operands, size_t count)
{
	unsigned read = 0;

	for (size_t i = 0; i < count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
			read |= scratch_bit(operand->mem.base) | scratch_bit(operand->mem.index);
		else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		         operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			read |= scratch_bit(operand->reg.value);
	}
	undo->read |= read & ~undo->set;
}

/* Its first operand is set, and to nothing that it had before. */
static bool sets(struct entry_undo *undo, const ZydisDecodedOperand *to)
{
	unsigned bit = is_whole(to) ? scratch_bit(to->reg.value) : 0;

	if (!bit || undo->read & bit)
		return false;
	undo->set |= bit;
	return true;
}

static bool goes_down(struct entry_undo *undo, int64_t bytes)
{
	if (bytes <= 0 || bytes > ENTRY_UNDONE_MAX - undo->stack)
		return false;
	undo->stack += (uint32_t)bytes;
	return true;
}

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegisterClass cls)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetClass(operand->reg.value) == cls;
}

/* Below what the stack pointer was at the entry: nobody else's, and stored again. */
static bool stores_below(struct entry_undo *undo, const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperand *to = &operand[0];
	int64_t bytes = to->size / 8;

	if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || to->mem.base != ZYDIS_REGISTER_RSP ||
	    to->mem.segment != ZYDIS_REGISTER_SS || to->mem.index != ZYDIS_REGISTER_NONE ||
	    to->mem.disp.value < -(int64_t)ENTRY_UNDONE_MAX ||
	    to->mem.disp.value + bytes > undo->stack)
		return false;
	note_reads(undo, operand + 1, 1);
	return true;
}

bool entry_undo_add(struct entry_undo *undo, const ZydisDecoder *decoder, const uint8_t *code,
                    size_t bytes)
{
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction raw;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code, bytes, &raw, operand)))
		return false;
	switch (raw.mnemonic) {
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_NOP:
		return true;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		note_reads(undo, operand, raw.operand_count_visible);
		return true;
	case ZYDIS_MNEMONIC_PUSH:
		note_reads(undo, operand, raw.operand_count_visible);
		return is_register(&operand[0], ZYDIS_REGCLASS_GPR64) && goes_down(undo, 8);
	case ZYDIS_MNEMONIC_SUB:
		return is_register(&operand[0], ZYDIS_REGCLASS_GPR64) &&
		       operand[0].reg.value == ZYDIS_REGISTER_RSP &&
		       operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		       goes_down(undo, operand[1].imm.value.s);
	case ZYDIS_MNEMONIC_MOV:
		if (stores_below(undo, operand))
			return true;
		/* fall through */
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_LEA:
		note_reads(undo, operand + 1, raw.operand_count_visible - 1u);
		return sets(undo, &operand[0]);
	case ZYDIS_MNEMONIC_XOR: /* with itself, which is zero */
		return is_whole(&operand[1]) && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       operand[0].reg.value == operand[1].reg.value && sets(undo, &operand[0]);
	default:
		return false;
	}
}
