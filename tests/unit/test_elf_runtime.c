// SPDX-License-Identifier: MIT
/* The functions of a runtime that is linked into a stripped program, which the test makes. */
#include "elf_build.h"
#include "unit.h"

#include "probe/elf_runtime.h"

#define FLAGS "-fPIE -fasynchronous-unwind-tables -Wl,--eh-frame-hdr " PROGRAM

static int functions = 40;

/* Forty functions that ask for a state and say their names, one that begins, and what is given. */
static int make(const char *more, const char *flags)
{
	static const char id[] = "const unsigned char id[] = { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, "
				 "0xe7, 0x4a, 0x89, "
				 "0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9 };\n";
	struct buf text = { 0 };
	int fd;

	buf_printf(&text, "#define NI __attribute__((noipa))\n%s", more ? more : "");
	if (!more || !strstr(more, "no id"))
		buf_puts(&text, id);
	buf_puts(&text, "int count; NI int state(void) { return count++; }\n"
	                "NI int say(const char *name) { return count += !!name; }\n"
	                "#define F(n) NI int n(int a) { return state() + say(#n) + a; }\n");
	for (int i = 0; i < functions; i++)
		buf_printf(&text, "F(cudaFunction%d)\n", i);
	buf_puts(&text, "int start(void) { return id_is_there() + cudaFunction1(1); }\n");
	write_file(in_dir("head.h"), more && strstr(more, "no id")
	                                     ? "int id_is_there(void) { return 0; }\n"
	                                     : "extern const unsigned char id[];\n"
	                                       "int id_is_there(void) { return id[3]; }\n");
	fd = build(text.data, flags);
	buf_free(&text);
	return fd;
}

static struct elf_runtime_function *found;
static size_t n_found;

static int look(int fd)
{
	struct elf_image image;
	struct err err = { 0 };
	int r;

	assert_int_equal(elf_image_open(&image, fd, "the file", &err), 0);
	r = elf_runtime_find(&image, true, &found, &n_found);
	elf_image_close(&image);
	close(fd);
	return r;
}

static int forget(void **state)
{
	free(found);
	found = NULL;
	functions = 40;
	return 0;
}

/* What is found in a stripped copy is what the symbols say; returns how many. */
static size_t all_right(int fd)
{
	struct elf_symbols symbols;
	struct elf_image image;
	struct err err = { 0 };

	assert_int_equal(elf_image_open(&image, fd, "the file", &err), 0);
	close(fd);
	run("strip -o stripped a.out");
	assert_int_equal(look(open(in_dir("stripped"), O_RDONLY)), 0);
	assert_int_equal(elf_symbols_static(&image, &symbols), 0);
	for (size_t i = 0; i < n_found; i++) {
		Elf64_Sym symbol;

		assert_int_equal(elf_symbols_find(&image, &symbols, found[i].name, false, &symbol),
		                 1);
		assert_int_equal(found[i].address, symbol.st_value);
		assert_int_equal(found[i].size, symbol.st_size);
	}
	elf_image_close(&image);
	return n_found;
}

static void test_functions_of_a_stripped_program(void **state)
{
	assert_int_equal(all_right(make(NULL, "-include head.h " FLAGS)), 40);
}

static void test_what_the_program_says_does_not_matter(void **state)
{
	static const char own[] =
		"NI int tell(const char *name) { return !!name; }\n"
		"NI int own(void) { return tell(\"cudaFunction3\"); }\n"
		"NI int other(void) { return tell(\"cudaFunction3\") + tell(\"cudaFunction4\") + "
		"tell(\"cudaOther\"); }\n";

	assert_int_equal(all_right(make(own, "-include head.h " FLAGS)), 40);
}

static void test_what_two_of_its_functions_say_is_left(void **state)
{
	static const char twice[] =
		"extern int say(const char *); extern int state(void);\n"
		"NI int cudaTwice(void) { return state() + say(\"cudaFunction3\"); }\n"
		"NI int cudaBoth(void) { return state() + say(\"cudaA\") + say(\"cudaB\"); }\n";

	assert_int_equal(all_right(make(twice, "-include head.h " FLAGS)), 39);
}

static void test_fewer_than_any_runtime_has(void **state)
{
	functions = 32;
	assert_int_equal(all_right(make(NULL, "-include head.h " FLAGS)), 32);
	forget(state);
	functions = 31;
	assert_int_equal(look(make(NULL, "-include head.h -s " FLAGS)), -ENOTSUP);
}

static void test_a_program_without_a_runtime(void **state)
{
	assert_int_equal(look(make("/* no id */", "-include head.h " FLAGS)), 1);
}

static void test_a_library_is_left_alone(void **state)
{
	assert_int_equal(look(make(NULL, "-include head.h " LIBRARY)), 1);
}

/* Nobody can tell which are the runtime's. */
static void test_as_many_wrappers_as_functions(void **state)
{
	struct buf text = { 0 };

	buf_puts(&text, "extern int say(const char *); NI int wrap(void) { return 1; }\n");
	for (int i = 0; i < 40; i++)
		buf_printf(&text,
		           "NI int own%d(void) { return wrap() + say(\"cudaFunction%d\"); }\n", i,
		           i);
	assert_int_equal(look(make(text.data, "-include head.h " FLAGS)), -ENOTSUP);
	buf_free(&text);
}

static void test_a_program_without_unwind_tables(void **state)
{
	assert_int_equal(look(make(NULL, "-include head.h -fPIE -fno-asynchronous-unwind-tables "
	                                 "-fno-unwind-tables " PROGRAM)),
	                 -ENOTSUP);
}

static void test_the_file_says_so(void **state)
{
	struct elf_file *file = NULL;
	struct err err = { 0 };
	int fd = make(NULL, "-include head.h -s " FLAGS);

	assert_int_equal(elf_file_open(fd, "the file", ELF_SMALL_SYMTAB, &file, &err), 0);
	assert_int_equal(count_names(file), 40);
	assert_true(elf_file_has_layer(file, LAYER_RUNTIME));
	assert_non_null(find(file, "cudaFunction39"));
	elf_file_free(file);
	close(fd);
	fd = make(NULL, "-include head.h -s -fPIE -fno-asynchronous-unwind-tables "
	                "-fno-unwind-tables " PROGRAM);
	assert_int_equal(elf_file_open(fd, "the file", ELF_WHOLE, &file, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "linked in without symbols"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_functions_of_a_stripped_program, forget),
		cmocka_unit_test_teardown(test_what_the_program_says_does_not_matter, forget),
		cmocka_unit_test_teardown(test_what_two_of_its_functions_say_is_left, forget),
		cmocka_unit_test_teardown(test_fewer_than_any_runtime_has, forget),
		cmocka_unit_test_teardown(test_a_program_without_a_runtime, forget),
		cmocka_unit_test_teardown(test_a_library_is_left_alone, forget),
		cmocka_unit_test_teardown(test_as_many_wrappers_as_functions, forget),
		cmocka_unit_test_teardown(test_a_program_without_unwind_tables, forget),
		cmocka_unit_test_teardown(test_the_file_says_so, forget),
	};

	return cmocka_run_group_tests_name("elf_runtime", tests, make_dir, remove_dir);
}
