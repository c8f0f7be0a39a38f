// SPDX-License-Identifier: MIT
#include "unwind/cfi_program.h"

#include <elf.h>

#include "base/array.h"

/* ---- cfi expression ------------------------------------------------------------------------ */

/*
 * DWARF expressions, in the shapes that call frame information has them: those of linkers for the
 * PLT, those of compilers for functions that align their stack, those of assembly code that keeps
 * the caller's stack pointer in memory. Others are told as such, and nothing is computed.
 */

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

/* Sets what the expression says of the CFA. */
static void cfi_expression_cfa(struct cfi_bytes expression, struct cfi_state *state)
{
	if (!read_plt(expression, state) && !read_address(expression, state))
		state->cfa = CFI_CFA_OTHER;
}

/* Where a register is, by an expression that gives the address. */
static struct cfi_place cfi_expression_place(const struct cfi_machine *machine,
                                             struct cfi_bytes expression)
{
	uint64_t number;
	int64_t offset;

	if (!read_register(&expression, &number, &offset) || cfi_left(&expression) ||
	    number != machine->fp)
		return (struct cfi_place){ CFI_OTHER, 0 };
	return (struct cfi_place){ CFI_AT_FP, offset };
}

/* ---- cfi program --------------------------------------------------------------------------- */

/* How often a program may remember its state before it restores one. Compilers do it once. */
#define REMEMBERED_MAX 16

enum { /* DW_CFA_* */
       CFA_NOP = 0x00,
       CFA_SET_LOC = 0x01,
       CFA_ADVANCE_LOC1 = 0x02,
       CFA_ADVANCE_LOC2 = 0x03,
       CFA_ADVANCE_LOC4 = 0x04,
       CFA_OFFSET_EXTENDED = 0x05,
       CFA_RESTORE_EXTENDED = 0x06,
       CFA_UNDEFINED = 0x07,
       CFA_SAME_VALUE = 0x08,
       CFA_REGISTER = 0x09,
       CFA_REMEMBER_STATE = 0x0a,
       CFA_RESTORE_STATE = 0x0b,
       CFA_DEF_CFA = 0x0c,
       CFA_DEF_CFA_REGISTER = 0x0d,
       CFA_DEF_CFA_OFFSET = 0x0e,
       CFA_DEF_CFA_EXPRESSION = 0x0f,
       CFA_EXPRESSION = 0x10,
       CFA_OFFSET_EXTENDED_SF = 0x11,
       CFA_DEF_CFA_SF = 0x12,
       CFA_DEF_CFA_OFFSET_SF = 0x13,
       CFA_VAL_OFFSET = 0x14,
       CFA_VAL_OFFSET_SF = 0x15,
       CFA_VAL_EXPRESSION = 0x16,
       CFA_MIPS_ADVANCE_LOC8 = 0x1d,
       CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
       CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
       CFA_GNU_ARGS_SIZE = 0x2e,
       CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
       /* With an operand in the low six bits. */
       CFA_ADVANCE_LOC = 0x40,
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
       CFA_OPERAND = 0x3f,
};

struct runner {
	struct cfi_run *run;
	struct cfi_state *state;
	struct cfi_state remembered[REMEMBERED_MAX];
	size_t n_remembered;
	bool ended; /* by who is given the rows, or at the function's end */
};

const struct cfi_machine *cfi_machine_of(uint16_t elf)
{
	static const struct cfi_machine machines[] = {
		{ .elf = EM_X86_64, .fp = 6, .sp = 7, .ra = 16 },
		{ .elf = EM_AARCH64, .fp = 29, .sp = 31, .ra = 30 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		if (machines[i].elf == elf)
			return &machines[i];
	}
	return NULL;
}

/* Products that are too large come out as some number, which is as wrong as what was written. */
static int64_t factored(const struct runner *runner, uint64_t operand)
{
	return (int64_t)(operand * (uint64_t)runner->run->cie->data_factor);
}

/* ---- registers ------------------------------------------------------------------------------- */

/* NULL for those that stacks are not walked by. */
static struct cfi_place *place_of(const struct cfi_machine *machine, struct cfi_state *state,
                                  uint64_t number)
{
	if (number == machine->fp)
		return &state->fp;
	if (number == machine->ra)
		return &state->ra;
	return number == machine->sp ? &state->sp : NULL;
}

static void save(struct runner *runner, uint64_t number, enum cfi_saved saved, int64_t offset)
{
	struct cfi_place *place = place_of(runner->run->machine, runner->state, number);

	if (place)
		*place = (struct cfi_place){ saved, offset };
}

static void restore(struct runner *runner, uint64_t number)
{
	struct cfi_place *place = place_of(runner->run->machine, runner->state, number);
	struct cfi_state initial = { 0 };

	if (!place)
		return;
	if (runner->run->initial)
		initial = *runner->run->initial;
	*place = *place_of(runner->run->machine, &initial, number);
}

/* The value is CFA + offset, and not in memory: for sp that is so anyway where the offset is 0. */
static void save_value(struct runner *runner, uint64_t number, int64_t offset)
{
	if (number == runner->run->machine->sp && !offset)
		save(runner, number, CFI_UNSAID, 0);
	else
		save(runner, number, CFI_OTHER, 0);
}

static void save_by_expression(struct runner *runner, uint64_t number, struct cfi_bytes expression)
{
	struct cfi_place place = cfi_expression_place(runner->run->machine, expression);

	save(runner, number, place.saved, place.offset);
}

/* ---- the CFA --------------------------------------------------------------------------------- */

static void set_cfa(struct runner *runner, uint64_t number, int64_t offset)
{
	runner->state->cfa = CFI_CFA_REGISTER;
	runner->state->cfa_register = number;
	runner->state->cfa_offset = offset;
}

/* Only a part of what is there already can be changed; of an expression none. */
static bool change_cfa(struct runner *runner, uint64_t number, int64_t offset)
{
	if (runner->state->cfa != CFI_CFA_REGISTER)
		return false;
	set_cfa(runner, number, offset);
	return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

static inline bool move_to(struct runner *runner, uint64_t to)
{
	struct cfi_run *run = runner->run;

	if (to < run->at)
		return false;
	if (to > run->end)
		to = run->end;
	if (to > run->at && run->row && !run->row(run->data, run->at, to, runner->state))
		runner->ended = true;
	run->at = to;
	if (run->row && to == run->end)
		runner->ended = true;
	return true;
}

static inline bool advance(struct runner *runner, uint64_t operand)
{
	uint64_t distance, to;

	if (__builtin_mul_overflow(operand, runner->run->cie->code_factor, &distance) ||
	    __builtin_add_overflow(runner->run->at, distance, &to))
		return false;
	return move_to(runner, to);
}

static bool remember(struct runner *runner)
{
	if (runner->n_remembered == REMEMBERED_MAX)
		return false;
	runner->remembered[runner->n_remembered++] = *runner->state;
	return true;
}

static bool recall(struct runner *runner)
{
	if (!runner->n_remembered)
		return false;
	*runner->state = runner->remembered[--runner->n_remembered];
	return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static bool run_place(struct runner *runner, struct cfi_bytes *program, uint8_t code)
{
	switch (code) {
	case CFA_SET_LOC: {
		const struct cfi_run *run = runner->run;
		uint64_t to = cfi_pointer(run->section, program, run->cie->pc_encoding);

		return !program->bad && move_to(runner, to);
	}
	case CFA_ADVANCE_LOC1:
		return advance(runner, cfi_unsigned(program, 1));
	case CFA_ADVANCE_LOC2:
		return advance(runner, cfi_unsigned(program, 2));
	case CFA_ADVANCE_LOC4:
		return advance(runner, cfi_unsigned(program, 4));
	case CFA_MIPS_ADVANCE_LOC8:
		return advance(runner, cfi_unsigned(program, 8));
	}
	return false;
}

static bool run_cfa(struct runner *runner, struct cfi_bytes *program, uint8_t code)
{
	const struct cfi_state *state = runner->state;
	uint64_t number;

	switch (code) {
	case CFA_DEF_CFA:
		number = cfi_uleb128(program);
		set_cfa(runner, number, (int64_t)cfi_uleb128(program));
		return true;
	case CFA_DEF_CFA_SF:
		number = cfi_uleb128(program);
		set_cfa(runner, number, factored(runner, (uint64_t)cfi_sleb128(program)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		return change_cfa(runner, cfi_uleb128(program), state->cfa_offset);
	case CFA_DEF_CFA_OFFSET:
		return change_cfa(runner, state->cfa_register, (int64_t)cfi_uleb128(program));
	case CFA_DEF_CFA_OFFSET_SF:
		return change_cfa(runner, state->cfa_register,
		                  factored(runner, (uint64_t)cfi_sleb128(program)));
	case CFA_DEF_CFA_EXPRESSION:
		cfi_expression_cfa(cfi_part(program, cfi_uleb128(program)), runner->state);
		return true;
	}
	return false;
}

static bool run_register(struct runner *runner, struct cfi_bytes *program, uint8_t code)
{
	uint64_t number = cfi_uleb128(program);

	switch (code) {
	case CFA_OFFSET_EXTENDED:
		save(runner, number, CFI_AT_CFA, factored(runner, cfi_uleb128(program)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		save(runner, number, CFI_AT_CFA, factored(runner, (uint64_t)cfi_sleb128(program)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		save(runner, number, CFI_AT_CFA, factored(runner, -cfi_uleb128(program)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore(runner, number);
		return true;
	case CFA_UNDEFINED:
		save(runner, number, CFI_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		save(runner, number, CFI_SAME, 0);
		return true;
	case CFA_REGISTER:
		cfi_uleb128(program);
		save(runner, number, CFI_OTHER, 0);
		return true;
	case CFA_VAL_OFFSET:
		save_value(runner, number, factored(runner, cfi_uleb128(program)));
		return true;
	case CFA_VAL_OFFSET_SF:
		save_value(runner, number, factored(runner, (uint64_t)cfi_sleb128(program)));
		return true;
	case CFA_EXPRESSION:
		save_by_expression(runner, number, cfi_part(program, cfi_uleb128(program)));
		return true;
	case CFA_VAL_EXPRESSION:
		cfi_skip(program, cfi_uleb128(program));
		save(runner, number, CFI_OTHER, 0);
		return true;
	}
	return false;
}

static bool run_other(struct runner *runner, struct cfi_bytes *program, uint8_t code)
{
	switch (code) {
	case CFA_NOP:
		return true;
	case CFA_REMEMBER_STATE:
		return remember(runner);
	case CFA_RESTORE_STATE:
		return recall(runner);
	case CFA_GNU_ARGS_SIZE: /* what a call pushed, for landing pads */
		cfi_uleb128(program);
		return true;
	case CFA_AARCH64_NEGATE_RA_STATE: /* that a return address is signed shows in itself */
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return runner->run->machine->elf == EM_AARCH64;
	}
	return run_place(runner, program, code) || run_cfa(runner, program, code) ||
	       run_register(runner, program, code);
}

static bool run_one(struct runner *runner, struct cfi_bytes *program)
{
	uint8_t code = cfi_u8(program);

	switch (code & ~CFA_OPERAND) {
	case CFA_ADVANCE_LOC:
		return advance(runner, code & CFA_OPERAND);
	case CFA_OFFSET:
		save(runner, code & CFA_OPERAND, CFI_AT_CFA,
		     factored(runner, cfi_uleb128(program)));
		return true;
	case CFA_RESTORE:
		restore(runner, code & CFA_OPERAND);
		return true;
	}
	if (code == CFA_DEF_CFA_OFFSET) /* with those above and CFA_NOP almost all */
		return change_cfa(runner, runner->state->cfa_register,
		                  (int64_t)cfi_uleb128(program));
	return code == CFA_NOP || run_other(runner, program, code);
}

bool cfi_run(struct cfi_run *run, struct cfi_state *state)
{
	struct runner runner;
	struct cfi_bytes *program = &run->program;

	runner.run = run;
	runner.state = state;
	runner.n_remembered = 0;
	runner.ended = false;
	while (cfi_left(program) && !runner.ended) {
		if (--*run->work < 0)
			return false;
		if (!run_one(&runner, program) || program->bad)
			return false;
	}
	if (run->row && !runner.ended)
		move_to(&runner, run->end);
	return true;
}
