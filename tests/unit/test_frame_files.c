// SPDX-License-Identifier: MIT
/* Rows of files that the compiler made, whole and damaged. */
#include "elf_build.h"

#include "unwind/frame_rows.h"

#define BUDGET (1u << 20)

/* From its 1st byte on the stack holds 8 bytes more; some place of it can be found in the file. */
static const char program[] = "__asm__(\".text\\n.globl marked\\nmarked: .cfi_startproc\\n\"\n"
			      "\"nop\\n.cfi_def_cfa_offset 16\\n\"\n"
			      "\".ascii \\\"MARKED BY TEST\\\"\\n.cfi_endproc\\n\"\n"
			      "\".fill 64, 1, 0x90\\n\");\n"
			      "int start(void) { return 2; }\n";

static struct frame_rows read_rows(int fd)
{
	struct frame_rows rows;
	struct err err = { 0 };

	assert_int_equal(frame_rows_read(fd, "a.out", BUDGET, &rows, &err), 0);
	assert_string_equal(err.text, "");
	return rows;
}

static void expect_error(int fd, int code)
{
	struct frame_rows rows;
	struct err err = { 0 };

	assert_int_equal(frame_rows_read(fd, "a.out", BUDGET, &rows, &err), code);
	assert_non_null(strstr(err.text, "a.out"));
	frame_rows_free(&rows);
}

/* The row that begins where the mark does; it is code of the executable segment. */
static bool has_mark(const struct frame_rows *rows, int fd)
{
	static char bytes[1 << 20];
	ssize_t len = pread(fd, bytes, sizeof(bytes), 0);
	const char *mark = memmem(bytes, (size_t)len, "MARKED BY TEST", 14);
	const Elf64_Ehdr *header = (const void *)bytes;
	const Elf64_Phdr *segment = (const void *)(bytes + header->e_phoff);
	uint64_t address, offset = (uint64_t)(mark - bytes);

	assert_non_null(mark);
	while (segment->p_type != PT_LOAD || offset - segment->p_offset >= segment->p_filesz ||
	       !(segment->p_flags & PF_X))
		segment++;
	address = offset - segment->p_offset + segment->p_vaddr;
	for (uint32_t i = 0; i < rows->n_rows; i++) {
		if (rows->base + rows->rows[i].address == address)
			return rows->rules[rows->rows[i].rule].cfa_kind == CFA_SP &&
			       rows->rules[rows->rows[i].rule].cfa == 16;
	}
	return false;
}

static void expect_mark(int fd, bool is_there)
{
	struct frame_rows rows = read_rows(fd);

	assert_int_equal(has_mark(&rows, fd), is_there);
	frame_rows_free(&rows);
	close(fd);
}

static void test_libraries_and_programs(void **state)
{
	expect_mark(build(program, LIBRARY), true);
	expect_mark(build(program, PROGRAM), true);
	expect_mark(build(program, "-fPIE -pie -nostdlib -Wl,-e,start"), true);
	expect_mark(build(program, PROGRAM " -Wl,-Ttext-segment=0xffffffff80000000"), true);
}

static void test_a_stripped_file_has_it_all_the_same(void **state)
{
	close(build(program, LIBRARY));
	run("strip a.out");
	expect_mark(reopen(), true);
}

/* As the loader finds it. */
static void test_without_section_headers(void **state)
{
	int fd = build(program, LIBRARY " -Wl,--eh-frame-hdr");
	Elf64_Ehdr header;

	get(fd, &header, sizeof(header), 0);
	header.e_shoff = 0;
	header.e_shnum = 0;
	put(fd, &header, sizeof(header), 0);
	expect_mark(fd, true);
}

static void test_with_section_headers_alone(void **state)
{
	expect_mark(build(program, PROGRAM " -Wl,--no-eh-frame-hdr"), true);
}

static void test_debug_frame_where_there_is_little_else(void **state)
{
	static const char debug[] = "__asm__(\".cfi_sections .debug_frame\");\n";
	char source[sizeof(debug) + sizeof(program)];

	snprintf(source, sizeof(source), "%s%s", debug, program);
	expect_mark(build(source, LIBRARY " -fno-asynchronous-unwind-tables"), true);
	run("strip a.out");
	expect_mark(reopen(), false);
}

static void test_a_file_without_any(void **state)
{
	int fd = build("int start(void) { return 2; }",
	               LIBRARY " -fno-asynchronous-unwind-tables -Wl,--no-eh-frame-hdr");
	struct frame_rows rows = read_rows(fd);

	assert_int_equal(rows.n_rows, 1);
	assert_int_equal(rows.rows[0].address, 0);
	assert_int_equal(rows.rules[rows.rows[0].rule].cfa_kind, CFA_NONE);
	assert_int_equal(rows.counts.fdes, 0);
	assert_false(rows.counts.cut);
	frame_rows_free(&rows);
	close(fd);
}

/* As glibc has it: the stack begins at a function that takes it from rbx, %s is how. */
static const char context[] =
	"__asm__(\".text\\n.globl makecontext\\n.type makecontext,@function\\n\"\n"
	"\"makecontext: .cfi_startproc\\nlea started(%%rip),%%rdi\\nret\\n\"\n"
	"\".cfi_endproc\\n.size makecontext,.-makecontext\\n.balign 16\\n\"\n"
	"\"started: .cfi_startproc\\n%s\\nhlt\\n.cfi_endproc\\n\");\n"
	"int start(void) { return 2; }\n";

/* How many rows end stacks, and whether each is where a function returns to its first byte. */
static unsigned rows_that_end_stacks(const char *code)
{
	char source[1024];
	struct frame_rows rows;
	unsigned n = 0;
	int fd;

	snprintf(source, sizeof(source), context, code);
	fd = build(source, LIBRARY);
	rows = read_rows(fd);
	for (uint32_t i = 0; i < rows.n_rows; i++) {
		if (rows.rules[rows.rows[i].rule].cfa_kind == CFA_STOP) {
			assert_int_equal((rows.base + rows.rows[i].address) % 16, 15);
			n++;
		}
	}
	frame_rows_free(&rows);
	close(fd);
	return n;
}

static void test_a_stack_of_makecontext_ends(void **state)
{
#ifdef __x86_64__
	assert_int_equal(rows_that_end_stacks("mov %rbx,%rsp"), 1);
	assert_int_equal(rows_that_end_stacks("endbr64\\nmov %rbx,%rsp"), 1);
	assert_int_equal(rows_that_end_stacks("mov %rcx,%rsp"), 0);
	assert_int_equal(rows_that_end_stacks("endbr64\\nmov %rcx,%rsp"), 0);
#endif
}

static void test_a_budget_of_little_more_than_the_section(void **state)
{
	int fd = build(program, LIBRARY);
	struct frame_rows rows;
	struct err err = { 0 };

	assert_int_equal(frame_rows_read(fd, "a.out", 64, &rows, &err), 0);
	assert_true(rows.counts.cut);
	frame_rows_free(&rows);
	close(fd);
}

static void test_other_files(void **state)
{
	int fd = open("/etc/passwd", O_RDONLY);

	expect_error(fd, -ENOEXEC);
	close(fd);
	fd = open("/", O_RDONLY);
	expect_error(fd, -ENOEXEC);
	close(fd);
}

/* Cut at any place it is told, or has less, or is as before; and never read beyond its end. */
static void test_files_that_are_cut_short(void **state)
{
	int fd = build(program, LIBRARY), rc;
	off_t size = lseek(fd, 0, SEEK_END);
	struct frame_rows rows;
	struct err err;

	while ((size -= 97) >= 0) {
		assert_int_equal(ftruncate(fd, size), 0);
		rc = frame_rows_read(fd, "a.out", BUDGET, &rows, &err);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -ENOEXEC);
		assert_true(rc < 0 || rows.n_rows >= 1);
		frame_rows_free(&rows);
	}
	close(fd);
}

/* The place of the section header of .eh_frame. */
static uint64_t header_of_frames(int fd, Elf64_Shdr *found)
{
	char names[4096];
	Elf64_Ehdr header;
	Elf64_Shdr strings;

	get(fd, &header, sizeof(header), 0);
	get(fd, &strings, sizeof(strings), header.e_shoff + header.e_shstrndx * sizeof(strings));
	get(fd, names, strings.sh_size, strings.sh_offset);
	for (unsigned int i = 0; i < header.e_shnum; i++) {
		uint64_t at = header.e_shoff + i * sizeof(*found);

		get(fd, found, sizeof(*found), at);
		if (strcmp(names + found->sh_name, ".eh_frame") == 0)
			return at;
	}
	fail();
	return 0;
}

static void test_a_section_that_lies_outside_of_the_file(void **state)
{
	int fd = build(program, LIBRARY);
	Elf64_Shdr section;
	uint64_t at = header_of_frames(fd, &section);

	section.sh_size = UINT64_MAX - 10;
	put(fd, &section, sizeof(section), at);
	expect_error(fd, -EBADMSG);
	section.sh_size = 100;
	section.sh_offset = UINT64_MAX - 10;
	put(fd, &section, sizeof(section), at);
	expect_error(fd, -EBADMSG);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries_and_programs),
		cmocka_unit_test(test_a_stripped_file_has_it_all_the_same),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_with_section_headers_alone),
		cmocka_unit_test(test_debug_frame_where_there_is_little_else),
		cmocka_unit_test(test_a_file_without_any),
		cmocka_unit_test(test_a_stack_of_makecontext_ends),
		cmocka_unit_test(test_a_budget_of_little_more_than_the_section),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_files_that_are_cut_short),
		cmocka_unit_test(test_a_section_that_lies_outside_of_the_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
