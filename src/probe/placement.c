// SPDX-License-Identifier: MIT
#include "probe/placement.h"

#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "base/array.h"

/* How far from the entry a place is looked for: real ones are at 4 (endbr64) and 10 (cmpl). */
#define WALK_INSTRUCTIONS 16
#define WALK_BYTES        64

/* How far jumps are looked for in a function whose size is not known. */
#define UNKNOWN_SIZE 4096

/* ---- what the kernel emulates ---------------------------------------------------------------- */

enum placement_kind {
	KIND_PUSH,
	KIND_NOP,
	KIND_CALL,
	KIND_JMP,
	KIND_JCC,
	KIND_STEPPED, /* single-stepped */
};

static const char *const why_entry[] = {
	[KIND_PUSH] = "entry is push",
	[KIND_NOP] = "entry is nop",
	[KIND_CALL] = "entry is call",
	[KIND_JMP] = "entry is jmp",
	[KIND_JCC] = "entry is conditional jump",
};

static const char *const why_later[] = {
	[KIND_PUSH] = "push with the arguments still in place",
	[KIND_NOP] = "nop with the arguments still in place",
	[KIND_CALL] = "call with the arguments still in place",
	[KIND_JMP] = "jmp with the arguments still in place",
	[KIND_JCC] = "conditional jump with the arguments still in place",
};

/*
 * Follows arch/x86/kernel/uprobes.c: push_setup_xol_ops takes `push` of a 64-bit register with no
 * prefix but REX.B, branch_setup_xol_ops relative calls and jumps. A branch with a 0x66 prefix
 * cannot be probed at all there, and other prefixes (bnd, notrack, branch hints) are not worth
 * finding out about: the length shows that there is none.
 */
static enum placement_kind kind_of(const uint8_t *code, size_t len,
                                   const struct emulation *emulation)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	if (len == 1 && code[0] >= 0x50 && code[0] <= 0x57)
		return KIND_PUSH;
	if (len == 2 && code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57)
		return KIND_PUSH;
	if (len == 1 && code[0] == 0x90)
		return KIND_NOP;
	if (len == sizeof(nop5) && emulation->nop5 && memcmp(code, nop5, sizeof(nop5)) == 0)
		return KIND_NOP;
	if (len == 5 && code[0] == 0xe8)
		return KIND_CALL;
	if ((len == 2 && code[0] == 0xeb) || (len == 5 && code[0] == 0xe9))
		return KIND_JMP;
	if ((len == 2 && code[0] >= 0x70 && code[0] <= 0x7f) ||
	    (len == 6 && code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f))
		return KIND_JCC;
	return KIND_STEPPED;
}

/* ---- what may come before the probe ---------------------------------------------------------- */

/* Instructions that do nothing but what their operands say. All others end the walk. */
static bool is_plain(ZydisMnemonic mnemonic)
{
	static const ZydisMnemonic plain[] = {
		ZYDIS_MNEMONIC_ENDBR64, ZYDIS_MNEMONIC_NOP, ZYDIS_MNEMONIC_CMP,
		ZYDIS_MNEMONIC_TEST,    ZYDIS_MNEMONIC_MOV, ZYDIS_MNEMONIC_MOVZX,
		ZYDIS_MNEMONIC_MOVSX,   ZYDIS_MNEMONIC_LEA, ZYDIS_MNEMONIC_MOVSXD,
		ZYDIS_MNEMONIC_XOR,     ZYDIS_MNEMONIC_AND, ZYDIS_MNEMONIC_OR,
		ZYDIS_MNEMONIC_ADD,     ZYDIS_MNEMONIC_SUB,
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (plain[i] == mnemonic)
			return true;
	return false;
}

/* Why the value of a register may not change before the probe, NULL where it may. */
static const char *register_matters(ZydisRegister reg)
{
	ZydisRegisterClass cls = ZydisRegisterGetClass(reg);

	if (cls == ZYDIS_REGCLASS_FLAGS || cls == ZYDIS_REGCLASS_IP)
		return NULL;
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg)) {
	case ZYDIS_REGISTER_RDI:
	case ZYDIS_REGISTER_RSI:
	case ZYDIS_REGISTER_RDX:
	case ZYDIS_REGISTER_RCX:
	case ZYDIS_REGISTER_R8:
	case ZYDIS_REGISTER_R9:
		return "an argument changes before anything emulated";
	case ZYDIS_REGISTER_RSP:
		return "the stack pointer changes before anything emulated";
	case ZYDIS_REGISTER_RBP: /* stacks are walked from the caller's frame pointer */
		return "the frame pointer changes before anything emulated";
	case ZYDIS_REGISTER_RAX:
	case ZYDIS_REGISTER_RBX:
	case ZYDIS_REGISTER_R10:
	case ZYDIS_REGISTER_R11:
	case ZYDIS_REGISTER_R12:
	case ZYDIS_REGISTER_R13:
	case ZYDIS_REGISTER_R14:
	case ZYDIS_REGISTER_R15:
		return NULL;
	default:
		return "nothing emulated in reach";
	}
}

/*
 * Why the probe may not come after this instruction, NULL where it may. Any write to memory might
 * be one to the stack arguments, unless its address is in the module itself.
 */
static const char *refusal(const ZydisDecodedInstruction *instruction,
                           const ZydisDecodedOperand *operands)
{
	if (instruction->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		return "the function branches before anything emulated";
	for (size_t i = 0; i < instruction->operand_count; i++) {
		const ZydisDecodedOperand *operand = &operands[i];
		const char *why = NULL;

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER)
			why = register_matters(operand->reg.value);
		else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		         operand->mem.base != ZYDIS_REGISTER_RIP)
			why = "memory is written before anything emulated";
		if (why)
			return why;
	}
	return is_plain(instruction->mnemonic) ? NULL : "nothing emulated in reach";
}

/* ---- jumps back ------------------------------------------------------------------------------ */

/*
 * Whether a jump leads to the place or to what runs into it: calls would then be counted more
 * than once. A call of the entry is recursion and counts rightly. Bytes that do not decode are
 * skipped one by one. Jumps through tables are not seen; they do not lead into a prologue.
 */
static bool is_jumped_to(const ZydisDecoder *decoder, const uint8_t *code, size_t len, size_t place)
{
	ZydisDecodedInstruction instruction;
	size_t at = 0;

	while (at < len) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code + at, len - at,
		                                                &instruction))) {
			at++;
			continue;
		}
		at += instruction.length;
		if (instruction.raw.imm[0].is_relative) {
			int64_t target = (int64_t)at + instruction.raw.imm[0].value.s;
			bool recursion = target == 0 && instruction.mnemonic == ZYDIS_MNEMONIC_CALL;

			if (target >= 0 && target <= (int64_t)place && !recursion)
				return true;
		}
	}
	return false;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* The names that assemblers print, where Zydis prefers the processor manual's synonym. */
static const char *mnemonic_name(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JZ:
		return "je";
	case ZYDIS_MNEMONIC_JNZ:
		return "jne";
	case ZYDIS_MNEMONIC_JNB:
		return "jae";
	case ZYDIS_MNEMONIC_JNBE:
		return "ja";
	case ZYDIS_MNEMONIC_JNL:
		return "jge";
	case ZYDIS_MNEMONIC_JNLE:
		return "jg";
	default:
		return ZydisMnemonicGetString(mnemonic);
	}
}

static void name_instruction(const ZydisDecoder *decoder, const uint8_t *code, size_t len,
                             struct placement *placement)
{
	ZydisDecodedInstruction instruction;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code, len, &instruction)))
		return;
	placement->length = instruction.length;
	snprintf(placement->instruction, sizeof(placement->instruction), "%s",
	         mnemonic_name(instruction.mnemonic));
}

/* Where a walk from the entry ended: at an emulated instruction, or for another reason. */
struct end {
	size_t at;
	enum placement_kind kind;
	const char *why;
};

/*
 * Walks to the first emulated instruction. Only that one can be the place: whatever leads back to
 * it leads back to all that follow.
 */
static struct end walk(const ZydisDecoder *decoder, const uint8_t *code, size_t len,
                       const struct emulation *emulation)
{
	struct end end = { 0, KIND_STEPPED, "nothing emulated in reach" };
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction instruction;

	for (int i = 0; i < WALK_INSTRUCTIONS && end.at < WALK_BYTES && end.at < len; i++) {
		const char *why;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code + end.at, len - end.at,
		                                         &instruction, operands))) {
			end.why = "the code does not decode";
			return end;
		}
		end.kind = kind_of(code + end.at, instruction.length, emulation);
		if (end.kind != KIND_STEPPED) {
			end.why = end.at ? why_later[end.kind] : why_entry[end.kind];
			return end;
		}
		why = refusal(&instruction, operands);
		if (why) {
			end.why = why;
			return end;
		}
		end.at += instruction.length;
	}
	return end;
}

void placement_choose(const uint8_t *code, size_t len, uint64_t size, enum api_abi abi,
                      const struct emulation *emulation, struct placement *placement)
{
	ZydisDecoder decoder;
	struct end end;

	memset(placement, 0, sizeof(*placement));
	if (abi != ABI_X86_64) {
		placement->why = "probes go on the entry on this machine";
		placement->length = 4;
		return;
	}
	if (size && size < len)
		len = size;
	else if (!size && len > UNKNOWN_SIZE)
		len = UNKNOWN_SIZE;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	end = walk(&decoder, code, len, emulation);
	placement->why = end.why;
	placement->emulated = end.kind != KIND_STEPPED;
	/* Where something jumps back to an emulated entry, no place is better than that. */
	if (placement->emulated && end.at) {
		if (is_jumped_to(&decoder, code, len, end.at)) {
			placement->emulated = false;
			placement->why = "a jump leads back to before the emulated instruction";
		} else {
			placement->skip = (uint32_t)end.at;
		}
	}
	if (len)
		name_instruction(&decoder, code + placement->skip, len - placement->skip,
		                 placement);
}
