// SPDX-License-Identifier: MIT
/* Functions that hooks of users find in files, which anybody may have made. */
#include "elf_build.h"
#include "unit.h"

#include "base/array.h"
#include "probe/own_functions.h"
#include "probe/own_hooks.h"

#define LONG_NS 5000000000ull

static const char source[] = "int f_one(void) { return 1; }\n"
			     "int f_two(void) { return 2; }\n"
			     "int alias(void) __attribute__((alias(\"f_two\")));\n";

static struct hook_list list;
static struct own_functions functions;
static struct err err;

static void ask_for(const char *text)
{
	struct buf wrong = { 0 };

	if (hook_list_add(&list, text, &wrong))
		fail_msg("%s", wrong.data);
}

static int forget(void **state)
{
	own_functions_free(&functions);
	hook_list_free(&list);
	err = (struct err){ 0 };
	return 0;
}

static void test_two_hooks_that_meet_are_told_apart(void **state)
{
	int fd = build(source, LIBRARY);

	ask_for("uprobe:libx.so:f_*");
	ask_for("uprobe:libx.so:f_one(a=arg0)");
	ask_for("uentry:libx.so:alias");
	ask_for("uprobe:libx.so:nothing");
	assert_int_equal(own_functions_read(fd, "/lib/libx.so", &list, LONG_NS, &functions, &err),
	                 0);
	assert_int_equal(functions.n, 2);
	assert_int_equal(functions.taken[0].places, 0);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(functions.taken[i].places, 1);
		assert_int_equal(functions.taken[i].by, 0);
	}
	assert_int_equal(functions.taken[3].places, 0);
	close(fd);
}

static void test_names_of_one_function_are_one_hook(void **state)
{
	int fd = build(source, LIBRARY);

	ask_for("uprobe:libx.so:*");
	assert_int_equal(own_functions_read(fd, "/lib/libx.so", &list, LONG_NS, &functions, &err),
	                 0);
	assert_int_equal(functions.n, 2);
	assert_int_equal(functions.taken[0].places, 0);
	close(fd);
}

static void test_a_file_that_takes_too_long_is_left(void **state)
{
	struct own_functions none;
	int fd = build(source, LIBRARY);

	ask_for("uprobe:libx.so:f_one");
	assert_int_equal(own_functions_read(fd, "/lib/libx.so", &list, 0, &none, &err), -ETIME);
	assert_non_null(
		strstr(err.text, "has so many symbols that looking for hooks takes more than"));
	assert_null(none.list);
	close(fd);
}

static void test_what_nobody_has_time_for_is_put_off(void **state)
{
	struct own_module *module;
	int fd = build(source, LIBRARY);

	ask_for("uprobe:libx.so:f_one");
	assert_false(own_module_open(fd, "/lib/libx.so", ELF_DYNSYM_ONLY, &list, &module));
	assert_null(module);
	assert_true(own_module_open(fd, "/lib/liby.so", ELF_DYNSYM_ONLY, &list, &module));
	assert_null(module);
	assert_true(own_module_open(fd, "/lib/libx.so", ELF_SMALL_SYMTAB, &list, &module));
	assert_int_equal(module->functions.n, 1);
	assert_null(module->refused);
	own_module_free(module);
	close(fd);
}

/* As two overlays on one file do: then their programs run in one trap. */
static void test_files_meet_where_both_are_hooked_at_one_offset(void **state)
{
	struct own_module *module, *same, *apart;
	int fd = build(source, LIBRARY);

	ask_for("uprobe:libx.so:f_one");
	assert_true(own_module_open(fd, "/lib/libx.so", ELF_SMALL_SYMTAB, &list, &module));
	assert_true(own_module_open(fd, "/lib/libx.so", ELF_SMALL_SYMTAB, &list, &same));
	assert_true(own_module_open(fd, "/lib/libx.so", ELF_SMALL_SYMTAB, &list, &apart));
	assert_true(own_module_meets(module, same));
	assert_false(own_module_meets(module, NULL));
	apart->functions.list[0].offset++;
	assert_false(own_module_meets(module, apart));
	own_module_free(module);
	own_module_free(same);
	own_module_free(apart);
	close(fd);
}

/* A .symtab that begins outside of the file. */
static void test_a_damaged_file_is_kept_with_its_reason(void **state)
{
	struct own_module *module;
	int fd = build(source, LIBRARY);
	Elf64_Ehdr header;
	Elf64_Shdr section;

	ask_for("uprobe:libx.so:f_one");
	get(fd, &header, sizeof(header), 0);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		uint64_t at = header.e_shoff + i * sizeof(section);

		get(fd, &section, sizeof(section), at);
		section.sh_offset = section.sh_type == SHT_SYMTAB ? 1u << 30 : section.sh_offset;
		put(fd, &section, sizeof(section), at);
	}
	assert_true(own_module_open(fd, "/lib/libx.so", ELF_SMALL_SYMTAB, &list, &module));
	assert_string_equal(module->refused,
	                    "/lib/libx.so is damaged: its symbol tables make no sense");
	assert_int_equal(module->functions.n, 0);
	own_module_free(module);
	close(fd);
}

/* How files with code of Go look, by linker, kind and what was stripped. */
static void test_files_with_code_of_go_are_known(void **state)
{
	static const char *const marks[] = {
		"char a[] __attribute__((section(\".go.buildinfo\"))) = {0};",
		"const char a[] __attribute__((section(\".gopclntab\"))) = {0};",
		"const char a[] __attribute__((section(\".note.x\"), aligned(4))) = "
		"\"\\4\\0\\0\\0\\4\\0\\0\\0\\4\\0\\0\\0Go\\0\\0abc\";",
		"char a[] = \"\\xff Go buildinf:\";",
	};

	ask_for("uprobe:libx.so:f_one");
	for (size_t i = 0; i <= ARRAY_SIZE(marks); i++) {
		struct buf text = { 0 };
		int fd;

		buf_printf(&text, "%s%s", source, i ? marks[i - 1] : "char a[] = \"Go\";");
		fd = build(text.data, LIBRARY);
		assert_int_equal(
			own_functions_read(fd, "/lib/libx.so", &list, LONG_NS, &functions, &err),
			0);
		assert_int_equal(functions.n, 1);
		assert_int_equal(functions.list[0].no_return != NULL, i != 0);
		own_functions_free(&functions);
		buf_free(&text);
		close(fd);
	}
}

static void test_a_file_of_go_without_section_headers_is_known(void **state)
{
	struct buf text = { 0 };
	int fd;

	ask_for("uprobe:libx.so:f_one");
	buf_printf(&text, "%schar info[] = \"\\xff Go buildinf:\";", source);
	fd = build(text.data, LIBRARY);
	put(fd, &(uint64_t){ 0 }, sizeof(uint64_t), offsetof(Elf64_Ehdr, e_shoff));
	put(fd, &(uint16_t){ 0 }, sizeof(uint16_t), offsetof(Elf64_Ehdr, e_shnum));
	assert_int_equal(own_functions_read(fd, "/lib/libx.so", &list, LONG_NS, &functions, &err),
	                 0);
	assert_int_equal(functions.n, 1);
	assert_non_null(functions.list[0].no_return);
	buf_free(&text);
	close(fd);
}

static void test_functions_that_keep_their_return_address_are_known(void **state)
{
	int fd = build("int setjmp(void) { return 0; } int getcontexts(void) { return 0; }",
	               LIBRARY " -fno-builtin");

	ask_for("uprobe:libx.so:*");
	assert_int_equal(own_functions_read(fd, "/lib/libx.so", &list, LONG_NS, &functions, &err),
	                 0);
	assert_int_equal(functions.n, 2);
	for (size_t i = 0; i < functions.n; i++)
		assert_int_equal(functions.list[i].no_return != NULL,
		                 !strcmp(functions.list[i].name, "setjmp"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_two_hooks_that_meet_are_told_apart, forget),
		cmocka_unit_test_teardown(test_names_of_one_function_are_one_hook, forget),
		cmocka_unit_test_teardown(test_a_file_that_takes_too_long_is_left, forget),
		cmocka_unit_test_teardown(test_what_nobody_has_time_for_is_put_off, forget),
		cmocka_unit_test_teardown(test_files_meet_where_both_are_hooked_at_one_offset,
		                          forget),
		cmocka_unit_test_teardown(test_a_damaged_file_is_kept_with_its_reason, forget),
		cmocka_unit_test_teardown(test_files_with_code_of_go_are_known, forget),
		cmocka_unit_test_teardown(test_a_file_of_go_without_section_headers_is_known,
		                          forget),
		cmocka_unit_test_teardown(test_functions_that_keep_their_return_address_are_known,
		                          forget),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
