// SPDX-License-Identifier: MIT
/* Files that are no ELF, cut short, damaged or changed while they are read. */
#include "elf_build.h"

#include <time.h>

#include "probe/elf_image.h"

/* ---- bad files ------------------------------------------------------------------------------- */

static int file_with(const char *text)
{
	write_file(in_dir("a.out"), text);
	return reopen();
}

static void test_text_is_no_elf(void **state)
{
	expect_answer(file_with("#!/bin/sh\necho this is a script that is longer than a header\n"),
	              ELF_WHOLE, -ENOEXEC);
}

static void test_empty_file_is_no_elf(void **state)
{
	expect_answer(file_with(""), ELF_WHOLE, -ENOEXEC);
}

static void test_directory_is_no_elf(void **state)
{
	expect_answer(open(dir, O_RDONLY), ELF_WHOLE, -ENOEXEC);
}

static void test_object_file_is_no_module(void **state)
{
	expect_answer(build(driver, "-c"), ELF_WHOLE, -ENOEXEC);
}

static void test_file_of_32_bits_is_refused_with_the_reason(void **state)
{
	int fd = build(driver, LIBRARY);
	struct elf_file *file;
	struct err err = { 0 };

	patch(fd, EI_CLASS, ELFCLASS32);
	assert_int_equal(elf_file_open(fd, "a.out", ELF_WHOLE, &file, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.text, "32-bit"));
	close(fd);
}

static void test_file_of_another_machine_is_refused(void **state)
{
	int fd = build(driver, LIBRARY);

	patch(fd, offsetof(Elf64_Ehdr, e_machine), EM_PPC64);
	expect_answer(fd, ELF_WHOLE, -EPROTONOSUPPORT);
}

static void test_file_without_program_headers_is_damaged(void **state)
{
	int fd = build(driver, LIBRARY);

	patch(fd, offsetof(Elf64_Ehdr, e_phnum), 0);
	expect_answer(fd, ELF_WHOLE, -EBADMSG);
}

static void test_cut_file_gives_an_answer_at_every_length(void **state)
{
	int fd = build(driver, LIBRARY " -Wl,-z,max-page-size=64 -Wl,-z,noseparate-code");
	struct stat st;

	fstat(fd, &st);
	for (off_t len = st.st_size - 1; len >= 0; len -= len > 4096 ? 17 : 1) {
		struct elf_file *file = NULL;
		struct err err = { 0 };
		int rc;

		assert_int_equal(ftruncate(fd, len), 0);
		rc = elf_file_open(fd, "a.out", ELF_WHOLE, &file, &err);
		if (rc == 0)
			elf_file_free(file);
		else
			assert_true(rc < 0 && err.text[0]);
	}
	close(fd);
}

/* Its owner may do that at any time: with a mapping it would be SIGBUS. */
static void test_file_that_shrinks_while_it_is_open_gives_nothing(void **state)
{
	int fd = build(marked, LIBRARY);
	struct elf_file *file = open_module(dup(fd), ELF_DYNSYM_ONLY);
	const struct elf_function *function = find(file, "cudaMarked");
	size_t len = 14;

	assert_int_equal(ftruncate(fd, 100), 0);
	assert_null(elf_file_bytes(file, function->offset, &len));
	assert_int_equal(len, 0);
	elf_file_free(file);
	close(fd);
}

static void test_symbol_table_larger_than_the_file_is_damaged(void **state)
{
	int fd = build(runtime, PROGRAM);
	struct stat st;

	fstat(fd, &st);
	enlarge_strings(fd);
	assert_int_equal(ftruncate(fd, st.st_size), 0);
	expect_answer(fd, ELF_WHOLE, -EBADMSG);
}

/* As many as the kernel would not load, among which each symbol was looked for. */
static void test_segments_without_number_are_damage(void **state)
{
	int fd = build(driver, LIBRARY);
	Elf64_Phdr segments[129] = { { .p_type = PT_NULL } };
	Elf64_Ehdr header;
	struct stat st;

	fstat(fd, &st);
	get(fd, &header, sizeof(header), 0);
	get(fd, segments, header.e_phnum * sizeof(*segments), header.e_phoff);
	put(fd, segments, sizeof(segments), (uint64_t)st.st_size);
	header.e_phoff = (uint64_t)st.st_size;
	header.e_phnum = 128;
	put(fd, &header, sizeof(header), 0);
	elf_file_free(open_module(dup(fd), ELF_WHOLE));
	header.e_phnum = 129;
	put(fd, &header, sizeof(header), 0);
	expect_answer(fd, ELF_WHOLE, -EBADMSG);
}

static size_t reads;

ssize_t __real_helper_pread(int fd, void *to, size_t bytes, uint64_t offset);
ssize_t __wrap_helper_pread(int fd, void *to, size_t bytes, uint64_t offset);
ssize_t __wrap_helper_pread(int fd, void *to, size_t bytes, uint64_t offset)
{
	reads++;
	return __real_helper_pread(fd, to, bytes, offset);
}

/* A user's overlay is read by another process, 50 us each time. */
static void test_a_chain_without_end_costs_few_reads(void **state)
{
	int fd = build("int other(void) { return 1; }", LIBRARY " -Wl,--hash-style=sysv");
	uint32_t head[2], first = 1;
	struct elf_symbols symbols;
	struct elf_image image;

	assert_int_equal(elf_image_open(&image, fd, "a.out", NULL), 0);
	assert_int_equal(elf_symbols_dynamic(&image, &symbols), 0);
	elf_image_close(&image);
	get(fd, head, sizeof(head), symbols.sysv_hash);
	for (uint32_t i = 0; i < head[0] + 2; i++) /* and from the first symbol to itself */
		put(fd, &first, sizeof(first), symbols.sysv_hash + sizeof(head) + 4 * i);
	reads = 0;
	expect_answer(fd, ELF_WHOLE, -EBADMSG);
	assert_in_range(reads, 1000, 5000);
}

/* Who looks at files for the first time does so while a process waits. */
static void test_a_section_among_65000_is_found_soon(void **state)
{
	int fd = build(runtime, PROGRAM);
	Elf64_Shdr first = { 0 }, *all, found;
	struct timespec begin, end;
	struct elf_image image;
	const size_t n = 65000;
	Elf64_Ehdr header;
	struct stat st;

	fstat(fd, &st);
	get(fd, &header, sizeof(header), 0);
	all = calloc(n + header.e_shnum, sizeof(*all));
	get(fd, all + n, header.e_shnum * sizeof(*all), header.e_shoff);
	first.sh_type = SHT_PROGBITS;
	for (size_t i = 1; i < n; i++)
		all[i] = first;
	put(fd, all, (n + header.e_shnum) * sizeof(*all), (uint64_t)st.st_size);
	header.e_shoff = (uint64_t)st.st_size;
	header.e_shstrndx = (uint16_t)(n + header.e_shstrndx);
	header.e_shnum = (uint16_t)(n + header.e_shnum);
	put(fd, &header, sizeof(header), 0);
	free(all);

	assert_int_equal(elf_image_open(&image, fd, "a.out", NULL), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < 20; i++) {
		assert_true(elf_image_section(&image, ".text", &found));
		assert_false(elf_image_section(&image, ".none", &found));
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 <
	            800);
	elf_image_close(&image);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_no_elf),
		cmocka_unit_test(test_empty_file_is_no_elf),
		cmocka_unit_test(test_directory_is_no_elf),
		cmocka_unit_test(test_object_file_is_no_module),
		cmocka_unit_test(test_file_of_32_bits_is_refused_with_the_reason),
		cmocka_unit_test(test_file_of_another_machine_is_refused),
		cmocka_unit_test(test_file_without_program_headers_is_damaged),
		cmocka_unit_test(test_cut_file_gives_an_answer_at_every_length),
		cmocka_unit_test(test_file_that_shrinks_while_it_is_open_gives_nothing),
		cmocka_unit_test(test_symbol_table_larger_than_the_file_is_damaged),
		cmocka_unit_test(test_segments_without_number_are_damage),
		cmocka_unit_test(test_a_chain_without_end_costs_few_reads),
		cmocka_unit_test(test_a_section_among_65000_is_found_soon),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
