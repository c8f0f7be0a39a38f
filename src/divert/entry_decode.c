// SPDX-License-Identifier: MIT
#include "divert/entry_decode.h"

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
static int64_t distance(const ZydisDecodedInstruction *raw)
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
	instruction->target = (int64_t)at + raw->length + distance(raw);
	return true;
}
