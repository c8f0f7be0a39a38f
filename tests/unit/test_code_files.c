// SPDX-License-Identifier: MIT
/* Files that processes run: how many of them are kept open, and how much of their names is kept. */
#include "elf_build.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/maps.h"
#include "probe/person.h"
#include "stack/code_files.h"

#define OF_A_USER 1024

uint64_t __wrap_helper_person_of(pid_t pid);

static uint64_t person;

uint64_t __wrap_helper_person_of(pid_t pid)
{
	return pid == getpid() ? person : 1;
}

/* As if a process had mapped another file, of that number. */
static struct code_file *hold(struct code_files *files, const char *folder, int number)
{
	struct mapping mapping = { .start = 4096, .end = 8192 };
	char path[128];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%d", folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	mapping.path = path;
	mapping.dev = st.st_dev;
	mapping.inode = st.st_ino;
	return code_files_hold(files, getpid(), &mapping);
}

/* So who maps files without end leaves descriptors for those of others. */
static void test_a_user_has_a_share_of_the_descriptors(void **state)
{
	const struct rlimit most = { 5000, 5000 };
	char folder[] = "/tmp/cuscope-unit-XXXXXX", path[128];
	struct code_files *files = code_files_new();
	struct code_file *first = NULL, *file;

	setrlimit(RLIMIT_NOFILE, &most);
	assert_non_null(mkdtemp(folder));
	person = 1001;
	for (int i = 0; i <= OF_A_USER; i++) {
		file = hold(files, folder, i);
		first = first ? first : file;
		assert_int_equal(code_file_fd(file) >= 0, i < OF_A_USER);
	}
	person = 1002;
	assert_true(code_file_fd(hold(files, folder, OF_A_USER + 1)) >= 0);
	person = 1001;
	code_files_drop(files, first);
	assert_true(code_file_fd(hold(files, folder, OF_A_USER + 2)) >= 0);
	code_files_free(files);
	for (int i = 0; i <= OF_A_USER + 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		unlink(path);
	}
	rmdir(folder);
}

#define FUNCTIONS   512
#define LONG_NAME   16000
#define LONG_FILES  12
#define OTHER_BYTES ((size_t)8 << 20) /* than the names that are kept, 16 MiB */

/* Of many small functions, all of which have the long name of one. */
static int build_long_names(uint64_t first[2])
{
	AT_END(buf_free) struct buf source = { 0 };
	Elf64_Sym symbol;
	Elf64_Ehdr header;
	Elf64_Shdr table, section;
	uint32_t name = 0;
	int fd;

	buf_puts(&source, "void ");
	for (size_t i = 0; i < LONG_NAME; i++)
		buf_putc(&source, 'x');
	buf_puts(&source, "(void){}\n");
	for (unsigned i = 0; i < FUNCTIONS; i++)
		buf_printf(&source, "void f%03u(void){}\n", i);
	fd = build(source.data, LIBRARY " -fvisibility=hidden");
	get(fd, &header, sizeof(header), 0);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		get(fd, &section, sizeof(section), header.e_shoff + i * sizeof(section));
		if (section.sh_type == SHT_SYMTAB)
			table = section;
	}
	first[0] = UINT64_MAX;
	first[1] = 0;
	for (int twice = 0; twice < 2; twice++) {
		for (uint64_t at = 0; at < table.sh_size; at += sizeof(symbol)) {
			char begin[3] = "";

			get(fd, &symbol, sizeof(symbol), table.sh_offset + at);
			get(fd, &section, sizeof(section),
			    header.e_shoff + table.sh_link * sizeof(section));
			if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
				continue;
			get(fd, begin, 2, section.sh_offset + symbol.st_name);
			if (!strcmp(begin, "xx"))
				name = symbol.st_name;
			first[0] = symbol.st_value < first[0] ? symbol.st_value : first[0];
			first[1] = symbol.st_value > first[1] ? symbol.st_value : first[1];
			symbol.st_name = name;
			if (twice)
				put(fd, &symbol, sizeof(symbol), table.sh_offset + at);
		}
	}
	return fd;
}

static size_t memory(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void test_names_of_all_files_have_one_bound(void **state)
{
	struct code_files *files = code_files_new();
	uint64_t range[2], into;
	size_t before, asked = 0;
	bool late;

	person = PERSON_ROOT;
	close(build_long_names(range));
	before = memory();
	for (int number = 0; number < LONG_FILES; number++) {
		struct code_file *file;

		run("cp a.out %d", number);
		file = hold(files, dir, number);
		for (uint64_t at = range[0]; at <= range[1]; at++) {
			const char *name =
				code_file_function(files, file, getpid(), at, &into, &late);

			assert_false(late);
			if (name && !into)
				assert_int_equal(strlen(name), LONG_NAME);
			asked += name && !into;
		}
		if (!number && before) /* below the bound all are kept; a sanitizer does not tell */
			assert_true(memory() - before > FUNCTIONS * (size_t)LONG_NAME);
	}
	assert_int_equal(asked, LONG_FILES * (FUNCTIONS + 1));
	assert_true(memory() - before < ((size_t)16 << 20) + OTHER_BYTES);
	code_files_free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_has_a_share_of_the_descriptors),
		cmocka_unit_test(test_names_of_all_files_have_one_bound),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
