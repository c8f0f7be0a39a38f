// SPDX-License-Identifier: MIT
/* Which functions of a module are listed, where their code is, and which symbol covers
 * an address. */
#include "elf_build.h"

/* ---- which functions ------------------------------------------------------------------------- */

static void test_driver_names_in_a_runtime_are_not_listed(void **state)
{
	struct elf_file *file = open_module(build("int cudaLaunchKernel(void) { return 1; }\n"
	                                          "int cuFFTsomething(void) { return 2; }",
	                                          LIBRARY),
	                                    ELF_WHOLE);

	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

static void test_runtime_names_in_a_driver_are_not_listed(void **state)
{
	struct elf_file *file = open_module(build("int cuInit(void) { return 1; }\n"
	                                          "int cuLaunchKernel(void) { return 2; }\n"
	                                          "int cudaSomething(void) { return 3; }\n"
	                                          "int cudbgApiInit(void) { return 4; }",
	                                          LIBRARY),
	                                    ELF_WHOLE);

	expect_names(file, "cuInit cuLaunchKernel");
	elf_file_free(file);
}

static void test_file_with_both_layers_lists_both(void **state)
{
	struct elf_file *file = open_module(build("int cuInit(void) { return 1; }\n"
	                                          "int cuLaunchKernel(void) { return 2; }\n"
	                                          "int cudaLaunchKernel(void) { return 3; }",
	                                          LIBRARY " -s"),
	                                    ELF_DYNSYM_ONLY);

	assert_true(elf_file_has_layer(file, LAYER_DRIVER));
	assert_true(elf_file_has_layer(file, LAYER_RUNTIME));
	expect_names(file, "cuInit cuLaunchKernel cudaLaunchKernel");
	elf_file_free(file);
}

static void test_data_is_not_listed(void **state)
{
	struct elf_file *file = open_module(build("int cudaLaunchKernel(void) { return 1; }\n"
	                                          "int cudaTable[4] = { 1 };",
	                                          LIBRARY),
	                                    ELF_WHOLE);

	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

static void test_resolvers_are_not_listed(void **state)
{
	struct elf_file *file =
		open_module(build("int cudaLaunchKernel(void) { return 1; }\n"
	                          "static void *pick(void) { return cudaLaunchKernel; }\n"
	                          "int cudaPicked(void) __attribute__((ifunc(\"pick\")));",
	                          LIBRARY),
	                    ELF_WHOLE);

	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

static void test_fragments_of_functions_are_not_listed(void **state)
{
	struct elf_file *file = open_module(build("int cudaLaunchKernel(void) { return 1; }\n"
	                                          "int cold(void) __asm__(\"cudaMalloc.cold\");\n"
	                                          "int cold(void) { return 2; }\n"
	                                          "int part(void) __asm__(\"cudaFree.part.0\");\n"
	                                          "int part(void) { return 3; }\n"
	                                          "int start(void) { return 4; }",
	                                          PROGRAM),
	                                    ELF_WHOLE);

	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

static void test_registration_that_nvcc_writes_is_not_listed(void **state)
{
	struct elf_file *file = open_module(
		build("int cudaLaunchKernel(void) { return 1; }\n"
	              "int __cudaRegisterLinkedBinary_83c1_common_cu(void) { return 2; }",
	              LIBRARY),
		ELF_WHOLE);

	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

static void test_of_aliases_the_shortest_name_is_listed(void **state)
{
	struct elf_file *file = open_module(
		build("int cudaLaunchKernel(void) { return 1; }\n"
	              "int cudaFree_v2(void) { return 2; }\n"
	              "int cudaFree(void) __attribute__((alias(\"cudaFree_v2\")));\n"
	              "int cudaFree_ptsz(void) __attribute__((alias(\"cudaFree_v2\")));",
	              LIBRARY),
		ELF_DYNSYM_ONLY);

	expect_names(file, "cudaLaunchKernel cudaFree");
	elf_file_free(file);
}

/* What stands in front of the driver has one body for cuMemAlloc of CUDA 3 and for that of today.
 */
static void test_of_aliases_none_with_arguments_of_32_bits_is_listed(void **state)
{
	struct elf_file *file = open_module(
		build("int cuInit(void) { return 0; }\n"
	              "int cuLaunchKernel(void) { return 1; }\n"
	              "int cuMemAlloc_v2(void) { return 2; }\n"
	              "int cuMemAlloc(void) __attribute__((alias(\"cuMemAlloc_v2\")));\n"
	              "int cuMemFree(void) { return 3; }\n"
	              "int cuMemGetInfo_v2(void) { return 4; }\n"
	              "int cuMemGetInfo_v3(void) __attribute__((alias(\"cuMemGetInfo_v2\")));",
	              LIBRARY),
		ELF_DYNSYM_ONLY);

	assert_null(find(file, "cuMemAlloc"));
	assert_string_equal(find(file, "cuMemAlloc_v2")->also, "cuMemAlloc");
	assert_non_null(find(file, "cuMemFree")); /* the only name that there is */
	assert_null(find(file, "cuMemFree")->also);
	assert_string_equal(find(file, "cuMemGetInfo_v2")->also, "cuMemGetInfo_v3");
	elf_file_free(file);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void expect_marked(const struct elf_file *file)
{
	const struct elf_function *function = find(file, "cudaMarked");
	const uint8_t *bytes;
	size_t len = 14;

	assert_non_null(function);
	assert_int_equal(function->size, 14);
	bytes = elf_file_bytes(file, function->offset, &len);
	assert_int_equal(len, 14);
	assert_memory_equal(bytes, "MARKED BY TEST", 14);
}

static void test_offset_leads_to_the_code_of_a_library(void **state)
{
	struct elf_file *file = open_module(build(marked, LIBRARY), ELF_DYNSYM_ONLY);

	expect_marked(file);
	elf_file_free(file);
}

static void test_offset_leads_to_the_code_of_a_fixed_program(void **state)
{
	struct elf_file *file = open_module(build(marked, PROGRAM " -no-pie"), ELF_WHOLE);

	assert_true(find(file, "cudaMarked")->address != find(file, "cudaMarked")->offset);
	expect_marked(file);
	elf_file_free(file);
}

static void test_bytes_end_with_the_file(void **state)
{
	int fd = build(marked, LIBRARY);
	struct stat st;
	struct elf_file *file;
	size_t len = 4096;

	fstat(fd, &st);
	file = open_module(fd, ELF_DYNSYM_ONLY);
	assert_non_null(elf_file_bytes(file, (uint64_t)st.st_size - 5, &len));
	assert_int_equal(len, 5);
	len = 4096;
	assert_null(elf_file_bytes(file, (uint64_t)st.st_size, &len));
	assert_int_equal(len, 0);
	len = 4096;
	assert_null(elf_file_bytes(file, UINT64_MAX, &len));
	elf_file_free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_names_in_a_runtime_are_not_listed),
		cmocka_unit_test(test_runtime_names_in_a_driver_are_not_listed),
		cmocka_unit_test(test_file_with_both_layers_lists_both),
		cmocka_unit_test(test_data_is_not_listed),
		cmocka_unit_test(test_resolvers_are_not_listed),
		cmocka_unit_test(test_fragments_of_functions_are_not_listed),
		cmocka_unit_test(test_registration_that_nvcc_writes_is_not_listed),
		cmocka_unit_test(test_of_aliases_the_shortest_name_is_listed),
		cmocka_unit_test(test_of_aliases_none_with_arguments_of_32_bits_is_listed),
		cmocka_unit_test(test_offset_leads_to_the_code_of_a_library),
		cmocka_unit_test(test_offset_leads_to_the_code_of_a_fixed_program),
		cmocka_unit_test(test_bytes_end_with_the_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
