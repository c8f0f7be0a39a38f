// SPDX-License-Identifier: MIT
/* Which entries can be diverted, and what becomes of their instructions. */
#include "unit.h"

#include "base/array.h"
#include "divert/entry_move.h"
#include "entry_compare.h"

#define AT    0x7f0000001000ull
#define SLOT  (AT + 0x10000000)
#define MOVED (AT - 0x20000000)

/* Instructions, as bytes, so that each test reads like a disassembly. */
#define ENDBR64            0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBP           0x55
#define MOV_RSP_RBP        0x48, 0x89, 0xe5
#define PUSH_R15           0x41, 0x57
#define SUB_8_RSP          0x48, 0x83, 0xec, 0x08
#define SUB_128_RSP        0x48, 0x81, 0xec, 0x80, 0x00, 0x00, 0x00
#define XOR_EAX_EAX        0x31, 0xc0
#define TEST_RAX_RAX       0x48, 0x85, 0xc0
#define ADD_RCX_RAX        0x48, 0x01, 0xc8
#define MOV_IMM_EAX        0xb8, 0x01, 0x00, 0x00, 0x00
#define NOP                0x90
#define NOP5               0x0f, 0x1f, 0x44, 0x00, 0x00
#define NOP10              0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
#define INT3               0xcc
#define RET                0xc3
#define CMPL_IMM_RIP       0x81, 0x3d, 0x10, 0x20, 0x30, 0x00, 0x00, 0xba, 0x1c, 0x32
#define MOV_RIP_RAX        0x48, 0x8b, 0x05, 0x10, 0x20, 0x30, 0x00
#define MOV_RIP_RAX_AT(d)  0x48, 0x8b, 0x05, (uint8_t)(d), 0xff, 0xff, 0xff
#define LEA_RIP_RAX_AT(d)  0x48, 0x8d, 0x05, (uint8_t)(d), 0xff, 0xff, 0xff
#define JMP_POINTER_RIP    0xff, 0x25, 0x10, 0x20, 0x30, 0x00
#define JMP_RAX            0xff, 0xe0
#define MOV_RAX_RCX        0x48, 0x89, 0xc1
#define JMP_RCX            0xff, 0xe1
#define JMP_AT_RAX         0xff, 0x20
#define JMP_TABLE_RAX      0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x00
#define NOTRACK            0x3e
#define MOV_AT_8_RDI_RAX   0x48, 0x8b, 0x47, 0x08
#define MOV_TABLE_RAX      0x48, 0x8b, 0x04, 0xc2 /* (%rdx,%rax,8) */
#define JMP_SHORT(disp)    0xeb, (uint8_t)(disp)
#define JMP_FAR_AWAY       0xe9, 0x00, 0x10, 0x00, 0x00
#define JE_SHORT(disp)     0x74, (uint8_t)(disp)
#define JNE_FAR_AWAY       0x0f, 0x85, 0x00, 0x10, 0x00, 0x00
#define LOOP(disp)         0xe2, (uint8_t)(disp)
#define JRCXZ(disp)        0xe3, (uint8_t)(disp)
#define CALL_FAR_AWAY      0xe8, 0x00, 0x10, 0x00, 0x00
#define CALL(disp)         0xe8, (uint8_t)(disp), 0xff, 0xff, 0xff
#define SYSCALL            0x0f, 0x05
#define XBEGIN             0xc7, 0xf8, 0x00, 0x10, 0x00, 0x00
#define MOV_EIP_EAX        0x67, 0x8b, 0x05, 0x10, 0x20, 0x30, 0x00
#define JKNZD_FAR_AWAY     0xc5, 0x48, 0x85, 0x00, 0x10, 0x00, 0x00
#define NOT_AN_INSTRUCTION 0x06

static const struct entry_places places = { SLOT, MOVED };

static struct entry_code code_of(const uint8_t *bytes, size_t len, size_t size)
{
	return (struct entry_code){ ABI_X86_64, bytes, bytes, len, size, AT, 0, 0 };
}

static struct entry_move move_of(const struct entry_code *code)
{
	struct entry_move move;

	if (entry_move(code, &places, &move)) {
		const char *why = entry_compare(code, &places, &move);

		if (why)
			fail_msg("%s", why);
	} else {
		assert_int_not_equal(move.refusal, ENTRY_MOVABLE);
		assert_int_equal(move.moved_bytes, 0);
	}
	return move;
}

static struct entry_move move_bytes(const uint8_t *bytes, size_t len)
{
	struct entry_code code = code_of(bytes, len, len);

	return move_of(&code);
}

#define MOVE(...)                                                                                  \
	move_bytes((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void expect_refused(struct entry_move move, enum entry_refusal refusal, uint32_t at)
{
	assert_string_equal(entry_refusal_text(move.refusal), entry_refusal_text(refusal));
	assert_int_equal(move.refused_at, at);
}

#define REFUSED(refusal, at, ...) expect_refused(MOVE(__VA_ARGS__), refusal, at)

/* The moved instructions without the jump back, and how many bytes are written. */
static void expect_moved(struct entry_move move, uint32_t skip, uint32_t bytes, uint32_t moved)
{
	assert_string_equal(entry_refusal_text(move.refusal), entry_refusal_text(ENTRY_MOVABLE));
	assert_int_equal(move.skip, skip);
	assert_int_equal(move.bytes, bytes);
	assert_int_equal(move.moved_bytes, moved);
}

static int32_t word_at(const uint8_t *at)
{
	int32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* ---- shapes of entries ----------------------------------------------------------------------- */

static void test_a_frame_pointer_prologue_is_moved(void **state)
{
	struct entry_move move = MOVE(PUSH_RBP, MOV_RSP_RBP, PUSH_R15, XOR_EAX_EAX, RET);
	const uint8_t expected[] = { PUSH_RBP, MOV_RSP_RBP, PUSH_R15, 0xe9 };

	expect_moved(move, 0, 6, 6 + 5);
	assert_memory_equal(move.moved, expected, sizeof(expected));
	assert_int_equal(word_at(move.moved + 7), (int32_t)(AT + 6 - (MOVED + 11)));
}

static void test_the_entry_jumps_to_the_slot_and_is_padded(void **state)
{
	struct entry_move move = MOVE(PUSH_RBP, SUB_128_RSP, RET);
	const uint8_t padding[] = { NOP, NOP, NOP };

	expect_moved(move, 0, 8, 8 + 5);
	assert_int_equal(move.written[0], 0xe9);
	assert_int_equal(word_at(move.written + 1), (int32_t)(SLOT - (AT + 5)));
	assert_memory_equal(move.written + 5, padding, sizeof(padding));
}

static void test_endbr64_stays_and_leads_the_moved_code(void **state)
{
	struct entry_move move = MOVE(ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET);
	const uint8_t expected[] = { ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, 0xe9 };

	expect_moved(move, 4, 6, 4 + 6 + 5);
	assert_memory_equal(move.moved, expected, sizeof(expected));
	assert_int_equal(word_at(move.written + 1), (int32_t)(SLOT - (AT + 4 + 5)));
}

/* libcuda 550: cmpl $magic,gone(%rip); je; jmp *table(%rip). */
static void test_a_stub_that_compares_first_is_moved(void **state)
{
	struct entry_move move = MOVE(CMPL_IMM_RIP, JE_SHORT(6), JMP_POINTER_RIP, MOV_IMM_EAX, RET);

	expect_moved(move, 0, 10, 10 + 5);
	assert_int_equal(word_at(move.moved + 2), (int32_t)(AT + 10 + 0x302010 - (MOVED + 10)));
	assert_int_equal(word_at(move.moved + 6), 0x321cba00);
}

static void test_a_stub_that_only_jumps_is_moved(void **state)
{
	struct entry_move move = MOVE(JMP_POINTER_RIP);

	expect_moved(move, 0, 6, 6); /* nothing to come back to */
	assert_int_equal(word_at(move.moved + 2), (int32_t)(AT + 6 + 0x302010 - (MOVED + 6)));
}

static void test_a_stub_that_loads_and_tests_is_moved(void **state)
{
	expect_moved(MOVE(MOV_RIP_RAX, TEST_RAX_RAX, JE_SHORT(2), JMP_RAX, XOR_EAX_EAX, RET), 0, 7,
	             7 + 5);
}

static void test_a_direct_jump_is_moved(void **state)
{
	struct entry_move move = MOVE(JMP_FAR_AWAY);

	expect_moved(move, 0, 5, 5);
	assert_int_equal(word_at(move.moved + 1), (int32_t)(AT + 5 + 0x1000 - (MOVED + 5)));
}

static void test_a_patchable_nop_is_moved(void **state)
{
	expect_moved(MOVE(NOP5, PUSH_RBP, RET), 0, 5, 10);
	expect_moved(MOVE(NOP, NOP, NOP, NOP, NOP, RET), 0, 5, 10);
}

static void test_short_branches_are_widened(void **state)
{
	struct entry_move move =
		MOVE(TEST_RAX_RAX, JE_SHORT(8), MOV_IMM_EAX, RET, RET, RET, RET, RET, RET);

	expect_moved(move, 0, 5, 3 + 6 + 5);
	assert_int_equal(move.moved[3], 0x0f);
	assert_int_equal(move.moved[4], 0x84);
	assert_int_equal(word_at(move.moved + 5), (int32_t)(AT + 13 - (MOVED + 9)));
	move = MOVE(TEST_RAX_RAX, JMP_SHORT(0), RET);
	expect_moved(move, 0, 5, 3 + 5);
	assert_int_equal(move.moved[3], 0xe9);
}

static void test_long_branches_are_put_right(void **state)
{
	struct entry_move move = MOVE(JNE_FAR_AWAY, RET);

	expect_moved(move, 0, 6, 6 + 5);
	assert_int_equal(word_at(move.moved + 2), (int32_t)(AT + 6 + 0x1000 - (MOVED + 6)));
}

static void test_loops_become_three_instructions(void **state)
{
	struct entry_move move = MOVE(TEST_RAX_RAX, LOOP(4), MOV_IMM_EAX, RET, RET);
	int64_t original;

	expect_moved(move, 0, 5, 3 + 2 + 2 + 5 + 5);
	assert_true(entry_move_backward(&move, 5, &original)); /* not taken */
	assert_int_equal(original, 5);
	assert_true(entry_move_backward(&move, 7, &original)); /* taken */
	assert_int_equal(original, 9);
	expect_moved(MOVE(JRCXZ(3), TEST_RAX_RAX, RET, RET), 0, 5, 2 + 2 + 5 + 3 + 5);
	expect_moved(MOVE(0x67, JRCXZ(3), XOR_EAX_EAX, RET, RET), 0, 5, 3 + 2 + 5 + 2 + 5);
}

static void test_a_return_may_be_the_last_instruction(void **state)
{
	expect_moved(MOVE(TEST_RAX_RAX, NOP, RET), 0, 5, 5);
	expect_moved(MOVE(MOV_IMM_EAX, RET), 0, 5, 10);
}

static void test_the_address_of_the_function_may_be_taken(void **state)
{
	expect_moved(MOVE(PUSH_RBP, MOV_RSP_RBP, LEA_RIP_RAX_AT(-11), RET), 0, 11, 16);
}

static void test_recursion_is_no_jump_into_the_first_bytes(void **state)
{
	expect_moved(MOVE(PUSH_RBP, MOV_RSP_RBP, PUSH_R15, CALL(-11), RET), 0, 6, 11);
	expect_moved(MOVE(ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, CALL(-11), RET), 4, 6, 15);
}

/* ---- short functions and padding ------------------------------------------------------------- */

static struct entry_move move_padded(const uint8_t *bytes, size_t len, size_t size, uint64_t next)
{
	struct entry_code code = code_of(bytes, len, size);

	code.next_start = next;
	return move_of(&code);
}

#define PADDED(size, next, ...)                                                                    \
	move_padded((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }),    \
	            size, next)

static void test_padding_behind_a_short_function_is_taken(void **state)
{
	expect_moved(PADDED(3, 16, XOR_EAX_EAX, RET, NOP10, NOP, NOP, NOP), 0, 5, 3);
	expect_moved(PADDED(3, 0, XOR_EAX_EAX, RET, NOP10, NOP, NOP, NOP), 0, 5, 3);
	expect_moved(PADDED(1, 5, RET, INT3, INT3, INT3, INT3), 0, 5, 1);
	expect_moved(PADDED(7, 16, ENDBR64, XOR_EAX_EAX, RET, NOP, NOP, NOP, NOP, NOP, NOP, NOP,
	                    NOP, NOP),
	             4, 5, 4 + 3);
}

static void test_what_is_no_padding_is_not_taken(void **state)
{
	expect_refused(PADDED(3, 16, XOR_EAX_EAX, RET, NOP10, NOP, NOP, RET), ENTRY_TOO_SHORT, 3);
	expect_refused(PADDED(3, 16, XOR_EAX_EAX, RET, PUSH_RBP, NOP10, NOP, NOP), ENTRY_TOO_SHORT,
	               3);
}

static void test_padding_ends_at_the_next_function(void **state)
{
	expect_refused(PADDED(3, 4, XOR_EAX_EAX, RET, NOP10, NOP, NOP, NOP), ENTRY_TOO_SHORT, 3);
	expect_moved(PADDED(3, 5, XOR_EAX_EAX, RET, NOP, NOP), 0, 5, 3);
}

static void test_padding_that_was_not_read_is_not_taken(void **state)
{
	expect_refused(PADDED(3, 16, XOR_EAX_EAX, RET, NOP, NOP), ENTRY_TOO_SHORT, 3);
}

static void test_a_function_that_runs_into_its_padding_is_refused(void **state)
{
	expect_refused(PADDED(3, 16, TEST_RAX_RAX, NOP10, NOP, NOP, NOP), ENTRY_TOO_SHORT, 3);
}

static void test_padding_that_others_changed_is_refused(void **state)
{
	const uint8_t file[] = { XOR_EAX_EAX, RET, NOP, NOP },
		      now[] = { XOR_EAX_EAX, RET, NOP, INT3 };
	struct entry_code code = { ABI_X86_64, now, file, sizeof(now), 3, AT, sizeof(now), 0 };

	expect_refused(move_of(&code), ENTRY_CHANGED, 4);
}

static void test_a_function_without_padding_is_too_short(void **state)
{
	REFUSED(ENTRY_TOO_SHORT, 3, XOR_EAX_EAX, RET);
	REFUSED(ENTRY_TOO_SHORT, 4, ENDBR64);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_an_end_within_the_first_bytes_is_refused(void **state)
{
	REFUSED(ENTRY_ENDS_EARLY, 3, XOR_EAX_EAX, RET, MOV_IMM_EAX, RET);
	REFUSED(ENTRY_ENDS_EARLY, 2, JMP_SHORT(8), MOV_IMM_EAX, MOV_IMM_EAX, RET);
	REFUSED(ENTRY_ENDS_EARLY, 2, JMP_RAX, MOV_IMM_EAX, RET);
}

static void test_a_jump_into_the_first_bytes_is_refused(void **state)
{
	REFUSED(ENTRY_JUMPED_INTO, 6, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, JMP_SHORT(-4));
	REFUSED(ENTRY_JUMPED_INTO, 7, PUSH_RBP, MOV_RSP_RBP, TEST_RAX_RAX, JE_SHORT(-5), RET);
	REFUSED(ENTRY_JUMPED_INTO, 6, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, LOOP(-3), RET);
	REFUSED(ENTRY_JUMPED_INTO, 0, JE_SHORT(0), MOV_IMM_EAX, RET); /* within what is moved */
	REFUSED(ENTRY_JUMPED_INTO, 6, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, CALL(-10), RET);
	expect_moved(MOVE(PUSH_RBP, MOV_RSP_RBP, PUSH_R15, JMP_SHORT(-2)), 0, 6, 11);
}

static void test_a_loop_to_the_entry_is_refused(void **state)
{
	REFUSED(ENTRY_JUMPED_INTO, 6, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, JMP_SHORT(-8));
	REFUSED(ENTRY_JUMPED_INTO, 10, ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, JMP_SHORT(-8));
}

static void test_a_jump_behind_bytes_that_are_no_code_is_seen(void **state)
{
	REFUSED(ENTRY_JUMPED_INTO, 8, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET, NOT_AN_INSTRUCTION,
	        JMP_SHORT(-8));
}

/* A jump over a byte that begins a long instruction: read in order, the jump back is not there. */
static void test_a_jump_that_hides_within_an_instruction_is_seen(void **state)
{
	REFUSED(ENTRY_JUMPED_INTO, 10, PUSH_RBP, MOV_RSP_RBP, NOP, NOP, JMP_SHORT(2), 0x48, 0xb8,
	        JMP_SHORT(-10), 0, 0, 0, 0, 0, 0, RET);
}

static void test_another_start_within_the_first_bytes_is_refused(void **state)
{
	const uint8_t bytes[] = { PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET };
	struct entry_code code = code_of(bytes, sizeof(bytes), sizeof(bytes));

	code.next_start = 4;
	expect_refused(move_of(&code), ENTRY_SHARED, 4);
	code.next_start = 6;
	expect_moved(move_of(&code), 0, 6, 11);
}

static void test_a_jump_from_elsewhere_is_refused(void **state)
{
	const uint8_t bytes[] = { ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET };
	struct entry_code code = code_of(bytes, sizeof(bytes), sizeof(bytes));

	code.targets = 1 << 4 | 1 << 5;
	expect_refused(move_of(&code), ENTRY_JUMPED_INTO, 5);
	code.targets = 1 << 4 | 1 << 10; /* it goes through the jump, or behind what is moved */
	expect_moved(move_of(&code), 4, 6, 15);
}

static void test_a_jump_through_a_table_is_refused(void **state)
{
	REFUSED(ENTRY_TABLE_JUMP, 5, MOV_IMM_EAX, JMP_TABLE_RAX);
	REFUSED(ENTRY_TABLE_JUMP, 9, MOV_IMM_EAX, MOV_TABLE_RAX, JMP_RAX);
	REFUSED(ENTRY_TABLE_JUMP, 12, MOV_IMM_EAX, MOV_AT_8_RDI_RAX, ADD_RCX_RAX, NOTRACK, JMP_RAX);
	REFUSED(ENTRY_TABLE_JUMP, 5, MOV_IMM_EAX, JMP_RAX);
	REFUSED(ENTRY_TABLE_JUMP, 14, MOV_IMM_EAX, MOV_AT_8_RDI_RAX, CALL_FAR_AWAY, JMP_RAX);
}

static void test_a_call_in_the_end_by_a_pointer_is_no_table(void **state)
{
	expect_moved(MOVE(MOV_IMM_EAX, MOV_AT_8_RDI_RAX, JMP_RAX), 0, 5, 10);
	expect_moved(MOVE(MOV_IMM_EAX, MOV_AT_8_RDI_RAX, JMP_AT_RAX), 0, 5, 10);
	expect_moved(MOVE(MOV_AT_8_RDI_RAX, JMP_RAX), 0, 6, 6);
	expect_moved(MOVE(MOV_AT_8_RDI_RAX, MOV_RAX_RCX, XOR_EAX_EAX, JMP_RCX), 0, 7, 12);
	REFUSED(ENTRY_TABLE_JUMP, 12, MOV_IMM_EAX, MOV_TABLE_RAX, MOV_RAX_RCX, JMP_RCX);
}

static void test_first_bytes_that_are_used_as_data_are_refused(void **state)
{
	REFUSED(ENTRY_READS_ITSELF, 4, PUSH_RBP, MOV_RSP_RBP, MOV_RIP_RAX_AT(-11), RET);
	REFUSED(ENTRY_READS_ITSELF, 5, MOV_IMM_EAX, MOV_RIP_RAX_AT(-12 - 7), RET); /* 8 from -7 */
	REFUSED(ENTRY_READS_ITSELF, 5, MOV_IMM_EAX, LEA_RIP_RAX_AT(-11), RET);
	expect_moved(MOVE(MOV_IMM_EAX, MOV_RIP_RAX_AT(-12 - 8), RET), 0, 5, 10);
	expect_moved(MOVE(MOV_IMM_EAX, MOV_RIP_RAX_AT(-12 + 5), RET), 0, 5, 10);
}

static void test_a_call_among_the_first_bytes_is_refused(void **state)
{
	REFUSED(ENTRY_HAS_CALL, 4, SUB_8_RSP, CALL_FAR_AWAY, RET);
	REFUSED(ENTRY_HAS_CALL, 0, 0xff, 0x15, 0x10, 0x20, 0x30, 0x00, RET); /* call *x(%rip) */
}

static void test_instructions_that_depend_on_their_place_are_refused(void **state)
{
	REFUSED(ENTRY_CANNOT_MOVE, 0, SYSCALL, TEST_RAX_RAX, RET);
	REFUSED(ENTRY_CANNOT_MOVE, 1, PUSH_RBP, XBEGIN, RET);
	REFUSED(ENTRY_CANNOT_MOVE, 0, MOV_EIP_EAX, RET);
	REFUSED(ENTRY_CANNOT_MOVE, 0, INT3, MOV_IMM_EAX, RET);
	REFUSED(ENTRY_CANNOT_MOVE, 2, XOR_EAX_EAX, 0x0f, 0x0b, XOR_EAX_EAX, RET); /* ud2 */
	REFUSED(ENTRY_CANNOT_MOVE, 2, XOR_EAX_EAX, 0xcb, XOR_EAX_EAX, RET, RET);  /* far ret */
	REFUSED(ENTRY_CANNOT_MOVE, 0, 0x66, JMP_FAR_AWAY, RET);
	REFUSED(ENTRY_CANNOT_MOVE, 0, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e,
	        JE_SHORT(0), RET);                                    /* 16 bytes when widened */
	REFUSED(ENTRY_CANNOT_MOVE, 0, 0xd9, 0x30, TEST_RAX_RAX, RET); /* fnstenv */
}

static void test_bytes_that_do_not_decode_are_refused(void **state)
{
	REFUSED(ENTRY_UNDECODABLE, 1, PUSH_RBP, NOT_AN_INSTRUCTION, MOV_IMM_EAX, RET);
	REFUSED(ENTRY_UNDECODABLE, 6, PUSH_RBP, MOV_IMM_EAX, NOT_AN_INSTRUCTION, RET);
	REFUSED(ENTRY_UNDECODABLE, 0, 0xe8, 0x00, 0x10);    /* cut short */
	REFUSED(ENTRY_UNDECODABLE, 0, JKNZD_FAR_AWAY, RET); /* of no processor of today */
	expect_moved(MOVE(MOV_IMM_EAX, RET, NOT_AN_INSTRUCTION), 0, 5, 10); /* never reached */
}

static void test_a_branch_that_processors_take_differently_is_refused(void **state)
{
	REFUSED(ENTRY_UNDECODABLE, 5, MOV_IMM_EAX, 0x66, JMP_FAR_AWAY);
	/* a call of __tls_get_addr is written so, and is clear */
	expect_moved(MOVE(MOV_IMM_EAX, 0x66, 0x66, 0x48, CALL_FAR_AWAY, RET), 0, 5, 10);
}

static void test_code_that_others_changed_is_refused(void **state)
{
	const uint8_t file[] = { PUSH_RBP, MOV_RSP_RBP, PUSH_R15, XOR_EAX_EAX, RET };
	uint8_t now[sizeof(file)];
	struct entry_code code = { ABI_X86_64, now, file, sizeof(now), sizeof(now), AT, 0, 0 };

	for (size_t i = 0; i < sizeof(file); i++) {
		memcpy(now, file, sizeof(now));
		now[i] = INT3;
		expect_refused(move_of(&code), ENTRY_CHANGED, (uint32_t)i);
	}
	memcpy(now, file, sizeof(now));
	expect_moved(move_of(&code), 0, 6, 11);
}

static void test_what_is_out_of_reach_is_refused(void **state)
{
	const uint8_t plain[] = { MOV_IMM_EAX, RET }, relative[] = { MOV_RIP_RAX, RET };
	struct entry_code code = code_of(plain, sizeof(plain), sizeof(plain));
	const uint64_t gib2 = 2ull << 30;
	struct entry_move move;

	assert_true(entry_move(&code, &(struct entry_places){ AT + gib2 + 4, MOVED }, &move));
	assert_false(entry_move(&code, &(struct entry_places){ AT + gib2 + 5, MOVED }, &move));
	expect_refused(move, ENTRY_OUT_OF_REACH, 0);
	assert_false(entry_move(&code, &(struct entry_places){ SLOT, AT + gib2 + 5 }, &move));
	expect_refused(move, ENTRY_OUT_OF_REACH, 0);
	assert_false(entry_move(&code, &(struct entry_places){ SLOT, UINT64_MAX }, &move));
	expect_refused(move, ENTRY_OUT_OF_REACH, 0);
	/* The data lies 3 MiB above: the moved code may lie so much less below. */
	code = code_of(relative, sizeof(relative), sizeof(relative));
	assert_true(entry_move(&code, &(struct entry_places){ SLOT, AT - gib2 + 0x302100 }, &move));
	assert_false(
		entry_move(&code, &(struct entry_places){ SLOT, AT - gib2 + 0x302000 }, &move));
	expect_refused(move, ENTRY_OUT_OF_REACH, 0);
}

static void test_what_is_not_known_or_not_there_is_refused(void **state)
{
	const uint8_t bytes[] = { MOV_IMM_EAX, RET };
	struct entry_code code = code_of(bytes, sizeof(bytes), 0);

	expect_refused(move_of(&code), ENTRY_NO_SIZE, 0);
	code.size = sizeof(bytes) + 1;
	expect_refused(move_of(&code), ENTRY_NOT_READ, 0);
	code.size = ENTRY_FUNCTION_MAX + 1;
	expect_refused(move_of(&code), ENTRY_TOO_LARGE, 0);
	code = code_of(NULL, 0, 6);
	expect_refused(move_of(&code), ENTRY_NOT_READ, 0);
}

static void test_aarch64_is_not_done(void **state)
{
	const uint8_t bytes[] = { MOV_IMM_EAX, RET };
	struct entry_code code = code_of(bytes, sizeof(bytes), sizeof(bytes));

	code.abi = ABI_AARCH64;
	expect_refused(move_of(&code), ENTRY_OTHER_MACHINE, 0);
}

static void test_each_refusal_has_its_words(void **state)
{
	for (int i = 0; i < ENTRY_REFUSALS; i++) {
		assert_non_null(entry_refusal_text(i));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(entry_refusal_text(i), entry_refusal_text(k));
	}
}

/* ---- threads that stand there ---------------------------------------------------------------- */

static void test_a_thread_between_borders_has_no_place(void **state)
{
	struct entry_move move = MOVE(PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET);
	int64_t original;
	uint32_t moved;

	assert_int_equal(entry_move_step(&move, 1, &moved), ENTRY_MOVES);
	assert_int_equal(moved, 1);
	assert_int_equal(entry_move_step(&move, 2, &moved), ENTRY_BETWEEN);
	assert_int_equal(entry_move_step(&move, 6, &moved), ENTRY_STAYS); /* not written */
	assert_true(entry_move_backward(&move, 6, &original));            /* the jump back */
	assert_int_equal(original, 6);
	assert_false(entry_move_backward(&move, 7, &original));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_frame_pointer_prologue_is_moved),
		cmocka_unit_test(test_the_entry_jumps_to_the_slot_and_is_padded),
		cmocka_unit_test(test_endbr64_stays_and_leads_the_moved_code),
		cmocka_unit_test(test_a_stub_that_compares_first_is_moved),
		cmocka_unit_test(test_a_stub_that_only_jumps_is_moved),
		cmocka_unit_test(test_a_stub_that_loads_and_tests_is_moved),
		cmocka_unit_test(test_a_direct_jump_is_moved),
		cmocka_unit_test(test_a_patchable_nop_is_moved),
		cmocka_unit_test(test_short_branches_are_widened),
		cmocka_unit_test(test_long_branches_are_put_right),
		cmocka_unit_test(test_loops_become_three_instructions),
		cmocka_unit_test(test_a_return_may_be_the_last_instruction),
		cmocka_unit_test(test_the_address_of_the_function_may_be_taken),
		cmocka_unit_test(test_recursion_is_no_jump_into_the_first_bytes),
		cmocka_unit_test(test_padding_behind_a_short_function_is_taken),
		cmocka_unit_test(test_what_is_no_padding_is_not_taken),
		cmocka_unit_test(test_padding_ends_at_the_next_function),
		cmocka_unit_test(test_padding_that_was_not_read_is_not_taken),
		cmocka_unit_test(test_a_function_that_runs_into_its_padding_is_refused),
		cmocka_unit_test(test_padding_that_others_changed_is_refused),
		cmocka_unit_test(test_a_function_without_padding_is_too_short),
		cmocka_unit_test(test_an_end_within_the_first_bytes_is_refused),
		cmocka_unit_test(test_a_jump_into_the_first_bytes_is_refused),
		cmocka_unit_test(test_a_loop_to_the_entry_is_refused),
		cmocka_unit_test(test_a_jump_behind_bytes_that_are_no_code_is_seen),
		cmocka_unit_test(test_a_jump_that_hides_within_an_instruction_is_seen),
		cmocka_unit_test(test_another_start_within_the_first_bytes_is_refused),
		cmocka_unit_test(test_a_jump_from_elsewhere_is_refused),
		cmocka_unit_test(test_a_jump_through_a_table_is_refused),
		cmocka_unit_test(test_a_call_in_the_end_by_a_pointer_is_no_table),
		cmocka_unit_test(test_first_bytes_that_are_used_as_data_are_refused),
		cmocka_unit_test(test_a_call_among_the_first_bytes_is_refused),
		cmocka_unit_test(test_instructions_that_depend_on_their_place_are_refused),
		cmocka_unit_test(test_bytes_that_do_not_decode_are_refused),
		cmocka_unit_test(test_a_branch_that_processors_take_differently_is_refused),
		cmocka_unit_test(test_code_that_others_changed_is_refused),
		cmocka_unit_test(test_what_is_out_of_reach_is_refused),
		cmocka_unit_test(test_what_is_not_known_or_not_there_is_refused),
		cmocka_unit_test(test_aarch64_is_not_done),
		cmocka_unit_test(test_each_refusal_has_its_words),
		cmocka_unit_test(test_a_thread_between_borders_has_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
