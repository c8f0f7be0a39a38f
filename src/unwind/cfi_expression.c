// SPDX-License-Identifier: MIT
#include "unwind/cfi_expression.h"

enum { /* DW_OP_* */
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_CONST1S = 0x09,
       OP_CONST2U = 0x0a,
       OP_CONST2S = 0x0b,
       OP_CONST4U = 0x0c,
       OP_CONST4S = 0x0d,
       OP_PLUS = 0x22,
       OP_PLUS_UCONST = 0x23,
       OP_LIT0 = 0x30,
       OP_LIT15 = 0x3f,
       OP_LIT31 = 0x4f,
       OP_BREG0 = 0x70,
       OP_BREG31 = 0x8f,
       OP_BREGX = 0x92,
};

/* A register and an offset; false where the expression does not begin with them. */
static bool read_register(struct cfi_bytes *expression, uint64_t *number, int64_t *offset)
{
	uint8_t code = cfi_u8(expression);

	if (code == OP_BREGX)
		*number = cfi_uleb128(expression);
	else if (code >= OP_BREG0 && code <= OP_BREG31)
		*number = code - OP_BREG0;
	else
		return false;
	*offset = cfi_sleb128(expression);
	return !expression->bad;
}

/* A number that is put on the stack; false where `code` does no such thing. */
static bool read_number(struct cfi_bytes *expression, uint8_t code, int64_t *number)
{
	if (code >= OP_LIT0 && code <= OP_LIT31)
		*number = code - OP_LIT0;
	else if (code == OP_CONST1U || code == OP_CONST2U || code == OP_CONST4U)
		*number = (int64_t)cfi_unsigned(expression, 1u << (code - OP_CONST1U) / 2);
	else if (code == OP_CONST1S || code == OP_CONST2S || code == OP_CONST4S)
		*number = cfi_signed(expression, 1u << (code - OP_CONST1S) / 2);
	else
		return false;
	return !expression->bad;
}

/* What is added to the value so far: "plus_uconst 8", or "lit8 plus". */
static bool read_sum(struct cfi_bytes *expression, uint8_t code, int64_t *sum)
{
	int64_t number;

	if (code == OP_PLUS_UCONST)
		number = (int64_t)cfi_uleb128(expression);
	else if (!read_number(expression, code, &number) || cfi_u8(expression) != OP_PLUS)
		return false;
	return !expression->bad && !__builtin_add_overflow(*sum, number, sum);
}

/* register + offset, or *(register + offset) + add */
static bool read_address(struct cfi_bytes expression, struct cfi_state *state)
{
	if (!read_register(&expression, &state->cfa_register, &state->cfa_offset))
		return false;
	state->cfa = CFI_CFA_REGISTER;
	state->cfa_add = 0;
	while (cfi_left(&expression)) {
		bool is_read = state->cfa == CFI_CFA_AT;
		uint8_t code = cfi_u8(&expression);

		if (code == OP_DEREF && !is_read)
			state->cfa = CFI_CFA_AT;
		else if (!read_sum(&expression, code,
		                   is_read ? &state->cfa_add : &state->cfa_offset))
			return false;
	}
	return true;
}

/*
 * sp + 8 + ((address & 15 >= N) << 3), as linkers write it for a PLT: each of its entries pushes
 * a number, in the middle of its 16 bytes. N is 11, or less where entries begin with endbr64.
 */
static bool read_plt(struct cfi_bytes expression, struct cfi_state *state)
{
	static const uint8_t plt[] = {
		0x77,    8, /* breg7 (rsp) 8 */
		0x80,    0, /* breg16 (rip) 0 */
		0x3f,       /* lit15 */
		0x1a,       /* and */
		OP_LIT0,    /* N is added here */
		0x2a,       /* ge */
		0x33,       /* lit3 */
		0x24,       /* shl */
		OP_PLUS,
	};
	const size_t n_at = 6;
	const uint8_t *bytes = expression.at;

	if (cfi_left(&expression) != sizeof(plt) || memcmp(bytes, plt, n_at) != 0 ||
	    memcmp(bytes + n_at + 1, plt + n_at + 1, sizeof(plt) - n_at - 1) != 0)
		return false;
	state->cfa = CFI_CFA_PLT;
	state->cfa_offset = bytes[n_at] - OP_LIT0;
	return bytes[n_at] >= OP_LIT0 && bytes[n_at] <= OP_LIT15;
}

void cfi_expression_cfa(struct cfi_bytes expression, struct cfi_state *state)
{
	if (!read_plt(expression, state) && !read_address(expression, state))
		state->cfa = CFI_CFA_OTHER;
}

struct cfi_place cfi_expression_place(const struct cfi_machine *machine,
                                      struct cfi_bytes expression)
{
	uint64_t number;
	int64_t offset;

	if (!read_register(&expression, &number, &offset) || cfi_left(&expression) ||
	    number != machine->fp)
		return (struct cfi_place){ CFI_OTHER, 0 };
	return (struct cfi_place){ CFI_AT_FP, offset };
}
