// SPDX-License-Identifier: MIT
/* Entries with a kernel probe: where the jump lies, what the pad undoes, and where threads go. */
#include "unit.h"

#include "divert/entry_move.h"
#include "entry_compare.h"

#define AT    0x7f0000001000ull
#define PAD   (AT + 0x10000000)
#define MOVED (AT - 0x20000000)
#define THUNK 0x555500001230ull

#define ENDBR64          0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBP         0x55
#define PUSH_R15         0x41, 0x57
#define PUSH_RAX         0x50
#define PUSH_AX          0x66, 0x50
#define MOV_RSP_RBP      0x48, 0x89, 0xe5
#define SUB_8_RSP        0x48, 0x83, 0xec, 0x08
#define SUB_232_RSP      0x48, 0x81, 0xec, 0xe8, 0x00, 0x00, 0x00
#define SUB_M8_RSP       0x48, 0x83, 0xec, 0xf8
#define MOV_RDI_RAX      0x48, 0x89, 0xf8
#define MOV_RDI_RBX      0x48, 0x89, 0xfb
#define MOV_EDI_AL       0x40, 0x88, 0xf8
#define MOV_RBX_BELOW    0x48, 0x89, 0x5c, 0x24, 0xe8 /* -24(%rsp) */
#define MOV_RBX_ABOVE    0x48, 0x89, 0x5c, 0x24, 0x08 /* 8(%rsp): the caller's */
#define MOV_RBX_FS_BELOW 0x64, 0x48, 0x89, 0x5c, 0x24, 0xe8
#define MOV_IMM_EAX      0xb8, 0x01, 0x00, 0x00, 0x00
#define MOV_IMM_ECX      0xb9, 0x01, 0x00, 0x00, 0x00
#define INC_RAX          0x48, 0xff, 0xc0
#define TEST_RAX_RAX     0x48, 0x85, 0xc0
#define TEST_RDI_RDI     0x48, 0x85, 0xff
#define XOR_EAX_EAX      0x31, 0xc0
#define XOR_ECX_EAX      0x31, 0xc8
#define CMPL_IMM_RIP     0x81, 0x3d, 0x10, 0x20, 0x30, 0x00, 0x00, 0xba, 0x1c, 0x32
#define JE_6             0x74, 0x06
#define JMP_POINTER_RIP  0xff, 0x25, 0x10, 0x20, 0x30, 0x00
#define NOP5             0x0f, 0x1f, 0x44, 0x00, 0x00
#define NOP              0x90
#define CALL_FAR_AWAY    0xe8, 0x00, 0x10, 0x00, 0x00
#define INT3             0xcc
#define RET              0xc3

static const struct entry_places places = { PAD, MOVED, THUNK };

static struct entry_code code_of(const uint8_t *bytes, size_t len, uint32_t probe)
{
	return (struct entry_code){ .abi = ABI_X86_64,
		                    .memory = bytes,
		                    .file = bytes,
		                    .bytes = len,
		                    .size = len,
		                    .address = AT,
		                    .probed = true,
		                    .probe = probe };
}

static struct entry_move move_of(const struct entry_code *code)
{
	struct entry_move move;

	if (entry_move(code, &places, &move)) {
		const char *why = entry_compare(code, &places, &move);

		if (why)
			fail_msg("%s", why);
	}
	return move;
}

static struct entry_move move_bytes(uint32_t probe, const uint8_t *bytes, size_t len)
{
	struct entry_code code = code_of(bytes, len, probe);

	return move_of(&code);
}

#define MOVE(probe, ...)                                                                           \
	move_bytes(probe, (const uint8_t[]){ __VA_ARGS__ },                                        \
	           sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void expect(struct entry_move move, enum entry_jump jump, uint32_t skip, uint32_t bytes)
{
	assert_string_equal(entry_refusal_text(move.refusal), entry_refusal_text(ENTRY_MOVABLE));
	assert_int_equal(move.jump, jump);
	assert_int_equal(move.skip, skip);
	assert_int_equal(move.bytes, bytes);
}

static void expect_refused(struct entry_move move, enum entry_refusal refusal, uint32_t at)
{
	assert_string_equal(entry_refusal_text(move.refusal), entry_refusal_text(refusal));
	assert_int_equal(move.refused_at, at);
}

#define BEHIND(skip, bytes, probe, ...)                                                            \
	expect(MOVE(probe, __VA_ARGS__), JUMP_BEHIND_PROBE, skip, bytes)
#define PROBED(at, probe, ...) expect_refused(MOVE(probe, __VA_ARGS__), ENTRY_PROBED, at)

/* `lea undone(%rsp), %rsp`, if anything, and the jump to the thunk. */
static void expect_pad(struct entry_move move, uint32_t undone)
{
	struct compared one;
	uint64_t thunk;
	size_t at = 0;

	if (undone) {
		assert_true(compare_decode(move.pad, move.pad_bytes, PAD, &one));
		assert_int_equal(one.raw.mnemonic, ZYDIS_MNEMONIC_LEA);
		assert_int_equal(one.operand[0].reg.value, ZYDIS_REGISTER_RSP);
		assert_int_equal(one.operand[1].mem.base, ZYDIS_REGISTER_RSP);
		assert_int_equal(one.operand[1].mem.disp.value, undone);
		at = one.raw.length;
	}
	assert_true(compare_decode(move.pad + at, move.pad_bytes - at, PAD + at, &one));
	assert_int_equal(one.raw.mnemonic, ZYDIS_MNEMONIC_JMP);
	assert_int_equal(compare_absolute(&one, 0), PAD + at + one.raw.length);
	memcpy(&thunk, move.pad + at + one.raw.length, sizeof(thunk));
	assert_true(thunk == THUNK);
	assert_int_equal(move.pad_bytes, at + one.raw.length + sizeof(thunk));
}

/* ---- behind the probe ------------------------------------------------------------------------ */

static void test_the_jump_lies_behind_a_probed_push(void **state)
{
	struct entry_move move = MOVE(0, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, XOR_EAX_EAX, RET);
	const uint8_t moved[] = { PUSH_RBP, MOV_RSP_RBP, PUSH_R15, 0xe9 };

	expect(move, JUMP_BEHIND_PROBE, 1, 5);
	assert_memory_equal(move.moved, moved, sizeof(moved));
	expect_pad(move, 8);
	move = MOVE(4, ENDBR64, PUSH_R15, MOV_RSP_RBP, PUSH_R15, XOR_EAX_EAX, RET);
	expect(move, JUMP_BEHIND_PROBE, 6, 5);
	assert_memory_equal(move.moved, ((uint8_t[]){ ENDBR64, PUSH_R15, MOV_RSP_RBP }), 9);
	expect_pad(move, 8);
}

static void test_all_that_ran_before_the_jump_is_undone(void **state)
{
	expect_pad(MOVE(0, SUB_8_RSP, MOV_IMM_EAX, RET), 8);
	expect_pad(MOVE(0, SUB_232_RSP, MOV_IMM_EAX, RET), 232);
	expect_pad(MOVE(3, PUSH_R15, PUSH_RBP, SUB_8_RSP, MOV_IMM_EAX, RET), 24);
	expect_pad(MOVE(0, ENDBR64, MOV_IMM_EAX, RET), 0);
	expect_pad(MOVE(3, TEST_RDI_RDI, NOP, MOV_IMM_EAX, RET), 0);
	BEHIND(5, 6, 0, MOV_RBX_BELOW, PUSH_RBP, MOV_IMM_EAX, RET);
	BEHIND(4, 5, 3, MOV_RDI_RAX, PUSH_RAX, MOV_IMM_EAX, RET);
	BEHIND(3, 5, 2, XOR_EAX_EAX, PUSH_RBP, MOV_IMM_EAX, RET);
	BEHIND(8, 5, 3, PUSH_R15, PUSH_RBP, MOV_RBX_ABOVE, MOV_IMM_EAX, RET); /* its own */
	PROBED(2, 2, PUSH_R15, MOV_RBX_ABOVE, MOV_IMM_EAX, RET); /* the return address */
}

static void test_what_cannot_be_undone_is_refused(void **state)
{
	PROBED(0, 0, MOV_IMM_ECX, MOV_IMM_EAX, RET); /* an argument */
	PROBED(0, 3, MOV_RDI_RBX, PUSH_RBP, MOV_IMM_EAX, RET);
	PROBED(0, 3, INC_RAX, PUSH_RBP, MOV_IMM_EAX, RET);
	PROBED(0, 3, MOV_EDI_AL, PUSH_RBP, MOV_IMM_EAX, RET); /* the rest of rax stays */
	PROBED(0, 2, XOR_ECX_EAX, PUSH_RBP, MOV_IMM_EAX, RET);
	PROBED(1, 1, PUSH_RAX, MOV_RDI_RAX, MOV_IMM_EAX, RET); /* would be pushed again */
	PROBED(3, 3, TEST_RAX_RAX, MOV_RDI_RAX, MOV_IMM_EAX, RET);
	PROBED(0, 0, PUSH_AX, MOV_IMM_EAX, RET);
	PROBED(0, 0, SUB_M8_RSP, MOV_IMM_EAX, RET);
	PROBED(0, 0, MOV_RBX_ABOVE, MOV_IMM_EAX, RET);
	PROBED(0, 0, MOV_RBX_FS_BELOW, MOV_IMM_EAX, RET);
	PROBED(0, 0, JMP_POINTER_RIP);
	PROBED(0, 0, NOP5, MOV_IMM_EAX, RET); /* the kernel may write all of it */
}

static void test_a_probe_that_is_no_instruction_is_refused(void **state)
{
	PROBED(1, 1, PUSH_RBP, MOV_RSP_RBP, MOV_IMM_EAX, RET);
	PROBED(2, 2, SUB_8_RSP, MOV_IMM_EAX, RET);
	PROBED(2, 2, ENDBR64, MOV_IMM_EAX, RET);
	expect_refused(MOVE(40, PUSH_RBP, MOV_RSP_RBP, MOV_IMM_EAX, RET), ENTRY_PROBED, 1);
	expect_refused(MOVE(UINT32_MAX, PUSH_RBP, PUSH_RBP, RET), ENTRY_PROBED, 2);
	expect_refused(MOVE(3, PUSH_RBP, PUSH_RBP, PUSH_RBP), ENTRY_TOO_SHORT, 3);
	expect_refused(MOVE(0, SUB_8_RSP, CALL_FAR_AWAY, RET), ENTRY_HAS_CALL, 4);
}

/* ---- before the probe ------------------------------------------------------------------------ */

static void test_the_jump_lies_before_a_probe_that_is_far_behind(void **state)
{
	struct entry_move move = MOVE(10, CMPL_IMM_RIP, JE_6, JMP_POINTER_RIP, MOV_IMM_EAX, RET);

	expect(move, JUMP_BEFORE_PROBE, 0, 10);
	expect_pad(move, 0);
	assert_int_equal(move.moved_bytes, 10 + 6 + 5); /* with the probed je, and a jump to +12 */
	move = MOVE(9, ENDBR64, MOV_IMM_EAX, PUSH_RBP, TEST_RDI_RDI, RET);
	expect(move, JUMP_BEFORE_PROBE, 4, 5);
	assert_int_equal(move.moved_bytes, 4 + 5 + 1 + 5);
	PROBED(1, 5, PUSH_RBP, MOV_RSP_RBP, NOP, PUSH_R15, MOV_IMM_EAX, RET); /* rbp is lost */
}

/* What lies between the written bytes and the probe stays, and is in the moved code as well. */
static void test_only_what_the_jump_needs_is_written(void **state)
{
	struct entry_move move = MOVE(8, MOV_IMM_EAX, TEST_RDI_RDI, PUSH_RBP, MOV_RSP_RBP, RET);
	uint32_t moved;

	expect(move, JUMP_BEFORE_PROBE, 0, 5);
	assert_int_equal(move.moved_bytes, 5 + 3 + 1 + 5);
	assert_int_equal(entry_move_step(&move, 0, &moved), ENTRY_STAYS);
	assert_int_equal(entry_move_step(&move, 3, &moved), ENTRY_BETWEEN);
	assert_int_equal(entry_move_step(&move, 5, &moved), ENTRY_AGAIN);
	assert_int_equal(entry_move_step(&move, 6, &moved), ENTRY_STAYS); /* no border; kept */
	assert_int_equal(entry_move_step(&move, 8, &moved), ENTRY_AGAIN); /* at the probe */
	assert_int_equal(entry_move_step(&move, 9, &moved), ENTRY_STAYS); /* seen by it */
	assert_false(entry_move_to_pad(&move, 0));
}

/* ---- threads --------------------------------------------------------------------------------- */

static void test_threads_that_the_probe_has_seen_go_behind_it(void **state)
{
	struct entry_move move = MOVE(0, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, XOR_EAX_EAX, RET);
	uint32_t moved = 0;

	assert_int_equal(entry_move_step(&move, 0, &moved), ENTRY_STAYS); /* it will be met */
	assert_int_equal(entry_move_step(&move, 1, &moved), ENTRY_MOVES);
	assert_int_equal(moved, 1);
	assert_int_equal(entry_move_step(&move, 2, &moved), ENTRY_BETWEEN);
	assert_int_equal(entry_move_step(&move, 4, &moved), ENTRY_MOVES);
	assert_int_equal(moved, 4);
	assert_int_equal(entry_move_step(&move, 6, &moved), ENTRY_STAYS);
	assert_int_equal(entry_move_step(&move, UINT64_MAX, &moved), ENTRY_STAYS);
	assert_true(entry_move_to_pad(&move, 1));
	assert_false(entry_move_to_pad(&move, 0));
	assert_false(entry_move_to_pad(&move, 4));
}

/* ---- the probe's byte ------------------------------------------------------------------------ */

static void test_only_the_probe_itself_may_be_in_memory(void **state)
{
	const uint8_t file[] = { ENDBR64, PUSH_RBP, MOV_RSP_RBP, PUSH_R15, RET };
	uint8_t now[sizeof(file)];
	struct entry_code code = code_of(file, sizeof(file), 4);

	code.memory = now;
	for (uint32_t i = 0; i < sizeof(file); i++) {
		memcpy(now, file, sizeof(now));
		now[i] = INT3;
		if (i == 4)
			expect(move_of(&code), JUMP_BEHIND_PROBE, 5, 5);
		else
			expect_refused(move_of(&code), ENTRY_CHANGED, i);
	}
	now[4] = NOP;
	expect_refused(move_of(&code), ENTRY_CHANGED, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_jump_lies_behind_a_probed_push),
		cmocka_unit_test(test_all_that_ran_before_the_jump_is_undone),
		cmocka_unit_test(test_what_cannot_be_undone_is_refused),
		cmocka_unit_test(test_a_probe_that_is_no_instruction_is_refused),
		cmocka_unit_test(test_the_jump_lies_before_a_probe_that_is_far_behind),
		cmocka_unit_test(test_only_what_the_jump_needs_is_written),
		cmocka_unit_test(test_threads_that_the_probe_has_seen_go_behind_it),
		cmocka_unit_test(test_only_the_probe_itself_may_be_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
