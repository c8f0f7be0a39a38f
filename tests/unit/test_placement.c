// SPDX-License-Identifier: MIT
/* Where in a function the probe goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/placement.h"

#include "base/array.h"

/* Instructions, as bytes, so that each test reads like a disassembly. */
#define ENDBR64            0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBP           0x55
#define PUSH_R12           0x41, 0x54
#define NOP                0x90
#define NOP5               0x0f, 0x1f, 0x44, 0x00, 0x00
#define RET                0xc3
#define CALL_FAR_AWAY      0xe8, 0x00, 0x10, 0x00, 0x00
#define JMP_FAR_AWAY       0xe9, 0x00, 0x10, 0x00, 0x00
#define JMP_SHORT(disp)    0xeb, (uint8_t)(disp)
#define JE_SHORT(disp)     0x74, (uint8_t)(disp)
#define JNE_FAR_AWAY       0x0f, 0x85, 0x00, 0x10, 0x00, 0x00
#define CALL(disp)         0xe8, (uint8_t)(disp), 0xff, 0xff, 0xff
#define CMPL_IMM_RIP       0x81, 0x3d, 0x10, 0x20, 0x30, 0x00, 0x01, 0x00, 0x00, 0x00
#define JMP_TABLE_RIP      0xff, 0x25, 0x10, 0x20, 0x30, 0x00
#define SUB_8_RSP          0x48, 0x83, 0xec, 0x08
#define MOV_RSP_RBP        0x48, 0x89, 0xe5
#define XOR_EAX_EAX        0x31, 0xc0
#define MOV_EDI_EAX        0x89, 0xf8
#define MOV_RIP_RAX        0x48, 0x8b, 0x05, 0x10, 0x20, 0x30, 0x00
#define MOV_EAX_RIP        0x89, 0x05, 0x10, 0x20, 0x30, 0x00
#define MOV_EAX_8_RSP      0x89, 0x44, 0x24, 0x08
#define MOV_EAX_AT_RDI     0x89, 0x07
#define XOR_ESI_ESI        0x31, 0xf6
#define MOV_AL_DL          0x88, 0xc2
#define TEST_RDI_RDI       0x48, 0x85, 0xff
#define SYSCALL            0x0f, 0x05
#define NOT_AN_INSTRUCTION 0x06

static const struct emulation old_kernel = { .nop5 = false };
static const struct emulation new_kernel = { .nop5 = true };

static struct placement choose_on(const struct emulation *emulation, const uint8_t *code,
                                  size_t len)
{
	struct placement placement;

	placement_choose(code, len, len, ABI_X86_64, emulation, &placement);
	return placement;
}

#define CHOOSE(...)                                                                                \
	choose_on(&old_kernel, (const uint8_t[]){ __VA_ARGS__ },                                   \
	          sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void expect(struct placement placement, uint32_t skip, bool emulated,
                   const char *instruction)
{
	assert_int_equal(placement.skip, skip);
	assert_int_equal(placement.emulated, emulated);
	assert_string_equal(placement.instruction, instruction);
	assert_non_null(placement.why);
}

/* ---- what is emulated ------------------------------------------------------------------------ */

static void test_push_at_entry_is_taken(void **state)
{
	struct placement placement = CHOOSE(PUSH_RBP, MOV_RSP_RBP, RET);

	expect(placement, 0, true, "push");
	assert_string_equal(placement.why, "entry is push");
}

static void test_push_of_upper_register_is_taken(void **state)
{
	expect(CHOOSE(PUSH_R12, RET), 0, true, "push");
}

static void test_push_with_another_prefix_is_stepped(void **state)
{
	expect(CHOOSE(0x48, 0x55, RET), 0, false, "push"); /* rex.W push %rbp */
	expect(CHOOSE(0x66, 0x55, RET), 0, false, "push"); /* push %bp */
}

static void test_call_at_entry_is_taken(void **state)
{
	expect(CHOOSE(CALL_FAR_AWAY, RET), 0, true, "call");
}

static void test_jmp_at_entry_is_taken(void **state)
{
	expect(CHOOSE(JMP_FAR_AWAY), 0, true, "jmp");
	expect(CHOOSE(JMP_SHORT(0x40)), 0, true, "jmp");
}

static void test_conditional_jump_at_entry_is_taken(void **state)
{
	expect(CHOOSE(JE_SHORT(0x40), RET), 0, true, "je");
	expect(CHOOSE(JNE_FAR_AWAY, RET), 0, true, "jne");
}

static void test_prefixed_branch_is_stepped(void **state)
{
	expect(CHOOSE(0xf2, JMP_FAR_AWAY), 0, false, "jmp");       /* bnd jmp */
	expect(CHOOSE(0x3e, JMP_SHORT(0x40)), 0, false, "jmp");    /* notrack jmp */
	expect(CHOOSE(0x3e, JE_SHORT(0x40), RET), 0, false, "je"); /* branch hint */
}

static void test_indirect_jmp_is_stepped(void **state)
{
	expect(CHOOSE(JMP_TABLE_RIP), 0, false, "jmp");
}

static void test_loop_is_stepped(void **state)
{
	expect(CHOOSE(0xe2, 0x40, RET), 0, false, "loop");
}

static void test_one_byte_nop_is_taken(void **state)
{
	expect(CHOOSE(NOP, RET), 0, true, "nop");
}

static void test_five_byte_nop_is_taken_where_the_kernel_emulates_it(void **state)
{
	const uint8_t code[] = { NOP5, RET };

	expect(choose_on(&new_kernel, code, sizeof(code)), 0, true, "nop");
	expect(choose_on(&old_kernel, code, sizeof(code)), 0, false, "nop");
}

static void test_other_long_nop_is_never_taken(void **state)
{
	const uint8_t code[] = { 0x0f, 0x1f, 0x40, 0x00, RET };

	expect(choose_on(&new_kernel, code, sizeof(code)), 0, false, "nop");
}

/* ---- what may come before -------------------------------------------------------------------- */

static void test_push_after_endbr64_is_taken(void **state)
{
	expect(CHOOSE(ENDBR64, PUSH_RBP, RET), 4, true, "push");
}

static void test_je_after_cmpl_is_taken(void **state)
{
	struct placement placement = CHOOSE(CMPL_IMM_RIP, JE_SHORT(6), JMP_TABLE_RIP, RET);

	expect(placement, 10, true, "je");
	assert_string_equal(placement.why, "conditional jump with the arguments still in place");
}

static void test_five_byte_nop_is_stepped_over_where_it_is_not_emulated(void **state)
{
	expect(CHOOSE(NOP5, PUSH_RBP, RET), 5, true, "push");
}

static void test_harmless_instructions_are_stepped_over(void **state)
{
	expect(CHOOSE(ENDBR64, XOR_EAX_EAX, MOV_EDI_EAX, MOV_RIP_RAX, TEST_RDI_RDI, JE_SHORT(0x40),
	              RET),
	       4 + 2 + 2 + 7 + 3, true, "je");
}

static void test_changed_argument_ends_the_search(void **state)
{
	struct placement placement = CHOOSE(XOR_ESI_ESI, PUSH_RBP, RET);

	expect(placement, 0, false, "xor");
	assert_string_equal(placement.why, "an argument changes before anything emulated");
}

static void test_each_argument_register_counts(void **state)
{
	/* mov $1,REG: rcx, rdx, rsi, rdi, r8, r9 */
	const struct placement places[] = {
		CHOOSE(0xb9, 1, 0, 0, 0, PUSH_RBP, RET),
		CHOOSE(0xba, 1, 0, 0, 0, PUSH_RBP, RET),
		CHOOSE(0xbe, 1, 0, 0, 0, PUSH_RBP, RET),
		CHOOSE(0xbf, 1, 0, 0, 0, PUSH_RBP, RET),
		CHOOSE(0x41, 0xb8, 1, 0, 0, 0, PUSH_RBP, RET),
		CHOOSE(0x41, 0xb9, 1, 0, 0, 0, PUSH_RBP, RET),
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		expect(places[i], 0, false, "mov");
		assert_string_equal(places[i].why, "an argument changes before anything emulated");
	}
}

static void test_part_of_an_argument_register_counts(void **state)
{
	expect(CHOOSE(MOV_AL_DL, PUSH_RBP, RET), 0, false, "mov");
}

static void test_moved_stack_pointer_ends_the_search(void **state)
{
	struct placement placement = CHOOSE(SUB_8_RSP, CALL_FAR_AWAY, RET);

	expect(placement, 0, false, "sub");
	assert_string_equal(placement.why, "the stack pointer changes before anything emulated");
}

static void test_changed_frame_pointer_ends_the_search(void **state)
{
	expect(CHOOSE(MOV_RSP_RBP, CALL_FAR_AWAY, RET), 0, false, "mov");
}

static void test_write_to_the_stack_ends_the_search(void **state)
{
	expect(CHOOSE(MOV_EAX_8_RSP, PUSH_RBP, RET), 0, false, "mov");
}

static void test_write_through_a_pointer_ends_the_search(void **state)
{
	struct placement placement = CHOOSE(MOV_EAX_AT_RDI, PUSH_RBP, RET);

	expect(placement, 0, false, "mov");
	assert_string_equal(placement.why, "memory is written before anything emulated");
}

static void test_write_to_the_modules_own_data_is_stepped_over(void **state)
{
	expect(CHOOSE(MOV_EAX_RIP, PUSH_RBP, RET), 6, true, "push");
}

static void test_ret_ends_the_search(void **state)
{
	expect(CHOOSE(XOR_EAX_EAX, RET, PUSH_RBP), 0, false, "xor");
}

static void test_indirect_jump_ends_the_search(void **state)
{
	struct placement placement = CHOOSE(CMPL_IMM_RIP, JMP_TABLE_RIP, PUSH_RBP);

	expect(placement, 0, false, "cmp");
	assert_string_equal(placement.why, "the function branches before anything emulated");
}

static void test_system_call_ends_the_search(void **state)
{
	expect(CHOOSE(SYSCALL, PUSH_RBP, RET), 0, false, "syscall");
}

static void test_instruction_with_side_effects_ends_the_search(void **state)
{
	expect(CHOOSE(0x0f, 0xa2, PUSH_RBP, RET), 0, false, "cpuid");
	expect(CHOOSE(0xf4, PUSH_RBP, RET), 0, false, "hlt");
	expect(CHOOSE(0xcc, PUSH_RBP, RET), 0, false, "int3");
	expect(CHOOSE(0x0f, 0xae, 0xf0, PUSH_RBP, RET), 0, false, "mfence");
	expect(CHOOSE(0x8e, 0xd8, PUSH_RBP, RET), 0, false, "mov"); /* mov %eax,%ds */
}

static void test_undecodable_bytes_end_the_search(void **state)
{
	expect(CHOOSE(ENDBR64, NOT_AN_INSTRUCTION, PUSH_RBP), 0, false, "endbr64");
	expect(CHOOSE(NOT_AN_INSTRUCTION), 0, false, "");
}

static void test_search_stops_after_64_bytes(void **state)
{
	uint8_t code[7 * 11 + 1];

	for (size_t i = 0; i < 11; i++)
		memcpy(code + 7 * i, (const uint8_t[]){ MOV_RIP_RAX }, 7);
	code[7 * 11] = PUSH_RBP;
	expect(choose_on(&old_kernel, code, sizeof(code)), 0, false, "mov");
	expect(choose_on(&old_kernel, code + 7 * 2, sizeof(code) - 7 * 2), 63, true, "push");
}

static void test_search_stops_after_16_instructions(void **state)
{
	uint8_t code[2 * 16 + 1];

	for (size_t i = 0; i < 16; i++)
		memcpy(code + 2 * i, (const uint8_t[]){ XOR_EAX_EAX }, 2);
	code[2 * 16] = PUSH_RBP;
	expect(choose_on(&old_kernel, code, sizeof(code)), 0, false, "xor");
	expect(choose_on(&old_kernel, code + 2, sizeof(code) - 2), 30, true, "push");
}

static void test_search_stops_at_the_end_of_the_function(void **state)
{
	static const uint8_t code[] = { ENDBR64, PUSH_RBP };
	struct placement placement;

	placement_choose(code, sizeof(code), 4, ABI_X86_64, &old_kernel, &placement);
	expect(placement, 0, false, "endbr64");
}

/* ---- jumps back ------------------------------------------------------------------------------ */

static void test_jump_to_the_place_sends_the_probe_to_the_entry(void **state)
{
	struct placement placement = CHOOSE(ENDBR64, PUSH_RBP, XOR_EAX_EAX, JMP_SHORT(-5), RET);

	expect(placement, 0, false, "endbr64");
	assert_string_equal(placement.why, "a jump leads back to before the emulated instruction");
}

static void test_jump_to_what_runs_into_the_place_does_as_well(void **state)
{
	expect(CHOOSE(ENDBR64, TEST_RDI_RDI, PUSH_RBP, JMP_SHORT(-6), RET), 0, false, "endbr64");
	expect(CHOOSE(ENDBR64, PUSH_RBP, JE_SHORT(-7), RET), 0, false, "endbr64");
}

static void test_jump_to_just_after_the_place_does_not_matter(void **state)
{
	expect(CHOOSE(ENDBR64, PUSH_RBP, XOR_EAX_EAX, JMP_SHORT(-4), RET), 4, true, "push");
}

static void test_jump_out_of_the_function_does_not_matter(void **state)
{
	expect(CHOOSE(ENDBR64, PUSH_RBP, XOR_EAX_EAX, JMP_SHORT(-10)), 4, true, "push");
	expect(CHOOSE(ENDBR64, PUSH_RBP, XOR_EAX_EAX, JMP_FAR_AWAY), 4, true, "push");
}

static void test_jump_back_behind_undecodable_bytes_is_found(void **state)
{
	expect(CHOOSE(ENDBR64, PUSH_RBP, RET, NOT_AN_INSTRUCTION, JMP_SHORT(-5)), 0, false,
	       "endbr64");
}

static void test_recursive_call_does_not_matter(void **state)
{
	expect(CHOOSE(ENDBR64, PUSH_RBP, CALL(-10), RET), 4, true, "push");
}

static void test_jump_back_to_an_emulated_entry_changes_nothing(void **state)
{
	expect(CHOOSE(PUSH_RBP, XOR_EAX_EAX, JMP_SHORT(-5), RET), 0, true, "push");
}

static void test_jumps_of_the_next_function_do_not_matter(void **state)
{
	static const uint8_t code[] = { ENDBR64, PUSH_RBP, RET, JMP_SHORT(-4) };
	struct placement placement;

	placement_choose(code, sizeof(code), 6, ABI_X86_64, &old_kernel, &placement);
	expect(placement, 4, true, "push");
}

static void test_unknown_size_is_searched_for_4_kib(void **state)
{
	static uint8_t code[8192] = { ENDBR64, PUSH_RBP };
	struct placement placement;

	memset(code + 5, RET, sizeof(code) - 5);
	memcpy(code + 4096, (const uint8_t[]){ 0xe9, 0xfb, 0xef, 0xff, 0xff }, 5); /* to 0 */
	placement_choose(code, sizeof(code), 0, ABI_X86_64, &old_kernel, &placement);
	expect(placement, 4, true, "push");

	memcpy(code + 4000, (const uint8_t[]){ 0xe9, 0x5b, 0xf0, 0xff, 0xff }, 5); /* to 0 */
	placement_choose(code, sizeof(code), 0, ABI_X86_64, &old_kernel, &placement);
	expect(placement, 0, false, "endbr64");
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void test_no_code_gives_the_entry(void **state)
{
	static const uint8_t code[] = { RET };
	struct placement placement;

	placement_choose(code, 0, 100, ABI_X86_64, &old_kernel, &placement);
	expect(placement, 0, false, "");
}

static void test_cut_instruction_gives_the_entry(void **state)
{
	expect(CHOOSE(0xe9, 0x00, 0x10), 0, false, "");
}

static void test_aarch64_always_gives_the_entry(void **state)
{
	static const uint8_t code[] = { 0x3f, 0x23, 0x03, 0xd5 }; /* paciasp */
	struct placement placement;

	placement_choose(code, sizeof(code), sizeof(code), ABI_AARCH64, &new_kernel, &placement);
	expect(placement, 0, false, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_at_entry_is_taken),
		cmocka_unit_test(test_push_of_upper_register_is_taken),
		cmocka_unit_test(test_push_with_another_prefix_is_stepped),
		cmocka_unit_test(test_call_at_entry_is_taken),
		cmocka_unit_test(test_jmp_at_entry_is_taken),
		cmocka_unit_test(test_conditional_jump_at_entry_is_taken),
		cmocka_unit_test(test_prefixed_branch_is_stepped),
		cmocka_unit_test(test_indirect_jmp_is_stepped),
		cmocka_unit_test(test_loop_is_stepped),
		cmocka_unit_test(test_one_byte_nop_is_taken),
		cmocka_unit_test(test_five_byte_nop_is_taken_where_the_kernel_emulates_it),
		cmocka_unit_test(test_other_long_nop_is_never_taken),
		cmocka_unit_test(test_push_after_endbr64_is_taken),
		cmocka_unit_test(test_je_after_cmpl_is_taken),
		cmocka_unit_test(test_five_byte_nop_is_stepped_over_where_it_is_not_emulated),
		cmocka_unit_test(test_harmless_instructions_are_stepped_over),
		cmocka_unit_test(test_changed_argument_ends_the_search),
		cmocka_unit_test(test_each_argument_register_counts),
		cmocka_unit_test(test_part_of_an_argument_register_counts),
		cmocka_unit_test(test_moved_stack_pointer_ends_the_search),
		cmocka_unit_test(test_changed_frame_pointer_ends_the_search),
		cmocka_unit_test(test_write_to_the_stack_ends_the_search),
		cmocka_unit_test(test_write_through_a_pointer_ends_the_search),
		cmocka_unit_test(test_write_to_the_modules_own_data_is_stepped_over),
		cmocka_unit_test(test_ret_ends_the_search),
		cmocka_unit_test(test_indirect_jump_ends_the_search),
		cmocka_unit_test(test_system_call_ends_the_search),
		cmocka_unit_test(test_instruction_with_side_effects_ends_the_search),
		cmocka_unit_test(test_undecodable_bytes_end_the_search),
		cmocka_unit_test(test_search_stops_after_64_bytes),
		cmocka_unit_test(test_search_stops_after_16_instructions),
		cmocka_unit_test(test_search_stops_at_the_end_of_the_function),
		cmocka_unit_test(test_jump_to_the_place_sends_the_probe_to_the_entry),
		cmocka_unit_test(test_jump_to_what_runs_into_the_place_does_as_well),
		cmocka_unit_test(test_jump_to_just_after_the_place_does_not_matter),
		cmocka_unit_test(test_jump_out_of_the_function_does_not_matter),
		cmocka_unit_test(test_jump_back_behind_undecodable_bytes_is_found),
		cmocka_unit_test(test_recursive_call_does_not_matter),
		cmocka_unit_test(test_jump_back_to_an_emulated_entry_changes_nothing),
		cmocka_unit_test(test_jumps_of_the_next_function_do_not_matter),
		cmocka_unit_test(test_unknown_size_is_searched_for_4_kib),
		cmocka_unit_test(test_no_code_gives_the_entry),
		cmocka_unit_test(test_cut_instruction_gives_the_entry),
		cmocka_unit_test(test_aarch64_always_gives_the_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
