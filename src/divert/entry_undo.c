// SPDX-License-Identifier: MIT
#include "divert/entry_undo.h"

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
