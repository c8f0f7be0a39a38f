// SPDX-License-Identifier: MIT
/* What the rest of a file says of a function's first bytes, in libraries that the compiler makes.
 */
#include "elf_build.h"

#include "base/array.h"
#include "divert/entry_file.h"
#include "probe/elf_image.h"

/* Assembly functions, each with its symbol; WITH_FRAMES: and with call frame information. */
#define BEGIN(name)        ".globl " name "\n.type " name ", @function\n.balign 16\n" name ":\n"
#define END(name)          ".size " name ", . - " name "\n"
#define FRAMED(name, body) BEGIN(name) ".cfi_startproc\n" body ".cfi_endproc\n" END(name)
#define PLAIN(name, body)  BEGIN(name) body END(name)
#define PROLOGUE           "push %rbp\nmov %rsp, %rbp\npush %r15\nxor %eax, %eax\nret\n"

/* A jump of 32 bits, wherever the bytes stand. */
#define JUMP_TO(place) ".byte 0xe9\n.long " place " - (. + 4)\n"

static struct entry_function judge_in(int fd, const char *name)
{
	struct entry_function function = { 0 };
	struct elf_symbols symbols;
	struct elf_image image;
	Elf64_Sym found;

	assert_int_equal(elf_image_open(&image, fd, "the file", NULL), 0);
	assert_int_equal(elf_symbols_dynamic(&image, &symbols), 0);
	assert_int_equal(elf_symbols_find(&image, &symbols, name, false, &found), 1);
	elf_image_close(&image);
	function.address = found.st_value;
	function.size = found.st_size;
	assert_int_equal(entry_file_judge(fd, "the file", &function, 1, NULL), 0);
	close(fd);
	return function;
}

static void build_code(const char *code)
{
	write_file(in_dir("code.s"), code);
	run("gcc -shared -nostdlib -o a.out code.s");
}

static struct entry_function judge(const char *code)
{
	build_code(code);
	return judge_in(reopen(), "target");
}

static void expect(struct entry_function function, enum entry_refusal refusal, uint32_t at)
{
	assert_string_equal(entry_refusal_text(function.refusal), entry_refusal_text(refusal));
	assert_int_equal(function.refused_at, at);
}

static void test_an_ordinary_function_can_be_diverted(void **state)
{
	struct entry_function function = judge(FRAMED("target", PROLOGUE));

	expect(function, ENTRY_MOVABLE, 0);
	assert_int_equal(function.bytes, 6);
}

static void test_a_jump_from_another_function_is_seen(void **state)
{
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", JUMP_TO("target + 4"))),
	       ENTRY_JUMPED_INTO, 4);
	expect(judge(FRAMED("target", PROLOGUE) PLAIN("other", JUMP_TO("target + 4"))),
	       ENTRY_JUMPED_INTO, 4);
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", JUMP_TO("target + 6"))),
	       ENTRY_MOVABLE, 0);
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", JUMP_TO("target"))), ENTRY_MOVABLE,
	       0);
}

static void test_all_branches_of_32_bits_are_seen(void **state)
{
	expect(judge(FRAMED("target", PROLOGUE) FRAMED(
		       "other", ".byte 0x0f, 0x84\n.long target + 1 - (. + 4)\nret\n")),
	       ENTRY_JUMPED_INTO, 1);
	expect(judge(FRAMED("target", PROLOGUE)
	                     FRAMED("other", ".byte 0xe8\n.long target + 1 - (. + 4)\nret\n")),
	       ENTRY_JUMPED_INTO, 1);
}

/* Code is looked at eight bytes at a time; other beginnings, which lead nowhere, stand before it.
 */
static void test_a_branch_is_seen_wherever_it_stands(void **state)
{
	for (int at = 0; at < 18; at++) {
		struct buf code = { 0 };

		buf_puts(&code, FRAMED("target", PROLOGUE) BEGIN("other"));
		buf_printf(&code, ".fill %d, 1, %s\n", at / 2, at % 4 < 2 ? "0xe8" : "0x0f");
		buf_puts(&code, at % 2 ? JUMP_TO("target + 4")
		                       : ".byte 0x0f, 0x8f\n.long target + 4 - (. + 4)\n");
		buf_puts(&code, END("other"));
		expect(judge(code.data), ENTRY_JUMPED_INTO, 4);
		buf_free(&code);
	}
}

/* Code is read 256 KiB at a time, from the begin of its segment, where the target is. */
static void test_a_jump_across_what_is_read_at_a_time_is_seen(void **state)
{
	for (int at = 262144 - 6; at <= 262144; at++) {
		struct buf code = { 0 };

		buf_puts(&code, PLAIN("target", PROLOGUE));
		buf_printf(&code, ".fill %d - (. - target), 1, 0x90\n", at);
		buf_puts(&code, at % 2 ? JUMP_TO("target + 4")
		                       : ".byte 0x0f, 0x85\n.long target + 4 - (. + 4)\n");
		expect(judge(code.data), ENTRY_JUMPED_INTO, 4);
		buf_free(&code);
	}
}

/* movabs $..., %rax with the bytes of a jump in it. */
#define IMMEDIATE ".byte 0x48, 0xb8\n" JUMP_TO("target + 4") ".byte 0, 0, 0\nret\n"

static void test_what_looks_like_a_jump_within_an_instruction_is_none(void **state)
{
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", IMMEDIATE)), ENTRY_MOVABLE, 0);
	/* Where nothing says how to decode it, it may be one. */
	expect(judge(FRAMED("target", PROLOGUE) PLAIN("other", IMMEDIATE)), ENTRY_JUMPED_INTO, 4);
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", ".byte 6\n" IMMEDIATE)),
	       ENTRY_JUMPED_INTO, 4);
}

static void test_a_jump_behind_what_looks_like_one_is_seen(void **state)
{
	expect(judge(FRAMED("target", PROLOGUE) FRAMED("other", "test %eax, %eax\nje 1f\n" IMMEDIATE
	                                                        "1: " JUMP_TO("target + 1"))),
	       ENTRY_JUMPED_INTO, 1);
}

static void test_what_is_called_behind_the_endbr64_is_the_function(void **state)
{
	expect(judge(FRAMED("target", "endbr64\n" PROLOGUE) FRAMED("other", JUMP_TO("target + 4"))),
	       ENTRY_MOVABLE, 0);
	expect(judge(FRAMED("target", "endbr64\n" PROLOGUE)
	                     FRAMED("other", JUMP_TO("target + 4") JUMP_TO("target + 8"))),
	       ENTRY_JUMPED_INTO, 8);
}

static void test_another_function_in_the_first_bytes_is_seen(void **state)
{
	expect(judge(BEGIN("target") "push %rbp\n.type inner, @function\ninner: mov %rsp, %rbp\n"
	                             "push %r15\nret\n" END("target")),
	       ENTRY_SHARED, 1);
	/* by its call frame information alone */
	build_code(BEGIN("target") "push %rbp\n.cfi_startproc\nmov %rsp, %rbp\npush %r15\nret\n"
	                           ".cfi_endproc\n" END("target"));
	run("strip a.out");
	expect(judge_in(reopen(), "target"), ENTRY_SHARED, 1);
}

static void test_padding_ends_where_another_function_begins(void **state)
{
	expect(judge(PLAIN("target", "xor %eax, %eax\nret\n") PLAIN("other", "ret\n")),
	       ENTRY_MOVABLE, 0);
	expect(judge(PLAIN("target",
	                   "xor %eax, %eax\nret\n") ".globl other\n.type other, @function\n"
	                                            "other: nop\n.fill 12, 1, 0x90\n"),
	       ENTRY_TOO_SHORT, 3);
}

static void test_a_size_that_the_symbol_lacks_is_that_of_its_frame(void **state)
{
	expect(judge(BEGIN("target") ".cfi_startproc\n" PROLOGUE ".cfi_endproc\n"), ENTRY_MOVABLE,
	       0);
	expect(judge(BEGIN("target") PROLOGUE), ENTRY_NO_SIZE, 0);
}

static void test_a_size_that_leads_out_of_the_file_is_refused(void **state)
{
	expect(judge(BEGIN("target") PROLOGUE ".size target, 200000\n"), ENTRY_NOT_READ, 0);
	expect(judge(BEGIN("target") PROLOGUE ".size target, 0x7fffffffffffffff\n"),
	       ENTRY_TOO_LARGE, 0);
}

/* 40 functions of 256 KiB, one in the other: 8 MiB are decoded, no more. */
static void test_what_is_decoded_is_limited(void **state)
{
	struct entry_function functions[40] = { 0 };
	struct elf_symbols symbols;
	struct elf_image image;
	size_t too_large = 0;
	Elf64_Sym found;
	int fd;

	build_code(
		BEGIN("target") ".rept 30000\nmovabs $0x1122334455667788, %rax\n.endr\nret\n" END(
			"target"));
	fd = reopen();
	assert_int_equal(elf_image_open(&image, fd, "the file", NULL), 0);
	assert_int_equal(elf_symbols_dynamic(&image, &symbols), 0);
	assert_int_equal(elf_symbols_find(&image, &symbols, "target", false, &found), 1);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		functions[i] = (struct entry_function){ .address = found.st_value + 10 * i,
			                                .size = ENTRY_FUNCTION_MAX };
	assert_int_equal(entry_file_judge(fd, "the file", functions, ARRAY_SIZE(functions), NULL),
	                 0);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		too_large += functions[i].refusal == ENTRY_TOO_LARGE;
	assert_int_equal(too_large, ARRAY_SIZE(functions) - 32);
	elf_image_close(&image);
	close(fd);
}

static void test_functions_of_a_module_come_in_its_order(void **state)
{
	struct entry_function *functions;
	struct err err = { 0 };
	size_t count;
	int fd = build("int cuInit(int n) { return n; } int cuMemFree(int n) { return n / 7; }"
	               "int cuLaunchKernel(int n) { return n / 11; }",
	               LIBRARY);

	assert_int_equal(entry_module_judge(fd, "the file", &functions, &count, &err), 0);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(functions[i].refusal, i ? ENTRY_MOVABLE : ENTRY_TOO_SHORT);
		assert_true(!i || functions[i - 1].offset < functions[i].offset);
	}
	free(functions);
	close(fd);
}

static void test_what_is_no_module_is_said(void **state)
{
	struct entry_function *functions;
	struct err err = { 0 };
	size_t count;
	int fd = build("int f(void) { return 1; }", LIBRARY);

	assert_int_equal(entry_module_judge(fd, "the file", &functions, &count, &err), -ENOENT);
	assert_string_equal(err.text, "the file holds no CUDA functions");
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(entry_module_judge(fd, "the file", &functions, &count, &err), -ENOEXEC);
	assert_null(functions);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_ordinary_function_can_be_diverted),
		cmocka_unit_test(test_a_jump_from_another_function_is_seen),
		cmocka_unit_test(test_all_branches_of_32_bits_are_seen),
		cmocka_unit_test(test_a_branch_is_seen_wherever_it_stands),
		cmocka_unit_test(test_a_jump_across_what_is_read_at_a_time_is_seen),
		cmocka_unit_test(test_what_looks_like_a_jump_within_an_instruction_is_none),
		cmocka_unit_test(test_a_jump_behind_what_looks_like_one_is_seen),
		cmocka_unit_test(test_what_is_called_behind_the_endbr64_is_the_function),
		cmocka_unit_test(test_another_function_in_the_first_bytes_is_seen),
		cmocka_unit_test(test_padding_ends_where_another_function_begins),
		cmocka_unit_test(test_a_size_that_the_symbol_lacks_is_that_of_its_frame),
		cmocka_unit_test(test_a_size_that_leads_out_of_the_file_is_refused),
		cmocka_unit_test(test_what_is_decoded_is_limited),
		cmocka_unit_test(test_functions_of_a_module_come_in_its_order),
		cmocka_unit_test(test_what_is_no_module_is_said),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
